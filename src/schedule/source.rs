//! One source: learn a schedule, say what it is worth on time it has not seen, deliver it.
//!
//! The history is split in time. What is learned from the first part is judged on the second, next to polls at a fixed
//! interval; the schedule that is delivered is then learned from all of it.

use serde::{Deserialize, Serialize};

use super::assess::{Judge, Quality};
use super::evaluate::Metrics;
use super::fit::SlotFitter;
use super::history::History;
use super::objective::Objective;
use super::optimal::curve;
use super::options::{FitOn, Options, OptionsError};
use super::period_choice::{Gain, PeriodChoice, choose_period, gain, value};
use super::signal::{Signal, SignalReading, measure, shows_now};
use super::uniform::{NamePhase, even};
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
    /// Empty if there is no held-out version to judge by.
    pub curve: Vec<CurvePoint>,
    /// The fewest polls on the curve that reach 90 % of the ceiling.
    pub polls_for_90_percent: Option<usize>,
    /// What cross-validation within the training part shows over a fixed interval.
    pub gain: Option<Gain>,
    /// What the versions' signal tells about the next update, if it was asked for.
    pub signal: Option<Signal>,
    /// Whether the newest version shows the signal, where there are two timetables: the schedule's is then the one in force.
    pub shows: Option<bool>,
    /// The timetable for when the signal is the other way.
    pub other_poll_times: Option<Vec<i64>>,
    pub notes: Vec<String>,
    /// The polls that the figures are of: as many as are delivered, learned from the training part.
    #[serde(skip)]
    pub(crate) judged_times: Vec<i64>,
    /// The same of the timetable for when the signal is the other way.
    #[serde(skip)]
    judged_other: Option<Vec<i64>>,
}

/// Fewer updates than this teach nothing: the schedule is uniform.
const LEAST_UPDATES: usize = 3;

/// Learns, judges and delivers the schedule of one source.
pub fn plan(history: &History, options: &Options) -> Result<SourcePlan, OptionsError> {
    options.check()?;
    Ok(plan_checked(history, &NamePhase::of(&history.source), options))
}

/// The schedule of a source that got its share of a budget, which may be no poll at all. The options were checked.
pub(crate) fn plan_share(
    history: &History,
    phase: &NamePhase,
    options: &Options,
    period: Period,
    polls: usize,
) -> SourcePlan {
    plan_checked(history, phase, &Options { period: Some(period), polls, ..options.clone() })
}

/// As [`plan`], with options that were checked and with the phase that the source's name stands for.
pub(crate) fn plan_checked(history: &History, phase: &NamePhase, options: &Options) -> SourcePlan {
    if history.updates() == 0 {
        return plan_nothing(&history.source, phase, options);
    }
    learn_plan(history, phase, options)
}

/// The schedule of a source of which no update is known: even polls at the phase of its name. There is nothing to learn
/// from and nothing to judge by, so that neither is tried.
fn plan_nothing(source: &str, phase: &NamePhase, options: &Options) -> SourcePlan {
    let mut notes = vec![too_few(0)];
    let period = options.period.unwrap_or(Period::Day);
    let polls = polls_that_fit(options.polls, period, options, &mut notes);
    let slots = options.slots(period);
    let times = even(slots, polls, phase.on(slots));
    SourcePlan {
        schedule: Schedule {
            source: source.to_owned(),
            period,
            time_zone: options.calendar.name().to_owned(),
            poll_times: times.into_iter().map(|slot| slot as i64 * options.grain_s).collect(),
            method: Method::Uniform,
            objective: options.objective,
        },
        updates: 0,
        train_updates: 0,
        test_updates: 0,
        held_out: Quality::default(),
        uniform: Metrics::default(),
        uniform_best: Metrics::default(),
        recall_ceiling: None,
        curve: Vec::new(),
        polls_for_90_percent: None,
        gain: None,
        signal: None,
        shows: None,
        other_poll_times: None,
        notes,
        judged_times: Vec::new(),
        judged_other: None,
    }
}

