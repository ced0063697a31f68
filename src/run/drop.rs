//! `ratoon drop`: takes the newest snapshots out of the store.
//!
//! That they are not wanted is written down first, so that an interrupted drop is completed by whoever comes next. Their
//! manifests go newest first, and partitions that no manifest names are swept. What is known of URLs is learned again
//! from what is left.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};

use super::graph::Graph;
use super::inventory::find;
use crate::manifests::Ingested;
use crate::model::{SnapshotId, StageId};
use crate::store::Store;
use crate::store::index::Index;
use crate::store::lock::StoreLock;

/// What was taken out.
#[derive(Debug)]
pub(crate) struct Dropped {
    pub(crate) dropped: Vec<SnapshotId>,
    pub(crate) kept: usize,
}

/// Takes a snapshot and all later ones out of the store; with `dry_run` only says which these are.
pub(crate) fn drop_from(graph: Graph, root: &Path, first: &SnapshotId, dry_run: bool) -> Result<Dropped> {
    if Store::open(root)?.is_none() {
        bail!("no store at {}; nothing to drop", root.display());
    }
    let _lock = StoreLock::take(root, "drop")?;
    let store = Store::open_or_create(root)?;
    if !dry_run {
        store.recover()?;
        store.clear_staging()?;
        complete(&store)?;
    }
    let ids: Vec<SnapshotId> = store.manifests::<Ingested>()?.into_iter().map(|manifest| manifest.snapshot).collect();
    let at = find(&ids, first)?;
    if store.is_first_kept(first)? {
        bail!("snapshot {first} cannot be dropped: what came before it was pruned, so that it cannot be made again");
    }
    let (kept, dropped) = ids.split_at(at);
    if !dry_run {
        let mut unwanted = store.dropped()?;
        unwanted.extend(dropped.iter().cloned());
        store.set_dropped(&unwanted)?;
        complete(&store)?;
        for stage in graph.stages() {
            store.sweep(stage.writes())?;
        }
    }
    Ok(Dropped { dropped: dropped.to_vec(), kept: kept.len() })
}

/// Takes out what is not wanted and still there.
pub(super) fn complete(store: &Store) -> Result<()> {
    let unwanted: BTreeSet<SnapshotId> = store.dropped()?;
    if unwanted.is_empty() {
        return Ok(());
    }
    let all = store.all_done()?;
    let there: Vec<&SnapshotId> =
        all.iter().map(|done| &done.snapshot.id).filter(|id| unwanted.contains(*id)).collect();
    if there.is_empty() {
        return Ok(());
    }
    Index::remove(&store.index_folder())?;
    for snapshot in there.into_iter().rev() {
        store.forget(StageId::ALL.as_slice(), snapshot)?;
        store.forget_acceptance(snapshot)?;
    }
    Ok(())
}
