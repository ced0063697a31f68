//! Snapshots whose problems a person has acknowledged.

use std::collections::BTreeSet;

use super::{Result, Store};
use crate::model::SnapshotId;

const FILE: &str = "accepted";

impl Store {
    /// The snapshots that were accepted as they are, whatever is wrong with them.
    pub(crate) fn accepted(&self) -> Result<BTreeSet<SnapshotId>> {
        Ok(self.said(FILE, "accept those snapshots again (`ratoon run PIPELINE --accept ID`)")?.unwrap_or_default())
    }

    /// From now on the problems of a snapshot are acknowledged. May be said twice.
    pub(crate) fn accept(&self, snapshot: &SnapshotId) -> Result<()> {
        let mut accepted = self.accepted()?;
        if accepted.insert(snapshot.clone()) {
            self.say(FILE, &accepted)?;
        }
        Ok(())
    }

    /// A snapshot that is taken out is not accepted when it comes back.
    pub(crate) fn forget_acceptance(&self, snapshot: &SnapshotId) -> Result<()> {
        let mut accepted = self.accepted()?;
        if accepted.remove(snapshot) {
            self.say(FILE, &accepted)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_stays_so() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path()).unwrap();
        let id = SnapshotId::new("n1").unwrap();
        assert!(store.accepted().unwrap().is_empty());
        store.accept(&id).unwrap();
        store.accept(&id).unwrap();
        assert_eq!(store.accepted().unwrap(), BTreeSet::from([id]));
    }
}
