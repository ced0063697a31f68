//! The store's promises: same bytes whatever happens, pruning loses nothing that is kept.

use std::fs;
use std::time::Duration;

use ratoon::inside::tables::close::SnapshotRow;
use ratoon::inside::tables::ingest::Page;

use crate::workspace::{Workspace, html};

/// Three nights of a site that changes a little.
fn site(w: &Workspace, pages: usize) {
    for night in 1..=3 {
        let page = |i: usize| {
            let version = if i.is_multiple_of(7) { night } else { 0 };
            (format!("p{i}"), html(&format!("Page {i}"), &format!("text {i} {version} ").repeat(50), "p0"))
        };
        let pages: Vec<_> = (0..pages).filter(|i| (i + night) % 11 != 0).map(page).collect();
        let pages: Vec<_> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
        w.snapshot(&format!("2024-01-0{night}"), &pages);
    }
}

#[test]
fn threads_do_not_change_a_byte() {
    let (one, many) = (Workspace::new(""), Workspace::new(""));
    site(&one, 200);
    site(&many, 200);
    one.ratoon(&["run", "p.toml", "--threads", "1"]).expect(0);
    many.ratoon(&["run", "p.toml", "--threads", "8"]).expect(0);
    assert!(!one.table_bytes().is_empty());
    assert!(one.table_bytes() == many.table_bytes());
}

#[test]
fn one_catch_up_run_equals_nightly_runs() {
    let (nightly, late) = (Workspace::new(""), Workspace::new(""));
    site(&nightly, 60);
    site(&late, 60);
    for night in ["2024-01-01", "2024-01-02", "2024-01-03"] {
        nightly.ratoon(&["run", "p.toml", "--snapshot", night]).expect(0);
    }
    late.run();
    assert!(nightly.table_bytes() == late.table_bytes());
}

#[test]
fn a_rerun_does_nothing() {
    let w = Workspace::new("");
    site(&w, 30);
    w.run();
    let before = w.table_bytes();
    let ended = w.run();
    assert!(ended.stdout.contains("nothing to do: 3 snapshots done"), "{}", ended.stdout);
    assert!(w.table_bytes() == before);
}

#[test]
fn force_gives_the_same_bytes() {
    let w = Workspace::new("");
    site(&w, 30);
    w.run();
    let before = w.table_bytes();
    w.ratoon(&["run", "p.toml", "--force"]).expect(0);
    assert!(w.table_bytes() == before);
    // Also where the heads of the snapshot before are no longer kept and must be rebuilt.
    w.ratoon(&["ingest", "p.toml", "--force", "--snapshot", "2024-01-02"]).expect(0);
    w.run();
    assert!(w.table_bytes() == before);
}

#[test]
fn a_dry_run_writes_nothing() {
    let w = Workspace::new("");
    site(&w, 10);
    let ended = w.ratoon(&["run", "p.toml", "--dry-run"]).expect(0);
    assert!(ended.stdout.contains("ingest 2024-01-03") && ended.stdout.contains("dry run"), "{}", ended.stdout);
    assert!(!w.path("store").exists());
}

/// Kills a run at many points, each time goes on, and compares with a run that was left alone.
#[test]
fn kill_and_rerun_gives_the_same_bytes() {
    let (left_alone, killed) = (Workspace::new(""), Workspace::new(""));
    site(&left_alone, 400);
    site(&killed, 400);
    left_alone.run();
    killed.kill_at_many_points(&["run", "p.toml", "-q"], Duration::from_micros(1500));
    killed.run();
    assert!(killed.table_bytes() == left_alone.table_bytes());
    assert!(
        !killed.path("store/.staging").exists()
            || fs::read_dir(killed.path("store/.staging")).unwrap().next().is_none()
    );
}

#[test]
fn a_second_run_at_the_same_time_is_told_to_wait() {
    let w = Workspace::new("");
    site(&w, 10);
    fs::create_dir_all(w.path("store/_meta")).unwrap();
    let lock = fs::File::create(w.path("store/_meta/lock")).unwrap();
    lock.lock().unwrap();
    w.ratoon(&["run", "p.toml"]).expect(75).says("in use by another run");
    drop(lock);
    w.run();
}

