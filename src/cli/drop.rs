//! `ratoon drop`: take the newest snapshots out of the store.

use std::path::PathBuf;

use clap::Args;

use super::outcome::Outcome;
use super::run::write_catalog;
use super::{Options, output, snapshot_id};
use crate::config::Pipeline;
use crate::model::SnapshotId;
use crate::report::upkeep;
use crate::run::drop::drop_from;
use crate::stages;

#[derive(Debug, Args)]
pub(super) struct DropArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The snapshot to take out, with all later ones
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    snapshot: SnapshotId,
}

pub(super) fn drop(args: &DropArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let dropped = drop_from(stages::graph(), &pipeline.corpus.store, &args.snapshot, options.dry_run)?;
    if !options.dry_run {
        write_catalog(&pipeline);
    }
    if options.json {
        return output::json(&upkeep::dropped_json(&dropped, options.dry_run));
    }
    if options.quiet {
        return Ok(Outcome::Done);
    }
    output::text(&upkeep::dropped(&dropped, &pipeline.path, options.dry_run))
}
