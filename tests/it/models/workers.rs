//! Workers whose answers are kept: units are sent once, and what a worker states that it cost is counted.

use std::collections::HashSet;
use std::fs;

use ratoon::inside::model::SnapshotId;
use ratoon::inside::store::parquet::Partition;
use ratoon::inside::tables::extract::{AnswerRow, Extraction};
use ratoon::inside::tables::mentions::MentionSchema;
use ratoon::inside::tables::plan::PlanCost;

use super::{DAYS, answers, nights, page, tables};
use crate::workspace::Workspace;

/// Counts what it is asked in a file; finds capitalised words.
const WORKER: &str = r#"
import json, re, sys
for line in sys.stdin:
    request = json.loads(line)
    if "hello" in request:
        print(json.dumps({"name": "w", "version": "1", "fingerprint": "f", "unit": "block", "attributes": ["shown"]}), flush=True)
        continue
    with open("asked.jsonl", "a") as log:
        log.write(json.dumps([request["text"], request.get("title"), request["span"], request["edges"]]) + "\n")
    shown = (request.get("title") or "") + "|" + request.get("before", "")[-3:] + "|" + request.get("after", "")[:3]
    found = [{"start": m.start(), "end": m.end(), "attrs": {"shown": shown}} for m in re.finditer(r"[A-Z][a-z]+", request["text"])]
    print(json.dumps({"id": request["id"], "mentions": found}), flush=True)
"#;

pub(super) fn with_worker(keys: &str) -> Workspace {
    let w = Workspace::new(&format!(
        "[[extractor]]\nname = 'word'\nkind = 'command'\ncommand = ['python3', 'worker.py']\nunit = 'block'\n\
         block_bytes = 120\n{keys}"
    ));
    fs::write(w.path("worker.py"), WORKER).unwrap();
    w
}

