//! Mentions that came and went since the snapshot before.

use std::sync::Arc;

use super::known::{Good, UrlExtractions};
use super::live::{Live, LiveExtractor};
use super::sources::{OldMentions, Shape, Wanted};
use crate::deltas::multiset;
use crate::extract::{Adopt, Status};
use crate::model::maps::HashSet;
use crate::model::{Digest, MentionChange, SnapshotId};
use crate::tables::extract::{Extraction, MentionDelta};
use crate::tables::mentions::{MentionRow, PieceRow, ShortMention};

/// What mentions are found in: a text, and what is shown along with it; and by which definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) text: Digest,
    pub(super) shown: Option<Digest>,
    pub(super) fingerprint: Digest,
}

/// The changes of one shard.
pub(super) struct Changes<'a> {
    live: &'a Live,
    /// By extractor, whether pages may have mentions that were found as in the snapshot before. Else nothing can be
    /// compared.
    compares: &'a [bool],
    rows: Vec<MentionDelta>,
    /// Extractors and URLs that were not compared, because another definition had found the old mentions.
    crossed: HashSet<(Arc<str>, Arc<str>)>,
}

impl<'a> Changes<'a> {
    pub(super) fn new(live: &'a Live, compares: &'a [bool]) -> Self {
        Self { live, compares, rows: Vec::new(), crossed: HashSet::default() }
    }

    /// What the mentions of a URL are compared with: `None` if they are not, because another definition found the old ones
    /// or nothing changed that they are found in.
    fn compared<'k>(&self, i: usize, known: Option<&'k UrlExtractions>, now: Option<Version>) -> Option<Compared<'k>> {
        if !self.compares[i] {
            return None;
        }
        let Some(known) = known.filter(|known| known.alive) else { return Some(Compared::default()) };
        let key = self.live.all[i].key;
        let good = known.good(key);
        let live = &self.live.all[i];
        let fingerprint = match (now, good) {
            (Some(now), _) => now.fingerprint,
            // A page that went had what was left to it, whoever found that.
            (None, Some(good)) if live.adopt == Adopt::NewText => good.fingerprint,
            (None, _) => live.fingerprint,
        };
        let partial = known.partial(key, fingerprint);
        let version = |good: &Good| Version { text: good.text_digest, shown: good.shown_digest, fingerprint };
        match good {
            Some(good) if good.fingerprint != fingerprint => None,
            Some(good) if now == Some(version(good)) && partial.is_empty() => None,
            good => Some(Compared { good, partial }),
        }
    }

    /// Whether the mentions of a URL are compared; `now` is what they are found in.
    pub(super) fn compares(&self, i: usize, known: Option<&UrlExtractions>, now: Version) -> bool {
        self.compared(i, known, Some(now)).is_some()
    }

    /// The mentions that comparing a URL needs; `now` is what its mentions are found in, if it has a page.
    pub(super) fn wanted<'w>(
        &self,
        i: usize,
        url: &'w str,
        known: Option<&'w UrlExtractions>,
        now: Option<Version>,
    ) -> Vec<Wanted<'w>> {
        let Some(compared) = self.compared(i, known, now) else { return Vec::new() };
        let short = compared.partial.is_empty() && self.live.all[i].short_columns().is_some();
        let shape = if short { Shape::Short } else { Shape::Rows };
        let wanted = |(snapshot, mentions)| Wanted { extractor: i, url, snapshot, mentions, shape };
        compared.places().into_iter().map(wanted).collect()
    }

    /// Compares the mentions of a page by extractor `i` with those of its last good extraction, and with what was told
    /// since. A page that could not be extracted now has no changes; of one that lacks units only additions are told.
    pub(super) fn page(
        &mut self,
        i: usize,
        extraction: &Extraction,
        new: &[MentionRow],
        known: Option<&UrlExtractions>,
        mentions: &OldMentions,
    ) {
        let fingerprint = extraction.fingerprint;
        let now = Version { text: extraction.text_digest, shown: extraction.shown_digest, fingerprint };
        let Some(compared) = self.compared(i, known, Some(now)) else {
            let good = known.and_then(|known| known.good(self.live.all[i].key));
            if good.is_some_and(|good| good.fingerprint != fingerprint) {
                self.crossed.insert((Arc::clone(&extraction.extractor), Arc::clone(&extraction.url)));
            }
            return;
        };
        let old = compared.mentions(i, &extraction.url, mentions);
        let live = &self.live.all[i];
        let (added, deleted) = old.difference(live, new);
        match extraction.status {
            Status::Failed | Status::Timeout => {}
            Status::Ok | Status::Deferred => {
                self.rows.extend(added.into_iter().map(|k| delta(live, &new[k], MentionChange::Added)));
            }
        }
        if extraction.status == Status::Ok {
            self.rows.extend(deleted.into_iter().map(|k| old.deletion(live, &extraction.url, k)));
        }
    }

    /// The mentions of a page that is no longer there.
    pub(super) fn deletion(&mut self, url: &str, known: &UrlExtractions, mentions: &OldMentions) {
        for (i, live) in self.live.all.iter().enumerate() {
            let Some(compared) = self.compared(i, Some(known), None) else { continue };
            let old = compared.mentions(i, url, mentions);
            let url: Arc<str> = url.into();
            self.rows.extend((0..old.len()).map(|k| old.deletion(live, &url, k)));
        }
    }

    /// Keeps what an earlier run told by definitions that are not those of now: a change of definition is no change of a
    /// page, and takes nothing back. `rows`: all that it told.
    pub(super) fn keep(&mut self, rows: Vec<MentionDelta>) {
        let compares = |(_, compares): &(&LiveExtractor, &bool)| **compares;
        let compared: HashSet<&str> =
            self.live.all.iter().zip(self.compares).filter(compares).map(|(live, _)| &*live.name).collect();
        let crossed = |row: &MentionDelta| self.crossed.contains(&(Arc::clone(&row.extractor), Arc::clone(&row.url)));
        let kept = rows.into_iter().filter(|row| !compared.contains(&*row.extractor) || crossed(row));
        let kept: Vec<MentionDelta> = kept.collect();
        self.rows.extend(kept);
    }

    /// All changes, in the order of the table.
    pub(super) fn finish(mut self) -> Vec<MentionDelta> {
        sort(&mut self.rows);
        self.rows
    }
}

