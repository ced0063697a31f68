//! Hidden commands for those who build ratoon: a fuzzer of the invariant, and a worker that costs what it is told to.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::outcome::{Outcome, Usage};
use super::{Options, output};
use crate::extract::command::bench::{Bench, serve};
use crate::recycle::fuzz::{Subject, fuzz as run};

#[derive(Debug, Args)]
pub(super) struct FuzzArgs {
    /// regex, dictionary, edit, record or command
    kind: String,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after this many page pairs
    #[arg(long)]
    pairs: Option<u64>,
    /// Stop after this many seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

pub(super) fn fuzz(args: &FuzzArgs, options: &Options) -> anyhow::Result<Outcome> {
    let Some(subject) = Subject::parse(&args.kind) else {
        bail!(Usage(format!("no kind '{}': regex, dictionary, edit, record or command", args.kind)));
    };
    let until = Instant::now() + Duration::from_secs(args.seconds);
    let report = run(subject, args.seed, 0, |round| match args.pairs {
        Some(pairs) => round < pairs,
        None => Instant::now() < until,
    });
    if let Some((round, broken)) = &report.broken {
        bail!("{}, seed {}, round {round}: {broken}", args.kind, args.seed);
    }
    if options.json {
        return output::json(&json!({"kind": args.kind, "pairs": report.pairs, "mentions": report.mentions,
            "copied": report.copied, "bytes": report.bytes, "bytes_extracted": report.bytes_extracted}));
    }
    output::text(&format!(
        "{}: {} page pairs, {} mentions ({} copied), recycled equals from scratch\n",
        args.kind, report.pairs, report.mentions, report.copied
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
