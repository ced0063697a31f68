//! A web table: the matches of a query in one snapshot.
//!
//! Node names, URLs, labels and schemas are held once and referred to by number. URLs and names are numbered in their
//! order, tuples are sorted by id, nodes by name, links by their nodes: the same matches give the same rows, however
//! they were found.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::by_name;
use crate::model::{Digest, DigestBuilder, LinkKind};

/// A node of a tuple, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TupleNodeRow<'a> {
    pub tuple: Digest,
    pub node: &'a str,
    pub url: &'a str,
    /// The page's digest that decides whether it changed.
    pub version: Digest,
    /// Which path lengths the tuple took; the same in all rows of a tuple.
    pub schema: &'a str,
}

/// A link between two nodes of a tuple, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TupleLinkRow<'a> {
    pub tuple: Digest,
    pub from_node: &'a str,
    pub to_node: &'a str,
    pub label: &'a str,
    pub kind: LinkKind,
}

/// The matches of a query.
#[derive(Clone, Debug, Default)]
pub struct WebTable {
    query: String,
    /// Ordered by [`by_name`].
    names: Vec<Arc<str>>,
    /// Ordered. Each is in some tuple.
    urls: Vec<Arc<str>>,
    /// For each URL the version of its page.
    versions: Vec<Digest>,
    labels: Vec<Arc<str>>,
    schemas: Vec<Arc<str>>,
    /// Ordered by id.
    tuples: Vec<Tuple>,
    /// Numbers of name and URL. The nodes of a tuple lie together, ordered.
    nodes: Vec<(u32, u32)>,
    links: Vec<TupleLink>,
}

#[derive(Clone, Debug)]
struct Tuple {
    id: Digest,
    schema: u32,
    nodes: Range<usize>,
    links: Range<usize>,
}

/// A row of a node, its texts as numbers. Ordered as tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NumberedNode {
    tuple: Digest,
    name: u32,
    url: u32,
    schema: u32,
}

/// A link of a tuple: the numbers of its two names and of its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::deltas) struct TupleLink {
    pub(in crate::deltas) from: u32,
    pub(in crate::deltas) to: u32,
    pub(in crate::deltas) label: u32,
    pub(in crate::deltas) kind: LinkKind,
}

/// Rows that cannot be of one web table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRows {
    #[error("{url} has two versions in one web table of query '{query}': it was not written in one piece")]
    TwoVersions { query: String, url: String },
    #[error("tuple {tuple} of query '{query}' has node '{node}' twice: it was not written in one piece")]
    NodeTwice { query: String, tuple: Digest, node: String },
    #[error("a link of tuple {tuple} of query '{query}' leads from '{from}' to '{to}', which are not both its nodes")]
    StrayLink { query: String, tuple: Digest, from: String, to: String },
}

/// The identity of a tuple: its query and its nodes, by name, the inner nodes of a path by number.
#[must_use]
pub(crate) fn tuple_id<'a>(query: &str, nodes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Digest {
    let mut builder = DigestBuilder::new();
    builder.field(query.as_bytes());
    for (node, url) in nodes {
        builder.field(node.as_bytes()).field(url.as_bytes());
    }
    builder.finish()
}

impl WebTable {
    /// The table of a query that matches nothing, or was not asked before.
    #[must_use]
    pub fn empty(query: &str) -> Self {
        Self { query: query.to_owned(), ..Self::default() }
    }

