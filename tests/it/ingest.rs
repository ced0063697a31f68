//! What `ingest` makes of snapshots: pages, changes, pointers, coverage.

use std::collections::BTreeSet;
use std::fs;

use ratoon::inside::model::{NoText, SnapshotId, TimeSource};
use ratoon::inside::store::parquet::Partition;
use ratoon::inside::tables::delta::WebTupleRow;
use ratoon::inside::tables::ingest::{Capture, LinkRow, Page, RejectRow};

use crate::workspace::{Workspace, html};

fn page(workspace: &Workspace, snapshot: &str, path: &str) -> Page {
    let url = format!("http://site.test/{path}");
    let pages = workspace.rows::<Page>(snapshot);
    pages.into_iter().find(|page| page.url == url).unwrap_or_else(|| panic!("no page {url} in {snapshot}"))
}

#[test]
fn a_page_is_added_then_unchanged_then_modified() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", &html("A", "one", "b"))]);
    w.snapshot("2024-01-02", &[("a", &html("A", "one", "b"))]);
    w.snapshot("2024-01-03", &[("a", &html("A", "two", "b"))]);
    w.run();
    let [first, second, third] = ["2024-01-01", "2024-01-02", "2024-01-03"].map(|s| page(&w, s, "a"));
    assert_eq!(
        [first.change.as_str(), second.change.as_str(), third.change.as_str()],
        ["added", "unchanged", "modified"]
    );
    assert_eq!(first.title.as_deref(), Some("A"));
    assert_eq!(first.host, "site.test");
    assert_eq!(first.text.as_deref(), Some("one\nto b"));
    // Stored once: the second night points to the first.
    assert_eq!((second.text, second.text_snapshot.as_str()), (None, "2024-01-01"));
    assert_eq!(second.content_snapshot.as_str(), "2024-01-01");
    assert_eq!((third.text.as_deref(), third.text_snapshot.as_str()), (Some("two\nto b"), "2024-01-03"));
    assert_eq!(second.text_digest, first.text_digest);
    assert_eq!(w.rows::<LinkRow>("2024-01-02"), []);
    let links = w.rows::<LinkRow>("2024-01-03");
    assert_eq!(links.len(), 1);
    assert_eq!((&*links[0].target, &*links[0].label, links[0].kind.as_str()), ("http://site.test/b", "to b", "local"));
}

#[test]
fn a_change_of_title_or_links_alone_is_a_change_that_keeps_the_text() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<title>A</title><p>same<a href=x></a>")]);
    w.snapshot("2024-01-02", &[("a", "<title>B</title><p>same<a href=x></a>")]);
    w.snapshot("2024-01-03", &[("a", "<title>B</title><p>same<a href=y></a>")]);
    w.run();
    for night in ["2024-01-02", "2024-01-03"] {
        let page = page(&w, night, "a");
        assert_eq!((page.change.as_str(), page.text, page.text_snapshot.as_str()), ("modified", None, "2024-01-01"));
        assert_eq!(page.content_snapshot.as_str(), night);
        assert_eq!(w.rows::<LinkRow>(night).len(), 1);
    }
}

#[test]
fn a_page_missing_one_night_is_known_when_it_returns() {
    let w = Workspace::new("");
    let (a, b) = (html("A", "stays", "b"), html("B", "comes and goes", "a"));
    w.snapshot("2024-01-01", &[("a", &a), ("b", &b)]);
    w.snapshot("2024-01-02", &[("a", &a)]);
    w.snapshot("2024-01-03", &[("a", &a), ("b", &b)]);
    w.run();
    assert_eq!(w.rows::<Page>("2024-01-02").len(), 1, "full coverage: not captured means gone");
    let back = page(&w, "2024-01-03", "b");
    assert_eq!((back.change.as_str(), back.returned), ("unchanged", true));
    assert_eq!(back.text_snapshot.as_str(), "2024-01-03", "its text is stored again");
}

