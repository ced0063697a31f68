//! `ratoon prune`: drop old snapshots.

use std::path::PathBuf;

use clap::Args;

use super::outcome::Outcome;
use super::run::write_catalog;
use super::{Options, output, snapshot_id};
use crate::config::Pipeline;
use crate::model::SnapshotId;
use crate::report::upkeep;
use crate::stages;
use crate::stages::prune::{prune_before, prune_kept_answers};

#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The oldest snapshot to keep
    #[arg(long, value_name = "ID", value_parser = snapshot_id, required_unless_present = "answers")]
    before: Option<SnapshotId>,
    /// Also drop kept answers that no text of a kept snapshot needs
    #[arg(long)]
    answers: bool,
}

pub(super) fn prune(args: &PruneArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let pruned = match &args.before {
        Some(before) => Some(prune_before(stages::graph(), &pipeline.corpus.store, before, options.dry_run)?),
        None => None,
    };
    // Which answers are needed shows only when snapshots are gone.
    let answers = if args.answers && !options.dry_run { prune_kept_answers(&pipeline)? } else { Vec::new() };
    if !options.dry_run {
        write_catalog(&pipeline);
    }
    if options.json {
        return output::json(&upkeep::pruned_json(pruned.as_ref(), &answers, options.dry_run));
    }
    if options.quiet {
        return Ok(Outcome::Done);
    }
    let snapshots = args.before.as_ref().zip(pruned.as_ref());
    let mut text =
        snapshots.map(|(before, pruned)| upkeep::pruned(pruned, before, options.dry_run)).unwrap_or_default();
    text.push_str(&upkeep::pruned_answers(&answers));
    output::text(&text)
}
