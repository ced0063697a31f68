//! `kill -9` at random moments of every command that writes.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ratoon::inside::model::Rng;

use super::{SECTIONS, assert_same, copy_of, day, files, nights, page, write_night};
use crate::workspace::Workspace;

/// A command that writes, and what it is started on.
struct Case {
    args: &'static [&'static str],
    /// Done to a store of three nights before.
    prepare: fn(&Workspace),
    /// What it writes besides the store.
    writes: &'static [&'static str],
}

fn more(w: &Workspace) {
    write_night(w, 4);
}

fn other_pattern(w: &Workspace) {
    w.pipeline(&SECTIONS.replace("[A-Z][a-z]+", "[A-Z][a-z]{2,}"));
}

fn new_extractor(w: &Workspace) {
    w.pipeline(&format!("{SECTIONS}[[extractor]]\nname = 'line'\nkind = 'regex'\npattern = 'Line [0-9]'\n"));
}

/// A night of which most pages are missing.
fn half_a_crawl(w: &Workspace) {
    let pages: Vec<(String, String)> = (0..4).map(|i| (format!("p{i}"), page(i, 4))).collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot(&day(4), &pages);
    w.ratoon(&["run", "p.toml", "-q"]).expect(3);
}

fn damaged(w: &Workspace) {
    for table in ["pages", "mentions/word", "link_deltas"] {
        let file = w.path(&format!("store/{table}/snapshot=2024-01-02/part-00000.parquet"));
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        fs::write(file, bytes).unwrap();
    }
}

fn anew(w: &Workspace) {
    fs::remove_dir_all(w.path("store")).unwrap();
}

fn nothing(_: &Workspace) {}

const CASES: &[Case] = &[
    Case { args: &["run", "p.toml"], prepare: anew, writes: &[] },
    Case { args: &["run", "p.toml"], prepare: more, writes: &[] },
    Case { args: &["run", "p.toml", "--force"], prepare: nothing, writes: &[] },
    Case { args: &["run", "p.toml"], prepare: other_pattern, writes: &[] },
    Case { args: &["run", "p.toml", "--backfill", "2024-01-01"], prepare: new_extractor, writes: &[] },
    Case { args: &["ingest", "p.toml", "--force"], prepare: nothing, writes: &[] },
    Case { args: &["extract", "p.toml", "--force"], prepare: other_pattern, writes: &[] },
    Case { args: &["delta", "p.toml", "--force", "--snapshot", "2024-01-02"], prepare: nothing, writes: &[] },
    Case { args: &["stats", "p.toml", "--force"], prepare: nothing, writes: &[] },
    Case { args: &["schedule", "p.toml", "--force"], prepare: nothing, writes: &[] },
    Case { args: &["run", "p.toml", "--accept", "2024-01-04"], prepare: half_a_crawl, writes: &[] },
    Case { args: &["drop", "p.toml", "--snapshot", "2024-01-03"], prepare: nothing, writes: &[] },
    Case { args: &["prune", "p.toml", "--before", "2024-01-02"], prepare: nothing, writes: &[] },
    Case { args: &["check", "p.toml", "--repair"], prepare: damaged, writes: &[] },
    Case {
        args: &["export", "p.toml", "--snapshot", "2024-01-03", "out", "--force"],
        prepare: nothing,
        writes: &["out"],
    },
    Case {
        args: &["delta", "p.toml", "--from", "2024-01-01", "--to", "2024-01-03", "--out", "out", "--force"],
        prepare: nothing,
        writes: &["out"],
    },
    Case {
        args: &["schedule", "p.toml", "--crontab", "crontab", "--timers", "timers"],
        prepare: nothing,
        writes: &["crontab", "timers"],
    },
    Case {
        args: &["show", "p.toml", "http://site.test/p3", "--html", "p.html"],
        prepare: nothing,
        writes: &["p.html"],
    },
    Case {
        args: &["report", "p.toml", "--out", "report.html", "--pages"],
        prepare: nothing,
        // The report itself says when runs were and how long they took.
        writes: &["report_pages"],
    },
    Case {
        // Without force what was killed is told: its folder is not empty.
        args: &["web", "p.toml", "news", "--delta", "--svg", "webs", "--force"],
        prepare: nothing,
        writes: &["webs"],
    },
    Case {
        args: &["sql", "p.toml", "select * from pages order by url", "--format", "parquet", "--out", "pages.parquet"],
        prepare: nothing,
        writes: &["pages.parquet"],
    },
    Case {
        args: &["synth", "site", "--truth", "truth", "--pages", "40", "--snapshots", "3", "--force"],
        prepare: nothing,
        writes: &["site", "truth"],
    },
];

/// What a command left.
fn left(w: &Workspace, case: &Case) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let outside = case.writes.iter().flat_map(|name| {
        files(w, name).into_iter().map(move |(path, bytes)| (std::path::Path::new(name).join(path), bytes))
    });
    outside.chain(w.table_bytes()).collect()
}

