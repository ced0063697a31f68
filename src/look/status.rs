//! What is done, what each snapshot brought, and what waits.

use anyhow::Result;

use crate::config::Pipeline;
use crate::manifests::{Changes, Extracted, Ingested};
use crate::model::StageId;
use crate::report::status::{Counts, LastRun, SnapshotStatus, Status, UnfinishedRun};
use crate::run::inventory::Inventory;
use crate::run::problems;
use crate::run::stage::Task;
use crate::run::unfinished;
use crate::run::windows::Taking;
use crate::stages;
use crate::store::Store;
use crate::store::lock::is_held;
use crate::store::manifest::{Manifest, Shortfall};
use crate::store::runs::RunLine;
use crate::tables::ingest::{Capture, RejectRow};
use crate::tables::record::Table as _;

/// All snapshots of the archive and the store.
pub(crate) fn status(pipeline: &Pipeline) -> Result<Status> {
    let store = Store::open(&pipeline.corpus.store)?;
    let inventory = Inventory::take(pipeline, store.as_ref(), Taking::default(), None)?;
    let mut status = known(pipeline, store.as_ref(), &inventory)?;
    status.open_windows = inventory.open_windows();
    if let Some(store) = &store {
        status.unfinished = unfinished(stages::graph(), pipeline, store, &inventory)?;
        status.under_way = store.under_way().map(|run| {
            let is_alive = is_held(store.root(), run.process);
            UnfinishedRun { start: run.start, process: run.process, is_alive }
        });
        let last = store.last_run(Some)?;
        status.last_run =
            last.map(|RunLine { start, end, exit_code, error, .. }| LastRun { start, end, exit_code, error });
    }
    Ok(status)
}

/// The same, without what waits on snapshots that are ingested.
pub(crate) fn ingested(pipeline: &Pipeline) -> Result<Status> {
    let store = Store::open(&pipeline.corpus.store)?;
    known(pipeline, store.as_ref(), &Inventory::take(pipeline, store.as_ref(), Taking::default(), None)?)
}

fn known(pipeline: &Pipeline, store: Option<&Store>, inventory: &Inventory) -> Result<Status> {
    let (file, store_path) = (pipeline.path.clone(), pipeline.corpus.store.clone());
    let mut status = Status { pipeline: file, store: store_path, ..Status::default() };
    status.dropped.clone_from(&inventory.dropped);
    for task in &inventory.tasks {
        let id = &task.snapshot.id;
        let manifest = match store {
            Some(store) => store.manifest::<Ingested>(id)?.map(|manifest| (store, manifest)),
            None => None,
        };
        let Some((store, manifest)) = manifest else {
            status.waiting.push(id.clone());
            continue;
        };
        let problems = problems::of(store, id)?;
        let shortfall = store.done(StageId::Extract, id)?.map(|done| done.shortfall).unwrap_or_default();
        let extracted = store.manifest::<Extracted>(id)?.map(|manifest| manifest.summary);
        let price = extracted.as_ref().and_then(|extracted| extracted.price);
        status.older = extracted.map(|extracted| extracted.older.into_iter().collect()).unwrap_or_default();
        status.snapshots.push(SnapshotStatus { price, ..snapshot_status(task, &manifest, shortfall) });
        status.problems.extend(problems);
    }
    Ok(status)
}

fn snapshot_status(task: &Task, manifest: &Manifest<Ingested>, shortfall: Shortfall) -> SnapshotStatus {
    let Changes { added, modified, unchanged, moved, failed, revisits, came, went, .. } = manifest.summary.changes;
    let pages = manifest.summary.alive;
    SnapshotStatus {
        snapshot: task.snapshot.id.clone(),
        time: manifest.time,
        rejects: manifest.rows(RejectRow::NAME),
        base: manifest.summary.base,
        price: None,
        whole: manifest.summary.whole,
        folder: task.folder.is_some(),
        incomplete: manifest.summary.incomplete,
        failed_extractions: shortfall.failed,
        deferred_extractions: shortfall.deferred,
        counts: Counts {
            captures: manifest.rows(Capture::NAME),
            failed,
            revisits,
            pages,
            added,
            returned: came.saturating_sub(added),
            modified,
            unchanged,
            // All others are as an earlier snapshot left them.
            carried: pages.saturating_sub(added + modified + unchanged),
            deleted: went,
            moved,
            suspects: manifest.summary.changes.suspects,
            text_bytes: manifest.summary.text_bytes,
        },
    }
}
