//! `ratoon inspect`: says beforehand what `ratoon ingest` then does, and writes nothing.

use std::fs;
use std::path::Path;

use ratoon::inside::tables::ingest::{Capture, Page, RejectRow};
use serde_json::Value;

use crate::workspace::{Ended, Workspace, html, project};

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

fn sample(name: &str) -> String {
    project().join("sample_data").join(name).display().to_string()
}

/// Every file below a folder with its size, to see that nothing was touched.
fn listing(dir: &Path) -> Vec<(String, u64)> {
    let mut files: Vec<_> = walkdir::WalkDir::new(dir)
        .into_iter()
        .map(Result::unwrap)
        .map(|entry| (entry.path().display().to_string(), entry.metadata().unwrap().len()))
        .collect();
    files.sort();
    files
}

#[test]
fn it_says_of_the_samples_what_ingest_then_does() {
    for name in ["campus", "entertainment", "drugs"] {
        let w = Workspace::new("");
        let before = listing(&w.path(""));
        let looked = json(&w.ratoon(&["inspect", &sample(name), "--json"]).expect(0));
        assert_eq!(listing(&w.path("")), before, "nothing is written");
        assert_eq!(looked["what"], "snapshots");
        fs::remove_dir(w.path("snapshots")).unwrap();
        std::os::unix::fs::symlink(sample(name), w.path("snapshots")).unwrap();
        w.ratoon(&["ingest", "p.toml"]).expect(0);
        let snapshots = looked["snapshots"].as_array().unwrap();
        assert!(snapshots.len() >= 2, "{name}");
        let mut total = [0; 2];
        for (i, snapshot) in snapshots.iter().enumerate() {
            let id = snapshot["id"].as_str().unwrap();
            let found = &snapshot["found"];
            let captures = w.rows::<Capture>(id);
            assert_eq!(found["captures"], captures.len(), "{name} {id}");
            let first = captures.iter().filter_map(|c| c.fetched_at).min().unwrap().to_string();
            let last = captures.iter().filter_map(|c| c.fetched_at).max().unwrap().to_string();
            assert_eq!(found["fetched"], serde_json::json!([first, last]), "{name} {id}");
            for (source, count) in found["fetched_at_source"].as_object().unwrap() {
                let rows = captures
                    .iter()
                    .filter(|c| c.fetched_at_source.is_some_and(|known| known.as_str() == source))
                    .count();
                assert_eq!(*count, rows, "{name} {id} {source}");
            }
            for (status, count) in found["statuses"].as_object().unwrap() {
                let of = |c: &&Capture| c.status.map_or("unknown".to_owned(), |s| s.to_string()) == *status;
                assert_eq!(*count, captures.iter().filter(of).count(), "{name} {id} {status}");
            }
            let (pages, repeats) =
                (found["pages"]["count"].as_u64().unwrap(), found["pages_by_repeat"].as_u64().unwrap());
            // What a server refused that night is carried from the night before.
            let came = |page: &&Page| page.change.as_str() != "carried";
            let really = w.rows::<Page>(id).iter().filter(came).count() as u64;
            assert!(pages <= really && really <= pages + repeats, "{name} {id}: {pages}+{repeats}, really {really}");
            if i == 0 || repeats == 0 {
                assert_eq!(pages, really, "{name} {id}");
            }
            assert_eq!(found["rejects"]["count"], w.rows::<RejectRow>(id).len(), "{name} {id}");
            assert_eq!(snapshot["time_source"], "name");
            total[0] += captures.len() as u64;
            total[1] += pages;
        }
        assert_eq!([&looked["total"]["captures"], &looked["total"]["pages"]], [total[0], total[1]], "{name}");
    }
}

#[test]
fn people_read_layout_reason_and_counts() {
    let w = Workspace::new("");
    let text = w.ratoon(&["inspect", &sample("campus/2024-03-01")]).expect(0).stdout;
    for words in [
        "warc (crawl-00000.warc.gz starts with a WARC record)",
        "2024-03-01, time 2024-03-01T00:00:00Z by its name",
        "text/html × ",
        "200 × ",
        "by header × ",
        "rejects   0\n",
    ] {
        assert!(text.contains(words), "'{words}' is not in {text}");
    }
    let text = w.ratoon(&["inspect", &sample("drugs/2001-01-15")]).expect(0).stdout;
    assert!(text.contains("mirror (its files lie in folders named like hosts: www.panacea.gov/)"), "{text}");
    assert!(text.contains("by snapshot × ") && text.contains("unknown × "), "{text}");
    let text = w.ratoon(&["inspect", &sample("drugs")]).expect(0).stdout;
    assert!(text.contains("a folder of 2 snapshots") && text.contains("\ntotal "), "{text}");
    let quiet = w.ratoon(&["inspect", &sample("drugs"), "--as", "snapshot"]).expect(1);
    quiet.says("no capture in ");
}

