//! A store with slim snapshots says what one with whole snapshots says, told by readers of the tables alone.

use std::process::Command;

use crate::workspace::project;

#[test]
#[ignore = "needs Python with polars: make test"]
fn slim_snapshots_say_what_whole_ones_say() {
    let python = std::env::var("RATOON_PYTHON").expect("RATOON_PYTHON names a Python with polars");
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(python);
    command.arg("-B").arg(project().join("tests/python/slim_equals_whole.py"));
    command.arg(env!("CARGO_BIN_EXE_ratoon")).arg(dir.path()).args(["--seed", "20240301", "--cases", "6"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("slim ones"), "{said}");
}
