//! Second half of ingest: spilled captures of one shard and the heads before them to rows, in URL order.
//!
//! What becomes of a URL is decided in `captures`; here lists are merged, contents read and rows encoded. Shards are
//! independent, so they are assembled in parallel, a few at a time, and appended in order.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::known::{Known, Looked};
use super::settled::Settled;
use super::spill::Spilled;
use crate::captures::{
    Answer, ContentAt, ContentOf, Elsewhere, NotedText, Others, SpilledCapture, Tonight, UrlRows, UrlTonight, resolve,
};
use crate::manifests::Changes;
use crate::model::maps::{HashMap, HashSet};
use crate::model::{Content, Link, SnapshotId, Standing};
use crate::store::Store;
use crate::store::batches::batches;
use crate::store::parquet::{EncodedGroup, Encoder, GROUP_BYTES, GROUP_ROWS, PartitionWriter};
use crate::store::passes::Parcel;
use crate::store::texts::ShardReader;
use crate::tables::ingest::{Capture, Head, LinkRow, Page, Tombstone};
use crate::tables::record::Table as _;

/// What all shards share.
pub(super) struct Assembly<'a> {
    pub(super) store: &'a Store,
    pub(super) tonight: Tonight<'a>,
    pub(super) spilled: &'a Spilled,
    pub(super) known: Known<'a>,
    pub(super) settled: &'a Settled,
}

/// Writers of a snapshot's tables.
pub(super) struct Writers {
    pub(super) captures: PartitionWriter<Capture>,
    pub(super) pages: PartitionWriter<Page>,
    pub(super) links: PartitionWriter<LinkRow>,
}

impl Writers {
    /// `gathers`: somebody else packs the rows.
    pub(super) fn encoders(&self, gathers: bool) -> Encoders {
        Encoders {
            captures: self.captures.encoder().only_gathers(gathers),
            pages: self.pages.encoder().only_gathers(gathers),
            links: self.links.encoder().only_gathers(gathers),
        }
    }

    pub(super) fn append(&mut self, shard: u32, output: ShardOutput) -> Result<()> {
        output.captures.into_iter().try_for_each(|group| self.captures.append(group))?;
        output.pages.into_iter().try_for_each(|group| self.pages.append(group))?;
        output.links.into_iter().try_for_each(|group| self.links.append(group))?;
        self.pages.write_deleted(shard, &output.tombstones);
        Ok(())
    }
}

/// What encodes rows for the writers.
pub(super) struct Encoders {
    captures: Encoder<Capture>,
    pages: Encoder<Page>,
    links: Encoder<LinkRow>,
}

/// A shard's rows, encoded, and what is known of its URLs next.
#[derive(Default)]
pub(super) struct ShardOutput {
    captures: Vec<EncodedGroup>,
    pages: Vec<EncodedGroup>,
    links: Vec<EncodedGroup>,
    tombstones: Vec<Tombstone>,
    pub(super) heads: Vec<(Option<Looked>, Head)>,
    pub(super) changes: Changes,
    pub(super) unknown: UnknownPages,
}

/// What is no table of a [`ShardOutput`].
#[derive(Serialize, Deserialize)]
struct Beside {
    heads: Vec<(Option<Looked>, Head)>,
    changes: Changes,
    unknown: UnknownPages,
}

/// The name of rows of pages that went, beside `pages`.
const TOMBSTONES: &str = "pages that went";

impl ShardOutput {
    /// For whoever takes it.
    pub(super) fn pack(self) -> Result<Parcel> {
        let mut parcel = Parcel::default();
        parcel.put_groups(Capture::NAME, self.captures)?;
        parcel.put_groups(Page::NAME, self.pages)?;
        parcel.put_groups(LinkRow::NAME, self.links)?;
        parcel.put(TOMBSTONES, &self.tombstones)?;
        parcel.put_values(&Beside { heads: self.heads, changes: self.changes, unknown: self.unknown })?;
        Ok(parcel)
    }

