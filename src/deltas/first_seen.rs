//! When a text was first seen on a URL, so that text coming back is not news.
//!
//! The unit is a piece: a line or a sentence ([`super::pieces`]). By definition a piece was first seen in the first
//! snapshot in which it stood on the URL. Pieces that left a page are remembered up to [`GONE`] a URL, those that left
//! last.
//!
//! What is kept of a URL is little: a piece that is on the page and has no entry has been there since the URL was first
//! seen ([`FirstSeen::origin`]). Entries are only pieces that came later, and pieces that left. A page that never
//! changed has none, and a night costs the hashing of changed texts alone. Which pieces are on the page is not kept, so
//! that each change has to be told with the text before and the text after it.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use memchr::memmem;

use super::pieces::{Differing, cut_after, cut_before, meaning, pieces};
use crate::model::{Digest, Span};

/// Pieces remembered of a URL after they left it.
pub(crate) const GONE: usize = 4096;

/// When the pieces of a URL's texts were first seen. `S` stands for a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirstSeen<S> {
    /// Snapshot in which the URL was first seen.
    pub origin: S,
    /// Pieces that left, in the order of leaving; then pieces on the page that are not from the first snapshot.
    pub entries: Vec<(Digest, S)>,
}

/// A part of a page and the snapshot in which its pieces were first seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sighting<S> {
    pub span: Span,
    pub first_seen: S,
}

/// What of the pieces of a text is compared.
fn meanings(text: &str) -> Vec<&str> {
    pieces(text).into_iter().map(|piece| meaning(text, piece)).collect()
}

/// Of so many pieces each is looked for where two texts are the same.
const FEW: usize = 16;

/// The pieces of what two texts share.
struct Shared<'t> {
    texts: [&'t str; 2],
    set: OnceCell<HashSet<&'t str>>,
}

impl<'t> Shared<'t> {
    fn new(texts: [&'t str; 2]) -> Self {
        Self { texts, set: OnceCell::new() }
    }

    /// Whether a piece is one of them. Few are looked for by their letters first: most stand nowhere else.
    fn has(&self, piece: &str, few: bool) -> bool {
        let stands = |text: &&str| memmem::find(text.as_bytes(), piece.as_bytes()).is_some();
        if few && !self.texts.iter().any(stands) {
            return false;
        }
        self.set.get_or_init(|| self.texts.iter().flat_map(|text| meanings(text)).collect()).contains(piece)
    }
}

/// The pieces of a text, hashed.
struct Hashed {
    digests: Vec<Digest>,
    set: HashSet<Digest>,
}

impl Hashed {
    fn new(text: &str) -> Self {
        let digests: Vec<Digest> = meanings(text).iter().map(|piece| Digest::of(piece.as_bytes())).collect();
        let set = digests.iter().copied().collect();
        Self { digests, set }
    }

    /// Each piece once, in page order.
    fn distinct(&self) -> impl Iterator<Item = Digest> + '_ {
        let mut once = HashSet::new();
        self.digests.iter().copied().filter(move |digest| once.insert(*digest))
    }
}

impl<S: Clone + PartialEq> FirstSeen<S> {
    #[must_use]
    pub(crate) fn new(origin: S) -> Self {
        Self { origin, entries: Vec::new() }
    }

    /// Takes in that the page's text went from `old` to `new` in snapshot `now`; an absent page has an empty text.
    pub(crate) fn observe(&mut self, old: &str, new: &str, now: &S) {
        self.observe_at_most(old, new, now, GONE);
    }

    fn observe_at_most(&mut self, old: &str, new: &str, now: &S, gone_most: usize) {
        self.entries = if self.entries.is_empty() {
            self.first_entries(old, new, now, gone_most)
        } else {
            self.next_entries(old, new, now, gone_most)
        };
    }

    fn next_entries(&self, old: &str, new: &str, now: &S, gone_most: usize) -> Vec<(Digest, S)> {
        let (old, new) = (Hashed::new(old), Hashed::new(new));
        let known: HashMap<Digest, S> = self.entries.iter().cloned().collect();
        let mut gone: Vec<(Digest, S)> = Vec::new();
        for (piece, since) in &self.entries {
            if !old.set.contains(piece) && !new.set.contains(piece) {
                gone.push((*piece, since.clone()));
            }
        }
        for piece in old.distinct().filter(|piece| !new.set.contains(piece)) {
            gone.push((piece, known.get(&piece).unwrap_or(&self.origin).clone()));
        }
        gone.drain(..gone.len().saturating_sub(gone_most));
        let mut entries = gone;
        for piece in new.distinct() {
            let since = match known.get(&piece) {
                Some(since) => since,
                None if old.set.contains(&piece) => continue,
                None => now,
            };
            if *since != self.origin {
                entries.push((piece, since.clone()));
            }
        }
        entries
    }

