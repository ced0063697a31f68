//! Second half of ingest: spilled captures of one shard and the heads before them to rows, in URL order.
//!
//! What becomes of a URL is decided in `captures`; here lists are merged, contents read and rows encoded. Shards are
//! independent, so they are assembled in parallel, a few at a time, and appended in order.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Context as _, Result};

use super::spill::Spilled;
use crate::captures::{
    ContentAt, ContentOf, Elsewhere, NotedText, Others, Referable, SpilledCapture, Tonight, UrlRows, UrlTonight,
    resolve,
};
use crate::manifests::Changes;
use crate::model::{Content, Link, SnapshotId, Standing};
use crate::store::Store;
use crate::store::parquet::{EncodedGroup, Encoder, GROUP_BYTES, GROUP_ROWS, Partition, PartitionWriter};
use crate::store::texts::ShardReader;
use crate::tables::ingest::{Capture, Head, LinkRow, Page};

/// What all shards share.
pub(super) struct Assembly<'a> {
    pub(super) store: &'a Store,
    pub(super) tonight: Tonight<'a>,
    pub(super) spilled: &'a Spilled,
    pub(super) heads: Option<&'a Partition>,
    pub(super) referable: &'a Referable,
}

/// Writers of a snapshot's tables.
pub(super) struct Writers {
    pub(super) captures: PartitionWriter<Capture>,
    pub(super) pages: PartitionWriter<Page>,
    pub(super) links: PartitionWriter<LinkRow>,
    pub(super) heads: PartitionWriter<Head>,
}

impl Writers {
    pub(super) fn encoders(&self) -> Encoders {
        Encoders {
            captures: self.captures.encoder(),
            pages: self.pages.encoder(),
            links: self.links.encoder(),
            heads: self.heads.encoder(),
        }
    }

    pub(super) fn append(&mut self, shard: ShardOutput) -> Result<()> {
        shard.captures.into_iter().try_for_each(|group| self.captures.append(group))?;
        shard.pages.into_iter().try_for_each(|group| self.pages.append(group))?;
        shard.links.into_iter().try_for_each(|group| self.links.append(group))?;
        shard.heads.into_iter().try_for_each(|group| self.heads.append(group))?;
        Ok(())
    }
}

/// What encodes rows for the writers.
pub(super) struct Encoders {
    captures: Encoder<Capture>,
    pages: Encoder<Page>,
    links: Encoder<LinkRow>,
    heads: Encoder<Head>,
}

/// A shard's rows, encoded.
#[derive(Default)]
pub(super) struct ShardOutput {
    captures: Vec<EncodedGroup>,
    pages: Vec<EncodedGroup>,
    links: Vec<EncodedGroup>,
    heads: Vec<EncodedGroup>,
    pub(super) changes: Changes,
}

impl Assembly<'_> {
    pub(super) fn shard(&self, shard: u32, encoders: &Encoders) -> Result<ShardOutput> {
        let mut captures = self.spilled.captures(shard)?;
        captures.sort_by(|a, b| (&a.note.url, a.note.order()).cmp(&(&b.note.url, b.note.order())));
        let heads: Vec<Head> = match self.heads {
            Some(partition) => partition.shard(shard)?,
            None => Vec::new(),
        };
        let urls = self.merge(heads, &captures);
        let others = self.others(&urls)?;
        let mut contents = Contents { all: self, shard, reader: ShardReader::new(self.store, shard) };
        let mut rows = Rows { shard, encoders, waiting: Waiting::default(), output: ShardOutput::default() };
        for url in urls {
            rows.add(self.tonight.fold(url, &others, &mut |at| contents.read(at))?)?;
        }
        rows.finish()
    }

    /// All URLs of a shard, from two lists sorted by URL.
    fn merge<'c>(&'c self, heads: Vec<Head>, captures: &'c [SpilledCapture]) -> Vec<UrlTonight<'c>> {
        let mut urls = Vec::with_capacity(heads.len());
        let mut heads = heads.into_iter().peekable();
        for captures in captures.chunk_by(|a, b| a.note.url == b.note.url) {
            let url = &captures[0].note.url;
            while let Some(head) = heads.next_if(|head| head.page.url < *url) {
                urls.push(self.resolved(Some(head), &[]));
            }
            let head = heads.next_if(|head| head.page.url == *url);
            urls.push(self.resolved(head, captures));
        }
        urls.extend(heads.map(|head| self.resolved(Some(head), &[])));
        urls
    }

    fn resolved<'c>(&'c self, head: Option<Head>, captures: &'c [SpilledCapture]) -> UrlTonight<'c> {
        let last = head.as_ref().map(|head| head.page.archive_digest.as_deref());
        let notes = captures.iter().map(|capture| &capture.note);
        let resolved = resolve(notes, last, |note| self.referable.find(note));
        UrlTonight { head, captures, resolved }
    }

    /// Reads what captures of these URLs stand for that other URLs hold; each shard of heads is read at most once.
    fn others(&self, urls: &[UrlTonight<'_>]) -> Result<Others> {
        let mut others = Others::default();
        let mut wanted: BTreeMap<u32, HashSet<String>> = BTreeMap::new();
        for content in urls.iter().flat_map(|url| &url.resolved.contents).flatten() {
            let ContentOf::Elsewhere(elsewhere) = content else { continue };
            let last_page_of = match *elsewhere {
                Elsewhere::LastPageOf(url) => Some(url.to_owned()),
                Elsewhere::Capture(at) => {
                    let note = self.spilled.note(at)?;
                    let as_last = (note.text == NotedText::AsLast).then(|| note.url.clone());
                    others.captures.insert(at, note);
                    as_last
                }
            };
            if let Some(url) = last_page_of {
                wanted.entry(self.store.shard_of(&url)).or_default().insert(url);
            }
        }
        for (shard, mut urls) in wanted {
            let heads = self.heads.context("a revisit refers to a page of no earlier snapshot")?;
            for head in heads.shard::<Head>(shard)? {
                if let Some(url) = urls.take(&head.page.url) {
                    others.heads.insert(url, head);
                }
            }
            if let Some(url) = urls.iter().next() {
                anyhow::bail!("no last page of {url}");
            }
        }
        Ok(others)
    }
}

