//! What extract knows of URLs from earlier snapshots, in the index: for each URL and extractor what became of its newest
//! page, and where the mentions of the newest one lie that was extracted well. Pages that an extractor failed on are
//! listed apart, so that they are found without a look at all others.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::extract::Status;
use crate::model::maps::{HashMap, HashSet, with_room};
use crate::model::{Digest, SnapshotId, StageId};
use crate::stages::follow::{self, Kept, Night, decode, encode, shard_key, url_key, url_of};
use crate::store::Store;
use crate::store::index::{Index, Kind, Moment};
use crate::store::texts::rows_of;
use crate::tables::extract::{AwayRow, Extraction};
use crate::tables::ingest::{Page, UrlOnly};
use crate::tables::record::Table as _;

/// What is known of a URL, for each extractor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct UrlExtractions {
    /// It had a page in the last snapshot. It comes first, because it is also read alone.
    pub(super) alive: bool,
    /// By extractor, see [`extractor_key`].
    good: Vec<(u64, Good)>,
    /// Extractors that failed on its newest page.
    failed: Vec<u64>,
    /// Extractors that had no budget for all of its newest page.
    partial: Vec<(u64, Partial)>,
}

/// An extraction that did not fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Good {
    /// Whose row in `extractions` tells of it.
    pub(super) snapshot: SnapshotId,
    /// Where the mentions lie; `None` if there are none.
    pub(super) mentions_snapshot: Option<SnapshotId>,
    pub(super) mentions: i64,
    pub(super) text_digest: Digest,
    /// Of what was shown along with the text.
    pub(super) shown_digest: Option<Digest>,
    pub(super) fingerprint: Digest,
    /// No later extraction failed: these are the mentions of the page.
    pub(super) current: bool,
}

/// Extractions since the last good one that lack units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Partial {
    pub(super) fingerprint: Digest,
    /// Mentions of the newest one.
    mentions: i64,
    /// The snapshots that have mentions, oldest first.
    pub(super) snapshots: Vec<SnapshotId>,
}

/// The first field of a value: all that is asked of URLs that tonight's pages do not name.
fn alive(value: &[u8]) -> Result<bool> {
    let (alive, _) = postcard::take_from_bytes(value).context("a value of the index is damaged")?;
    Ok(alive)
}

/// Names an extractor in the index.
pub(super) fn extractor_key(name: &str) -> u64 {
    Digest::of(name.as_bytes()).low64()
}

impl Good {
    /// The extraction that a row tells of, if it did not fail.
    fn of(row: &Extraction, snapshot: &SnapshotId) -> Option<Self> {
        (row.status == Status::Ok).then(|| Self {
            snapshot: snapshot.clone(),
            mentions_snapshot: row.mentions_snapshot.clone(),
            mentions: row.mentions,
            text_digest: row.text_digest,
            shown_digest: row.shown_digest,
            fingerprint: row.fingerprint,
            current: true,
        })
    }
}

impl UrlExtractions {
    /// The newest extraction that did not fail.
    pub(super) fn good(&self, extractor: u64) -> Option<&Good> {
        self.good.iter().find(|(key, _)| *key == extractor).map(|(_, good)| good)
    }

    /// Whether an extractor failed on its page.
    pub(super) fn has_failed(&self, extractor: u64) -> bool {
        self.alive && self.failed.contains(&extractor)
    }

    /// Whether its page has what another definition found.
    pub(super) fn is_older(&self, extractor: u64, fingerprint: Digest) -> bool {
        let good = self.good(extractor).filter(|good| self.alive && good.current);
        good.is_some_and(|good| good.fingerprint != fingerprint)
    }

    /// How many mentions of an extractor its page has.
    pub(super) fn mentions(&self, extractor: u64) -> i64 {
        if let Some((_, partial)) = self.partial.iter().find(|(key, _)| self.alive && *key == extractor) {
            return partial.mentions;
        }
        let good = self.good(extractor).filter(|good| self.alive && good.current);
        good.map_or(0, |good| good.mentions)
    }

    /// The extractions since the last good one that lack units, by the same definition.
    pub(super) fn partial(&self, extractor: u64, fingerprint: Digest) -> &[SnapshotId] {
        let mut all =
            self.partial.iter().filter(|(key, partial)| *key == extractor && partial.fingerprint == fingerprint);
        all.next().map_or(&[], |(_, partial)| &partial.snapshots)
    }

