//! How the index follows the tables.
//!
//! What a stage needs by URL or digest lies in the index; the tables are the truth. For each stage that keeps something
//! there, a cursor says up to which snapshot it has followed, and which tables that were. Before a stage works on a
//! snapshot its part of the index is brought to where the snapshot before left it: usually it is there already; after a
//! crash the last snapshots are replayed; and where cursor and tables disagree it is made again from the newest base.

use std::cell::RefCell;

use anyhow::{Context as _, Result};

use crate::manifests::Ingested;
use crate::model::maps::HashSet;
use crate::model::{Digest, SnapshotId, StageId};
use crate::store::Store;
use crate::store::index::{Cursor, Index, Kind};
use crate::store::manifest::Manifest;

/// What one stage keeps in the index.
pub(super) trait Kept {
    /// The stage that keeps it.
    const STAGE: StageId;
    /// The stage whose tables it is made of.
    const FOLLOWS: StageId;
    const KINDS: &'static [Kind];
    /// What its cursor is called.
    const CURSOR: &'static str = Self::STAGE.as_str();

    /// Takes in what a base stores of it. The kinds are empty before.
    fn load(store: &Store, index: &Index, base: &SnapshotId) -> Result<()>;

    /// Takes in the tables of a snapshot. The index is as the snapshot before left it.
    fn replay(store: &Store, index: &Index, night: Night<'_>) -> Result<()>;
}

/// A snapshot and the one before it.
#[derive(Clone, Copy)]
pub(super) struct Night<'a> {
    pub(super) before: Option<&'a Manifest<Ingested>>,
    pub(super) now: &'a Manifest<Ingested>,
}

/// Brings what a stage keeps to where the last of `done` left it. `done`: the ingested snapshots up to there, oldest first.
pub(super) fn bring<K: Kept>(store: &Store, index: &Index, done: &[Manifest<Ingested>]) -> Result<()> {
    store.note_index(K::STAGE)?;
    // It is the stage that made the tables, not the one that asks, whose tables are replayed.
    let store = &store.unrestricted();
    let at = index.cursor(K::CURSOR);
    let Some(last) = done.last() else {
        if at.is_some() {
            forget::<K>(index)?;
        }
        return Ok(());
    };
    let reached = at.and_then(|at| done.iter().rposition(|night| night.snapshot == at.snapshot));
    let reached = match reached {
        Some(reached) if has_followed::<K>(store, index, &done[reached].snapshot)? => Some(reached),
        _ => None,
    };
    if reached == Some(done.len() - 1) {
        return Ok(());
    }
    let from = match reached {
        Some(reached) => reached,
        None => {
            let base = done.iter().rposition(|night| night.summary.base).context("no base in the store")?;
            log::info!("{}: index is made again from snapshot {}", K::CURSOR, done[base].snapshot);
            forget::<K>(index)?;
            K::load(store, index, &done[base].snapshot)?;
            base
        }
    };
    for i in from + 1..done.len() {
        log::debug!("{}: index takes in snapshot {}", K::CURSOR, done[i].snapshot);
        K::replay(store, index, Night { before: done[..i].last(), now: &done[i] })?;
    }
    followed::<K>(index, &last.snapshot, lineage::<K>(store, last)?);
    Ok(())
}

/// Drops all that a stage keeps. Until it has [followed] a snapshot again, it is made again from the newest base.
pub(super) fn forget<K: Kept>(index: &Index) -> Result<()> {
    index.forget_cursor(K::CURSOR);
    for kind in K::KINDS {
        index.clear(*kind)?;
    }
    Ok(())
}

fn lineage<K: Kept>(store: &Store, night: &Manifest<Ingested>) -> Result<Digest> {
    let done = store.done(K::FOLLOWS, &night.snapshot)?;
    Ok(done.with_context(|| format!("{} is not done for snapshot {}", K::FOLLOWS, night.snapshot))?.lineage)
}

/// Whether what a stage keeps has taken in a snapshot already, and nothing later.
pub(super) fn has_followed<K: Kept>(store: &Store, index: &Index, snapshot: &SnapshotId) -> Result<bool> {
    let done = store.done(K::FOLLOWS, snapshot)?;
    let there = index.cursor(K::CURSOR).filter(|at| at.snapshot == *snapshot);
    Ok(there.zip(done).is_some_and(|(at, done)| at.digest == done.lineage))
}

/// The index now is as the stage left it with this snapshot, which is committed.
pub(super) fn followed<K: Kept>(index: &Index, snapshot: &SnapshotId, lineage: Digest) {
    index.set_cursor(K::CURSOR, Cursor { snapshot: snapshot.clone(), digest: lineage });
}

/// The snapshots of the store: what a base says of others was pruned.
pub(super) fn kept_snapshots(store: &Store) -> Result<HashSet<SnapshotId>> {
    Ok(store.all_done()?.iter().map(|done| done.snapshot.id.clone()).collect())
}

/// The lineage of what a stage left with the last of `done`, for one that goes on from there.
pub(super) fn lineage_before(store: &Store, stage: StageId, done: &[Manifest<Ingested>]) -> Result<Option<Digest>> {
    let Some(last) = done.last() else { return Ok(None) };
    Ok(store.done(stage, &last.snapshot)?.map(|done| done.lineage))
}

/// The key of a URL: URLs of a shard lie together, by name.
#[must_use]
pub(super) fn url_key(shard: u32, url: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(SHARD_KEY + url.len());
    key.extend_from_slice(&shard_bytes(shard));
    key.extend_from_slice(url.as_bytes());
    key
}

/// Bytes of a key before the URL.
const SHARD_KEY: usize = 2;

fn shard_bytes(shard: u32) -> [u8; SHARD_KEY] {
    u16::try_from(shard).expect("a store has few shards").to_be_bytes()
}

/// What the keys of a shard's URLs begin with.
#[must_use]
pub(super) fn shard_key(shard: u32) -> Vec<u8> {
    shard_bytes(shard).to_vec()
}

/// The URL of a key that [`url_key`] made.
pub(super) fn url_of(key: &[u8]) -> Result<&str> {
    std::str::from_utf8(key.get(SHARD_KEY..).unwrap_or_default()).context("a key of the index is damaged")
}

/// Values of the index. They are put together in a buffer that is used again, so that each takes what it needs at once.
pub(super) fn encode<T: serde::Serialize>(value: &T) -> Result<Vec<u8>> {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        *buffer = postcard::to_extend(value, std::mem::take(buffer))?;
        let encoded = buffer.as_slice().to_vec();
        buffer.shrink_to(LARGE_VALUE);
        Ok(encoded)
    })
}

/// A buffer keeps no more than this from value to value.
const LARGE_VALUE: usize = 1 << 16;

pub(super) fn decode<'a, T: serde::Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    postcard::from_bytes(bytes).context("a value of the index is damaged")
}