#[test]
fn what_no_manifest_names_is_dropped() {
    let w = Workspace::new("");
    site(&w, 10);
    w.run();
    let stray = w.path("store/pages/snapshot=2023-12-31");
    fs::create_dir(&stray).unwrap();
    fs::copy(w.path("store/pages/snapshot=2024-01-01/part-00000.parquet"), stray.join("part-00000.parquet")).unwrap();
    w.run();
    assert!(!stray.exists());
}

/// All texts of a snapshot as `export` rebuilds them, by URL.
fn exported(w: &Workspace, snapshot: &str, to: &str) -> Vec<(String, String)> {
    w.ratoon(&["export", "p.toml", "--snapshot", snapshot, to]).expect(0);
    let manifest = fs::read_to_string(w.path(to).join("manifest.jsonl")).unwrap();
    let entry = |line: &str| {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        let file = w.path(to).join(entry["file"].as_str().unwrap());
        (entry["url"].as_str().unwrap().to_owned(), fs::read_to_string(file).unwrap())
    };
    manifest.lines().map(entry).collect()
}

#[test]
fn prune_keeps_what_later_snapshots_point_to() {
    let w = Workspace::new("");
    site(&w, 60);
    w.run();
    let nights = ["2024-01-02", "2024-01-03"];
    let before = nights.map(|night| exported(&w, night, &format!("before-{night}")));
    assert!(w.rows::<Page>("2024-01-03").iter().any(|page| page.text_snapshot.as_str() == "2024-01-01"));
    w.ratoon(&["prune", "p.toml", "--before", "2024-01-02"]).expect(0);
    for table in ["captures", "pages", "links", "rejects"] {
        assert!(!w.path("store").join(table).join("snapshot=2024-01-01").exists());
    }
    let after = nights.map(|night| exported(&w, night, &format!("after-{night}")));
    assert_eq!(before, after);
    let told = nights.map(|night| w.rows::<SnapshotRow>(night)[0].base);
    assert_eq!(told, [true, false], "the table of snapshots says which is the base");
    assert!(w.rows::<Page>("2024-01-03").iter().all(|page| page.text_snapshot.as_str() != "2024-01-01"));
    // The pruned snapshot's folder is still in the archive: it does not come back, and the next night goes on.
    assert!(w.run().stdout.contains("nothing to do"));
    let pages: Vec<_> =
        before[1].iter().map(|(url, _)| url.trim_start_matches("http://site.test/").to_owned()).collect();
    let texts: Vec<_> = pages.iter().map(|path| format!("<p>all of {path} is new")).collect();
    let new: Vec<_> = pages.iter().zip(&texts).map(|(path, text)| (path.as_str(), text.as_str())).collect();
    w.snapshot("2024-01-04", &new);
    w.run();
    assert!(w.rows::<Page>("2024-01-04").iter().all(|page| page.change.as_str() == "modified"));
    // Pruning down to one snapshot works too, twice does nothing.
    w.ratoon(&["prune", "p.toml", "--before", "2024-01-04"]).expect(0);
    w.ratoon(&["prune", "p.toml", "--before", "2024-01-04"]).expect(0);
    assert_eq!(exported(&w, "2024-01-04", "last").len(), pages.len());
}

#[test]
fn an_export_can_be_ingested_again() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", &html("A", "kept as it is, <b>é</b> and all", "b")), ("b", "<p>b")]);
    w.run();
    let texts = exported(&w, "2024-01-01", "export");
    let again = Workspace::new("");
    fs::rename(w.path("export"), again.path("snapshots/2024-01-01")).unwrap();
    again.run();
    assert_eq!(exported(&again, "2024-01-01", "export"), texts);
}

#[test]
fn a_damaged_text_is_noticed_by_export() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>one")]);
    w.snapshot("2024-01-02", &[("a", "<p>one")]);
    w.run();
    fs::remove_file(w.path("store/pages/snapshot=2024-01-01/part-00000.parquet")).unwrap();
    w.ratoon(&["export", "p.toml", "--snapshot", "2024-01-02", "x"]).expect(1).says("snapshot=2024-01-01");
}

