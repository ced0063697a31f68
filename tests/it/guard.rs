//! Nights that went wrong: nothing is lost, what is wrong is told once, and the next good night mends it.

use std::fs;
use std::io::Write as _;

use ratoon::inside::model::Standing;
use ratoon::inside::tables::close::SnapshotRow;
use ratoon::inside::tables::delta::{PageDelta, TupleDelta};
use ratoon::inside::tables::extract::MentionDelta;
use ratoon::inside::tables::ingest::{Capture, Page, RejectRow};
use ratoon::inside::tables::stats::UpdateRow;

use crate::workspace::{Ended, Workspace};

const ROOMS: &str = "[[extractor]]\nname = 'room'\nkind = 'regex'\npattern = 'Room [0-9]+'";

/// A site of so many pages, each with a text of its own.
fn site(w: &Workspace, night: &str, pages: std::ops::Range<u32>) {
    let pages: Vec<(String, String)> = pages
        .map(|i| (format!("p{i}"), format!("<title>Page {i}</title><p>Room {i} is open from {i} o'clock.")))
        .collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot(night, &pages);
}

/// Adds lines to the manifest of a snapshot: path, status, body.
fn add(w: &Workspace, night: &str, lines: &[(&str, u16, &str)]) {
    let dir = w.snapshot_dir(night);
    let mut manifest = fs::OpenOptions::new().create(true).append(true).open(dir.join("manifest.jsonl")).unwrap();
    for (path, status, body) in lines {
        let file = format!("{path}-{status}.html");
        fs::write(dir.join(&file), body).unwrap();
        let line = serde_json::json!({
            "url": format!("http://site.test/{path}"), "file": file, "status": status, "content_type": "text/html",
        });
        writeln!(manifest, "{line}").unwrap();
    }
}

fn standings(w: &Workspace, night: &str) -> (usize, usize) {
    let pages = w.rows::<Page>(night);
    (pages.len(), pages.iter().filter(|page| page.change == Standing::Carried).count())
}

fn quiet(w: &Workspace) -> Ended {
    w.ratoon(&["run", "p.toml", "-q"])
}

