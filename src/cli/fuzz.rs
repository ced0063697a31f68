//! Hidden commands for those who build ratoon: a fuzzer of the invariant and of the archive readers, and a worker that
//! costs what it is told to.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::outcome::{Outcome, Usage};
use super::{Options, output};
use crate::lab::archives::{self, SUBJECTS};
use crate::lab::parsers::{self, parsers};
use crate::lab::processor_time;
use crate::lab::recycling::{self, Subject};
use crate::lab::worker::{Bench, serve};

/// Kinds that start so are archives.
const ARCHIVE: &str = "archive-";
/// And these are whatever else reads foreign bytes.
const PARSER: &str = "parse-";

#[derive(Debug, Args)]
pub(super) struct FuzzArgs {
    #[arg(help = format!("One of {}", kinds()))]
    kind: String,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after this many page pairs or archives
    #[arg(long)]
    pairs: Option<u64>,
    /// Stop after this many seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Stop after this many seconds of processor time instead: on a busy machine they are not the same
    #[arg(long)]
    cpu_seconds: Option<u64>,
}

fn kinds() -> String {
    let archives = SUBJECTS.iter().map(|subject| format!("{ARCHIVE}{}", subject.name));
    let parsers = parsers().map(|parser| format!("{PARSER}{}", parser.name));
    let kinds = Subject::ALL.iter().map(|subject| subject.as_str().to_owned()).chain(archives).chain(parsers);
    kinds.collect::<Vec<_>>().join(", ")
}

pub(super) fn fuzz(args: &FuzzArgs, options: &Options) -> anyhow::Result<Outcome> {
    let until = Instant::now() + Duration::from_secs(args.seconds);
    let go_on = |round| match (args.pairs, args.cpu_seconds) {
        (Some(pairs), _) => round < pairs,
        (None, Some(work)) => processor_time() < Duration::from_secs(work),
        (None, None) => Instant::now() < until,
    };
    if let Some(name) = args.kind.strip_prefix(ARCHIVE)
        && let Some(subject) = SUBJECTS.iter().find(|subject| subject.name == name)
    {
        return fuzz_archive(subject, args, options, go_on);
    }
    if let Some(name) = args.kind.strip_prefix(PARSER)
        && let Some(parser) = parsers().find(|parser| parser.name == name)
    {
        return fuzz_parser(parser, args, options, go_on);
    }
    let Some(subject) = Subject::parse(&args.kind) else {
        bail!(Usage(format!("no kind '{}': one of {}", args.kind, kinds())));
    };
    let report = recycling::fuzz(subject, args.seed, go_on);
    if let Some((round, broken)) = &report.broken {
        bail!("{}, seed {}, round {round}: {broken}", args.kind, args.seed);
    }
    if options.json {
        return output::json(&json!({"kind": args.kind, "pairs": report.pairs, "mentions": report.mentions,
            "copied": report.copied, "bytes": report.bytes, "bytes_extracted": report.bytes_extracted,
            "cpu_seconds": processor_time().as_secs_f64()}));
    }
    output::text(&format!(
        "{}: {} page pairs, {} mentions ({} copied), recycled equals from scratch\n",
        args.kind, report.pairs, report.mentions, report.copied
    ))
}

fn fuzz_parser(
    parser: &parsers::Parser,
    args: &FuzzArgs,
    options: &Options,
    go_on: impl FnMut(u64) -> bool,
) -> anyhow::Result<Outcome> {
    // Damage is told where it is read, round by round.
    let level = log::max_level();
    log::set_max_level(log::LevelFilter::Off);
    let report = parsers::fuzz(parser, args.seed, &scratch(args), go_on);
    log::set_max_level(level);
    if let Some((round, broken)) = &report.broken {
        bail!("{}, seed {}, round {round}: {broken}", args.kind, args.seed);
    }
    let slowest = report.slowest.as_secs_f64();
    if options.json {
        return output::json(&json!({"kind": args.kind, "inputs": report.inputs, "bytes": report.bytes,
            "out": report.out, "taken": report.taken, "panics": 0, "slowest_seconds": slowest,
            "cpu_seconds": processor_time().as_secs_f64()}));
    }
    output::text(&format!(
        "{}: {} inputs ({} taken), {} bytes in, {} bytes out, 0 panics, slowest {slowest:.3} s\n",
        args.kind, report.inputs, report.taken, report.bytes, report.out
    ))
}

/// A folder of its own for this process.
fn scratch(args: &FuzzArgs) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("ratoon-fuzz-{}-{}", args.kind, std::process::id()))
}

fn fuzz_archive(
    subject: &archives::Subject,
    args: &FuzzArgs,
    options: &Options,
    go_on: impl FnMut(u64) -> bool,
) -> anyhow::Result<Outcome> {
    let report = archives::fuzz(subject, args.seed, &scratch(args), go_on);
    if let Some((round, broken)) = &report.broken {
        bail!("{}, seed {}, round {round}: {broken}", args.kind, args.seed);
    }
    let slowest = report.slowest.as_secs_f64();
    if options.json {
        return output::json(&json!({"kind": args.kind, "inputs": report.inputs, "bytes": report.bytes,
            "captures": report.captures, "rejects": report.rejects, "unopened": report.unopened, "panics": 0,
            "most_bytes": report.most_bytes, "slowest_seconds": slowest,
            "cpu_seconds": processor_time().as_secs_f64()}));
    }
    output::text(&format!(
        "{}: {} archives, {} captures, {} rejects, {} not opened, 0 panics, at most {} bytes of bodies, slowest {slowest:.3} s\n",
        args.kind, report.inputs, report.captures, report.rejects, report.unopened, report.most_bytes
    ))
}

#[derive(Debug, Args)]
pub(super) struct WorkerArgs {
    /// Bytes of text it takes in per second; as fast as it can without
    #[arg(long)]
    bytes_per_second: Option<u32>,
    #[arg(long, default_value_t = 30)]
    scope: u32,
    #[arg(long, default_value_t = 1)]
    context: u32,
}

pub(super) fn worker(args: &WorkerArgs) -> anyhow::Result<Outcome> {
    let cost = args.bytes_per_second.map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate.max(1));
    let bench = Bench { cost, scope: args.scope, context: args.context, ..Bench::default() };
    serve(&bench, std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(Outcome::Done)
}
