//! After an outage: pages whose extraction failed, and the texts of the last pages of their URLs that were extracted well.
//!
//! What failed is tried again in every later snapshot, also in one that did not touch the page, so that an outage heals by
//! itself. What is found then is compared with the last good extraction and copied from there, as if the outage had not
//! been.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::job::Job;
use super::ways::{GoodText, Way};
use crate::model::SnapshotId;
use crate::model::maps::{HashMap, HashSet};
use crate::store::Store;
use crate::store::state::Placed;
use crate::store::texts::rows_of;
use crate::tables::ingest::{Page, PagePair, PagePointer, PageText, UrlOnly};
use crate::tables::record::Table as _;

/// The pages of a shard that some extractor failed on and that the snapshot, a slim one, did not touch. `touched`: the
/// URLs of those that it did.
pub(super) fn still_failing(job: &Job<'_>, shard: u32, touched: &HashSet<&str>) -> Result<Vec<Placed<PagePair>>> {
    let mut left: BTreeSet<String> = job.known.failing(shard)?.into_iter().collect();
    left.retain(|url| !touched.contains(url.as_str()));
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let tonight = job.store.partition(Page::NAME, job.snapshot)?;
    tonight.visit::<UrlOnly<'_>>(&tonight.deleted(shard), |row| _ = left.remove(row.url))?;
    let mut found = Vec::new();
    for snapshot in job.store.pages_at(job.snapshot)?.snapshots() {
        let urls: Vec<&str> = left.iter().map(String::as_str).collect();
        let rows: Vec<PagePair> =
            rows_of(job.store, shard, Page::NAME, snapshot, &urls)?.into_iter().flatten().collect();
        for row in rows {
            left.remove(&row.url);
            found.push(Placed { snapshot: snapshot.clone(), row });
        }
        if left.is_empty() {
            break;
        }
    }
    Ok(found)
}

/// Texts of pages that were extracted well, by URL.
#[derive(Default)]
pub(super) struct GoodTexts {
    texts: HashMap<(String, GoodText), String>,
}

impl GoodTexts {
    /// `None` if it was pruned.
    pub(super) fn of(&self, url: &str, good: &GoodText) -> Option<&str> {
        self.texts.get(&(url.to_owned(), good.clone())).map(String::as_str)
    }

    /// Reads the texts that the ways of pages need, as far as they are still there.
    pub(super) fn read<'w>(
        store: &Store,
        shard: u32,
        pages: impl Iterator<Item = (&'w PagePair, &'w [Way])>,
    ) -> Result<Self> {
        let mut wanted: BTreeMap<&SnapshotId, Vec<(&str, &GoodText)>> = BTreeMap::new();
        for (page, ways) in pages {
            for way in ways {
                if let Way::Resume { good, .. } = way {
                    wanted.entry(&good.snapshot).or_default().push((&page.url, good));
                }
            }
        }
        let mut all = Self::default();
        for (snapshot, wanted) in wanted {
            let urls: Vec<&str> = wanted.iter().map(|(url, _)| *url).collect();
            let pointers = rows_of::<PagePointer>(store, shard, Page::NAME, snapshot, &urls)?;
            for ((url, good), pointer) in wanted.into_iter().zip(pointers) {
                let Some(pointer) = pointer.into_iter().find(|row| row.text_digest == good.digest) else { continue };
                let text = rows_of::<PageText>(store, shard, Page::NAME, &pointer.text_snapshot, &[url])?;
                let text = text.into_iter().flatten().next().and_then(|row| row.text);
                all.texts.extend(text.map(|text| ((url.to_owned(), good.clone()), text)));
            }
        }
        Ok(all)
    }
}
