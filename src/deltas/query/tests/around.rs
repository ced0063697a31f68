//! Asked around what was touched, a query has the table that it has when asked of the whole web.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::random::{KINDS, answered, queries, written};
use super::*;
use crate::deltas::web::WebTable;

/// A page of the web, or none: its first letter of the title, its version, and its links, some of which lead nowhere.
type MaybePage = Option<(char, u8, Vec<(usize, char, usize)>)>;

fn url(page: usize) -> String {
    format!("http://h/{page}")
}

#[derive(Clone, Debug)]
struct Pages(Vec<MaybePage>);

impl Pages {
    fn web_page(&self, page: usize) -> Option<WebPage> {
        let (title, version, links) = self.0.get(page)?.as_ref()?;
        let version = Digest::of(format!("{title} {version} {links:?}").as_bytes());
        Some(WebPage { title: Some(format!("{title} title")), version, ..super::page(&url(page)) })
    }

    fn out(&self, page: usize) -> Vec<OutLink> {
        let links = self.0[page].iter().flat_map(|(_, _, links)| links);
        links.map(|&(to, label, kind)| OutLink { to: url(to), label: label.to_string(), kind: KINDS[kind] }).collect()
    }

    fn evaluate(&self, query: &Query, web: &Web) -> WebTable {
        let title = |url: &str| self.0.get(place(url))?.as_ref().map(|(title, _, _)| *title);
        query.evaluate(web, |questions| answered(questions, title)).unwrap().table
    }

    fn whole(&self) -> Web {
        let mut builder = WebBuilder::new((0..self.0.len()).filter_map(|page| self.web_page(page)).collect());
        for page in 0..self.0.len() {
            for link in self.out(page) {
                builder.link(&url(page), &link.to, &link.label, link.kind);
            }
        }
        builder.finish()
    }
}

/// Looks up by URL, and notes how often.
struct Books<'a> {
    pages: &'a Pages,
    looked_up: BTreeMap<String, usize>,
}

fn place(url: &str) -> usize {
    url.rsplit('/').next().unwrap().parse().unwrap()
}

impl Neighbours for Books<'_> {
    type Error = Never;

    fn pages(&mut self, urls: &[&str]) -> Result<Vec<Option<WebPage>>, Never> {
        assert!(urls.is_sorted());
        urls.iter().for_each(|url| *self.looked_up.entry((*url).to_owned()).or_default() += 1);
        Ok(urls.iter().map(|url| self.pages.web_page(place(url))).collect())
    }

    fn links(&mut self, urls: &[&str]) -> Result<Vec<Vec<OutLink>>, Never> {
        Ok(urls.iter().map(|url| self.pages.out(place(url))).collect())
    }

    fn linkers(&mut self, url: &str, most: usize) -> Result<Option<Vec<String>>, Never> {
        let pages = 0..self.pages.0.len();
        let links = |page: &usize| self.pages.out(*page).iter().any(|link| link.to == url);
        let found: Vec<String> = pages.filter(links).map(super::around::url).collect();
        Ok((found.len() <= most).then_some(found))
    }
}

fn webs(pages: std::ops::Range<usize>) -> impl Strategy<Value = (Pages, Pages, Vec<bool>)> {
    pages.prop_flat_map(|count| {
        let link = (0..count + 1, prop::char::range('k', 'l'), 0usize..3);
        let page = (prop::char::range('a', 'c'), 0u8..2, prop::collection::vec(link, 0..4));
        let web = prop::collection::vec(prop::option::weighted(0.85, page), count);
        (web.clone(), web, prop::collection::vec(prop::bool::weighted(0.3), count))
            .prop_map(|(one, other, touched)| (Pages(one), Pages(other), touched))
    })
}

fn rows(table: &WebTable) -> (Vec<String>, Vec<String>) {
    let nodes = table.node_rows().map(|row| format!("{row:?}")).collect();
    (nodes, table.link_rows().map(|row| format!("{row:?}")).collect())
}

fn asked_around(
    query: &Query,
    before: &Pages,
    after: &Pages,
    touched: &BTreeSet<String>,
    most: usize,
) -> Option<WebTable> {
    let old = before.evaluate(query, &before.whole());
    let mut books = Books { pages: after, looked_up: BTreeMap::new() };
    let around = query.around(touched, &old, most, &mut books).unwrap()?;
    assert!(books.looked_up.values().all(|times| *times == 1), "looked up twice: {:?}", books.looked_up);
    let found = after.evaluate(query, around.web());
    Some(around.table(&old, &found).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn it_is_as_if_the_whole_web_was_asked(
        (before, other, touched) in webs(2..9),
        naive in queries(),
        tagged in any::<bool>(),
    ) {
        let query = query(&written(&naive, tagged));
        let pages = before.0.iter().zip(&other.0).zip(&touched);
        let after = Pages(pages.map(|((old, new), touched)| if *touched { new.clone() } else { old.clone() }).collect());
        let urls: BTreeSet<String> = (0..touched.len()).filter(|page| touched[*page]).map(url).collect();
        let whole = after.evaluate(&query, &after.whole());
        let table = asked_around(&query, &before, &after, &urls, usize::MAX / 2).unwrap();
        prop_assert_eq!(rows(&table), rows(&whole));
    }
}

/// A ring: every page links to the next one, and page 0, a hub, links to all.
fn ring(count: usize, title: impl Fn(usize) -> char) -> Pages {
    let links = |page: usize| match page {
        0 => (1..count).map(|to| (to, 'h', 1)).collect(),
        page => vec![((page + 1) % count, 'n', 1)],
    };
    Pages((0..count).map(|page| Some((title(page), 0, links(page)))).collect())
}

#[test]
fn only_what_lies_around_is_looked_up() {
    let before = ring(1000, |_| 'a');
    let mut after = before.clone();
    after.0[500] = Some(('b', 0, vec![(501, 'n', 1)]));
    let touched = BTreeSet::from([url(500)]);
    let query = query("nodes.y = { title = 'b*' }\nlinks = [\"x -> y [label = 'n']\"]");
    // The page before, the page behind, and the hub, whose link is no such link.
    let table = asked_around(&query, &before, &after, &touched, 4).unwrap();
    assert_eq!(table.node_rows().map(|row| row.url.to_owned()).collect::<Vec<_>>(), [url(499), url(500)]);
    assert!(asked_around(&query, &before, &after, &touched, 3).is_none());
}

#[test]
fn a_shorter_path_takes_the_place_of_a_longer_one_and_gives_it_back() {
    let mut long = ring(8, |page| {
        if page == 2 {
            's'
        } else if page == 6 {
            't'
        } else {
            'a'
        }
    });
    long.0[0] = None;
    let mut short = long.clone();
    short.0[3] = Some(('a', 1, vec![(6, 'n', 1)]));
    let touched = BTreeSet::from([url(3)]);
    let query = query("nodes.x = { title = 's*' }\nnodes.y = { title = 't*' }\nlinks = ['x -{1,5}-> y']");
    for (before, after, length) in [(&long, &short, 2), (&short, &long, 4)] {
        let table = asked_around(&query, before, after, &touched, 100).unwrap();
        assert_eq!(table.len(), 1);
        assert_eq!(table.link_rows().count(), length);
    }
}
