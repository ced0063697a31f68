//! Dropping old snapshots without losing what later ones point to.
//!
//! Texts and links that lie in a dropped snapshot move to the first kept snapshot that points to them. Order makes it
//! safe to interrupt: new rows first, then pointers, then heads (a cache), then manifests, then partitions; the same
//! command again completes it.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::manifest::Manifest;
use super::parquet::{GROUP_BYTES, GROUP_ROWS, Partition, PartitionWriter};
use super::texts::ShardReader;
use super::{Result, Store, sync_dir};
use crate::model::{Digest, SnapshotId, Timestamp};
use crate::tables::ingest::{LinkRow, Page};
use crate::tables::record::{Record, Table};

/// The oldest snapshot kept: older folders of the archive are none of ours any more.
#[derive(Serialize, Deserialize)]
struct Pruned {
    time: Timestamp,
    snapshot: SnapshotId,
}

/// The first kept snapshot that holds a text or content: by URL and digest. Made from the kept pages themselves, so that
/// an interrupted prune goes on where it was.
type Holders = HashMap<(Digest, Digest), SnapshotId>;

fn key(url: &str, digest: Digest) -> (Digest, Digest) {
    (Digest::of(url.as_bytes()), digest)
}

impl Store {
    fn pruned_file(&self) -> std::path::PathBuf {
        self.meta().join("pruned.json")
    }

    /// Whether a snapshot is older than what was kept when the store was last pruned.
    pub fn is_pruned(&self, time: Timestamp, snapshot: &SnapshotId) -> Result<bool> {
        let pruned: Option<Pruned> = super::read_json(&self.pruned_file())?;
        Ok(pruned.is_some_and(|first| (time, snapshot) < (first.time, &first.snapshot)))
    }

    /// Whether this is the oldest snapshot that pruning left: what it was compared with is gone.
    pub fn is_first_kept(&self, snapshot: &SnapshotId) -> Result<bool> {
        let pruned: Option<Pruned> = super::read_json(&self.pruned_file())?;
        Ok(pruned.is_some_and(|first| first.snapshot == *snapshot))
    }

    /// Drops the `dropped` snapshots (the oldest ones) of all `tables`; `kept` are the others, oldest first.
    pub fn prune(&self, dropped: &[Manifest], kept: &[Manifest], stages: &[&str], tables: &[&str]) -> Result<()> {
        let gone: HashSet<&SnapshotId> = dropped.iter().map(|manifest| &manifest.snapshot).collect();
        let mut texts = Holders::new();
        let mut links = Holders::new();
        for (i, manifest) in kept.iter().enumerate() {
            self.take_over(manifest, i == 0, &gone, &mut texts, &mut links)?;
        }
        if let Some(first) = kept.first() {
            super::write_json(&self.pruned_file(), &Pruned { time: first.time, snapshot: first.snapshot.clone() })?;
        }
        self.keep_heads(&[])?;
        for manifest in dropped {
            self.drop_states(&manifest.snapshot)?;
            self.seen().drop(&manifest.snapshot)?;
            for stage in stages {
                self.forget(stage, &manifest.snapshot)?;
            }
        }
        for manifest in dropped {
            for table in tables {
                for table in self.tables_below(table)? {
                    self.drop_partition(&table, &manifest.snapshot)?;
                }
            }
        }
        Ok(())
    }

