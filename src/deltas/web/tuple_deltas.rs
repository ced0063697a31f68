//! The delta web tables.
//!
//! With A, D, U and J the node URLs that were added, deleted, updated and are joinable ([`Pair`]):
//! - `plus`: new tuples with a node in A; `minus`: old tuples with a node in D.
//! - `modified`: pairs of an old and a new tuple whose URL sets differ only by nodes of A and D, with a node in U, if
//!   they share a node of J, or have equal URL sets, or share a node of U that is in no joined tuple. Each tuple is in
//!   at most one pair: the pair with the most equal URLs, then the one of equal ids, then the smallest ids.
//! - `relinked_new`, `relinked_old`: tuples of one table only that are none of the above: a link was added or removed
//!   between known pages.
//!
//! The old table without `minus`, `relinked_old` and the old sides of `modified`, with `plus`, `relinked_new` and the
//! new sides of `modified`, is the new table. For a tuple of both tables with a node in U always pairs with itself: no
//! other pair has more equal URLs, so what is in none of the five is in both tables and all its pages are as before.
//!
//! Idea: URL sets that differ only by nodes of A and D have the same *core*, what is left without them. All equal URLs
//! of such a pair are in the core, so the tuples are grouped by core, and in a group the order of preference is that of
//! ids alone. Linear but for sorting; no pair is looked at that is not taken.
//!
//! Deviation from the paper: two dangling tuples that share an updated node found in no joined tuple but differ in
//! other updated nodes are no pair. Its Definition 1 wants both versions of an updated node in a modified tuple, and
//! such a pair would hold one.

use std::collections::HashMap;

use super::by_name;
use super::pair::{NodeClass, Pair, Side};
use super::tuple_links::{DeltaLinkRow, LinkFates};
use crate::model::{Digest, Fate, NodeVersion, TupleChange};

/// A node of a delta tuple, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaRow<'a> {
    pub delta: TupleChange,
    /// The new tuple; of `minus` and `relinked_old` the old one.
    pub tuple: Digest,
    /// Only `modified` tuples have one.
    pub old_tuple: Option<Digest>,
    /// In a `modified` tuple the node of the new tuple, if that has the URL.
    pub node: &'a str,
    pub url: &'a str,
    pub version: NodeVersion,
    /// The page's digest in that version.
    pub digest: Digest,
    pub change: Fate,
}

/// Tuples of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TupleCounts {
    pub plus: u64,
    pub minus: u64,
    pub modified: u64,
    pub relinked_new: u64,
    pub relinked_old: u64,
}

/// What changed between two web tables.
pub struct Deltas<'a> {
    pair: &'a Pair<'a>,
    /// Ordered by kind, then tuple.
    found: Vec<ChangedTuple>,
}

/// A tuple that came, went or changed, by the numbers of the old and the new tuple.
#[derive(Clone, Copy)]
pub(super) enum ChangedTuple {
    Plus(usize),
    Minus(usize),
    Modified { old: usize, new: usize },
    RelinkedNew(usize),
    RelinkedOld(usize),
}

impl ChangedTuple {
    /// The tuples of the two tables that it shows, the new one first.
    pub(super) fn sides(self) -> Vec<(Side, usize)> {
        match self {
            Self::Plus(new) | Self::RelinkedNew(new) => vec![(Side::New, new)],
            Self::Minus(old) | Self::RelinkedOld(old) => vec![(Side::Old, old)],
            Self::Modified { old, new } => vec![(Side::New, new), (Side::Old, old)],
        }
    }

    pub(super) fn kind(self) -> TupleChange {
        match self {
            Self::Plus(_) => TupleChange::Plus,
            Self::Minus(_) => TupleChange::Minus,
            Self::Modified { .. } => TupleChange::Modified,
            Self::RelinkedNew(_) => TupleChange::RelinkedNew,
            Self::RelinkedOld(_) => TupleChange::RelinkedOld,
        }
    }
}

