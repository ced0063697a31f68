//! `ratoon delta`: what changed, between consecutive snapshots or any two.

use std::path::PathBuf;

use clap::Args;

use super::outcome::{Outcome, refuse_used};
use super::{Options, StageArgs, output, snapshot_id};
use crate::config::Pipeline;
use crate::look::{self, open_store};
use crate::model::{SnapshotId, StageId};
use crate::run::Wanted;
use crate::run::inventory::known_snapshots;
use crate::run::stage::Asked;
use crate::stages::delta::between;

/// Pages of a night that are listed without `-v`.
const PAGES: usize = 20;

#[derive(Debug, Args)]
pub(super) struct DeltaArgs {
    #[command(flatten)]
    stage: StageArgs,
    /// Write the web joins of queries too, up to a million pairs
    #[arg(long)]
    keep_joins: bool,
    /// Compare this snapshot, of those ingested, with that of --to; nothing is written to the store
    #[arg(long, value_name = "ID", value_parser = snapshot_id, requires = "to", conflicts_with = "snapshot")]
    from: Option<SnapshotId>,
    /// The snapshot to compare with that of --from
    #[arg(long, value_name = "ID", value_parser = snapshot_id, requires = "from")]
    to: Option<SnapshotId>,
    /// Write the tables of --from and --to here
    #[arg(long, value_name = "DIR", requires = "from")]
    out: Option<PathBuf>,
}

pub(super) fn delta(args: &DeltaArgs, options: &Options) -> anyhow::Result<Outcome> {
    if let (Some(from), Some(to)) = (&args.from, &args.to) {
        return any_two(from, to, args, options);
    }
    let wanted = Wanted {
        stage: Some(StageId::Delta),
        snapshot: args.stage.snapshot.clone(),
        force: options.force,
        dry_run: options.dry_run,
        asked: Asked { keep_joins: args.keep_joins, retry: true, ..Asked::default() },
        ..Wanted::default()
    };
    let outcome = super::run::carry_out(&args.stage.pipeline, &wanted, options)?;
    if options.json || options.quiet || options.dry_run {
        return Ok(outcome);
    }
    let pipeline = Pipeline::load(&args.stage.pipeline)?;
    if let Some(night) = look::deltas::night(&pipeline, args.stage.snapshot.as_ref())? {
        let most = if options.verbose > 0 { usize::MAX } else { PAGES };
        output::text(&night.difference.text(&night.from, &night.to, None, most))?;
    }
    Ok(outcome)
}

fn any_two(from: &SnapshotId, to: &SnapshotId, args: &DeltaArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.stage.pipeline)?;
    let store = open_store(&pipeline)?;
    known_snapshots(&store, [from, to])?;
    let out = args.out.as_deref();
    if let Some(dir) = out {
        refuse_used(dir, options)?;
    }
    if options.dry_run {
        return output::text(&format!("dry run: would compare {from} with {to}\n"));
    }
    let difference = between::between(&pipeline, &store, from, to)?;
    if let Some(dir) = out {
        between::write(dir, &difference)?;
    }
    if options.json {
        return output::json(&difference.json(from, to, out));
    }
    if options.quiet && out.is_some() {
        return Ok(Outcome::Done);
    }
    output::text(&difference.text(from, to, out, usize::MAX))
}
