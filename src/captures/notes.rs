//! What is kept of a capture while its snapshot is being ingested: all but its body.

use serde::{Deserialize, Serialize};

use super::Answer;
use super::judge::{Judged, media_type};
use super::suspect::{self, Sign};
use crate::model::{
    Content, Digest, DigestBuilder, Link, LinkKind, RawCapture, Revisit, Suspect, TimeSource, Timestamp,
};
use crate::tables::ingest::ContentFacts;
use crate::text::mask::Mask;
use crate::text::{self, TextOptions, TextReader, url};

/// A capture, without what its body says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CaptureNote {
    /// Normalised.
    pub(crate) url: String,
    pub(crate) fetched_at: Timestamp,
    pub(crate) fetched_at_source: TimeSource,
    pub(crate) status: Option<u16>,
    /// Media type only, lower case.
    pub(crate) content_type: Option<String>,
    pub(crate) last_modified: Option<(Timestamp, TimeSource)>,
    pub(crate) etag: Option<String>,
    pub(crate) archive_digest: Option<String>,
    /// A revisit record or a 304: says "as before" instead of repeating the content.
    pub(crate) revisit: Option<Revisit>,
    pub(crate) payload: Option<PayloadNote>,
    pub(crate) text: NotedText,
    /// Why it is taken for no page though the server says so. What the whole snapshot tells is added once all is read.
    pub(crate) suspect: Option<Suspect>,
    /// What it is suspect of if its URL had a page that did not look like that.
    pub(crate) sign: Option<Suspect>,
    /// The body is short or cannot be decoded: a capture, but never a page.
    pub(crate) broken: bool,
    pub(crate) source_file: String,
    pub(crate) source_offset: u64,
    /// Position in its source file; orders captures that share an offset.
    pub(crate) sequence: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PayloadNote {
    pub(crate) digest: Digest,
    pub(crate) bytes: u64,
    /// Of the body and of all that decides how it is read.
    pub(crate) reading: Digest,
}

/// What is known of the text in a capture's body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NotedText {
    /// There is no body, no text in it, or none that is of interest (an error page).
    None,
    /// The body and the way to read it are those of the URL's last good page, so it was not parsed.
    AsLast,
    Parsed(ContentFacts),
}

/// A capture that counts, and what is known of its URL.
pub(crate) struct JudgedCapture {
    pub(crate) raw: RawCapture,
    pub(crate) judged: Judged,
    /// Position in its source file.
    pub(crate) sequence: u64,
    /// Of the URL's last good page.
    pub(crate) last_reading: Option<Digest>,
}

/// A capture whose body was read; what its note says of the text is still to come.
struct Read {
    note: CaptureNote,
    content: Option<Content>,
    charset: Option<String>,
    links_left_out: u64,
}

/// What was noted of a capture.
pub(crate) struct Noted {
    pub(crate) note: CaptureNote,
    /// If it was parsed.
    pub(crate) content: Option<Content>,
    /// Links that would have taken too much.
    pub(crate) links_left_out: u64,
}

/// Where a capture and its content are kept until all captures of its URL are together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct SpilledAt {
    pub(crate) shard: u32,
    pub(crate) offset: u64,
}

/// A capture of which the content is kept elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct SpilledCapture {
    pub(crate) note: CaptureNote,
    pub(crate) at: SpilledAt,
}

impl CaptureNote {
    /// Order of the captures of one URL: the last good one is the page.
    #[must_use]
    pub(crate) fn order(&self) -> impl Ord + '_ {
        (self.fetched_at, &self.source_file, self.source_offset, self.sequence)
    }

    /// What the server answered.
    #[must_use]
    pub(crate) fn answer(&self) -> Answer {
        Answer::of(self.status)
    }

    /// Whether it can be the page of its URL, if its content is found.
    #[must_use]
    pub(crate) fn is_good(&self) -> bool {
        !self.broken && self.suspect.is_none() && self.answer().is_good()
    }

    /// Whether its body holds the text of a page.
    #[must_use]
    pub(crate) fn holds_page(&self) -> bool {
        self.text != NotedText::None && !self.broken && self.suspect.is_none() && self.answer() == Answer::Page
    }

    /// Whether it says something about its page, be it that there is none.
    #[must_use]
    pub(crate) fn says_something(&self) -> bool {
        self.is_good() || (self.revisit.is_none() && matches!(self.answer(), Answer::Gone | Answer::Moved))
    }

    /// The server says that the page is no more.
    #[must_use]
    pub(crate) fn is_gone(&self) -> bool {
        self.revisit.is_none() && self.answer() == Answer::Gone
    }
}

