//! Queries on snapshots that touched few pages: what was touched, and what lies around it, looked up by URL.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context as _, Result};

use super::linkers::Linkers;
use crate::deltas::query::{Neighbours, OutLink, WebPage};
use crate::model::SnapshotId;
use crate::stages::link_target::page_of;
use crate::store::Store;
use crate::store::index::Moment;
use crate::store::state::Layers;
use crate::store::texts::ShardReader;
use crate::tables::extract::Extraction;
use crate::tables::ingest::{LinkRow, Page, PageNode, UrlOnly};
use crate::tables::record::Table as _;

/// The URLs that snapshots touched; `None` if there are more than `most`. With `mentions` also those of which something
/// else was extracted.
pub(super) fn touched<'a>(
    store: &Store,
    snapshots: impl Iterator<Item = &'a SnapshotId>,
    mentions: bool,
    most: usize,
) -> Result<Option<BTreeSet<String>>> {
    let mut touched = BTreeSet::new();
    for snapshot in snapshots {
        for table in [Some(Page::NAME), mentions.then_some(Extraction::NAME)].into_iter().flatten() {
            let partition = store.partition(table, snapshot)?;
            for shard in 0..store.shards() {
                for part in [partition.part(shard), partition.deleted(shard)] {
                    partition.visit::<UrlOnly<'_>>(&part, |row| _ = touched.insert(row.url.to_owned()))?;
                }
                if touched.len() > most {
                    return Ok(None);
                }
            }
        }
    }
    Ok(Some(touched))
}

/// A page as queries see it.
pub(super) fn web_page(page: &PageNode) -> WebPage {
    WebPage {
        url: page.url.as_str().into(),
        title: page.title.clone(),
        host: page.host.clone(),
        content_type: page.content_type.clone(),
        last_modified: page.last_modified,
        bytes: u64::try_from(page.text_bytes).unwrap_or(0),
        version: page.change_digest,
    }
}

/// Pages and links at a snapshot, from the tables, and who links to a page, from the index.
pub(super) struct Tables<'a> {
    store: &'a Store,
    pages: Layers,
    linkers: &'a Moment,
    /// Where the links of pages lie that were looked up.
    links_in: HashMap<String, SnapshotId>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(store: &'a Store, at: &SnapshotId, linkers: &'a Moment) -> Result<Self> {
        Ok(Self { store, pages: store.pages_at(at)?, linkers, links_in: HashMap::new() })
    }

    /// Places among these URLs, by shard.
    fn by_shard(&self, urls: &[&str]) -> BTreeMap<u32, Vec<usize>> {
        let mut by_shard: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (place, url) in urls.iter().enumerate() {
            by_shard.entry(self.store.shard_of(url)).or_default().push(place);
        }
        by_shard
    }
}

impl Neighbours for Tables<'_> {
    type Error = anyhow::Error;

    fn pages(&mut self, urls: &[&str]) -> Result<Vec<Option<WebPage>>> {
        let mut pages = vec![None; urls.len()];
        for (shard, places) in self.by_shard(urls) {
            let asked: Vec<&str> = places.iter().map(|&place| urls[place]).collect();
            for (place, found) in places.into_iter().zip(self.pages.of_urls::<PageNode>(self.store, shard, &asked)?) {
                let Some(found) = found else { continue };
                pages[place] = Some(web_page(&found.row));
                self.links_in.insert(found.row.url, found.row.content_snapshot);
            }
        }
        Ok(pages)
    }

    fn links(&mut self, urls: &[&str]) -> Result<Vec<Vec<OutLink>>> {
        let mut links: Vec<Vec<OutLink>> = vec![Vec::new(); urls.len()];
        for (shard, places) in self.by_shard(urls) {
            let lies_in = |url: &str| self.links_in.get(url).context("links are asked of pages that were looked up");
            let asked = places.iter().map(|&place| Ok((urls[place], lies_in(urls[place])?)));
            let found = ShardReader::new(self.store, shard).links(&asked.collect::<Result<Vec<_>>>()?)?;
            for (place, rows) in places.into_iter().zip(found) {
                let out =
                    |row: LinkRow| OutLink { to: page_of(&row.target).into_owned(), label: row.label, kind: row.kind };
                links[place] = rows.into_iter().map(out).collect();
            }
        }
        Ok(links)
    }

    fn linkers(&mut self, url: &str, most: usize) -> Result<Option<Vec<String>>> {
        Linkers::of(self.linkers, url, most)
    }
}
