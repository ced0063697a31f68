//! A learned extractor for real: a spaCy model that is trained here.

use std::process::Command;

use crate::workspace::project;

#[test]
#[ignore = "needs Python with spaCy: make test"]
fn a_trained_model_finds_by_blocks_what_it_finds_from_scratch() {
    let python = std::env::var("RATOON_PYTHON").expect("RATOON_PYTHON names a Python; make test sets it");
    let script = project().join("tests/python/learned.py");
    let output = Command::new(python).arg("-B").arg(script).arg(env!("CARGO_BIN_EXE_ratoon")).output().unwrap();
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("researcher: 0 wrong"), "{said}");
}
