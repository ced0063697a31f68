//! `ratoon synth`: a synthetic evolving site, or an update log with a known rhythm.

use std::io;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::outcome::{Outcome, Usage, refuse_used};
use super::{Options, one_of, output};
use crate::lab::synth::{self, Layout, Params, Part, Root, Sink, SynthError};
use crate::lab::update_logs::{self, LogKind};
use crate::report::terminal::size;
use crate::schedule::History;
use crate::store::files;

#[derive(Debug, Args)]
pub(super) struct SynthArgs {
    /// Folder for the snapshots; with --log the file
    dir: PathBuf,
    /// Write an update log with a known rhythm instead: two updates an hour, one a week, about one an hour with breaking
    /// news (column signal), by chance
    #[arg(long, value_name = "KIND", value_parser = one_of::<LogKind>())]
    log: Option<LogKind>,
    /// Days of the log [default: 60 datis, 1092 hollywood, 180 cnn, 365 poisson]
    #[arg(long, requires = "log", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: Option<u32>,
    /// Sources in the log
    #[arg(long, requires = "log", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    sources: u32,
    /// Folder for what is true of them [default: DIR/../truth]
    #[arg(long, value_name = "DIR")]
    truth: Option<PathBuf>,
    /// Pages of the first snapshot
    #[arg(long, default_value_t = Params::default().pages)]
    pages: u32,
    /// Number of snapshots, one a night
    #[arg(long, default_value_t = Params::default().snapshots)]
    snapshots: u32,
    /// Same seed, same bytes
    #[arg(long, default_value_t = Params::default().seed)]
    seed: u64,
    /// How snapshots lie on disk
    #[arg(long, default_value = "warc", value_parser = one_of::<Layout>())]
    layout: Layout,
    /// Share of pages whose text changes a night, such as 0.05 [default: 0.05 campus, 0.4 entertainment]
    #[arg(long, value_parser = share)]
    change: Option<u32>,
    /// Which pages there are
    #[arg(long, default_value = "both", value_parser = one_of::<Part>())]
    part: Part,
    /// Mean length of a page's text
    #[arg(long, default_value_t = Params::default().page_bytes)]
    page_bytes: u32,
    /// Chance a night that navigation and footer change on every page
    #[arg(long, value_parser = share)]
    boilerplate: Option<u32>,
    /// Share of pages that show a visitor counter, new on every fetch [default: 0.15]
    #[arg(long, value_parser = share)]
    counters: Option<u32>,
    /// Every second night from the third on has a fault: walls, soft 404s, half crawls, cut archives, storms of 503, wrong
    /// clocks; truth/faults.csv says which
    #[arg(long)]
    faults: bool,
    /// Leave out truth/mentions.jsonl, a fifth of the text in size
    #[arg(long)]
    no_mentions: bool,
}

fn share(text: &str) -> Result<u32, String> {
    synth::share(text).ok_or_else(|| "not a share: give a number between 0 and 1, or a percentage".into())
}

/// The disk.
struct Folders {
    snapshots: PathBuf,
    truth: PathBuf,
}

impl Sink for Folders {
    fn create(&mut self, root: Root, path: &str) -> io::Result<Box<dyn io::Write>> {
        let root = match root {
            Root::Snapshots => &self.snapshots,
            Root::Truth => &self.truth,
        };
        Ok(Box::new(files::create(&root.join(path))?))
    }
}

/// Writes an update log.
fn synth_log(kind: LogKind, args: &SynthArgs, options: &Options) -> anyhow::Result<Outcome> {
    let file = &args.dir;
    if file.exists() && !options.force {
        bail!(Usage(format!("{} is there already; --force writes over it", file.display())));
    }
    if options.dry_run {
        return output::text(&format!("dry run: would write {}\n", file.display()));
    }
    let days = args.days.unwrap_or(kind.days());
    let histories: Vec<History> = (0..args.sources).map(|number| kind.source(number, days, args.seed)).collect();
    files::write(file, update_logs::csv(&histories).as_bytes())?;
    let updates: usize = histories.iter().map(History::updates).sum();
    if options.json {
        return output::json(&json!({"file": file, "sources": histories.len(), "updates": updates, "days": days}));
    }
    if options.quiet {
        return Ok(Outcome::Done);
    }
    let sources = if histories.len() == 1 { "source" } else { "sources" };
    output::text(&format!("{updates} updates of {} {sources} in {}\n", histories.len(), file.display()))
}

pub(super) fn synth(args: &SynthArgs, options: &Options) -> anyhow::Result<Outcome> {
    if let Some(kind) = args.log {
        return synth_log(kind, args, options);
    }
    let defaults = Params::default();
    let params = Params {
        pages: args.pages,
        snapshots: args.snapshots,
        seed: args.seed,
        part: args.part,
        layout: args.layout,
        change: args.change,
        page_bytes: args.page_bytes,
        boilerplate: args.boilerplate.unwrap_or(defaults.boilerplate),
        counters: args.counters.unwrap_or(defaults.counters),
        faults: args.faults,
        mention_truth: !args.no_mentions,
        ..defaults
    };
    let truth = args.truth.clone().unwrap_or_else(|| args.dir.parent().unwrap_or(&args.dir).join("truth"));
    for dir in [&args.dir, &truth] {
        refuse_used(dir, options)?;
    }
    if options.dry_run {
        return output::text(&format!("dry run: would write to {} and {}\n", args.dir.display(), truth.display()));
    }
    let mut folders = Folders { snapshots: args.dir.clone(), truth };
    let written = match synth::write_site(&params, &mut folders) {
        Err(SynthError::Params(error)) => bail!(Usage(error.to_string())),
        other => other?,
    };
    let summary = json!({
        "dir": folders.snapshots, "truth": folders.truth, "snapshots": written.snapshots,
        "captures": written.captures, "body_bytes": written.body_bytes, "mentions": written.mentions,
    });
    if options.json {
        return output::json(&summary);
    }
    if options.quiet {
        return Ok(Outcome::Done);
    }
    output::text(&format!(
        "{} snapshots, {} captures, {} in {}; what is true of them in {}\n",
        written.snapshots,
        written.captures,
        size(written.body_bytes),
        folders.snapshots.display(),
        folders.truth.display()
    ))
}
