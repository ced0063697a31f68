//! Snapshots that were taken out of the store and are not to come back by themselves.

use std::collections::BTreeSet;

use super::{Result, Store};
use crate::model::SnapshotId;

const FILE: &str = "dropped";

impl Store {
    /// Snapshots that were taken out of the store: their folders are passed over.
    pub(crate) fn dropped(&self) -> Result<BTreeSet<SnapshotId>> {
        Ok(self.said(FILE, "drop those snapshots again (`ratoon drop PIPELINE --snapshot ID`)")?.unwrap_or_default())
    }

    pub(crate) fn set_dropped(&self, dropped: &BTreeSet<SnapshotId>) -> Result<()> {
        self.say(FILE, dropped)
    }
}
