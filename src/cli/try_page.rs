//! `ratoon try PIPELINE URL`: extractors on one page.

use std::path::PathBuf;

use clap::Args;

use super::outcome::{Outcome, Usage, not_a_url};
use super::{Options, output};
use crate::config::Pipeline;
use crate::look::open_store;
use crate::stages;
use crate::stages::extract::try_page;

#[derive(Debug, Args)]
pub(super) struct TryArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The page's URL, as the table pages has it
    url: String,
    /// Only this extractor
    #[arg(long, value_name = "NAME")]
    extractor: Option<String>,
    /// Also show what was sent and answered, word for word
    #[arg(long)]
    raw: bool,
}

pub(super) fn run(args: &TryArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let store = open_store(&pipeline)?;
    let url = stages::normalise(&args.url, &pipeline).map_err(|error| not_a_url(&args.url, &error, &pipeline))?;
    let names: Vec<&str> = pipeline.extractors.iter().map(|extractor| extractor.config.name.as_str()).collect();
    if let Some(name) = args.extractor.as_deref().filter(|name| !names.contains(name)) {
        return Err(Usage(format!("no extractor '{name}'; there are {}", names.join(", "))).into());
    }
    let tried = try_page(&pipeline, &store, &url, args.extractor.as_deref())?;
    if options.json { output::json(&tried.json()) } else { output::text(&tried.text(args.raw)) }
}
