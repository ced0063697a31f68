//! `every`: folders cut into snapshots by when their captures were fetched.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use ratoon::inside::lab::archives::samples::{Packed, arc_start, cached, gzip, http, record, zip};
use ratoon::inside::tables::ingest::{Capture, Page};
use ratoon::inside::tables::stats::UpdateRow;

use crate::workspace::Workspace;

const HOURLY: &str = "every = '1h'\n[plan]\nchoose = 'diff'";

/// Appends captures to a folder in manifest layout: path, time of 2024-03-01 (or none), text (none: a 404).
fn add(w: &Workspace, folder: &str, captures: &[(&str, Option<&str>, Option<&str>)]) {
    let dir = w.snapshot_dir(folder);
    let manifest = dir.join("manifest.jsonl");
    let mut lines = fs::read_to_string(&manifest).unwrap_or_default();
    for (path, time, text) in captures {
        let mut line = serde_json::json!({ "url": format!("http://site.test/{path}"), "status": 404 });
        if let Some(time) = time {
            line["fetched_at"] = format!("2024-03-01T{time}:00Z").into();
        }
        if let Some(text) = text {
            let file = format!("{}.html", lines.len());
            fs::write(dir.join(&file), format!("<p>{text}</p>")).unwrap();
            line["status"] = 200.into();
            line["file"] = file.into();
        }
        writeln!(lines, "{line}").unwrap();
    }
    fs::write(manifest, lines).unwrap();
}

fn complete(w: &Workspace, folder: &str) {
    fs::write(w.snapshot_dir(folder).join("_complete"), "").unwrap();
}

/// The snapshots in the store, oldest first.
fn snapshots(w: &Workspace) -> Vec<String> {
    let status: serde_json::Value =
        serde_json::from_str(&w.ratoon(&["status", "p.toml", "--json"]).expect(0).stdout).unwrap();
    status["snapshots"].as_array().unwrap().iter().map(|row| row["snapshot"].as_str().unwrap().to_owned()).collect()
}

/// The texts of a whole state, by path.
fn texts(w: &Workspace, snapshot: &str) -> BTreeMap<String, String> {
    let dir = w.path(&format!("export-{snapshot}"));
    w.ratoon(&["export", "p.toml", "--snapshot", snapshot, dir.to_str().unwrap(), "--force"]).expect(0);
    let manifest = fs::read_to_string(dir.join("manifest.jsonl")).unwrap();
    let line = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = fs::read_to_string(dir.join(line["file"].as_str().unwrap())).unwrap();
        (line["url"].as_str().unwrap().replace("http://site.test/", ""), text)
    };
    manifest.lines().map(line).collect()
}

#[track_caller]
fn assert_same_tables(a: &Workspace, b: &Workspace) {
    let (a, b) = (a.table_bytes(), b.table_bytes());
    let only = |a: &[(PathBuf, Vec<u8>)], b: &[(PathBuf, Vec<u8>)]| -> Vec<PathBuf> {
        a.iter().filter(|file| !b.contains(file)).map(|(name, _)| name.clone()).collect()
    };
    assert_eq!((only(&a, &b), only(&b, &a)), (Vec::new(), Vec::new()));
}

#[test]
fn every_version_is_kept() {
    let w = Workspace::new("");
    let times: Vec<String> = (0..8).map(|i| format!("{:02}:{:02}", 2 + i, 10 + i)).collect();
    let versions: Vec<String> = (0..8).map(|i| format!("version {i}")).collect();
    for (time, text) in times.iter().zip(&versions) {
        add(&w, "2024-03-01", &[("a", Some(time), Some(text)), ("b", Some(time), Some("as ever"))]);
    }
    // By default a folder is one snapshot, and what that passes over is told.
    w.run().says("7 distinct versions of pages are passed over").says("every");
    assert_eq!(snapshots(&w), ["2024-03-01"]);
    fs::remove_dir_all(w.path("store")).unwrap();
    w.pipeline(HOURLY);
    complete(&w, "2024-03-01");
    let ended = w.run();
    assert!(!ended.stderr.contains("passed over"), "{}", ended.stderr);
    let ids = snapshots(&w);
    assert_eq!(ids.len(), 8);
    assert_eq!((&*ids[0], &*ids[7]), ("2024-03-01.20240301T030000Z", "2024-03-01.20240301T100000Z"));
    for (id, version) in ids.iter().zip(&versions) {
        assert_eq!(texts(&w, id)["a"].trim(), version);
        assert_eq!(w.rows::<Capture>(id).len(), 2);
    }
    let updates: usize = ids.iter().map(|id| w.rows::<UpdateRow>(id).len()).sum();
    assert_eq!(updates, 7);
    w.run();
    assert_eq!(snapshots(&w).len(), 8, "nothing is done twice");
}

