//! `stats`: captures to `updates` and `update_stats`.
//!
//! What is known of a URL is carried from snapshot to snapshot, so that a new snapshot reads its own captures only; a
//! state that is missing is rebuilt from all captures before it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use anyhow::{Context as _, Result};
use rayon::prelude::*;

use crate::config::schedule::ScheduleSettings;
use crate::manifests::{Ingested, Matched, Observed};
use crate::model::{Digest, SnapshotId, StageId, Standing};
use crate::run::shards;
use crate::run::stage::{Context, Ran, Stage, Task};
use crate::schedule::SourceBy;
use crate::stats::{Calendar, Evidence, Observation, PhaseModel, UrlState, summarise};
use crate::store::Store;
use crate::store::carried::Carried;
use crate::store::manifest::Manifest;
use crate::store::parquet::{Partition, PartitionWriter};
use crate::store::view::Read;
use crate::tables::ingest::{Capture, CaptureEvidence, Page, PageEvidence};
use crate::tables::matching::{RegionRow, RegionSpan};
use crate::tables::record::Table as _;
use crate::tables::stats::{UpdateRow, UpdateState, UpdateStatsRow};

pub(crate) struct Stats;

impl Stage for Stats {
    fn id(&self) -> StageId {
        StageId::Stats
    }

    fn about(&self) -> &'static str {
        "Find when pages changed, how often and by which rhythm"
    }

    fn reads(&self) -> &'static [Read] {
        &[
            Read::Table(Capture::NAME),
            Read::Table(Page::NAME),
            Read::Table(RegionRow::NAME),
            Read::Manifest(StageId::Ingest),
            Read::Manifest(StageId::Match),
        ]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[UpdateRow::NAME, UpdateStatsRow::NAME]
    }

    fn forget(&self, store: &Store, snapshot: &SnapshotId) -> Result<()> {
        Ok(store.carried(Carried::UpdateStates).drop(snapshot)?)
    }

    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
        stats_snapshot(context, task, done).with_context(|| format!("snapshot {}", task.snapshot.id))
    }
}

/// What is known of a URL.
#[derive(Default)]
struct KnownUrl {
    /// Digest of the last good text, with nothing masked.
    text_digest: Option<Digest>,
    state: UrlState,
}

type States = BTreeMap<String, KnownUrl>;

impl KnownUrl {
    /// From its row and, the other way round, as its row: the only place that knows how a state is stored.
    fn from_row(row: UpdateState) -> Result<(String, Self)> {
        let state = serde_json::from_str(&row.state)
            .with_context(|| format!("what is known of the updates of {} is damaged", row.url))?;
        Ok((row.url, Self { text_digest: row.text_digest, state }))
    }

    fn to_row(&self, url: &str) -> Result<UpdateState> {
        let state = serde_json::to_string(&self.state)?;
        Ok(UpdateState { url: url.to_owned(), text_digest: self.text_digest, state })
    }
}

fn load(partition: &Partition, shard: u32) -> Result<States> {
    partition.shard(shard)?.into_iter().map(KnownUrl::from_row).collect()
}

/// The URLs of a shard as they were after a snapshot, by URL.
pub(super) fn shard_states(partition: &Partition, shard: u32) -> Result<Vec<(String, UrlState)>> {
    Ok(load(partition, shard)?.into_iter().map(|(url, known)| (url, known.state)).collect())
}

fn state_rows(states: &States) -> Result<Vec<UpdateState>> {
    states.iter().map(|(url, known)| known.to_row(url)).collect()
}

