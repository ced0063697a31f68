//! Replays any schedule, also one written by hand, against a log.
//!
//! The form is JSON: one object, a list of them, or an object with a list `schedules` (what `schedule` writes):
//! ```json
//! { "source": "https://example.org/news", "period": "week", "time_zone": "Europe/Berlin",
//!   "poll_times": ["Mon 06:30", "Thu 18:00", 455400] }
//! ```
//! A poll time is a number of seconds from the period's start, or `":MM"` in an hour, `"HH:MM"` in a day, `"Mon HH:MM"`
//! in a week, `"15 HH:MM"` in a month, each with seconds if need be. Without `source` (or with `"*"`) it holds for
//! every source of the log; `time_zone` is UTC unless stated. Other keys are ignored.

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::assess::{Judge, Quality};
use super::evaluate::Metrics;
use super::history::History;
use crate::model::Period;
use crate::model::said::json_problem;
use crate::stats::Calendar;

/// A schedule to replay.
#[derive(Clone, Debug)]
pub(crate) struct PollPlan {
    /// `None` if it is for every source.
    pub source: Option<String>,
    pub period: Period,
    pub calendar: Calendar,
    /// Seconds from the period's start, ascending, distinct.
    pub poll_times: Vec<i64>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("{0}; a schedule is JSON, as `ratoon schedule --out DIR` writes to DIR/schedule.json")]
    Json(String),
    #[error("schedule {number}: {problem}")]
    Schedule { number: usize, problem: String },
    #[error("no schedule in it: expected an object with 'period' and 'poll_times', or a list of them")]
    Empty,
}

/// How a schedule did on one source of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Simulated {
    pub source: String,
    pub period: Period,
    pub polls: usize,
    pub updates: usize,
    #[serde(flatten)]
    pub quality: Quality,
    /// A fixed interval with as many polls, mean over its phases.
    pub uniform: Metrics,
    pub recall_ceiling: Option<f64>,
}

/// Reads schedules from JSON.
pub(crate) fn read_plans(json: &str) -> Result<Vec<PollPlan>, PlanError> {
    let value: Value = serde_json::from_str(json).map_err(|error| PlanError::Json(json_problem(&error)))?;
    let list = match &value {
        Value::Array(list) => list.as_slice(),
        Value::Object(object) => match object.get("schedules") {
            Some(Value::Array(list)) => list.as_slice(),
            _ => std::slice::from_ref(&value),
        },
        _ => return Err(PlanError::Empty),
    };
    if list.is_empty() {
        return Err(PlanError::Empty);
    }
    let read = |(i, value)| read_plan(value).map_err(|problem| PlanError::Schedule { number: i + 1, problem });
    list.iter().enumerate().map(read).collect()
}

fn read_plan(value: &Value) -> Result<PollPlan, String> {
    let object = value.as_object().ok_or("not an object")?;
    let text = |key: &str| match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(other) => Err(format!("'{key}' is {other}, not a text")),
    };
    let period: Period = text("period")?.ok_or("no 'period'")?.parse().map_err(|e| format!("{e}"))?;
    let calendar = match text("time_zone")? {
        None => Calendar::utc(),
        Some(name) => Calendar::new(TimeZone::get(name).map_err(|e| format!("time_zone: {e}"))?),
    };
    let times = object.get("poll_times").and_then(Value::as_array).ok_or("no list 'poll_times'")?;
    let mut poll_times = Vec::with_capacity(times.len());
    for time in times {
        let seconds = match time {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => parse_time(text, period),
            _ => None,
        };
        match seconds.filter(|s| (0..period.seconds()).contains(s)) {
            Some(seconds) => poll_times.push(seconds),
            None => return Err(format!("poll time {time} is not within a {period}")),
        }
    }
    poll_times.sort_unstable();
    poll_times.dedup();
    let source = text("source")?.filter(|s| *s != "*").map(str::to_owned);
    Ok(PollPlan { source, period, calendar, poll_times })
}

