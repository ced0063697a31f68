//! A comparison by words: what a reader takes for one change is one.
//!
//! Regions are found by bytes, so that of `€24.00` and `€27.00` all but one digit is old. Here every old piece is cut back to
//! whole words, and between two kept pieces the words are compared once more, so that short stretches that stayed are
//! kept too. A word is what stands between white space; ideographs and kana are words of their own.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

use super::segments::{Comparison, Segment, SegmentKind, gaps};
use crate::model::{Region, Span};

/// Old words times new words that are compared; larger gaps stay as they are.
const MOST_PAIRS: usize = 1 << 20;
/// A stretch of fewer equal words stands there by chance.
const LEAST_WORDS: usize = 2;

impl Comparison {
    /// The same comparison of these texts, by words.
    #[must_use]
    pub(crate) fn by_words(&self, old: &str, new: &str) -> Self {
        let is_old = |segment: &&Segment| segment.kind != SegmentKind::New;
        let mut pieces: Vec<Segment> =
            self.segments.iter().filter(is_old).filter_map(|segment| whole_words(*segment, old, new)).collect();
        let moved = pieces.iter().filter(|piece| piece.kind == SegmentKind::Moved);
        let moved: Vec<usize> = moved.map(|piece| piece.span.start as usize).collect();
        let mut found = Vec::new();
        let mut at = (0, 0);
        let kept = pieces.iter().filter(|piece| piece.kind == SegmentKind::Kept);
        let places = kept.map(|piece| (old_range(piece), piece.span.range()));
        for (old_piece, new_piece) in places.chain([(old.len()..old.len(), new.len()..new.len())]) {
            let gap = (at.0..old_piece.start, at.1..new_piece.start);
            at = (old_piece.end, new_piece.end);
            let first = moved.partition_point(|start| *start < gap.1.start);
            let has_moved = moved.get(first).is_some_and(|start| *start < gap.1.end);
            if !has_moved && gap.0.start < gap.0.end && gap.1.start < gap.1.end {
                same_words(old, gap.0, new, gap.1, &mut found);
            }
        }
        pieces.extend(found);
        pieces.sort_by_key(|piece| piece.span);
        assembled(old.len(), new.len(), &pieces)
    }
}

fn old_range(piece: &Segment) -> Range<usize> {
    let start = piece.old_start as usize;
    start..start + piece.span.len() as usize
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("texts have fewer than 2^32 bytes")
}

/// Whether a word begins or ends here.
fn is_border(text: &str, at: usize) -> bool {
    let (before, after) = text.split_at(at);
    match (before.chars().next_back(), after.chars().next()) {
        (Some(before), Some(after)) => is_between(before, after),
        _ => true,
    }
}

fn is_between(before: char, after: char) -> bool {
    before.is_whitespace() || after.is_whitespace() || is_word(before) || is_word(after)
}

