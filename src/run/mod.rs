//! One owner of a run: which snapshots and stages there are ([`inventory`], [`graph`]), what is done, what is out of
//! date, and what is done in which order ([`run`]). What each stage does lies in `stages`; here are the trait that they
//! implement ([`stage`]), the loop over shards that they share ([`shards`]), bars and clocks.

pub(crate) mod clock;
pub(crate) mod graph;
pub(crate) mod inventory;
pub(crate) mod progress;
pub(crate) mod prune;
pub(crate) mod shards;
pub(crate) mod stage;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::Serialize;

use self::graph::Graph;
use self::inventory::Inventory;
use self::progress::Progress;
use self::stage::{Asked, Context, Position, Ran, Stage, Task};
use crate::archive::SnapshotFolder;
use crate::config::Pipeline;
use crate::manifests::{Ingested, Saved};
use crate::model::{SnapshotId, StageId};
use crate::store::Store;
use crate::store::lock::StoreLock;
use crate::store::manifest::Manifest;
use crate::store::view::Read;
use crate::tables::delta::Alert;
use crate::tables::ingest::{Capture, RejectRow};
use crate::tables::record::Table as _;

/// What a caller wants done.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Up to and including this stage; all stages without.
    pub stage: Option<StageId>,
    /// Up to and including this snapshot; all snapshots without.
    pub snapshot: Option<SnapshotId>,
    /// Do again what is done: the stage for that snapshot and all that depends on it.
    pub force: bool,
    /// Only say what would be done.
    pub dry_run: bool,
    /// New and changed extractors are run on this snapshot and later ones too, not only on the newest.
    pub backfill: Option<SnapshotId>,
    pub asked: Asked,
}

/// What was done (or would be).
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    pub store: PathBuf,
    pub done: Vec<Step>,
    /// Snapshots for which there was nothing to do.
    pub skipped: usize,
    /// Of the snapshots done now.
    pub captures: u64,
    pub rejects: u64,
    /// Some snapshot had a larger share of rejects than the pipeline file allows.
    pub too_many_rejects: bool,
    /// Watches that fired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<Fired>,
    /// Queries that failed on some snapshot.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub failed_queries: BTreeSet<String>,
    /// Stages that `--force` dropped and this run did not do again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<StageId>,
    /// What each stage was seen to read, of what it declares.
    #[serde(skip)]
    pub reads: BTreeMap<StageId, BTreeSet<Read>>,
}

/// A stage on a snapshot.
#[derive(Debug, Serialize)]
pub struct Step {
    pub stage: StageId,
    pub snapshot: SnapshotId,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// What the stage left for later ones, as it lies in its manifest: for programs that read `--json`.
    #[serde(skip_serializing_if = "serde_json::Value::is_null")]
    pub summary: serde_json::Value,
    /// Of `ingest`: size of the archive files.
    #[serde(skip)]
    pub archive_bytes: Option<u64>,
    /// Of `extract`: what recycling saved.
    #[serde(skip)]
    pub saved: Option<Saved>,
}

/// A watch that fired on a snapshot.
#[derive(Debug)]
pub struct Fired {
    pub snapshot: SnapshotId,
    pub alert: Alert,
}

impl Serialize for Fired {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.alert.to_json(&self.snapshot).serialize(serializer)
    }
}

/// Does what is not yet done.
pub fn run(graph: Graph, pipeline: &Pipeline, wanted: &Wanted, progress: Progress) -> Result<Summary> {
    let root = &pipeline.corpus.store;
    if wanted.dry_run {
        let store = Store::open(root)?;
        let inventory = Inventory::take(pipeline, store.as_ref())?;
        return foresee(graph, pipeline, store.as_ref(), &inventory, wanted);
    }
    // The archive is looked at first: a mistyped path must not leave a store behind.
    if Store::open(root)?.is_none() {
        inventory::folders(pipeline, true)?;
    }
    let purpose = wanted.stage.map_or("run", StageId::as_str);
    let _lock = StoreLock::take(root, purpose)?;
    let store = Store::open_or_create(root)?;
    store.clear_staging()?;
    let inventory = Inventory::take(pipeline, Some(&store))?;
    check_order(pipeline, &inventory, wanted)?;
    if let Some(from) = &wanted.backfill
        && inventory.position(from).is_none()
    {
        bail!("--backfill: no snapshot {from}");
    }
    let mut summary = Summary { store: root.clone(), ..Summary::default() };
    if wanted.force {
        let (again, _) = forget(graph, &store, &inventory, wanted)?;
        let done = graph.up_to(wanted.stage);
        let is_done = |id: StageId| done.iter().any(|stage| stage.id() == id);
        summary.waiting = again.iter().map(|stage| stage.id()).filter(|id| !is_done(*id)).collect();
    }
    for stage in graph.stages() {
        store.sweep(stage.id(), stage.writes())?;
    }
    warn_if_changed(pipeline, &store, &inventory)?;
    let mut run = Run { graph, pipeline, store: &store, inventory: &inventory, wanted, progress, summary };
    run.all()?;
    Ok(run.summary)
}

