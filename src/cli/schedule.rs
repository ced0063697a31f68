//! `ratoon schedule`: the stage for a pipeline, or alone for any update log.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use serde_json::json;

use super::outcome::{Outcome, Usage};
use super::{Options, StageArgs, output, snapshot_id};
use crate::config::Pipeline;
use crate::config::schedule::{ScheduleSettings, parse_period, parse_seconds};
use crate::manifests::{Overall, Scheduled};
use crate::model::{Method, Period, SnapshotId, StageId};
use crate::report::schedules::{self as rendered, duration, share};
use crate::schedule::fleet::{Average, HostRepair};
use crate::schedule::log::{Log, read as read_csv, read_rows};
use crate::schedule::{FitOn, History, Objective, OptionsError, PollCommand, Schedule, figure};
use crate::stages::schedule::planning::{Fleet, plan_all};
use crate::stages::schedule::rows::{curve_rows, schedule_row};
use crate::stats::Calendar;
use crate::store::logs::{self, LogFile};
use crate::store::parquet::PartitionWriter;
use crate::store::{PART, Store, files};
use crate::tables::record::Table as _;
use crate::tables::schedule::{RecallCurveRow, ScheduleRow};

#[derive(Debug, Args)]
pub(super) struct ScheduleArgs {
    /// The pipeline file; with --updates optional: its [schedule] then gives the defaults
    #[arg(required_unless_present = "updates")]
    pipeline: Option<PathBuf>,
    /// Only up to this snapshot (with --force: from this one on)
    #[arg(long, value_name = "ID", value_parser = snapshot_id, conflicts_with = "updates")]
    snapshot: Option<SnapshotId>,
    /// An update log: CSV (plain, gzip or zstd) or Parquet with source,updated_at or source,after,before
    #[arg(long, value_name = "LOG")]
    updates: Option<PathBuf>,
    #[command(flatten)]
    alone: AloneArgs,
}

/// What only a log takes; a pipeline says it in `[schedule]`.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --updates")]
struct AloneArgs {
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
    #[arg(long, requires = "budget", value_enum)]
    average: Option<AverageArg>,
    /// Polls that one host gets in a slot at most
    #[arg(long, requires = "updates", value_name = "N", value_parser = at_least_one)]
    host_limit: Option<usize>,
    /// Width of a slot, such as 5m [default: 5m]
    #[arg(long, requires = "updates", value_name = "TIME", value_parser = seconds)]
    grain: Option<i64>,
    /// How poll times are found [default: optimal]
    #[arg(long, requires = "updates", value_enum)]
    method: Option<MethodArg>,
    /// Weights, such as recall=1,freshness=0.3,delay=0
    #[arg(long, requires = "updates", value_name = "WEIGHTS", value_parser = str::parse::<Objective>)]
    objective: Option<Objective>,
    /// Share of each source's updates, the last ones, to judge by [default: 0.3]
    #[arg(long, requires = "updates", value_name = "SHARE")]
    holdout: Option<f64>,
    /// What the delivered schedule learns from: all, or only what the figures were learned from
    #[arg(long, requires = "updates", value_enum)]
    fit: Option<FitArg>,
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
    /// Write a systemd timer and service for each source here
    #[arg(long, requires = "updates", value_name = "DIR")]
    timers: Option<PathBuf>,
    /// Draw recall against polls, all methods, of the sources with most updates (the paper's figure 5)
    #[arg(long, requires = "updates", value_name = "FILE.svg")]
    figure: Option<PathBuf>,
}

/// `auto` is `None` inside.
#[derive(Clone, Copy, Debug)]
struct PeriodArg(Option<Period>);

