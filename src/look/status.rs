//! What is done, what each snapshot brought, and what waits.

use anyhow::Result;

use crate::config::Pipeline;
use crate::manifests::{Changes, Ingested};
use crate::report::status::{Counts, SnapshotStatus, Status};
use crate::run::inventory::Inventory;
use crate::run::problems;
use crate::run::stage::Task;
use crate::run::unfinished;
use crate::run::windows::Taking;
use crate::stages;
use crate::store::Store;
use crate::store::manifest::Manifest;
use crate::tables::ingest::{Capture, RejectRow};
use crate::tables::record::Table as _;

/// All snapshots of the archive and the store.
pub(crate) fn status(pipeline: &Pipeline) -> Result<Status> {
    let store = Store::open(&pipeline.corpus.store)?;
    let inventory = Inventory::take(pipeline, store.as_ref(), Taking::default())?;
    let mut status = Status { store: pipeline.corpus.store.clone(), ..Status::default() };
    for task in &inventory.tasks {
        let manifest = match &store {
            Some(store) => store.manifest::<Ingested>(&task.snapshot.id)?,
            None => None,
        };
        match manifest {
            Some(manifest) => {
                status.snapshots.push(snapshot_status(task, &manifest));
                if let Some(store) = &store {
                    status.problems.extend(problems::of(store, &task.snapshot.id)?);
                }
            }
            None => status.waiting.push(task.snapshot.id.clone()),
        }
    }
    status.open_windows = inventory.open_windows();
    if let Some(store) = &store {
        status.unfinished = unfinished(stages::graph(), pipeline, store, &inventory)?;
    }
    Ok(status)
}

fn snapshot_status(task: &Task, manifest: &Manifest<Ingested>) -> SnapshotStatus {
    let Changes { added, modified, unchanged, moved, failed, revisits, went, .. } = manifest.summary.changes;
    let pages = manifest.summary.alive;
    SnapshotStatus {
        snapshot: task.snapshot.id.clone(),
        time: manifest.time,
        rejects: manifest.rows(RejectRow::NAME),
        base: manifest.summary.base,
        whole: manifest.summary.whole,
        folder: task.folder.is_some(),
        counts: Counts {
            captures: manifest.rows(Capture::NAME),
            failed,
            revisits,
            pages,
            added,
            modified,
            unchanged,
            // All others are as an earlier snapshot left them.
            carried: pages.saturating_sub(added + modified + unchanged),
            deleted: went,
            moved,
            text_bytes: manifest.summary.text_bytes,
        },
    }
}
