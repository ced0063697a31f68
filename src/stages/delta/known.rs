//! What delta knows of URLs from earlier snapshots, in the index: when their texts were first seen (`Lines`), and how many
//! pages link to each (`LinksIn`).

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::changed::{ChangedPage, OldNew, links, tonight};
use super::seen::SeenShard;
use crate::model::maps::HashMap;
use crate::model::{Digest, SnapshotId, StageId};
use crate::stages::follow::{Kept, Night, decode, encode, shard_key, url_key};
use crate::stages::link_target::page_of;
use crate::store::Store;
use crate::store::index::{Index, Kind, Moment};
use crate::store::texts::ShardReader;
use crate::tables::delta::SeenRow;
use crate::tables::ingest::{LinkRow, TargetView};
use crate::tables::record::Table as _;

/// What is known of URLs.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// As the snapshot before left it, or this one if it has been compared before.
    pub(super) at: &'a Moment,
    /// As this snapshot leaves it.
    pub(super) index: &'a Index,
}

impl Known<'_> {
    /// What is known of the texts of URLs.
    pub(super) fn seen<'u>(&self, shard: u32, urls: impl Iterator<Item = &'u str>) -> Result<SeenShard> {
        let keys: Vec<Vec<u8>> = urls.map(|url| url_key(shard, url)).collect();
        let found = self.at.get_many(Kind::Lines, &keys)?.into_iter().flatten();
        SeenShard::new(found.map(|value| decode(&value)).collect::<Result<Vec<SeenRow>>>()?)
    }

    /// All that is known of the texts of a shard's URLs.
    pub(super) fn all_seen(&self, shard: u32) -> Result<Vec<SeenRow>> {
        let mut values = Vec::new();
        self.at.scan(Kind::Lines, &shard_key(shard), &mut |_, value| {
            values.push(value.to_vec());
            Ok(true)
        })?;
        values.iter().map(|value| decode(value)).collect()
    }

    pub(super) fn put_seen(&self, shard: u32, rows: &[SeenRow]) -> Result<()> {
        for row in rows {
            self.index.put(Kind::Lines, url_key(shard, &row.url), encode(row)?)?;
        }
        Ok(())
    }

    /// How many pages link to each of these pages.
    pub(super) fn counts(&self, pages: &[Digest]) -> Result<Vec<i64>> {
        let keys: Vec<[u8; 16]> = pages.iter().map(|page| page.0).collect();
        let found = self.at.get_many(Kind::LinksIn, &keys)?.into_iter();
        found.map(|value| value.map_or(Ok(0), |value| decode(&value))).collect()
    }

    /// Takes in what links came and went, and tells which pages lost their last.
    pub(super) fn put_links(&self, changes: &LinkTargets) -> Result<BTreeSet<String>> {
        let mut pages: Vec<Digest> =
            changes.more.iter().filter(|(_, more)| **more != 0).map(|(page, _)| *page).collect();
        pages.sort_unstable();
        for (page, count) in pages.iter().zip(self.counts(&pages)?) {
            match count + changes.more[page] {
                0 => self.index.delete(Kind::LinksIn, page.0.to_vec())?,
                left => self.index.put(Kind::LinksIn, page.0.to_vec(), encode(&left)?)?,
            }
        }
        self.without_links(changes, |count, more| count + more)
    }

    /// The same, where the changes have been taken in before.
    pub(super) fn unlinked(&self, changes: &LinkTargets) -> Result<BTreeSet<String>> {
        self.without_links(changes, |count, _| count)
    }

    fn without_links(&self, changes: &LinkTargets, now: impl Fn(i64, i64) -> i64) -> Result<BTreeSet<String>> {
        let digests: Vec<Digest> = changes.lost.iter().map(|url| Digest::of(url.as_bytes())).collect();
        let counts = self.counts(&digests)?;
        let left =
            digests.iter().zip(counts).map(|(page, count)| now(count, changes.more.get(page).copied().unwrap_or(0)));
        Ok(changes.lost.iter().zip(left).filter(|(_, left)| *left == 0).map(|(url, _)| url.clone()).collect())
    }
}

