//! `delta`: pages, links and parts of pages that came, went and changed.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use ratoon::inside::model::{Deletion, Fate, RegionChange};
use ratoon::inside::tables::delta::{LinkDelta, PageDelta, RegionDelta};
use ratoon::inside::tables::ingest::Page;

use crate::workspace::{Workspace, html};

const SAME: &str = "A paragraph that is long enough to be found again wherever it goes, and goes again.";
const OTHER: &str = "Another paragraph of much the same length, so that both can change their places.";

fn site(path: &str) -> String {
    format!("http://site.test/{path}")
}

fn pages(w: &Workspace, snapshot: &str) -> BTreeMap<String, PageDelta> {
    let rows = w.rows::<PageDelta>(snapshot).into_iter();
    rows.map(|row| (row.url.rsplit('/').next().unwrap().to_owned(), row)).collect()
}

fn page(paragraphs: &[&str], links: &[(&str, &str)]) -> String {
    let text: String = paragraphs.iter().map(|text| format!("<p>{text}</p>")).collect();
    let links: String = links.iter().map(|(target, label)| format!("<a href='{target}'>{label}</a> ")).collect();
    format!("<html><head><title>T</title></head><body>{text}{links}</body></html>")
}

#[test]
fn one_snapshot_has_no_deltas() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("p", &page(&[SAME], &[]))]);
    w.ratoon(&["delta", "p.toml"]).expect(0);
    assert_eq!(w.rows::<PageDelta>("2024-01-01"), []);
    assert_eq!(w.rows::<LinkDelta>("2024-01-01"), []);
    assert_eq!(w.rows::<RegionDelta>("2024-01-01"), []);
}

#[test]
fn pages_come_go_change_and_move() {
    let w = Workspace::new("");
    let moving = "A text of its own, long enough to be known again under another address, whichever that may be.";
    let menu = |links: &[(&str, &str)]| page(&["menu"], links);
    w.snapshot(
        "2024-01-01",
        &[
            ("", &menu(&[("p", "P"), ("gone", "G"), ("lonely", "L"), ("swap", "S"), ("lonely2#x", "L2")])),
            ("p", &page(&[SAME], &[("swap", "one"), ("swap", "two"), ("x", "x")])),
            ("gone", &page(&["nothing"], &[])),
            ("old", &page(&[moving], &[])),
            ("lonely", &page(&["L"], &[("lonely", "self")])),
            ("lonely2", &page(&["L2"], &[])),
            ("swap", &page(&[SAME, OTHER], &[])),
            ("title", "<title>A</title><p>same"),
        ],
    );
    w.snapshot(
        "2024-01-02",
        &[
            ("", &menu(&[("p", "P"), ("swap", "S")])),
            ("p", &page(&[SAME, "A new line."], &[("swap", "two"), ("swap", "three"), ("y", "y")])),
            ("new", &page(&[moving], &[])),
            ("lonely", &page(&["L"], &[("lonely", "self")])),
            ("lonely2", &page(&["L2"], &[])),
            ("swap", &page(&[OTHER, SAME], &[])),
            ("title", "<title>B</title><p>same"),
        ],
    );
    w.ratoon(&["delta", "p.toml"]).expect(0);
    let rows = pages(&w, "2024-01-02");
    let changes: Vec<_> = rows.iter().map(|(page, row)| (page.as_str(), row.change.as_str())).collect();
    let expected = [
        ("", "modified"),
        ("gone", "deleted"),
        ("lonely", "unchanged"),
        ("lonely2", "unchanged"),
        ("new", "added"),
        ("old", "deleted"),
        ("p", "modified"),
        ("swap", "modified"),
        ("title", "modified"),
    ];
    assert_eq!(changes, expected);
    assert_eq!(rows["gone"].reason.map(Deletion::as_str), Some("absent"));
    assert!(rows["gone"].unlinked && rows["lonely"].unlinked && rows["lonely2"].unlinked);
    assert!(!rows["p"].unlinked && !rows["swap"].unlinked && !rows["old"].unlinked);
    assert_eq!(rows["old"].moved_to, Some(site("new")));
    assert_eq!(rows["new"].moved_from, Some(site("old")));
    // A line end between the paragraphs at most.
    assert!(rows["swap"].new_text_bytes.unwrap() <= 1);
    assert!(rows["swap"].moved_bytes.unwrap() >= 80);
    let title = &rows["title"];
    assert!(!title.text_changed && title.title_changed && !title.links_changed);
    assert_ne!(title.old_digest, title.new_digest);
    let p = &rows["p"];
    assert!(p.text_changed && !p.title_changed && p.links_changed);
    assert!(p.new_text_bytes.unwrap() > 0 && p.new_text_bytes.unwrap() < 50, "{p:?}");

    let links: Vec<_> = w
        .rows::<LinkDelta>("2024-01-02")
        .into_iter()
        .filter(|row| *row.url == site("p"))
        .map(|row| {
            (row.target.rsplit('/').next().unwrap().to_owned(), row.change.to_string(), row.old_label, row.label)
        })
        .collect();
    let some = |text: &str| Some(text.to_owned());
    let expected = [
        ("swap".to_owned(), "modified".to_owned(), some("one"), some("three")),
        ("x".to_owned(), "deleted".to_owned(), some("x"), None),
        ("y".to_owned(), "added".to_owned(), None, some("y")),
    ];
    assert_eq!(links, expected);
    let moved: Vec<_> =
        w.rows::<RegionDelta>("2024-01-02").into_iter().filter(|row| *row.url == site("swap")).collect();
    let moved: Vec<_> = moved.iter().filter(|row| row.change == RegionChange::Moved).collect();
    assert_eq!(moved.len(), 1);
    assert_eq!(
        moved[0].end.unwrap() - moved[0].start.unwrap(),
        moved[0].old_end.unwrap() - moved[0].old_start.unwrap()
    );
}

