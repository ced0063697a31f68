//! What a payload says: bytes of a capture to [`Content`].
//!
//! Read in this order: [`encoding`] undoes how the body was sent, [`charset`] makes it text, [`html`] takes text,
//! title and links from pages, `xml` title and links from other XML; [`url`] says which page it is, [`mask`] what of its text may change unnoticed. Nothing
//! here reads files or clocks: the same bytes give the same content on every machine.

pub(crate) mod charset;
pub(crate) mod elements;
pub(crate) mod encoding;
pub(crate) mod gzip;
pub(crate) mod html;
pub(crate) mod mask;
pub(crate) mod url;
mod xml;

use crate::model::Content;
use charset::{Declares, Rule};
use html::{HtmlOptions, HtmlReader};

/// Version of the conversion from bytes to content; part of every fingerprint. Raise it whenever the output changes
/// for any input.
pub(crate) const CONVERSION_VERSION: u32 = 3;

/// What a payload turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadKind {
    Html,
    /// Served as XHTML, where `<x/>` is a whole element.
    Xhtml,
    /// Any other text, kept as it is.
    Text,
    /// XML other than XHTML: its text is kept as it is, its title and links are taken from it.
    Xml,
    Binary,
}

/// A payload as read.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// `None` for binary payloads: they are captured but are no pages.
    pub content: Option<Content>,
    /// The charset's name and what decided it; `None` for binary payloads.
    pub charset: Option<(&'static str, Rule)>,
    /// Links that would have taken too much.
    pub links_left_out: u64,
}

/// Reads payloads; keeps its buffers from one to the next. One for each thread.
#[derive(Debug, Default)]
pub(crate) struct TextReader {
    html: HtmlReader,
    options: TextOptions,
}

/// How payloads are read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextOptions {
    /// Link targets are written with http, as page URLs are under the pipeline's option of that name.
    pub equate_schemes: bool,
    /// Note where texts stand among elements.
    pub keep_elements: bool,
}

impl TextReader {
    #[must_use]
    pub(crate) fn new(options: TextOptions) -> Self {
        Self { html: HtmlReader::default(), options }
    }

    /// `payload` is the body with its encodings undone, `content_type` the whole header, `url` the page's own.
    pub(crate) fn read(&mut self, payload: &[u8], content_type: Option<&str>, url: &str) -> Reading {
        let TextOptions { equate_schemes, keep_elements } = self.options;
        let kind = kind(payload, content_type);
        let declares = match kind {
            PayloadKind::Binary => {
                return Reading { content: None, charset: None, links_left_out: 0 };
            }
            PayloadKind::Html | PayloadKind::Xhtml => Declares::Html,
            PayloadKind::Xml => Declares::Xml,
            PayloadKind::Text => Declares::Nowhere,
        };
        let header = content_type
            .and_then(|header| charset::charset_parameter(header.as_bytes()))
            .and_then(|label| std::str::from_utf8(label).ok());
        let decoded = charset::decode(payload, header, declares, self::url::host(url));
        let charset = Some((decoded.charset, decoded.rule));
        match kind {
            PayloadKind::Html | PayloadKind::Xhtml => {
                let options = HtmlOptions { xml: kind == PayloadKind::Xhtml, equate_schemes, keep_elements };
                let content = Some(self.html.read(&decoded.text, url, options));
                Reading { content, charset, links_left_out: self.html.links_left_out() }
            }
            PayloadKind::Xml => {
                let xml::XmlFacts { title, links, links_left_out, structure, elements } =
                    xml::read(&decoded.text, url, self.options);
                let (text, structure) = (decoded.text.into_owned(), Some(structure));
                let content = Content { title, text, links, canonical: None, structure, elements };
                Reading { content: Some(content), charset, links_left_out }
            }
            _ => {
                let elements = keep_elements.then(String::new);
                let content = Content { text: decoded.text.into_owned(), elements, ..Content::default() };
                Reading { content: Some(content), charset, links_left_out: 0 }
            }
        }
    }
}

/// Reads one payload. Whoever reads several keeps a [`TextReader`].
#[cfg(test)]
pub(crate) fn read(payload: &[u8], content_type: Option<&str>, url: &str) -> Reading {
    TextReader::default().read(payload, content_type, url)
}

