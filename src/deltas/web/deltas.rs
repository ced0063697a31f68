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
use super::pair::{Class, Pair, Side};
use crate::model::Digest;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeltaKind {
    Plus,
    Minus,
    Modified,
    RelinkedNew,
    RelinkedOld,
}

/// Which version of a page a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    Old,
    New,
    /// The version is the same in both tables.
    Both,
}

/// What became of a node, relative to the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeChange {
    Added,
    Deleted,
    Modified,
    Unchanged,
}

impl DeltaKind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plus => "plus",
            Self::Minus => "minus",
            Self::Modified => "modified",
            Self::RelinkedNew => "relinked_new",
            Self::RelinkedOld => "relinked_old",
        }
    }
}

impl Version {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
            Self::Both => "both",
        }
    }
}

impl NodeChange {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Deleted => "deleted",
            Self::Modified => "modified",
            Self::Unchanged => "unchanged",
        }
    }
}

impl From<Class> for NodeChange {
    fn from(class: Class) -> Self {
        match class {
            Class::Added => Self::Added,
            Class::Deleted => Self::Deleted,
            Class::Updated => Self::Modified,
            Class::Joinable => Self::Unchanged,
        }
    }
}

/// A node of a delta tuple, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaRow<'a> {
    pub delta: DeltaKind,
    /// The new tuple; of `minus` and `relinked_old` the old one.
    pub tuple: Digest,
    /// Of `modified` only.
    pub old_tuple: Option<Digest>,
    /// Of `modified`: the new tuple's node where it has the URL.
    pub node: &'a str,
    pub url: &'a str,
    pub version: Version,
    /// The page's digest in that version.
    pub digest: Digest,
    pub change: NodeChange,
}

/// Tuples of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub plus: u64,
    pub minus: u64,
    pub modified: u64,
    pub relinked_new: u64,
    pub relinked_old: u64,
}

/// What changed between two web tables.
pub struct Deltas<'a> {
    pair: &'a Pair<'a>,
    /// By kind, then tuple.
    found: Vec<Found>,
}

#[derive(Clone, Copy)]
enum Found {
    Plus(usize),
    Minus(usize),
    Modified { old: usize, new: usize },
    RelinkedNew(usize),
    RelinkedOld(usize),
}

impl Found {
    fn kind(self) -> DeltaKind {
        match self {
            Self::Plus(_) => DeltaKind::Plus,
            Self::Minus(_) => DeltaKind::Minus,
            Self::Modified { .. } => DeltaKind::Modified,
            Self::RelinkedNew(_) => DeltaKind::RelinkedNew,
            Self::RelinkedOld(_) => DeltaKind::RelinkedOld,
        }
    }
}

impl<'a> Deltas<'a> {
    pub(super) fn new(pair: &'a Pair<'a>) -> Self {
        let has = |side, tuple, class| pair.nodes(side, tuple).iter().any(|&(_, url)| pair.class(side, url) == class);
        let (mut old_rest, mut new_rest) = (vec![true; pair.old.len()], vec![true; pair.new.len()]);
        let mut found = Vec::new();
        for (old, rest) in old_rest.iter_mut().enumerate() {
            if has(Side::Old, old, Class::Deleted) {
                found.push(Found::Minus(old));
                *rest = false;
            }
        }
        for (new, rest) in new_rest.iter_mut().enumerate() {
            if has(Side::New, new, Class::Added) {
                found.push(Found::Plus(new));
                *rest = false;
            }
        }
        for (old, new) in modified(pair) {
            found.push(Found::Modified { old, new });
            (old_rest[old], new_rest[new]) = (false, false);
        }
        let relinked_old =
            (0..pair.old.len()).filter(|&old| old_rest[old] && pair.new.find(pair.old.id(old)).is_none());
        found.extend(relinked_old.map(Found::RelinkedOld));
        let relinked_new =
            (0..pair.new.len()).filter(|&new| new_rest[new] && pair.old.find(pair.new.id(new)).is_none());
        found.extend(relinked_new.map(Found::RelinkedNew));
        let mut deltas = Self { pair, found };
        let mut found = std::mem::take(&mut deltas.found);
        found.sort_unstable_by_key(|found| (found.kind(), deltas.ids(*found)));
        deltas.found = found;
        deltas
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for found in &self.found {
            match found.kind() {
                DeltaKind::Plus => counts.plus += 1,
                DeltaKind::Minus => counts.minus += 1,
                DeltaKind::Modified => counts.modified += 1,
                DeltaKind::RelinkedNew => counts.relinked_new += 1,
                DeltaKind::RelinkedOld => counts.relinked_old += 1,
            }
        }
        counts
    }

