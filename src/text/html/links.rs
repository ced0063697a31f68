//! Links of a page: hrefs made absolute and sorted into kinds.
//!
//! Joining URLs by the standard's parser costs some hundred nanoseconds, more than reading the tag. Nearly all hrefs
//! of real pages need none of it: they are plain text to put behind a piece of the page's own URL, or absolute and
//! normal already. Those take [`Resolver::shortcut`], which answers only where the parser would give the same (a
//! test compares them); the others are joined once per page and found again in a small table of fixed size, so that
//! no choice of hrefs makes it slow.

use url::{Position, Url};

use crate::model::LinkKind;
use crate::text::url::{LONGEST_URL, equate, host, is_plain, is_plain_tail, is_web};

/// Bytes that the links of any page may take, each with its target and the page's own URL.
const FREE: usize = 4 << 20;
/// The same per byte of the page, beyond `FREE`: a long `<base href>` would make gigabytes of a few hundred kilobytes.
const RATIO: usize = 16;
/// Slots of the table of joined hrefs. A collision forgets the older one.
const SLOTS: usize = 256;
const EMPTY: u32 = u32::MAX;

#[derive(Debug)]
pub(in crate::text) struct Resolver {
    /// Normal form of what hrefs are relative to; empty if the page's URL is not one.
    base: String,
    parsed: Option<Url>,
    /// Length of `base` up to its path, its last slash, its path's end, its query's end.
    origin: usize,
    folder: usize,
    path: usize,
    query: usize,
    /// The page itself, without fragment, and its length up to and with the first slash of its path.
    page: String,
    site: usize,
    equate_schemes: bool,
    /// Index into `joined`, by hash of the href.
    slots: Vec<u32>,
    joined: Vec<(String, Option<String>)>,
}

/// How much the links of a page may still take.
pub(in crate::text) struct Allowance {
    left: usize,
    /// Of the page's own URL, which every link repeats.
    url: usize,
    /// Links that were too long or too many.
    pub(in crate::text) refused: u64,
}

impl Allowance {
    pub(in crate::text) fn of(html: &str, url: &str) -> Self {
        Self { left: FREE.max(html.len().saturating_mul(RATIO)), url: url.len(), refused: 0 }
    }

    /// Whether a link to a target may be kept.
    pub(in crate::text) fn admits(&mut self, target: &str) -> bool {
        let bytes = target.len() + self.url;
        let admitted = target.len() <= LONGEST_URL && bytes <= self.left;
        match admitted {
            true => self.left -= bytes,
            false => self.refused += 1,
        }
        admitted
    }
}

/// A password that somebody wrote into a link belongs in no table.
fn without_credentials(mut url: Url) -> Url {
    if !url.username().is_empty() || url.password().is_some() {
        // These cannot fail, since an http URL has a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
    }
    url
}

#[derive(Debug, PartialEq, Eq)]
enum Shortcut {
    Target(String),
    /// Not a link to a web page.
    Skip,
    Unknown,
}

impl Resolver {
    /// `base` is the page's `<base href>`, if it has one.
    pub(in crate::text) fn new(page: &str, base: Option<&str>, equate_schemes: bool) -> Self {
        let page = Url::parse(page).ok().filter(is_web);
        let base = match (&page, base) {
            (Some(page), Some(base)) => page.join(base).ok().filter(is_web),
            (None, Some(base)) => Url::parse(base).ok().filter(is_web),
            _ => None,
        };
        let page = page.map(without_credentials);
        let base = base.map(without_credentials).or_else(|| page.clone());
        let base = base.filter(|base| base.as_str().len() <= LONGEST_URL);
        let text = base.as_ref().map(|url| url.as_str().to_owned()).unwrap_or_default();
        let length = |position| base.as_ref().map_or(0, |url| url[..position].len());
        let path = length(Position::AfterPath);
        let (origin, query) = (length(Position::BeforePath), length(Position::AfterQuery));
        let mut page = page.map(|url| url[..Position::AfterQuery].to_owned()).unwrap_or_default();
        if equate_schemes {
            page = equate(page);
        }
        Self {
            folder: text[..path].rfind('/').map_or(0, |slash| slash + 1),
            base: text,
            parsed: base,
            origin,
            path,
            query,
            site: page.find("://").and_then(|at| Some(page[at + 3..].find('/')? + at + 4)).unwrap_or(0),
            page,
            equate_schemes,
            slots: Vec::new(),
            joined: Vec::new(),
        }
    }

