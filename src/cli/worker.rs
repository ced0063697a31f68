//! `ratoon worker`: what a process does that works for another one. Arrow streams come and go on standard input and output.

use std::io;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::outcome::Outcome;
use crate::config::Pipeline;
use crate::run::hands::{self, Pass};
use crate::stages;
use crate::store::passes::{BucketRow, PassFolder, RowReader, RowWriter};

#[derive(Debug, Args)]
pub(super) struct WorkerArgs {
    #[command(subcommand)]
    command: WorkerCommand,
}

#[derive(Debug, Subcommand)]
enum WorkerCommand {
    /// Read parts of a snapshot's archive: numbers of parts in, captures with text and links out
    Read(PassArgs),
    /// Work on buckets of URLs: their numbers in, rows of all tables and next states out
    Night(PassArgs),
    /// Keep what workers gave out, sorted by bucket, for `ratoon commit`
    Keep(PassArgs),
}

#[derive(Debug, Args)]
struct PassArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// Folder of the pass, as `ratoon commit` names it
    #[arg(long, value_name = "FOLDER")]
    pass: PathBuf,
}

pub(super) fn worker(args: &WorkerArgs) -> anyhow::Result<Outcome> {
    match &args.command {
        WorkerCommand::Read(args) => work(args, true),
        WorkerCommand::Night(args) => work(args, false),
        WorkerCommand::Keep(args) => keep(args),
    }
}

fn work(args: &PassArgs, reads: bool) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let folder = PassFolder::open(&args.pass);
    let is_read = hands::order(&folder)?.pass == Pass::Read;
    anyhow::ensure!(reads == is_read, "{} is no pass for this command", args.pass.display());
    let asked = (RowReader::new(Box::new(io::stdin()) as Box<_>)?, RowWriter::new(Box::new(io::stdout()) as Box<_>)?);
    hands::work(stages::graph(), &pipeline, folder, asked)?;
    Ok(Outcome::Done)
}

fn keep(args: &PassArgs) -> anyhow::Result<Outcome> {
    let kept = PassFolder::open(&args.pass).keep(&mut RowReader::new(io::stdin())?)?;
    let mut answer = RowWriter::new(io::stdout())?;
    answer.write(BucketRow { bucket: i32::try_from(kept).unwrap_or(i32::MAX), table: "kept", rows: b"" })?;
    answer.finish()?;
    Ok(Outcome::Done)
}
