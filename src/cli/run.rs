//! `ratoon run` and the stages.

use std::path::Path;

use super::outcome::Outcome;
use super::{Options, PlannedArgs, StageArgs, output};
use crate::config::Pipeline;
use crate::model::StageId;
use crate::report;
use crate::run::stage::Asked;
use crate::run::{self, Summary, Wanted};
use crate::stages;

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
    let summary = run::run(stages::graph(), &pipeline, wanted, options.progress())?;
    if options.json {
        output::json(&summary)?;
    } else if !options.quiet {
        output::text(&report::run::summary(&summary, &pipeline.path, options.dry_run))?;
    }
    Ok(outcome(&summary, options))
}

fn outcome(summary: &Summary, options: &Options) -> Outcome {
    if !summary.failed_queries.is_empty() {
        let names = summary.failed_queries.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        log::error!("all else is done, but queries failed: {names}");
        Outcome::Failed
    } else if options.strict && summary.rejects > 0 {
        log::error!("--strict: {} rejects; see the table rejects", summary.rejects);
        Outcome::Rejected
    } else if summary.too_many_rejects {
        log::warn!("more rejects than max_reject_share allows; see the table rejects");
        Outcome::TooManyRejects
    } else {
        Outcome::Done
    }
}
