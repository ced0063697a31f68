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
use std::ops::Range;

use memchr::memmem;

use super::pieces::{Differing, cut_after, cut_before, meaning, pieces};
use crate::model::maps::{HashMap, HashSet};
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
fn meanings(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().map(|piece| meaning(text, piece))
}

/// Of so many pieces each is looked for where two texts are the same.
const FEW: usize = 16;

/// The pieces of what two texts share: most texts differ in a few places, and most pieces of these stand nowhere else. So
/// the others are neither cut nor hashed before somebody has to know them.
struct Shared<'t> {
    texts: [&'t str; 2],
    set: OnceCell<HashSet<&'t str>>,
    digests: OnceCell<HashSet<Digest>>,
}

impl<'t> Shared<'t> {
    fn new(texts: [&'t str; 2]) -> Self {
        Self { texts, set: OnceCell::new(), digests: OnceCell::new() }
    }

    fn meanings(&self) -> impl Iterator<Item = &'t str> {
        self.texts.into_iter().flat_map(meanings)
    }

    /// Whether a piece is one of them. Few are looked for by their letters first.
    fn has(&self, piece: &str, few: bool) -> bool {
        let stands = |text: &&str| memmem::find(text.as_bytes(), piece.as_bytes()).is_some();
        if few && !self.texts.iter().any(stands) {
            return false;
        }
        self.set.get_or_init(|| self.meanings().collect()).contains(piece)
    }

    /// The same of a piece of which only the digest is known.
    fn has_digest(&self, piece: Digest) -> bool {
        let digests = || self.meanings().map(|piece| Digest::of(piece.as_bytes())).collect();
        self.digests.get_or_init(digests).contains(&piece)
    }
}

/// The pieces of a text, each once, in page order.
struct Hashed<'t> {
    pieces: Vec<(&'t str, Digest)>,
    set: HashSet<Digest>,
    few: bool,
}

impl<'t> Hashed<'t> {
    fn new(text: &'t str) -> Self {
        let mut set = HashSet::default();
        let hashed = meanings(text).map(|piece| (piece, Digest::of(piece.as_bytes())));
        let pieces: Vec<_> = hashed.filter(|(_, digest)| set.insert(*digest)).collect();
        let few = pieces.len() <= FEW;
        Self { pieces, set, few }
    }

    /// Those that are neither among others nor in what both texts share.
    fn without<'h>(&'h self, others: &'h Self, shared: &'h Shared<'t>) -> impl Iterator<Item = Digest> + 'h {
        let only_here =
            |(piece, digest): &&(&str, Digest)| !others.set.contains(digest) && !shared.has(piece, self.few);
        self.pieces.iter().filter(only_here).map(|(_, digest)| *digest)
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

    /// Pieces of what the texts share stay as they are, so that only the others need be looked at, and entries that are
    /// not among these.
    fn observe_at_most(&mut self, old: &str, new: &str, now: &S, gone_most: usize) {
        let Differing { old, new, shared } = Differing::of(old, new);
        let (old, new, shared) = (Hashed::new(old), Hashed::new(new), Shared::new(shared));
        let known: HashMap<Digest, S> = self.entries.iter().cloned().collect();
        let (mut gone, mut stays) = (Vec::new(), Vec::new());
        let left: HashSet<Digest> = old.without(&new, &shared).collect();
        for (piece, since) in self.entries.drain(..) {
            if new.set.contains(&piece) || left.contains(&piece) {
                continue;
            }
            // A piece of the first snapshot has an entry only after it left.
            let is_there = old.set.contains(&piece) || since != self.origin && shared.has_digest(piece);
            if is_there { &mut stays } else { &mut gone }.push((piece, since));
        }
        let of_old = old.pieces.iter().map(|(_, digest)| *digest).filter(|digest| left.contains(digest));
        gone.extend(of_old.map(|piece| (piece, known.get(&piece).unwrap_or(&self.origin).clone())));
        gone.drain(..gone.len().saturating_sub(gone_most));
        self.entries = gone;
        self.entries.append(&mut stays);
        let fresh: HashSet<Digest> = new.without(&old, &shared).collect();
        for (_, piece) in &new.pieces {
            let since = match known.get(piece) {
                Some(since) => since,
                None if fresh.contains(piece) => now,
                None => continue,
            };
            if *since != self.origin {
                self.entries.push((*piece, since.clone()));
            }
        }
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

    /// Takes in a text with all pieces of both texts hashed. Gives how many entries are of pieces that left.
    fn observe_whole(seen: &mut FirstSeen<usize>, old: &str, new: &str, now: usize, gone_most: usize) -> usize {
        let digests = |text| meanings(text).map(|piece| Digest::of(piece.as_bytes())).collect::<Vec<_>>();
        let (old, new) = (digests(old), digests(new));
        let known: HashMap<Digest, usize> = seen.entries.iter().copied().collect();
        let mut gone = seen.entries.clone();
        gone.retain(|(piece, _)| !old.contains(piece) && !new.contains(piece));
        for piece in old.iter().filter(|piece| !new.contains(piece)) {
            if !gone.iter().any(|(told, _)| told == piece) {
                gone.push((*piece, known.get(piece).copied().unwrap_or(seen.origin)));
            }
        }
        gone.drain(..gone.len().saturating_sub(gone_most));
        let left = gone.len();
        let mut entries = gone;
        for piece in &new {
            let since = known.get(piece).copied().or((!old.contains(piece)).then_some(now)).unwrap_or(seen.origin);
            if since != seen.origin && !entries[left..].iter().any(|(told, _)| told == piece) {
                entries.push((*piece, since));
            }
        }
        seen.entries = entries;
        left
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
        fn only_what_differs_need_be_hashed(nights in prop::collection::vec("([a-f]\\. |[a-d]\n){0,8}", 1..9), most in 0usize..9) {
            let (mut fast, mut whole) = (FirstSeen::new(0), FirstSeen::new(0));
            let mut before = String::new();
            for (night, text) in nights.iter().enumerate() {
                fast.observe_at_most(&before, text, &night, most);
                let gone = observe_whole(&mut whole, &before, text, night, most);
                // What left is in order; the order of what is on the page says nothing.
                prop_assert_eq!(&fast.entries[..gone], &whole.entries[..gone]);
                let sorted = |seen: &FirstSeen<usize>| {
                    let mut there = seen.entries[gone..].to_vec();
                    there.sort_unstable();
                    there
                };
                prop_assert_eq!(sorted(&fast), sorted(&whole));
                before.clone_from(text);
            }
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
