//! What is asked of a page or of a link's label.

use std::fmt;

use globset::{GlobBuilder, GlobMatcher};
use regex::Regex;

use super::web::WebPage;
use crate::model::Timestamp;
use crate::model::closed_set::closed_set;
use crate::text::elements::any_element;

/// A pattern with `*`, `?`, `[…]` and `{a,b}` that has to match a whole text, whatever its case.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    written: String,
    matcher: GlobMatcher,
}

impl Glob {
    /// Says what is wrong with the pattern if it has no meaning.
    pub(crate) fn new(written: &str) -> Result<Self, String> {
        // The crate ignores the case of ASCII letters only.
        let glob = GlobBuilder::new(&written.to_lowercase())
            .case_insensitive(true)
            .literal_separator(false)
            .backslash_escape(true)
            .build()
            .map_err(|error| error.kind().to_string())?;
        Ok(Self { written: written.to_owned(), matcher: glob.compile_matcher() })
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        if text.is_ascii() { self.matcher.is_match(text) } else { self.matcher.is_match(text.to_lowercase()) }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.written
    }

    /// Matches one text only, but for case.
    pub(super) fn is_literal(&self) -> bool {
        !self.written.contains(['*', '?', '[', '{', '\\'])
    }
}

closed_set! {
    /// What a glob looks at, as pipeline files and conditions name it.
    pub(crate) enum Field: "field of a page" {
        Url = "url",
        Title = "title",
        Host = "host",
        ContentType = "content_type",
    }
}

/// One condition on a page.
#[derive(Clone, Debug)]
pub(super) enum Predicate {
    Glob(Field, Glob),
    /// At the first time or later, and before the second.
    Modified(Option<Timestamp>, Option<Timestamp>),
    /// Least and most, both included.
    Bytes(Option<u64>, Option<u64>),
    /// Found in the text.
    Text(Regex),
    /// An extractor's name.
    Mention(String),
    Element(ElementPredicate),
}

/// The page has an element at a place, with a text.
#[derive(Clone, Debug)]
pub struct ElementPredicate {
    place: ElementPlace,
    text: Option<Regex>,
}

/// Where an element stands. Names are in lower case: case is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ElementPlace {
    Tag(String),
    /// Each in the one before. `anywhere`: the first is not the outermost element of the page.
    Path {
        anywhere: bool,
        names: Vec<String>,
    },
}

impl ElementPlace {
    /// The place that `tag = '…'` names; `None` if no element can be named so.
    pub(super) fn of_tag(written: &str) -> Option<Self> {
        is_element_name(written).then(|| Self::Tag(written.to_ascii_lowercase()))
    }

    /// The place that `path = '…'` names.
    pub(super) fn of_path(written: &str) -> Option<Self> {
        let (anywhere, names) = match written.strip_prefix("//") {
            Some(rest) => (true, rest),
            None => (false, written.strip_prefix('/')?),
        };
        let names: Vec<String> = names.split('/').map(str::to_ascii_lowercase).collect();
        names.iter().all(|name| is_element_name(name)).then_some(Self::Path { anywhere, names })
    }

    /// `names`: of the elements that one stands in, its own last.
    fn is_at(&self, names: &[&str]) -> bool {
        match self {
            Self::Tag(tag) => names.last() == Some(&tag.as_str()),
            Self::Path { anywhere, names: wanted } => {
                let outside = names.len().checked_sub(wanted.len()).filter(|outside| *anywhere || *outside == 0);
                outside.is_some_and(|outside| names[outside..].iter().zip(wanted).all(|(name, wanted)| name == wanted))
            }
        }
    }
}

/// What has another meaning in paths of other languages is refused, not taken for a name.
fn is_element_name(name: &str) -> bool {
    let stays = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(stays)
}

impl ElementPredicate {
    pub(super) fn new(place: ElementPlace, text: Option<Regex>) -> Self {
        Self { place, text }
    }

    /// Whether it holds of a page with these elements and this text.
    pub(crate) fn holds(&self, elements: &str, text: &str) -> bool {
        let says = |text: &str| self.text.as_ref().is_none_or(|regex| regex.is_match(text));
        any_element(elements, text, |names| self.place.is_at(names), says)
    }
}

impl fmt::Display for ElementPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            ElementPlace::Tag(tag) => write!(f, "tag = '{tag}'")?,
            ElementPlace::Path { anywhere, names } => {
                write!(f, "path = '/{}{}'", if *anywhere { "/" } else { "" }, names.join("/"))?;
            }
        }
        self.text.as_ref().map_or(Ok(()), |regex| write!(f, ", text = '{regex}'"))
    }
}

