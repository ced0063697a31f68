//! Dropping old snapshots without losing what later ones point to.
//!
//! Texts and links that lie in a dropped snapshot move to the first kept snapshot that points to them. Order makes it
//! safe to interrupt: new rows first, then pointers, then heads (a cache). Then the manifests of dropped snapshots go, the
//! last stage first: while that of `ingest` is there, the same command again finds and completes what is left. Partitions
//! that no manifest names are swept at the end, here and at the start of every run.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::graph::Graph;
use super::inventory::find;
use crate::manifests::Ingested;
use crate::model::{Digest, SnapshotId};
use crate::store::carried::Carried;
use crate::store::lock::StoreLock;
use crate::store::manifest::Manifest;
use crate::store::parquet::{GROUP_BYTES, GROUP_ROWS, Partition, PartitionWriter};
use crate::store::texts::ShardReader;
use crate::store::{Result, Store};
use crate::tables::ingest::{LinkRow, Page};
use crate::tables::record::{Record, Table};

/// The first kept snapshot that holds a text or content: by URL and digest. Made from the kept pages themselves, so that
/// an interrupted prune goes on where it was.
type Holders = HashMap<(Digest, Digest), SnapshotId>;

fn key(url: &str, digest: Digest) -> (Digest, Digest) {
    (Digest::of(url.as_bytes()), digest)
}

/// What a prune dropped, or would have.
#[derive(Debug)]
pub(crate) struct Pruned {
    pub dropped: Vec<SnapshotId>,
    /// How many snapshots stay.
    pub kept: usize,
}

/// Drops all snapshots older than `before`; with `dry_run` only says which these are.
pub(crate) fn prune_before(graph: Graph, root: &Path, before: &SnapshotId, dry_run: bool) -> anyhow::Result<Pruned> {
    if Store::open(root)?.is_none() {
        anyhow::bail!("no store at {}; nothing to prune", root.display());
    }
    let _lock = StoreLock::take(root, "prune")?;
    let store = Store::open_or_create(root)?;
    let manifests = store.manifests::<Ingested>()?;
    let ids: Vec<SnapshotId> = manifests.iter().map(|manifest| manifest.snapshot.clone()).collect();
    let first = find(&ids, before)?;
    let (dropped, kept) = manifests.split_at(first);
    if !dry_run {
        store.clear_staging()?;
        prune(graph, &store, dropped, kept)?;
    }
    Ok(Pruned { dropped: ids[..first].to_vec(), kept: kept.len() })
}

/// Drops the `dropped` snapshots (the oldest ones); `kept` are the others, oldest first.
fn prune(graph: Graph, store: &Store, dropped: &[Manifest<Ingested>], kept: &[Manifest<Ingested>]) -> Result<()> {
    if !dropped.is_empty() {
        drop_snapshots(graph, store, dropped, kept)?;
    }
    // Also what an interrupted prune has left.
    for stage in graph.stages() {
        store.sweep(stage.id(), stage.writes())?;
    }
    Ok(())
}

fn drop_snapshots(
    graph: Graph,
    store: &Store,
    dropped: &[Manifest<Ingested>],
    kept: &[Manifest<Ingested>],
) -> Result<()> {
    let gone: HashSet<&SnapshotId> = dropped.iter().map(|manifest| &manifest.snapshot).collect();
    let mut pruning = Pruning { store, gone, texts: Holders::new(), links: Holders::new() };
    for (i, manifest) in kept.iter().enumerate() {
        pruning.take_over(manifest, i == 0)?;
    }
    if let Some(first) = kept.first() {
        store.set_first_kept(first.time, &first.snapshot)?;
    }
    store.carried(Carried::Heads).keep(&[])?;
    for manifest in dropped {
        for stage in graph.stages().iter().rev() {
            for carried in Carried::ALL.into_iter().filter(|carried| carried.stage() == stage.id()) {
                store.carried(carried).drop(&manifest.snapshot)?;
            }
            store.forget(stage.id(), &manifest.snapshot)?;
        }
    }
    Ok(())
}

/// A prune under way.
struct Pruning<'a> {
    store: &'a Store,
    gone: HashSet<&'a SnapshotId>,
    texts: Holders,
    links: Holders,
}

/// The pages and links of a snapshot, written anew.
struct Rewritten {
    pages: Grouped<Page>,
    links: Grouped<LinkRow>,
    /// Something in it had to change.
    touched: bool,
}