    /// Notes an extraction that lacks units; every other one ends the list.
    fn take_partial(&mut self, key: u64, row: &Extraction, snapshot: &SnapshotId) {
        let at = self.partial.iter().position(|(other, _)| *other == key);
        let before = at.map(|at| self.partial.remove(at).1);
        match row.status {
            Status::Ok => {}
            Status::Deferred => {
                let before = before.filter(|before| before.fingerprint == row.fingerprint);
                let mut snapshots = before.map(|before| before.snapshots).unwrap_or_default();
                snapshots.retain(|other| other != snapshot);
                snapshots.extend(row.mentions_snapshot.clone());
                let partial = Partial { fingerprint: row.fingerprint, mentions: row.mentions, snapshots };
                self.partial.push((key, partial));
            }
            // What was told of it stays told.
            Status::Failed | Status::Timeout => {
                let partial = before.map(|before| (key, Partial { mentions: 0, ..before }));
                self.partial.extend(partial);
            }
        }
        self.partial.sort_by_key(|(key, _)| *key);
    }

    /// Takes in the rows of a page in a snapshot, each with the key of its extractor. One that failed leaves what was good before.
    fn take<'r>(&mut self, rows: impl IntoIterator<Item = (u64, &'r Extraction)>, snapshot: &SnapshotId) {
        self.alive = true;
        for (key, row) in rows {
            self.failed.retain(|other| *other != key);
            if row.status != Status::Ok {
                self.failed.push(key);
            }
            self.take_partial(key, row, snapshot);
            if let Some(good) = Good::of(row, snapshot) {
                self.good.retain(|(other, _)| *other != key);
                self.good.push((key, good));
            } else if let Some((_, good)) = self.good.iter_mut().find(|(other, _)| *other == key) {
                good.current = false;
            }
        }
        self.good.sort_unstable_by_key(|(key, _)| *key);
        self.failed.sort_unstable();
    }
}

/// What is known of a URL after a snapshot that has a page of it.
pub(super) struct UrlTonight {
    url: Arc<str>,
    known: UrlExtractions,
    /// An extractor failed on its page before.
    was_failing: bool,
}

impl UrlTonight {
    /// `rows`: the rows of its page, each with the key of its extractor.
    pub(super) fn after<'r>(
        mut known: UrlExtractions,
        url: Arc<str>,
        rows: impl Iterator<Item = (u64, &'r Extraction)>,
        snapshot: &SnapshotId,
    ) -> Self {
        let was_failing = !known.failed.is_empty();
        known.take(rows, snapshot);
        Self { url, known, was_failing }
    }
}

/// What is known of URLs.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// As the snapshot before left it.
    pub(super) before: &'a Moment,
    /// As this snapshot leaves it.
    pub(super) index: &'a Index,
}

