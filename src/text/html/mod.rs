//! HTML to text, title and links, in one linear pass.
//!
//! **Problem.** Reading HTML is the largest cost of a first ingest, and extraction needs the *same* text for the same
//! bytes for ever. A tree is not needed for that, and building one is what makes parsers slow (and, on hostile pages,
//! quadratic).
//!
//! **Idea.** The tokenizer of the HTML standard, written as jumps: text is copied in runs of eight bytes at a time,
//! comments, scripts and quoted values are crossed by `memchr`, tag names become a number that indexes a table, and
//! attributes are skipped unless the element is a link. White space is folded while copying (`fold`); a link's label
//! is a range of the text, so nothing is collected twice.
//!
//! **Cost.** Every byte is looked at a bounded number of times, whatever the page contains; memory is the text plus
//! one entry per link. Unfinished constructs end with the page.
//!
//! # The rules
//! Tokens are those of the HTML standard (the tests compare with `html5ever`'s tokenizer). What they mean:
//! - **Visible** is decided by element, never by style or the `hidden` attribute. `script`, `style`, `template`, `noscript`,
//!   `iframe`, `noframes`, `noembed` and titles are not text, nor is any attribute (`alt` included). There is no special rule
//!   for `head`: what may stand in it is invisible anyway, and stray text in it belongs to the body.
//! - **Fallback** is not shown either: what stands in `video`, `audio`, `canvas` and `object` for programs that cannot show
//!   them, and in `rp` for those that know no ruby. One that is left open ends with the block around it, `rp` with the next
//!   part of the ruby.
//! - **Lines.** Every block element starts and ends a line, as does `<br>`. There are no empty lines, no white space at
//!   the ends of a line, no line break at the end of the text.
//! - **White space** (space, tab, LF, FF, CR; a no-break space is none) is folded to one space, also where it was
//!   written as a character reference. In `pre`, `listing`, `xmp`, `plaintext` and `textarea` line breaks are kept
//!   and everything else is folded all the same.
//! - **Cells** of a table row (`td`, `th`) are separated by one tab: the only tab that occurs in a text.
//! - **Title**: the first `<title>` outside SVG and templates, folded; empty is not the same as absent.
//! - **Links**: `<a href>`, `<area href>`, `<frame src>`, `<iframe src>` and what `<meta http-equiv=refresh>` leads to, in
//!   page order, whose target is http or https; in SVG also `<a xlink:href>`. The label is the text up to `</a>` or the
//!   next `<a>`, on one line; where there is none, the `alt` of the pictures there. An area's is its `alt`, a frame's its
//!   `title`, else its `name`. The first `<base href>` of the page holds for all links.
//!   What targets may take is bounded, each alone and all together (`links`); how many were left out for it is said.
//! - **Canonical**: where the first `<link rel=canonical href>` leads to.
//! - **Structure**: the names of all start and end tags that belong to what is shown, in lower case and page order.
//! - **SVG and MathML**: their text is text, `title`, `desc`, `style`, `script` and annotations in them are not; CDATA sections are
//!   text. HTML elements that cannot occur there end them, `foreignObject` holds HTML.
//! - NUL is dropped from text, and U+FFFD where the standard says so (raw text, attributes).
//! - **XHTML** (served as such): `<x/>` is an element without content, and CDATA sections are text everywhere.

mod anchors;
mod entity;
mod fallback;
mod fold;
pub(super) mod links;
mod nesting;
#[cfg(test)]
mod oracle;
pub(super) mod scan;
mod tags;
#[cfg(test)]
mod tests;

use std::ops::Range;

use memchr::memchr;

use crate::model::{Content, Digest};
use anchors::{Anchors, Leads};
use fallback::Fallback;
use fold::{Fold, Gap};
use nesting::Nesting;
use scan::TagEnd;
use tags::{Act, Tag};

/// Reads pages; keeps its buffers from one to the next.
#[derive(Debug, Default)]
pub(crate) struct HtmlReader {
    text: Fold,
    title: Fold,
    structure: Vec<u8>,
    nesting: Nesting,
    links_left_out: u64,
}

/// How to read a page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HtmlOptions {
    /// The page was served as XHTML.
    pub xml: bool,
    /// Write https targets as http, as page URLs are under the option of that name.
    pub equate_schemes: bool,
    /// Note where the text stands among the elements.
    pub keep_elements: bool,
}

