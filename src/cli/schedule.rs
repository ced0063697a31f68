//! `ratoon schedule`: the stage for a pipeline, or alone for any update log.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use clap::Args;
use jiff::tz::TimeZone;

use super::outcome::{Outcome, Usage};
use super::{Options, StageArgs, one_of, output, snapshot_id};
use crate::config::Pipeline;
use crate::config::schedule::{ScheduleSettings, Weighing, parse_period, parse_seconds};
use crate::look::schedules::stored;
use crate::manifests::Overall;
use crate::model::time::DURATION_FIX;
use crate::model::{Method, Period, SnapshotId, StageId};
use crate::report::schedules;
use crate::report::schedules::crontab::CronClock;
use crate::schedule::fleet::Average;
use crate::schedule::log::Log;
use crate::schedule::{FitOn, Objective, OptionsError, PollCommand, Schedule};
use crate::stages::schedule::from_log::learn;
use crate::stages::schedule::handover::{crontab_text, write_timers};
use crate::stages::schedule::rows::schedule_of;
use crate::stats::Calendar;
use crate::store::files;

#[derive(Debug, Args)]
pub(super) struct ScheduleArgs {
    /// The pipeline file; with --updates optional: its [schedule] then gives the defaults
    pipeline: Option<PathBuf>,
    /// Only up to this snapshot (with --force: from this one on)
    #[arg(long, value_name = "ID", value_parser = snapshot_id, conflicts_with = "updates")]
    snapshot: Option<SnapshotId>,
    /// An update log: CSV (plain, gzip or zstd) or Parquet with source,updated_at or source,after,before
    #[arg(long, value_name = "LOG")]
    updates: Option<PathBuf>,
    #[command(flatten)]
    handover: HandoverArgs,
    #[command(flatten)]
    from_log: LogArgs,
}

/// Files for other programs, written whenever they are asked for.
#[derive(Debug, Args)]
struct HandoverArgs {
    /// Write the poll times for cron here, by this machine's clock
    #[arg(long, value_name = "FILE")]
    crontab: Option<PathBuf>,
    /// Write a systemd timer and service for each source here
    #[arg(long, value_name = "DIR")]
    timers: Option<PathBuf>,
}

impl HandoverArgs {
    fn is_wanted(&self) -> bool {
        self.crontab.is_some() || self.timers.is_some()
    }

    /// Writes what is wanted; gives where it is.
    fn write(&self, schedules: &[Schedule], command: &PollCommand) -> anyhow::Result<Vec<&Path>> {
        if let Some(file) = &self.crontab {
            files::write(file, crontab_text(schedules, command, &cron_clock())?.as_bytes())?;
        }
        if let Some(dir) = &self.timers {
            write_timers(dir, schedules, command)?;
        }
        Ok([&self.crontab, &self.timers].into_iter().flatten().map(PathBuf::as_path).collect())
    }
}

/// The clock of this machine, or that of `TZ`.
fn cron_clock() -> CronClock {
    CronClock::new(TimeZone::system(), jiff::Timestamp::now())
}