/// Whether a character is a word of its own: scripts that are written without spaces.
fn is_word(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// What of an old piece are whole words on both sides.
fn whole_words(piece: Segment, old: &str, new: &str) -> Option<Segment> {
    let (span, stood) = (piece.span.range(), old_range(&piece));
    let text = &new[span.clone()];
    let both = |at: usize| is_border(new, span.start + at) && is_border(old, stood.start + at);
    // Inside of the piece both texts have the same borders.
    let start = if both(0) { 0 } else { first_border(text).unwrap_or(text.len()) };
    let end = if both(text.len()) { text.len() } else { last_border(text).unwrap_or(0) };
    (start < end).then(|| Segment {
        span: Span::new(offset(span.start + start), offset(span.start + end)),
        kind: piece.kind,
        old_start: offset(stood.start + start),
    })
}

fn first_border(text: &str) -> Option<usize> {
    let places = text.char_indices().zip(text.chars().skip(1));
    places.filter(|((_, before), after)| is_between(*before, *after)).map(|((at, c), _)| at + c.len_utf8()).next()
}

fn last_border(text: &str) -> Option<usize> {
    let mut after = None;
    for (at, c) in text.char_indices().rev() {
        if after.is_some_and(|after| is_between(c, after)) {
            return Some(at + c.len_utf8());
        }
        after = Some(c);
    }
    None
}

/// The words of a stretch of text.
pub(crate) fn words(text: &str, within: Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut at = within.start;
    // What comes before in the same word, if anything does.
    let mut last: Option<char> = None;
    while at < within.end {
        let byte = bytes[at];
        // Visible ASCII has no border within: such a run is crossed at once.
        let (first, end) = if byte.is_ascii() {
            let run = bytes[at..within.end].iter().position(|byte| !byte.is_ascii_graphic()).unwrap_or(within.end - at);
            (char::from(byte), at + run.max(1))
        } else {
            let c = text[at..].chars().next().expect("not at the end");
            (c, at + c.len_utf8())
        };
        if first.is_whitespace() {
            last = None;
        } else {
            match words.last_mut() {
                Some(word) if last.is_some_and(|last| !is_between(last, first)) => word.end = end,
                _ => words.push(at..end),
            }
            last = Some(if byte.is_ascii() { char::from(bytes[end - 1]) } else { first });
        }
        at = end;
    }
    words
}

/// Adds the stretches of equal words between two kept pieces.
fn same_words(old: &str, old_gap: Range<usize>, new: &str, new_gap: Range<usize>, found: &mut Vec<Segment>) {
    let before = words(old, old_gap.clone());
    let most = MOST_PAIRS.checked_div(before.len()).unwrap_or(usize::MAX);
    let after = words(new, new_gap.clone());
    if after.len() > most {
        return;
    }
    let mut input = InternedInput::default();
    input.update_before(before.iter().map(|word| &old[word.clone()]));
    input.update_after(after.iter().map(|word| &new[word.clone()]));
    let diff = Diff::compute(Algorithm::Myers, &input);
    let old_same = (0..before.len()).filter(|i| !diff.is_removed(offset(*i)));
    let new_same = (0..after.len()).filter(|i| !diff.is_added(offset(*i)));
    let pairs: Vec<(usize, usize)> = old_same.zip(new_same).collect();
    let goes_on = |a: &(usize, usize), b: &(usize, usize)| {
        let between = |text: &str, words: &[Range<usize>], i: usize| text[words[i].end..words[i + 1].start].to_owned();
        b.0 == a.0 + 1 && b.1 == a.1 + 1 && between(old, &before, a.0) == between(new, &after, a.1)
    };
    for run in pairs.chunk_by(goes_on).filter(|run| run.len() >= LEAST_WORDS) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let (mut start, mut stood) = (after[first.1].start, before[first.0].start);
        let (mut end, mut stood_to) = (after[last.1].end, before[last.0].end);
        let blank = |c: char| c.is_whitespace();
        // White space around them stayed as well.
        while let (Some(a), Some(b)) =
            (new[new_gap.start..start].chars().next_back(), old[old_gap.start..stood].chars().next_back())
            && a == b
            && blank(a)
        {
            (start, stood) = (start - a.len_utf8(), stood - a.len_utf8());
        }
        while let (Some(a), Some(b)) = (new[end..new_gap.end].chars().next(), old[stood_to..old_gap.end].chars().next())
            && a == b
            && blank(a)
        {
            (end, stood_to) = (end + a.len_utf8(), stood_to + a.len_utf8());
        }
        let span = Span::new(offset(start), offset(end));
        // White space between two runs belongs to the first.
        let taken = found.last().filter(|last: &&Segment| last.span.end > span.start || old_range(last).end > stood);
        let skip = taken.map_or(0, |last| {
            (last.span.end.saturating_sub(span.start)).max(offset(old_range(last).end.saturating_sub(stood)))
        });
        if skip < span.len() {
            let span = Span::new(span.start + skip, span.end);
            found.push(Segment { span, kind: SegmentKind::Kept, old_start: offset(stood) + skip });
        }
    }
}

