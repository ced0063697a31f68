//! From what was typed to what it means, with everything refused that has no meaning.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use regex::Regex;
use toml::Spanned;

use super::config::{Moment, NodeConfig, Paths, QueryConfig};
use super::pattern::LinkText;
use super::predicate::{ElementPlace, ElementPredicate, Field, Glob, Predicate};
use crate::model::key::{NAME_FIX, is_name};
use crate::model::{KeyError, LinkKind, Timestamp};

/// More tuples than this are refused unless the query says otherwise.
pub(super) const MAX_TUPLES: u64 = 1_000_000;

/// A query that can be asked.
#[derive(Clone, Debug)]
pub struct Query {
    pub(super) name: String,
    /// Ordered by name.
    pub(super) nodes: Vec<Node>,
    /// In the order of the file.
    pub(super) links: Vec<Link>,
    pub(super) paths: Paths,
    pub(super) max_tuples: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: String,
    /// In the order of [`NodeConfig`]: what needs the text comes last.
    pub(super) predicates: Vec<Predicate>,
}

/// A link of the pattern.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Numbers of nodes.
    pub(super) from: usize,
    pub(super) to: usize,
    /// Fewest and most links of a path; `None` for a single link.
    pub(super) path: Option<(u16, u16)>,
    pub(super) label: Option<Glob>,
    /// Kinds of links that it may be; any if this is empty.
    pub(super) kinds: Vec<LinkKind>,
    /// As it is shown to people.
    pub(super) text: String,
}

impl Link {
    /// May a link of the web be part of this one, as far as its kind goes?
    pub(super) fn allows(&self, kind: LinkKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}

impl QueryConfig {
    /// Checks the query. Dates are read in `zone`; `extractors` are the names that `mention` may use.
    pub(crate) fn compile(&self, zone: &TimeZone, extractors: &[&str]) -> Result<Query, KeyError> {
        let name = self.name.get_ref();
        if !is_name(name) {
            let problem = format!("'{name}' cannot be a name");
            return Err(KeyError::new("name", problem, NAME_FIX).at(self.name.span().start));
        }
        let max_tuples = self.max_tuples.as_ref().map_or(MAX_TUPLES, |given| *given.get_ref());
        if let Some(given) = self.max_tuples.as_ref().filter(|given| *given.get_ref() == 0) {
            let problem = "a table of no tuples";
            return Err(KeyError::new("max_tuples", problem, "give at least 1").at(given.span().start));
        }
        let mut predicates: BTreeMap<&str, Vec<Predicate>> = BTreeMap::new();
        for (name, config) in &self.nodes {
            let (start, name) = (name.span().start, name.get_ref().as_str());
            if !is_name(name) {
                let problem = format!("'{name}' cannot be the name of a node");
                return Err(KeyError::new(format!("nodes.{name}"), problem, NAME_FIX).at(start));
            }
            predicates.insert(name, config.compile(name, zone, extractors)?);
        }
        let texts = self.parse_links()?;
        let alone = texts.is_empty() && self.nodes.len() == 1;
        for name in self.nodes.keys() {
            let used = texts.iter().any(|link| link.from == *name.get_ref() || link.to == *name.get_ref());
            if !used && !alone {
                return Err(self.unused(name, &texts));
            }
        }
        if texts.is_empty() && self.nodes.is_empty() {
            let fix = "write links = [\"a -> b\"], or one node: nodes.a = { title = \"…\" }";
            return Err(KeyError::new("links", "the query has neither links nor nodes", fix));
        }
        for name in texts.iter().flat_map(|link| [&link.from, &link.to]) {
            predicates.entry(name).or_default();
        }
        let nodes: Vec<Node> =
            predicates.into_iter().map(|(name, predicates)| Node { name: name.to_owned(), predicates }).collect();
        let number = |name: &str| {
            nodes.binary_search_by(|node| node.name.as_str().cmp(name)).expect("every name of a link was entered above")
        };
        let mut links = Vec::new();
        for (text, place) in texts.iter().zip(&self.links) {
            let label = match &text.label {
                None => None,
                Some((glob, at)) => Some(Glob::new(glob).map_err(|problem| {
                    let problem = format!("label glob '{glob}': {problem}");
                    KeyError::new("links", problem, GLOB_FIX).at(place.span().start + 1 + at)
                })?),
            };
            links.push(Link {
                from: number(&text.from),
                to: number(&text.to),
                path: text.path,
                label,
                kinds: text.kinds.clone(),
                text: text.to_string(),
            });
        }
        self.check_connected(&nodes, &links)?;
        Ok(Query { name: name.clone(), nodes, links, paths: self.paths, max_tuples })
    }