#[test]
fn a_folder_that_grows_gives_what_a_complete_one_does() {
    type Capture = (&'static str, Option<&'static str>, Option<&'static str>);
    let steps: [&[Capture]; 4] = [
        &[("a", Some("10:05"), Some("one")), ("b", Some("10:06"), Some("b")), ("c", None, Some("undated"))],
        &[("a", Some("11:05"), Some("two")), ("d", Some("11:07"), Some("d"))],
        &[("b", Some("13:00"), None), ("a", Some("13:00"), Some("two"))],
        &[("a", Some("14:30"), Some("three"))],
    ];
    for coverage in ["full", "partial"] {
        let lines = format!("coverage = '{coverage}'\n{HOURLY}");
        let (nightly, at_once) = (Workspace::new(&lines), Workspace::new(&lines));
        for (done, step) in steps.into_iter().enumerate() {
            add(&nightly, "2024-03-01", step);
            add(&at_once, "2024-03-01", step);
            let ended = nightly.run();
            assert!(ended.stdout.contains("is still open"), "{}", ended.stdout);
            if done > 0 {
                assert_eq!(snapshots(&nightly).len(), done, "the newest window waits");
            }
        }
        for w in [&nightly, &at_once] {
            complete(w, "2024-03-01");
            let ended = w.run();
            assert!(!ended.stdout.contains("is still open"), "{}", ended.stdout);
        }
        assert_eq!(snapshots(&nightly).len(), 4);
        assert_same_tables(&nightly, &at_once);
        let last = "2024-03-01.20240301T150000Z";
        let left: Vec<String> = texts(&nightly, last).into_keys().collect();
        assert_eq!(left, ["a", "c", "d"], "{coverage}: only what no capture of the folder shows is absent");
    }
}

#[test]
fn a_later_folder_closes_the_one_before() {
    let w = Workspace::new(HOURLY);
    add(&w, "2024-03-01", &[("a", Some("10:05"), Some("a")), ("gone", Some("10:05"), Some("old"))]);
    w.run();
    assert!(snapshots(&w).is_empty());
    add(&w, "2024-03-02", &[("a", Some("20:05"), Some("a")), ("b", Some("21:05"), Some("b"))]);
    w.run();
    let ids = ["2024-03-01.20240301T110000Z", "2024-03-02.20240301T210000Z"];
    assert_eq!(snapshots(&w), ids);
    assert!(texts(&w, ids[1]).contains_key("gone"), "absence counts only in the last window of a folder");
    complete(&w, "2024-03-02");
    w.run();
    let last = "2024-03-02.20240301T220000Z";
    assert_eq!(snapshots(&w)[2], last);
    assert_eq!(texts(&w, last).into_keys().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn what_comes_late_is_told_and_taken_in_when_forced() {
    let w = Workspace::new(HOURLY);
    add(&w, "2024-03-01", &[("a", Some("10:05"), Some("one")), ("a", Some("12:05"), Some("three"))]);
    w.run();
    complete(&w, "2024-03-01");
    w.run();
    let before = w.table_bytes();
    // For a window that is done, and for one that had none.
    add(&w, "2024-03-01", &[("late", Some("10:30"), Some("late")), ("a", Some("11:30"), Some("two"))]);
    let ended = w.run();
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("--force")).collect();
    assert_eq!(lines.len(), 2, "{}", ended.stderr);
    let quiet = w.ratoon(&["run", "p.toml", "-q"]).expect(0);
    assert_eq!(
        quiet.stderr.lines().filter(|line| line.contains("--force")).count(),
        2,
        "told also with -q, and no problem"
    );
    assert!(lines[0].contains("1 more captures came for window 2024-03-01.20240301T110000Z"), "{lines:?}");
    assert!(lines[1].contains("window 2024-03-01.20240301T120000Z"), "{lines:?}");
    assert!(w.table_bytes() == before, "nothing else happens");
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", "2024-03-01.20240301T110000Z"]).expect(0);
    let fresh = Workspace::new(HOURLY);
    for (path, time, text) in
        [("a", "10:05", "one"), ("a", "12:05", "three"), ("late", "10:30", "late"), ("a", "11:30", "two")]
    {
        add(&fresh, "2024-03-01", &[(path, Some(time), Some(text))]);
    }
    complete(&fresh, "2024-03-01");
    fresh.run();
    assert_eq!(snapshots(&w).len(), 3);
    assert_same_tables(&w, &fresh);
    let ended = w.run();
    assert!(!ended.stderr.contains("--force"), "{}", ended.stderr);
}

#[test]
fn edits_of_every_leave_begun_folders_alone() {
    let w = Workspace::new(HOURLY);
    add(&w, "2024-03-01", &[("a", Some("10:05"), Some("one")), ("a", Some("11:05"), Some("two"))]);
    w.run();
    w.pipeline("[plan]\nchoose = 'diff'");
    add(&w, "2024-03-01", &[("a", Some("12:05"), Some("three"))]);
    add(&w, "2024-03-02", &[("a", Some("20:05"), Some("four")), ("a", Some("21:05"), Some("five"))]);
    w.run();
    let windows = ["110000", "120000", "130000"].map(|end| format!("2024-03-01.20240301T{end}Z"));
    assert_eq!(snapshots(&w)[..3], windows);
    assert_eq!(snapshots(&w)[3..], ["2024-03-02"]);
    w.pipeline(HOURLY);
    w.run();
    assert_eq!(snapshots(&w).len(), 4, "a folder that was taken in whole is not cut afterwards");
}

#[test]
fn archives_and_trees_are_cut_too() {
    let w = Workspace::new(HOURLY);
    let dir = w.snapshot_dir("2024-03-01");
    let response = |minute: &str, text: &str| {
        let body = http("200 OK", &[("Content-Type", "text/html")], format!("<p>{text}</p>").as_bytes());
        let date = format!("2024-03-01T{minute}:00Z");
        let fields = [("WARC-Target-URI", "http://site.test/a"), ("WARC-Date", date.as_str())];
        gzip(&record(
            "response",
            &[&fields[..], &[("Content-Type", "application/http; msgtype=response")]].concat(),
            &body,
        ))
    };
    let one = [response("02:10", "one"), response("03:10", "two")].concat();
    fs::write(dir.join("0.warc.gz"), one).unwrap();
    fs::write(dir.join("1.warc.gz"), response("04:10", "three")).unwrap();
    // A tree knows no times but that of its folder.
    let tree = w.snapshot_dir("2024-03-02").join("site.test");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("a"), "<html><p>four</p></html>").unwrap();
    complete(&w, "2024-03-02");
    w.run();
    let ids = snapshots(&w);
    let ends = ["01.20240301T030000Z", "01.20240301T040000Z", "01.20240301T050000Z", "02.20240302T000000Z"];
    assert_eq!(ids, ends.map(|end| format!("2024-03-{end}")));
    for (id, text) in ids.iter().zip(["one", "two", "three", "four"]) {
        assert_eq!(texts(&w, id)["a"].trim(), text);
    }
    let pages = w.rows::<Page>(&ids[3]);
    assert_eq!(pages[0].fetched_at.unwrap().to_string(), "2024-03-02T00:00:00Z");
}

/// Every layout that states when a capture was fetched is cut by it; HTTrack's cache, which does not, is one window.
#[test]
fn arc_wet_wacz_and_httrack_are_cut_too() {
    const TEXTS: [&str; 3] = ["the first text", "the second text", "the third text"];
    const HOURS: [&str; 3] = ["02", "03", "04"];
    let url = "http://site.test/a";
    let page = |text: &str| format!("<p>{text}</p>").into_bytes();
    let body = |text: &str| http("200 OK", &[("Content-Type", "text/html")], &page(text));
    let versions = || TEXTS.into_iter().zip(HOURS);
    let arc = versions().map(|(text, hour)| {
        let block = body(text);
        let line = format!("{url} 1.2.3.4 20240301{hour}1000 text/html {}\n", block.len());
        [line.as_bytes(), &block, b"\n"].concat()
    });
    let arc = [vec![arc_start()], arc.collect()].concat();
    let dated = |kind: &str, media: &str, hour: &str, block: &[u8]| {
        let date = format!("2024-03-01T{hour}:10:00Z");
        record(kind, &[("WARC-Target-URI", url), ("WARC-Date", &date), ("Content-Type", media)], block)
    };
    let wet: Vec<Vec<u8>> =
        versions().map(|(text, hour)| dated("conversion", "text/plain", hour, text.as_bytes())).collect();
    let warc: Vec<Vec<u8>> = versions()
        .map(|(text, hour)| gzip(&dated("response", "application/http; msgtype=response", hour, &body(text))))
        .collect();
    let packed = Packed { name: "archive/x.warc.gz".into(), body: warc.concat(), ..Packed::default() };
    let cache = cached(url, "200 OK", "text/html", "site.test/a.html", Some(&page(TEXTS[2])));
    let by_hour = ["030000", "040000", "050000"].map(|end| format!("2024-03-01.20240301T{end}Z")).to_vec();
    let cases = [
        ("x.arc", arc.concat(), by_hour.clone()),
        ("x.arc.gz", arc.iter().flat_map(|record| gzip(record)).collect(), by_hour.clone()),
        ("x.warc.wet.gz", wet.iter().flat_map(|record| gzip(record)).collect(), by_hour.clone()),
        ("x.wacz", zip(&[packed]), by_hour),
        ("hts-cache/new.zip", zip(&[cache]), vec!["2024-03-01.20240301T000000Z".to_owned()]),
    ];
    for (name, bytes, windows) in cases {
        let w = Workspace::new(HOURLY);
        let file = w.snapshot_dir("2024-03-01").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, bytes).unwrap();
        complete(&w, "2024-03-01");
        w.run();
        assert_eq!(snapshots(&w), windows, "{name}");
        for (id, text) in windows.iter().rev().zip(TEXTS.iter().rev()) {
            assert_eq!(texts(&w, id)["a"].trim(), *text, "{name} {id}");
            assert_eq!(w.rows::<Capture>(id).len(), 1, "{name} {id}");
        }
    }
}

#[test]
fn a_bad_length_is_told() {
    for every in ["1", "0s", "soon", "500ms"] {
        let w = Workspace::new(&format!("every = '{every}'"));
        w.ratoon(&["run", "p.toml"]).expect(2).says("`every`").says("1h");
    }
}