/// What only a log takes; a pipeline says it in `[schedule]`.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --updates")]
struct LogArgs {
    /// hour, day, week, month or auto (by cross-validation; then polls are polls a day)
    #[arg(long, requires = "updates", value_parser = period)]
    period: Option<PeriodArg>,
    /// Polls a period for each source [default: 4]
    #[arg(long, requires = "updates", value_name = "N", value_parser = at_least_one, conflicts_with = "budget")]
    polls: Option<usize>,
    /// Polls a period over all sources, shared by what they gain
    #[arg(long, requires = "updates", value_name = "N", value_parser = at_least_one)]
    budget: Option<usize>,
    /// Of a budget, polls for each source first [default: 1 if it suffices]
    #[arg(long, requires = "budget", value_name = "N")]
    floor: Option<usize>,
    /// What a budget serves: all sources alike, or all versions alike
    #[arg(long, requires = "budget", value_parser = one_of::<Average>())]
    average: Option<Average>,
    /// What sources count in a budget: CSV with a URL or a pattern (*) and its weight
    #[arg(long, requires = "budget", value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Polls that one host gets in a slot at most
    #[arg(long, requires = "updates", value_name = "N", value_parser = at_least_one)]
    host_limit: Option<usize>,
    /// Width of a slot, such as 5m [default: 5m]
    #[arg(long, requires = "updates", value_name = "TIME", value_parser = seconds)]
    grain: Option<i64>,
    /// How poll times are found [default: optimal]
    #[arg(long, requires = "updates", value_parser = one_of::<Method>())]
    method: Option<Method>,
    /// Weights, such as recall=1,freshness=0.3,delay=0,staleness=0
    #[arg(long, requires = "updates", value_name = "WEIGHTS", value_parser = str::parse::<Objective>)]
    objective: Option<Objective>,
    /// Share of each source's updates, the last ones, to judge by [default: 0.3]
    #[arg(long, requires = "updates", value_name = "SHARE")]
    holdout: Option<f64>,
    /// What the delivered schedule learns from: all, or only what the figures were learned from
    #[arg(long, requires = "updates", value_parser = one_of::<FitOn>())]
    fit: Option<FitOn>,
    /// Least time between two polls of a source [default: 10m]
    #[arg(long, requires = "updates", value_name = "TIME", value_parser = seconds)]
    min_gap: Option<i64>,
    /// Zone of the poll times, and of times in the log without one [default: UTC]
    #[arg(long, requires = "updates", value_name = "ZONE", value_parser = zone)]
    time_zone: Option<Calendar>,
    /// What cron runs, such as "fetch {url}"
    #[arg(long, requires = "updates", value_name = "COMMAND", value_parser = PollCommand::parse)]
    command: Option<PollCommand>,
    /// Measure whether the log's column signal tells that the next update is near
    #[arg(long, requires = "updates")]
    signal: bool,
    /// Write the tables schedules and recall_curves, schedule.json and schedule.crontab here
    #[arg(long, requires = "updates", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Draw recall against polls, all methods, of the sources with most updates (the paper's figure 5)
    #[arg(long, requires = "updates", value_name = "FILE.svg")]
    figure: Option<PathBuf>,
}

/// `auto` is `None` inside.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeriodArg(pub(super) Option<Period>);

pub(super) fn period(text: &str) -> Result<PeriodArg, String> {
    parse_period(text).map(PeriodArg).map_err(|problem| format!("{problem}, or auto"))
}

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n >= 1).ok_or_else(|| "give a whole number of at least 1".to_owned())
}

pub(super) fn seconds(text: &str) -> Result<i64, String> {
    parse_seconds(text).ok_or_else(|| DURATION_FIX.to_owned())
}

pub(super) fn zone(name: &str) -> Result<Calendar, String> {
    TimeZone::get(name).map(Calendar::new).map_err(|_| "use a name such as UTC or Europe/Berlin".to_owned())
}

impl ScheduleArgs {
    /// What the options mean on top of the pipeline file, if there is one.
    fn settings(&self) -> anyhow::Result<ScheduleSettings> {
        let mut settings = match &self.pipeline {
            Some(path) => Pipeline::load(path)?.schedule,
            None => ScheduleSettings::default(),
        };
        let args = &self.from_log;
        if args.polls.is_some() {
            settings.budget = None;
        }
        settings.budget = args.budget.or(settings.budget);
        settings.floor = args.floor.or(settings.floor);
        settings.host_limit = args.host_limit.or(settings.host_limit);
        settings.average = args.average.unwrap_or(settings.average);
        if let Some(file) = &args.weights {
            settings.weighing = Weighing::read(file).map_err(Usage)?;
        }
        if let Some(command) = &args.command {
            settings.command.clone_from(command);
        }
        let options = &mut settings.options;
        options.period = args.period.map_or(options.period, |period| period.0);
        options.polls = args.polls.unwrap_or(options.polls);
        options.grain_s = args.grain.unwrap_or(options.grain_s);
        options.objective = args.objective.unwrap_or(options.objective);
        options.holdout = args.holdout.unwrap_or(options.holdout);
        options.min_gap_s = args.min_gap.unwrap_or(options.min_gap_s);
        options.signal |= args.signal;
        if let Some(calendar) = &args.time_zone {
            options.calendar = calendar.clone();
        }
        options.fit = args.fit.unwrap_or_default();
        options.method = args.method.unwrap_or(options.method);
        options.check().map_err(|error| Usage(error.to_string()))?;
        Ok(settings)
    }
}

