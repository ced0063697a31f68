//! The parts of the tokenizer that look for an end: attributes, comments, raw text, scripts.
//!
//! Each returns the position after what it skipped and reads every byte once, so that a page is read in linear time
//! whatever it contains: an unfinished construct takes the rest of the page, as in the standard, and ends it.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2};

use super::fold::{equal, is_space};

/// Where a tag ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::text) struct TagEnd {
    /// After the `>`.
    pub(in crate::text) at: usize,
    /// It ended with `/>`.
    pub(in crate::text) closed: bool,
}

/// Reads the attributes of a tag from the byte after its name. `each` is given the ranges of name and value (empty
/// if there is none), still encoded. `None` if the input ends inside the tag.
#[inline]
pub(in crate::text) fn attributes(
    bytes: &[u8],
    start: usize,
    mut each: impl FnMut(Range<usize>, Range<usize>),
) -> Option<TagEnd> {
    let mut at = start;
    loop {
        let byte = *bytes.get(at)?;
        if byte == b'>' {
            return Some(TagEnd { at: at + 1, closed: false });
        }
        if is_space(byte) {
            at += 1;
            continue;
        }
        if byte == b'/' {
            at += 1;
            if bytes.get(at) == Some(&b'>') {
                return Some(TagEnd { at: at + 1, closed: true });
            }
            continue;
        }
        // A name; an equals sign that comes first belongs to it.
        let name = at;
        at += 1;
        while !NAME_ENDS[usize::from(*bytes.get(at)?)] {
            at += 1;
        }
        let name = name..at;
        at = skip_space(bytes, at)?;
        if bytes[at] != b'=' {
            each(name, at..at);
            continue;
        }
        at = skip_space(bytes, at + 1)?;
        let value = match bytes[at] {
            quote @ (b'"' | b'\'') => {
                let end = at + 1 + closing_quote(&bytes[at + 1..], quote)?;
                let value = at + 1..end;
                at = end + 1;
                value
            }
            // No value; the bracket ends the tag.
            b'>' => at..at,
            _ => {
                let value = at;
                while !VALUE_ENDS[usize::from(*bytes.get(at)?)] {
                    at += 1;
                }
                value..at
            }
        };
        each(name, value);
    }
}

