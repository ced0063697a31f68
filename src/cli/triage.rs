//! `ratoon triage`: what a person should read first.

use std::path::PathBuf;

use clap::Args;

use super::outcome::Outcome;
use super::{Options, output, snapshot_id};
use crate::config::Pipeline;
use crate::look::{open_store, triage};
use crate::model::SnapshotId;

/// Rows that are shown.
const SHOWN: usize = 20;

#[derive(Debug, Args)]
pub(super) struct TriageArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// What changed after this snapshot, up to the newest [default: the one before the newest]
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    since: Option<SnapshotId>,
    /// Rows that are shown
    #[arg(long, value_name = "N", default_value_t = SHOWN)]
    limit: usize,
}

pub(super) fn triage(args: &TriageArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let store = open_store(&pipeline)?;
    let triaged = triage::changes(&pipeline, &store, args.since.as_ref(), usize::MAX)?;
    let most = if options.verbose > 0 { usize::MAX } else { args.limit };
    if options.json {
        return output::json(&triaged.json(most));
    }
    output::text(&triaged.text(most))
}
