//! Tables as analysts open them: polars, DuckDB, pandas and pyarrow, on the sample data.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::models::deferred;
use crate::sql::polled;
use crate::workspace::{Ended, Workspace, project};

#[test]
#[ignore = "needs a Python with the readers: make test provides it"]
fn every_reader_opens_every_table() {
    let w = Workspace::sample("campus");
    // By a plan that leaves no table empty.
    w.ratoon(&["run", "p.toml", "--plan", "anchor"]).expect(0);
    let tables = w.ratoon(&["tables", "--json"]).expect(0).stdout;
    std::fs::write(w.path("tables.json"), tables).unwrap();
    let ended = script(&python(), "open_tables.py", &[&w.path("store"), &w.path("tables.json")]).expect(0);
    assert!(ended.stdout.contains("all tables open"), "{}", ended.stdout);
}

/// A script of `tests/python`, by the Python that `make test` names.
fn script(python: &Path, name: &str, args: &[&Path]) -> Ended {
    let mut command = Command::new(python);
    command.arg("-B").arg(project().join("tests/python").join(name)).args(args);
    Ended::of(&command.output().unwrap())
}

fn python() -> PathBuf {
    PathBuf::from(std::env::var("RATOON_PYTHON").expect("RATOON_PYTHON names a Python; make test sets it"))
}

/// The sample store that readers are tried on.
fn campus() -> Workspace {
    let w = Workspace::sample("campus");
    w.run();
    w
}

/// By `ratoon sql`, the Python module, DuckDB through the store's catalog, and the files themselves.
#[test]
#[ignore = "needs a Python with the readers: make test provides it"]
fn all_readers_agree_on_every_table_at_every_snapshot() {
    let w = campus();
    let program = Path::new(env!("CARGO_BIN_EXE_ratoon"));
    let ended = script(&python(), "agree.py", &[program, &w.path("store")]).expect(0);
    assert!(ended.stdout.contains("all readers agree"), "{}", ended.stdout);
    // Polls: slim snapshots and a page that went.
    let w = polled();
    let ended = script(&python(), "agree.py", &[program, &w.path("store")]).expect(0);
    assert!(ended.stdout.contains("all readers agree"), "{}", ended.stdout);
    // Pages that lack units.
    let (_model, w) = deferred();
    let ended = script(&python(), "agree.py", &[program, &w.path("store")]).expect(0);
    assert!(ended.stdout.contains("all readers agree"), "{}", ended.stdout);
}

/// polars alone passes over conditions of joins that are no equalities of columns.
#[test]
#[ignore = "needs a Python with the readers: make test provides it"]
fn joins_are_answered_as_duckdb_does_or_refused() {
    let w = campus();
    let program = Path::new(env!("CARGO_BIN_EXE_ratoon"));
    let ended = script(&python(), "joins.py", &[program, &w.path("store")]).expect(0);
    assert!(ended.stdout.contains("joins alike"), "{}", ended.stdout);
}

/// Installed from its wheel into an empty environment, where `make test` has built one.
#[test]
#[ignore = "needs a Python with the readers: make test provides it"]
fn an_analyst_is_answered_by_the_module_on_a_store_that_was_moved() {
    let w = campus();
    let (readers, readme) = (python(), project().join("pipelines/python/README.md"));
    let (installed, program) = match std::env::var_os("RATOON_WHEEL") {
        Some(wheel) => install(&w, &readers, Path::new(&wheel)),
        None => {
            // From the sources: a file that names their folder makes them importable.
            let installed = empty_environment(&w, &readers, &[&project().join("pipelines/python")]);
            (installed, PathBuf::from(env!("CARGO_BIN_EXE_ratoon")))
        }
    };
    let ended = script(&installed, "analyst.py", &[&program, &w.path("store"), &readme]).expect(0);
    assert!(ended.stdout.contains("all questions are answered"), "{}", ended.stdout);
}

/// An environment with nothing in it but what lies beside another Python, and in these folders.
fn empty_environment(w: &Workspace, readers: &Path, folders: &[&Path]) -> PathBuf {
    let venv = w.path("venv");
    let made = Command::new(readers).args(["-m", "venv"]).arg(&venv).output().unwrap();
    Ended::of(&made).expect(0);
    let ask = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let folder = |python: &Path| {
        let asked = Ended::of(&Command::new(python).args(["-c", ask]).output().unwrap()).expect(0);
        asked.stdout.trim().to_owned()
    };
    let python = venv.join("bin/python");
    let mut lines = folder(readers) + "\n";
    folders.iter().for_each(|folder| lines.push_str(&format!("{}\n", folder.display())));
    std::fs::write(Path::new(&folder(&python)).join("readers.pth"), lines).unwrap();
    python
}

/// Installs a wheel; gives the Python and the program that it brought.
fn install(w: &Workspace, readers: &Path, wheel: &Path) -> (PathBuf, PathBuf) {
    let python = empty_environment(w, readers, &[]);
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]).arg(wheel);
    Ended::of(&pip.output().unwrap()).expect(0);
    let program = w.path("venv/bin/ratoon");
    let version = Ended::of(&Command::new(&program).arg("--version").output().unwrap()).expect(0);
    assert!(version.stdout.starts_with("ratoon "), "{}", version.stdout);
    (python, program)
}

#[test]
#[ignore = "needs a Python with nbclient and matplotlib: make test provides it"]
fn the_notebook_shows_what_the_sample_store_says() {
    let notebook = project().join("pipelines/notebook.ipynb");
    // It shows since when mentions are kept, which follows from plans, and these from measured times: a machine that is busy
    // for a moment may choose another way.
    let shown = || script(&python(), "notebook.py", &[&notebook, &campus().path("store")]);
    let ended = (0..2).map(|_| shown()).find(|ended| ended.code == 0).unwrap_or_else(shown).expect(0);
    assert!(ended.stdout.contains("the notebook holds"), "{}", ended.stdout);
}
