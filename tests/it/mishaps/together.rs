//! Several at once: runs on one store, and readers while everything is done again.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ratoon::inside::model::SnapshotId;
use ratoon::inside::store::Store;
use ratoon::inside::tables::extract::{Extraction, MentionDelta};
use ratoon::inside::tables::ingest::{LinkRow, Page};
use ratoon::inside::tables::record::Table;

use super::{SECTIONS, assert_same, day, nights};

#[test]
fn of_several_runs_at_once_one_works_and_the_others_say_so() {
    let quiet = nights(SECTIONS, 3);
    quiet.run();
    let w = nights(SECTIONS, 3);
    let start = || w.command(&["run", "p.toml", "-q"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let runs: Vec<_> = (0..5).map(|_| start()).collect();
    let ended: Vec<_> = runs.into_iter().map(|run| run.wait_with_output().unwrap()).collect();
    for output in &ended {
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => assert!(said.is_empty(), "{said}"),
            Some(75) => {
                assert!(said.contains("in use by another run (process ") && said.lines().count() == 1, "{said}");
            }
            other => panic!("{other:?}: {said}"),
        }
    }
    assert!(ended.iter().any(|output| output.status.success()));
    w.run();
    assert_same(&w.table_bytes(), &quiet.table_bytes(), "several at once");
}

/// The rows of a partition as text.
fn rows<T: Table + std::fmt::Debug>(store: &Store, night: usize) -> String {
    let id = SnapshotId::new(day(night)).unwrap();
    format!("{:?}", store.partition(T::NAME, &id).unwrap().all_rows::<T>().unwrap())
}

/// What somebody reads who opens the store now: each table of each night.
fn reading(root: &std::path::Path) -> Vec<(usize, &'static str, String)> {
    let store = Store::open(root).unwrap().unwrap();
    let mut all = Vec::new();
    for night in 1..=3 {
        all.push((night, "pages", rows::<Page>(&store, night)));
        all.push((night, "links", rows::<LinkRow>(&store, night)));
        all.push((night, "extractions", rows::<Extraction>(&store, night)));
        all.push((night, "mention_deltas", rows::<MentionDelta>(&store, night)));
    }
    all
}

#[test]
fn who_reads_while_all_is_done_again_sees_old_or_new() {
    let w = nights(SECTIONS, 3);
    w.run();
    let root = w.path("store");
    let mut allowed: BTreeSet<_> = reading(&root).into_iter().collect();
    // Other settings give other rows in all these tables.
    let other = format!("ignore = ['Line 3']\n{}", SECTIONS.replace("[A-Z][a-z]+", "[A-Z][a-z]{3,}"));
    let new = nights(&other, 3);
    new.run();
    let after: Vec<_> = reading(&new.path("store"));
    assert!(after.iter().filter(|row| !allowed.contains(*row)).count() > 3, "something is to change");
    allowed.extend(after.iter().cloned());
    w.pipeline(&other);
    let done = AtomicBool::new(false);
    let reads = thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut reads = 0;
                    while !done.load(Ordering::Relaxed) {
                        for row in reading(&root) {
                            assert!(allowed.contains(&row), "{} of night {}: neither old nor new", row.1, row.0);
                        }
                        reads += 1;
                    }
                    reads
                })
            })
            .collect();
        for _ in 0..3 {
            w.ratoon(&["run", "p.toml", "-q", "--force"]).expect(0);
        }
        done.store(true, Ordering::Relaxed);
        readers.into_iter().map(|reader| reader.join().unwrap()).sum::<usize>()
    });
    assert!(reads > 5, "{reads}");
    assert_eq!(reading(&root), after, "at the end it is the new");
}