/// Learns the schedule from whatever there is.
pub(super) fn learn_plan(history: &History, phase: &NamePhase, options: &Options) -> SourcePlan {
    let calendar = &options.calendar;
    let mut notes = Vec::new();
    let (train, test) = history.split(options.holdout);
    let Decision { period, polls, method, gain } = decide(&train, history, phase, options, &mut notes);
    let polls = polls_that_fit(polls, period, options, &mut notes);
    let fitter = SlotFitter::new(&train, phase, options, period, options.grain_s);
    let judged = Judged::new(&fitter, &Judge::new(&test), options, (period, polls, method));
    let from_all;
    let delivered = match options.fit {
        FitOn::Train => &fitter,
        FitOn::All => {
            from_all = SlotFitter::new(history, phase, options, period, options.grain_s);
            &from_all
        }
    };
    let slots = delivered.slots(method, polls);
    if slots.len() < polls {
        notes.push(format!("the {method} method has use for {} of {polls} polls", slots.len()));
    }
    if delivered.learned.blind && is_even(&slots, options.slots(period)) {
        notes.push(format!("the updates are known to intervals too wide to tell a phase of the {period}{EVEN}"));
    }
    notes.extend(comb_note(history, calendar));
    let signal = options.signal.then(|| measure(history, calendar, options.holdout)).flatten();
    let two = signal.filter(|signal| signal.kept).and_then(|signal| {
        TwoTimetables::new(&fitter, (&train, &test), &judged, options, (period, polls, method), signal.reading)
    });
    let mut plan = SourcePlan {
        schedule: Schedule {
            source: history.source.clone(),
            period,
            time_zone: calendar.name().to_owned(),
            poll_times: delivered.times(&slots),
            method,
            objective: options.objective,
        },
        updates: history.updates(),
        train_updates: train.updates(),
        test_updates: test.updates(),
        held_out: judged.held_out,
        uniform: judged.uniform,
        uniform_best: judged.uniform_best,
        recall_ceiling: judged.recall_ceiling,
        polls_for_90_percent: judged.polls_for_90_percent(),
        curve: judged.curve,
        gain,
        signal,
        shows: None,
        other_poll_times: None,
        notes,
        judged_times: judged.times,
        judged_other: None,
    };
    if let Some(two) = two {
        two.put(&mut plan, history, delivered, method);
    }
    plan
}

/// How many polls there are while the signal shows and while it does not, and what that is worth.
struct TwoTimetables {
    on: usize,
    off: usize,
    /// Learned from the training part.
    judged_on: Vec<i64>,
    judged_off: Vec<i64>,
    /// When the signal shows, where there are several pages.
    reading: SignalReading,
    held_out: Metrics,
}

impl TwoTimetables {
    /// The pair that is worth most on the training part and costs no more polls than one timetable does; `None` if
    /// held-out time does not show that it is worth more than one.
    fn new(
        fitter: &SlotFitter<'_>,
        (train, test): (&History, &History),
        one: &Judged,
        options: &Options,
        (period, polls, method): (Period, usize, Method),
        reading: SignalReading,
    ) -> Option<Self> {
        let times = |polls: usize| fitter.times(&fitter.slots(method, polls));
        let (learned, held) = (Judge::new(train), Judge::new(test));
        let mut best: Option<(f64, usize, usize)> = None;
        for off in (1..8).map(|eighth| polls * eighth / 8).filter(|off| *off > 0) {
            let quiet = times(off);
            for on in [2, 3, 4, 6, 8, 12].map(|factor| (polls * factor).min(fitter.most_polls())) {
                let (found, spent) = learned.switched(&options.calendar, period, (&times(on), &quiet), reading);
                let worth = value(&found, options.objective)?;
                if spent <= polls as f64 && best.is_none_or(|best| worth > best.0) {
                    best = Some((worth, on, off));
                }
            }
        }
        let (_, on, off) = best?;
        let (judged_on, judged_off) = (times(on), times(off));
        let (held_out, _) = held.switched(&options.calendar, period, (&judged_on, &judged_off), reading);
        let gains = value(&held_out, options.objective)? > value(&one.held_out.expected, options.objective)?;
        gains.then_some(Self { on, off, judged_on, judged_off, reading, held_out })
    }