    pub(super) fn unpack(shard: u32, mut parcel: Parcel, encoders: &Encoders) -> Result<Self> {
        let Beside { heads, changes, unknown } = parcel.take_values()?;
        Ok(Self {
            captures: parcel.take_groups(Capture::NAME, shard, &encoders.captures)?,
            pages: parcel.take_groups(Page::NAME, shard, &encoders.pages)?,
            links: parcel.take_groups(LinkRow::NAME, shard, &encoders.links)?,
            tombstones: parcel.take(TOMBSTONES)?,
            heads,
            changes,
            unknown,
        })
    }
}

/// URLs that are said to be as before, though nothing is known of them.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct UnknownPages {
    pub(super) urls: u64,
    pub(super) first: Option<String>,
}

impl UnknownPages {
    pub(super) fn add(&mut self, other: Self) {
        self.urls += other.urls;
        self.first = self.first.take().or(other.first);
    }

    /// A URL of which nothing was known.
    fn look_at(&mut self, rows: &UrlRows) {
        let as_before =
            |capture: &&Capture| capture.text_digest.is_none() && Answer::of(capture.status) == Answer::AsBefore;
        if let Some(capture) = rows.captures.iter().find(as_before).filter(|_| rows.page.is_none()) {
            self.add(Self { urls: 1, first: Some(capture.url.clone()) });
        }
    }
}

impl Assembly<'_> {
    pub(super) fn shard(&self, shard: u32, encoders: &Encoders) -> Result<ShardOutput> {
        let mut captures = self.spilled.captures(shard)?;
        self.settled.suspects.mark(&mut captures);
        let captures = in_order(captures);
        let urls = self.urls(shard, &captures)?;
        let others = self.others(&urls)?;
        let mut contents = Contents { all: self, at_hand: HashMap::default() };
        let mut rows = Rows { shard, encoders, waiting: Waiting::default(), output: ShardOutput::default() };
        rows.expect(urls.len(), captures.len());
        // Stored contents are read for as many URLs together as memory allows: they may lie anywhere.
        let bytes = |url| self.tonight.will_read(url, &others).iter().map(|(_, bytes)| bytes).sum();
        let bytes: Vec<i64> = urls.iter().map(bytes).collect();
        let mut urls = urls.into_iter();
        for batch in batches(&bytes, |bytes| *bytes) {
            let batch: Vec<UrlTonight<'_>> = urls.by_ref().take(batch.len()).collect();
            contents.read_ahead(&batch, &others)?;
            for url in batch {
                let before = url.head.as_ref().map(|head| Looked::of(&head.page));
                rows.output.changes.old_text_bytes += url.head.as_ref().map_or(0, living_bytes);
                rows.add(before, self.tonight.fold(url, &others, &mut |at| contents.read(at))?)?;
            }
        }
        rows.finish()
    }

    /// The URLs that the snapshot touches, by URL; of a whole snapshot all that are known or captured.
    fn urls<'c>(&'c self, shard: u32, captures: &'c [SpilledCapture]) -> Result<Vec<UrlTonight<'c>>> {
        let by_url: Vec<&[SpilledCapture]> = captures.chunk_by(|a, b| a.note.url == b.note.url).collect();
        if self.tonight.whole {
            return Ok(self.merge(self.known.all_heads(shard)?, &by_url));
        }
        let names: Vec<&str> = by_url.iter().map(|captures| captures[0].note.url.as_str()).collect();
        let heads = self.known.heads_of(shard, &names)?;
        Ok(heads.into_iter().zip(by_url).map(|(head, captures)| self.resolved(head, captures)).collect())
    }

    /// All URLs of a shard, from two lists sorted by URL. Dead ones that nothing is new of are left out.
    fn merge<'c>(&'c self, heads: Vec<Head>, captures: &[&'c [SpilledCapture]]) -> Vec<UrlTonight<'c>> {
        let mut urls = Vec::with_capacity(heads.len());
        let mut heads = heads.into_iter().peekable();
        for &captures in captures {
            let url = &captures[0].note.url;
            while let Some(head) = heads.next_if(|head| head.page.url < *url) {
                if head.alive {
                    urls.push(self.resolved(Some(head), &[]));
                }
            }
            let head = heads.next_if(|head| head.page.url == *url);
            urls.push(self.resolved(head, captures));
        }
        urls.extend(heads.filter(|head| head.alive).map(|head| self.resolved(Some(head), &[])));
        urls
    }

    fn resolved<'c>(&'c self, head: Option<Head>, captures: &'c [SpilledCapture]) -> UrlTonight<'c> {
        let last = head.as_ref().map(|head| head.page.archive_digest.as_deref());
        let notes = captures.iter().map(|capture| &capture.note);
        let resolved = resolve(notes, last, |note| self.settled.referable.find(note));
        UrlTonight { head, captures, resolved }
    }

    /// Reads what captures of these URLs stand for that other URLs hold, and the pages that may have moved to them.
    fn others(&self, urls: &[UrlTonight<'_>]) -> Result<Others> {
        let mut others = Others::default();
        let mut wanted: HashSet<String> = HashSet::default();
        for content in urls.iter().flat_map(|url| &url.resolved.contents).flatten() {
            let ContentOf::Elsewhere(elsewhere) = content else { continue };
            match *elsewhere {
                Elsewhere::LastPageOf(url) => _ = wanted.insert(url.to_owned()),
                Elsewhere::Version(version) => {
                    let facts = self.settled.versions.get(version).context("a stored version was not read")?;
                    others.versions.insert(version.clone(), facts.clone());
                }
                Elsewhere::Capture(at) => {
                    let note = self.spilled.note(at)?;
                    if note.text == NotedText::AsLast {
                        wanted.insert(note.url.clone());
                    }
                    others.captures.insert(at, note);
                }
            }
        }
        others.heads = self.known.heads(&wanted)?;
        if let Some(url) = wanted.iter().find(|url| !others.heads.contains_key(*url)) {
            anyhow::bail!("no last page of {url}");
        }
        let new_texts = urls.iter().filter_map(|url| self.tonight.text_of_newcomer(url, &others)).collect();
        others.last_pages = self.known.last_pages(&new_texts)?;
        Ok(others)
    }
}

/// Captures by URL, those of a URL in their order. They are large: each is moved once, to its place.
fn in_order(captures: Vec<SpilledCapture>) -> Vec<SpilledCapture> {
    let mut places: Vec<usize> = (0..captures.len()).collect();
    let key = |place: usize| (&captures[place].note.url, captures[place].note.order());
    places.sort_by(|&a, &b| key(a).cmp(&key(b)));
    let mut captures: Vec<Option<SpilledCapture>> = captures.into_iter().map(Some).collect();
    places.into_iter().filter_map(|place| captures[place].take()).collect()
}

/// Reads contents, from earlier snapshots and from tonight's.
struct Contents<'a> {
    all: &'a Assembly<'a>,
    /// Stored contents that were read together, by URL and the snapshots that hold them, and how often each is wanted.
    at_hand: HashMap<Place, (Content, usize)>,
}

