//! The command line: one file per subcommand, with its arguments, the call that does it, and what of `report` is printed.
//!
//! Nothing is computed, read or rendered here. Exit codes are in [`outcome`], log lines in [`logger`].

mod apply;
mod check;
mod commit;
mod delta;
mod drop;
mod due;
mod examples;
mod export;
#[cfg(feature = "lab")]
mod fuzz;
mod init;
mod inspect;
mod logger;
mod man;
mod outcome;
mod output;
mod plan;
mod prune;
mod report;
mod run;
mod schedule;
mod show;
mod simulate;
mod sql;
mod stage;
mod status;
#[cfg(feature = "lab")]
mod synth;
mod tables;
mod triage;
mod trial;
mod try_page;
mod urls;
mod verify;
mod web;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::model::SnapshotId;
use crate::model::closed_set::ClosedSet;
use crate::plan::PlanChoice;
use crate::run::progress::Progress;
use outcome::{Outcome, Usage};

/// Keeps extracted information current over a corpus that is crawled again and again.
#[derive(Debug, Parser)]
#[command(name = "ratoon", version, max_term_width = 100)]
#[command(
    after_help = "Exit: 0 done, 1 failed, 2 usage or pipeline file, 3 done with a problem, 75 locked by another run."
)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Args)]
struct Options {
    /// Number of threads [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Do again what is done, and all that depends on it
    #[arg(long, global = true)]
    force: bool,
    /// Only say what would be done
    #[arg(long, global = true)]
    dry_run: bool,
    /// Fail (exit 1) if anything was rejected
    #[arg(long, global = true)]
    strict: bool,
    /// One summary object on stdout
    #[arg(long, global = true)]
    json: bool,
    /// Only errors and problems, no progress
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Say more; twice: say all
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Args)]
struct StageArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// Only up to this snapshot (with --force: from this one on)
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    snapshot: Option<SnapshotId>,
    /// With --force: do again even what rests on pruned snapshots, and lose what is known from there
    #[arg(long)]
    discard_history: bool,
    /// Every snapshot gets rows of all pages, whatever it touched: for tests
    #[arg(long, hide = true)]
    whole: bool,
}

#[derive(Debug, Args)]
struct PlannedArgs {
    #[command(flatten)]
    stage: StageArgs,
    /// Force a matcher [default: the pipeline file's]
    #[arg(long, value_parser = one_of::<PlanChoice>())]
    plan: Option<PlanChoice>,
    /// Run new and changed extractors on this snapshot and later ones too, not only on the newest
    #[arg(long, value_name = "FROM", value_parser = snapshot_id)]
    backfill: Option<SnapshotId>,
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    planned: PlannedArgs,
    /// This snapshot is as it should be: its problems are known, and if pages are missing the site really shrank
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    accept: Option<SnapshotId>,
}

