//! A page against its old version: what is kept, moved, new and deleted.

mod links;
mod marked;
mod side_by_side;

use std::fmt::Write as _;

use serde_json::{Value, json};

pub(crate) use self::links::LinksBetween;
pub(crate) use self::marked::Marks;
use self::side_by_side::{Mark, Side};
use super::terminal::one_line;
use crate::deltas::segments::{Comparison, Segment, SegmentKind};
use crate::model::{Deletion, SnapshotId, Span, Timestamp};
use crate::tables::ingest::Page;

/// A page, compared with its old version.
#[derive(Debug)]
pub(crate) struct Versions {
    /// `None` if there is no earlier version, or if it was pruned.
    pub old: Option<Version>,
    pub new: Version,
    /// Without an old version all is new.
    pub comparison: Comparison,
    /// What became of its links; nothing without an old version.
    pub links: LinksBetween,
    /// Set if the page is no longer there: then `new` is its last version.
    pub gone: Option<Gone>,
    /// Extractors that have what an earlier definition of them found on it, and what that was called, if anything.
    pub older: Vec<(String, Option<String>)>,
}

/// How a page went.
#[derive(Debug)]
pub(crate) struct Gone {
    /// The first snapshot without it.
    pub snapshot: SnapshotId,
    pub reason: Option<Deletion>,
    pub moved_to: Option<String>,
}

/// One version of a page.
#[derive(Debug)]
pub(crate) struct Version {
    pub snapshot: SnapshotId,
    pub page: Page,
    pub text: String,
    /// The mentions found on it, each with its extractor; empty unless they were asked for.
    pub mentions: Vec<(String, Span)>,
}

impl Versions {
    fn against(&self) -> Option<&SnapshotId> {
        self.old.as_ref().map(|old| &old.snapshot)
    }

    /// The old text, empty without one.
    fn old_text(&self) -> &str {
        self.old.as_ref().map_or("", |old| &old.text)
    }

    /// All pieces of both texts.
    #[must_use]
    pub(crate) fn json(&self) -> Value {
        let (page, new_text, old_text) = (&self.new.page, &self.new.text, self.old_text());
        let segment = |s: &Segment| {
            let old_start = (s.kind != SegmentKind::New).then_some(s.old_start);
            json!({"kind": s.kind.as_str(), "start": s.span.start, "end": s.span.end, "old_start": old_start,
                   "text": &new_text[s.span.range()]})
        };
        let deleted = |span: &Span| json!({"start": span.start, "end": span.end, "text": &old_text[span.range()]});
        let mut versions = json!({
            "url": page.url, "snapshot": self.new.snapshot, "against": self.against(), "title": page.title,
            "change": page.change, "moved_from": page.moved_from,
            "gone": self.gone.as_ref().map(|gone| json!({
                "snapshot": gone.snapshot, "reason": gone.reason, "moved_to": gone.moved_to,
            })),
            "segments": self.comparison.segments.iter().map(segment).collect::<Vec<_>>(),
            "deleted": self.comparison.deleted.iter().map(deleted).collect::<Vec<_>>(),
        });
        if !self.older.is_empty() {
            let older = |(extractor, by): &(String, Option<String>)| json!({"extractor": extractor, "definition": by});
            versions["older"] = self.older.iter().map(older).collect();
        }
        versions
    }