/// Reads contents, from earlier snapshots and from tonight's.
struct Contents<'a> {
    all: &'a Assembly<'a>,
    shard: u32,
    /// Of this shard; what lies in another one is read by a reader of its own.
    reader: ShardReader<'a>,
}

impl Contents<'_> {
    fn read(&mut self, at: ContentAt<'_>) -> Result<Content> {
        match at {
            ContentAt::Spilled(at) => self.all.spilled.content(at),
            ContentAt::Stored { url, text_snapshot, content_snapshot } => {
                self.stored(url, text_snapshot, content_snapshot)
            }
        }
    }

    fn stored(&mut self, url: &str, text: &SnapshotId, links: &SnapshotId) -> Result<Content> {
        let shard = self.all.store.shard_of(url);
        let mut other;
        let reader = if shard == self.shard {
            &mut self.reader
        } else {
            other = ShardReader::new(self.all.store, shard);
            &mut other
        };
        let text = reader.texts(&[(url, text)])?.pop().context("no text")?;
        let links = reader.links(&[(url, links)])?.pop().context("no links")?;
        let links = links.into_iter().map(|row| Link { target: row.target, label: row.label, kind: row.kind });
        Ok(Content { title: None, text, links: links.collect() })
    }
}

/// The rows of a shard, encoded whenever they fill a row group.
struct Rows<'a> {
    shard: u32,
    encoders: &'a Encoders,
    waiting: Waiting,
    output: ShardOutput,
}

/// Rows that are not encoded yet, and their bytes of text.
#[derive(Default)]
struct Waiting {
    captures: Vec<Capture>,
    pages: Vec<Page>,
    page_bytes: usize,
    links: Vec<LinkRow>,
    link_bytes: usize,
    heads: Vec<Head>,
}

impl Rows<'_> {
    fn add(&mut self, rows: UrlRows) -> Result<()> {
        count(&mut self.output.changes, &rows);
        let waiting = &mut self.waiting;
        let link_bytes = |link: &LinkRow| link.url.len() + link.target.len() + link.label.len();
        waiting.captures.extend(rows.captures);
        waiting.page_bytes += rows.page.as_ref().and_then(|page| page.text.as_ref()).map_or(0, String::len);
        waiting.pages.extend(rows.page);
        waiting.link_bytes += rows.links.iter().map(link_bytes).sum::<usize>();
        waiting.links.extend(rows.links);
        waiting.heads.extend(rows.head);
        self.flush(false)
    }

    /// Encodes what fills a row group, or everything.
    fn flush(&mut self, all: bool) -> Result<()> {
        let Self { shard, encoders, waiting, output } = self;
        if waiting.captures.len() >= GROUP_ROWS || (all && !waiting.captures.is_empty()) {
            let rows = std::mem::take(&mut waiting.captures);
            output.captures.push(encoders.captures.encode(*shard, &rows)?);
        }
        let full = waiting.page_bytes >= GROUP_BYTES || waiting.pages.len() >= GROUP_ROWS;
        if full || (all && !waiting.pages.is_empty()) {
            let rows = std::mem::take(&mut waiting.pages);
            waiting.page_bytes = 0;
            output.pages.push(encoders.pages.encode(*shard, &rows)?);
        }
        let full = waiting.link_bytes >= GROUP_BYTES || waiting.links.len() >= GROUP_ROWS;
        if full || (all && !waiting.links.is_empty()) {
            let rows = std::mem::take(&mut waiting.links);
            waiting.link_bytes = 0;
            for part in rows.chunks(GROUP_ROWS) {
                output.links.push(encoders.links.encode(*shard, part)?);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<ShardOutput> {
        self.flush(true)?;
        for part in self.waiting.heads.chunks(GROUP_ROWS) {
            self.output.heads.push(self.encoders.heads.encode(self.shard, part)?);
        }
        Ok(self.output)
    }
}

fn count(changes: &mut Changes, rows: &UrlRows) {
    let unresolved = rows.captures.iter().filter(|capture| capture.revisit && capture.text_digest.is_none());
    changes.unresolved_revisits += unresolved.count() as u64;
    changes.missing += u64::from(rows.went);
    let Some(page) = &rows.page else { return };
    match page.change {
        Standing::Added => changes.added += 1,
        Standing::Modified => changes.modified += 1,
        Standing::Unchanged => changes.unchanged += 1,
        Standing::Carried => changes.carried += 1,
    }
    changes.moved += u64::from(page.moved_from.is_some());
    changes.text_bytes += u64::try_from(page.text_bytes).unwrap_or(0);
    changes.stored_text_bytes += page.text.as_ref().map_or(0, String::len) as u64;
    changes.texts.add(page.old_text_digest.map(|old| old == page.text_digest), page.text_bytes);
}