fn stats_snapshot(context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
    let started = Instant::now();
    let (store, snapshot) = (context.store, &task.snapshot.id);
    let ingested = store.manifest::<Ingested>(snapshot)?.context("it has not been ingested")?;
    let settings = &context.pipeline.schedule;
    let before = match done.last() {
        Some(last) => Some(open_states(store, &last.snapshot, done)?),
        None => None,
    };
    let night = NightCaptures::open(store, &ingested, done.last())?;
    let mut staging = store.stage(StageId::Stats, snapshot)?;
    let staged_states = staging.dir().join("states.parquet");
    let mut writer = staging.writer::<UpdateRow>()?;
    let mut stats_writer = staging.writer::<UpdateStatsRow>()?;
    let mut states_writer = PartitionWriter::<UpdateState>::create(&staged_states)?;
    let bar = context.progress.count(&format!("stats {snapshot}"), store.shards().into());
    let by_url = matches!(settings.by, SourceBy::Url);
    let mut all = Vec::new();
    let work = |shard| {
        let mut states = before.as_ref().map_or_else(|| Ok(States::new()), |p| load(p, shard))?;
        let updates = night.observe(shard, &mut states, &settings.by)?;
        let rows = state_rows(&states)?;
        let stats = if by_url { stats_of_urls(&states, settings) } else { Vec::new() };
        Ok((updates, rows, stats, if by_url { States::new() } else { states }))
    };
    shards::in_order(store.shards(), Some(&bar), work, |shard, (updates, rows, stats, states)| {
        writer.write(shard, &updates)?;
        states_writer.write(shard, &rows)?;
        stats_writer.write(shard, &stats)?;
        all.extend(states);
        Ok(())
    })?;
    if !by_url {
        for (shard, rows) in stats_of_groups(store, &all, settings) {
            stats_writer.write(shard, &rows)?;
        }
    }
    states_writer.finish()?;
    let tables = BTreeMap::from([
        (UpdateRow::NAME.to_owned(), writer.finish()?),
        (UpdateStatsRow::NAME.to_owned(), stats_writer.finish()?),
    ]);
    let mut manifest = Manifest::new(&task.snapshot, ingested.inputs, settings.sources_digest(), Observed {});
    manifest.tables = tables;
    manifest.seconds = started.elapsed().as_secs_f64();
    // Old files go before the commit: after it the snapshot counts as done, and no later run would remove them.
    let keep: Vec<_> = done.last().map(|manifest| &manifest.snapshot).into_iter().chain([snapshot]).collect();
    let carried = store.carried(Carried::UpdateStates);
    carried.keep(&keep)?;
    staging.commit(&manifest, &[(staged_states, carried.file(snapshot))])?;
    Ran::new(&manifest)
}

/// The states after `snapshot`, the last of `done`; rebuilt from the captures of `done` if they are not there.
pub(super) fn open_states(store: &Store, snapshot: &SnapshotId, done: &[Manifest<Ingested>]) -> Result<Partition> {
    let carried = store.carried(Carried::UpdateStates);
    if !carried.is_there(snapshot) {
        log::info!("rebuilding {} from {} snapshots", carried.file(snapshot).display(), done.len());
        // Another stage may ask for the states, but it is `stats` that reads captures to rebuild them.
        let own = store.for_stage(StageId::Stats, Stats.reads(), Stats.writes());
        let mut nights = Vec::new();
        for (i, manifest) in done.iter().enumerate() {
            nights.push(NightCaptures::open(&own, manifest, i.checked_sub(1).map(|before| &done[before]))?);
        }
        let staged = store.scratch_dir("update_states")?.join("states.parquet");
        let mut writer = PartitionWriter::<UpdateState>::create(&staged)?;
        for shard in 0..store.shards() {
            let mut states = States::new();
            for night in &nights {
                night.observe(shard, &mut states, &SourceBy::Url)?;
            }
            writer.write(shard, &state_rows(&states)?)?;
        }
        writer.finish()?;
        carried.put(&staged, snapshot)?;
    }
    Ok(carried.open(snapshot)?)
}

/// The captures of one snapshot, and what `ingest` and `match` found out about them.
struct NightCaptures {
    captures: Partition,
    pages: Partition,
    regions: Option<Partition>,
    /// The ignore rules are not those of the snapshot before, so that masked digests do not compare.
    other_rules: bool,
}

