//! A night of one URL: what was known of it, and its captures of tonight, to the rows of tonight and what is known next.
//!
//! A page's text and links are stored in the snapshot where they appeared or changed; later pages point there. So the
//! fold decides by digests alone what is to be written, and asks for a content only when it has to be stored or when
//! digests cannot be compared.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::resolve::{ContentOf, Resolved};
use super::{Answer, CaptureNote, Elsewhere, NotedText, SpilledAt, SpilledCapture, StoredVersion, UniqueTexts};
use crate::model::maps::{HashMap, HashSet};
use crate::model::{Change, Content, Coverage, Digest, Link, NoText, SnapshotId, Standing};
use crate::tables::ingest::{Capture, ContentFacts, Head, LinkRow, Page, PageFacts, Tombstone};
use crate::text::mask::Mask;
use crate::text::url;

/// What holds for all URLs of a snapshot.
#[derive(Debug)]
pub(crate) struct Tonight<'a> {
    pub(crate) snapshot: &'a SnapshotId,
    /// Store every text and all links again, so that pointers do not reach back for ever.
    pub(crate) base: bool,
    /// All pages of the snapshot get a row; else only those that it touched, and those that went.
    pub(crate) whole: bool,
    /// What was not captured is gone: the crawl was full and came to its end.
    pub(crate) absent_is_gone: bool,
    /// URLs whose captures could not be used: nothing is known of them tonight.
    pub(crate) rejected: &'a HashSet<String>,
    pub(crate) coverage: Coverage,
    /// URLs that are not missing though the snapshot has no capture of them, by digest: an earlier part of its folder has.
    pub(crate) seen_before: &'a HashSet<Digest>,
    pub(crate) mask: &'a Mask,
    /// Identifies the rules of `mask`.
    pub(crate) ignore_digest: Digest,
}

/// The last good page of a URL, for a page that moved away from it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LastPage {
    pub(crate) url: String,
    pub(crate) snapshot: SnapshotId,
    pub(crate) text_snapshot: SnapshotId,
}

/// A URL that is known, or was captured tonight, or both.
#[derive(Debug)]
pub(crate) struct UrlTonight<'a> {
    pub(crate) head: Option<Head>,
    /// Sorted by [`CaptureNote::order`].
    pub(crate) captures: &'a [SpilledCapture],
    /// What these captures stand for.
    pub(crate) resolved: Resolved<Elsewhere<'a>>,
}

/// What other URLs hold that captures stand for.
#[derive(Debug, Default)]
pub(crate) struct Others {
    pub(crate) captures: HashMap<SpilledAt, CaptureNote>,
    pub(crate) heads: HashMap<String, Head>,
    pub(crate) versions: HashMap<StoredVersion, PageFacts>,
    /// Of texts that URLs without a head have tonight: the last page that has it.
    pub(crate) last_pages: UniqueTexts<LastPage>,
}

/// Where a content can be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ContentAt<'a> {
    /// With a capture of tonight.
    Spilled(SpilledAt),
    /// In the tables of earlier snapshots, without its title.
    Stored { url: &'a str, text_snapshot: &'a SnapshotId, content_snapshot: &'a SnapshotId },
}

/// A URL's rows of tonight, and what is known of it next.
#[derive(Debug, Default)]
pub(crate) struct UrlRows {
    pub(crate) captures: Vec<Capture>,
    pub(crate) page: Option<Page>,
    pub(crate) links: Vec<LinkRow>,
    /// `None` if nothing is known, or nothing else than before.
    pub(crate) head: Option<Head>,
    /// It had a page in the snapshot before and has none now.
    pub(crate) went: bool,
    /// It has a page and had none in the snapshot before.
    pub(crate) came: bool,
    /// Tells that it went, where no absence of a row can.
    pub(crate) tombstone: Option<Tombstone>,
    /// Versions that captures hold and no snapshot stores.
    pub(crate) passed_over: u64,
}

/// A capture stands for something that its URL does not have and that was not handed over.
#[derive(Debug, thiserror::Error)]
#[error("a capture of {url} stands for a content that is not there")]
pub(crate) struct Dangling {
    url: String,
}

/// A content, as far as it is known without reading it.
#[derive(Clone, Copy, Debug)]
struct KnownContent<'a> {
    facts: &'a ContentFacts,
    payload_digest: Option<Digest>,
    reading_digest: Option<Digest>,
    archive_digest: Option<&'a str>,
    /// Identifies the rules behind its change digest.
    ignore_digest: Digest,
    at: ContentAt<'a>,
}