pub(super) fn asked(w: &Workspace) -> Vec<String> {
    let text = fs::read_to_string(w.path("asked.jsonl")).unwrap_or_default();
    let _ = fs::remove_file(w.path("asked.jsonl"));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_worker_is_sent_each_unit_once_and_answers_serve_every_night() {
    let w = with_worker("");
    nights(&w);
    w.ratoon(&["run", "p.toml", "--threads", "4"]).expect(0);
    let sent = asked(&w);
    let distinct: HashSet<&String> = sent.iter().collect();
    assert_eq!(distinct.len(), sent.len(), "no unit is sent twice");
    let bytes =
        |line: &String| serde_json::from_str::<(String, Option<String>, [u32; 2], [bool; 2])>(line).unwrap().0.len();
    let sent_bytes: usize = sent.iter().map(bytes).sum();
    let counted: i64 = DAYS.iter().flat_map(|day| w.rows::<Extraction>(day)).map(|row| row.bytes_extracted).sum();
    assert_eq!(i64::try_from(sent_bytes), Ok(counted));
    let before = tables(&w);
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", DAYS[0], "--threads", "1"]).expect(0);
    assert!(asked(&w).is_empty() && tables(&w) == before);
    // To verify it, it is asked anew, and nothing of that is kept.
    let log = fs::read(w.path("store/_meta/answers/word.log")).unwrap();
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
    assert!(!asked(&w).is_empty());
    assert!(fs::read(w.path("store/_meta/answers/word.log")).unwrap() == log);
    // Without reuse units are still copied from the old page, but not from other pages.
    let alone = with_worker("reuse = false\n");
    nights(&alone);
    alone.run();
    assert!(asked(&alone).len() > sent.len());
    assert!(!alone.path("store/_meta/answers/word.log").exists());
    // Answers that no kept text needs go when that is asked for, and only those.
    w.ratoon(&["prune", "p.toml", "--before", DAYS[2], "--answers"]).expect(0);
    assert!(fs::metadata(w.path("store/_meta/answers/word.log")).unwrap().len() < log.len() as u64);
    asked(&w);
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", DAYS[2], "--discard-history"]).expect(0);
    assert!(asked(&w).is_empty(), "what is kept needs no question");
}

#[test]
fn context_and_title_belong_to_a_unit() {
    let night = |w: &Workspace, day: &str, title: &str, own: &[usize]| {
        w.snapshot(day, &[("p", &page(own).replace("<title>T", &format!("<title>{title}")))]);
    };
    let own: Vec<usize> = (0..40).collect();
    let mut edited = own.clone();
    edited[20] = 500;
    let run = |keys: &str| {
        let w = with_worker(keys);
        night(&w, DAYS[0], "One", &own);
        night(&w, DAYS[1], "One", &edited);
        night(&w, DAYS[2], "Two", &edited);
        let mut sent = Vec::new();
        for day in DAYS {
            w.ratoon(&["run", "p.toml", "--snapshot", day]).expect(0);
            sent.push(asked(&w).len());
            w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
            asked(&w);
        }
        sent
    };
    let (plain, context, title) = (run(""), run("context_blocks = 1\n"), run("title = true\n"));
    assert!(plain[1] < context[1] && context[1] < context[0], "{plain:?} {context:?}");
    assert_eq!((plain[2], context[2]), (0, 0), "a title that is not shown does not matter");
    assert_eq!(title[1], plain[1]);
    assert!(title[2] + 3 > title[0], "one that is shown sends the page again: {title:?}");
}

/// A record whose part is shown the title has other mentions when the title changes, though the text does not.
#[test]
fn a_record_follows_what_its_parts_are_shown() {
    let worker = r#"
import json, re, sys
for line in sys.stdin:
    request = json.loads(line)
    if "hello" in request:
        print(json.dumps({"name": "w", "fingerprint": "f", "unit": "block"}), flush=True)
        continue
    found = re.finditer(request["title"], request["text"])
    found = [{"start": m.start(), "end": m.end()} for m in found]
    print(json.dumps({"id": request["id"], "mentions": found}), flush=True)
"#;
    let w = Workspace::new("");
    fs::write(w.path("worker.py"), worker).unwrap();
    w.pipeline(
        "[[extractor]]\nname = 'word'\nkind = 'command'\ncommand = ['python3', 'worker.py']\nunit = 'block'\n\
         title = true\n[[extractor]]\nname = 'pair'\nkind = 'record'\nscope = 40\nattributes = { it = 'word' }\n",
    );
    for (day, title) in DAYS.iter().zip(["Ann", "Bob", "Ann"]) {
        let html = format!("<html><head><title>{title}</title></head><body><p>Ann met Bob.</p></body></html>");
        w.snapshot(day, &[("p", &html)]);
        w.run();
        w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
        let ask = "select text from mentions_pair";
        let found = w.ratoon(&["sql", "p.toml", ask, "--format", "json"]).expect(0).stdout;
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        assert_eq!(found, serde_json::json!([{ "text": title }]), "{day}");
    }
}

#[test]
fn audit_finds_a_worker_that_remembers_what_it_was_asked_before() {
    let w = with_worker("");
    nights(&w);
    w.run();
    let held = w.ratoon(&["audit", "p.toml", "--trials", "200"]).expect(0).stdout;
    assert!(held.contains("word") && held.contains("200 trials"), "{held}");
    // One that leaves out what it has found before.
    let forgetful = WORKER
        .replace("import json, re, sys", "import json, re, sys\nseen = set()")
        .replace("    print(json.dumps({\"id\"", "    found = [f for f in found if not (request[\"text\"][f[\"start\"]:f[\"end\"]] in seen or seen.add(request[\"text\"][f[\"start\"]:f[\"end\"]]))]\n    print(json.dumps({\"id\"");
    fs::write(w.path("worker.py"), forgetful).unwrap();
    w.ratoon(&["audit", "p.toml", "--trials", "200"]).expect(1);
}

/// The same, and it says what each answer cost: a token a byte, ten for the answer, and with `price` what that makes.
fn paid_worker(price: bool) -> String {
    let price = if price { ", \"price\": 0.001" } else { "" };
    let usage = format!("\"usage\": {{\"input_tokens\": len(request[\"text\"]), \"output_tokens\": 10{price}}}");
    WORKER.replace("\"mentions\": found}", &format!("\"mentions\": found, {usage}}}"))
}

#[test]
fn what_a_worker_states_that_it_cost_is_accounted() {
    let w = with_worker("");
    fs::write(w.path("worker.py"), paid_worker(true)).unwrap();
    nights(&w);
    w.run();
    let sent = asked(&w).len();
    let rows: Vec<AnswerRow> = DAYS.iter().flat_map(|day| answers(&w, "word", day)).collect();
    assert_eq!(rows.len(), sent);
    assert!(rows.iter().all(|row| row.input_tokens == Some(row.unit_bytes) && row.output_tokens == Some(10)));
    let price: f64 = rows.iter().filter_map(|row| row.price).sum();
    assert!((price - 0.001 * sent as f64).abs() < 1e-9, "{price}");
    let costs = |w: &Workspace| -> (f64, i64) {
        let rows: Vec<PlanCost> = DAYS.iter().flat_map(|day| w.rows::<PlanCost>(day)).collect();
        (rows.iter().filter_map(|row| row.price).sum(), rows.iter().filter_map(|row| row.output_tokens).sum())
    };
    assert!((costs(&w).0 - price).abs() < 1e-9);
    assert_eq!(costs(&w).1, 10 * sent as i64);
    let status: serde_json::Value =
        serde_json::from_str(&w.ratoon(&["status", "p.toml", "--json"]).expect(0).stdout).unwrap();
    let nights_price: f64 =
        status["snapshots"].as_array().unwrap().iter().filter_map(|night| night["price"].as_f64()).sum();
    assert!((nights_price - price).abs() < 1e-9, "{status}");
    // Answers that are not kept cost as well.
    let alone = with_worker("reuse = false\n");
    fs::write(alone.path("worker.py"), paid_worker(true)).unwrap();
    nights(&alone);
    alone.run();
    let sent = asked(&alone).len();
    assert!((costs(&alone).0 - 0.001 * sent as f64).abs() < 1e-9, "{:?} of {sent}", costs(&alone));
    assert_eq!(costs(&alone).1, 10 * sent as i64);
    // One that states nonsense is not believed.
    let mad = with_worker("");
    fs::write(mad.path("worker.py"), paid_worker(true).replace("0.001", "-1.0")).unwrap();
    nights(&mad);
    mad.ratoon(&["run", "p.toml"]).expect(3).says("below 0");
}

#[test]
fn the_budget_of_a_worker_is_held_and_what_it_left_is_done_later() {
    let price = "price = { input = 1.0, output = 2.0 }\nmax_tokens = 10\n";
    let whole = with_worker(price);
    fs::write(whole.path("worker.py"), paid_worker(false)).unwrap();
    nights(&whole);
    whole.run();
    let paid = |w: &Workspace| -> f64 {
        DAYS.iter().flat_map(|day| answers(w, "word", day)).filter_map(|row| row.price).sum()
    };
    let all = paid(&whole);
    let by_hand: i64 = DAYS.iter().flat_map(|day| answers(&whole, "word", day)).map(|row| row.unit_bytes + 20).sum();
    assert!((all - by_hand as f64 / 1e6).abs() < 1e-12, "{all} {by_hand}");
    let budget = 0.3 * all;
    let w = with_worker(&format!("{price}budget = {budget}\n"));
    fs::write(w.path("worker.py"), paid_worker(false)).unwrap();
    nights(&w);
    let (mut runs, mut before) = (0, 0.0);
    loop {
        let ended = w.ratoon(&["run", "p.toml", "--threads", "4"]);
        // Tables count what a night cost whenever it was asked; the difference is what this run paid.
        let (now, sent) = (paid(&w), asked(&w));
        assert!(now - before <= budget + 1e-12, "{now} after {before}, {budget} a run");
        before = now;
        runs += 1;
        if ended.code == 0 {
            break;
        }
        assert!(!sent.is_empty(), "every run gets on");
        ended.expect(3).says("deferred");
        assert!(runs < 40, "it goes on and on");
    }
    assert!(runs > 2, "{runs}");
    let rows = |w: &Workspace| -> Vec<(String, i64, i64)> {
        let schema = MentionSchema { label: None, attributes: vec![("shown".into(), false)] };
        let file = w.store().partition_file("mentions/word", &SnapshotId::new(DAYS[2]).unwrap());
        let partition = Partition::open(&file).unwrap();
        let rows = partition.batches(&partition.all(), None).unwrap();
        rows.iter()
            .flat_map(|b| schema.decode(b).unwrap())
            .map(|row| (row.url.to_string(), row.start, row.end))
            .collect()
    };
    assert_eq!(rows(&w), rows(&whole));
    for (keys, words) in [
        ("budget = 1.0\n", "price"),
        ("price = { input = 1.0, output = 2.0 }\nprice_per_mb = 1.0\n", "exclude"),
        ("max_tokens = 5\n", "price"),
        ("price_per_mb = 1.0\nbudget = 1.0\nreuse = false\n", "kept"),
    ] {
        with_worker(keys).ratoon(&["status", "p.toml"]).expect(2).says(words);
    }
}
