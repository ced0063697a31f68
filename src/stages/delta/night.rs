//! What all shards of a night came to, where more than one shard is needed to know it: pages that moved, pages that
//! lost their last link, counts; and the tables that are written once it is known.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::known::LinkTargets;
use super::pages::ShardDelta;
use super::web_tables::TupleDeltas;
use crate::deltas::moved;
use crate::model::maps::HashSet;
use crate::model::{Digest, Fate, SnapshotId};
use crate::store::Store;
use crate::store::parquet::{PartitionWriter, Written};
use crate::store::staging::Staging;
use crate::tables::delta::{Alert, LinkDelta, PageDelta, RegionDelta, TupleDelta, TupleLinkDelta};
use crate::tables::ingest::PageVersion;
use crate::tables::record::Table as _;

/// Rows of a table for each change, such as `pages added`.
pub(super) type Counts = BTreeMap<String, u64>;

/// The deltas of a night, but for rows that were written shard by shard.
#[derive(Default)]
pub(super) struct NightDeltas {
    /// By shard, then URL.
    pub(super) pages: Vec<PageDelta>,
    pub(super) alerts: Vec<Alert>,
    /// For each of `pages` the digest of its text.
    texts: Vec<Digest>,
    pub(super) targets: LinkTargets,
    restructured: BTreeSet<String>,
    counts: Counts,
}

impl NightDeltas {
    /// Takes in a shard; its rows of links and regions are complete and are only counted.
    pub(super) fn add(&mut self, shard: ShardDelta) {
        for link in &shard.links {
            *self.counts.entry(format!("links {}", link.change)).or_default() += 1;
        }
        for region in &shard.regions {
            *self.counts.entry(format!("regions {}", region.change)).or_default() += 1;
        }
        self.pages.extend(shard.pages);
        self.texts.extend(shard.texts);
        self.targets.add(shard.targets);
        self.restructured.extend(shard.restructured);
        self.alerts.extend(shard.alerts);
    }

    /// Finds pages that moved, and marks those that lost their last link, once all shards are in.
    pub(super) fn finish(
        &mut self,
        store: &Store,
        old: &SnapshotId,
        new: &SnapshotId,
        unlinked: &BTreeSet<String>,
    ) -> Result<()> {
        self.find_moved();
        self.add_unchanged(store, old, new, unlinked)
    }

    /// Tells deleted and added pages that are one page under two URLs. Text of a page that moved here is no news.
    fn find_moved(&mut self) {
        let bytes = |page: &PageDelta| page.old_bytes.or(page.new_bytes).unwrap_or(0);
        let pages = self.pages.iter().zip(&self.texts);
        let moves = moved::moves(pages.map(|(page, text)| (page.change, *text, bytes(page))));
        let mut arrived = HashSet::default();
        for (from, to) in moves {
            let (old, new) = (self.pages[from].url.to_string(), self.pages[to].url.to_string());
            arrived.insert(new.clone());
            self.pages[to].moved_from = Some(old);
            self.pages[from].moved_to = Some(new);
        }
        let has_arrived = |alert: &Alert| alert.url.as_ref().is_some_and(|url| arrived.contains(url));
        self.alerts.retain(|alert| !(alert.kind.is_about_text() && has_arrived(alert)));
    }

    /// Marks pages that lost their last link. Those that did not change otherwise get a row, and so do those that have
    /// other elements but say the same.
    fn add_unchanged(
        &mut self,
        store: &Store,
        old: &SnapshotId,
        new: &SnapshotId,
        unlinked: &BTreeSet<String>,
    ) -> Result<()> {
        let mut left: BTreeSet<&str> = unlinked.iter().chain(&self.restructured).map(String::as_str).collect();
        for page in &mut self.pages {
            left.remove(&*page.url);
            page.unlinked = unlinked.contains(&*page.url);
        }
        let mut by_shard: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        left.into_iter().for_each(|url| by_shard.entry(store.shard_of(url)).or_default().push(url));
        let (before, now) = (store.pages_at(old)?, store.pages_at(new)?);
        for (shard, urls) in by_shard {
            let before = before.of_urls::<PageVersion>(store, shard, &urls)?;
            let now = now.of_urls::<PageVersion>(store, shard, &urls)?;
            for (before, now) in before.into_iter().zip(now) {
                // Of a page that is not in both snapshots there is nothing to say.
                let (Some(before), Some(now)) = (before, now) else { continue };
                let is_unlinked = unlinked.contains(&now.row.url);
                self.pages.extend(unchanged_row(&before.row, now.row, is_unlinked));
            }
        }
        self.pages.sort_by_cached_key(|page| (store.shard_of(&page.url), page.url.clone()));
        // The rows are no longer in the order of their texts.
        self.texts.clear();
        Ok(())
    }
}

