//! The page under construction: its markup, the text a reader sees, and the mentions in that text.
//!
//! Text is written twice, once escaped into the markup and once plain into `seen`; a mention is a span of `seen`. So
//! the truth is what was really written, whatever links or references lie in between.

use std::fmt::Write as _;

use crate::model::Span;

/// What a page's body is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Html,
    Plain,
    Json,
}

/// A mention that a perfect extractor finds; spans are in the text seen.
#[derive(Clone, Debug)]
pub(crate) struct Marked {
    pub(crate) extractor: &'static str,
    pub(crate) span: Span,
    /// In reading order; a name may repeat (the topics of a talk).
    pub(crate) attributes: Vec<(&'static str, Span)>,
}

#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) format: Format,
    pub(crate) markup: String,
    pub(crate) seen: String,
    pub(crate) mentions: Vec<Marked>,
    /// Write `"` and `'` as references.
    pub(crate) quote_references: bool,
    /// Sentences end in a line break instead of a space.
    pub(crate) line_breaks: bool,
    first_item: bool,
}

impl Out {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            markup: String::new(),
            seen: String::new(),
            mentions: Vec::new(),
            quote_references: false,
            line_breaks: false,
            first_item: true,
        }
    }

    /// Empties the page and keeps its memory.
    pub(crate) fn restart(&mut self, format: Format) {
        self.format = format;
        self.markup.clear();
        self.seen.clear();
        self.mentions.clear();
        self.first_item = true;
    }

    /// Offset in the text seen.
    pub(crate) fn here(&self) -> u32 {
        u32::try_from(self.seen.len()).expect("pages are far below 4 GiB")
    }

    /// Visible text.
    pub(crate) fn text(&mut self, text: &str) {
        self.seen.push_str(text);
        match self.format {
            Format::Plain => self.markup.push_str(text),
            Format::Json => json_escape(text, &mut self.markup),
            Format::Html => html_escape(text, self.quote_references, &mut self.markup),
        }
    }

    pub(crate) fn number(&mut self, number: u32) {
        let start = self.seen.len();
        let _ = write!(self.seen, "{number}");
        self.markup.push_str(&self.seen[start..]);
    }

    /// Markup that no reader sees; only HTML has any.
    pub(crate) fn tag(&mut self, tag: &str) {
        if self.format == Format::Html {
            self.markup.push_str(tag);
        }
    }

    pub(crate) fn link(&mut self, target: &str, label: &str) {
        self.open_link(target);
        self.text(label);
        self.tag("</a>");
    }

    pub(crate) fn open_link(&mut self, target: &str) {
        if self.format == Format::Html {
            self.markup.push_str("<a href=\"");
            html_escape(target, false, &mut self.markup);
            self.markup.push_str("\">");
        }
    }

    /// Starts a block element (`p`, `h2`, `li`, `tr`…).
    pub(crate) fn open(&mut self, element: &str) {
        match self.format {
            Format::Html => {
                self.markup.push('<');
                self.markup.push_str(element);
                self.markup.push('>');
            }
            Format::Plain => {}
            Format::Json => {
                self.markup.push_str(if self.first_item { "\n    \"" } else { ",\n    \"" });
                self.first_item = false;
            }
        }
    }

    /// Ends it: a line break for whoever reads the page as text.
    pub(crate) fn close(&mut self, element: &str) {
        match self.format {
            Format::Html => {
                self.markup.push_str("</");
                self.markup.push_str(element);
                self.markup.push_str(">\n");
            }
            Format::Plain => self.markup.push_str("\n\n"),
            Format::Json => self.markup.push('"'),
        }
        self.seen.push('\n');
    }

    pub(crate) fn between_sentences(&mut self) {
        let gap = if self.line_breaks && self.format != Format::Json { '\n' } else { ' ' };
        self.seen.push(if self.format == Format::Html { ' ' } else { gap });
        self.markup.push(gap);
    }

    /// A mention from `start` to here.
    pub(crate) fn mark(&mut self, extractor: &'static str, start: u32, attributes: Vec<(&'static str, Span)>) {
        self.mentions.push(Marked { extractor, span: self.span_from(start), attributes });
    }

    pub(crate) fn span_from(&self, start: u32) -> Span {
        Span::new(start, self.here())
    }
}

fn html_escape(text: &str, quotes: bool, out: &mut String) {
    let special = |b: u8| matches!(b, b'&' | b'<' | b'>') || (quotes && matches!(b, b'"' | b'\''));
    let mut rest = text;
    while let Some(place) = rest.bytes().position(special) {
        out.push_str(&rest[..place]);
        out.push_str(match rest.as_bytes()[place] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#39;",
        });
        rest = &rest[place + 1..];
    }
    out.push_str(rest);
}

/// The inside of a JSON string.
pub(crate) fn json_escape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(place) = rest.bytes().position(|b| matches!(b, b'"' | b'\\' | 0..0x20)) {
        out.push_str(&rest[..place]);
        match rest.as_bytes()[place] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            control => {
                let _ = write!(out, "\\u{control:04x}");
            }
        }
        rest = &rest[place + 1..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_the_text_seen_is_not() {
        let mut out = Out::new(Format::Html);
        out.quote_references = true;
        out.open("p");
        out.link("/a?x=1&y=2", "Arts & \"Letters\"");
        out.close("p");
        assert_eq!(out.markup, "<p><a href=\"/a?x=1&amp;y=2\">Arts &amp; &quot;Letters&quot;</a></p>\n");
        assert_eq!(out.seen, "Arts & \"Letters\"\n");
    }

    #[test]
    fn json_strings_are_escaped() {
        let mut out = String::new();
        json_escape("a\"b\\c\nd\u{1}é", &mut out);
        assert_eq!(out, "a\\\"b\\\\c\\nd\\u0001é");
    }
}
