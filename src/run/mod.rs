//! One owner of a run: which snapshots and stages there are ([`inventory`], [`graph`]), what is done, what is out of
//! date, and what there is to do ([`to_do`]), in which order ([`run`]), and what was done ([`summary`]). What each
//! stage does lies in `stages`; here are the trait that they implement ([`stage`]), the loop over shards that they
//! share ([`shards`]), bars and clocks.

mod accept;
pub(crate) mod clock;
pub(crate) mod drop;
mod edits;
mod folders;
pub(crate) mod graph;
pub(crate) mod hands;
pub(crate) mod inventory;
pub(crate) mod notify;
pub(crate) mod problems;
pub(crate) mod program;
pub(crate) mod progress;
pub(crate) mod shards;
pub(crate) mod shared;
pub(crate) mod stage;
mod summary;
mod to_do;
pub(crate) mod windows;

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context as _, Result};

use self::graph::Graph;
use self::hands::{Elsewhere, Hands, Pass, PassNeeded};
use self::inventory::Inventory;
use self::problems::TOLD;
use self::progress::Progress;
use self::shared::SharedRun;
use self::stage::{Again, Asked, Asking, Context, Ran, Stage, Task};
pub(crate) use self::summary::{Fired, Step, Summary};
use self::to_do::{Among, Settled, check_order, forced, foresee, in_reach, is_done};
pub(crate) use self::to_do::{Unfinished, unfinished};
use self::windows::{Late, Taking};
use crate::archive::Traces;
use crate::config::Pipeline;
use crate::manifests::Ingested;
use crate::model::{Problem, SnapshotId, StageId};
use crate::store::index::Index;
use crate::store::lock::StoreLock;
use crate::store::manifest::Manifest;
use crate::store::runs::Untold;
use crate::store::{DEFAULT_SHARDS, Store, StoreError};
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
    /// Do again even what cannot be made again as it is, because what it was made of was pruned.
    pub discard_history: bool,
    /// Only say what would be done.
    pub dry_run: bool,
    /// New and changed extractors are run on this snapshot and later ones too, not only on the newest.
    pub backfill: Option<SnapshotId>,
    /// Only these are made again, and what is out of date after that.
    pub repair: Option<Vec<(StageId, SnapshotId)>>,
    /// A person says that this snapshot is as it should be.
    pub accept: Option<SnapshotId>,
    /// Others work for this run.
    pub elsewhere: Option<Elsewhere>,
    pub asked: Asked,
}

impl Wanted {
    /// A snapshot that was dropped and is wanted again.
    fn comes_back(&self) -> Option<&SnapshotId> {
        self.snapshot.as_ref().filter(|_| self.force)
    }
}

/// Does what is not yet done, and says what that was.
pub fn run(graph: Graph, pipeline: &Pipeline, wanted: &Wanted, progress: Progress) -> Result<Summary> {
    let mut summary = Summary::default();
    run_into(&mut summary, graph, pipeline, wanted, progress)?;
    summary.lock = None;
    Ok(summary)
}

