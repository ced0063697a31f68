//! White space folded while text is written.
//!
//! What separates two pieces of text is a [`Gap`]: the strongest of everything met between them. It is written only
//! when more text follows, so the result never begins or ends with white space, has no empty line, and never two
//! separators in a row.

/// Separators, weakest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    #[default]
    None,
    Space,
    /// Between cells of a table row.
    Cell,
    /// Between blocks.
    Line,
}

#[derive(Debug, Default)]
pub(super) struct Fold {
    out: String,
    gap: Gap,
    /// Line breaks of the source count (inside `<pre>`).
    pub(super) keep_lines: bool,
}

/// HTML's white space.
#[inline]
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | b'\x0C')
}

const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
const ONES: u64 = 0x0101_0101_0101_0101;

/// High bit of every byte of `word` that equals `byte`; exact in all eight bytes.
#[inline]
pub(super) fn equal(word: u64, byte: u8) -> u64 {
    let x = word ^ (ONES * u64::from(byte));
    !(((x & LOW) + LOW) | x | LOW)
}

/// End of the run of text that starts at `start` (not white space): the first `<`, `&`, control byte, or white space
/// that follows a space. Single spaces are thus inside the run; it may end with one.
#[inline]
pub(super) fn run_end(bytes: &[u8], start: usize) -> usize {
    // The first byte belongs to the run whatever it is, so that every call makes progress.
    let mut at = start + 1;
    let mut after_space = 0u64;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let space = equal(word, b' ');
        let control = !(((word & LOW) + ONES * 0x60) | word) & !LOW;
        let double = space & (space << 8 | after_space);
        let stop = control | equal(word, b'<') | equal(word, b'&') | double;
        if stop != 0 {
            return at + (stop.trailing_zeros() / 8) as usize;
        }
        after_space = space >> 56;
        at += 8;
    }
    let mut spaced = after_space != 0;
    while let Some(&byte) = bytes.get(at) {
        if byte < b' ' || byte == b'<' || byte == b'&' || (spaced && byte == b' ') {
            break;
        }
        spaced = byte == b' ';
        at += 1;
    }
    at
}

impl Fold {
    /// Empties it for the next page; the buffer stays.
    pub(super) fn clear(&mut self) {
        self.out.clear();
        self.gap = Gap::None;
        self.keep_lines = false;
    }

    pub(super) fn as_str(&self) -> &str {
        &self.out
    }

    pub(super) fn into_string(self) -> String {
        self.out
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    #[inline]
    pub(super) fn gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// The white space that starts at `start` of the source; returns where it ends.
    #[inline]
    pub(super) fn spaces(&mut self, bytes: &[u8], start: usize) -> usize {
        let mut at = start;
        let mut breaks = false;
        while let Some(&byte) = bytes.get(at)
            && is_space(byte)
        {
            breaks |= matches!(byte, b'\n' | b'\r');
            at += 1;
        }
        self.gap(if breaks && self.keep_lines { Gap::Line } else { Gap::Space });
        at
    }

    /// One byte of white space.
    #[inline]
    pub(super) fn space(&mut self, byte: u8) {
        let breaks = self.keep_lines && matches!(byte, b'\n' | b'\r');
        self.gap(if breaks { Gap::Line } else { Gap::Space });
    }

    /// Text that neither starts nor ends with white space and has only single spaces inside.
    #[inline]
    pub(super) fn push(&mut self, text: &str) {
        if self.gap != Gap::None {
            if !self.out.is_empty() {
                self.out.push(match self.gap {
                    Gap::Line => '\n',
                    Gap::Cell => '\t',
                    Gap::Space | Gap::None => ' ',
                });
            }
            self.gap = Gap::None;
        }
        self.out.push_str(text);
    }

    /// Any text, `<` and `&` included, as it stands; NUL becomes U+FFFD.
    pub(super) fn literal(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if is_space(byte) {
                at = self.spaces(bytes, at);
            } else if byte == 0 {
                self.push("\u{FFFD}");
                at += 1;
            } else {
                at = self.run(text, at);
            }
        }
    }

    /// Writes the run at `start` of `source`, which is neither white space nor NUL there; returns where it ends.
    #[inline]
    pub(super) fn run(&mut self, source: &str, start: usize) -> usize {
        let bytes = source.as_bytes();
        let end = run_end(bytes, start);
        if bytes[end - 1] == b' ' {
            self.push(&source[start..end - 1]);
            self.gap(Gap::Space);
        } else {
            self.push(&source[start..end]);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn folded(text: &str) -> String {
        let mut fold = Fold::default();
        fold.literal(text);
        fold.out
    }

    #[test]
    fn white_space_is_html_white_space() {
        assert_eq!(folded(" a \t\r\n b\x0C\x0Cc  "), "a b c");
        assert_eq!(folded("a\u{A0} \u{A0}b\u{2003}c\x0B d"), "a\u{A0} \u{A0}b\u{2003}c\x0B d");
        assert_eq!(folded("a\0b"), "a\u{FFFD}b");
        assert_eq!(folded(" \n "), "");
    }

    proptest! {
        #[test]
        fn folding_is_splitting_at_white_space(text in "[a-c<&é\u{7F}\u{80} \t\n\r\u{B}\u{C}]{0,60}") {
            let split: Vec<&str> = text.split([' ', '\t', '\n', '\r', '\u{C}']).filter(|w| !w.is_empty()).collect();
            prop_assert_eq!(folded(&text), split.join(" "));
        }
    }
}