/// Old texts and links with the deltas applied are the new ones, byte for byte.
#[test]
fn deltas_rebuild_the_new_snapshot() {
    let w = Workspace::new("");
    evolving(&w, 60, 4);
    w.run();
    let text = |snapshot: &str| -> BTreeMap<String, String> {
        let dir = format!("x-{snapshot}");
        w.ratoon(&["export", "p.toml", "--snapshot", snapshot, &dir, "--parquet", "--force"]).expect(0);
        let file = w.path(&dir).join("pages.parquet");
        let partition = ratoon::inside::store::parquet::Partition::open(&file).unwrap();
        let rows = partition.all_rows::<Page>().unwrap();
        rows.into_iter().map(|page| (page.url, page.text.unwrap())).collect()
    };
    for night in 2..=4 {
        let (before, now) = (format!("2024-01-0{}", night - 1), format!("2024-01-0{night}"));
        let (old, new) = (text(&before), text(&now));
        let mut deltas = w.rows::<PageDelta>(&now);
        assert!(!deltas.is_empty());
        deltas.retain(|row| row.change != Fate::Unchanged);
        for url in old.keys().chain(new.keys()) {
            let expected = match (old.get(url), new.get(url)) {
                (Some(a), Some(b)) if a == b => None,
                (Some(_), Some(_)) => Some("modified"),
                (None, _) => Some("added"),
                (_, None) => Some("deleted"),
            };
            let found = deltas.iter().find(|row| *row.url == **url).map(|row| row.change.as_str());
            assert_eq!(found, expected, "{url} in {now}");
        }
        let mut regions: BTreeMap<String, Vec<RegionDelta>> = BTreeMap::new();
        for row in w.rows::<RegionDelta>(&now) {
            regions.entry(row.url.to_string()).or_default().push(row);
        }
        for (url, rows) in regions {
            let (old, new) = (old.get(&url).map_or("", |t| t), new.get(&url).map_or("", |t| t));
            let at = |n: Option<i64>| usize::try_from(n.unwrap()).unwrap();
            // What is kept follows in order on both sides once all else is taken out.
            let (mut kept_new, mut kept_old) = (new.to_owned(), old.to_owned());
            let mut moved_from = Vec::new();
            for row in rows.iter().rev() {
                match row.change {
                    RegionChange::Added => kept_new.replace_range(at(row.start)..at(row.end), ""),
                    RegionChange::Moved => {
                        assert_eq!(new[at(row.start)..at(row.end)], old[at(row.old_start)..at(row.old_end)]);
                        kept_new.replace_range(at(row.start)..at(row.end), "");
                        moved_from.push(at(row.old_start)..at(row.old_end));
                    }
                    RegionChange::Deleted => moved_from.push(at(row.old_start)..at(row.old_end)),
                }
            }
            moved_from.sort_by_key(|range| range.start);
            for range in moved_from.into_iter().rev() {
                kept_old.replace_range(range, "");
            }
            assert!(kept_old.contains(&kept_new) || kept_new.is_empty(), "{url}");
        }
    }
}

