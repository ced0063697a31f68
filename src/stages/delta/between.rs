//! Deltas of any two snapshots, for a look: nothing is written to the store.

use std::collections::HashSet;

use anyhow::{Context as _, Result};

use super::Night;
use super::memory::{self, Memories};
use super::pages::{Change, Pairing, Rules, changed};
use super::queries;
use crate::config::{Coverage, Pipeline};
use crate::manifests::Ingested;
use crate::matching::Scratch;
use crate::model::SnapshotId;
use crate::run::shards;
use crate::store::Store;
use crate::store::carried::Carried;
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
    let manifests = store.manifests::<Ingested>()?;
    let position = |id: &SnapshotId| {
        manifests.iter().position(|m| m.snapshot == *id).with_context(|| format!("no snapshot {id} in the store"))
    };
    let (old, new) = (position(from)?, position(to)?);
    let upto = &manifests[..=new.max(old)];
    let rules = if new == old + 1 {
        Rules::Following
    } else if upto.iter().all(|m| m.summary.ignore == manifests[0].summary.ignore) {
        Rules::Same
    } else {
        Rules::Anew(pipeline.corpus.mask())
    };
    let evidence: Vec<&SnapshotId> = if pipeline.corpus.coverage == Coverage::Partial && old < new {
        manifests[old + 1..=new].iter().rev().map(|manifest| &manifest.snapshot).collect()
    } else {
        vec![&manifests[new].snapshot]
    };
    let pairing = Pairing { store, old: from, new: to, rules, evidence, watcher: None };
    let seen = store.carried(Carried::Seen);
    let known = if seen.is_there(to) { Some(seen.open(to)?) } else { None };
    let outputs = shards::all(store.shards(), |shard| {
        let mut memories = match &known {
            Some(partition) => Memories::load(partition, shard)?,
            None => {
                let changes = changed(store, shard, Some(from), to)?;
                let urls: HashSet<&str> = changes.iter().map(Change::url).collect();
                memory::replay(store, shard, &manifests[..=new], Some(&|url| urls.contains(url)))?
            }
        };
        pairing.shard(shard, &mut memories, false, &mut Scratch::new())
    })?;
    let mut difference = Difference::default();
    let mut night = Night::default();
    for mut output in outputs {
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
