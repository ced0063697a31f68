//! `match`: changed pages to `regions`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};
use rayon::prelude::*;

use super::pairs::{Pair, changed_pages};
use super::plan::plan_for;
use super::timing::{Clock, Stopwatch};
use super::{Context, Stage, Task};
use crate::matching::{MatcherKind, Scratch};
use crate::model::{DigestBuilder, Region, SnapshotId};
use crate::plan::Plan;
use crate::plan::model::{BUCKETS, Speed, bucket};
use crate::store::manifest::Manifest;
use crate::store::parquet::{EncodedGroup, GROUP_ROWS, PartitionWriter};
use crate::tables::ingest::Page;
use crate::tables::matching::RegionRow;
use crate::tables::record::Table as _;

/// Regions shorter than this are of no use to a reader either; where no extractor says what it needs.
pub const DEFAULT_MIN_REGION: u32 = 32;

pub struct Match;

impl Stage for Match {
    fn name(&self) -> &'static str {
        "match"
    }

    fn about(&self) -> &'static str {
        "Find the old regions of changed pages"
    }

    fn reads(&self) -> &'static [&'static str] {
        &[Page::NAME]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[RegionRow::NAME]
    }

    fn run(&self, context: &Context<'_>, task: &Task, _: &[Manifest]) -> Result<Manifest> {
        match_snapshot(context, task).with_context(|| format!("snapshot {}", task.snapshot.id))
    }
}

/// What matching a snapshot came to.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
struct Counts {
    pages: u64,
    bytes: u64,
    old_bytes: u64,
    region_bytes: u64,
    #[serde(skip)]
    read: Speed,
    /// By class of page and matcher.
    #[serde(skip)]
    speeds: [[Speed; 4]; BUCKETS],
    /// Pages and their text by the matcher that was settled on.
    #[serde(skip)]
    settled: [Settled; 4],
}

/// Pages that a matcher's regions were taken of.
#[derive(Clone, Copy, Debug, Default)]
struct Settled {
    pages: u64,
    bytes: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, o: Self) {
        self.pages += o.pages;
        self.bytes += o.bytes;
        self.old_bytes += o.old_bytes;
        self.region_bytes += o.region_bytes;
        self.read.add(o.read);
        for (sums, more) in self.speeds.iter_mut().zip(o.speeds) {
            sums.iter_mut().zip(more).for_each(|(sum, more)| sum.add(more));
        }
        for (sum, more) in self.settled.iter_mut().zip(o.settled) {
            sum.pages += more.pages;
            sum.bytes += more.bytes;
        }
    }
}

impl Counts {
    /// What each matcher did and cost.
    fn matchers(&self) -> BTreeMap<&'static str, serde_json::Value> {
        let of = |(i, kind): (usize, MatcherKind)| {
            let seconds: f64 = self.speeds.iter().map(|class| class[i].seconds).sum();
            let Settled { pages, bytes } = self.settled[i];
            (kind.as_str(), serde_json::json!({ "pages": pages, "bytes": bytes, "seconds": seconds }))
        };
        MatcherKind::ALL.into_iter().enumerate().map(of).collect()
    }

    fn match_s(&self) -> f64 {
        self.speeds.iter().flatten().map(|speed| speed.seconds).sum()
    }
}