/// A run under way.
struct Run<'a> {
    graph: Graph,
    pipeline: &'a Pipeline,
    store: &'a Store,
    inventory: &'a Inventory,
    wanted: &'a Wanted,
    progress: Progress,
    summary: Summary,
}

impl Run<'_> {
    fn all(&mut self) -> Result<()> {
        let mut ingested = inventory::ingested(self.store)?;
        for task in in_reach(self.inventory, self.wanted)? {
            let mut did = false;
            for stage in self.graph.up_to(self.wanted.stage) {
                let (time, id) = (task.snapshot.time, &task.snapshot.id);
                let before = ingested.partition_point(|m| (m.time, &m.snapshot) < (time, id));
                if !self.stage(*stage, task, &ingested[..before])? {
                    continue;
                }
                did = true;
                if stage.id() == StageId::Ingest {
                    ingested.splice(before..before, self.store.manifest::<Ingested>(id)?);
                }
            }
            self.summary.skipped += usize::from(!did);
        }
        Ok(())
    }

    /// Does a stage on a snapshot, unless it is done; says whether it was not.
    fn stage(&mut self, stage: &dyn Stage, task: &Task, done: &[Manifest<Ingested>]) -> Result<bool> {
        let store = self.store.for_stage(stage.id(), stage.reads(), stage.writes());
        let context =
            Context { pipeline: self.pipeline, store: &store, progress: self.progress, asked: self.wanted.asked };
        let before = done.last().map(|manifest| &manifest.snapshot);
        if is_done(stage, &context, self.inventory, self.wanted, task, before)? {
            return Ok(false);
        }
        let ran = stage.run(&context, task, done)?;
        self.summary.reads.entry(stage.id()).or_default().extend(store.seen_reads());
        self.note(ran);
        Ok(true)
    }

    fn note(&mut self, ran: Ran) {
        let Ran { stage, done, summary, archive_bytes, saved, alerts, failed_queries } = ran;
        if stage == StageId::Ingest {
            let (captures, rejects) = (done.rows(Capture::NAME), done.rows(RejectRow::NAME));
            self.summary.captures += captures;
            self.summary.rejects += rejects;
            #[expect(clippy::cast_precision_loss, reason = "a share of counts")]
            let too_many = rejects as f64 > self.pipeline.corpus.max_reject_share * (captures + rejects) as f64;
            if rejects > 0 {
                log::warn!(
                    "snapshot {}: {rejects} rejects beside {captures} captures; see the table rejects",
                    done.snapshot
                );
            }
            self.summary.too_many_rejects |= too_many;
        }
        log::info!("{stage} {}: {:?} in {:.2} s", done.snapshot, done.tables, done.seconds);
        self.summary.alerts.extend(alerts.into_iter().map(|alert| Fired { snapshot: done.snapshot.clone(), alert }));
        self.summary.failed_queries.extend(failed_queries);
        self.summary.done.push(Step {
            stage,
            snapshot: done.snapshot,
            tables: done.tables,
            seconds: Some(done.seconds),
            summary,
            archive_bytes,
            saved,
        });
    }
}

fn is_done(
    stage: &dyn Stage,
    context: &Context<'_>,
    inventory: &Inventory,
    wanted: &Wanted,
    task: &Task,
    before: Option<&SnapshotId>,
) -> Result<bool> {
    let snapshot = &task.snapshot.id;
    if context.store.done(stage.id(), snapshot)?.is_none() {
        return Ok(false);
    }
    stage.is_done(context, Position { snapshot, before, current: is_current(inventory, wanted, task) })
}

/// Whether new and changed extractors are run on a snapshot that is done: the newest, and those of a backfill.
fn is_current(inventory: &Inventory, wanted: &Wanted, task: &Task) -> bool {
    let at = inventory.position(&task.snapshot.id);
    let backfilled = wanted.backfill.as_ref().is_some_and(|from| inventory.position(from) <= at);
    backfilled || at == inventory.tasks.len().checked_sub(1)
}

/// The snapshots up to the one asked for; with `force` all, for those after it are done again with it.
fn in_reach<'a>(inventory: &'a Inventory, wanted: &Wanted) -> Result<&'a [Task]> {
    match &wanted.snapshot {
        Some(id) if !wanted.force => inventory.up_to(id),
        Some(id) => inventory.up_to(id).map(|_| inventory.tasks.as_slice()),
        None => Ok(&inventory.tasks),
    }
}