#[test]
fn kills_at_random_moments_of_every_command_that_writes() {
    // `make test-faults` asks for more.
    let kills: usize = std::env::var("RATOON_KILLS").ok().map_or(CASES.len(), |kills| kills.parse().unwrap());
    let base = nights(SECTIONS, 3);
    base.run();
    let mut rng = Rng::new(std::process::id().into());
    let mut expected = Vec::new();
    for case in CASES {
        let w = copy_of(&base);
        (case.prepare)(&w);
        let prepared = copy_of(&w);
        let started = Instant::now();
        w.ratoon(case.args).expect(0);
        let took = started.elapsed();
        w.run();
        expected.push((prepared, took, left(&w, case)));
    }
    let mut killed = 0;
    for i in 0..kills {
        let case = &CASES[i % CASES.len()];
        let (prepared, took, expected) = &expected[i % CASES.len()];
        let w = copy_of(prepared);
        let moment = Duration::from_micros(rng.number() % (u64::try_from(took.as_micros()).unwrap() * 11 / 10 + 1));
        let mut child = w.command(case.args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(moment);
        child.kill().unwrap();
        let ended = child.wait().unwrap();
        let told = format!("{:?}, killed after {moment:?} of {took:?}", case.args);
        for page in ["report.html", "store/report.html", "p.html"] {
            let html = fs::read_to_string(w.path(page)).ok();
            assert!(
                html.is_none_or(|html| html.trim_end().ends_with("</html>")),
                "{told}: {page} is whole or not there"
            );
        }
        if !ended.success() {
            killed += 1;
            assert_eq!(ended.code(), None, "{told}: it fails only because it is killed");
            // What was dropped before it was killed cannot be dropped again.
            let again = w.ratoon(case.args);
            assert!(again.code == 0 || case.args[0] == "drop", "{told}: {}", again.stderr);
        }
        w.run();
        assert_same(&left(&w, case), expected, &told);
        w.ratoon(&["check", "p.toml"]).expect(0);
        assert!(!w.path("store/_meta/intent.json").exists(), "{told}");
    }
    // A busy machine is slow to kill.
    assert!(killed * 4 > kills, "only {killed} of {kills} were killed in time");
}

/// What a run tells at its end, which is the report, alerts and a program, the next run tells if it was killed before.
#[test]
fn what_a_killed_run_did_not_tell_the_next_one_tells() {
    let notify = "[notify]\ncommand = ['sh', '-c', 'cat >> told']\non = ['success']\n";
    let w = nights(&format!("{SECTIONS}{notify}"), 3);
    w.run();
    write_night(&w, 4);
    let quiet = copy_of(&w);
    let alerts = |said: &str| -> Vec<String> {
        said.lines().filter(|line| line.starts_with("alert ")).map(str::to_owned).collect()
    };
    let expected = alerts(&quiet.run().stdout);
    assert!(!expected.is_empty());
    // How many alerts each event tells of, in all, for a run shows only the first.
    let told = |w: &Workspace| -> Vec<u64> {
        let text = fs::read_to_string(w.path("told")).unwrap();
        let events = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>();
        events.map(|event| event.unwrap()["summary"]["alerts"].as_u64().unwrap()).collect()
    };
    let of_night = *told(&quiet).last().unwrap();
    fs::remove_file(w.path("told")).unwrap();
    // The report cannot be written before somebody reads it.
    let waits = w.path("store/report.html.ratoon.tmp");
    assert!(std::process::Command::new("mkfifo").arg(&waits).status().unwrap().success());
    let mut run = w.command(&["run", "p.toml"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + Duration::from_mins(1);
    let closed = || {
        let done = fs::read_to_string(w.path("store/_meta/snapshots/2024-01-04.json")).unwrap_or_default();
        done.contains("\"close\"") && !w.path("store/_meta/under_way.json").exists()
    };
    while !closed() {
        assert!(Instant::now() < until && run.try_wait().unwrap().is_none(), "the run does not come to its end");
        std::thread::sleep(Duration::from_millis(10));
    }
    w.ratoon(&["run", "p.toml"]).expect(75).says("in use by another run");
    run.kill().unwrap();
    run.wait().unwrap();
    fs::remove_file(&waits).unwrap();
    assert!(!fs::read_to_string(w.path("store/report.html")).unwrap().contains("2024-01-04"));
    assert!(!w.path("told").exists());
    // One that fails tells nothing of it either.
    let bad = "[[extractor]]\nname = 'x'\nkind = 'command'\ncommand = ['no-such-program']\nscope = 9\n";
    w.pipeline(&format!("{SECTIONS}{notify}{bad}"));
    assert!(alerts(&w.ratoon(&["run", "p.toml"]).expect(1).stdout).is_empty());
    w.pipeline(&format!("{SECTIONS}{notify}"));
    let next = w.run();
    assert!(next.stdout.contains("snapshot 2024-01-04 was done by a run that ended before it said so"), "{next:?}");
    assert_eq!(alerts(&next.stdout), expected);
    assert_eq!(told(&w), [of_night]);
    assert!(fs::read_to_string(w.path("store/report.html")).unwrap().contains("2024-01-04"));
    let after = w.run();
    assert!(!after.stdout.contains("2024-01-04"), "{after:?}");
    assert_eq!(told(&w), [of_night, 0]);
    assert!(!w.path("store/_meta/untold.jsonl").exists());
    assert_same(&w.table_bytes(), &quiet.table_bytes(), "killed before it told");
}