    /// By kind, tuple, node, URL, version.
    pub fn rows(&self) -> impl Iterator<Item = DeltaRow<'_>> {
        self.found.iter().flat_map(|&found| {
            let mut rows = self.rows_of(found);
            rows.sort_by(|a, b| {
                by_name(a.node, b.node).then_with(|| a.url.cmp(b.url)).then_with(|| a.version.cmp(&b.version))
            });
            rows
        })
    }

    /// The columns `tuple` and `old_tuple`.
    fn ids(&self, found: Found) -> (Digest, Option<Digest>) {
        let Pair { old: old_table, new: new_table, .. } = self.pair;
        match found {
            Found::Plus(new) | Found::RelinkedNew(new) => (new_table.id(new), None),
            Found::Minus(old) | Found::RelinkedOld(old) => (old_table.id(old), None),
            Found::Modified { old, new } => (new_table.id(new), Some(old_table.id(old))),
        }
    }

    fn rows_of(&self, found: Found) -> Vec<DeltaRow<'_>> {
        let pair = self.pair;
        let mut rows = Vec::new();
        let (tuple, old_tuple) = self.ids(found);
        let mut row = |side: Side, (name, url): (u32, u32), version: Version| {
            let table = if side == Side::Old { pair.old } else { pair.new };
            // The old version of a page under the new tuple's node.
            let digest = match pair.twin(side, url) {
                Some(twin) if side == Side::New && version == Version::Old => pair.old.version(twin),
                _ => table.version(url),
            };
            let change = pair.class(side, url).into();
            let (node, url) = (table.name(name), table.url(url));
            rows.push(DeltaRow { delta: found.kind(), tuple, old_tuple, node, url, version, digest, change });
        };
        match found {
            Found::Plus(new) | Found::RelinkedNew(new) => {
                for &node in pair.new.nodes(new) {
                    let joinable = pair.class(Side::New, node.1) == Class::Joinable;
                    row(Side::New, node, if joinable { Version::Both } else { Version::New });
                }
            }
            Found::Minus(old) | Found::RelinkedOld(old) => {
                for &node in pair.old.nodes(old) {
                    let joinable = pair.class(Side::Old, node.1) == Class::Joinable;
                    row(Side::Old, node, if joinable { Version::Both } else { Version::Old });
                }
            }
            Found::Modified { old, new } => {
                for &node in pair.new.nodes(new) {
                    match pair.class(Side::New, node.1) {
                        Class::Joinable => row(Side::New, node, Version::Both),
                        Class::Updated => {
                            row(Side::New, node, Version::Old);
                            row(Side::New, node, Version::New);
                        }
                        Class::Added | Class::Deleted => row(Side::New, node, Version::New),
                    }
                }
                // The two tuples share all URLs that are in both tables.
                for &node in pair.old.nodes(old) {
                    if pair.class(Side::Old, node.1) == Class::Deleted {
                        row(Side::Old, node, Version::Old);
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
    // By URLs of the new table.
    let mut in_join = vec![false; pair.new.urls().len()];
    let mut groups: HashMap<Vec<u32>, Group> = HashMap::new();
    for (side, tuples) in [(Side::Old, pair.old.len()), (Side::New, pair.new.len())] {
        for tuple in 0..tuples {
            let core = core(pair, side, tuple);
            let any = |class| core.iter().any(|&url| pair.class(Side::New, url) == class);
            if any(Class::Joinable) {
                core.iter().for_each(|&url| in_join[url as usize] = true);
            }
            if any(Class::Updated) {
                let group = groups.entry(core).or_default();
                if side == Side::Old { group.old.push(tuple) } else { group.new.push(tuple) }
            }
        }
    }
    let mut pairs = Vec::new();
    for (core, mut group) in groups {
        let joined = core.iter().any(|&url| pair.class(Side::New, url) == Class::Joinable);
        if !joined && core.iter().all(|&url| in_join[url as usize]) {
            // Only those with no other URLs than the core's.
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
        Side::New => urls.filter(|&url| pair.class(side, url) != Class::Added).collect(),
    };
    core.sort_unstable();
    core.dedup();
    core
}

/// Equal ids first, then the rest in order of their ids.
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
