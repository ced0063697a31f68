//! Tables that `ingest` writes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::{
    Change, Digest, LinkElement, LinkKind, NoText, SnapshotId, StageId, Standing, Suspect, TimeSource, Timestamp,
};
use crate::tables::record::{OfUrl, Table, record, view};

record! {
    /// One retrieval of a URL.
    pub struct Capture {
        url: String = "URL of the capture, normalised: no fragment, no credentials",
        fetched_at: Option<Timestamp> = "when the crawler retrieved it",
        fetched_at_source: Option<TimeSource> = "where fetched_at comes from: header, manifest, mtime or snapshot",
        status: Option<i64> = "HTTP status; NULL if the archive does not say",
        reason: Option<NoText> = "why it has no text: status (the server answered with something else than a page), no_body, binary, broken (see rejects), unresolved (a revisit or 304 of nothing known) or suspect; NULL if it has one",
        suspect: Option<Suspect> = "why it is taken for no page though the server says that it is one: challenge, block, login, soft_404, same_text or stub; its URL's old page stays",
        content_type: Option<String> = "media type as stated, lower case, without parameters",
        charset: Option<String> = "character encoding the text was decoded with",
        last_modified: Option<Timestamp> = "Last-Modified as stated",
        last_modified_source: Option<TimeSource> = "where last_modified comes from: header or manifest",
        etag: Option<String> = "entity tag as stated",
        payload_digest: Option<Digest> = "BLAKE3-128 of the body without transfer and content encodings; of a revisit or 304 that of the page it refers to",
        archive_digest: Option<String> = "payload digest as the archive states it",
        text_digest: Option<Digest> = "BLAKE3-128 of the text; NULL if it has none (binary, unresolved revisit, suspect)",
        masked_text_digest: Option<Digest> = "digest of the text with what the ignore rules match masked; a change of it is an update",
        payload_bytes: Option<i64> = "length of the decoded body; NULL if the capture has none",
        source_file: String = "archive file inside the snapshot folder",
        source_offset: i64 = "byte offset of the record in that file; line number of a manifest",
        revisit: bool = "the archive says 'as before' instead of repeating the content (revisit record or 304)",
    }
}

impl Table for Capture {
    const NAME: &'static str = "captures";
    const ABOUT: &'static str = "one row per retrieval of a URL, good or not";
}

record! {
    /// The last good capture of a URL in a snapshot.
    pub struct Page {
        url: String = "URL of the page, normalised",
        host: String = "host of the URL",
        title: Option<String> = "title, white space folded",
        canonical: Option<String> = "address that the page gives as its own (rel=canonical), absolute; it is not the page's identity",
        content_type: Option<String> = "media type as stated, lower case, without parameters",
        fetched_at: Option<Timestamp> = "when the capture behind this page was retrieved",
        last_modified: Option<Timestamp> = "Last-Modified as stated; of a 304 that states none, that of the page it confirms",
        etag: Option<String> = "entity tag as stated; of a 304 that states none, that of the page it confirms",
        text: Option<String> = "the text; NULL if it is the same as in text_snapshot, where it lies",
        elements: Option<String> = "where the text stands among the elements of the page, beside the text: names, what is in each in parentheses, bytes of text as numbers, such as html(body(h1(12)p(3b(5)))); in XML ~ is before bytes of markup, & before text with references; NULL if no query of the pipeline asked for it",
        [nullable] text_digest: Digest = "BLAKE3-128 of the text",
        [nullable] text_bytes: i64 = "length of the text in bytes of UTF-8",
        [nullable] text_snapshot: SnapshotId = "snapshot whose row of this URL holds the text",
        [nullable] content_digest: Digest = "BLAKE3-128 of title, text and links",
        [nullable] content_snapshot: SnapshotId = "snapshot whose partition of links holds this page's links",
        [nullable] change_digest: Digest = "as content_digest, with what the ignore rules match masked; alone decides change",
        [nullable] masked_text_digest: Digest = "as text_digest, with what the ignore rules match masked",
        [nullable] ignore_digest: Digest = "digest of the ignore rules behind change_digest and masked_text_digest",
        structure_digest: Option<Digest> = "BLAKE3-128 of the names of its elements in page order, of shown ones only; NULL for what has none, such as plain text",
        elements_digest: Option<Digest> = "BLAKE3-128 of elements, which lies where the text lies; NULL if it was not kept when the page was read",
        structure_changed: Option<bool> = "its structure_digest is not that of the old page; NULL if one of them is not known",
        change: Standing = "against the last good page of the URL: added, modified, unchanged or carried; deleted: it had a page in the snapshot before and has none now (slim partitions only; such a row has no content)",
        returned: bool = "it had no page in the snapshot before, but one earlier",
        moved_from: Option<String> = "of an added page: the one other URL whose last page has this text (64 bytes or more)",
        old_snapshot: Option<SnapshotId> = "snapshot of the old page: the last good page of this URL, or of moved_from; NULL if there is none",
        old_text_digest: Option<Digest> = "digest of the old page's text",
        old_text_snapshot: Option<SnapshotId> = "snapshot whose row of the old page's URL holds its text",
        charset: Option<String> = "character encoding the text was decoded with",
        payload_digest: Option<Digest> = "BLAKE3-128 of the decoded body",
        archive_digest: Option<String> = "payload digest as the archive states it",
        reading_digest: Option<Digest> = "digest of the body and of all that decides how it is read; equal: not parsed again",
        whole: bool = "the partition has all pages of the snapshot; else only those of URLs that the snapshot touched",
    }
}

