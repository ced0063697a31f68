//! `ratoon run` and the stages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::outcome::{Outcome, code_of, is_locked};
use super::{Options, PlannedArgs, StageArgs, output};
use crate::config::Pipeline;
use crate::model::StageId;
use crate::report;
use crate::run::stage::Asked;
use crate::run::{self, Summary, Wanted};
use crate::stages;
use crate::store::Store;
use crate::store::runs::{RunLine, peak_memory_bytes};

pub(super) fn run(
    stage: Option<StageId>,
    args: &StageArgs,
    planned: Option<&PlannedArgs>,
    options: &Options,
) -> anyhow::Result<Outcome> {
    let wanted = Wanted {
        stage,
        snapshot: args.snapshot.clone(),
        force: options.force,
        discard_history: args.discard_history,
        dry_run: options.dry_run,
        backfill: planned.and_then(|planned| planned.backfill.clone()),
        asked: Asked { plan: planned.and_then(|planned| planned.plan), keep_joins: false, whole: args.whole },
    };
    carry_out(&args.pipeline, &wanted, options)
}

/// Does what is wanted and says what was done.
pub(super) fn carry_out(pipeline: &Path, wanted: &Wanted, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(pipeline)?;
    let start = jiff::Timestamp::now();
    let ran = run::run(stages::graph(), &pipeline, wanted, options.progress());
    if !wanted.dry_run && !ran.as_ref().is_err_and(is_locked) {
        note(&pipeline, start, &ran, options);
    }
    let summary = ran?;
    if options.json {
        output::json(&summary)?;
    } else if !options.quiet {
        output::text(&report::run::summary(&summary, &pipeline.path, options.dry_run))?;
    }
    Ok(outcome(&summary, options))
}

/// Writes down how a run went, if there is a store to write it to. One that had nothing to do is not worth a line.
fn note(pipeline: &Pipeline, start: jiff::Timestamp, ran: &anyhow::Result<Summary>, options: &Options) {
    let Ok(Some(store)) = Store::open(&pipeline.corpus.store) else { return };
    let mut seconds = BTreeMap::new();
    let mut snapshots = BTreeSet::new();
    for step in ran.iter().flat_map(|summary| &summary.done) {
        *seconds.entry(step.stage).or_default() += step.seconds.unwrap_or(0.0);
        snapshots.insert(&step.snapshot);
    }
    if ran.is_ok() && snapshots.is_empty() {
        return;
    }
    let line = RunLine {
        start: start.to_string(),
        end: jiff::Timestamp::now().to_string(),
        seconds,
        snapshots: snapshots.len(),
        exit_code: match ran {
            Ok(summary) => outcome_of(summary, options).code(),
            Err(error) => code_of(error),
        },
        error: ran.as_ref().err().map(|error| format!("{error:#}")),
        version: env!("CARGO_PKG_VERSION"),
        peak_memory_bytes: peak_memory_bytes(),
    };
    // A run that is done does not fail for this.
    if let Err(error) = store.note_run(&line) {
        log::debug!("cannot note the run: {error}");
    }
}

/// How a run that did not fail ended.
fn outcome_of(summary: &Summary, options: &Options) -> Outcome {
    match () {
        () if !summary.failed_queries.is_empty() => Outcome::Failed,
        () if options.strict && summary.rejects > 0 => Outcome::Rejected,
        () if summary.problems.iter().any(|seen| !seen.accepted) => Outcome::Problem,
        () => Outcome::Done,
    }
}

fn outcome(summary: &Summary, options: &Options) -> Outcome {
    let outcome = outcome_of(summary, options);
    match outcome {
        // Each problem was said when it was seen.
        Outcome::Done | Outcome::Problem => {}
        Outcome::Failed => {
            let names = summary.failed_queries.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            log::error!("all else is done, but queries failed: {names}");
        }
        Outcome::Rejected => log::error!("--strict: {} rejects; see the table rejects", summary.rejects),
    }
    outcome
}
