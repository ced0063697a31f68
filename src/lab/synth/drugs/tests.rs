//! The coupling query and the delta rules, evaluated by brute force over the pages as written.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

type Urls = BTreeSet<String>;

struct Page {
    html: String,
    title: String,
    links: Vec<(String, String)>,
}

/// A match of the query: the pages of the path from a to u, then d and k.
type Tuple = (Vec<String>, String, String);

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<(&'a str, &'a str)> {
    let rest = &text[text.find(open)? + open.len()..];
    rest.split_once(close)
}

/// `target` as a browser at `base` understands it; enough for the links of this site.
fn absolute(base: &str, target: &str) -> String {
    let host_end = base[7..].find('/').unwrap() + 7;
    let folder = base.rfind('/').unwrap() + 1;
    if target.starts_with("http://") {
        target.to_owned()
    } else if target.starts_with('/') {
        format!("{}{target}", &base[..host_end])
    } else if target.starts_with('#') {
        base.to_owned()
    } else if let Some(up) = target.strip_prefix("../") {
        let parent = base[..folder - 1].rfind('/').unwrap() + 1;
        format!("{}{up}", &base[..parent])
    } else {
        format!("{}{target}", &base[..folder])
    }
}

fn site(snapshot: u32) -> BTreeMap<String, Page> {
    let mut site = BTreeMap::new();
    for page in pages(snapshot) {
        let html = String::from_utf8(page.body.clone()).unwrap();
        let title = between(&html, "<TITLE>", "</TITLE>").unwrap().0.to_owned();
        let (mut links, mut rest) = (Vec::new(), html.as_str());
        while let Some((target, after)) = between(rest, "<A HREF=\"", "\">") {
            let (label, after) = after.split_once("</A>").unwrap();
            links.push((absolute(&page.url, target), label.to_owned()));
            rest = after;
        }
        site.insert(page.url.clone(), Page { html, title, links });
    }
    site
}

fn starts(text: &str, with: &str) -> bool {
    text.to_lowercase().starts_with(with)
}

/// All tuples of `a -{0,4}-> u`, `u -> d [label side effects*]` with d's title likewise, `u -> k [label uses*]`.
fn table(site: &BTreeMap<String, Page>) -> BTreeSet<Tuple> {
    let mut tuples = BTreeSet::new();
    let mut paths = vec![vec!["http://www.panacea.gov/".to_owned()]];
    while let Some(path) = paths.pop() {
        let page = &site[path.last().unwrap()];
        for (d, label) in &page.links {
            for (k, other) in &page.links {
                let known = site.contains_key(d) && site.contains_key(k);
                if known
                    && starts(label, "side effects")
                    && starts(&site[d].title, "side effects")
                    && starts(other, "uses")
                {
                    tuples.insert((path.clone(), d.clone(), k.clone()));
                }
            }
        }
        for (target, _) in page.links.iter().filter(|_| path.len() <= 4) {
            if site.contains_key(target) && !path.contains(target) {
                paths.push(path.iter().chain([target]).cloned().collect());
            }
        }
    }
    tuples
}

fn urls(tuple: &Tuple) -> Urls {
    tuple.0.iter().chain([&tuple.1, &tuple.2]).cloned().collect()
}

fn nodes(ids: &str) -> Urls {
    let url = |id| NODES.iter().find(|node| node.id == id).unwrap_or_else(|| panic!("no {id}")).url.to_owned();
    ids.split_whitespace().map(url).collect()
}

fn minus(a: &Urls, b: &Urls) -> Urls {
    a - b
}