impl Table for Page {
    const NAME: &'static str = "pages";
    const ABOUT: &'static str = "one row per URL: its last good capture in the snapshot, with its text; all pages of the snapshot (whole), or those of the URLs that it touched (slim)";
}

record! {
    /// A page that went, as a slim partition of `pages` tells it.
    pub struct Tombstone {
        url: String = "",
        host: String = "",
        change: Change = "",
        returned: bool = "",
        old_snapshot: Option<SnapshotId> = "",
        old_text_digest: Option<Digest> = "",
        old_text_snapshot: Option<SnapshotId> = "",
        whole: bool = "",
    }
}

record! {
    /// A link of a page.
    pub struct LinkRow {
        url: Arc<str> = "page that holds the link",
        target: String = "absolute URL it leads to, with its fragment",
        label: String = "anchor text, white space folded",
        kind: LinkKind = "interior (same page), local (same host) or global",
        ordinal: i64 = "position among the links of the page, from 0",
        element: Option<LinkElement> = "what made it: a, area, frame, iframe, refresh, xlink or feed; NULL if it was stored by a version that did not note it",
        dated: Option<Timestamp> = "of an entry of a feed: when it was published, or last updated, as stated",
    }
}

impl Table for LinkRow {
    const NAME: &'static str = "links";
    const ABOUT: &'static str =
        "links of the pages whose content changed in the snapshot; join pages on url and content_snapshot";
}

record! {
    /// Something in the archive that could not be used.
    pub struct RejectRow {
        source_file: String = "archive file inside the snapshot folder",
        source_offset: Option<i64> = "byte offset of the record in that file; line number of a manifest",
        url: Option<String> = "URL, if it is known",
        stage: StageId = "stage that rejected it",
        reason: String = "why",
    }
}

record! {
    /// Why something was rejected.
    pub struct RejectReason {
        reason: String = "",
    }
}

record! {
    /// Why a capture is taken for no page.
    pub struct CaptureSuspect {
        suspect: Option<Suspect> = "",
    }
}

impl Table for RejectRow {
    const NAME: &'static str = "rejects";
    const ABOUT: &'static str = "what could not be used, with file, offset and reason";
}

record! {
    /// What is known of a content without its text and links: enough to tell two contents apart.
    #[derive(Eq, Serialize, Deserialize)]
    pub struct ContentFacts {
        title: Option<String> = "title",
        charset: Option<String> = "character encoding",
        text_digest: Digest = "digest of the text",
        text_bytes: i64 = "length of the text",
        content_digest: Digest = "digest of title, text, links",
        change_digest: Digest = "masked content digest",
        masked_text_digest: Digest = "masked text digest",
        canonical: Option<String> = "address that it gives as its own",
        structure_digest: Option<Digest> = "digest of its elements",
        elements_digest: Option<Digest> = "digest of where its text stands among them",
    }
}

