//! What a run did, for whoever started it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;

use super::problems::Seen;
use crate::manifests::Saved;
use crate::model::{SnapshotId, StageId};
use crate::store::AtHand;
use crate::store::lock::StoreLock;
use crate::store::runs::{Untold, VerifiedPart};
use crate::store::view::Read;
use crate::tables::delta::Alert;

/// What was done (or would be).
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    pub store: PathBuf,
    pub done: Vec<Step>,
    /// Snapshots for which there was nothing to do.
    pub skipped: usize,
    /// Of the snapshots done now.
    pub captures: u64,
    /// Likewise; with nothing to do, of the newest one.
    pub rejects: u64,
    /// What is wrong with the snapshots that something was done on; with nothing to do, with the newest one.
    pub problems: Vec<Seen>,
    /// What was extracted from scratch and compared after the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<VerifiedPart>,
    /// Watches that fired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<Fired>,
    /// Queries that failed on some snapshot.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub failed_queries: BTreeSet<String>,
    /// Windows that are not over: they wait for a later one, a later folder or a file `_complete`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_windows: Vec<SnapshotId>,
    /// The snapshot whose problems were acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<SnapshotId>,
    /// Snapshots of the archive that are passed over, for they were dropped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<SnapshotId>,
    /// Stages that are out of date after this run, which did not do them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<StageId>,
    /// What earlier runs did that ended before they told anybody.
    #[serde(skip)]
    pub(crate) told_late: Untold,
    /// What each stage was seen to read, of what it declares.
    #[serde(skip)]
    pub reads: BTreeMap<StageId, BTreeSet<Read>>,
    /// What the run has in memory of the store, for the report on it.
    #[serde(skip)]
    pub(crate) at_hand: AtHand,
    /// Kept until the run was told.
    #[serde(skip)]
    pub(crate) lock: Option<StoreLock>,
}

/// A stage on a snapshot.
#[derive(Debug, Serialize)]
pub struct Step {
    pub stage: StageId,
    pub snapshot: SnapshotId,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// What the stage left for later ones, as it lies in its manifest: for programs that read `--json`.
    #[serde(skip_serializing_if = "serde_json::Value::is_null")]
    pub summary: serde_json::Value,
    /// Of `ingest`: size of the archive files.
    #[serde(skip)]
    pub archive_bytes: Option<u64>,
    /// Of `extract`: what recycling saved.
    #[serde(skip)]
    pub saved: Option<Saved>,
}

/// A watch that fired on a snapshot.
#[derive(Debug)]
pub struct Fired {
    pub snapshot: SnapshotId,
    pub alert: Alert,
}

impl Serialize for Fired {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.alert.to_json(&self.snapshot).serialize(serializer)
    }
}