fn period(text: &str) -> Result<PeriodArg, String> {
    parse_period(text).map(PeriodArg).map_err(|problem| format!("{problem}, or auto"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n >= 1).ok_or_else(|| "give a whole number of at least 1".to_owned())
}

pub(super) fn seconds(text: &str) -> Result<i64, String> {
    parse_seconds(text).ok_or_else(|| "write 90s, 5m, 1h or 1d".to_owned())
}

pub(super) fn zone(name: &str) -> Result<Calendar, String> {
    TimeZone::get(name).map(Calendar::new).map_err(|_| "use a name such as UTC or Europe/Berlin".to_owned())
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AverageArg {
    Macro,
    Micro,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FitArg {
    All,
    Train,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MethodArg {
    Optimal,
    Uniform,
    Theoretical,
    Poisson,
}

impl ScheduleArgs {
    fn settings(&self) -> anyhow::Result<ScheduleSettings> {
        let mut settings = match &self.pipeline {
            Some(path) => Pipeline::load(path)?.schedule,
            None => ScheduleSettings::default(),
        };
        let args = &self.alone;
        if args.polls.is_some() {
            settings.budget = None;
        }
        settings.budget = args.budget.or(settings.budget);
        settings.floor = args.floor.or(settings.floor);
        settings.host_limit = args.host_limit.or(settings.host_limit);
        match args.average {
            Some(AverageArg::Macro) => settings.average = Average::Macro,
            Some(AverageArg::Micro) => settings.average = Average::Micro,
            None => {}
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
        options.fit = match args.fit {
            Some(FitArg::Train) => FitOn::Train,
            _ => FitOn::All,
        };
        options.method = match args.method {
            Some(MethodArg::Optimal) => Method::Optimal,
            Some(MethodArg::Uniform) => Method::Uniform,
            Some(MethodArg::Theoretical) => Method::Theoretical,
            Some(MethodArg::Poisson) => Method::Poisson,
            None => options.method,
        };
        options.check().map_err(|error| Usage(error.to_string()))?;
        Ok(settings)
    }
}

pub(super) fn schedule(args: &ScheduleArgs, options: &Options) -> anyhow::Result<Outcome> {
    match (&args.updates, &args.pipeline) {
        (Some(updates), _) => alone(args, updates, options),
        (None, Some(pipeline)) => stage(pipeline, args.snapshot.as_ref(), options),
        (None, None) => bail!(Usage("name a pipeline file, or a log with --updates".into())),
    }
}

/// The stage, and a look at the newest schedules.
fn stage(pipeline: &Path, snapshot: Option<&SnapshotId>, options: &Options) -> anyhow::Result<Outcome> {
    let args = StageArgs { pipeline: pipeline.to_owned(), snapshot: snapshot.cloned() };
    let outcome = super::run::run(Some(StageId::Schedule), &args, None, options)?;
    if options.json || options.quiet || options.dry_run {
        return Ok(outcome);
    }
    let root = Pipeline::load(pipeline)?.corpus.store;
    let Some(store) = Store::open(&root)? else { return Ok(outcome) };
    let Some(newest) = store.manifests::<Scheduled>()?.pop() else { return Ok(outcome) };
    let id = snapshot.unwrap_or(&newest.snapshot);
    let partition = store.partition(ScheduleRow::NAME, id)?;
    let rows = partition.groups::<ScheduleRow>(&partition.all_groups())?;
    let mut text = format!("\nschedules after {id}\n");
    text.push_str(&compact(&rows, options.verbose > 0));
    text.push_str(&overall(&Overall::of(&rows)));
    if let Some(HostRepair { moved, dropped, loss }) = newest.summary.host_limit {
        let _ = writeln!(text, "host limit: {moved} polls moved, {dropped} dropped, loss {loss:.4}");
    }
    let _ = write!(text, "cron: {0}/schedule.crontab; JSON: {0}/schedule.json", root.display());
    if root.join("schedule.timers").exists() {
        let _ = write!(text, "; systemd: {}/schedule.timers", root.display());
    }
    let _ = writeln!(text, " (of {})", newest.snapshot);
    output::text(&text)?;
    Ok(outcome)
}

/// Reads a log and says what was wrong with it; lines that cannot be read are left out.
pub(super) fn read_log(path: &Path, calendar: &Calendar) -> anyhow::Result<Log> {
    let opened = logs::open(path).with_context(|| format!("the log {}", path.display()))?;
    let (log, what) = match opened {
        LogFile::Text(reader) => (read_csv(reader, calendar), "line"),
        LogFile::Rows { header, rows } => (read_rows(&header, &rows, calendar), "row"),
    };
    let log = log.with_context(|| path.display().to_string())?;
    for bad in log.bad.iter().take(5) {
        log::warn!("{}, {what} {}: {}; left out", path.display(), bad.line, bad.problem);
    }
    if log.bad.len() > 5 {
        log::warn!("{}: {} more like these", path.display(), log.bad.len() - 5);
    }
    if log.out_of_order > 0 {
        log::info!("{}: {} {what}s out of order, put in order", path.display(), log.out_of_order);
    }
    if log.duplicates > 0 {
        log::info!("{}: {} {what}s repeat others, left out", path.display(), log.duplicates);
    }
    if log.histories.is_empty() {
        bail!("{}: no update in it ({} {what}s, {} unusable)", path.display(), log.rows, log.bad.len());
    }
    Ok(log)
}

/// How a log with so many bad lines ends.
pub(super) fn outcome_of(log: &Log, options: &Options) -> Outcome {
    const MAX_BAD_SHARE: f64 = 0.01;
    if options.strict && !log.bad.is_empty() {
        log::error!("--strict: {} of {} lines of the log could not be used", log.bad.len(), log.rows);
        Outcome::Rejected
    } else if log.bad.len() as f64 > MAX_BAD_SHARE * log.rows as f64 {
        log::warn!("{} of {} lines of the log could not be used", log.bad.len(), log.rows);
        Outcome::TooManyRejects
    } else {
        Outcome::Done
    }
}

fn alone(args: &ScheduleArgs, path: &Path, options: &Options) -> anyhow::Result<Outcome> {
    let settings = args.settings()?;
    let log = read_log(path, &settings.options.calendar)?;
    let fleet = plan_all(&log.histories, &settings).map_err(|error| match error.downcast::<OptionsError>() {
        Ok(error) => Usage(error.to_string()).into(),
        Err(error) => error,
    })?;
    let rows: Vec<ScheduleRow> = fleet.planned.iter().map(schedule_row).collect();
    let total = Overall::of(&rows);
    let schedules: Vec<Schedule> = fleet.planned.iter().map(|plan| plan.schedule.clone()).collect();
    let mut wrote = Vec::new();
    if !options.dry_run {
        if let Some(dir) = &args.alone.out {
            write_out(dir, &fleet, &rows, &schedules, &settings)?;
            wrote.push(dir);
        }
        if let Some(dir) = &args.alone.timers {
            for unit in rendered::systemd(&schedules, &settings.command) {
                files::write(&dir.join(unit.name), unit.text.as_bytes())?;
            }
            wrote.push(dir);
        }
        if let Some(file) = &args.alone.figure {
            files::write(file, draw(&log.histories, &settings, &fleet).as_bytes())?;
            wrote.push(file);
        }
    }
    if options.json {
        output::json(&json!({
            "log": {
                "rows": log.rows, "sources": log.histories.len(), "bad": log.bad.len(),
                "duplicates": log.duplicates, "out_of_order": log.out_of_order,
            },
            "overall": total, "budget": fleet.budget, "host_limit": fleet.repair, "schedules": fleet.planned,
        }))?;
    } else if !options.quiet {
        /// Sources that are told in full.
        const IN_FULL: usize = 40;
        let mut text = if rows.len() <= IN_FULL || options.verbose > 0 {
            rendered::table(&fleet.planned) + "\n"
        } else {
            compact(&rows, false)
        };
        text.push_str(&overall(&total));
        text.push_str(&sharing(&fleet));
        for path in wrote {
            let _ = writeln!(text, "wrote {}", path.display());
        }
        output::text(&text)?;
    }
    Ok(outcome_of(&log, options))
}

fn write_out(
    dir: &Path,
    fleet: &Fleet,
    rows: &[ScheduleRow],
    schedules: &[Schedule],
    settings: &ScheduleSettings,
) -> anyhow::Result<()> {
    let points: Vec<RecallCurveRow> = fleet.planned.iter().flat_map(curve_rows).collect();
    let (table, curves) = (dir.join(ScheduleRow::NAME), dir.join(RecallCurveRow::NAME));
    files::make_dir(&table)?;
    files::make_dir(&curves)?;
    let mut writer = PartitionWriter::<ScheduleRow>::create(&table.join(PART))?;
    writer.write(0, rows)?;
    writer.finish()?;
    let mut writer = PartitionWriter::<RecallCurveRow>::create(&curves.join(PART))?;
    writer.write(0, &points)?;
    writer.finish()?;
    files::write(&dir.join("schedule.json"), rendered::json(&fleet.planned).as_bytes())?;
    files::write(&dir.join("schedule.crontab"), rendered::crontab(schedules, &settings.command).as_bytes())?;
    Ok(())
}

/// Figure 5 of the sources with most updates.
fn draw(histories: &[History], settings: &ScheduleSettings, fleet: &Fleet) -> String {
    const PANELS: usize = 6;
    const POLLS: [usize; 8] = [1, 2, 3, 4, 6, 8, 12, 24];
    let mut order: Vec<usize> = (0..histories.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(histories[*i].updates()));
    let panels: Vec<_> = (order.into_iter().take(PANELS))
        .map(|i| figure::panel(&histories[i], &settings.options, fleet.planned[i].schedule.period, &POLLS))
        .collect();
    figure::svg(&panels)
}

/// One line per source, those with most updates first.
fn compact(rows: &[ScheduleRow], all: bool) -> String {
    const SHOWN: usize = 20;
    let mut order: Vec<&ScheduleRow> = rows.iter().collect();
    order.sort_by_key(|row| std::cmp::Reverse(row.updates));
    let shown = if all { order.len() } else { order.len().min(SHOWN) };
    let header = [
        "source", "updates", "polls", "method", "recall", "uniform", "ceiling", "fresh", "uniform", "age", "delay",
        "90 %",
    ];
    let lines: Vec<Vec<String>> = order[..shown]
        .iter()
        .map(|row| {
            let name: String = row.source.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            let short = match name.char_indices().rev().nth(59) {
                Some((at, _)) if at > 0 => format!("…{}", &name[at..]),
                _ => name,
            };
            vec![
                short,
                row.updates.to_string(),
                format!("{} / {}", row.polls, row.period),
                row.method.to_string(),
                share(row.recall),
                share(row.uniform_recall),
                share(row.recall_ceiling),
                share(row.freshness),
                share(row.uniform_freshness),
                duration(row.age_s),
                duration(row.delay_s),
                row.polls_for_90_percent.map_or_else(|| "-".to_owned(), |n| n.to_string()),
            ]
        })
        .collect();
    let mut text = output::table(&header, &lines);
    if shown < rows.len() {
        let _ = writeln!(text, "… and {} sources more (-v shows all)", rows.len() - shown);
    }
    text
}

/// Means over the sources, as a table.
fn overall(total: &Overall) -> String {
    let mut text = format!(
        "overall: {} sources, {} of them uniform, {:.1} polls a day; ",
        total.sources, total.uniform, total.polls_a_day
    );
    if total.judged == 0 {
        text.push_str("too few updates on held-out time to say what that is worth\n");
        return text;
    }
    let _ = writeln!(text, "on the held-out updates of {}", total.judged);
    let row = |name: &str, recall, freshness, age, delay| {
        vec![format!("  {name}"), share(recall), share(freshness), duration(age), duration(delay)]
    };
    let rows = vec![
        row("each source alike", total.recall, total.freshness, total.age_s, total.delay_s),
        row(
            "  uniform, mean over phases",
            total.uniform_recall,
            total.uniform_freshness,
            total.uniform_age_s,
            total.uniform_delay_s,
        ),
        row("  every slot polled", total.recall_ceiling, None, None, None),
        row("each version alike", total.micro_recall, total.micro_freshness, None, None),
        row("  uniform, mean over phases", total.micro_uniform_recall, total.micro_uniform_freshness, None, None),
        row("  every slot polled", total.micro_recall_ceiling, None, None, None),
    ];
    text.push_str(&output::table(&["", "recall", "freshness", "age", "delay"], &rows));
    text
}

/// What sharing a budget and a host's limit did.
fn sharing(fleet: &Fleet) -> String {
    let mut text = String::new();
    if let Some(budget) = &fleet.budget {
        let _ = writeln!(
            text,
            "budget: {} of {} polls {} spent; {} sources get none",
            budget.spent,
            budget.polls,
            budget.period.each(),
            budget.unpolled
        );
    }
    if let Some(repair) = &fleet.repair {
        let _ = writeln!(
            text,
            "host limit: {} polls moved, {} dropped; the objectives lose {:.4} in sum (held-out figures are from before)",
            repair.moved, repair.dropped, repair.loss
        );
    }
    text
}