#[test]
fn a_partial_crawl_carries_what_it_did_not_visit() {
    let w = Workspace::new("coverage = 'partial'");
    let (a, b) = (html("A", "stays", "b"), html("B", "other", "a"));
    w.snapshot("2024-01-01", &[("a", &a), ("b", &b)]);
    w.snapshot("2024-01-02", &[("a", &a)]);
    // b is gone for good, a fails.
    let dir = w.snapshot_dir("2024-01-03");
    fs::write(dir.join("x"), "gone").unwrap();
    let lines = "{\"url\":\"http://site.test/b\",\"file\":\"x\",\"status\":404}\n\
                 {\"url\":\"http://site.test/a\",\"file\":\"x\",\"status\":503}\n";
    fs::write(dir.join("manifest.jsonl"), lines).unwrap();
    w.snapshot("2024-01-04", &[("c", &a)]);
    w.run();
    let carried = page(&w, "2024-01-02", "b");
    assert_eq!(
        (carried.change.as_str(), carried.text, carried.text_snapshot.as_str()),
        ("carried", None, "2024-01-01")
    );
    let urls = |night| w.rows::<Page>(night).into_iter().map(|p| (p.url, p.change.to_string())).collect::<Vec<_>>();
    assert_eq!(urls("2024-01-03"), [("http://site.test/a".to_owned(), "carried".to_owned())]);
    assert_eq!(w.rows::<Capture>("2024-01-03").len(), 2);
    assert_eq!(urls("2024-01-04").len(), 2, "a is carried, b stays deleted, c is new");
}

#[test]
fn ignored_text_is_no_change_but_is_stored() {
    let w = Workspace::new("ignore = ['visitors: \\d+']");
    w.snapshot("2024-01-01", &[("a", &html("A", "news, visitors: 17", "b"))]);
    w.snapshot("2024-01-02", &[("a", &html("A", "news, visitors: 18", "b"))]);
    w.run();
    let second = page(&w, "2024-01-02", "a");
    assert_eq!(second.change.as_str(), "unchanged");
    assert_eq!(second.text.as_deref(), Some("news, visitors: 18\nto b"), "extraction never sees a mask");
    assert_eq!(second.change_digest, page(&w, "2024-01-01", "a").change_digest);
    assert_ne!(second.change_digest, second.content_digest);
}

#[test]
fn new_ignore_rules_are_applied_to_the_old_page_too() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", &html("A", "at 10:31", "b")), ("b", &html("B", "at 10:31", "a"))]);
    w.run();
    w.pipeline("ignore = ['\\d\\d:\\d\\d']");
    w.snapshot("2024-01-02", &[("a", &html("A", "at 10:32", "b")), ("b", &html("B", "on 10:32", "a"))]);
    w.run();
    assert_eq!(page(&w, "2024-01-02", "a").change.as_str(), "unchanged");
    assert_eq!(page(&w, "2024-01-02", "b").change.as_str(), "modified");
}

#[test]
fn a_moved_page_names_the_url_it_came_from() {
    let w = Workspace::new("");
    let long = html("A", &"a long enough text ".repeat(5), "x");
    let short = html("S", "short", "x");
    w.snapshot(
        "2024-01-01",
        &[
            ("old", &long),
            ("s", &short),
            ("d1", &html("D", &"twice ".repeat(20), "x")),
            ("d2", &html("D", &"twice ".repeat(20), "x")),
        ],
    );
    w.snapshot("2024-01-02", &[("new", &long), ("s2", &short), ("d3", &html("D", &"twice ".repeat(20), "x"))]);
    w.run();
    assert_eq!(page(&w, "2024-01-02", "new").moved_from.as_deref(), Some("http://site.test/old"));
    assert_eq!(page(&w, "2024-01-02", "s2").moved_from, None, "short texts are equal by chance");
    assert_eq!(page(&w, "2024-01-02", "d3").moved_from, None, "two candidates");
    assert_eq!(page(&w, "2024-01-01", "old").moved_from, None);
}