fn match_snapshot(context: &Context<'_>, task: &Task) -> Result<Manifest> {
    let started = Instant::now();
    let (store, snapshot) = (context.store, &task.snapshot.id);
    let ingested = store.manifest("ingest", snapshot)?.context("it has not been ingested")?;
    let (plan, _) = plan_for(context, snapshot)?;
    let mut staging = store.stage("match", snapshot)?;
    let mut writer = staging.writer::<RegionRow>()?;
    let shards: Vec<u32> = if plan.matches() { (0..store.shards()).collect() } else { Vec::new() };
    let bar = context.progress.count(&format!("match {snapshot}"), shards.len() as u64);
    let mut counts = Counts::default();
    // Memory of matchers, handed from shard to shard.
    let scratches = Mutex::new(Vec::new());
    for wave in shards.chunks(rayon::current_num_threads().max(1)) {
        let outputs: Vec<_> =
            wave.par_iter().map(|&shard| match_shard(context, snapshot, shard, &plan, &writer, &scratches)).collect();
        for output in outputs {
            let (groups, more) = output?;
            groups.into_iter().try_for_each(|group| writer.append(group))?;
            counts += more;
            bar.add(1);
        }
    }
    let mut settings = DigestBuilder::new();
    settings.field(plan.matcher_name().as_bytes()).number(u64::from(plan.min_region));
    let manifest = Manifest {
        stage: "match".into(),
        snapshot: snapshot.clone(),
        time: task.snapshot.time,
        ratoon: env!("CARGO_PKG_VERSION").into(),
        inputs: ingested.inputs,
        settings: settings.finish(),
        ignore: None,
        tables: BTreeMap::from([(RegionRow::NAME.to_owned(), writer.finish()?)]),
        base: false,
        seconds: started.elapsed().as_secs_f64(),
        summary: serde_json::json!({
            "matcher": plan.matcher_name(),
            "refined": plan.rules.is_some(),
            "min_region": plan.min_region,
            "changed": counts,
            "matchers": counts.matchers(),
            "match_s": counts.match_s(),
            "read": counts.read,
            "read_s": counts.read.seconds,
            "speeds": counts.speeds,
        }),
    };
    staging.commit(&manifest, &[])?;
    Ok(manifest)
}

fn match_shard(
    context: &Context<'_>,
    snapshot: &SnapshotId,
    shard: u32,
    plan: &Plan,
    writer: &PartitionWriter<RegionRow>,
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
            counts.pages += 1;
            counts.bytes += pair.text.len() as u64;
            counts.old_bytes += pair.old_text.len() as u64;
            counts.region_bytes += covered(&regions);
            if let Some(matcher) = matcher {
                add_rows(pair, &regions, matcher, &mut rows);
            }
            if rows.len() >= GROUP_ROWS {
                for part in rows.chunks(GROUP_ROWS) {
                    groups.push(writer.encode(shard, part)?);
                }
                rows.clear();
            }
        }
        Ok(())
    })?;
    counts.read = read;
    if !rows.is_empty() {
        groups.push(writer.encode(shard, &rows)?);
    }
    scratches.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    Ok((groups, counts))
}

/// Finds a page's regions by the plan's matcher, or by the one that its rules settle on once the edges are known.
fn match_page(
    pair: &Pair,
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
    let settled = |kind: MatcherKind| MatcherKind::ALL.iter().position(|other| *other == kind).unwrap_or(0);
    let first = if plan.rules.is_some() { MatcherKind::Edges } else { plan.matcher?.0 };
    let speed = run(first, scratch, regions);
    let residual = new.len() as u64 - covered(regions);
    let class = &mut counts.speeds[bucket(residual, new.len() as u64)];
    class[settled(first)].add(speed);
    let mut matcher = Some(first);
    if let Some(rules) = &plan.rules {
        matcher = rules.matcher(old.len() as u64, new.len() as u64, residual);
        match matcher {
            Some(MatcherKind::Edges) => {}
            Some(kind) => {
                let speed = run(kind, scratch, regions);
                class[settled(kind)].add(speed);
            }
            None => regions.clear(),
        }
    }
    if let Some(kind) = matcher {
        let settled = &mut counts.settled[settled(kind)];
        settled.pages += 1;
        settled.bytes += new.len() as u64;
    }
    matcher
}

fn add_rows(pair: Pair, regions: &[Region], matcher: MatcherKind, rows: &mut Vec<RegionRow>) {
    let url: Arc<str> = pair.row.url.into();
    let Some(old_snapshot) = pair.row.old_snapshot else { return };
    rows.extend(regions.iter().map(|region| RegionRow {
        url: Arc::clone(&url),
        matcher: matcher.as_str().to_owned(),
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