/// What to read a payload as. The header is believed, even against the bytes: a picture served as a page is a page
/// full of rubbish, and the same one every night. Only a header that says nothing leaves it to the bytes.
#[must_use]
pub(crate) fn kind(payload: &[u8], content_type: Option<&str>) -> PayloadKind {
    let essence = content_type.unwrap_or_default().split([';', ',']).next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/html" => PayloadKind::Html,
        "application/xhtml+xml" | "application/vnd.wap.xhtml+xml" => PayloadKind::Xhtml,
        "text/xml" | "application/xml" => PayloadKind::Xml,
        "application/json"
        | "application/javascript"
        | "application/x-javascript"
        | "application/ecmascript"
        | "application/x-ndjson"
        | "application/jsonl"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/sql"
        | "application/x-sh" => PayloadKind::Text,
        "" | "application/octet-stream" | "binary/octet-stream" | "application/unknown" | "unknown/unknown" | "*/*" => {
            sniff(payload)
        }
        other if other.ends_with("+xml") => PayloadKind::Xml,
        other if other.ends_with("+json") || other.starts_with("text/") => PayloadKind::Text,
        other if other.contains('/') => PayloadKind::Binary,
        // What is stated is no media type.
        _ => sniff(payload),
    }
}

/// How much of a payload is looked at to tell text from binary.
const SNIFF: usize = 4096;

fn sniff(payload: &[u8]) -> PayloadKind {
    let head = &payload[..payload.len().min(SNIFF)];
    if head.starts_with(&[0xFF, 0xFE]) || head.starts_with(&[0xFE, 0xFF]) || head.starts_with(&[0, 0, 0xFE, 0xFF]) {
        // UTF-16 or UTF-32: it has to be decoded before it can be looked at.
        let text = charset::decode(head, None, Declares::Nowhere, "").text;
        return if looks_like_html(text.as_bytes()) { PayloadKind::Html } else { PayloadKind::Text };
    }
    if looks_like_html(head) {
        return PayloadKind::Html;
    }
    let text = match std::str::from_utf8(head) {
        Ok(_) => true,
        // A character may be cut at the end of the sample.
        Err(error) => error.error_len().is_none() && (head.len() < payload.len() || error.valid_up_to() > 0),
    };
    let control = |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | b'\r' | b'\x0C' | b'\x1B');
    // Text has no NUL, and hardly any other control character.
    if !text || head.contains(&0) || head.iter().filter(control).count() * 50 > head.len() {
        return PayloadKind::Binary;
    }
    if head.trim_ascii_start().starts_with(b"<?xml") { PayloadKind::Xml } else { PayloadKind::Text }
}