#[test]
fn http_and_https_are_one_only_if_asked() {
    let pages = |w: &Workspace| {
        let dir = w.snapshot_dir("2024-01-01");
        fs::write(dir.join("x"), "<p>x").unwrap();
        let lines = "{\"url\":\"http://site.test/a#top\",\"file\":\"x\"}\n{\"url\":\"https://u:p@site.test/a\",\"file\":\"x\"}\n";
        fs::write(dir.join("manifest.jsonl"), lines).unwrap();
        w.run();
        w.rows::<Page>("2024-01-01").len()
    };
    assert_eq!(pages(&Workspace::new("")), 2);
    assert_eq!(pages(&Workspace::new("equate_schemes = true")), 1);
}

#[test]
fn charsets_and_types_are_read_as_they_are() {
    let w = Workspace::new("");
    let dir = w.snapshot_dir("2024-01-01");
    fs::write(dir.join("latin"), b"<p>caf\xe9").unwrap();
    fs::write(dir.join("bom"), b"\xef\xbb\xbf{\"a\":\r\n1}").unwrap();
    fs::write(dir.join("png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").unwrap();
    let line = |file: &str, kind: &str| {
        format!(
            "{{\"url\":\"http://site.test/{file}\",\"file\":\"{file}\",\"content_type\":\"{kind}\",\"status\":200}}\n"
        )
    };
    let lines =
        line("latin", "text/html; charset=iso-8859-1") + &line("bom", "application/json") + &line("png", "image/png");
    fs::write(dir.join("manifest.jsonl"), lines).unwrap();
    w.run();
    assert_eq!(page(&w, "2024-01-01", "latin").text.as_deref(), Some("café"));
    assert_eq!(page(&w, "2024-01-01", "bom").text.as_deref(), Some("{\"a\":\r\n1}"));
    assert_eq!(w.rows::<Page>("2024-01-01").len(), 2, "a picture is captured, not paged");
    let captures = w.rows::<Capture>("2024-01-01");
    let png = captures.iter().find(|c| c.url.ends_with("png")).unwrap();
    assert_eq!((png.text_digest, png.payload_bytes), (None, Some(16)));
}

#[test]
fn a_mirror_tree_is_read_and_does_not_depend_on_file_times() {
    let w = Workspace::new("");
    for night in ["2024-01-01", "2024-01-02"] {
        let dir = w.snapshot_dir(night).join("site.test:8080/sub");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("index.html"), html("I", "index", "p")).unwrap();
        fs::write(dir.join("p?x=1"), html("P", "page", "/")).unwrap();
    }
    w.run();
    let pages = w.rows::<Page>("2024-01-02");
    let mut urls: Vec<_> = pages.iter().map(|p| (p.url.as_str(), p.change.as_str())).collect();
    urls.sort_unstable();
    let expected = [("http://site.test:8080/sub/", "unchanged"), ("http://site.test:8080/sub/p?x=1", "unchanged")];
    assert_eq!(urls, expected);
    let captures = w.rows::<Capture>("2024-01-02");
    assert_eq!(
        captures[0].fetched_at_source.map(TimeSource::as_str),
        Some("snapshot"),
        "written now, not between the snapshots"
    );
    assert_eq!(captures[0].fetched_at.unwrap().to_string(), "2024-01-02T00:00:00Z");
}

