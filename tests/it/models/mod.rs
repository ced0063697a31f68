//! Answers that are kept, and models: each distinct unit is sent once, what was billed is what the tables say, and a
//! server's moods change nothing.

mod asking;
mod batches;
mod budgets;
mod full_disk;
mod workers;

use std::fs;

use ratoon::inside::extract::LabelColumn;
use ratoon::inside::model::SnapshotId;
use ratoon::inside::store::parquet::Partition;
use ratoon::inside::tables::extract::AnswerRow;
use ratoon::inside::tables::mentions::{MentionRow, MentionSchema};

pub(crate) use self::budgets::deferred;
use crate::model_server::{ModelServer, Tokens};
use crate::workspace::Workspace;

const RULE: &str = r"(?P<who>[A-Z][a-z]+ [A-Z][a-z]+) speaks(?: at (?P<time>[0-9]+))?";

const DAYS: [&str; 3] = ["2024-01-01", "2024-01-02", "2024-01-03"];

/// A pipeline file with a model, and further keys of it.
fn with_model(model: &ModelServer, keys: &str) -> Workspace {
    let w = Workspace::new("");
    pipeline(&w, model, keys);
    w
}

fn pipeline(w: &Workspace, model: &ModelServer, keys: &str) {
    declare(w, model, "m", "who = 'string', time = { type = 'string', optional = true }", keys);
}

/// A pipeline file with an extractor `event` that asks a server for a model of this name, and further keys of it.
pub(crate) fn declare(w: &Workspace, server: &ModelServer, model: &str, attributes: &str, keys: &str) {
    fs::write(w.path("event.md"), "Find who speaks: {attributes}.\n").unwrap();
    w.pipeline(&format!(
        "[[extractor]]\nname = 'event'\nkind = 'llm'\nendpoint = '{}'\nmodel = '{model}'\nprompt = 'event.md'\n\
         attributes = {{ {attributes} }}\nblock_bytes = 120\nprice = {{ input = 1.0, output = 2.0 }}\n{keys}",
        server.endpoint()
    ));
}

fn line(i: usize) -> String {
    const FIRST: [&str; 7] = ["Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gil"];
    const LAST: [&str; 5] = ["Abel", "Brook", "Cole", "Dover", "Elm"];
    let (first, last) = (FIRST[i % 7], LAST[i / 7 % 5]);
    if i.is_multiple_of(3) {
        format!("{first} {last} speaks at {i}")
    } else {
        format!("{first} {last} speaks of {i} things")
    }
}

/// A menu that all pages have, then lines of their own.
fn page(own: &[usize]) -> String {
    let menu = (900..912).map(line).map(|line| format!("<li>{line}</li>")).collect::<String>();
    let lines = own.iter().map(|&i| format!("<p>{}</p>", line(i))).collect::<String>();
    format!("<html><head><title>T</title></head><body><ul>{menu}</ul>{lines}</body></html>")
}

/// Three nights of twelve pages that share a menu; some lines come, go and move.
fn nights(w: &Workspace) {
    for (night, day) in DAYS.iter().enumerate() {
        let pages: Vec<(String, String)> = (0..12)
            .map(|p| {
                let mut own: Vec<usize> = (p * 20..p * 20 + 14).collect();
                if p % 4 == 1 {
                    own[3] += 300 * night;
                    own.rotate_left(night);
                }
                (format!("p{p}"), page(&own))
            })
            .collect();
        let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
        w.snapshot(day, &pages);
    }
}

fn schema() -> MentionSchema {
    MentionSchema { label: None::<LabelColumn>, attributes: vec![("who".into(), false), ("time".into(), false)] }
}

fn mentions(w: &Workspace, day: &str) -> Vec<MentionRow> {
    let file = w.store().partition_file("mentions/event", &SnapshotId::new(day).unwrap());
    let partition = Partition::open(&file).unwrap();
    partition.batches(&partition.all(), None).unwrap().iter().flat_map(|b| schema().decode(b).unwrap()).collect()
}

fn answers(w: &Workspace, extractor: &str, day: &str) -> Vec<AnswerRow> {
    let file = w.store().partition_file(&format!("answers/{extractor}"), &SnapshotId::new(day).unwrap());
    if file.exists() { Partition::open(&file).unwrap().all_rows().unwrap() } else { Vec::new() }
}

/// Mentions without where they come from.
fn found(w: &Workspace) -> Vec<(String, MentionRow)> {
    let since = SnapshotId::new("x").unwrap();
    let plain = |row: MentionRow| MentionRow { copied: false, since: since.clone(), ..row };
    DAYS.iter().flat_map(|day| mentions(w, day).into_iter().map(|row| ((*day).to_owned(), plain(row)))).collect()
}

/// Tables that must not depend on how answers came.
fn tables(w: &Workspace) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    w.table_bytes().into_iter().filter(|(path, _)| !path.starts_with("answers")).collect()
}

/// What a server billed, in the prices of the pipeline file.
fn billed(model: &ModelServer) -> f64 {
    let Tokens { input, output } = model.totals().billed;
    (input as f64 + 2.0 * output as f64) / 1e6
}
