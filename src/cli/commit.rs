//! `ratoon commit`: a night that others work on, step by step.

use std::path::PathBuf;

use clap::Args;

use super::outcome::Outcome;
use super::{Options, output, run};
use crate::run::Wanted;
use crate::run::hands::{Elsewhere, PassNeeded};
use crate::run::stage::Asked;
use crate::store::DEFAULT_SHARDS;

#[derive(Debug, Args)]
pub(super) struct CommitArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// Folder for what workers leave; all of them see it, the store and the archive at the same place
    #[arg(long, value_name = "DIR")]
    work: PathBuf,
    /// In how many parts archives are read
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    parts: u32,
    /// Into how many buckets URLs are sorted; a store keeps the number that it was made with
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SHARDS, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    buckets: u32,
}

/// Does what can be done of the next snapshot; prints the pass that workers have to do first, if there is one.
pub(super) fn commit(args: &CommitArgs, options: &Options) -> anyhow::Result<Outcome> {
    let work = std::path::absolute(&args.work)?;
    let wanted = Wanted {
        elsewhere: Some(Elsewhere { work, parts: args.parts, buckets: args.buckets }),
        asked: Asked::default(),
        ..Wanted::default()
    };
    match run::carry_out(&args.pipeline, &wanted, options) {
        Err(error) => match error.downcast::<PassNeeded>() {
            Ok(needed) => {
                output::json(&needed)?;
                Ok(Outcome::Done)
            }
            Err(error) => Err(error),
        },
        done => done,
    }
}