record! {
    /// A page, apart from its text and from how it stands to other pages. Rows of `pages` are made from it and can be
    /// read as it; a head holds it.
    #[derive(Eq, Serialize, Deserialize)]
    pub struct PageFacts {
        ..content: ContentFacts,
        url: String = "URL",
        content_type: Option<String> = "media type",
        fetched_at: Option<Timestamp> = "when it was retrieved",
        last_modified: Option<Timestamp> = "Last-Modified as stated",
        etag: Option<String> = "entity tag as stated",
        text_snapshot: SnapshotId = "where the text lies",
        content_snapshot: SnapshotId = "where the links lie",
        payload_digest: Option<Digest> = "digest of the body",
        archive_digest: Option<String> = "digest as the archive states it",
        reading_digest: Option<Digest> = "digest of the body and of how it is read",
        ignore_digest: Digest = "digest of the ignore rules behind change_digest",
    }
}

record! {
    /// What is known of a URL up to a snapshot: its last good page.
    #[derive(Eq, Serialize, Deserialize)]
    pub struct Head {
        ..page: PageFacts,
        page_snapshot: SnapshotId = "snapshot whose partition of pages has the row of the last good page",
        alive: bool = "it is a page of the snapshot",
    }
}

impl Table for Head {
    const NAME: &'static str = "states/heads";
    const ABOUT: &'static str = "written with every base: the last good page of each URL so far, of dead ones too";
}

record! {
    /// A stored version of a page, found by the digest that its archive states.
    pub struct VersionRow {
        archive_digest: Digest = "digest of the digest as the archive states it",
        url: String = "URL of the first page that had it",
        page_snapshot: SnapshotId = "snapshot whose partition of pages has its row",
    }
}

impl Table for VersionRow {
    const NAME: &'static str = "states/versions";
    const ABOUT: &'static str = "written with every base: stored versions of pages by the digests that archives state";
}

record! {
    /// Where a page's text lies.
    pub struct PagePointer {
        url: String = "",
        text_digest: Digest = "",
        text_bytes: i64 = "",
        text_snapshot: SnapshotId = "",
    }
}

record! {
    /// All that a row of `pages` points to.
    pub struct PagePointers {
        text_snapshot: Option<SnapshotId> = "",
        content_snapshot: Option<SnapshotId> = "",
        old_snapshot: Option<SnapshotId> = "",
        old_text_snapshot: Option<SnapshotId> = "",
    }
}

record! {
    /// The text of a page that lies in this partition.
    pub struct PageText {
        url: String = "",
        text: Option<String> = "",
    }
}

record! {
    /// The same, with where it stands among the elements of its page.
    pub struct PageElements {
        url: String = "",
        text: Option<String> = "",
        elements: Option<String> = "",
    }
}

record! {
    /// Where a page's text lies, and whether it is known where that stands among its elements.
    pub struct ElementsPointer {
        url: String = "",
        text_snapshot: SnapshotId = "",
        elements_digest: Option<Digest> = "",
    }
}

record! {
    /// A page and its old page: where both texts lie.
    pub struct PagePair {
        url: String = "",
        change: Standing = "",
        returned: bool = "",
        text_digest: Digest = "",
        text_bytes: i64 = "",
        text_snapshot: SnapshotId = "",
        moved_from: Option<String> = "",
        old_snapshot: Option<SnapshotId> = "",
        old_text_digest: Option<Digest> = "",
        old_text_snapshot: Option<SnapshotId> = "",
    }
}

record! {
    /// A page, its title and where its text lies.
    pub struct TitledText {
        url: String = "",
        title: Option<String> = "",
        text_digest: Digest = "",
        text_snapshot: SnapshotId = "",
    }
}

record! {
    /// A page and its title.
    pub struct PageTitle {
        url: String = "",
        title: Option<String> = "",
    }
}