impl Known<'_> {
    /// What is known of URLs, each with its shard; those that nothing is known of are left out.
    pub(super) fn of<'u>(
        &self,
        urls: impl Iterator<Item = (u32, &'u str)>,
    ) -> Result<HashMap<&'u str, UrlExtractions>> {
        let (keys, urls): (Vec<Vec<u8>>, Vec<&str>) = urls.map(|(shard, url)| (url_key(shard, url), url)).unzip();
        let mut known = with_room(urls.len());
        for (url, value) in urls.into_iter().zip(self.before.get_many(Kind::Extractions, &keys)?) {
            if let Some(value) = value {
                known.insert(url, decode(&value)?);
            }
        }
        Ok(known)
    }

    /// All URLs of a shard, by URL.
    pub(super) fn shard(&self, shard: u32) -> Result<Vec<(String, UrlExtractions)>> {
        let mut entries = Vec::new();
        self.before.scan(Kind::Extractions, &shard_key(shard), &mut |key, value| {
            entries.push((key.to_vec(), value.to_vec()));
            Ok(true)
        })?;
        entries.into_iter().map(|(key, value)| Ok((url_of(&key)?.to_owned(), decode(&value)?))).collect()
    }

    /// The URLs of a shard that had a page in the last snapshot and that `there` does not know, by URL.
    pub(super) fn missing(&self, shard: u32, there: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        let mut damaged = None;
        self.before.scan(Kind::Extractions, &shard_key(shard), &mut |key, value| {
            match (url_of(key), alive(value)) {
                (Ok(url), Ok(true)) if !there(url) => missing.push(url.to_owned()),
                (Ok(_), Ok(_)) => {}
                (url, alive) => damaged = url.err().or(alive.err()),
            }
            Ok(damaged.is_none())
        })?;
        damaged.map_or(Ok(missing), Err)
    }

    /// The URLs of a shard that have a page which some extractor failed on.
    pub(super) fn failing(&self, shard: u32) -> Result<Vec<String>> {
        let mut keys = Vec::new();
        self.before.scan(Kind::Failing, &shard_key(shard), &mut |key, _| {
            keys.push(key.to_vec());
            Ok(true)
        })?;
        keys.iter().map(|key| Ok(url_of(key)?.to_owned())).collect()
    }

    fn put(&self, shard: u32, url: &str, known: &UrlExtractions, was_failing: bool) -> Result<()> {
        let fails = known.alive && !known.failed.is_empty();
        if fails {
            self.index.put(Kind::Failing, url_key(shard, url), Vec::new())?;
        } else if was_failing {
            self.index.delete(Kind::Failing, url_key(shard, url))?;
        }
        Ok(self.index.put(Kind::Extractions, url_key(shard, url), encode(known)?)?)
    }

    /// Takes in what became of the URLs of a shard, where that is known already; `gone`: URLs that have no page any more.
    pub(super) fn take(&self, shard: u32, urls: &[UrlTonight], gone: &[String]) -> Result<()> {
        for UrlTonight { url, known, was_failing } in urls {
            self.put(shard, url, known, *was_failing)?;
        }
        self.take_gone(shard, gone, &mut self.of(gone.iter().map(|url| (shard, url.as_str())))?)
    }

    fn take_gone(&self, shard: u32, gone: &[String], known: &mut HashMap<&str, UrlExtractions>) -> Result<()> {
        for url in gone {
            if let Some(entry) = known.remove(url.as_str()) {
                let was_failing = !entry.failed.is_empty();
                self.put(shard, url, &UrlExtractions { alive: false, failed: Vec::new(), ..entry }, was_failing)?;
            }
        }
        Ok(())
    }

    /// Takes in what became of the URLs of a shard. `rows`: the rows of `extractions`, those of a URL together; `gone`:
    /// URLs that have no page any more.
    pub(super) fn advance(
        &self,
        shard: u32,
        snapshot: &SnapshotId,
        rows: &[Extraction],
        gone: &[String],
    ) -> Result<()> {
        let by_url: Vec<&[Extraction]> = rows.chunk_by(|a, b| a.url == b.url).collect();
        let urls = by_url.iter().map(|rows| &*rows[0].url).chain(gone.iter().map(String::as_str));
        let mut known = self.of(urls.map(|url| (shard, url)))?;
        for rows in by_url {
            let url = Arc::clone(&rows[0].url);
            let before = known.remove(&*url).unwrap_or_default();
            let rows = rows.iter().map(|row| (extractor_key(&row.extractor), row));
            let UrlTonight { url, known, was_failing } = UrlTonight::after(before, url, rows, snapshot);
            self.put(shard, &url, &known, was_failing)?;
        }
        self.take_gone(shard, gone, &mut known)
    }

    /// The good extractions of dead URLs, and of pages whose extraction failed, which no row of a base tells of.
    pub(super) fn away(&self, shard: u32, snapshot: &SnapshotId) -> Result<Vec<AwayRow>> {
        let mut rows = Vec::new();
        for (url, known) in self.shard(shard)? {
            for (extractor, good) in known.good {
                if known.alive && good.snapshot == *snapshot {
                    continue;
                }
                rows.push(AwayRow {
                    url: url.clone(),
                    extractor: extractor.cast_signed(),
                    alive: known.alive,
                    good_snapshot: good.snapshot,
                    mentions_snapshot: good.mentions_snapshot,
                    mentions: good.mentions,
                    text_digest: good.text_digest,
                    shown_digest: good.shown_digest,
                    fingerprint: good.fingerprint,
                    deferred_snapshots: joined(
                        known.partial.iter().find(|(key, _)| *key == extractor),
                        good.fingerprint,
                    ),
                });
            }
        }
        Ok(rows)
    }
}

/// The snapshots of partial extractions by the definition of a good one, as a cell.
fn joined(partial: Option<&(u64, Partial)>, fingerprint: Digest) -> Option<String> {
    let (_, partial) =
        partial.filter(|(_, partial)| partial.fingerprint == fingerprint && !partial.snapshots.is_empty())?;
    Some(partial.snapshots.iter().map(SnapshotId::as_str).collect::<Vec<_>>().join(","))
}

