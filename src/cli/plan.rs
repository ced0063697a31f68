//! `ratoon plan`: chooses, and explains.

use clap::Args;

use super::outcome::Outcome;
use super::{Options, PlannedArgs, output, run};
use crate::config::Pipeline;
use crate::look::{open_store, plan::explain};
use crate::model::StageId;

#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    planned: PlannedArgs,
    /// Show every alternative with its expected cost, and what the snapshot came to once it is done
    #[arg(long)]
    explain: bool,
}

pub(super) fn plan(args: &PlanArgs, options: &Options) -> anyhow::Result<Outcome> {
    let planned = &args.planned;
    if !args.explain {
        return run::stage(StageId::Plan, &planned.stage, Some(planned), options);
    }
    // Only the explanation goes to stdout.
    let silent = Options { quiet: true, json: false, ..options.clone() };
    let outcome = run::stage(StageId::Plan, &planned.stage, Some(planned), &silent)?;
    let pipeline = Pipeline::load(&planned.stage.pipeline)?;
    let store = open_store(&pipeline)?;
    let explained = explain(&pipeline, &store, planned.stage.snapshot.as_ref())?;
    if options.json {
        output::json(&explained.json())?;
    } else {
        output::text(&explained.text(options.verbose > 0))?;
    }
    Ok(outcome)
}
