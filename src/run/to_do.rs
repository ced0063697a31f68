//! What there is to do: which stages on which snapshots, from what is done, what is out of date and what was asked for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use serde::Serialize;

use super::graph::Graph;
use super::inventory::{Inventory, UnknownSnapshot};
use super::stage::{Again, Asking, Position, Stage, Task};
use super::{Step, Summary, Wanted, accept};
use crate::archive::SnapshotFolder;
use crate::config::Pipeline;
use crate::model::{SnapshotId, StageId};
use crate::store::Store;

/// Snapshots that an earlier run found to be done, and whose manifests have not changed since.
pub(super) struct Settled {
    /// How many of the tasks, the oldest ones.
    pub(super) upto: Option<usize>,
}

impl Settled {
    pub(super) fn find(store: &Store, inventory: &Inventory, wanted: &Wanted) -> Result<Self> {
        let pending = accept::is_pending(store)?;
        let upto = store.settled()?.and_then(|id| inventory.position(&id));
        let upto = upto.filter(|_| !pending);
        // A snapshot that came late changes what is done.
        let known =
            |upto: &usize| inventory.tasks[..=*upto].iter().all(|task| inventory.done.contains(&task.snapshot.id));
        // The newest snapshot is asked, and so are those of a backfill: definitions may have changed.
        let backfill = wanted.backfill.as_ref().and_then(|from| inventory.position(from));
        let current = backfill.unwrap_or(inventory.tasks.len()).min(inventory.tasks.len().saturating_sub(1));
        Ok(Self { upto: upto.filter(known).map(|upto| (upto + 1).min(current)) })
    }

    /// Whether nothing can be to do on the task at position `i`.
    pub(super) fn holds(&self, i: usize, again: &Again) -> bool {
        self.upto.is_some_and(|upto| i < upto) && again.is_empty()
    }
}

/// The snapshots and what is wanted of them.
#[derive(Clone, Copy)]
pub(super) struct Among<'a> {
    pub(super) inventory: &'a Inventory,
    pub(super) wanted: &'a Wanted,
    pub(super) again: &'a Again,
}

pub(super) fn is_done(
    stage: &dyn Stage,
    asking: Asking<'_>,
    all: Among<'_>,
    task: &Task,
    before: Option<&SnapshotId>,
) -> Result<bool> {
    let snapshot = &task.snapshot.id;
    let Some(done) = asking.store.done(stage.id(), snapshot)? else { return Ok(false) };
    let current = is_current(all.inventory, all.wanted, task);
    Ok(asking.store.is_up_to_date(stage.id(), &done, before)?
        && stage.is_done(asking, Position { snapshot, before, current, again: all.again })?)
}

/// Whether new and changed extractors are run on a snapshot that is done: the newest, and those of a backfill.
fn is_current(inventory: &Inventory, wanted: &Wanted, task: &Task) -> bool {
    let at = inventory.position(&task.snapshot.id);
    let backfilled = wanted.backfill.as_ref().is_some_and(|from| inventory.position(from) <= at);
    backfilled || at == inventory.tasks.len().checked_sub(1)
}

/// The snapshots up to the one asked for; with `force` all, for those after it are done again with it.
pub(super) fn in_reach<'a>(inventory: &'a Inventory, wanted: &Wanted) -> Result<&'a [Task], UnknownSnapshot> {
    match &wanted.snapshot {
        Some(id) if !wanted.force => inventory.up_to(id),
        Some(id) => inventory.up_to(id).map(|_| inventory.tasks.as_slice()),
        None => Ok(&inventory.tasks),
    }
}

/// Snapshots are done in order of time: what was found later may not be older than what is done.
pub(super) fn check_order(pipeline: &Pipeline, inventory: &Inventory, wanted: &Wanted) -> Result<()> {
    let (Some(late), Some(newest)) = (inventory.late(), inventory.newest_done()) else { return Ok(()) };
    let from_there = |id: &SnapshotId| inventory.position(id) <= inventory.position(&late.snapshot.id);
    // All later snapshots must be ingested again too: what they carried may be another page now.
    let ingests = wanted.stage.is_none_or(|stage| stage == StageId::Ingest);
    if wanted.force && ingests && wanted.snapshot.as_ref().is_none_or(from_there) {
        return Ok(());
    }
    bail!(
        "snapshot {} ({}) is older than {}, which is done\nhint: `ratoon run {} --force --snapshot {}` takes it in and does all later ones again; or move its folder away; \
         if {} is none of yours, `ratoon drop {} --snapshot {}` takes that one out",
        late.snapshot.id,
        late.snapshot.time,
        newest.snapshot.id,
        pipeline.path.display(),
        late.snapshot.id,
        newest.snapshot.id,
        pipeline.path.display(),
        newest.snapshot.id
    )
}

