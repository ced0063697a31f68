//! Second half of ingest: spilled captures of one shard and the heads before them to rows, in URL order.
//!
//! Shards are independent, so they are assembled in parallel, a few at a time, and appended in order.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};

use super::read::{Place, Seen};
use super::referred::{Named, Referred};
use super::spill::Spilled;
use crate::captures::{CaptureNote, ContentNote, Found, PayloadNote, Resolved, Source, resolve};
use crate::deltas::moved::is_recognisable;
use crate::manifests::Changes;
use crate::model::{Content, Digest, Link, Snapshot, SnapshotId, Standing};
use crate::store::Store;
use crate::store::parquet::{EncodedGroup, Encoder, GROUP_BYTES, GROUP_ROWS, Partition, PartitionWriter};
use crate::store::texts::ShardReader;
use crate::tables::ingest::{Capture, Head, LinkRow, Page};
use crate::text::mask::Mask;
use crate::text::url;

/// What all shards share.
pub(super) struct Assembly<'a> {
    pub(super) store: &'a Store,
    pub(super) snapshot: &'a Snapshot,
    pub(super) spilled: &'a Spilled,
    pub(super) heads: Option<&'a Partition>,
    pub(super) seen: &'a Seen,
    /// For texts of URLs that are new: the other URL whose last page has it, if there is just one.
    pub(super) moved: &'a HashMap<Digest, Option<LastPage>>,
    /// For digests that revisits ask for: a URL whose last page has it.
    pub(super) by_head_digest: &'a HashMap<String, String>,
    /// For URLs that revisits name: what is there.
    pub(super) referred: &'a Referred,
    pub(super) mask: &'a Mask,
    pub(super) ignore_digest: Digest,
    pub(super) base: bool,
    pub(super) partial: bool,
}

/// The last good page of a URL, for a page that moved away from it.
#[derive(Clone, Debug)]
pub(super) struct LastPage {
    pub(super) url: String,
    pub(super) snapshot: SnapshotId,
    pub(super) text_snapshot: SnapshotId,
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
    pub(super) captures: Vec<EncodedGroup>,
    pub(super) pages: Vec<EncodedGroup>,
    pub(super) links: Vec<EncodedGroup>,
    pub(super) heads: Vec<EncodedGroup>,
    pub(super) changes: Changes,
}

/// Somewhere under another URL, or in a capture of another file.
#[derive(Clone, Debug)]
enum Elsewhere {
    Spilled(Place),
    HeadOf(String),
}

/// The content of a capture, as far as it is known without reading it.
struct Known {
    content: ContentNote,
    payload: Option<PayloadNote>,
    archive_digest: Option<String>,
    /// The rules behind its change digest.
    ignore_digest: Digest,
    lies: Lies,
}

/// Where the content itself can be had.
#[derive(Clone, Debug)]
enum Lies {
    Spilled {
        shard: u32,
        at: u64,
    },
    /// In the store, under this URL.
    Stored {
        url: String,
        text_snapshot: SnapshotId,
        content_snapshot: SnapshotId,
    },
}