    /// The same where nothing is remembered: then only pieces count that one text has and the other has not. Where the texts
    /// are the same there are none, and no others need be hashed.
    fn first_entries(&self, old: &str, new: &str, now: &S, gone_most: usize) -> Vec<(Digest, S)> {
        let Differing { old, new, shared } = Differing::of(old, new);
        let (old, new, shared) = (meanings(old), meanings(new), Shared::new(shared));
        let missing_in = |these: &[&str], others: &[&str]| {
            let few = these.len() <= FEW;
            let mut seen: HashSet<&str> = others.iter().copied().collect();
            let fresh = these.iter().filter(|piece| seen.insert(**piece) && !shared.has(piece, few));
            fresh.map(|piece| Digest::of(piece.as_bytes())).collect::<Vec<_>>()
        };
        let gone = missing_in(&old, &new);
        let forgotten = gone.len().saturating_sub(gone_most);
        let mut entries: Vec<(Digest, S)> =
            gone.into_iter().skip(forgotten).map(|piece| (piece, self.origin.clone())).collect();
        if *now != self.origin {
            entries.extend(missing_in(&new, &old).into_iter().map(|piece| (piece, now.clone())));
        }
        entries
    }

    /// When parts of the page's present text were first seen. The parts are `spans`, which ascend and do not overlap,
    /// cut where the answer changes.
    #[must_use]
    pub(crate) fn sightings(&self, text: &str, spans: &[Span]) -> Vec<Sighting<S>> {
        if spans.is_empty() {
            return Vec::new();
        }
        let known: HashMap<Digest, &S> = self.entries.iter().map(|(piece, since)| (*piece, since)).collect();
        let mut found: Vec<Sighting<S>> = Vec::new();
        let mut near = Near { text, range: 0..0, pieces: Vec::new() };
        for span in spans {
            let pieces = near.around(*span);
            let first = pieces.partition_point(|piece| piece.end <= span.start);
            let begun = found.len();
            for piece in pieces[first..].iter().take_while(|piece| piece.start < span.end) {
                let part = Span::new(piece.start.max(span.start), piece.end.min(span.end));
                let digest = Digest::of(meaning(text, *piece).as_bytes());
                let since = known.get(&digest).copied().unwrap_or(&self.origin);
                match found[begun..].last_mut() {
                    Some(last) if last.first_seen == *since => last.span.end = part.end,
                    _ => found.push(Sighting { span: part, first_seen: since.clone() }),
                }
            }
        }
        found
    }
}

/// The pieces of a text around a part of it.
struct Near<'t> {
    text: &'t str,
    range: Range<usize>,
    pieces: Vec<Span>,
}

