//! Nights that nobody watches: what is told, to whom, and what monitoring sees.

use std::fs;

use ratoon::inside::tables::schedule::ScheduleRow;
use serde_json::Value;

use crate::workspace::{Workspace, html};

fn with_reject(w: &Workspace, day: &str) {
    w.snapshot(day, &[("a", "<p>a")]);
    let manifest = w.snapshot_dir(day).join("manifest.jsonl");
    fs::write(&manifest, fs::read_to_string(&manifest).unwrap() + "rubbish\n").unwrap();
}

fn told(w: &Workspace) -> Vec<Value> {
    let lines = fs::read_to_string(w.path("told")).unwrap_or_default();
    let _ = fs::remove_file(w.path("told"));
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// U4: monitoring is told in one line what is not in order.
#[test]
fn check_says_in_one_line_what_is_not_in_order() {
    let extractor = "[[extractor]]\nname = 'x'\nkind = 'command'\ncommand = ['no-such-program']\nscope = 9\n";
    let w = Workspace::new(extractor);
    let check = |code: i32, words: &str| {
        let ended = w.ratoon(&["status", "p.toml", "--check", "-q"]).expect(code);
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
        assert_eq!(ended.stderr.lines().count(), usize::from(code > 0), "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    };
    w.snapshot("2024-01-01", &[("a", "<p>a")]);
    check(1, "snapshot 2024-01-01 is not done");
    w.ratoon(&["run", "p.toml", "-q"]).expect(1);
    check(1, "snapshot 2024-01-01: extract, delta, stats, schedule, close not done");
    let status = w.ratoon(&["status", "p.toml"]).expect(0).stdout;
    assert!(
        status.contains("not done") && status.contains("failed (exit 1): snapshot 2024-01-01: extractor 'x'"),
        "{status}"
    );
    w.pipeline("");
    w.run();
    check(0, "");
    w.ratoon(&["status", "p.toml", "--check", "--max-age", "26h"]).expect(1).says("2024-01-01 is the newest");
    w.ratoon(&["status", "p.toml", "--check", "--max-age", "26"]).expect(2).says("no duration");
    with_reject(&w, "2024-01-02");
    w.ratoon(&["run", "p.toml", "-q"]).expect(3);
    check(1, "snapshot 2024-01-02: 1 rejects beside 1 captures");
    let json: Value = serde_json::from_str(&w.ratoon(&["status", "p.toml", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(json["last_run"]["exit_code"], 3);
    assert_eq!(json["snapshots"][1]["deferred"], 0);
    w.snapshot("2024-01-03", &[("a", "<p>a")]);
    w.run();
    check(0, "");
}

/// A program is told how a run went, and monitoring finds numbers, also where it failed.
#[test]
fn a_program_is_told_how_a_run_went() {
    let w = Workspace::new("");
    let pipeline = |command: &str, more: &str| {
        w.pipeline(&format!(
            "[notify]\ncommand = ['sh', '-c', '{command}']\non = ['start', 'success', 'problem', 'failure']\nmetrics = 'm/ratoon.prom'\ntimeout = '1s'\n{more}"
        ));
    };
    let metrics = || fs::read_to_string(w.path("m/ratoon.prom")).unwrap();
    pipeline("cat >> told", "");
    w.snapshot("2024-01-01", &[("a", "<p>a")]);
    w.ratoon(&["run", "p.toml", "--dry-run"]).expect(0);
    assert!(told(&w).is_empty() && !w.path("m").exists(), "a dry run tells nobody");
    w.run();
    let events = told(&w);
    assert_eq!([&events[0]["event"], &events[1]["event"]], ["start", "success"]);
    assert_eq!(events[1]["summary"]["snapshots"], 1);
    assert!(metrics().contains("ratoon_last_run_exit_code{pipeline=\"p.toml\"} 0\n"), "{}", metrics());
    assert!(metrics().contains("ratoon_newest_snapshot_pages{pipeline=\"p.toml\"} 1\n"), "{}", metrics());
    with_reject(&w, "2024-01-02");
    w.ratoon(&["run", "p.toml", "-q"]).expect(3);
    let events = told(&w);
    assert_eq!(events[1]["event"], "problem");
    assert_eq!(events[1]["summary"]["problems"][0]["kind"], "rejects");
    assert!(metrics().contains("ratoon_last_run_problems{pipeline=\"p.toml\",kind=\"rejects\"} 1\n"), "{}", metrics());
    w.snapshot("2024-01-03", &[("a", "<p>a")]);
    pipeline("cat >> told", "[[extractor]]\nname = 'x'\nkind = 'command'\ncommand = ['no-such-program']\nscope = 9\n");
    w.ratoon(&["run", "p.toml", "-q"]).expect(1);
    let events = told(&w);
    assert_eq!(events[1]["event"], "failure");
    assert!(events[1]["summary"]["error"].as_str().unwrap().contains("no-such-program"), "{}", events[1]);
    assert!(metrics().contains("ratoon_last_run_exit_code{pipeline=\"p.toml\"} 1\n"), "{}", metrics());
    for command in ["exit 7", "sleep 60"] {
        pipeline(command, "");
        w.ratoon(&["run", "p.toml", "-q", "--force"]).expect(3).says("[notify] command 'sh'");
    }
    assert_eq!(fs::read_dir(w.path("m")).unwrap().count(), 1, "nothing is left of writing");
    w.pipeline("[notify]\non = ['sometimes']\n");
    w.ratoon(&["run", "p.toml"]).expect(2).says("unknown value `sometimes`");
}

/// U9: an edit is said once, with what it affects and from when.
#[test]
fn edits_are_said_once_and_what_they_affect() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", &html("a", "one", "b")), ("b", &html("b", "two", "a"))]);
    w.snapshot("2024-01-02", &[("a", &html("a", "three", "b")), ("b", &html("b", "two", "a"))]);
    w.run();
    let edited = |text: &str, said: &[&str]| {
        w.pipeline(text);
        let ended = w.ratoon(&["run", "p.toml", "-q"]).expect(0);
        assert_eq!(ended.stderr.lines().count(), said.len(), "{text}: {}", ended.stderr);
        said.iter().for_each(|words| assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr));
        assert!(w.ratoon(&["run", "p.toml", "-q"]).expect(0).stderr.is_empty(), "it is said once");
    };
    edited("ignore = ['[0-9]+']\n", &["`ignore` was edited: from the next snapshot on"]);
    edited("coverage = 'partial'\n", &["`ignore`", "`coverage` is partial now, it was full: it holds from the next"]);
    edited("time_zone = 'Europe/Berlin'\n", &["`coverage`", "`time_zone` is Europe/Berlin now, it was UTC"]);
    edited("", &["`time_zone`"]);
    let polls = || w.rows::<ScheduleRow>("2024-01-02").iter().map(|row| row.poll_times.len()).max().unwrap_or(0);
    let before = polls();
    edited("[schedule]\npolls = 7\n", &["[schedule] was edited: it is applied to 2024-01-02 now"]);
    assert_eq!((before, polls()), (before, 7), "it is applied at once");
    edited(
        "time_zone = 'Asia/Tokyo'\n[schedule]\npolls = 5\n",
        &["`time_zone` is Asia/Tokyo", "[schedule] was edited"],
    );
    edited("[schedule]\npolls = 7\n", &["`time_zone` is UTC", "[schedule] was edited"]);
    let query = "[[query]]\nname = 'q'\nnodes.x = { title = 'a' }\nlinks = ['x -> y']\n";
    edited(query, &["[schedule]", "query 'q' is new: it is asked of 2024-01-02 now"]);
    edited(&query.replace("'a'", "'b'"), &["query 'q' was edited: it is asked again of 2024-01-02"]);
    edited("", &["query 'q' is gone"]);
}

/// X7: a worker that has become another redoes the newest snapshot, whether it says so or its files do.
#[test]
fn a_worker_that_has_become_another_is_noticed() {
    let worker = |fingerprint: &str, pattern: &str| {
        format!(
            r#"
import json, re, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        print(json.dumps({{"name": "w", "fingerprint": open("print").read(), "unit": "line"}}), flush=True)
        continue
    found = [{{"start": m.start(), "end": m.end()}} for m in re.finditer({pattern:?}, request["text"])]
    print(json.dumps({{"id": request["id"], "mentions": found}}), flush=True)
# {fingerprint}
"#
        )
    };
    let w =
        Workspace::new("[[extractor]]\nname = 'w'\nkind = 'command'\ncommand = ['python3', 'w.py']\nunit = 'line'\n");
    let mentions = || {
        let json: Value = serde_json::from_str(&w.ratoon(&["run", "p.toml", "--json", "-q"]).expect(0).stdout).unwrap();
        let of = |step: &&Value| step["stage"] == "extract";
        json["done"].as_array().unwrap().iter().find(of).map(|step| step["tables"]["mentions/w"].as_u64().unwrap())
    };
    for stated in ["", "v1"] {
        fs::write(w.path("print"), stated).unwrap();
        fs::write(w.path("w.py"), worker(stated, "[A-Z]")).unwrap();
        let day = if stated.is_empty() { "2024-01-01" } else { "2024-01-02" };
        w.snapshot(day, &[("a", "<p>One Two three</p>")]);
        assert_eq!(mentions(), Some(2));
        assert_eq!(mentions(), None, "nothing is to be done");
        fs::write(w.path("w.py"), worker(stated, "[A-Za-z]+")).unwrap();
        if stated.is_empty() {
            assert_eq!(mentions(), Some(3), "its script is named in the arguments");
        } else {
            assert_eq!(mentions(), Some(2), "what it says of itself counts: it says that it is the same");
            fs::write(w.path("print"), "v2").unwrap();
            assert_eq!(mentions(), Some(3), "it says that it is another");
        }
        assert_eq!(mentions(), None);
        w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
    }
}

const EXTRACTORS: &str =
    "[plan]\nchoose = 'anchor'\n[[extractor]]\nname = 'word'\nkind = 'regex'\npattern = '[A-Z][a-z]+'\n";

/// Three nights, of which the second and third change something.
fn three_nights() -> Workspace {
    let w = Workspace::new(EXTRACTORS);
    let page = |day: usize, i: usize| {
        let news = if i % 4 == day { format!("News of day {day} on page {i}") } else { "Nothing New".to_owned() };
        html(
            &format!("Page {i}"),
            &format!("{news}</p><p>A line that stays on page {i}"),
            &format!("p{}", (i + 1) % 20),
        )
    };
    for day in 1..=3 {
        let pages: Vec<(String, String)> = (0..20).map(|i| (format!("p{i}"), page(day, i))).collect();
        let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
        w.snapshot(&format!("2024-01-0{day}"), &pages);
    }
    w.run();
    w
}

/// F12: whatever byte of a store goes bad, or which file is gone, it is named, and repaired to the last byte.
#[test]
fn what_goes_bad_is_named_and_repaired() {
    let w = three_nights();
    let before = w.table_bytes();
    w.ratoon(&["check", "p.toml"]).expect(0);
    let measured = |path: &std::path::Path| ["plans", "plan_costs"].iter().any(|table| path.starts_with(table));
    let files: Vec<_> = before.iter().map(|(path, _)| path.clone()).filter(|path| !measured(path)).collect();
    assert!(files.len() > 20, "{files:?}");
    for (i, path) in files.iter().enumerate() {
        let file = w.path("store").join(path);
        let mut bytes = fs::read(&file).unwrap();
        if i % 5 == 4 {
            fs::remove_dir_all(file.parent().unwrap()).unwrap();
        } else {
            let at = (i * 7919) % bytes.len();
            bytes[at] ^= 1 << (i % 8);
            fs::write(&file, bytes).unwrap();
        }
    }
    let said = w.ratoon(&["check", "p.toml"]).expect(1).stdout;
    assert_eq!(said.matches("`ratoon check p.toml --repair` repairs it").count(), files.len(), "{said}");
    assert!(said.contains(": missing; ") && said.contains(": damaged; "), "{said}");
    let json: Value = serde_json::from_str(&w.ratoon(&["check", "p.toml", "--json"]).expect(1).stdout).unwrap();
    assert_eq!(json["harmed"].as_array().unwrap().len(), files.len());
    let parts = (1..=3).map(|k| {
        let ended = w.ratoon(&["check", "p.toml", "--json", "--subset", &format!("{k}/3")]);
        serde_json::from_str::<Value>(&ended.stdout).unwrap()["harmed"].as_array().unwrap().len()
    });
    assert_eq!(parts.sum::<usize>(), files.len(), "every file is in one part");
    let repaired = w.ratoon(&["check", "p.toml", "--repair"]).expect(0).stdout;
    assert!(repaired.contains("has been made again"), "{repaired}");
    w.ratoon(&["check", "p.toml"]).expect(0);
    assert!(w.table_bytes() == before, "all is as it was");
    assert!(w.run().stdout.contains("nothing to do"));
    w.ratoon(&["check", "p.toml", "--subset", "4/3"]).expect(2);
}

/// F12: a run believes nothing that went bad, and says of files that are gone.
#[test]
fn a_run_reads_nothing_that_went_bad() {
    let w = three_nights();
    let next = |day: &str| {
        w.snapshot(day, &[("p1", &html("Page 1", "Other News", "p2")), ("p2", &html("Page 2", "New", "p1"))]);
    };
    let sound = w.path("sound");
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        let _ = fs::remove_dir_all(to);
        let cp = std::process::Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
        assert!(cp.success());
    };
    w.pipeline(&format!("coverage = 'partial'\n{EXTRACTORS}"));
    w.run();
    copy(&w.path("store"), &sound);
    next("2024-01-04");
    w.run();
    let expected = w.table_bytes();
    for table in ["pages", "links", "mentions/word", "extractions"] {
        for (i, day) in ["2024-01-01", "2024-01-03"].into_iter().enumerate() {
            copy(&sound, &w.path("store"));
            // The index is made again, so that tables are read.
            fs::remove_dir_all(w.path("store/_meta/index")).unwrap();
            let file = w.path(&format!("store/{table}/snapshot={day}/part-00000.parquet"));
            let mut bytes = fs::read(&file).unwrap();
            let at = if i == 0 { bytes.len() / 3 } else { bytes.len() - 40 };
            bytes[at] ^= 8;
            fs::write(&file, bytes).unwrap();
            let ended = w.ratoon(&["run", "p.toml", "-q"]);
            if ended.code == 0 {
                let now: Vec<_> =
                    w.table_bytes().into_iter().filter(|(path, _)| !w.path("store").join(path).eq(&file)).collect();
                let then: Vec<_> =
                    expected.iter().filter(|(path, _)| !w.path("store").join(path).eq(&file)).cloned().collect();
                assert!(now == then, "{table} {day}: not read, so nothing came of it");
            } else {
                assert!(ended.stderr.contains("not what was written"), "{table} {day}: {}", ended.stderr);
            }
        }
    }
    copy(&sound, &w.path("store"));
    fs::remove_dir_all(w.path("store/region_deltas/snapshot=2024-01-02")).unwrap();
    w.ratoon(&["run", "p.toml", "-q"])
        .says("1 files of the store are missing, the first is region_deltas of 2024-01-02");
}

/// SQL is answered by another reader, which would believe what damage says.
#[test]
fn sql_answers_nothing_from_what_went_bad() {
    let w = three_nights();
    w.pipeline(&format!("coverage = 'partial'\n{EXTRACTORS}"));
    w.run();
    let ask = ["sql", "p.toml", "select * from pages_all"];
    let file = w.path("store/pages/snapshot=2024-01-01/part-00000.parquet");
    let sound = fs::read(&file).unwrap();
    let expected = w.ratoon(&ask).expect(0).stdout;
    for at in (4..sound.len()).step_by(97) {
        let mut bytes = sound.clone();
        bytes[at] ^= 8;
        fs::write(&file, bytes).unwrap();
        let asked = w.ratoon(&ask);
        let told = asked.code == 1 && asked.stderr.contains("not what was written");
        assert!(told || asked.code == 0 && asked.stdout == expected, "{at}: {} {}", asked.code, asked.stderr);
    }
}

/// Some pages are looked at again after each run, going on from run to run; a difference fails the run by name.
#[test]
fn some_pages_are_verified_after_each_run() {
    let w = Workspace::new(EXTRACTORS);
    let night = |day: u32| {
        let pages: Vec<(String, String)> =
            (0..40).map(|i| (format!("p{i}"), html("P", &format!("Page {i} Day {}", day / 10), "x"))).collect();
        let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
        w.snapshot(&format!("2024-01-{day:02}"), &pages);
    };
    let verified = || {
        let runs = fs::read_to_string(w.path("store/_meta/runs.jsonl")).unwrap();
        serde_json::from_str::<Value>(runs.lines().last().unwrap()).unwrap()["verified"].clone()
    };
    let (mut pages, mut places) = (0, std::collections::BTreeSet::new());
    for day in 1..=12 {
        night(day);
        w.run();
        let part = verified();
        pages += part["pages"].as_u64().unwrap();
        places.insert((part["shard"].as_u64().unwrap(), part["after"].as_str().map(str::to_owned)));
        assert_eq!(part["different"], serde_json::json!([]));
    }
    assert!(pages > 0 && places.len() > 1, "{pages} pages, up to {places:?}");
    w.pipeline(&format!("{EXTRACTORS}[verify]\nnightly = 'off'\n"));
    night(13);
    w.run();
    assert_eq!(verified(), Value::Null);
    w.pipeline("[verify]\nnightly = 'often'\n");
    w.ratoon(&["run", "p.toml"]).expect(2).says("`nightly` of [verify] is no part");
}

/// A worker that has become another and says that it has not is found out.
#[test]
fn a_difference_fails_the_run_and_names_the_extractor() {
    let worker = r#"
import json, re, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        print(json.dumps({"name": "w", "fingerprint": "always the same", "unit": "line"}), flush=True)
        continue
    found = [{"start": m.start(), "end": m.end()} for m in re.finditer(open("pattern").read(), request["text"])]
    print(json.dumps({"id": request["id"], "mentions": found}), flush=True)
"#;
    let w =
        Workspace::new("[[extractor]]\nname = 'w'\nkind = 'command'\ncommand = ['python3', 'w.py']\nunit = 'line'\n");
    fs::write(w.path("w.py"), worker).unwrap();
    fs::write(w.path("pattern"), "[A-Z]").unwrap();
    w.snapshot("2024-01-01", &[("a", "<p>One Two three</p>")]);
    w.run();
    // Enough nights to pay for starting the worker.
    let runs = w.path("store/_meta/runs.jsonl");
    let saved_up = fs::read_to_string(&runs).unwrap() + "{\"verified\": {\"credit\": 500.0}}\n";
    fs::write(&runs, &saved_up).unwrap();
    w.snapshot("2024-01-02", &[("a", "<p>One Two three</p>")]);
    w.run();
    fs::write(&runs, &saved_up).unwrap();
    fs::write(w.path("pattern"), "[a-z]").unwrap();
    w.snapshot("2024-01-03", &[("a", "<p>One Two three</p>")]);
    let ended =
        w.ratoon(&["run", "p.toml", "-q"]).expect(1).says("extractor 'w': what is stored is not what extraction");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    let status = w.ratoon(&["status", "p.toml"]).expect(0).stdout;
    assert!(status.contains("failed (exit 1)"), "{status}");
}
