//! What of a web table has to be stored where the one before is known: tuples that came, tuples whose pages or links
//! are not as they were, and tuples that went.

use std::collections::BTreeMap;

use super::table::{BadRows, TupleLinkRow, TupleNodeRow, WebTable};
use crate::model::closed_set::ClosedSet as _;
use crate::model::{Change, Digest, Fate};

impl WebTable {
    /// What became of each tuple since another table of the query, in the order of tuples.
    pub fn fates<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = Fate> + 'a {
        (0..self.len()).map(|tuple| match before.find(self.id(tuple)) {
            None => Fate::Changed(Change::Added),
            Some(old) if self.shows_the_same(tuple, before, old) => Fate::Unchanged,
            Some(_) => Fate::Changed(Change::Modified),
        })
    }

    /// Whether two tuples of one id would be stored as the same rows.
    fn shows_the_same(&self, tuple: usize, before: &Self, old: usize) -> bool {
        let versions = |table: &Self, tuple: usize| -> Vec<Digest> {
            table.nodes(tuple).iter().map(|&(_, url)| table.version(url)).collect()
        };
        let mine = self
            .links(tuple)
            .iter()
            .map(|link| (self.name(link.from), self.name(link.to), self.label(link.label), link.kind.name()));
        let theirs = before
            .links(old)
            .iter()
            .map(|link| (before.name(link.from), before.name(link.to), before.label(link.label), link.kind.name()));
        versions(self, tuple) == versions(before, old) && self.schema(tuple) == before.schema(old) && mine.eq(theirs)
    }
}

/// A web table put together from what snapshots stored of it, oldest first.
#[derive(Default)]
pub(crate) struct Layered<N, L> {
    tuples: BTreeMap<Digest, (Vec<N>, Vec<L>)>,
}

impl<N, L> Layered<N, L> {
    #[must_use]
    pub(crate) fn new() -> Self {
        Self { tuples: BTreeMap::new() }
    }

    /// Takes in a layer. A tuple that stands in it replaces what was known of it; where `gone` says so, it is no more.
    pub(crate) fn add(
        &mut self,
        nodes: Vec<N>,
        links: Vec<L>,
        of_node: impl Fn(&N) -> (Digest, bool),
        of_link: impl Fn(&L) -> Digest,
    ) {
        for node in &nodes {
            self.tuples.remove(&of_node(node).0);
        }
        for node in nodes {
            let (tuple, gone) = of_node(&node);
            if !gone {
                self.tuples.entry(tuple).or_insert_with(|| (Vec::new(), Vec::new())).0.push(node);
            }
        }
        for link in links {
            if let Some(tuple) = self.tuples.get_mut(&of_link(&link)) {
                tuple.1.push(link);
            }
        }
    }

    /// The table that the layers make.
    pub(crate) fn table<'a>(
        &'a self,
        query: &str,
        node: impl Fn(&'a N) -> TupleNodeRow<'a>,
        link: impl Fn(&'a L) -> TupleLinkRow<'a>,
    ) -> Result<WebTable, BadRows> {
        let nodes = self.tuples.values().flat_map(|(nodes, _)| nodes).map(node);
        let links = self.tuples.values().flat_map(|(_, links)| links).map(link);
        WebTable::from_rows(query, nodes, links)
    }
}
