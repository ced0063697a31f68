//! Where the history of a store begins once it was pruned.

use serde::{Deserialize, Serialize};

use super::{Result, Store};
use crate::model::{SnapshotId, Timestamp};

const FILE: &str = "pruned.json";

/// The oldest snapshot kept: older folders of the archive are none of ours any more.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FirstKept {
    time: Timestamp,
    snapshot: SnapshotId,
}

impl FirstKept {
    /// Whether a snapshot is older than what was kept when the store was last pruned.
    #[must_use]
    pub(crate) fn is_after(&self, time: Timestamp, snapshot: &SnapshotId) -> bool {
        (time, snapshot) < (self.time, &self.snapshot)
    }
}

impl Store {
    /// The oldest snapshot that pruning left; `None` if the store was never pruned.
    pub(crate) fn first_kept(&self) -> Result<Option<FirstKept>> {
        self.said(FILE, "prune again (`ratoon prune PIPELINE --before ID`)")
    }

    /// From now on no snapshot older than this one belongs to the store.
    pub fn set_first_kept(&self, time: Timestamp, snapshot: &SnapshotId) -> Result<()> {
        self.say(FILE, &FirstKept { time, snapshot: snapshot.clone() })
    }

    /// Whether this is the oldest snapshot that pruning left: what it was compared with is gone.
    pub fn is_first_kept(&self, snapshot: &SnapshotId) -> Result<bool> {
        Ok(self.first_kept()?.is_some_and(|first| first.snapshot == *snapshot))
    }
}