impl Pruning<'_> {
    /// Rewrites a snapshot's links and pages so that nothing in it points to a dropped snapshot.
    fn take_over(&mut self, manifest: &Manifest<Ingested>, oldest: bool) -> Result<()> {
        let (store, id) = (self.store, &manifest.snapshot);
        let (old_pages, old_links) = (store.partition(Page::NAME, id)?, store.partition(LinkRow::NAME, id)?);
        let dir = store.scratch_dir(&format!("prune-{id}"))?;
        let (pages_file, links_file) = (dir.join("pages.parquet"), dir.join("links.parquet"));
        let mut new =
            Rewritten { pages: Grouped::create(&pages_file)?, links: Grouped::create(&links_file)?, touched: false };
        for shard in 0..store.shards() {
            self.shard(shard, id, &old_pages, &old_links, &mut new)?;
        }
        new.pages.writer.finish()?;
        let link_rows = new.links.writer.finish()?;
        if new.touched {
            // Links first: rows that nothing points to yet do no harm.
            store.put_files(&[
                (links_file, store.partition_file(LinkRow::NAME, id)),
                (pages_file, store.partition_file(Page::NAME, id)),
            ])?;
        }
        let mut manifest = manifest.clone();
        manifest.summary.base |= oldest;
        manifest.tables.insert(LinkRow::NAME.to_owned(), link_rows);
        store.replace_manifest(&manifest)?;
        store.remove_folder(&dir)
    }

    fn shard(
        &mut self,
        shard: u32,
        id: &SnapshotId,
        old_pages: &Partition,
        old_links: &Partition,
        new: &mut Rewritten,
    ) -> Result<()> {
        let mut reader = ShardReader::new(self.store, shard);
        let mut own_links = old_links.shard::<LinkRow>(shard)?.into_iter().peekable();
        for group in old_pages.groups_of(shard) {
            for mut page in old_pages.groups::<Page>(&[group])? {
                let links_gone = self.gone.contains(&page.content_snapshot);
                while let Some(link) = own_links.next_if(|link| *link.url <= *page.url) {
                    // Links of a page that still points elsewhere were put here by a prune that was interrupted.
                    if !(links_gone && *link.url == *page.url) {
                        new.links.push(shard, link, 0)?;
                    }
                }
                self.text(id, &mut page, &mut reader, new)?;
                self.links(shard, id, &mut page, &mut reader, new)?;
                self.old_text(id, &mut page, new);
                let bytes = page.text.as_ref().map_or(0, String::len);
                new.pages.push(shard, page, bytes)?;
            }
        }
        for link in own_links {
            new.links.push(shard, link, 0)?;
        }
        new.pages.flush(shard)?;
        new.links.flush(shard)
    }

    /// Takes over the text of a page from a dropped snapshot, or points to the kept one that did so before.
    fn text(
        &mut self,
        id: &SnapshotId,
        page: &mut Page,
        reader: &mut ShardReader<'_>,
        new: &mut Rewritten,
    ) -> Result<()> {
        let key = key(&page.url, page.text_digest);
        if self.gone.contains(&page.text_snapshot) {
            new.touched = true;
            if !self.texts.contains_key(&key) {
                page.text = reader.texts(&[(&page.url, &page.text_snapshot)])?.pop();
            }
            page.text_snapshot = self.texts.entry(key).or_insert_with(|| id.clone()).clone();
        } else if page.text_snapshot == *id {
            self.texts.entry(key).or_insert_with(|| id.clone());
        }
        Ok(())
    }

    /// The same for its links.
    fn links(
        &mut self,
        shard: u32,
        id: &SnapshotId,
        page: &mut Page,
        reader: &mut ShardReader<'_>,
        new: &mut Rewritten,
    ) -> Result<()> {
        let key = key(&page.url, page.content_digest);
        if self.gone.contains(&page.content_snapshot) {
            new.touched = true;
            if !self.links.contains_key(&key) {
                let moved = reader.links(&[(&page.url, &page.content_snapshot)])?.pop();
                for link in moved.unwrap_or_default() {
                    new.links.push(shard, link, 0)?;
                }
            }
            page.content_snapshot = self.links.entry(key).or_insert_with(|| id.clone()).clone();
        } else if page.content_snapshot == *id {
            self.links.entry(key).or_insert_with(|| id.clone());
        }
        Ok(())
    }

    /// What a page was compared with is gone, unless its text was taken over by an earlier snapshot.
    fn old_text(&self, id: &SnapshotId, page: &mut Page, new: &mut Rewritten) {
        let old = page.old_text_snapshot.as_ref();
        if old.is_some_and(|old| self.gone.contains(old)) {
            new.touched = true;
            let url = page.moved_from.as_ref().unwrap_or(&page.url);
            let held = page.old_text_digest.and_then(|digest| self.texts.get(&key(url, digest)));
            page.old_text_snapshot = held.filter(|holder| *holder != id).cloned();
        }
    }
}

/// Cuts rows into row groups as they come.
struct Grouped<T> {
    writer: PartitionWriter<T>,
    rows: Vec<T>,
    bytes: usize,
}

impl<T: Record> Grouped<T> {
    fn create(path: &Path) -> Result<Self> {
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
