//! Deltas of any two snapshots, for a look: nothing is written to the store.

use std::collections::HashSet;

use anyhow::{Context as _, Result};
use rayon::prelude::*;

use super::Night;
use super::memory::{self, Memories};
use super::pages::{Change, Pairing, Rules, changed};
use super::queries;
use crate::matching::Scratch;
use crate::model::SnapshotId;
use crate::pipeline::config::{Coverage, Pipeline};
use crate::store::Store;
use crate::store::manifest::Manifest;
use crate::store::parquet::Partition;
use crate::tables::delta::{LinkDelta, PageDelta, RegionDelta, TupleDelta};

/// What lies between two snapshots. Rows by shard, then URL.
#[derive(Default)]
pub struct Difference {
    pub pages: Vec<PageDelta>,
    pub links: Vec<LinkDelta>,
    pub regions: Vec<RegionDelta>,
    pub tuples: Vec<TupleDelta>,
}

/// Compares two snapshots of the store, in either order.
pub fn between(pipeline: &Pipeline, store: &Store, from: &SnapshotId, to: &SnapshotId) -> Result<Difference> {
    let manifests = store.manifests("ingest")?;
    let position = |id: &SnapshotId| {
        manifests.iter().position(|m| m.snapshot == *id).with_context(|| format!("no snapshot {id} in the store"))
    };
    let (old, new) = (position(from)?, position(to)?);
    let upto = &manifests[..=new.max(old)];
    let rules = if new == old + 1 {
        Rules::Following
    } else if upto.iter().all(|m| m.ignore_digest() == manifests[0].ignore_digest()) {
        Rules::Same
    } else {
        Rules::Anew(pipeline.corpus.mask())
    };
    let evidence: Vec<&Manifest> = if pipeline.corpus.coverage == Coverage::Partial && old < new {
        manifests[old + 1..=new].iter().rev().collect()
    } else {
        vec![&manifests[new]]
    };
    let pairing = Pairing { store, old: from, new: to, rules, evidence, watcher: None };
    let seen = store.seen();
    let known = if seen.is_there(to) { Some(Partition::open(&seen.file(to))?) } else { None };
    let shards: Vec<u32> = (0..store.shards()).collect();
    let outputs: Vec<Result<_>> = shards
        .par_iter()
        .map(|&shard| {
            let mut memories = match &known {
                Some(partition) => Memories::load(partition, shard)?,
                None => {
                    let changes = changed(store, shard, Some(from), to)?;
                    let urls: HashSet<&str> = changes.iter().map(Change::url).collect();
                    memory::replay(store, shard, &manifests[..=new], Some(&|url| urls.contains(url)))?
                }
            };
            pairing.shard(shard, &mut memories, false, &mut Scratch::new())
        })
        .collect();
    let mut difference = Difference::default();
    let mut night = Night::default();
    for output in outputs {
        let mut output = output?;
        difference.links.append(&mut output.links);
        difference.regions.append(&mut output.regions);
        night.add(output);
    }
    night.finish(store, from, to)?;
    difference.pages = night.pages;
    if !pipeline.queries.is_empty() {
        let (mut before, now) = (queries::web(store, from)?, queries::web(store, to)?);
        // Digests may have been made by other `ignore` rules; what is modified was told by one set of them.
        let modified: HashSet<&str> =
            difference.pages.iter().filter(|page| page.change == "modified").map(|page| &*page.url).collect();
        before.take_versions(&now, |url| modified.contains(url));
        for declared in &pipeline.queries {
            let query = &declared.query;
            let old = queries::evaluate(store, query, &before, from)?;
            if let (Ok(old), Ok(new)) = (old, queries::evaluate(store, query, &now, to)?) {
                difference.tuples.extend(queries::delta_rows(query.name(), &old, &new));
            }
        }
    }
    Ok(difference)
}