/// The page that a new one is compared with.
struct OldPage {
    snapshot: SnapshotId,
    text_digest: Digest,
    text_snapshot: SnapshotId,
}

/// The last page, where it has the text and where it has the content of the new one.
#[derive(Clone, Copy)]
struct Stored<'a> {
    same_text: Option<&'a PageFacts>,
    same_content: Option<&'a PageFacts>,
}

impl Stored<'_> {
    fn is_new(&self) -> bool {
        self.same_text.is_none() || self.same_content.is_none()
    }
}

impl Tonight<'_> {
    /// The night of one URL. `fetch` reads a content.
    pub(crate) fn fold<E: From<Dangling>>(
        &self,
        url: UrlTonight<'_>,
        others: &Others,
        fetch: &mut impl FnMut(ContentAt<'_>) -> Result<Content, E>,
    ) -> Result<UrlRows, E> {
        let UrlTonight { head, captures, resolved } = url;
        let mut rows = UrlRows::default();
        let mut page = None;
        for (i, (capture, content)) in captures.iter().zip(&resolved.contents).enumerate() {
            let note = &capture.note;
            let known = match content {
                None => None,
                Some(content) => {
                    let known = self.known(content, captures, head.as_ref(), others);
                    Some(known.ok_or_else(|| Dangling { url: note.url.clone() })?)
                }
            };
            rows.captures.push(capture_row(note, known.as_ref()));
            if resolved.page == Some(i) {
                page = known.map(|known| (note, known));
            }
        }
        rows.passed_over = passed_over(captures, &rows.captures, page.as_ref().map(|(_, page)| page), head.as_ref());
        if let Some((note, known)) = page {
            let moved_from = if head.is_none() { others.last_pages.holder(known.facts.text_digest) } else { None };
            self.page(note, &known, (head.as_ref(), moved_from), fetch, &mut rows)?;
        } else if let Some(head) = head {
            let is_gone = self.is_gone(&head, captures);
            self.absent(head, is_gone, fetch, &mut rows)?;
        }
        Ok(rows)
    }

    /// The stored contents that [`Self::fold`] will ask for, each with the bytes of its text: so that those of many URLs
    /// can be read together.
    #[must_use]
    pub(crate) fn will_read<'a>(&self, url: &'a UrlTonight<'_>, others: &'a Others) -> Vec<(ContentAt<'a>, i64)> {
        let UrlTonight { head, captures, resolved } = url;
        let head = head.as_ref();
        let page = resolved.page.and_then(|page| resolved.contents[page].as_ref());
        let of_head = |head: &'a Head| (ContentAt::stored(&head.page), head.page.content.text_bytes);
        let Some(known) = page.and_then(|content| self.known(content, captures, head, others)) else {
            let carried = head.filter(|head| self.base && head.alive && !self.is_gone(head, captures));
            return carried.map(of_head).into_iter().collect();
        };
        let facts = known.facts;
        let looked_at = head.filter(|head| self.compare(head, facts).is_none()).map(of_head);
        let is_new = self.stored(head, facts).is_new();
        looked_at
            .into_iter()
            .chain(is_new.then_some((known.at, facts.text_bytes)).filter(|(at, _)| at.is_stored()))
            .collect()
    }

    /// The text of a URL of which nothing was known: a page may have moved there. It may be one that another URL has, where a
    /// crawler does not store twice what it met before.
    #[must_use]
    pub(crate) fn text_of_newcomer(&self, url: &UrlTonight<'_>, others: &Others) -> Option<Digest> {
        let page = url.resolved.page.filter(|_| url.head.is_none())?;
        let content = url.resolved.contents[page].as_ref()?;
        let facts = self.known(content, url.captures, None, others)?.facts;
        UniqueTexts::<LastPage>::tells(facts.text_bytes).then_some(facts.text_digest)
    }

    /// What a capture stands for.
    fn known<'a>(
        &self,
        content: &ContentOf<Elsewhere<'_>>,
        captures: &'a [SpilledCapture],
        head: Option<&'a Head>,
        others: &'a Others,
    ) -> Option<KnownContent<'a>> {
        match content {
            ContentOf::Capture(i) => self.of_capture(&captures[*i].note, captures[*i].at),
            ContentOf::LastPage => head.map(|head| of_page(&head.page)),
            ContentOf::Elsewhere(Elsewhere::LastPageOf(url)) => others.heads.get(*url).map(|head| of_page(&head.page)),
            ContentOf::Elsewhere(Elsewhere::Version(version)) => others.versions.get(*version).map(of_page),
            ContentOf::Elsewhere(Elsewhere::Capture(at)) => {
                let note = others.captures.get(at)?;
                match note.text {
                    NotedText::AsLast => others.heads.get(&note.url).map(|head| of_page(&head.page)),
                    _ => self.of_capture(note, *at),
                }
            }
        }
    }

    fn of_capture<'a>(&self, note: &'a CaptureNote, at: SpilledAt) -> Option<KnownContent<'a>> {
        let NotedText::Parsed(facts) = &note.text else { return None };
        Some(KnownContent {
            facts,
            payload_digest: note.payload.map(|payload| payload.digest),
            reading_digest: note.payload.map(|payload| payload.reading),
            archive_digest: note.archive_digest.as_deref(),
            ignore_digest: self.ignore_digest,
            at: ContentAt::Spilled(at),
        })
    }

    /// A URL with a page.
    fn page<E>(
        &self,
        note: &CaptureNote,
        known: &KnownContent<'_>,
        (head, moved_from): (Option<&Head>, Option<&LastPage>),
        fetch: &mut impl FnMut(ContentAt<'_>) -> Result<Content, E>,
        rows: &mut UrlRows,
    ) -> Result<(), E> {
        let facts = known.facts;
        let change = match head {
            None => Standing::Added,
            Some(head) if self.differs(head, facts, fetch)? => Standing::Modified,
            Some(_) => Standing::Unchanged,
        };
        let stored = self.stored(head, facts);
        let Stored { same_text, same_content } = stored;
        let mut text = None;
        if stored.is_new() {
            let content = fetch(known.at)?;
            if same_content.is_none() {
                rows.links = link_rows(&note.url, content.links);
            }
            // Elements that were not asked for when the page was read are those of another reading.
            let elements = content.elements.filter(|_| facts.elements_digest.is_some());
            text = same_text.is_none().then_some((content.text, elements));
        }
        let old = match (head, moved_from) {
            (Some(head), _) => Some(OldPage::of(head)),
            (None, Some(last)) => Some(OldPage {
                snapshot: last.snapshot.clone(),
                text_digest: facts.text_digest,
                text_snapshot: last.text_snapshot.clone(),
            }),
            (None, None) => None,
        };
        // A 304 says that what was stated before still holds.
        let confirmed = head.map(|head| &head.page).filter(|_| note.answer() == Answer::AsBefore);
        let page = PageFacts {
            content: facts.clone(),
            url: note.url.clone(),
            content_type: note.content_type.clone().or_else(|| head.and_then(|head| head.page.content_type.clone())),
            fetched_at: Some(note.fetched_at),
            last_modified: note.last_modified.map(|(time, _)| time).or_else(|| confirmed?.last_modified),
            etag: note.etag.clone().or_else(|| confirmed?.etag.clone()),
            text_snapshot: same_text.map_or(self.snapshot, |old| &old.text_snapshot).clone(),
            content_snapshot: same_content.map_or(self.snapshot, |old| &old.content_snapshot).clone(),
            payload_digest: known.payload_digest,
            archive_digest: known.archive_digest.map(str::to_owned),
            reading_digest: known.reading_digest,
            ignore_digest: known.ignore_digest,
        };
        rows.came = head.is_none_or(|head| !head.alive);
        rows.head = Some(self.head(page.clone()));
        let row = page_row(page, text, change, moved_from.map(|last| last.url.clone()), old);
        let structures = head.and_then(|head| head.page.content.structure_digest).zip(row.structure_digest);
        let structure_changed = structures.map(|(old, new)| old != new);
        rows.page = Some(Page { returned: rows.came && head.is_some(), whole: self.whole, structure_changed, ..row });
        Ok(())
    }

    /// Where text and links of a content are stored already.
    fn stored<'a>(&self, head: Option<&'a Head>, facts: &ContentFacts) -> Stored<'a> {
        // A page that returns is stored again: what it had may lie further back than anything else points to.
        let stored = head.filter(|head| head.alive && !self.base).map(|head| &head.page);
        // Elements lie beside the text: where others are asked for, both are stored again.
        let same_elements =
            |old: &ContentFacts| facts.elements_digest.is_none() || old.elements_digest == facts.elements_digest;
        let same_text = |old: &ContentFacts| old.text_digest == facts.text_digest && same_elements(old);
        Stored {
            same_text: stored.filter(|old| same_text(&old.content)),
            same_content: stored.filter(|old| old.content.content_digest == facts.content_digest),
        }
    }

    /// Whether a content differs from the last page's, as the ignore rules see it; `None` if digests cannot tell.
    fn compare(&self, head: &Head, facts: &ContentFacts) -> Option<bool> {
        let old = &head.page.content;
        if old.content_digest == facts.content_digest {
            return Some(false);
        }
        (head.page.ignore_digest == self.ignore_digest).then_some(old.change_digest != facts.change_digest)
    }

    /// Whether a content differs from the last page's, as the ignore rules see it.
    fn differs<E>(
        &self,
        head: &Head,
        facts: &ContentFacts,
        fetch: &mut impl FnMut(ContentAt<'_>) -> Result<Content, E>,
    ) -> Result<bool, E> {
        if let Some(differs) = self.compare(head, facts) {
            return Ok(differs);
        }
        // The rules are not those of the last page's digest: look at it again with the new ones.
        let content = Content { title: head.page.content.title.clone(), ..fetch(ContentAt::stored(&head.page))? };
        Ok(content.digest_with(|text| self.mask.apply(text)) != facts.change_digest)
    }

    /// Whether a URL without a page tonight has none any more. Its last capture decides: a server that says so, or that
    /// sends elsewhere for good. One that failed, or is suspect, says nothing about the page, and it stays.
    fn is_gone(&self, head: &Head, captures: &[SpilledCapture]) -> bool {
        match captures.last() {
            None => {
                let url = &head.page.url;
                self.absent_is_gone && !self.rejected.contains(url) && !self.is_seen_before(url)
            }
            Some(capture) if capture.note.is_gone() => true,
            Some(capture) => {
                let note = &capture.note;
                let has_no_text = note.revisit.is_none() && note.is_good();
                self.coverage == Coverage::Full && (has_no_text || note.answer() == Answer::Moved)
            }
        }
    }

    /// A URL without a page tonight: deleted if it is gone, else carried.
    fn absent<E>(
        &self,
        head: Head,
        is_gone: bool,
        fetch: &mut impl FnMut(ContentAt<'_>) -> Result<Content, E>,
        rows: &mut UrlRows,
    ) -> Result<(), E> {
        if !head.alive {
            return Ok(());
        }
        let old = OldPage::of(&head);
        if is_gone {
            rows.went = true;
            rows.tombstone = (!self.whole).then(|| tombstone(&head.page.url, old));
            rows.head = Some(Head { alive: false, ..head });
            return Ok(());
        }
        let Head { mut page, .. } = head;
        let mut text = None;
        if self.base {
            let content = fetch(ContentAt::stored(&page))?;
            rows.links = link_rows(&page.url, content.links);
            text = Some((content.text, content.elements.filter(|_| page.content.elements_digest.is_some())));
            page.text_snapshot = self.snapshot.clone();
            page.content_snapshot = self.snapshot.clone();
        }
        rows.head = Some(self.head(page.clone()));
        rows.page = Some(Page { whole: self.whole, ..page_row(page, text, Standing::Carried, None, Some(old)) });
        Ok(())
    }

    fn is_seen_before(&self, url: &str) -> bool {
        !self.seen_before.is_empty() && self.seen_before.contains(&Digest::of(url.as_bytes()))
    }

    fn head(&self, page: PageFacts) -> Head {
        Head { page, page_snapshot: self.snapshot.clone(), alive: true }
    }
}

impl<'a> ContentAt<'a> {
    fn is_stored(self) -> bool {
        matches!(self, Self::Stored { .. })
    }

    fn stored(page: &'a PageFacts) -> Self {
        let PageFacts { url, text_snapshot, content_snapshot, .. } = page;
        Self::Stored { url, text_snapshot, content_snapshot }
    }
}

impl OldPage {
    fn of(head: &Head) -> Self {
        Self {
            snapshot: head.page_snapshot.clone(),
            text_digest: head.page.content.text_digest,
            text_snapshot: head.page.text_snapshot.clone(),
        }
    }
}

fn of_page(page: &PageFacts) -> KnownContent<'_> {
    KnownContent {
        facts: &page.content,
        payload_digest: page.payload_digest,
        reading_digest: page.reading_digest,
        archive_digest: page.archive_digest.as_deref(),
        ignore_digest: page.ignore_digest,
        at: ContentAt::stored(page),
    }
}

