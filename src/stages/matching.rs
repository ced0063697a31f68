//! `match`: changed pages to `regions`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::pairs::{Pair, changed_pages};
use super::plan::plan_for;
use crate::manifests::{Ingested, Matched, MatchedPages, MatcherCost};
use crate::matching::{MatcherKind, PerMatcher, Scratch};
use crate::model::{DigestBuilder, Region, SnapshotId, StageId};
use crate::plan::Plan;
use crate::plan::model::{BUCKETS, Speed, bucket};
use crate::run::clock::{Clock, Stopwatch};
use crate::run::hands::{Hands, Pass};
use crate::run::shards::{self, Handing, Shards};
use crate::run::stage::{Context, Ran, Stage, Task};
use crate::store::manifest::Manifest;
use crate::store::parquet::{EncodedGroup, Encoder, GROUP_ROWS};
use crate::store::passes::Parcel;
use crate::store::view::Read;
use crate::tables::ingest::Page;
use crate::tables::matching::RegionRow;
use crate::tables::record::Table as _;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// Regions shorter than this are of no use to a reader either; where no extractor says what it needs.
pub(crate) const DEFAULT_MIN_REGION: u32 = 32;

pub(crate) struct Match;

impl Stage for Match {
    fn id(&self) -> StageId {
        StageId::Match
    }

    fn about(&self) -> &'static str {
        "Find the old regions of changed pages"
    }

    fn reads(&self) -> &'static [Read] {
        &[Read::Table(Page::NAME), Read::Manifest(StageId::Ingest), Read::Manifest(StageId::Plan)]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[RegionRow::NAME]
    }

    fn run(&self, context: &Context<'_>, task: &Task, _: &[Manifest<Ingested>]) -> Result<Ran> {
        match_snapshot(context, task).with_context(|| format!("snapshot {}", task.snapshot.id))
    }
}

/// What matching a snapshot came to.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Counts {
    changed: MatchedPages,
    read: Speed,
    /// By class of page.
    speeds: [PerMatcher<Speed>; BUCKETS],
    /// Pages and their text by the matcher whose regions were taken.
    settled: PerMatcher<MatcherCost>,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.changed.pages += other.changed.pages;
        self.changed.bytes += other.changed.bytes;
        self.changed.old_bytes += other.changed.old_bytes;
        self.changed.region_bytes += other.changed.region_bytes;
        self.read.add(other.read);
        for (sums, more) in self.speeds.iter_mut().zip(&other.speeds) {
            sums.iter_mut().for_each(|(kind, sum)| sum.add(more[kind]));
        }
        for (kind, sum) in self.settled.iter_mut() {
            sum.pages += other.settled[kind].pages;
            sum.bytes += other.settled[kind].bytes;
        }
    }
}

impl Counts {
    /// What each matcher did and cost.
    fn matchers(&self) -> PerMatcher<MatcherCost> {
        PerMatcher::from_fn(|kind| {
            let seconds = self.speeds.iter().map(|class| class[kind].seconds).sum();
            MatcherCost { seconds, ..self.settled[kind] }
        })
    }

    fn match_s(&self) -> f64 {
        self.speeds.iter().flat_map(PerMatcher::iter).map(|(_, speed)| speed.seconds).sum()
    }
}

fn match_snapshot(context: &Context<'_>, task: &Task) -> Result<Ran> {
    let started = Instant::now();
    let (store, snapshot) = (context.store, &task.snapshot.id);
    let ingested = store.manifest::<Ingested>(snapshot)?.context("it has not been ingested")?;
    let plan = plan_for(context, snapshot)?.summary.plan;
    let mut staging = store.stage(StageId::Match, &task.snapshot)?;
    let mut writer = staging.writer::<RegionRow>()?;
    let encoder = writer.encoder().only_gathers(matches!(context.hands, Hands::Worker(_)));
    let count = if plan.matches() { store.shards() } else { 0 };
    let bar = context.progress.count(&format!("match {snapshot}"), count.into());
    let mut counts = Counts::default();
    // Memory of matchers, handed from shard to shard.
    let scratches = Mutex::new(Vec::new());
    shards::handed(
        context,
        Pass::Match,
        Shards::new(count, Some(&bar)),
        |shard| match_shard(context, snapshot, shard, &plan, &encoder, &scratches),
        &Handing { pack, unpack: |shard, parcel| unpack(shard, parcel, &encoder) },
        |_, (groups, more)| {
            groups.into_iter().try_for_each(|group| writer.append(group))?;
            counts += more;
            Ok(())
        },
    )?;
    let mut settings = DigestBuilder::new();
    settings.field(plan.served().as_str().as_bytes()).number(u64::from(plan.min_region));
    let summary = Matched {
        matcher: plan.served(),
        refined: plan.rules.is_some(),
        min_region: plan.min_region,
        changed: counts.changed,
        matchers: counts.matchers(),
        match_s: counts.match_s(),
        read: counts.read,
        read_s: counts.read.seconds,
        speeds: counts.speeds,
    };
    let mut manifest = Manifest::new(&task.snapshot, ingested.inputs, settings.finish(), summary);
    manifest.tables = BTreeMap::from([(RegionRow::NAME.to_owned(), writer.finish()?.slim())]);
    manifest.seconds = started.elapsed().as_secs_f64();
    staging.commit(&mut manifest)?;
    Ran::new(&manifest)
}