pub(super) fn schedule(args: &ScheduleArgs, options: &Options) -> anyhow::Result<Outcome> {
    match (&args.updates, &args.pipeline) {
        (Some(updates), _) => from_log(args, updates, options),
        (None, Some(pipeline)) => stage(pipeline, args.snapshot.as_ref(), &args.handover, options),
        (None, None) => bail!(Usage("name a pipeline file, as in `ratoon schedule my.toml`, or an update log, as in `ratoon schedule --updates log.csv`".into())),
    }
}

/// The stage, then a look at the schedules that the store has, and the files made from them.
fn stage(
    pipeline: &Path,
    snapshot: Option<&SnapshotId>,
    handover: &HandoverArgs,
    options: &Options,
) -> anyhow::Result<Outcome> {
    let args =
        StageArgs { pipeline: pipeline.to_owned(), snapshot: snapshot.cloned(), discard_history: false, whole: false };
    let outcome = super::run::stage(StageId::Schedule, &args, None, options)?;
    let shown = !options.json && !options.quiet;
    if options.dry_run || !(shown || handover.is_wanted()) {
        return Ok(outcome);
    }
    let pipeline = Pipeline::load(pipeline)?;
    let Some(stored) = stored(&pipeline, snapshot)? else {
        ensure!(!handover.is_wanted(), "there are no schedules yet in {}", pipeline.corpus.store.display());
        return Ok(outcome);
    };
    let mut wrote = Vec::new();
    if handover.is_wanted() {
        let schedules: Vec<Schedule> = stored.rows.iter().filter_map(schedule_of).collect();
        wrote = handover.write(&schedules, &pipeline.schedule.command)?;
    }
    if shown {
        output::text(&stored.text(options.verbose > 0, &wrote))?;
    }
    Ok(outcome)
}

fn from_log(args: &ScheduleArgs, updates: &Path, options: &Options) -> anyhow::Result<Outcome> {
    let learned = learn(updates, args.settings()?).map_err(|error| match error.downcast::<OptionsError>() {
        Ok(error) => Usage(error.to_string()).into(),
        Err(error) => error,
    })?;
    let mut wrote: Vec<&Path> = Vec::new();
    if !options.dry_run {
        if let Some(dir) = &args.from_log.out {
            learned.write(dir, &cron_clock())?;
            wrote.push(dir);
        }
        wrote.extend(args.handover.write(&learned.schedules(), learned.command())?);
        if let Some(file) = &args.from_log.figure {
            learned.write_figure(file)?;
            wrote.push(file);
        }
    }
    let fleet = &learned.fleet;
    let (budget, host_limit) = (fleet.budget.as_ref(), fleet.repair.as_ref());
    if options.json {
        let overall = Overall::of(&learned.rows);
        output::json(&schedules::json::from_log(&learned.log, &fleet.planned, &overall, budget, host_limit))?;
    } else if !options.quiet {
        let all = options.verbose > 0;
        let text = schedules::tables::from_log(&fleet.planned, &learned.rows, budget, host_limit, all, &wrote);
        output::text(&text)?;
    }
    Ok(outcome_of(&learned.log, options))
}

/// How a log with so many bad lines ends.
pub(super) fn outcome_of(log: &Log, options: &Options) -> Outcome {
    const MAX_BAD_SHARE: f64 = 0.01;
    if options.strict && !log.bad.is_empty() {
        log::error!("--strict: {} of {} lines of the log could not be used", log.bad.len(), log.rows);
        Outcome::Rejected
    } else if log.bad.len() as f64 > MAX_BAD_SHARE * log.rows as f64 {
        log::warn!("{} of {} lines of the log could not be used", log.bad.len(), log.rows);
        Outcome::Problem
    } else {
        Outcome::Done
    }
}