/// A member of a closed set, by its name.
fn one_of<S: ClosedSet + Send + Sync>() -> impl TypedValueParser<Value = S> {
    PossibleValuesParser::new(S::NAMES).map(|name| S::named(&name).expect("only names of members are possible"))
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run all stages for every snapshot not yet done
    Run(RunArgs),
    #[command(flatten)]
    Stage(stage::StageCommand),
    /// Choose how each snapshot is matched and which extractors recycle
    Plan(plan::PlanArgs),
    /// Find what came, went and changed since the snapshot before
    Delta(delta::DeltaArgs),
    /// Extract pages from scratch and compare with what is stored
    Verify(verify::VerifyArgs),
    /// Test the declared scope and context of command extractors
    Audit(verify::AuditArgs),
    /// Learn from updates when to poll each source; with --updates from any log
    Schedule(Box<schedule::ScheduleArgs>),
    /// Say what to fetch now: what the schedules want polled, what may have returned, links never followed
    Due(due::DueArgs),
    /// Replay a schedule, also one written by hand, against an update log
    Simulate(simulate::SimulateArgs),
    /// Show a page against its old version: what is kept, moved, new, deleted
    Show(show::ShowArgs),
    /// Say what of the last night a person should read first; edits that many pages have are one row
    Triage(triage::TriageArgs),
    /// Write one HTML file that says what happened: did it work, what changed, what was found, what it cost
    Report(report::ReportArgs),
    /// Show the web table of a query at any snapshot, or what changed in it; draw it
    Web(web::WebArgs),
    /// Try extractors on one page: its units, what is sent and found; writes nothing
    Try(try_page::TryArgs),
    /// Try a changed extractor beside the present one on a sample of pages: what differs, how sure that is, what it costs
    Trial(trial::TrialArgs),
    /// List the pages of a snapshot, all or those with a pattern in their URL
    Urls(urls::UrlsArgs),
    /// Ask the tables in SQL: what holds at a snapshot, and all there ever was
    Sql(sql::SqlArgs),
    /// Do a night that workers share, step by step: says which pass they have to do next
    Commit(commit::CommitArgs),
    /// Work for a night that another machine commits: Arrow streams in and out
    Worker(worker::WorkerArgs),
    /// Show what is done, what each snapshot brought, and what is wrong
    Status(status::StatusArgs),
    /// Compare the files of a store with what was written, and repair them
    Check(check::CheckArgs),
    /// Rebuild the texts of a snapshot, checked against their digests
    Export(export::ExportArgs),
    /// Say what an archive is, what would be read from it and what rejected
    Inspect(inspect::InspectArgs),
    /// Take the newest snapshot, or all from one on, out of the store
    Drop(drop::DropArgs),
    /// Drop old snapshots; what later ones point to is kept
    Prune(prune::PruneArgs),
    /// Write a synthetic evolving site with known truth
    #[cfg(feature = "lab")]
    Synth(synth::SynthArgs),
    /// Print the schema reference: tables, columns, types, meaning
    Tables,
    /// Write a commented pipeline file to start from
    Init(init::InitArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual (roff): a page for the program and one for each command
    Man(man::ManArgs),
    /// Compare recycled and fresh mentions on random pages
    #[cfg(feature = "lab")]
    #[command(hide = true)]
    Fuzz(fuzz::FuzzArgs),
    /// A worker with a settable cost per byte
    #[cfg(feature = "lab")]
    #[command(hide = true)]
    BenchWorker(fuzz::WorkerArgs),
}

fn snapshot_id(name: &str) -> Result<SnapshotId, String> {
    SnapshotId::new(name).map_err(|error| error.to_string())
}

/// Parses the command line, does what it says, prints one error line if that fails.
pub fn main() -> ExitCode {
    let typed = whole_command().get_matches();
    let cli = Cli::from_arg_matches(&typed).unwrap_or_else(|error| error.exit());
    logger::start(&cli.options, pipeline_file(&typed));
    let refused = typed.subcommand_name().and_then(|name| apply::refused(name, |id| typed.get_flag(id)));
    let outcome = match refused {
        Some(problem) => Err(Usage(problem).into()),
        None => dispatch(&cli),
    };
    outcome::report(outcome)
}

/// The pipeline file that the command line names, if it is one.
fn pipeline_file(typed: &clap::ArgMatches) -> Option<PathBuf> {
    let (_, command) = typed.subcommand()?;
    let named = command.try_get_one::<PathBuf>("pipeline").ok().flatten().cloned();
    // Of `show`, where it may come second.
    let either = ["first", "second"].into_iter().filter_map(|id| command.try_get_one::<String>(id).ok().flatten());
    named.into_iter().chain(either.map(PathBuf::from)).find(|path| path.is_file())
}

/// The command line as people see it.
fn whole_command() -> clap::Command {
    apply::with_what_applies(examples::with_examples(Cli::command()))
}

fn dispatch(cli: &Cli) -> anyhow::Result<Outcome> {
    let options = &cli.options;
    if let Some(threads) = options.threads {
        rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads)).build_global()?;
    }
    match &cli.command {
        Command::Run(args) => run::all(args, options),
        Command::Stage(stage) => run::stage(stage.id, &stage.args, stage.planned.as_ref(), options),
        Command::Plan(args) => plan::plan(args, options),
        Command::Delta(args) => delta::delta(args, options),
        Command::Schedule(args) => schedule::schedule(args, options),
        Command::Due(args) => due::due_urls(args, options),
        Command::Simulate(args) => simulate::simulate(args, options),
        Command::Show(args) => show::show(args, options),
        Command::Triage(args) => triage::triage(args, options),
        Command::Report(args) => report::report(args, options),
        Command::Web(args) => web::web(args, options),
        Command::Try(args) => try_page::run(args, options),
        Command::Trial(args) => trial::trial(args, options),
        Command::Urls(args) => urls::urls(args, options),
        Command::Sql(args) => sql::sql(args, options),
        Command::Commit(args) => commit::commit(args, options),
        Command::Worker(args) => worker::worker(args),
        Command::Status(args) => status::status(args, options),
        Command::Check(args) => check::check(args, options),
        Command::Export(args) => export::export(args, options),
        Command::Inspect(args) => inspect::inspect(args, options),
        Command::Drop(args) => drop::drop(args, options),
        Command::Prune(args) => prune::prune(args, options),
        #[cfg(feature = "lab")]
        Command::Synth(args) => synth::synth(args, options),
        Command::Tables => tables::tables(options),
        Command::Init(args) => init::init(args, options),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "ratoon", &mut script);
            output::bytes(&script)
        }
        Command::Verify(args) => verify::verify(args, options),
        Command::Audit(args) => verify::audit(args, options),
        #[cfg(feature = "lab")]
        Command::Fuzz(args) => fuzz::fuzz(args, options),
        #[cfg(feature = "lab")]
        Command::BenchWorker(args) => fuzz::worker(args),
        Command::Man(args) => man::man(args, whole_command()),
    }
}

impl Options {
    fn progress(&self) -> Progress {
        Progress::new(!self.quiet && self.verbose == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::STAGES;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_stage_is_a_subcommand_with_its_own_words() {
        for stage in STAGES {
            let command = Cli::command();
            let found = command.find_subcommand(stage.id().as_str());
            let found = found.unwrap_or_else(|| panic!("no subcommand {}", stage.id()));
            assert_eq!(found.get_about().map(ToString::to_string).as_deref(), Some(stage.about()));
        }
    }
}
