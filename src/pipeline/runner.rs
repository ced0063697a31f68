//! What is there, what is done, what to do: snapshots in order, stages in order, manifests decide.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use crate::archive::list_snapshots;
use crate::model::{Snapshot, SnapshotId, Timestamp};
use crate::pipeline::config::{Pipeline, PlanChoice};
use crate::pipeline::progress::Progress;
use crate::stages::delta::notify::as_json;
use crate::stages::{self, Context, STAGES, Stage, Task};
use crate::store::Store;
use crate::store::lock::StoreLock;
use crate::store::manifest::Manifest;

/// What a caller wants done.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Up to and including this stage; all stages without.
    pub stage: Option<&'static str>,
    /// Up to and including this snapshot; all snapshots without.
    pub snapshot: Option<SnapshotId>,
    /// Do again what is done: the stage for that snapshot and all that depends on it.
    pub force: bool,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Overrides the pipeline file's plan.
    pub plan: Option<PlanChoice>,
    /// New and changed extractors are run on this snapshot and later ones too, not only on the newest.
    pub backfill: Option<SnapshotId>,
    /// Write web joins too.
    pub keep_joins: bool,
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
    pub alerts: Vec<serde_json::Value>,
    /// Queries that failed on some snapshot.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub failed_queries: BTreeSet<String>,
}

#[derive(Debug, Serialize)]
pub struct Step {
    pub stage: String,
    pub snapshot: SnapshotId,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    #[serde(skip_serializing_if = "serde_json::Value::is_null")]
    pub summary: serde_json::Value,
}

/// Every snapshot, done or not, in order.
pub struct Inventory {
    pub tasks: Vec<Task>,
    pub done: HashSet<SnapshotId>,
}

/// The snapshot folders of the archive; if one is `needed`, there must be one.
fn folders(pipeline: &Pipeline, needed: bool) -> Result<BTreeMap<SnapshotId, PathBuf>> {
    let root = &pipeline.corpus.snapshots;
    let listed = list_snapshots(root).with_context(|| format!("`snapshots` of {}", pipeline.path.display()))?;
    if listed.is_empty() && needed {
        bail!("no snapshot in {}: every folder or archive file below it is one, such as 2024-03-01", root.display());
    }
    Ok(listed.into_iter().collect())
}

/// Lists the snapshots of the archive and those in the store.
pub fn inventory(pipeline: &Pipeline, store: Option<&Store>) -> Result<Inventory> {
    let corpus = &pipeline.corpus;
    let manifests = match store {
        Some(store) => store.manifests("ingest")?,
        None => Vec::new(),
    };
    let mut folders = folders(pipeline, manifests.is_empty())?;
    let mut tasks = Vec::new();
    let mut done = HashSet::new();
    for manifest in manifests {
        let folder = folders.remove(&manifest.snapshot);
        done.insert(manifest.snapshot.clone());
        tasks.push(Task { snapshot: Snapshot { id: manifest.snapshot, time: manifest.time }, folder });
    }
    for (id, folder) in folders {
        let time = match id.stated_time(&corpus.time_zone) {
            Some(time) => time,
            None => stages::ingest::newest_capture(corpus.layout, &folder)?.with_context(|| {
                format!("snapshot {id}: neither its name nor any capture states a time; name it like 2024-03-01")
            })?,
        };
        if let Some(store) = store
            && store.is_pruned(time, &id)?
        {
            log::debug!("snapshot {id} was pruned");
            continue;
        }
        tasks.push(Task { snapshot: Snapshot { id, time }, folder: Some(folder) });
    }
    tasks.sort_by(|a, b| order(&a.snapshot).cmp(&order(&b.snapshot)));
    for pair in tasks.windows(2) {
        let [a, b] = [&pair[0].snapshot, &pair[1].snapshot];
        if a.time == b.time && !(done.contains(&a.id) && done.contains(&b.id)) {
            log::warn!(
                "snapshots {} and {} have the same time {}; taken in the order of their names",
                a.id,
                b.id,
                a.time
            );
        }
    }
    Ok(Inventory { tasks, done })
}

fn order(snapshot: &Snapshot) -> (Timestamp, &SnapshotId) {
    (snapshot.time, &snapshot.id)
}

