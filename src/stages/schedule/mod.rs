//! `schedule`: updates to `schedules` and `recall_curves`.
//!
//! A source without an update in this snapshot keeps the schedule it has, unless a budget or a limit per host couples it
//! to others: the history it is learned from is the same. So only new sources and those with news are learned from, and
//! only rows that differ are written; a base has all. A source with a long history waits until there is news enough
//! ([`learned_upto`]), so that late nights cost what early ones do.

pub(crate) mod compare;
pub(crate) mod due;
pub(crate) mod from_log;
pub(crate) mod frontier;
pub(crate) mod handover;
mod known;
mod once;
pub(crate) mod planning;
#[cfg(test)]
mod planning_tests;
pub(crate) mod rows;
mod weighing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use rayon::prelude::*;

use self::frontier::Frontier;
pub(super) use self::known::SourceSchedules;
use self::known::{Known, StoredSource};
use self::planning::{FleetNews, FleetSource, Keep, SourceNews, replan};
use self::rows::{curve_rows, gone_row, schedule_row};
use super::follow;
use super::stats::{UpdateEvidence, all_evidence, evidence_of, is_regrouped};
use crate::config::schedule::ScheduleSettings;
use crate::manifests::{Ingested, Observed, OverallSums, Scheduled};
use crate::model::maps::{HashMap, HashSet};
use crate::model::{SnapshotId, StageId, Timestamp};
use crate::run::shards::{self, Shards};
use crate::run::stage::{Asking, Context, Position, Ran, Stage, Task};
use crate::schedule::history::learned_upto;
use crate::schedule::{History, SourceBy};
use crate::store::Store;
use crate::store::index::Moment;
use crate::store::manifest::Manifest;
use crate::store::parquet::Written;
use crate::store::staging::Staging;
use crate::store::view::Read;
use crate::tables::record::Table as _;
use crate::tables::schedule::{RecallCurveRow, ScheduleRow};
use crate::tables::stats::{SourceOnly, SourceUpdates, UpdateRow, UpdateStatsRow};

pub(crate) struct Schedules;

impl Stage for Schedules {
    fn id(&self) -> StageId {
        StageId::Schedule
    }

    fn about(&self) -> &'static str {
        "Learn from updates when to poll each source; with --updates from any log"
    }

    fn reads(&self) -> &'static [Read] {
        &[
            Read::Table(UpdateRow::NAME),
            Read::Table(UpdateStatsRow::NAME),
            Read::Index(StageId::Stats),
            Read::Manifest(StageId::Ingest),
            Read::Manifest(StageId::Stats),
        ]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[ScheduleRow::NAME, RecallCurveRow::NAME]
    }

    /// Edited settings are applied to the newest snapshot, though that was done before.
    fn is_done(&self, asking: Asking<'_>, at: Position<'_>) -> Result<bool> {
        let done = asking.store.done(StageId::Schedule, at.snapshot)?;
        Ok(done.is_some_and(|done| !at.current || done.settings == asking.pipeline.schedule.digest()))
    }

    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
        schedule_snapshot(context, task, done).with_context(|| format!("snapshot {}", task.snapshot.id))
    }
}

