//! What a schedule would have seen of a history: exact for known moments, an expectation with bounds for intervals.
//!
//! Where only intervals are known, the expectation is over placements spread evenly over them, and the bounds are the
//! extremes over all placements ([`super::bounds`]). Updates hidden within an interval are not counted.

use serde::{Deserialize, Serialize};

use super::bounds::extremes;
use super::evaluate::{Metrics, Tally, replay, uniform_mean};
use super::forecast::forecast;
use super::history::{History, Sequence};
use super::pattern::low_discrepancy;
use super::signal::switched;
use crate::model::{Period, Timestamp};
use crate::stats::calendar::SECOND;
use crate::stats::whole::whole;
use crate::stats::{Calendar, Update};

/// Quality of a schedule on a stretch of history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// An expectation over the intervals, if only these are known.
    pub expected: Metrics,
    /// Where only intervals are known: what recall and freshness must at least and can at most be.
    pub recall_bounds: Option<(f64, f64)>,
    pub freshness_bounds: Option<(f64, f64)>,
    /// Where a stretch with as many versions will lie, in 95 % of cases; not told by few versions.
    pub recall_forecast: Option<(f64, f64)>,
    pub freshness_forecast: Option<(f64, f64)>,
}

/// Placements over which an expectation is taken where only intervals are known.
const EXPECTATION: usize = 16;

/// Sequences of moments that the intervals allow, spread evenly. They do not follow the phases that a schedule has
/// learned, so that they favour none.
fn possible(sequence: &Sequence) -> Vec<Vec<i64>> {
    if sequence.updates.iter().all(|u| u.exact().is_some()) {
        return vec![sequence.moments()];
    }
    let moment = |i: usize, u: &Update, k: usize| match u.exact() {
        Some(time) => time.0,
        // The interval's first moment is the one after its beginning.
        None => u.after.0 + 1 + whole((u.before.0 - u.after.0 - 1) as f64 * low_discrepancy(i, k, EXPECTATION)),
    };
    (0..EXPECTATION)
        .map(|k| {
            let mut moments: Vec<i64> = sequence.updates.iter().enumerate().map(|(i, u)| moment(i, u, k)).collect();
            moments.dedup();
            moments
        })
        .collect()
}

/// A stretch of history that schedules are judged on.
pub(crate) struct Judge<'a> {
    history: &'a History,
    /// For each sequence the placements that an expectation is taken over.
    placements: Vec<Vec<Vec<i64>>>,
    /// First and last moment at which something can have happened.
    span: Option<(Timestamp, Timestamp)>,
    censored: bool,
}

impl<'a> Judge<'a> {
    #[must_use]
    pub(crate) fn new(history: &'a History) -> Self {
        Self {
            history,
            placements: history.sequences.iter().map(possible).collect(),
            span: outer_span(history),
            censored: history.is_censored(0.0),
        }
    }

    /// Whether there is a version to judge by.
    #[must_use]
    pub(crate) fn has_version(&self) -> bool {
        self.history.sequences.iter().any(|sequence| sequence.updates.len() > 1)
    }

    /// The mean over placements, summed over sequences.
    fn mean(&self, tally: impl Fn(&[i64]) -> Tally) -> Metrics {
        let mut sum = Tally::default();
        for placements in &self.placements {
            let mut of_sequence = Tally::default();
            placements.iter().for_each(|moments| of_sequence.add(&tally(moments)));
            sum.add(&of_sequence.scaled(1.0 / placements.len().max(1) as f64));
        }
        sum.metrics()
    }

    fn polls(&self, calendar: &Calendar, period: Period, poll_times: &[i64]) -> Vec<i64> {
        let Some((first, last)) = self.span else { return Vec::new() };
        calendar.polls(period, poll_times, first, beyond(last, period))
    }

    /// What poll times see, in the mean over what is possible.
    #[must_use]
    pub(crate) fn expected(&self, calendar: &Calendar, period: Period, poll_times: &[i64]) -> Metrics {
        let polls = self.polls(calendar, period, poll_times);
        self.mean(|moments| replay(&polls, moments))
    }