/// Snapshots are done in order of time: what was found later may not be older than what is done.
fn check_order(pipeline: &Pipeline, inventory: &Inventory, wanted: &Wanted) -> Result<()> {
    let (Some(late), Some(newest)) = (inventory.late(), inventory.newest_done()) else { return Ok(()) };
    let from_there = |id: &SnapshotId| inventory.position(id) <= inventory.position(&late.snapshot.id);
    if wanted.force && wanted.snapshot.as_ref().is_none_or(from_there) {
        return Ok(());
    }
    bail!(
        "snapshot {} ({}) is older than {}, which is done\nhint: `ratoon run {} --force --snapshot {}` takes it in and does all later ones again; or move its folder away",
        late.snapshot.id,
        late.snapshot.time,
        newest.snapshot.id,
        pipeline.path.display(),
        late.snapshot.id
    )
}

/// Stages to be done again on snapshots.
type Again<'a> = (Vec<&'static dyn Stage>, &'a [Task]);

/// The stages and snapshots that `--force` does again: the asked for and all that build on them.
fn forced<'a>(graph: Graph, inventory: &'a Inventory, wanted: &Wanted) -> Result<Again<'a>> {
    let first_task = match &wanted.snapshot {
        None => 0,
        Some(id) => inventory.up_to(id)?.len() - 1,
    };
    Ok((graph.from(wanted.stage.unwrap_or(StageId::Ingest)), &inventory.tasks[first_task..]))
}

fn forget<'a>(graph: Graph, store: &Store, inventory: &'a Inventory, wanted: &Wanted) -> Result<Again<'a>> {
    let (stages, tasks) = forced(graph, inventory, wanted)?;
    let ingests = stages.iter().any(|stage| stage.id() == StageId::Ingest);
    if ingests && let Some(gone) = tasks.iter().find(|task| task.folder.is_none()) {
        bail!("snapshot {} cannot be done again: its folder is gone; nothing was changed", gone.snapshot.id);
    }
    if ingests
        && let Some(first) = tasks.first()
        && store.is_first_kept(&first.snapshot.id)?
    {
        bail!(
            "snapshot {} cannot be ingested again: what came before it was pruned, and pages carried from there would be lost; nothing was changed\nhint: name a later snapshot, or a later stage such as `ratoon extract --force`",
            first.snapshot.id
        );
    }
    for task in tasks.iter().rev() {
        for stage in stages.iter().rev() {
            store.forget(stage.id(), &task.snapshot.id)?;
            stage.forget(store, &task.snapshot.id)?;
        }
    }
    Ok((stages, tasks))
}

/// A folder that grew after it was done would be missed in silence.
fn warn_if_changed(pipeline: &Pipeline, store: &Store, inventory: &Inventory) -> Result<()> {
    let Some(Task { snapshot, folder: Some(folder) }) = inventory.newest_done() else { return Ok(()) };
    let Some(manifest) = store.done(StageId::Ingest, &snapshot.id)? else { return Ok(()) };
    let changed = SnapshotFolder::open(folder, pipeline.corpus.layout)
        .and_then(|folder| folder.fingerprint())
        .map_or(true, |fingerprint| fingerprint != manifest.inputs);
    if changed {
        log::warn!(
            "the folder of snapshot {} changed since it was ingested; `ratoon run {} --force --snapshot {}` does it again",
            snapshot.id,
            pipeline.path.display(),
            snapshot.id
        );
    }
    Ok(())
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
    let mut again: HashSet<(StageId, &SnapshotId)> = HashSet::new();
    if wanted.force {
        let (stages, tasks) = forced(graph, inventory, wanted)?;
        again.extend(tasks.iter().flat_map(|task| stages.iter().map(|stage| (stage.id(), &task.snapshot.id))));
    }
    let mut all = Vec::new();
    let mut before = None;
    for task in in_reach(inventory, wanted)? {
        let id = &task.snapshot.id;
        let mut stages = Vec::new();
        for stage in graph.up_to(wanted.stage) {
            let done = match store {
                Some(store) => {
                    let asked = wanted.asked;
                    let context = Context { pipeline, store, progress: Progress::new(false), asked };
                    is_done(*stage, &context, inventory, wanted, task, before)?
                }
                None => false,
            };
            if !done || again.contains(&(stage.id(), id)) {
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
fn foresee(
    graph: Graph,
    pipeline: &Pipeline,
    store: Option<&Store>,
    inventory: &Inventory,
    wanted: &Wanted,
) -> Result<Summary> {
    check_order(pipeline, inventory, wanted)?;
    let mut summary = Summary { store: pipeline.corpus.store.clone(), ..Summary::default() };
    for (task, stages) in to_do(graph, pipeline, store, inventory, wanted)? {
        summary.skipped += usize::from(stages.is_empty());
        for stage in stages {
            let bytes = match &task.folder {
                Some(folder) if stage == StageId::Ingest => {
                    Some(SnapshotFolder::open(folder, pipeline.corpus.layout)?.bytes())
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
