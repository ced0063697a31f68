//! Planned schedules as rows, and rows as schedules again.

use crate::model::{Method, Period, Timestamp};
use crate::schedule::{Options, Schedule, SourcePlan};
use crate::tables::schedule::{RecallCurveRow, ScheduleRow};

fn as_i64(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[must_use]
pub fn schedule_row(plan: &SourcePlan) -> ScheduleRow {
    let (found, even) = (&plan.held_out.expected, &plan.uniform);
    ScheduleRow {
        source: plan.schedule.source.clone(),
        period: plan.schedule.period,
        time_zone: plan.schedule.time_zone.clone(),
        polls: as_i64(plan.schedule.poll_times.len()),
        poll_times: plan.schedule.poll_times.clone(),
        method: plan.schedule.method,
        objective: plan.schedule.objective.to_string(),
        updates: as_i64(plan.updates),
        test_updates: as_i64(plan.test_updates),
        versions: i64::try_from(found.versions).unwrap_or(i64::MAX),
        recall: found.recall,
        recall_low: plan.held_out.recall_bounds.map(|(low, _)| low),
        recall_high: plan.held_out.recall_bounds.map(|(_, high)| high),
        freshness: found.freshness,
        freshness_low: plan.held_out.freshness_bounds.map(|(low, _)| low),
        freshness_high: plan.held_out.freshness_bounds.map(|(_, high)| high),
        forecast_recall_low: plan.held_out.recall_forecast.map(|(low, _)| low),
        forecast_recall_high: plan.held_out.recall_forecast.map(|(_, high)| high),
        forecast_freshness_low: plan.held_out.freshness_forecast.map(|(low, _)| low),
        forecast_freshness_high: plan.held_out.freshness_forecast.map(|(_, high)| high),
        age_s: found.age_s,
        age_last_s: found.age_last_s,
        delay_s: found.delay_s,
        staleness: found.staleness,
        uniform_recall: even.recall,
        uniform_freshness: even.freshness,
        uniform_age_s: even.age_s,
        uniform_delay_s: even.delay_s,
        uniform_staleness: even.staleness,
        uniform_best_recall: plan.uniform_best.recall,
        recall_ceiling: plan.recall_ceiling,
        polls_for_90_percent: plan.polls_for_90_percent.map(as_i64),
        gone_since: None,
        signal: plan.shows,
        signal_multiplier: plan.signal.map(|signal| signal.multiplier),
        other_poll_times: plan.other_poll_times.clone(),
        notes: (!plan.notes.is_empty()).then(|| plan.notes.join("; ")),
    }
}

/// The row of a source that left the schedule. `updates`: how many are known of it.
#[must_use]
pub(crate) fn gone_row(source: &str, since: Timestamp, updates: i64, options: &Options) -> ScheduleRow {
    let schedule = Schedule {
        source: source.to_owned(),
        period: options.period.unwrap_or(Period::Day),
        time_zone: options.calendar.name().to_owned(),
        poll_times: Vec::new(),
        method: Method::Gone,
        objective: options.objective,
    };
    ScheduleRow {
        source: schedule.source,
        period: schedule.period,
        time_zone: schedule.time_zone,
        polls: 0,
        poll_times: schedule.poll_times,
        method: schedule.method,
        objective: schedule.objective.to_string(),
        updates,
        test_updates: 0,
        versions: 0,
        recall: None,
        recall_low: None,
        recall_high: None,
        freshness: None,
        freshness_low: None,
        freshness_high: None,
        age_s: None,
        age_last_s: None,
        delay_s: None,
        staleness: None,
        uniform_recall: None,
        uniform_freshness: None,
        uniform_age_s: None,
        uniform_delay_s: None,
        uniform_staleness: None,
        uniform_best_recall: None,
        recall_ceiling: None,
        polls_for_90_percent: None,
        forecast_recall_low: None,
        forecast_recall_high: None,
        forecast_freshness_low: None,
        forecast_freshness_high: None,
        gone_since: Some(since),
        signal: None,
        signal_multiplier: None,
        other_poll_times: None,
        notes: None,
    }
}

#[must_use]
pub fn curve_rows(plan: &SourcePlan) -> Vec<RecallCurveRow> {
    let row = |point: &crate::schedule::CurvePoint| RecallCurveRow {
        source: plan.schedule.source.clone(),
        period: plan.schedule.period,
        polls: as_i64(point.polls),
        recall: point.recall,
        freshness: point.freshness,
    };
    plan.curve.iter().map(row).collect()
}

/// The schedule in a row; `None` if the row is not one that [`schedule_row`] makes.
#[must_use]
pub(crate) fn schedule_of(row: &ScheduleRow) -> Option<Schedule> {
    Some(Schedule {
        source: row.source.clone(),
        period: row.period,
        time_zone: row.time_zone.clone(),
        poll_times: row.poll_times.clone(),
        method: row.method,
        objective: row.objective.parse().ok()?,
    })
}