#[test]
fn force_from_a_snapshot_does_all_later_ones_again() {
    let w = Workspace::new("");
    site(&w, 20);
    w.run();
    let before = w.table_bytes();
    let again = w.ratoon(&["run", "p.toml", "--force", "--snapshot", "2024-01-02"]).expect(0).stdout;
    assert!(again.contains("\n2024-01-02 ") && again.contains("\n2024-01-03 "), "{again}");
    assert!(!again.contains("\n2024-01-01 "), "{again}");
    assert!(w.table_bytes() == before);
}

/// A prune that is killed at any point is completed by the next one.
#[test]
fn an_interrupted_prune_is_completed_by_the_same_command() {
    let nights = |w: &Workspace| {
        for night in 1..=4 {
            let page = |i: usize| (format!("p{i}"), html("T", &format!("text {i} of {}", night / (i % 3 + 1)), "p0"));
            let pages: Vec<_> = (0..12).filter(|i| (i + night) % 5 != 0).map(page).collect();
            let pages: Vec<_> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
            w.snapshot(&format!("2024-01-0{night}"), &pages);
        }
        w.run();
    };
    let clean = Workspace::new("");
    nights(&clean);
    clean.ratoon(&["prune", "p.toml", "--before", "2024-01-02"]).expect(0);
    let w = Workspace::new("");
    nights(&w);
    w.kill_at_many_points(&["prune", "p.toml", "--before", "2024-01-02", "-q"], Duration::from_millis(2));
    assert!(w.table_bytes() == clean.table_bytes());
    w.ratoon(&["check", "p.toml"]).expect(0);
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", "2024-01-03"]).expect(0);
    let shown = clean.ratoon(&["show", "http://site.test/p0", "p.toml", "--snapshot", "2024-01-02"]).expect(0).stdout;
    assert!(shown.contains("its old version was pruned"), "{shown}");
}

#[test]
fn the_oldest_snapshot_that_prune_left_is_not_ingested_again() {
    let w = Workspace::new("coverage = 'partial'");
    w.snapshot("2024-01-01", &[("x", &html("X", "x one", "y")), ("y", &html("Y", "y stays as it is", "x"))]);
    w.snapshot("2024-01-02", &[("x", &html("X", "x two", "y"))]);
    w.snapshot("2024-01-03", &[("x", &html("X", "x three", "y"))]);
    w.run();
    w.ratoon(&["prune", "p.toml", "--before", "2024-01-02"]).expect(0);
    let before = w.table_bytes();
    for args in [vec!["run", "p.toml", "--force", "--snapshot", "2024-01-02"], vec!["run", "p.toml", "--force"]] {
        let ended = w.ratoon(&args).expect(1);
        assert!(ended.stderr.contains("2024-01-02 cannot be ingested again"), "{}", ended.stderr);
    }
    assert!(w.table_bytes() == before);
    // Later ones can, and carried pages stay.
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", "2024-01-03"]).expect(0);
    assert_eq!(w.rows::<Page>("2024-01-03").len(), 2);
}

#[test]
fn a_prune_that_is_killed_again_and_again_leaves_nothing_of_what_it_drops() {
    let w = Workspace::new("");
    for night in 1..=24 {
        let pages: Vec<_> =
            (0..6).map(|i| (format!("p{i}"), html("T", &format!("{i} {}", night / (i + 1)), "p0"))).collect();
        let pages: Vec<_> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
        w.snapshot(&format!("2024-01-{night:02}"), &pages);
    }
    w.run();
    w.kill_at_many_points(&["prune", "p.toml", "--before", "2024-01-23"], Duration::from_millis(1));
    let dropped: Vec<String> = (1..23).map(|night| format!("2024-01-{night:02}")).collect();
    let left: Vec<_> = walkdir::WalkDir::new(w.path("store"))
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| dropped.iter().any(|id| path.to_string_lossy().contains(id.as_str())))
        .collect();
    assert_eq!(left, [""; 0].map(std::path::PathBuf::from));
    w.ratoon(&["run", "p.toml"]).expect(0);
    w.ratoon(&["verify", "p.toml"]).expect(0);
}

