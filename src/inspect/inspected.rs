//! An archive after a look at it.

use std::path::PathBuf;

use super::Inspection;
use crate::model::closed_set::closed_set;
use crate::model::{SnapshotId, Timestamp};

closed_set! {
    /// What a path leads to.
    pub(crate) enum PathKind: "kind of path" {
        /// One archive file.
        File = "file",
        /// A snapshot folder.
        Snapshot = "snapshot",
        /// A folder of snapshot folders, as `snapshots` of a pipeline file names it.
        Snapshots = "snapshots",
    }
}

/// Everything below a path, looked at.
#[derive(Debug)]
pub(crate) struct Inspected {
    pub path: PathBuf,
    pub kind: PathKind,
    /// In the order in which `ingest` would take them.
    pub snapshots: Vec<InspectedSnapshot>,
    /// Over all snapshots.
    pub total: Inspection,
}

/// One of the snapshots below a path.
#[derive(Debug)]
pub(crate) struct InspectedSnapshot {
    pub name: String,
    /// What it holds, or why it cannot be read.
    pub looked: Result<Looked, String>,
}

/// A snapshot that could be read.
#[derive(Debug)]
pub(crate) struct Looked {
    /// Such as `warc`, or `warc+manifest`.
    pub layout: String,
    /// What the layout was told by.
    pub why: String,
    pub files: u64,
    pub bytes: u64,
    /// `None` if its name cannot be one.
    pub id: Option<SnapshotId>,
    pub time: Option<Timestamp>,
    /// Whether the time is stated by its name, not taken from its newest capture.
    pub time_stated: bool,
    /// What is left out because it is read from elsewhere.
    pub remarks: Vec<String>,
    /// What may be other than it is read as.
    pub doubts: Vec<String>,
    pub found: Inspection,
}

impl Inspected {
    /// The snapshots that could be read.
    pub(crate) fn readable(&self) -> impl Iterator<Item = &Looked> {
        self.snapshots.iter().filter_map(|snapshot| snapshot.looked.as_ref().ok())
    }
}
