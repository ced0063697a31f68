//! How many pages link to a page, for looks from outside a run. They wait for nobody: where the index is not where the
//! tables are, the links of all pages are counted.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;

use super::known::{Known, Texts};
use crate::manifests::Ingested;
use crate::model::{Digest, SnapshotId};
use crate::run::shards::{self, Shards};
use crate::stages::follow::{self, has_followed};
use crate::stages::link_target::page_of;
use crate::store::Store;
use crate::store::index::Index;
use crate::store::manifest::Manifest;
use crate::tables::ingest::{LinkPointer, LinkRow, TargetView};
use crate::tables::record::Table as _;

/// How many living pages other than itself link to each of these at a snapshot, in their order.
pub(crate) fn links_in(store: &Store, at: &SnapshotId, urls: &[&str]) -> Result<Vec<u64>> {
    // One that is damaged is as good as none; the next run makes it again.
    if let Ok(index) = Index::open(&store.index_folder())
        && has_followed::<Texts>(store, &index, at)?
    {
        let digests: Vec<Digest> = urls.iter().map(|url| Digest::of(url.as_bytes())).collect();
        let counts = Known { at: &index.moment(), index: &index }.counts(&digests)?;
        return Ok(counts.into_iter().map(|count| u64::try_from(count).unwrap_or(0)).collect());
    }
    let asked: HashSet<&str> = urls.iter().copied().collect();
    let mut counts: HashMap<String, u64> = HashMap::new();
    let work = |shard| counted(store, at, shard, &asked);
    shards::in_order(Shards::new(store.shards(), None), work, |_, found| {
        found.into_iter().for_each(|(url, count)| *counts.entry(url).or_default() += count);
        Ok(())
    })?;
    Ok(urls.iter().map(|url| counts.get(*url).copied().unwrap_or(0)).collect())
}

/// The same in a run, after the last of the snapshots that are done, from the index that the run keeps.
pub(crate) fn links_in_run(
    store: &Store,
    index: &Index,
    done: &[Manifest<Ingested>],
    urls: &[&str],
) -> Result<Vec<u64>> {
    follow::bring::<Texts>(store, index, done)?;
    let digests: Vec<Digest> = urls.iter().map(|url| Digest::of(url.as_bytes())).collect();
    let counts = Known { at: &index.moment(), index }.counts(&digests)?;
    Ok(counts.into_iter().map(|count| u64::try_from(count).unwrap_or(0)).collect())
}

/// The pages of a shard that link to each of those asked for.
fn counted(store: &Store, at: &SnapshotId, shard: u32, asked: &HashSet<&str>) -> Result<HashMap<String, u64>> {
    let pages = store.pages_at(at)?.shard::<LinkPointer>(store, shard)?;
    let partitions: BTreeMap<&SnapshotId, ()> = pages.iter().map(|page| (&page.content_snapshot, ())).collect();
    let mut counts: HashMap<String, u64> = HashMap::new();
    for lies_in in partitions.into_keys() {
        let partition = store.partition(LinkRow::NAME, lies_in)?;
        let (mut page, mut once) = (String::new(), HashSet::new());
        partition.visit::<TargetView<'_>>(&partition.part(shard), |link| {
            if link.url != page {
                link.url.clone_into(&mut page);
                once.clear();
            }
            let target = page_of(link.target);
            if *target == *link.url || !asked.contains(&*target) || !once.insert(target.clone().into_owned()) {
                return;
            }
            // A page may have other links by now, in a later snapshot.
            let holder = pages.binary_search_by(|page| (*page.url).cmp(link.url));
            if holder.is_ok_and(|holder| pages[holder].content_snapshot == *lies_in) {
                *counts.entry(target.into_owned()).or_default() += 1;
            }
        })?;
    }
    Ok(counts)
}