#[test]
fn one_file_is_looked_at_alone() {
    let w = Workspace::new("");
    let file = sample("campus/2024-03-01/crawl-00000.warc.gz");
    let alone = json(&w.ratoon(&["inspect", &file, "--json"]).expect(0));
    let folder = json(&w.ratoon(&["inspect", &sample("campus/2024-03-01"), "--json"]).expect(0));
    assert_eq!(alone["what"], "file");
    assert_eq!(alone["snapshots"][0]["found"], folder["snapshots"][0]["found"]);
    assert_eq!(alone["snapshots"][0]["time_source"], "newest capture");
}

#[test]
fn rubbish_empty_and_missing() {
    let w = Workspace::new("");
    fs::write(w.path("rubbish.warc.gz"), b"\x1f\x8bnot gzip at all").unwrap();
    fs::write(w.path("notes.txt"), "hello").unwrap();
    w.ratoon(&["inspect", "rubbish.warc.gz"]).expect(1).says("no capture in rubbish.warc.gz");
    w.ratoon(&["inspect", "notes.txt"]).expect(1).says("notes.txt");
    w.ratoon(&["inspect", "missing"]).expect(1).says("missing");
    let empty = w.snapshot_dir("2024-01-01");
    w.ratoon(&["inspect", empty.to_str().unwrap()]).expect(1).says("expected WARC");
    w.ratoon(&["inspect", "snapshots"]).expect(1).says("2024-01-01").says("would stop");
    w.ratoon(&["inspect", "snapshots", "--time-zone", "Mars"]).expect(2).says("Mars");
    w.ratoon(&["inspect", "snapshots", "--layout", "zip"]).expect(2).says("zip");
    w.ratoon(&["inspect"]).expect(2);
}

#[test]
fn a_cut_archive_names_the_place() {
    let w = Workspace::new("");
    let bytes = fs::read(sample("campus/2024-03-01/crawl-00000.warc.gz")).unwrap();
    let dir = w.snapshot_dir("2024-03-01");
    fs::write(dir.join("crawl.warc.gz"), &bytes[..bytes.len() * 2 / 3]).unwrap();
    let looked = json(&w.ratoon(&["inspect", dir.to_str().unwrap(), "--json", "-v"]).expect(3));
    let found = &looked["snapshots"][0]["found"];
    assert_eq!(found["rejects"]["count"], 1);
    assert_eq!(found["all_rejects"].as_array().unwrap().len(), 1);
    let first = &found["reject_reasons"][0]["first"];
    assert_eq!(first["source_file"], "crawl.warc.gz");
    assert!(first["source_offset"].as_u64().unwrap() > 0);
    w.ratoon(&["inspect", dir.to_str().unwrap(), "--strict"]).expect(1).says("--strict");
    w.ratoon(&["ingest", "p.toml"]).expect(3);
    let rejects = w.rows::<RejectRow>("2024-03-01");
    assert_eq!(rejects.len(), 1);
    assert_eq!(first["reason"], rejects[0].reason);
}

#[test]
fn many_rejects_are_grouped_and_have_their_exit_code() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", &html("A", "a", "b"))]);
    let manifest = w.snapshot_dir("2024-01-01").join("manifest.jsonl");
    let mut lines = fs::read_to_string(&manifest).unwrap();
    for i in 0..3 {
        lines += &format!("{{\"url\":\"http://site.test/{i}\",\"file\":\"../../{i}\"}}\n");
    }
    lines += "rubbish\n";
    fs::write(&manifest, lines).unwrap();
    let text = w.ratoon(&["inspect", "snapshots/2024-01-01"]).expect(3).says("would be rejected").stdout;
    assert!(text.contains("manifest (it has a manifest.jsonl)"), "{text}");
    assert!(
        text.contains("3 × file '…' leaves the snapshot; the first: manifest.jsonl at 2: file '../../0' leaves"),
        "{text}"
    );
    assert!(text.contains("    manifest.jsonl at 5: "), "{text}");
    let text = w.ratoon(&["inspect", "snapshots/2024-01-01", "-v"]).expect(3).stdout;
    let listed = "rejected manifest.jsonl at 4: file '../../2' leaves the snapshot (http://site.test/2)";
    assert!(text.contains(listed), "{text}");
    let text = w.ratoon(&["inspect", "snapshots", "-v"]).expect(3).stdout;
    assert!(text.contains("rejected 2024-01-01/manifest.jsonl at 4: "), "{text}");
}