/// Plans the sources of which something new is known, and writes those whose schedules are not what they were.
fn schedule_snapshot(context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
    let started = Instant::now();
    let (store, snapshot) = (context.store, &task.snapshot.id);
    let ingested = store.manifest::<Ingested>(snapshot)?.context("it has not been ingested")?;
    let (inputs, base) = (ingested.inputs, ingested.summary.base);
    let settings = &context.pipeline.schedule;
    let all_done = [done, &[ingested]].concat();
    follow::bring::<UpdateEvidence>(store, context.index, &all_done)?;
    follow::bring::<SourceSchedules>(store, context.index, done)?;
    let regrouped = is_regrouped(store, done, settings.sources_digest())?;
    if regrouped {
        // The sources of before are none any more.
        follow::forget::<SourceSchedules>(context.index)?;
    }
    let moment = context.index.moment();
    let known = Known { at: &moment, index: context.index };
    let last = done.last().map(|last| store.manifest::<Scheduled>(&last.snapshot)).transpose()?.flatten();
    let last = last.filter(|last| last.settings == settings.digest());
    // Which of two timetables holds, the newest version says.
    let at_once = settings.options.signal;
    let any_gone = last.as_ref().is_none_or(|last| last.summary.sums.has_gone());
    let Changed { sources: news, quiet, gone } = changed_sources(store, snapshot, known, any_gone, at_once)?;
    let touched: BTreeSet<String> = news.iter().chain(gone.keys()).cloned().collect();
    // Where schedules depend on each other, or were made by other rules, all sources are looked at.
    let stored = match &last {
        Some(_) if settings.is_separable() => known.of(&touched)?,
        _ => known.all_and(&touched)?,
    };
    // What has gone takes no part in plans.
    let since_when = |name: &String, before: Option<&StoredSource>| match gone.get(name) {
        Some(since) => Some(*since),
        None if news.contains(name) => None,
        None => before.and_then(|before| before.schedule.gone_since),
    };
    let (left, stored): (Vec<_>, Vec<_>) =
        stored.into_iter().partition(|(name, before)| since_when(name, before.as_deref()).is_some());
    let learns = |source: &StoredSource| last.is_none() || source.kept.is_none() || news.contains(source.name());
    let evidence = Evidence { store, at: &moment, by: &settings.by, quiet: &quiet, at_once };
    let weigh = |names: &[&str]| weighing::weights(context, settings, &all_done, names);
    let planner = Planner { evidence, settings, learns: &learns, weigh: &weigh };
    let some = last.as_ref().filter(|_| settings.is_separable());
    let sums = some.map(|last| last.summary.sums.clone()).unwrap_or_default();
    let whole = base || regrouped;
    let rows = SourceRows::new(store, if whole { stored.len() + left.len() } else { 0 });
    let mut outcome = Outcome { known, sums_stand: some.is_some(), whole, sums, rows };
    let (mut learned, mut budget, mut host_limit) = (0, None, None);
    for batch in stored.chunks(planner.together()) {
        let Planned { fleet, learned: more } = planner.plan(batch)?;
        learned += more;
        (budget, host_limit) = (fleet.budget, fleet.repair);
        for ((name, before), news) in batch.iter().zip(fleet.sources) {
            outcome.add(before.as_deref(), after(name, before.as_deref(), news)?)?;
        }
    }
    for (name, before) in left {
        let Some(since) = since_when(&name, before.as_deref()) else { continue };
        let updates = before.as_ref().map_or(0, |before| before.schedule.updates);
        let schedule = gone_row(&name, since, updates, &settings.options);
        outcome.add(before.as_deref(), StoredSource { schedule, curve: Vec::new(), kept: None })?;
    }
    let Outcome { sums, mut rows, .. } = outcome;
    if base && some.is_some() {
        let after = context.index.moment();
        let all = Known { at: &after, ..known }.all()?;
        rows = SourceRows::new(store, all.len());
        all.into_iter().for_each(|source| rows.add(source));
    }
    let mut staging = store.stage(StageId::Schedule, &task.snapshot)?;
    let tables = rows.write(&mut staging, whole)?;
    let summary = Scheduled { overall: sums.means(), sums, learned, budget, host_limit };
    let mut manifest = Manifest::new(&task.snapshot, inputs, settings.digest(), summary);
    manifest.tables = tables;
    manifest.follows = follow::lineage_before(store, StageId::Schedule, done)?;
    manifest.seconds = started.elapsed().as_secs_f64();
    staging.commit(&mut manifest)?;
    follow::followed::<SourceSchedules>(context.index, snapshot, manifest.lineage);
    if let Some(discover) = settings.discover {
        let frontier = Frontier::at(store, &all_done, &moment, discover.scope);
        // It is no result, so that it is not what a run fails by.
        if let Err(error) = frontier.and_then(|frontier| frontier.map_or(Ok(()), |frontier| frontier.note(store))) {
            log::warn!("snapshot {snapshot}: links that were never followed cannot be noted: {error:#}");
        }
    }
    Ran::new(&manifest)
}

/// Sources to be written, by shard. There may be very many, and their rows are large: they are not copied as a whole.
struct SourceRows<'a> {
    store: &'a Store,
    shards: Vec<Vec<StoredSource>>,
}

impl<'a> SourceRows<'a> {
    /// With room for so many, before they come.
    fn new(store: &'a Store, expected: usize) -> Self {
        // Shards have about as many sources each.
        let each = expected / store.shards() as usize;
        Self { store, shards: (0..store.shards()).map(|_| Vec::with_capacity(each + each / 8)).collect() }
    }

    fn add(&mut self, source: StoredSource) {
        self.shards[self.store.shard_of(source.name()) as usize].push(source);
    }

