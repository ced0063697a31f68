//! First half of ingest: archives to spilled captures, on all threads.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::drain::{Sink, drain};
use super::known::{LastReading, LastReadings};
use super::read_body;
use super::spill::Spill;
use crate::archive::{CaptureReader, capture_print, window_of};
use crate::captures::{Answer, CaptureNote, JudgedCapture, NoteTaker, NotedText, ReadingRules, SpilledAt, judge};
use crate::model::maps::{HashMap, HashSet};
use crate::model::window::{CaptureSet, Every};
use crate::model::{Content, Digest, Loss, RawCapture, Reject, Suspect, Timestamp};
use crate::run::progress::Bar;
use crate::run::stage::TaskWindow;
use crate::store::shard_of_digest;
use crate::text::url;

/// What reading a capture depends on.
pub(super) struct ReadContext<'a> {
    pub(super) rules: ReadingRules<'a>,
    pub(super) last_readings: LastReadings<'a>,
    pub(super) shards: u32,
    /// Captures elsewhere are none of this snapshot.
    pub(super) window: Option<InWindow>,
}

/// The part of its folder that a snapshot is.
pub(super) struct InWindow {
    every: Every,
    end: Timestamp,
    last: bool,
}

/// Where a capture of the folder lies.
enum Place {
    Here,
    /// In a window before.
    Earlier,
    Elsewhere,
}

impl InWindow {
    pub(super) fn new(window: &TaskWindow, end: Timestamp) -> Self {
        Self { every: window.every, end, last: window.last }
    }

    /// Undated captures belong to the last window.
    fn place(&self, raw: &RawCapture) -> Place {
        match window_of(raw, self.every) {
            Some(end) if end == self.end => Place::Here,
            Some(end) if end < self.end => Place::Earlier,
            None if self.last => Place::Here,
            _ => Place::Elsewhere,
        }
    }
}

/// What the second half needs to know of all captures at once.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) rejects: Vec<Reject>,
    pub(super) captures: u64,
    pub(super) payload_bytes: u64,
    pub(super) parsed: u64,
    /// By digest that the archive stated: the first capture in the archive that holds the content.
    pub(super) by_archive_digest: HashMap<String, Holder>,
    /// The URLs, by digest, and what was heard of each.
    pub(super) urls: HashMap<Digest, Heard>,
    /// Captures with a weak sign of a wall, and texts by host: what suspects are found by. Empty where nothing is known
    /// of any URL.
    pub(super) signs: Vec<(SpilledAt, Suspect)>,
    pub(super) texts: Vec<SeenText>,
    /// Revisits that may stand for something else than the last page of their URL.
    pub(super) revisits: Vec<AskingRevisit>,
    /// Digests that the archive stated of captures that show on their face that they are suspect.
    pub(super) suspect_digests: HashMap<String, Suspect>,
    /// URLs of which something was rejected.
    pub(super) rejected: HashSet<String>,
    /// If the snapshot is the last part of its folder: URLs that earlier parts have a good capture of, by digest.
    pub(super) earlier_urls: HashSet<Digest>,
    /// If the snapshot is a part of its folder: the captures that make it up.
    pub(super) in_window: CaptureSet,
    /// A file was cut at a place where no record begins: all of this is worth nothing.
    pub(super) misread: bool,
    last_host: Option<(String, u64)>,
}

/// What was heard of a URL in a snapshot.
#[derive(Clone, Copy, Default)]
pub(super) struct Heard {
    /// It had a page before.
    alive: bool,
    /// Captures that say something about its page, be it that there is none.
    captures: u32,
}

/// A revisit that has to be looked up: by the digest that it states, and only if nobody has that, by the URL that it names.
pub(super) struct AskingRevisit {
    pub(super) host: u64,
    pub(super) digest: Option<String>,
    /// Another URL than its own.
    pub(super) names: Option<String>,
    pub(super) at: SpilledAt,
}

/// A text that a URL of a host has.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeenText {
    pub(super) host: u64,
    pub(super) text: Digest,
    pub(super) bytes: i64,
    pub(super) at: SpilledAt,
}

/// A capture that holds a content; ordered as in the archive, so that the first of several does not depend on threads.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    source_file: String,
    source_offset: u64,
    sequence: u64,
    pub(super) at: SpilledAt,
    /// Digest and length of the text, if it was read.
    pub(super) text: Option<(Digest, i64)>,
}

/// What a part of an archive showed besides its captures, for whoever puts all parts together.
#[derive(Serialize, Deserialize)]
pub(super) struct SeenPart {
    /// With what each lost, which is written nowhere else.
    rejects: Vec<(Reject, Loss)>,
    earlier_urls: HashSet<Digest>,
    in_window: CaptureSet,
    pub(super) misread: bool,
}

