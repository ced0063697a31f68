//! Workers that fail: it is told, it is no news, and it heals by itself.

use std::fs;

use ratoon::inside::extract::Status;
use ratoon::inside::model::MentionChange;
use ratoon::inside::tables::delta::Alert;
use ratoon::inside::tables::extract::{Extraction, MentionDelta};
use serde_json::Value;

use crate::word_worker::{self, PIPELINE, SCRIPT, down, up};
use crate::workspace::{Workspace, html};

/// Records of the worker's words.
const PAIR: &str = "[[extractor]]\nname = 'pair'\nkind = 'record'\nscope = 80\nattributes = { one = 'word' }\n";

fn workspace(corpus: &str) -> Workspace {
    word_worker::workspace(corpus, PAIR)
}

fn page(lines: &[&str]) -> String {
    html("t", &lines.join("</p><p>"), "x")
}

/// Texts that the worker was asked about since the last look.
fn asked(w: &Workspace) -> Vec<String> {
    let lines = fs::read_to_string(w.path("asked")).unwrap_or_default();
    let _ = fs::remove_file(w.path("asked"));
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn told(w: &Workspace) -> Vec<String> {
    let lines = fs::read_to_string(w.path("told")).unwrap_or_default();
    let _ = fs::remove_file(w.path("told"));
    let text = |line: &str| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned();
    lines.lines().map(text).collect()
}

fn deltas(w: &Workspace, day: &str, extractor: &str) -> Vec<(MentionChange, String)> {
    let rows = w.rows::<MentionDelta>(day).into_iter().filter(|row| &*row.extractor == extractor);
    rows.map(|row| (row.change, row.text)).collect()
}

fn extraction(w: &Workspace, day: &str, extractor: &str) -> Extraction {
    let mut rows = w.rows::<Extraction>(day).into_iter().filter(|row| &*row.extractor == extractor);
    rows.next().expect("the page has a row")
}

const FIRST: &[&str] = &["Alpha stays as it is", "and so does this line", "Beta goes away"];
const SECOND: &[&str] = &["Alpha stays as it is", "and so does this line", "Gamma comes here"];

/// U3: a worker that fails is told with `-q`, once, with its reason, in the table and in `status`.
#[test]
fn a_worker_that_fails_is_told_with_its_reason_also_when_quiet() {
    let w = workspace("");
    w.snapshot("2024-01-01", &[("a", &page(FIRST))]);
    down(&w, "");
    let ended = w.ratoon(&["run", "p.toml", "-q"]).expect(3).says("extractor 'word' failed on 1 of 1 pages: ");
    assert!(ended.stderr.contains("429 rate limited"), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 2, "one line for the worker, one for the record: {}", ended.stderr);
    let row = extraction(&w, "2024-01-01", "word");
    assert_eq!(row.status, Status::Failed);
    assert!(row.error.unwrap().contains("429 rate limited"));
    assert!(extraction(&w, "2024-01-01", "pair").error.unwrap().contains("its part 'word'"));
    let status = w.ratoon(&["status", "p.toml"]).expect(0).stdout;
    assert!(status.contains("extractor 'word' failed on 1 of 1 pages"), "{status}");
    let json: Value = serde_json::from_str(&w.ratoon(&["status", "p.toml", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(json["problems"][0]["kind"], "failed_extractions");
    assert_eq!(json["problems"][0]["facts"]["extractor"], "word");
    up(&w);
    w.ratoon(&["run", "p.toml", "-q"]).expect(0);
    assert_eq!(extraction(&w, "2024-01-01", "word").error, None, "the next run tries it again");
}

/// U5, F10: the text changes while the worker is away. When it is back, what changed since the last good night is told.
#[test]
fn an_outage_is_no_news_and_loses_none() {
    let w = workspace("");
    w.snapshot("2024-01-01", &[("a", &page(FIRST))]);
    w.run();
    w.snapshot("2024-01-02", &[("a", &page(SECOND))]);
    down(&w, "");
    w.ratoon(&["run", "p.toml", "-q"]).expect(3);
    assert!(w.rows::<MentionDelta>("2024-01-02").is_empty(), "nothing is known of that night");
    up(&w);
    w.snapshot("2024-01-03", &[("a", &page(SECOND))]);
    asked(&w);
    w.run();
    let changes = [(MentionChange::Added, "Gamma".to_owned()), (MentionChange::Deleted, "Beta".to_owned())];
    assert_eq!(deltas(&w, "2024-01-03", "word"), changes);
    assert_eq!(deltas(&w, "2024-01-03", "pair"), changes, "records follow");
    assert_eq!(w.rows::<Alert>("2024-01-03").len(), 2);
    assert_eq!(told(&w).len(), 2);
    assert_eq!(asked(&w), ["Gamma comes here"], "what stood in the last good text is copied");
    let row = extraction(&w, "2024-01-03", "word");
    assert_eq!((row.status, row.copied), (Status::Ok, 1));
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
}

/// The same by regions, and with a text that goes back to what it was.
#[test]
fn what_is_found_after_an_outage_is_as_from_scratch() {
    let windows = format!("{PIPELINE}{PAIR}").replace("unit = \"line\"", "scope = 30\ncontext = 1");
    let worker = SCRIPT.replace(", \"unit\": \"line\"", "").replace(r"\b[A-Z]", r"(?<!\w)[A-Z]");
    let nights: [&[&str]; 4] = [FIRST, SECOND, &["Delta leads", "Alpha stays as it is", "Gamma comes here"], FIRST];
    for (outages, plan) in [(vec![1], "auto"), (vec![1, 2], "diff"), (vec![1, 3], "anchor"), (vec![2], "suffix-tree")] {
        let text = windows.replace("anchor", plan);
        let (w, scratch) = (Workspace::new(&text), Workspace::new(&text));
        for w in [&w, &scratch] {
            fs::write(w.path("worker.py"), &worker).unwrap();
        }
        for (night, lines) in nights.iter().enumerate() {
            let day = format!("2024-01-0{}", night + 1);
            for w in [&w, &scratch] {
                w.snapshot(&day, &[("a", &page(lines))]);
            }
            let is_out = outages.contains(&night);
            if is_out {
                down(&w, "");
            }
            w.ratoon(&["run", "p.toml", "-q"]).expect(if is_out { 3 } else { 0 });
            if is_out {
                up(&w);
            } else {
                w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
            }
        }
        // The last night may have been one of them.
        w.run();
        scratch.run();
        let sum = |w: &Workspace| {
            let mut net: std::collections::BTreeMap<String, i64> = std::collections::BTreeMap::new();
            for night in 0..nights.len() {
                for (change, text) in deltas(w, &format!("2024-01-0{}", night + 1), "word") {
                    *net.entry(text).or_default() += if change == MentionChange::Added { 1 } else { -1 };
                }
            }
            net.retain(|_, n| *n != 0);
            net
        };
        assert_eq!(sum(&w), sum(&scratch), "outages {outages:?}: what came and went adds up to the same");
    }
}

/// U6: a page that answers 503 for a night is not sent to the worker again, and nothing of it is news.
#[test]
fn a_failed_capture_sends_nothing_again() {
    let w = workspace("");
    let line = |status: u32, file: bool| {
        let url = "http://site.test/a";
        let mut line = serde_json::json!({"url": url, "status": status, "content_type": "text/html"});
        if file {
            line["file"] = "0.html".into();
        }
        format!("{line}\n")
    };
    let night = |day: &str, status: u32| {
        w.snapshot(day, &[("a", &page(FIRST)), ("b", &page(SECOND))]);
        let manifest = w.snapshot_dir(day).join("manifest.jsonl");
        let lines = fs::read_to_string(&manifest).unwrap();
        let rest = lines.lines().nth(1).unwrap();
        fs::write(manifest, format!("{}{rest}\n", line(status, true))).unwrap();
    };
    night("2024-01-01", 200);
    w.run();
    asked(&w);
    night("2024-01-02", 503);
    w.ratoon(&["run", "p.toml", "-q"]);
    night("2024-01-03", 200);
    w.ratoon(&["run", "p.toml", "-q"]);
    assert!(asked(&w).is_empty(), "the worker has seen all of it before");
}

/// Failed pages of the newest snapshot are tried again, what follows is replaced, and nobody is told twice.
#[test]
fn a_second_try_tells_only_what_is_new() {
    let w = workspace("");
    w.snapshot("2024-01-01", &[("a", &page(FIRST)), ("b", &page(FIRST))]);
    w.run();
    told(&w);
    let other = ["Alpha stays as it is", "and so does this line", "Omega comes here"];
    w.snapshot("2024-01-02", &[("a", &page(SECOND)), ("b", &page(&other))]);
    down(&w, "Omega");
    w.ratoon(&["run", "p.toml", "-q"]).expect(3).says("failed on 1 of 2 pages");
    assert_eq!(told(&w), ["Gamma", "Beta"]);
    w.ratoon(&["run", "p.toml", "-q"]).expect(3).says("failed on 1 of 2 pages");
    assert!(told(&w).is_empty());
    up(&w);
    asked(&w);
    w.run();
    assert_eq!(asked(&w), ["Omega comes here"]);
    assert_eq!(told(&w), ["Omega", "Beta"]);
    assert_eq!(w.rows::<Alert>("2024-01-02").len(), 4);
    let twin = workspace("");
    twin.snapshot("2024-01-01", &[("a", &page(FIRST)), ("b", &page(FIRST))]);
    twin.snapshot("2024-01-02", &[("a", &page(SECOND)), ("b", &page(&other))]);
    twin.run();
    assert_eq!(w.table_bytes(), twin.table_bytes(), "all tables are those of a night without a failure");
    assert!(w.run().stdout.contains("nothing to do"));
}

/// Under partial coverage a page that failed is tried again though later snapshots do not touch it.
#[test]
fn a_page_that_failed_heals_though_nothing_touches_it() {
    let w = workspace("coverage = \"partial\"");
    let pages: Vec<(String, String)> =
        (0..12).map(|i| (format!("p{i}"), page(&[&format!("Page number {i}"), "Alpha"]))).collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot("2024-01-01", &pages);
    w.run();
    w.snapshot("2024-01-02", &[("p3", &page(&["Page number 3", "Gamma"]))]);
    down(&w, "");
    w.ratoon(&["run", "p.toml", "-q"]).expect(3);
    w.snapshot("2024-01-03", &[("p5", &page(&["Page number 5", "Delta"]))]);
    w.ratoon(&["run", "p.toml", "-q"]).expect(3);
    up(&w);
    w.snapshot("2024-01-04", &[("p7", &page(&["Page number 7", "Alpha"]))]);
    asked(&w);
    w.run();
    let mut sent = asked(&w);
    sent.sort();
    assert_eq!(sent, ["Delta", "Gamma"]);
    let added: Vec<_> =
        deltas(&w, "2024-01-04", "word").into_iter().filter(|(c, _)| *c == MentionChange::Added).collect();
    assert_eq!(added.len(), 2, "{added:?}");
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
    w.snapshot("2024-01-05", &[("p7", &page(&["Page number 7", "Alpha"]))]);
    asked(&w);
    w.run();
    assert!(asked(&w).is_empty());
    assert_eq!(
        w.rows::<Extraction>("2024-01-05").len(),
        2,
        "one page, two extractors: what healed is not looked at again"
    );
}

/// U12: a changed or renamed extractor takes back nothing of what was told.
#[test]
fn changing_an_extractor_rewrites_no_deltas() {
    let w = Workspace::new("");
    let pipeline = |name: &str, pattern: &str| {
        w.pipeline(&format!("[[extractor]]\nname = \"{name}\"\nkind = \"regex\"\npattern = '{pattern}'\n"));
    };
    pipeline("word", "[A-Z][a-z]+");
    w.snapshot("2024-01-01", &[("a", &page(FIRST))]);
    w.snapshot("2024-01-02", &[("a", &page(SECOND))]);
    w.run();
    let stood = w.rows::<MentionDelta>("2024-01-02");
    assert_eq!(stood.len(), 2);
    for (name, pattern) in [("word", "[A-Z][a-z]{2,}"), ("word", "[A-Z]"), ("term", "[A-Z]")] {
        pipeline(name, pattern);
        w.run();
        assert_eq!(w.rows::<MentionDelta>("2024-01-02"), stood, "{name} {pattern}");
    }
    w.ratoon(&["extract", "p.toml", "--force", "--snapshot", "2024-01-02"]).expect(0);
    assert_eq!(w.rows::<MentionDelta>("2024-01-02"), stood);
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
}
