//! `ratoon simulate`: replays a schedule against a log.

use std::path::PathBuf;

use clap::Args;

use super::outcome::{Outcome, Usage};
use super::schedule::{outcome_of, seconds, zone};
use super::{Options, output};
use crate::report::schedules;
use crate::stages::schedule::from_log::replay;
use crate::stats::Calendar;

#[derive(Debug, Args)]
pub(super) struct SimulateArgs {
    /// The schedule: JSON as `schedule` writes it or by hand, or the table schedules (its newest snapshot)
    #[arg(long, value_name = "SCHEDULE")]
    schedule: PathBuf,
    /// An update log: CSV (plain, gzip or zstd) or Parquet with source,updated_at or source,after,before
    #[arg(long, value_name = "LOG")]
    updates: PathBuf,
    /// Only the last share of each source's updates: with that of `schedule --fit train`, its held-out figures
    #[arg(long, value_name = "SHARE", value_parser = part)]
    holdout: Option<f64>,
    /// Width of a slot, for the ceiling
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = seconds)]
    grain: i64,
    /// Zone of times in the log that state none
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = zone)]
    time_zone: Calendar,
}

fn part(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "give a number from 0 to 1".to_owned())
}

pub(super) fn simulate(args: &SimulateArgs, options: &Options) -> anyhow::Result<Outcome> {
    if args.grain <= 0 {
        return Err(Usage("--grain is 0".into()).into());
    }
    let replayed = replay(&args.schedule, &args.updates, &args.time_zone, args.holdout, args.grain)?;
    if options.json {
        output::json(&schedules::json::simulated(&replayed.found, replayed.without_schedule))?;
    } else {
        output::text(&schedules::tables::simulated(&replayed.found))?;
    }
    Ok(outcome_of(&replayed.log, options))
}