/// All pieces in the order of the new page, with what is new between them.
pub(super) fn assembled(old_len: usize, new_len: usize, pieces: &[Segment]) -> Comparison {
    let mut segments: Vec<Segment> = Vec::with_capacity(2 * pieces.len() + 1);
    let mut at = 0;
    let new = |start, end| Segment { span: Span::new(start, end), kind: SegmentKind::New, old_start: 0 };
    for piece in pieces {
        if at < piece.span.start {
            segments.push(new(at, piece.span.start));
        }
        at = piece.span.end;
        match segments.last_mut() {
            Some(last)
                if last.kind == piece.kind
                    && last.span.end == piece.span.start
                    && last.old_start + last.span.len() == piece.old_start =>
            {
                last.span.end = piece.span.end;
            }
            _ => segments.push(*piece),
        }
    }
    if at < offset(new_len) {
        segments.push(new(at, offset(new_len)));
    }
    let regions: Vec<Region> = pieces
        .iter()
        .map(|piece| Region { start: piece.span.start, end: piece.span.end, old_start: piece.old_start })
        .collect();
    Comparison { segments, deleted: gaps(offset(old_len), &regions) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The comparison by common prefix and suffix, then by words: `[kept] +new+ -deleted-`.
    fn shown(old: &str, new: &str) -> (Comparison, String) {
        let both = |a: char, b: char| a == b;
        let prefix: usize =
            old.chars().zip(new.chars()).take_while(|(a, b)| both(*a, *b)).map(|(a, _)| a.len_utf8()).sum();
        let rest = (&old[prefix..], &new[prefix..]);
        let backwards = rest.0.chars().rev().zip(rest.1.chars().rev());
        let suffix: usize = backwards.take_while(|(a, b)| both(*a, *b)).map(|(a, _)| a.len_utf8()).sum();
        let mut regions = vec![Region { start: 0, end: offset(prefix), old_start: 0 }];
        let (start, old_start) = (offset(new.len() - suffix), offset(old.len() - suffix));
        regions.push(Region { start, end: offset(new.len()), old_start });
        regions.retain(|region| region.start < region.end);
        let by_bytes = Comparison::new(offset(old.len()), offset(new.len()), &regions);
        let by_words = by_bytes.by_words(old, new);
        let mut text = String::new();
        for segment in &by_words.segments {
            let piece = &new[segment.span.range()];
            text += &if segment.kind == SegmentKind::New { format!("+{piece}+") } else { piece.to_owned() };
        }
        (by_words, text)
    }

    #[test]
    fn a_digit_makes_the_word_new() {
        let (comparison, text) = shown("It costs €27.00 now", "It costs €24.00 now");
        assert_eq!(text, "It costs +€24.00+ now");
        assert_eq!(comparison.deleted, [Span::new(9, 17)]);
        assert_eq!(shown("価格は七円", "価格は八円").1, "価格は+八+円", "an ideograph is a word");
    }

    #[test]
    fn words_that_stayed_between_two_changes_are_kept() {
        assert_eq!(
            shown("The talk at 5 pm in room 3 is full", "The talk at 6 pm in room 4 is full").1,
            "The talk at +6+ pm in room +4+ is full"
        );
        assert_eq!(shown("a of b", "c of d").1, "+c of d+", "one word between two others is chance");
        assert_eq!(shown("", "new").1, "+new+");
        assert_eq!(shown("gone", "").1, "");
    }

    #[test]
    fn text_is_cut_into_words() {
        let text = " a,b  €2\n漢字x";
        let cut: Vec<&str> = words(text, 0..text.len()).into_iter().map(|word| &text[word]).collect();
        assert_eq!(cut, ["a,b", "€2", "漢", "字", "x"]);
    }

    /// The same, character by character.
    fn slow_words(text: &str, within: Range<usize>) -> Vec<Range<usize>> {
        let mut words: Vec<Range<usize>> = Vec::new();
        let mut last: Option<char> = None;
        for (at, c) in text[within.clone()].char_indices() {
            let place = within.start + at..within.start + at + c.len_utf8();
            match words.last_mut() {
                _ if c.is_whitespace() => {}
                Some(word) if last.is_some_and(|last| !is_between(last, c)) => word.end = place.end,
                _ => words.push(place),
            }
            last = Some(c);
        }
        words
    }

    proptest! {
        #[test]
        fn runs_of_ascii_may_be_crossed_at_once(text in "[a-c \n\t\u{b}\u{1}\u{1f}\u{7f}\u{85}\u{a0}é漢か]{0,40}", cuts in (0usize..60, 0usize..60)) {
            let cut = |at: usize| text.floor_char_boundary(at.min(text.len()));
            let (start, end) = (cut(cuts.0.min(cuts.1)), cut(cuts.0.max(cuts.1)));
            prop_assert_eq!(words(&text, start..end), slow_words(&text, start..end));
        }

        /// Nothing is lost, what is kept stands in both texts, and no word is cut.
        #[test]
        fn pieces_are_whole_words_of_both_texts(old in "[ab \n漢]{0,40}", new in "[ab \n漢]{0,40}") {
            let (comparison, _) = shown(&old, &new);
            let mut at = 0;
            for segment in &comparison.segments {
                prop_assert_eq!(segment.span.start, at);
                at = segment.span.end;
                if segment.kind != SegmentKind::New {
                    let stood = old_range(segment);
                    prop_assert_eq!(&new[segment.span.range()], &old[stood.clone()]);
                    for border in [stood.start, stood.end] {
                        prop_assert!(is_border(&old, border));
                    }
                    for border in [segment.span.range().start, segment.span.range().end] {
                        prop_assert!(is_border(&new, border));
                    }
                }
            }
            prop_assert_eq!(at, offset(new.len()));
            let covered: u32 = comparison.deleted.iter().map(|span| span.len()).sum::<u32>()
                + comparison.segments.iter().filter(|s| s.kind != SegmentKind::New).map(|s| s.span.len()).sum::<u32>();
            prop_assert_eq!(covered, offset(old.len()));
        }
    }
}