impl HtmlReader {
    /// `url` is the page's own, for its links.
    pub(crate) fn read(&mut self, html: &str, url: &str, options: HtmlOptions) -> Content {
        self.text.clear();
        self.title.clear();
        self.structure.clear();
        self.nesting.clear();
        let mut pass = Pass {
            html,
            bytes: html.as_bytes(),
            xml: options.xml,
            text: &mut self.text,
            title: &mut self.title,
            structure: &mut self.structure,
            nesting: options.keep_elements.then_some(&mut self.nesting),
            has_title: false,
            anchors: Anchors::default(),
            pre: 0,
            templates: 0,
            foreign: 0,
            islands: Vec::new(),
            unseen: None,
            fallback: None,
        };
        pass.run();
        let Pass { has_title, mut anchors, .. } = pass;
        anchors.close(self.text.len());
        let Leads { links, canonical, left_out } = anchors.resolve(self.text.as_str(), html, url, options);
        self.links_left_out = left_out;
        let elements = options.keep_elements.then(|| self.nesting.finish(self.text.len()));
        // The buffer serves again, unless it is so large that a copy of it would count.
        let large = self.text.len() > LARGE;
        let text = if large { std::mem::take(&mut self.text).into_string() } else { self.text.as_str().to_owned() };
        let structure = Some(Digest::of(&self.structure));
        let title = has_title.then(|| self.title.as_str().to_owned());
        Content { title, text, links, canonical, structure, elements }
    }

    /// Links of the last page that would have taken too much.
    pub(crate) fn links_left_out(&self) -> u64 {
        self.links_left_out
    }
}

/// Bytes of a text that is not copied out of the buffer.
const LARGE: usize = 1 << 20;

/// An element of foreign content that is not shown: everything up to its end tag is skipped.
struct Unseen<'h> {
    name: &'h [u8],
    depth: usize,
}

/// State of one pass over one page.
struct Pass<'h, 'r> {
    html: &'h str,
    bytes: &'h [u8],
    xml: bool,
    text: &'r mut Fold,
    title: &'r mut Fold,
    structure: &'r mut Vec<u8>,
    nesting: Option<&'r mut Nesting>,
    has_title: bool,
    anchors: Anchors<'h>,
    /// Open `pre` elements.
    pre: usize,
    /// Open `template` elements; nothing in them counts.
    templates: usize,
    /// Open `svg` and `math` elements since HTML was left.
    foreign: usize,
    /// Values of `foreign` outside each open `foreignObject`.
    islands: Vec<usize>,
    unseen: Option<Unseen<'h>>,
    fallback: Option<Fallback<'h>>,
}