/// URL, and the snapshots that hold text and links.
type Place = (String, SnapshotId, SnapshotId);

impl Contents<'_> {
    fn read(&mut self, at: ContentAt<'_>) -> Result<Content> {
        match at {
            ContentAt::Spilled(at) => self.all.spilled.content(at),
            ContentAt::Stored { url, text_snapshot, content_snapshot } => {
                let place = (url.to_owned(), text_snapshot.clone(), content_snapshot.clone());
                match self.at_hand.get_mut(&place) {
                    Some((content, wanted)) if *wanted > 1 => {
                        *wanted -= 1;
                        return Ok(content.clone());
                    }
                    Some(_) => return Ok(self.at_hand.remove(&place).context("no content")?.0),
                    None => {}
                }
                let shard = self.all.store.shard_of(url);
                let mut read = self.stored(shard, &[(url, text_snapshot)], &[(url, content_snapshot)])?;
                read.pop().context("no content")
            }
        }
    }

    /// Reads what these URLs will ask for of earlier snapshots, shard by shard.
    fn read_ahead(&mut self, urls: &[UrlTonight<'_>], others: &Others) -> Result<()> {
        self.at_hand.clear();
        let mut wanted: BTreeMap<(u32, &str, &SnapshotId, &SnapshotId), usize> = BTreeMap::new();
        for (at, _) in urls.iter().flat_map(|url| self.all.tonight.will_read(url, others)) {
            let ContentAt::Stored { url, text_snapshot, content_snapshot } = at else { continue };
            let shard = self.all.store.shard_of(url);
            *wanted.entry((shard, url, text_snapshot, content_snapshot)).or_default() += 1;
        }
        let wanted: Vec<_> = wanted.into_iter().collect();
        for same_shard in wanted.chunk_by(|a, b| a.0.0 == b.0.0) {
            let texts: Vec<_> = same_shard.iter().map(|((_, url, text, _), _)| (*url, *text)).collect();
            let links: Vec<_> = same_shard.iter().map(|((_, url, _, links), _)| (*url, *links)).collect();
            let contents = self.stored(same_shard[0].0.0, &texts, &links)?;
            for (((_, url, text, links), times), content) in same_shard.iter().zip(contents) {
                let place = ((*url).to_owned(), (*text).clone(), (*links).clone());
                self.at_hand.insert(place, (content, *times));
            }
        }
        Ok(())
    }

    /// The contents of pages of one shard, each by URL and the snapshots that hold its text and its links.
    fn stored(&self, shard: u32, texts: &[(&str, &SnapshotId)], links: &[(&str, &SnapshotId)]) -> Result<Vec<Content>> {
        let mut reader = ShardReader::new(self.all.store, shard);
        let both = reader.texts_and_elements(texts)?.into_iter().zip(reader.links(links)?);
        let link = |row: LinkRow| Link {
            target: row.target,
            label: row.label,
            kind: row.kind,
            element: row.element,
            dated: row.dated,
        };
        let content = |((text, elements), links): ((String, Option<String>), Vec<LinkRow>)| Content {
            text,
            elements,
            links: links.into_iter().map(link).collect(),
            ..Content::default()
        };
        Ok(both.map(content).collect())
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
}

impl Rows<'_> {
    /// Makes room for so many URLs and captures: rows are large, and a list that grows is copied again and again.
    fn expect(&mut self, urls: usize, captures: usize) {
        self.waiting.captures.reserve(captures.min(GROUP_ROWS));
        self.waiting.pages.reserve(urls.min(GROUP_ROWS));
        self.output.heads.reserve(urls);
    }

    /// `before`: what the URL's last page was found by.
    fn add(&mut self, before: Option<Looked>, rows: UrlRows) -> Result<()> {
        count(&mut self.output.changes, &rows);
        if before.is_none() {
            self.output.unknown.look_at(&rows);
        }
        let waiting = &mut self.waiting;
        waiting.captures.extend(rows.captures);
        let written = rows.page.iter().flat_map(|page| [&page.text, &page.elements]).flatten();
        waiting.page_bytes += written.map(String::len).sum::<usize>();
        waiting.pages.extend(rows.page);
        waiting.link_bytes += rows.links.iter().map(link_bytes).sum::<usize>();
        waiting.links.extend(rows.links);
        self.output.tombstones.extend(rows.tombstone);
        self.output.heads.extend(rows.head.map(|head| (before, head)));
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
            output.pages.push(encoders.pages.encode_all(*shard, rows)?);
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
        Ok(self.output)
    }
}

/// The text of a page that was there in the snapshot before.
fn living_bytes(head: &Head) -> u64 {
    if head.alive { u64::try_from(head.page.content.text_bytes).unwrap_or(0) } else { 0 }
}

fn link_bytes(link: &LinkRow) -> usize {
    link.url.len() + link.target.len() + link.label.len()
}

fn count(changes: &mut Changes, rows: &UrlRows) {
    let unresolved = rows.captures.iter().filter(|capture| capture.revisit && capture.text_digest.is_none());
    changes.unresolved_revisits += unresolved.count() as u64;
    let failed = |capture: &&Capture| capture.suspect.is_some() || !Answer::of(capture.status).is_good();
    changes.suspects += rows.captures.iter().filter(|capture| capture.suspect.is_some()).count() as u64;
    changes.failed += rows.captures.iter().filter(failed).count() as u64;
    changes.revisits += rows.captures.iter().filter(|capture| capture.revisit).count() as u64;
    changes.passed_over += rows.passed_over;
    changes.came += u64::from(rows.came);
    changes.went += u64::from(rows.went);
    changes.stored_link_bytes += rows.links.iter().map(link_bytes).sum::<usize>() as u64;
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
