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
use crate::tables::ingest::{Head, Page, PageFacts};
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
        let carried = self.carried(Carried::Heads);
        log::info!("rebuilding {} from {} snapshots", carried.file(snapshot).display(), done.len());
        let staged = self.staging().join("heads.parquet");
        fs::create_dir_all(self.staging())?;
        let mut writer = PartitionWriter::<Head>::create(&staged)?;
        let mut partitions = Vec::new();
        for &(id, ignore) in done {
            partitions.push((id, ignore, self.partition(Page::NAME, id)?));
        }
        for shard in 0..self.shards() {
            let mut heads: BTreeMap<String, Head> = BTreeMap::new();
            for (id, ignore, partition) in &partitions {
                for head in heads.values_mut() {
                    head.alive = false;
                }
                for page in partition.shard::<PageFacts>(shard)? {
                    let (snapshot, ignore_digest) = ((*id).clone(), *ignore);
                    heads.insert(page.url.clone(), Head { page, snapshot, alive: true, ignore_digest });
                }
            }
            writer.write(shard, &heads.into_values().collect::<Vec<_>>())?;
        }
        writer.finish()?;
        carried.put(&staged, snapshot)
    }
}
