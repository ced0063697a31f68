//! `ratoon urls`: the pages of a snapshot, all or those that are looked for.

use std::path::PathBuf;

use clap::Args;

use super::outcome::{Outcome, Usage};
use super::{Options, output, snapshot_id};
use crate::config::Pipeline;
use crate::look::open_store;
use crate::look::urls::{Wanted, pages};
use crate::model::SnapshotId;
use crate::report::pages::{listing, listing_json};

#[derive(Debug, Args)]
pub(super) struct UrlsArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// Words that the URL has, or a glob for all of it, such as "*/people/*"
    pattern: Option<String>,
    /// The snapshot whose pages are listed [default: the newest]
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    snapshot: Option<SnapshotId>,
}

pub(super) fn urls(args: &UrlsArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let store = open_store(&pipeline)?;
    let wanted = args.pattern.as_deref().map(Wanted::parse).transpose().map_err(Usage)?;
    let pages = pages(&store, args.snapshot.as_ref(), wanted.as_ref())?;
    if options.json {
        return output::json(&listing_json(&pages));
    }
    if let (Some(pattern), []) = (&args.pattern, &pages[..]) {
        log::warn!("no URL has `{pattern}` in it; without a pattern all are listed");
    }
    output::text(&listing(&pages, options.verbose > 0))
}