    /// Whether there is nothing that hrefs can be relative to.
    pub(in crate::text) fn is_without_base(&self) -> bool {
        self.parsed.is_none()
    }

    /// The absolute target of an href, if it is one of http or https.
    pub(in crate::text) fn resolve(&mut self, href: &str) -> Option<(String, LinkKind)> {
        let target = match self.shortcut(href) {
            Shortcut::Target(target) => target,
            Shortcut::Skip => return None,
            Shortcut::Unknown => self.remembered(href)?,
        };
        let target = if self.equate_schemes { equate(target) } else { target };
        let kind = self.kind(&target);
        Some((target, kind))
    }

    fn kind(&self, target: &str) -> LinkKind {
        if self.page.is_empty() {
            return LinkKind::Global;
        }
        match target.strip_prefix(&*self.page) {
            Some(rest) if rest.is_empty() || rest.starts_with('#') => LinkKind::Interior,
            // The same scheme, host and port: the usual case, without a search for the host.
            _ if target.starts_with(&self.page[..self.site]) || host(target) == host(&self.page) => LinkKind::Local,
            _ => LinkKind::Global,
        }
    }

    fn join(&self, href: &str) -> Option<String> {
        let url = match &self.parsed {
            Some(base) => base.join(href),
            None => Url::parse(href),
        };
        url.ok().filter(is_web).map(without_credentials).map(String::from)
    }

    fn remembered(&mut self, href: &str) -> Option<String> {
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, EMPTY);
        }
        let mut hash = 0u64;
        for &byte in href.as_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        let slot = (hash >> 32) as usize % SLOTS;
        if let Some((known, target)) = self.joined.get(self.slots[slot] as usize)
            && known == href
        {
            return target.clone();
        }
        let target = self.join(href);
        // Each slot owns at most one entry: the table stays small on any page.
        if self.slots[slot] == EMPTY {
            self.slots[slot] = u32::try_from(self.joined.len()).unwrap_or(EMPTY);
            self.joined.push((href.to_owned(), target.clone()));
        } else {
            self.joined[self.slots[slot] as usize] = (href.to_owned(), target.clone());
        }
        target
    }

    fn shortcut(&self, href: &str) -> Shortcut {
        let href = href.trim_matches(|c| c <= ' ');
        let bytes = href.as_bytes();
        let Some(&first) = bytes.first() else {
            return self.behind(self.query, "", true);
        };
        match first {
            b'#' => self.behind(self.query, href, is_plain_tail(bytes)),
            b'?' => self.behind(self.path, href, is_plain_tail(bytes)),
            b'/' => self.behind(self.origin, href, bytes.get(1) != Some(&b'/') && is_plain_tail(bytes)),
            b'.' => self.climb(href),
            b'a'..=b'z' | b'A'..=b'Z' => {
                // A colon before any other delimiter ends a scheme.
                let name = bytes.iter().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)).count();
                if bytes.get(name) != Some(&b':') {
                    let colon = bytes[name..].iter().find(|byte| b":/?#".contains(byte)) == Some(&b':');
                    return self.behind(self.folder, href, !colon && is_plain_tail(bytes));
                }
                if is_plain(href) {
                    return Shortcut::Target(href.to_owned());
                }
                if href[..name].eq_ignore_ascii_case("http") || href[..name].eq_ignore_ascii_case("https") {
                    return Shortcut::Unknown;
                }
                Shortcut::Skip
            }
            b'0'..=b'9' | b'_' | b'~' | b'-' => {
                let colon = bytes.iter().find(|byte| b":/?#".contains(byte)) == Some(&b':');
                self.behind(self.folder, href, !colon && is_plain_tail(bytes))
            }
            _ => Shortcut::Unknown,
        }
    }

    /// `./` and `../` in front of a plain path.
    fn climb(&self, href: &str) -> Shortcut {
        let mut rest = href;
        let mut folder = self.folder;
        loop {
            if let Some(after) = rest.strip_prefix("./") {
                rest = after;
            } else if let Some(after) = rest.strip_prefix("../") {
                rest = after;
                if folder > self.origin + 1 {
                    folder = self.base[..folder - 1].rfind('/').map_or(folder, |slash| slash + 1);
                }
            } else {
                return self.behind(folder, rest, is_plain_tail(rest.as_bytes()));
            }
        }
    }

    /// The base's first `length` bytes and `tail`, if that is known to be right.
    fn behind(&self, length: usize, tail: &str, plain: bool) -> Shortcut {
        if !plain || self.base.is_empty() {
            return Shortcut::Unknown;
        }
        let mut target = String::with_capacity(length + tail.len());
        target.push_str(&self.base[..length]);
        target.push_str(tail);
        Shortcut::Target(target)
    }
}