/// The partitions of a table.
fn partitions(w: &Workspace, table: &str) -> Vec<String> {
    let dir = w.path("store").join(table);
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_forced_drops_only_what_builds_on_it() {
    let w = Workspace::new("");
    for night in 1..=3 {
        w.snapshot(&format!("2024-01-0{night}"), &[("a", &html("A", &format!("night {night}"), "b"))]);
    }
    w.run();
    let before = w.table_bytes();
    let ended = w.ratoon(&["delta", "p.toml", "--force"]).expect(0);
    assert!(!ended.stdout.contains("stats"), "{}", ended.stdout);
    assert!(w.table_bytes() == before, "nothing reads deltas, so that nothing else was dropped");
    // What comes out the same leaves nothing out of date, so that nothing waits.
    let json = w.ratoon(&["match", "p.toml", "--force", "--json"]).expect(0).stdout;
    let summary: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(summary.get("waiting").is_none(), "{summary}");
    assert_eq!(partitions(&w, "captures").len(), 3);
    w.run();
    assert!(w.table_bytes() == before);
}

#[test]
fn a_store_of_an_older_format_is_refused_with_one_line() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", &html("A", "text", "b"))]);
    w.run();
    fs::write(w.path("store/_meta/store.json"), "{\"format\": 2, \"shards\": 16}").unwrap();
    let ended = w.ratoon(&["run", "p.toml"]).expect(1);
    assert!(ended.stderr.contains("written by an older ratoon: remove the store"), "{}", ended.stderr);
    assert_eq!(ended.stderr.trim().lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn a_manifest_that_does_not_fit_is_named_and_mended_by_what_it_says() {
    let w = Workspace::new("");
    for night in 1..=2 {
        w.snapshot(&format!("2024-01-0{night}"), &[("a", &html("A", &format!("night {night}"), "b"))]);
    }
    w.run();
    let file = w.path("store/_meta/snapshots/2024-01-01.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"predicted_price\"", "\"predicted_cost\"")).unwrap();
    w.snapshot("2024-01-03", &[("a", &html("A", &"night three ".repeat(100), "b"))]);
    let ended = w.ratoon(&["run", "p.toml"]).expect(1);
    assert!(ended.stderr.contains("snapshots/2024-01-01.json: damaged"), "{}", ended.stderr);
    assert!(ended.stderr.contains("--force --snapshot 2024-01-01"), "{}", ended.stderr);
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", "2024-01-01"]).expect(0);
}

/// Polls of a few pages of a site; the night at `i` changes some of them.
fn polls(w: &Workspace, nights: std::ops::Range<usize>) {
    for night in nights {
        let visited = (0..24).filter(|i| night == 0 || (i + night).is_multiple_of(6));
        let page = |i: usize| {
            let version = if (i + night).is_multiple_of(12) { night } else { 0 };
            (format!("p{i}"), html(&format!("Page {i}"), &format!("Room {i} in version {version} "), "p0"))
        };
        let pages: Vec<_> = visited.map(page).collect();
        let pages: Vec<_> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
        w.snapshot(&format!("2024-01-{:02}", night + 1), &pages);
    }
}

const ROOMS: &str = "coverage = 'partial'\n[[extractor]]\nname = 'room'\nkind = 'regex'\npattern = 'Room [0-9]+'\n";

fn copy(from: &std::path::Path, to: &std::path::Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let place = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir_all(&place).unwrap();
        } else {
            fs::copy(entry.path(), &place).unwrap();
        }
    }
}

/// However the index comes to be away, wrong or of another time, the tables come out the same.
#[test]
fn an_index_that_is_lost_damaged_or_of_another_time_is_made_again() {
    let undisturbed = Workspace::new(ROOMS);
    polls(&undisturbed, 0..6);
    undisturbed.run();
    assert!(undisturbed.rows::<Page>("2024-01-04").len() < 24, "snapshots are slim");
    let index = |w: &Workspace| w.path("store/_meta/index");
    let runs = |w: &Workspace| {
        let files = fs::read_dir(index(w)).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|e| e == "run")).collect::<Vec<_>>()
    };
    type Disturbance<'a> = (&'a str, &'a dyn Fn(&Workspace));
    let disturbances: [Disturbance<'_>; 5] = [
        ("lost", &|w| fs::remove_dir_all(index(w)).unwrap()),
        ("no catalogue", &|w| fs::remove_file(index(w).join("CURRENT")).unwrap()),
        ("cut", &|w| fs::write(index(w).join("CURRENT"), b"R").unwrap()),
        ("flipped", &|w| {
            for run in runs(w) {
                let mut bytes = fs::read(&run).unwrap();
                bytes.iter_mut().step_by(97).for_each(|byte| *byte ^= 0x55);
                fs::write(&run, bytes).unwrap();
            }
        }),
        ("ahead", &|w| {
            fs::remove_dir_all(index(w)).unwrap();
            copy(&index(&undisturbed), &index(w));
        }),
    ];
    for (what, disturb) in disturbances {
        let w = Workspace::new(ROOMS);
        polls(&w, 0..3);
        w.run();
        disturb(&w);
        polls(&w, 3..6);
        w.run();
        assert!(w.table_bytes() == undisturbed.table_bytes(), "{what}");
    }
}