    /// Puts the timetable in force into a plan, and the other one beside it.
    fn put(self, plan: &mut SourcePlan, history: &History, delivered: &SlotFitter<'_>, method: Method) {
        let shows = shows_now(history, self.reading);
        let times = |polls: usize| delivered.times(&delivered.slots(method, polls));
        let (now, other) = if shows { (self.on, self.off) } else { (self.off, self.on) };
        plan.schedule.poll_times = times(now);
        (plan.shows, plan.other_poll_times) = (Some(shows), Some(times(other)));
        let (now, other) = if shows { (self.judged_on, self.judged_off) } else { (self.judged_off, self.judged_on) };
        (plan.judged_times, plan.judged_other) = (now, Some(other));
        plan.held_out = Quality { expected: self.held_out, ..Quality::default() };
        plan.notes.push(format!(
            "two timetables: {} polls {} while the signal shows{}, {} while it does not",
            self.on,
            plan.schedule.period.each(),
            where_it_shows(history, self.reading),
            self.off
        ));
    }
}

/// On which pages the signal shows, if there are several.
fn where_it_shows(history: &History, reading: SignalReading) -> &'static str {
    match reading {
        _ if history.sequences.len() < 2 => "",
        SignalReading::Newest => " on the pages that changed last",
        SignalReading::Any => " on any page",
    }
}

/// Ends of notes that say how polls lie. They go where polls are moved.
const EVEN: &str = ": polls are even";
const UNIFORM: &str = ": polls are uniform";

/// Whether all gaps between polls are the same, as nearly as slots allow.
fn is_even(polls: &[usize], slots: usize) -> bool {
    let next = |i: usize| polls.get(i + 1).copied().unwrap_or(polls[0] + slots);
    let gaps = (0..polls.len()).map(|i| next(i) - polls[i]);
    gaps.clone().max().unwrap_or(0) <= gaps.min().unwrap_or(0) + 1
}

impl SourcePlan {
    /// The same source with polls that were moved or dropped to keep to the limit of its host: `placed` says of each poll
    /// where it went. The figures are then of polls that were moved as far.
    pub(crate) fn move_polls(
        &mut self,
        history: &History,
        phase: &NamePhase,
        options: &Options,
        placed: &[Option<i64>],
    ) {
        let period = self.schedule.period;
        let mut delivered: Vec<i64> = placed.iter().copied().flatten().collect();
        delivered.sort_unstable();
        let mut judged = if self.judged_times.len() == placed.len() {
            let moved = self.judged_times.iter().zip(&self.schedule.poll_times).zip(placed);
            moved
                .filter_map(|((time, wanted), placed)| Some((time + (*placed)? - wanted).rem_euclid(period.seconds())))
                .collect()
        } else {
            delivered.clone()
        };
        judged.sort_unstable();
        let (train, test) = history.split(options.holdout);
        let judge = Judge::new(&test);
        if judge.has_version() {
            self.held_out = self.quality(&judge, &options.calendar, &judged);
            if judged.len() != self.judged_times.len() {
                self.uniform = judge.uniform(period, &judged);
                let fitter = SlotFitter::new(&train, phase, options, period, options.grain_s);
                let even = fitter.times(&fitter.slots(Method::Uniform, judged.len()));
                self.uniform_best = judge.expected(&options.calendar, period, &even);
            }
        }
        for note in &mut self.notes {
            if let Some(cause) = note.strip_suffix(EVEN).or_else(|| note.strip_suffix(UNIFORM)) {
                *note = cause.to_owned();
            }
        }
        let dropped = placed.len() - delivered.len();
        self.notes.push(match dropped {
            0 => "polls were moved to keep to the host's limit".to_owned(),
            n => format!("polls were moved to keep to the host's limit, {n} of {} dropped", placed.len()),
        });
        self.schedule.poll_times = delivered;
        self.judged_times = judged;
    }

