//! `mode = "batch"`: submitted at the end of a run, collected at the next, for half the price, and nothing is asked twice.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use ratoon::inside::extract::Status;
use ratoon::inside::model::SnapshotId;
use ratoon::inside::store::parquet::Partition;
use ratoon::inside::tables::extract::{AnswerRow, Extraction};
use serde_json::Value;

use super::{billed, declare};
use crate::model_server::{BatchManner, Manner, ModelServer};
use crate::workspace::Workspace;

const RULE: &str = r"(?P<who>[A-Z][a-z]+) speaks";
const DAYS: [&str; 3] = ["2024-01-01", "2024-01-02", "2024-01-03"];

fn with_model(model: &ModelServer, keys: &str) -> Workspace {
    let w = Workspace::new("");
    pipeline(&w, model, keys);
    w
}

fn pipeline(w: &Workspace, model: &ModelServer, keys: &str) {
    declare(w, model, "m", "who = 'string'", &format!("max_tokens = 300\n{keys}"));
}

/// Ten pages that share a menu; each night two of them have something new.
fn night(w: &Workspace, night: usize) {
    let page = |p: usize| {
        let line = |j: usize| {
            let new = if j == 3 && p % 5 == 1 { night * 1000 } else { 0 };
            format!("<p>Ann{} speaks of {} things</p>", "x".repeat(p), new + p * 100 + j)
        };
        let menu = "<li>Home where Bob speaks</li>".repeat(7);
        (format!("p{p}"), format!("<ul>{menu}</ul>{}", (0..9).map(line).collect::<String>()))
    };
    let pages: Vec<(String, String)> = (0..10).map(page).collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot(DAYS[night], &pages);
}

/// Where there are mentions, by a question to the state.
fn mentions(w: &Workspace, at: &str) -> BTreeSet<String> {
    let ask = "select url, start, text, who.text as who from mentions_event";
    let ended = w.ratoon(&["sql", "p.toml", ask, "--at", at, "--format", "json"]).expect(0);
    let rows: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    rows.iter().map(Value::to_string).collect()
}

/// What the tables say was paid, over all nights.
fn paid(w: &Workspace) -> f64 {
    let of = |day: &&str| {
        let file = w.store().partition_file("answers/event", &SnapshotId::new(day).unwrap());
        let rows: Vec<AnswerRow> =
            if file.exists() { Partition::open(&file).unwrap().all_rows().unwrap() } else { Vec::new() };
        rows.iter().filter_map(|row| row.price).sum::<f64>()
    };
    DAYS.iter().map(of).sum()
}

fn deferred(w: &Workspace, day: &str) -> usize {
    w.rows::<Extraction>(day).iter().filter(|row| row.status == Status::Deferred).count()
}

#[track_caller]
fn nothing_was_asked_twice(model: &ModelServer) {
    let twice: Vec<_> = model.texts().into_iter().filter(|(_, times)| *times != 1).collect();
    assert_eq!(twice, []);
}

/// A run with one request after the other, to compare with.
fn directly() -> Workspace {
    let model = ModelServer::start(RULE);
    let w = with_model(&model, "");
    for i in 0..DAYS.len() {
        night(&w, i);
        w.run();
    }
    w
}

#[test]
fn what_is_submitted_at_the_end_of_a_run_is_there_at_the_next_for_half_the_price() {
    let direct = directly();
    let model = ModelServer::start(RULE);
    let w = with_model(&model, "mode = 'batch'\n");
    for (i, day) in DAYS.iter().enumerate() {
        night(&w, i);
        let ended = w.run();
        assert!(ended.stderr.contains("submitted as batch"), "{}", ended.stderr);
        assert!(deferred(&w, day) > 0, "{day}");
        let why: BTreeSet<_> = w.rows::<Extraction>(day).into_iter().filter_map(|row| row.error).collect();
        assert_eq!(why.iter().map(String::as_str).collect::<Vec<_>>(), ["a batch has its answers in a later run"]);
        assert_eq!(model.batches_made(), i + 1);
        // That answers are on their way is no problem, and is not said twice.
        w.ratoon(&["run", "p.toml", "-q"]).expect(0);
        assert_eq!(deferred(&w, day), 0, "{day}");
        assert_eq!(mentions(&w, day), mentions(&direct, day), "{day}");
    }
    w.run();
    assert_eq!(model.batches_made(), DAYS.len());
    nothing_was_asked_twice(&model);
    assert!((paid(&w) - billed(&model) / 2.0).abs() < 1e-12, "{} of {}", paid(&w), billed(&model));
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
    assert!(!w.path("store/_meta/batches/event").read_dir().unwrap().any(|_| true), "nothing is left over");
}

#[test]
fn one_run_a_night_has_the_answers_a_night_later() {
    let model = ModelServer::start(RULE);
    let (direct, w) = (directly(), with_model(&model, "mode = 'batch'\n"));
    for i in 0..DAYS.len() {
        night(&w, i);
        w.run();
    }
    // The third night knows what the second submitted, and lacks what it brought itself.
    let (last, whole) = (mentions(&w, DAYS[2]), mentions(&direct, DAYS[2]));
    assert!(last.is_subset(&whole) && last.len() < whole.len() && last.len() > whole.len() / 2);
    w.run();
    assert_eq!(mentions(&w, DAYS[2]), whole);
    nothing_was_asked_twice(&model);
    assert!((paid(&w) - billed(&model) / 2.0).abs() < 1e-12);
    // What the older nights lack is done when that is asked for, and costs nothing more.
    let requests = model.totals().requests;
    w.ratoon(&["run", "p.toml", "--backfill", DAYS[0]]).expect(0);
    assert_eq!(model.totals().requests, requests);
    for day in DAYS {
        assert_eq!(mentions(&w, day), mentions(&direct, day), "{day}");
    }
}

