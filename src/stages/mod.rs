//! The stages, in order. Glue: each reads tables and archives, calls the core, writes tables.

pub mod delta;
pub mod extract;
pub mod ingest;
pub mod matching;
mod pairs;
pub mod plan;
pub mod schedule;
pub mod stats;
mod timing;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use anyhow::Result;

use crate::model::{Snapshot, SnapshotId};
use crate::pipeline::config::{Pipeline, PlanChoice};
use crate::pipeline::progress::Progress;
use crate::store::Store;
use crate::store::manifest::Manifest;
use crate::tables::delta::Alert;

/// What every stage is given.
pub struct Context<'a> {
    pub pipeline: &'a Pipeline,
    pub store: &'a Store,
    pub progress: Progress,
    /// Overrides the pipeline file's choice.
    pub plan: Option<PlanChoice>,
    /// Extractors that this run extracted anew on a snapshot that was done: what later snapshots copied from it is out
    /// of date.
    pub restarted: Mutex<BTreeSet<String>>,
    /// Watches that fired in this run.
    pub alerts: Mutex<Vec<(SnapshotId, Alert)>>,
    /// Queries were asked again of a snapshot that was done: later snapshots have not been compared with its answers.
    pub asked_again: AtomicBool,
    /// Queries that failed in this run.
    pub failed_queries: Mutex<BTreeSet<String>>,
    /// Write web joins too.
    pub keep_joins: bool,
}

impl Context<'_> {
    /// What the pipeline file or the command line asks for.
    #[must_use]
    pub fn plan(&self) -> PlanChoice {
        self.plan.unwrap_or(self.pipeline.plan.choose)
    }
}

/// A snapshot to be done.
#[derive(Clone, Debug)]
pub struct Task {
    pub snapshot: Snapshot,
    /// Its folder; `None` if it is no longer there (a stage after `ingest` does not need it).
    pub folder: Option<PathBuf>,
}

/// One step of a run. Stages meet only through tables on disk.
pub trait Stage: Sync {
    fn name(&self) -> &'static str;
    /// One line for help.
    fn about(&self) -> &'static str;
    /// Tables read and written.
    fn reads(&self) -> &'static [&'static str];
    fn writes(&self) -> &'static [&'static str];
    /// Whether a snapshot that has a manifest needs nothing more. `newest`: no later snapshot is known.
    fn is_done(&self, _context: &Context<'_>, _manifest: &Manifest, _newest: bool) -> bool {
        true
    }
    /// Does one snapshot and commits it. `done`: the ingested snapshots before it, oldest first.
    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest]) -> Result<Manifest>;
}

/// All stages, in the order in which a snapshot goes through them.
pub static STAGES: &[&dyn Stage] = &[
    &ingest::Ingest,
    &plan::PlanStage,
    &matching::Match,
    &extract::Extract,
    &delta::Delta,
    &stats::Stats,
    &schedule::Schedules,
];

/// A URL as the tables have it.
pub fn normalise(url: &str, pipeline: &Pipeline) -> Result<String> {
    Ok(crate::text::url::normalise(url, pipeline.corpus.equate_schemes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_read_is_written_by_an_earlier_stage_and_described() {
        // Mentions are described once for all extractors, web tables for all queries.
        let tables = crate::tables::all();
        let known: Vec<&str> =
            tables.iter().map(|table| table.name.split_once("/<").map_or(table.name, |(folder, _)| folder)).collect();
        let mut written: Vec<&str> = Vec::new();
        for stage in STAGES {
            for table in stage.reads() {
                assert!(written.contains(table), "{} reads {table}, which nothing wrote", stage.name());
            }
            for table in stage.writes() {
                assert!(known.contains(table), "{table} is not in the schema reference");
                assert!(!written.contains(table), "{table} is written twice");
                written.push(table);
            }
        }
        assert_eq!(written.len(), known.len(), "a table of the schema reference is written by no stage");
    }
}
