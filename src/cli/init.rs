//! `ratoon init`: a pipeline file to start from.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::json;

use super::outcome::{Outcome, Usage};
use super::{Options, output};
use crate::config::template::template;
use crate::store::files;

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Where to write it
    #[arg(default_value = "pipeline.toml")]
    file: PathBuf,
    /// Folder of snapshot folders, relative to the file
    #[arg(long, value_name = "DIR", default_value = "snapshots")]
    snapshots: String,
    /// Folder for the tables, relative to the file
    #[arg(long, value_name = "DIR", default_value = "store")]
    store: String,
}

pub(super) fn init(args: &InitArgs, options: &Options) -> anyhow::Result<Outcome> {
    if args.file.exists() && !options.force {
        bail!(Usage(format!("{} is there already; --force overwrites it", args.file.display())));
    }
    let text = template(&args.snapshots, &args.store);
    if options.dry_run {
        return output::text(&text);
    }
    files::write(&args.file, text.as_bytes()).with_context(|| format!("cannot write {}", args.file.display()))?;
    if options.json {
        return output::json(&json!({ "file": args.file }));
    }
    output::text(&format!("wrote {0}; next: ratoon run {0}\n", args.file.display()))
}