fn parse_time(text: &str, period: Period) -> Option<i64> {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let text = text.trim();
    let (day, clock) = match period {
        Period::Hour => {
            let mut parts = text.trim_start_matches(':').split(':');
            let minute = number(parts.next()?, 59)?;
            let second = parts.next().map_or(Some(0), |s| number(s, 59))?;
            return parts.next().is_none().then_some(minute * 60 + second);
        }
        Period::Day => (0, text),
        Period::Week => {
            let (day, clock) = text.split_once(' ')?;
            let name = day.get(..3)?.to_ascii_lowercase();
            (DAYS.iter().position(|d| *d == name)? as i64, clock)
        }
        Period::Month => {
            let (day, clock) = text.split_once(' ')?;
            (number(day, 31)?.checked_sub(1).filter(|d| *d >= 0)?, clock)
        }
    };
    let mut parts = clock.trim().split(':');
    let hour = number(parts.next()?, 23)?;
    let minute = number(parts.next()?, 59)?;
    let second = parts.next().map_or(Some(0), |s| number(s, 59))?;
    parts.next().is_none().then_some(day * 86_400 + hour * 3_600 + minute * 60 + second)
}

fn number(text: &str, most: i64) -> Option<i64> {
    text.parse().ok().filter(|n| (0..=most).contains(n))
}

/// Replays each source of a log against the schedule made for it, or against the one for all. Sources without a
/// schedule are left out.
#[must_use]
pub(crate) fn simulate(plans: &[PollPlan], histories: &[History], grain_s: i64) -> Vec<Simulated> {
    histories
        .iter()
        .filter_map(|history| {
            let own = plans.iter().find(|p| p.source.as_deref() == Some(&history.source));
            let plan = own.or_else(|| plans.iter().find(|p| p.source.is_none()))?;
            let judge = Judge::new(history);
            Some(Simulated {
                source: history.source.clone(),
                period: plan.period,
                polls: plan.poll_times.len(),
                updates: history.updates(),
                quality: judge.quality(&plan.calendar, plan.period, &plan.poll_times),
                uniform: judge.uniform(plan.period, &plan.poll_times),
                recall_ceiling: judge.ceiling(&plan.calendar, grain_s),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn hand_written_times_are_read() {
        let times = |json: &str| read_plans(json).map(|p| p[0].poll_times.clone());
        let week = r#"{"period": "week", "poll_times": ["Thu 18:00", "Monday 06:30", 60, "Thu 18:00"]}"#;
        assert_eq!(times(week).unwrap(), [60, 23_400, 3 * 86_400 + 64_800]);
        assert_eq!(times(r#"[{"period": "hour", "poll_times": [":05", "15:30"]}]"#).unwrap(), [300, 930]);
        assert_eq!(times(r#"{"period": "month", "poll_times": ["31 00:00"]}"#).unwrap(), [30 * 86_400]);
        let whole = r#"{"schedules": [{"source": "a", "period": "day", "poll_times": ["23:59:59"], "recall": 1}]}"#;
        assert_eq!(times(whole).unwrap(), [86_399]);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |json: &str| read_plans(json).unwrap_err().to_string();
        assert!(error("{").contains("not JSON"));
        assert!(error("[]").contains("no schedule"));
        assert!(error(r#"[{"period": "day", "poll_times": []}, {"period": "year"}]"#).contains("schedule 2: 'year'"));
        assert!(error(r#"{"period": "day", "poll_times": ["25:00"]}"#).contains("25:00"));
        assert!(error(r#"{"period": "hour", "poll_times": [3600]}"#).contains("3600"));
        assert!(error(r#"{"period": "day", "time_zone": "Mars/Base", "poll_times": []}"#).contains("time_zone"));
    }

    #[test]
    fn a_schedule_meets_its_own_source() {
        let at = |h: i64| Timestamp(h * 3_600_000_000);
        let daily =
            |name: &str, hour: i64| History::of_moments(name, &(0..50).map(|d| at(d * 24 + hour)).collect::<Vec<_>>());
        let twice = |name: &str| History::of_moments(name, &(0..100).map(|d| at(d * 12 + 6)).collect::<Vec<_>>());
        let plans = read_plans(
            r#"[{"period": "day", "poll_times": ["12:00"]}, {"source": "b", "period": "day", "poll_times": ["06:00", "18:00"]}]"#,
        )
        .unwrap();
        let found = simulate(&plans, &[daily("a", 6), twice("b"), twice("c")], 300);
        let recall: Vec<f64> = found.iter().map(|s| s.quality.expected.recall.unwrap()).collect();
        assert_eq!(recall[..2], [1.0, 1.0]);
        assert!((recall[2] - 0.5).abs() < 0.01);
        assert_eq!(found[0].recall_ceiling, Some(1.0));
        assert_eq!(simulate(&plans[1..], &[daily("a", 6)], 300), []);
    }
}