    /// What polls see that follow what they have seen, in the mean over what is possible.
    #[must_use]
    pub(crate) fn followed(&self, polls: impl Fn(&[i64]) -> Vec<i64>) -> Metrics {
        self.mean(|moments| replay(&polls(moments), moments))
    }

    /// What two timetables see of the only sequence, switched by the versions' signal, and how many polls a period that
    /// takes.
    #[must_use]
    pub(crate) fn switched(&self, calendar: &Calendar, period: Period, on: &[i64], off: &[i64]) -> (Metrics, f64) {
        let [sequence] = self.history.sequences.as_slice() else { return Default::default() };
        let updates: Vec<(i64, bool)> =
            sequence.updates.iter().map(|update| (update.central().0, update.signal == Some(true))).collect();
        let (on, off) = (self.polls(calendar, period, on), self.polls(calendar, period, off));
        let polls = switched(&on, &off, &updates);
        let (Some((first, _)), Some((last, _))) = (updates.first(), updates.last()) else { return Default::default() };
        let within = polls.iter().filter(|poll| *poll <= last).count() as f64;
        let periods = (last - first) as f64 / (period.mean_seconds() * SECOND as f64);
        (replay(&polls, &sequence.moments()).metrics(), within / periods.max(1.0))
    }

    /// What poll times see, with bounds and a forecast.
    #[must_use]
    pub(crate) fn quality(&self, calendar: &Calendar, period: Period, poll_times: &[i64]) -> Quality {
        let polls = self.polls(calendar, period, poll_times);
        let expected = self.mean(|moments| replay(&polls, moments));
        let bounds = if self.censored { extremes(self.history, &polls) } else { None };
        let forecast = forecast(&polls, &self.placements);
        Quality {
            expected,
            recall_bounds: bounds.map(|bounds| bounds.recall),
            freshness_bounds: bounds.map(|bounds| bounds.freshness),
            recall_forecast: forecast.map(|forecast| forecast.recall),
            freshness_forecast: forecast.map(|forecast| forecast.freshness),
        }
    }

    /// A fixed interval with as many polls as there are poll times, mean over its phases. Without any poll nothing is seen.
    #[must_use]
    pub(crate) fn uniform(&self, period: Period, poll_times: &[i64]) -> Metrics {
        let polls = period.mean_polls(poll_times);
        if polls <= 0.0 {
            let nothing = self.mean(|moments| replay(&[], moments));
            return Metrics { age_s: None, age_last_s: None, delay_s: None, staleness: None, ..nothing };
        }
        self.mean(|moments| uniform_mean(period.mean_seconds() / polls, moments))
    }

    /// Recall with a poll at every slot.
    #[must_use]
    pub(crate) fn ceiling(&self, calendar: &Calendar, grain_s: i64) -> Option<f64> {
        let grain = grain_s * SECOND;
        let slot = |t: &i64| (calendar.local(Timestamp(*t)) + grain - 1).div_euclid(grain);
        let seen = self.mean(|moments| {
            let slots: Vec<i64> = moments.iter().map(slot).collect();
            let captured = slots.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
            Tally { versions: slots.len().saturating_sub(1) as f64, captured, ..Tally::default() }
        });
        seen.recall
    }
}

/// Replays poll times against a history.
#[must_use]
pub fn assess(history: &History, calendar: &Calendar, period: Period, poll_times: &[i64]) -> Quality {
    Judge::new(history).quality(calendar, period, poll_times)
}

/// A fixed interval of `period / polls`, mean over its phases.
#[must_use]
pub fn assess_uniform(history: &History, period: Period, polls: usize) -> Metrics {
    Judge::new(history).uniform(period, &vec![0; polls])
}

fn outer_span(history: &History) -> Option<(Timestamp, Timestamp)> {
    let updates = || history.sequences.iter().flat_map(|s| &s.updates);
    let first = updates().map(|u| u.exact().unwrap_or(u.after)).min()?;
    let last = updates().map(|u| u.exact().unwrap_or(u.before)).max()?;
    Some((first, last))
}

/// A time by which the first poll after the last update has come.
fn beyond(time: Timestamp, period: Period) -> Timestamp {
    Timestamp(time.0 + 2 * period.seconds() * SECOND)
}