    /// The table whose rows these are, in any order. Links are not needed for deltas and may be left out.
    pub fn from_rows<'a>(
        query: &str,
        nodes: impl IntoIterator<Item = TupleNodeRow<'a>>,
        links: impl IntoIterator<Item = TupleLinkRow<'a>>,
    ) -> Result<Self, BadRows> {
        let mut table = Self::empty(query);
        let nodes = table.take_nodes(nodes)?;
        let links = table.take_links(links)?;
        table.put_together(&nodes, links)?;
        Ok(table)
    }

    /// Takes in the names, URLs, versions and schemas of node rows; gives the rows as numbers, sorted.
    fn take_nodes<'a>(
        &mut self,
        rows: impl IntoIterator<Item = TupleNodeRow<'a>>,
    ) -> Result<Vec<NumberedNode>, BadRows> {
        let (mut names, mut urls, mut schemas) = (Interner::default(), Interner::default(), Interner::default());
        let mut versions = Vec::new();
        let mut nodes = Vec::new();
        for row in rows {
            let url = urls.number(row.url);
            if url as usize == versions.len() {
                versions.push(row.version);
            } else if versions[url as usize] != row.version {
                return Err(BadRows::TwoVersions { query: self.query.clone(), url: row.url.to_owned() });
            }
            let (name, schema) = (names.number(row.node), schemas.number(row.schema));
            nodes.push(NumberedNode { tuple: row.tuple, name, url, schema });
        }
        let (names, name_ranks) = names.ranked(by_name);
        let (urls, url_ranks) = urls.ranked(str::cmp);
        for node in &mut nodes {
            node.name = name_ranks[node.name as usize];
            node.url = url_ranks[node.url as usize];
        }
        nodes.sort_unstable();
        self.versions.clone_from(&versions);
        for (version, &rank) in versions.into_iter().zip(&url_ranks) {
            self.versions[rank as usize] = version;
        }
        (self.names, self.urls, self.schemas) = (names, urls, schemas.texts);
        Ok(nodes)
    }

    /// Takes in the labels of link rows; gives the rows as numbers, sorted. The names are known from the nodes.
    fn take_links<'a>(
        &mut self,
        rows: impl IntoIterator<Item = TupleLinkRow<'a>>,
    ) -> Result<Vec<(Digest, TupleLink)>, BadRows> {
        let mut labels = Interner::default();
        let number_of = |name: &str| self.names.binary_search_by(|known| by_name(known, name)).ok();
        let mut links = Vec::new();
        for row in rows {
            let ends = (number_of(row.from_node), number_of(row.to_node));
            let (Some(from), Some(to)) = ends else {
                return Err(stray(&self.query, &row));
            };
            let link = TupleLink { from: small(from), to: small(to), label: labels.number(row.label), kind: row.kind };
            links.push((row.tuple, link));
        }
        let (labels, label_ranks) = labels.ranked(str::cmp);
        for (_, link) in &mut links {
            link.label = label_ranks[link.label as usize];
        }
        links.sort_unstable_by_key(|(tuple, link)| (*tuple, link.key()));
        self.labels = labels;
        Ok(links)
    }

    /// Makes tuples of sorted nodes and links; refuses nodes and links that cannot be of one tuple.
    fn put_together(&mut self, nodes: &[NumberedNode], links: Vec<(Digest, TupleLink)>) -> Result<(), BadRows> {
        let mut links = links.into_iter().peekable();
        for nodes in nodes.chunk_by(|a, b| a.tuple == b.tuple) {
            let NumberedNode { tuple: id, schema, .. } = nodes[0];
            let (first_node, first_link) = (self.nodes.len(), self.links.len());
            for node in nodes {
                if self.nodes[first_node..].last().is_some_and(|&(last, _)| last == node.name) {
                    let node = self.name(node.name).to_owned();
                    return Err(BadRows::NodeTwice { query: self.query.clone(), tuple: id, node });
                }
                self.nodes.push((node.name, node.url));
            }
            let has = |name: u32| nodes.iter().any(|node| node.name == name);
            while let Some((of, link)) = links.next_if(|(of, _)| *of <= id) {
                if of != id || !has(link.from) || !has(link.to) {
                    return Err(stray(&self.query, &self.link_row(of, &link)));
                }
                self.links.push(link);
            }
            let (nodes, links) = (first_node..self.nodes.len(), first_link..self.links.len());
            self.tuples.push(Tuple { id, schema, nodes, links });
        }
        match links.next() {
            Some((of, link)) => Err(stray(&self.query, &self.link_row(of, &link))),
            None => Ok(()),
        }
    }

    #[must_use]
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Number of tuples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tuples.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tuples.is_empty()
    }

    /// Ordered by tuple, then node.
    pub fn node_rows(&self) -> impl Iterator<Item = TupleNodeRow<'_>> {
        self.tuples.iter().flat_map(|tuple| {
            self.nodes[tuple.nodes.clone()].iter().map(|&(name, url)| TupleNodeRow {
                tuple: tuple.id,
                node: self.name(name),
                url: self.url(url),
                version: self.versions[url as usize],
                schema: &self.schemas[tuple.schema as usize],
            })
        })
    }

    /// Ordered by tuple, then nodes, label and kind.
    pub fn link_rows(&self) -> impl Iterator<Item = TupleLinkRow<'_>> {
        self.tuples
            .iter()
            .flat_map(|tuple| self.links[tuple.links.clone()].iter().map(|link| self.link_row(tuple.id, link)))
    }

    fn link_row(&self, tuple: Digest, link: &TupleLink) -> TupleLinkRow<'_> {
        TupleLinkRow {
            tuple,
            from_node: self.name(link.from),
            to_node: self.name(link.to),
            label: &self.labels[link.label as usize],
            kind: link.kind,
        }
    }

    /// How many tuples took which path lengths, by schema.
    #[must_use]
    pub fn schemas(&self) -> std::collections::BTreeMap<&str, u64> {
        let mut counts = std::collections::BTreeMap::new();
        for tuple in &self.tuples {
            *counts.entry(&*self.schemas[tuple.schema as usize]).or_default() += 1;
        }
        counts
    }

    /// The ids of all tuples, sorted.
    #[must_use]
    pub fn ids(&self) -> Vec<Digest> {
        self.tuples.iter().map(|tuple| tuple.id).collect()
    }

    pub(super) fn id(&self, tuple: usize) -> Digest {
        self.tuples[tuple].id
    }

    /// Number of a tuple.
    pub(super) fn find(&self, id: Digest) -> Option<usize> {
        self.tuples.binary_search_by(|tuple| tuple.id.cmp(&id)).ok()
    }

    /// Numbers of name and URL of each node.
    pub(super) fn nodes(&self, tuple: usize) -> &[(u32, u32)] {
        &self.nodes[self.tuples[tuple].nodes.clone()]
    }

    pub(super) fn links(&self, tuple: usize) -> &[TupleLink] {
        &self.links[self.tuples[tuple].links.clone()]
    }

    /// Number of the URL that a node of a tuple has.
    pub(super) fn page_of(&self, tuple: usize, name: u32) -> u32 {
        let nodes = self.nodes(tuple);
        let at = nodes.binary_search_by_key(&name, |&(name, _)| name).expect("links lead between nodes of their tuple");
        nodes[at].1
    }

    pub(super) fn label(&self, label: u32) -> &str {
        &self.labels[label as usize]
    }

    pub(super) fn schema(&self, tuple: usize) -> &str {
        &self.schemas[self.tuples[tuple].schema as usize]
    }

    pub(super) fn name(&self, name: u32) -> &str {
        &self.names[name as usize]
    }

    pub(super) fn urls(&self) -> &[Arc<str>] {
        &self.urls
    }

    pub(super) fn url(&self, url: u32) -> &str {
        &self.urls[url as usize]
    }

    /// Gives pages other versions, where `version` knows one.
    pub fn set_versions(&mut self, version: impl Fn(&str) -> Option<Digest>) {
        for (url, known) in self.urls.iter().zip(&mut self.versions) {
            *known = version(url).unwrap_or(*known);
        }
    }

    pub(super) fn version(&self, url: u32) -> Digest {
        self.versions[url as usize]
    }
}