#[test]
fn text_that_comes_back_is_not_news() {
    let w = Workspace::new("");
    let night = |id: &str, lines: &[&str]| w.snapshot(id, &[("p", &page(lines, &[]))]);
    night("2024-01-01", &[SAME, "Sale ends today."]);
    night("2024-01-02", &[SAME]);
    w.snapshot("2024-01-03", &[("q", &page(&[OTHER], &[]))]);
    night("2024-01-04", &[SAME, "Sale ends today.", "Brand new line."]);
    w.run();
    let news = |w: &Workspace, night: &str| -> Vec<(String, String)> {
        let (rows, pages) = (w.rows::<RegionDelta>(night), w.rows::<Page>(night));
        let text =
            pages.iter().find(|page| page.url == site("p")).and_then(|page| page.text.clone()).unwrap_or_default();
        let at = |n: Option<i64>| usize::try_from(n.unwrap()).unwrap();
        rows.iter()
            .filter(|row| *row.url == site("p") && row.change == RegionChange::Added)
            .map(|row| {
                (text[at(row.start)..at(row.end)].trim().to_owned(), row.first_seen.as_ref().unwrap().to_string())
            })
            .collect()
    };
    let both = format!("{SAME}\nSale ends today.");
    let expected = [(both, "2024-01-01".to_owned()), ("Brand new line.".to_owned(), "2024-01-04".to_owned())];
    assert_eq!(news(&w, "2024-01-04"), expected);
    // As the archive is read anew, and after older snapshots are gone.
    let rows = w.rows::<RegionDelta>("2024-01-04");
    fs::remove_dir_all(w.path("store/_meta/index")).unwrap();
    w.ratoon(&["delta", "p.toml", "--force", "--snapshot", "2024-01-04"]).expect(0);
    assert_eq!(w.rows::<RegionDelta>("2024-01-04"), rows);
    w.ratoon(&["prune", "p.toml", "--before", "2024-01-04"]).expect(0);
    night("2024-01-05", &[SAME, "Brand new line."]);
    night("2024-01-06", &[SAME, "Sale ends today.", "Brand new line.", "More."]);
    w.run();
    // A line that is too short to be found as a region is kept all the same, by its words. Words are told whole, though
    // the last two bytes stood there before.
    let expected = [("Sale ends today.", "2024-01-01"), ("More.", "2024-01-06")];
    assert_eq!(news(&w, "2024-01-06"), expected.map(|(text, night)| (text.to_owned(), night.to_owned())));
}

#[test]
fn parts_are_told_in_words_with_their_text() {
    let w = Workspace::new("");
    let long = "word ".repeat(400);
    let night = |id: &str, price: &str, end: &str| {
        let line = format!("The concert in the great hall of the old town costs {price} at the door.");
        w.snapshot(id, &[("p", &page(&[SAME, &line, OTHER, end], &[]))]);
    };
    night("2024-01-01", "€27.00", "");
    night("2024-01-02", "€24.00", &long);
    w.run();
    let rows = w.rows::<RegionDelta>("2024-01-02");
    let told: Vec<(&str, Option<&str>, Option<&str>)> = rows
        .iter()
        .filter(|row| row.text.as_ref().is_none_or(|text| text.len() < 100))
        .map(|row| (row.change.as_str(), row.old_text.as_deref(), row.text.as_deref()))
        .collect();
    assert_eq!(told, [("added", None, Some("€24.00")), ("deleted", Some("€27.00"), None)], "{rows:#?}");
    let most = rows.iter().filter_map(|row| row.text.as_ref()).map(String::len).max();
    assert_eq!(most, Some(1000));
}