impl NightCaptures {
    fn open(store: &Store, ingested: &Manifest<Ingested>, before: Option<&Manifest<Ingested>>) -> Result<Self> {
        let snapshot = &ingested.snapshot;
        let open = |table: &str| store.partition(table, snapshot);
        // Without a matcher it is not known which regions are old; that is not the same as none being old.
        let matched = store.manifest::<Matched>(snapshot)?.filter(|matched| matched.summary.knows_regions());
        Ok(Self {
            captures: open(Capture::NAME)?,
            pages: open(Page::NAME)?,
            regions: matched.map(|_| open(RegionRow::NAME)).transpose()?,
            other_rules: before.is_some_and(|before| before.summary.ignore != ingested.summary.ignore),
        })
    }

    /// Takes in the captures of a shard; gives the updates that they show, by URL and time.
    fn observe(&self, shard: u32, states: &mut States, by: &SourceBy) -> Result<Vec<UpdateRow>> {
        let captures = self.captures.shard::<CaptureEvidence>(shard)?;
        let pages = self.pages.shard::<PageEvidence>(shard)?.into_iter().filter(|page| page.moved_from.is_none());
        let pages: HashMap<String, PageEvidence> = pages.map(|page| (page.url.clone(), page)).collect();
        let kept = self.kept_bytes(shard)?;
        let mut updates = Vec::new();
        for captures in captures.chunk_by(|a, b| a.url == b.url) {
            let url = &captures[0].url;
            let page = pages.get(url);
            let known = states.entry(url.clone()).or_default();
            let share = page.and_then(|page| new_text_share(page, captures, kept.as_ref()?));
            for capture in captures {
                let update = self.capture(capture, known, page, share);
                updates.extend(update.map(|update| UpdateRow {
                    url: url.clone(),
                    source: by.source(url).to_owned(),
                    after: update.after,
                    before: update.before,
                    updated_at: update.updated_at,
                    updated_at_source: update.updated_at_source,
                    new_text_share: update.new_text_share,
                }));
            }
            if known.state.captures == 0 {
                states.remove(url);
            }
        }
        Ok(updates)
    }

    /// Takes in one capture of a URL; gives the update that it shows.
    fn capture(
        &self,
        capture: &CaptureEvidence,
        known: &mut KnownUrl,
        page: Option<&PageEvidence>,
        new_text_share: Option<f64>,
    ) -> Option<crate::stats::Update> {
        let fetched_at = capture.fetched_at?;
        let status = capture.status.and_then(|status| u16::try_from(status).ok());
        let evidence = Evidence::of(status, capture.revisit, capture.masked_text_digest);
        if let Evidence::Text(masked) = evidence {
            let same_text = capture.text_digest == known.text_digest;
            // With new rules, `ingest` has compared the page with the old one anew and says whether it looks the same.
            let looks_same = self.other_rules
                && page.is_some_and(|p| Some(p.text_digest) == capture.text_digest && p.change == Standing::Unchanged);
            if same_text || looks_same {
                known.state.rebase(masked);
            }
        }
        let update = known.state.observe(&Observation {
            fetched_at,
            evidence,
            last_modified: capture.last_modified.zip(capture.last_modified_source),
            new_text_share,
            signal: None,
        });
        if matches!(evidence, Evidence::Text(_)) && known.state.last_seen == Some(fetched_at) {
            known.text_digest = capture.text_digest;
        }
        update
    }

    /// Bytes of each changed page that lie in an old region.
    fn kept_bytes(&self, shard: u32) -> Result<Option<HashMap<String, u64>>> {
        let Some(regions) = &self.regions else { return Ok(None) };
        let mut kept: HashMap<String, u64> = HashMap::new();
        for regions in regions.shard::<RegionSpan>(shard)?.chunk_by(|a, b| a.url == b.url) {
            let (mut at, mut bytes) = (0, 0);
            for region in regions {
                bytes += (region.end - region.start.max(at)).max(0);
                at = at.max(region.end);
            }
            kept.insert(regions[0].url.to_string(), u64::try_from(bytes).unwrap_or(0));
        }
        Ok(Some(kept))
    }
}