/// The same. What was done before an error is noted too.
pub(crate) fn run_into(
    summary: &mut Summary,
    graph: Graph,
    pipeline: &Pipeline,
    wanted: &Wanted,
    progress: Progress,
) -> Result<()> {
    let root = &pipeline.corpus.store;
    if wanted.dry_run {
        let store = Store::open(root)?;
        let taking = Taking { forced: wanted.force, notes: false };
        let inventory = Inventory::take(pipeline, store.as_ref(), taking, wanted.comes_back())?;
        *summary = foresee(graph, pipeline, store.as_ref(), &inventory, wanted)?;
        return Ok(());
    }
    // The archive is looked at first: a mistyped path must not leave a store behind.
    if Store::open(root)?.is_none() {
        inventory::folders(pipeline, true)?;
    }
    let purpose = wanted.stage.map_or("run", StageId::as_str);
    let lock = StoreLock::take(root, purpose)?;
    let store = store_in_order(root, wanted)?;
    let (killed, _ending) = store.run_begins(jiff::Timestamp::now().to_string());
    if let Some(killed) = killed {
        log::warn!("the run that began at {} was interrupted; this one goes on where it stopped", killed.start);
    }
    let shared = wanted.elsewhere.as_ref().map(|_| SharedRun::take_up(&store)).transpose()?;
    let asked = Asked { retry: shared.map_or(wanted.asked.retry, SharedRun::retries), ..wanted.asked };
    let wanted = &Wanted { asked, ..wanted.clone() };
    let taking = Taking { forced: wanted.force, notes: true };
    let inventory = Inventory::take(pipeline, Some(&store), taking, wanted.comes_back())?;
    check_order(pipeline, &inventory, wanted)?;
    if let Some(from) = &wanted.backfill {
        inventory.up_to(from).context("--backfill")?;
    }
    let mut again = match &wanted.repair {
        Some(harmed) => harmed.iter().cloned().collect(),
        None if wanted.force => forced(graph, &store, &inventory, wanted)?,
        None => HashSet::new(),
    };
    take_back(&store, &inventory, wanted)?;
    if let Some(filled) = folders::newest_was_filled(&store, &inventory)? {
        log::info!("the folder of snapshot {filled} is not as empty as it was: it is read again");
        again.extend(graph.stages().iter().map(|stage| (stage.id(), filled.clone())));
    }
    for stage in graph.stages() {
        store.sweep(stage.writes())?;
    }
    tell_late(pipeline, &inventory);
    folders::tell_changed(pipeline, &store, &inventory, &again)?;
    if wanted.repair.is_none() {
        tell_missing(pipeline, &store)?;
    }
    edits::tell(pipeline, &store, inventory.newest_done().map(|task| &task.snapshot.id))?;
    let (accepted, at_hand, told_late) = (wanted.accept.clone(), store.at_hand(), store.untold());
    let untold = told_late.clone();
    *summary = Summary { accepted, at_hand, told_late, lock: Some(lock), ..inventory.told(root.clone()) };
    let index = open_index(&store)?;
    let mut run = Run {
        graph,
        pipeline,
        store: &store,
        index,
        inventory: &inventory,
        wanted,
        again,
        progress,
        summary,
        read: Vec::new(),
        untold,
    };
    let ran = run.all().and_then(|()| run.end());
    folders::remember(&store, std::mem::take(&mut run.read))?;
    // Also after an error: only a run that was killed and its continuation are one run to a budget.
    store.end_of_run()?;
    if let Some(shared) = shared {
        shared.went_on(&store, &ran, !run.summary.done.is_empty())?;
    }
    ran?;
    run.tell_waiting()?;
    run.tell_late()?;
    if run.summary.done.is_empty()
        && let Some(newest) = inventory.newest_done()
    {
        run.tell_problems(&newest.snapshot.id)?;
        let ingested = store.manifest::<Ingested>(&newest.snapshot.id)?;
        run.summary.rejects = ingested.map_or(0, |manifest| manifest.rows(RejectRow::NAME));
    }
    Ok(())
}

/// What was dropped before comes back, and what was found bad before is accepted, as far as it is wanted.
fn take_back(store: &Store, inventory: &Inventory, wanted: &Wanted) -> Result<()> {
    if let Some(back) = wanted.comes_back() {
        let mut dropped = store.dropped()?;
        if dropped.remove(back) {
            store.set_dropped(&dropped)?;
        }
    }
    wanted.accept.as_ref().map_or(Ok(()), |accepted| accept::accept(store, inventory, accepted))
}

/// The store, made if there is none, with what an earlier run left half done put right.
fn store_in_order(root: &Path, wanted: &Wanted) -> Result<Store> {
    let shards = wanted.elsewhere.as_ref().map_or(DEFAULT_SHARDS, |elsewhere| elsewhere.buckets);
    let store = Store::open_or_create_with(root, shards)?;
    if let Some(again) = wanted.comes_back() {
        store.forget_unreadable(again)?;
    }
    store.recover()?;
    store.clear_staging()?;
    drop::complete(&store)?;
    Ok(store)
}

