//! `ratoon show PIPELINE URL`: a page against its old version.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::outcome::{Outcome, not_a_url};
use super::{Options, output, snapshot_id};
use crate::config::Pipeline;
use crate::look::open_store;
use crate::look::versions::{Asked, compare};
use crate::model::SnapshotId;
use crate::stages;
use crate::store::{REPORT, Store, files};

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The pipeline file
    #[arg(value_name = "PIPELINE")]
    first: String,
    /// The page's URL, as the table pages has it; the two may change places
    #[arg(value_name = "URL")]
    second: String,
    /// The snapshot to look at [default: the newest that has the page]
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    snapshot: Option<SnapshotId>,
    /// The snapshot to compare with [default: where the page was last seen before]
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    against: Option<SnapshotId>,
    /// Do not shorten what stayed the same
    #[arg(long)]
    whole: bool,
    /// Write both versions side by side, with mentions, to one HTML file that needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl ShowArgs {
    /// The pipeline file and the URL, whichever came first: no pipeline file looks like `http://…`.
    fn in_order(&self) -> (&str, &str) {
        let is_url = |text: &str| text.contains("://");
        match is_url(&self.first) && !is_url(&self.second) {
            true => (&self.second, &self.first),
            false => (&self.first, &self.second),
        }
    }
}

/// Where the report of the store is, as seen from a file, if there is one.
fn report_from(store: &Store, file: &Path) -> Option<String> {
    let report = files::absolute(&store.root().join(REPORT))?;
    let folder = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    files::make_dir(folder).ok()?;
    let mut from = files::absolute(folder)?;
    let mut up = String::new();
    loop {
        if let Ok(rest) = report.strip_prefix(&from) {
            return Some(format!("{up}{}", rest.display()));
        }
        up.push_str("../");
        from = from.parent()?.to_owned();
    }
}

pub(super) fn show(args: &ShowArgs, options: &Options) -> anyhow::Result<Outcome> {
    let (pipeline, url) = args.in_order();
    let pipeline = Pipeline::load(Path::new(pipeline))?;
    let store = open_store(&pipeline)?;
    let url = stages::normalise(url, &pipeline).map_err(|error| not_a_url(url, &error, &pipeline))?;
    let (snapshot, against) = (args.snapshot.as_ref(), args.against.as_ref());
    let asked = Asked { url: &url, snapshot, against, mentions: args.html.is_some() };
    let versions = compare(&pipeline, &store, asked)?;
    let Some(file) = &args.html else {
        return if options.json {
            output::json(&versions.json())
        } else {
            output::coloured(&versions.text(output::marks(), args.whole))
        };
    };
    let report = report_from(&store, file);
    files::write(file, versions.html(args.whole, report.as_deref()).as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))?;
    if options.json {
        return output::json(&versions.html_json(file));
    }
    if options.quiet {
        return Ok(Outcome::Done);
    }
    output::text(&format!("{}\n", file.display()))
}
