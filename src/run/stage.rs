//! What a stage is to whoever runs it.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::hands::Hands;
use super::progress::Progress;
use super::windows::FolderTimes;
use crate::config::Pipeline;
use crate::manifests::{Ingested, Saved};
use crate::model::window::Every;
use crate::model::{Snapshot, SnapshotId, StageId};
use crate::plan::PlanChoice;
use crate::store::Store;
use crate::store::index::Index;
use crate::store::manifest::{Done, Manifest, Summary};
use crate::store::view::Read;
use crate::tables::delta::Alert;

/// What every stage is given. It holds nothing that changes: what a stage finds out it returns or commits.
pub struct Context<'a> {
    pub pipeline: &'a Pipeline,
    /// The store as this stage may read it.
    pub store: &'a Store,
    /// What stages keep by URL or digest.
    pub index: &'a Index,
    pub progress: Progress,
    pub asked: Asked,
    /// It is to be done again from what it reads, whatever is there.
    pub forced: bool,
    /// Who works on its shards.
    pub(crate) hands: Hands<'a>,
}

/// What a caller asks of stages beyond what the pipeline file says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Overrides the pipeline file's choice.
    pub plan: Option<PlanChoice>,
    /// Write web joins too.
    pub keep_joins: bool,
    /// Every snapshot is whole, whatever it touched.
    pub whole: bool,
    /// What the newest snapshot lacks, because it failed or was left for later, is tried again.
    pub retry: bool,
}

impl<'a> Context<'a> {
    /// Of a stage that is done here, for the first time, with nothing special asked for.
    #[must_use]
    pub fn plain(pipeline: &'a Pipeline, store: &'a Store, index: &'a Index) -> Self {
        let (progress, asked) = (Progress::new(false), Asked::default());
        Self { pipeline, store, index, progress, asked, forced: false, hands: Hands::Own }
    }

    /// What the pipeline file or the command line asks for.
    #[must_use]
    pub fn plan(&self) -> PlanChoice {
        Asking { pipeline: self.pipeline, store: self.store, asked: self.asked }.plan()
    }
}

/// What a stage is given that is only asked whether it is done.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    pub pipeline: &'a Pipeline,
    pub store: &'a Store,
    pub asked: Asked,
}

impl Asking<'_> {
    /// What the pipeline file or the command line asks for.
    #[must_use]
    pub fn plan(&self) -> PlanChoice {
        self.asked.plan.unwrap_or(self.pipeline.plan.choose)
    }
}

/// A snapshot to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    pub snapshot: Snapshot,
    /// Its folder; `None` if it is no longer there (a stage after `ingest` does not need it).
    pub folder: Option<PathBuf>,
    /// The part of its folder that it is, if folders are cut into windows.
    pub window: Option<TaskWindow>,
}

/// A part of a folder to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskWindow {
    /// The folder's name.
    pub(crate) folder: SnapshotId,
    pub(crate) every: Every,
    /// It is the last of its folder.
    pub(crate) last: bool,
    /// What its captures are read from; `None` if that was not looked at.
    pub(crate) files: Option<BTreeSet<String>>,
    pub(crate) times: FolderTimes,
}

/// What a stage did on a snapshot.
pub struct Ran {
    pub stage: StageId,
    pub done: Done,
    /// What it left for later stages, for people who want to see it.
    pub summary: serde_json::Value,
    /// Of `ingest`: size of the archive files.
    pub archive_bytes: Option<u64>,
    /// Of `extract`: what recycling saved.
    pub saved: Option<Saved>,
    /// Watches that fired.
    pub alerts: Vec<Alert>,
    /// Queries that failed.
    pub failed_queries: Vec<String>,
}

impl Ran {
    pub fn new<S: Summary>(manifest: &Manifest<S>) -> Result<Self> {
        let summary = serde_json::to_value(&manifest.summary)?;
        Ok(Self {
            stage: S::STAGE,
            done: manifest.done(),
            summary,
            archive_bytes: None,
            saved: None,
            alerts: Vec::new(),
            failed_queries: Vec::new(),
        })
    }
}

/// Where a snapshot stands among the others, for a stage that asks itself whether it is done.
#[derive(Clone, Copy, Debug)]
pub struct Position<'a> {
    pub snapshot: &'a SnapshotId,
    /// The ingested snapshot before it.
    pub before: Option<&'a SnapshotId>,
    /// New and changed definitions are applied to it: it is the newest one, or part of a backfill.
    pub current: bool,
    /// Stages that are done again on it, whether they are done or not.
    pub again: &'a Again,
}

/// Stages that are done again on snapshots.
pub(crate) type Again = HashSet<(StageId, SnapshotId)>;

/// One step of a run. Stages meet only through tables and manifests.
pub trait Stage: Sync {
    fn id(&self) -> StageId;
    /// One line for help.
    fn about(&self) -> &'static str;
    /// All that it reads of what others wrote, and [`Read::Table`] of its own earlier snapshots is implied. The store
    /// refuses anything else. What is done again when something is forced follows from it.
    fn reads(&self) -> &'static [Read];
    /// The tables that it writes; those of extractors and queries by their common folder.
    fn writes(&self) -> &'static [&'static str];
    /// Whether a snapshot that has a manifest needs nothing more.
    fn is_done(&self, _asking: Asking<'_>, _at: Position<'_>) -> Result<bool> {
        Ok(true)
    }
    /// A snapshot is about to be ingested, soon, that it will be run on: what takes long to start may start.
    fn foresee(&self, _pipeline: &Pipeline) {}
    /// When all snapshots of a run are done: what is done once for all of them.
    fn end(&self, _asking: Asking<'_>) -> Result<()> {
        Ok(())
    }
    /// Does one snapshot and commits it. `done`: the ingested snapshots before it, oldest first.
    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran>;
}
