//! A new user's bad nights, one after the other, run by cron with `-q`: each is told, none loses anything, and all repair
//! themselves. At the end the store holds what it would hold had the bad nights not been.

use std::fmt::Write as _;
use std::fs;

use ratoon::inside::tables::delta::{Alert, PageDelta};
use ratoon::inside::tables::extract::MentionDelta;
use ratoon::inside::tables::ingest::Page;
use serde_json::{Value, json};

use crate::word_worker::{self, PIPELINE, down, up};
use crate::workspace::{Ended, Workspace};

const PAGES: usize = 52;

const NOTIFY: &str = "[notify]\ncommand = ['sh', '-c', 'cat >> events']\n";

/// The page `i` as it is since the night `since`.
fn page(i: usize, since: usize) -> String {
    let words = ["amber", "birch", "cedar", "dune", "elm", "fern", "grove", "heath"];
    let body = (0..12).fold(String::new(), |mut body, k| {
        let _ = write!(
            body,
            "<p>Line {k} of page {i} tells of the {} and of the {}.</p>",
            words[(i + k) % 8],
            words[(i * k) % 8]
        );
        body
    });
    format!("<html><head><title>Page {i}</title></head><body><p>Word{i}x{since} is here.</p>{body}</body></html>")
}

/// The site on a night: page 7 changes on the second and the last, page 9 on the fifth.
fn site(night: usize) -> Vec<(String, String)> {
    let since = |i: usize| match i {
        7 if night >= 9 => 9,
        7 if night >= 2 => 2,
        9 if night >= 5 => 5,
        _ => 1,
    };
    (0..PAGES).map(|i| (format!("p{i}"), page(i, since(i)))).collect()
}

fn day(night: usize) -> String {
    format!("2024-03-{night:02}")
}

fn write(w: &Workspace, night: usize, pages: &[(String, String)]) {
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot(&day(night), &pages);
}

/// A WARC file of the site.
fn warc(pages: &[(String, String)]) -> Vec<u8> {
    let mut file = Vec::new();
    for (path, html) in pages {
        let http = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n{html}",
            html.len()
        );
        let record = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://site.test/{path}\r\nWARC-Date: 2024-03-03T01:00:00Z\r\nWARC-Record-ID: <urn:uuid:{path}>\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
            http.len()
        );
        file.extend_from_slice(record.as_bytes());
    }
    file
}

fn lines(w: &Workspace, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(w.path(file)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What the store holds of all pages at the end, and all that was told on the way.
fn harvest(w: &Workspace, last: usize) -> (Vec<(String, String)>, Vec<String>, Vec<String>) {
    let nights = || {
        fs::read_dir(w.path("store/pages"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap().trim_start_matches("snapshot=").to_owned())
    };
    let pages = w.rows::<Page>(&day(last)).into_iter().map(|page| (page.url, page.text_digest.to_string())).collect();
    let mut changes: Vec<String> = Vec::new();
    for night in nights() {
        let rows = w.rows::<PageDelta>(&night).into_iter().filter(|row| row.change.change().is_some());
        changes.extend(rows.map(|row| format!("{} {}", row.change, row.url)));
        changes.extend(
            w.rows::<MentionDelta>(&night).into_iter().map(|row| format!("{} {} {}", row.change, row.url, row.text)),
        );
        changes.extend(w.rows::<Alert>(&night).into_iter().map(|row| format!("alert {:?} {:?}", row.url, row.text)));
    }
    changes.sort();
    let mut told: Vec<String> =
        lines(w, "told").iter().map(|alert| format!("{} {}", alert["kind"], alert["text"])).collect();
    told.sort();
    (pages, changes, told)
}

#[test]
fn bad_nights_are_told_lose_nothing_and_repair_themselves() {
    let w = word_worker::workspace("", NOTIFY);
    let cron = || w.ratoon(&["run", "-q", "p.toml"]);
    let quiet = |ended: Ended, words: &[&str]| {
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
        assert_eq!(ended.stderr.lines().count(), words.len(), "{words:?}: {}", ended.stderr);
        words.iter().for_each(|words| assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr));
    };
    let event = || lines(&w, "events").pop().map(|event| event["event"].clone());

    for night in [1, 2] {
        write(&w, night, &site(night));
        quiet(cron().expect(0), &[]);
    }
    assert_eq!(event(), None);

    // A WARC file that was cut: what it does not have is not gone.
    let whole = warc(&site(3));
    fs::write(w.snapshot_dir(&day(3)).join("crawl.warc"), &whole[..whole.len() / 2]).unwrap();
    quiet(cron().expect(3), &["snapshot 2024-03-03: incomplete crawl"]);
    assert_eq!(event(), Some(json!("problem")));
    quiet(w.ratoon(&["status", "p.toml", "--check"]).expect(1), &["snapshot 2024-03-03: incomplete crawl"]);

    // A crawl that brought 3 pages of 52.
    write(&w, 4, &site(4)[..3]);
    quiet(cron().expect(3), &["snapshot 2024-03-04: incomplete crawl: 49 of 52 pages are missing"]);

    // A folder that is still being written is no snapshot; one that is empty is told.
    write(&w, 5, &site(5));
    fs::create_dir(w.path("snapshots/2024-03-06.tmp")).unwrap();
    fs::create_dir(w.path("snapshots/_wip")).unwrap();
    quiet(cron().expect(0), &[]);
    w.snapshot_dir(&day(6));
    quiet(cron().expect(3), &["snapshot 2024-03-06: nothing in its folder could be used"]);

    // The worker is away while a page is new to it; then every page answers 503.
    down(&w, "");
    let mut more = site(7);
    more[20].1 = page(20, 7);
    write(&w, 7, &more);
    quiet(
        cron().expect(3),
        &["snapshot 2024-03-07: extractor 'word' failed on 1 of 52 pages: worker reports an error: 429 rate limited"],
    );
    up(&w);
    write(&w, 8, &more);
    let manifest = w.snapshot_dir(&day(8)).join("manifest.jsonl");
    let lines_503 = fs::read_to_string(&manifest).unwrap().replace("\"status\":200", "\"status\":503");
    fs::write(&manifest, lines_503).unwrap();
    quiet(cron().expect(3), &["snapshot 2024-03-08: incomplete crawl: 52 of 52 pages are missing"]);

    // An edited pipeline file is said once, and a good night ends it all.
    w.pipeline(&format!("{PIPELINE}{NOTIFY}[schedule]\npolls = 5\n"));
    let mut last = site(9);
    last[20].1 = page(20, 7);
    write(&w, 9, &last);
    quiet(cron().expect(0), &["[schedule] was edited"]);
    quiet(cron().expect(0), &[]);
    quiet(w.ratoon(&["status", "p.toml", "--check"]).expect(0), &[]);
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
    w.ratoon(&["check", "p.toml"]).expect(0);

    // The same site without any bad night.
    let good = word_worker::workspace("", NOTIFY);
    for (night, pages) in [(1, site(1)), (2, site(2)), (5, site(5)), (7, more), (9, last)] {
        write(&good, night, &pages);
        good.run();
    }
    assert_eq!(harvest(&w, 9), harvest(&good, 9), "nothing was lost, and nothing told that is not so");
}
