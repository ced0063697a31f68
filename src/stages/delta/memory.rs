//! When texts were first seen on their URLs, for all URLs of a shard, and the file that carries it on.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::pages::{Change, changed};
use crate::deltas::seen::Memory;
use crate::manifests::Ingested;
use crate::model::{Digest, SnapshotId, Span};
use crate::store::Store;
use crate::store::batches::batches;
use crate::store::carried::Carried;
use crate::store::manifest::Manifest;
use crate::store::parquet::{Partition, PartitionWriter};
use crate::store::texts::ShardReader;
use crate::tables::delta::SeenRow;
use crate::tables::ingest::Page;
use crate::tables::record::Table as _;

/// A URL's memory; snapshots are numbers into a list of its own, which begins with the snapshot of first sight.
struct UrlMemory {
    snapshots: Vec<SnapshotId>,
    memory: Memory<u32>,
}

/// The memories of a shard.
#[derive(Default)]
pub(super) struct Memories {
    urls: HashMap<String, UrlMemory>,
}

impl Memories {
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
            let memory = Memory { origin: 0, entries };
            urls.insert(row.url, UrlMemory { snapshots: row.snapshots, memory });
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
            known.memory.observe(old.unwrap_or_default(), new.unwrap_or_default(), &now);
        } else if new.is_some() {
            // All that it says it has said since now.
            let memory = UrlMemory { snapshots: vec![now.clone()], memory: Memory::new(0) };
            self.urls.insert(url.to_owned(), memory);
        }
    }

    /// When parts of a page's present text were first seen; `None` if its URL is not known.
    pub(super) fn sightings(&self, url: &str, text: &str, spans: &[Span]) -> Option<Vec<(Span, SnapshotId)>> {
        let known = self.urls.get(url)?;
        let seen = known.memory.sightings(text, spans).into_iter();
        Some(seen.map(|seen| (seen.span, known.snapshots[seen.first_seen as usize].clone())).collect())
    }

    /// Rows by URL.
    pub(super) fn into_rows(self) -> Vec<SeenRow> {
        let mut rows: Vec<SeenRow> = self.urls.into_iter().map(|(url, known)| known.into_row(url)).collect();
        rows.sort_unstable_by(|a, b| a.url.cmp(&b.url));
        rows
    }

    /// Takes in the snapshot `new`, which follows `old`. `only`: URLs that matter.
    fn advance(
        &mut self,
        store: &Store,
        shard: u32,
        old: Option<&SnapshotId>,
        new: &SnapshotId,
        only: Option<&dyn Fn(&str) -> bool>,
    ) -> Result<()> {
        let mut changes = changed(store, shard, old, new)?;
        changes.retain(|change| change.text_differs() && only.is_none_or(|only| only(change.url())));
        // What a URL says when it is first seen need not be read: all of it is of that snapshot.
        changes.retain(|change| {
            let first = change.side(0).is_none() && !self.urls.contains_key(change.url());
            if first {
                self.observe(change.url(), None, Some(""), new);
            }
            !first
        });
        let mut reader = ShardReader::new(store, shard);
        for batch in batches(&changes, Change::text_bytes) {
            for (change, [old, text]) in batch.iter().zip(texts(&mut reader, batch)?) {
                self.observe(change.url(), old.as_deref(), text.as_deref(), new);
            }
        }
        Ok(())
    }
}

impl UrlMemory {
    fn into_row(self, url: String) -> SeenRow {
        let Self { snapshots, memory } = self;
        // Only snapshots that something was first seen in, numbered as they come.
        let mut numbers: Vec<Option<i64>> = vec![None; snapshots.len()];
        numbers[0] = Some(0);
        let mut named = vec![snapshots[0].clone()];
        let mut since = Vec::with_capacity(memory.entries.len());
        let mut pieces = Vec::with_capacity(2 * memory.entries.len());
        for (piece, first) in memory.entries {
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

/// Old and new texts of changes; an absent page has none.
pub(super) fn texts(reader: &mut ShardReader<'_>, changes: &[Change]) -> Result<Vec<[Option<String>; 2]>> {
    let mut found: Vec<[Option<String>; 2]> = changes.iter().map(|_| [None, None]).collect();
    for side in [0, 1] {
        let there: Vec<usize> = (0..changes.len()).filter(|&i| changes[i].side(side).is_some()).collect();
        let wanted: Vec<_> = there
            .iter()
            .filter_map(|&i| changes[i].side(side).map(|page| (page.url.as_str(), &page.text_snapshot)))
            .collect();
        for (i, text) in there.iter().zip(reader.texts(&wanted)?) {
            found[*i][side] = Some(text);
        }
    }
    Ok(found)
}

/// What was known after the last of `done`; rebuilt from the texts of `done` if its file is not there.
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
) -> Result<Memories> {
    let mut memories = Memories::default();
    for (i, manifest) in done.iter().enumerate() {
        let before = i.checked_sub(1).map(|before| &done[before].snapshot);
        memories.advance(store, shard, before, &manifest.snapshot, only)?;
    }
    Ok(memories)
}

/// Whether a snapshot's pages are there to be compared.
pub(super) fn pages_of(store: &Store, snapshot: &SnapshotId) -> Result<Partition> {
    Ok(store.partition(Page::NAME, snapshot)?)
}