/// Reads everything; gives what was seen.
pub(super) fn read_all(
    readers: Vec<Box<dyn CaptureReader>>,
    reading: &ReadContext<'_>,
    spill: &Spill,
    bar: &Bar,
) -> Result<Seen> {
    let worker =
        || Worker { reading, notes: NoteTaker::new(&reading.rules), spill, seen: Seen::default(), buffer: Vec::new() };
    let drained = drain(readers, worker, bar)?;
    let mut seen = Seen { misread: drained.misread, ..Seen::default() };
    for worker in drained.sinks {
        seen.merge(worker.seen);
    }
    Ok(seen)
}

impl Seen {
    pub(super) fn into_part(self) -> SeenPart {
        let Self { rejects, earlier_urls, in_window, misread, .. } = self;
        let rejects = rejects.into_iter().map(|reject| (reject.clone(), reject.lost)).collect();
        SeenPart { rejects, earlier_urls, in_window, misread }
    }

    /// Takes in a part whose captures are taken in one by one.
    pub(super) fn add_part(&mut self, part: SeenPart) {
        self.rejects.extend(part.rejects.into_iter().map(|(reject, lost)| Reject { lost, ..reject }));
        self.earlier_urls.extend(part.earlier_urls);
        self.in_window.join(part.in_window);
    }

    /// By file and offset, so that their order does not depend on threads. A cut record is reported by its reader and
    /// again as a capture with a short body: once is enough.
    pub(super) fn sort_rejects(&mut self) {
        let key = |r: &Reject| (r.source_file.clone(), r.source_offset, r.url.clone(), r.reason.clone());
        self.rejects.sort_by_cached_key(key);
        self.rejects.dedup_by(|b, a| {
            (&a.source_file, a.source_offset, &a.reason) == (&b.source_file, b.source_offset, &b.reason)
        });
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.rejects.extend(other.rejects);
        self.captures += other.captures;
        self.payload_bytes += other.payload_bytes;
        self.parsed += other.parsed;
        for (digest, holder) in other.by_archive_digest {
            self.add_holder(digest, holder);
        }
        for (url, heard) in other.urls {
            let all = self.urls.entry(url).or_default();
            all.alive |= heard.alive;
            all.captures += heard.captures;
        }
        self.signs.extend(other.signs);
        self.texts.extend(other.texts);
        self.revisits.extend(other.revisits);
        self.suspect_digests.extend(other.suspect_digests);
        self.earlier_urls.extend(other.earlier_urls);
        self.in_window.join(other.in_window);
    }

    /// Takes in a capture that was spilled. `url`: the digest of its URL; `last`: what is known of the URL's last page.
    pub(super) fn add(&mut self, note: &CaptureNote, url: Digest, at: SpilledAt, last: Option<LastReading>) {
        self.captures += 1;
        let heard = self.urls.entry(url).or_default();
        heard.alive |= last.is_some_and(|last| last.alive);
        heard.captures += u32::from(note.says_something());
        let host = self.host(&note.url);
        self.payload_bytes += note.payload.map_or(0, |payload| payload.bytes);
        if let NotedText::Parsed(facts) = &note.text {
            self.parsed += 1;
            if note.suspect.is_none() {
                self.texts.push(SeenText { host, text: facts.text_digest, bytes: facts.text_bytes, at });
            }
        }
        self.signs.extend(note.sign.map(|sign| (at, sign)));
        if let Some(revisit) = &note.revisit {
            let names = revisit.refers_to_url.as_ref().filter(|url| **url != note.url);
            let digest = note.archive_digest.as_ref();
            // What the last page has needs no search.
            let is_last = last.zip(digest).is_some_and(|(last, digest)| last.is_stated(digest));
            if !is_last && (digest.is_some() || names.is_some()) {
                self.revisits.push(AskingRevisit { host, digest: digest.cloned(), names: names.cloned(), at });
            }
        } else if let Some(digest) = &note.archive_digest {
            if let Some(suspect) = note.suspect {
                self.suspect_digests.insert(digest.clone(), suspect);
            } else if note.text != NotedText::None {
                let (source_file, source_offset) = (note.source_file.clone(), note.source_offset);
                let text = match &note.text {
                    NotedText::Parsed(facts) => Some((facts.text_digest, facts.text_bytes)),
                    _ => None,
                };
                let holder = Holder { source_file, source_offset, sequence: note.sequence, at, text };
                self.add_holder(digest.clone(), holder);
            }
        }
    }

    /// Stands for the host of a URL. Captures of a host mostly come together.
    fn host(&mut self, url: &str) -> u64 {
        let host = url::host(url);
        match &self.last_host {
            Some((last, number)) if last == host => *number,
            _ => {
                let number = Digest::of(host.as_bytes()).low64();
                self.last_host = Some((host.to_owned(), number));
                number
            }
        }
    }

    /// A capture of the URL turned out to say nothing.
    pub(super) fn says_nothing(&mut self, url: &str) {
        if let Some(heard) = self.urls.get_mut(&Digest::of(url.as_bytes())) {
            heard.captures = heard.captures.saturating_sub(1);
        }
    }