impl Assembly<'_> {
    pub(super) fn shard(&self, shard: u32, encoders: &Encoders) -> Result<ShardOutput> {
        let mut notes = self.spilled.notes(shard)?;
        notes.sort_by(|(a, _), (b, _)| (&a.url, a.order()).cmp(&(&b.url, b.order())));
        let heads: Vec<Head> = match self.heads {
            Some(partition) => partition.shard(shard)?,
            None => Vec::new(),
        };
        let mut work = ShardWork {
            all: self,
            shard,
            encoders,
            reader: ShardReader::new(self.store, shard),
            rows: Rows::default(),
            output: ShardOutput::default(),
        };
        // A merge of two lists sorted by URL.
        let mut heads = heads.into_iter().peekable();
        let mut rest = notes.as_slice();
        while let Some((first, _)) = rest.first() {
            let len = rest.iter().take_while(|(note, _)| note.url == first.url).count();
            let (captures, after) = rest.split_at(len);
            while let Some(head) = heads.next_if(|head| head.url < first.url) {
                work.absent(head, false)?;
            }
            let head = heads.next_if(|head| head.url == first.url);
            work.url(captures, head)?;
            rest = after;
        }
        for head in heads {
            work.absent(head, false)?;
        }
        work.finish()
    }

    /// Finds what a revisit refers to when its own URL does not hold it.
    fn elsewhere(&self, note: &CaptureNote) -> Option<Elsewhere> {
        let by_digest = note.archive_digest.as_ref().and_then(|digest| {
            let spilled = self.seen.by_archive_digest.get(digest).cloned().map(Elsewhere::Spilled);
            spilled.or_else(|| self.by_head_digest.get(digest).cloned().map(Elsewhere::HeadOf))
        });
        by_digest.or_else(|| match self.referred.named(note)? {
            Named::Spilled(place) => Some(Elsewhere::Spilled(place)),
            Named::Head(url) => Some(Elsewhere::HeadOf(url)),
        })
    }
}

#[derive(Default)]
struct Rows {
    captures: Vec<Capture>,
    pages: Vec<Page>,
    page_bytes: usize,
    links: Vec<LinkRow>,
    link_bytes: usize,
    heads: Vec<Head>,
}

struct ShardWork<'a> {
    all: &'a Assembly<'a>,
    shard: u32,
    encoders: &'a Encoders,
    reader: ShardReader<'a>,
    rows: Rows,
    output: ShardOutput,
}