/// What `--force` does again: the stages asked for and all that build on them, on the snapshots asked for. What is there
/// stays until it is replaced. What could not be made again as it is, is refused.
pub(super) fn forced(graph: Graph, store: &Store, inventory: &Inventory, wanted: &Wanted) -> Result<Again> {
    let first_task = match &wanted.snapshot {
        None => 0,
        Some(id) => inventory.up_to(id)?.len() - 1,
    };
    let tasks = &inventory.tasks[first_task..];
    let stages = graph.from(wanted.stage.unwrap_or(StageId::Ingest));
    let asked_for = graph.up_to(wanted.stage);
    let stages: Vec<StageId> =
        stages.iter().map(|stage| stage.id()).filter(|id| asked_for.iter().any(|stage| stage.id() == *id)).collect();
    let ingests = stages.contains(&StageId::Ingest);
    if ingests && let Some(gone) = tasks.iter().find(|task| task.folder.is_none()) {
        bail!("snapshot {} cannot be done again: its folder is gone; nothing was changed", gone.snapshot.id);
    }
    if let Some(first) = tasks.first()
        && !wanted.discard_history
        && store.is_first_kept(&first.snapshot.id)?
    {
        let id = &first.snapshot.id;
        let what = if ingests { "cannot be ingested again" } else { "cannot be done again as it is" };
        let next = tasks.get(1).map(|task| format!("name a later snapshot (--snapshot {}), or ", task.snapshot.id));
        bail!(
            "snapshot {id} {what}: what came before it was pruned, and what is known from there (carried pages, since when mentions stand, updates, first sights) would be lost; nothing was changed\nhint: {}add --discard-history to do it all the same",
            next.unwrap_or_default()
        );
    }
    let each = |task: &Task| stages.iter().map(|stage| (*stage, task.snapshot.id.clone())).collect::<Vec<_>>();
    Ok(tasks.iter().flat_map(each).collect())
}

/// An ingested snapshot that the next run goes on with, and the stages that it would do there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Unfinished {
    pub snapshot: SnapshotId,
    pub stages: Vec<StageId>,
}

/// The ingested snapshots on which stages wait for the next run.
pub(crate) fn unfinished(
    graph: Graph,
    pipeline: &Pipeline,
    store: &Store,
    inventory: &Inventory,
) -> Result<Vec<Unfinished>> {
    let waiting = to_do(graph, pipeline, Some(store), inventory, &Wanted::default())?.into_iter();
    let waiting = waiting.map(|(task, stages)| Unfinished { snapshot: task.snapshot.id.clone(), stages });
    Ok(waiting.filter(|waiting| inventory.done.contains(&waiting.snapshot) && !waiting.stages.is_empty()).collect())
}

/// The stages that a run would do on each snapshot in its reach.
fn to_do<'a>(
    graph: Graph,
    pipeline: &Pipeline,
    store: Option<&Store>,
    inventory: &'a Inventory,
    wanted: &Wanted,
) -> Result<Vec<(&'a Task, Vec<StageId>)>> {
    let again = match store {
        Some(store) if wanted.force => forced(graph, store, inventory, wanted)?,
        _ => Again::new(),
    };
    let mut all = Vec::new();
    let mut before = None;
    let settled = match store {
        Some(store) => Settled::find(store, inventory, wanted)?,
        None => Settled { upto: None },
    };
    for (i, task) in in_reach(inventory, wanted)?.iter().enumerate() {
        let id = &task.snapshot.id;
        if settled.holds(i, &again) {
            all.push((task, Vec::new()));
            before = Some(id);
            continue;
        }
        let mut stages = Vec::new();
        let mut built_on = BTreeSet::new();
        for stage in graph.up_to(wanted.stage) {
            let done = match store {
                Some(store) => {
                    let asking = Asking { pipeline, store, asked: wanted.asked };
                    is_done(*stage, asking, Among { inventory, wanted, again: &again }, task, before)?
                }
                None => false,
            };
            // What builds on a stage that is to be done is likely to be out of date afterwards.
            if !done || again.contains(&(stage.id(), id.clone())) || built_on.contains(&stage.id()) {
                built_on.extend(graph.from(stage.id()).iter().map(|stage| stage.id()));
                stages.push(stage.id());
            }
        }
        all.push((task, stages));
        if inventory.done.contains(id) {
            before = Some(id);
        }
    }
    Ok(all)
}

/// What a run would do.
pub(super) fn foresee(
    graph: Graph,
    pipeline: &Pipeline,
    store: Option<&Store>,
    inventory: &Inventory,
    wanted: &Wanted,
) -> Result<Summary> {
    check_order(pipeline, inventory, wanted)?;
    let store_path = pipeline.corpus.store.clone();
    let mut summary = inventory.told(store_path);
    for (task, stages) in to_do(graph, pipeline, store, inventory, wanted)? {
        summary.skipped += usize::from(stages.is_empty());
        for stage in stages {
            let bytes = match &task.folder {
                Some(folder) if stage == StageId::Ingest => {
                    // What cannot be used is told by the run.
                    SnapshotFolder::open(folder, pipeline.corpus.layout).ok().map(|folder| folder.bytes())
                }
                _ => None,
            };
            summary.done.push(Step {
                stage,
                snapshot: task.snapshot.id.clone(),
                tables: BTreeMap::new(),
                seconds: None,
                summary: bytes.map_or(serde_json::Value::Null, |bytes| serde_json::json!({ "bytes": bytes })),
                archive_bytes: bytes,
                saved: None,
            });
        }
    }
    Ok(summary)
}
