//! What a schedule would have seen of a history: exact for known moments, an expectation with bounds for intervals.
//!
//! The bounds: a version is surely captured by a poll between the end of the interval in which it was born and the
//! beginning of the one in which it died, and possibly by a poll between the outer ends. The copy is freshest if every
//! update came as late as its interval allows. Updates hidden within an interval are not counted.

use serde::{Deserialize, Serialize};

use super::evaluate::{Metrics, Tally, replay, uniform_mean};
use super::history::{History, Sequence};
use super::pattern::low_discrepancy;
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
}

/// Placements over which an expectation is taken where only intervals are known.
const EXPECTATION: usize = 16;

/// Sequences of moments that the intervals allow, spread evenly. They do not follow the phases that a schedule has
/// learned, so that they favour none.
pub(crate) fn possible(sequence: &Sequence) -> Vec<Vec<i64>> {
    if sequence.updates.iter().all(|u| u.exact().is_some()) {
        return vec![sequence.moments()];
    }
    let moment = |i: usize, u: &Update, k: usize| match u.exact() {
        Some(time) => time.0,
        None => u.after.0 + whole((u.before.0 - u.after.0) as f64 * low_discrepancy(i, k, EXPECTATION)),
    };
    (0..EXPECTATION)
        .map(|k| {
            let mut moments: Vec<i64> = sequence.updates.iter().enumerate().map(|(i, u)| moment(i, u, k)).collect();
            moments.dedup();
            moments
        })
        .collect()
}

/// Replays poll times against a history.
#[must_use]
pub fn assess(history: &History, calendar: &Calendar, period: Period, poll_times: &[i64]) -> Quality {
    let Some(span) = outer_span(history) else {
        return Quality::default();
    };
    let polls = calendar.polls(period, poll_times, span.0, beyond(span.1, period));
    let mut expected = Tally::default();
    let mut earliest = Tally::default();
    let mut latest = Tally::default();
    let (mut versions, mut sure, mut maybe) = (0u64, 0.0, 0.0);
    let censored = history.is_censored(0.0);
    for sequence in &history.sequences {
        for moments in possible(sequence) {
            expected.add(&replay(&polls, &moments));
        }
        if !censored {
            continue;
        }
        let edge = |pick: fn(&Update) -> i64| -> Vec<i64> {
            let mut moments: Vec<i64> = sequence.updates.iter().map(pick).collect();
            moments.dedup();
            moments
        };
        earliest.add(&replay(&polls, &edge(|u| u.exact().map_or(u.after.0 + 1, |t| t.0))));
        latest.add(&replay(&polls, &edge(|u| u.exact().map_or(u.before.0, |t| t.0))));
        for pair in sequence.updates.windows(2) {
            let ends = |u: &Update| u.exact().map_or((u.after.0 + 1, u.before.0), |t| (t.0, t.0));
            let (born, died) = (ends(&pair[0]), ends(&pair[1]));
            let any = |from: i64, to: i64| polls.get(polls.partition_point(|p| *p < from)).is_some_and(|p| *p < to);
            versions += 1;
            sure += f64::from(u8::from(any(born.1, died.0)));
            maybe += f64::from(u8::from(any(born.0, died.1)));
        }
    }
    let mut quality = Quality { expected: expected.metrics(), ..Quality::default() };
    if censored && versions > 0 {
        quality.expected.versions = versions;
        quality.recall_bounds = Some((sure / versions as f64, maybe / versions as f64));
        let (low, high) = (earliest.metrics().freshness, latest.metrics().freshness);
        quality.freshness_bounds = low.zip(high).map(|(a, b)| (a.min(b), a.max(b)));
    }
    quality
}

/// A fixed interval of `period / polls`, mean over its phases.
#[must_use]
pub fn assess_uniform(history: &History, period: Period, polls: usize) -> Metrics {
    let mut tally = Tally::default();
    for sequence in &history.sequences {
        for moments in possible(sequence) {
            tally.add(&uniform_mean(period.mean_seconds() / polls.max(1) as f64, &moments));
        }
    }
    tally.metrics()
}

/// Recall with a poll at every slot.
#[must_use]
pub(crate) fn ceiling(history: &History, calendar: &Calendar, grain_s: i64) -> Option<f64> {
    let (mut versions, mut seen) = (0.0, 0.0);
    for sequence in &history.sequences {
        for moments in possible(sequence) {
            let grain = grain_s * SECOND;
            let slots: Vec<i64> =
                moments.iter().map(|t| (calendar.local(Timestamp(*t)) + grain - 1).div_euclid(grain)).collect();
            versions += slots.len().saturating_sub(1) as f64;
            seen += slots.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
        }
    }
    (versions > 0.0).then(|| seen / versions)
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
