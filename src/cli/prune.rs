//! `ratoon prune`: drop old snapshots.

use std::path::PathBuf;

use clap::Args;

use super::outcome::Outcome;
use super::{Options, output, snapshot_id};
use crate::config::Pipeline;
use crate::model::SnapshotId;
use crate::report::upkeep;
use crate::stages;
use crate::stages::prune::prune_before;

#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The oldest snapshot to keep
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    before: SnapshotId,
}

pub(super) fn prune(args: &PruneArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let pruned = prune_before(stages::graph(), &pipeline.corpus.store, &args.before, options.dry_run)?;
    if options.json {
        return output::json(&upkeep::pruned_json(&pruned, options.dry_run));
    }
    if options.quiet {
        return Ok(Outcome::Done);
    }
    output::text(&upkeep::pruned(&pruned, &args.before, options.dry_run))
}
