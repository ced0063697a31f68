//! `ratoon simulate`: replays a schedule against a log.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::outcome::{Outcome, Usage};
use super::schedule::{outcome_of, read_log, seconds, zone};
use super::{Options, output};
use crate::report::schedules::{duration, share};
use crate::schedule::History;
use crate::schedule::simulate::{PollPlan, Simulated, read_plans, simulate as replay};
use crate::stats::Calendar;
use crate::store::{files, logs};
use crate::tables::schedule::ScheduleRow;

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
    let name = args.schedule.display();
    let plans: Vec<PollPlan> = if logs::is_table(&args.schedule).with_context(|| format!("the schedule {name}"))? {
        let rows = logs::table_rows::<ScheduleRow>(&args.schedule)?;
        let rows: Vec<_> = rows
            .iter()
            .map(|row| {
                json!({"source": row.source, "period": row.period, "time_zone": row.time_zone, "poll_times": row.poll_times})
            })
            .collect();
        read_plans(&json!(rows).to_string())
    } else {
        read_plans(&files::read_to_string(&args.schedule).with_context(|| format!("the schedule {name}"))?)
    }
    .with_context(|| name.to_string())?;
    let log = read_log(&args.updates, &args.time_zone)?;
    let histories: Vec<History> = match args.holdout {
        Some(holdout) => log.histories.iter().map(|history| history.split(holdout).1).collect(),
        None => log.histories.clone(),
    };
    let found = replay(&plans, &histories, args.grain);
    let without = log.histories.len() - found.len();
    if without > 0 {
        log::warn!("{without} of {} sources of the log have no schedule in {name}; left out", log.histories.len());
    }
    if found.is_empty() {
        anyhow::bail!("no schedule in {name} is for a source of {}", args.updates.display());
    }
    if options.json {
        output::json(&json!({"simulated": found, "without_schedule": without}))?;
    } else {
        output::text(&describe(&found))?;
    }
    Ok(outcome_of(&log, options))
}

fn describe(found: &[Simulated]) -> String {
    let header = [
        "source", "updates", "polls", "recall", "uniform", "ceiling", "fresh", "uniform", "age", "uniform", "delay",
        "uniform",
    ];
    let cells = |name: String, updates: usize, polls: String, m: [Option<f64>; 9]| {
        let mut row = vec![name, updates.to_string(), polls];
        row.extend(m[..5].iter().map(|value| share(*value)));
        row.extend(m[5..].iter().map(|value| duration(*value)));
        row
    };
    let metrics = |s: &Simulated| {
        let (q, u) = (s.quality.expected, s.uniform);
        [q.recall, u.recall, s.recall_ceiling, q.freshness, u.freshness, q.age_s, u.age_s, q.delay_s, u.delay_s]
    };
    let mut rows: Vec<Vec<String>> = found
        .iter()
        .map(|s| {
            let name = s.source.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            cells(name, s.updates, format!("{} / {}", s.polls, s.period), metrics(s))
        })
        .collect();
    let mean = |i: usize| {
        let values: Vec<f64> = found.iter().filter_map(|s| metrics(s)[i]).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let updates = found.iter().map(|s| s.updates).sum();
    rows.push(cells("mean over sources".into(), updates, String::new(), std::array::from_fn(mean)));
    let mut text = output::table(&header, &rows);
    for s in found {
        if let Some((low, high)) = s.quality.recall_bounds {
            use std::fmt::Write as _;
            let _ =
                writeln!(text, "{}: only intervals are known: recall lies between {low:.3} and {high:.3}", s.source);
        }
    }
    text
}