/// Share of a changed page's text that lies in no old region. `match` compared the page with its old text, so that the
/// share is known only if the captures show no other text in between.
fn new_text_share(page: &PageEvidence, captures: &[CaptureEvidence], kept: &HashMap<String, u64>) -> Option<f64> {
    let texts: BTreeSet<Digest> = captures.iter().filter_map(|capture| capture.text_digest).collect();
    if texts.len() != 1 || !texts.contains(&page.text_digest) || page.text_bytes == 0 {
        return None;
    }
    page.old_text_digest.filter(|old| *old != page.text_digest)?;
    let kept = kept.get(&page.url).copied().unwrap_or(0);
    Some(1.0 - kept as f64 / page.text_bytes as f64)
}

/// Rows of sources that are one URL each.
fn stats_of_urls(states: &States, settings: &ScheduleSettings) -> Vec<UpdateStatsRow> {
    states.iter().map(|(url, known)| stats_row(url, &[&known.state], &settings.options.calendar)).collect()
}

/// Rows of sources that are several URLs, by the shard of the source's name, then by name.
fn stats_of_groups(
    store: &Store,
    states: &[(String, KnownUrl)],
    settings: &ScheduleSettings,
) -> BTreeMap<u32, Vec<UpdateStatsRow>> {
    let mut sources: BTreeMap<(u32, &str), Vec<(&str, &UrlState)>> = BTreeMap::new();
    for (url, known) in states {
        let source = settings.by.source(url);
        sources.entry((store.shard_of(source), source)).or_default().push((url, &known.state));
    }
    let rows: Vec<(u32, UpdateStatsRow)> = sources
        .into_par_iter()
        .map(|((shard, source), mut urls)| {
            urls.sort_unstable_by_key(|(url, _)| *url);
            let states: Vec<&UrlState> = urls.into_iter().map(|(_, state)| state).collect();
            (shard, stats_row(source, &states, &settings.options.calendar))
        })
        .collect();
    let mut shards: BTreeMap<u32, Vec<UpdateStatsRow>> = BTreeMap::new();
    for (shard, row) in rows {
        shards.entry(shard).or_default().push(row);
    }
    shards
}

fn stats_row(source: &str, states: &[&UrlState], calendar: &Calendar) -> UpdateStatsRow {
    let stats = summarise(source, states, calendar);
    let (rate, regularity, bursts) = (stats.rate, stats.regularity, stats.bursts);
    let [hour, day, week, month] = stats.phases.each_ref().map(PhaseModel::histogram);
    let [unchanged_hour, unchanged_day, unchanged_week, unchanged_month] = stats.phases.map(|model| model.unchanged_s);
    let [hour_utc, day_utc, week_utc, month_utc] = stats.histograms_utc;
    UpdateStatsRow {
        source: source.to_owned(),
        urls: as_i64(stats.urls),
        captures: as_i64(stats.captures),
        updates: as_i64(stats.updates),
        first_seen: stats.first_seen,
        last_seen: stats.last_seen,
        last_update: stats.last_update,
        rate_per_day: rate.per_day,
        rate_low: rate.low,
        rate_high: rate.high,
        rate_estimator: rate.estimator,
        period: stats.period,
        time_zone: calendar.name().to_owned(),
        phase_hour: hour,
        phase_day: day,
        phase_week: week,
        phase_month: month,
        phase_hour_utc: hour_utc,
        phase_day_utc: day_utc,
        phase_week_utc: week_utc,
        phase_month_utc: month_utc,
        unchanged_s: stats.unchanged_s,
        unchanged_hour_s: unchanged_hour,
        unchanged_day_s: unchanged_day,
        unchanged_week_s: unchanged_week,
        unchanged_month_s: unchanged_month,
        regularity: regularity.map(|r| r.rhythm),
        variation: regularity.map(|r| r.variation),
        poisson_p: regularity.map(|r| r.p_value),
        bursts: as_i64(bursts.bursts),
        burst_share: bursts.share,
        mean_life_s: stats.mean_life_s,
        crawl_gap_s: stats.crawl_gap_s,
        new_text_share: stats.new_text_share,
        warnings: (!stats.warnings.is_empty()).then(|| stats.warnings.join("; ")),
    }
}

fn as_i64(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
