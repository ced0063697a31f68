//! When texts were first seen on their URLs ([`crate::deltas::first_seen`]), for all URLs of a shard, and the file
//! `seen` that carries it from snapshot to snapshot.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::changed::{ChangedPage, OldNew, changed_pages, texts};
use crate::deltas::first_seen::FirstSeen;
use crate::manifests::Ingested;
use crate::model::{Digest, SnapshotId, Span};
use crate::store::Store;
use crate::store::batches::batches;
use crate::store::carried::Carried;
use crate::store::manifest::Manifest;
use crate::store::parquet::{Partition, PartitionWriter};
use crate::store::texts::ShardReader;
use crate::tables::delta::SeenRow;

/// When the texts of a URL were first seen.
struct SeenUrl {
    /// Begins with the snapshot in which the URL was first seen.
    snapshots: Vec<SnapshotId>,
    /// Its snapshots are numbers into the list.
    pieces: FirstSeen<u32>,
}

/// The same for all URLs of a shard.
#[derive(Default)]
pub(super) struct SeenShard {
    urls: HashMap<String, SeenUrl>,
}

impl SeenShard {
    pub(super) fn load(partition: &Partition, shard: u32) -> Result<Self> {
        let mut urls = HashMap::new();
        for row in partition.shard::<SeenRow>(shard)? {
            let damaged = || format!("what is known of the texts of {} is damaged", row.url);
            if row.snapshots.is_empty() || row.pieces.len() != 2 * row.since.len() {
                anyhow::bail!(damaged());
            }
            let mut entries = Vec::with_capacity(row.since.len());
            for (halves, since) in row.pieces.chunks_exact(2).zip(&row.since) {
                let since = u32::try_from(*since).ok().filter(|i| (*i as usize) < row.snapshots.len());
                entries.push((joined(halves[0], halves[1]), since.with_context(damaged)?));
            }
            let pieces = FirstSeen { origin: 0, entries };
            urls.insert(row.url, SeenUrl { snapshots: row.snapshots, pieces });
        }
        Ok(Self { urls })
    }

    /// Takes in that a page's text went from `old` to `new` in snapshot `now`; `None`: there is no page.
    pub(super) fn observe(&mut self, url: &str, old: Option<&str>, new: Option<&str>, now: &SnapshotId) {
        if let Some(known) = self.urls.get_mut(url) {
            let at = known.snapshots.iter().position(|id| id == now).unwrap_or_else(|| {
                known.snapshots.push(now.clone());
                known.snapshots.len() - 1
            });
            let now = u32::try_from(at).expect("fewer snapshots than 2^32");
            known.pieces.observe(old.unwrap_or_default(), new.unwrap_or_default(), &now);
        } else if new.is_some() {
            // The URL is new, so its whole text is first seen now and needs no entries.
            let first = SeenUrl { snapshots: vec![now.clone()], pieces: FirstSeen::new(0) };
            self.urls.insert(url.to_owned(), first);
        }
    }

    /// When parts of a page's present text were first seen; `None` if its URL is not known.
    pub(super) fn sightings(&self, url: &str, text: &str, spans: &[Span]) -> Option<Vec<(Span, SnapshotId)>> {
        let known = self.urls.get(url)?;
        let sightings = known.pieces.sightings(text, spans).into_iter();
        Some(sightings.map(|seen| (seen.span, known.snapshots[seen.first_seen as usize].clone())).collect())
    }

    /// Rows by URL.
    pub(super) fn into_rows(self) -> Vec<SeenRow> {
        let mut rows: Vec<SeenRow> = self.urls.into_iter().map(|(url, known)| known.into_row(url)).collect();
        rows.sort_unstable_by(|a, b| a.url.cmp(&b.url));
        rows
    }

