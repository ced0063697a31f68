//! `status`: what is done, and what the next run would do.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::workspace::{Workspace, html};

const WORDS: &str = "[[extractor]]\nname = 'word'\nkind = 'regex'\npattern = '\\b[a-z]{4,9}\\b'\n";

fn site(settings: &str) -> Workspace {
    let w = Workspace::new(settings);
    for night in ["2024-03-01", "2024-03-02"] {
        w.snapshot(night, &[("a", &html("A", &format!("some words of {night}"), "b")), ("b", &html("B", "more", "a"))]);
    }
    w
}

fn status(w: &Workspace) -> (String, Value) {
    let text = w.ratoon(&["status", "p.toml"]).expect(0).stdout;
    let json = w.ratoon(&["status", "p.toml", "--json"]).expect(0).stdout;
    (text, serde_json::from_str(&json).unwrap())
}

/// The lines below the table.
fn last_lines(text: &str, n: usize) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len() - n..].to_vec()
}

#[test]
fn what_is_out_of_date_waits_and_is_said_to() {
    let w = site(WORDS);
    w.run();
    let (text, done) = status(&w);
    assert_eq!(last_lines(&text, 1), ["2 snapshots done, none waiting"]);
    assert_eq!((&done["unfinished"], &done["waiting"]), (&json!([]), &json!([])));

    // What comes out the same leaves nothing out of date.
    let forced = w.ratoon(&["match", "p.toml", "--force"]).expect(0).stdout;
    assert!(!forced.contains("wait"), "{forced}");
    w.pipeline(&WORDS.replace("4,9", "4,8"));
    let changed = w.ratoon(&["extract", "p.toml"]).expect(0).stdout;
    assert!(changed.contains("\ndelta, close wait; `ratoon run p.toml` does them\n"), "{changed}");
    let (text, waiting) = status(&w);
    assert_eq!(
        last_lines(&text, 2),
        ["2024-03-02: delta, close not done", "1 snapshots done, 1 unfinished, none waiting"]
    );
    assert_eq!(waiting["unfinished"], json!([{"snapshot": "2024-03-02", "stages": ["delta", "close"]}]));
    assert_eq!(waiting["waiting"], json!([]));
    let keys = |status: &Value| status.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&waiting), ["last_run", "open_windows", "problems", "snapshots", "store", "unfinished", "waiting"]);
    let summary = w.ratoon(&["extract", "p.toml", "-q", "--json"]).expect(0).stdout;
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["waiting"], json!(["delta", "close"]));
    assert!(!w.run().stdout.contains("wait"));
    assert_eq!(status(&w).1["unfinished"], json!([]));
}

#[test]
fn a_failed_stage_and_new_snapshots_are_told_apart() {
    let broken = "[[extractor]]\nname = 'gone'\nkind = 'command'\ncommand = ['./no-such-program']\nunit = 'page'\n";
    let w = site(broken);
    let (text, _) = status(&w);
    assert_eq!(last_lines(&text, 1), ["0 snapshots done, waiting: 2024-03-01, 2024-03-02"]);
    w.ratoon(&["run", "p.toml"]).expect(1);
    let (text, json) = status(&w);
    assert_eq!(
        last_lines(&text, 2),
        [
            "2024-03-01: extract, delta, stats, schedule, close not done",
            "0 snapshots done, 1 unfinished, waiting: 2024-03-02"
        ]
    );
    assert_eq!(json["waiting"], json!(["2024-03-02"]));
}

/// What is edited in the pipeline file waits for the newest snapshot, as `run` would do it.
#[test]
fn an_edited_extractor_waits() {
    let w = site(WORDS);
    w.run();
    w.pipeline(&WORDS.replace("4,9", "4,8"));
    let would: Value =
        serde_json::from_str(&w.ratoon(&["run", "p.toml", "--dry-run", "--json"]).expect(0).stdout).unwrap();
    let steps: Vec<&Value> = would["done"].as_array().unwrap().iter().map(|step| &step["stage"]).collect();
    let (text, json) = status(&w);
    assert!(text.contains("\n2024-03-02: extract, delta, close not done\n"), "{text}");
    assert_eq!(json["unfinished"][0]["stages"], json!(steps));
}

/// A run that is under way, one that was killed, and one that goes on.
#[test]
fn a_killed_run_is_told_until_another_goes_on() {
    let w = site(WORDS);
    w.run();
    assert!(status(&w).1["under_way"].is_null());
    // A worker that never introduces itself, and ends with us.
    w.pipeline(&format!(
        "{WORDS}[[extractor]]\nname = 'slow'\nkind = 'command'\ncommand = ['sh', '-c', 'cat > got']\n"
    ));
    let mut run = w.command(&["run", "p.toml"]).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + Duration::from_mins(1);
    while !w.path("got").exists() {
        assert!(Instant::now() < until, "the worker starts");
        thread::sleep(Duration::from_millis(20));
    }
    let (text, json) = status(&w);
    assert!(text.contains("a run is under way since ") && json["under_way"]["is_alive"] == true, "{text}");
    run.kill().unwrap();
    run.wait().unwrap();
    let (text, json) = status(&w);
    assert!(text.contains("was interrupted; the next one goes on where it stopped"), "{text}");
    assert_eq!(json["under_way"]["is_alive"], false);
    w.pipeline(WORDS);
    w.ratoon(&["run", "p.toml"]).expect(0).says("was interrupted; this one goes on where it stopped");
    assert!(!w.ratoon(&["run", "p.toml"]).expect(0).stderr.contains("interrupted"));
    assert!(status(&w).1["under_way"].is_null());
}
