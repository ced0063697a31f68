//! Did it work.

use std::sync::Arc;

use anyhow::Result;

use super::{Look, ROWS, counted};
use crate::extract::Status;
use crate::model::closed_set::ClosedSet;
use crate::report::overview::{Counted, Failure, Health, NightLine, ProblemLine};
use crate::report::status::LastRun;
use crate::run::problems;
use crate::store::manifest::SnapshotDone;
use crate::store::runs::RunLine;
use crate::tables::close::SnapshotRow;
use crate::tables::extract::{Extraction, ExtractionOutcome};
use crate::tables::ingest::{Capture, CaptureSuspect, RejectReason, RejectRow};
use crate::tables::record::Table as _;

/// `all`: also snapshots that are not done yet.
pub(super) fn health(look: &Look<'_>, all: &[Arc<SnapshotDone>]) -> Result<Health> {
    let mut health = Health { snapshots: look.done.len(), ..Health::default() };
    let unfinished = all.iter().filter(|done| done.table(SnapshotRow::NAME).is_none());
    health.unfinished = unfinished.map(|done| done.snapshot.id.clone()).collect();
    for night in look.nights.iter().rev() {
        for seen in problems::of(look.store, &night.snapshot)? {
            let pipeline = look.pipeline.path.display().to_string();
            health.problems.push(ProblemLine {
                kind: seen.problem.kind().name(),
                message: seen.problem.to_string(),
                remedy: seen.problem.remedy(&pipeline, &seen.snapshot),
                accepted: seen.accepted,
                snapshot: seen.snapshot,
            });
        }
    }
    let last = look.store.last_run(Some)?;
    health.last_run = last.map(|RunLine { start, end, exit_code, error, .. }| LastRun { start, end, exit_code, error });
    if let Some(newest) = look.nights.last() {
        reasons(look, newest, &mut health)?;
    }
    let line = |night: &NightLine| NightLine { snapshot: night.snapshot.clone(), row: night.row.clone() };
    health.shown = look.nights.iter().rev().map(line).collect();
    Ok(health)
}

/// Why something of the newest snapshot is not as it should be. Tables are read only if there is something to tell.
fn reasons(look: &Look<'_>, newest: &NightLine, health: &mut Health) -> Result<()> {
    let NightLine { snapshot, row } = newest;
    let lines = |counts: Vec<(String, u64)>| {
        counts.into_iter().take(ROWS).map(|(reason, count)| Counted { reason, count }).collect()
    };
    if row.rejects > 0 {
        let rejects = look.rows::<RejectReason>(RejectRow::NAME, snapshot)?;
        health.rejects = lines(counted(rejects.into_iter().map(|reject| reject.reason)));
    }
    if row.suspects > 0 {
        let captures = look.rows::<CaptureSuspect>(Capture::NAME, snapshot)?;
        let suspects = captures.into_iter().filter_map(|capture| capture.suspect);
        health.suspects = lines(counted(suspects.map(|suspect| suspect.to_string())));
    }
    if row.failed_extractions + row.deferred_extractions > 0 {
        let outcomes = look.rows::<ExtractionOutcome>(Extraction::NAME, snapshot)?.into_iter();
        let bad = outcomes.filter(|outcome| outcome.status != Status::Ok);
        let key = |outcome: ExtractionOutcome| {
            let error = outcome.error.unwrap_or_default();
            format!("{}\0{}\0{error}", outcome.extractor, outcome.status)
        };
        for (key, pages) in counted(bad.map(key)).into_iter().take(ROWS) {
            let mut parts = key.splitn(3, '\0');
            let mut part = || parts.next().unwrap_or_default().to_owned();
            let (extractor, status, error) = (part(), part(), part());
            let status = Status::named(&status).map_or("", ClosedSet::name);
            health.failures.push(Failure { extractor, status, error, pages });
        }
    }
    Ok(())
}