    /// For a terminal. Long kept text is shortened unless the `whole` page is asked for.
    #[must_use]
    pub(crate) fn text(&self, marks: Marks, whole: bool) -> String {
        let page = &self.new.page;
        let mut text = format!("{}\n", one_line(&page.url));
        if let Some(title) = &page.title {
            let _ = writeln!(text, "title     {}", one_line(title));
        }
        if let Some(Gone { snapshot, reason, moved_to }) = &self.gone {
            let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
            let moved = moved_to.as_ref().map_or_else(String::new, |to| format!(", moved to {}", one_line(to)));
            let _ = writeln!(text, "deleted   {snapshot}{reason}{moved}; this is its last version");
        }
        let _ = writeln!(text, "snapshot  {}: {}", self.new.snapshot, page.change);
        if let Some(from) = &page.moved_from {
            let _ = writeln!(text, "moved     from {from}");
        }
        match self.against() {
            Some(against) => {
                let Bytes { kept, moved, new, deleted } = Bytes::of(&self.comparison);
                let _ = writeln!(
                    text,
                    "against   {against}: {kept} bytes kept, {moved} moved, {new} new, {deleted} deleted"
                );
            }
            None if page.old_snapshot.is_some() => text.push_str("against   nothing: its old version was pruned\n"),
            None => text.push_str("against   nothing: there is no earlier version\n"),
        }
        self.beside_text(&mut text);
        for (extractor, by) in &self.older {
            let by = by.as_ref().map_or_else(String::new, |by| format!(", {}", one_line(by)));
            let _ = writeln!(text, "mentions  {extractor}: found by an earlier definition{by}");
        }
        text.push('\n');
        text.push_str(&marked::render(self.old_text(), &self.new.text, &self.comparison, marks, whole));
        text
    }

    /// What changed beside the text: it may be all that did.
    fn beside_text(&self, text: &mut String) {
        let Some(old) = &self.old else { return };
        if old.page.title != self.new.page.title {
            let was = old.page.title.as_ref().map_or_else(|| "none".to_owned(), |title| one_line(title));
            let _ = writeln!(text, "old title {was}");
        }
        if let Some(links) = self.links.in_words() {
            let _ = writeln!(text, "links     {links}");
            self.links.list(text);
        }
    }

    /// One HTML file with both versions side by side, which needs nothing else. Long kept text is folded unless the
    /// `whole` page is asked for. `report`: where the report is, as seen from the file.
    #[must_use]
    pub(crate) fn html(&self, whole: bool, report: Option<&str>) -> String {
        let old = self.old.as_ref().map(side);
        let mut new = side(&self.new);
        new.facts.extend(self.links.in_words().map(|links| ("links", links)));
        side_by_side::render(old.as_ref(), &new, &self.comparison, whole, report)
    }

    /// Says where the HTML file is.
    #[must_use]
    pub(crate) fn html_json(&self, file: &std::path::Path) -> Value {
        json!({"url": self.new.page.url, "snapshot": self.new.snapshot, "against": self.against(), "html": file})
    }
}

/// What became of a piece of text between two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    Kept,
    Moved,
    New,
    Deleted,
}

impl From<SegmentKind> for PieceKind {
    fn from(kind: SegmentKind) -> Self {
        match kind {
            SegmentKind::Kept => Self::Kept,
            SegmentKind::Moved => Self::Moved,
            SegmentKind::New => Self::New,
        }
    }
}

/// How many bytes are of which kind.
struct Bytes {
    kept: u64,
    moved: u64,
    new: u64,
    deleted: u64,
}

impl Bytes {
    fn of(comparison: &Comparison) -> Self {
        let [kept, moved, new] =
            [SegmentKind::Kept, SegmentKind::Moved, SegmentKind::New].map(|kind| comparison.bytes(kind));
        let deleted = comparison.deleted.iter().map(|span| u64::from(span.len())).sum();
        Self { kept, moved, new, deleted }
    }
}

/// A version as the HTML file shows it.
fn side(version: &Version) -> Side<'_> {
    let page = &version.page;
    let time = |time: Option<Timestamp>| time.map_or_else(|| "unknown".to_owned(), |time| time.to_string());
    Side {
        url: &page.url,
        snapshot: version.snapshot.as_str(),
        title: page.title.as_deref(),
        text: &version.text,
        facts: vec![
            ("fetched", time(page.fetched_at)),
            ("last modified", time(page.last_modified)),
            ("type", page.content_type.clone().unwrap_or_else(|| "unknown".to_owned())),
            ("text digest", page.text_digest.to_string()),
            ("content digest", page.content_digest.to_string()),
        ],
        mentions: version.mentions.iter().map(|(extractor, span)| Mark { extractor, span: *span }).collect(),
    }
}
