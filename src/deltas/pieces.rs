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
