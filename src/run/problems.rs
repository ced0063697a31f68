//! What is wrong with snapshots: gathered from their manifests, said in one line each, also with `-q`.

use std::path::Path;

use anyhow::Result;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::model::{Problem, SnapshotId, StageId};
use crate::store::Store;

/// Log lines with this target are shown also with `-q`: who reads them was not there when the run was started.
pub(crate) const TOLD: &str = "ratoon::told";

/// A problem of a snapshot, and who saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub snapshot: SnapshotId,
    pub stage: StageId,
    pub problem: Problem,
    /// A person has acknowledged it.
    pub accepted: bool,
}

impl Seen {
    /// The problem and what to do about it, on one line. `pipeline` is the pipeline file.
    #[must_use]
    pub(crate) fn line(&self, pipeline: &Path) -> String {
        let Self { snapshot, problem, .. } = self;
        format!("snapshot {snapshot}: {problem}; {}", problem.remedy(&pipeline.display().to_string(), snapshot))
    }
}

impl Serialize for Seen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("snapshot", &self.snapshot)?;
        map.serialize_entry("stage", &self.stage)?;
        map.serialize_entry("kind", &self.problem.kind())?;
        map.serialize_entry("message", &self.problem.to_string())?;
        map.serialize_entry("accepted", &self.accepted)?;
        // The facts lie below the name of the kind, as in manifests.
        let facts = serde_json::to_value(&self.problem).map_err(serde::ser::Error::custom)?;
        map.serialize_entry("facts", &facts[self.problem.kind().as_str()])?;
        map.end()
    }
}

/// The problems of a snapshot, in the order of stages.
pub(crate) fn of(store: &Store, snapshot: &SnapshotId) -> Result<Vec<Seen>> {
    let Some(done) = store.snapshot_done(snapshot)? else { return Ok(Vec::new()) };
    let accepted = done.problems().next().is_some() && store.accepted()?.contains(snapshot);
    let seen = done.problems().map(|(stage, problem)| Seen {
        snapshot: snapshot.clone(),
        stage,
        problem: problem.clone(),
        accepted,
    });
    Ok(seen.collect())
}

/// Says problems that nobody has acknowledged.
pub(crate) fn tell(problems: &[Seen], pipeline: &Path) {
    for seen in problems.iter().filter(|seen| !seen.accepted) {
        log::warn!(target: TOLD, "{}", seen.line(pipeline));
    }
}
