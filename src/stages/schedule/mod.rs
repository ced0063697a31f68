//! `schedule`: updates to `schedules` and `recall_curves`, and to files that cron, systemd and people read.
//!
//! A source without an update in this snapshot keeps the schedule it has: the history it is learned from is the same.

pub(crate) mod from_log;
pub(crate) mod handover;
mod once;
pub(crate) mod planning;
#[cfg(test)]
mod planning_tests;
pub(crate) mod rows;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result};
use rayon::prelude::*;

use self::planning::{Fleet, plan_all};
use self::rows::{curve_rows, schedule_of, schedule_row};
use super::stats::{open_states, shard_states};
use crate::config::schedule::ScheduleSettings;
use crate::manifests::{Ingested, Overall, Scheduled};
use crate::model::{SnapshotId, StageId};
use crate::report::schedules::crontab::{CronClock, crontab};
use crate::report::schedules::{json, timers::systemd};
use crate::run::stage::{Context, Ran, Stage, Task};
use crate::schedule::{History, Schedule, SourceBy};
use crate::store::carried::Carried;
use crate::store::manifest::Manifest;
use crate::store::parquet::Partition;
use crate::store::view::Read;
use crate::store::{Store, files};
use crate::tables::record::Table as _;
use crate::tables::schedule::{RecallCurveRow, ScheduleRow};
use crate::tables::stats::UpdateRow;

pub(crate) struct Schedules;

/// More sources than this get no timers: two files each, and systemd reads them all.
const MOST_TIMERS: usize = 1_000;

impl Stage for Schedules {
    fn id(&self) -> StageId {
        StageId::Schedule
    }

    fn about(&self) -> &'static str {
        "Learn from updates when to poll each source; with --updates from any log"
    }

    fn reads(&self) -> &'static [Read] {
        &[Read::Table(UpdateRow::NAME), Read::Carried(Carried::UpdateStates), Read::Manifest(StageId::Ingest)]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[ScheduleRow::NAME, RecallCurveRow::NAME]
    }

    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
        schedule_snapshot(context, task, done).with_context(|| format!("snapshot {}", task.snapshot.id))
    }
}

/// The schedule of a source and its recall curve.
type SourceRows = (ScheduleRow, Vec<RecallCurveRow>);

/// Plans the sources that changed, takes the schedules of the others over, and writes all of them.
fn schedule_snapshot(context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
    let started = Instant::now();
    let (store, snapshot) = (context.store, &task.snapshot.id);
    let ingested = store.manifest::<Ingested>(snapshot)?.context("it has not been ingested")?;
    let settings = &context.pipeline.schedule;
    let inputs = ingested.inputs;
    let states = open_states(store, snapshot, &[done, &[ingested]].concat())?;
    let known = Reusable::open(store, snapshot, done.last(), settings)?;
    let mut staging = store.stage(StageId::Schedule, snapshot)?;
    let mut writer = staging.writer::<ScheduleRow>()?;
    let mut curves = staging.writer::<RecallCurveRow>()?;
    let shards: Vec<u32> = (0..store.shards()).collect();
    let bar = context.progress.count(&format!("schedule {snapshot}"), shards.len() as u64);
    // Sources whose schedules do not depend on each other are planned shard by shard, which bounds the memory.
    let together = if settings.is_separable() && matches!(settings.by, SourceBy::Url) { 1 } else { shards.len() };
    let mut written = Vec::new();
    let (mut fleet, mut learned) = (Fleet::default(), 0);
    for batch in shards.chunks(together) {
        let histories = histories(&states, batch, &settings.by)?;
        let mut before = known.rows(batch)?;
        let (kept, fresh): (Vec<History>, Vec<History>) =
            histories.into_iter().partition(|history| before.contains_key(&history.source));
        learned += fresh.len();
        let planned = plan_all(&fresh, settings)?;
        let new = planned.planned.iter().map(|plan| (schedule_row(plan), curve_rows(plan)));
        let old = kept.iter().filter_map(|history| before.remove(&history.source));
        for (shard, (schedules, points)) in by_shard(store, new.chain(old)) {
            writer.write(shard, &schedules)?;
            curves.write(shard, &points)?;
            written.extend(schedules);
        }
        fleet = planned;
        bar.add(batch.len() as u64);
    }
    let overall = Overall::of(&written);
    let more = write_files(store, staging.dir(), &written, &overall, settings)?;
    let summary = Scheduled { overall, learned, budget: fleet.budget, host_limit: fleet.repair };
    let mut manifest = Manifest::new(&task.snapshot, inputs, settings.digest(), summary);
    manifest.tables = BTreeMap::from([
        (ScheduleRow::NAME.to_owned(), writer.finish()?),
        (RecallCurveRow::NAME.to_owned(), curves.finish()?),
    ]);
    manifest.seconds = started.elapsed().as_secs_f64();
    staging.commit(&manifest, &more)?;
    Ran::new(&manifest)
}

