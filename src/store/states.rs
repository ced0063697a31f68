//! What is carried from snapshot to snapshot per URL, as heads are, so that a new snapshot reads one file instead of
//! all history: what is known of its updates, and of when its texts were first seen. Unlike heads these outlive pruned
//! captures and texts, so pruning leaves the newest ones alone.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::{Result, Store, remove_file_if_there};
use crate::model::SnapshotId;

/// One file per snapshot below `_meta`, kept for the newest ones.
pub struct Carried<'a> {
    store: &'a Store,
    folder: &'static str,
}

impl Store {
    /// When texts were first seen.
    #[must_use]
    pub fn seen(&self) -> Carried<'_> {
        Carried { store: self, folder: "seen" }
    }

    /// What is known of updates.
    fn states(&self) -> Carried<'_> {
        Carried { store: self, folder: "update_states" }
    }

    #[must_use]
    pub fn states_file(&self, snapshot: &SnapshotId) -> PathBuf {
        self.states().file(snapshot)
    }

    #[must_use]
    pub fn has_states(&self, snapshot: &SnapshotId) -> bool {
        self.states().is_there(snapshot)
    }

    /// Puts states that were rebuilt where they belong.
    pub fn put_states(&self, staged: &Path, snapshot: &SnapshotId) -> Result<()> {
        self.states().put(staged, snapshot)
    }

    /// Drops the states of all snapshots but these.
    pub fn keep_states(&self, keep: &[&SnapshotId]) -> Result<()> {
        self.states().keep(keep)
    }

    pub fn drop_states(&self, snapshot: &SnapshotId) -> Result<()> {
        self.states().drop(snapshot)
    }
}

impl Carried<'_> {
    #[must_use]
    pub fn file(&self, snapshot: &SnapshotId) -> PathBuf {
        self.store.meta().join(self.folder).join(format!("{snapshot}.parquet"))
    }

    #[must_use]
    pub fn is_there(&self, snapshot: &SnapshotId) -> bool {
        self.file(snapshot).exists()
    }

    /// Puts a file that was rebuilt where it belongs.
    pub fn put(&self, staged: &Path, snapshot: &SnapshotId) -> Result<()> {
        let path = self.file(snapshot);
        fs::create_dir_all(path.parent().expect("a file has a folder"))?;
        fs::rename(staged, path)?;
        Ok(())
    }

    /// Drops the files of all snapshots but these.
    pub fn keep(&self, keep: &[&SnapshotId]) -> Result<()> {
        let dir = self.store.meta().join(self.folder);
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
