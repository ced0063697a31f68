//! Asking a query of a web.

use std::fmt;

use regex::Regex;

use super::bits::Bits;
use super::compile::Query;
use super::predicate::{ElementPredicate, Predicate};
use super::reduce::{Road, candidates, reduce};
use super::search::Search;
use super::web::Web;
use crate::deltas::web::WebTable;

/// What only the text or the mentions of pages can tell.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    pub what: LookFor<'a>,
    /// The pages it is asked of, sorted.
    pub urls: Vec<&'a str>,
}

/// What is looked for in pages.
#[derive(Clone, Copy, Debug)]
pub enum LookFor<'a> {
    /// Is this found in the text?
    Text(&'a Regex),
    /// Has this extractor a mention in the page?
    Mention(&'a str),
    /// Does this hold of the page's elements?
    Element(&'a ElementPredicate),
}

/// The answer to a query.
#[derive(Clone, Debug)]
pub struct Evaluation {
    pub table: WebTable,
    /// Why nothing matches, if nothing does.
    pub empty: Option<Empty>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure<E> {
    TooMany(TooMany),
    /// A question could not be answered.
    Look(E),
}

/// A query whose answer is too large or takes too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TooMany {
    Tuples {
        query: String,
        limit: u64,
        found: u64,
        exact: bool,
    },
    /// Paths of one link from or to one page.
    Paths {
        query: String,
        limit: u64,
        found: u64,
        exact: bool,
        link: String,
        page: String,
        backward: bool,
    },
    Steps {
        query: String,
        found: u64,
    },
}

/// What left a query without matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Empty {
    NoPages,
    /// None of the `pages` that were left for a node has this.
    Predicate {
        node: String,
        predicate: String,
        pages: usize,
        hint: Option<String>,
    },
    /// None of the pages that were left for one node leads to one of those left for the other. Names of the nodes, and
    /// how many pages were left for each.
    Link {
        link: String,
        from: (String, usize),
        to: (String, usize),
    },
    /// The other links have `before` matches together, but none of them goes on along this link.
    Together {
        link: String,
        others: Vec<String>,
        before: u64,
    },
}

impl Query {
    /// All tuples of the query. `look` answers, for each question and each of its pages, yes or no; it is called at
    /// most once, with what was left by everything else.
    pub fn evaluate<E>(
        &self,
        web: &Web,
        look: impl FnOnce(&[Question<'_>]) -> Result<Vec<Vec<bool>>, E>,
    ) -> Result<Evaluation, Failure<E>> {
        let nothing = |why| Evaluation { table: WebTable::empty(&self.name), empty: Some(why) };
        let mut domains = match candidates(self, web) {
            Ok(domains) => domains,
            Err(why) => return Ok(nothing(why)),
        };
        let roads: Vec<Road> = self.links.iter().map(|link| Road::new(web, link)).collect();
        let pages = web.pages().len();
        if let Err(why) = reduce(self, &roads, &mut domains, pages) {
            return Ok(nothing(why));
        }
        let asked = self.asked(&domains);
        if !asked.is_empty() {
            let questions: Vec<Question<'_>> = asked.iter().map(|asked| asked.question(web)).collect();
            let answers = look(&questions).map_err(Failure::Look)?;
            assert_eq!(answers.len(), asked.len(), "every question needs an answer");
            for (asked, answer) in asked.iter().zip(answers) {
                assert_eq!(answer.len(), asked.pages.len(), "every page needs an answer");
                let mut kept = Bits::none(pages);
                asked.pages.iter().zip(answer).filter(|(_, yes)| *yes).for_each(|(&page, _)| kept.insert(page));
                let before = domains[asked.node].count();
                domains[asked.node].retain(&kept);
                if domains[asked.node].is_empty() {
                    return Ok(nothing(Empty::Predicate {
                        node: self.nodes[asked.node].name.clone(),
                        predicate: asked.predicate.to_string(),
                        pages: before,
                        hint: None,
                    }));
                }
            }
            if let Err(why) = reduce(self, &roads, &mut domains, pages) {
                return Ok(nothing(why));
            }
        }
        let (table, empty) = Search::new(self, web, &roads, &domains).run().map_err(Failure::TooMany)?;
        Ok(Evaluation { table, empty })
    }

    /// The predicates that need more than what is known of a page.
    fn asked(&self, domains: &[Bits]) -> Vec<Asked<'_>> {
        let mut asked = Vec::new();
        for (node, of) in self.nodes.iter().enumerate() {
            for predicate in &of.predicates {
                let what = match predicate {
                    Predicate::Text(regex) => LookFor::Text(regex),
                    Predicate::Mention(extractor) => LookFor::Mention(extractor),
                    Predicate::Element(element) => LookFor::Element(element),
                    Predicate::Glob(..) | Predicate::Modified(..) | Predicate::Bytes(..) => continue,
                };
                asked.push(Asked { node, predicate, what, pages: domains[node].iter().collect() });
            }
        }
        asked
    }
}

struct Asked<'a> {
    node: usize,
    predicate: &'a Predicate,
    what: LookFor<'a>,
    pages: Vec<u32>,
}

impl<'a> Asked<'a> {
    fn question(&self, web: &'a Web) -> Question<'a> {
        Question { what: self.what, urls: self.pages.iter().map(|&page| web.url(page)).collect() }
    }
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |found: u64, exact: bool| format!("{}{}", if exact { "" } else { "more than " }, grouped(found));
        match self {
            Self::Tuples { query, limit, found, exact } => write!(
                f,
                "query '{query}' has {} tuples, {} are allowed: narrow its nodes or paths, or raise max_tuples",
                counted(*found, *exact),
                grouped(*limit)
            ),
            Self::Paths { query, limit, found, exact, link, page, backward } => write!(
                f,
                "query '{query}': `{link}` has {} paths {} {page}, {} are allowed: \
                 shorten it, narrow the links it may take, say paths = \"shortest\", or raise max_tuples",
                counted(*found, *exact),
                if *backward { "to" } else { "from" },
                grouped(*limit)
            ),
            Self::Steps { query, found } => write!(
                f,
                "query '{query}' was given up after ten thousand million steps with {} tuples found: \
                 shorten its paths, narrow its nodes, or say paths = \"shortest\"",
                grouped(*found)
            ),
        }
    }
}

impl std::error::Error for TooMany {}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(why) => why.fmt(f),
            Self::Look(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for Failure<E> {}

impl fmt::Display for Empty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none_of = |count: usize, node: &str| match count {
            1 => format!("the only page left for '{node}' does not"),
            count => format!("none of the {} pages left for '{node}'", grouped(count as u64)),
        };
        match self {
            Self::NoPages => write!(f, "the snapshot has no pages"),
            Self::Predicate { node, predicate, pages, hint } => {
                let verb = if *pages == 1 { "have" } else { "has" };
                write!(f, "{} {verb} {predicate}", none_of(*pages, node))?;
                hint.as_ref().map_or(Ok(()), |hint| write!(f, " ({hint})"))
            }
            Self::Link { link, from: (from, pages), to: (to, goals) } => {
                let verb = if *pages == 1 { "lead" } else { "leads" };
                write!(f, "link `{link}`: {} {verb} to ", none_of(*pages, from))?;
                match goals {
                    _ if from == to => write!(f, "itself"),
                    1 => write!(f, "the only one left for '{to}'"),
                    goals => write!(f, "one of the {} left for '{to}'", grouped(*goals as u64)),
                }
            }
            Self::Together { link, others, before } if others.is_empty() => {
                write!(f, "link `{link}`: no path from any of the {} pages left is simple", grouped(*before))
            }
            Self::Together { link, others, before } => write!(
                f,
                "link `{link}` fits none of the {} matches of {} together",
                grouped(*before),
                others.iter().map(|other| format!("`{other}`")).collect::<Vec<_>>().join(", ")
            ),
        }
    }
}