/// Pages that change, come, go and are missing for a night.
fn evolving(w: &Workspace, pages: usize, nights: usize) {
    for night in 1..=nights {
        let page = |i: usize| {
            let version = if i % 5 < 2 { night / (i % 3 + 1) } else { 0 };
            let lines: Vec<String> =
                (0..6).map(|k| format!("Line {k} of page {i}, version {}.", version * (k % 3))).collect();
            let (first, rest) = lines.split_at(if version % 2 == 0 { 3 } else { 0 });
            let lines: Vec<&str> = rest.iter().chain(first).map(String::as_str).collect();
            let next = format!("p{}", (i + version) % pages);
            (format!("p{i}"), self::page(&lines, &[(&next, "next"), ("p0", &format!("home {version}"))]))
        };
        let there: Vec<_> = (0..pages).filter(|i| (i + night) % 11 != 0).map(page).collect();
        let there: Vec<_> = there.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
        w.snapshot(&format!("2024-01-0{night}"), &there);
    }
}

#[test]
fn threads_catch_up_and_force_do_not_change_a_byte() {
    let (nightly, late) = (Workspace::new(""), Workspace::new(""));
    evolving(&nightly, 80, 5);
    evolving(&late, 80, 5);
    for night in 1..=5 {
        nightly.ratoon(&["run", "p.toml", "--threads", "1", "--snapshot", &format!("2024-01-0{night}")]).expect(0);
    }
    late.ratoon(&["run", "p.toml", "--threads", "8"]).expect(0);
    let before = late.table_bytes();
    assert!(nightly.table_bytes() == before);
    late.ratoon(&["delta", "p.toml", "--force", "--snapshot", "2024-01-03"]).expect(0);
    late.run();
    assert!(late.table_bytes() == before);
}

#[test]
fn kill_and_rerun_gives_the_same_bytes() {
    let (left_alone, killed) = (Workspace::new(""), Workspace::new(""));
    evolving(&left_alone, 300, 4);
    evolving(&killed, 300, 4);
    left_alone.ratoon(&["delta", "p.toml"]).expect(0);
    killed.ratoon(&["extract", "p.toml"]).expect(0);
    killed.kill_at_many_points(&["delta", "p.toml", "-q"], Duration::from_micros(1000));
    killed.ratoon(&["delta", "p.toml"]).expect(0);
    let (expected, found) = (left_alone.table_bytes(), killed.table_bytes());
    let names = |files: &[(std::path::PathBuf, Vec<u8>)]| files.iter().map(|file| file.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&found), names(&expected));
    for (found, expected) in found.iter().zip(&expected) {
        assert!(found == expected, "{}", found.0.display());
    }
}

#[test]
fn deleted_pages_say_why() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>a"), ("b", "<p>b"), ("c", "<p>c"), ("d", "<p>d"), ("e", "<p>e")]);
    let dir = w.snapshot_dir("2024-01-02");
    fs::write(dir.join("0.html"), "<p>a").unwrap();
    let line = |path: &str, status: u32| {
        format!(
            "{{\"url\":\"http://site.test/{path}\",\"file\":\"0.html\",\"status\":{status},\"content_type\":\"text/html\"}}\n"
        )
    };
    let manifest = line("a", 200) + &line("b", 404) + &line("c", 301) + &line("d", 410);
    fs::write(dir.join("manifest.jsonl"), manifest).unwrap();
    w.run();
    let rows = pages(&w, "2024-01-02");
    let reasons: Vec<_> = rows.values().map(|row| (row.change.as_str(), row.reason.unwrap().as_str())).collect();
    let expected = ["gone", "error", "gone", "absent"].map(|why| ("deleted", why));
    assert_eq!(reasons, expected);
}

