//! A text cut into pieces that can be recognised when they come back: lines and sentences.
//!
//! Every cut is decided by the text next to it, so that a change at one place leaves the pieces elsewhere as they are.
//! A piece ends with its line, after a full stop, question or exclamation mark that is followed by white space, and
//! after their ideographic twins. What is longer than [`LONG`] bytes then (a table in one line, minified JSON) is cut
//! again at separators chosen by a hash of the bytes before them. Linear.

use crate::model::Span;

/// Longer pieces are cut again.
pub(crate) const LONG: usize = 400;
/// Bytes before a separator that decide whether it is a cut.
const WINDOW: usize = 16;
/// One separator in so many is a cut.
const EVERY: u64 = 8;

/// Spans that together are the whole text, in order, none empty. White space belongs to the piece before it.
#[must_use]
pub(crate) fn pieces(text: &str) -> Vec<Span> {
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    let (mut start, mut at) = (0, 0);
    // The last character that is no white space, and whether white space or a line end came since.
    let (mut last, mut blank, mut line_end) = (None, false, false);
    while let Some(&byte) = bytes.get(at) {
        // Words of ASCII are crossed at once: within one there is no cut.
        let (c, length) = if byte.is_ascii() {
            (char::from(byte), if is_ascii_visible(byte) { word_length(&bytes[at..]) } else { 1 })
        } else {
            let c = text[at..].chars().next().expect("not at the end");
            (c, c.len_utf8())
        };
        if c.is_whitespace() {
            blank = true;
            line_end |= matches!(c, '\n' | '\r');
            at += length;
            continue;
        }
        let stop = match last {
            None => false,
            Some(_) if line_end => true,
            Some('.' | '!' | '?') => blank,
            Some('。' | '！' | '？') => true,
            Some(_) => false,
        };
        if stop {
            add(text, start, at, &mut spans);
            start = at;
        }
        at += length;
        let end = if byte.is_ascii() { char::from(bytes[at - 1]) } else { c };
        (last, blank, line_end) = (Some(end), false, false);
    }
    add(text, start, text.len(), &mut spans);
    spans
}

/// The last place at or before `at` where surely one piece ends and another begins: where visible ASCII begins a line and is
/// not the first that is visible. 0 if there is none. Pieces of a text are those of its parts before and behind such a place.
#[must_use]
pub(crate) fn cut_before(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut feeds = memchr::memrchr_iter(b'\n', &bytes[..at]);
    match feeds.find(|feed| begins_line(bytes, *feed)) {
        Some(feed) if has_visible(&bytes[..feed]) => feed + 1,
        _ => 0,
    }
}

/// The first such place at or behind `at`; the end of the text if there is none.
#[must_use]
pub(crate) fn cut_after(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let from = at.saturating_sub(1);
    let mut feeds = memchr::memchr_iter(b'\n', &bytes[from..]).map(|feed| from + feed);
    feeds.find(|feed| begins_line(bytes, *feed) && has_visible(&bytes[..*feed])).map_or(bytes.len(), |feed| feed + 1)
}

fn begins_line(bytes: &[u8], feed: usize) -> bool {
    bytes.get(feed + 1).is_some_and(|byte| is_ascii_visible(*byte))
}

fn has_visible(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| is_ascii_visible(*byte))
}

/// Two texts without the pieces that both begin and end with.
pub(crate) struct Differing<'t> {
    pub(crate) old: &'t str,
    pub(crate) new: &'t str,
    /// What both begin with, and what both end with.
    pub(crate) shared: [&'t str; 2],
}

impl<'t> Differing<'t> {
    #[must_use]
    pub(crate) fn of(old: &'t str, new: &'t str) -> Self {
        let same = |(a, b): &(u8, u8)| a == b;
        let begin = old.bytes().zip(new.bytes()).take_while(same).count();
        // The character that begins a line belongs to what is shared, so that both texts are cut there.
        let start = cut_before(old, begin.saturating_sub(1));
        let (rest, new_rest) = (&old.as_bytes()[start..], &new.as_bytes()[start..]);
        let end = rest.iter().copied().rev().zip(new_rest.iter().copied().rev()).take_while(same).count();
        let cut = cut_after(old, old.len() - end + 1);
        let tail = old.len().saturating_sub(cut);
        let new_cut = new.len() - tail;
        // What makes the place a cut in one text may be missing before it in the other.
        if cut < old.len() && has_visible(&new.as_bytes()[..new_cut]) {
            Self { old: &old[start..cut], new: &new[start..new_cut], shared: [&old[..start], &old[cut..]] }
        } else {
            Self { old: &old[start..], new: &new[start..], shared: [&old[..start], ""] }
        }
    }
}

/// Neither white space nor a control character, some of which are white space to Unicode.
fn is_ascii_visible(byte: u8) -> bool {
    byte.is_ascii_graphic()
}

/// Length of the run of visible ASCII at the start, which is not empty.
fn word_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !is_ascii_visible(*byte)).unwrap_or(bytes.len())
}

/// What of a piece is compared: white space around it does not count.
#[must_use]
pub(crate) fn meaning(text: &str, piece: Span) -> &str {
    text[piece.range()].trim()
}

