//! The command line itself.

use std::fs;

use crate::workspace::{Workspace, project};

#[test]
fn help_names_what_there_is_and_nothing_else() {
    let w = Workspace::new("");
    let help = w.ratoon(&["--help"]).expect(0).stdout;
    for command in [
        "run",
        "ingest",
        "match",
        "extract",
        "stats",
        "schedule",
        "simulate",
        "show",
        "inspect",
        "status",
        "export",
        "prune",
        "synth",
        "tables",
        "init",
        "completions",
        "man",
    ] {
        assert!(help.contains(&format!("  {command} ")), "{command} is not in {help}");
    }
}

#[test]
fn usage_errors_exit_with_2() {
    let w = Workspace::new("ignor = []");
    w.ratoon(&["run"]).expect(2);
    w.ratoon(&["frobnicate"]).expect(2);
    w.ratoon(&["run", "p.toml", "--threads", "0"]).expect(2);
    w.ratoon(&["run", "p.toml"]).expect(2).says("p.toml:4:1: unknown key `ignor`").says("did you mean `ignore`?");
    w.ratoon(&["run", "missing.toml"]).expect(2).says("missing.toml").says("ratoon init");
}

#[test]
fn an_unknown_snapshot_is_answered_with_the_known_ones() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>a")]);
    w.ratoon(&["run", "p.toml", "--snapshot", "2024-01-09"])
        .expect(1)
        .says("no snapshot 2024-01-09; there are 2024-01-01");
}

#[test]
fn init_writes_a_pipeline_that_runs() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>a")]);
    w.ratoon(&["init", "new.toml"]).expect(0);
    w.ratoon(&["init", "new.toml"]).expect(2).says("--force overwrites");
    w.ratoon(&["run", "new.toml"]).expect(0);
}

#[test]
fn quiet_prints_nothing_and_json_prints_one_object() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>a")]);
    let quiet = w.ratoon(&["run", "p.toml", "-q"]).expect(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    let json = w.ratoon(&["status", "p.toml", "--json"]).expect(0);
    let status: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(status["snapshots"][0]["counts"]["pages"], 1);
    assert_eq!(json.stdout.lines().count(), 1);
}

#[test]
fn every_table_and_column_is_in_the_reference() {
    let w = Workspace::new("");
    let text = w.ratoon(&["tables"]).expect(0).stdout;
    for table in ratoon::inside::tables::all() {
        assert!(text.contains(&format!("## {}", table.name)));
        for column in table.columns {
            assert!(text.contains(&format!("| {} | ", column.name)), "{}.{}", table.name, column.name);
        }
    }
}

#[test]
fn completions_and_manual_come_out() {
    let w = Workspace::new("");
    assert!(w.ratoon(&["completions", "bash"]).expect(0).stdout.contains("_ratoon"));
    assert!(w.ratoon(&["man"]).expect(0).stdout.contains(".TH ratoon"));
}

#[test]
fn every_pipeline_of_the_project_runs_on_its_sample_data() {
    for entry in fs::read_dir(project().join("pipelines")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let w = Workspace::new("");
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let text = text
            .replace("\"../", &format!("\"{}/", project().display()))
            .replace(&format!("\"{}/out/{name}\"", project().display()), "\"store\"");
        let topics = format!("\"{}/pipelines/topics.txt\"", project().display());
        let text = text.replace("\"topics.txt\"", &topics);
        fs::write(w.path("p.toml"), text).unwrap();
        w.run();
        let status = w.ratoon(&["status", "p.toml"]).expect(0).stdout;
        assert!(status.contains("none waiting"), "{}: {status}", path.display());
    }
}