    /// Writes schedules and curves, by name.
    fn write(self, staging: &mut Staging<'_>, whole: bool) -> Result<BTreeMap<String, Written>> {
        let (mut writer, mut curves) = (staging.writer::<ScheduleRow>()?, staging.writer::<RecallCurveRow>()?);
        let encoders = (writer.encoder(), curves.encoder());
        let all: Vec<Mutex<Vec<StoredSource>>> = self.shards.into_iter().map(Mutex::new).collect();
        let work = |shard: u32| {
            let mut sources = std::mem::take(&mut *all[shard as usize].lock().unwrap_or_else(PoisonError::into_inner));
            sources.sort_unstable_by(|a, b| a.name().cmp(b.name()));
            let (mut schedules, mut points) = (Vec::with_capacity(sources.len()), Vec::new());
            for StoredSource { schedule, curve, .. } in sources {
                schedules.push(schedule);
                points.extend(curve);
            }
            Ok((shards::packed(&encoders.0, shard, &schedules)?, shards::packed(&encoders.1, shard, &points)?))
        };
        shards::in_order(Shards::new(self.store.shards(), None), work, |_, (schedules, points)| {
            schedules.into_iter().try_for_each(|group| writer.append(group))?;
            Ok(points.into_iter().try_for_each(|group| curves.append(group))?)
        })?;
        Ok(BTreeMap::from([
            (ScheduleRow::NAME.to_owned(), writer.finish()?.whole_if(whole)),
            (RecallCurveRow::NAME.to_owned(), curves.finish()?.whole_if(whole)),
        ]))
    }
}

/// What is written of sources that were looked at, and what it makes of the sums over all of them.
struct Outcome<'a> {
    known: Known<'a>,
    /// Where not all sources are looked at, those that are change what the sums were before.
    sums_stand: bool,
    /// All sources are written.
    whole: bool,
    sums: OverallSums,
    rows: SourceRows<'a>,
}

impl Outcome<'_> {
    fn add(&mut self, before: Option<&StoredSource>, now: StoredSource) -> Result<()> {
        if let Some(before) = before.filter(|_| self.sums_stand) {
            self.sums.remove(&before.schedule);
        }
        self.sums.add(&now.schedule);
        if before != Some(&now) {
            self.known.put(&now)?;
        }
        if self.whole || before.is_none_or(|before| !before.says_as(&now)) {
            self.rows.add(now);
        }
        Ok(())
    }
}

/// Sources that are planned together, where they have no say in each other's schedules: bounds the memory.
const TOGETHER: usize = 16_384;

/// Plans sources.
struct Planner<'a> {
    evidence: Evidence<'a>,
    settings: &'a ScheduleSettings,
    /// Whether a source that is known is learned from again.
    learns: &'a dyn Fn(&StoredSource) -> bool,
    /// What sources count in a budget.
    weigh: &'a dyn Fn(&[&str]) -> Result<Vec<f64>>,
}

/// What became of sources, and how many were learned from.
struct Planned {
    fleet: FleetNews,
    learned: usize,
}

impl Planner<'_> {
    /// How many sources are planned together.
    fn together(&self) -> usize {
        let alone = self.settings.is_separable() && matches!(self.settings.by, SourceBy::Url);
        if alone { TOGETHER } else { usize::MAX }
    }

    fn plan(&self, sources: &[(String, Option<Box<StoredSource>>)]) -> Result<Planned> {
        let learned = sources.iter().filter(|(_, source)| source.as_deref().is_none_or(self.learns));
        let learned: BTreeSet<&str> = learned.map(|(name, _)| name.as_str()).collect();
        let histories = self.evidence.of(&learned)?.into_iter();
        let histories: HashMap<String, History> = histories.map(|history| (history.source.clone(), history)).collect();
        let names: Vec<&str> = sources.iter().map(|(name, _)| name.as_str()).collect();
        let weights = (self.weigh)(&names)?;
        let fleet = sources.iter().zip(weights).map(|((name, source), weight)| FleetSource {
            name,
            history: histories.get(name),
            kept: source.as_ref().and_then(|source| source.kept.as_ref()),
            weight,
        });
        let ask = |names: &[&str]| self.evidence.of(&names.iter().copied().collect());
        let fleet = replan(&fleet.collect::<Vec<_>>(), self.settings, &ask)?;
        Ok(Planned { fleet, learned: learned.len() })
    }
}

/// What is known of a source after it was planned.
fn after(name: &str, before: Option<&StoredSource>, news: SourceNews) -> Result<StoredSource> {
    let (schedule, curve) = match (news.plan, before) {
        (Some(plan), _) => (schedule_row(&plan), curve_rows(&plan)),
        (None, Some(before)) => (before.schedule.clone(), before.curve.clone()),
        (None, None) => bail!("source {name} has no schedule"),
    };
    let kept = match news.keep {
        Keep::AsBefore => before.and_then(|before| before.kept.clone()),
        Keep::This(kept) => Some(*kept),
        Keep::Nothing => None,
    };
    Ok(StoredSource { schedule, curve, kept })
}