impl Predicate {
    /// `None` if more has to be read than what is known of a page.
    pub(super) fn of_page(&self, page: &WebPage) -> Option<bool> {
        Some(match self {
            Self::Glob(field, glob) => {
                let value = match field {
                    Field::Url => Some(&*page.url),
                    Field::Title => page.title.as_deref(),
                    Field::Host => Some(page.host.as_str()),
                    Field::ContentType => page.content_type.as_deref(),
                };
                value.is_some_and(|value| glob.is_match(value))
            }
            Self::Modified(after, before) => page.last_modified.is_some_and(|time| {
                after.is_none_or(|after| after <= time) && before.is_none_or(|before| time < before)
            }),
            Self::Bytes(min, max) => min.is_none_or(|min| min <= page.bytes) && max.is_none_or(|max| page.bytes <= max),
            Self::Text(_) | Self::Mention(_) | Self::Element(_) => return None,
        })
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Glob(field, glob) => write!(f, "{} = '{}'", field.as_str(), glob.as_str()),
            Self::Modified(after, before) => {
                let part = |key, time: &Option<Timestamp>| time.map(|time| format!("{key} = '{time}'"));
                let parts: Vec<_> = part("after", after).into_iter().chain(part("before", before)).collect();
                write!(f, "last_modified = {{ {} }}", parts.join(", "))
            }
            Self::Bytes(min, max) => {
                let part = |key, bytes: &Option<u64>| bytes.map(|bytes| format!("{key} = {bytes}"));
                let parts: Vec<_> = part("min", min).into_iter().chain(part("max", max)).collect();
                write!(f, "bytes = {{ {} }}", parts.join(", "))
            }
            Self::Text(regex) => write!(f, "text = '{regex}'"),
            Self::Mention(extractor) => write!(f, "mention = '{extractor}'"),
            Self::Element(element) => element.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_by_name_and_by_path() {
        let elements = "html(body(div(h1(3))h1(4)p(2)))";
        let text = "one\ntwo\nx";
        let holds = |place: Option<ElementPlace>, regex: Option<&str>| {
            let regex = regex.map(|regex| Regex::new(regex).unwrap());
            ElementPredicate::new(place.unwrap(), regex).holds(elements, text)
        };
        for (tag, regex, expected) in [
            ("h1", Some("^two$"), true),
            ("H1", Some("one"), true),
            ("p", Some("two"), false),
            ("p", None, true),
            ("h2", None, false),
            ("body", Some("(?s)one.*x"), true),
        ] {
            assert_eq!(holds(ElementPlace::of_tag(tag), regex), expected, "{tag} {regex:?}");
        }
        for (path, regex, expected) in [
            ("/html/body/h1", Some("two"), true),
            ("/html/body/h1", Some("one"), false),
            ("//h1", Some("one"), true),
            ("//div/h1", Some("one"), true),
            ("//div/h1", Some("two"), false),
            ("/body/h1", None, false),
            ("//body/h1", None, true),
            ("//html/body/div/h1/b", None, false),
        ] {
            assert_eq!(holds(ElementPlace::of_path(path), regex), expected, "{path} {regex:?}");
        }
        for path in ["", "/", "//", "h1", "/a//b", "/a/", "/*", "/a[1]", "///a", "/a b"] {
            assert_eq!(ElementPlace::of_path(path), None, "{path}");
        }
        for tag in ["", "*", "a/b", "<h1>", "1"] {
            assert_eq!(ElementPlace::of_tag(tag), None, "{tag}");
        }
    }

    #[test]
    fn globs_ignore_case_and_cross_slashes() {
        for (glob, text, expected) in [
            ("side effects*", "Side Effects of X", true),
            ("side effects*", "no side effects", false),
            ("http://H/*", "http://h/a/b?c", true),
            ("http://h/", "http://h/a", false),
            ("*.{html,htm}", "http://h/A.HTM", true),
            ("*[0-9].html", "http://h/x7.html", true),
            ("\u{DC}BER*", "\u{FC}ber uns", true),
            ("stra\u{DF}e ?", "STRA\u{DF}E 7", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("", "", true),
            ("", "a", false),
            ("two\nlines*", "two\nlines\nthree", true),
        ] {
            assert_eq!(Glob::new(glob).unwrap().is_match(text), expected, "{glob} {text}");
        }
        for glob in ["[a", "{a,b", "a}", "\\", "[z-a]"] {
            assert!(Glob::new(glob).is_err(), "{glob}");
        }
    }
}
