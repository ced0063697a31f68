//! What was found: mentions by extractor, and which came and went.

use serde::Serialize;

use super::nothing;
use super::table::{Cell, Table};
use crate::report::triage::shortened;

#[derive(Default, Serialize)]
pub(crate) struct Found {
    pub extractors: Vec<ExtractorLine>,
    /// Texts that came or went, those on most pages first.
    pub texts: Vec<MentionLine>,
    pub texts_in_all: usize,
}

#[derive(Serialize)]
pub(crate) struct ExtractorLine {
    pub name: String,
    /// On all pages of the newest snapshot.
    pub mentions: u64,
    pub added: u64,
    pub deleted: u64,
    pub failed: u64,
    pub deferred: u64,
}

#[derive(Serialize)]
pub(crate) struct MentionLine {
    pub extractor: String,
    pub text: String,
    /// Mentions that came and that went.
    pub added: u64,
    pub deleted: u64,
    /// The first page by URL where it came; where it only went, where it went.
    pub url: String,
}

impl Found {
    pub(super) fn render(&self, out: &mut String) {
        if self.extractors.is_empty() {
            return nothing(out, "The pipeline declares no extractor.");
        }
        let row = |line: &ExtractorLine| {
            let mut cells = vec![Cell::text(&line.name)];
            cells.extend([line.mentions, line.added, line.deleted, line.failed, line.deferred].map(Cell::count));
            cells
        };
        let head = ["extractor", "mentions", "came", "went", "pages failed", "pages deferred"];
        let rows = self.extractors.iter().map(row).collect();
        Table { id: "extractors", caption: "Mentions by extractor", head: &head, rows, of: 0, cards: false }
            .render(out);
        if self.texts.is_empty() {
            return nothing(out, "No mention came or went.");
        }
        let row = |line: &MentionLine| {
            let what = match (line.added, line.deleted) {
                (_, 0) => "+ newly mentioned",
                (0, _) => "− vanished",
                _ => "± came and went",
            };
            vec![
                Cell::Text(shortened(&line.text, 200)),
                Cell::text(&line.extractor),
                Cell::text(what),
                Cell::count(line.added),
                Cell::count(line.deleted),
                Cell::name(&line.url),
            ]
        };
        let head = ["mention", "extractor", "what", "came", "went", "where"];
        let rows = self.texts.iter().map(row).collect();
        Table {
            id: "mentions",
            caption: "Mentions that came and went",
            head: &head,
            rows,
            of: self.texts_in_all,
            cards: true,
        }
        .render(out);
    }
}
