//! Pages that no page of a snapshot links to any more.
//!
//! A page can only have lost its last link if some page dropped a link to it, so those candidates are all that is
//! looked for in the links of the new snapshot: the target column is scanned, partition by partition as pages point to
//! them, until every candidate is found linked or all is read. Most are found in the first few thousand links.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use anyhow::Result;
use rayon::prelude::*;

use super::memory::pages_of;
use super::pages::page_of;
use crate::model::SnapshotId;
use crate::store::Store;
use crate::store::parquet::Partition;
use crate::tables::ingest::{LinkPointer, LinkRow};
use crate::tables::record::Table as _;

/// Of the pages that a link to was dropped, those that no other page of the snapshot links to.
pub(super) fn unlinked(store: &Store, snapshot: &SnapshotId, lost: HashSet<String>) -> Result<HashSet<String>> {
    let mut left = lost;
    let shards: Vec<u32> = (0..store.shards()).collect();
    for wave in shards.chunks(rayon::current_num_threads().max(1)) {
        if left.is_empty() {
            break;
        }
        let found: Vec<Result<HashSet<String>>> =
            wave.par_iter().map(|&shard| linked(store, snapshot, shard, &left)).collect();
        for found in found {
            for url in found? {
                left.remove(&url);
            }
        }
    }
    Ok(left)
}

/// Of some pages, those that a page of the shard links to.
fn linked(store: &Store, snapshot: &SnapshotId, shard: u32, asked: &HashSet<String>) -> Result<HashSet<String>> {
    let pages = pages_of(store, snapshot)?.shard::<LinkPointer>(shard)?;
    let partitions: BTreeMap<&SnapshotId, ()> = pages.iter().map(|page| (&page.content_snapshot, ())).collect();
    let mut found: HashSet<String> = HashSet::new();
    for lies_in in partitions.into_keys() {
        let partition = Partition::open(&store.partition_file(LinkRow::NAME, lies_in))?;
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
