//! What is known of each URL's updates, carried from snapshot to snapshot as heads are: a new snapshot reads one file
//! instead of all captures. Unlike heads these outlive pruned captures, so pruning leaves the newest ones alone.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::{Result, Store, remove_file_if_there};
use crate::model::SnapshotId;

impl Store {
    #[must_use]
    pub fn states_file(&self, snapshot: &SnapshotId) -> PathBuf {
        self.meta().join("update_states").join(format!("{snapshot}.parquet"))
    }

    #[must_use]
    pub fn has_states(&self, snapshot: &SnapshotId) -> bool {
        self.states_file(snapshot).exists()
    }

    /// Puts states that were rebuilt where they belong.
    pub fn put_states(&self, staged: &Path, snapshot: &SnapshotId) -> Result<()> {
        let path = self.states_file(snapshot);
        fs::create_dir_all(path.parent().expect("a file has a folder"))?;
        fs::rename(staged, path)?;
        Ok(())
    }

    /// Drops the states of all snapshots but these.
    pub fn keep_states(&self, keep: &[&SnapshotId]) -> Result<()> {
        let dir = self.meta().join("update_states");
        if !dir.is_dir() {
            return Ok(());
        }
        for entry in fs::read_dir(&dir)? {
            let path = entry?.path();
            if !keep.iter().any(|id| self.states_file(id) == path) {
                remove_file_if_there(&path)?;
            }
        }
        Ok(())
    }

    pub fn drop_states(&self, snapshot: &SnapshotId) -> Result<()> {
        remove_file_if_there(&self.states_file(snapshot))
    }
}
