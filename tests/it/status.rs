//! `status`: what is done, and what the next run would do.

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
fn what_a_forced_stage_dropped_waits_and_is_said_to() {
    let w = site(WORDS);
    w.run();
    let (text, done) = status(&w);
    assert_eq!(last_lines(&text, 1), ["2 snapshots done, none waiting"]);
    assert_eq!((&done["unfinished"], &done["waiting"]), (&json!([]), &json!([])));

    let forced = w.ratoon(&["extract", "p.toml", "--force", "--snapshot", "2024-03-02"]).expect(0).stdout;
    assert!(forced.contains("\ndelta waits; `ratoon run p.toml` does it\n"), "{forced}");
    let (text, waiting) = status(&w);
    assert_eq!(last_lines(&text, 2), ["2024-03-02: delta not done", "1 snapshots done, 1 unfinished, none waiting"]);
    assert_eq!(waiting["unfinished"], json!([{"snapshot": "2024-03-02", "stages": ["delta"]}]));
    assert_eq!(waiting["waiting"], json!([]));
    let keys = |status: &Value| status.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&waiting), ["snapshots", "store", "unfinished", "waiting"]);

    let forced = w.ratoon(&["match", "p.toml", "--force", "-q", "--json"]).expect(0).stdout;
    let summary: Value = serde_json::from_str(&forced).unwrap();
    assert_eq!(summary["waiting"], json!(["extract", "delta", "stats", "schedule"]));
    let (text, _) = status(&w);
    assert_eq!(
        last_lines(&text, 3),
        [
            "2024-03-01: extract, delta, stats, schedule not done",
            "2024-03-02: extract, delta, stats, schedule not done",
            "0 snapshots done, 2 unfinished, none waiting"
        ]
    );
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
        ["2024-03-01: extract, delta, stats, schedule not done", "0 snapshots done, 1 unfinished, waiting: 2024-03-02"]
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
    assert!(text.contains("\n2024-03-02: extract not done\n"), "{text}");
    assert_eq!(json["unfinished"][0]["stages"], json!(steps));
}
