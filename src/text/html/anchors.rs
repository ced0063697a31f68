//! What on a page leads elsewhere, with its label: noted while the page is read, and resolved once all of it is known, since
//! a `<base href>` holds for the links before it too.

use std::borrow::Cow;
use std::ops::Range;

use super::fold::Fold;
use super::links::{Allowance, Resolver, refresh_target};
use super::tags::{Act, Tag};
use super::{HtmlOptions, Pass, entity, scan};
use crate::model::{Link, LinkElement};
use crate::text::url::LONGEST_URL;

/// All of a page.
#[derive(Default)]
pub(super) struct Anchors<'h> {
    list: Vec<Anchor<'h>>,
    /// Index of the one whose label is being read.
    open: Option<usize>,
    base: Option<Cow<'h, str>>,
    canonical: Option<Cow<'h, str>>,
}

struct Anchor<'h> {
    element: LinkElement,
    href: Cow<'h, str>,
    label: Label,
    /// What the pictures in it stand for.
    alt: String,
}

enum Label {
    /// A range of the page's text.
    Text(Range<usize>),
    Own(String),
}

/// Where a page leads to.
#[derive(Default)]
pub(super) struct Leads {
    pub(super) links: Vec<Link>,
    pub(super) canonical: Option<String>,
    /// Links that would have taken too much.
    pub(super) left_out: u64,
}

impl<'h> Anchors<'h> {
    fn add(&mut self, element: LinkElement, href: Cow<'h, str>, label: Label) {
        self.list.push(Anchor { element, href, label, alt: String::new() });
    }

    /// Adds one whose label is the page's text from `at` on.
    fn open(&mut self, href: Cow<'h, str>, at: usize) {
        self.open = Some(self.list.len());
        self.add(LinkElement::A, href, Label::Text(at..at));
    }

    /// Ends the label of the open one, if there is any.
    pub(super) fn close(&mut self, at: usize) {
        if let Some(open) = self.open.take()
            && let Label::Text(range) = &mut self.list[open].label
        {
            range.end = at;
        }
    }

    /// Where they lead to. `text` is the page's, `url` its own.
    pub(super) fn resolve(self, text: &str, html: &str, url: &str, options: HtmlOptions) -> Leads {
        let Self { list, base, canonical, .. } = self;
        let mut leads = Leads::default();
        if list.is_empty() && canonical.is_none() {
            return leads;
        }
        let mut resolver = Resolver::new(url, base.as_deref(), options.equate_schemes);
        let own_address = canonical.and_then(|href| resolver.resolve(&href)).map(|(target, _)| target);
        leads.canonical = own_address.filter(|target| target.len() <= LONGEST_URL);
        let mut allowance = Allowance::of(html, url);
        leads.links.reserve(list.len());
        for anchor in list {
            let Some((target, kind)) = resolver.resolve(&anchor.href) else {
                leads.left_out += u64::from(base.is_some() && resolver.is_without_base());
                continue;
            };
            if !allowance.admits(&target) {
                continue;
            }
            let mut label = match anchor.label {
                Label::Text(range) => one_line(&text[range]),
                Label::Own(label) => label,
            };
            if label.is_empty() {
                label = folded(&anchor.alt);
            }
            leads.links.push(Link { target, label, kind, element: Some(anchor.element), dated: None });
        }
        leads.left_out += allowance.refused;
        leads
    }
}

