//! What was done to a store, or taken out of it: `prune`, `drop`, `export`.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::model::SnapshotId;
use crate::run::drop::Dropped;

#[must_use]
pub(crate) fn pruned_json(pruned: Option<&Pruned>, answers: &[AnswersLeft], dry_run: bool) -> Value {
    let answers: serde_json::Map<String, Value> = answers
        .iter()
        .map(|left| (left.extractor.clone(), json!({"dropped": left.dropped, "kept": left.kept})))
        .collect();
    json!({
        "dropped": pruned.map(|pruned| &pruned.dropped), "kept": pruned.map(|pruned| pruned.kept), "answers": answers,
        "dry_run": dry_run,
    })
}

/// An extractor's answers: those that stay, and those that went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswersLeft {
    pub extractor: String,
    pub kept: usize,
    pub dropped: usize,
}

#[must_use]
pub(crate) fn pruned_answers(answers: &[AnswersLeft]) -> String {
    let line =
        |left: &AnswersLeft| format!("{}: dropped {} answers; {} stay\n", left.extractor, left.dropped, left.kept);
    answers.iter().map(line).collect()
}

/// What a prune dropped, or would have.
#[derive(Debug)]
pub(crate) struct Pruned {
    pub dropped: Vec<SnapshotId>,
    /// How many snapshots stay.
    pub kept: usize,
}

/// What went, and what stays; `before` is the oldest snapshot that was to be kept.
#[must_use]
pub(crate) fn pruned(pruned: &Pruned, before: &SnapshotId, dry_run: bool) -> String {
    let verb = if dry_run { "would drop" } else { "dropped" };
    let ids: Vec<&str> = pruned.dropped.iter().map(SnapshotId::as_str).collect();
    match ids.as_slice() {
        [] => format!("nothing is older than {before}\n"),
        _ => format!("{verb} {}; {}\n", ids.join(", "), staying(pruned.kept)),
    }
}

/// So many snapshots, and that they are still there.
fn staying(kept: usize) -> String {
    if kept == 1 { "1 snapshot stays".to_owned() } else { format!("{kept} snapshots stay") }
}

#[must_use]
pub(crate) fn dropped_json(dropped: &Dropped, dry_run: bool) -> Value {
    json!({"dropped": dropped.dropped, "kept": dropped.kept, "dry_run": dry_run})
}

/// What was taken out, and how it comes back.
#[must_use]
pub(crate) fn dropped(dropped: &Dropped, pipeline: &Path, dry_run: bool) -> String {
    let verb = if dry_run { "would take out" } else { "took out" };
    let ids: Vec<&str> = dropped.dropped.iter().map(SnapshotId::as_str).collect();
    let mut text = format!("{verb} {}; {}\n", ids.join(", "), staying(dropped.kept));
    for id in ids {
        let _ = writeln!(text, "`ratoon run {} --force --snapshot {id}` takes {id} in again", pipeline.display());
    }
    text
}

#[must_use]
pub(crate) fn exported_json(snapshot: &SnapshotId, texts: u64, dir: &Path) -> Value {
    json!({"snapshot": snapshot, "texts": texts, "dir": dir})
}

#[must_use]
pub(crate) fn exported(snapshot: &SnapshotId, texts: u64, dir: &Path) -> String {
    format!("{texts} texts of {snapshot} in {}, all with the right digest\n", dir.display())
}