/// Does what is not yet done.
pub fn run(pipeline: &Pipeline, wanted: &Wanted, progress: Progress) -> Result<Summary> {
    let root = &pipeline.corpus.store;
    if wanted.dry_run {
        let store = Store::open(root)?;
        let inventory = inventory(pipeline, store.as_ref())?;
        return plan(pipeline, store.as_ref(), &inventory, wanted);
    }
    // The archive is looked at first: a mistyped path must not leave a store behind.
    if Store::open(root)?.is_none() {
        folders(pipeline, true)?;
    }
    let purpose = wanted.stage.unwrap_or("run");
    let _lock = StoreLock::take(root, purpose)?;
    let store = Store::open_or_create(root)?;
    store.clear_staging()?;
    let inventory = inventory(pipeline, Some(&store))?;
    check_order(pipeline, &inventory, wanted)?;
    if let Some(from) = &wanted.backfill
        && position(&inventory, from).is_none()
    {
        bail!("--backfill: no snapshot {from}");
    }
    if wanted.force {
        forget(&store, &inventory, wanted)?;
    }
    for stage in STAGES {
        store.sweep(stage.name(), stage.writes())?;
    }
    warn_if_changed(pipeline, &store, &inventory)?;
    let context = Context {
        pipeline,
        store: &store,
        progress,
        plan: wanted.plan,
        restarted: Mutex::default(),
        alerts: Mutex::default(),
        asked_again: AtomicBool::new(false),
        failed_queries: Mutex::default(),
        keep_joins: wanted.keep_joins,
    };
    let mut summary = Summary { store: root.clone(), ..Summary::default() };
    let mut ingested = store.manifests("ingest")?;
    for task in in_reach(&inventory, wanted)? {
        let mut did = false;
        for stage in stages_up_to(wanted) {
            if let Some(manifest) = store.manifest(stage.name(), &task.snapshot.id)?
                && stage.is_done(&context, &manifest, is_current(&inventory, wanted, task))
            {
                continue;
            }
            let before = ingested.partition_point(|m| (m.time, &m.snapshot) < order(&task.snapshot));
            let manifest = stage.run(&context, task, &ingested[..before])?;
            if stage.name() == "ingest" {
                ingested.insert(before, manifest.clone());
            }
            did = true;
            note(pipeline, &mut summary, manifest);
        }
        summary.skipped += usize::from(!did);
    }
    let alerts = context.alerts.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.alerts = alerts.iter().map(|(snapshot, alert)| as_json(snapshot, alert)).collect();
    summary.failed_queries = context.failed_queries.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(summary)
}

/// Whether new and changed extractors are run on a snapshot that is done: the newest, and those of a backfill.
fn is_current(inventory: &Inventory, wanted: &Wanted, task: &Task) -> bool {
    let at = position(inventory, &task.snapshot.id);
    let backfilled = wanted.backfill.as_ref().is_some_and(|from| position(inventory, from) <= at);
    backfilled || at == inventory.tasks.len().checked_sub(1)
}

fn position(inventory: &Inventory, id: &SnapshotId) -> Option<usize> {
    inventory.tasks.iter().position(|task| task.snapshot.id == *id)
}

fn note(pipeline: &Pipeline, summary: &mut Summary, manifest: Manifest) {
    let rows = |table: &str| manifest.tables.get(table).copied().unwrap_or(0);
    if manifest.stage == "ingest" {
        let (captures, rejects) = (rows("captures"), rows("rejects"));
        summary.captures += captures;
        summary.rejects += rejects;
        #[expect(clippy::cast_precision_loss, reason = "a share of counts")]
        let too_many = rejects as f64 > pipeline.corpus.max_reject_share * (captures + rejects) as f64;
        if rejects > 0 {
            log::warn!(
                "snapshot {}: {rejects} rejects beside {captures} captures; see the table rejects",
                manifest.snapshot
            );
        }
        summary.too_many_rejects |= too_many;
    }
    log::info!("{} {}: {:?} in {:.2} s", manifest.stage, manifest.snapshot, manifest.tables, manifest.seconds);
    summary.done.push(Step {
        stage: manifest.stage,
        snapshot: manifest.snapshot,
        tables: manifest.tables,
        seconds: Some(manifest.seconds),
        summary: manifest.summary,
    });
}

fn stages_up_to(wanted: &Wanted) -> &'static [&'static dyn Stage] {
    let last = wanted.stage.and_then(|name| STAGES.iter().position(|stage| stage.name() == name));
    last.map_or(STAGES, |last| &STAGES[..=last])
}

/// The snapshots up to the one asked for; with `force` all, for those after it are done again with it.
fn in_reach<'a>(inventory: &'a Inventory, wanted: &Wanted) -> Result<&'a [Task]> {
    match &wanted.snapshot {
        Some(id) if !wanted.force => up_to(inventory, id),
        Some(id) => up_to(inventory, id).map(|_| inventory.tasks.as_slice()),
        None => Ok(&inventory.tasks),
    }
}

fn up_to<'a>(inventory: &'a Inventory, id: &SnapshotId) -> Result<&'a [Task]> {
    let position = inventory.tasks.iter().position(|task| task.snapshot.id == *id);
    let known = || inventory.tasks.iter().map(|task| task.snapshot.id.as_str()).collect::<Vec<_>>().join(", ");
    let position = position.with_context(|| format!("no snapshot {id}; there are {}", known()))?;
    Ok(&inventory.tasks[..=position])
}

