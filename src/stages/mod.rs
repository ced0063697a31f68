//! What each stage does with a snapshot: reads tables and archives, calls the core, writes tables.
//!
//! Here is glue and nothing else: algorithms lie in the core, order and staleness in [`crate::run`], what a stage leaves
//! for others in [`crate::manifests`].
//!
//! # To add a stage
//! Three files: a module here with a type that implements [`Stage`]; its member of [`crate::model::StageId`]; its
//! line in [`STAGES`] (this file). A stage with tables also declares them in [`crate::tables`].

pub(crate) mod close;
pub(crate) mod delta;
pub(crate) mod extract;
mod follow;
pub(crate) mod ingest;
mod link_target;
pub(crate) mod matching;
mod pairs;
pub(crate) mod plan;
pub(crate) mod prune;
#[cfg(test)]
mod reads_tests;
pub(crate) mod schedule;
pub(crate) mod stats;

use anyhow::Result;

use crate::config::Pipeline;
use crate::run::graph::Graph;
use crate::run::stage::Stage;

/// All stages, in the order in which a snapshot goes through them.
pub(crate) static STAGES: &[&dyn Stage] = &[
    &ingest::Ingest,
    &plan::PlanStage,
    &matching::Match,
    &extract::Extract,
    &delta::Delta,
    &stats::Stats,
    &schedule::Schedules,
    &close::Close,
];

/// All stages, and which builds on which.
#[must_use]
pub fn graph() -> Graph {
    Graph::new(STAGES)
}

/// A URL as the tables have it.
pub(crate) fn normalise(url: &str, pipeline: &Pipeline) -> Result<String> {
    Ok(crate::text::url::normalise(url, pipeline.corpus.equate_schemes)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::StageId;
    use crate::store::view::Read;

    #[test]
    fn every_table_read_is_written_by_an_earlier_stage_and_described() {
        // Mentions are described once for all extractors, web tables for all queries.
        let tables = crate::tables::all();
        let known: Vec<&str> =
            tables.iter().map(|table| table.name.split_once("/<").map_or(table.name, |(folder, _)| folder)).collect();
        let mut written: Vec<&str> = Vec::new();
        for stage in STAGES {
            for read in stage.reads() {
                if let Read::Table(table) | Read::Derived(table) = read {
                    assert!(written.contains(table), "{} reads {table}, which nothing wrote", stage.id());
                }
            }
            for table in stage.writes() {
                assert!(known.contains(table), "{table} is not in the schema reference");
                assert!(!written.contains(table), "{table} is written twice");
                written.push(table);
            }
        }
        assert_eq!(written.len(), known.len(), "a table of the schema reference is written by no stage");
    }

    #[test]
    fn what_builds_on_a_stage_follows_from_what_is_read() {
        let from = |stage| graph().from(stage).iter().map(|stage| stage.id()).collect::<Vec<_>>();
        use StageId::{Close, Delta, Extract, Ingest, Match, Plan, Schedule, Stats};
        assert_eq!(from(Ingest), StageId::ALL);
        assert_eq!(from(Plan), [Plan, Match, Extract, Delta, Close]);
        assert_eq!(from(Match), [Match, Extract, Delta, Close]);
        assert_eq!(from(Extract), [Extract, Delta, Close]);
        assert_eq!(from(Delta), [Delta, Close]);
        assert_eq!(from(Stats), [Stats, Schedule]);
        assert_eq!(from(Schedule), [Schedule]);
        let ids: BTreeSet<StageId> = STAGES.iter().map(|stage| stage.id()).collect();
        assert_eq!(ids.len(), StageId::ALL.len(), "each stage is there once");
    }
}
