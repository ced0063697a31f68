//! `extract`: pages, old mentions and regions to `mentions/<extractor>`, `extractions` and `mention_deltas`.
//!
//! For every page and extractor one of four ways is taken, all with the same result: rows are taken over (the text is
//! the old one), recycled (copied where an old region allows it, extracted elsewhere), brought up to date (only the
//! terms of a dictionary changed), or extracted from scratch. Records are joined from the mentions of their parts.

mod edits;
mod live;
mod rows;
mod saved;
mod shard;
mod sources;
pub mod verify;

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Instant;

use anyhow::{Context as _, Result};
use rayon::prelude::*;

use self::edits::Edits;
use self::live::Live;
pub(super) use self::live::declared_digest;
use self::shard::{Costs, CostsBy, Job, Output, extract_shard};
use super::plan::plan_for;
use super::{Context, Stage, Task};
use crate::model::{Digest, DigestBuilder, SnapshotId};
use crate::plan::model::{Speed, Spent};
use crate::store::Store;
use crate::store::manifest::Manifest;
use crate::store::parquet::{GROUP_ROWS, Partition};
use crate::tables::extract::{Extraction, MENTIONS, MentionDelta, MentionSchema, mentions_of};
use crate::tables::ingest::Page;
use crate::tables::matching::RegionRow;
use crate::tables::plan::PlanCost;
use crate::tables::record::Table as _;

pub struct Extract;

impl Stage for Extract {
    fn name(&self) -> &'static str {
        "extract"
    }

    fn about(&self) -> &'static str {
        "Extract mentions, copying what old pages already had"
    }

    fn reads(&self) -> &'static [&'static str] {
        &[Page::NAME, RegionRow::NAME]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[Extraction::NAME, MENTIONS, MentionDelta::NAME, PlanCost::NAME]
    }

    /// A new or changed extractor is run on the newest snapshot, though that was done before.
    fn is_done(&self, context: &Context<'_>, manifest: &Manifest, newest: bool) -> bool {
        let declared = &manifest.summary["declared"];
        let same = |extractor: &crate::pipeline::config::DeclaredExtractor| {
            declared[&extractor.config.name] == declared_digest(extractor).to_string()
        };
        let restarted = !context.restarted.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        !restarted && (!newest || context.pipeline.extractors.iter().all(same))
    }

    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest]) -> Result<Manifest> {
        run(context, task, done).with_context(|| format!("snapshot {}", task.snapshot.id))
    }
}

/// The fingerprints that an extract manifest names.
fn fingerprints(manifest: Option<&Manifest>, live: &Live) -> Vec<Option<Digest>> {
    let of = |name: &str| manifest?.summary["fingerprints"][name].as_str().and_then(Digest::from_hex);
    live.all.iter().map(|live| of(&live.name)).collect()
}

fn run(context: &Context<'_>, task: &Task, done: &[Manifest]) -> Result<Manifest> {
    let started = Instant::now();
    let (store, snapshot) = (context.store, &task.snapshot.id);
    let matched = store.manifest("match", snapshot)?.context("it has not been matched")?;
    let live = Live::new(context.pipeline)?;
    let earlier = store.manifest("extract", snapshot)?;
    let previous = match done.last() {
        Some(last) => store.manifest("extract", &last.snapshot)?,
        None => None,
    };
    let (now, before) = (fingerprints(earlier.as_ref(), &live), fingerprints(previous.as_ref(), &live));
    let same = |list: &[Option<Digest>]| -> Vec<bool> {
        live.all.iter().zip(list).map(|(live, print)| *print == Some(live.fingerprint)).collect()
    };
    let last_known: Vec<Option<Digest>> = now.iter().zip(&before).map(|(now, before)| now.or(*before)).collect();
    let edits = Edits::new(store, &live, &last_known)?;
    announce(&live, &edits, &last_known, snapshot, earlier.is_some() || previous.is_some());
    let (plan, planned) = plan_for(context, snapshot)?;
    let order = done.iter().map(|manifest| &manifest.snapshot).chain([snapshot]).cloned().zip(0..).collect();
    let job = Job {
        store,
        live: &live,
        edits: &edits,
        snapshot,
        plan: &plan,
        kept: if earlier.is_some() { kept(context, &live, &same(&now)) } else { vec![false; live.all.len()] },
        previous: previous.as_ref().map(|manifest| (manifest.snapshot.clone(), same(&before))),
        order,
    };
    let (tables, costs, read, staging) = write(context, &job, &planned, &matched)?;
    let mut settings = DigestBuilder::new();
    live.all.iter().for_each(|live| {
        settings.field(&live.fingerprint.0);
    });
    let declared: BTreeMap<&str, String> = context
        .pipeline
        .extractors
        .iter()
        .map(|extractor| (extractor.config.name.as_str(), declared_digest(extractor).to_string()))
        .collect();
    let by_name = || live.all.iter().map(|live| &*live.name).zip(&costs);
    let spent: BTreeMap<&str, Spent> = by_name().map(|(name, costs)| (name, shard::spent(costs))).collect();
    let totals: BTreeMap<&str, Costs> = by_name().map(|(name, costs)| (name, shard::total(costs))).collect();
    let manifest = Manifest {
        stage: "extract".into(),
        snapshot: snapshot.clone(),
        time: task.snapshot.time,
        ratoon: env!("CARGO_PKG_VERSION").into(),
        inputs: matched.inputs,
        settings: settings.finish(),
        ignore: None,
        tables,
        base: false,
        seconds: started.elapsed().as_secs_f64(),
        summary: serde_json::json!({
            "declared": declared,
            "fingerprints": live.fingerprints(),
            "matcher": plan.matcher_name(),
            "workers": live.workers(),
            "costs": totals,
            "spent": spent,
            "read": read,
            "read_s": read.seconds,
            "saved": saved::saved(context.pipeline, &planned, &matched, &totals, &spent),
        }),
    };
    edits::remember(store, &live)?;
    for live in &live.all {
        migrate(store, &live.name, &live.schema, snapshot)?;
    }
    staging.commit(&manifest, &[])?;
    if earlier.is_some() {
        let anew = live.all.iter().zip(&job.kept).filter(|(_, kept)| !**kept).map(|(live, _)| live.name.to_string());
        context.restarted.lock().unwrap_or_else(PoisonError::into_inner).extend(anew);
    }
    Ok(manifest)
}