fn stray(query: &str, row: &TupleLinkRow<'_>) -> BadRows {
    BadRows::StrayLink {
        query: query.to_owned(),
        tuple: row.tuple,
        from: row.from_node.to_owned(),
        to: row.to_node.to_owned(),
    }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32 of them fit in memory")
}

impl TupleLink {
    /// What rows are sorted by: kinds by their names, as readers of the table would sort them.
    fn key(&self) -> (u32, u32, u32, &'static str) {
        (self.from, self.to, self.label, self.kind.as_str())
    }
}

/// Texts by number.
#[derive(Default)]
struct Interner {
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
}

impl Interner {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let text: Arc<str> = text.into();
        let number = small(self.texts.len());
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    /// The texts in order, and for each number the place of its text there.
    fn ranked(self, order: impl Fn(&str, &str) -> std::cmp::Ordering) -> (Vec<Arc<str>>, Vec<u32>) {
        let mut by_rank: Vec<usize> = (0..self.texts.len()).collect();
        by_rank.sort_unstable_by(|&a, &b| order(&self.texts[a], &self.texts[b]));
        let mut ranks = vec![0; self.texts.len()];
        for (rank, &number) in by_rank.iter().enumerate() {
            ranks[number] = small(rank);
        }
        (by_rank.into_iter().map(|number| Arc::clone(&self.texts[number])).collect(), ranks)
    }
}