impl<'a> Deltas<'a> {
    pub(super) fn new(pair: &'a Pair<'a>) -> Self {
        let has = |side, tuple, class| pair.nodes(side, tuple).iter().any(|&(_, url)| pair.class(side, url) == class);
        let (mut old_rest, mut new_rest) = (vec![true; pair.old.len()], vec![true; pair.new.len()]);
        let mut found = Vec::new();
        for (old, rest) in old_rest.iter_mut().enumerate() {
            if has(Side::Old, old, NodeClass::Deleted) {
                found.push(ChangedTuple::Minus(old));
                *rest = false;
            }
        }
        for (new, rest) in new_rest.iter_mut().enumerate() {
            if has(Side::New, new, NodeClass::Added) {
                found.push(ChangedTuple::Plus(new));
                *rest = false;
            }
        }
        for (old, new) in modified(pair) {
            found.push(ChangedTuple::Modified { old, new });
            (old_rest[old], new_rest[new]) = (false, false);
        }
        let relinked_old =
            (0..pair.old.len()).filter(|&old| old_rest[old] && pair.new.find(pair.old.id(old)).is_none());
        found.extend(relinked_old.map(ChangedTuple::RelinkedOld));
        let relinked_new =
            (0..pair.new.len()).filter(|&new| new_rest[new] && pair.old.find(pair.new.id(new)).is_none());
        found.extend(relinked_new.map(ChangedTuple::RelinkedNew));
        let mut deltas = Self { pair, found };
        let mut found = std::mem::take(&mut deltas.found);
        found.sort_unstable_by_key(|found| (found.kind(), deltas.ids(*found)));
        deltas.found = found;
        deltas
    }

    #[must_use]
    pub fn counts(&self) -> TupleCounts {
        let mut counts = TupleCounts::default();
        for found in &self.found {
            match found.kind() {
                TupleChange::Plus => counts.plus += 1,
                TupleChange::Minus => counts.minus += 1,
                TupleChange::Modified => counts.modified += 1,
                TupleChange::RelinkedNew => counts.relinked_new += 1,
                TupleChange::RelinkedOld => counts.relinked_old += 1,
            }
        }
        counts
    }

    /// Ordered by kind, tuple, node, URL and version.
    pub fn rows(&self) -> impl Iterator<Item = DeltaRow<'_>> {
        self.found.iter().flat_map(|&found| {
            let mut rows = self.rows_of(found);
            rows.sort_by(|a, b| {
                by_name(a.node, b.node).then_with(|| a.url.cmp(b.url)).then_with(|| a.version.cmp(&b.version))
            });
            rows
        })
    }

    /// The links of the same tuples, in the same order, then by nodes, URLs and label.
    pub fn link_rows(&self) -> impl Iterator<Item = DeltaLinkRow<'a>> {
        let fates = LinkFates::new(self.pair, &self.found);
        self.found.iter().flat_map(move |&found| fates.rows(self, found))
    }

    /// The columns `tuple` and `old_tuple`.
    pub(super) fn ids(&self, found: ChangedTuple) -> (Digest, Option<Digest>) {
        let Pair { old: old_table, new: new_table, .. } = self.pair;
        match found {
            ChangedTuple::Plus(new) | ChangedTuple::RelinkedNew(new) => (new_table.id(new), None),
            ChangedTuple::Minus(old) | ChangedTuple::RelinkedOld(old) => (old_table.id(old), None),
            ChangedTuple::Modified { old, new } => (new_table.id(new), Some(old_table.id(old))),
        }
    }

    fn rows_of(&self, found: ChangedTuple) -> Vec<DeltaRow<'_>> {
        let pair = self.pair;
        let mut rows = Vec::new();
        let (tuple, old_tuple) = self.ids(found);
        let mut row = |side: Side, (name, url): (u32, u32), version: NodeVersion| {
            let table = if side == Side::Old { pair.old } else { pair.new };
            // An updated page stands under the new tuple's node in both versions; the old one is in the old table.
            let digest = match pair.twin(side, url) {
                Some(twin) if side == Side::New && version == NodeVersion::Old => pair.old.version(twin),
                _ => table.version(url),
            };
            let change = pair.class(side, url).fate();
            let (node, url) = (table.name(name), table.url(url));
            rows.push(DeltaRow { delta: found.kind(), tuple, old_tuple, node, url, version, digest, change });
        };
        match found {
            ChangedTuple::Plus(new) | ChangedTuple::RelinkedNew(new) => {
                for &node in pair.new.nodes(new) {
                    let joinable = pair.class(Side::New, node.1) == NodeClass::Joinable;
                    row(Side::New, node, if joinable { NodeVersion::Both } else { NodeVersion::New });
                }
            }
            ChangedTuple::Minus(old) | ChangedTuple::RelinkedOld(old) => {
                for &node in pair.old.nodes(old) {
                    let joinable = pair.class(Side::Old, node.1) == NodeClass::Joinable;
                    row(Side::Old, node, if joinable { NodeVersion::Both } else { NodeVersion::Old });
                }
            }
            ChangedTuple::Modified { old, new } => {
                for &node in pair.new.nodes(new) {
                    match pair.class(Side::New, node.1) {
                        NodeClass::Joinable => row(Side::New, node, NodeVersion::Both),
                        NodeClass::Updated => {
                            row(Side::New, node, NodeVersion::Old);
                            row(Side::New, node, NodeVersion::New);
                        }
                        NodeClass::Added | NodeClass::Deleted => row(Side::New, node, NodeVersion::New),
                    }
                }
                // The two tuples share all URLs that are in both tables.
                for &node in pair.old.nodes(old) {
                    if pair.class(Side::Old, node.1) == NodeClass::Deleted {
                        row(Side::Old, node, NodeVersion::Old);
                    }
                }
            }
        }
        rows
    }
}

