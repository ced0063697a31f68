//! Pages in older encodings: UTF-8 text to ISO-8859-1 or windows-1252 bytes.
//!
//! A character that the encoding lacks becomes a numeric character reference, as old editors wrote it.

use std::borrow::Cow;
use std::fmt::Write as _;

use encoding_rs::{WINDOWS_1252, mem};

/// How a page is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    Utf8,
    /// UTF-8 that starts with a byte order mark and names no charset.
    Utf8Bom,
    Latin1,
    Windows1252,
}

impl Charset {
    /// The name a header or meta element states; a byte order mark states none.
    pub(crate) fn label(self) -> Option<&'static str> {
        match self {
            Self::Utf8 => Some("utf-8"),
            Self::Utf8Bom => None,
            Self::Latin1 => Some("iso-8859-1"),
            Self::Windows1252 => Some("windows-1252"),
        }
    }

    /// Encodes an HTML document.
    pub(crate) fn encode(self, html: &str, out: &mut Vec<u8>) {
        match self {
            Self::Utf8 => out.extend_from_slice(html.as_bytes()),
            Self::Utf8Bom => {
                out.extend_from_slice("\u{feff}".as_bytes());
                out.extend_from_slice(html.as_bytes());
            }
            Self::Latin1 => out.extend_from_slice(&mem::encode_latin1_lossy(&within_latin1(html))),
            // Writes references itself.
            Self::Windows1252 => out.extend_from_slice(&WINDOWS_1252.encode(html).0),
        }
    }
}

/// The text with references for characters beyond Latin-1. Browsers take Latin-1 for windows-1252, so the library
/// knows no encoder of that name.
fn within_latin1(html: &str) -> Cow<'_, str> {
    let is_beyond = |c: char| c > '\u{ff}';
    if !html.contains(is_beyond) {
        return Cow::Borrowed(html);
    }
    let mut text = String::with_capacity(html.len());
    for c in html.chars() {
        if is_beyond(c) {
            let _ = write!(text, "&#{};", u32::from(c));
        } else {
            text.push(c);
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(charset: Charset, text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        charset.encode(text, &mut out);
        out
    }

    #[test]
    fn what_an_encoding_lacks_becomes_a_reference() {
        assert_eq!(encoded(Charset::Latin1, "é–Ł"), b"\xe9&#8211;&#321;");
        assert_eq!(encoded(Charset::Windows1252, "é–Ł"), b"\xe9\x96&#321;");
        assert_eq!(encoded(Charset::Utf8Bom, "é"), b"\xef\xbb\xbf\xc3\xa9");
        assert_eq!(encoded(Charset::Latin1, "é"), b"\xe9");
    }
}