/// Whether it begins, after white space, comments and an XML declaration, with a tag of a page.
fn looks_like_html(head: &[u8]) -> bool {
    const TAGS: [&[u8]; 22] = [
        b"!doctype html",
        b"html",
        b"head",
        b"body",
        b"title",
        b"meta",
        b"link",
        b"base",
        b"script",
        b"style",
        b"div",
        b"p",
        b"table",
        b"h1",
        b"h2",
        b"a",
        b"br",
        b"b",
        b"font",
        b"center",
        b"ul",
        b"iframe",
    ];
    let mut rest = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    loop {
        rest = rest.trim_ascii_start();
        if rest.starts_with(b"<!--") {
            rest = &rest[html::scan::comment(rest, 4)..];
        } else if rest.starts_with(b"<?xml") {
            rest = &rest[html::scan::bracket(rest, 5)..];
        } else {
            break;
        }
    }
    let Some(rest) = rest.strip_prefix(b"<") else {
        return false;
    };
    TAGS.iter().any(|tag| {
        rest.get(..tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag))
            && rest.get(tag.len()).is_some_and(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_decides() {
        for (content_type, expected) in [
            ("text/html", PayloadKind::Html),
            (" Text/HTML ; charset=utf-8", PayloadKind::Html),
            ("text/html,text/html", PayloadKind::Html),
            ("application/xhtml+xml", PayloadKind::Xhtml),
            ("application/rss+xml", PayloadKind::Xml),
            ("image/svg+xml", PayloadKind::Xml),
            ("text/plain", PayloadKind::Text),
            ("text/css", PayloadKind::Text),
            ("application/json;x=y", PayloadKind::Text),
            ("application/ld+json", PayloadKind::Text),
            ("application/javascript", PayloadKind::Text),
            ("image/png", PayloadKind::Binary),
            ("application/pdf", PayloadKind::Binary),
            ("application/zip", PayloadKind::Binary),
        ] {
            // Whatever the bytes are.
            for payload in [&b"<!doctype html>"[..], b"\x89PNG\r\n\x1A\n\0\0", b"text"] {
                assert_eq!(kind(payload, Some(content_type)), expected, "{content_type}");
            }
        }
    }

    #[test]
    fn without_a_header_the_bytes_decide() {
        for (payload, expected) in [
            (&b""[..], PayloadKind::Text),
            (b"plain text, \xC3\xA9\n", PayloadKind::Text),
            (b" <!-- a --> <!DOCTYPE HTML PUBLIC>", PayloadKind::Html),
            (b"\xEF\xBB\xBF<html>", PayloadKind::Html),
            (b"<?xml version='1.0'?><html xmlns='x'>", PayloadKind::Html),
            (b"<?xml version='1.0'?><feed>", PayloadKind::Xml),
            (b"<P>a", PayloadKind::Html),
            (b"<pfoo>", PayloadKind::Text),
            (b"<", PayloadKind::Text),
            (b"<!-- only", PayloadKind::Text),
            (b"\xFF\xFE<\0p\0>\0a\0", PayloadKind::Html),
            (b"\xFE\xFF\0a", PayloadKind::Text),
            (b"{\"a\": 1}", PayloadKind::Text),
            (b"\x89PNG\r\n\x1A\n\0\0\0", PayloadKind::Binary),
            (b"%PDF-1.4\n%\xE2\xE3\xCF\xD3", PayloadKind::Binary),
            (b"PK\x03\x04\x14\0", PayloadKind::Binary),
            (b"\x1F\x8B\x08\0", PayloadKind::Binary),
            (b"GIF89a\x01\0", PayloadKind::Binary),
            (b"\xFF\xD8\xFF\xE0", PayloadKind::Binary),
            (b"a\0b", PayloadKind::Binary),
            (b"caf\xE9 latin", PayloadKind::Binary),
        ] {
            for content_type in [None, Some(""), Some("application/octet-stream"), Some("nonsense")] {
                assert_eq!(kind(payload, content_type), expected, "{payload:?}");
            }
        }
    }

    #[test]
    fn other_text_stays_as_it_is() {
        let reading = read(b"\xEF\xBB\xBFa\r\n\r\n <b> \n", Some("text/plain"), "http://a.org/");
        assert_eq!(reading.content.unwrap(), Content { text: "a\r\n\r\n <b> \n".into(), ..Content::default() });
        assert_eq!(reading.charset, Some(("UTF-8", Rule::Mark)));
        let reading = read(b"<?xml version='1.0' encoding='latin1'?><a>\xE9", Some("application/xml"), "http://a.org/");
        assert!(reading.content.unwrap().text.ends_with('é'));
        assert_eq!(reading.charset, Some(("windows-1252", Rule::Declared)));
    }

    #[test]
    fn pages_are_read() {
        let mut reader = TextReader::new(TextOptions { equate_schemes: true, ..TextOptions::default() });
        let page = b"\xEF\xBB\xBF<title>t</title><p>caf\xC3\xA9<a href='https://a.org/b'>x</a>";
        for content_type in [Some("text/html; charset=latin1"), None] {
            let content = reader.read(page, content_type, "http://a.org/").content.unwrap();
            assert_eq!((content.title.as_deref(), &*content.text), (Some("t"), "caféx"));
            assert_eq!(content.links[0].target, "http://a.org/b");
        }
        let reading = reader.read(b"<p>caf\xE9", Some("text/html; charset=\"ISO-8859-1\""), "http://a.org/");
        assert_eq!(reading.content.unwrap().text, "café");
        assert_eq!(reading.charset, Some(("windows-1252", Rule::Header)));
        let reading = reader.read(b"\x89PNG", Some("image/png"), "http://a.org/");
        assert!(reading.content.is_none() && reading.charset.is_none());
    }

    #[test]
    fn a_picture_served_as_a_page_is_read_as_one() {
        let reading = read(b"\x89PNG\r\n\x1A\n\0\0<p>", Some("text/html"), "http://a.org/");
        assert!(reading.content.is_some());
    }
}
