//! `ratoon report`: one file that says what happened.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::outcome::Outcome;
use super::{Options, output};
use crate::config::Pipeline;
use crate::look::open_store;
use crate::look::overview::{has_whole, overview, page_file};
use crate::look::versions::{Asked, compare};
use crate::model::SnapshotId;
use crate::report::overview::{Overview, TriageLine};
use crate::store::{AtHand, REPORT, Store, files};

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The file [default: report.html in the store]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also write the pages that should be read first against their old versions, to a folder beside it (report_pages/ of report.html), and link them
    #[arg(long)]
    pages: bool,
}

pub(super) fn report(args: &ReportArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let store = open_store(&pipeline)?;
    let file = args.out.clone().unwrap_or_else(|| pipeline.corpus.store.join(REPORT));
    if options.dry_run {
        return output::text(&format!("dry run: would write {}\n", file.display()));
    }
    let mut report = overview(&pipeline, &store, &file, false)?;
    if let Some(unfinished) = report.health.unfinished.last() {
        let pipeline = args.pipeline.display();
        log::warn!(
            "snapshot {unfinished} is not done yet, and not in the report; `ratoon run {pipeline}` does what is left"
        );
    }
    let pages = if args.pages { write_pages(&pipeline, &file, &mut report)? } else { 0 };
    write(&file, &report)?;
    if options.json {
        return output::json(&json!({"report": file, "pages": pages}));
    }
    if options.quiet {
        return Ok(Outcome::Done);
    }
    output::text(&format!("{}\n", file.display()))
}

/// Makes the report of a store anew where it always lies, if one of the snapshots that were done has rows of all pages: at
/// every poll nobody looks at it. `at_hand`: what their run has in memory.
pub(super) fn refresh(pipeline: &Pipeline, done: &[&SnapshotId], at_hand: AtHand) -> anyhow::Result<()> {
    let Some(store) = Store::open(&pipeline.corpus.store)? else { return Ok(()) };
    let store = store.with_at_hand(at_hand);
    if !has_whole(&store, done)? {
        return Ok(());
    }
    let file = pipeline.corpus.store.join(REPORT);
    write(&file, &overview(pipeline, &store, &file, true)?)
}

fn write(file: &Path, report: &Overview) -> anyhow::Result<()> {
    files::write_whole(file, report.html().as_bytes()).with_context(|| format!("cannot write {}", file.display()))
}

/// Writes the pages of what should be read first, and links them; gives how many.
fn write_pages(pipeline: &Pipeline, file: &Path, report: &mut Overview) -> anyhow::Result<usize> {
    let store = open_store(pipeline)?;
    let Some(to) = report.changes.to.clone() else { return Ok(0) };
    let back = format!("../{}", file.file_name().unwrap_or_default().to_string_lossy());
    let mut written = 0;
    for line in &mut report.changes.triage {
        let TriageLine { url, page, .. } = line;
        let asked = Asked { url, snapshot: None, against: None, mentions: true };
        // A page that went has no new version to show.
        let Ok(versions) = compare(pipeline, &store, asked) else { continue };
        let name = page_file(file, &to, url);
        let place = file.with_file_name(&name);
        files::write_whole(&place, versions.html(false, Some(&back)).as_bytes())
            .with_context(|| format!("cannot write {}", place.display()))?;
        *page = Some(name);
        written += 1;
    }
    Ok(written)
}
