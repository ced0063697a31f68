//! The links of delta tuples: which of them came, went, have another label or stayed.
//!
//! As with pages, what became of a link is relative to the two web tables: a link that the web had before, but no tuple
//! of the old table, is added. Links have no identity but the pages that they lead between, their label and their kind.
//! Of the links between two pages those that are equal in both tables stayed; the others pair up in order, and such a
//! pair is one link with another label.
//!
//! A tuple of the new table shows its links, one of the old table those it had. A modified tuple shows those of the new
//! one, then what the old one had besides.

use std::collections::{BTreeSet, HashMap};

use super::by_name;
use super::pair::{Pair, Side};
use super::table::WebTable;
use super::tuple_deltas::{ChangedTuple, Deltas};
use crate::model::closed_set::ClosedSet as _;
use crate::model::{Change, Digest, Fate, LinkKind, TupleChange};

/// A link of a delta tuple, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaLinkRow<'a> {
    pub delta: TupleChange,
    /// As in the rows of nodes.
    pub tuple: Digest,
    pub from_node: &'a str,
    pub to_node: &'a str,
    pub from: &'a str,
    pub to: &'a str,
    /// Of a link that went, the label it had.
    pub label: &'a str,
    /// Only a `modified` link of a new tuple has one.
    pub old_label: Option<&'a str>,
    pub kind: LinkKind,
    pub change: Fate,
}

/// What links between two pages are told apart by.
type Marked<'a> = (&'a str, &'static str);

/// The links between two pages in both tables.
#[derive(Default)]
struct Between<'a> {
    old: BTreeSet<Marked<'a>>,
    new: BTreeSet<Marked<'a>>,
}

impl<'a> Between<'a> {
    /// What became of a link of one side, and the one that it pairs with where it has another label.
    fn fate(&self, side: Side, link: Marked<'a>) -> (Fate, Option<Marked<'a>>) {
        let (mine, other, alone) = match side {
            Side::Old => (&self.old, &self.new, Change::Deleted),
            Side::New => (&self.new, &self.old, Change::Added),
        };
        if other.contains(&link) {
            return (Fate::Unchanged, None);
        }
        let rank = mine.difference(other).position(|own| *own == link);
        match rank.and_then(|rank| other.difference(mine).nth(rank)) {
            Some(twin) => (Fate::Changed(Change::Modified), Some(*twin)),
            None => (Fate::Changed(alone), None),
        }
    }
}

/// What became of the links between the pages of delta tuples.
pub(super) struct LinkFates<'a> {
    pair: &'a Pair<'a>,
    between: HashMap<(u32, u32), Between<'a>>,
}

impl<'a> LinkFates<'a> {
    /// Looks at the links between the pages of these tuples, in both tables.
    pub(super) fn new(pair: &'a Pair<'a>, found: &[ChangedTuple]) -> Self {
        let mut fates = Self { pair, between: HashMap::new() };
        for &(side, tuple) in &found.iter().flat_map(|found| found.sides()).collect::<Vec<_>>() {
            for (from, to, _) in fates.links(side, tuple) {
                fates.between.entry((from, to)).or_default();
            }
        }
        for (side, tuples) in [(Side::Old, pair.old.len()), (Side::New, pair.new.len())] {
            for tuple in 0..tuples {
                for (from, to, marked) in fates.links(side, tuple) {
                    let Some(between) = fates.between.get_mut(&(from, to)) else { continue };
                    let marks = if side == Side::Old { &mut between.old } else { &mut between.new };
                    marks.insert(marked);
                }
            }
        }
        fates
    }

    fn table(&self, side: Side) -> &'a WebTable {
        if side == Side::Old { self.pair.old } else { self.pair.new }
    }

    /// The links of a tuple: the pages at both ends, by numbers that hold for both tables, and its marks.
    fn links(&self, side: Side, tuple: usize) -> Vec<(u32, u32, Marked<'a>)> {
        let table = self.table(side);
        let page = |name: u32| self.common(side, table.page_of(tuple, name));
        let links = table.links(tuple).iter();
        links.map(|link| (page(link.from), page(link.to), (table.label(link.label), link.kind.name()))).collect()
    }

    /// A URL's number in the new table; behind those, numbers of what only the old one has.
    fn common(&self, side: Side, url: u32) -> u32 {
        match side {
            Side::New => url,
            Side::Old => self.pair.twin(side, url).unwrap_or_else(|| {
                let new = u32::try_from(self.pair.new.urls().len()).expect("a table has fewer than 2^32 URLs");
                new + url
            }),
        }
    }

    /// The links of a delta tuple, ordered by nodes, URLs and label.
    pub(super) fn rows(&self, deltas: &Deltas<'a>, found: ChangedTuple) -> Vec<DeltaLinkRow<'a>> {
        let (tuple, _) = deltas.ids(found);
        let delta = found.kind();
        let mut rows: Vec<DeltaLinkRow<'a>> = Vec::new();
        // What the new tuple shows already: its links, and the old ones that these were.
        let mut shown: BTreeSet<(u32, u32, Marked<'a>)> = BTreeSet::new();
        for (side, number) in found.sides() {
            let table = self.table(side);
            for (link, key) in table.links(number).iter().zip(self.links(side, number)) {
                let (from, to, marked) = key;
                let (change, twin) = self.between[&(from, to)].fate(side, marked);
                if side == Side::Old && shown.contains(&key) {
                    continue;
                }
                if side == Side::New {
                    shown.insert((from, to, twin.unwrap_or(marked)));
                }
                let page = |name: u32| table.url(table.page_of(number, name));
                rows.push(DeltaLinkRow {
                    delta,
                    tuple,
                    from_node: table.name(link.from),
                    to_node: table.name(link.to),
                    from: page(link.from),
                    to: page(link.to),
                    label: marked.0,
                    old_label: twin.filter(|_| side == Side::New).map(|(label, _)| label),
                    kind: link.kind,
                    change,
                });
            }
        }
        rows.sort_by(|a, b| {
            let ends = |row: &DeltaLinkRow<'a>| (row.from, row.to, row.label, row.kind.name(), row.change);
            by_name(a.from_node, b.from_node).then_with(|| by_name(a.to_node, b.to_node)).then(ends(a).cmp(&ends(b)))
        });
        rows
    }
}
