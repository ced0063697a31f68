//! One source: learn a schedule, say what it is worth on time it has not seen, deliver it.
//!
//! The history is split in time. What is learned from the first part is judged on the second, next to polls at a fixed
//! interval; the schedule that is delivered is then learned from all of it.

use serde::{Deserialize, Serialize};

use super::assess::{Quality, assess, assess_uniform, ceiling};
use super::evaluate::Metrics;
use super::fit::SlotFitter;
use super::history::History;
use super::objective::Objective;
use super::optimal::curve;
use super::options::{FitOn, Options, OptionsError};
use super::period_choice::{Gain, PeriodChoice, choose_period, gain};
use super::signal::{Signal, measure};
use crate::model::{Method, Period, Timestamp};
use crate::stats::calendar::SECOND;
use crate::stats::summary::resultant;
use crate::stats::{Calendar, Update};

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
    /// Quality on held-out time, as all figures that follow.
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
pub(crate) fn plan_share(
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
    let Decision { period, polls, method, gain } = decide(&train, history, options, &mut notes);
    let fitter = SlotFitter::new(&train, options, period, options.grain_s);
    let polls = polls_that_fit(polls, &fitter, period, options, &mut notes);
    let judged = Judged::new(&fitter, &test, options, (period, polls, method));
    let poll_times = match options.fit {
        FitOn::Train => judged.poll_times.clone(),
        FitOn::All => {
            let fitter = SlotFitter::new(history, options, period, options.grain_s);
            fitter.times(&fitter.slots(method, polls))
        }
    };
    if poll_times.len() < polls {
        notes.push(format!("the {method} method has use for {} of {polls} polls", poll_times.len()));
    }
    if fitter.learned.blind {
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
        held_out: judged.held_out,
        uniform: assess_uniform(&test, period, polls),
        uniform_best: judged.uniform_best,
        recall_ceiling: judged.recall_ceiling,
        polls_for_90_percent: judged.polls_for_90_percent(),
        curve: judged.curve,
        gain,
        signal: options.signal.then(|| measure(history, calendar, options.holdout)).flatten(),
        notes,
    }
}

/// The polls asked for, or as many as the period has room for.
fn polls_that_fit(
    polls: usize,
    fitter: &SlotFitter<'_>,
    period: Period,
    options: &Options,
    notes: &mut Vec<String>,
) -> usize {
    let most = fitter.most_polls();
    if polls > most {
        notes.push(format!(
            "{polls} polls do not fit into {} at a grain of {} s and a minimum gap of {} s: {most} used",
            period.each(),
            options.grain_s,
            options.min_gap_s
        ));
    }
    polls.min(most)
}

/// What was learned from the training part, judged on the held-out one.
struct Judged {
    /// Poll times of the schedule that is judged.
    poll_times: Vec<i64>,
    held_out: Quality,
    uniform_best: Metrics,
    recall_ceiling: Option<f64>,
    curve: Vec<CurvePoint>,
}

impl Judged {
    fn new(
        fitter: &SlotFitter<'_>,
        test: &History,
        options: &Options,
        (period, polls, method): (Period, usize, Method),
    ) -> Self {
        let calendar = &options.calendar;
        let curve_polls = polls.max(options.curve_polls);
        // The optimum for every number of polls comes from one solution.
        let solutions = if method == Method::Optimal && !fitter.learned.tells_nothing() {
            curve(&fitter.cost, curve_polls, fitter.min_gap)
        } else {
            Vec::new()
        };
        let times_for = |n: usize| match solutions.get(n.wrapping_sub(1)) {
            Some(solution) => fitter.times(&solution.slots),
            None => fitter.times(&fitter.slots(method, n)),
        };
        let quality = |poll_times: &[i64]| assess(test, calendar, period, poll_times);
        let poll_times = times_for(polls);
        let points = (1..=curve_polls.min(fitter.most_polls())).map(|n| {
            let metrics = quality(&times_for(n)).expected;
            CurvePoint { polls: n, recall: metrics.recall, freshness: metrics.freshness }
        });
        Self {
            held_out: quality(&poll_times),
            uniform_best: quality(&fitter.times(&fitter.slots(Method::Uniform, polls))).expected,
            recall_ceiling: ceiling(test, calendar, options.grain_s),
            curve: points.collect(),
            poll_times,
        }
    }

    /// The fewest polls on the curve that reach 90 % of the ceiling.
    fn polls_for_90_percent(&self) -> Option<usize> {
        let enough = 0.9 * self.recall_ceiling?;
        self.curve.iter().find(|point| point.recall.is_some_and(|recall| recall >= enough - 1e-12)).map(|p| p.polls)
    }
}

/// What a schedule is to be learned for.
struct Decision {
    period: Period,
    polls: usize,
    method: Method,
    gain: Option<Gain>,
}

/// Period, polls and method: as asked, or as cross-validation allows.
fn decide(train: &History, history: &History, options: &Options, notes: &mut Vec<String>) -> Decision {
    let uniform = |period: Period| Decision { period, polls: options.polls, method: Method::Uniform, gain: None };
    let updates = history.updates();
    if updates < LEAST_UPDATES {
        let count = match updates {
            0 => "no update is".to_owned(),
            1 => "one update is".to_owned(),
            n => format!("{n} updates are"),
        };
        notes.push(format!("{count} known: polls are uniform"));
        return uniform(options.period.unwrap_or(Period::Day));
    }
    let learns = matches!(options.method, Method::Optimal | Method::Theoretical);
    let as_asked = |period: Period, gain| Decision { period, polls: options.polls, method: options.method, gain };
    match options.period {
        Some(period) if learns => {
            let gain = gain(train, options, period, options.polls);
            if !gain.is_some_and(Gain::is_shown) {
                notes.push("no gain over uniform polls is shown in cross-validation".to_owned());
            }
            as_asked(period, gain)
        }
        period if !learns => as_asked(period.unwrap_or(Period::Day), None),
        _ => match choose_period(train, options) {
            Some(PeriodChoice { period, polls, gain }) => {
                Decision { period, polls, method: options.method, gain: Some(gain) }
            }
            None => {
                notes.push("no period shows a gain over uniform polls: polls are uniform".to_owned());
                uniform(Period::Day)
            }
        },
    }
}

/// A note on updates that always fall on the same minute: if a poller wrote the log, that minute is the poller's own.
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