fn add(text: &str, start: usize, end: usize, spans: &mut Vec<Span>) {
    let offset = |at: usize| u32::try_from(at).expect("texts have fewer than 2^32 bytes");
    let mut from = start;
    if end - start > LONG {
        let bytes = text.as_bytes();
        for at in start + 1..end {
            // Separators are ASCII, so the cut after one lies between characters. What follows must not be white
            // space, which belongs to the piece before it.
            let separator = bytes[at - 1].is_ascii_punctuation() || bytes[at - 1].is_ascii_whitespace();
            if separator
                && !text[at..].starts_with(char::is_whitespace)
                && hash(&bytes[at.saturating_sub(WINDOW).max(start)..at]).is_multiple_of(EVERY)
                && !text[from..at].trim().is_empty()
            {
                spans.push(Span::new(offset(from), offset(at)));
                from = at;
            }
        }
    }
    if from < end {
        spans.push(Span::new(offset(from), offset(end)));
    }
}

/// FNV-1a with a final mix: chooses cuts, decides no equality.
fn hash(bytes: &[u8]) -> u64 {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, character by character.
    fn slow(text: &str) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut start = 0;
        let (mut last, mut blank, mut line_end) = (None, false, false);
        for (at, c) in text.char_indices() {
            if c.is_whitespace() {
                blank = true;
                line_end |= matches!(c, '\n' | '\r');
                continue;
            }
            let stop = match last {
                None => false,
                Some(_) if line_end => true,
                Some('.' | '!' | '?') => blank,
                Some('。' | '！' | '？') => true,
                Some(_) => false,
            };
            if stop {
                add(text, start, at, &mut spans);
                start = at;
            }
            (last, blank, line_end) = (Some(c), false, false);
        }
        add(text, start, text.len(), &mut spans);
        spans
    }

    fn cut(text: &str) -> Vec<&str> {
        pieces(text).into_iter().map(|span| &text[span.range()]).collect()
    }

    #[test]
    fn lines_and_sentences() {
        assert_eq!(cut("One. Two!  Three\n\n Four 1.5 five?"), ["One. ", "Two!  ", "Three\n\n ", "Four 1.5 five?"]);
        assert_eq!(cut("一。二！三"), ["一。", "二！", "三"]);
        assert_eq!(cut(" \n a\r\nb"), [" \n a\r\n", "b"]);
        assert_eq!(cut(""), [""; 0]);
        assert_eq!(cut(" \n "), [" \n "]);
    }

    #[test]
    fn a_change_in_a_long_line_leaves_most_pieces_alone() {
        let line: String = (0..2000u32).map(|i| format!("{{\"id\":{},\"v\":{}}},", i * 7919 % 1000, i)).collect();
        let changed = line.replacen("\"id\":919", "\"id\":other thing", 1);
        let (before, after) = (cut(&line), cut(&changed));
        assert!(before.len() > 500 && before.iter().all(|piece| piece.len() < 1000));
        let lost = before.iter().filter(|piece| !after.contains(piece)).count();
        assert!(lost <= 4, "{lost}");
    }

    proptest! {
        #[test]
        fn a_text_may_be_cut_between_pieces(text in "([a-c]\\. |[a-d]\n|\n| |é\n|\r){0,14}", at in 0usize..40) {
            let at = at.min(text.len());
            let (before, after) = (cut_before(&text, at), cut_after(&text, at));
            prop_assert!(before <= at && at <= after);
            for cut in [before, after] {
                let offset = u32::try_from(cut).unwrap();
                let behind = pieces(&text[cut..]).into_iter().map(|piece| Span::new(piece.start + offset, piece.end + offset));
                let all: Vec<Span> = pieces(&text[..cut]).into_iter().chain(behind).collect();
                prop_assert_eq!(all, pieces(&text), "cut at {}", cut);
            }
        }

        #[test]
        fn what_two_texts_share_has_the_same_pieces(old in "([a-b]\\. |[a-b]\n|\n| ){0,9}", new in "([a-b]\\. |[a-b]\n|\n| ){0,9}") {
            let Differing { old: a, new: b, shared: [begin, end] } = Differing::of(&old, &new);
            for (text, part) in [(&old, a), (&new, b)] {
                prop_assert_eq!(&[begin, part, end].concat(), text);
                let of = |part: &str| pieces(part).into_iter().map(|piece| part[piece.range()].to_owned()).collect::<Vec<_>>();
                prop_assert_eq!([of(begin), of(part), of(end)].concat(), of(text));
            }
        }
    }

    proptest! {
        #[test]
        fn words_may_be_crossed_at_once(text in "[a-c.!? \n\r\t\u{1}\u{b}\u{1c}\u{7f}\u{85}\u{a0}\u{2028}。é]{0,60}") {
            prop_assert_eq!(pieces(&text), slow(&text));
        }

        #[test]
        fn pieces_are_the_text(text in "[a-c.!? \n。é]{0,60}", times in 1usize..40) {
            let text = text.repeat(times);
            let mut at = 0;
            for span in pieces(&text) {
                prop_assert_eq!(span.start, at);
                prop_assert!(!span.is_empty());
                at = span.end;
                prop_assert!(text.trim().is_empty() || !meaning(&text, span).is_empty());
            }
            prop_assert_eq!(at as usize, text.len());
        }
    }
}
