//! `stats`: captures to `updates` and `update_stats`.
//!
//! What is known of a URL lies in the index, so that a new snapshot reads its own captures only. `update_stats` has rows
//! of the sources of which the snapshot tells something new; a base has all.

mod known;
mod night;
mod rows;
mod signals;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::{Context as _, Result};

use self::known::{KnownUrl, States, evidence_at, put, scan_states};
pub(super) use self::known::{all_evidence, evidence_of, evidence_rows};
#[cfg(any(test, feature = "lab"))]
pub(crate) use self::known::{read_state, state_samples};
use self::night::NightCaptures;
use self::rows::{stats_of_groups, stats_of_urls};
use self::signals::Signals;
use super::follow::{self, Kept, Night};
use crate::manifests::{Ingested, Observed};
use crate::model::{Digest, SnapshotId, StageId};
use crate::run::shards::{self, Shards};
use crate::run::stage::{Asking, Context, Position, Ran, Stage, Task};
use crate::schedule::SourceBy;
use crate::store::Store;
use crate::store::index::{Index, Kind};
use crate::store::manifest::Manifest;
use crate::store::view::Read;
use crate::tables::delta::{PageDelta, RegionDelta};
use crate::tables::extract::MentionDelta;
use crate::tables::ingest::{Capture, Page};
use crate::tables::record::Table as _;
use crate::tables::stats::{EvidenceRow, UpdateRow, UpdateStatsRow};

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
            Read::Derived(PageDelta::NAME),
            Read::Derived(RegionDelta::NAME),
            Read::Derived(MentionDelta::NAME),
            Read::Manifest(StageId::Ingest),
        ]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[UpdateRow::NAME, UpdateStatsRow::NAME, EvidenceRow::NAME]
    }

    /// Edited settings are applied to the newest snapshot, though that was done before.
    fn is_done(&self, asking: Asking<'_>, at: Position<'_>) -> Result<bool> {
        let done = asking.store.done(StageId::Stats, at.snapshot)?;
        Ok(done.is_some_and(|done| !at.current || done.settings == asking.pipeline.schedule.sources_digest()))
    }

    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
        stats_snapshot(context, task, done).with_context(|| format!("snapshot {}", task.snapshot.id))
    }
}

/// What stats keeps in the index.
pub(super) struct UpdateEvidence;

impl Kept for UpdateEvidence {
    const STAGE: StageId = StageId::Stats;
    const FOLLOWS: StageId = StageId::Stats;
    const KINDS: &'static [Kind] = &[Kind::Evidence];

    fn load(store: &Store, index: &Index, base: &SnapshotId) -> Result<()> {
        let partition = store.partition(EvidenceRow::NAME, base)?;
        for shard in 0..store.shards() {
            let states = partition.shard(shard)?.into_iter().map(KnownUrl::from_row).collect::<Result<States>>()?;
            put(index, shard, &states)?;
        }
        Ok(())
    }

    fn replay(store: &Store, index: &Index, night: Night<'_>) -> Result<()> {
        let before = index.moment();
        let told = Signals::Told(store.partition(UpdateRow::NAME, &night.now.snapshot)?);
        let night = NightCaptures::open(store, night.now, night.before, told)?;
        for shard in 0..store.shards() {
            let seen = night.observe(&before, shard, &SourceBy::Url)?;
            put(index, shard, &seen.states)?;
        }
        Ok(())
    }
}

fn stats_snapshot(context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
    let started = Instant::now();
    let (store, snapshot) = (context.store, &task.snapshot.id);
    let ingested = store.manifest::<Ingested>(snapshot)?.context("it has not been ingested")?;
    let base = ingested.summary.base;
    let settings = &context.pipeline.schedule;
    // Where sources are others than before, or their times are read in another zone, no row that stands holds any more.
    let all = base || is_regrouped(store, done, settings.sources_digest())?;
    follow::bring::<UpdateEvidence>(store, context.index, done)?;
    let before = context.index.moment();
    let signals = Signals::asked(store, snapshot, settings.signal.as_ref())?;
    let night = NightCaptures::open(store, &ingested, done.last(), signals)?;
    let mut staging = store.stage(StageId::Stats, &task.snapshot)?;
    let mut writer = staging.writer::<UpdateRow>()?;
    let bar = context.progress.count(&format!("stats {snapshot}"), store.shards().into());
    let by_url = matches!(settings.by, SourceBy::Url);
    let mut stats_writer = staging.writer::<UpdateStatsRow>()?;
    // Sources of several URLs that the snapshot tells something new of.
    let mut touched: BTreeSet<String> = BTreeSet::new();
    let mut moved: BTreeSet<String> = BTreeSet::new();
    let encoders = (writer.encoder(), stats_writer.encoder());
    let work = |shard| {
        let seen = night.observe(&before, shard, &settings.by)?;
        let news = seen.states.iter().filter(|(url, _)| by_url && !all && seen.news.contains(*url));
        let rows = shards::packed(&encoders.1, shard, &stats_of_urls(news, settings))?;
        let updates = shards::packed(&encoders.0, shard, &seen.updates)?;
        Ok((seen, updates, rows))
    };
    shards::in_order(Shards::new(store.shards(), Some(&bar)), work, |shard, (seen, updates, rows)| {
        updates.into_iter().try_for_each(|group| writer.append(group))?;
        rows.into_iter().try_for_each(|group| stats_writer.append(group))?;
        moved.extend(seen.moved.iter().map(|url| settings.by.source(url).to_owned()));
        touched.extend(seen.news.iter().filter(|_| !by_url).map(|url| settings.by.source(url).to_owned()));
        put(context.index, shard, &seen.states)
    })?;
    let after = context.index.moment();
    if by_url && all {
        let stats = |shard| Ok(stats_of_urls(&scan_states(&after, shard, |_| true)?, settings));
        shards::written(&mut stats_writer, store.shards(), stats)?;
    } else if !by_url {
        let wanted = |url: &str| all || touched.contains(settings.by.source(url));
        let all = shards::all(store.shards(), |shard| scan_states(&after, shard, wanted))?;
        let all: Vec<(String, KnownUrl)> = all.into_iter().flatten().collect();
        for (shard, rows) in stats_of_groups(store, &all, settings) {
            stats_writer.write(shard, &rows)?;
        }
    }
    let mut tables = BTreeMap::from([
        (UpdateRow::NAME.to_owned(), writer.finish()?.slim()),
        (UpdateStatsRow::NAME.to_owned(), stats_writer.finish()?.whole_if(all)),
    ]);
    if base {
        let mut evidence = staging.writer::<EvidenceRow>()?;
        shards::written(&mut evidence, store.shards(), |shard| evidence_at(&after, shard))?;
        tables.insert(EvidenceRow::NAME.to_owned(), evidence.finish()?);
    }
    let mut manifest = Manifest::new(&task.snapshot, ingested.inputs, settings.sources_digest(), Observed { moved });
    manifest.follows = follow::lineage_before(store, StageId::Stats, done)?;
    manifest.tables = tables;
    manifest.seconds = started.elapsed().as_secs_f64();
    staging.commit(&mut manifest)?;
    follow::followed::<UpdateEvidence>(context.index, snapshot, manifest.lineage);
    Ran::new(&manifest)
}

/// Whether the snapshot before had other sources than those that `settings` stands for.
pub(super) fn is_regrouped(store: &Store, done: &[Manifest<Ingested>], settings: Digest) -> Result<bool> {
    let last = done.last().map(|last| store.manifest::<Observed>(&last.snapshot)).transpose()?.flatten();
    Ok(last.is_some_and(|last| last.settings != settings))
}