#[test]
fn a_pruned_store_goes_on_as_if_nothing_had_been_dropped() {
    let (whole, pruned) = (Workspace::new(ROOMS), Workspace::new(ROOMS));
    polls(&whole, 0..8);
    whole.run();
    polls(&pruned, 0..5);
    pruned.run();
    pruned.ratoon(&["prune", "p.toml", "--before", "2024-01-04"]).expect(0);
    assert!(!pruned.path("store/pages/snapshot=2024-01-03").exists());
    assert!(pruned.rows::<Page>("2024-01-04").iter().all(|page| page.whole && page.text.is_some()));
    assert_eq!(pruned.rows::<Page>("2024-01-04").len(), 24);
    polls(&pruned, 5..8);
    pruned.run();
    for night in ["2024-01-04", "2024-01-06", "2024-01-08"] {
        assert_eq!(exported(&pruned, night, night), exported(&whole, night, night));
        let mentions = |w: &Workspace| w.ratoon(&["verify", "p.toml", "--all", "--snapshot", night]).expect(0).stdout;
        assert_eq!(mentions(&pruned), mentions(&whole));
    }
}

#[test]
fn what_rests_on_pruned_snapshots_is_not_done_again_by_mistake() {
    let w = Workspace::new(ROOMS);
    polls(&w, 0..4);
    w.run();
    w.ratoon(&["prune", "p.toml", "--before", "2024-01-03"]).expect(0);
    let before = w.table_bytes();
    for stage in ["extract", "delta", "stats"] {
        let ended = w.ratoon(&[stage, "p.toml", "--force"]).expect(1).says("nothing was changed");
        assert!(ended.stderr.contains("--snapshot 2024-01-04") && ended.stderr.contains("--discard-history"));
    }
    assert!(w.table_bytes() == before);
    w.ratoon(&["extract", "p.toml", "--force", "--snapshot", "2024-01-04"]).expect(0);
    w.ratoon(&["extract", "p.toml", "--force", "--discard-history"]).expect(0);
    w.run();
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
}

/// Nothing is dropped before its replacement is there.
#[test]
fn a_force_that_fails_leaves_the_tables_that_there_are() {
    let w = Workspace::new(ROOMS);
    polls(&w, 0..3);
    w.run();
    let before = w.table_bytes();
    // A worker that cannot be started, and a folder that cannot be read.
    w.pipeline(&format!(
        "{ROOMS}[[extractor]]\nname = 'x'\nkind = 'command'\ncommand = ['./no-such-program']\nunit = 'page'\n"
    ));
    w.ratoon(&["extract", "p.toml", "--force"]).expect(1);
    assert!(w.table_bytes() == before);
    w.pipeline(ROOMS);
    let folder = w.path("snapshots/2024-01-02");
    fs::rename(&folder, w.path("away")).unwrap();
    fs::create_dir(&folder).unwrap();
    w.ratoon(&["run", "p.toml", "--force"]).expect(1);
    assert!(w.table_bytes() == before, "what came before the folder came out as it was");
    fs::remove_dir(&folder).unwrap();
    fs::rename(w.path("away"), &folder).unwrap();
    w.run();
    assert!(w.table_bytes() == before);
}

