//! The rules of the parent module once more, slowly: html5ever's tokenizer, one character at a time, lists of names
//! as text. Written against the rules, not against the fast reader.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use url::Url;

use super::HtmlOptions;
use super::links::refresh_target;
use crate::model::{Content, Digest, Link, LinkElement, LinkKind};

const BLOCKS: &str = "address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset \
    figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li listing main menu \
    nav ol optgroup option p plaintext pre search section select summary table tbody textarea tfoot thead tr ul xmp";
const BREAKOUT: &str = "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li \
    listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var";
const UNSEEN: &str = "title desc style script annotation annotation-xml";
const FALLBACK: &str = "rp video audio canvas object";
const LOOSE: &str = "br hr p li dt dd td th tr thead tbody tfoot option optgroup head body html caption";
/// No part of what a page looks like.
const UNSTRUCTURED: &str = "script style noscript noframes noembed template base meta link title";

fn listed(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|known| known == name)
}

#[derive(Clone, Debug)]
enum Atom {
    Char(char),
    Cell,
    Line,
    /// Label of this link starts or ends.
    Start(usize),
    End,
}

#[derive(Default)]
struct State {
    xml: bool,
    atoms: Vec<Atom>,
    title: Option<String>,
    base: Option<String>,
    hrefs: Vec<(String, Option<String>)>,
    /// What pictures in each link stand for.
    alts: Vec<String>,
    open: Option<usize>,
    /// The raw-text element being read.
    raw: Option<String>,
    reading_title: bool,
    plaintext: bool,
    pre: usize,
    templates: usize,
    foreign: usize,
    islands: Vec<usize>,
    unseen: Option<(String, usize)>,
    /// Its name, how many of that name are open, and how many blocks in it.
    fallback: Option<(String, usize, usize)>,
    structure: String,
    canonical: Option<String>,
    elements: Vec<LinkElement>,
}

#[derive(Default)]
struct Sink(RefCell<State>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut state = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => text.chars().for_each(|c| state.char(c)),
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return state.start(&tag),
            Token::TagToken(tag) => state.end(&tag.name),
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        let state = self.0.borrow();
        state.foreign > 0 || state.xml
    }
}

impl State {
    fn hidden(&self) -> bool {
        self.templates > 0 || self.unseen.is_some() || self.fallback.is_some()
    }

    fn char(&mut self, c: char) {
        if self.hidden() {
            return;
        }
        match self.raw.as_deref() {
            Some("title") => {
                if self.reading_title
                    && let Some(title) = &mut self.title
                {
                    title.push(c);
                }
                return;
            }
            Some("textarea" | "xmp") | None => {}
            Some(_) => return,
        }
        let lines = self.pre > 0 || self.raw.is_some() || self.plaintext;
        self.atoms.push(if lines && matches!(c, '\n' | '\r') { Atom::Line } else { Atom::Char(c) });
    }

    fn structure(&mut self, mark: char, name: &str) {
        if !self.hidden() && !listed(UNSTRUCTURED, name) {
            self.structure.push(mark);
            self.structure += name;
        }
    }

    fn is_block(&self, name: &str) -> bool {
        let is_gap = listed(BLOCKS, name) || name == "td" || name == "th";
        is_gap && self.foreign == 0 && self.templates == 0
    }

    fn start_in_fallback(&mut self, name: &str) {
        let is_block = self.is_block(name);
        let Some((fallback, depth, blocks)) = &mut self.fallback else { return };
        if fallback == "rp" {
            if is_block || listed("rt rb rtc", name) {
                self.fallback = None;
            }
        } else if fallback == name {
            *depth += 1;
        } else if is_block && !listed(LOOSE, name) {
            *blocks += 1;
        }
    }

    fn end_in_fallback(&mut self, name: &str) {
        let is_block = self.is_block(name);
        let Some((fallback, depth, blocks)) = &mut self.fallback else { return };
        let ends = if fallback == name {
            *depth -= 1;
            *depth == 0
        } else if fallback == "rp" {
            is_block || name == "ruby"
        } else if is_block && !listed(LOOSE, name) {
            let ends = *blocks == 0;
            *blocks = blocks.saturating_sub(1);
            ends
        } else {
            false
        };
        if ends {
            self.fallback = None;
        }
    }

    fn gap(&mut self, name: &str) {
        if self.hidden() {
        } else if listed(BLOCKS, name) {
            self.atoms.push(Atom::Line);
        } else if name == "td" || name == "th" {
            self.atoms.push(Atom::Cell);
        }
    }

    fn close_anchor(&mut self) {
        if self.open.take().is_some() {
            self.atoms.push(Atom::End);
        }
    }

    fn picture(&mut self, alt: Option<String>) {
        if let (Some(open), Some(alt)) = (self.open, alt) {
            self.alts.resize(self.hrefs.len(), String::new());
            self.alts[open] += &format!("{alt} ");
        }
    }