/// A mirror keeps the page of a folder as `index.html`: whatever a link says, it leads there.
#[test]
fn index_html_and_its_folder_are_one_page_of_a_mirror() {
    let settings =
        "[schedule]\ndiscover = { scope = 'host', polls = 9 }\n[[query]]\nname = 'links'\nlinks = ['a -> b']\n";
    let (mirror, other) = (Workspace::new(settings), Workspace::new(settings));
    let home = "<title>H</title><p>home</p><a href='sub/'>1</a> <a href='sub/index.html'>2</a>\
                <a href='/sub/index.html#top'>3</a> <a href='index.html#end'>4</a> <a href='new/index.html?x=1'>5</a>";
    let sub = "<title>S</title><p>sub</p><a href='../index.html'>home</a>";
    let night = |id: &str, sub: &str| {
        let dir = mirror.snapshot_dir(id).join("site.test");
        fs::create_dir_all(dir.join("sub")).unwrap();
        fs::write(dir.join("index.html"), home).unwrap();
        fs::write(dir.join("sub/index.html"), sub).unwrap();
    };
    night("2024-01-01", sub);
    mirror.run();
    let links = |w: &Workspace| -> Vec<String> {
        let links = w.rows::<LinkRow>("2024-01-01").into_iter().filter(|link| *link.url == *"http://site.test/");
        links.map(|link| format!("{} {}", link.target.replace("http://site.test", ""), link.kind)).collect()
    };
    assert_eq!(links(&mirror), ["/sub/ local", "/sub/ local", "/sub/#top local", "/#end interior", "/new/?x=1 local"]);
    // A page that is there under another name is not to be discovered.
    let due = |w: &Workspace| -> Vec<String> {
        let said = w.ratoon(&["due", "p.toml", "--at", "2024-01-03T00:00:00Z"]).expect(0).stdout;
        said.lines().filter(|url| url.contains("new") || url.contains("index")).map(str::to_owned).collect()
    };
    assert_eq!(due(&mirror), ["http://site.test/new/?x=1"]);
    let first = SnapshotId::new("2024-01-01").unwrap();
    let tuples = Partition::open(&mirror.store().partition_file("web_tuples/links", &first)).unwrap();
    let tuples: Vec<WebTupleRow> = tuples.all_rows().unwrap();
    let ends = |node: &str| -> BTreeSet<&str> {
        tuples.iter().filter(|row| row.node == node).map(|row| row.url.as_str()).collect()
    };
    let both = BTreeSet::from(["http://site.test/", "http://site.test/sub/"]);
    assert_eq!((ends("a"), ends("b")), (both.clone(), both));
    // Links in are counted by the same name.
    night("2024-01-02", &sub.replace("<p>sub", "<p>sub, and news of it"));
    mirror.run();
    let said = mirror.ratoon(&["triage", "p.toml", "--json"]).expect(0).stdout;
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let row = &said["rows"][0];
    assert_eq!((&row["url"], &row["links_in"]), (&"http://site.test/sub/".into(), &1.into()), "{said}");
    // Where captures state their URLs they are what they say.
    other.snapshot("2024-01-01", &[("", home), ("sub/", sub), ("sub/index.html", sub)]);
    other.run();
    assert_eq!(other.rows::<Page>("2024-01-01").len(), 3);
    assert_eq!(links(&other)[1], "/sub/index.html local");
    let names = ["index.html", "new/index.html?x=1", "sub/index.html"].map(|name| format!("http://site.test/{name}"));
    assert_eq!(due(&other), names);
}

#[test]
fn a_bad_line_is_rejected_and_the_rest_is_read() {
    let w = Workspace::new("max_reject_share = 1.0");
    let dir = w.snapshot_dir("2024-01-01");
    fs::write(dir.join("x"), "<p>x").unwrap();
    let lines = "{\"url\":\"http://site.test/a\",\"file\":\"x\"}\nrubbish\n{\"url\":\"ftp://b/\",\"file\":\"x\"}\n";
    fs::write(dir.join("manifest.jsonl"), lines).unwrap();
    w.run();
    assert_eq!(w.rows::<Page>("2024-01-01").len(), 1);
    let rejects = w.rows::<RejectRow>("2024-01-01");
    assert_eq!(
        rejects.iter().map(|r| (&*r.source_file, r.source_offset)).collect::<Vec<_>>(),
        [("manifest.jsonl", Some(2)), ("manifest.jsonl", Some(3))]
    );
    assert_eq!(rejects[1].url.as_deref(), Some("ftp://b/"));
}