view! {
    /// The URL of a row. Tables of pages, links and mentions have it.
    pub struct UrlOnly<'a> {
        url: &'a str,
    }
}

record! {
    /// What a capture tells about updates.
    pub struct CaptureEvidence {
        url: String = "",
        fetched_at: Option<Timestamp> = "",
        status: Option<i64> = "",
        suspect: Option<Suspect> = "",
        last_modified: Option<Timestamp> = "",
        last_modified_source: Option<TimeSource> = "",
        text_digest: Option<Digest> = "",
        masked_text_digest: Option<Digest> = "",
        revisit: bool = "",
    }
}

record! {
    /// What a server is told of the page that is known.
    pub struct PollFacts {
        url: String = "",
        etag: Option<String> = "",
        last_modified: Option<Timestamp> = "",
    }
}

record! {
    /// Where a page stood before.
    pub struct PageMove {
        url: String = "",
        moved_from: Option<String> = "",
    }
}

record! {
    /// How a page stands to the one before it.
    pub struct PageEvidence {
        url: String = "",
        masked_text_digest: Digest = "",
        change: Standing = "",
        moved_from: Option<String> = "",
    }
}

record! {
    /// Whether a page is as it was, and its version.
    pub struct PageStanding {
        url: String = "",
        change: Standing = "",
        change_digest: Digest = "",
    }
}

record! {
    /// A page as deltas compare it.
    pub struct PageVersion {
        url: String = "",
        title: Option<String> = "",
        text_digest: Digest = "",
        text_bytes: i64 = "",
        text_snapshot: SnapshotId = "",
        content_digest: Digest = "",
        content_snapshot: SnapshotId = "",
        change_digest: Digest = "",
        change: Standing = "",
        structure_digest: Option<Digest> = "",
    }
}

record! {
    /// Whether the elements of a page are other ones than those of its old page.
    pub struct PageStructure {
        url: String = "",
        structure_changed: Option<bool> = "",
    }
}

record! {
    /// A page as deltas compare it, with what it was compared with.
    pub struct PageVersionPair {
        ..version: PageVersion,
        returned: bool = "",
        moved_from: Option<String> = "",
        old_snapshot: Option<SnapshotId> = "",
    }
}

record! {
    /// A page that went, and where it was last.
    pub struct GonePage {
        url: String = "",
        old_snapshot: Option<SnapshotId> = "",
    }
}

record! {
    /// Whether a page was there before, but not in the snapshot before.
    pub struct PageReturned {
        url: String = "",
        returned: bool = "",
    }
}

record! {
    /// Where a page's links lie.
    pub struct LinkPointer {
        url: String = "",
        content_snapshot: SnapshotId = "",
    }
}

record! {
    /// What became of a URL.
    pub struct CaptureOutcome {
        url: String = "",
        status: Option<i64> = "",
    }
}

record! {
    /// A page as queries see it.
    pub struct PageNode {
        url: String = "",
        host: String = "",
        title: Option<String> = "",
        content_type: Option<String> = "",
        last_modified: Option<Timestamp> = "",
        text_bytes: i64 = "",
        content_snapshot: SnapshotId = "",
        change_digest: Digest = "",
    }
}

view! {
    /// A link, as queries follow it.
    pub struct LinkView<'a> {
        url: &'a str,
        target: &'a str,
        label: &'a str,
        kind: LinkKind,
    }
}

view! {
    /// Where links lead to.
    pub struct TargetView<'a> {
        url: &'a str,
        target: &'a str,
    }
}

/// Rows of `pages`, or of what is read of it.
macro_rules! of_url {
    ($($row:ty: $($url:ident).+;)*) => {$(
        impl OfUrl for $row {
            fn url(&self) -> &str {
                &self.$($url).+
            }
        }
    )*};
}

of_url! {
    Page: url;
    PageFacts: url;
    PagePointer: url;
    ElementsPointer: url;
    PagePair: url;
    PageTitle: url;
    TitledText: url;
    PageVersion: url;
    PageNode: url;
    LinkPointer: url;
    PollFacts: url;
}
