//! What models cost beside what they must: waiting for a server, and text that is sent twice.
//!
//! Part 1: a server that takes 200 ms for each answer, eight requests in flight; the yardstick is requests x 200 ms / 8.
//! Part 2: two nights of a synthetic campus with menus that all pages share; the yardstick is the text of all distinct
//! units that the second night brings.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    dead_code,
    unused_imports,
    reason = "a benchmark"
)]

#[path = "../it/model_server/mod.rs"]
mod model_server;

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use model_server::{Manner, ModelServer};

const RULE: &str = r"(?P<who>(?:Dr|Prof)\. [A-Z][a-z]+ [A-Z][a-z]+)";

fn run(dir: &Path, args: &[&str]) -> f64 {
    let started = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_ratoon")).args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    started.elapsed().as_secs_f64()
}

fn site(dir: &Path, pages: &str, boilerplate: &str) -> Vec<String> {
    let change = ["--snapshots", "2", "--change", "0.05", "--boilerplate", boilerplate];
    run(dir, &[&["synth", "snapshots", "--part", "campus", "--pages", pages], &change[..]].concat());
    let folders = fs::read_dir(dir.join("snapshots")).unwrap();
    let mut ids: Vec<String> = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    ids.sort();
    ids
}

fn pipeline(dir: &Path, model: &ModelServer, store: &str, in_flight: u32) {
    fs::write(dir.join("p.md"), "Find people with a title: {attributes}.").unwrap();
    let text = format!(
        "[corpus]\nsnapshots = 'snapshots'\nstore = '{store}'\n[[extractor]]\nname = 'm'\nkind = 'llm'\nmodel = 'm'\n\
         endpoint = '{}'\nprompt = 'p.md'\nattributes = {{ who = 'string' }}\nin_flight = {in_flight}\n",
        model.endpoint()
    );
    fs::write(dir.join(format!("{store}.toml")), text).unwrap();
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let ids = site(dir.path(), "300", "0.3");
    let model = ModelServer::start(RULE);
    println!("| server | in flight | requests | seconds | of requests x time / in flight |\n|---|---|---|---|---|");
    let mut at_once = 0.0;
    for (delay, in_flight) in [(0, 8), (200, 8)] {
        model.behave(move |_| if delay == 0 { Manner::Good } else { Manner::Slow(Duration::from_millis(delay)) });
        model.forget();
        let store = format!("s{delay}");
        pipeline(dir.path(), &model, &store, in_flight);
        let seconds = run(dir.path(), &["extract", &format!("{store}.toml"), "--snapshot", &ids[0]]);
        let requests = model.totals().requests;
        let least = requests as f64 * delay as f64 / 1e3 / f64::from(in_flight);
        if delay == 0 {
            at_once = seconds;
        }
        let share = if delay == 0 { String::new() } else { format!("{:.3}", seconds / least) };
        println!("| {delay} ms | {in_flight} | {requests} | {seconds:.2} | {share} |");
    }
    println!("\n{at_once:.2} s of that are spent without any waiting: ingest, extraction and syncing of answers.\n");
    model.behave(|_| Manner::Good);
    let known: HashSet<String> = model.texts().into_iter().map(|(text, _)| text).collect();
    model.forget();
    run(dir.path(), &["extract", "s200.toml"]);
    let texts = model.texts();
    let sent: usize = texts.iter().map(|(text, times)| text.len() * usize::try_from(*times).unwrap()).sum();
    let distinct: usize = texts.iter().filter(|(text, _)| !known.contains(text)).map(|(text, _)| text.len()).sum();
    println!("| second night | requests | bytes sent | distinct new units | ratio |\n|---|---|---|---|---|");
    println!(
        "| campus with shared menus | {} | {sent} | {distinct} | {:.3} |",
        model.totals().requests,
        sent as f64 / distinct.max(1) as f64
    );
}