#[test]
fn a_partial_crawl_deletes_only_what_is_gone() {
    let w = Workspace::new("coverage = 'partial'");
    w.snapshot("2024-01-01", &[("a", "<p>a"), ("b", "<p>b"), ("c", "<p>c")]);
    w.snapshot("2024-01-02", &[("a", "<p>a, changed")]);
    let dir = w.snapshot_dir("2024-01-03");
    let line = "{\"url\":\"http://site.test/b\",\"file\":\"0\",\"status\":404}\n";
    fs::write(dir.join("0"), "no").unwrap();
    fs::write(dir.join("manifest.jsonl"), line).unwrap();
    w.snapshot("2024-01-04", &[("c", "<p>c")]);
    w.run();
    let changes = |night: &str| -> Vec<_> {
        let rows = pages(&w, night).into_iter();
        rows.map(|(page, row)| (page, row.change.to_string(), row.reason.map(|why| why.to_string()))).collect()
    };
    assert_eq!(changes("2024-01-02"), [("a".to_owned(), "modified".to_owned(), None)]);
    assert_eq!(changes("2024-01-03"), [("b".to_owned(), "deleted".to_owned(), Some("gone".to_owned()))]);
    assert_eq!(changes("2024-01-04"), []);
    let json = w.ratoon(&["delta", "p.toml", "--from", "2024-01-01", "--to", "2024-01-04", "--json"]).expect(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let told: Vec<_> =
        json["pages"].as_array().unwrap().iter().map(|row| (row["change"].clone(), row["reason"].clone())).collect();
    assert!(told.contains(&("deleted".into(), "gone".into())) && told.len() == 2, "{told:?}");
}

#[test]
fn what_rules_mask_is_no_change() {
    let w = Workspace::new("ignore = ['Visitors: [0-9]+']");
    let night = |id: &str, visitors: u32, text: &str| {
        let visitors = format!("Visitors: {visitors}");
        w.snapshot(id, &[("p", &page(&[SAME, &visitors, text], &[])), ("q", &page(&[OTHER, &visitors], &[]))]);
    };
    night("2024-01-01", 1, "x");
    night("2024-01-02", 2, "x");
    night("2024-01-03", 3, "y");
    w.run();
    assert_eq!(w.rows::<PageDelta>("2024-01-02"), []);
    assert_eq!(w.rows::<RegionDelta>("2024-01-02"), []);
    assert_eq!(pages(&w, "2024-01-03").into_keys().collect::<Vec<_>>(), ["p"]);
    let told = w.ratoon(&["delta", "p.toml", "--from", "2024-01-01", "--to", "2024-01-03"]).expect(0).stdout;
    assert!(told.contains("site.test/p") && !told.contains("site.test/q"), "{told}");
    // Without the rule, snapshots that do not follow each other are compared by the rules of today.
    w.pipeline("");
    let told = w.ratoon(&["delta", "p.toml", "--from", "2024-01-01", "--to", "2024-01-03"]).expect(0).stdout;
    assert!(!told.contains("site.test/q"), "{told}");
    night("2024-01-04", 4, "y");
    w.run();
    assert_eq!(pages(&w, "2024-01-04").into_keys().collect::<Vec<_>>(), ["p", "q"]);
    let told = w.ratoon(&["delta", "p.toml", "--from", "2024-01-02", "--to", "2024-01-04"]).expect(0).stdout;
    assert!(told.contains("site.test/q"), "{told}");
}

#[test]
fn any_two_snapshots_compare() {
    let w = Workspace::new("");
    evolving(&w, 40, 4);
    w.run();
    let between = |from: &str, to: &str, more: &[&str]| {
        let mut args = vec!["delta", "p.toml", "--from", from, "--to", to];
        args.extend(more);
        w.ratoon(&args)
    };
    // Of consecutive ones the same as the stage's own.
    between("2024-01-03", "2024-01-04", &["--out", "d"]).expect(0);
    let read = |table: &str| {
        ratoon::inside::store::parquet::Partition::open(&w.path("d").join(table).join("part-00000.parquet")).unwrap()
    };
    let partition = read("page_deltas");
    assert_eq!(partition.all_rows::<PageDelta>().unwrap(), w.rows::<PageDelta>("2024-01-04"));
    let partition = read("region_deltas");
    assert_eq!(partition.all_rows::<RegionDelta>().unwrap(), w.rows::<RegionDelta>("2024-01-04"));
    let partition = read("link_deltas");
    assert_eq!(partition.all_rows::<LinkDelta>().unwrap(), w.rows::<LinkDelta>("2024-01-04"));
    // Memories that are no longer kept are found again.
    between("2024-01-01", "2024-01-02", &["--out", "e"]).expect(0);
    let partition =
        ratoon::inside::store::parquet::Partition::open(&w.path("e/region_deltas/part-00000.parquet")).unwrap();
    assert_eq!(partition.all_rows::<RegionDelta>().unwrap(), w.rows::<RegionDelta>("2024-01-02"));
    assert!(between("2024-01-02", "2024-01-02", &[]).expect(0).stdout.contains("no difference"));
    let there = between("2024-01-01", "2024-01-03", &["--json"]).expect(0).stdout;
    let back = between("2024-01-03", "2024-01-01", &["--json"]).expect(0).stdout;
    let count = |json: &str, change: &str| {
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        json["counts"]["pages"][change].as_u64().unwrap_or(0)
    };
    assert!(count(&there, "modified") > 0 && count(&there, "added") > 0);
    assert_eq!(count(&there, "modified"), count(&back, "modified"));
    assert_eq!(count(&there, "added"), count(&back, "deleted"));
    between("2024-01-01", "2024-01-03", &["--out", "d"]).expect(2).says("not empty");
    between("2024-01-01", "2024-02-03", &[]).expect(2).says("there are 2024-01-01");
    w.ratoon(&["delta", "p.toml", "--from", "2024-01-01"]).expect(2);
}

#[test]
fn an_empty_page_and_a_title_are_no_trouble() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", ""), ("b", &html("T", SAME, "a"))]);
    w.snapshot("2024-01-02", &[("a", &html("T", SAME, "b")), ("b", "")]);
    w.run();
    let rows = pages(&w, "2024-01-02");
    assert_eq!((rows["a"].new_text_bytes, rows["b"].new_text_bytes), (rows["a"].new_bytes, Some(0)));
}

