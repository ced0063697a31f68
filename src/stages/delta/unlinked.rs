//! Pages that no page of a snapshot links to any more, found without counts of links: for a look at any two snapshots.
//!
//! A page can only have lost its last link if some page dropped a link to it, so those candidates are all that is
//! looked for in the links of the new snapshot: the target column is scanned, partition by partition as pages point to
//! them, until every candidate is found linked or all is read. Most are found in the first few thousand links.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{PoisonError, RwLock};

use anyhow::Result;

use crate::model::SnapshotId;
use crate::run::shards::{self, Shards};
use crate::stages::link_target::page_of;
use crate::store::Store;
use crate::store::state::Layers;
use crate::tables::ingest::{LinkPointer, LinkRow, TargetView};
use crate::tables::record::Table as _;

/// Those of the pages that lost a link to which no other page of the snapshot links.
pub(super) fn unlinked(store: &Store, pages: &Layers, lost_links: BTreeSet<String>) -> Result<BTreeSet<String>> {
    let left = RwLock::new(lost_links);
    let work = |shard| linked(store, pages, shard, &left.read().unwrap_or_else(PoisonError::into_inner));
    shards::in_order(Shards::new(store.shards(), None), work, |_, found| {
        let mut left = left.write().unwrap_or_else(PoisonError::into_inner);
        found.iter().for_each(|url| _ = left.remove(url));
        Ok(())
    })?;
    Ok(left.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Those of the pages `asked` for to which another page links that is in the shard.
fn linked(store: &Store, pages: &Layers, shard: u32, asked: &BTreeSet<String>) -> Result<HashSet<String>> {
    if asked.is_empty() {
        return Ok(HashSet::new());
    }
    let pages = pages.shard::<LinkPointer>(store, shard)?;
    let partitions: BTreeMap<&SnapshotId, ()> = pages.iter().map(|page| (&page.content_snapshot, ())).collect();
    let mut found: HashSet<String> = HashSet::new();
    for lies_in in partitions.into_keys() {
        let partition = store.partition(LinkRow::NAME, lies_in)?;
        for piece in partition.part(shard).pieces() {
            if found.len() == asked.len() {
                return Ok(found);
            }
            partition.visit::<TargetView<'_>>(&piece, |link| {
                let page: Cow<'_, str> = page_of(link.target);
                if asked.contains(&*page) && !found.contains(&*page) && *page != *link.url {
                    // A page may have other links by now, in a later snapshot.
                    let at = pages.binary_search_by(|page| (*page.url).cmp(link.url));
                    if at.is_ok_and(|at| pages[at].content_snapshot == *lies_in) {
                        found.insert(page.into_owned());
                    }
                }
            })?;
        }
    }
    Ok(found)
}
