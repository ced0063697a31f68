//! The paper's running example, from the pages of the synthetic site.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::deltas::query::{Query, QueryConfig, Question, WebBuilder, WebPage};
use crate::lab::synth::site::{Site, SynthPage};
use crate::lab::synth::{Params, Part};
use crate::model::{Change, Content, NodeVersion, TupleChange};
use crate::text::url;

/// As the design page writes it.
const QUERY: &str = r#"
name = "drugs"
nodes.a = { url = "http://www.panacea.gov/" }
nodes.d = { title = "side effects*" }
links = ["a -{0,4}-> u", "u -> d [label = 'side effects*']", "u -> k [label = 'uses*']"]
paths = "all"
"#;

fn query() -> Query {
    let config: QueryConfig = toml::from_str(QUERY).unwrap();
    config.compile(&jiff::tz::TimeZone::UTC, &[]).unwrap()
}

fn contents(snapshot: u32) -> BTreeMap<String, Content> {
    let site = Site::new(Params { part: Part::Drugs, ..Params::default() }).unwrap();
    let read = |page: &SynthPage| {
        let reading = crate::text::read(&page.body, Some(&page.content_type), &page.url);
        (url::normalise(&page.url, false).unwrap(), reading.content.unwrap())
    };
    site.snapshot(snapshot).iter().map(read).collect()
}

fn table(contents: &BTreeMap<String, Content>) -> WebTable {
    let pages = contents.iter().map(|(url, content)| WebPage {
        url: url.as_str().into(),
        title: content.title.clone(),
        host: url::host(url).to_owned(),
        content_type: Some("text/html".into()),
        last_modified: None,
        bytes: content.text.len() as u64,
        version: content.digest_with(std::borrow::Cow::from),
    });
    let mut builder = WebBuilder::new(pages.collect());
    for (url, content) in contents {
        for link in &content.links {
            builder.link(url, &link.target, &link.label, link.kind);
        }
    }
    let look = |_: &[Question<'_>]| -> Result<_, std::convert::Infallible> { unreachable!("the query needs no texts") };
    query().evaluate(&builder.finish(), look).unwrap().table
}

/// Which page is which node of the paper.
const TRUTH: &str = include_str!("../../../../sample_data/drugs_truth/nodes.csv");

/// Node and URL.
fn truth() -> impl Iterator<Item = (&'static str, &'static str)> {
    TRUTH.lines().skip(1).filter_map(|line| {
        let mut fields = line.split(',');
        Some((fields.next()?, fields.next()?))
    })
}

/// The URLs of nodes that the paper names.
fn named(ids: &str) -> BTreeSet<&'static str> {
    let url = |id: &str| truth().find(|node| node.0 == id).unwrap_or_else(|| panic!("no {id}")).1;
    ids.split_whitespace().map(url).collect()
}

/// The paper's names of the URLs of delta rows, sorted: one line for each tuple of a kind.
fn shown(deltas: &Deltas<'_>, kind: TupleChange) -> BTreeSet<String> {
    let name = |url: &str| truth().find(|node| node.1 == url).map_or("?", |node| node.0);
    let mut tuples: BTreeMap<Digest, BTreeSet<String>> = BTreeMap::new();
    for row in deltas.rows().filter(|row| row.delta == kind) {
        let mark = match (row.change.change(), row.version) {
            (Some(Change::Added), NodeVersion::New) => "+",
            (Some(Change::Deleted), NodeVersion::Old) => "-",
            (Some(Change::Modified), NodeVersion::Old) => "<",
            (Some(Change::Modified), NodeVersion::New) => ">",
            (None, NodeVersion::Both) => "",
            other => panic!("{other:?}"),
        };
        tuples.entry(row.tuple).or_default().insert(format!("{}{mark}", name(row.url)));
    }
    tuples.into_values().map(|names| names.into_iter().collect::<Vec<_>>().join(" ")).collect()
}

fn lines(lines: &[&str]) -> BTreeSet<String> {
    lines.iter().map(|&line| line.to_owned()).collect()
}

#[test]
fn the_deltas_are_those_that_the_paper_prints() {
    let (old_site, new_site) = (contents(0), contents(1));
    let (old, new) = (table(&old_site), table(&new_site));
    assert_eq!((old.len(), new.len()), (8, 9));

    let pair = Pair::new(&old, &new);
    let urls = |class| pair.urls(class).collect::<BTreeSet<_>>();
    assert_eq!(urls(NodeClass::Joinable), named("b0 b2 u0 u1 d0 d6 d1 k0 k1 k7"));
    assert_eq!(urls(NodeClass::Added), named("k4 u9 k8 d8 d7 u3 u12 d9 k9 u10 u11 d10 k10"));
    assert_eq!(urls(NodeClass::Deleted), named("b3 u4 u5 u6 u8 d4 d5 d12 k5 k6 k12"));
    assert_eq!(urls(NodeClass::Updated), named("a0 b1 d2 k2 u2 d3 k3 b4 u7"));
    // Niacin was there before, but not in the table.
    assert!(named("u3 k4").iter().all(|url| old_site.contains_key(*url)));
    assert_eq!((pair.left_dangling().count(), pair.right_dangling().count()), (4, 4));

    let deltas = pair.deltas();
    let counts = TupleCounts { plus: 4, minus: 4, modified: 5, ..TupleCounts::default() };
    assert_eq!(deltas.counts(), counts);
    assert_eq!(
        shown(&deltas, TupleChange::Plus),
        lines(&["a0> b2 d7+ k4+ u3+", "a0> b4> d8+ k8+ u9+", "a0> b4> d9+ k9+ u12+", "a0> d10+ k10+ u10+ u11+",])
    );
    assert_eq!(
        shown(&deltas, TupleChange::Minus),
        lines(&["a0< b3- d4- k5-", "a0< d12- k12-", "a0< b4< d5- k6- u4- u5- u6-", "a0< b4< d6 k7 u7< u8-",])
    );
    assert_eq!(
        shown(&deltas, TupleChange::Modified),
        lines(&[
            "a0< a0> b0 d0 k0 u0",
            "a0< a0> b0 d1 k1 u1",
            "a0< a0> b2 d3< d3> k3< k3> u2< u2>",
            "a0< a0> b1< b1> d2< d2> k2< k2>",
            "a0< a0> b4< b4> d6 k7 u7< u7> u8-",
        ])
    );
}

#[test]
fn tuples_say_how_they_got_there() {
    let schemas = |snapshot| table(&contents(snapshot)).schemas().into_iter().map(|(s, n)| (s.to_owned(), n)).collect();
    let january: Vec<(String, u64)> = schemas(0);
    assert_eq!(
        january,
        [("a>u=0", 1), ("a>u=1", 2), ("a>u=2", 3), ("a>u=3", 1), ("a>u=4", 1)].map(|(s, n)| (s.into(), n))
    );
    let february: Vec<(String, u64)> = schemas(1);
    assert_eq!(february, [("a>u=1", 1), ("a>u=2", 8)].map(|(s, n)| (s.into(), n)));
    let links: Vec<String> = table(&contents(0))
        .link_rows()
        .filter(|row| row.label.contains("Vasomax"))
        .map(|row| format!("{} {} {} {}", row.from_node, row.to_node, row.label, row.kind))
        .collect();
    assert_eq!(links, ["a>u.1 a>u.2 Vasomax global", "u d Side effects of Vasomax local", "u k Uses of Vasomax local"]);
}
