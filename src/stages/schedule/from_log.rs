//! Schedules from an update log, without a pipeline or a store: `ratoon schedule --updates`, and what schedules would have
//! been worth on a log: `ratoon simulate`.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::compare::compare;
use super::handover::crontab_text;
use super::planning::{Fleet, plan_all};
use super::rows::{curve_rows, schedule_row};
use crate::config::schedule::{ScheduleSettings, Weighing};
use crate::report::schedules::crontab::CronClock;
use crate::report::schedules::{figure, json as rendered};
use crate::schedule::compared::Comparison;
use crate::schedule::figure::panels;
use crate::schedule::log::{Log, read as read_csv, read_rows};
use crate::schedule::simulate::{PollPlan, Simulated, read_plans, simulate};
use crate::schedule::{History, PollCommand, Schedule};
use crate::stats::Calendar;
use crate::store::files;
use crate::store::logs::{self, LogFile};
use crate::store::parquet::write_table;
use crate::tables::schedule::{RecallCurveRow, ScheduleRow};

/// Unusable lines of a log that are named.
const NAMED: usize = 5;

/// Reads a log and says what was wrong with it; lines that cannot be read are left out.
fn read_log(path: &Path, calendar: &Calendar) -> Result<Log> {
    let opened = logs::open(path).with_context(|| format!("the log {}", path.display()))?;
    let (log, what) = match opened {
        LogFile::Text(reader) => (read_csv(reader, calendar), "line"),
        LogFile::Rows { header, rows } => (read_rows(&header, &rows, calendar), "row"),
    };
    let log = log.with_context(|| path.display().to_string())?;
    for bad in log.bad.iter().take(NAMED) {
        log::warn!("{}, {what} {}: {}; left out", path.display(), bad.line, bad.problem);
    }
    if log.bad.len() > NAMED {
        log::warn!("{}: {} more like these", path.display(), log.bad.len() - NAMED);
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

/// A log, and the schedules that were learned from it.
pub(crate) struct Learned {
    pub log: Log,
    pub fleet: Fleet,
    pub rows: Vec<ScheduleRow>,
    settings: ScheduleSettings,
}

/// Plans every source of a log.
pub(crate) fn learn(updates: &Path, settings: ScheduleSettings) -> Result<Learned> {
    if matches!(settings.weighing, Weighing::Found(_)) {
        log::warn!("[schedule] weight: a log does not tell it; all sources count the same");
    }
    let log = read_log(updates, &settings.options.calendar)?;
    let fleet = plan_all(&log.histories, &settings)?;
    let rows = fleet.planned.iter().map(schedule_row).collect();
    Ok(Learned { log, fleet, rows, settings })
}

impl Learned {
    pub(crate) fn schedules(&self) -> Vec<Schedule> {
        self.fleet.planned.iter().map(|plan| plan.schedule.clone()).collect()
    }

    pub(crate) fn command(&self) -> &PollCommand {
        &self.settings.command
    }

    /// Writes the tables, the JSON and, unless cron would refuse it, the crontab to a folder.
    pub(crate) fn write(&self, dir: &Path, clock: &CronClock) -> Result<()> {
        let points: Vec<RecallCurveRow> = self.fleet.planned.iter().flat_map(curve_rows).collect();
        write_table(dir, &self.rows)?;
        write_table(dir, &points)?;
        files::write(&dir.join("schedule.json"), rendered::plans(&self.fleet.planned).as_bytes())?;
        match crontab_text(&self.schedules(), self.command(), clock) {
            Ok(text) => files::write(&dir.join("schedule.crontab"), text.as_bytes())?,
            Err(refused) => log::warn!("{refused:#}"),
        }
        Ok(())
    }

    /// Draws recall against polls for the sources with most updates.
    pub(crate) fn write_figure(&self, file: &Path) -> Result<()> {
        let panels = panels(&self.log.histories, &self.fleet.planned, &self.settings.options);
        Ok(files::write(file, figure::svg(&panels).as_bytes())?)
    }
}

/// A log, and what all methods are worth on it.
pub(crate) fn compare_on(updates: &Path, settings: &ScheduleSettings) -> Result<(Log, Comparison)> {
    let log = read_log(updates, &settings.options.calendar)?;
    let compared = compare(&log.histories, settings)?;
    Ok((log, compared))
}

/// A log, and what schedules would have been worth on it.
pub(crate) struct Replayed {
    pub log: Log,
    pub found: Vec<Simulated>,
    /// Sources of the log that no schedule is for.
    pub without_schedule: usize,
}

/// Replays the schedules of a file or table against a log: its whole, or of each source the last updates, the share
/// `holdout` of them. `grain_s` is the width of a slot.
pub(crate) fn replay(
    schedules: &Path,
    updates: &Path,
    calendar: &Calendar,
    holdout: Option<f64>,
    grain_s: i64,
) -> Result<Replayed> {
    let plans = poll_plans(schedules)?;
    let log = read_log(updates, calendar)?;
    let histories: Vec<History> = match holdout {
        Some(holdout) => log.histories.iter().map(|history| history.split(holdout).1).collect(),
        None => log.histories.clone(),
    };
    let found = simulate(&plans, &histories, grain_s);
    let without_schedule = log.histories.len() - found.len();
    let name = schedules.display();
    if without_schedule > 0 {
        let sources = log.histories.len();
        log::warn!("{without_schedule} of {sources} sources of the log have no schedule in {name}; left out");
    }
    if found.is_empty() {
        bail!("no schedule in {name} is for a source of {}", updates.display());
    }
    Ok(Replayed { log, found, without_schedule })
}

/// Reads schedules from JSON, or from the table `schedules`.
fn poll_plans(path: &Path) -> Result<Vec<PollPlan>> {
    let name = path.display();
    let json = if logs::is_table(path).with_context(|| format!("the schedule {name}"))? {
        let row = |row: &ScheduleRow| json!({"source": row.source, "period": row.period, "time_zone": row.time_zone, "poll_times": row.poll_times});
        logs::table_rows::<ScheduleRow>(path, |row| &row.source)?
            .iter()
            .map(row)
            .collect::<serde_json::Value>()
            .to_string()
    } else {
        files::read_to_string(path).with_context(|| format!("the schedule {name}"))?
    };
    read_plans(&json).with_context(|| name.to_string())
}