/// How many versions the good captures of a URL show besides its page and the page before it.
fn passed_over(
    captures: &[SpilledCapture],
    rows: &[Capture],
    page: Option<&KnownContent<'_>>,
    head: Option<&Head>,
) -> u64 {
    if captures.len() < 2 {
        return 0;
    }
    let stored = [page.map(|page| page.facts.text_digest), head.map(|head| head.page.content.text_digest)];
    let good = captures.iter().zip(rows).filter(|(capture, _)| capture.note.is_good());
    let texts: HashSet<Digest> = good.filter_map(|(_, row)| row.text_digest).collect();
    texts.iter().filter(|text| !stored.contains(&Some(**text))).count() as u64
}

fn tombstone(url: &str, old: OldPage) -> Tombstone {
    Tombstone {
        url: url.to_owned(),
        host: url::host(url).to_owned(),
        change: Change::Deleted,
        returned: false,
        old_snapshot: Some(old.snapshot),
        old_text_digest: Some(old.text_digest),
        old_text_snapshot: Some(old.text_snapshot),
        whole: false,
    }
}

/// The only place where the facts of a page become a row. `text`: with its elements, if it is stored tonight.
fn page_row(
    facts: PageFacts,
    text: Option<(String, Option<String>)>,
    change: Standing,
    moved_from: Option<String>,
    old: Option<OldPage>,
) -> Page {
    let (old_snapshot, old_text_digest, old_text_snapshot) = match old {
        Some(old) => (Some(old.snapshot), Some(old.text_digest), Some(old.text_snapshot)),
        None => (None, None, None),
    };
    let content = facts.content;
    let (text, elements) = text.map_or((None, None), |(text, elements)| (Some(text), elements));
    Page {
        host: url::host(&facts.url).to_owned(),
        url: facts.url,
        title: content.title,
        content_type: facts.content_type,
        fetched_at: facts.fetched_at,
        last_modified: facts.last_modified,
        etag: facts.etag,
        text,
        elements,
        text_digest: content.text_digest,
        text_bytes: content.text_bytes,
        text_snapshot: facts.text_snapshot,
        content_digest: content.content_digest,
        content_snapshot: facts.content_snapshot,
        change_digest: content.change_digest,
        masked_text_digest: content.masked_text_digest,
        ignore_digest: facts.ignore_digest,
        canonical: content.canonical,
        structure_digest: content.structure_digest,
        elements_digest: content.elements_digest,
        structure_changed: None,
        change,
        returned: false,
        moved_from,
        old_snapshot,
        old_text_digest,
        old_text_snapshot,
        charset: content.charset,
        payload_digest: facts.payload_digest,
        archive_digest: facts.archive_digest,
        reading_digest: facts.reading_digest,
        whole: true,
    }
}

