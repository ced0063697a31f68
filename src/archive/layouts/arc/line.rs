//! The line that starts an ARC record: `URL IP date type length`, or ten words in version 2.
//!
//! URLs with spaces in them were written as they were, and so were types with parameters, so words cannot be counted
//! from the left. What is sure is the length at the end, and the last pair of words that are an address and a date:
//! before it lies the URL, behind it the rest.

/// A record's first line, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArcLine {
    pub(crate) url: String,
    /// Up to 14 digits of `YYYYMMDDhhmmss`.
    pub(crate) date: String,
    pub(crate) content_type: Option<String>,
    pub(crate) length: u64,
}

impl ArcLine {
    /// `None` if the line is none that starts a record.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Cheap refusals first: this is asked of every line of a damaged file.
        if !line.first()?.is_ascii_alphabetic() || !line.last()?.is_ascii_digit() {
            return None;
        }
        let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
        let [before @ .., length] = words.as_slice() else { return None };
        let length = std::str::from_utf8(length).ok()?.parse().ok()?;
        let date = (2..before.len()).rev().find(|&at| is_date(before[at]) && is_address(before[at - 1]))?;
        let url = join(&before[..date - 1]);
        let colon = url.find(':')?;
        let scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        if !url[..colon].bytes().all(scheme) {
            return None;
        }
        // Version 2: type, result code, checksum, location, offset, file name.
        let rest = &before[date + 1..];
        let content_type = match rest {
            [] => return None,
            [content_type, _, _, _, _, ..] => join(&[content_type]),
            words => join(words),
        };
        let known = !matches!(content_type.as_str(), "" | "-" | "no-type");
        Some(Self {
            url,
            date: join(&before[date..=date]).chars().take(14).collect(),
            content_type: known.then_some(content_type),
            length,
        })
    }
}

fn join(words: &[&[u8]]) -> String {
    String::from_utf8_lossy(&words.join(&b' ')).into_owned()
}

fn is_date(word: &[u8]) -> bool {
    (12..=17).contains(&word.len()) && word.iter().all(u8::is_ascii_digit) && matches!(&word[..2], b"19" | b"20")
}

/// An IP address of version 4 or 6, or `-`, which stands for an unknown one.
fn is_address(word: &[u8]) -> bool {
    word == b"-"
        || (!word.is_empty() && word.iter().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<(String, String, Option<String>, u64)> {
        ArcLine::parse(line.as_bytes()).map(|line| (line.url, line.date, line.content_type, line.length))
    }

    #[test]
    fn lines_of_both_versions() {
        let of = |url: &str, kind: Option<&str>, length| {
            Some((url.to_owned(), "19961104142103".to_owned(), kind.map(str::to_owned), length))
        };
        for (line, expected) in [
            (
                "http://a.edu:80/i.html 127.10.100.2 19961104142103 text/html 202\n",
                of("http://a.edu:80/i.html", Some("text/html"), 202),
            ),
            ("http://a/x y.html 1.2.3.4 19961104142103 text/html 2\r\n", of("http://a/x y.html", Some("text/html"), 2)),
            (
                "http://a/ 1.2.3.4 19961104142103 text/html; charset=x 2",
                of("http://a/", Some("text/html; charset=x"), 2),
            ),
            ("http://a/ ::1 19961104142103 no-type 0", of("http://a/", None, 0)),
            ("http://a/ - 19961104142103123 - 7", of("http://a/", None, 7)),
            ("dns:a.edu 1.2.3.4 19961104142103 text/dns 54", of("dns:a.edu", Some("text/dns"), 54)),
            ("filedesc://x.arc 0.0.0.0 19961104142103 text/plain 76", of("filedesc://x.arc", Some("text/plain"), 76)),
            (
                "http://a/ 1.2.3.4 19961104142103 text/html 200 fac069150613fe55599cc7fa88aa089d - 209 IA-001102.arc 202",
                of("http://a/", Some("text/html"), 202),
            ),
            // A URL that looks like a line itself: the last pair decides.
            (
                "http://a/ 9.9.9.9 20010101000000 x 1.2.3.4 19961104142103 text/html 2",
                of("http://a/ 9.9.9.9 20010101000000 x", Some("text/html"), 2),
            ),
        ] {
            assert_eq!(parse(line), expected, "{line}");
        }
    }

    #[test]
    fn what_is_no_such_line() {
        for line in [
            "",
            "\n",
            "http://a/ 1.2.3.4 19961104142103 text/html",
            "http://a/ 1.2.3.4 19961104142103 5",
            "http://a/ 1.2.3.4 yesterday text/html 5",
            "http://a/ host 19961104142103 text/html 5",
            "1.2.3.4 19961104142103 text/html 5",
            "no scheme 1.2.3.4 19961104142103 text/html 5",
            "<a href=x> 1.2.3.4 19961104142103 text/html 5",
            "http://a/ 1.2.3.4 19961104142103 text/html 99999999999999999999999",
            "HTTP/1.1 200",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
