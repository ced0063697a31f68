//! Rubbish in, one clear line out, nothing lost.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use ratoon::inside::tables::ingest::{Page, RejectRow};

use crate::workspace::{Ended, Workspace, html};

#[test]
fn no_snapshot_at_all() {
    let w = Workspace::new("");
    w.ratoon(&["run", "p.toml"]).expect(1).says("no snapshot in ").says("such as 2024-03-01");
    assert!(!w.path("store").exists(), "a failed look leaves nothing behind");
}

#[test]
fn no_snapshots_folder() {
    let w = Workspace::new("");
    fs::remove_dir(w.path("snapshots")).unwrap();
    w.ratoon(&["run", "p.toml"]).expect(1).says("snapshots");
}

#[test]
fn an_empty_snapshot_folder() {
    let w = Workspace::new("");
    w.snapshot_dir("2024-01-01");
    w.ratoon(&["run", "p.toml"]).expect(3).says("no capture in ").says("2024-01-01");
}

#[test]
fn an_unreadable_file_is_a_reject() {
    let w = Workspace::new("max_reject_share = 1.0");
    w.snapshot("2024-01-01", &[("a", "<p>a"), ("b", "<p>b")]);
    // Root reads everything, so the file is a folder instead: that cannot be read as a file by anyone.
    let file = w.snapshot_dir("2024-01-01").join("1.html");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    w.run();
    assert_eq!(w.rows::<Page>("2024-01-01").len(), 1);
    let rejects = w.rows::<RejectRow>("2024-01-01");
    assert_eq!(rejects.len(), 1, "{rejects:?}");
    assert_eq!(rejects[0].url.as_deref(), Some("http://site.test/b"));
    assert_eq!(rejects[0].source_offset, Some(2));
}

#[test]
fn a_file_without_permission_is_a_reject() {
    let w = Workspace::new("max_reject_share = 1.0");
    w.snapshot("2024-01-01", &[("a", "<p>a"), ("b", "<p>b")]);
    let file = w.snapshot_dir("2024-01-01").join("1.html");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&file).is_ok() {
        // Running as root, whom no permission stops: the file is read.
        w.run();
        assert_eq!(w.rows::<Page>("2024-01-01").len(), 2);
    } else {
        w.run();
        assert_eq!(w.rows::<RejectRow>("2024-01-01").len(), 1);
    }
}

#[test]
fn what_leaves_the_snapshot_is_refused() {
    let w = Workspace::new("max_reject_share = 1.0");
    w.snapshot("2024-01-01", &[("a", "<p>a")]);
    fs::write(w.path("secret"), "<p>secret").unwrap();
    let dir = w.snapshot_dir("2024-01-01");
    symlink(w.path("secret"), dir.join("link.html")).unwrap();
    let mut manifest = fs::read_to_string(dir.join("manifest.jsonl")).unwrap();
    for file in ["../../secret", "link.html", w.path("secret").to_str().unwrap()] {
        manifest += &format!("{{\"url\":\"http://site.test/{}\",\"file\":\"{file}\"}}\n", file.len());
    }
    fs::write(dir.join("manifest.jsonl"), manifest).unwrap();
    w.run();
    assert_eq!(w.rows::<Page>("2024-01-01").len(), 1);
    let rejects = w.rows::<RejectRow>("2024-01-01");
    // Three lines of the manifest, and the link itself.
    assert_eq!(rejects.len(), 4, "{rejects:?}");
    assert!(rejects.iter().all(|reject| reject.reason.contains("leaves the snapshot")), "{rejects:?}");
}

#[test]
fn a_link_in_a_mirror_that_leaves_it_is_refused() {
    let w = Workspace::new("max_reject_share = 1.0");
    let dir = w.snapshot_dir("2024-01-01").join("site.test");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("index.html"), "<p>a").unwrap();
    fs::write(w.path("secret"), "<p>secret").unwrap();
    symlink(w.path("secret"), dir.join("b.html")).unwrap();
    w.run();
    assert_eq!(w.rows::<Page>("2024-01-01").len(), 1);
    assert_eq!(w.rows::<RejectRow>("2024-01-01").len(), 1);
}

#[test]
fn a_snapshot_may_be_a_link() {
    let w = Workspace::new("");
    let elsewhere = w.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("x"), "<p>x").unwrap();
    fs::write(elsewhere.join("manifest.jsonl"), "{\"url\":\"http://site.test/\",\"file\":\"x\"}\n").unwrap();
    symlink(&elsewhere, w.path("snapshots/2024-01-01")).unwrap();
    w.run();
    assert_eq!(w.rows::<Page>("2024-01-01").len(), 1);
}

#[test]
fn a_snapshot_id_with_other_characters() {
    let w = Workspace::new("");
    w.snapshot("night one", &[("a", "<p>a")]);
    w.ratoon(&["run", "p.toml"]).expect(1).says("'night one' cannot be a snapshot id").says("rename");
}