    fn meta(&mut self, equiv: Option<String>, content: Option<&str>) {
        if equiv.is_some_and(|equiv| squeeze(&equiv).eq_ignore_ascii_case("refresh"))
            && let Some(target) = content.and_then(refresh_target)
        {
            self.hrefs.push((target.to_owned(), Some(String::new())));
            self.elements.push(LinkElement::Refresh);
        }
    }

    fn start(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        let closed = tag.self_closing;
        let attribute =
            |wanted: &str| tag.attrs.iter().find(|attr| &*attr.name.local == wanted).map(|attr| attr.value.to_string());
        self.start_in_fallback(name);
        self.structure('<', name);
        if self.foreign > 0 && listed(BREAKOUT, name) && self.unseen.is_none() {
            self.foreign = 0;
        }
        if let Some((unseen, depth)) = &mut self.unseen {
            *depth += usize::from(unseen == name && !closed);
            return TokenSinkResult::Continue;
        }
        self.gap(name);
        match name {
            "a" | "area" | "base" | "img" | "meta" | "frame" | "link" if self.hidden() => {}
            "link" => {
                let says = attribute("rel").unwrap_or_default().to_ascii_lowercase();
                if self.foreign == 0 && says.split_ascii_whitespace().any(|word| word == "canonical") {
                    self.canonical = self.canonical.take().or_else(|| attribute("href"));
                }
            }
            "img" => self.picture(attribute("alt")),
            "meta" => self.meta(attribute("http-equiv"), attribute("content").as_deref()),
            "a" => {
                self.close_anchor();
                let xlink = attribute("xlink:href").filter(|_| self.foreign > 0);
                if let Some(href) = attribute("href").or(xlink) {
                    self.hrefs.push((href, None));
                    self.elements.push(LinkElement::A);
                    self.open = Some(self.hrefs.len() - 1);
                    self.atoms.push(Atom::Start(self.hrefs.len() - 1));
                }
                if closed && (self.xml || self.foreign > 0) {
                    self.close_anchor();
                }
            }
            "area" => {
                if let Some(href) = attribute("href") {
                    self.hrefs.push((href, Some(squeeze(&attribute("alt").unwrap_or_default()))));
                    self.elements.push(LinkElement::Area);
                }
            }
            "base" if self.foreign > 0 || self.base.is_some() => {}
            "base" => self.base = attribute("href"),
            "frame" | "iframe" if self.foreign == 0 && !self.hidden() && attribute("src").is_some() => {
                let said = |wanted| attribute(wanted).map(|value| squeeze(&value)).filter(|value| !value.is_empty());
                let label = said("title").or_else(|| said("name")).unwrap_or_default();
                self.hrefs.push((attribute("src").unwrap_or_default(), Some(label)));
                self.elements.push(if name == "frame" { LinkElement::Frame } else { LinkElement::Iframe });
                if name_is_raw(tag) && !(closed && self.xml) {
                    self.raw = Some("iframe".to_owned());
                    return TokenSinkResult::RawData(RawKind::Rawtext);
                }
            }
            _ if closed && (self.xml || self.foreign > 0) => {}
            "svg" | "math" => self.foreign += usize::from(!closed),
            "foreignobject" if self.foreign > 0 => {
                self.islands.push(self.foreign);
                self.foreign = 0;
            }
            _ if self.foreign > 0 && listed(UNSEEN, name) => self.unseen = Some((name.to_owned(), 1)),
            _ if self.foreign > 0 => {}
            _ if listed(FALLBACK, name) && self.hidden() => {}
            _ if listed(FALLBACK, name) => self.fallback = Some((name.to_owned(), 1, 0)),
            "pre" | "listing" => self.pre += usize::from(!self.hidden()),
            "template" => self.templates += 1,
            "plaintext" => {
                self.plaintext = true;
                return TokenSinkResult::Plaintext;
            }
            _ => return self.start_raw(name),
        }
        TokenSinkResult::Continue
    }

