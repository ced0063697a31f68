//! Nights on a real Spark: a standalone master and two workers on loopback. `tests/python/spark` has the cases and the
//! comparison; `make test-spark` runs them alone. `many_machines` plays Spark's part where there is none.

use std::process::Command;

use crate::workspace::{Ended, project};

#[test]
#[ignore = "needs Java and a Python with PySpark: make test provides both"]
fn nights_on_spark_are_those_of_one_machine() {
    let python = std::env::var("RATOON_SPARK_PYTHON").expect("RATOON_SPARK_PYTHON names a Python; make test sets it");
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(python)
        .arg("-B")
        .arg(project().join("tests/python/spark/run.py"))
        .arg(env!("CARGO_BIN_EXE_ratoon"))
        .arg(dir.path())
        .output()
        .unwrap();
    let ended = Ended::of(&output).expect(0);
    for case in ["sample: ", "faulty: ", "failing-worker: ", "synthetic: "] {
        assert!(ended.stdout.contains(case), "{}", ended.stdout);
    }
}
