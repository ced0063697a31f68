//! The loop from schedules to polls to snapshots, with the real poller, on a site whose rhythms are known.

use std::process::Command;

use crate::workspace::{Ended, Workspace, project};

#[test]
#[ignore = "needs a Python with polars: make test provides it"]
fn what_schedules_promise_comes_out() {
    let python = std::env::var("RATOON_PYTHON").expect("RATOON_PYTHON names a Python; make test sets it");
    let w = Workspace::new("");
    let output = Command::new(python)
        .arg(project().join("tests/python/loop.py"))
        .arg(env!("CARGO_BIN_EXE_ratoon"))
        .arg(w.path("loop"))
        .args(["--days", "4"])
        .output()
        .unwrap();
    let ended = Ended::of(&output).expect(0);
    assert!(ended.stdout.contains("the loop holds what it promises"), "{}", ended.stdout);
}