/// How the captures of a snapshot are read.
#[derive(Debug)]
pub(crate) struct ReadingRules<'a> {
    pub(crate) equate_schemes: bool,
    pub(crate) mask: &'a Mask,
    /// Identifies the rules of `mask`.
    pub(crate) ignore_digest: Digest,
    /// Stands in for a missing retrieval time.
    pub(crate) snapshot_time: Timestamp,
    /// Parse a payload even if the URL's last page has the same: the snapshot stores every text.
    pub(crate) parse_all: bool,
    /// Keep where texts stand among elements.
    pub(crate) keep_elements: bool,
}

/// Takes notes of captures; keeps its buffers from one to the next. One for each thread.
pub(crate) struct NoteTaker<'a> {
    rules: &'a ReadingRules<'a>,
    text: TextReader,
}

impl<'a> NoteTaker<'a> {
    #[must_use]
    pub(crate) fn new(rules: &'a ReadingRules<'a>) -> Self {
        let options = TextOptions { equate_schemes: rules.equate_schemes, keep_elements: rules.keep_elements };
        Self { rules, text: TextReader::new(options) }
    }

    /// The notes of some captures, in their order. Together they are taken faster: digests of many pages are made at once.
    pub(crate) fn take(&mut self, captures: Vec<JudgedCapture>) -> Vec<Noted> {
        let payloads: Vec<&[u8]> =
            captures.iter().map(|capture| capture.judged.payload.as_deref().unwrap_or_default()).collect();
        let digests = Digest::of_each(&payloads);
        let read: Vec<Read> =
            captures.into_iter().zip(digests).map(|(capture, digest)| self.read(capture, digest)).collect();
        let contents: Vec<&Content> = read.iter().filter_map(|read| read.content.as_ref()).collect();
        let mut facts = content_facts(&contents, self.rules.mask).into_iter();
        let noted = |Read { mut note, content, charset, links_left_out }| {
            if content.is_some()
                && let Some(facts) = facts.next()
            {
                note.text = NotedText::Parsed(ContentFacts { charset, ..facts });
            }
            Noted { note, content, links_left_out }
        };
        read.into_iter().map(noted).collect()
    }

    /// Reads the body, if need be. `digest`: that of the payload.
    fn read(&mut self, capture: JudgedCapture, digest: Digest) -> Read {
        let JudgedCapture { raw, judged, sequence, last_reading } = capture;
        let Judged { url, payload, broken, is_text } = judged;
        let content_type = raw.content_type.as_deref();
        let noted = payload.as_ref().map(|bytes| self.payload(bytes, digest, content_type, raw.mirrored));
        let as_last = !self.rules.parse_all && noted.is_some_and(|noted| last_reading == Some(noted.reading));
        let (mut text, mut content, mut charset, mut links_left_out) = (NotedText::None, None, None, 0);
        match &payload {
            Some(_) if is_text && as_last => text = NotedText::AsLast,
            Some(bytes) if is_text => {
                let reading = self.text.read(bytes, content_type, &url);
                links_left_out = if reading.content.is_some() { reading.links_left_out } else { 0 };
                content = reading.content;
                charset = reading.charset.map(|(name, _)| name.to_owned());
            }
            _ => {}
        }
        if let Some(content) = content.as_mut().filter(|_| raw.mirrored) {
            content.links.iter_mut().for_each(|link| in_mirror(link, &url));
        }
        let bytes = payload.as_deref().unwrap_or_default();
        let (suspect, sign) = match content.as_ref().and_then(|content| suspect::sign(raw.wall, bytes, content)) {
            Some(Sign::Sure(suspect)) => (Some(suspect), None),
            Some(Sign::Weak(sign)) => (None, Some(sign)),
            None => (None, None),
        };
        let (fetched_at, fetched_at_source) = raw
            .fetched_at
            .filter(|(time, _)| can_be(*time, self.rules.snapshot_time))
            .unwrap_or((self.rules.snapshot_time, TimeSource::Snapshot));
        let note = CaptureNote {
            revisit: self.revisit(raw.revisit, raw.status),
            url,
            fetched_at,
            fetched_at_source,
            status: raw.status,
            content_type: content_type.and_then(media_type),
            last_modified: raw.last_modified,
            etag: raw.etag,
            archive_digest: raw.archive_digest,
            payload: noted,
            text,
            suspect,
            sign,
            broken,
            source_file: raw.source_file,
            source_offset: raw.source_offset,
            sequence,
        };
        Read { note, content, charset, links_left_out }
    }

