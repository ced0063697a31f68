//! One source: learn a schedule, say what it is worth on time it has not seen, deliver it.
//!
//! The history is split in time. What is learned from the first part is judged on the second, next to polls at a fixed
//! interval; the schedule that is delivered is then learned from all of it.

use serde::{Deserialize, Serialize};

use super::assess::{Quality, assess, assess_uniform, ceiling};
use super::evaluate::Metrics;
use super::fit::fit_slots;
use super::gaps::{Objective, PatternCost};
use super::history::History;
use super::optimal::{curve, most_polls};
use super::options::{FitOn, Method, Options, OptionsError};
use super::pattern::learn;
use super::period_choice::{Gain, choose_period, gain};
use super::signal::{Signal, measure};
use crate::model::Timestamp;
use crate::stats::period::SECOND;
use crate::stats::summary::resultant;
use crate::stats::{Calendar, Period, Update};

/// When to poll a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub source: String,
    pub period: Period,
    pub time_zone: String,
    /// Seconds from the period's start by the wall clock, ascending; weeks start on Monday 00:00.
    pub poll_times: Vec<i64>,
    pub method: Method,
    pub objective: Objective,
}

/// One more poll, one point of the recall curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    pub polls: usize,
    pub recall: Option<f64>,
    pub freshness: Option<f64>,
}

/// A schedule with its forecast.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourcePlan {
    #[serde(flatten)]
    pub schedule: Schedule,
    pub updates: usize,
    pub train_updates: usize,
    pub test_updates: usize,
    /// All on held-out time.
    pub held_out: Quality,
    /// A fixed interval, mean over its phases.
    pub uniform: Metrics,
    /// A fixed interval at the phase that was best on the training part.
    pub uniform_best: Metrics,
    /// Recall with every slot polled.
    pub recall_ceiling: Option<f64>,
    pub curve: Vec<CurvePoint>,
    /// The fewest polls on the curve that reach 90 % of the ceiling.
    pub polls_for_90_percent: Option<usize>,
    /// What cross-validation within the training part shows over a fixed interval.
    pub gain: Option<Gain>,
    /// What the versions' signal tells about the next update, if it was asked for.
    pub signal: Option<Signal>,
    pub notes: Vec<String>,
}

/// Fewer updates than this teach nothing: the schedule is uniform.
const LEAST_UPDATES: usize = 3;

/// Learns, judges and delivers the schedule of one source.
pub fn plan(history: &History, options: &Options) -> Result<SourcePlan, OptionsError> {
    options.check()?;
    Ok(plan_checked(history, options))
}

/// The schedule of a source that got its share of a budget, which may be no poll at all.
pub fn plan_share(
    history: &History,
    options: &Options,
    period: Period,
    polls: usize,
) -> Result<SourcePlan, OptionsError> {
    let share = Options { period: Some(period), polls: polls.max(1), ..options.clone() };
    share.check()?;
    Ok(plan_checked(history, &Options { polls, ..share }))
}

