//! The stages, in order. Glue: each reads tables and archives, calls the core, writes tables.

pub mod ingest;
pub mod matching;
mod pairs;
pub mod schedule;
pub mod stats;

use std::path::PathBuf;

use anyhow::Result;

use crate::matching::MatcherKind;
use crate::model::Snapshot;
use crate::pipeline::config::{Pipeline, PlanChoice};
use crate::pipeline::progress::Progress;
use crate::store::Store;
use crate::store::manifest::Manifest;

/// What every stage is given.
pub struct Context<'a> {
    pub pipeline: &'a Pipeline,
    pub store: &'a Store,
    pub progress: Progress,
    /// Overrides the pipeline file's choice.
    pub plan: Option<PlanChoice>,
}

impl Context<'_> {
    /// The matcher to use on changed pages.
    #[must_use]
    pub fn matcher(&self) -> MatcherKind {
        self.plan.unwrap_or(self.pipeline.plan.choose).matcher()
    }

    /// Regions that are shorter serve nobody.
    #[must_use]
    pub fn min_region(&self) -> u32 {
        matching::DEFAULT_MIN_REGION
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
    /// Does one snapshot and commits it. `done`: the ingested snapshots before it, oldest first.
    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest]) -> Result<Manifest>;
}

/// All stages, in the order in which a snapshot goes through them.
pub static STAGES: &[&dyn Stage] = &[&ingest::Ingest, &matching::Match, &stats::Stats, &schedule::Schedules];

#[must_use]
pub fn named(name: &str) -> Option<&'static dyn Stage> {
    STAGES.iter().copied().find(|stage| stage.name() == name)
}

/// A URL as the tables have it.
pub fn normalise(url: &str, pipeline: &Pipeline) -> Result<String> {
    Ok(crate::text::url::normalise(url, pipeline.corpus.equate_schemes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_read_is_written_by_an_earlier_stage_and_described() {
        let known: Vec<&str> = crate::tables::all().iter().map(|table| table.name).collect();
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
