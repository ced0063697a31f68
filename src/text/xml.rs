//! XML that is no XHTML: its title and links. Its text is kept as it is.
//!
//! One pass, without a tree, that goes on whatever is wrong: an unfinished construct ends with the text, an end tag that
//! fits nothing is skipped. What counts:
//! - **Title**: the content of the first element named `title`, with any prefix, white space folded.
//! - **XLink** (`xlink:href`, or whichever prefix the document gives to that namespace): of a simple link, and of each
//!   locator of an extended one. The label is `xlink:title`, else the element's text up to a link inside it. In SVG only `a` is a link: what
//!   its other elements refer to is drawn, not followed.
//! - **Feeds**: `<link href>` of Atom, `<link>` of RSS. The label is the link's own `title`, else the title of its entry
//!   or item; its date is when that was published, else when it was last updated.
//! - `<a href>`, as in XHTML.
//!
//! - **Structure**: the names of all start and end tags, in order.
//!
//! `xml:base` of the root element holds for all links.

use std::borrow::Cow;
use std::ops::Range;

use super::TextOptions;
use super::elements::{self, ElementsWriter, Piece};
use super::html::links::{Allowance, Resolver};
use super::html::scan;
use crate::model::{Digest, Link, LinkElement, Timestamp};

const XLINK: &str = "http://www.w3.org/1999/xlink";
/// Elements inside each other of which something is known at a time: what lies deeper belongs to the last of them.
const DEPTH: usize = 256;

/// What a document says of itself besides its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct XmlFacts {
    pub(super) title: Option<String>,
    pub(super) links: Vec<Link>,
    /// Links that would take too much, see [`Allowance`].
    pub(super) links_left_out: u64,
    /// Digest of the names of its elements.
    pub(super) structure: Digest,
    /// Where its text stands among them, if that is asked for.
    pub(super) elements: Option<String>,
}

/// Reads a document; `url` is its own.
pub(super) fn read(xml: &str, url: &str, options: TextOptions) -> XmlFacts {
    let elements = options.keep_elements.then(ElementsWriter::of_xml);
    let mut pass = Pass { xml, elements, ..Pass::default() };
    pass.run();
    let elements = pass.elements.take().map(|mut elements| elements.finish(xml.len()));
    while !pass.open.is_empty() {
        pass.close_last();
    }
    let mut resolver = Resolver::new(url, pass.base.as_deref(), options.equate_schemes);
    let mut allowance = Allowance::of(xml, url);
    let structure = Digest::of(&pass.structure);
    let mut facts = XmlFacts { title: pass.title, links: Vec::new(), links_left_out: 0, structure, elements };
    for found in pass.found {
        let Some((target, kind)) = resolver.resolve(found.href.trim()) else {
            facts.links_left_out += u64::from(pass.base.is_some() && resolver.is_without_base());
            continue;
        };
        if allowance.admits(&target) {
            let Found { label, element, dated, .. } = found;
            facts.links.push(Link { target, label, kind, element: Some(element), dated });
        }
    }
    facts.links_left_out += allowance.refused;
    facts
}

/// A link before its target is resolved.
struct Found {
    href: String,
    label: String,
    element: LinkElement,
    dated: Option<Timestamp>,
}

/// An element that is open.
struct Open<'x> {
    name: &'x str,
    /// Where its text begins.
    start: usize,
    /// The link that takes its text as a label.
    label_of: Option<usize>,
    role: Role,
}

impl Open<'_> {
    fn is_entry(&self) -> bool {
        matches!(self.role, Role::Entry(_))
    }

    /// Whether its text is asked for.
    fn asks(&self) -> bool {
        self.label_of.is_some() || !matches!(self.role, Role::Other | Role::Entry(_))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Other,
    /// The first `title` of the document.
    Title,
    /// The title of an entry or item.
    EntryTitle,
    /// `link` of RSS, whose text is its target.
    Target,
    /// When an entry or item was published or updated.
    Published,
    Updated,
    /// `entry` or `item`: the first of its links.
    Entry(usize),
}

