//! `ratoon check`: whether the files of a store are what was written.

use std::path::PathBuf;

use clap::Args;

use super::outcome::Outcome;
use super::{Options, output};
use crate::config::Pipeline;
use crate::look;
use crate::look::open_store;
use crate::report::integrity::Integrity;
use crate::run::stage::Asked;
use crate::run::{self, Wanted};
use crate::stages;
use crate::store::integrity::Subset;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ratoon check my.toml                  all files\n  ratoon check my.toml --subset 3/30    one part of thirty, for a timer\n  ratoon check my.toml --repair         and make again what is damaged or missing"
)]
pub(super) struct CheckArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// Only one part of all files, such as 3/30
    #[arg(long, value_name = "K/N", value_parser = subset)]
    subset: Option<Subset>,
    /// Make again what can be
    #[arg(long)]
    repair: bool,
}

fn subset(text: &str) -> Result<Subset, String> {
    Subset::parse(text).ok_or_else(|| "write it like 3/30: the third of thirty parts".to_owned())
}

pub(super) fn check(args: &CheckArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let subset = args.subset.unwrap_or(Subset::ALL);
    let mut found = look::integrity::check(&pipeline, &open_store(&pipeline)?, subset)?;
    if args.repair && !found.is_sound() && !options.dry_run {
        repair(&pipeline, &mut found, subset, options)?;
    }
    if options.json {
        output::json(&found.json())?;
    } else if !options.quiet || !found.is_sound() {
        output::text(&found.text())?;
    }
    if !found.is_sound() {
        log::error!("files of the store are not what was written");
        return Ok(Outcome::Failed);
    }
    Ok(Outcome::Done)
}

/// Makes again what is harmed, and looks again.
fn repair(pipeline: &Pipeline, found: &mut Integrity, subset: Subset, options: &Options) -> anyhow::Result<()> {
    let again = found.harmed.iter().filter(|file| file.repair.is_ok());
    let again = again.map(|file| (file.stage, file.snapshot.clone())).collect();
    let wanted = Wanted { repair: Some(again), asked: Asked::default(), ..Wanted::default() };
    run::run(stages::graph(), pipeline, &wanted, options.progress())?;
    let now = look::integrity::check(pipeline, &open_store(pipeline)?, subset)?;
    for file in &mut found.harmed {
        let still =
            |other: &crate::report::integrity::HarmedFile| other.table == file.table && other.snapshot == file.snapshot;
        file.repaired = !now.harmed.iter().any(still);
    }
    Ok(())
}