#[test]
fn node_sets_and_tuples_are_those_of_the_paper() {
    let (old_site, new_site) = (site(0), site(1));
    let (old, new) = (table(&old_site), table(&new_site));
    assert_eq!((old.len(), new.len()), (8, 9));

    let all = |tuples: &BTreeSet<Tuple>| tuples.iter().flat_map(urls).collect::<Urls>();
    let (n1, n2) = (all(&old), all(&new));
    let (added, deleted) = (minus(&n2, &n1), minus(&n1, &n2));
    let same = |url: &&String| old_site[*url].html == new_site[*url].html;
    let joinable: Urls = (&n1 & &n2).iter().filter(same).cloned().collect();
    let updated = minus(&(&n1 & &n2), &joinable);
    assert_eq!(joinable, nodes("b0 b2 u0 u1 d0 d6 d1 k0 k1 k7"));
    assert_eq!(added, nodes("k4 u9 k8 d8 d7 u3 u12 d9 k9 u10 u11 d10 k10"));
    assert_eq!(deleted, nodes("b3 u4 u5 u6 u8 d4 d5 d12 k5 k6 k12"));
    assert_eq!(updated, nodes("a0 b1 d2 k2 u2 d3 k3 b4 u7"));
    // What the paper says of Niacin: there before, but not in the table.
    assert!(nodes("u3 k4").iter().all(|url| old_site.contains_key(url) && !n1.contains(url)));

    let plus: Vec<_> = new.iter().filter(|tuple| !urls(tuple).is_disjoint(&added)).collect();
    let gone: Vec<_> = old.iter().filter(|tuple| !urls(tuple).is_disjoint(&deleted)).collect();
    assert_eq!((plus.len(), gone.len()), (4, 4));

    // Joined pairs, dangling tuples, then the modified pairs.
    let joined: Vec<_> = old
        .iter()
        .flat_map(|w1| new.iter().map(move |w2| (w1, w2)))
        .filter(|(w1, w2)| !(&(&urls(w1) & &urls(w2)) & &joinable).is_empty())
        .collect();
    let in_join: Urls = joined.iter().flat_map(|(w1, w2)| &urls(w1) | &urls(w2)).collect();
    let only_dangling = minus(&updated, &in_join);
    let dangles = |tuple: &Tuple| urls(tuple).is_disjoint(&joinable);
    let mut pairs = Vec::new();
    for (w1, w2) in old.iter().flat_map(|w1| new.iter().map(move |w2| (w1, w2))) {
        let (a, b) = (urls(w1), urls(w2));
        let changed = !(&(&a & &b) & &updated).is_empty();
        let differ = &a ^ &b;
        let from_join = joined.contains(&(w1, w2)) && changed && differ.is_subset(&(&added | &deleted));
        let both_dangle = dangles(w1) && dangles(w2);
        let from_outer =
            both_dangle && ((a == b && a.is_subset(&updated)) || !(&(&a & &b) & &only_dangling).is_empty());
        if from_join || from_outer {
            pairs.push((w1, w2));
        }
    }
    assert_eq!(pairs.len(), 5);
    // No tuple is in two pairs, so there is nothing to choose between.
    let distinct = |side: Vec<&Tuple>| side.into_iter().collect::<BTreeSet<_>>().len();
    assert_eq!(distinct(pairs.iter().map(|p| p.0).collect()), 5);
    assert_eq!(distinct(pairs.iter().map(|p| p.1).collect()), 5);
    // Nothing is relinked: each tuple is explained by plus, minus, modified, or is unchanged.
    let explained = |w: &Tuple| pairs.iter().any(|p| p.0 == w || p.1 == w);
    assert!(new.iter().all(|w| plus.contains(&w) || explained(w)));
    assert!(old.iter().all(|w| gone.contains(&w) || explained(w)));
}

#[test]
fn links_are_written_so_that_they_resolve() {
    for node in NODES {
        for body in node.bodies.iter().flatten() {
            for (target, _) in body.links {
                let written = relative(node.url, target);
                let expected = if target.starts_with('#') { node.url } else { target };
                assert_eq!(absolute(node.url, &written), expected);
            }
        }
    }
}

#[test]
fn every_page_of_the_paper_has_one_url() {
    let mut seen = BTreeSet::new();
    assert!(NODES.iter().all(|node| seen.insert(node.url)));
    assert!(NODES.iter().all(|node| node.bodies.iter().any(Option::is_some)));
}