#[derive(Default)]
struct Pass<'x> {
    xml: &'x str,
    title: Option<String>,
    base: Option<String>,
    /// Prefixes of the XLink namespace besides the usual one.
    prefixes: Vec<&'x str>,
    is_svg: bool,
    begun: bool,
    open: Vec<Open<'x>>,
    /// Open entries, and open elements whose text is asked for.
    entries: usize,
    asking: usize,
    /// The title of the entry that is open.
    entry_title: Option<String>,
    /// When it was published and when updated.
    entry_dates: [Option<Timestamp>; 2],
    structure: Vec<u8>,
    elements: Option<ElementsWriter>,
    /// Elements that are open beyond the depth that is noted.
    beyond: usize,
    /// All character data so far.
    text: String,
    found: Vec<Found>,
}

fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// White space folded, at the ends removed.
pub(super) fn folded(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

impl<'x> Pass<'x> {
    fn run(&mut self) {
        let (xml, bytes) = (self.xml, self.xml.as_bytes());
        let mut at = 0;
        while at < bytes.len() {
            let Some(tag) = memchr::memchr(b'<', &bytes[at..]) else {
                self.characters(&xml[at..]);
                self.piece(Piece::Referring, xml.len());
                return;
            };
            self.characters(&xml[at..at + tag]);
            self.piece(Piece::Referring, at + tag);
            at = self.markup(at + tag);
            self.piece(Piece::Markup, at);
        }
    }

    fn piece(&mut self, piece: Piece, upto: usize) {
        if let Some(elements) = &mut self.elements {
            elements.piece(piece, upto);
        }
    }

    /// Character data counts only where something may ask for it.
    fn characters(&mut self, text: &str) {
        if !text.is_empty() && self.asking > 0 {
            self.text.push_str(&decoded(text));
        }
    }

    /// At a `<`: returns the position after what it begins.
    fn markup(&mut self, at: usize) -> usize {
        let bytes = self.xml.as_bytes();
        let rest = &bytes[at..];
        if rest.starts_with(b"<!--") {
            return scan::comment(bytes, at + 4);
        }
        if rest.starts_with(b"<![CDATA[") {
            let (end, after) = scan::cdata(bytes, at + 9);
            self.piece(Piece::Markup, at + 9);
            self.piece(Piece::Verbatim, end);
            if self.asking > 0 {
                self.text.push_str(&self.xml[at + 9..end]);
            }
            return after;
        }
        match rest.get(1) {
            Some(b'!') => doctype(bytes, at + 2),
            Some(b'?') => memchr::memmem::find(rest, b"?>").map_or(bytes.len(), |end| at + end + 2),
            Some(b'/') => self.end_tag(at + 2),
            Some(byte) if byte.is_ascii_alphabetic() || *byte == b'_' || *byte >= 0x80 => self.start_tag(at + 1),
            _ => at + 1,
        }
    }

    fn name(&self, at: usize) -> Range<usize> {
        let rest = &self.xml.as_bytes()[at..];
        let end = rest.iter().position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/' | b'<' | b'='));
        at..at + end.unwrap_or(rest.len())
    }

    fn start_tag(&mut self, at: usize) -> usize {
        let (xml, bytes) = (self.xml, self.xml.as_bytes());
        let name = self.name(at);
        let mut attributes: Vec<(&'x str, &'x str)> = Vec::new();
        let end = scan::attributes(bytes, name.end, |name, value| attributes.push((&xml[name], &xml[value])));
        let Some(end) = end else { return bytes.len() };
        let name = &xml[name];
        self.structure.push(b'<');
        self.structure.extend(name.as_bytes());
        for (attribute, value) in &attributes {
            if let Some(prefix) = attribute.strip_prefix("xmlns:").filter(|_| *value == XLINK) {
                self.prefixes.push(prefix);
            }
        }
        if !self.begun {
            self.begun = true;
            self.is_svg = local(name) == "svg";
            self.base = value_of(&attributes, "xml:base");
        }
        self.element(name, &attributes, end.closed);
        self.note_start(name, end.closed, end.at);
        end.at
    }

    fn element(&mut self, name: &'x str, attributes: &[(&'x str, &'x str)], closed: bool) {
        let in_entry = self.entries > 0;
        let kind = local(name);
        // One element at a time asks for text, so that what is asked is no more than what is there.
        let free = self.asking == 0;
        let role = match kind {
            "title" if free && in_entry && self.title.is_some() => Role::EntryTitle,
            "title" if free && self.title.is_none() => Role::Title,
            "entry" | "item" => Role::Entry(self.found.len()),
            "published" | "pubDate" | "issued" if free && in_entry => Role::Published,
            "updated" | "date" | "modified" if free && in_entry => Role::Updated,
            "link" if free && value_of(attributes, "href").is_none() && !closed => Role::Target,
            _ => Role::Other,
        };
        let xlink = self.xlink(attributes).filter(|_| !self.is_svg || kind == "a");
        let element = match (&xlink, kind) {
            (Some(_), _) => LinkElement::Xlink,
            (None, "link") => LinkElement::Feed,
            (None, _) => LinkElement::A,
        };
        let (href, label) = match xlink {
            Some((href, title)) => (Some(href), title),
            None if kind == "a" => (value_of(attributes, "href"), None),
            // The label of an entry's link is the entry's title, which its own text is not.
            None if kind == "link" => {
                (value_of(attributes, "href"), value_of(attributes, "title").or(Some(String::new())))
            }
            None => (None, None),
        };
        if href.is_some() {
            self.end_label();
        }
        let label_of = href.map(|href| {
            let takes_text = label.is_none();
            let label = folded(&label.unwrap_or_default());
            self.found.push(Found { href, label, element, dated: None });
            takes_text.then_some(self.found.len() - 1)
        });
        if matches!(role, Role::Entry(_)) {
            self.entry_title = None;
            self.entry_dates = [None; 2];
        }
        let start = self.text.len();
        if !closed && self.open.len() < DEPTH {
            let open = Open { name, start, label_of: label_of.flatten(), role };
            self.entries += usize::from(open.is_entry());
            self.asking += usize::from(open.asks());
            self.open.push(open);
        } else if role == Role::Title {
            self.title = Some(String::new());
        }
    }

    /// Notes an element under its local name. Its tag ends at `at`.
    fn note_start(&mut self, name: &str, closed: bool, at: usize) {
        let Some(elements) = &mut self.elements else { return };
        elements.piece(Piece::Markup, at);
        if elements.depth() < elements::DEPTH {
            elements.open(local(name), at);
            if closed {
                elements.close_to(elements.depth() - 1, at);
            }
        } else if !closed {
            self.beyond += 1;
        }
    }

    /// Notes where an element ends, whose tag begins at `at`: what was left open in it ends too.
    fn note_end(&mut self, name: &str, at: usize) {
        let Some(elements) = &mut self.elements else { return };
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        let depth =
            elements.open_names().find(|(_, open)| open.eq_ignore_ascii_case(local(name))).map(|(depth, _)| depth);
        if let Some(depth) = depth {
            elements.close_to(depth, at);
        }
    }

    /// A link inside another one ends its label.
    fn end_label(&mut self) {
        if let Some(open) = self.open.iter_mut().rfind(|open| open.label_of.is_some()) {
            let link = open.label_of.take().expect("it was just looked for");
            self.found[link].label = folded(&self.text[open.start..]);
            self.asking -= usize::from(!open.asks());
        }
    }

    /// The target and the title of an XLink, if these attributes make one.
    fn xlink(&self, attributes: &[(&'x str, &'x str)]) -> Option<(String, Option<String>)> {
        let of = |wanted: &str| {
            attributes.iter().find_map(|(name, value)| {
                let (prefix, local) = name.split_once(':')?;
                let known = prefix == "xlink" || self.prefixes.contains(&prefix);
                (known && local == wanted).then(|| decoded(value).into_owned())
            })
        };
        let followed = of("type").is_none_or(|kind| kind == "simple" || kind == "locator");
        let href = of("href").filter(|_| followed)?;
        Some((href, of("title")))
    }

    fn end_tag(&mut self, at: usize) -> usize {
        let bytes = self.xml.as_bytes();
        let name = &self.xml[self.name(at)];
        self.structure.push(b'/');
        self.structure.extend(name.as_bytes());
        self.note_end(name, at - 2);
        // An end tag closes what was left open inside its element.
        if let Some(place) = self.open.iter().rposition(|open| open.name == name) {
            while self.open.len() > place {
                self.close_last();
            }
        }
        memchr::memchr(b'>', &bytes[at..]).map_or(bytes.len(), |end| at + end + 1)
    }

    fn close_last(&mut self) {
        let Some(open) = self.open.pop() else { return };
        self.entries -= usize::from(open.is_entry());
        self.asking -= usize::from(open.asks());
        if let Some(link) = open.label_of {
            self.found[link].label = folded(&self.text[open.start..]);
        }
        match open.role {
            Role::Other => {}
            Role::Title => self.title = Some(folded(&self.text[open.start..])),
            Role::EntryTitle => {
                let text = folded(&self.text[open.start..]);
                self.entry_title.get_or_insert(text);
            }
            Role::Target => {
                let href = folded(&self.text[open.start..]);
                if !href.is_empty() {
                    self.found.push(Found { href, label: String::new(), element: LinkElement::Feed, dated: None });
                }
            }
            Role::Published => {
                self.entry_dates[0] = self.entry_dates[0].or(Timestamp::parse_feed(&self.text[open.start..]));
            }
            Role::Updated => {
                self.entry_dates[1] = self.entry_dates[1].or(Timestamp::parse_feed(&self.text[open.start..]));
            }
            Role::Entry(first) => {
                let title = self.entry_title.take().unwrap_or_default();
                let [published, updated] = std::mem::take(&mut self.entry_dates);
                for found in &mut self.found[first..] {
                    if found.label.is_empty() {
                        found.label.clone_from(&title);
                    }
                    found.dated = found.dated.or(published).or(updated);
                }
            }
        }
        // Nobody asks any more for what was said inside of it.
        if self.asking == 0 {
            self.text.truncate(open.start);
        }
    }
}

/// The value of an attribute.
fn value_of(attributes: &[(&str, &str)], wanted: &str) -> Option<String> {
    attributes.iter().find(|(name, _)| *name == wanted).map(|(_, value)| decoded(value).into_owned())
}

/// The position after a declaration; one of a document type may hold others in brackets.
fn doctype(bytes: &[u8], at: usize) -> usize {
    let end = memchr::memchr(b'>', &bytes[at..]).map_or(bytes.len(), |end| at + end);
    match memchr::memchr(b'[', &bytes[at..end]) {
        None => (end + 1).min(bytes.len()),
        Some(inner) => {
            memchr::memmem::find(&bytes[at + inner..], b"]>").map_or(bytes.len(), |end| at + inner + end + 2)
        }
    }
}

/// Text with its character references resolved. Entities that the document declares itself stay as they are.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.as_bytes().iter().take(12).position(|byte| *byte == b';');
        let found = end.and_then(|end| Some((character(&rest[1..end])?, end + 1)));
        let (c, taken) = found.unwrap_or(('&', 1));
        out.push(c);
        rest = &rest[taken..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn character(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let number = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(number).filter(|c| *c != '\0')
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn facts(xml: &str) -> (Option<String>, Vec<(String, String)>) {
        let facts = read(xml, "http://a.org/x/feed.xml", TextOptions::default());
        (facts.title, facts.links.into_iter().map(|link| (link.target, link.label)).collect())
    }

    fn links(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(target, label)| ((*target).to_owned(), (*label).to_owned())).collect()
    }

    #[test]
    fn links_of_xlink_are_found() {
        let (title, found) = facts(
            "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x 'y>'>]><a xmlns:l='http://www.w3.org/1999/xlink'>\
             <doc:title>Of &lt;drugs&gt;\n and &#38; more</doc:title><title>second</title>\
             <ref l:type='simple' l:href='b.xml'>see <b>B</b></ref><ref xlink:href='/c' xlink:title='the third'>not this</ref>\
             <ext l:type='extended'><loc l:type='locator' l:href='d?x=1&amp;y=2' l:title='D'/><arc l:type='arc' l:href='no'/></ext>\
             <x href='no'/><a href='e'>E <![CDATA[<&>]]></a><ref xlink:href='mailto:x@y'>m</ref></a>",
        );
        assert_eq!(title.as_deref(), Some("Of <drugs> and & more"));
        let expected = [
            ("http://a.org/x/b.xml", "see B"),
            ("http://a.org/c", "the third"),
            ("http://a.org/x/d?x=1&y=2", "D"),
            ("http://a.org/x/e", "E <&>"),
        ];
        assert_eq!(found, links(&expected));
    }

    #[test]
    fn feeds_have_titles_and_links() {
        let (title, found) = facts(
            "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://b.org/'><title>Feed</title><link href='/'/>\
             <entry><link href='one'/><title>First &amp; best</title></entry>\
             <entry><title>Second</title><link rel='alternate' title='own' href='two'/></entry></feed>",
        );
        assert_eq!(title.as_deref(), Some("Feed"));
        assert_eq!(
            found,
            links(&[("http://b.org/", ""), ("http://b.org/one", "First & best"), ("http://b.org/two", "own")])
        );
        let (title, found) = facts(
            "<rss><channel><title>News</title><link>http://c.org/</link>\
             <item><title>Rain</title><link> http://c.org/rain </link></item>\
             <item><link>http://c.org/sun</link><title><![CDATA[Sun]]></title></item></channel></rss>",
        );
        assert_eq!(title.as_deref(), Some("News"));
        assert_eq!(found, links(&[("http://c.org/", ""), ("http://c.org/rain", "Rain"), ("http://c.org/sun", "Sun")]));
    }

    #[test]
    fn entries_of_feeds_are_dated() {
        let dates = |xml: &str| -> Vec<Option<String>> {
            let links = read(xml, "http://a.org/feed.xml", TextOptions::default()).links.into_iter();
            links.map(|link| link.dated.map(|dated| dated.to_string())).collect()
        };
        let day = |day: &str| Some(format!("{day}T12:00:00Z"));
        assert_eq!(
            dates(
                "<feed><title>F</title><updated>2024-01-09T12:00:00Z</updated><link href='/'/>\
                 <entry><updated>2024-01-03T12:00:00Z</updated><link href='a'/><published>2024-01-02T12:00:00Z</published></entry>\
                 <entry><link href='b'/><updated>2024-01-03T13:00:00+01:00</updated></entry><entry><link href='c'/></entry></feed>"
            ),
            [None, day("2024-01-02"), day("2024-01-03"), None]
        );
        assert_eq!(
            dates(
                "<rss><channel><title>N</title><pubDate>Mon, 01 Jan 2024 12:00:00 GMT</pubDate>\
                 <item><pubDate> Tue, 02 Jan 2024 14:00:00 +0200 </pubDate><link>http://c.org/rain</link></item>\
                 <item><link>http://c.org/sun</link><pubDate>soon</pubDate></item></channel></rss>"
            ),
            [day("2024-01-02"), None]
        );
    }

    #[test]
    fn structure_is_the_order_of_elements() {
        let structure = |xml: &str| read(xml, "http://a.org/", TextOptions::default()).structure;
        assert_eq!(structure("<a><b x='1'>t</b></a>"), structure("<a>\n<b>u</b><!-- <c/> --></a>"));
        assert_ne!(structure("<a><b/></a>"), structure("<a><c/></a>"));
        assert_ne!(structure("<a><b/></a>"), structure("<a></a><b/>"));
    }

    #[test]
    fn what_svg_draws_is_no_link() {
        let (title, found) = facts(
            "<svg xmlns:xlink='http://www.w3.org/1999/xlink'><title>Plan</title><image xlink:href='i.png'/>\
             <use xlink:href='#x'/><a xlink:href='b'><text>B</text></a></svg>",
        );
        assert_eq!((title.as_deref(), found), (Some("Plan"), links(&[("http://a.org/x/b", "B")])));
    }

    #[test]
    fn whatever_is_wrong_ends_with_the_text() {
        for xml in [
            "",
            "<",
            "<a",
            "<a b='",
            "<!",
            "<![CDATA[",
            "<!DOCTYPE [",
            "<?x",
            "</",
            "</a>",
            "<a></b></a>",
            "<title>x",
            "&#x;&#0;&",
        ] {
            facts(xml);
        }
        assert_eq!(facts("<a><title>x").0.as_deref(), Some("x"));
        assert_eq!(facts("<a/>").0, None);
        assert_eq!(facts("<a><title/></a>").0.as_deref(), Some(""));
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(xml in "(<|>|/|!|\\[|\\]|title|link|a|item| |href=|'|\"|&|;|#x4|é|-|xlink:href='b'){0,40}") {
            facts(&xml);
        }
    }
}
