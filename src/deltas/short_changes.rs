//! Changes that say something: one of one or two bytes takes a neighbouring word along.
//!
//! `room 4` that became `room 5` is one byte that came and one that went, and whoever reads a table of such parts learns
//! nothing. Pieces that stayed give back the word beside it, on both sides, until every change has three bytes.

use super::segments::{Comparison, Segment, SegmentKind};
use super::words::assembled;
use crate::model::Span;

/// A longer run without white space is no word: of it only a character is taken.
const WORD: usize = 64;
/// A change of fewer bytes takes a neighbouring word along.
const CHANGE: u32 = 3;

impl Comparison {
    /// The same comparison of the same texts, without changes of one or two bytes unless a text is that short.
    #[must_use]
    pub(crate) fn without_short_changes(&self, old: &str, new: &str) -> Self {
        let pieces = self.segments.iter().copied().filter(|segment| segment.kind != SegmentKind::New).collect();
        let mut widening = Widening { old, new, pieces };
        while widening.widen() {}
        widening.comparison()
    }
}

struct Widening<'a> {
    old: &'a str,
    new: &'a str,
    /// What stayed or moved, in the order of the new text. None is empty.
    pieces: Vec<Segment>,
}

fn len(text: &str) -> u32 {
    u32::try_from(text.len()).expect("texts have fewer than 2^32 bytes")
}

/// Where a piece stood in the old text.
fn old_span(piece: &Segment) -> Span {
    Span::new(piece.old_start, piece.old_start + piece.span.len())
}

/// A piece without some bytes at its start and its end; `None` if nothing is left.
fn trimmed(piece: &Segment, front: u32, back: u32) -> Option<Segment> {
    (front + back < piece.span.len()).then(|| Segment {
        span: Span::new(piece.span.start + front, piece.span.end - back),
        old_start: piece.old_start + front,
        kind: piece.kind,
    })
}

impl Widening<'_> {
    fn text(&self, piece: &Segment) -> &str {
        &self.new[piece.span.range()]
    }

    fn comparison(&self) -> Comparison {
        assembled(self.old.len(), self.new.len(), &self.pieces)
    }

    /// Widens every change that is too short by a word of a piece beside it. Says whether there was one.
    fn widen(&mut self) -> bool {
        let too_short = |span: &Span| span.len() < CHANGE;
        let now = self.comparison();
        let new = now.segments.iter().filter(|segment| segment.kind == SegmentKind::New).map(|segment| segment.span);
        let mut changes: Vec<Span> = new.filter(too_short).collect();
        if !changes.is_empty() {
            return self.take_beside(&changes, |piece| piece.span);
        }
        changes = now.deleted.into_iter().filter(too_short).collect();
        self.take_beside(&changes, old_span)
    }

    /// Takes a word off a piece before each change, or after it where there is none. Says whether there was any.
    fn take_beside(&mut self, changes: &[Span], place: fn(&Segment) -> Span) -> bool {
        let mut order: Vec<usize> = (0..self.pieces.len()).collect();
        order.sort_by_key(|&piece| place(&self.pieces[piece]));
        let mut trims: Vec<(u32, u32)> = vec![(0, 0); self.pieces.len()];
        let mut any = false;
        for change in changes {
            let next = order.partition_point(|&piece| place(&self.pieces[piece]).start < change.start);
            let before = next.checked_sub(1).map(|at| order[at]);
            let after = order.get(next).copied();
            if let Some(before) = before.filter(|&piece| place(&self.pieces[piece]).end == change.start) {
                let text = self.text(&self.pieces[before]);
                let rest = text.trim_end();
                trims[before].1 = len(text) - len(rest) + last_word(rest);
            } else if let Some(after) = after.filter(|&piece| place(&self.pieces[piece]).start == change.end) {
                let text = self.text(&self.pieces[after]);
                let rest = text.trim_start();
                trims[after].0 = len(text) - len(rest) + first_word(rest);
            } else {
                continue;
            }
            any = true;
        }
        let pieces = self.pieces.iter().zip(trims);
        self.pieces = pieces.filter_map(|(piece, (front, back))| trimmed(piece, front, back)).collect();
        any
    }
}

/// Bytes of the word that a text begins with; of a longer run than a word, of its first character.
fn first_word(text: &str) -> u32 {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    len(&text[..if end <= WORD { end } else { text.chars().next().map_or(0, char::len_utf8) }])
}

