//! What a shard has to work on: the pages that some extractor is run on, those that went, and the regions of old pages.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use anyhow::Result;

use crate::matching::MatcherKind;
use crate::model::maps::HashMap;
use crate::model::{Region, Standing};
use crate::stages::extract::job::Job;
use crate::stages::extract::resume;
use crate::store::state::Placed;
use crate::tables::ingest::{Page, PagePair, UrlOnly};
use crate::tables::matching::RegionRow;
use crate::tables::record::Table as _;

/// A page of the snapshot.
pub(super) struct TouchedPage {
    pub(super) pair: PagePair,
    /// The snapshot touched it; else it is as the snapshot before left it.
    pub(super) touched: bool,
}

/// The pages that some extractor is run on, by URL.
pub(super) fn pages(job: &Job<'_>, shard: u32) -> Result<Vec<TouchedPage>> {
    let own: Vec<PagePair> = job.store.partition(Page::NAME, job.snapshot)?.shard(shard)?;
    let touched = |pair| TouchedPage { pair, touched: true };
    if job.pages_whole {
        return Ok(own.into_iter().map(touched).collect());
    }
    if !job.whole.contains(&true) {
        let urls = own.iter().map(|pair| pair.url.as_str()).collect();
        let failing = resume::still_failing(job, shard, &urls)?.into_iter();
        let failing: Vec<TouchedPage> =
            failing.map(|placed| TouchedPage { pair: as_it_was(placed), touched: false }).collect();
        let mut pages: Vec<TouchedPage> = own.into_iter().map(touched).chain(failing).collect();
        pages.sort_by(|a, b| a.pair.url.cmp(&b.pair.url));
        return Ok(pages);
    }
    let own: HashMap<String, PagePair> = own.into_iter().map(|pair| (pair.url.clone(), pair)).collect();
    let all = job.store.pages_at(job.snapshot)?.placed::<PagePair>(job.store, shard)?.into_iter();
    let page = |placed: Placed<PagePair>| match own.get(&placed.row.url) {
        Some(pair) => touched(pair.clone()),
        None => TouchedPage { pair: as_it_was(placed), touched: false },
    };
    Ok(all.map(page).collect())
}

/// A page that the snapshot did not touch: its old page is itself.
fn as_it_was(Placed { snapshot, row }: Placed<PagePair>) -> PagePair {
    PagePair {
        change: Standing::Carried,
        returned: false,
        moved_from: None,
        old_snapshot: Some(snapshot),
        old_text_digest: Some(row.text_digest),
        old_text_snapshot: Some(row.text_snapshot.clone()),
        ..row
    }
}

/// The URLs of a shard that had a page in the snapshot before and have none now.
pub(super) fn gone(job: &Job<'_>, shard: u32, pages: &[TouchedPage]) -> Result<Vec<String>> {
    if job.pages_whole {
        let there = |url: &str| pages.binary_search_by(|page| page.pair.url.as_str().cmp(url)).is_ok();
        return job.known.missing(shard, there);
    }
    let mut gone = Vec::new();
    let partition = job.store.partition(Page::NAME, job.snapshot)?;
    partition.visit::<UrlOnly<'_>>(&partition.deleted(shard), |row| gone.push(row.url.to_owned()))?;
    Ok(gone)
}

/// The old regions of a page and what found them.
pub(super) struct Regions {
    pub(super) matcher: MatcherKind,
    pub(super) list: Vec<Region>,
}

pub(super) fn regions(job: &Job<'_>, shard: u32) -> Result<HashMap<Arc<str>, Regions>> {
    let mut regions: HashMap<Arc<str>, Regions> = HashMap::default();
    if job.plan.matches() {
        let partition = job.store.partition(RegionRow::NAME, job.snapshot)?;
        for row in partition.shard::<RegionRow>(shard)? {
            let region = Region {
                start: u32::try_from(row.start)?,
                end: u32::try_from(row.end)?,
                old_start: u32::try_from(row.old_start)?,
            };
            match regions.entry(row.url) {
                Entry::Occupied(mut page) => page.get_mut().list.push(region),
                Entry::Vacant(page) => _ = page.insert(Regions { matcher: row.matcher, list: vec![region] }),
            }
        }
    }
    Ok(regions)
}