/// Snapshots are done in order of time: what was found later may not be older than what is done.
fn check_order(pipeline: &Pipeline, inventory: &Inventory, wanted: &Wanted) -> Result<()> {
    let is_done = |task: &&Task| inventory.done.contains(&task.snapshot.id);
    let Some(newest) = inventory.tasks.iter().rev().find(is_done) else {
        return Ok(());
    };
    let late = inventory.tasks.iter().take_while(|task| task.snapshot.id != newest.snapshot.id).find(|t| !is_done(t));
    let Some(late) = late else { return Ok(()) };
    let redone = wanted.force
        && wanted.snapshot.as_ref().is_none_or(|id| {
            let of = |id: &SnapshotId| inventory.tasks.iter().position(|task| task.snapshot.id == *id);
            of(id) <= of(&late.snapshot.id)
        });
    if redone {
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

/// The stages and snapshots that `--force` does again: the asked for and all that build on them.
fn forced<'a>(inventory: &'a Inventory, wanted: &Wanted) -> Result<(&'static [&'static dyn Stage], &'a [Task])> {
    let first_stage = wanted.stage.and_then(|name| STAGES.iter().position(|stage| stage.name() == name)).unwrap_or(0);
    let first_task = match &wanted.snapshot {
        None => 0,
        Some(id) => up_to(inventory, id)?.len() - 1,
    };
    Ok((&STAGES[first_stage..], &inventory.tasks[first_task..]))
}

fn forget(store: &Store, inventory: &Inventory, wanted: &Wanted) -> Result<()> {
    let (stages, tasks) = forced(inventory, wanted)?;
    if stages.iter().any(|stage| stage.name() == "ingest")
        && let Some(gone) = tasks.iter().find(|task| task.folder.is_none())
    {
        bail!("snapshot {} cannot be done again: its folder is gone; nothing was changed", gone.snapshot.id);
    }
    if stages.iter().any(|stage| stage.name() == "ingest")
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
            store.forget(stage.name(), &task.snapshot.id)?;
        }
        if stages.iter().any(|stage| stage.name() == "ingest") {
            store.drop_heads(&task.snapshot.id)?;
        }
        if stages.iter().any(|stage| stage.name() == "stats") {
            store.drop_states(&task.snapshot.id)?;
        }
        if stages.iter().any(|stage| stage.name() == "delta") {
            store.seen().drop(&task.snapshot.id)?;
        }
    }
    Ok(())
}

/// A folder that grew after it was done would be missed in silence.
fn warn_if_changed(pipeline: &Pipeline, store: &Store, inventory: &Inventory) -> Result<()> {
    let newest = inventory.tasks.iter().rev().find(|task| inventory.done.contains(&task.snapshot.id));
    let Some(Task { snapshot, folder: Some(folder) }) = newest else {
        return Ok(());
    };
    let Some(manifest) = store.manifest("ingest", &snapshot.id)? else {
        return Ok(());
    };
    let changed = crate::archive::SnapshotFolder::open(folder, pipeline.corpus.layout)
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

fn plan(pipeline: &Pipeline, store: Option<&Store>, inventory: &Inventory, wanted: &Wanted) -> Result<Summary> {
    check_order(pipeline, inventory, wanted)?;
    let mut summary = Summary { store: pipeline.corpus.store.clone(), ..Summary::default() };
    let again: HashSet<(&str, &SnapshotId)> = if wanted.force {
        let (stages, tasks) = forced(inventory, wanted)?;
        tasks.iter().flat_map(|task| stages.iter().map(|stage| (stage.name(), &task.snapshot.id))).collect()
    } else {
        HashSet::new()
    };
    let context = store.map(|store| Context {
        pipeline,
        store,
        progress: Progress::new(false),
        plan: wanted.plan,
        restarted: Mutex::default(),
        alerts: Mutex::default(),
        asked_again: AtomicBool::new(false),
        failed_queries: Mutex::default(),
        keep_joins: wanted.keep_joins,
    });
    for task in in_reach(inventory, wanted)? {
        let mut todo = false;
        for stage in stages_up_to(wanted) {
            let done = match (store, &context) {
                (Some(store), Some(context)) => store
                    .manifest(stage.name(), &task.snapshot.id)?
                    .is_some_and(|manifest| stage.is_done(context, &manifest, is_current(inventory, wanted, task))),
                _ => false,
            };
            if done && !again.contains(&(stage.name(), &task.snapshot.id)) {
                continue;
            }
            todo = true;
            let bytes = match &task.folder {
                Some(folder) if stage.name() == "ingest" => {
                    Some(crate::archive::SnapshotFolder::open(folder, pipeline.corpus.layout)?.bytes())
                }
                _ => None,
            };
            summary.done.push(Step {
                stage: stage.name().to_owned(),
                snapshot: task.snapshot.id.clone(),
                tables: BTreeMap::new(),
                seconds: None,
                summary: bytes.map_or(serde_json::Value::Null, |bytes| serde_json::json!({ "bytes": bytes })),
            });
        }
        summary.skipped += usize::from(!todo);
    }
    Ok(summary)
}