    /// Reads the links and refuses those that cannot stand together.
    fn parse_links(&self) -> Result<Vec<LinkText>, KeyError> {
        let mut texts: Vec<LinkText> = Vec::new();
        for link in &self.links {
            // One byte for the quote before the text.
            let text_at = link.span().start + 1;
            let bad =
                |column: usize, problem: String, fix: String| KeyError::new("links", problem, fix).at(text_at + column);
            let text = LinkText::parse(link.get_ref()).map_err(|wrong| {
                let problem = format!("'{}', column {}: {}", link.get_ref(), wrong.at + 1, wrong.problem);
                bad(wrong.at, problem, wrong.fix)
            })?;
            if text.path.is_some() && text.from == text.to {
                let problem = format!("'{text}': a path visits no page twice, so it cannot return");
                return Err(bad(0, problem, "use two names; two names may have one page".into()));
            }
            for other in &texts {
                let same_ends = other.from == text.from && other.to == text.to;
                if other.to_string() == text.to_string() {
                    return Err(bad(0, format!("'{text}' stands here twice"), "remove one of them".into()));
                }
                if same_ends && other.path.is_some() && text.path.is_some() {
                    let problem = format!(
                        "two paths from '{0}' to '{1}': their inner pages would share names",
                        text.from, text.to
                    );
                    return Err(bad(0, problem, "make them one, or give one of the nodes a second name".into()));
                }
            }
            texts.push(text);
        }
        Ok(texts)
    }

    fn unused(&self, name: &Spanned<String>, texts: &[LinkText]) -> KeyError {
        let problem = format!("no link uses node '{}'", name.get_ref());
        // Perhaps a name was meant that stands in a link but not among the nodes.
        let known = |candidate: &str| self.nodes.keys().any(|name| name.get_ref() == candidate);
        let free = texts.iter().flat_map(|link| [&link.from, &link.to]).filter(|candidate| !known(candidate));
        let fix = match nearest(name.get_ref(), free.map(String::as_str)) {
            Some(near) => format!("did you mean '{near}', which stands in a link?"),
            None => format!("add a link such as \"x -> {0}\", or remove nodes.{0}", name.get_ref()),
        };
        KeyError::new(format!("nodes.{}", name.get_ref()), problem, fix).at(name.span().start)
    }