/// Where `content` of a refresh leads to, such as `5; url='next.html'`; `None` if that is the page itself.
#[must_use]
pub(super) fn refresh_target(content: &str) -> Option<&str> {
    let rest = content.trim_ascii_start().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_ascii_start();
    let rest = match rest.get(..3) {
        Some(key) if key.eq_ignore_ascii_case("url") => {
            let after = rest[3..].trim_ascii_start();
            after.strip_prefix('=').map_or(rest, str::trim_ascii_start)
        }
        _ => rest,
    };
    let target = match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => rest[1..].split(quote).next().unwrap_or_default(),
        _ => rest,
    };
    let target = target.trim_ascii();
    (!target.is_empty()).then_some(target)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn refreshes_lead_on() {
        for (content, expected) in [
            ("0; url=b.html", Some("b.html")),
            ("5;URL='http://a.org/x y'", Some("http://a.org/x y")),
            (" 1.5 , Url = \"c\" rest", Some("c")),
            ("0;d", Some("d")),
            ("0; url", Some("url")),
            ("300", None),
            ("", None),
            ("0; url=", None),
            ("é", Some("é")),
        ] {
            assert_eq!(refresh_target(content), expected, "{content}");
        }
    }

    #[test]
    fn targets_and_kinds() {
        let mut links = Resolver::new("http://example.org/a/b.html?q#f", None, false);
        for (href, expected) in [
            ("", Some(("http://example.org/a/b.html?q", LinkKind::Interior))),
            ("#x", Some(("http://example.org/a/b.html?q#x", LinkKind::Interior))),
            ("b.html?q#y", Some(("http://example.org/a/b.html?q#y", LinkKind::Interior))),
            ("b.html", Some(("http://example.org/a/b.html", LinkKind::Local))),
            ("?r", Some(("http://example.org/a/b.html?r", LinkKind::Local))),
            ("../c", Some(("http://example.org/c", LinkKind::Local))),
            ("../../../c", Some(("http://example.org/c", LinkKind::Local))),
            (" /c d ", Some(("http://example.org/c%20d", LinkKind::Local))),
            ("//example.net", Some(("http://example.net/", LinkKind::Global))),
            ("https://example.org/a/b.html?q", Some(("https://example.org/a/b.html?q", LinkKind::Local))),
            ("http://example.org:8080/", Some(("http://example.org:8080/", LinkKind::Local))),
            ("http://user:secret@example.net/x", Some(("http://example.net/x", LinkKind::Global))),
            ("//user@example.org/a/", Some(("http://example.org/a/", LinkKind::Local))),
            ("HTTP://Example.NET", Some(("http://example.net/", LinkKind::Global))),
            ("javascript:void(0)", None),
            ("mailto:a@example.org", None),
            ("ftp://example.org/", None),
            ("http://[", None),
            ("java\nscript:x", None),
        ] {
            let found = links.resolve(href);
            assert_eq!(found.as_ref().map(|(target, kind)| (target.as_str(), *kind)), expected, "{href}");
            assert_eq!(links.resolve(href), found, "again {href}");
        }
        let mut links = Resolver::new("http://example.org/", Some("https://user:secret@example.net/b/"), false);
        assert_eq!(links.resolve("x"), Some(("https://example.net/b/x".into(), LinkKind::Global)));
    }

    #[test]
    fn links_take_a_bounded_amount() {
        let target = "http://a.org/".to_owned() + &"x".repeat(1000);
        let mut allowance = Allowance::of("", "http://a.org/");
        let kept = (0..10_000).filter(|_| allowance.admits(&target)).count();
        assert_eq!((kept, allowance.refused), (FREE / 1026, 10_000 - FREE as u64 / 1026));
        let large = " ".repeat(FREE);
        let mut allowance = Allowance::of(&large, "http://a.org/");
        assert_eq!((0..100_000).filter(|_| allowance.admits(&target)).count(), RATIO * FREE / 1026);
        assert!(!Allowance::of(&large, "").admits(&"x".repeat(LONGEST_URL + 1)));
    }

    #[test]
    fn what_is_relative_to_too_long_an_address_is_none() {
        let base = "http://b.org/".to_owned() + &"x".repeat(LONGEST_URL) + "/";
        let mut links = Resolver::new("http://a.org/", Some(&base), false);
        assert!(links.is_without_base());
        assert_eq!(links.resolve("y"), None);
        assert_eq!(links.resolve("http://a.org/y"), Some(("http://a.org/y".into(), LinkKind::Local)));
    }

    #[test]
    fn schemes_may_be_equated() {
        let mut links = Resolver::new("http://example.org/a", None, true);
        assert_eq!(
            links.resolve("https://example.org/a#x"),
            Some(("http://example.org/a#x".into(), LinkKind::Interior))
        );
    }

    #[test]
    fn a_page_without_a_url_still_has_absolute_links() {
        let mut links = Resolver::new("", None, false);
        assert_eq!(links.resolve("http://a.org/b"), Some(("http://a.org/b".into(), LinkKind::Global)));
        assert_eq!(links.resolve("b"), None);
        assert_eq!(links.resolve(""), None);
    }

    fn hrefs() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("/"),
            Just("."),
            Just(".."),
            Just("../"),
            Just("./"),
            Just("a"),
            Just("b.html"),
            Just("?"),
            Just("#"),
            Just(":"),
            Just("x:y"),
            Just("http:"),
            Just("https:"),
            Just("//"),
            Just("h.org"),
            Just("%2e"),
            Just("%2E."),
            Just("%"),
            Just("\\"),
            Just(" "),
            Just("\t"),
            Just("'"),
            Just("\""),
            Just("é"),
            Just("{"),
            Just("|"),
            Just("^"),
            Just("`"),
            Just("@"),
            Just(";"),
            Just("mailto:"),
            Just("1"),
            Just("+"),
            Just("~"),
            Just("_"),
            Just("&"),
            Just("="),
            Just("A"),
            Just("["),
            Just("<"),
            Just("\0"),
            Just("xn--a.org"),
            Just("1.2"),
        ];
        prop::collection::vec(piece, 0..7).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn shortcuts_are_what_the_parser_gives(
            href in hrefs(),
            page in prop_oneof![
                Just("http://example.org/"), Just("https://u:p@example.org:81/a/b/c.html?x=/y/#/f"), Just("http://example.org/a//b/"),
            ],
            base in prop::option::of(hrefs()),
        ) {
            let mut links = Resolver::new(page, base.as_deref(), false);
            let joined = links.join(&href);
            match links.shortcut(&href) {
                Shortcut::Target(target) => prop_assert_eq!(Some(target), joined.clone()),
                Shortcut::Skip => prop_assert_eq!(None, joined.clone()),
                Shortcut::Unknown => {}
            }
            for _ in 0..2 {
                prop_assert_eq!(links.resolve(&href).map(|(target, _)| target), joined.clone());
            }
        }
    }
}
