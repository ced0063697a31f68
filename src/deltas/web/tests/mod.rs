//! The rules against a naive version of themselves, and the paper's running example.

mod drugs;
mod links;
mod naive;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::pair::NodeClass;
use super::table::tuple_id;
use super::tuple_deltas::{DeltaRow, Deltas, TupleCounts};
use super::*;
use crate::model::Digest;

/// A tuple as written: node and URL.
type Nodes = BTreeMap<String, String>;

/// Tuples with their ids, and the versions of pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Plain {
    tuples: BTreeMap<Digest, Nodes>,
    versions: BTreeMap<String, Digest>,
}

impl Plain {
    fn new(tuples: impl IntoIterator<Item = Nodes>, versions: &BTreeMap<String, Digest>) -> Self {
        let tuples: BTreeMap<_, _> = tuples.into_iter().map(|nodes| (id(&nodes), nodes)).collect();
        let used: BTreeSet<&String> = tuples.values().flat_map(BTreeMap::values).collect();
        let versions = used.into_iter().map(|url| (url.clone(), versions[url])).collect();
        Self { tuples, versions }
    }

    fn rows(&self) -> Vec<TupleNodeRow<'_>> {
        let rows = self.tuples.iter().flat_map(|(&tuple, nodes)| {
            nodes.iter().map(move |(node, url)| TupleNodeRow {
                tuple,
                node,
                url,
                version: self.versions[url],
                schema: "",
            })
        });
        rows.collect()
    }

    fn table(&self) -> WebTable {
        WebTable::from_rows("q", self.rows(), []).unwrap()
    }
}

fn id(nodes: &Nodes) -> Digest {
    tuple_id("q", nodes.iter().map(|(node, url)| (&**node, &**url)))
}

