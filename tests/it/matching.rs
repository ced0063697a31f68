//! `match` and `show`: regions of changed pages.

use std::collections::HashMap;

use ratoon::inside::tables::ingest::Page;
use ratoon::inside::tables::matching::RegionRow;

use crate::workspace::{Workspace, html};

const SAME: &str = "A paragraph that is long enough to be found again wherever it goes, and goes again.";
const OTHER: &str = "Another paragraph of much the same length, so that both can change their places.";

fn nights(w: &Workspace) {
    let page = |a: &str, b: &str| html("P", &format!("{a}</p><p>{b}"), "x");
    w.snapshot("2024-01-01", &[("p", &page(SAME, OTHER)), ("q", &page("q", OTHER)), ("s", &page("same", SAME))]);
    w.snapshot("2024-01-02", &[("p", &page(OTHER, SAME)), ("s", &page("same", SAME)), ("n", &page("new", OTHER))]);
    w.snapshot("2024-01-03", &[("q", &page("other", OTHER)), ("s", &page("same", SAME))]);
}

/// Texts of every page up to a snapshot: URL to text, the last good one.
fn texts(w: &Workspace, snapshots: &[&str]) -> HashMap<String, String> {
    let pages = snapshots.iter().flat_map(|snapshot| w.rows::<Page>(snapshot));
    pages.filter_map(|page| Some((page.url, page.text?))).collect()
}

#[test]
fn regions_are_certified_by_the_stored_texts() {
    for matcher in ["edges", "diff", "suffix-tree", "anchor", "auto"] {
        let w = Workspace::new("");
        nights(&w);
        w.ratoon(&["match", "p.toml", "--plan", matcher]).expect(0);
        let days = ["2024-01-01", "2024-01-02", "2024-01-03"];
        let mut urls = Vec::new();
        for (i, day) in days.iter().enumerate() {
            let (old, new) = (texts(&w, &days[..i]), texts(&w, &days[..=i]));
            for row in w.rows::<RegionRow>(day) {
                let at = |n: i64| usize::try_from(n).unwrap();
                let (start, end, old_start) = (at(row.start), at(row.end), at(row.old_start));
                let url: &str = &row.url;
                assert_eq!(new[url][start..end], old[url][old_start..old_start + end - start], "{matcher} {url}");
                assert_eq!(row.matcher.as_str(), if matcher == "auto" { "anchor" } else { matcher });
                urls.push((*day, row.url.rsplit('/').next().unwrap().to_owned(), row.old_snapshot.to_string()));
            }
        }
        urls.dedup();
        // q was missing one night and is matched with the night before; s did not change, n is new.
        let expected = [("2024-01-02", "p", "2024-01-01"), ("2024-01-03", "q", "2024-01-01")];
        assert_eq!(urls, expected.map(|(day, url, old)| (day, url.to_owned(), old.to_owned())), "{matcher}");
    }
}

#[test]
fn anchor_and_suffix_tree_write_the_same_regions() {
    let (a, b) = (Workspace::new("[plan]\nchoose = 'anchor'"), Workspace::new("[plan]\nchoose = 'suffix-tree'"));
    nights(&a);
    nights(&b);
    a.run();
    b.run();
    let regions = |w: &Workspace| {
        let rows = w.rows::<RegionRow>("2024-01-02").into_iter();
        rows.map(|row| (row.url, row.start, row.end, row.old_start)).collect::<Vec<_>>()
    };
    assert!(regions(&a).len() >= 2);
    assert_eq!(regions(&a), regions(&b));
}

#[test]
fn show_tells_kept_moved_and_new_text_apart() {
    let w = Workspace::new("");
    nights(&w);
    w.run();
    let shown = w.ratoon(&["show", "http://site.test/p", "p.toml"]).expect(0).stdout;
    assert!(shown.contains("snapshot  2024-01-02: modified"), "{shown}");
    assert!(shown.contains("{~") && shown.contains("against   2024-01-01"), "{shown}");
    let json = w.ratoon(&["show", "http://site.test/q#top", "p.toml", "--json"]).expect(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["against"], &json["snapshot"]), (&"2024-01-01".into(), &"2024-01-03".into()));
    let whole: String = json["segments"].as_array().unwrap().iter().map(|s| s["text"].as_str().unwrap()).collect();
    assert_eq!(whole, texts(&w, &["2024-01-03"])["http://site.test/q"]);
    assert!(json["segments"].as_array().unwrap().iter().any(|s| s["kind"] == "new"));
    let first = w.ratoon(&["show", "http://site.test/q", "p.toml", "--snapshot", "2024-01-01"]).expect(0).stdout;
    assert!(first.contains("no earlier version"), "{first}");
    w.ratoon(&["show", "http://site.test/zzz", "p.toml"]).expect(1).says("no page http://site.test/zzz");
    w.ratoon(&["show", "not a url", "p.toml"]).expect(2).says("not a url");
    w.ratoon(&["show", "http://site.test/p", "p.toml", "--against", "2023-01-01"])
        .expect(2)
        .says("there are 2024-01-01");
}

#[test]
fn prune_drops_regions_too_and_matching_goes_on() {
    let w = Workspace::new("");
    nights(&w);
    w.run();
    w.ratoon(&["prune", "p.toml", "--before", "2024-01-03"]).expect(0);
    assert!(!w.path("store/regions/snapshot=2024-01-02").exists());
    w.snapshot("2024-01-04", &[("s", &html("P", &format!("changed</p><p>{SAME}"), "x"))]);
    w.run();
    assert!(!w.rows::<RegionRow>("2024-01-04").is_empty());
}

#[test]
fn a_moved_page_is_shown_against_where_it_was() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("old", &html("P", SAME, "x"))]);
    w.snapshot("2024-01-02", &[("new", &html("P", SAME, "x"))]);
    w.run();
    let shown = w.ratoon(&["show", "http://site.test/new", "p.toml"]).expect(0).stdout;
    assert!(shown.contains("from http://site.test/old") && shown.contains(" 0 new, 0 deleted"), "{shown}");
}