/// Where a quoted value ends. Most are short, and for those looking at three words is cheaper than a call.
#[inline]
fn closing_quote(value: &[u8], quote: u8) -> Option<usize> {
    for (index, word) in value.as_chunks::<8>().0.iter().take(3).enumerate() {
        let found = equal(u64::from_le_bytes(*word), quote);
        if found != 0 {
            return Some(index * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    memchr(quote, value)
}

const fn set(members: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut i = 0;
    while i < members.len() {
        table[members[i] as usize] = true;
        i += 1;
    }
    table
}

static NAME_ENDS: [bool; 256] = set(b" \n\t\r\x0C/>=");
static VALUE_ENDS: [bool; 256] = set(b" \n\t\r\x0C>");

#[inline]
fn skip_space(bytes: &[u8], mut at: usize) -> Option<usize> {
    while is_space(*bytes.get(at)?) {
        at += 1;
    }
    Some(at)
}

/// After the next `>`, or the end of input: doctype, processing instruction, any other bogus comment.
#[inline]
pub(in crate::text) fn bracket(bytes: &[u8], start: usize) -> usize {
    memchr(b'>', &bytes[start..]).map_or(bytes.len(), |found| start + found + 1)
}

/// After the comment whose text starts at `start` (past `<!--`). It ends with `-->` or `--!>`, and at once with `>`
/// or `->`.
pub(in crate::text) fn comment(bytes: &[u8], start: usize) -> usize {
    let text = &bytes[start..];
    for end in memchr_iter(b'>', text) {
        let before = &text[..end];
        if before.ends_with(b"--") || before.ends_with(b"--!") || before.is_empty() || before == b"-" {
            return start + end + 1;
        }
    }
    bytes.len()
}

/// A CDATA section that starts at `start` (past `<![CDATA[`): where its text ends, and the position after it.
pub(in crate::text) fn cdata(bytes: &[u8], start: usize) -> (usize, usize) {
    let text = &bytes[start..];
    memchr_iter(b'>', text)
        .find(|end| text[..*end].ends_with(b"]]"))
        .map_or((bytes.len(), bytes.len()), |end| (start + end - 2, start + end + 1))
}

/// Is there, at `at`, the name `name` in any case, and after it white space, `/` or `>`?
fn has_name(bytes: &[u8], at: usize, name: &[u8]) -> bool {
    let end = at + name.len();
    bytes.get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(name))
        && bytes.get(end).is_some_and(|byte| is_space(*byte) || matches!(byte, b'/' | b'>'))
}

/// Where the end tag of raw text begins: the `<` of `</name`, or the end of input.
pub(super) fn raw_text(bytes: &[u8], start: usize, name: &[u8]) -> usize {
    memchr_iter(b'<', &bytes[start..])
        .map(|found| start + found)
        .find(|at| bytes.get(at + 1) == Some(&b'/') && has_name(bytes, at + 2, name))
        .unwrap_or(bytes.len())
}

/// Where the end tag of a script begins. After `<!--`, up to `-->`, an end tag that is paired with a `<script` does
/// not count: pages used to hide scripts in comments.
pub(super) fn script(bytes: &[u8], start: usize) -> usize {
    const NAME: &[u8] = b"script";
    #[derive(PartialEq)]
    enum State {
        Plain,
        Escaped,
        Doubled,
    }
    let mut state = State::Plain;
    let mut at = start;
    // Dashes before this position are no part of an end of comment.
    let mut dashes_from = start;
    loop {
        let rest = &bytes[at..];
        let found = if state == State::Plain { memchr(b'<', rest) } else { memchr2(b'<', b'>', rest) };
        let Some(found) = found else { return bytes.len() };
        at += found;
        if bytes[at] == b'>' {
            if bytes[dashes_from..at].ends_with(b"--") {
                state = State::Plain;
            }
            at += 1;
            continue;
        }
        let closing = bytes.get(at + 1) == Some(&b'/');
        match state {
            State::Plain | State::Escaped if closing && has_name(bytes, at + 2, NAME) => return at,
            State::Plain if bytes[at..].starts_with(b"<!--") => {
                state = State::Escaped;
                dashes_from = at + 2;
                at += 4;
                continue;
            }
            State::Escaped if has_name(bytes, at + 1, NAME) => state = State::Doubled,
            State::Doubled if closing && has_name(bytes, at + 2, NAME) => state = State::Escaped,
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pair<'a> = (&'a str, &'a str);

    fn read(tag: &str) -> Option<(Vec<Pair<'_>>, TagEnd)> {
        let mut found = Vec::new();
        let end = attributes(tag.as_bytes(), 0, |name, value| found.push((&tag[name], &tag[value])))?;
        Some((found, end))
    }

    #[test]
    fn attributes_in_every_form() {
        let cases: [(&str, &[Pair], bool); 12] = [
            (">", &[], false),
            ("/>", &[], true),
            (" / >", &[], false),
            (" a=1 b='2 >' c=\"3'\" D>", &[("a", "1"), ("b", "2 >"), ("c", "3'"), ("D", "")], false),
            (" a = \n '1'b=2/>", &[("a", "1"), ("b", "2/")], false),
            (" a='1'/>", &[("a", "1")], true),
            (" a=>", &[("a", "")], false),
            (" =a=b>", &[("=a", "b")], false),
            (" a==b>", &[("a", "=b")], false),
            (" a=b'c\"d>", &[("a", "b'c\"d")], false),
            (" \"a'>", &[("\"a'", "")], false),
            (" a/b/>", &[("a", ""), ("b", "")], true),
        ];
        for (tag, expected, closed) in cases {
            assert_eq!(read(tag), Some((expected.to_vec(), TagEnd { at: tag.len(), closed })), "{tag}");
        }
        for unfinished in ["", " ", "/", " a", " a=", " a='>", " a=b", " a ="] {
            assert_eq!(read(unfinished), None, "{unfinished}");
        }
    }

    #[test]
    fn comments_end_where_the_standard_says() {
        for (text, end) in [
            (">x", 1),
            ("->x", 2),
            ("-->x", 3),
            ("--->x", 4),
            (" --!>x", 5),
            ("!>x", 3),
            (" > -> -->x", 9),
            ("--!->-->x", 8),
            (" <!-->x", 6),
        ] {
            assert_eq!(comment(text.as_bytes(), 0), end, "{text}");
        }
        assert_eq!(cdata(b"a]]]>b", 0), (2, 5));
        assert_eq!(cdata(b"a]]", 0), (3, 3));
    }

    #[test]
    fn scripts_end_where_the_standard_says() {
        for (text, end) in [
            ("a</script>", 1),
            ("a</scriptx></SCRIPT >", 11),
            ("</script", 8),
            ("<!--</script>", 4),
            ("<!--<script></script>--></script>", 24),
            ("<!--<script></script></script>", 21),
            ("<!--<script>--></script>", 15),
            ("<!--><script></script>", 13),
            ("<!---><script></script>", 14),
            ("<!-<script></script>", 11),
            ("<!--<script<script></script>x</script>", 29),
            ("<!--<scriptx></script>", 13),
        ] {
            assert_eq!(script(text.as_bytes(), 0), end, "{text}");
        }
        assert_eq!(raw_text(b"</styl></STYLE/>", 0, b"style"), 7);
    }
}
