//! First half of ingest: archives to spilled captures, on all threads.

use std::collections::{HashMap, HashSet};

use anyhow::Result;

use super::drain::{Sink, drain};
use super::judge::{Judged, judge, media_type};
use super::spill::Spill;
use crate::archive::CaptureReader;
use crate::captures::{CaptureNote, ContentNote, Found, PayloadNote};
use crate::model::{Content, Digest, DigestBuilder, RawCapture, Reject, Revisit, TimeSource, Timestamp};
use crate::run::progress::Bar;
use crate::store::shard_of;
use crate::text::mask::Mask;
use crate::text::{self, TextReader, url};

/// All that deciding about one capture needs.
pub(super) struct Rules<'a> {
    pub(super) equate_schemes: bool,
    pub(super) mask: &'a Mask,
    pub(super) ignore_digest: Digest,
    /// Stands in for a missing retrieval time.
    pub(super) snapshot_time: Timestamp,
    /// Reading of the last good page by URL digest: an equal payload is not parsed again.
    pub(super) known: &'a HashMap<Digest, Option<Digest>>,
    /// This snapshot stores every text: parse all.
    pub(super) base: bool,
    pub(super) shards: u32,
}

/// What the second half needs to know of all captures at once.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) rejects: Vec<Reject>,
    pub(super) captures: u64,
    pub(super) payload_bytes: u64,
    pub(super) parsed: u64,
    /// Where the content for a digest stated by the archive was spilled: the first place by file order.
    pub(super) by_archive_digest: HashMap<String, Place>,
    /// Texts of URLs without a head: candidates for pages that moved.
    pub(super) new_texts: HashSet<Digest>,
    /// Digests that revisits ask for.
    pub(super) asked: HashSet<String>,
    /// URLs that revisits of other URLs name.
    pub(super) asked_urls: HashSet<String>,
    /// A part of a file turned out not to be one: all of this is worth nothing.
    pub(super) misread: bool,
}

/// A spilled capture; ordered by where the archive holds it, so that a choice among several does not depend on threads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) source_file: String,
    pub(super) source_offset: u64,
    pub(super) sequence: u64,
    pub(super) shard: u32,
    pub(super) at: u64,
}

/// Reads everything; gives what was seen.
pub(super) fn read_all(
    readers: Vec<Box<dyn CaptureReader>>,
    rules: &Rules<'_>,
    spill: &Spill,
    bar: &Bar,
) -> Result<Seen> {
    let worker = || Worker {
        rules,
        spill,
        seen: Seen::default(),
        buffer: Vec::new(),
        text: TextReader::new(rules.equate_schemes),
    };
    let drained = drain(readers, worker, bar)?;
    let mut seen = Seen { misread: drained.misread, ..Seen::default() };
    for worker in drained.sinks {
        seen.merge(worker.seen);
    }
    Ok(seen)
}

impl Seen {
    /// By file and offset, so that their order does not depend on threads. A cut record is reported by its reader and
    /// again as a capture with a short body: once is enough.
    pub(super) fn sort_rejects(&mut self) {
        let key = |r: &Reject| (r.source_file.clone(), r.source_offset, r.url.clone(), r.reason.clone());
        self.rejects.sort_by_cached_key(key);
        self.rejects.dedup_by(|b, a| {
            (&a.source_file, a.source_offset, &a.reason) == (&b.source_file, b.source_offset, &b.reason)
        });
    }

    fn merge(&mut self, other: Self) {
        self.rejects.extend(other.rejects);
        self.captures += other.captures;
        self.payload_bytes += other.payload_bytes;
        self.parsed += other.parsed;
        for (digest, place) in other.by_archive_digest {
            self.remember(digest, place);
        }
        self.new_texts.extend(other.new_texts);
        self.asked.extend(other.asked);
        self.asked_urls.extend(other.asked_urls);
    }

    fn remember(&mut self, digest: String, place: Place) {
        let first = self.by_archive_digest.entry(digest).or_insert_with(|| place.clone());
        if place < *first {
            *first = place;
        }
    }
}

struct Worker<'a> {
    rules: &'a Rules<'a>,
    spill: &'a Spill,
    seen: Seen,
    buffer: Vec<u8>,
    text: TextReader,
}

