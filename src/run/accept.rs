//! `--accept ID`: a person says that a snapshot is as it should be.

use anyhow::{Result, bail};

use super::inventory::{self, Inventory};
use super::stage::Task;
use crate::manifests::Ingested;
use crate::model::SnapshotId;
use crate::store::Store;

/// Keeps the acceptance of a snapshot, if what follows from it can be done: a crawl that counted as incomplete only
/// because pages are missing is ingested again, and so are all later ones.
pub(super) fn accept(store: &Store, inventory: &Inventory, snapshot: &SnapshotId) -> Result<()> {
    inventory::known_snapshots(store, [snapshot])?;
    let waits = store.manifest::<Ingested>(snapshot)?.is_some_and(|done| done.summary.waits_for_acceptance());
    if waits {
        let first = inventory.position(snapshot).unwrap_or(0);
        let is_gone = |task: &&Task| task.folder.is_none();
        if let Some(gone) = inventory.tasks[first..].iter().find(is_gone) {
            let id = &gone.snapshot.id;
            bail!("snapshot {snapshot} cannot be accepted: {id} would be done again, and its folder is gone");
        }
        if store.is_first_kept(snapshot)? {
            bail!("snapshot {snapshot} cannot be accepted: it would be done again, and what came before it was pruned");
        }
    }
    Ok(store.accept(snapshot)?)
}

/// Whether a snapshot was accepted and not yet done again.
pub(super) fn is_pending(store: &Store) -> Result<bool> {
    for snapshot in store.accepted()? {
        if store.manifest::<Ingested>(&snapshot)?.is_some_and(|done| done.summary.waits_for_acceptance()) {
            return Ok(true);
        }
    }
    Ok(false)
}