/// The index of the store. One that is damaged is made again, which takes time but loses nothing.
fn open_index(store: &Store) -> Result<Index> {
    let dir = store.index_folder();
    match Index::open(&dir) {
        Err(StoreError::Damaged { path, problem }) => {
            log::warn!("{}: {problem}; the index is made again", path.display());
            Index::remove(&dir)?;
            Ok(Index::open(&dir)?)
        }
        other => Ok(other?),
    }
}

/// Where the last snapshot was ingested in less time than this, the next is expected to be, too. Seconds.
const SOON_READ: f64 = 2.0;

/// A run under way.
struct Run<'a> {
    graph: Graph,
    pipeline: &'a Pipeline,
    store: &'a Store,
    index: Index,
    inventory: &'a Inventory,
    wanted: &'a Wanted,
    /// What is done again though it is done.
    again: Again,
    progress: Progress,
    summary: &'a mut Summary,
    /// Folders that were ingested, as they were before.
    read: Vec<(SnapshotId, Traces)>,
    /// What nobody was told of, as the store notes it.
    untold: Untold,
}

impl Run<'_> {
    fn all(&mut self) -> Result<()> {
        let mut ingested = inventory::ingested(self.store)?;
        let settled = Settled::find(self.store, self.inventory, self.wanted)?;
        for (i, task) in in_reach(self.inventory, self.wanted)?.iter().enumerate() {
            let mut did = false;
            if settled.holds(i, &self.again) {
                self.summary.skipped += 1;
                continue;
            }
            let outcome = self.snapshot(task, &mut ingested, &mut did);
            if outcome.as_ref().is_err_and(anyhow::Error::is::<PassNeeded>) {
                return outcome;
            }
            if did {
                // Also where a later stage failed: what is wrong with the input may be why.
                self.tell_problems(&task.snapshot.id)?;
                outcome?;
                self.flush_index()?;
            } else {
                outcome?;
            }
            self.summary.skipped += usize::from(!did);
            // With others, a snapshot is as much as one run does: what it brought is told before the next is begun.
            if did && self.wanted.elsewhere.is_some() {
                break;
            }
        }
        // Only a run of all stages has seen that everything is done.
        let newest = self.inventory.tasks.last().map(|task| &task.snapshot.id);
        let everything =
            self.wanted.stage.is_none() && self.wanted.snapshot.is_none() && self.wanted.elsewhere.is_none();
        let changed = !self.summary.done.is_empty() || settled.upto.is_none();
        if changed {
            self.store.write_catalogue(newest.filter(|_| everything))?;
        }
        Ok(())
    }

    /// Writes the index. Damage that no stage came upon is found now, when its files are merged.
    fn flush_index(&mut self) -> Result<()> {
        let flushed = if rayon::current_num_threads() > 1 { self.index.flush_on_threads() } else { self.index.flush() };
        match flushed.map_err(anyhow::Error::from) {
            Err(error) if self.is_of_index(&error) => self.make_index_again(&error),
            other => other,
        }
    }

    /// It follows the tables: stages bring it up to date when they need it.
    fn make_index_again(&mut self, damage: &anyhow::Error) -> Result<()> {
        log::warn!("{damage:#}; the index is made again");
        Index::remove(&self.store.index_folder())?;
        self.index = open_index(self.store)?;
        Ok(())
    }

    /// Does what is done once, when all snapshots are.
    fn end(&self) -> Result<()> {
        for stage in self.graph.up_to(self.wanted.stage) {
            let asking = Asking { pipeline: self.pipeline, store: self.store, asked: self.wanted.asked };
            stage.end(asking)?;
        }
        Ok(())
    }

    /// Does the stages that are not done on a snapshot, and notes whether there was one.
    fn snapshot(&mut self, task: &Task, ingested: &mut Vec<Manifest<Ingested>>, did: &mut bool) -> Result<()> {
        let (time, id) = (task.snapshot.time, &task.snapshot.id);
        for stage in self.graph.up_to(self.wanted.stage) {
            let before = ingested.partition_point(|m| (m.time, &m.snapshot) < (time, id));
            if !self.stage(*stage, task, &ingested[..before])? {
                continue;
            }
            *did = true;
            if stage.id() == StageId::Ingest {
                // One that was done again takes the place of what it was.
                let replaced = usize::from(ingested.get(before).is_some_and(|was| was.snapshot == *id));
                ingested.splice(before..before + replaced, self.store.manifest::<Ingested>(id)?);
            }
        }
        Ok(())
    }

    /// Says what is wrong with a snapshot, and remembers it for the end of the run.
    fn tell_problems(&mut self, snapshot: &SnapshotId) -> Result<()> {
        let problems = problems::of(self.store, snapshot)?;
        problems::tell(&problems, &self.pipeline.path);
        self.summary.problems.extend(problems);
        Ok(())
    }

    /// Does a stage on a snapshot, unless it is done; says whether it was not.
    fn stage(&mut self, stage: &dyn Stage, task: &Task, done: &[Manifest<Ingested>]) -> Result<bool> {
        let store = self.store.for_stage(stage.id(), stage.reads(), stage.writes());
        let asking = Asking { pipeline: self.pipeline, store: &store, asked: self.wanted.asked };
        let before = done.last().map(|manifest| &manifest.snapshot);
        let again = self.again.contains(&(stage.id(), task.snapshot.id.clone()));
        let all = Among { inventory: self.inventory, wanted: self.wanted, again: &self.again };
        if !again && is_done(stage, asking, all, task, before)? {
            return Ok(false);
        }
        let soon = || done.last().is_some_and(|last| last.seconds < SOON_READ);
        if stage.id() == StageId::Ingest && self.wanted.elsewhere.is_none() && soon() {
            self.graph.up_to(self.wanted.stage).iter().for_each(|later| later.foresee(self.pipeline));
        }
        self.note_untold(&task.snapshot.id, stage.id());
        let is_read = stage.id() == StageId::Ingest && task.window.is_none();
        let folder = task.folder.as_ref().filter(|_| is_read);
        let traces = folder.map(|folder| (task.snapshot.id.clone(), Traces::of(folder)));
        let ran = match self.attempt(stage, &store, task, done) {
            Err(error) if self.is_of_index(&error) => {
                self.make_index_again(&error)?;
                self.attempt(stage, &store, task, done)
            }
            other => other,
        }?;
        self.summary.reads.entry(stage.id()).or_default().extend(store.seen_reads());
        self.read.extend(traces);
        self.note(ran);
        Ok(true)
    }

    fn attempt(&self, stage: &dyn Stage, store: &Store, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
        let (pipeline, asked) = (self.pipeline, self.wanted.asked);
        let forced = self.again.contains(&(stage.id(), task.snapshot.id.clone()));
        let before = done.last().map(|manifest| &manifest.snapshot);
        let elsewhere = self.wanted.elsewhere.as_ref().filter(|_| Pass::of(stage.id()).is_some());
        let others = elsewhere.map(|elsewhere| elsewhere.others(pipeline, self.store, task, before, forced));
        let others = others.transpose()?;
        let hands = others.as_ref().map_or(Hands::Own, Hands::Others);
        let context = Context { pipeline, store, index: &self.index, progress: self.progress, asked, forced, hands };
        let ran = stage.run(&context, task, done);
        match (&ran, &others) {
            // Workers see what is on disk.
            (Err(error), Some(_)) if error.is::<PassNeeded>() => self.index.flush()?,
            (Ok(_), Some(others)) => others.clear(stage.id())?,
            _ => {}
        }
        ran
    }

    /// Whether damage of the index is what went wrong.
    fn is_of_index(&self, error: &anyhow::Error) -> bool {
        error.chain().any(|cause| match cause.downcast_ref::<StoreError>() {
            Some(StoreError::Damaged { path, .. }) => path.starts_with(self.store.index_folder()),
            _ => false,
        })
    }

    /// Notes the stages that were not asked for and are out of date now.
    fn tell_waiting(&mut self) -> Result<()> {
        if self.wanted.stage.is_none() {
            return Ok(());
        }
        let asked_for = self.graph.up_to(self.wanted.stage).len();
        let mut before = None;
        for task in &self.inventory.tasks {
            let snapshot = &task.snapshot.id;
            for stage in &self.graph.stages()[asked_for..] {
                let done = self.store.done(stage.id(), snapshot)?;
                let stale = match done {
                    Some(done) => !self.store.is_up_to_date(stage.id(), &done, before)?,
                    None => false,
                };
                if stale && !self.summary.waiting.contains(&stage.id()) {
                    self.summary.waiting.push(stage.id());
                }
            }
            before = Some(snapshot);
        }
        self.summary.waiting.sort_unstable();
        Ok(())
    }

    /// Notes that a stage is about to be done on a snapshot.
    fn note_untold(&mut self, snapshot: &SnapshotId, stage: StageId) {
        let compared = stage == StageId::Delta;
        if self.untold.get(snapshot).is_none_or(|was| compared && !was) {
            self.untold.insert(snapshot.clone(), compared);
            self.store.note_untold(snapshot, compared);
        }
    }

    /// Adds the alerts of snapshots that earlier runs compared and told nobody of.
    fn tell_late(&mut self) -> Result<()> {
        let store = self.store;
        let compared = self.summary.done.iter().filter(|step| step.stage == StageId::Delta);
        let told: HashSet<SnapshotId> = compared.map(|step| step.snapshot.clone()).collect();
        let mut late = Vec::new();
        for (snapshot, compared) in std::mem::take(&mut self.summary.told_late) {
            // One that was dropped since is no news.
            let Some(done) = store.snapshot_done(&snapshot)? else { continue };
            if compared && !told.contains(&snapshot) && done.stages.contains_key(&StageId::Delta) {
                let alerts = store.partition(Alert::NAME, &snapshot)?.all_rows::<Alert>()?;
                late.extend(alerts.into_iter().map(|alert| Fired { snapshot: snapshot.clone(), alert }));
            }
            self.summary.told_late.insert(snapshot, compared);
        }
        self.summary.alerts.splice(..0, late);
        Ok(())
    }

    fn note(&mut self, ran: Ran) {
        let Ran { stage, done, summary, archive_bytes, saved, alerts, failed_queries } = ran;
        if stage == StageId::Ingest {
            let (captures, rejects) = (done.rows(Capture::NAME), done.rows(RejectRow::NAME));
            self.summary.captures += captures;
            self.summary.rejects += rejects;
            if rejects > 0 && !done.problems.iter().any(|problem| matches!(problem, Problem::Rejects { .. })) {
                log::warn!(
                    "snapshot {}: {rejects} rejects beside {captures} captures; see the table rejects",
                    done.snapshot
                );
            }
        }
        log::info!("{stage} {}: {:?} in {:.2} s", done.snapshot, done.all_rows(), done.seconds);
        self.summary.alerts.extend(alerts.into_iter().map(|alert| Fired { snapshot: done.snapshot.clone(), alert }));
        self.summary.failed_queries.extend(failed_queries);
        self.summary.done.push(Step {
            stage,
            tables: done.all_rows(),
            snapshot: done.snapshot,
            seconds: Some(done.seconds),
            summary,
            archive_bytes,
            saved,
        });
    }
}

/// Files that are gone would only be missed by whoever reads the tables.
fn tell_missing(pipeline: &Pipeline, store: &Store) -> Result<()> {
    let missing = store.missing()?;
    if let Some(first) = missing.first() {
        log::warn!(
            target: TOLD,
            "{} files of the store are missing, the first is {} of {}; `ratoon check {} --repair` makes them again",
            missing.len(),
            first.table,
            first.snapshot,
            pipeline.path.display()
        );
    }
    Ok(())
}

/// Captures that came too late are told; only force takes them in.
fn tell_late(pipeline: &Pipeline, inventory: &Inventory) {
    for Late { snapshot, captures } in &inventory.late_captures {
        let what = match captures {
            0 => "other captures than it was made of".to_owned(),
            n => format!("{n} more captures"),
        };
        // It is no problem of the snapshot, but whoever reads the tables misses them until a person acts.
        log::warn!(
            target: TOLD,
            "{what} came for window {snapshot}, which is done; `ratoon run {} --force --snapshot {snapshot}` takes them in",
            pipeline.path.display()
        );
    }
}
