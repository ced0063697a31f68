//! Deltas of any two snapshots, for a look: nothing is written to the store.

use std::collections::HashSet;
use std::path::Path;

use anyhow::Result;

use super::changed::{self, ChangedPage};
use super::night::NightDeltas;
use super::pages::{Pairing, Rules, ShardDelta};
use super::queries;
use super::seen::SeenShard;
use super::unlinked::unlinked;
use super::web_tables::TupleDeltas;
use crate::config::Pipeline;
use crate::manifests::Ingested;
use crate::matching::Scratch;
use crate::model::{Change, Coverage, Fate, SnapshotId};
use crate::report::difference::Difference;
use crate::run::inventory::find;
use crate::run::shards;
use crate::store::Store;
use crate::store::manifest::Manifest;
use crate::store::parquet::write_table;
use crate::store::texts::ShardReader;
use crate::tables::delta::{PageDelta, SeenRow};
use crate::tables::record::Table as _;

/// Compares two snapshots of the store, in either order.
pub(crate) fn between(pipeline: &Pipeline, store: &Store, from: &SnapshotId, to: &SnapshotId) -> Result<Difference> {
    let manifests = store.manifests::<Ingested>()?;
    let ids: Vec<SnapshotId> = manifests.iter().map(|manifest| manifest.snapshot.clone()).collect();
    let (old, new) = (find(&ids, from)?, find(&ids, to)?);
    let pairing = pairing(pipeline, store, &manifests, old, new);
    let known = KnownTexts::new(&manifests[..=new]);
    let outputs = shards::all(store.shards(), |shard| {
        let (changes, restructured) = changed::between(store, shard, from, to)?;
        let urls: HashSet<&str> = changes.iter().map(ChangedPage::url).collect();
        let mut seen = known.of(store, shard, &urls)?;
        let output = pairing.shard(shard, &changes, &mut seen, false, &mut Scratch::new())?;
        Ok(ShardDelta { restructured, ..output })
    })?;
    let mut difference = Difference::default();
    let mut night = NightDeltas::default();
    for mut output in outputs {
        difference.links.append(&mut output.links);
        difference.regions.append(&mut output.regions);
        night.add(output);
    }
    let lost = night.targets.lost();
    let unlinked = unlinked(store, &store.pages_at(to)?, lost)?;
    night.finish(store, from, to, &unlinked)?;
    difference.pages = night.pages;
    let TupleDeltas { nodes, links } = tuples(pipeline, store, from, to, &difference.pages)?;
    (difference.tuples, difference.tuple_links) = (nodes, links);
    Ok(difference)
}

/// When texts were first seen, without the index: from the newest base on.
struct KnownTexts<'a> {
    base: Option<&'a SnapshotId>,
    since: Vec<(&'a Manifest<Ingested>, &'a Manifest<Ingested>)>,
}

impl<'a> KnownTexts<'a> {
    fn new(upto: &'a [Manifest<Ingested>]) -> Self {
        let base = upto.iter().rposition(|manifest| manifest.summary.base);
        let since = base.map_or(&[][..], |base| &upto[base..]);
        let pairs = since.iter().zip(since.iter().skip(1)).collect();
        Self { base: base.map(|base| &upto[base].snapshot), since: pairs }
    }

    /// What is known of some URLs of a shard.
    fn of(&self, store: &Store, shard: u32, urls: &HashSet<&str>) -> Result<SeenShard> {
        let Some(base) = self.base else { return Ok(SeenShard::default()) };
        let mut lines = store.partition(SeenRow::NAME, base)?.shard::<SeenRow>(shard)?;
        lines.retain(|row| urls.contains(row.url.as_str()));
        let mut seen = SeenShard::new(lines)?;
        let mut reader = ShardReader::new(store, shard);
        for (before, now) in &self.since {
            let whole = now.summary.whole;
            let mut changes = changed::tonight(store, shard, &before.snapshot, &now.snapshot, whole)?;
            changes.retain(|change| urls.contains(change.url()));
            seen.advance(&mut reader, changes, &now.snapshot)?;
        }
        Ok(seen)
    }
}

/// How two snapshots, given by their positions, are to be compared.
fn pairing<'a>(
    pipeline: &Pipeline,
    store: &'a Store,
    manifests: &'a [Manifest<Ingested>],
    old: usize,
    new: usize,
) -> Pairing<'a> {
    let upto = &manifests[..=new.max(old)];
    let rules = if new == old + 1 {
        Rules::Following
    } else if upto.iter().all(|m| m.summary.ignore == manifests[0].summary.ignore) {
        Rules::Same
    } else {
        Rules::Anew(pipeline.corpus.mask())
    };
    // A partial crawl may have visited a page that is gone in any of the snapshots in between.
    let evidence: Vec<&SnapshotId> = if pipeline.corpus.coverage == Coverage::Partial && old < new {
        manifests[old + 1..=new].iter().rev().map(|manifest| &manifest.snapshot).collect()
    } else {
        vec![&manifests[new].snapshot]
    };
    Pairing { store, new: &manifests[new].snapshot, rules, evidence, watcher: None }
}

/// What changed in the answers to all queries; `pages` is what changed of the pages.
fn tuples(
    pipeline: &Pipeline,
    store: &Store,
    from: &SnapshotId,
    to: &SnapshotId,
    pages: &[PageDelta],
) -> Result<TupleDeltas> {
    if pipeline.queries.is_empty() {
        return Ok(TupleDeltas::default());
    }
    let (mut before, now) = (queries::web(store, from)?, queries::web(store, to)?);
    // The versions of the two webs may be digests by different `ignore` rules, which do not compare. Which pages are
    // modified was decided by one set of rules, so that all others get equal versions.
    let is_modified = |page: &&PageDelta| page.change == Fate::Changed(Change::Modified);
    let modified: HashSet<&str> = pages.iter().filter(is_modified).map(|page| &*page.url).collect();
    before.take_versions(&now, |url| modified.contains(url));
    let mut tuples = TupleDeltas::default();
    for declared in &pipeline.queries {
        let query = &declared.query;
        let old = queries::evaluate(pipeline, store, query, &before, from)?;
        if let (Ok(old), Ok(new)) = (old, queries::evaluate(pipeline, store, query, &now, to)?) {
            tuples.append(TupleDeltas::between(&old, &new));
        }
    }
    Ok(tuples)
}

/// Writes the tables of a difference to a folder.
pub(crate) fn write(dir: &Path, difference: &Difference) -> Result<()> {
    write_table(dir, &difference.pages)?;
    write_table(dir, &difference.links)?;
    write_table(dir, &difference.regions)?;
    write_table(dir, &difference.tuples)?;
    Ok(write_table(dir, &difference.tuple_links)?)
}