/// Takes the matches of a query as numbers, in any order, each once.
pub(in crate::deltas) struct TableBuilder {
    table: WebTable,
    schema_numbers: HashMap<Arc<str>, u32>,
}

impl TableBuilder {
    /// `names` are ordered by [`by_name`], `pages` by URL, `labels` as texts.
    pub(in crate::deltas) fn new(
        query: &str,
        names: Vec<Arc<str>>,
        pages: impl Iterator<Item = (Arc<str>, Digest)>,
        labels: Vec<Arc<str>>,
    ) -> Self {
        let (urls, versions) = pages.unzip();
        let table = WebTable { query: query.to_owned(), names, urls, versions, labels, ..WebTable::default() };
        Self { table, schema_numbers: HashMap::new() }
    }

    /// Adds a tuple: numbers of name and page, and links between them. Sorts both; equal links count once.
    pub(in crate::deltas) fn push(&mut self, schema: &str, nodes: &mut [(u32, u32)], links: &mut Vec<TupleLink>) {
        nodes.sort_unstable();
        links.sort_unstable_by_key(TupleLink::key);
        links.dedup();
        let table = &mut self.table;
        let schema = match self.schema_numbers.get(schema) {
            Some(&number) => number,
            None => {
                let (number, schema): (_, Arc<str>) = (small(table.schemas.len()), schema.into());
                table.schemas.push(Arc::clone(&schema));
                self.schema_numbers.insert(schema, number);
                number
            }
        };
        let id = tuple_id(&table.query, nodes.iter().map(|&(name, url)| (table.name(name), table.url(url))));
        let (first_node, first_link) = (table.nodes.len(), table.links.len());
        table.nodes.extend_from_slice(nodes);
        table.links.extend_from_slice(links);
        let (nodes, links) = (first_node..table.nodes.len(), first_link..table.links.len());
        table.tuples.push(Tuple { id, schema, nodes, links });
    }

    pub(in crate::deltas) fn finish(self) -> WebTable {
        let mut table = self.table;
        table.tuples.sort_unstable_by_key(|tuple| tuple.id);
        // Keep only URLs that are in some tuple: what was added or deleted between two tables follows from their lists
        // of URLs.
        let mut used = vec![false; table.urls.len()];
        table.nodes.iter().for_each(|&(_, url)| used[url as usize] = true);
        let mut numbers = vec![0; used.len()];
        let (mut urls, mut versions) = (Vec::new(), Vec::new());
        for (at, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            numbers[at] = small(urls.len());
            urls.push(Arc::clone(&table.urls[at]));
            versions.push(table.versions[at]);
        }
        (table.urls, table.versions) = (urls, versions);
        table.nodes.iter_mut().for_each(|node| node.1 = numbers[node.1 as usize]);
        table
    }
}