/// What a row says, with ids and texts that can be kept.
type Row = (&'static str, Digest, Option<Digest>, String, String, &'static str, Digest, &'static str);

fn owned(row: &DeltaRow<'_>) -> Row {
    let (node, url) = (row.node.to_owned(), row.url.to_owned());
    let (delta, version, change) = (row.delta.as_str(), row.version.as_str(), row.change.as_str());
    (delta, row.tuple, row.old_tuple, node, url, version, row.digest, change)
}

/// Up to `count` tuples over few pages and nodes, so that they meet in many ways; two names may have one page.
fn tuples(count: usize) -> impl Strategy<Value = Vec<Nodes>> {
    let tuple = prop::collection::btree_map("[a-c]", "[p-u]", 1..=3);
    prop::collection::vec(tuple, 0..count)
}

fn version(number: u8) -> Digest {
    Digest::of(&[number])
}

/// Two tables of which the second keeps some of the first's tuples and versions.
fn two_tables() -> impl Strategy<Value = (Plain, Plain)> {
    let versions = || prop::collection::vec(0u8..2, 6);
    (tuples(7), tuples(5), prop::collection::vec(any::<bool>(), 7), versions(), versions()).prop_map(
        |(old, more, keep, old_versions, new_versions)| {
            let versions = |numbers: &[u8]| {
                let of = |(url, &number): (char, &u8)| (url.to_string(), version(number));
                ('p'..='u').zip(numbers).map(of).collect::<BTreeMap<_, _>>()
            };
            let kept = old.iter().zip(keep).filter(|(_, keep)| *keep).map(|(tuple, _)| tuple.clone());
            let new: Vec<Nodes> = kept.chain(more).collect();
            (Plain::new(old, &versions(&old_versions)), Plain::new(new, &versions(&new_versions)))
        },
    )
}

/// The new table by the old one and the delta rows alone.
fn rebuild(old: &Plain, rows: &[Row]) -> Plain {
    let mut tuples = old.tuples.clone();
    let mut versions = old.versions.clone();
    for (delta, tuple, old_tuple, ..) in rows {
        match *delta {
            "minus" | "relinked_old" => drop(tuples.remove(tuple)),
            "modified" => drop(tuples.remove(&old_tuple.unwrap())),
            _ => {}
        }
    }
    for (delta, tuple, _, node, url, version, digest, _) in rows {
        if matches!(*delta, "plus" | "relinked_new" | "modified") && *version != "old" {
            tuples.entry(*tuple).or_default().insert(node.clone(), url.clone());
            versions.insert(url.clone(), *digest);
        }
    }
    Plain::new(tuples.into_values(), &versions)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_rules_hold((old, new) in two_tables()) {
        let (old_table, new_table) = (old.table(), new.table());
        let pair = Pair::new(&old_table, &new_table);
        let deltas = pair.deltas();
        let rows: Vec<Row> = deltas.rows().map(|row| owned(&row)).collect();

        // The naive version of the rules finds the same.
        let naive = naive::Naive::new(&old, &new);
        let mut sorted = rows.clone();
        sorted.sort();
        prop_assert_eq!(&sorted, &naive.rows());
        prop_assert_eq!(pair.join(1000).pairs, naive.joined());
        let dangling = (pair.left_dangling().collect::<Vec<_>>(), pair.right_dangling().collect::<Vec<_>>());
        prop_assert_eq!(dangling, naive.dangling());

        // Old table and deltas give the new table.
        prop_assert_eq!(rebuild(&old, &rows), new.clone());

        // Definition 1 of the paper, sharpened: by what happened to a node one row or two.
        let mut modified: BTreeMap<(Digest, &str, &str), Vec<&Row>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.0 == "modified") {
            modified.entry((row.1, &row.3, &row.4)).or_default().push(row);
        }
        for ((tuple, ..), of_node) in &modified {
            let versions: Vec<_> = of_node.iter().map(|row| row.5).collect();
            match of_node[0].7 {
                "modified" => {
                    prop_assert_eq!(versions, ["old", "new"]);
                    prop_assert_ne!(of_node[0].6, of_node[1].6);
                }
                "added" => prop_assert_eq!(versions, ["new"]),
                "deleted" => prop_assert_eq!(versions, ["old"]),
                _ => prop_assert_eq!(versions, ["both"]),
            }
            prop_assert!(modified.values().flatten().any(|row| row.1 == *tuple && row.7 == "modified"));
        }
        // Each tuple is in at most one pair.
        let pairs: BTreeSet<_> = modified.values().flatten().map(|row| (row.1, row.2)).collect();
        prop_assert_eq!(pairs.iter().map(|pair| pair.0).collect::<BTreeSet<_>>().len(), pairs.len());
        prop_assert_eq!(pairs.iter().map(|pair| pair.1).collect::<BTreeSet<_>>().len(), pairs.len());

        let counted = |kind: &str| rows.iter().filter(|row| row.0 == kind).map(|row| row.1).collect::<BTreeSet<_>>().len() as u64;
        let counts = deltas.counts();
        prop_assert_eq!(
            [counts.plus, counts.minus, counts.modified, counts.relinked_new, counts.relinked_old],
            ["plus", "minus", "modified", "relinked_new", "relinked_old"].map(counted)
        );
    }

    #[test]
    fn the_order_of_rows_does_not_matter(
        (old, new) in two_tables(),
        seed in prop::collection::vec(any::<u32>(), 64),
    ) {
        let shuffled = |plain: &Plain| {
            let mut rows: Vec<_> = plain.rows().into_iter().zip(seed.iter().cycle()).collect();
            rows.sort_by_key(|(row, key)| (key.wrapping_mul(31), row.url.len()));
            WebTable::from_rows("q", rows.iter().rev().map(|(row, _)| *row), []).unwrap()
        };
        let rows = |old: &WebTable, new: &WebTable| {
            Pair::new(old, new).deltas().rows().map(|row| owned(&row)).collect::<Vec<_>>()
        };
        prop_assert_eq!(rows(&shuffled(&old), &shuffled(&new)), rows(&old.table(), &new.table()));
        let again = shuffled(&old);
        prop_assert_eq!(again.node_rows().collect::<Vec<_>>(), old.rows());
    }

    #[test]
    fn a_join_that_was_cut_says_so((old, new) in two_tables(), cap in 0usize..6) {
        let (old, new) = (old.table(), new.table());
        let pair = Pair::new(&old, &new);
        let (cut, whole) = (pair.join(cap), pair.join(usize::MAX));
        prop_assert!(whole.complete && whole.at_most == whole.pairs.len() as u64);
        prop_assert_eq!(cut.complete, whole.pairs.len() <= cap);
        prop_assert_eq!(&cut.pairs[..], &whole.pairs[..cap.min(whole.pairs.len())]);
        prop_assert!(cut.at_most >= whole.at_most);
    }
}

