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
        "urls",
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
        .expect(2)
        .says("no snapshot 2024-01-09; there are 2024-01-01");
    // A slip of the pen is no failed night.
    let status = w.ratoon(&["status", "p.toml"]).expect(0);
    assert!(!status.stdout.contains("failed:"), "{}", status.stdout);
}

#[test]
fn what_is_not_there_is_answered_with_what_to_do() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>a")]);
    w.snapshot("2024-01-02", &[("a", "<p>a"), ("b", "<p>b")]);
    w.ratoon(&["inspect", "nowhere"]).expect(1).says("nothing is at nowhere; name a snapshot folder");
    w.ratoon(&["plan", "p.toml", "--explain", "--dry-run"]).expect(1).says("ratoon run p.toml");
    w.run();
    let b = "http://t.test/b";
    for command in ["verify", "audit"] {
        w.ratoon(&[command, "p.toml", "--snapshot", "2024-01-09"]).expect(2).says("there are 2024-01-01, 2024-01-02");
    }
    w.ratoon(&["run", "p.toml", "--backfill", "2024-01-09"]).expect(2).says("--backfill").says("there are 2024-01-01");
    w.ratoon(&["show", "p.toml", b, "--snapshot", "2024-01-01"])
        .expect(1)
        .says("ratoon urls p.toml WORDS --snapshot 2024-01-01");
    w.ratoon(&["try", "p.toml", "http://t.test/c"]).expect(1).says("ratoon urls p.toml WORDS");
    w.ratoon(&["urls", "p.toml", "nosuch"]).expect(0).says("no URL has `nosuch` in it");
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
}

#[test]
fn the_manual_has_the_pages_that_it_names() {
    let w = Workspace::new("");
    let manual = w.ratoon(&["man"]).expect(0).stdout.replace('\\', "");
    let first = manual.split(".TH").nth(1).unwrap();
    let named: Vec<&str> =
        first.split("ratoon-").skip(1).filter_map(|rest| rest.split_once("(1)")).map(|n| n.0).collect();
    assert!(named.contains(&"run") && named.contains(&"show"), "{named:?}");
    for name in &named {
        assert!(manual.contains(&format!(".TH ratoon-{name} ")), "no page ratoon-{name}");
    }
    let one = w.ratoon(&["man", "show"]).expect(0).stdout;
    assert_eq!(one.matches(".TH").count(), 1);
    assert!(one.contains("Examples"), "{one}");
    w.ratoon(&["man", "no-such"]).expect(2).says("no command 'no-such'");
    fs::create_dir(w.path("man1")).unwrap();
    w.ratoon(&["man", "--out", "man1"]).expect(0);
    assert!(named.iter().all(|name| w.path("man1").join(format!("ratoon-{name}.1")).exists()));
}

#[test]
fn help_ends_with_examples() {
    let w = Workspace::new("");
    for command in ["run", "ingest", "extract", "stats", "delta", "show", "urls"] {
        let help = w.ratoon(&["help", command]).expect(0).stdout;
        assert!(help.contains("Examples:\n  ratoon "), "{help}");
    }
}

#[test]
fn urls_are_listed_and_looked_for() {
    let w = Workspace::new("coverage = 'partial'");
    w.ratoon(&["urls", "p.toml"]).expect(1).says("ratoon run p.toml");
    w.snapshot("2024-01-01", &[("people/b", "<title>Bea</title><p>b"), ("people/a?x=1", "<p>a"), ("news", "<p>n")]);
    w.snapshot("2024-01-02", &[("news/2", "<p>n2")]);
    w.run();
    let urls = |args: &[&str]| w.ratoon(&[&["urls", "p.toml"], args].concat()).expect(0).stdout;
    let all =
        "http://site.test/news\nhttp://site.test/news/2\nhttp://site.test/people/a?x=1\nhttp://site.test/people/b\n";
    assert_eq!(urls(&[]), all);
    assert_eq!(urls(&["PEOPLE/"]), "http://site.test/people/a?x=1\nhttp://site.test/people/b\n");
    assert_eq!(urls(&["a?x"]), "http://site.test/people/a?x=1\n");
    assert_eq!(urls(&["*/news*"]), "http://site.test/news\nhttp://site.test/news/2\n");
    assert_eq!(urls(&["*/news"]), "http://site.test/news\n");
    assert_eq!(urls(&["nothing"]), "");
    assert_eq!(urls(&["news", "--snapshot", "2024-01-01"]), "http://site.test/news\n");
    assert!(urls(&["people/b", "-v"]).contains("Bea"));
    let json: serde_json::Value = serde_json::from_str(&urls(&["--json"])).unwrap();
    assert_eq!((json[3]["title"].as_str(), json[1]["change"].as_str()), (Some("Bea"), Some("added")));
    w.ratoon(&["urls", "p.toml", "--snapshot", "2024-01-09"]).expect(2).says("2024-01-09");
}