impl ShardWork<'_> {
    /// A URL that was captured.
    fn url(&mut self, captures: &[(CaptureNote, u64)], head: Option<Head>) -> Result<()> {
        let notes: Vec<CaptureNote> = captures.iter().map(|(note, _)| note.clone()).collect();
        let last = head.as_ref().map(|head| head.archive_digest.as_deref());
        let Resolved { sources, page } = resolve(&notes, last, |note| self.all.elsewhere(note));
        let mut page_content = None;
        for (i, ((note, _), source)) in captures.iter().zip(sources).enumerate() {
            let known = match source {
                None => None,
                Some(source) => Some(self.known(source, captures, head.as_ref())?),
            };
            self.output.changes.unresolved_revisits += u64::from(note.revisit.is_some() && known.is_none());
            self.rows.captures.push(capture_row(note, known.as_ref()));
            if page == Some(i) {
                page_content = known.map(|known| (note, known));
            }
        }
        self.flush_captures(false)?;
        match (page_content, head) {
            (Some((note, known)), head) => self.page(note, known, head.as_ref()),
            (None, Some(head)) => {
                let gone = captures.last().is_some_and(|(note, _)| note.is_gone());
                self.absent(head, gone)
            }
            (None, None) => Ok(()),
        }
    }

    fn known(
        &mut self,
        source: Source<Elsewhere>,
        captures: &[(CaptureNote, u64)],
        head: Option<&Head>,
    ) -> Result<Known> {
        match source {
            Source::Own(i) => {
                let (note, at) = &captures[i];
                known_spilled(note, self.all.ignore_digest, self.shard, *at)
            }
            Source::Last => Ok(known_head(head.context("a capture refers to a last page that is not there")?)),
            Source::Elsewhere(Elsewhere::Spilled(place)) => {
                let (note, _) = self.all.spilled.entry(place.shard, place.at)?;
                if note.found == Found::AsLast {
                    return self.known_elsewhere(&note.url);
                }
                known_spilled(&note, self.all.ignore_digest, place.shard, place.at)
            }
            Source::Elsewhere(Elsewhere::HeadOf(url)) => self.known_elsewhere(&url),
        }
    }

    /// The last page of another URL.
    fn known_elsewhere(&mut self, url: &str) -> Result<Known> {
        let heads = self.all.heads.context("a revisit refers to a page of no earlier snapshot")?;
        let shard = self.all.store.shard_of(url);
        let head = heads.shard::<Head>(shard)?.into_iter().find(|head| head.url == url);
        Ok(known_head(&head.with_context(|| format!("no last page of {url}"))?))
    }

    /// A URL with a page.
    fn page(&mut self, note: &CaptureNote, known: Known, head: Option<&Head>) -> Result<()> {
        let snapshot = &self.all.snapshot.id;
        let content = &known.content;
        let change = match head {
            None => Standing::Added,
            Some(head) if self.changed(head, content)? => Standing::Modified,
            Some(_) => Standing::Unchanged,
        };
        let same_text = head.filter(|head| !self.all.base && head.text_digest == content.text_digest);
        let same_content = head.filter(|head| !self.all.base && head.content_digest == content.content_digest);
        let text_snapshot = same_text.map_or(snapshot, |head| &head.text_snapshot).clone();
        let content_snapshot = same_content.map_or(snapshot, |head| &head.content_snapshot).clone();
        let moved_from = match change {
            Standing::Added if is_recognisable(content.text_bytes) => {
                self.all.moved.get(&content.text_digest).cloned().flatten().filter(|last| last.url != note.url)
            }
            _ => None,
        };
        let mut text = None;
        if same_text.is_none() || same_content.is_none() {
            let whole = self.content(&known.lies)?;
            if same_content.is_none() {
                self.links(&note.url, whole.links);
            }
            text = same_text.is_none().then_some(whole.text);
        }
        let counts = &mut self.output.changes;
        match change {
            Standing::Added => counts.added += 1,
            Standing::Modified => counts.modified += 1,
            Standing::Unchanged | Standing::Carried => counts.unchanged += 1,
        }
        counts.moved += u64::from(moved_from.is_some());
        let (old_snapshot, old_text_digest, old_text_snapshot) = match (head, &moved_from) {
            (Some(head), _) => (Some(head.snapshot.clone()), Some(head.text_digest), Some(head.text_snapshot.clone())),
            (None, Some(last)) => {
                (Some(last.snapshot.clone()), Some(content.text_digest), Some(last.text_snapshot.clone()))
            }
            (None, None) => (None, None, None),
        };
        let page = Page {
            url: note.url.clone(),
            host: url::host(&note.url).to_owned(),
            title: content.title.clone(),
            content_type: note.content_type.clone().or_else(|| head.and_then(|h| h.content_type.clone())),
            fetched_at: Some(note.fetched_at),
            last_modified: note.last_modified.map(|(time, _)| time),
            text,
            text_digest: content.text_digest,
            text_bytes: as_i64(content.text_bytes),
            text_snapshot,
            content_digest: content.content_digest,
            content_snapshot,
            change_digest: content.change_digest,
            masked_text_digest: content.masked_text_digest,
            change,
            moved_from: moved_from.map(|last| last.url),
            old_snapshot,
            old_text_digest,
            old_text_snapshot,
            charset: content.charset.clone(),
            payload_digest: known.payload.map(|payload| payload.digest),
            archive_digest: known.archive_digest,
            reading_digest: known.payload.map(|payload| payload.reading),
        };
        self.add_page(page, known.ignore_digest)
    }

    /// Whether a page differs from the last good one, as the ignore rules see it.
    fn changed(&mut self, head: &Head, content: &ContentNote) -> Result<bool> {
        if head.content_digest == content.content_digest {
            return Ok(false);
        }
        if head.ignore_digest == self.all.ignore_digest {
            return Ok(head.change_digest != content.change_digest);
        }
        // The rules are not those of the last page's digest: look at it again with the new ones.
        let old = self.stored(&head.url, head.title.clone(), &head.text_snapshot, &head.content_snapshot)?;
        Ok(old.digest_with(|text| self.all.mask.apply(text)) != content.change_digest)
    }

    /// A URL without a page in this snapshot: carried by a partial crawl unless the server says that it is gone.
    fn absent(&mut self, head: Head, gone: bool) -> Result<()> {
        if !self.all.partial || gone || !head.alive {
            self.output.changes.missing += u64::from(head.alive);
            self.rows.heads.push(Head { alive: false, ..head });
            return Ok(());
        }
        self.output.changes.carried += 1;
        let snapshot = &self.all.snapshot.id;
        let mut text = None;
        if self.all.base {
            let whole = self.stored(&head.url, head.title.clone(), &head.text_snapshot, &head.content_snapshot)?;
            self.links(&head.url, whole.links);
            text = Some(whole.text);
        }
        let at = |old: SnapshotId| if self.all.base { snapshot.clone() } else { old };
        let old_text_snapshot = Some(head.text_snapshot.clone());
        let page = Page {
            host: url::host(&head.url).to_owned(),
            url: head.url,
            title: head.title,
            content_type: head.content_type,
            fetched_at: head.fetched_at,
            last_modified: head.last_modified,
            text,
            text_digest: head.text_digest,
            text_bytes: head.text_bytes,
            text_snapshot: at(head.text_snapshot),
            content_digest: head.content_digest,
            content_snapshot: at(head.content_snapshot),
            change_digest: head.change_digest,
            masked_text_digest: head.masked_text_digest,
            change: Standing::Carried,
            moved_from: None,
            old_snapshot: Some(head.snapshot),
            old_text_digest: Some(head.text_digest),
            old_text_snapshot,
            charset: head.charset,
            payload_digest: head.payload_digest,
            archive_digest: head.archive_digest,
            reading_digest: head.reading_digest,
        };
        self.add_page(page, head.ignore_digest)
    }

    fn add_page(&mut self, page: Page, ignore_digest: Digest) -> Result<()> {
        let bytes = page.text.as_ref().map_or(0, String::len);
        self.output.changes.text_bytes += u64::try_from(page.text_bytes).unwrap_or(0);
        self.output.changes.stored_text_bytes += bytes as u64;
        self.output.changes.texts.add(page.old_text_digest.map(|old| old == page.text_digest), page.text_bytes);
        self.rows.heads.push(Head {
            url: page.url.clone(),
            snapshot: self.all.snapshot.id.clone(),
            alive: true,
            title: page.title.clone(),
            content_type: page.content_type.clone(),
            charset: page.charset.clone(),
            fetched_at: page.fetched_at,
            last_modified: page.last_modified,
            text_digest: page.text_digest,
            text_bytes: page.text_bytes,
            text_snapshot: page.text_snapshot.clone(),
            content_digest: page.content_digest,
            content_snapshot: page.content_snapshot.clone(),
            change_digest: page.change_digest,
            masked_text_digest: page.masked_text_digest,
            ignore_digest,
            payload_digest: page.payload_digest,
            archive_digest: page.archive_digest.clone(),
            reading_digest: page.reading_digest,
        });
        self.rows.page_bytes += bytes;
        self.rows.pages.push(page);
        self.flush_pages(false)?;
        self.flush_links(false)
    }

    fn links(&mut self, url: &str, links: Vec<Link>) {
        let url: Arc<str> = url.into();
        for (ordinal, Link { target, label, kind }) in links.into_iter().enumerate() {
            self.rows.link_bytes += url.len() + target.len() + label.len();
            self.rows.links.push(LinkRow {
                url: Arc::clone(&url),
                target,
                label,
                kind,
                ordinal: as_i64(ordinal as u64),
            });
        }
    }

    /// Reads a content from where it lies.
    fn content(&mut self, lies: &Lies) -> Result<Content> {
        match lies {
            Lies::Spilled { shard, at } => {
                let (note, content) = self.all.spilled.entry(*shard, *at)?;
                content.with_context(|| format!("the content of {} was not spilled", note.url))
            }
            Lies::Stored { url, text_snapshot, content_snapshot } => {
                self.stored(url, None, text_snapshot, content_snapshot)
            }
        }
    }

    fn stored(&mut self, url: &str, title: Option<String>, text: &SnapshotId, links: &SnapshotId) -> Result<Content> {
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
        Ok(Content { title, text, links: links.collect() })
    }

    fn flush_captures(&mut self, all: bool) -> Result<()> {
        if self.rows.captures.len() >= GROUP_ROWS || (all && !self.rows.captures.is_empty()) {
            let rows = std::mem::take(&mut self.rows.captures);
            self.output.captures.push(self.encoders.captures.encode(self.shard, &rows)?);
        }
        Ok(())
    }

    fn flush_pages(&mut self, all: bool) -> Result<()> {
        let full = self.rows.page_bytes >= GROUP_BYTES || self.rows.pages.len() >= GROUP_ROWS;
        if full || (all && !self.rows.pages.is_empty()) {
            let rows = std::mem::take(&mut self.rows.pages);
            self.rows.page_bytes = 0;
            self.output.pages.push(self.encoders.pages.encode(self.shard, &rows)?);
        }
        Ok(())
    }

    fn flush_links(&mut self, all: bool) -> Result<()> {
        let full = self.rows.link_bytes >= GROUP_BYTES || self.rows.links.len() >= GROUP_ROWS;
        if full || (all && !self.rows.links.is_empty()) {
            let rows = std::mem::take(&mut self.rows.links);
            self.rows.link_bytes = 0;
            for part in rows.chunks(GROUP_ROWS) {
                self.output.links.push(self.encoders.links.encode(self.shard, part)?);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<ShardOutput> {
        self.flush_captures(true)?;
        self.flush_pages(true)?;
        self.flush_links(true)?;
        let heads = std::mem::take(&mut self.rows.heads);
        for part in heads.chunks(GROUP_ROWS) {
            self.output.heads.push(self.encoders.heads.encode(self.shard, part)?);
        }
        Ok(self.output)
    }
}

fn known_spilled(note: &CaptureNote, ignore_digest: Digest, shard: u32, at: u64) -> Result<Known> {
    let Found::Text(content) = &note.found else { anyhow::bail!("the capture of {} has no text", note.url) };
    Ok(Known {
        content: content.clone(),
        payload: note.payload,
        archive_digest: note.archive_digest.clone(),
        ignore_digest,
        lies: Lies::Spilled { shard, at },
    })
}

fn known_head(head: &Head) -> Known {
    let payload = match (head.payload_digest, head.reading_digest) {
        (Some(digest), Some(reading)) => Some(PayloadNote { digest, bytes: 0, reading }),
        _ => None,
    };
    Known {
        content: ContentNote {
            title: head.title.clone(),
            charset: head.charset.clone(),
            text_digest: head.text_digest,
            text_bytes: u64::try_from(head.text_bytes).unwrap_or(0),
            content_digest: head.content_digest,
            change_digest: head.change_digest,
            masked_text_digest: head.masked_text_digest,
        },
        payload,
        archive_digest: head.archive_digest.clone(),
        ignore_digest: head.ignore_digest,
        lies: Lies::Stored {
            url: head.url.clone(),
            text_snapshot: head.text_snapshot.clone(),
            content_snapshot: head.content_snapshot.clone(),
        },
    }
}

fn capture_row(note: &CaptureNote, known: Option<&Known>) -> Capture {
    let payload = note.payload.map(|payload| payload.digest);
    Capture {
        url: note.url.clone(),
        fetched_at: Some(note.fetched_at),
        fetched_at_source: Some(note.fetched_at_source.as_str().to_owned()),
        status: note.status.map(i64::from),
        content_type: note.content_type.clone(),
        charset: known.and_then(|known| known.content.charset.clone()),
        last_modified: note.last_modified.map(|(time, _)| time),
        last_modified_source: note.last_modified.map(|(_, source)| source.as_str().to_owned()),
        etag: note.etag.clone(),
        payload_digest: payload.or_else(|| known.and_then(|known| known.payload.map(|payload| payload.digest))),
        archive_digest: note.archive_digest.clone(),
        text_digest: known.map(|known| known.content.text_digest),
        masked_text_digest: known.map(|known| known.content.masked_text_digest),
        payload_bytes: note.payload.map(|payload| as_i64(payload.bytes)),
        source_file: note.source_file.clone(),
        source_offset: as_i64(note.source_offset),
        revisit: note.revisit.is_some(),
    }
}

fn as_i64(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
