//! Pages in older encodings: UTF-8 text to ISO-8859-1 or windows-1252 bytes.
//!
//! A character that the encoding lacks becomes a numeric character reference, as old editors wrote it. The few lines
//! here spare the generator a dependency on a whole encoding library.

/// How a page is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    Utf8,
    /// UTF-8 that starts with a byte order mark and names no charset.
    Utf8Bom,
    Latin1,
    Windows1252,
}

/// What windows-1252 has between 0x80 and 0x9f, as far as our texts use it.
#[rustfmt::skip]
const WINDOWS: &[(char, u8)] = &[
    ('€', 0x80), ('…', 0x85), ('Š', 0x8a), ('Œ', 0x8c), ('Ž', 0x8e), ('‘', 0x91), ('’', 0x92), ('“', 0x93), ('”', 0x94),
    ('•', 0x95), ('–', 0x96), ('—', 0x97), ('™', 0x99), ('š', 0x9a), ('œ', 0x9c), ('ž', 0x9e), ('Ÿ', 0x9f),
];

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
            Self::Latin1 | Self::Windows1252 => {
                let mut rest = html;
                // Almost all is ASCII and goes over in one piece.
                while let Some(place) = rest.bytes().position(|b| !b.is_ascii()) {
                    out.extend_from_slice(&rest.as_bytes()[..place]);
                    let mut chars = rest[place..].chars();
                    if let Some(c) = chars.next() {
                        match self.byte(c) {
                            Some(byte) => out.push(byte),
                            None => out.extend_from_slice(format!("&#{};", u32::from(c)).as_bytes()),
                        }
                    }
                    rest = chars.as_str();
                }
                out.extend_from_slice(rest.as_bytes());
            }
        }
    }

    fn byte(self, c: char) -> Option<u8> {
        match u32::from(c) {
            code @ (0..=0x7f | 0xa0..=0xff) => u8::try_from(code).ok(),
            _ if self == Self::Windows1252 => WINDOWS.iter().find(|(known, _)| *known == c).map(|&(_, byte)| byte),
            _ => None,
        }
    }
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
    }
}
