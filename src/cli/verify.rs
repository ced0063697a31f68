//! `ratoon verify` and `ratoon audit`: fresh looks at what is stored and declared.

use std::path::PathBuf;

use clap::Args;

use super::outcome::Outcome;
use super::{Options, output, snapshot_id};
use crate::config::Pipeline;
use crate::look::open_store;
use crate::model::SnapshotId;
use crate::report::checks;
use crate::run::inventory::known_snapshots;
use crate::stages::extract::verify::{self, Sample};
use crate::store::Store;

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The snapshot to look at [default: the newest with mentions]
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    snapshot: Option<SnapshotId>,
    /// Pages to look at
    #[arg(long, value_name = "N", default_value_t = 300)]
    sample: usize,
    /// Look at every page
    #[arg(long, conflicts_with = "sample")]
    all: bool,
    /// Chooses the sample
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The snapshot whose pages to use [default: the newest with mentions]
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    snapshot: Option<SnapshotId>,
    /// Pages to draw from
    #[arg(long, value_name = "N", default_value_t = 50)]
    sample: usize,
    /// Times to change the text around a mention
    #[arg(long, value_name = "N", default_value_t = 1000)]
    trials: u64,
    /// Chooses pages and changes
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The snapshot that was asked for, or else the newest that can be looked at.
fn looked_at(store: &Store, asked: Option<&SnapshotId>) -> anyhow::Result<SnapshotId> {
    match asked {
        Some(asked) => known_snapshots(store, [asked]).map(|_| asked.clone()),
        None => verify::newest_extracted(store),
    }
}

pub(super) fn verify(args: &VerifyArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let store = open_store(&pipeline)?;
    let snapshot = looked_at(&store, args.snapshot.as_ref())?;
    let sample = Sample { pages: (!args.all).then_some(args.sample), seed: args.seed };
    let verification = verify::verify(&pipeline, &store, &snapshot, sample, options.progress())?;
    let clean = verification.is_clean();
    if options.json {
        output::json(&verification.json())?;
    } else if !options.quiet || !clean {
        output::text(&verification.text())?;
    }
    if !clean {
        log::error!("stored mentions differ from extraction from scratch");
        return Ok(Outcome::Rejected);
    }
    Ok(Outcome::Done)
}

pub(super) fn audit(args: &AuditArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let store = open_store(&pipeline)?;
    let snapshot = looked_at(&store, args.snapshot.as_ref())?;
    let sample = Sample { pages: Some(args.sample), seed: args.seed };
    let audited = verify::audit(&pipeline, &store, &snapshot, sample, args.trials)?;
    if options.json {
        output::json(&checks::audit_json(&snapshot, &audited))?;
    } else {
        output::text(&checks::audit(&audited))?;
    }
    let passes = audited.iter().all(|audited| audited.audit.passes());
    Ok(if passes { Outcome::Done } else { Outcome::Rejected })
}