/// The histories of the sources whose URLs are in these shards.
fn histories(states: &Partition, shards: &[u32], by: &SourceBy) -> Result<Vec<History>> {
    let urls: Vec<Result<Vec<_>>> = shards.par_iter().map(|&shard| shard_states(states, shard)).collect();
    let urls = urls.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(by.histories(urls.iter().flatten().map(|(url, state)| (url.as_str(), state))))
}

/// Rows of sources by the shard of the source's name, there by name.
fn by_shard(
    store: &Store,
    sources: impl Iterator<Item = SourceRows>,
) -> BTreeMap<u32, (Vec<ScheduleRow>, Vec<RecallCurveRow>)> {
    let mut sorted: Vec<(u32, SourceRows)> = sources.map(|rows| (store.shard_of(&rows.0.source), rows)).collect();
    sorted.sort_by(|(a_shard, (a, _)), (b_shard, (b, _))| (a_shard, &a.source).cmp(&(b_shard, &b.source)));
    let mut shards: BTreeMap<u32, (Vec<ScheduleRow>, Vec<RecallCurveRow>)> = BTreeMap::new();
    for (shard, (schedule, points)) in sorted {
        let rows = shards.entry(shard).or_default();
        rows.0.push(schedule);
        rows.1.extend(points);
    }
    shards
}

/// The schedules of the snapshot before, for sources about which nothing new is known.
struct Reusable {
    partitions: Option<(Partition, Partition)>,
    changed: HashSet<String>,
}

impl Reusable {
    fn open(
        store: &Store,
        snapshot: &SnapshotId,
        before: Option<&Manifest<Ingested>>,
        settings: &ScheduleSettings,
    ) -> Result<Self> {
        let before = match before.filter(|_| settings.is_separable()) {
            Some(before) => store.manifest::<Scheduled>(&before.snapshot)?,
            None => None,
        };
        let Some(before) = before.filter(|before| before.settings == settings.digest()) else {
            return Ok(Self { partitions: None, changed: HashSet::new() });
        };
        let open = |table: &str| store.partition(table, &before.snapshot);
        let updates = store.partition(UpdateRow::NAME, snapshot)?;
        let rows = updates.groups::<UpdateRow>(&updates.all_groups())?;
        Ok(Self {
            partitions: Some((open(ScheduleRow::NAME)?, open(RecallCurveRow::NAME)?)),
            changed: rows.into_iter().map(|row| row.source).collect(),
        })
    }

    fn rows(&self, shards: &[u32]) -> Result<HashMap<String, SourceRows>> {
        let mut found: HashMap<String, SourceRows> = HashMap::new();
        let Some((schedules, curves)) = &self.partitions else { return Ok(found) };
        for &shard in shards {
            let kept = schedules.shard::<ScheduleRow>(shard)?.into_iter();
            let kept = kept.filter(|row| !self.changed.contains(&row.source));
            found.extend(kept.map(|row| (row.source.clone(), (row, Vec::new()))));
            for point in curves.shard::<RecallCurveRow>(shard)? {
                if let Some((_, points)) = found.get_mut(&point.source) {
                    points.push(point);
                }
            }
        }
        Ok(found)
    }
}

/// Crontab, JSON and timers, written to `dir`; gives where each belongs.
fn write_files(
    store: &Store,
    dir: &std::path::Path,
    rows: &[ScheduleRow],
    overall: &Overall,
    settings: &ScheduleSettings,
) -> Result<Vec<(PathBuf, PathBuf)>> {
    let schedules: Vec<Schedule> = rows.iter().filter_map(schedule_of).collect();
    let clock = CronClock::new(jiff::tz::TimeZone::system(), jiff::Timestamp::now());
    let texts = [
        ("schedule.crontab", crontab(&schedules, &settings.command, &clock)),
        ("schedule.json", json::rows(rows, overall)),
    ];
    let mut moves = Vec::new();
    for (name, text) in texts {
        files::write(&dir.join(name), text.as_bytes())?;
        moves.push((dir.join(name), store.root().join(name)));
    }
    let timers = store.root().join("schedule.timers");
    store.remove_folder(&timers)?;
    if schedules.len() <= MOST_TIMERS {
        let staged = dir.join("schedule.timers");
        files::make_dir(&staged)?;
        for unit in systemd(&schedules, &settings.command) {
            files::write(&staged.join(unit.name), unit.text.as_bytes())?;
        }
        moves.push((staged, timers));
    } else {
        log::info!("{} sources: no timers for more than {MOST_TIMERS}, use schedule.crontab", schedules.len());
    }
    Ok(moves)
}