fn capture_row(note: &CaptureNote, known: Option<&KnownContent<'_>>) -> Capture {
    let payload = note.payload.map(|payload| payload.digest);
    Capture {
        url: note.url.clone(),
        fetched_at: Some(note.fetched_at),
        fetched_at_source: Some(note.fetched_at_source),
        status: note.status.map(i64::from),
        reason: known.is_none().then(|| no_text(note)),
        suspect: note.suspect,
        content_type: note.content_type.clone(),
        charset: known.and_then(|known| known.facts.charset.clone()),
        last_modified: note.last_modified.map(|(time, _)| time),
        last_modified_source: note.last_modified.map(|(_, source)| source),
        etag: note.etag.clone(),
        payload_digest: payload.or_else(|| known.and_then(|known| known.payload_digest)),
        archive_digest: note.archive_digest.clone(),
        text_digest: known.map(|known| known.facts.text_digest),
        masked_text_digest: known.map(|known| known.facts.masked_text_digest),
        payload_bytes: note.payload.map(|payload| as_i64(payload.bytes)),
        source_file: note.source_file.clone(),
        source_offset: as_i64(note.source_offset),
        revisit: note.revisit.is_some(),
    }
}

/// Why a capture has no text.
fn no_text(note: &CaptureNote) -> NoText {
    match () {
        () if note.suspect.is_some() => NoText::Suspect,
        () if note.broken => NoText::Broken,
        () if note.revisit.is_some() => NoText::Unresolved,
        () if !note.answer().is_good() => NoText::Status,
        () if note.payload.is_none() => NoText::NoBody,
        () => NoText::Binary,
    }
}

fn link_rows(url: &str, links: Vec<Link>) -> Vec<LinkRow> {
    let url: Arc<str> = url.into();
    let row = |(ordinal, link): (usize, Link)| LinkRow {
        url: Arc::clone(&url),
        target: link.target,
        label: link.label,
        kind: link.kind,
        ordinal: as_i64(ordinal as u64),
        element: link.element,
        dated: link.dated,
    };
    links.into_iter().enumerate().map(row).collect()
}

fn as_i64(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
