//! Mentions that came and went since the snapshot before.

use std::sync::Arc;

use super::live::Live;
use super::sources::OldMentions;
use crate::deltas::multiset;
use crate::extract::Status;
use crate::model::MentionChange;
use crate::tables::extract::{Extraction, MentionDelta, MentionRow, PieceRow};
use crate::tables::ingest::PagePair;

/// The changes of one shard.
pub(super) struct Changes<'a> {
    live: &'a Live,
    before: Option<Before<'a>>,
    rows: Vec<MentionDelta>,
}

/// The snapshot before.
pub(super) struct Before<'a> {
    pub(super) mentions: Arc<OldMentions>,
    /// By extractor, whether it ran there as it is now. Else nothing can be compared.
    pub(super) same: &'a [bool],
}

impl<'a> Changes<'a> {
    pub(super) fn new(live: &'a Live, before: Option<Before<'a>>) -> Self {
        Self { live, before, rows: Vec::new() }
    }

    /// Compares the mentions of a page by extractor `i`. A page that could not be extracted, now or before, has no
    /// changes.
    pub(super) fn page(&mut self, i: usize, extraction: &Extraction, new: &[MentionRow]) {
        let Some(before) = &self.before else { return };
        if !before.same[i] || extraction.status != Status::Ok {
            return;
        }
        let old: &[MentionRow] = match before.mentions.pages[i].get(&extraction.url) {
            None => &[],
            Some(page) if page.extraction.status != Status::Ok => return,
            Some(page) if page.extraction.text_digest == extraction.text_digest => return,
            Some(page) => &page.rows,
        };
        let (added, deleted) = multiset::difference(old.iter().map(meaning), new.iter().map(meaning));
        let name = &self.live.all[i].name;
        self.rows.extend(added.into_iter().map(|k| delta(name, &new[k], MentionChange::Added)));
        self.rows.extend(deleted.into_iter().map(|k| delta(name, &old[k], MentionChange::Deleted)));
    }

    /// The mentions of pages that are no longer there. `pages` are those that are, in URL order.
    pub(super) fn deletions(&mut self, pages: &[PagePair]) {
        let Some(before) = &self.before else { return };
        for (i, old) in before.mentions.pages.iter().enumerate().filter(|(i, _)| before.same[*i]) {
            for (url, page) in old {
                let there = pages.binary_search_by(|page| (*page.url).cmp(url)).is_ok();
                if !there && page.extraction.status == Status::Ok {
                    let name = &self.live.all[i].name;
                    self.rows.extend(page.rows.iter().map(|row| delta(name, row, MentionChange::Deleted)));
                }
            }
        }
    }

    /// All changes, in the order of the table.
    pub(super) fn finish(mut self) -> Vec<MentionDelta> {
        fn key(row: &MentionDelta) -> (&str, &str, MentionChange, i64, i64) {
            (&row.url, &row.extractor, row.change, row.start, row.end)
        }
        self.rows.sort_by(|a, b| key(a).cmp(&key(b)));
        self.rows
    }
}

type Meaning<'a> = (&'a str, Option<&'a str>, Vec<Option<Vec<&'a str>>>);

/// What makes two mentions the same wherever they stand: their text and the texts of their attributes.
fn meaning(row: &MentionRow) -> Meaning<'_> {
    let attributes = row.attributes.iter().map(|value| value.as_deref().map(texts)).collect();
    (&row.text, row.label.as_deref(), attributes)
}

fn texts(pieces: &[PieceRow]) -> Vec<&str> {
    pieces.iter().map(|piece| piece.text.as_str()).collect()
}

fn delta(extractor: &Arc<str>, row: &MentionRow, change: MentionChange) -> MentionDelta {
    MentionDelta {
        url: Arc::clone(&row.url),
        extractor: Arc::clone(extractor),
        change,
        text: row.text.clone(),
        start: row.start,
        end: row.end,
    }
}