    /// URLs that had a page before and of which the snapshot says something, or an earlier window of its folder did.
    pub(super) fn living_heard_of(&self) -> u64 {
        let here = self.urls.values().filter(|heard| heard.alive && heard.captures > 0).count();
        let earlier = self.earlier_urls.iter().filter(|url| !self.urls.contains_key(*url)).count();
        (here + earlier) as u64
    }

    /// Files that end in the middle or cannot be read.
    pub(super) fn cut_files(&self) -> u64 {
        let cut =
            self.rejects.iter().filter(|reject| reject.lost == Loss::Rest).map(|reject| reject.source_file.as_str());
        cut.collect::<HashSet<_>>().len() as u64
    }

    fn add_holder(&mut self, digest: String, holder: Holder) {
        match self.by_archive_digest.entry(digest) {
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(holder);
            }
            std::collections::hash_map::Entry::Occupied(mut entry) => {
                if holder < *entry.get() {
                    entry.insert(holder);
                }
            }
        }
    }
}

struct Worker<'a> {
    reading: &'a ReadContext<'a>,
    notes: NoteTaker<'a>,
    spill: &'a Spill,
    seen: Seen,
    buffer: Vec<u8>,
}

/// Notes are taken of so many captures together, and of fewer where their bodies have more bytes than this.
const NOTED_CAPTURES: usize = 32;
const NOTED_BYTES: usize = 512 << 10;

impl Sink for Worker<'_> {
    fn captures(&mut self, batch: Vec<(RawCapture, u64)>) -> Result<()> {
        let (mut together, mut bytes) = (Together::default(), 0);
        for (mut raw, sequence) in batch {
            if !self.is_of_window(&raw) {
                continue;
            }
            let rejects = &mut self.seen.rejects;
            let equate_schemes = self.reading.rules.equate_schemes;
            let Some(judged) = judge(&mut raw, equate_schemes, read_body, |reject| rejects.push(reject)) else {
                continue;
            };
            bytes += judged.payload.as_ref().map_or(0, Vec::len);
            let url = Digest::of(judged.url.as_bytes());
            let last = self.reading.last_readings.of(&judged.url, url)?;
            let last_reading = last.and_then(|last| last.reading);
            together.captures.push(JudgedCapture { raw, judged, sequence, last_reading });
            together.urls.push((url, last));
            if together.urls.len() >= NOTED_CAPTURES || bytes >= NOTED_BYTES {
                self.note(std::mem::take(&mut together))?;
                bytes = 0;
            }
        }
        self.note(together)
    }

    fn reject(&mut self, reject: Reject) {
        if self.reading.window.as_ref().is_none_or(|window| window.last) {
            self.seen.rejects.push(reject);
        }
    }
}

/// Captures of which notes are taken together, and of each what is known of its URL.
#[derive(Default)]
struct Together {
    captures: Vec<JudgedCapture>,
    /// With the digest of the URL.
    urls: Vec<(Digest, Option<LastReading>)>,
}

impl Worker<'_> {
    fn note(&mut self, together: Together) -> Result<()> {
        for (noted, (url, last)) in self.notes.take(together.captures).into_iter().zip(together.urls) {
            if noted.links_left_out > 0 {
                self.seen.rejects.push(Reject {
                    source_file: noted.note.source_file.clone(),
                    source_offset: Some(noted.note.source_offset),
                    url: Some(noted.note.url.clone()),
                    reason: format!(
                        "{} links are left out: the page's links would take too much",
                        noted.links_left_out
                    ),
                    lost: Loss::Nothing,
                });
            }
            self.put(&noted.note, url, noted.content.as_ref(), last)?;
        }
        Ok(())
    }

    /// Whether a capture belongs to the snapshot. Notes what earlier parts of the folder show.
    fn is_of_window(&mut self, raw: &RawCapture) -> bool {
        let Some(window) = &self.reading.window else { return true };
        match window.place(raw) {
            Place::Here => {
                self.seen.in_window.add(capture_print(raw));
                true
            }
            Place::Earlier if window.last && Answer::of(raw.status).is_good() && raw.truncated.is_none() => {
                let url = url::normalise(&raw.url, self.reading.rules.equate_schemes);
                self.seen.earlier_urls.extend(url.ok().map(|url| Digest::of(url.as_bytes())));
                false
            }
            Place::Earlier | Place::Elsewhere => false,
        }
    }

    fn put(
        &mut self,
        note: &CaptureNote,
        url: Digest,
        content: Option<&Content>,
        last: Option<LastReading>,
    ) -> Result<()> {
        let shard = shard_of_digest(url, self.reading.shards);
        let at = self.spill.push(shard, note, content, &mut self.buffer)?;
        self.seen.add(note, url, at, last);
        Ok(())
    }
}