impl Sink for Worker<'_> {
    fn capture(&mut self, mut raw: RawCapture, sequence: u64) -> Result<()> {
        let rejects = &mut self.seen.rejects;
        let Some(judged) = judge(&mut raw, self.rules.equate_schemes, |reject| rejects.push(reject)) else {
            return Ok(());
        };
        let Judged { url, payload, broken, is_text } = judged;
        let payload_note = payload.as_ref().map(|bytes| self.payload_note(bytes, &raw));
        let head = self.rules.known.get(&Digest::of(url.as_bytes()));
        let mut content = None;
        let found = match (&payload, payload_note) {
            (Some(bytes), Some(note)) if is_text => {
                if !self.rules.base && head.is_some_and(|head| *head == Some(note.reading)) {
                    Found::AsLast
                } else {
                    self.seen.parsed += 1;
                    let reading = self.text.read(bytes, raw.content_type.as_deref(), &url);
                    match reading.content {
                        None => Found::Nothing,
                        Some(read) => {
                            let charset = reading.charset.map(|(name, _)| name.to_owned());
                            let note = content_note(&read, charset, self.rules.mask);
                            if head.is_none() {
                                self.seen.new_texts.insert(note.text_digest);
                            }
                            content = Some(read);
                            Found::Text(note)
                        }
                    }
                }
            }
            _ => Found::Nothing,
        };
        self.seen.captures += 1;
        self.seen.payload_bytes += payload.as_ref().map_or(0, |bytes| bytes.len() as u64);
        let note = self.note(raw, url, payload_note, found, broken, sequence);
        self.put(&note, content.as_ref())
    }

    fn reject(&mut self, reject: Reject) {
        self.seen.rejects.push(reject);
    }
}

impl Worker<'_> {
    fn put(&mut self, note: &CaptureNote, content: Option<&Content>) -> Result<()> {
        let shard = shard_of(&note.url, self.rules.shards);
        let at = self.spill.push(shard, note, content, &mut self.buffer)?;
        if let Some(url) = note.revisit.as_ref().and_then(|revisit| revisit.refers_to_url.as_ref())
            && *url != note.url
        {
            self.seen.asked_urls.insert(url.clone());
        }
        if let Some(digest) = &note.archive_digest {
            if note.revisit.is_some() {
                self.seen.asked.insert(digest.clone());
            } else if note.found != Found::Nothing {
                let (source_file, source_offset) = (note.source_file.clone(), note.source_offset);
                let place = Place { source_file, source_offset, sequence: note.sequence, shard, at };
                self.seen.remember(digest.clone(), place);
            }
        }
        Ok(())
    }

    fn payload_note(&self, bytes: &[u8], raw: &RawCapture) -> PayloadNote {
        let digest = Digest::of(bytes);
        let mut reading = DigestBuilder::new();
        reading.field(&digest.0);
        reading.field(raw.content_type.as_deref().unwrap_or_default().as_bytes());
        reading.number(u64::from(text::CONVERSION_VERSION));
        reading.number(u64::from(self.rules.equate_schemes));
        reading.field(&self.rules.ignore_digest.0);
        PayloadNote { digest, bytes: bytes.len() as u64, reading: reading.finish() }
    }

    fn note(
        &self,
        raw: RawCapture,
        url: String,
        payload: Option<PayloadNote>,
        found: Found,
        broken: bool,
        sequence: u64,
    ) -> CaptureNote {
        let (fetched_at, fetched_at_source) =
            raw.fetched_at.unwrap_or((self.rules.snapshot_time, TimeSource::Snapshot));
        let revisit = match raw.revisit {
            Some(Revisit { refers_to_url, refers_to_date }) => {
                let refers_to_url = refers_to_url.and_then(|u| url::normalise(&u, self.rules.equate_schemes).ok());
                Some(Revisit { refers_to_url, refers_to_date })
            }
            None => (raw.status == Some(304)).then(Revisit::default),
        };
        CaptureNote {
            url,
            fetched_at,
            fetched_at_source,
            status: raw.status,
            content_type: raw.content_type.as_deref().and_then(media_type),
            last_modified: raw.last_modified,
            etag: raw.etag,
            archive_digest: raw.archive_digest,
            revisit,
            payload,
            found,
            broken,
            source_file: raw.source_file,
            source_offset: raw.source_offset,
            sequence,
        }
    }
}

/// What is kept of a content beside the content.
pub(super) fn content_note(content: &Content, charset: Option<String>, mask: &Mask) -> ContentNote {
    let content_digest = content.digest_with(Into::into);
    let change_digest = if mask.is_empty() { content_digest } else { content.digest_with(|text| mask.apply(text)) };
    let text_digest = Digest::of(content.text.as_bytes());
    ContentNote {
        title: content.title.clone(),
        charset,
        text_digest,
        text_bytes: content.text.len() as u64,
        content_digest,
        change_digest,
        masked_text_digest: if mask.is_empty() {
            text_digest
        } else {
            Digest::of(mask.apply(&content.text).as_bytes())
        },
    }
}