fn nodes(pairs: &[(&str, &str)]) -> Nodes {
    pairs.iter().map(|&(node, url)| (node.into(), url.into())).collect()
}

#[test]
fn a_url_under_another_node_takes_the_new_one() {
    let versions = |x: u8| BTreeMap::from([("x".into(), version(x)), ("y".into(), version(7))]);
    let old = Plain::new([nodes(&[("a", "x"), ("b", "y")])], &versions(0));
    let new = Plain::new([nodes(&[("b", "x"), ("c", "y")])], &versions(1));
    let (old, new) = (old.table(), new.table());
    let pair = Pair::new(&old, &new);
    let deltas = pair.deltas();
    let rows: Vec<_> =
        deltas.rows().map(|row| (row.node, row.url, row.version.as_str(), row.change.as_str())).collect();
    let expected = [("b", "x", "old", "modified"), ("b", "x", "new", "modified"), ("c", "y", "both", "unchanged")];
    assert_eq!(rows, expected);
}

#[test]
fn a_link_between_known_pages_relinks() {
    let versions = BTreeMap::from(["x", "y", "z"].map(|url| (url.to_owned(), version(0))));
    let old = [nodes(&[("a", "x"), ("b", "y")]), nodes(&[("a", "y"), ("b", "z")])];
    let new = [nodes(&[("a", "x"), ("b", "z")]), nodes(&[("a", "y"), ("b", "z")])];
    let (old, new) = (Plain::new(old, &versions).table(), Plain::new(new, &versions).table());
    let pair = Pair::new(&old, &new);
    // y is still in the second tuple, so nothing was deleted.
    assert_eq!(pair.deltas().counts(), TupleCounts { relinked_new: 1, relinked_old: 1, ..TupleCounts::default() });
}

#[test]
fn rows_that_contradict_each_other_are_refused() {
    let tuple = version(1);
    let row = |node, url, number| TupleNodeRow { tuple, node, url, version: version(number), schema: "" };
    let link =
        |to_node| TupleLinkRow { tuple, from_node: "a", to_node, label: "", kind: crate::model::LinkKind::Local };
    let error = |nodes: &[TupleNodeRow<'static>], links: &[TupleLinkRow<'static>]| {
        WebTable::from_rows("q", nodes.iter().copied(), links.iter().copied()).unwrap_err().to_string()
    };
    assert!(error(&[row("a", "x", 0), row("b", "x", 1)], &[]).starts_with("x has two versions"));
    assert!(error(&[row("a", "x", 0), row("a", "y", 1)], &[]).contains("has node 'a' twice"));
    assert!(error(&[row("a", "x", 0)], &[link("b")]).contains("from 'a' to 'b'"));
    let other = TupleNodeRow { tuple: version(9), ..row("b", "x", 0) };
    assert!(error(&[row("a", "x", 0), other], &[link("b")]).contains("from 'a' to 'b'"));
    assert!(WebTable::from_rows("q", [], [link("b")]).is_err());
}

#[test]
fn a_hub_in_every_tuple_is_not_quadratic() {
    // A front page that never changes and one page for each tuple, updated, so that every pair of tuples joins.
    let count = 20_000u32;
    let table = |night: u8| {
        let all: BTreeMap<String, Digest> = (0..count)
            .map(|i| (format!("http://h/{i}"), version(night)))
            .chain([("http://h/".to_owned(), version(9))])
            .collect();
        let tuples = (0..count).map(|i| nodes(&[("a", "http://h/"), ("b", &format!("http://h/{i}"))]));
        Plain::new(tuples, &all).table()
    };
    let (old, new) = (table(0), table(1));
    let pair = Pair::new(&old, &new);
    assert_eq!(pair.deltas().counts(), TupleCounts { modified: u64::from(count), ..TupleCounts::default() });
    let join = pair.join(1000);
    assert_eq!((join.pairs.len(), join.complete), (1000, false));
    assert_eq!(join.at_most, u64::from(count) * u64::from(count));
}
