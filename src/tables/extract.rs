//! Tables that `extract` writes, but for mentions: those have a schema of their own for each extractor
//! (`tables::mentions`).

use std::sync::Arc;

use crate::extract::Status;
use crate::model::{Digest, MentionChange, SnapshotId};
use crate::plan::Served;
use crate::tables::record::{Table, record};

record! {
    /// What became of a page under an extractor.
    pub struct Extraction {
        url: Arc<str> = "page",
        extractor: Arc<str> = "extractor",
        status: Status = "ok, deferred, failed or timeout; a page that is not ok is never a source of mentions",
        error: Option<String> = "why it is not ok; the next run tries pages of the newest snapshot again",
        matcher: Served = "what its old regions were found by; equal: the text is the old one; units: equal lines, blocks or paragraphs were copied; none: from scratch",
        text_digest: Digest = "digest of the text that the mentions belong to",
        shown_digest: Option<Digest> = "digest of the title and URL that were shown along with the text; NULL: none were",
        fingerprint: Digest = "digest of the definition that found the mentions, with engines and text conversion; adopt = 'new-text' leaves earlier ones",
        bytes_extracted: i64 = "bytes of the page that the extractor was given; what several pages share counts for the first of them",
        mentions: i64 = "number of mentions; 0: none was found",
        copied: i64 = "how many of them were copied from the old page, or come from an answer that was there already",
        units_deferred: i64 = "units that were not asked about, because a budget was used up; the next run goes on with them",
        refused: i64 = "what answers told of that does not stand in the text; it was dropped",
        mentions_snapshot: Option<SnapshotId> = "snapshot whose partition of mentions/<extractor> has the rows; NULL: there are none",
        good_snapshot: Option<SnapshotId> = "newest snapshot in which this page was extracted well; NULL: none",
        whole: bool = "the extractor has a row for every page of the snapshot; else only for those of URLs that the snapshot touched",
    }
}

impl Table for Extraction {
    const NAME: &'static str = "extractions";
    const ABOUT: &'static str = "one row per page and extractor, so that none found and failed differ";
}

record! {
    /// How an extraction ended.
    pub struct ExtractionOutcome {
        extractor: Arc<str> = "",
        status: Status = "",
        error: Option<String> = "",
    }
}

record! {
    /// A request about a unit, and what came of it.
    pub struct AnswerRow {
        request: Digest = "digest of all that was sent",
        url: Arc<str> = "page that it was asked for first",
        unit_digest: Digest = "digest of the unit's text",
        unit_bytes: i64 = "length of the unit's text",
        answer: String = "as it was given; of a failure, why",
        input_tokens: Option<i64> = "tokens of the request, over all attempts; NULL: not counted",
        output_tokens: Option<i64> = "tokens of the answer, over all attempts; NULL: not counted",
        price: Option<f64> = "of all attempts; NULL: it has none",
        attempts: i64 = "how often it was sent",
        seconds: f64 = "from the first attempt to the answer",
        status: Status = "ok, or failed: there is no answer",
    }
}

/// The folder of the tables of answers.
pub(crate) const ANSWERS: &str = "answers";

/// Where the answers of an extractor lie, as a table's name.
#[must_use]
pub(crate) fn answers_of(extractor: &str) -> String {
    format!("{ANSWERS}/{extractor}")
}

record! {
    /// The newest good extraction of a page that is away, or failed since.
    pub struct AwayRow {
        url: String = "page",
        extractor: i64 = "the first 8 bytes of BLAKE3 of the extractor's name, as a number",
        alive: bool = "the page is there, but its extraction failed",
        good_snapshot: SnapshotId = "snapshot in which it was extracted well",
        mentions_snapshot: Option<SnapshotId> = "snapshot whose partition of mentions has the rows; NULL: there are none",
        mentions: i64 = "number of mentions",
        text_digest: Digest = "digest of the text that they belong to",
        shown_digest: Option<Digest> = "digest of the title and URL that were shown along with it; NULL: none were",
        fingerprint: Digest = "digest of the extractor's definition",
        deferred_snapshots: Option<String> = "snapshots since then, joined by commas, in which it lacked units; NULL: none",
    }
}

impl Table for AwayRow {
    const NAME: &'static str = "states/extractions";
    const ABOUT: &'static str =
        "written with every base: good extractions of pages that are away, or whose extraction failed since";
}

record! {
    /// A mention that came or went.
    pub struct MentionDelta {
        url: Arc<str> = "page",
        extractor: Arc<str> = "extractor",
        change: MentionChange = "added or deleted, against the snapshot before; compared by text and attributes, not by position",
        text: String = "text of the mention",
        start: i64 = "first byte in the new page's text, or in the old one's if deleted",
        end: i64 = "byte after the last",
        attributes: Option<String> = "its attributes as a JSON object, the text of each by its name, of a list an array of texts; NULL: it has none",
    }
}

impl Table for MentionDelta {
    const NAME: &'static str = "mention_deltas";
    const ABOUT: &'static str = "mentions added and deleted between this snapshot and the one before";
}

record! {
    /// Whether a mention came or went, and where.
    pub struct MentionChangedOn {
        url: String = "",
        extractor: String = "",
        change: MentionChange = "",
    }
}

record! {
    /// Whether a mention came or went.
    pub struct MentionChanged {
        change: MentionChange = "",
    }
}