fn plan_checked(history: &History, options: &Options) -> SourcePlan {
    let calendar = &options.calendar;
    let mut notes = Vec::new();
    let (train, test) = history.split(options.holdout);
    let (period, polls, method, gain) = decide(&train, history, options, &mut notes);
    let slots = usize::try_from(period.seconds() / options.grain_s).expect("a grain divides the period");
    let min_gap = options.min_gap_slots(options.grain_s);
    let most = most_polls(slots, min_gap);
    if polls > most {
        notes.push(format!(
            "{polls} polls do not fit into {} at a grain of {} s and a minimum gap of {} s: {most} used",
            period.each(),
            options.grain_s,
            options.min_gap_s
        ));
    }
    let polls = polls.min(most);
    let times = |slots: &[usize]| -> Vec<i64> { slots.iter().map(|s| *s as i64 * options.grain_s).collect() };
    let place = (calendar, period, options.grain_s);

    let learned = learn(&train, calendar, period, options.grain_s, &options.smoothing);
    let cost = PatternCost::new(&learned.pattern, options.objective, learned.shrinkage);
    let solutions = if method == Method::Optimal && !learned.blind && !learned.pattern.points.is_empty() {
        curve(&cost, polls.max(options.curve_polls), min_gap).into_iter().map(|s| s.slots).collect()
    } else {
        Vec::new()
    };
    let slots_for = |n: usize| match solutions.get(n.wrapping_sub(1)) {
        Some(slots) => times(slots),
        None => times(&fit_slots(&train, &learned, &cost, method, n, min_gap, place)),
    };
    let trained = slots_for(polls);
    let held_out = assess(&test, calendar, period, &trained);
    let best_phase = fit_slots(&train, &learned, &cost, Method::Uniform, polls, min_gap, place);
    let uniform_best = assess(&test, calendar, period, &times(&best_phase)).expected;
    let recall_ceiling = ceiling(&test, calendar, options.grain_s);
    let points: Vec<CurvePoint> = (1..=polls.max(options.curve_polls).min(most))
        .map(|n| {
            let metrics = assess(&test, calendar, period, &slots_for(n)).expected;
            CurvePoint { polls: n, recall: metrics.recall, freshness: metrics.freshness }
        })
        .collect();
    let enough = recall_ceiling.map(|c| 0.9 * c);
    let polls_for_90_percent =
        points.iter().find(|p| p.recall.zip(enough).is_some_and(|(r, e)| r >= e - 1e-12)).map(|p| p.polls);

    let poll_times = match options.fit {
        FitOn::Train => trained,
        FitOn::All => {
            let learned = learn(history, calendar, period, options.grain_s, &options.smoothing);
            let cost = PatternCost::new(&learned.pattern, options.objective, learned.shrinkage);
            times(&fit_slots(history, &learned, &cost, method, polls, min_gap, place))
        }
    };
    if poll_times.len() < polls {
        notes.push(format!("the {} method has use for {} of {polls} polls", method.as_str(), poll_times.len()));
    }
    if learned.blind {
        notes.push(format!(
            "the updates are known to intervals too wide to tell a phase of the {period}: polls are even"
        ));
    }
    notes.extend(comb_note(history, calendar));
    SourcePlan {
        schedule: Schedule {
            source: history.source.clone(),
            period,
            time_zone: calendar.name().to_owned(),
            poll_times,
            method,
            objective: options.objective,
        },
        updates: history.updates(),
        train_updates: train.updates(),
        test_updates: test.updates(),
        held_out,
        uniform: assess_uniform(&test, period, polls),
        uniform_best,
        recall_ceiling,
        curve: points,
        polls_for_90_percent,
        gain,
        signal: options.signal.then(|| measure(history, calendar, options.holdout)).flatten(),
        notes,
    }
}

/// Period, polls and method: as asked, or as cross-validation allows.
fn decide(
    train: &History,
    history: &History,
    options: &Options,
    notes: &mut Vec<String>,
) -> (Period, usize, Method, Option<Gain>) {
    let updates = history.updates();
    if updates < LEAST_UPDATES {
        let count = match updates {
            0 => "no update is".to_owned(),
            1 => "one update is".to_owned(),
            n => format!("{n} updates are"),
        };
        notes.push(format!("{count} known: polls are uniform"));
        return (options.period.unwrap_or(Period::Day), options.polls, Method::Uniform, None);
    }
    match options.period {
        Some(period) => {
            let gain = match options.method {
                Method::Optimal | Method::Theoretical => gain(train, options, period, options.polls),
                Method::Uniform | Method::Poisson => None,
            };
            let learns = matches!(options.method, Method::Optimal | Method::Theoretical);
            if learns && !gain.is_some_and(Gain::is_shown) {
                notes.push("no gain over uniform polls is shown in cross-validation".to_owned());
            }
            (period, options.polls, options.method, gain)
        }
        None if matches!(options.method, Method::Uniform | Method::Poisson) => {
            (Period::Day, options.polls, options.method, None)
        }
        None => match choose_period(train, options) {
            Some(choice) => (choice.period, choice.polls, options.method, Some(choice.gain)),
            None => {
                notes.push("no period shows a gain over uniform polls: polls are uniform".to_owned());
                (Period::Day, options.polls, Method::Uniform, None)
            }
        },
    }
}

/// Updates that always fall on the same minute: a poller's cron, if a poller wrote the log.
fn comb_note(history: &History, calendar: &Calendar) -> Option<String> {
    let moments: Vec<Timestamp> =
        history.sequences.iter().flat_map(|s| s.updates.iter().filter_map(Update::exact)).collect();
    if moments.len() < 20 {
        return None;
    }
    for minutes in [60i64, 30, 20, 15, 10, 5] {
        let phase = |t: &Timestamp| {
            calendar.local(*t).rem_euclid(minutes * 60 * SECOND) as f64 / (minutes * 60 * SECOND) as f64
        };
        let phases: Vec<f64> = moments.iter().map(phase).collect();
        let resultant = resultant(&phases);
        if resultant > 0.6 {
            return Some(format!(
                "updates keep to the same minute of every {minutes} (concentration {resultant:.2}): if a poller wrote this \
                 log, that is its own cron, and the minute says nothing about the source"
            ));
        }
    }
    None
}
