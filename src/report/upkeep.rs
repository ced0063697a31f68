//! What was done to a store, or taken out of it: `prune`, `export`.

use std::path::Path;

use serde_json::{Value, json};

use crate::model::SnapshotId;

#[must_use]
pub(crate) fn pruned_json(pruned: &Pruned, dry_run: bool) -> Value {
    json!({"dropped": pruned.dropped, "kept": pruned.kept, "dry_run": dry_run})
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
        _ => format!("{verb} {}; {} snapshots stay\n", ids.join(", "), pruned.kept),
    }
}

#[must_use]
pub(crate) fn exported_json(snapshot: &SnapshotId, texts: u64, dir: &Path) -> Value {
    json!({"snapshot": snapshot, "texts": texts, "dir": dir})
}

#[must_use]
pub(crate) fn exported(snapshot: &SnapshotId, texts: u64, dir: &Path) -> String {
    format!("{texts} texts of {snapshot} in {}, all with the right digest\n", dir.display())
}