impl Pass<'_, '_> {
    /// `a`, `area`, `base`: the elements whose attributes count.
    pub(super) fn link_tag(&mut self, tag: Tag, name: Range<usize>) -> usize {
        let (html, bytes) = (self.html, self.bytes);
        let (mut href, mut alt, mut xlink) = (None, None, None);
        let end = scan::attributes(bytes, name.end, |name, value| {
            let name = &bytes[name];
            if self.foreign > 0 && xlink.is_none() && name.eq_ignore_ascii_case(b"xlink:href") {
                xlink = Some(value);
            } else if href.is_none() && name.eq_ignore_ascii_case(b"href") {
                href = Some(value);
            } else if tag.act == Act::Area && alt.is_none() && name.eq_ignore_ascii_case(b"alt") {
                alt = Some(value);
            }
        });
        let Some(end) = end else { return bytes.len() };
        self.shown_element(tag, b'<', name, end.closed);
        if self.is_hidden() {
            return end.at;
        }
        let href = href.or(xlink).map(|range| entity::attribute(&html[range]));
        match tag.act {
            Act::Base => {
                if self.anchors.base.is_none() && self.foreign == 0 {
                    self.anchors.base = href;
                }
            }
            Act::Area => {
                if let Some(href) = href {
                    let label = folded(&alt.map(|range| entity::attribute(&html[range])).unwrap_or_default());
                    self.anchors.add(LinkElement::Area, href, Label::Own(label));
                }
            }
            _ => {
                let at = self.text.len();
                self.anchors.close(at);
                if let Some(href) = href {
                    self.anchors.open(href, at);
                }
                if end.closed && (self.xml || self.foreign > 0) {
                    self.anchors.close(at);
                }
            }
        }
        end.at
    }

    /// `frame`, `iframe`, `img`, `meta`, `link`: what they lead to, or say in the place of text.
    pub(super) fn source_tag(&mut self, tag: Tag, name: Range<usize>) -> usize {
        let (html, bytes) = (self.html, self.bytes);
        let [what, named, or_named]: [&[u8]; 3] = match tag.act {
            Act::Image => [b"alt", b"", b""],
            Act::Meta => [b"content", b"http-equiv", b""],
            Act::Link => [b"href", b"rel", b""],
            _ => [b"src", b"title", b"name"],
        };
        let mut found = [None, None, None];
        let end = scan::attributes(bytes, name.end, |attribute, value| {
            let attribute = &bytes[attribute];
            let at = [what, named, or_named].iter().position(|wanted| attribute.eq_ignore_ascii_case(wanted));
            if let Some(at) = at {
                found[at].get_or_insert(value);
            }
        });
        let Some(end) = end else { return bytes.len() };
        self.shown_element(tag, b'<', name.clone(), end.closed);
        if self.foreign > 0 {
            if !tag.breakout || self.unseen.is_some() {
                self.foreign_tag(tag, &bytes[name], end.closed);
                return end.at;
            }
            self.foreign = 0;
        }
        let [what, named, or_named] = found.map(|range| range.map(|range| entity::attribute(&html[range])));
        if let Some(what) = what.filter(|_| !self.is_hidden()) {
            match tag.act {
                Act::Image => {
                    if let Some(open) = self.anchors.open {
                        self.anchors.list[open].alt.extend([&*what, " "]);
                    }
                }
                Act::Meta => {
                    let refreshes = named.is_some_and(|named| named.trim_ascii().eq_ignore_ascii_case("refresh"));
                    if let Some(href) = refresh_target(&what).filter(|_| refreshes) {
                        let href = Cow::Owned(href.to_owned());
                        self.anchors.add(LinkElement::Refresh, href, Label::Own(String::new()));
                    }
                }
                Act::Link => {
                    let mut says = named.iter().flat_map(|named| named.split_ascii_whitespace());
                    if self.anchors.canonical.is_none() && says.any(|word| word.eq_ignore_ascii_case("canonical")) {
                        self.anchors.canonical = Some(what);
                    }
                }
                _ => {
                    let label = named.map(|title| folded(&title)).filter(|title| !title.is_empty());
                    let label = label.unwrap_or_else(|| folded(&or_named.unwrap_or_default()));
                    let element = if tag.act == Act::Frame { LinkElement::Frame } else { LinkElement::Iframe };
                    self.anchors.add(element, what, Label::Own(label));
                }
            }
        }
        if tag.act == Act::Iframe && !(self.xml && end.closed) {
            return scan::raw_text(bytes, end.at, &bytes[name]);
        }
        end.at
    }
}

/// A piece of folded text as a label: what separates it from the text before it goes, inner separators become spaces.
fn one_line(text: &str) -> String {
    let text = text.strip_prefix([' ', '\t', '\n']).unwrap_or(text);
    if memchr::memchr2(b'\n', b'\t', text.as_bytes()).is_some() {
        text.replace(['\n', '\t'], " ")
    } else {
        text.to_owned()
    }
}

/// White space folded.
fn folded(text: &str) -> String {
    let mut fold = Fold::default();
    fold.literal(text);
    fold.into_string()
}
