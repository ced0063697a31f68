//! Tables as analysts open them: polars, DuckDB, pandas and pyarrow, on the sample data.

use std::process::Command;

use crate::workspace::{Ended, Workspace, project};

#[test]
#[ignore = "needs a Python with the readers: make test provides it"]
fn every_reader_opens_every_table() {
    let python = std::env::var("RATOON_PYTHON").expect("RATOON_PYTHON names a Python; make test sets it");
    let w = Workspace::sample("campus");
    // By a plan that leaves no table empty.
    w.ratoon(&["run", "p.toml", "--plan", "anchor"]).expect(0);
    let tables = w.ratoon(&["tables", "--json"]).expect(0).stdout;
    std::fs::write(w.path("tables.json"), tables).unwrap();
    let output = Command::new(python)
        .arg(project().join("tests/python/open_tables.py"))
        .args([w.path("store"), w.path("tables.json")])
        .output()
        .unwrap();
    let ended = Ended::of(&output).expect(0);
    assert!(ended.stdout.contains("all tables open"), "{}", ended.stdout);
}
