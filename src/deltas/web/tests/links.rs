//! Links of delta tuples and of joined ones, and tables stored as what changed, against plain sets.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::model::{Change, Fate, LinkKind, NodeVersion, TupleChange};

/// A table with links: each tuple has two nodes, `a` and `b`, and the links from one to the other by their labels.
type Linked = BTreeMap<(String, String), BTreeSet<String>>;

/// A link between two pages.
type Arrow = (String, String, String);

fn linked() -> impl Strategy<Value = Linked> {
    let labels = prop::collection::btree_set("[x-z]", 1..3);
    prop::collection::btree_map(("[p-s]".prop_map(String::from), "[p-s]".prop_map(String::from)), labels, 0..6)
}

fn table(plain: &Linked, versions: &BTreeMap<String, Digest>) -> WebTable {
    let id = |(a, b): &(String, String)| tuple_id("q", [("a", a.as_str()), ("b", b.as_str())]);
    let nodes = plain.keys().flat_map(|pages| {
        [("a", &pages.0), ("b", &pages.1)].map(|(node, url)| TupleNodeRow {
            tuple: id(pages),
            node,
            url,
            version: versions[url],
            schema: "",
        })
    });
    let links = plain.iter().flat_map(|(pages, labels)| {
        labels.iter().map(|label| TupleLinkRow {
            tuple: id(pages),
            from_node: "a",
            to_node: "b",
            label,
            kind: LinkKind::Local,
        })
    });
    WebTable::from_rows("q", nodes, links).unwrap()
}

fn arrows(plain: &Linked) -> BTreeSet<Arrow> {
    let of = |((from, to), labels): (&(String, String), &BTreeSet<String>)| {
        labels.iter().map(|label| (from.clone(), to.clone(), label.clone())).collect::<Vec<_>>()
    };
    plain.iter().flat_map(of).collect()
}