/// Tuples with the same core, by id.
#[derive(Default)]
struct Group {
    old: Vec<usize>,
    new: Vec<usize>,
}

/// The pairs of `modified`, as numbers of old and new tuples.
fn modified(pair: &Pair<'_>) -> Vec<(usize, usize)> {
    // For each URL of the new table, whether a tuple that joins has it.
    let mut in_join = vec![false; pair.new.urls().len()];
    let mut groups: HashMap<Vec<u32>, Group> = HashMap::new();
    for (side, tuples) in [(Side::Old, pair.old.len()), (Side::New, pair.new.len())] {
        for tuple in 0..tuples {
            let core = core(pair, side, tuple);
            let any = |class| core.iter().any(|&url| pair.class(Side::New, url) == class);
            if any(NodeClass::Joinable) {
                core.iter().for_each(|&url| in_join[url as usize] = true);
            }
            if any(NodeClass::Updated) {
                let group = groups.entry(core).or_default();
                if side == Side::Old { group.old.push(tuple) } else { group.new.push(tuple) }
            }
        }
    }
    let mut pairs = Vec::new();
    for (core, mut group) in groups {
        let joined = core.iter().any(|&url| pair.class(Side::New, url) == NodeClass::Joinable);
        if !joined && core.iter().all(|&url| in_join[url as usize]) {
            // Nothing ties such tuples together but equal URL sets, so those with URLs besides the core are out.
            group.old.retain(|&old| pair.distinct(Side::Old, old).len() == core.len());
            group.new.retain(|&new| pair.distinct(Side::New, new).len() == core.len());
        }
        pairs.extend(pair_up(pair, group));
    }
    pairs
}

/// The URLs of a tuple that are in both tables, by their numbers in the new one.
fn core(pair: &Pair<'_>, side: Side, tuple: usize) -> Vec<u32> {
    let urls = pair.nodes(side, tuple).iter().map(|&(_, url)| url);
    let mut core: Vec<u32> = match side {
        Side::Old => urls.filter_map(|url| pair.twin(side, url)).collect(),
        Side::New => urls.filter(|&url| pair.class(side, url) != NodeClass::Added).collect(),
    };
    core.sort_unstable();
    core.dedup();
    core
}

/// Pairs tuples of equal ids, then the others in the order of their ids.
fn pair_up(pair: &Pair<'_>, group: Group) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut new_rest = group.new;
    let mut old_rest = group.old;
    old_rest.retain(|&old| match new_rest.binary_search_by(|&new| pair.new.id(new).cmp(&pair.old.id(old))) {
        Ok(at) => {
            pairs.push((old, new_rest[at]));
            false
        }
        Err(_) => true,
    });
    let mut taken: Vec<usize> = pairs.iter().map(|&(_, new)| new).collect();
    taken.sort_unstable();
    new_rest.retain(|new| taken.binary_search(new).is_err());
    pairs.extend(old_rest.into_iter().zip(new_rest));
    pairs
}
