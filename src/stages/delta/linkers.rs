//! Which pages link to a page, in the index. Only queries ask for it, on snapshots that touched few pages: it is brought
//! to where the tables are when one does.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};

use super::changed::{links, tonight};
use crate::manifests::Ingested;
use crate::model::{Digest, SnapshotId, StageId};
use crate::stages::follow::{Kept, Night, bring, followed, has_followed};
use crate::stages::link_target::page_of;
use crate::store::Store;
use crate::store::index::{Index, Kind, Moment};
use crate::store::manifest::Manifest;
use crate::store::texts::ShardReader;
use crate::tables::ingest::{LinkRow, TargetView};
use crate::tables::record::Table as _;

/// The links of living pages, by the page that they lead to.
pub(super) struct Linkers;

impl Linkers {
    /// Brings it to where a snapshot leaves it. `done`: the snapshots before, oldest first.
    pub(super) fn bring(
        store: &Store,
        index: &Index,
        done: &[Manifest<Ingested>],
        now: &Manifest<Ingested>,
    ) -> Result<()> {
        if has_followed::<Self>(store, index, &now.snapshot)? {
            return Ok(());
        }
        bring::<Self>(store, index, done)?;
        Self::replay(store, index, Night { before: done.last(), now })?;
        followed::<Self>(index, &now.snapshot, now.lineage);
        Ok(())
    }

    /// The pages that link to a page, by URL; `None` if there are more than `most`.
    pub(super) fn of(at: &Moment, page: &str, most: usize) -> Result<Option<Vec<String>>> {
        let prefix = Digest::of(page.as_bytes()).0;
        let mut found = Vec::new();
        let mut damaged = false;
        at.scan(Kind::Linkers, &prefix, &mut |key, _| {
            match key.get(prefix.len()..).map(std::str::from_utf8) {
                Some(Ok(url)) => found.push(url.to_owned()),
                _ => damaged = true,
            }
            Ok(!damaged && found.len() <= most)
        })?;
        anyhow::ensure!(!damaged, "a key of the index is damaged");
        Ok((found.len() <= most).then_some(found))
    }
}

/// The key of a link: links to one page lie together.
fn key(target: &str, url: &str) -> Vec<u8> {
    [&Digest::of(target.as_bytes()).0[..], url.as_bytes()].concat()
}

impl Kept for Linkers {
    const STAGE: StageId = StageId::Delta;
    const FOLLOWS: StageId = StageId::Ingest;
    const KINDS: &'static [Kind] = &[Kind::Linkers];
    const CURSOR: &'static str = Kind::Linkers.as_str();

    fn load(store: &Store, index: &Index, base: &SnapshotId) -> Result<()> {
        // A base stores the links of all pages.
        let partition = store.partition(LinkRow::NAME, base)?;
        for shard in 0..store.shards() {
            let mut keys = Vec::new();
            partition.visit::<TargetView<'_>>(&partition.part(shard), |link| {
                keys.push(key(&page_of(link.target), link.url));
            })?;
            keys.into_iter().try_for_each(|key| index.put(Kind::Linkers, key, Vec::new()))?;
        }
        Ok(())
    }

    fn replay(store: &Store, index: &Index, night: Night<'_>) -> Result<()> {
        let last = &night.before.context("a base comes first")?.snapshot;
        for shard in 0..store.shards() {
            let changes = tonight(store, shard, last, &night.now.snapshot, night.now.summary.whole)?;
            let mut reader = ShardReader::new(store, shard);
            for (change, links) in changes.iter().zip(links(&mut reader, &changes)?) {
                let keys = |links: &[LinkRow]| -> BTreeSet<Vec<u8>> {
                    links.iter().map(|link| key(&page_of(&link.target), change.url())).collect()
                };
                let (old, new) = (keys(&links.old), keys(&links.new));
                for key in old.difference(&new) {
                    index.delete(Kind::Linkers, key.clone())?;
                }
                for key in new.difference(&old) {
                    index.put(Kind::Linkers, key.clone(), Vec::new())?;
                }
            }
        }
        Ok(())
    }
}
