//! `ratoon sql`: questions about the tables.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;

use super::outcome::{Outcome, Usage};
use super::{Options, one_of, output, snapshot_id};
use crate::config::Pipeline;
use crate::look::open_store;
use crate::look::sql::{BadQuery, ask};
use crate::model::SnapshotId;
use crate::report::rows::{self, RowFormat};
use crate::store::{Store, files};

#[derive(Debug, Args)]
pub(super) struct SqlArgs {
    /// The pipeline file, or the folder of a store
    pipeline: PathBuf,
    /// The query; - reads it from stdin
    query: String,
    /// Tables as they stand after this snapshot [default: the newest]
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    at: Option<SnapshotId>,
    /// How rows are written: a table cuts long cells, the others do not
    #[arg(long, value_parser = one_of::<RowFormat>(), default_value = "table")]
    format: RowFormat,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn sql(args: &SqlArgs, options: &Options) -> anyhow::Result<Outcome> {
    let store = if args.pipeline.is_dir() {
        let none = || Usage(format!("{} is no store: it has no _meta/store.json", args.pipeline.display()));
        Store::open(&args.pipeline)?.ok_or_else(none)?
    } else {
        open_store(&Pipeline::load(&args.pipeline)?)?
    };
    let mut query = args.query.clone();
    if query == "-" {
        query.clear();
        std::io::stdin().read_to_string(&mut query).context("cannot read the query from stdin")?;
    }
    let format = if options.json { RowFormat::Json } else { args.format };
    if format == RowFormat::Parquet && args.out.is_none() && std::io::stdout().is_terminal() {
        bail!(Usage("a terminal cannot show Parquet: name a file with --out".to_owned()));
    }
    let mut answer = ask(&store, args.at.as_ref(), &query).map_err(|error| match error.downcast::<BadQuery>() {
        Ok(bad) => Usage(bad.to_string()).into(),
        Err(error) => error,
    })?;
    let header = answer.header();
    let bytes = match format {
        RowFormat::Table => rows::table(&header, answer.rows()).into_bytes(),
        RowFormat::Csv => rows::csv(&header, answer.rows()).into_bytes(),
        RowFormat::Json => rows::json(&header, answer.rows()).into_bytes(),
        RowFormat::Parquet => answer.parquet()?,
    };
    let Some(file) = &args.out else {
        // What is to be looked at commands no terminal; what is to be read on is exact.
        return match format {
            RowFormat::Table => output::text(&String::from_utf8_lossy(&bytes)),
            RowFormat::Json => output::json_text(String::from_utf8_lossy(&bytes).into_owned()),
            RowFormat::Csv if std::io::stdout().is_terminal() => output::text(&String::from_utf8_lossy(&bytes)),
            RowFormat::Csv | RowFormat::Parquet => output::bytes(&bytes),
        };
    };
    files::write_whole(file, &bytes)?;
    Ok(Outcome::Done)
}