    /// A pattern in two parts would pair every match of one with every match of the other.
    fn check_connected(&self, nodes: &[Node], links: &[Link]) -> Result<(), KeyError> {
        let mut reached = vec![false; nodes.len()];
        reached[links.first().map_or(0, |link| link.from)] = true;
        for _ in nodes {
            for link in links {
                let either = reached[link.from] || reached[link.to];
                (reached[link.from], reached[link.to]) = (either, either);
            }
        }
        let Some((i, link)) = links.iter().enumerate().find(|(_, link)| !reached[link.from]) else {
            return Ok(());
        };
        let problem = format!("'{}' has no connection with the links before it", link.text);
        let fix = "add a link between the parts, or make two queries of them";
        Err(KeyError::new("links", problem, fix).at(self.links[i].span().start))
    }
}

const GLOB_FIX: &str =
    "* is any text, ? one character, [ab] one of them, {a,b} either; \\ before one of these takes it as it is";

impl NodeConfig {
    fn compile(&self, node: &str, zone: &TimeZone, extractors: &[&str]) -> Result<Vec<Predicate>, KeyError> {
        let error = |key: &str, start: usize, problem: String, fix: String| {
            KeyError::new(format!("nodes.{node}.{key}"), problem, fix).at(start)
        };
        let mut predicates = Vec::new();
        let globs = [
            (Field::Url, &self.url),
            (Field::Host, &self.host),
            (Field::ContentType, &self.content_type),
            (Field::Title, &self.title),
        ];
        for (field, glob) in globs {
            if let Some(glob) = glob {
                let compiled = Glob::new(glob.get_ref()).map_err(|problem| {
                    let problem = format!("glob '{}': {problem}", glob.get_ref());
                    error(field.as_str(), glob.span().start, problem, GLOB_FIX.into())
                })?;
                predicates.push(Predicate::Glob(field, compiled));
            }
        }
        if let Some(times) = &self.last_modified {
            let start = times.span().start;
            let time = |moment: &Option<Moment>| match moment {
                None => Ok(None),
                Some(moment) => Timestamp::parse_in(&moment.0, zone).map(Some).ok_or_else(|| {
                    let problem = format!("'{moment}' is no time");
                    error("last_modified", start, problem, "write 2001-02-15 or 2001-02-15T12:00:00Z".into())
                }),
            };
            let (after, before) = (time(&times.get_ref().after)?, time(&times.get_ref().before)?);
            let fix = || "write { after = 2001-01-15, before = 2001-02-15 }, or one of them".to_owned();
            if after.is_none() && before.is_none() {
                return Err(error("last_modified", start, "no time is given".into(), fix()));
            }
            if after.zip(before).is_some_and(|(after, before)| after >= before) {
                return Err(error(
                    "last_modified",
                    start,
                    "no time is after the one and before the other".into(),
                    fix(),
                ));
            }
            predicates.push(Predicate::Modified(after, before));
        }
        if let Some(sizes) = &self.bytes {
            let (start, sizes) = (sizes.span().start, sizes.get_ref());
            let fix = || "write { min = 100, max = 100000 }, or one of them".to_owned();
            if sizes.min.is_none() && sizes.max.is_none() {
                return Err(error("bytes", start, "no size is given".into(), fix()));
            }
            if sizes.min.zip(sizes.max).is_some_and(|(min, max)| min > max) {
                return Err(error("bytes", start, "min is larger than max".into(), fix()));
            }
            predicates.push(Predicate::Bytes(sizes.min, sizes.max));
        }
        if let Some(extractor) = &self.mention {
            let (start, name) = (extractor.span().start, extractor.get_ref().as_str());
            if !extractors.contains(&name) {
                let fix = match nearest(name, extractors.iter().copied()) {
                    Some(near) => format!("did you mean '{near}'?"),
                    None if extractors.is_empty() => "declare an [[extractor]] of that name".to_owned(),
                    None => format!("known here: {}", extractors.join(", ")),
                };
                return Err(error("mention", start, format!("no extractor is named '{name}'"), fix));
            }
            predicates.push(Predicate::Mention(name.to_owned()));
        }
        let text = self.text.as_ref().map(|text| {
            Regex::new(text.get_ref()).map_err(|wrong| {
                let wrong = wrong.to_string();
                let last = wrong.lines().last().unwrap_or_default().trim_start_matches("error: ");
                let problem = format!("regex '{}': {last}", text.get_ref());
                error("text", text.span().start, problem, "see the syntax of the regex crate".into())
            })
        });
        let text = text.transpose()?;
        match self.element_place(error)? {
            Some(place) => predicates.push(Predicate::Element(ElementPredicate::new(place, text))),
            None => predicates.extend(text.map(Predicate::Text)),
        }
        Ok(predicates)
    }

    /// The element that `tag` or `path` asks for.
    fn element_place(
        &self,
        error: impl Fn(&str, usize, String, String) -> KeyError,
    ) -> Result<Option<ElementPlace>, KeyError> {
        let place = |key: &str, written: &Spanned<String>, found: Option<ElementPlace>, fix: &str| {
            let (start, written) = (written.span().start, written.get_ref());
            found.ok_or_else(|| error(key, start, format!("'{written}' names no element"), fix.to_owned()))
        };
        match (&self.tag, &self.path) {
            (Some(_), Some(path)) => {
                let fix = "leave out `tag`: a path ends with the element's name";
                Err(error("path", path.span().start, "an element has either `tag` or `path`".into(), fix.into()))
            }
            (Some(tag), None) => {
                let fix = "write the name of an element, such as h1";
                place("tag", tag, ElementPlace::of_tag(tag.get_ref()), fix).map(Some)
            }
            (None, Some(path)) => {
                let fix =
                    "write names of elements from the outermost on, such as /html/body/h1, or //div/h1 for anywhere";
                place("path", path, ElementPlace::of_path(path.get_ref()), fix).map(Some)
            }
            (None, None) => Ok(None),
        }
    }
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let score = |candidate: &str| strsim::jaro_winkler(name, candidate);
    known.max_by(|a, b| score(a).total_cmp(&score(b))).filter(|near| score(near) > 0.75)
}
