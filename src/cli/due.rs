//! `ratoon due`.

use std::path::PathBuf;

use clap::Args;
use jiff::tz::TimeZone;

use super::outcome::{Outcome, Usage};
use super::{Options, one_of, output};
use crate::config::Pipeline;
use crate::look::open_store;
use crate::model::Timestamp;
use crate::report::due::{DueFormat, due};
use crate::stages::schedule::due::{Asked, due as find};

#[derive(Debug, Args)]
pub(super) struct DueArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// Polls up to this moment, such as 2024-03-01T12:00:00Z; without an offset by the pipeline's time_zone [default: now]
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Polls after this moment [default: the newest snapshot's time]
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// So many at most, those with most gain
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// One URL a line, one JSON object a line, or one command a line
    #[arg(long, value_parser = one_of::<DueFormat>(), default_value = "urls")]
    format: DueFormat,
}

pub(super) fn due_urls(args: &DueArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let zone = &pipeline.corpus.time_zone;
    let at = args.at.as_deref().map(|text| moment("--at", text, zone)).transpose()?;
    let since = args.since.as_deref().map(|text| moment("--since", text, zone)).transpose()?;
    let store = open_store(&pipeline)?;
    let at = at.unwrap_or_else(|| jiff::Timestamp::now().into());
    let format = if options.json { DueFormat::Jsonl } else { args.format };
    let facts = format != DueFormat::Urls;
    let found = find(&pipeline, &store, Asked { at, since, limit: args.limit, facts })?;
    output::text(&due(&found, format))?;
    Ok(Outcome::Done)
}

fn moment(option: &str, text: &str, zone: &TimeZone) -> Result<Timestamp, Usage> {
    Timestamp::parse_in(text, zone)
        .ok_or_else(|| Usage(format!("{option}: '{text}' is no time; write it as 2024-03-01T12:00:00Z or 2024-03-01")))
}
