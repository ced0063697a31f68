//! A changed extractor beside the present one: what is told is true, as sure as it says, and costs what it says.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::model_server::ModelServer;
use crate::workspace::{Workspace, project};

/// What `trial --json` says of its only, or first, extractor.
fn tried(w: &Workspace, args: &[&str]) -> Value {
    let args = [&["trial", "p.toml", "--candidate", "q.toml", "--json"], args].concat();
    let ended = w.ratoon(&args).expect(0);
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    all["trials"][0].clone()
}

/// The pipeline file with something in it replaced, as `q.toml`.
fn candidate(w: &Workspace, from: &str, to: &str) {
    let text = fs::read_to_string(w.path("p.toml")).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(w.path("q.toml"), text.replace(from, to)).unwrap();
}

/// Where a store has mentions of an extractor, in its newest snapshot.
fn places(w: &Workspace, pipeline: &str, extractor: &str) -> BTreeSet<(String, i64, i64)> {
    let ask = format!("select url, start, \"end\" from mentions_{extractor}");
    let ended = w.ratoon(&["sql", pipeline, &ask, "--format", "json"]).expect(0);
    let rows: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    let number = |row: &Value, key: &str| row[key].as_i64().unwrap();
    rows.iter().map(|row| (row["url"].as_str().unwrap().to_owned(), number(row, "start"), number(row, "end"))).collect()
}

#[test]
fn what_a_changed_pattern_finds_is_what_a_run_with_it_would_find() {
    let w = Workspace::sample("campus");
    // Without its workers, which take their time.
    let text = fs::read_to_string(w.path("p.toml")).unwrap();
    let parts: Vec<&str> = text.split("[[").filter(|part| !part.contains("kind = \"command\"")).collect();
    fs::write(w.path("p.toml"), parts.join("[[")).unwrap();
    w.ratoon(&["extract", "p.toml", "-q"]).expect(0);
    candidate(&w, r"(?:Dr|Prof)\.", r"(?:Dr|Mr)\.");
    let text = fs::read_to_string(w.path("q.toml")).unwrap();
    fs::write(w.path("r.toml"), text.replace("\"store\"", "\"other\"")).unwrap();
    w.ratoon(&["extract", "r.toml", "-q"]).expect(0);
    let before = w.table_bytes();
    for extractor in ["researcher", "talk"] {
        let (here, there) = (places(&w, "p.toml", extractor), places(&w, "r.toml", extractor));
        let told = tried(&w, &["--extractor", extractor, "--pages", "1000"]);
        let both = here.intersection(&there).count();
        assert_eq!(told["pages"], told["of_pages"]);
        let told_of = |key: &str| usize::try_from(told[key].as_u64().unwrap()).unwrap();
        assert_eq!((told_of("only_present"), told_of("only_candidate")), (here.len() - both, there.len() - both));
        assert_eq!(told_of("both") + told_of("altered"), both);
        assert!(both > 0 && here.len() > both);
        // All pages were looked at, and a pattern says the same each time: there is no doubt.
        let agreement = &told["agreement"];
        assert_eq!(agreement["low"], agreement["high"]);
        let share = agreement["share"].as_f64().unwrap();
        assert!((share - told_of("both") as f64 / here.union(&there).count() as f64).abs() < 1e-9);
    }
    // A sample is not as sure, and the truth lies where it says.
    let exact = tried(&w, &["--extractor", "researcher", "--pages", "1000"])["agreement"]["share"].as_f64().unwrap();
    let sampled = tried(&w, &["--extractor", "researcher", "--pages", "25"]);
    let [low, high] = ["low", "high"].map(|end| sampled["agreement"][end].as_f64().unwrap());
    assert!(sampled["pages"] == 25 && low < high && (low..=high).contains(&exact), "{low} {exact} {high}");
    assert_eq!(w.table_bytes(), before, "a trial changes no table");
    // The truth of the sample data says which of them is better.
    let truth = project().join("sample_data/campus_truth/mentions.jsonl");
    let judged = tried(&w, &["--extractor", "researcher", "--pages", "1000", "--gold", truth.to_str().unwrap()]);
    let of = |side: &str, what: &str| judged[side][what]["share"].as_f64().unwrap();
    assert!(of("present", "precision") > 0.99 && of("present", "recall") > 0.99, "{judged}");
    assert!(of("candidate_side", "recall") < 0.9, "{judged}");
    // People are told the same.
    let ended = w.ratoon(&["trial", "p.toml", "--candidate", "q.toml", "--pages", "1000"]).expect(0);
    for words in ["researcher: ", "talk: ", "only the present one finds:", "adopting it on all"] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
}