/// The partial extractions that rows of a base tell of. What lies in snapshots that were pruned is gone.
fn partials(rows: &[AwayRow], kept: &HashSet<SnapshotId>) -> Vec<(u64, Partial)> {
    let partial = |row: &AwayRow| {
        let named = row.deferred_snapshots.as_deref()?.split(',').filter_map(|id| SnapshotId::new(id).ok());
        let snapshots = named.filter(|id| kept.contains(id)).collect();
        let partial = Partial { fingerprint: row.fingerprint, mentions: 0, snapshots };
        Some((row.extractor.cast_unsigned(), partial))
    };
    rows.iter().filter_map(partial).collect()
}

/// What extract keeps in the index.
pub(crate) struct Extractions;

impl Extractions {
    /// Takes in a partition of `extractions`.
    fn take(store: &Store, index: &Index, snapshot: &SnapshotId, whole: bool) -> Result<()> {
        let known = Known { before: &index.moment(), index };
        let (extractions, pages) =
            (store.partition(Extraction::NAME, snapshot)?, store.partition(Page::NAME, snapshot)?);
        for shard in 0..store.shards() {
            let rows: Vec<Extraction> = extractions.shard(shard)?;
            let mut gone: Vec<String> = Vec::new();
            if whole {
                let mut there: HashSet<String> = HashSet::default();
                pages.visit::<UrlOnly<'_>>(&pages.part(shard), |row| _ = there.insert(row.url.to_owned()))?;
                gone = known.missing(shard, |url| there.contains(url))?;
            } else {
                pages.visit::<UrlOnly<'_>>(&pages.deleted(shard), |row| gone.push(row.url.to_owned()))?;
            }
            known.advance(shard, snapshot, &rows, &gone)?;
        }
        Ok(())
    }
}

impl Kept for Extractions {
    const STAGE: StageId = StageId::Extract;
    const FOLLOWS: StageId = StageId::Extract;
    const KINDS: &'static [Kind] = &[Kind::Extractions, Kind::Failing];

    fn load(store: &Store, index: &Index, base: &SnapshotId) -> Result<()> {
        let nothing = index.moment();
        let known = Known { before: &nothing, index };
        let away = store.partition(AwayRow::NAME, base)?;
        let kept = follow::kept_snapshots(store)?;
        for shard in 0..store.shards() {
            let mut rows = away.shard::<AwayRow>(shard)?;
            // What lies in snapshots that were pruned is gone.
            rows.retain(|row| kept.contains(&row.good_snapshot));
            for rows in rows.chunk_by(|a, b| a.url == b.url) {
                let good = |row: &AwayRow| {
                    let good = Good {
                        snapshot: row.good_snapshot.clone(),
                        mentions_snapshot: row.mentions_snapshot.clone(),
                        mentions: row.mentions,
                        text_digest: row.text_digest,
                        shown_digest: row.shown_digest,
                        fingerprint: row.fingerprint,
                        // Of a page that is there it is told only because a later one failed.
                        current: !row.alive,
                    };
                    (row.extractor.cast_unsigned(), good)
                };
                // Whether one of them fails is told by the base's own rows.
                let failed = Vec::new();
                let good = rows.iter().map(good).collect();
                let partial = partials(rows, &kept);
                let entry = UrlExtractions { alive: rows[0].alive, good, failed, partial };
                known.put(shard, &rows[0].url, &entry, false)?;
            }
        }
        // No page is gone that was not gone before: the rows above tell of those.
        let extractions = store.partition(Extraction::NAME, base)?;
        let away = index.moment();
        let known = Known { before: &away, ..known };
        for shard in 0..store.shards() {
            known.advance(shard, base, &extractions.shard::<Extraction>(shard)?, &[])?;
        }
        Ok(())
    }

    fn replay(store: &Store, index: &Index, night: Night<'_>) -> Result<()> {
        Self::take(store, index, &night.now.snapshot, night.now.summary.whole)
    }
}

/// The rows of `extractions` that a snapshot has of some URLs of a shard, by URL and extractor.
pub(super) fn rows_in(
    store: &Store,
    shard: u32,
    snapshot: &SnapshotId,
    urls: &[&str],
) -> Result<HashMap<(String, u64), Extraction>> {
    let rows = rows_of::<Extraction>(store, shard, Extraction::NAME, snapshot, urls)?.into_iter().flatten();
    Ok(rows.map(|row| ((row.url.to_string(), extractor_key(&row.extractor)), row)).collect())
}