    fn payload(&self, bytes: &[u8], digest: Digest, content_type: Option<&str>, mirrored: bool) -> PayloadNote {
        let mut reading = DigestBuilder::new();
        reading.field(&digest.0);
        reading.field(content_type.unwrap_or_default().as_bytes());
        reading.number(u64::from(text::CONVERSION_VERSION));
        reading.number(u64::from(self.rules.equate_schemes));
        reading.field(&self.rules.ignore_digest.0);
        // Nothing is added for pages that are read as they always were, so that they are not read again.
        if self.rules.keep_elements {
            reading.field(b"elements");
        }
        if mirrored {
            reading.field(b"mirrored");
        }
        if text::charset::is_flawed_utf_8(bytes, content_type) {
            reading.field(b"flawed UTF-8");
        }
        PayloadNote { digest, bytes: bytes.len() as u64, reading: reading.finish() }
    }

    /// A 304 is a revisit that names nothing.
    fn revisit(&self, revisit: Option<Revisit>, status: Option<u16>) -> Option<Revisit> {
        match revisit {
            Some(Revisit { refers_to_url, refers_to_date }) => {
                let refers_to_url = refers_to_url.and_then(|u| url::normalise(&u, self.rules.equate_schemes).ok());
                Some(Revisit { refers_to_url, refers_to_date })
            }
            None => (Answer::of(status) == Answer::AsBefore).then(Revisit::default),
        }
    }
}

/// Names the page that a link leads to as the mirror names its pages. `page`: the URL that the link stands in.
fn in_mirror(link: &mut Link, page: &str) {
    link.target = url::in_mirror(std::mem::take(&mut link.target));
    if link.target.split('#').next() == Some(page) {
        link.kind = LinkKind::Interior;
    }
}

/// Whether a stated retrieval time can be true: there were no web pages before 1990. A clock that was not set says 1970,
/// or a year far to come. Folders may well be named by another time than that of their captures, so that only what no
/// such name explains is refused.
fn can_be(time: Timestamp, snapshot: Timestamp) -> bool {
    const FIRST: i64 = 631_152_000 * Timestamp::SECOND;
    const FIFTY_YEARS: i64 = 50 * 366 * 24 * 3_600 * Timestamp::SECOND;
    time.0 >= FIRST && time.0 <= snapshot.0.saturating_add(FIFTY_YEARS)
}

/// What is told of each content, but for its charset.
fn content_facts(contents: &[&Content], mask: &Mask) -> Vec<ContentFacts> {
    let texts: Vec<&[u8]> = contents.iter().map(|content| content.text.as_bytes()).collect();
    let text_digests = Digest::of_each(&texts);
    let fields: Vec<DigestBuilder> = contents.iter().map(|content| content.fields_with(Into::into)).collect();
    let content_digests = DigestBuilder::finish_each(&fields);
    let digests = text_digests.into_iter().zip(content_digests);
    let facts = |(content, (text_digest, content_digest)): (&&Content, _)| {
        let (change_digest, masked_text_digest) = if mask.is_empty() {
            (content_digest, text_digest)
        } else {
            let masked = mask.apply(&content.text);
            (content.digest_with(|text| mask.apply(text)), Digest::of(masked.as_bytes()))
        };
        ContentFacts {
            title: content.title.clone(),
            charset: None,
            text_digest,
            text_bytes: i64::try_from(content.text.len()).unwrap_or(i64::MAX),
            content_digest,
            change_digest,
            masked_text_digest,
            canonical: content.canonical.clone(),
            structure_digest: content.structure,
            elements_digest: content.elements.as_ref().map(|elements| Digest::of(elements.as_bytes())),
        }
    };
    contents.iter().zip(digests).map(facts).collect()
}