#[test]
fn mistakes_are_told() {
    let w = Workspace::new("[[extractor]]\nname = 'a'\nkind = 'regex'\npattern = 'x+'\n");
    w.snapshot("2024-01-01", &[("p", "<p>axxb</p>")]);
    candidate(&w, "x+", "x+");
    w.ratoon(&["trial", "p.toml", "--candidate", "q.toml"]).expect(1).says("ratoon run p.toml");
    w.run();
    w.ratoon(&["trial", "p.toml", "--candidate", "q.toml"]).expect(2).says("no extractor is another one");
    w.ratoon(&["trial", "p.toml", "--candidate", "q.toml", "--extractor", "b"]).expect(2).says("there are a");
    w.ratoon(&["trial", "p.toml", "--candidate", "q.toml", "--extractor", "a", "--budget", "-1"]).expect(2);
    fs::write(w.path("gold.jsonl"), "{\"url\": 7}\n").unwrap();
    let gold = ["trial", "p.toml", "--candidate", "q.toml", "--extractor", "a", "--gold", "gold.jsonl"];
    w.ratoon(&gold).expect(1).says("gold, line 1");
    fs::write(w.path("gold.jsonl"), "{\"url\": \"http://other.test/\"}\n").unwrap();
    w.ratoon(&gold).expect(1).says("names none of them");
    fs::write(w.path("gold.jsonl"), "{\"url\": \"http://site.test/p\"}\n").unwrap();
    let told = tried(&w, &["--extractor", "a", "--gold", "gold.jsonl"]);
    assert_eq!((&told["present"]["precision"]["share"], &told["present"]["recall"]), (&0.0.into(), &Value::Null));
}

/// Finds capitalised words, and leaves each out with a chance that it is given: by seed and number of the request.
const NOISY: &str = r#"
import json, os, random, re, sys
chance, seed = float(sys.argv[1]), sys.argv[2]
for line in sys.stdin:
    request = json.loads(line)
    if "hello" in request:
        print(json.dumps({"name": "noisy", "version": sys.argv[1], "fingerprint": sys.argv[1], "unit": "block",
                          "deterministic": False}), flush=True)
        continue
    with open("asked", "ab") as count:
        count.write(b".")
        number = count.tell()
    draw = random.Random(f"{seed} {number}").random
    found = [{"start": m.start(), "end": m.end()} for m in re.finditer(r"[A-Z][a-z]+", request["text"]) if draw() >= chance]
    print(json.dumps({"id": request["id"], "mentions": found}), flush=True)
"#;

#[test]
fn noise_that_was_planted_lies_where_the_intervals_say() {
    let w = Workspace::new("");
    fs::write(w.path("noisy.py"), NOISY).unwrap();
    w.pipeline(
        "[[extractor]]\nname = 'word'\nkind = 'command'\nblock_bytes = 200\nunit = 'block'\n\
         command = ['python3', 'noisy.py', '0.05', 'a']\n",
    );
    let page = |i: usize| {
        let line = |j: usize| {
            format!("<p>Ann{} met Bob{} and Cleo on day {}</p>", "x".repeat(i % 7), "y".repeat(j % 5), i * 31 + j)
        };
        (format!("p{i}"), (0..3 + i % 9).map(line).collect::<String>())
    };
    let pages: Vec<(String, String)> = (0..60).map(page).collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot("2024-01-01", &pages);
    w.run();
    let text = fs::read_to_string(w.path("p.toml")).unwrap();
    // Of what is in either of two answers, (1 - q) / (1 + q) is in both if each leaves out a share q.
    let planted =
        [("present", 0.95 / 1.05), ("candidate_side", 0.7 / 1.3), ("agreement", 0.95 * 0.7 / (1.0 - 0.05 * 0.3))];
    let mut covered = [0; 3];
    for seed in 0..RUNS {
        fs::write(w.path("asked"), "").unwrap();
        fs::write(w.path("p.toml"), text.replace("'a'", &format!("'a{seed}'"))).unwrap();
        fs::write(w.path("q.toml"), text.replace("'0.05', 'a'", &format!("'0.3', 'b{seed}'"))).unwrap();
        let seed = seed.to_string();
        let told = tried(&w, &["--extractor", "word", "--pages", "40", "--threads", "1", "--seed", &seed]);
        for (covered, (side, truth)) in covered.iter_mut().zip(planted) {
            let found = if side == "agreement" { &told[side] } else { &told[side]["self_agreement"]["agreement"] };
            let [low, high] = ["low", "high"].map(|end| found[end].as_f64().unwrap());
            assert!(high - low < 0.2, "{side}: {low} to {high} says nothing");
            *covered += usize::from(low <= truth && truth <= high);
        }
        assert!(told["present"]["self_agreement"]["units"].as_u64().unwrap() >= 40);
    }
    assert!(covered.iter().all(|&covered| covered + 1 >= RUNS), "{covered:?} of {RUNS}");
}