/// Puts changes in the order of the table.
pub(super) fn sort(rows: &mut [MentionDelta]) {
    fn key(row: &MentionDelta) -> (&str, &str, MentionChange, i64, i64) {
        (&row.url, &row.extractor, row.change, row.start, row.end)
    }
    rows.sort_by(|a, b| key(a).cmp(&key(b)));
}

/// What the mentions of a page are compared with.
#[derive(Clone, Copy, Default)]
struct Compared<'k> {
    good: Option<&'k Good>,
    /// Extractions since then that lack units: what they added was told.
    partial: &'k [SnapshotId],
}

impl<'k> Compared<'k> {
    /// Where these mentions lie, and how many there are, where that is known.
    fn places(self) -> Vec<(&'k SnapshotId, Option<i64>)> {
        let good = self.good.and_then(|good| Some((good.mentions_snapshot.as_ref()?, Some(good.mentions))));
        good.into_iter().chain(self.partial.iter().map(|snapshot| (snapshot, None))).collect()
    }

    /// All mentions that were told of and not taken back.
    fn mentions<'m>(self, extractor: usize, url: &str, mentions: &'m OldMentions) -> Told<'m> {
        let good = self.good.and_then(|good| good.mentions_snapshot.as_ref());
        if let Some(short) = mentions.short(extractor, url, good) {
            return Told::Short(short.collect());
        }
        let mut all: Vec<&MentionRow> = mentions.of(extractor, url, good).iter().collect();
        for snapshot in self.partial {
            let more = mentions.of(extractor, url, Some(snapshot));
            let (added, _) = multiset::difference(all.iter().map(|row| meaning(row)), more.iter().map(meaning));
            all.extend(added.into_iter().map(|k| &more[k]));
        }
        Told::Rows(all)
    }
}

/// Mentions that were told of, as they were read.
enum Told<'m> {
    Rows(Vec<&'m MentionRow>),
    Short(Vec<ShortMention<'m>>),
}

impl Told<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::Short(short) => short.len(),
        }
    }

    /// Which mentions of the page came, and which of these went.
    fn difference(&self, live: &LiveExtractor, new: &[MentionRow]) -> (Vec<usize>, Vec<usize>) {
        match self {
            Self::Rows(rows) => multiset::difference(rows.iter().map(|row| meaning(row)), new.iter().map(meaning)),
            Self::Short(short) => {
                let old = short.iter().map(|one| (one.text, one.label));
                multiset::difference(old, new.iter().map(live.short_meaning()))
            }
        }
    }

    /// That one of them is gone.
    fn deletion(&self, live: &LiveExtractor, url: &Arc<str>, k: usize) -> MentionDelta {
        match self {
            Self::Rows(rows) => delta(live, rows[k], MentionChange::Deleted),
            Self::Short(short) => {
                let ShortMention { text, start, .. } = short[k];
                let end = short[k].end();
                let (url, extractor, text) = (Arc::clone(url), Arc::clone(&live.name), text.to_owned());
                MentionDelta { url, extractor, change: MentionChange::Deleted, text, start, end, attributes: None }
            }
        }
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

fn delta(live: &LiveExtractor, row: &MentionRow, change: MentionChange) -> MentionDelta {
    MentionDelta {
        url: Arc::clone(&row.url),
        extractor: Arc::clone(&live.name),
        change,
        text: row.text.clone(),
        start: row.start,
        end: row.end,
        attributes: row.attributes_json(&live.schema),
    }
}
