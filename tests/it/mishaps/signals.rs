//! Signals, clocks, and folders that change after they were read.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{SECTIONS, assert_same, by_way_of, follow, named_commands, nights, page, write_night};
use crate::word_worker;
use crate::workspace::{Ended, Workspace};

/// Exit codes as a shell sees them: 128 and the signal's number.
#[test]
fn who_is_asked_to_end_ends_as_others_do_and_the_next_run_goes_on() {
    let quiet = nights(SECTIONS, 3);
    quiet.run();
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let w = word_worker::workspace("", "");
        // A worker that never answers keeps the run at work.
        fs::write(w.path("worker.py"), "import sys, time\nopen('started', 'w').close()\ntime.sleep(1000)\n").unwrap();
        (1..=2).for_each(|night| write_night(&w, night));
        let ratoon = env!("CARGO_BIN_EXE_ratoon");
        let script = format!("(echo $BASHPID > id; exec '{ratoon}' run p.toml -q); echo $? > code");
        let mut shell = Command::new("env");
        shell.args(["--default-signal=HUP,INT,TERM", "bash", "-c", &script]).current_dir(w.path(""));
        let mut shell = shell.spawn().unwrap();
        let until = Instant::now() + Duration::from_mins(1);
        while !w.path("started").exists() {
            assert!(Instant::now() < until, "the worker does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        let id = fs::read_to_string(w.path("id")).unwrap();
        assert!(Command::new("kill").args(["-s", signal, id.trim()]).status().unwrap().success());
        shell.wait().unwrap();
        assert_eq!(fs::read_to_string(w.path("code")).unwrap().trim(), code.to_string(), "{signal}");
        w.ratoon(&["status", "p.toml", "--check"]).expect(1).says("not done");
        w.pipeline(SECTIONS);
        write_night(&w, 3);
        w.run();
        assert_same(&w.table_bytes(), &quiet.table_bytes(), signal);
    }
}

/// No table depends on what the clock says: nights that are run in a far year, then in an earlier one.
#[test]
#[ignore = "needs faketime: make test provides it"]
fn a_clock_that_jumps_changes_nothing() {
    let quiet = nights(SECTIONS, 3);
    quiet.run();
    let w = Workspace::new(SECTIONS);
    for (night, clock) in [(1, "@2024-01-01 04:00:00"), (2, "@2031-05-05 04:00:00"), (3, "@1999-12-31 23:59:58")] {
        write_night(&w, night);
        let run = by_way_of(&["faketime", "-f", clock], &w, &["run", "p.toml", "-q"]).output().unwrap();
        assert_eq!(Ended::of(&run).expect(0).stderr, "");
        let status = by_way_of(&["faketime", "-f", clock], &w, &["status", "p.toml", "--json"]).output().unwrap();
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
        assert!(status["last_run"]["start"].as_str().unwrap().starts_with(&clock[1..5]), "the clock was believed");
    }
    assert_same(&w.table_bytes(), &quiet.table_bytes(), "clocks");
    w.run();
    // What lies in the future is not old.
    w.ratoon(&["status", "p.toml", "--check"]).expect(0);
}

/// A folder that is edited after it was read is told by every run until it is done again or is as it was.
#[test]
fn a_folder_that_changes_after_it_was_read_is_told_with_the_command() {
    for (night, file) in [(2, "3.html"), (3, "manifest.jsonl"), (1, "7.html")] {
        let w = nights(SECTIONS, 3);
        w.run();
        let before = w.table_bytes();
        let path = w.snapshot_dir(&super::day(night)).join(file);
        let sound = fs::read(&path).unwrap();
        let edited = match file {
            "manifest.jsonl" => sound.split_inclusive(|byte| *byte == b'\n').skip(1).collect::<Vec<_>>().concat(),
            _ => page(3, 99).into_bytes(),
        };
        fs::write(&path, &edited).unwrap();
        let said = w.ratoon(&["run", "p.toml", "-q"]).expect(0).stderr;
        assert!(said.contains("changed since it was ingested") && said.lines().count() == 1, "{said}");
        assert_same(&w.table_bytes(), &before, "nothing is taken from it unasked");
        let commands = named_commands(&said);
        assert_eq!(commands.len(), 1, "{said}");
        follow(&w, &commands[0]).expect(0);
        assert_eq!(w.ratoon(&["run", "p.toml", "-q"]).expect(0).stderr, "", "it is told no more");
        let quiet = nights(SECTIONS, 3);
        fs::write(quiet.snapshot_dir(&super::day(night)).join(file), &edited).unwrap();
        quiet.run();
        assert_same(&w.table_bytes(), &quiet.table_bytes(), file);
    }
}
