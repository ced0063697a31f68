//! The evaluator against the naive one on small random webs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use proptest::prelude::*;

use super::naive::{NaiveLink, NaiveQuery, NaiveTuple, NaiveWeb};
use super::*;

pub(super) const KINDS: [LinkKind; 3] = [LinkKind::Interior, LinkKind::Local, LinkKind::Global];

fn webs() -> impl Strategy<Value = NaiveWeb> {
    (1usize..6).prop_flat_map(|count| {
        let titles = prop::collection::vec(prop::char::range('a', 'c'), count);
        let link = (0..count, 0..count, prop::char::range('k', 'l'), 0usize..3);
        (titles, prop::collection::vec(link, 0..14)).prop_map(|(titles, links)| NaiveWeb {
            pages: titles.into_iter().enumerate().map(|(i, title)| (format!("http://h/{i}"), title)).collect(),
            links: links.into_iter().map(|(from, to, label, kind)| (from, to, label, KINDS[kind])).collect(),
        })
    })
}

/// One to three nodes, connected, with cycles and parallel links of the pattern now and then.
pub(super) fn queries() -> impl Strategy<Value = NaiveQuery> {
    let title = || prop::option::weighted(0.3, prop::char::range('a', 'c'));
    let condition =
        || (prop::option::weighted(0.3, prop::char::range('k', 'l')), prop::option::weighted(0.2, 0usize..3));
    let path = || prop::option::of((0usize..4, 0usize..3));
    let link = move || (0usize..3, 0usize..3, path(), condition());
    (prop::collection::vec(title(), 1..4), prop::collection::vec(link(), 2..5), any::<bool>()).prop_map(
        |(titles, raw, all)| {
            let count = titles.len();
            let mut links: Vec<NaiveLink> = Vec::new();
            for (i, (a, b, path, (label, kind))) in raw.into_iter().enumerate() {
                // The first ones connect each node with one before it, either way.
                let (from, to) = match i + 1 {
                    node if node < count && b == 0 => (node, a % node),
                    node if node < count => (a % node, node),
                    _ => (a % count, b % count),
                };
                let path = path.map(|(min, more)| (min, (min + more).max(1))).filter(|_| from != to);
                let same = |other: &NaiveLink| {
                    other.from == from
                        && other.to == to
                        && (other.path.is_some() && path.is_some()
                            || (other.label, other.kind, other.path) == (label, kind.map(|k| KINDS[k]), path))
                };
                if !links.iter().any(same) {
                    links.push(NaiveLink { from, to, path, label, kind: kind.map(|k| KINDS[k]) });
                }
            }
            let nodes = titles.into_iter().enumerate().map(|(i, title)| (format!("n{i}"), title)).collect();
            NaiveQuery { nodes, links, all }
        },
    )
}

/// The query as a user would write it. `tagged`: what is asked of titles is asked of elements, see [`answered`].
pub(super) fn written(naive: &NaiveQuery, tagged: bool) -> String {
    let mut out = String::new();
    for (name, title) in &naive.nodes {
        let Some(title) = title.map(char::to_uppercase) else { continue };
        let asked = if tagged { format!("path = '//{title}', text = 'x'") } else { format!("title = '{title}*'") };
        let _ = writeln!(out, "nodes.{name} = {{ {asked} }}");
    }
    let links: Vec<String> = naive
        .links
        .iter()
        .map(|link| {
            let arrow = link.path.map_or("->".to_owned(), |(min, max)| format!("-{{{min},{max}}}->"));
            let label = link.label.map(|label| format!("label = '{label}'"));
            let kind = link.kind.map(|kind| format!("kind = '{kind}'"));
            let conditions: Vec<String> = label.into_iter().chain(kind).collect();
            let conditions =
                if conditions.is_empty() { String::new() } else { format!(" [{}]", conditions.join(", ")) };
            format!("\"{} {arrow} {}{conditions}\"", naive.nodes[link.from].0, naive.nodes[link.to].0)
        })
        .collect();
    let _ = writeln!(out, "links = [{}]\npaths = '{}'", links.join(", "), if naive.all { "all" } else { "shortest" });
    out
}