/// Of the extractors that ran on this snapshot as they are now, those whose sources are still what they were.
fn kept(context: &Context<'_>, live: &Live, same: &[bool]) -> Vec<bool> {
    let restarted = context.restarted.lock().unwrap_or_else(PoisonError::into_inner);
    let stale = |i: usize| restarted.contains(&*live.all[i].name);
    (0..live.all.len()).map(|i| same[i] && !stale(i) && !live.all[i].parts.iter().any(|&part| stale(part))).collect()
}

/// Says in one line which extractors start anew, once there is something they could have gone on from.
fn announce(live: &Live, edits: &Edits<'_>, before: &[Option<Digest>], snapshot: &SnapshotId, started: bool) {
    for (i, live) in live.all.iter().enumerate() {
        match before[i] {
            None if started => log::warn!("extractor '{}' is new: starts with snapshot {snapshot}", live.name),
            Some(print) if print != live.fingerprint && edits.of(i).is_none() => {
                log::warn!("extractor '{}' changed: starts from scratch with snapshot {snapshot}", live.name);
            }
            _ => {}
        }
    }
}

type Written<'a> = (BTreeMap<String, u64>, Vec<CostsBy>, Speed, crate::store::staging::Staging<'a>);

/// Extracts shards in parallel, a few at a time, and writes them in order.
fn write<'a>(context: &Context<'a>, job: &Job<'_>, planned: &Manifest, matched: &Manifest) -> Result<Written<'a>> {
    let store = context.store;
    let mut staging = store.stage("extract", job.snapshot)?;
    let mut extractions = staging.writer::<Extraction>()?;
    let mut deltas = staging.writer::<MentionDelta>()?;
    let mut mentions = Vec::new();
    for live in &job.live.all {
        mentions.push(staging.batch_writer(&mentions_of(&live.name), live.schema.arrow())?);
    }
    let mut costs = vec![CostsBy::new(); job.live.all.len()];
    let mut read = Speed::default();
    let shards: Vec<u32> = (0..store.shards()).collect();
    let bar = context.progress.count(&format!("extract {}", job.snapshot), shards.len() as u64);
    for wave in shards.chunks(rayon::current_num_threads().max(1)) {
        let outputs: Vec<(u32, Result<Output>)> =
            wave.par_iter().map(|&shard| (shard, extract_shard(job, shard))).collect();
        for (shard, output) in outputs {
            let output = output?;
            extractions.write(shard, &output.extractions)?;
            deltas.write(shard, &output.deltas)?;
            for ((writer, live), rows) in mentions.iter_mut().zip(&job.live.all).zip(&output.mentions) {
                for part in rows.chunks(GROUP_ROWS) {
                    let group = writer.encode(shard, &live.schema.encode(part))?;
                    writer.append(group)?;
                }
            }
            read.add(output.read);
            for (sums, more) in costs.iter_mut().zip(output.costs) {
                more.into_iter().for_each(|(served, more)| *sums.entry(served).or_default() += more);
            }
            bar.add(1);
        }
    }
    let mut plan_costs = staging.writer::<PlanCost>()?;
    plan_costs.write(0, &saved::cost_rows(job.live, &costs, planned, matched))?;
    let mut tables = BTreeMap::from([
        (PlanCost::NAME.to_owned(), plan_costs.finish()?),
        (Extraction::NAME.to_owned(), extractions.finish()?),
        (MentionDelta::NAME.to_owned(), deltas.finish()?),
    ]);
    for (writer, live) in mentions.into_iter().zip(&job.live.all) {
        tables.insert(mentions_of(&live.name), writer.finish()?);
    }
    Ok((tables, costs, read, staging))
}

/// Gives earlier partitions of a mentions table the schema of today, missing columns NULL: a table has one schema.
///
/// That may lose what another definition had found, so such a partition stops being a source of mentions: its manifest
/// forgets the extractor first.
fn migrate(store: &Store, extractor: &str, schema: &MentionSchema, current: &SnapshotId) -> Result<()> {
    let table = mentions_of(extractor);
    let arrow = schema.arrow();
    for id in store.partitions(&table)?.into_iter().filter(|id| id != current) {
        let file = store.partition_file(&table, &id);
        let partition = Partition::open(&file)?;
        if partition.schema().fields() == arrow.fields() {
            continue;
        }
        if let Some(mut manifest) = store.manifest("extract", &id)? {
            for names in ["fingerprints", "declared"] {
                if let Some(names) = manifest.summary[names].as_object_mut() {
                    names.remove(extractor);
                }
            }
            store.replace_manifest(&manifest)?;
        }
        store.rewrite(&file, arrow.clone(), |shard, writer| {
            for batch in partition.batches(shard)? {
                let rows = schema
                    .decode(&batch)
                    .map_err(|source| crate::store::StoreError::Column { path: file.clone(), source })?;
                let group = writer.encode(shard, &schema.encode(&rows))?;
                writer.append(group)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}