fn versions() -> impl Strategy<Value = BTreeMap<String, Digest>> {
    prop::collection::vec(0u8..2, 4)
        .prop_map(|numbers| ('p'..='s').map(String::from).zip(numbers.into_iter().map(version)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// A link is unchanged if both tables have it; of the others between two pages as many pair up as can; every link
    /// of a tuple is shown; and with the changes applied, the links of the old table are those of the new.
    #[test]
    fn links_of_delta_tuples((old, new) in (linked(), linked()), (v, w) in (versions(), versions())) {
        let (old_table, new_table) = (table(&old, &v), table(&new, &w));
        let pair = Pair::new(&old_table, &new_table);
        let deltas = pair.deltas();
        let (before, after) = (arrows(&old), arrows(&new));
        let mut applied = before.clone();
        let mut shown: BTreeSet<(TupleChange, Arrow)> = BTreeSet::new();
        for row in deltas.link_rows() {
            let arrow = |label: &str| (row.from.to_owned(), row.to.to_owned(), label.to_owned());
            let own = arrow(row.label);
            let between = |arrows: &BTreeSet<Arrow>, others: &BTreeSet<Arrow>| {
                arrows.difference(others).filter(|a| (&a.0, &a.1) == (&own.0, &own.1)).count()
            };
            let (gone, came) = (between(&before, &after), between(&after, &before));
            let expected = before.contains(&own) && after.contains(&own);
            prop_assert_eq!(row.change == Fate::Unchanged, expected);
            match row.change {
                Fate::Unchanged => {}
                Fate::Changed(Change::Added) => {
                    prop_assert!(came > gone);
                    applied.insert(own.clone());
                }
                Fate::Changed(Change::Deleted) => {
                    prop_assert!(gone > came);
                    applied.remove(&own);
                }
                Fate::Changed(Change::Modified) => {
                    prop_assert!(gone > 0 && came > 0);
                    if let Some(label) = row.old_label {
                        applied.remove(&arrow(label));
                        applied.insert(own.clone());
                    }
                }
            }
            shown.insert((row.delta, own));
        }
        for row in deltas.rows() {
            let (side, links) = match row.delta {
                TupleChange::Minus | TupleChange::RelinkedOld => (&old_table, &old),
                TupleChange::Plus | TupleChange::RelinkedNew | TupleChange::Modified => (&new_table, &new),
            };
            let pages = |node: &str| side.node_rows().find(|n| n.tuple == row.tuple && n.node == node).unwrap().url;
            let ends = (pages("a").to_owned(), pages("b").to_owned());
            for label in &links[&ends] {
                prop_assert!(shown.contains(&(row.delta, (ends.0.clone(), ends.1.clone(), label.clone()))));
            }
        }
        // Whatever is in no delta tuple has the links that it had, unless only its labels changed: then no page did,
        // which cannot be where links belong to the versions of pages.
        let told: BTreeSet<(String, String)> = shown.iter().map(|(_, a)| (a.0.clone(), a.1.clone())).collect();
        let of_told = |arrows: &BTreeSet<Arrow>| -> BTreeSet<Arrow> {
            arrows.iter().filter(|a| told.contains(&(a.0.clone(), a.1.clone()))).cloned().collect()
        };
        prop_assert_eq!(of_told(&applied), of_told(&after));
    }

    /// A joined tuple has the nodes and links of both, and those once that both have unchanged.
    #[test]
    fn joined_tuples((old, new) in (linked(), linked()), (v, w) in (versions(), versions())) {
        let (old_table, new_table) = (table(&old, &v), table(&new, &w));
        let pair = Pair::new(&old_table, &new_table);
        for (one, other) in pair.join(1000).pairs {
            let rows = pair.joined(Some(one), Some(other));
            for (table, id, not) in [(&old_table, one, NodeVersion::New), (&new_table, other, NodeVersion::Old)] {
                let nodes: BTreeSet<&str> = table.node_rows().filter(|n| n.tuple == id).map(|n| n.url).collect();
                let there = rows.iter().filter(|row| row.link.is_none() && row.version != not);
                prop_assert_eq!(there.map(|row| row.url).collect::<BTreeSet<_>>(), nodes);
                let labels: BTreeSet<&str> = table.link_rows().filter(|l| l.tuple == id).map(|l| l.label).collect();
                let there = rows.iter().filter(|row| row.version != not).filter_map(|row| row.link);
                prop_assert_eq!(there.map(|link| link.label).collect::<BTreeSet<_>>(), labels);
            }
        }
    }

    /// A table is its old one with what changed put over it.
    #[test]
    fn what_changed_rebuilds_the_table((old, new) in (linked(), linked()), (v, w) in (versions(), versions())) {
        let (old_table, new_table) = (table(&old, &v), table(&new, &w));
        let fates: Vec<Fate> = new_table.fates(&old_table).collect();
        let ids = new_table.ids();
        let changed = |id: Digest| ids.binary_search(&id).is_ok_and(|at| fates[at] != Fate::Unchanged);
        let gone = |id: Digest| ids.binary_search(&id).is_err();
        let mut layers = Layered::new();
        let links = |table: &'static WebTable| table.link_rows().collect::<Vec<_>>();
        let (old_table, new_table): (&'static _, &'static _) =
            (Box::leak(Box::new(old_table)), Box::leak(Box::new(new_table)));
        layers.add(old_table.node_rows().collect(), links(old_table), |row| (row.tuple, false), |link| link.tuple);
        let mut nodes: Vec<_> = old_table.node_rows().filter(|row| gone(row.tuple)).collect();
        nodes.extend(new_table.node_rows().filter(|row| changed(row.tuple)));
        let changed_links = new_table.link_rows().filter(|row| changed(row.tuple)).collect();
        layers.add(nodes, changed_links, |row| (row.tuple, gone(row.tuple)), |link| link.tuple);
        let again = layers.table("q", |row| *row, |link| *link).unwrap();
        prop_assert!(again.node_rows().eq(new_table.node_rows()));
        prop_assert!(again.link_rows().eq(new_table.link_rows()));
    }
}