/// Answers for pages that have an element named as their title begins.
pub(super) fn answered(
    questions: &[Question<'_>],
    title: impl Fn(&str) -> Option<char>,
) -> Result<Vec<Vec<bool>>, Never> {
    let of_page = |what: LookFor<'_>, url: &str| match what {
        LookFor::Element(element) => title(url).is_some_and(|title| element.holds(&format!("html({title}(1))"), "x")),
        _ => panic!("nothing else was to be asked, but {questions:?}"),
    };
    let answer = |question: &Question<'_>| question.urls.iter().map(|url| of_page(question.what, url)).collect();
    Ok(questions.iter().map(answer).collect())
}

fn built(naive: &NaiveWeb) -> Web {
    let pages = naive.pages.iter().map(|(url, title)| WebPage { title: Some(format!("{title} title")), ..page(url) });
    let mut builder = WebBuilder::new(pages.collect());
    for &(from, to, label, kind) in &naive.links {
        builder.link(&naive.pages[from].0, &naive.pages[to].0, &label.to_string(), kind);
    }
    builder.finish()
}

fn found(table: &crate::deltas::web::WebTable) -> BTreeSet<NaiveTuple> {
    let mut tuples: BTreeMap<Digest, NaiveTuple> = BTreeMap::new();
    for row in table.node_rows() {
        let tuple = tuples.entry(row.tuple).or_default();
        tuple.0.push((row.node.into(), row.url.into()));
        tuple.2 = row.schema.into();
    }
    for row in table.link_rows() {
        let link = (row.from_node.into(), row.to_node.into(), row.label.into(), row.kind.as_str());
        tuples.entry(row.tuple).or_default().1.push(link);
    }
    for tuple in tuples.values_mut() {
        tuple.0.sort();
        tuple.1.sort();
    }
    let count = tuples.len();
    let tuples: BTreeSet<_> = tuples.into_values().collect();
    assert_eq!(tuples.len(), count, "two ids for one tuple");
    tuples
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_naive_evaluator_agrees(web in webs(), naive in queries(), tagged in any::<bool>()) {
        let query = query(&written(&naive, tagged));
        let built = built(&web);
        let title = |url: &str| web.pages.iter().find(|(page, _)| page == url).map(|(_, title)| *title);
        let evaluation = query.evaluate(&built, |questions| answered(questions, title)).unwrap();
        let expected = naive.evaluate(&web);
        prop_assert_eq!(evaluation.empty.is_some(), expected.is_empty());
        prop_assert_eq!(found(&evaluation.table), expected);
        // The rows are the table.
        let table = &evaluation.table;
        let again = crate::deltas::web::WebTable::from_rows("q", table.node_rows(), table.link_rows()).unwrap();
        prop_assert!(again.node_rows().eq(table.node_rows()));
        prop_assert!(again.link_rows().eq(table.link_rows()));
    }

    #[test]
    fn the_order_of_links_in_the_pattern_does_not_matter(web in webs(), naive in queries()) {
        let mut turned = naive.clone();
        turned.links.reverse();
        let (web, one, other) = (built(&web), query(&written(&naive, false)), query(&written(&turned, false)));
        prop_assert_eq!(one.fingerprint(), other.fingerprint());
        let rows = |query: &Query| {
            let table = query.evaluate(&web, no_questions).unwrap().table;
            let nodes: Vec<_> = table.node_rows().map(|row| format!("{row:?}")).collect();
            (nodes, table.link_rows().map(|row| format!("{row:?}")).collect::<Vec<_>>())
        };
        prop_assert_eq!(rows(&one), rows(&other));
    }

    #[test]
    fn too_many_tuples_are_counted(web in webs(), naive in queries(), limit in 1u64..6) {
        let count = naive.evaluate(&web).len() as u64;
        let limited = query(&format!("{}max_tuples = {limit}", written(&naive, false)));
        match limited.evaluate(&built(&web), no_questions) {
            Ok(evaluation) => {
                prop_assert!(count <= limit);
                prop_assert_eq!(evaluation.table.len() as u64, count);
            }
            Err(Failure::TooMany(TooMany::Tuples { found, exact, .. })) => {
                prop_assert!(limit < found && found <= count);
                // Counting ends where a path alone has too many.
                prop_assert!(found == count || (naive.all && !exact));
            }
            // A path alone may have more than the tuples it is part of.
            Err(Failure::TooMany(TooMany::Paths { found, exact, .. })) => prop_assert!(naive.all && exact && found > limit),
            Err(other) => prop_assert!(false, "{:?}", other),
        }
    }
}