    /// Takes in the snapshot `new`, which follows `old`. With `only`, other URLs are left out.
    fn advance(
        &mut self,
        store: &Store,
        shard: u32,
        old: Option<&SnapshotId>,
        new: &SnapshotId,
        only: Option<&dyn Fn(&str) -> bool>,
    ) -> Result<()> {
        let mut changes = changed_pages(store, shard, old, new)?;
        changes.retain(|change| change.text_differs() && only.is_none_or(|only| only(change.url())));
        // The text of a URL that is seen for the first time need not be read: all of it is of that snapshot.
        changes.retain(|change| {
            let first = change.old_page().is_none() && !self.urls.contains_key(change.url());
            if first {
                self.observe(change.url(), None, Some(""), new);
            }
            !first
        });
        let mut reader = ShardReader::new(store, shard);
        for batch in batches(&changes, ChangedPage::text_bytes) {
            for (change, OldNew { old, new: text }) in batch.iter().zip(texts(&mut reader, batch)?) {
                self.observe(change.url(), old.as_deref(), text.as_deref(), new);
            }
        }
        Ok(())
    }
}

impl SeenUrl {
    fn into_row(self, url: String) -> SeenRow {
        let Self { snapshots, pieces: known } = self;
        // The row names only the snapshots in which something was first seen, numbered in the order of the pieces.
        let mut numbers: Vec<Option<i64>> = vec![None; snapshots.len()];
        numbers[0] = Some(0);
        let mut named = vec![snapshots[0].clone()];
        let mut since = Vec::with_capacity(known.entries.len());
        let mut pieces = Vec::with_capacity(2 * known.entries.len());
        for (piece, first) in known.entries {
            let first = first as usize;
            let number = *numbers[first].get_or_insert_with(|| {
                named.push(snapshots[first].clone());
                i64::try_from(named.len() - 1).unwrap_or(i64::MAX)
            });
            since.push(number);
            pieces.extend(halves(piece));
        }
        SeenRow { url, snapshots: named, pieces, since }
    }
}

fn halves(digest: Digest) -> [i64; 2] {
    let half = |range: std::ops::Range<usize>| {
        i64::from_le_bytes(digest.0[range].try_into().expect("half a digest has 8 bytes"))
    };
    [half(0..8), half(8..16)]
}

fn joined(low: i64, high: i64) -> Digest {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    bytes[8..].copy_from_slice(&high.to_le_bytes());
    Digest(bytes)
}

/// What was known after the last of `done`, from the file that it left. A file that is missing is rebuilt from the
/// texts of all of `done`.
pub(super) fn open(store: &Store, done: &[Manifest<Ingested>]) -> Result<Option<Partition>> {
    let Some(last) = done.last() else { return Ok(None) };
    let (seen, snapshot) = (store.carried(Carried::Seen), &last.snapshot);
    if !seen.is_there(snapshot) {
        log::info!("rebuilding {} from {} snapshots", seen.file(snapshot).display(), done.len());
        let staged = store.scratch_dir("seen")?.join("seen.parquet");
        rebuild(store, done, &staged)?;
        seen.put(&staged, snapshot)?;
    }
    Ok(Some(seen.open(snapshot)?))
}

fn rebuild(store: &Store, done: &[Manifest<Ingested>], path: &Path) -> Result<()> {
    let mut writer = PartitionWriter::<SeenRow>::create(path)?;
    for shard in 0..store.shards() {
        writer.write(shard, &replay(store, shard, done, None)?.into_rows())?;
    }
    writer.finish()?;
    Ok(())
}

/// What is known of a shard after the last of `done`, from the texts that are stored.
pub(super) fn replay(
    store: &Store,
    shard: u32,
    done: &[Manifest<Ingested>],
    only: Option<&dyn Fn(&str) -> bool>,
) -> Result<SeenShard> {
    let mut seen = SeenShard::default();
    for (i, manifest) in done.iter().enumerate() {
        let before = i.checked_sub(1).map(|before| &done[before].snapshot);
        seen.advance(store, shard, before, &manifest.snapshot, only)?;
    }
    Ok(seen)
}