/// What is done is no reason to say nothing.
#[test]
fn stages_that_are_done_show_what_they_know() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>one"), ("b", "<p>b")]);
    w.snapshot("2024-01-02", &[("a", "<p>two"), ("b", "<p>b")]);
    w.run();
    for args in [&["delta", "p.toml"][..], &["delta", "p.toml", "--snapshot", "2024-01-02"]] {
        let delta = w.ratoon(args).expect(0).stdout;
        assert!(delta.contains("nothing to do") && delta.contains("http://site.test/a"), "{delta}");
        assert!(delta.contains("2024-01-01 to 2024-01-02:") && !delta.contains("http://site.test/b"), "{delta}");
    }
    let stats = w.ratoon(&["stats", "p.toml"]).expect(0).stdout;
    assert!(stats.contains("nothing to do") && stats.contains("http://site.test/a"), "{stats}");
    assert!(stats.contains("2 sources, 1 of them changed; 1 updates"), "{stats}");
    assert!(!stats.contains("http://site.test/b"), "{stats}");
    assert!(w.ratoon(&["stats", "p.toml", "-v"]).expect(0).stdout.contains("http://site.test/b"));
    for command in ["delta", "stats"] {
        assert_eq!(w.ratoon(&[command, "p.toml", "-q"]).expect(0).stdout, "");
        assert_eq!(w.ratoon(&[command, "p.toml", "--json"]).expect(0).stdout.lines().count(), 1);
    }
}

#[test]
fn page_and_pipeline_may_change_places() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>one")]);
    w.run();
    let shown = w.ratoon(&["show", "p.toml", "http://site.test/a"]).expect(0).stdout;
    assert_eq!(w.ratoon(&["show", "http://site.test/a", "p.toml"]).expect(0).stdout, shown);
    w.ratoon(&["show", "missing.toml", "http://site.test/a"]).expect(2).says("missing.toml");
    w.ratoon(&["show", "p.toml", "a"]).expect(2).says("a: ");
}

/// `status` and `delta` have the same words: a page that is back is not added.
#[test]
fn deleted_and_returned_pages_are_told_as_such() {
    let w = Workspace::new("");
    let (a, b) = (("a", "<p>one"), ("b", "<p>b"));
    w.snapshot("2024-01-01", &[a, b]);
    w.snapshot("2024-01-02", &[a]);
    w.run();
    let shown = w.ratoon(&["show", "p.toml", "http://site.test/b"]).expect(0).stdout;
    assert!(shown.contains("deleted   2024-01-02 (absent); this is its last version\n"), "{shown}");
    assert!(!w.ratoon(&["show", "p.toml", "http://site.test/a"]).expect(0).stdout.contains("last version"));
    w.ratoon(&["show", "p.toml", "http://site.test/c"]).expect(1).says("ratoon urls p.toml");
    w.snapshot("2024-01-03", &[a, b, ("c", "<p>c")]);
    w.run();
    let delta = w.ratoon(&["delta", "p.toml"]).expect(0).stdout;
    assert!(delta.contains("pages 1 added, 1 returned"), "{delta}");
    let status = w.ratoon(&["status", "p.toml", "--json"]).expect(0).stdout;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let counts = &status["snapshots"][2]["counts"];
    assert_eq!((counts["added"].as_u64(), counts["returned"].as_u64()), (Some(1), Some(1)), "{counts}");
}