/// Sources that a snapshot tells something new of.
struct Changed {
    /// Those that are new, returned, have news enough in it or took over the history of a page which moved there.
    sources: BTreeSet<String>,
    /// Those of which no update is known at all.
    quiet: HashSet<String>,
    /// Those that are gone, since when.
    gone: BTreeMap<String, Timestamp>,
}

/// Sources that are looked up at a time.
const ASKED_TOGETHER: usize = 8_192;

/// `any_gone`: some source was gone before. `at_once`: all updates are learned from at once.
fn changed_sources(
    store: &Store,
    snapshot: &SnapshotId,
    known: Known<'_>,
    any_gone: bool,
    at_once: bool,
) -> Result<Changed> {
    let mut updates: BTreeMap<String, u64> = BTreeMap::new();
    for row in store.partition(UpdateRow::NAME, snapshot)?.all_rows::<SourceOnly>()? {
        *updates.entry(row.source).or_default() += 1;
    }
    let stats = store.partition(UpdateStatsRow::NAME, snapshot)?;
    let told = shards::all(store.shards(), |shard| Ok(stats.shard::<SourceUpdates>(shard)?))?;
    let (gone, told): (Vec<_>, Vec<_>) = told.into_iter().flatten().partition(|row| row.gone_since.is_some());
    let gone: BTreeMap<String, Timestamp> =
        gone.into_iter().filter_map(|row| Some((row.source, row.gone_since?))).collect();
    if !at_once {
        // Of those with a long history some wait for more news.
        for row in &told {
            let now = u64::try_from(row.updates).unwrap_or_default();
            let waits = |new: &u64| learned_upto(now.saturating_sub(*new)) == learned_upto(now);
            if updates.get(&row.source).is_some_and(waits) {
                updates.remove(&row.source);
            }
        }
    }
    let mut sources: BTreeSet<String> = updates.into_keys().collect();
    let mut names: Vec<&str> = told.iter().map(|row| row.source.as_str()).collect();
    // In the order of the index, so that no part of it is read for more than one piece.
    names.sort_unstable();
    let scheduled = |names: &[&str]| if any_gone { known.are_scheduled(names) } else { known.are_known(names) };
    let scheduled = names.par_chunks(ASKED_TOGETHER).map(scheduled).collect::<Result<Vec<_>>>()?.concat();
    sources.extend(names.iter().zip(scheduled).filter(|(_, there)| !there).map(|(source, _)| (*source).to_owned()));
    sources.extend(store.manifest::<Observed>(snapshot)?.map(|observed| observed.summary.moved).unwrap_or_default());
    sources.retain(|source| !gone.contains_key(source));
    let quiet = told.into_iter().filter(|row| row.updates == 0).map(|row| row.source).collect();
    Ok(Changed { sources, quiet, gone })
}

/// Where the histories of sources come from.
#[derive(Clone, Copy)]
struct Evidence<'a> {
    store: &'a Store,
    at: &'a Moment,
    by: &'a SourceBy,
    /// Sources of which no update is known: nothing has to be read for their histories.
    quiet: &'a HashSet<String>,
    /// Every update counts at once, also in a long history.
    at_once: bool,
}

impl Evidence<'_> {
    /// The histories of sources, by source.
    fn of(&self, sources: &BTreeSet<&str>) -> Result<Vec<History>> {
        let (quiet, others): (BTreeSet<&str>, BTreeSet<&str>) =
            sources.iter().partition(|source| self.quiet.contains(**source));
        let mut histories = self.read(&others)?;
        histories.extend(quiet.into_iter().map(|source| History::new(source, Vec::new())));
        histories.sort_unstable_by(|a, b| a.source.cmp(&b.source));
        Ok(histories)
    }

    fn read(&self, sources: &BTreeSet<&str>) -> Result<Vec<History>> {
        if sources.is_empty() {
            return Ok(Vec::new());
        }
        let urls = match self.by {
            SourceBy::Url => evidence_of(self.store, self.at, sources.iter().copied())?,
            by => {
                let wanted = |url: &str| sources.contains(by.source(url));
                let all = shards::all(self.store.shards(), |shard| all_evidence(self.at, shard, wanted))?;
                all.into_iter().flatten().collect()
            }
        };
        let histories = self.by.histories(urls.iter().map(|(url, state)| (url.as_str(), state)));
        if self.at_once {
            return Ok(histories);
        }
        let mut known: HashMap<&str, u64> = HashMap::default();
        for (url, state) in &urls {
            *known.entry(self.by.source(url)).or_default() += state.updates_total;
        }
        let learned = |history: History| {
            let known = known.get(history.source.as_str()).copied().unwrap_or_default();
            history.learned(known)
        };
        Ok(histories.into_iter().map(learned).collect())
    }
}