/// Two layouts below one root, one of them without a time in its name: times and order as `ingest` has them.
#[test]
fn two_layouts_side_by_side() {
    let w = Workspace::new("");
    let mirror = w.snapshot_dir("2024-01-02").join("site.test");
    fs::create_dir(&mirror).unwrap();
    fs::write(mirror.join("index.html"), "<p>a").unwrap();
    let dir = w.snapshot_dir("alpha");
    fs::write(dir.join("x"), "<p>x").unwrap();
    let line =
        "{\"url\":\"http://site.test/\",\"file\":\"x\",\"fetched_at\":\"2024-01-01T10:00:00Z\",\"status\":200}\n";
    fs::write(dir.join("manifest.jsonl"), line).unwrap();
    let looked = json(&w.ratoon(&["inspect", "snapshots", "--json"]).expect(0));
    let told: Vec<_> = looked["snapshots"].as_array().unwrap().iter().map(|s| (&s["id"], &s["layout"])).collect();
    assert_eq!(
        told,
        [(&"alpha".into(), &"manifest".into()), (&"2024-01-02".into(), &"mirror".into())] as [(&Value, &Value); 2]
    );
    assert_eq!(looked["snapshots"][0]["time"], "2024-01-01T10:00:00Z");
    assert_eq!(looked["snapshots"][0]["time_source"], "newest capture");
    assert_eq!(looked["total"]["urls"], 1);
    // One folder without a name that is a time, and folders in it: only a look tells.
    let looked = json(&w.ratoon(&["inspect", "snapshots/alpha", "--json"]).expect(0));
    assert_eq!(looked["what"], "snapshot");
    fs::remove_dir_all(w.path("snapshots/2024-01-02")).unwrap();
    let looked = json(&w.ratoon(&["inspect", "snapshots", "--json"]).expect(0));
    assert_eq!(looked["what"], "snapshots");
}

#[test]
fn two_layouts_in_one_folder() {
    let w = Workspace::new("");
    w.snapshot("2024-03-01", &[("a", "<p>a")]);
    let dir = w.snapshot_dir("2024-03-01");
    fs::copy(sample("campus/2024-03-01/crawl-00000.warc.gz"), dir.join("crawl.warc.gz")).unwrap();
    let looked = json(&w.ratoon(&["inspect", "snapshots/2024-03-01", "--json"]).expect(0));
    let snapshot = &looked["snapshots"][0];
    assert_eq!(snapshot["layout"], "manifest+warc");
    assert_eq!(snapshot["why"], "it has a manifest.jsonl; crawl.warc.gz starts with a WARC record");
    w.ratoon(&["ingest", "p.toml"]).expect(0);
    assert_eq!(snapshot["found"]["captures"], w.rows::<Capture>("2024-03-01").len());
    assert_eq!(snapshot["found"]["hosts"]["most"].as_array().unwrap().last().unwrap()["value"], "site.test");
}

/// What `wget -m --warc-file` leaves: the mirror holds the same pages again.
#[test]
fn what_is_read_from_elsewhere_is_said() {
    let w = Workspace::new("");
    let dir = w.snapshot_dir("2024-03-01");
    fs::create_dir(dir.join("www.fernhill.example")).unwrap();
    fs::write(dir.join("www.fernhill.example/index.html"), "<p>again").unwrap();
    fs::copy(sample("campus/2024-03-01/crawl-00000.warc.gz"), dir.join("crawl.warc.gz")).unwrap();
    let text = w.ratoon(&["inspect", "snapshots/2024-03-01"]).expect(0).stdout;
    assert!(text.contains("  left out  ") && text.contains("layout    warc ("), "{text}");
    let text = w.ratoon(&["inspect", "snapshots"]).expect(0).stdout;
    assert!(text.contains("  remark    2024-03-01: "), "{text}");
}

#[test]
fn credentials_are_not_shown() {
    let w = Workspace::new("");
    let dir = w.snapshot_dir("2024-01-01");
    fs::write(dir.join("x"), "<p>x").unwrap();
    let lines = "{\"url\":\"http://me:secret@site.test/\",\"file\":\"x\"}\n{\"url\":\"http://me:secret@site.test/y\",\"file\":\"y\"}\n";
    fs::write(dir.join("manifest.jsonl"), lines).unwrap();
    let ended = w.ratoon(&["inspect", "snapshots", "-v"]).expect(3);
    assert!(ended.stdout.contains("(http://site.test/y)"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("secret") && !ended.stderr.contains("secret"), "{}", ended.stdout);
}

#[test]
fn the_same_on_any_number_of_threads() {
    let w = Workspace::new("");
    let one = w.ratoon(&["inspect", &sample("campus"), "--json", "--threads", "1"]).expect(0).stdout;
    let many = w.ratoon(&["inspect", &sample("campus"), "--json", "--threads", "7"]).expect(0).stdout;
    assert_eq!(one, many);
}