    /// An element whose content is no markup.
    fn start_raw(&mut self, name: &str) -> TokenSinkResult<()> {
        match name {
            "title" | "textarea" => {
                self.raw = Some(name.to_owned());
                self.reading_title = name == "title" && self.title.is_none() && !self.hidden();
                if self.reading_title {
                    self.title = Some(String::new());
                }
                return TokenSinkResult::RawData(RawKind::Rcdata);
            }
            "script" => {
                self.raw = Some(name.to_owned());
                return TokenSinkResult::RawData(RawKind::ScriptData);
            }
            "style" | "noscript" | "noframes" | "noembed" | "iframe" | "xmp" => {
                self.raw = Some(name.to_owned());
                return TokenSinkResult::RawData(RawKind::Rawtext);
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn end(&mut self, name: &str) {
        self.end_in_fallback(name);
        self.end_shown(name);
        self.structure('/', name);
    }

    fn end_shown(&mut self, name: &str) {
        if self.raw.as_deref() == Some(name) {
            self.raw = None;
        }
        if let Some((unseen, depth)) = &mut self.unseen {
            if unseen == name {
                *depth -= 1;
                if *depth == 0 {
                    self.unseen = None;
                }
                return;
            }
            if name != "svg" && name != "math" {
                return;
            }
            self.unseen = None;
        }
        if listed(BREAKOUT, name) {
            self.foreign = 0;
        }
        self.gap(name);
        match name {
            "a" if !self.hidden() => self.close_anchor(),
            "pre" | "listing" if !self.hidden() => self.pre = self.pre.saturating_sub(1),
            "template" if self.templates > 0 => {
                self.templates -= 1;
                self.foreign = 0;
            }
            "svg" | "math" => {
                if self.foreign > 0 {
                    self.foreign -= 1;
                } else if let Some(outside) = self.islands.pop() {
                    self.foreign = outside - 1;
                }
            }
            "foreignobject" => self.foreign = self.islands.pop().unwrap_or(self.foreign),
            _ => {}
        }
    }

    fn finish(mut self, page: &str, options: HtmlOptions) -> Content {
        self.close_anchor();
        let mut text = String::new();
        let mut gap = None;
        for atom in &self.atoms {
            match atom {
                Atom::Line => gap = Some('\n'),
                Atom::Cell if gap != Some('\n') => gap = Some('\t'),
                Atom::Char(' ' | '\n' | '\t' | '\r' | '\u{C}') => gap = gap.or(Some(' ')),
                Atom::Char(c) => {
                    if let Some(gap) = gap.take()
                        && !text.is_empty()
                    {
                        text.push(gap);
                    }
                    text.push(*c);
                }
                _ => {}
            }
        }
        let mut labels = vec![String::new(); self.hrefs.len()];
        let mut reading = None;
        for atom in &self.atoms {
            match (atom, reading) {
                (Atom::Start(link), _) => reading = Some(*link),
                (Atom::End, _) => reading = None,
                (Atom::Char(c), Some(link)) => labels[link].push(*c),
                (Atom::Cell | Atom::Line, Some(link)) => labels[link].push(' '),
                _ => {}
            }
        }
        let page = Url::parse(page).unwrap();
        let base = self.base.and_then(|base| page.join(&base).ok()).filter(|base| base.scheme().starts_with("http"));
        let base = base.as_ref().unwrap_or(&page);
        let plain = |url: &Url| {
            let mut url = url.clone();
            url.set_fragment(None);
            if options.equate_schemes {
                let _ = url.set_scheme("http");
            }
            url
        };
        let mut links = Vec::new();
        self.alts.resize(self.hrefs.len(), String::new());
        for ((((href, own), label), alt), element) in
            self.hrefs.into_iter().zip(labels).zip(self.alts).zip(self.elements)
        {
            let Ok(mut target) = base.join(&href) else { continue };
            if !matches!(target.scheme(), "http" | "https") {
                continue;
            }
            target.set_username("").unwrap();
            target.set_password(None).unwrap();
            if options.equate_schemes {
                target.set_scheme("http").unwrap();
            }
            let kind = if plain(&target) == plain(&page) {
                LinkKind::Interior
            } else if target.host_str() == page.host_str() {
                LinkKind::Local
            } else {
                LinkKind::Global
            };
            let label = if squeeze(&label).is_empty() { squeeze(&alt) } else { squeeze(&label) };
            let label = own.unwrap_or(label);
            links.push(Link { target: target.into(), label, kind, element: Some(element), dated: None });
        }
        let canonical = self.canonical.and_then(|href| base.join(&href).ok());
        let canonical = canonical.filter(|url| matches!(url.scheme(), "http" | "https")).map(|mut url| {
            url.set_username("").unwrap();
            url.set_password(None).unwrap();
            if options.equate_schemes {
                url.set_scheme("http").unwrap();
            }
            url.into()
        });
        let structure = Some(Digest::of(self.structure.as_bytes()));
        Content { title: self.title.map(|title| squeeze(&title)), text, links, canonical, structure, elements: None }
    }
}

fn name_is_raw(tag: &Tag) -> bool {
    &*tag.name == "iframe"
}

fn squeeze(text: &str) -> String {
    let words: Vec<&str> = text.split([' ', '\n', '\t', '\r', '\u{C}']).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

pub(super) fn read(html: &str, page: &str, options: HtmlOptions) -> Content {
    let sink = Sink::default();
    sink.0.borrow_mut().xml = options.xml;
    let tokenizer = Tokenizer::new(sink, TokenizerOpts { discard_bom: false, ..Default::default() });
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from(html));
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
    tokenizer.sink.0.into_inner().finish(page, options)
}
