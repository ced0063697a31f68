//! Pages that no page of a snapshot links to any more.
//!
//! A page can only have lost its last link if some page dropped a link to it, so those candidates are all that is
//! looked for in the links of the new snapshot: the target column is scanned, partition by partition as pages point to
//! them, until every candidate is found linked or all is read. Most are found in the first few thousand links.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::{PoisonError, RwLock};

use anyhow::Result;

use super::memory::pages_of;
use super::pages::page_of;
use crate::model::SnapshotId;
use crate::run::shards;
use crate::store::Store;
use crate::tables::ingest::{LinkPointer, LinkRow};
use crate::tables::record::Table as _;

/// Of the pages that a link to was dropped, those that no other page of the snapshot links to.
pub(super) fn unlinked(store: &Store, snapshot: &SnapshotId, lost: HashSet<String>) -> Result<HashSet<String>> {
    let left = RwLock::new(lost);
    let work = |shard| linked(store, snapshot, shard, &left.read().unwrap_or_else(PoisonError::into_inner));
    shards::in_order(store.shards(), None, work, |_, found| {
        let mut left = left.write().unwrap_or_else(PoisonError::into_inner);
        found.iter().for_each(|url| _ = left.remove(url));
        Ok(())
    })?;
    Ok(left.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Of some pages, those that a page of the shard links to.
fn linked(store: &Store, snapshot: &SnapshotId, shard: u32, asked: &HashSet<String>) -> Result<HashSet<String>> {
    if asked.is_empty() {
        return Ok(HashSet::new());
    }
    let pages = pages_of(store, snapshot)?.shard::<LinkPointer>(shard)?;
    let partitions: BTreeMap<&SnapshotId, ()> = pages.iter().map(|page| (&page.content_snapshot, ())).collect();
    let mut found: HashSet<String> = HashSet::new();
    for lies_in in partitions.into_keys() {
        let partition = store.partition(LinkRow::NAME, lies_in)?;
        for group in partition.groups_of(shard) {
            if found.len() == asked.len() {
                return Ok(found);
            }
            partition.visit_texts(&[group], ["url", "target"], |[url, target]| {
                let page: Cow<'_, str> = page_of(target);
                if asked.contains(&*page) && !found.contains(&*page) && *page != *url {
                    // Links of a page that has others by now do not count.
                    let at = pages.binary_search_by(|page| (*page.url).cmp(url));
                    if at.is_ok_and(|at| pages[at].content_snapshot == *lies_in) {
                        found.insert(page.into_owned());
                    }
                }
            })?;
        }
    }
    Ok(found)
}