/// The row of a page that says what it said before, but lost its last link or has other elements.
fn unchanged_row(before: &PageVersion, now: PageVersion, unlinked: bool) -> Option<PageDelta> {
    let structures = before.structure_digest.zip(now.structure_digest);
    let structure_changed = structures.is_some_and(|(before, now)| before != now);
    (unlinked || structure_changed).then(|| PageDelta {
        url: now.url.into(),
        change: Fate::Unchanged,
        reason: None,
        old_digest: Some(before.content_digest),
        new_digest: Some(now.content_digest),
        old_bytes: Some(before.text_bytes),
        new_bytes: Some(now.text_bytes),
        text_changed: false,
        title_changed: false,
        links_changed: false,
        structure_changed,
        new_text_bytes: Some(0),
        moved_bytes: Some(0),
        moved_to: None,
        moved_from: None,
        unlinked,
    })
}

/// Writers of the tables that are filled shard by shard.
pub(super) struct Writers {
    links: PartitionWriter<LinkDelta>,
    regions: PartitionWriter<RegionDelta>,
}

impl Writers {
    pub(super) fn new(staging: &mut Staging<'_>) -> Result<Self> {
        Ok(Self { links: staging.writer()?, regions: staging.writer()? })
    }

    /// Writes what is complete with a shard.
    pub(super) fn write(&mut self, number: u32, shard: &ShardDelta) -> Result<()> {
        self.links.write(number, &shard.links)?;
        Ok(self.regions.write(number, &shard.regions)?)
    }

    /// Writes the tables that need the whole night, and sorts the alerts as their table has them. Gives the rows of
    /// each table, and those of each change.
    pub(super) fn finish(
        self,
        staging: &mut Staging<'_>,
        night: NightDeltas,
        tuples: &TupleDeltas,
        alerts: &mut [Alert],
        store: &Store,
    ) -> Result<(BTreeMap<String, Written>, Counts)> {
        let mut counts = night.counts;
        for tuples in tuples.nodes.chunk_by(|a, b| (&a.query, a.delta, a.tuple) == (&b.query, b.delta, b.tuple)) {
            *counts.entry(format!("tuples {}", tuples[0].delta)).or_default() += 1;
        }
        for page in &night.pages {
            *counts.entry(format!("pages {}", page.change)).or_default() += 1;
        }
        let mut pages = staging.writer::<PageDelta>()?;
        for rows in night.pages.chunk_by(|a, b| store.shard_of(&a.url) == store.shard_of(&b.url)) {
            pages.write(store.shard_of(&rows[0].url), rows)?;
        }
        let mut tuple_deltas = staging.writer::<TupleDelta>()?;
        tuple_deltas.write(0, &tuples.nodes)?;
        let mut tuple_links = staging.writer::<TupleLinkDelta>()?;
        tuple_links.write(0, &tuples.links)?;
        let shard = |alert: &Alert| alert.url.as_deref().map_or(0, |url| store.shard_of(url));
        alerts.sort_by_cached_key(|alert| {
            let about = (shard(alert), alert.url.clone(), alert.watch.clone(), alert.kind.as_str());
            (about, alert.tuple, alert.text.clone())
        });
        let mut alert_writer = staging.writer::<Alert>()?;
        for rows in alerts.chunk_by(|a, b| shard(a) == shard(b)) {
            alert_writer.write(shard(&rows[0]), rows)?;
        }
        let tables = [
            (PageDelta::NAME, pages.finish()?),
            (LinkDelta::NAME, self.links.finish()?),
            (RegionDelta::NAME, self.regions.finish()?),
            (TupleDelta::NAME, tuple_deltas.finish()?),
            (TupleLinkDelta::NAME, tuple_links.finish()?),
            (Alert::NAME, alert_writer.finish()?),
        ];
        Ok((tables.map(|(name, written)| (name.to_owned(), written.slim())).into(), counts))
    }
}