/// Of the command. That of the intervals by themselves is tested on many more (`src/recycle/shares.rs`).
const RUNS: usize = 10;

const RULE: &str = r"(?P<who>[A-Z][a-z]+) speaks";

#[test]
fn a_model_is_tried_within_a_budget_and_what_was_paid_for_is_kept() {
    let (present, other) = (ModelServer::start(RULE), ModelServer::start(r"(?P<who>[A-Z][a-z]+) (?:speaks|sings)"));
    let w = Workspace::new("");
    fs::write(w.path("event.md"), "Find who speaks: {attributes}.\n").unwrap();
    let keys = |model: &ModelServer, name: &str| {
        format!(
            "[[extractor]]\nname = 'event'\nkind = 'llm'\nendpoint = '{}'\nmodel = '{name}'\nprompt = 'event.md'\n\
             attributes = {{ who = 'string' }}\nblock_bytes = 100\nmax_tokens = 300\nprice = {{ input = 1.0, output = 2.0 }}\n",
            model.endpoint()
        )
    };
    w.pipeline(&keys(&other, "n"));
    fs::rename(w.path("p.toml"), w.path("q.toml")).unwrap();
    w.pipeline(&keys(&present, "m"));
    let page = |i: usize| {
        let verb = |j: usize| if j.is_multiple_of(4) { "sings" } else { "speaks" };
        let line = |j: usize| format!("<p>Ann{} {} of {} things</p>", "x".repeat(i % 5), verb(j), i * 100 + j);
        let menu = "<li>Home Bob speaks here</li>".repeat(6);
        (format!("p{i}"), format!("<ul>{menu}</ul>{}", (0..6 + i % 4).map(line).collect::<String>()))
    };
    let pages: Vec<(String, String)> = (0..30).map(page).collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot("2024-01-01", &pages);
    w.run();
    let before = w.table_bytes();
    let units = present.totals().requests;
    present.forget();
    // A small budget is held, and what is told says that pages are left out.
    let told = tried(&w, &["--budget", "0.004", "--pages", "20"]);
    let billed = |model: &ModelServer| {
        let billed = model.totals().billed;
        (billed.input as f64 + 2.0 * billed.output as f64) / 1e6
    };
    let spent = told["present"]["spent"].as_f64().unwrap() + told["candidate_side"]["spent"].as_f64().unwrap();
    assert!(spent <= 0.004 && (billed(&present) + billed(&other) - spent).abs() < 1e-9, "{spent}");
    assert!(told["candidate_side"]["deferred"].as_u64().unwrap() > 0);
    // Without one all is told. The candidate was asked about each unit that it knows nothing of yet, once.
    present.forget();
    let told = tried(&w, &["--pages", "30"]);
    assert_eq!((&told["compared"], &told["only_present"]), (&30.into(), &0.into()));
    assert!(told["only_candidate"].as_u64().unwrap() > 0 && told["both"].as_u64().unwrap() > 0);
    assert_eq!(present.totals().requests, units, "of the present one answers are kept: it is asked only once more");
    for side in ["present", "candidate_side"] {
        assert_eq!(told[side]["self_agreement"]["agreement"]["share"], 1.0, "{told}");
    }
    assert_eq!(w.table_bytes(), before, "a trial changes no table");
    // So adopting it costs nothing more: all pages were looked at.
    assert_eq!((&told["adopting"]["units"], &told["adopting"]["price"]), (&0.into(), &0.0.into()));
    other.forget();
    fs::copy(w.path("q.toml"), w.path("p.toml")).unwrap();
    w.run();
    assert_eq!(other.totals().requests, 0, "what the trial paid for is kept");
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
}
