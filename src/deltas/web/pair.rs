//! Two web tables of a query: which of their node URLs were added, deleted or updated, which stayed the same, and which
//! tuples therefore join.
//!
//! A tuple joins with some tuple of the other table if and only if it has a joinable node: that node is in both tables,
//! hence in a tuple of each. So dangling tuples are found without a join, and the join itself is only made when someone
//! wants to see it: one page in all tuples makes it quadratic.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::table::WebTable;
use super::tuple_deltas::Deltas;
use crate::model::{Change, Digest, Fate};

/// What became of a node URL, relative to the two tables: a page that existed but did not match before is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeClass {
    /// Only in the new table (the paper's A).
    Added,
    /// Only in the old table (the paper's D).
    Deleted,
    /// In both, in different versions (the paper's U).
    Updated,
    /// In both, in the same version (the paper's J).
    Joinable,
}

impl NodeClass {
    /// The same in the words of `tuple_deltas`.
    #[must_use]
    pub fn fate(self) -> Fate {
        match self {
            Self::Added => Fate::Changed(Change::Added),
            Self::Deleted => Fate::Changed(Change::Deleted),
            Self::Updated => Fate::Changed(Change::Modified),
            Self::Joinable => Fate::Unchanged,
        }
    }
}

/// An old and a new web table.
pub struct Pair<'a> {
    pub(super) old: &'a WebTable,
    pub(super) new: &'a WebTable,
    /// For each URL of the old table its class and its number in the new one, if it is there.
    old_urls: Vec<(NodeClass, Option<u32>)>,
    new_urls: Vec<(NodeClass, Option<u32>)>,
}

/// The web join, as far as it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// Old and new tuple, ordered by their ids.
    pub pairs: Vec<(Digest, Digest)>,
    /// Whether these are all pairs. If not, there are more than were asked for.
    pub complete: bool,
    /// There are no more pairs than this.
    pub at_most: u64,
}

/// Which of the two tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Old,
    New,
}

impl<'a> Pair<'a> {
    #[must_use]
    pub fn new(old: &'a WebTable, new: &'a WebTable) -> Self {
        let mut old_urls = vec![(NodeClass::Deleted, None); old.urls().len()];
        let mut new_urls = vec![(NodeClass::Added, None); new.urls().len()];
        let (mut i, mut k) = (0u32, 0u32);
        while let (Some(a), Some(b)) = (old.urls().get(i as usize), new.urls().get(k as usize)) {
            match a.cmp(b) {
                Ordering::Less => i += 1,
                Ordering::Greater => k += 1,
                Ordering::Equal => {
                    let same = old.version(i) == new.version(k);
                    let class = if same { NodeClass::Joinable } else { NodeClass::Updated };
                    old_urls[i as usize] = (class, Some(k));
                    new_urls[k as usize] = (class, Some(i));
                    i += 1;
                    k += 1;
                }
            }
        }
        Self { old, new, old_urls, new_urls }
    }

    /// The node URLs of a class, sorted.
    pub fn urls(&self, class: NodeClass) -> impl Iterator<Item = &'a str> {
        let (table, classes) =
            if class == NodeClass::Deleted { (self.old, &self.old_urls) } else { (self.new, &self.new_urls) };
        table.urls().iter().zip(classes).filter(move |(_, of)| of.0 == class).map(|(url, _)| &**url)
    }

    /// What changed between the tables.
    #[must_use]
    pub fn deltas(&self) -> Deltas<'_> {
        Deltas::new(self)
    }

    /// The left outer web join: old tuples that join with no new one.
    pub fn left_dangling(&self) -> impl Iterator<Item = Digest> {
        (0..self.old.len()).filter(|&tuple| self.dangles(Side::Old, tuple)).map(|tuple| self.old.id(tuple))
    }

    /// The right outer web join: new tuples that join with no old one.
    pub fn right_dangling(&self) -> impl Iterator<Item = Digest> {
        (0..self.new.len()).filter(|&tuple| self.dangles(Side::New, tuple)).map(|tuple| self.new.id(tuple))
    }

    /// The web join: pairs of tuples that share a joinable node, the first `cap` of them by id.
    #[must_use]
    pub fn join(&self, cap: usize) -> Join {
        let mut holders: Vec<Vec<usize>> = vec![Vec::new(); self.new.urls().len()];
        for tuple in 0..self.new.len() {
            for url in self.distinct(Side::New, tuple) {
                if self.new_urls[url as usize].0 == NodeClass::Joinable {
                    holders[url as usize].push(tuple);
                }
            }
        }
        let mut join = Join { pairs: Vec::new(), complete: true, at_most: 0 };
        for old in 0..self.old.len() {
            let shared: Vec<u32> =
                self.distinct(Side::Old, old).into_iter().filter_map(|url| self.joinable(url)).collect();
            join.at_most += shared.iter().map(|&url| holders[url as usize].len() as u64).sum::<u64>();
            if join.complete {
                let partners: BTreeSet<usize> =
                    shared.iter().flat_map(|&url| &holders[url as usize]).copied().collect();
                let room = cap - join.pairs.len();
                join.complete = partners.len() <= room;
                join.pairs.extend(partners.into_iter().take(room).map(|new| (self.old.id(old), self.new.id(new))));
            }
        }
        if join.complete {
            join.at_most = join.pairs.len() as u64;
        }
        join
    }

    fn joinable(&self, old_url: u32) -> Option<u32> {
        let (class, twin) = self.old_urls[old_url as usize];
        twin.filter(|_| class == NodeClass::Joinable)
    }

    fn dangles(&self, side: Side, tuple: usize) -> bool {
        self.nodes(side, tuple).iter().all(|&(_, url)| self.class(side, url) != NodeClass::Joinable)
    }

    pub(super) fn nodes(&self, side: Side, tuple: usize) -> &'a [(u32, u32)] {
        match side {
            Side::Old => self.old.nodes(tuple),
            Side::New => self.new.nodes(tuple),
        }
    }

    pub(super) fn class(&self, side: Side, url: u32) -> NodeClass {
        match side {
            Side::Old => self.old_urls[url as usize].0,
            Side::New => self.new_urls[url as usize].0,
        }
    }

    /// The number of a URL in the other table.
    pub(super) fn twin(&self, side: Side, url: u32) -> Option<u32> {
        match side {
            Side::Old => self.old_urls[url as usize].1,
            Side::New => self.new_urls[url as usize].1,
        }
    }

    /// The URLs of a tuple, sorted; several nodes may have one.
    pub(super) fn distinct(&self, side: Side, tuple: usize) -> Vec<u32> {
        let mut urls: Vec<u32> = self.nodes(side, tuple).iter().map(|&(_, url)| url).collect();
        urls.sort_unstable();
        urls.dedup();
        urls
    }
}
