//! `ratoon export`: a snapshot's texts, rebuilt from the store.

use std::path::PathBuf;

use clap::Args;

use super::outcome::{Outcome, refuse_used};
use super::{Options, output, snapshot_id};
use crate::config::Pipeline;
use crate::look::export::{self, Format};
use crate::look::open_store;
use crate::model::SnapshotId;
use crate::report::upkeep;

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The snapshot to rebuild
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    snapshot: SnapshotId,
    /// Where to write it: a manifest.jsonl and a file for each text, which ratoon reads as a snapshot again
    dir: PathBuf,
    /// One Parquet file (pages.parquet) with all texts instead
    #[arg(long)]
    parquet: bool,
}

pub(super) fn export(args: &ExportArgs, options: &Options) -> anyhow::Result<Outcome> {
    let store = open_store(&Pipeline::load(&args.pipeline)?)?;
    let texts = export::texts(&store, &args.snapshot)?;
    refuse_used(&args.dir, options)?;
    if options.dry_run {
        return output::text(&format!("dry run: {texts} texts would go to {}\n", args.dir.display()));
    }
    let format = if args.parquet { Format::Parquet } else { Format::Files };
    let texts = export::export(&store, &args.snapshot, &args.dir, format, options.progress())?;
    if options.json {
        return output::json(&upkeep::exported_json(&args.snapshot, texts, &args.dir));
    }
    if options.quiet {
        return Ok(Outcome::Done);
    }
    output::text(&upkeep::exported(&args.snapshot, texts, &args.dir))
}