/// A run that does everything again is killed again and again: what is there at any time is the old or the new, and the
/// next run completes it.
#[test]
fn a_force_that_is_killed_is_completed() {
    let (left_alone, killed) = (Workspace::new(ROOMS), Workspace::new(ROOMS));
    for w in [&left_alone, &killed] {
        polls(w, 0..5);
        w.run();
    }
    // With another pattern every table of the stage is replaced by another one.
    let other = ROOMS.replace("Room [0-9]+", "Room [0-9]+ in");
    left_alone.pipeline(&other);
    killed.pipeline(&other);
    let force = ["run", "p.toml", "--force", "-q", "--snapshot", "2024-01-02"];
    left_alone.ratoon(&force).expect(0);
    killed.kill_at_many_points(&force, Duration::from_micros(2500));
    killed.run();
    assert!(killed.table_bytes() == left_alone.table_bytes());
    assert!(!killed.path("store/_meta/intent.json").exists());
}

#[test]
fn runs_are_noted() {
    let w = Workspace::new(ROOMS);
    polls(&w, 0..2);
    w.run();
    w.run();
    let lines = fs::read_to_string(w.path("store/_meta/runs.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 1, "nothing to do is not worth a line: {lines}");
    let line: serde_json::Value = serde_json::from_str(&lines).unwrap();
    assert_eq!((line["exit_code"].as_u64(), line["snapshots"].as_u64()), (Some(0), Some(2)));
    assert!(line["seconds"]["ingest"].as_f64().unwrap() > 0.0 && line["end"].as_str() >= line["start"].as_str());
}

/// What a run did before it failed is noted with its error.
#[test]
fn a_run_that_fails_notes_what_it_did() {
    let w = Workspace::new(ROOMS);
    polls(&w, 0..1);
    w.run();
    let mentions = w.path("store/mentions/room/snapshot=2024-01-01/part-00000.parquet");
    let mut bytes = fs::read(&mentions).unwrap();
    let middle = bytes.len() / 2;
    bytes[4..middle].fill(0);
    fs::write(&mentions, bytes).unwrap();
    polls(&w, 1..2);
    w.ratoon(&["run", "p.toml", "-q"]).expect(1).says("not what was written");
    let lines = fs::read_to_string(w.path("store/_meta/runs.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((line["exit_code"].as_u64(), line["snapshots"].as_u64()), (Some(1), Some(1)));
    assert!(line["seconds"]["ingest"].as_f64().unwrap() > 0.0 && line["seconds"]["extract"].is_null(), "{line}");
    assert!(line["error"].as_str().unwrap().contains("not what was written"), "{line}");
}

#[test]
fn a_late_snapshot_needs_ingest_to_be_forced() {
    let w = Workspace::new(ROOMS);
    polls(&w, 0..3);
    let late = w.path("snapshots/2024-01-02");
    fs::rename(&late, w.path("late")).unwrap();
    w.run();
    fs::rename(w.path("late"), &late).unwrap();
    w.ratoon(&["extract", "p.toml", "--force", "--snapshot", "2024-01-02"]).expect(1).says("is older than");
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", "2024-01-02"]).expect(0);
    let in_order = Workspace::new(ROOMS);
    polls(&in_order, 0..3);
    in_order.run();
    assert!(w.table_bytes() == in_order.table_bytes());
}

/// F14: what is known of URLs is made again from many snapshots, one file after the other.
#[test]
fn many_nights_need_few_open_files() {
    let w = Workspace::new("coverage = 'partial'");
    let page = |text: String| html("T", &text, "p0");
    let site: Vec<(String, String)> = (0..200).map(|i| (format!("p{i}"), page(format!("page {i}")))).collect();
    let site: Vec<(&str, &str)> = site.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot("2024-01-01T00-00", &site);
    for poll in 1..=130 {
        let id = format!("2024-01-{:02}T{:02}-00", 1 + poll / 24, poll % 24);
        w.snapshot(&id, &[("p1", &page(format!("poll {poll}"))), ("p2", &page("as before".into()))]);
    }
    w.run();
    std::fs::remove_dir_all(w.path("store/_meta/index")).unwrap();
    w.snapshot("2024-02-01T00-00", &[("p1", &page("the last poll".into()))]);
    let ratoon = env!("CARGO_BIN_EXE_ratoon");
    let run = format!("ulimit -n 128 && exec '{ratoon}' run p.toml --threads 8");
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", &run]).current_dir(w.path(""));
    let ended = limited.output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
}