impl Near<'_> {
    /// All pieces that meet a span, and perhaps others. Spans ascend.
    fn around(&mut self, span: Span) -> &[Span] {
        let Range { start, end } = span.range();
        if start < self.range.start || end > self.range.end {
            self.range = cut_before(self.text, start)..cut_after(self.text, end);
            let offset = u32::try_from(self.range.start).expect("texts have fewer than 2^32 bytes");
            let here = pieces(&self.text[self.range.clone()]).into_iter();
            self.pieces = here.map(|piece| Span::new(piece.start + offset, piece.end + offset)).collect();
        }
        &self.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: the first of all texts so far that has the piece.
    fn slow(texts: &[String], piece: &str) -> usize {
        let has = |text: &String| pieces(text).iter().any(|span| meaning(text, *span) == piece);
        texts.iter().position(has).expect("it is in the last one")
    }

    fn whole(text: &str) -> Vec<Span> {
        if text.is_empty() { vec![] } else { vec![Span::new(0, u32::try_from(text.len()).unwrap())] }
    }

    #[test]
    fn text_that_comes_back_is_not_new() {
        let mut first_seen = FirstSeen::new(1);
        first_seen.observe("", "A. B.\nC", &1);
        assert_eq!(first_seen.entries, []);
        first_seen.observe("A. B.\nC", "A. D.\nC", &2);
        first_seen.observe("A. D.\nC", "", &3);
        let back = "A. B. D. E.\nC";
        first_seen.observe("", back, &4);
        let seen: Vec<_> = first_seen
            .sightings(back, &whole(back))
            .into_iter()
            .map(|s| (&back[s.span.range()], s.first_seen))
            .collect();
        assert_eq!(seen, [("A. B. ", 1), ("D. ", 2), ("E.\n", 4), ("C", 1)]);
        // Parts of pieces are as old as the pieces.
        let parts = first_seen.sightings(back, &[Span::new(1, 4), Span::new(7, 10)]);
        let parts: Vec<_> = parts.into_iter().map(|s| (s.span.start, s.span.end, s.first_seen)).collect();
        assert_eq!(parts, [(1, 4, 1), (7, 9, 2), (9, 10, 4)]);
    }

    #[test]
    fn a_page_that_does_not_change_has_no_entries() {
        let mut first_seen = FirstSeen::new(1);
        first_seen.observe("", "A. B.", &1);
        first_seen.observe("A. B.", "", &2);
        assert_eq!(first_seen.entries.len(), 2);
        first_seen.observe("", "A. B.", &3);
        assert_eq!(first_seen.entries, []);
    }

    #[test]
    fn only_so_many_are_remembered() {
        let mut first_seen = FirstSeen::new(1);
        first_seen.observe_at_most("", "A. B. C.", &1, 2);
        first_seen.observe_at_most("A. B. C.", "D.", &2, 2);
        first_seen.observe_at_most("D.", "A. C. D.", &3, 2);
        let text = "A. C. D.";
        let seen: Vec<_> = first_seen.sightings(text, &whole(text)).into_iter().map(|s| s.first_seen).collect();
        assert_eq!(seen, [3, 1, 2]);
    }

    proptest! {
        #[test]
        fn parts_are_as_old_as_in_the_whole_text(text in "([a-c]\\. |[a-d]\n|\n| |é\n){1,14}", cuts in prop::collection::vec(0usize..40, 2..7)) {
            let entries = pieces(&text).iter().step_by(2).map(|piece| (Digest::of(meaning(&text, *piece).as_bytes()), 1)).collect();
            let first_seen = FirstSeen { origin: 0, entries };
            let mut cuts: Vec<u32> = cuts.into_iter().filter(|at| text.is_char_boundary(*at)).map(|at| u32::try_from(at).unwrap()).collect();
            cuts.sort_unstable();
            cuts.dedup();
            let spans: Vec<Span> = cuts.windows(2).step_by(2).map(|two| Span::new(two[0], two[1])).collect();
            let mut expected = Vec::new();
            for span in &spans {
                for seen in first_seen.sightings(&text, &whole(&text)) {
                    let (start, end) = (seen.span.start.max(span.start), seen.span.end.min(span.end));
                    if start < end {
                        expected.push((start, end, seen.first_seen));
                    }
                }
            }
            let found: Vec<_> = first_seen.sightings(&text, &spans).iter().map(|s| (s.span.start, s.span.end, s.first_seen)).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn pieces_that_both_texts_have_need_not_be_hashed(old in "([a-f]\\. |[a-d]\n){0,8}", new in "([a-f]\\. |[a-d]\n){0,8}",
                                                          now in 0..2, most in 0usize..9) {
            let fresh = FirstSeen::new(0);
            prop_assert_eq!(fresh.first_entries(&old, &new, &now, most), fresh.next_entries(&old, &new, &now, most));
        }

        #[test]
        fn as_a_search_through_all_earlier_texts(nights in prop::collection::vec("([a-f]\\. |[a-d]\n){0,6}", 1..9)) {
            let mut first_seen = FirstSeen::new(0);
            let mut before = String::new();
            for (night, text) in nights.iter().enumerate() {
                first_seen.observe(&before, text, &night);
                before.clone_from(text);
                for seen in first_seen.sightings(text, &whole(text)) {
                    let part = &text[seen.span.range()];
                    for piece in pieces(part) {
                        prop_assert_eq!(slow(&nights[..=night], meaning(part, piece)), seen.first_seen);
                    }
                }
            }
        }
    }
}