impl<'h> Pass<'h, '_> {
    fn run(&mut self) {
        let (html, bytes) = (self.html, self.bytes);
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at = match byte {
                b'<' => self.markup(at),
                _ if self.is_hidden() => at + memchr(b'<', &bytes[at..]).unwrap_or(bytes.len() - at),
                b'&' => at + self.reference(at),
                b' ' | b'\n' | b'\t' | b'\r' | b'\x0C' => self.text.spaces(bytes, at),
                0 => at + 1,
                _ => self.text.run(html, at),
            };
        }
    }

    /// Inside something that is not shown?
    #[inline]
    fn is_hidden(&self) -> bool {
        self.templates > 0 || self.unseen.is_some() || self.fallback.is_some()
    }

    /// Writes what the `&` at `at` stands for; returns how many bytes it took.
    #[inline]
    fn reference(&mut self, at: usize) -> usize {
        entity::write(self.text, &self.bytes[at..])
    }

    fn literal(&mut self, text: &str) {
        if !self.is_hidden() {
            self.text.push(text);
        }
    }

    /// At a `<`: returns the position after whatever it begins.
    #[inline]
    fn markup(&mut self, at: usize) -> usize {
        let bytes = self.bytes;
        match bytes.get(at + 1) {
            Some(byte) if byte.is_ascii_alphabetic() => self.start_tag(at + 1),
            Some(b'/') => match bytes.get(at + 2) {
                Some(byte) if byte.is_ascii_alphabetic() => self.end_tag(at + 2),
                Some(_) => scan::bracket(bytes, at + 2),
                None => {
                    self.literal("</");
                    at + 2
                }
            },
            Some(b'!') => self.declaration(at),
            Some(b'?') => scan::bracket(bytes, at + 2),
            _ => {
                self.literal("<");
                at + 1
            }
        }
    }

    /// Comment, doctype, CDATA section.
    fn declaration(&mut self, at: usize) -> usize {
        let bytes = self.bytes;
        let rest = &bytes[at..];
        if rest.starts_with(b"<!--") {
            return scan::comment(bytes, at + 4);
        }
        if rest.starts_with(b"<![CDATA[") && (self.foreign > 0 || self.xml) {
            let (end, after) = scan::cdata(bytes, at + 9);
            if !self.is_hidden() {
                self.character_data(at + 9..end);
            }
            return after;
        }
        scan::bracket(bytes, at + 2)
    }

    /// Text of a CDATA section: without markup and references; NUL is dropped as in other text.
    fn character_data(&mut self, range: Range<usize>) {
        for piece in self.html[range].split('\0') {
            self.text.literal(piece);
        }
    }

    #[inline]
    fn start_tag(&mut self, at: usize) -> usize {
        let bytes = self.bytes;
        let Some((tag, name_end)) = tags::name(bytes, at) else {
            return bytes.len();
        };
        if self.fallback.is_some() {
            self.in_fallback(tag, |fallback, is_block| fallback.start(&bytes[at..name_end], is_block));
        }
        if tag.act == Act::Nothing && self.foreign == 0 {
            // Nearly all tags come here. Hidden content makes no gap, since that would show in the text after it.
            let is_hidden = self.is_hidden();
            if !is_hidden {
                self.text.gap(tag.gap);
            }
            return match scan::attributes(bytes, name_end, |_, _| {}) {
                Some(end) => {
                    if !is_hidden {
                        self.element(b'<', at..name_end, end.closed && self.xml);
                    }
                    end.at
                }
                None => bytes.len(),
            };
        }
        self.special_tag(tag, at..name_end)
    }

    /// Notes a tag as a part of the page's structure. `closed`: it is a whole element.
    #[inline]
    fn element(&mut self, mark: u8, name: Range<usize>, closed: bool) {
        if let Some(nesting) = &mut self.nesting {
            let (name, at) = (&self.html[name.clone()], self.text.len());
            if mark == b'<' { nesting.start(name, at, closed) } else { nesting.end(name, at) }
        }
        self.structure.push(mark);
        for &byte in &self.bytes[name] {
            match byte {
                0 => self.structure.extend("\u{FFFD}".as_bytes()),
                _ => self.structure.push(byte.to_ascii_lowercase()),
            }
        }
    }

    fn shown_element(&mut self, tag: Tag, mark: u8, name: Range<usize>, closed: bool) {
        if tag.is_shown() && !self.is_hidden() {
            let is_foreign = tag.act == Act::Foreign || (self.foreign > 0 && !tag.breakout);
            self.element(mark, name, closed && (self.xml || is_foreign));
        }
    }

    /// A tag where fallback is being read: `ends` tells whether it ends that.
    #[cold]
    fn in_fallback(&mut self, tag: Tag, ends: impl FnOnce(&mut Fallback<'h>, bool) -> bool) {
        let is_block = tag.gap != Gap::None && self.foreign == 0 && self.templates == 0;
        if self.fallback.as_mut().is_some_and(|fallback| ends(fallback, is_block)) {
            self.fallback = None;
        }
    }

    #[inline(never)]
    fn special_tag(&mut self, tag: Tag, name: Range<usize>) -> usize {
        match tag.act {
            Act::Anchor | Act::Area | Act::Base => return self.link_tag(tag, name),
            Act::Frame | Act::Iframe | Act::Image | Act::Meta | Act::Link => return self.source_tag(tag, name),
            _ => {}
        }
        let bytes = self.bytes;
        let Some(end) = scan::attributes(bytes, name.end, |_, _| {}) else {
            return bytes.len();
        };
        self.shown_element(tag, b'<', name.clone(), end.closed);
        let name = &bytes[name];
        if self.foreign > 0 {
            if tag.breakout && self.unseen.is_none() {
                self.foreign = 0;
            } else {
                self.foreign_tag(tag, name, end.closed);
                return end.at;
            }
        }
        if !self.is_hidden() {
            self.text.gap(tag.gap);
        }
        if self.xml && end.closed {
            return end.at;
        }
        match tag.act {
            Act::Pre => {
                if !self.is_hidden() {
                    self.pre += 1;
                    self.text.keep_lines = true;
                }
                end.at
            }
            Act::Template => {
                self.templates += 1;
                end.at
            }
            Act::Fallback => {
                if !self.is_hidden() {
                    self.fallback = Some(Fallback::new(name));
                }
                end.at
            }
            Act::Foreign => {
                if !end.closed {
                    self.foreign += 1;
                }
                end.at
            }
            Act::Script => scan::script(bytes, end.at),
            Act::Hidden => scan::raw_text(bytes, end.at, name),
            Act::Title => self.title(end.at, name),
            Act::Textarea | Act::Xmp => self.raw_lines(tag.act, end.at, name),
            Act::Plaintext => {
                if !self.is_hidden() {
                    self.text.keep_lines = true;
                    self.text.literal(&self.html[end.at..]);
                }
                bytes.len()
            }
            Act::Nothing
            | Act::Anchor
            | Act::Area
            | Act::Base
            | Act::Frame
            | Act::Iframe
            | Act::Image
            | Act::Meta
            | Act::Link
            | Act::Annotation
            | Act::Island
            | Act::Desc => end.at,
        }
    }

    /// A start tag inside SVG or MathML.
    fn foreign_tag(&mut self, tag: Tag, name: &'h [u8], closed: bool) {
        if let Some(unseen) = &mut self.unseen {
            if !closed && unseen.name.eq_ignore_ascii_case(name) {
                unseen.depth += 1;
            }
            return;
        }
        if !self.is_hidden() {
            self.text.gap(tag.gap);
        }
        if closed {
            return;
        }
        match tag.act {
            Act::Foreign => self.foreign += 1,
            Act::Island => {
                self.islands.push(self.foreign);
                self.foreign = 0;
            }
            Act::Title | Act::Desc | Act::Script | Act::Annotation => self.unseen = Some(Unseen { name, depth: 1 }),
            Act::Hidden if name.eq_ignore_ascii_case(b"style") => self.unseen = Some(Unseen { name, depth: 1 }),
            _ => {}
        }
    }

    /// Reads a title from `start`; returns where its end tag begins.
    fn title(&mut self, start: usize, name: &[u8]) -> usize {
        let end = scan::raw_text(self.bytes, start, name);
        if !self.has_title && !self.is_hidden() {
            self.has_title = true;
            entity::write_all(self.title, &self.html[start..end]);
        }
        end
    }

    /// Reads the content of `textarea` or `xmp`; returns where its end tag begins.
    fn raw_lines(&mut self, act: Act, start: usize, name: &[u8]) -> usize {
        let end = scan::raw_text(self.bytes, start, name);
        if !self.is_hidden() {
            self.text.keep_lines = true;
            let content = &self.html[start..end];
            if act == Act::Textarea {
                entity::write_all(self.text, content);
            } else {
                self.text.literal(content);
            }
            self.text.keep_lines = self.pre > 0;
        }
        end
    }

    #[inline]
    fn end_tag(&mut self, at: usize) -> usize {
        let bytes = self.bytes;
        let Some((tag, name_end)) = tags::name(bytes, at) else {
            return bytes.len();
        };
        let Some(TagEnd { at: after, .. }) = scan::attributes(bytes, name_end, |_, _| {}) else {
            return bytes.len();
        };
        if self.fallback.is_some() {
            self.in_fallback(tag, |fallback, is_block| fallback.end(&bytes[at..name_end], is_block));
        }
        if tag.act == Act::Nothing && self.foreign == 0 {
            if !self.is_hidden() {
                self.text.gap(tag.gap);
                self.element(b'/', at..name_end, false);
            }
        } else {
            self.special_end(tag, &bytes[at..name_end]);
            self.shown_element(tag, b'/', at..name_end, false);
        }
        after
    }

    #[inline(never)]
    fn special_end(&mut self, tag: Tag, name: &[u8]) {
        if let Some(unseen) = &mut self.unseen {
            if unseen.name.eq_ignore_ascii_case(name) {
                unseen.depth -= 1;
                if unseen.depth == 0 {
                    self.unseen = None;
                }
                return;
            }
            // The end of the whole drawing ends what was left open in it.
            if tag.act != Act::Foreign {
                return;
            }
            self.unseen = None;
        }
        if tag.breakout {
            self.foreign = 0;
        }
        if !self.is_hidden() {
            self.text.gap(tag.gap);
        }
        match tag.act {
            Act::Anchor if !self.is_hidden() => self.anchors.close(self.text.len()),
            Act::Pre if !self.is_hidden() => {
                self.pre = self.pre.saturating_sub(1);
                self.text.keep_lines = self.pre > 0;
            }
            Act::Template if self.templates > 0 => {
                self.templates -= 1;
                self.foreign = 0;
            }
            Act::Foreign => {
                if self.foreign > 0 {
                    self.foreign -= 1;
                } else if let Some(outside) = self.islands.pop() {
                    self.foreign = outside - 1;
                }
            }
            Act::Island => {
                if let Some(outside) = self.islands.pop() {
                    self.foreign = outside;
                }
            }
            _ => {}
        }
    }
}
