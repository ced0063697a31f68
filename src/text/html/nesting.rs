//! Which elements of a page stand in which, from its tags alone.
//!
//! Elements are as the page writes them: `html`, `head`, `body` and `tbody` are not made up where they are not written.
//! End tags that may be left out are put in as the HTML standard says: a `li` ends with the next one of its list, a cell
//! with the next cell, a `p` with the next block. An end tag ends what was left open in its element, but nothing outside
//! of its cell or table; one that fits nothing is passed over. `</body>` and `</html>` end nothing: what follows them
//! belongs to the body. What is not shown is no element: titles, scripts, and what stands in templates and fallback.

use crate::text::elements::{DEPTH, ElementsWriter};

/// Elements that have no content.
const VOID: [&str; 17] = [
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta",
    "param", "source", "track", "wbr",
];
/// What stands in one of these ends nothing outside of it.
const BOUNDS: [&str; 8] = ["table", "td", "th", "caption", "button", "object", "svg", "math"];
/// Parts of a table, which only the table itself bounds.
const TABLE: [&str; 10] = ["table", "caption", "colgroup", "col", "thead", "tbody", "tfoot", "tr", "td", "th"];
const HEADINGS: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];
/// Elements that end a paragraph.
const BLOCKS: [&str; 35] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "center",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "hr",
    "listing",
    "main",
    "menu",
    "nav",
    "ol",
    "p",
    "pre",
    "search",
    "section",
    "summary",
    "ul",
];

/// Notes elements while a page is read.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    writer: ElementsWriter,
    /// Elements that are open beyond the depth that is noted.
    beyond: usize,
    /// The name of the tag, in lower case.
    name: String,
}

impl Nesting {
    pub(super) fn clear(&mut self) {
        self.writer.clear();
        self.beyond = 0;
    }

    /// A start tag, where the page's text has so many bytes. `closed`: it is a whole element.
    pub(super) fn start(&mut self, name: &str, at: usize, closed: bool) {
        self.take_name(name);
        let name = self.name.as_str();
        // What lies too deep is only counted, so that no page is slow.
        if let Some((ended, bounds)) = ends(name).filter(|_| self.beyond == 0) {
            let inside = self.writer.open_names().take_while(|(_, open)| !bounds.contains(open));
            let ended = inside.filter(|(_, open)| ended.contains(open)).last();
            if let Some(depth) = ended.map(|(depth, _)| depth) {
                self.writer.close_to(depth, at);
            }
        }
        let closed = closed || VOID.contains(&name);
        if self.writer.depth() < DEPTH {
            self.writer.open(name, at);
            if closed {
                self.writer.close_to(self.writer.depth() - 1, at);
            }
        } else if !closed {
            self.beyond += 1;
        }
    }

    pub(super) fn end(&mut self, name: &str, at: usize) {
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        self.take_name(name);
        let name = self.name.as_str();
        if matches!(name, "body" | "html") {
            return;
        }
        let is_meant = |open: &str| open == name || (HEADINGS.contains(&name) && HEADINGS.contains(&open));
        let bounds: &[&str] = if TABLE.contains(&name) { &["table"] } else { &BOUNDS };
        let reaches = |open: &str| is_meant(open) || bounds.contains(&open);
        let ended = self.writer.open_names().find(|(_, open)| reaches(open)).filter(|(_, open)| is_meant(open));
        if let Some(depth) = ended.map(|(depth, _)| depth) {
            self.writer.close_to(depth, at);
        }
    }

    fn take_name(&mut self, name: &str) {
        self.name.clear();
        self.name.push_str(name);
        self.name.make_ascii_lowercase();
    }

    /// The elements of the page, whose text has so many bytes.
    pub(super) fn finish(&mut self, text_bytes: usize) -> String {
        self.writer.finish(text_bytes)
    }
}

/// The open elements that a start tag ends, unless one of the others stands between.
fn ends(name: &str) -> Option<(&'static [&'static str], &'static [&'static str])> {
    const IN_LIST: &[&str] =
        &["ul", "ol", "menu", "dir", "table", "td", "th", "caption", "button", "object", "svg", "math"];
    const IN_PAIRS: &[&str] = &["dl", "table", "td", "th", "caption", "button", "object", "svg", "math"];
    Some(match name {
        "li" => (&["li", "p"], IN_LIST),
        "dt" | "dd" => (&["dt", "dd", "p"], IN_PAIRS),
        "option" => (&["option"], &["select", "optgroup", "datalist"]),
        "optgroup" => (&["option", "optgroup"], &["select"]),
        "td" | "th" => (&["td", "th", "caption"], &["tr", "table"]),
        "tr" => (&["td", "th", "tr", "caption", "colgroup"], &["table"]),
        "thead" | "tbody" | "tfoot" => {
            (&["td", "th", "tr", "thead", "tbody", "tfoot", "caption", "colgroup"], &["table"])
        }
        "rt" | "rp" | "rb" | "rtc" => (&["rt", "rp", "rb", "rtc"], &["ruby"]),
        "body" => (&["head"], &[]),
        "a" => (&["a"], &BOUNDS),
        "table" | "xmp" | "plaintext" => (&["p"], &BOUNDS),
        name if BLOCKS.contains(&name) => (&["p"], &BOUNDS),
        _ => return None,
    })
}
