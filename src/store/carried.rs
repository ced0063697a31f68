//! What is carried from snapshot to snapshot per URL, so that a new snapshot reads one file instead of all history.
//!
//! One Parquet file per snapshot and kind, below `_meta`, kept for the newest snapshots. Heads can be rebuilt from
//! `pages`; what is known of updates and of first sights outlives pruned captures and texts, so pruning leaves the newest
//! of those alone.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::parquet::Partition;
use super::{Result, Store, remove_file_if_there};
use crate::model::closed_set::closed_set;
use crate::model::{SnapshotId, StageId};

closed_set! {
    /// A kind of carried file, named by its folder.
    pub enum Carried: "carried file" {
        /// The last good page of each URL.
        Heads = "heads",
        /// What is known of each URL's updates.
        UpdateStates = "update_states",
        /// When the texts of each URL were first seen.
        Seen = "seen",
    }
}

impl Carried {
    /// The stage that writes it.
    #[must_use]
    pub fn stage(self) -> StageId {
        match self {
            Self::Heads => StageId::Ingest,
            Self::UpdateStates => StageId::Stats,
            Self::Seen => StageId::Delta,
        }
    }
}

/// The files of one kind.
pub struct CarriedFiles<'a> {
    store: &'a Store,
    what: Carried,
}

impl Store {
    #[must_use]
    pub fn carried(&self, what: Carried) -> CarriedFiles<'_> {
        CarriedFiles { store: self, what }
    }
}

impl CarriedFiles<'_> {
    /// Where the file of a snapshot lies, or is to lie.
    #[must_use]
    pub fn file(&self, snapshot: &SnapshotId) -> PathBuf {
        self.folder().join(format!("{snapshot}.parquet"))
    }

    fn folder(&self) -> PathBuf {
        self.store.meta().join(self.what.as_str())
    }

    #[must_use]
    pub fn is_there(&self, snapshot: &SnapshotId) -> bool {
        self.file(snapshot).exists()
    }

    /// Opens the file of a snapshot.
    pub fn open(&self, snapshot: &SnapshotId) -> Result<Partition> {
        self.store.note_carried(self.what)?;
        Partition::open(&self.file(snapshot))
    }

    /// Puts a file that was rebuilt where it belongs.
    pub fn put(&self, staged: &Path, snapshot: &SnapshotId) -> Result<()> {
        fs::create_dir_all(self.folder())?;
        fs::rename(staged, self.file(snapshot))?;
        Ok(())
    }

    /// Drops the files of all snapshots but these.
    pub fn keep(&self, keep: &[&SnapshotId]) -> Result<()> {
        let dir = self.folder();
        if !dir.is_dir() {
            return Ok(());
        }
        for entry in fs::read_dir(&dir)? {
            let path = entry?.path();
            if !keep.iter().any(|id| self.file(id) == path) {
                remove_file_if_there(&path)?;
            }
        }
        Ok(())
    }

    pub fn drop(&self, snapshot: &SnapshotId) -> Result<()> {
        remove_file_if_there(&self.file(snapshot))
    }
}
