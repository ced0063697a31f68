//! `match`: changed pages to `regions`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};
use rayon::prelude::*;

use super::pairs::{Pair, changed_pages};
use super::{Context, Stage, Task};
use crate::matching::{MatcherKind, Scratch};
use crate::model::{DigestBuilder, Region, SnapshotId};
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
}

fn match_snapshot(context: &Context<'_>, task: &Task) -> Result<Manifest> {
    let started = Instant::now();
    let (store, snapshot) = (context.store, &task.snapshot.id);
    let ingested = store.manifest("ingest", snapshot)?.context("it has not been ingested")?;
    let min_len = context.min_region();
    let matcher = context.matcher().map_or("none", MatcherKind::as_str);
    let mut staging = store.stage("match", snapshot)?;
    let mut writer = staging.writer::<RegionRow>()?;
    let shards: Vec<u32> = (0..store.shards()).collect();
    let bar = context.progress.count(&format!("match {snapshot}"), shards.len() as u64);
    let mut counts = Counts::default();
    // Memory of matchers, handed from shard to shard.
    let scratches = Mutex::new(Vec::new());
    for wave in shards.chunks(rayon::current_num_threads().max(1)) {
        let outputs: Vec<_> =
            wave.par_iter().map(|&shard| match_shard(context, snapshot, shard, min_len, &writer, &scratches)).collect();
        for output in outputs {
            let (groups, more) = output?;
            groups.into_iter().try_for_each(|group| writer.append(group))?;
            counts.pages += more.pages;
            counts.bytes += more.bytes;
            counts.old_bytes += more.old_bytes;
            counts.region_bytes += more.region_bytes;
            bar.add(1);
        }
    }
    let mut settings = DigestBuilder::new();
    settings.field(matcher.as_bytes()).number(u64::from(min_len));
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
        summary: serde_json::json!({ "matcher": matcher, "min_region": min_len, "changed": counts }),
    };
    staging.commit(&manifest, &[])?;
    Ok(manifest)
}

fn match_shard(
    context: &Context<'_>,
    snapshot: &SnapshotId,
    shard: u32,
    min_len: u32,
    writer: &PartitionWriter<RegionRow>,
    scratches: &Mutex<Vec<Scratch>>,
) -> Result<(Vec<EncodedGroup>, Counts)> {
    let mut counts = Counts::default();
    let mut groups = Vec::new();
    let mut rows = Vec::new();
    let Some(matcher) = context.matcher() else { return Ok((groups, counts)) };
    let mut scratch = scratches.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
    let mut regions: Vec<Region> = Vec::new();
    changed_pages(context.store, snapshot, shard, |pairs| {
        for pair in pairs {
            matcher.regions(&pair.old_text, &pair.text, min_len, &mut scratch, &mut regions);
            counts.pages += 1;
            counts.bytes += pair.text.len() as u64;
            counts.old_bytes += pair.old_text.len() as u64;
            counts.region_bytes += covered(&regions);
            add_rows(pair, &regions, matcher, &mut rows);
            if rows.len() >= GROUP_ROWS {
                for part in rows.chunks(GROUP_ROWS) {
                    groups.push(writer.encode(shard, part)?);
                }
                rows.clear();
            }
        }
        Ok(())
    })?;
    if !rows.is_empty() {
        groups.push(writer.encode(shard, &rows)?);
    }
    scratches.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    Ok((groups, counts))
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
fn covered(regions: &[Region]) -> u64 {
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
