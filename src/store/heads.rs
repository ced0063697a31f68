//! Heads: per URL its last good page, carried from snapshot to snapshot, so that a page missing or failing one night
//! is known when it returns, and so that a night reads one small file instead of all history.
//!
//! A heads file is a cache: it is kept for the newest snapshots and rebuilt from `pages` when an older one is asked
//! for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fs_err as fs;

use super::manifest::Manifest;
use super::parquet::{Partition, PartitionWriter};
use super::{Result, Store, remove_file_if_there};
use crate::model::{Digest, SnapshotId};
use crate::tables::ingest::{Head, Page, PageMeta};
use crate::tables::record::Table as _;

impl Store {
    #[must_use]
    pub fn heads_file(&self, snapshot: &SnapshotId) -> PathBuf {
        self.meta().join("heads").join(format!("{snapshot}.parquet"))
    }

    /// Heads as they stood after the last of `done`, the ingested snapshots in order.
    pub fn heads(&self, done: &[Manifest]) -> Result<Option<Partition>> {
        let Some(last) = done.last() else { return Ok(None) };
        let path = self.heads_file(&last.snapshot);
        if !path.exists() {
            self.rebuild_heads(done, &path)?;
        }
        Partition::open(&path).map(Some)
    }

    fn rebuild_heads(&self, done: &[Manifest], path: &std::path::Path) -> Result<()> {
        log::info!("rebuilding {} from {} snapshots", path.display(), done.len());
        let staged = self.staging().join("heads.parquet");
        fs::create_dir_all(self.staging())?;
        fs::create_dir_all(path.parent().expect("a file has a folder"))?;
        let mut writer = PartitionWriter::<Head>::create(&staged)?;
        let mut partitions = Vec::new();
        for manifest in done {
            partitions.push((manifest, Partition::open(&self.partition_file(Page::NAME, &manifest.snapshot))?));
        }
        for shard in 0..self.shards() {
            let mut heads = BTreeMap::new();
            for (manifest, partition) in &partitions {
                for head in heads.values_mut() {
                    let head: &mut Head = head;
                    head.alive = false;
                }
                for page in partition.shard::<PageMeta>(shard)? {
                    let ignore_digest = manifest.ignore_digest();
                    heads.insert(page.url.clone(), head_of(page, manifest.snapshot.clone(), ignore_digest));
                }
            }
            writer.write(shard, &heads.into_values().collect::<Vec<_>>())?;
        }
        writer.finish()?;
        fs::rename(&staged, path)?;
        Ok(())
    }

    /// Drops the heads of all snapshots but these.
    pub fn keep_heads(&self, keep: &[&SnapshotId]) -> Result<()> {
        let dir = self.meta().join("heads");
        if !dir.is_dir() {
            return Ok(());
        }
        for entry in fs::read_dir(&dir)? {
            let path = entry?.path();
            if !keep.iter().any(|id| self.heads_file(id) == path) {
                remove_file_if_there(&path)?;
            }
        }
        Ok(())
    }

    pub fn drop_heads(&self, snapshot: &SnapshotId) -> Result<()> {
        remove_file_if_there(&self.heads_file(snapshot))
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