#[test]
fn two_snapshots_with_one_time() {
    let w = Workspace::new("");
    w.snapshot("20240101", &[("a", "<p>one")]);
    w.snapshot("2024-01-01", &[("a", "<p>two")]);
    w.run().says("have the same time");
    assert_eq!(w.rows::<Page>("2024-01-01")[0].change.as_str(), "added", "- sorts before 0");
    assert_eq!(w.rows::<Page>("20240101")[0].change.as_str(), "modified");
}

#[test]
fn a_name_without_a_time_takes_its_newest_capture() {
    let w = Workspace::new("");
    for (name, day) in [("alpha", "02"), ("beta", "01")] {
        let dir = w.snapshot_dir(name);
        fs::write(dir.join("x"), format!("<p>{name}")).unwrap();
        let line =
            format!("{{\"url\":\"http://site.test/\",\"file\":\"x\",\"fetched_at\":\"2024-01-{day}T00:00:00Z\"}}\n");
        fs::write(dir.join("manifest.jsonl"), line).unwrap();
    }
    w.run();
    assert_eq!(w.rows::<Page>("beta")[0].change.as_str(), "added");
    assert_eq!(w.rows::<Page>("alpha")[0].change.as_str(), "modified");
}

#[test]
fn a_snapshot_older_than_those_done() {
    let w = Workspace::new("");
    w.snapshot("2024-01-02", &[("a", "<p>two")]);
    w.run();
    w.snapshot("2024-01-01", &[("a", "<p>one")]);
    w.ratoon(&["run", "p.toml"])
        .expect(1)
        .says("2024-01-01")
        .says("is older than 2024-01-02")
        .says("--force --snapshot 2024-01-01");
    assert_eq!(w.rows::<Page>("2024-01-02")[0].change.as_str(), "added", "nothing was touched");
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", "2024-01-01"]).expect(0);
    assert_eq!(w.rows::<Page>("2024-01-01")[0].change.as_str(), "added");
    // Its successor was forgotten with it; the next run does it again.
    w.run();
    assert_eq!(w.rows::<Page>("2024-01-02")[0].change.as_str(), "modified");
}

#[test]
fn a_folder_that_cannot_be_done_again_is_not_dropped() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>one")]);
    w.snapshot("2024-01-02", &[("a", "<p>two")]);
    w.run();
    fs::remove_dir_all(w.path("snapshots/2024-01-02")).unwrap();
    w.ratoon(&["run", "p.toml", "--force"]).expect(1).says("its folder is gone; nothing was changed");
    w.run();
    assert_eq!(w.rows::<Page>("2024-01-02").len(), 1);
}

#[test]
fn a_changed_folder_is_pointed_out() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>one")]);
    w.run();
    w.snapshot("2024-01-01", &[("a", "<p>one"), ("b", "<p>late")]);
    w.run().says("changed since it was ingested");
}

#[test]
fn too_many_rejects_have_an_exit_code_of_their_own() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>a")]);
    let manifest = w.snapshot_dir("2024-01-01").join("manifest.jsonl");
    let lines = fs::read_to_string(&manifest).unwrap() + "rubbish\n";
    fs::write(&manifest, lines).unwrap();
    let said = "snapshot 2024-01-01: 1 rejects beside 1 captures";
    let first = w.ratoon(&["run", "p.toml", "-q"]).expect(3).says(said);
    assert_eq!(first.stderr.lines().count(), 1, "a problem is one line, also with -q: {}", first.stderr);
    assert_eq!(w.rows::<Page>("2024-01-01").len(), 1, "done all the same");
    w.ratoon(&["run", "p.toml", "-q"]).expect(3).says(said);
    let status = w.ratoon(&["status", "p.toml"]).expect(0).stdout;
    assert!(status.contains("2024-01-01: 1 rejects beside 1 captures"), "{status}");
    w.ratoon(&["run", "p.toml", "--force", "--strict"]).expect(1).says("--strict: 1 rejects");
    w.ratoon(&["run", "p.toml", "--strict"]).expect(1).says("--strict: 1 rejects");
}

/// A limit on the size of files stands in for a full disk: writing fails in the middle.
#[test]
fn a_full_disk_fails_with_the_file_and_loses_nothing() {
    let w = Workspace::new("");
    let noise = |seed: u64| {
        let mut x = seed;
        let words = (0..40_000).map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("{:x}", x >> 33)
        });
        html("N", &words.collect::<Vec<_>>().join(" "), "x")
    };
    w.snapshot("2024-01-01", &[("a", "<p>small")]);
    w.run();
    let before = w.table_bytes();
    w.snapshot("2024-01-02", &[("a", &noise(1))]);
    let limited = Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" run p.toml", env!("CARGO_BIN_EXE_ratoon")])
        .current_dir(w.path(""))
        .output()
        .unwrap();
    let ended = Ended::of(&limited).expect(1);
    assert!(ended.stderr.contains("snapshot 2024-01-02") && ended.stderr.contains("too large"), "{}", ended.stderr);
    assert_eq!(w.table_bytes(), before, "the first night is as it was, the second is not there");
    w.run();
    assert_eq!(w.rows::<Page>("2024-01-02").len(), 1);
}
