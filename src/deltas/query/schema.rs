//! How queries and the shapes of their tuples are written down.

use serde::{Deserialize, Serialize};

use super::compile::Query;
use super::config::Paths;
use super::predicate::Predicate;
use crate::model::{Digest, DigestBuilder};

/// To be raised whenever the same query may give other tuples than before.
const VERSION: u64 = 1;

/// A query as the store remembers it: the paper's web schema pool. The `schema` column of its tuples names the links
/// that are paths with the lengths taken, such as `a>u=2`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuerySchema {
    pub name: String,
    pub nodes: Vec<NodeSchema>,
    pub links: Vec<LinkSchema>,
    pub paths: Paths,
    pub fingerprint: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSchema {
    pub name: String,
    pub predicates: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSchema {
    pub from: String,
    pub to: String,
    /// Fewest and most links along it.
    pub min: u16,
    pub max: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

impl Query {
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Identifies all that decides which tuples the query has.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        let mut builder = DigestBuilder::new();
        builder.number(VERSION).field(self.name.as_bytes()).number(u64::from(self.paths == Paths::All));
        builder.number(self.nodes.len() as u64);
        for node in &self.nodes {
            builder.field(node.name.as_bytes()).number(node.predicates.len() as u64);
            for predicate in &node.predicates {
                builder.field(predicate.to_string().as_bytes());
            }
        }
        // The order of the links decides nothing about the tuples.
        let mut links: Vec<&str> = self.links.iter().map(|link| link.text.as_str()).collect();
        links.sort_unstable();
        for link in links {
            builder.field(link.as_bytes());
        }
        builder.finish()
    }

    #[must_use]
    pub fn schema(&self) -> QuerySchema {
        let name = |node: usize| self.nodes[node].name.clone();
        let nodes = self.nodes.iter().map(|node| NodeSchema {
            name: node.name.clone(),
            predicates: node.predicates.iter().map(ToString::to_string).collect(),
        });
        let links = self.links.iter().map(|link| {
            let (min, max) = link.path.unwrap_or((1, 1));
            LinkSchema {
                from: name(link.from),
                to: name(link.to),
                min,
                max,
                label: link.label.as_ref().map(|glob| glob.as_str().to_owned()),
                kinds: link.kinds.iter().map(ToString::to_string).collect(),
            }
        });
        QuerySchema {
            name: self.name.clone(),
            nodes: nodes.collect(),
            links: links.collect(),
            paths: self.paths,
            fingerprint: self.fingerprint().to_string(),
        }
    }

    /// More tuples than this are refused.
    #[must_use]
    pub fn max_tuples(&self) -> u64 {
        self.max_tuples
    }

    /// The extractors whose mentions it asks for, each once.
    #[must_use]
    pub fn mentions(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .predicates()
            .filter_map(|predicate| match predicate {
                Predicate::Mention(extractor) => Some(extractor.as_str()),
                _ => None,
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Does it ask what a page's text says?
    #[must_use]
    pub fn needs_text(&self) -> bool {
        self.predicates().any(|predicate| matches!(predicate, Predicate::Text(_)))
    }

    /// Does it ask where a page's text stands among its elements?
    #[must_use]
    pub fn needs_elements(&self) -> bool {
        self.predicates().any(|predicate| matches!(predicate, Predicate::Element(_)))
    }

    fn predicates(&self) -> impl Iterator<Item = &Predicate> {
        self.nodes.iter().flat_map(|node| &node.predicates)
    }
}