/// A heading that became another one is no other text, but it is told.
#[test]
fn other_elements_with_the_same_words_are_told() {
    let w = Workspace::new("");
    let page =
        |heading: &str, words: &str| format!("<title>t</title><{heading}>Side effects</{heading}><p>{words}</p>");
    let (old, new) = (page("h1", "none"), page("h2", "none"));
    let (same, other) = (page("h1", "same"), page("h1", "other"));
    w.snapshot("2024-01-01", &[("a", &old), ("b", &same), ("c", &page("h1", "one")), ("d", &same)]);
    w.snapshot("2024-01-02", &[("a", &new), ("b", &same), ("c", &page("h2", "two")), ("d", &other)]);
    w.run();
    let told = |rows: Vec<PageDelta>| -> Vec<(String, String, bool)> {
        let row =
            |row: PageDelta| (row.url.replace("http://site.test/", ""), row.change.to_string(), row.structure_changed);
        let mut told: Vec<_> = rows.into_iter().map(row).collect();
        told.sort();
        told
    };
    let expected = [("a", "unchanged", true), ("c", "modified", true), ("d", "modified", false)];
    let expected: Vec<_> = expected.map(|(url, change, other)| (url.to_owned(), change.to_owned(), other)).into();
    assert_eq!(told(w.rows::<PageDelta>("2024-01-02")), expected);
    // Of any two snapshots it is told likewise, in either order.
    for (from, to) in [("2024-01-01", "2024-01-02"), ("2024-01-02", "2024-01-01")] {
        let said = w.ratoon(&["delta", "p.toml", "--from", from, "--to", to]).expect(0).stdout;
        assert!(said.lines().any(|line| line.contains("/a (other elements)")), "{said}");
        assert!(!said.contains("/b"), "{said}");
    }
}
