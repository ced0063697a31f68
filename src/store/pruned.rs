//! Where the history of a store begins once it was pruned.

use serde::{Deserialize, Serialize};

use super::{Result, Store};
use crate::model::{SnapshotId, Timestamp};

const FILE: &str = "pruned.json";

/// The oldest snapshot kept: older folders of the archive are none of ours any more.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pruned {
    time: Timestamp,
    snapshot: SnapshotId,
}

impl Store {
    fn pruned(&self) -> Result<Option<Pruned>> {
        self.meta_file(FILE)
    }

    /// From now on no snapshot older than this one belongs to the store.
    pub fn set_first_kept(&self, time: Timestamp, snapshot: &SnapshotId) -> Result<()> {
        self.write_meta_file(FILE, &Pruned { time, snapshot: snapshot.clone() })
    }

    /// Whether a snapshot is older than what was kept when the store was last pruned.
    pub fn is_pruned(&self, time: Timestamp, snapshot: &SnapshotId) -> Result<bool> {
        Ok(self.pruned()?.is_some_and(|first| (time, snapshot) < (first.time, &first.snapshot)))
    }

    /// Whether this is the oldest snapshot that pruning left: what it was compared with is gone.
    pub fn is_first_kept(&self, snapshot: &SnapshotId) -> Result<bool> {
        Ok(self.pruned()?.is_some_and(|first| first.snapshot == *snapshot))
    }
}
