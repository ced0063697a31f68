//! Coupling queries: small graph patterns over the pages and links of a snapshot (WHOWEDA).
//!
//! Problem: find all ways to assign pages to the nodes of a pattern so that every page meets its node's predicates and
//! every link or path of the pattern is there. Idea: never try assignments. Candidates of each node come from its
//! predicates, links then remove those that have no partner (semi-joins, through paths by levels), and only what is
//! left is put together, from the node with the fewest candidates along the links.
//!
//! | file | question it answers |
//! |---|---|
//! | `config` | what was typed in the pipeline file |
//! | `pattern` | what a link such as `a -{0,4}-> u [label = 'uses*']` says |
//! | `predicate` | which pages a node may be, which links may be followed |
//! | `compile` | is the query sound, and what does it mean ([`Query`]) |
//! | `schema` | what a query and its tuples are called in the store |
//! | `web` | the pages and links of a snapshot ([`Web`]) |
//! | `reduce` | which pages are left for each node |
//! | `paths` | which paths lead from a page, within bounds |
//! | `search`, `evaluate` | which tuples there are ([`Query::evaluate`]) |
//! | `around` | which tuples there are, where the table before and the pages that changed since are known |
//!
//! Semantics. `x -> y` is one link, which may lead to its own page. `x -{m,n}-> y` is a path of m to n links that
//! visits no page twice; with m = 0, x and y may be the same page. Pages inside a path belong to the tuple as nodes
//! `x>y.1`, `x>y.2`…; a predicate on a path's links holds for each of them. Two names may have one page. Parallel links
//! make one tuple, which shows them all. `paths = "all"` gives a tuple for each path; `"shortest"` one for each choice
//! of named pages: the path with the fewest links among those allowed, of several the first by the URLs along it.
//!
//! Cost: a semi-join is linear in the links; putting together is linear in the tuples for patterns without cycles and
//! with `shortest`, plus one bounded search from each page that begins a path. Too many tuples or paths end the query
//! with their number.

mod around;
mod bits;
mod compile;
mod config;
mod evaluate;
mod paths;
mod pattern;
mod predicate;
mod reduce;
mod schema;
mod search;
mod web;

#[cfg(test)]
mod tests;

pub(crate) use around::{Neighbours, OutLink};
pub(crate) use compile::Query;
pub(crate) use config::QueryConfig;
pub(crate) use evaluate::{Evaluation, Failure, LookFor, Question};
pub(crate) use predicate::{ElementPredicate, Field, Glob};
pub(crate) use web::WebBuilder;
pub(crate) use web::{Web, WebPage};
