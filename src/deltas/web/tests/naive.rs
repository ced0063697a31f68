//! The rules as DESIGN and the module page state them, with sets and all pairs.

use std::collections::BTreeSet;

use super::{Plain, Row};
use crate::model::Digest;

type Urls = BTreeSet<String>;

pub(super) struct Naive<'a> {
    old: &'a Plain,
    new: &'a Plain,
    added: Urls,
    deleted: Urls,
    updated: Urls,
    joinable: Urls,
}

impl<'a> Naive<'a> {
    pub(super) fn new(old: &'a Plain, new: &'a Plain) -> Self {
        let all = |plain: &Plain| plain.tuples.values().flat_map(|nodes| nodes.values().cloned()).collect::<Urls>();
        let (n1, n2) = (all(old), all(new));
        let (joinable, updated) = n1.intersection(&n2).cloned().partition(|url| old.versions[url] == new.versions[url]);
        Self { old, new, added: &n2 - &n1, deleted: &n1 - &n2, updated, joinable }
    }

    fn urls(plain: &Plain, id: Digest) -> Urls {
        plain.tuples[&id].values().cloned().collect()
    }

    fn all_pairs(&self) -> impl Iterator<Item = (Digest, Digest)> {
        self.old.tuples.keys().flat_map(|&w1| self.new.tuples.keys().map(move |&w2| (w1, w2)))
    }

    fn shared(&self, (w1, w2): (Digest, Digest)) -> Urls {
        &Self::urls(self.old, w1) & &Self::urls(self.new, w2)
    }

    pub(super) fn joined(&self) -> Vec<(Digest, Digest)> {
        self.all_pairs().filter(|&pair| !self.shared(pair).is_disjoint(&self.joinable)).collect()
    }

    pub(super) fn dangling(&self) -> (Vec<Digest>, Vec<Digest>) {
        let joined = self.joined();
        let left = self.old.tuples.keys().copied().filter(|w1| joined.iter().all(|pair| pair.0 != *w1));
        let right = self.new.tuples.keys().copied().filter(|w2| joined.iter().all(|pair| pair.1 != *w2));
        (left.collect(), right.collect())
    }

    fn modified(&self) -> Vec<(Digest, Digest)> {
        let joined = self.joined();
        let in_join: Urls =
            joined.iter().flat_map(|&(w1, w2)| &Self::urls(self.old, w1) | &Self::urls(self.new, w2)).collect();
        let only_dangling = &self.updated - &in_join;
        let (left, right) = self.dangling();
        let mut eligible: Vec<_> = self
            .all_pairs()
            .filter(|&(w1, w2)| {
                let (a, b) = (Self::urls(self.old, w1), Self::urls(self.new, w2));
                let differ_by_added_and_deleted = (&a ^ &b).is_subset(&(&self.added | &self.deleted));
                let from_join = joined.contains(&(w1, w2)) && !(&a | &b).is_disjoint(&self.updated);
                let both_dangle = left.contains(&w1) && right.contains(&w2);
                let from_outer =
                    both_dangle && ((a == b && a.is_subset(&self.updated)) || !(&a & &b).is_disjoint(&only_dangling));
                differ_by_added_and_deleted && (from_join || from_outer)
            })
            .collect();
        eligible.sort_by_key(|&(w1, w2)| (usize::MAX - self.shared((w1, w2)).len(), w1 != w2, w1, w2));
        let mut pairs: Vec<(Digest, Digest)> = Vec::new();
        for (w1, w2) in eligible {
            if pairs.iter().all(|pair| pair.0 != w1 && pair.1 != w2) {
                pairs.push((w1, w2));
            }
        }
        pairs
    }

    fn row(&self, delta: &'static str, ids: (Digest, Option<Digest>), node: &str, url: &str, new: bool) -> Row {
        let (version, change) = if self.joinable.contains(url) {
            ("both", "unchanged")
        } else {
            let change = match (self.added.contains(url), self.deleted.contains(url)) {
                (true, _) => "added",
                (_, true) => "deleted",
                _ => "modified",
            };
            (if new { "new" } else { "old" }, change)
        };
        let digest = if new { self.new.versions[url] } else { self.old.versions[url] };
        (delta, ids.0, ids.1, node.to_owned(), url.to_owned(), version, digest, change)
    }

    /// Sorted.
    pub(super) fn rows(&self) -> Vec<Row> {
        let modified = self.modified();
        let mut rows = Vec::new();
        for (&w2, nodes) in &self.new.tuples {
            let plus = !Self::urls(self.new, w2).is_disjoint(&self.added);
            let known = self.old.tuples.contains_key(&w2) || modified.iter().any(|pair| pair.1 == w2);
            if plus || !known {
                let delta = if plus { "plus" } else { "relinked_new" };
                rows.extend(nodes.iter().map(|(node, url)| self.row(delta, (w2, None), node, url, true)));
            }
        }
        for (&w1, nodes) in &self.old.tuples {
            let minus = !Self::urls(self.old, w1).is_disjoint(&self.deleted);
            let known = self.new.tuples.contains_key(&w1) || modified.iter().any(|pair| pair.0 == w1);
            if minus || !known {
                let delta = if minus { "minus" } else { "relinked_old" };
                rows.extend(nodes.iter().map(|(node, url)| self.row(delta, (w1, None), node, url, false)));
            }
        }
        for (w1, w2) in modified {
            let ids = (w2, Some(w1));
            for (node, url) in &self.new.tuples[&w2] {
                rows.push(self.row("modified", ids, node, url, true));
                if self.updated.contains(url) {
                    rows.push(self.row("modified", ids, node, url, false));
                }
            }
            let new_urls = Self::urls(self.new, w2);
            for (node, url) in self.old.tuples[&w1].iter().filter(|(_, url)| !new_urls.contains(*url)) {
                rows.push(self.row("modified", ids, node, url, false));
            }
        }
        rows.sort();
        rows
    }
}