/// How many more pages link to each page than before, and the pages that some page no longer links to.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct LinkTargets {
    more: HashMap<Digest, i64>,
    lost: BTreeSet<String>,
}

impl LinkTargets {
    /// Takes in a page whose links may have changed.
    pub(super) fn page(&mut self, url: &str, OldNew { old, new }: &OldNew<Vec<LinkRow>>) {
        if old.iter().map(|link| &link.target).eq(new.iter().map(|link| &link.target)) {
            return;
        }
        let pages = |links: &[LinkRow]| -> BTreeSet<String> {
            let pages = links.iter().map(|link| page_of(&link.target).into_owned());
            // A link of a page to itself does not count.
            pages.filter(|page| page != url).collect()
        };
        let (old, new) = (pages(old), pages(new));
        for page in old.difference(&new) {
            *self.more.entry(Digest::of(page.as_bytes())).or_default() -= 1;
            self.lost.insert(page.clone());
        }
        for page in new.difference(&old) {
            *self.more.entry(Digest::of(page.as_bytes())).or_default() += 1;
        }
    }

    /// Takes the pages that some page no longer links to.
    pub(super) fn lost(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.lost)
    }

    pub(super) fn add(&mut self, other: Self) {
        for (page, more) in other.more {
            *self.more.entry(page).or_default() += more;
        }
        self.lost.extend(other.lost);
    }

    /// The links of all pages that are stored in a snapshot.
    pub(super) fn of_first(store: &Store, snapshot: &SnapshotId, shard: u32) -> Result<Self> {
        let mut targets = Self::default();
        let links = store.partition(LinkRow::NAME, snapshot)?;
        let (mut url, mut once) = (String::new(), BTreeSet::new());
        links.visit::<TargetView<'_>>(&links.part(shard), |link| {
            if link.url != url {
                link.url.clone_into(&mut url);
                once.clear();
            }
            let page = page_of(link.target);
            let digest = Digest::of(page.as_bytes());
            if *page != *link.url && once.insert(digest) {
                *targets.more.entry(digest).or_default() += 1;
            }
        })?;
        Ok(targets)
    }
}

/// What delta keeps in the index.
pub(crate) struct Texts;

impl Kept for Texts {
    const STAGE: StageId = StageId::Delta;
    const FOLLOWS: StageId = StageId::Ingest;
    const KINDS: &'static [Kind] = &[Kind::Lines, Kind::LinksIn];

    fn load(store: &Store, index: &Index, base: &SnapshotId) -> Result<()> {
        let nothing = index.moment();
        let known = Known { at: &nothing, index };
        let lines = store.partition(SeenRow::NAME, base)?;
        let mut targets = LinkTargets::default();
        for shard in 0..store.shards() {
            known.put_seen(shard, &lines.shard::<SeenRow>(shard)?)?;
            // A base stores the links of all pages.
            targets.add(LinkTargets::of_first(store, base, shard)?);
        }
        known.put_links(&targets).map(|_| ())
    }

    fn replay(store: &Store, index: &Index, night: Night<'_>) -> Result<()> {
        let before = index.moment();
        let known = Known { at: &before, index };
        let last = &night.before.context("a base comes first")?.snapshot;
        let (now, whole) = (&night.now.snapshot, night.now.summary.whole);
        let mut targets = LinkTargets::default();
        for shard in 0..store.shards() {
            let changes = tonight(store, shard, last, now, whole)?;
            let mut reader = ShardReader::new(store, shard);
            for (change, links) in changes.iter().zip(links(&mut reader, &changes)?) {
                targets.page(change.url(), &links);
            }
            let mut seen = known.seen(shard, changes.iter().map(ChangedPage::url))?;
            seen.advance(&mut reader, changes, now)?;
            known.put_seen(shard, &seen.into_rows())?;
        }
        known.put_links(&targets).map(|_| ())
    }
}