/// It must be told in one line.
fn one_line(ended: &Ended, words: &str) {
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert!(lines.len() == 1 && lines[0].contains(words), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_half_crawl_deletes_nothing_until_it_is_accepted() {
    let w = Workspace::new(ROOMS);
    site(&w, "2024-01-01", 0..52);
    site(&w, "2024-01-02", 0..3);
    add(&w, "2024-01-02", &[("p50", 404, "no")]);
    let ended = quiet(&w).expect(3);
    one_line(&ended, "48 of 52 pages are missing");
    assert_eq!(standings(&w, "2024-01-02"), (51, 48), "404 still deletes");
    assert_eq!(w.rows::<PageDelta>("2024-01-02").len(), 1);
    assert_eq!(w.rows::<MentionDelta>("2024-01-02").len(), 1);
    assert!(w.rows::<SnapshotRow>("2024-01-02")[0].incomplete);
    one_line(&quiet(&w).expect(3), "48 of 52");
    // A good night ends it.
    site(&w, "2024-01-03", 0..52);
    let ended = quiet(&w).expect(0);
    assert_eq!(ended.stderr, "");
    assert_eq!(w.rows::<PageDelta>("2024-01-03").len(), 1, "only what the server said to be gone has returned");
    // The site really shrank: that night, and what follows, is another.
    for _ in 0..2 {
        let ended = w.ratoon(&["run", "p.toml", "-q", "--accept", "2024-01-02"]).expect(0);
        assert_eq!(ended.stderr, "");
        assert_eq!(standings(&w, "2024-01-02"), (3, 0));
        assert_eq!(w.rows::<PageDelta>("2024-01-02").len(), 49);
        assert_eq!(w.rows::<PageDelta>("2024-01-03").len(), 49);
        assert!(!w.rows::<SnapshotRow>("2024-01-02")[0].incomplete);
    }
    w.ratoon(&["run", "p.toml", "--accept", "2024-01-09"]).expect(2).says("no snapshot 2024-01-09");
}

#[test]
fn an_acceptance_is_taken_up_after_a_crash() {
    let w = Workspace::new("");
    site(&w, "2024-01-01", 0..40);
    site(&w, "2024-01-02", 0..10);
    quiet(&w).expect(3);
    // As if the run that was told had been killed right after it wrote it down.
    fs::write(w.path("store/_meta/accepted"), "[\"2024-01-02\"]\n").unwrap();
    assert_eq!(quiet(&w).expect(0).stderr, "");
    assert_eq!(standings(&w, "2024-01-02"), (10, 0));
}

#[test]
fn few_pages_and_small_shares_are_no_problem() {
    let w = Workspace::new("");
    site(&w, "2024-01-01", 0..19);
    site(&w, "2024-01-02", 0..2);
    assert_eq!(quiet(&w).expect(0).stderr, "");
    assert_eq!(standings(&w, "2024-01-02"), (2, 0));
    let w = Workspace::new("[guard]\nmax_deleted_share = 0.5");
    site(&w, "2024-01-01", 0..40);
    site(&w, "2024-01-02", 0..20);
    assert_eq!(quiet(&w).expect(0).stderr, "");
    assert_eq!(standings(&w, "2024-01-02"), (20, 0));
}

fn response(path: &str, body: &str) -> Vec<u8> {
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://site.test/{path}\r\n\
         WARC-Date: 2024-01-02T02:00:00Z\r\nContent-Length: {}\r\n\r\n",
        http.len()
    );
    format!("{head}{http}\r\n\r\n").into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_cut_archive_deletes_nothing_at_any_size() {
    let records: Vec<Vec<u8>> = (0..6).map(|i| response(&format!("p{i}"), &format!("<p>Room {i} is open."))).collect();
    let packed: Vec<Vec<u8>> = records.iter().map(|record| gzip(record)).collect();
    for (name, whole) in [("x.warc", records.concat()), ("x.warc.gz", packed.concat())] {
        for cut in [whole.len() / 3 + 7, whole.len() - 40, whole.len() - 5] {
            let w = Workspace::new("");
            fs::write(w.snapshot_dir("2024-01-01").join(name), &whole).unwrap();
            fs::write(w.snapshot_dir("2024-01-02").join(name), &whole[..cut]).unwrap();
            let ended = quiet(&w).expect(3);
            one_line(&ended, "is cut or cannot be read");
            assert_eq!(standings(&w, "2024-01-02").0, 6, "{name} cut at {cut}");
            assert!(w.rows::<PageDelta>("2024-01-02").is_empty(), "{name} cut at {cut}");
            fs::write(w.snapshot_dir("2024-01-03").join(name), &whole).unwrap();
            assert_eq!(quiet(&w).expect(0).stderr, "");
            assert!(w.rows::<PageDelta>("2024-01-03").is_empty());
        }
    }
}

#[test]
fn an_archive_that_cannot_be_read_deletes_nothing() {
    let records: Vec<Vec<u8>> = (0..4).map(|i| response(&format!("p{i}"), &format!("<p>Room {i} is open."))).collect();
    for damage in ["empty", "dangling", "page", "open"] {
        let w = Workspace::new("");
        for night in ["2024-01-01", "2024-01-02"] {
            for (i, record) in records.iter().enumerate() {
                fs::write(w.snapshot_dir(night).join(format!("{i}.warc")), record).unwrap();
            }
        }
        let file = w.snapshot_dir("2024-01-02").join("2.warc");
        fs::remove_file(&file).unwrap();
        match damage {
            "empty" => fs::write(&file, "").unwrap(),
            "dangling" => std::os::unix::fs::symlink("nowhere.warc", &file).unwrap(),
            "page" => fs::write(&file, "<html><p>502 Bad Gateway").unwrap(),
            _ => fs::write(file.with_extension("warc.open"), &records[2]).unwrap(),
        }
        one_line(&quiet(&w).expect(3), "is cut or cannot be read");
        assert_eq!(standings(&w, "2024-01-02"), (4, 1), "{damage}");
        assert!(w.rows::<PageDelta>("2024-01-02").is_empty(), "{damage}");
        // What nobody could read says nothing about pages, accepted or not.
        let ended = w.ratoon(&["run", "p.toml", "--accept", "2024-01-02"]).expect(0);
        assert!(ended.stdout.contains("snapshot 2024-01-02 is accepted as it is"), "{}", ended.stdout);
        assert_eq!(standings(&w, "2024-01-02"), (4, 1), "{damage}");
        let status = w.ratoon(&["status", "p.toml"]).expect(0).stdout;
        assert!(status.contains("cannot be read (accepted)") && !status.contains("with a problem"), "{status}");
    }
}

#[test]
fn an_empty_folder_stops_no_night_and_is_read_again() {
    let w = Workspace::new(ROOMS);
    site(&w, "2024-01-01", 0..5);
    fs::create_dir(w.path("snapshots/2024-01-02")).unwrap();
    for set_aside in ["2024-01-03.tmp", "2024-01-03.partial", "_wip", "2024-01-03~", ".hidden"] {
        site(&w, set_aside, 0..1);
    }
    fs::create_dir(w.path("snapshots/tmp")).unwrap();
    one_line(&quiet(&w).expect(3), "nothing in its folder could be used");
    assert_eq!(standings(&w, "2024-01-02"), (5, 5));
    assert_eq!(w.rows::<RejectRow>("2024-01-02").len(), 1);
    one_line(&quiet(&w).expect(3), "2024-01-02");
    // It comes in after all.
    site(&w, "2024-01-02", 0..4);
    assert_eq!(quiet(&w).expect(0).stderr, "");
    assert_eq!(standings(&w, "2024-01-02"), (4, 0));
    // One that stays empty does not stop the next.
    fs::create_dir(w.path("snapshots/2024-01-03")).unwrap();
    quiet(&w).expect(3);
    site(&w, "2024-01-04", 0..4);
    assert_eq!(quiet(&w).expect(0).stderr, "");
    assert!(w.rows::<PageDelta>("2024-01-04").is_empty());
    let ids: Vec<String> = w.store().partitions("captures").unwrap().iter().map(ToString::to_string).collect();
    assert!(ids.iter().all(|id| id.len() == 10), "{ids:?}");
}

#[test]
fn a_first_night_may_be_empty() {
    let w = Workspace::new(ROOMS);
    fs::create_dir(w.path("snapshots/2024-01-01")).unwrap();
    fs::write(w.path("snapshots/2024-01-01/notes.txt"), "nothing").unwrap();
    one_line(&quiet(&w).expect(3), "nothing in its folder could be used");
    site(&w, "2024-01-02", 0..3);
    assert_eq!(quiet(&w).expect(0).stderr, "");
    assert_eq!(standings(&w, "2024-01-02"), (3, 0));
}

#[test]
fn a_poll_that_fetched_nothing_is_an_ordinary_night() {
    let w = Workspace::new("coverage = 'partial'");
    site(&w, "2024-01-01", 0..3);
    fs::write(w.snapshot_dir("2024-01-02").join("manifest.jsonl"), "").unwrap();
    site(&w, "2024-01-03", 0..1);
    assert_eq!(quiet(&w).expect(0).stderr, "");
    assert!(!w.rows::<SnapshotRow>("2024-01-02")[0].incomplete);
    assert_eq!(w.rows::<SnapshotRow>("2024-01-03")[0].pages, 3);
}

#[test]
fn a_failed_capture_is_no_news() {
    let w = Workspace::new(ROOMS);
    site(&w, "2024-01-01", 0..4);
    site(&w, "2024-01-02", 0..2);
    let wall = "<title>Just a moment...</title><script>_cf_chl_opt={}</script>Checking your browser";
    add(&w, "2024-01-02", &[("p2", 503, "busy"), ("p3", 200, wall)]);
    site(&w, "2024-01-03", 0..4);
    quiet(&w).expect(0);
    assert_eq!(standings(&w, "2024-01-02"), (4, 2));
    let suspects: Vec<(String, String)> = w
        .rows::<Capture>("2024-01-02")
        .into_iter()
        .filter_map(|capture| Some((capture.url, capture.suspect?.to_string())))
        .collect();
    assert_eq!(suspects, [("http://site.test/p3".to_owned(), "challenge".to_owned())]);
    for night in ["2024-01-02", "2024-01-03"] {
        assert!(w.rows::<PageDelta>(night).is_empty(), "{night}");
        assert!(w.rows::<MentionDelta>(night).is_empty(), "{night}");
        assert!(w.rows::<UpdateRow>(night).is_empty(), "{night}");
    }
}

#[test]
fn many_suspects_are_told() {
    let w = Workspace::new("");
    site(&w, "2024-01-01", 0..10);
    site(&w, "2024-01-02", 0..4);
    let login = "<title>Sign in</title><h1>Sign in</h1><form><input type=password></form>";
    let walls: Vec<String> = (4..10).map(|i| format!("p{i}")).collect();
    add(&w, "2024-01-02", &walls.iter().map(|path| (path.as_str(), 200, login)).collect::<Vec<_>>());
    one_line(&quiet(&w).expect(3), "6");
    assert_eq!(standings(&w, "2024-01-02"), (10, 6));
    assert_eq!(w.rows::<SnapshotRow>("2024-01-02")[0].suspects, 6);
    assert_eq!(w.ratoon(&["run", "p.toml", "-q", "--accept", "2024-01-02"]).expect(0).stderr, "");
    assert_eq!(standings(&w, "2024-01-02"), (10, 6), "known, but no pages all the same");
}

#[test]
fn pages_about_such_things_are_pages() {
    let w = Workspace::new("");
    let form = "<title>Sign in</title><form><input type=password></form>";
    let missing = "<title>404</title><h1>Page not found</h1>";
    w.snapshot("2024-01-01", &[("login", &format!("{form}Sign in")), ("404.html", missing), ("a", "<p>Other")]);
    w.snapshot("2024-01-02", &[("login", &format!("{form}Sign in, please")), ("404.html", missing), ("a", "<p>Other")]);
    w.run();
    let suspects = |night: &str| w.rows::<Capture>(night).iter().filter(|capture| capture.suspect.is_some()).count();
    assert_eq!((suspects("2024-01-01"), suspects("2024-01-02")), (0, 0));
    assert_eq!(w.rows::<PageDelta>("2024-01-02").len(), 1);
}

#[test]
fn a_304_of_a_page_that_nobody_has_is_told() {
    let w = Workspace::new("coverage = 'partial'");
    site(&w, "2024-01-01", 0..3);
    add(&w, "2024-01-02", &[("p1", 304, ""), ("pruned", 304, "")]);
    one_line(&quiet(&w).expect(3), "http://site.test/pruned");
    assert_eq!(w.rows::<SnapshotRow>("2024-01-02")[0].pages, 3);
}

#[test]
fn a_dropped_snapshot_stays_out_until_it_is_forced() {
    let w = Workspace::new(ROOMS);
    site(&w, "2024-01-01", 0..5);
    site(&w, "2024-01-02", 1..6);
    w.run();
    let before = w.table_bytes();
    site(&w, "2024-01-03", 2..7);
    site(&w, "2024-01-04", 2..9);
    w.run();
    w.ratoon(&["drop", "p.toml", "--snapshot", "2024-01-03", "--dry-run"]).expect(0);
    assert_eq!(w.store().partitions("pages").unwrap().len(), 4);
    let ended = w.ratoon(&["drop", "p.toml", "--snapshot", "2024-01-03"]).expect(0);
    assert!(ended.stdout.contains("took out 2024-01-03, 2024-01-04; 2 snapshots stay"), "{}", ended.stdout);
    for id in ["2024-01-03", "2024-01-04"] {
        let back = format!("`ratoon run p.toml --force --snapshot {id}` takes {id} in again");
        assert!(ended.stdout.contains(&back), "{}", ended.stdout);
    }
    assert!(w.table_bytes() == before, "what is left is as if they had never been");
    let ended = w.run();
    assert!(ended.stdout.contains("nothing to do: 2 snapshots"), "{}", ended.stdout);
    // They are not forgotten either.
    let passed_over =
        "passed over, for dropped: 2024-01-03, 2024-01-04; `ratoon run p.toml --force --snapshot 2024-01-03`";
    assert!(ended.stdout.contains(passed_over), "{}", ended.stdout);
    let status = w.ratoon(&["status", "p.toml"]).expect(0).stdout;
    assert!(status.contains(passed_over), "{status}");
    // A later night goes on without them.
    site(&w, "2024-01-05", 1..6);
    w.run();
    assert!(w.rows::<PageDelta>("2024-01-05").is_empty());
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", "2024-01-03"]).expect(0);
    assert_eq!(w.store().partitions("pages").unwrap().len(), 4, "the fourth is still out");
    assert_eq!(w.rows::<PageDelta>("2024-01-03").len(), 2);
    w.ratoon(&["drop", "p.toml", "--snapshot", "2024-01-04"]).expect(2).says("no snapshot 2024-01-04");
}

#[test]
fn an_edited_folder_is_told_also_of_an_old_snapshot() {
    let w = Workspace::new("");
    site(&w, "2024-01-01", 0..5);
    site(&w, "2024-01-02", 0..5);
    w.run();
    let file = w.path("snapshots/2024-01-01/3.html");
    let (text, time) = (fs::read_to_string(&file).unwrap(), fs::metadata(&file).unwrap().modified().unwrap());
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(&file, text.replace("Room 3", "Room 7")).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    one_line(&quiet(&w).expect(0), "the folder of snapshot 2024-01-01 changed since it was ingested");
    w.ratoon(&["run", "p.toml", "-q", "--force", "--snapshot", "2024-01-01"]).expect(0);
    assert_eq!(quiet(&w).expect(0).stderr, "");
    assert_eq!(w.rows::<PageDelta>("2024-01-02").len(), 1);
}

#[test]
fn rules_that_changed_while_a_page_was_not_seen_make_no_update() {
    let query = "[[query]]\nname = 'q'\nnodes.a = { url = '*/a' }\nlinks = ['a -> b']";
    let w = Workspace::new(&format!("coverage = 'partial'\n{query}"));
    let page = |visitors: u32| format!("<p>News of the day. Visitors: {visitors} <a href=b>b</a>");
    w.snapshot("2024-01-01", &[("a", &page(1)), ("b", "<p>B")]);
    w.run();
    w.pipeline(&format!("coverage = 'partial'\nignore = ['Visitors: [0-9]+']\n{query}"));
    w.snapshot("2024-01-02", &[("b", "<p>B")]);
    w.run();
    w.snapshot("2024-01-03", &[("a", &page(2))]);
    w.run();
    assert!(w.rows::<UpdateRow>("2024-01-03").is_empty());
    assert!(w.rows::<PageDelta>("2024-01-03").is_empty());
    assert!(w.rows::<TupleDelta>("2024-01-03").is_empty());
    w.snapshot("2024-01-04", &[("a", &page(3).replace("News", "Old news"))]);
    w.run();
    assert_eq!(w.rows::<UpdateRow>("2024-01-04").len(), 1);
    assert!(!w.rows::<TupleDelta>("2024-01-04").is_empty());
}

#[test]
fn an_added_page_can_lose_its_last_link() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("", "<a href=new>soon</a>"), ("x", "<p>x")]);
    w.snapshot("2024-01-02", &[("", "<p>no link"), ("x", "<p>x"), ("new", "<p>new")]);
    w.run();
    let rows = w.rows::<PageDelta>("2024-01-02");
    let new = rows.iter().find(|row| row.url.ends_with("/new")).unwrap();
    assert!(new.change.as_str() == "added" && new.unlinked, "another page linked to it before, none does now");
}

#[test]
fn a_late_snapshot_needs_ingest_forced() {
    let w = Workspace::new(&format!("coverage = 'partial'\n{ROOMS}"));
    site(&w, "2024-01-01", 0..2);
    site(&w, "2024-01-03", 0..1);
    w.run();
    site(&w, "2024-01-02", 1..3);
    for stage in ["extract", "delta", "stats"] {
        let ended = w.ratoon(&[stage, "p.toml", "--force", "--snapshot", "2024-01-02"]).expect(1);
        ended.says("`ratoon run p.toml --force --snapshot 2024-01-02`");
    }
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", "2024-01-02"]).expect(0);
    assert_eq!(w.rows::<SnapshotRow>("2024-01-03")[0].pages, 3, "what the late one brought is carried");
    assert_eq!(w.rows::<SnapshotRow>("2024-01-03")[0].mentions, 3);
}
