//! What a pattern says about how far it looks, read off its parsed form.
//!
//! *Scope* is the longest match in bytes, *context* what look-around reads beyond it: a byte for anchors and ASCII
//! word boundaries, a character (four bytes) for Unicode ones. Nobody has to declare a number, and nobody can declare
//! a wrong one.
//!
//! A pattern without a longest match is cut at *barriers*: ASCII bytes that no match can contain and that look-around
//! cannot tell from a page edge. What is found between two barriers depends on the bytes between them only. Usually a
//! line feed is one ("line scope"); `[A-Z]\w+\s+[A-Z]\w+` can run over a line feed but not over a full stop.
//!
//! - no look-around: every byte that no match contains;
//! - word boundaries of any kind: those that are no word characters, as the outside of a page is none;
//! - `(?m)^` and `(?m)$`: the line feed only, which reads as a page edge does;
//! - `\A`, `\z` and CRLF anchors tell a page edge from everything else: no barrier, page scope.

use regex_syntax::hir::{Class, Hir, HirKind, Look, LookSet};

use crate::extract::reach::{Declared, Reach};
use crate::extract::scan::{Barriers, Mode};

pub(crate) fn mode(hir: &Hir, declared: Declared) -> Mode {
    let looks = hir.properties().look_set();
    // A scope beyond what an offset can hold is no scope.
    let scope = hir.properties().maximum_len().and_then(|len| u32::try_from(len).ok());
    if let Some(scope) = scope {
        let (left, right) = context(looks);
        return Mode::Window(Reach::new(scope, left, right).enlarged(declared));
    }
    let barriers = barriers(hir, looks);
    if barriers.is_empty() { Mode::Page } else { Mode::Cut(barriers) }
}

/// Bytes that look-around reads left and right of where it stands.
fn context(looks: LookSet) -> (u32, u32) {
    let mut reads = (0, 0);
    for look in looks.iter() {
        let (left, right) = match look {
            Look::Start | Look::StartLF => (1, 0),
            Look::End | Look::EndLF => (0, 1),
            Look::StartCRLF
            | Look::EndCRLF
            | Look::WordAscii
            | Look::WordAsciiNegate
            | Look::WordStartAscii
            | Look::WordEndAscii
            | Look::WordStartHalfAscii
            | Look::WordEndHalfAscii => (1, 1),
            Look::WordUnicode
            | Look::WordUnicodeNegate
            | Look::WordStartUnicode
            | Look::WordEndUnicode
            | Look::WordStartHalfUnicode
            | Look::WordEndHalfUnicode => (4, 4),
        };
        reads = (reads.0.max(left), reads.1.max(right));
    }
    reads
}

fn barriers(hir: &Hir, looks: LookSet) -> Barriers {
    let mut member = Box::new([false; 256]);
    for byte in 0..128u8 {
        let allowed = looks.iter().all(|look| match look {
            Look::Start | Look::End | Look::StartCRLF | Look::EndCRLF => false,
            Look::StartLF | Look::EndLF => byte == b'\n',
            _ => !(byte.is_ascii_alphanumeric() || byte == b'_'),
        });
        member[usize::from(byte)] = allowed;
    }
    exclude_consumed(hir, &mut member);
    Barriers::new(member)
}

/// Takes out every byte that some match might contain.
fn exclude_consumed(hir: &Hir, member: &mut [bool; 256]) {
    let mut exclude = |from: u32, to: u32| {
        for byte in from..=to.min(127) {
            member[byte as usize] = false;
        }
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => literal.0.iter().for_each(|&b| exclude(u32::from(b), u32::from(b))),
        HirKind::Class(Class::Unicode(class)) => {
            class.iter().for_each(|range| exclude(u32::from(range.start()), u32::from(range.end())));
        }
        HirKind::Class(Class::Bytes(class)) => {
            class.iter().for_each(|range| exclude(u32::from(range.start()), u32::from(range.end())));
        }
        HirKind::Repetition(repetition) => exclude_consumed(&repetition.sub, member),
        HirKind::Capture(capture) => exclude_consumed(&capture.sub, member),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            for part in parts {
                exclude_consumed(part, member);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pattern: &str) -> Mode {
        mode(&regex_syntax::parse(pattern).unwrap(), Declared::default())
    }

    fn window(scope: u32, left: u32, right: u32) -> Mode {
        Mode::Window(Reach::new(scope, left, right))
    }

    #[test]
    fn scope_counts_bytes_and_context_what_look_around_reads() {
        assert_eq!(of("abc"), window(3, 0, 0));
        assert_eq!(of("é{2}"), window(4, 0, 0));
        assert_eq!(of(r"\w{1,30}"), window(120, 0, 0));
        assert_eq!(of(r"(?i)k"), window(3, 0, 0));
        assert_eq!(of(r"\d{3}-\d{4}"), window(29, 0, 0));
        assert_eq!(of(r"(?-u:\d{3}-\d{4})"), window(8, 0, 0));
        assert_eq!(of(r"\bcat\b"), window(3, 4, 4));
        assert_eq!(of(r"(?-u:\b)cat"), window(3, 1, 1));
        assert_eq!(of(r"\Acat"), window(3, 1, 0));
        assert_eq!(of(r"cat\z"), window(3, 0, 1));
        assert_eq!(of(r"(?mR)^cat"), window(3, 1, 1));
    }

    #[test]
    fn declared_numbers_only_enlarge() {
        let hir = regex_syntax::parse(r"\bcat\b").unwrap();
        let declare = |scope, context| mode(&hir, Declared { scope: Some(scope), context: Some(context) });
        assert_eq!(declare(2, 1), window(3, 4, 4));
        assert_eq!(declare(20, 10), window(20, 10, 10));
    }

    #[test]
    fn barriers_are_bytes_no_match_holds_and_no_look_around_notices() {
        let bytes = |pattern: &str| match of(pattern) {
            Mode::Cut(barriers) => barriers.bytes(),
            other => panic!("{pattern}: {other:?}"),
        };
        assert_eq!(bytes("(?m)^.+$"), b"\n");
        assert_eq!(bytes(".+"), b"\n");
        assert!(bytes("[a-z]+").contains(&b'0'));
        assert!(!bytes(r"\b[a-z]+").contains(&b'0'));
        assert!(bytes(r"\b[a-z]+").contains(&b' '));
        let names = bytes(r"[A-Z]\w+\s+[A-Z]\w+");
        assert!(names.contains(&b'.') && !names.contains(&b'\n') && !names.contains(&b'a'));
        for page in [r"\A.+", r".+\z", "(?mR)^.+", r"(?s).+", r"[^x]+x", r"(?m)^[^x]+"] {
            let scope = of(page);
            let cuts_at_lines = matches!(&scope, Mode::Cut(barriers) if barriers.contains(b'\n'));
            assert!(!cuts_at_lines, "{page}: {scope:?}");
        }
        assert_eq!(of(r"(?m)^[^x]+"), Mode::Page);
        assert_eq!(of(r"\A.+"), Mode::Page);
    }
}
