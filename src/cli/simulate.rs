//! `ratoon simulate`: replays a schedule against a log, or compares all methods on it.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use super::outcome::{Outcome, Usage};
use super::schedule::{PeriodArg, at_least_one, outcome_of, period, seconds, zone};
use super::{Options, output};
use crate::config::schedule::{ScheduleSettings, Weighing};
use crate::report::schedules;
use crate::schedule::Objective;
use crate::schedule::compared::Comparison;
use crate::schedule::log::Log;
use crate::stages::schedule::from_log::{compare_on, replay};
use crate::stats::Calendar;

#[derive(Debug, Args)]
pub(super) struct SimulateArgs {
    /// The schedule: JSON as `schedule` writes it or by hand, or the table schedules (its newest snapshot)
    #[arg(long, value_name = "SCHEDULE", required_unless_present = "compare")]
    schedule: Option<PathBuf>,
    /// An update log: CSV (plain, gzip or zstd) or Parquet with source,updated_at or source,after,before
    #[arg(long, value_name = "LOG", required_unless_present = "compare")]
    updates: Option<PathBuf>,
    /// Only the last share of each source's updates: with that of `schedule --fit train`, its held-out figures; with
    /// --compare the share that all methods are judged by [default there: 0.3]
    #[arg(long, value_name = "SHARE", value_parser = part)]
    holdout: Option<f64>,
    /// Width of a slot
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = seconds)]
    grain: i64,
    /// Zone of times in the log that state none
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = zone)]
    time_zone: Calendar,
    #[command(flatten)]
    comparing: CompareArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "To compare")]
struct CompareArgs {
    /// All methods on one log, learned from its first part and judged on the rest; without a log on a generated one
    #[arg(long, conflicts_with = "schedule")]
    compare: bool,
    /// What schedules repeat over: hour, day, week or month [default: day]
    #[arg(long, requires = "compare", value_parser = period)]
    period: Option<PeriodArg>,
    /// Polls a period for each source [default: 4]
    #[arg(long, requires = "compare", value_name = "N", value_parser = at_least_one, conflicts_with = "budget")]
    polls: Option<usize>,
    /// Polls a period over all sources
    #[arg(long, requires = "compare", value_name = "N", value_parser = at_least_one)]
    budget: Option<usize>,
    /// What sources count: CSV with a URL or a pattern (*) and its weight
    #[arg(long, requires = "compare", value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Weights, such as recall=1,freshness=0.3,delay=0,staleness=0
    #[arg(long, requires = "compare", value_name = "WEIGHTS", value_parser = str::parse::<Objective>)]
    objective: Option<Objective>,
    /// Least time between two polls of a source
    #[arg(long, requires = "compare", value_name = "TIME", value_parser = seconds)]
    min_gap: Option<i64>,
}

fn part(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "give a number from 0 to 1".to_owned())
}

pub(super) fn simulate(args: &SimulateArgs, options: &Options) -> anyhow::Result<Outcome> {
    if args.grain <= 0 {
        return Err(Usage("--grain is 0".into()).into());
    }
    if args.comparing.compare {
        return compare(args, options);
    }
    let (Some(schedule), Some(updates)) = (&args.schedule, &args.updates) else {
        bail!(Usage("name a schedule and a log, or --compare".into()));
    };
    let replayed = replay(schedule, updates, &args.time_zone, args.holdout, args.grain)?;
    if options.json {
        output::json(&schedules::json::simulated(&replayed.found, replayed.without_schedule))?;
    } else {
        output::text(&schedules::tables::simulated(&replayed.found))?;
    }
    Ok(outcome_of(&replayed.log, options))
}

fn compare(args: &SimulateArgs, options: &Options) -> anyhow::Result<Outcome> {
    let mut settings = ScheduleSettings::default();
    settings.budget = args.comparing.budget;
    if let Some(file) = &args.comparing.weights {
        settings.weighing = Weighing::read(file).map_err(Usage)?;
    }
    let asked = &mut settings.options;
    asked.period = args.comparing.period.and_then(|period| period.0);
    asked.polls = args.comparing.polls.unwrap_or(asked.polls);
    asked.grain_s = args.grain;
    asked.objective = args.comparing.objective.unwrap_or(asked.objective);
    asked.min_gap_s = args.comparing.min_gap.unwrap_or(asked.min_gap_s);
    asked.holdout = args.holdout.unwrap_or(asked.holdout);
    asked.calendar = args.time_zone.clone();
    asked.check().map_err(|error| Usage(error.to_string()))?;
    let (log, compared) = match &args.updates {
        Some(updates) => compare_on(updates, &settings)?,
        None => generated(&settings)?,
    };
    if options.json {
        output::json(&serde_json::to_value(&compared)?)?;
    } else {
        output::text(&schedules::compared::table_of(&compared))?;
    }
    Ok(outcome_of(&log, options))
}

/// The same on logs with known habits.
#[cfg(feature = "lab")]
fn generated(settings: &ScheduleSettings) -> anyhow::Result<(Log, Comparison)> {
    let histories = crate::lab::update_logs::fleet();
    log::info!(
        "no --updates: {} generated sources with known habits (`ratoon synth --log` writes such)",
        histories.len()
    );
    let compared = crate::stages::schedule::compare::compare(&histories, settings)?;
    Ok((Log { histories, ..Log::default() }, compared))
}

#[cfg(not(feature = "lab"))]
fn generated(_: &ScheduleSettings) -> anyhow::Result<(Log, Comparison)> {
    bail!(Usage("name a log with --updates: this build generates none".into()));
}
