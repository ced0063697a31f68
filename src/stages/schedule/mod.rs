//! `schedule`: updates to `schedules` and `recall_curves`.
//!
//! A source without an update in this snapshot keeps the schedule it has: the history it is learned from is the same. So
//! only new sources and those with news are planned, and only rows that differ are written; a base has all.

pub(crate) mod from_log;
mod known;
pub(crate) mod planning;
pub(crate) mod rows;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use anyhow::{Context as _, Result};

pub(super) use self::known::SourceSchedules;
use self::known::{KeptSource, Known};
use self::planning::plan_all;
use self::rows::{curve_rows, schedule_row};
use super::follow;
use super::stats::{UpdateEvidence, all_evidence, evidence_of};
use crate::manifests::{Ingested, Scheduled};
use crate::model::StageId;
use crate::run::shards;
use crate::run::stage::{Context, Ran, Stage, Task};
use crate::schedule::{History, SourceBy};
use crate::store::Store;
use crate::store::index::Moment;
use crate::store::manifest::Manifest;
use crate::store::view::Read;
use crate::tables::record::Table as _;
use crate::tables::schedule::{RecallCurveRow, ScheduleRow};
use crate::tables::stats::{SourceOnly, UpdateRow, UpdateStatsRow};

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
        ]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[ScheduleRow::NAME, RecallCurveRow::NAME]
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
    follow::bring::<UpdateEvidence>(store, context.index, &[done, &[ingested]].concat())?;
    follow::bring::<SourceSchedules>(store, context.index, done)?;
    let moment = context.index.moment();
    let known = Known { at: &moment, index: context.index };
    let last = match done.last() {
        Some(last) => store.manifest::<Scheduled>(&last.snapshot)?,
        None => None,
    };
    let last = last.filter(|last| last.settings == settings.digest());
    // Where schedules depend on each other, or were made by other rules, all are planned again.
    let learn = match &last {
        Some(_) if settings.is_separable() => Learn::Only(changed_sources(store, snapshot, known)?),
        _ => Learn::All,
    };
    let histories = histories(store, &moment, &learn, &settings.by)?;
    let learned = histories.len();
    let fleet = plan_all(&histories, settings)?;
    let sources: Vec<&str> = histories.iter().map(|history| history.source.as_str()).collect();
    let before = known.of(&sources)?;
    let mut overall = match (&learn, last) {
        (Learn::Only(_), Some(last)) => last.summary.sums,
        _ => Default::default(),
    };
    let mut changed: HashMap<&str, KeptSource> = HashMap::new();
    for (plan, before) in fleet.planned.iter().zip(before) {
        let now = KeptSource { schedule: schedule_row(plan), curve: curve_rows(plan) };
        if let (Some(before), Learn::Only(_)) = (&before, &learn) {
            overall.remove(&before.schedule);
        }
        overall.add(&now.schedule);
        if before.as_ref() != Some(&now) {
            known.put(&now)?;
            changed.insert(plan.schedule.source.as_str(), now);
        }
    }
    let mut staging = store.stage(StageId::Schedule, &task.snapshot)?;
    let (mut writer, mut curves) = (staging.writer::<ScheduleRow>()?, staging.writer::<RecallCurveRow>()?);
    let rows = if base {
        let after = context.index.moment();
        Known { at: &after, ..known }.all()?
    } else {
        changed.into_values().collect()
    };
    for (shard, (schedules, points)) in by_shard(store, rows) {
        writer.write(shard, &schedules)?;
        curves.write(shard, &points)?;
    }
    let summary = Scheduled {
        overall: overall.means(),
        sums: overall,
        learned,
        budget: fleet.budget,
        host_limit: fleet.repair,
    };
    let mut manifest = Manifest::new(&task.snapshot, inputs, settings.digest(), summary);
    manifest.tables = BTreeMap::from([
        (ScheduleRow::NAME.to_owned(), writer.finish()?.whole_if(base)),
        (RecallCurveRow::NAME.to_owned(), curves.finish()?.whole_if(base)),
    ]);
    manifest.follows = follow::lineage_before(store, StageId::Schedule, done)?;
    manifest.seconds = started.elapsed().as_secs_f64();
    staging.commit(&mut manifest)?;
    follow::followed::<SourceSchedules>(context.index, snapshot, manifest.lineage);
    Ran::new(&manifest)
}

/// Which sources are planned.
enum Learn {
    All,
    Only(BTreeSet<String>),
}

/// The sources that are new or have an update in the snapshot.
fn changed_sources(store: &Store, snapshot: &crate::model::SnapshotId, known: Known<'_>) -> Result<BTreeSet<String>> {
    let updates = store.partition(UpdateRow::NAME, snapshot)?.all_rows::<SourceOnly>()?.into_iter();
    let mut changed: BTreeSet<String> = updates.map(|row| row.source).collect();
    let told = store.partition(UpdateStatsRow::NAME, snapshot)?.all_rows::<SourceOnly>()?;
    let told: Vec<&str> = told.iter().map(|row| row.source.as_str()).collect();
    let new = told.iter().zip(known.are_known(&told)?).filter(|(_, known)| !known).map(|(source, _)| (*source).to_owned());
    changed.extend(new);
    Ok(changed)
}

/// The histories of sources, by source.
fn histories(store: &Store, evidence: &Moment, learn: &Learn, by: &SourceBy) -> Result<Vec<History>> {
    let urls = match (learn, by) {
        (Learn::Only(sources), SourceBy::Url) => evidence_of(store, evidence, sources.iter().map(String::as_str))?,
        _ => {
            let wanted = |url: &str| match learn {
                Learn::All => true,
                Learn::Only(sources) => sources.contains(by.source(url)),
            };
            shards::all(store.shards(), |shard| all_evidence(evidence, shard, wanted))?.into_iter().flatten().collect()
        }
    };
    Ok(by.histories(urls.iter().map(|(url, state)| (url.as_str(), state))))
}

/// Rows of sources by the shard of the source's name, there by name.
fn by_shard(store: &Store, mut sources: Vec<KeptSource>) -> BTreeMap<u32, (Vec<ScheduleRow>, Vec<RecallCurveRow>)> {
    sources.sort_by_cached_key(|source| (store.shard_of(&source.schedule.source), source.schedule.source.clone()));
    let mut shards: BTreeMap<u32, (Vec<ScheduleRow>, Vec<RecallCurveRow>)> = BTreeMap::new();
    for KeptSource { schedule, curve } in sources {
        let rows = shards.entry(store.shard_of(&schedule.source)).or_default();
        rows.0.push(schedule);
        rows.1.extend(curve);
    }
    shards
}
