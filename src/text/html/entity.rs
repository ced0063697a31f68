//! Character references in text: `&amp;`, `&#233;`, `&eacute`, after the standard's tokenizer.
//!
//! The handful that make up nearly all references of real pages are compared directly, numbers are computed here,
//! and the other 2,200 names come from `htmlize`. Attribute values, far fewer, go through `htmlize` as a whole.

use std::borrow::Cow;

use htmlize::{BARE_ENTITY_MAX_LENGTH, ENTITIES, ENTITY_MAX_LENGTH};
use memchr::memchr;

use super::fold::{Fold, is_space};

/// Writes what the `&` at the start of `rest` stands for; returns how many bytes it took.
#[inline]
pub(super) fn write(out: &mut Fold, rest: &[u8]) -> usize {
    match decode(rest) {
        None => {
            out.push("&");
            1
        }
        Some((Decoded::Text(text), len)) => {
            match text.as_bytes() {
                &[byte] if is_space(byte) => out.space(byte),
                _ => out.push(text),
            }
            len
        }
        Some((Decoded::Char(c), len)) => {
            match u8::try_from(c) {
                Ok(byte) if is_space(byte) => out.space(byte),
                _ => out.push(c.encode_utf8(&mut [0; 4])),
            }
            len
        }
    }
}

/// Folds text that has references but no markup.
pub(super) fn write_all(out: &mut Fold, text: &str) {
    let mut rest = text;
    while let Some(found) = memchr(b'&', rest.as_bytes()) {
        out.literal(&rest[..found]);
        let taken = write(out, &rest.as_bytes()[found..]);
        rest = &rest[found + taken..];
    }
    out.literal(rest);
}

/// What the `&` at the start of a text stands for, and how many bytes that takes; `None` if it is just an ampersand.
#[inline]
fn decode(text: &[u8]) -> Option<(Decoded, usize)> {
    debug_assert_eq!(text.first(), Some(&b'&'));
    const COMMON: [(&[u8], &str); 5] =
        [(b"amp;", "&"), (b"lt;", "<"), (b"gt;", ">"), (b"quot;", "\""), (b"nbsp;", "\u{A0}")];
    let rest = &text[1..];
    match rest.first()? {
        b'#' => number(rest),
        byte if byte.is_ascii_alphanumeric() => {
            for (name, value) in COMMON {
                if rest.starts_with(name) {
                    return Some((Decoded::Text(value), name.len() + 1));
                }
            }
            named(text)
        }
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decoded {
    Text(&'static str),
    Char(char),
}

#[inline(never)]
fn named(text: &[u8]) -> Option<(Decoded, usize)> {
    let longest = text.len().min(ENTITY_MAX_LENGTH);
    let letters = text[1..longest].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let lookup = |len: usize| {
        let value = ENTITIES.get(&text[..len])?;
        Some((Decoded::Text(std::str::from_utf8(value).ok()?), len))
    };
    if text.get(letters + 1) == Some(&b';')
        && let Some(found) = lookup(letters + 2)
    {
        return Some(found);
    }
    // Old names work without a semicolon, even when more letters follow: the longest that fits.
    (2..=(letters + 1).min(BARE_ENTITY_MAX_LENGTH)).rev().find_map(lookup)
}

/// `rest` starts with `#`.
fn number(rest: &[u8]) -> Option<(Decoded, usize)> {
    let (radix, start) = if matches!(rest.get(1), Some(b'x' | b'X')) { (16, 2) } else { (10, 1) };
    let mut value = 0u32;
    let mut at = start;
    while let Some(digit) = rest.get(at).and_then(|byte| char::from(*byte).to_digit(radix)) {
        // It may saturate: all numbers beyond the last code point are the same mistake.
        value = value.saturating_mul(radix).saturating_add(digit);
        at += 1;
    }
    if at == start {
        return None;
    }
    if rest.get(at) == Some(&b';') {
        at += 1;
    }
    Some((Decoded::Char(code_point(value)), at + 1))
}

fn code_point(value: u32) -> char {
    // 0x80..=0x9F mean windows-1252, as pages of old meant it; five of them are undefined there.
    const C1: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž', '\u{8F}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
    ];
    match value {
        0 => char::REPLACEMENT_CHARACTER,
        0x80..=0x9F => C1[(value - 0x80) as usize],
        _ => char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

/// An attribute's value: references decoded by the rules for attributes, NUL replaced.
pub(super) fn attribute(value: &str) -> Cow<'_, str> {
    match memchr::memchr2(b'&', 0, value.as_bytes()) {
        None => Cow::Borrowed(value),
        Some(_) if value.contains('\0') => {
            Cow::Owned(htmlize::unescape_attribute(value.replace('\0', "\u{FFFD}")).into_owned())
        }
        Some(_) => htmlize::unescape_attribute(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unescape(text: &str) -> String {
        let mut out = String::new();
        let mut at = 0;
        while at < text.len() {
            if text.as_bytes()[at] == b'&'
                && let Some((decoded, len)) = decode(&text.as_bytes()[at..])
            {
                match decoded {
                    Decoded::Text(text) => out.push_str(text),
                    Decoded::Char(c) => out.push(c),
                }
                at += len;
            } else {
                let c = text[at..].chars().next().unwrap();
                out.push(c);
                at += c.len_utf8();
            }
        }
        out
    }

    #[test]
    fn references() {
        for (source, expected) in [
            ("&amp;&lt;&gt;&quot;&nbsp;&apos;", "&<>\"\u{A0}'"),
            ("&amp &ampx &lt3 &eacute &eacute;", "& &x <3 é é"),
            ("&notit; &notin; &CounterClockwiseContourIntegral;", "¬it; ∉ ∳"),
            ("&nGg;&NotEqualTilde;", "⋙\u{338}≂\u{338}"),
            ("&#65;&#x41;&#X41 &#65x", "AAA Ax"),
            ("&#0;&#x110000;&#xD800;&#99999999999999999999;", "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"),
            ("&#128;&#x99;&#x81;&#xA0;", "€™\u{81}\u{A0}"),
            ("& &; &# &#; &#x &#xg &nosuch; &é", "& &; &# &#; &#x &#xg &nosuch; &é"),
            ("&&amp;&", "&&&"),
        ] {
            assert_eq!(unescape(source), expected, "{source}");
        }
    }

    #[test]
    fn the_library_agrees_on_every_name() {
        for (name, value) in &ENTITIES {
            let name = std::str::from_utf8(name).unwrap();
            assert_eq!(unescape(name).as_bytes(), *value);
            for tail in ["", ";", "x", "=", " ", "1;"] {
                let source = format!("{name}{tail}");
                assert_eq!(unescape(&source), htmlize::unescape(&source), "{source}");
            }
        }
    }
}