#[test]
fn a_base_comes_when_slim_snapshots_touched_as_much_as_it_holds() {
    let w = Workspace::new("coverage = 'partial'");
    let pages: Vec<(String, String)> =
        (0..10).map(|i| (format!("p{i}"), html("T", &format!("same {i}"), "b"))).collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot("2024-01-01", &pages);
    for i in 0..12 {
        w.snapshot(&format!("2024-01-02T00-{i:02}"), &pages[i % 10..i % 10 + 1]);
    }
    w.run();
    let rows = |i: usize| w.rows::<Page>(&format!("2024-01-02T00-{i:02}"));
    let whole: Vec<usize> = (0..12).filter(|i| rows(*i).iter().all(|page| page.whole)).collect();
    assert_eq!(whole, [10], "the eleventh, after ten that had one row each");
    assert!(rows(10).len() == 10 && rows(10).iter().all(|page| page.text.is_some()));
    let last = &rows(11)[0];
    assert_eq!((last.text_snapshot.as_str(), last.content_snapshot.as_str()), ("2024-01-02T00-10", "2024-01-02T00-10"));
    assert_eq!((last.change.as_str(), rows(11).len()), ("unchanged", 1));
}

#[test]
fn a_capture_without_text_says_why() {
    let w = Workspace::new("");
    let dir = w.snapshot_dir("2024-01-01");
    fs::write(dir.join("page.html"), "<p>text").unwrap();
    fs::write(dir.join("picture.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    let lines = [
        r#"{"url": "http://site.test/page", "file": "page.html", "status": 200, "content_type": "text/html"}"#,
        r#"{"url": "http://site.test/picture", "file": "picture.png", "status": 200, "content_type": "image/png"}"#,
        r#"{"url": "http://site.test/gone", "status": 404}"#,
        r#"{"url": "http://site.test/error", "file": "page.html", "status": 500, "content_type": "text/html"}"#,
        r#"{"url": "http://site.test/as-before", "status": 304}"#,
    ];
    fs::write(dir.join("manifest.jsonl"), lines.join("\n") + "\n").unwrap();
    w.ratoon(&["run", "p.toml"]).expect(3).says("as before");
    let reason = |path: &str| {
        let rows = w.rows::<Capture>("2024-01-01");
        let row = rows.into_iter().find(|row| row.url == format!("http://site.test/{path}")).unwrap();
        assert_eq!(row.reason.is_none(), row.text_digest.is_some(), "{path}");
        row.reason
    };
    assert_eq!(reason("page"), None);
    assert_eq!(reason("picture"), Some(NoText::Binary));
    assert_eq!(reason("gone"), Some(NoText::Status));
    assert_eq!(reason("error"), Some(NoText::Status));
    assert_eq!(reason("as-before"), Some(NoText::Unresolved));
}

/// A page whose bytes an earlier version took for windows-1252 is read again; nothing else is.
#[test]
fn a_broken_byte_leaves_a_page_what_it_is() {
    let w = Workspace::new("");
    let dir = w.snapshot_dir("2024-01-01");
    fs::write(dir.join("page.html"), ["<p>Größe, Öl, Füße, ärgerlich ".as_bytes(), b"\xE9 und so weiter"].concat())
        .unwrap();
    let line = r#"{"url": "http://site.test/a", "file": "page.html", "status": 200, "content_type": "text/html"}"#;
    fs::write(dir.join("manifest.jsonl"), format!("{line}\n")).unwrap();
    w.run();
    let page = page(&w, "2024-01-01", "a");
    assert_eq!(page.charset.as_deref(), Some("UTF-8"));
    assert_eq!(page.text.as_deref(), Some("Größe, Öl, Füße, ärgerlich \u{FFFD} und so weiter"));
}