/// The regions of a shard, for whoever takes them.
fn pack((groups, counts): (Vec<EncodedGroup>, Counts)) -> Result<Parcel> {
    let mut parcel = Parcel::default();
    parcel.put_groups(RegionRow::NAME, groups)?;
    parcel.put_values(&counts)?;
    Ok(parcel)
}

fn unpack(shard: u32, mut parcel: Parcel, encoder: &Encoder<RegionRow>) -> Result<(Vec<EncodedGroup>, Counts)> {
    Ok((parcel.take_groups(RegionRow::NAME, shard, encoder)?, parcel.take_values()?))
}

fn match_shard(
    context: &Context<'_>,
    snapshot: &SnapshotId,
    shard: u32,
    plan: &Plan,
    encoder: &Encoder<RegionRow>,
    scratches: &Mutex<Vec<Scratch>>,
) -> Result<(Vec<EncodedGroup>, Counts)> {
    let mut counts = Counts::default();
    let mut groups = Vec::new();
    let mut rows = Vec::new();
    let mut scratch = scratches.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
    let mut regions: Vec<Region> = Vec::new();
    let read = changed_pages(context.store, snapshot, shard, |pairs| {
        for pair in pairs {
            let matcher = match_page(&pair, plan, &mut scratch, &mut regions, &mut counts);
            counts.changed.pages += 1;
            counts.changed.bytes += pair.text.len() as u64;
            counts.changed.old_bytes += pair.old_text.len() as u64;
            counts.changed.region_bytes += covered(&regions);
            if let Some(matcher) = matcher {
                add_rows(&pair, &regions, matcher, &mut rows);
            }
            if rows.len() >= GROUP_ROWS {
                for part in rows.chunks(GROUP_ROWS) {
                    groups.push(encoder.encode(shard, part)?);
                }
                rows.clear();
            }
        }
        Ok(())
    })?;
    counts.read = read;
    if !rows.is_empty() {
        groups.push(encoder.encode(shard, &rows)?);
    }
    scratches.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    Ok((groups, counts))
}

/// Finds a page's regions by the plan's matcher, or by the one that its rules settle on once the edges are known.
fn match_page(
    pair: &Pair<'_>,
    plan: &Plan,
    scratch: &mut Scratch,
    regions: &mut Vec<Region>,
    counts: &mut Counts,
) -> Option<MatcherKind> {
    let (old, new) = (pair.old_text.as_str(), pair.text.as_str());
    let bytes = (old.len() + new.len()) as u64;
    let run = |kind: MatcherKind, scratch: &mut Scratch, regions: &mut Vec<Region>| {
        let watch = Stopwatch::start(Clock::Own);
        kind.regions(old, new, plan.min_region, scratch, regions);
        Speed { bytes, seconds: watch.seconds() }
    };
    let first = if plan.rules.is_some() { MatcherKind::Edges } else { plan.matcher? };
    let speed = run(first, scratch, regions);
    let residual = new.len() as u64 - covered(regions);
    let class = &mut counts.speeds[bucket(residual, new.len() as u64)];
    class[first].add(speed);
    let mut matcher = Some(first);
    if let Some(rules) = &plan.rules {
        matcher = rules.matcher(old.len() as u64, new.len() as u64, residual);
        match matcher {
            Some(MatcherKind::Edges) => {}
            Some(kind) => {
                let speed = run(kind, scratch, regions);
                class[kind].add(speed);
            }
            None => regions.clear(),
        }
    }
    if let Some(kind) = matcher {
        let settled = &mut counts.settled[kind];
        settled.pages += 1;
        settled.bytes += new.len() as u64;
    }
    matcher
}

fn add_rows(pair: &Pair<'_>, regions: &[Region], matcher: MatcherKind, rows: &mut Vec<RegionRow>) {
    let url: Arc<str> = pair.row.url.as_str().into();
    let Some(old_snapshot) = &pair.row.old_snapshot else { return };
    rows.extend(regions.iter().map(|region| RegionRow {
        url: Arc::clone(&url),
        matcher,
        start: region.start.into(),
        end: region.end.into(),
        old_start: region.old_start.into(),
        old_snapshot: old_snapshot.clone(),
    }));
}

/// Bytes in at least one region; regions come by start.
pub(super) fn covered(regions: &[Region]) -> u64 {
    let mut at = 0;
    let mut bytes = 0;
    for region in regions {
        bytes += u64::from(region.end.saturating_sub(region.start.max(at)));
        at = at.max(region.end);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_count_once() {
        let region = |start, end| Region { start, end, old_start: 0 };
        assert_eq!(covered(&[region(0, 5), region(2, 4), region(3, 8), region(10, 11)]), 9);
        assert_eq!(covered(&[]), 0);
    }
}
