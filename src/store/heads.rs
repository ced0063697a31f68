//! Heads: per URL its last good page, carried from snapshot to snapshot, so that a page missing or failing one night
//! is known when it returns, and so that a night reads one small file instead of all history.
//!
//! A heads file is a cache: it is kept for the newest snapshots and rebuilt from `pages` when an older one is asked
//! for.

use std::collections::BTreeMap;

use fs_err as fs;

use super::carried::Carried;
use super::parquet::{Partition, PartitionWriter};
use super::{Result, Store};
use crate::model::{Digest, SnapshotId};
use crate::tables::ingest::{Head, Page, PageMeta};
use crate::tables::record::Table as _;

impl Store {
    /// Heads as they stood after the last of `done`: the ingested snapshots in order, each with what identifies its
    /// `ignore` rules.
    pub fn heads(&self, done: &[(&SnapshotId, Digest)]) -> Result<Option<Partition>> {
        let Some((last, _)) = done.last() else { return Ok(None) };
        let heads = self.carried(Carried::Heads);
        if !heads.is_there(last) {
            self.rebuild_heads(done, last)?;
        }
        heads.open(last).map(Some)
    }

    fn rebuild_heads(&self, done: &[(&SnapshotId, Digest)], snapshot: &SnapshotId) -> Result<()> {
        let heads = self.carried(Carried::Heads);
        log::info!("rebuilding {} from {} snapshots", heads.file(snapshot).display(), done.len());
        let staged = self.staging().join("heads.parquet");
        fs::create_dir_all(self.staging())?;
        let mut writer = PartitionWriter::<Head>::create(&staged)?;
        let mut partitions = Vec::new();
        for &(id, ignore) in done {
            partitions.push((id, ignore, self.partition(Page::NAME, id)?));
        }
        for shard in 0..self.shards() {
            let mut heads = BTreeMap::new();
            for (id, ignore, partition) in &partitions {
                for head in heads.values_mut() {
                    let head: &mut Head = head;
                    head.alive = false;
                }
                for page in partition.shard::<PageMeta>(shard)? {
                    heads.insert(page.url.clone(), head_of(page, (*id).clone(), *ignore));
                }
            }
            writer.write(shard, &heads.into_values().collect::<Vec<_>>())?;
        }
        writer.finish()?;
        self.carried(Carried::Heads).put(&staged, snapshot)
    }
}

fn head_of(page: PageMeta, snapshot: SnapshotId, ignore_digest: Digest) -> Head {
    Head {
        url: page.url,
        snapshot,
        alive: true,
        title: page.title,
        content_type: page.content_type,
        charset: page.charset,
        fetched_at: page.fetched_at,
        last_modified: page.last_modified,
        text_digest: page.text_digest,
        text_bytes: page.text_bytes,
        text_snapshot: page.text_snapshot,
        content_digest: page.content_digest,
        content_snapshot: page.content_snapshot,
        change_digest: page.change_digest,
        masked_text_digest: page.masked_text_digest,
        ignore_digest,
        payload_digest: page.payload_digest,
        archive_digest: page.archive_digest,
        reading_digest: page.reading_digest,
    }
}