/// Starts a run and kills it when the server has dealt with such a request and before it says so.
fn kill_at(w: &Workspace, model: &ModelServer, request: &str) {
    model.stall(Some(request));
    let mut child = w.command(&["run", "p.toml", "-q"]).spawn().unwrap();
    let started = Instant::now();
    while !model.has_stalled() {
        assert!(started.elapsed() < Duration::from_secs(120), "no {request} came");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    model.stall(None);
}

#[test]
fn a_kill_at_any_step_asks_nothing_twice() {
    let direct = directly();
    // In the order in which they come: two at the end of the first run, the others in the second.
    for request in ["POST /v1/files", "POST /v1/batches", "GET /v1/batches/", "GET /v1/files/"] {
        let model = ModelServer::start(RULE);
        let w = with_model(&model, "mode = 'batch'\n");
        night(&w, 0);
        if request.starts_with("GET") {
            w.run();
        }
        kill_at(&w, &model, request);
        w.run();
        w.run();
        assert_eq!(model.batches_made(), 1, "{request}");
        assert_eq!(mentions(&w, DAYS[0]), mentions(&direct, DAYS[0]), "{request}");
        nothing_was_asked_twice(&model);
        assert!((paid(&w) - billed(&model) / 2.0).abs() < 1e-12, "{request}");
    }
    // Between the steps, too.
    let model = ModelServer::start(RULE);
    let w = with_model(&model, "mode = 'batch'\n");
    night(&w, 0);
    w.kill_at_many_points(&["run", "p.toml", "-q"], Duration::from_millis(15));
    for wait in 0..12 {
        let mut child = w.command(&["run", "p.toml", "-q"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(12 * wait));
        // It may have ended by itself.
        let _ = child.kill();
        child.wait().unwrap();
    }
    w.run();
    w.run();
    assert_eq!(mentions(&w, DAYS[0]), mentions(&direct, DAYS[0]));
    nothing_was_asked_twice(&model);
    assert!((paid(&w) - billed(&model) / 2.0).abs() < 1e-12);
}

#[test]
fn batches_that_take_long_or_fail_lose_nothing() {
    let direct = directly();
    let model = ModelServer::start(RULE);
    let w = with_model(&model, "mode = 'batch'\n");
    night(&w, 0);
    model.batches(BatchManner::Running);
    w.run();
    // As long as it takes, nothing is asked again, also not one by one.
    w.run();
    pipeline(&w, &model, "");
    w.run();
    assert_eq!((model.batches_made(), model.totals().requests), (1, 0));
    pipeline(&w, &model, "mode = 'batch'\n");
    // Half of it was not reached in time, then all: what has no answer is in the next one.
    model.batches(BatchManner::Expired);
    w.ratoon(&["run", "p.toml", "-q"]).expect(0).says("they are asked again");
    assert_eq!(model.batches_made(), 2);
    model.batches(BatchManner::Failed);
    w.ratoon(&["run", "p.toml", "-q"]).expect(0).says("nobody had time");
    assert_eq!(model.batches_made(), 3);
    // A request that is answered badly fails its pages, is paid for, and is asked again in the next run.
    model.batches(BatchManner::Done);
    model.behave(|asked| if asked.attempt == 1 && asked.draws(0.3) { Manner::WrongJson } else { Manner::Good });
    w.ratoon(&["run", "p.toml", "-q"]).expect(3).says("failed");
    model.behave(|_| Manner::Good);
    w.ratoon(&["run", "p.toml", "-q"]);
    w.run();
    assert_eq!(mentions(&w, DAYS[0]), mentions(&direct, DAYS[0]));
    assert!((paid(&w) - billed(&model) / 2.0).abs() < 1e-12, "{} of {}", paid(&w), billed(&model));
    // A server that has no batches is told as such.
    let w = with_model(&model, "mode = 'batch'\n");
    pipeline(&w, &model, "mode = 'batch'\n");
    let text = fs::read_to_string(w.path("p.toml")).unwrap();
    fs::write(w.path("p.toml"), text.replace("/v1'", "/other'")).unwrap();
    night(&w, 0);
    w.ratoon(&["run", "p.toml", "-q"]).expect(0).says("a server without batches needs mode");
}

#[test]
fn a_budget_counts_half_of_what_asking_directly_may_cost() {
    let direct = directly();
    let model = ModelServer::start(RULE);
    let whole = with_model(&model, "mode = 'batch'\n");
    night(&whole, 0);
    whole.run();
    whole.run();
    let units = model.totals().requests;
    // What is reserved: a token for each byte of a request, and the longest answer, at half the price.
    let most: f64 = model.log().iter().map(|entry| (entry.asked.bytes as f64 + 600.0) / 2e6).sum();
    model.forget();
    let budget = most * 0.4;
    let w = with_model(&model, &format!("mode = 'batch'\nbudget = {budget}\n"));
    night(&w, 0);
    let mut spent = 0.0;
    for run in 0..10 {
        let ended = w.ratoon(&["run", "p.toml", "-q"]);
        assert!(billed(&model) / 2.0 - spent <= budget, "run {run}");
        spent = billed(&model) / 2.0;
        if deferred(&w, DAYS[0]) == 0 {
            assert!(run >= 3, "{run}");
            break;
        }
        let is_short = run < 2;
        assert_eq!(ended.code, if is_short { 3 } else { 0 }, "run {run}: {}", ended.stderr);
    }
    assert_eq!(mentions(&w, DAYS[0]), mentions(&direct, DAYS[0]));
    assert_eq!(model.totals().requests, units);
    assert!((paid(&w) - billed(&model) / 2.0).abs() < 1e-12);
}
