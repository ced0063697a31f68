//! Mentions that came and went since the snapshot before.

use std::collections::HashSet;
use std::sync::Arc;

use super::known::{Good, UrlExtractions, extractor_key};
use super::live::Live;
use super::sources::{OldMentions, Wanted};
use crate::deltas::multiset;
use crate::extract::Status;
use crate::model::{Digest, MentionChange};
use crate::tables::extract::{Extraction, MentionDelta, MentionRow, PieceRow};

/// What mentions are found in: a text, and what is shown along with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) text: Digest,
    pub(super) shown: Option<Digest>,
}

/// The changes of one shard.
pub(super) struct Changes<'a> {
    live: &'a Live,
    /// By extractor, whether it ran in the snapshot before as it is now. Else nothing can be compared.
    same: &'a [bool],
    rows: Vec<MentionDelta>,
}

impl<'a> Changes<'a> {
    pub(super) fn new(live: &'a Live, same: &'a [bool]) -> Self {
        Self { live, same, rows: Vec::new() }
    }

    /// The last good extraction that mentions of a URL are compared with, if there is anything to compare.
    fn compared<'k>(&self, i: usize, known: Option<&'k UrlExtractions>, now: Option<Version>) -> Compared<'k> {
        if !self.same[i] {
            return Compared::Not;
        }
        let Some(known) = known.filter(|known| known.alive) else { return Compared::WithNothing };
        match known.good(extractor_key(&self.live.all[i].name)) {
            None => Compared::WithNothing,
            Some(good) if good.fingerprint != self.live.all[i].fingerprint => Compared::Not,
            Some(good) if now == Some(Version { text: good.text_digest, shown: good.shown_digest }) => Compared::Not,
            Some(good) => Compared::With(good),
        }
    }

    /// The mentions that comparing a URL needs; `now` is what its mentions are found in, if it has a page.
    pub(super) fn wanted<'w>(
        &self,
        i: usize,
        url: &'w str,
        known: Option<&'w UrlExtractions>,
        now: Option<Version>,
    ) -> Option<Wanted<'w>> {
        let Compared::With(good) = self.compared(i, known, now) else { return None };
        let snapshot = good.mentions_snapshot.as_ref()?;
        Some(Wanted { extractor: i, url, snapshot, mentions: good.mentions })
    }

    /// Compares the mentions of a page by extractor `i` with those of its last good extraction. A page that could not be
    /// extracted now has no changes.
    pub(super) fn page(
        &mut self,
        i: usize,
        extraction: &Extraction,
        new: &[MentionRow],
        known: Option<&UrlExtractions>,
        mentions: &OldMentions,
    ) {
        if extraction.status != Status::Ok {
            return;
        }
        let now = Version { text: extraction.text_digest, shown: extraction.shown_digest };
        let old = match self.compared(i, known, Some(now)) {
            Compared::Not => return,
            Compared::WithNothing => &[],
            Compared::With(good) => mentions.of(i, &extraction.url, good.mentions_snapshot.as_ref()),
        };
        let (added, deleted) = multiset::difference(old.iter().map(meaning), new.iter().map(meaning));
        let name = &self.live.all[i].name;
        self.rows.extend(added.into_iter().map(|k| delta(name, &new[k], MentionChange::Added)));
        self.rows.extend(deleted.into_iter().map(|k| delta(name, &old[k], MentionChange::Deleted)));
    }

    /// The mentions of a page that is no longer there.
    pub(super) fn deletion(&mut self, url: &str, known: &UrlExtractions, mentions: &OldMentions) {
        for (i, live) in self.live.all.iter().enumerate() {
            let Compared::With(good) = self.compared(i, Some(known), None) else { continue };
            let old = mentions.of(i, url, good.mentions_snapshot.as_ref());
            self.rows.extend(old.iter().map(|row| delta(&live.name, row, MentionChange::Deleted)));
        }
    }

    /// Keeps what an earlier run told by definitions that are not those of now: a change of definition is no change of a
    /// page, and takes nothing back. `rows`: all that it told.
    pub(super) fn keep(&mut self, rows: Vec<MentionDelta>) {
        let compared: HashSet<&str> =
            self.live.all.iter().zip(self.same).filter(|(_, same)| **same).map(|(live, _)| &*live.name).collect();
        self.rows.extend(rows.into_iter().filter(|row| !compared.contains(&*row.extractor)));
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

/// What the mentions of a page are compared with.
enum Compared<'k> {
    /// They are not: another definition found the old ones, or the text is the same.
    Not,
    WithNothing,
    With(&'k Good),
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