    /// Rewrites a snapshot's links and pages so that nothing in it points to a dropped snapshot.
    fn take_over(
        &self,
        manifest: &Manifest,
        oldest: bool,
        gone: &HashSet<&SnapshotId>,
        texts: &mut Holders,
        links: &mut Holders,
    ) -> Result<()> {
        let id = &manifest.snapshot;
        let pages_file = self.partition_file(Page::NAME, id);
        let links_file = self.partition_file(LinkRow::NAME, id);
        let old_pages = Partition::open(&pages_file)?;
        let old_links = Partition::open(&links_file)?;
        let dir = self.staging().join(format!("prune-{id}"));
        super::remove_dir_if_there(&dir)?;
        fs_err::create_dir_all(&dir)?;
        let (new_pages_file, new_links_file) = (dir.join("pages.parquet"), dir.join("links.parquet"));
        let mut new_pages = Grouped::<Page>::create(&new_pages_file)?;
        let mut new_links = Grouped::<LinkRow>::create(&new_links_file)?;
        let mut touched = false;
        for shard in 0..self.shards() {
            let mut reader = ShardReader::new(self, shard);
            let mut own_links = old_links.shard::<LinkRow>(shard)?.into_iter().peekable();
            for group in old_pages.groups_of(shard) {
                for mut page in old_pages.groups::<Page>(&[group])? {
                    let links_gone = gone.contains(&page.content_snapshot);
                    while let Some(link) = own_links.next_if(|link| *link.url <= *page.url) {
                        // Links of a page that still points elsewhere were put here by a prune that was interrupted.
                        if !(links_gone && *link.url == *page.url) {
                            new_links.push(shard, link, 0)?;
                        }
                    }
                    let text_key = key(&page.url, page.text_digest);
                    if gone.contains(&page.text_snapshot) {
                        touched = true;
                        if !texts.contains_key(&text_key) {
                            page.text = reader.texts(&[(&page.url, &page.text_snapshot)])?.pop();
                        }
                        page.text_snapshot = texts.entry(text_key).or_insert_with(|| id.clone()).clone();
                    } else if page.text_snapshot == *id {
                        texts.entry(text_key).or_insert_with(|| id.clone());
                    }
                    let content_key = key(&page.url, page.content_digest);
                    if links_gone {
                        touched = true;
                        if !links.contains_key(&content_key) {
                            let moved = reader.links(&[(&page.url, &page.content_snapshot)])?.pop();
                            for link in moved.unwrap_or_default() {
                                new_links.push(shard, link, 0)?;
                            }
                        }
                        page.content_snapshot = links.entry(content_key).or_insert_with(|| id.clone()).clone();
                    } else if page.content_snapshot == *id {
                        links.entry(content_key).or_insert_with(|| id.clone());
                    }
                    // What a page was compared with is gone, unless its text was taken over by an earlier snapshot.
                    if let Some(old) = &page.old_text_snapshot
                        && gone.contains(old)
                    {
                        touched = true;
                        let url = page.moved_from.as_ref().unwrap_or(&page.url);
                        let held = page.old_text_digest.and_then(|digest| texts.get(&key(url, digest)));
                        page.old_text_snapshot = held.filter(|holder| *holder != id).cloned();
                    }
                    let bytes = page.text.as_ref().map_or(0, String::len);
                    new_pages.push(shard, page, bytes)?;
                }
            }
            for link in own_links {
                new_links.push(shard, link, 0)?;
            }
            new_pages.flush(shard)?;
            new_links.flush(shard)?;
        }
        new_pages.writer.finish()?;
        let link_rows = new_links.writer.finish()?;
        if touched {
            // Links first: rows that nothing points to yet do no harm.
            for (from, to) in [(new_links_file, links_file), (new_pages_file, pages_file)] {
                fs_err::rename(from, &to)?;
                sync_dir(to.parent().expect("a file has a folder"))?;
            }
        }
        let mut manifest = manifest.clone();
        manifest.base |= oldest;
        manifest.tables.insert(LinkRow::NAME.to_owned(), link_rows);
        self.write_manifest(&manifest)?;
        super::remove_dir_if_there(&dir)
    }
}

/// Cuts rows into row groups as they come.
struct Grouped<T> {
    writer: PartitionWriter<T>,
    rows: Vec<T>,
    bytes: usize,
}

impl<T: Record> Grouped<T> {
    fn create(path: &std::path::Path) -> Result<Self> {
        Ok(Self { writer: PartitionWriter::create(path)?, rows: Vec::new(), bytes: 0 })
    }

    fn push(&mut self, shard: u32, row: T, bytes: usize) -> Result<()> {
        self.rows.push(row);
        self.bytes += bytes;
        if self.rows.len() >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
            self.flush(shard)?;
        }
        Ok(())
    }

    fn flush(&mut self, shard: u32) -> Result<()> {
        self.bytes = 0;
        self.writer.write(shard, &std::mem::take(&mut self.rows))
    }
}