    /// What poll times are worth, with the other timetable where there are two.
    fn quality(&self, judge: &Judge<'_>, calendar: &Calendar, judged: &[i64]) -> Quality {
        let period = self.schedule.period;
        let (Some(other), Some(signal)) = (&self.judged_other, self.signal) else {
            return judge.quality(calendar, period, judged);
        };
        let two = if self.shows == Some(true) { (judged, other.as_slice()) } else { (other.as_slice(), judged) };
        Quality { expected: judge.switched(calendar, period, two, signal.reading).0, ..Quality::default() }
    }
}

/// The polls asked for, or as many as the period has room for.
fn polls_that_fit(polls: usize, period: Period, options: &Options, notes: &mut Vec<String>) -> usize {
    let most = options.most_polls(period);
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

/// What was learned from the training part, judged on the held-out one. No figures, if that has no version to judge by.
#[derive(Default)]
struct Judged {
    /// The polls that are judged.
    times: Vec<i64>,
    held_out: Quality,
    /// A fixed interval with as many polls.
    uniform: Metrics,
    uniform_best: Metrics,
    recall_ceiling: Option<f64>,
    curve: Vec<CurvePoint>,
}

impl Judged {
    fn new(
        fitter: &SlotFitter<'_>,
        judge: &Judge<'_>,
        options: &Options,
        (period, polls, method): (Period, usize, Method),
    ) -> Self {
        let learned = |n: usize| fitter.times(&fitter.slots(method, n));
        if !judge.has_version() {
            return Self::default();
        }
        let calendar = &options.calendar;
        let curve_polls = polls.max(options.curve_polls);
        // The optimum for every number of polls comes from one solution.
        let solutions = if method == Method::Optimal && !fitter.learned.tells_nothing() {
            curve(fitter.cost(), curve_polls, fitter.min_gap)
        } else {
            Vec::new()
        };
        let times_for = |n: usize| match solutions.get(n.wrapping_sub(1)) {
            Some(solution) => fitter.times(&solution.slots),
            None => learned(n),
        };
        let points = (1..=curve_polls.min(fitter.most_polls())).map(|n| {
            let metrics = judge.expected(calendar, period, &times_for(n));
            CurvePoint { polls: n, recall: metrics.recall, freshness: metrics.freshness }
        });
        let times = times_for(polls);
        let even = fitter.times(&fitter.slots(Method::Uniform, times.len()));
        Self {
            held_out: judge.quality(calendar, period, &times),
            uniform: judge.uniform(period, &times),
            uniform_best: judge.expected(calendar, period, &even),
            recall_ceiling: judge.ceiling(calendar, options.grain_s),
            curve: points.collect(),
            times,
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
fn decide(
    train: &History,
    history: &History,
    phase: &NamePhase,
    options: &Options,
    notes: &mut Vec<String>,
) -> Decision {
    let uniform = |period: Period| Decision { period, polls: options.polls, method: Method::Uniform, gain: None };
    let updates = history.updates();
    if updates < LEAST_UPDATES {
        notes.push(too_few(updates));
        return uniform(options.period.unwrap_or(Period::Day));
    }
    let learns = matches!(options.method, Method::Optimal | Method::Theoretical);
    let as_asked = |period: Period, gain| Decision { period, polls: options.polls, method: options.method, gain };
    match options.period {
        Some(period) if learns => {
            let gain = gain(train, phase, options, period, options.polls);
            if gain.is_some_and(Gain::is_shown) {
                return as_asked(period, gain);
            }
            notes.push(format!("no gain over uniform polls is shown in cross-validation{UNIFORM}"));
            Decision { gain, ..uniform(period) }
        }
        period if !learns => as_asked(period.unwrap_or(Period::Day), None),
        _ => match choose_period(train, phase, options) {
            Some(PeriodChoice { period, polls, gain }) => {
                Decision { period, polls, method: options.method, gain: Some(gain) }
            }
            None => {
                notes.push(format!("no period shows a gain over uniform polls{UNIFORM}"));
                uniform(Period::Day)
            }
        },
    }
}

/// A note on so few updates that nothing is learned from them.
fn too_few(updates: usize) -> String {
    let count = match updates {
        0 => "no update is".to_owned(),
        1 => "one update is".to_owned(),
        n => format!("{n} updates are"),
    };
    format!("{count} known{UNIFORM}")
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