/// Bytes of the word that a text ends with; of a longer run than a word, of its last character.
fn last_word(text: &str) -> u32 {
    let start =
        text.rfind(char::is_whitespace).map_or(0, |at| at + text[at..].chars().next().map_or(0, char::len_utf8));
    let word = text.len() - start;
    let bytes = if word <= WORD { word } else { text.chars().next_back().map_or(0, char::len_utf8) };
    len(&text[text.len() - bytes..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matching::{MatcherKind, Scratch};

    /// Kept text as it is, `{+new+}`, `{~moved~}`, then `[-deleted-]`.
    fn shown(old: &str, new: &str, comparison: &Comparison) -> String {
        let mut text = String::new();
        for segment in &comparison.segments {
            let part = &new[segment.span.range()];
            match segment.kind {
                SegmentKind::New => text += &format!("{{+{part}+}}"),
                SegmentKind::Moved => text += &format!("{{~{part}~}}"),
                SegmentKind::Kept => text += part,
            }
        }
        comparison.deleted.iter().for_each(|span| text += &format!("[-{}-]", &old[span.range()]));
        text
    }

    fn compared(old: &str, new: &str, least: u32) -> Comparison {
        let mut regions = Vec::new();
        MatcherKind::Anchor.regions(old, new, least, &mut Scratch::new(), &mut regions);
        Comparison::new(len(old), len(new), &regions).without_short_moves(least)
    }

    fn told_of(raw: &Comparison, old: &str, new: &str) -> Comparison {
        raw.by_words(old, new).without_short_changes(old, new)
    }

    fn told(old: &str, new: &str) -> String {
        shown(old, new, &told_of(&compared(old, new, 8), old, new))
    }

    #[test]
    fn words_are_told_whole() {
        for (old, new, expected) in [
            (
                "The concert costs €27.00 at the door.",
                "The concert costs €24.00 at the door.",
                "The concert costs {+€24.00+} at the door.[-€27.00-]",
            ),
            ("It is a small cart of wood.", "It is a small cat of wood.", "It is a small {+cat+} of wood.[-cart-]"),
            ("Meet in the big hall today.", "Meet in the hall today.", "Meet in the hall today.[-big -]"),
            // One byte alone says little.
            (
                "Lectures in room 4 on Monday.",
                "Lectures in room 5 on Monday.",
                "Lectures in {+room 5+} on Monday.[-room 4-]",
            ),
            ("Total of all prices: 4", "Total of all prices: 5", "Total of all {+prices: 5+}[-prices: 4-]"),
            ("4", "5", "{+5+}[-4-]"),
            ("same text as ever", "same text as ever", "same text as ever"),
            ("", "all is new", "{+all is new+}"),
        ] {
            assert_eq!(told(old, new), expected);
        }
    }

    #[test]
    fn what_is_no_word_is_not_told_whole() {
        let long = "字".repeat(60);
        let (old, new) = (format!("{long}一{long}"), format!("{long}二{long}"));
        let told = told_of(&compared(&old, &new, 8), &old, &new);
        assert!(told.bytes(SegmentKind::New) < 16, "{}", shown(&old, &new, &told));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Both texts are still told in full, pieces are equal, and changes have at least three bytes.
        #[test]
        fn changes_are_whole(old in "([a-c]{1,5}[ \n]|é[ab]? ){0,30}", edits in prop::collection::vec((0usize..200, "[ax \né]{0,3}"), 0..5)) {
            let mut new = old.clone();
            for (at, with) in edits {
                let mut at = at.min(new.len());
                while !new.is_char_boundary(at) { at -= 1; }
                let mut end = (at + 2).min(new.len());
                while !new.is_char_boundary(end) { end += 1; }
                new.replace_range(at..end, &with);
            }
            let raw = compared(&old, &new, 8);
            let told = told_of(&raw, &old, &new);
            let mut at = 0;
            for segment in &told.segments {
                prop_assert_eq!(segment.span.start, at);
                at = segment.span.end;
                let part = &new[segment.span.range()];
                match segment.kind {
                    SegmentKind::New => prop_assert!(part.len() >= 3 || new.len() < 3 || told.segments.len() == 1, "{}", shown(&old, &new, &told)),
                    _ => prop_assert_eq!(part, &old[old_span(segment).range()]),
                }
            }
            prop_assert_eq!(at, len(&new));
            for span in &told.deleted {
                prop_assert!(span.len() >= 3 || old.len() < 3 || told.deleted.len() == 1, "{}", shown(&old, &new, &told));
                prop_assert!(!old[span.range()].is_empty());
            }
            let changes = |comparison: &Comparison| {
                comparison.segments.iter().any(|s| s.kind == SegmentKind::New) || !comparison.deleted.is_empty()
            };
            prop_assert!(old == new || !changes(&raw) || changes(&told));
        }
    }
}