#[test]
fn options_that_mean_nothing_are_refused_and_lines_of_a_talkative_run_have_times() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>one")]);
    let told = w.ratoon(&["run", "p.toml", "-vv"]).expect(0).stderr;
    let is_timed = |line: &str| line.get(..24).is_some_and(|time| time.contains('T') && time.ends_with('Z'));
    assert!(!told.is_empty() && told.lines().all(is_timed), "{told}");
    w.ratoon(&["urls", "p.toml", "--dry-run"]).expect(2).says("`ratoon urls` has no --dry-run");
    w.ratoon(&["--force", "sql", "p.toml", "select 1"]).expect(2).says("`ratoon sql` has no --force");
    let help = w.ratoon(&["urls", "--help"]).expect(0).stdout;
    assert!(!help.contains("--strict") && help.contains("--json"), "{help}");
    w.ratoon(&["--force", "run", "p.toml", "--strict"]).expect(0);
}

/// `folder/..` says nothing to people; behind a link it does.
#[test]
fn paths_are_shown_as_people_write_them() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>one")]);
    fs::create_dir_all(w.path("deep/pipelines")).unwrap();
    std::os::unix::fs::symlink("deep/pipelines", w.path("linked")).unwrap();
    let text = |store: &str| format!("[corpus]\nsnapshots = '{}'\nstore = '{store}'\n", w.path("snapshots").display());
    fs::write(w.path("deep/pipelines/p.toml"), text("../out")).unwrap();
    let told = w.ratoon(&["run", "deep/pipelines/p.toml"]).expect(0).stdout;
    assert!(told.contains("tables in deep/out\n"), "{told}");
    let told = w.ratoon(&["run", "linked/p.toml"]).expect(0).stdout;
    assert!(told.contains("nothing to do") && told.contains("linked/../out"), "{told}");
    assert!(!w.path("out").exists(), "behind a link it is the same store");
}

#[test]
fn every_pipeline_of_the_project_runs_on_its_sample_data() {
    for entry in fs::read_dir(project().join("pipelines")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let w = Workspace::sample(path.file_stem().unwrap().to_str().unwrap());
        w.run();
        let status = w.ratoon(&["status", "p.toml"]).expect(0).stdout;
        assert!(status.contains("none waiting"), "{}: {status}", path.display());
    }
}

/// What a newcomer does wrong first is told with what to do about it.
#[test]
fn first_mistakes_are_told_with_a_way_out() {
    let w = Workspace::new("");
    fs::remove_dir_all(w.path("snapshots")).unwrap();
    w.ratoon(&["run", "p.toml"]).expect(1).says("there is no folder snapshots; make it").says("snapshots/2024-03-01");
    w.snapshot("2024-01-01", &[("a/x.html", "<p>one</p>")]);
    // A folder that is no night, but of today.
    fs::create_dir_all(w.path("snapshots/copy/site.test/a")).unwrap();
    fs::write(w.path("snapshots/copy/site.test/a/x.html"), "<p>one</p>").unwrap();
    w.run();
    for command in ["show", "try"] {
        w.ratoon(&[command, "p.toml", "x.html"]).expect(2).says("`ratoon urls p.toml 'x.html'`");
    }
    fs::remove_dir_all(w.path("snapshots/copy")).unwrap();
    w.snapshot("2024-01-02", &[("a/x.html", "<p>two</p>")]);
    w.ratoon(&["run", "p.toml"]).expect(1).says("`ratoon drop p.toml --snapshot copy` takes that one out");
    let status = w.ratoon(&["status", "p.toml"]).expect(0).stdout;
    assert!(status.contains("which is done; `ratoon run p.toml --force"), "{status}");
    w.ratoon(&["drop", "p.toml", "--snapshot", "copy"]).expect(0);
    w.run();
}
