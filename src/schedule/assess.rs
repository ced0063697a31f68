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
use super::signal::{PageUpdate, SignalReading, switched};
use crate::model::{Period, Timestamp};
use crate::stats::Calendar;
use crate::stats::calendar::SECOND;
use crate::stats::whole::whole;

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

/// One of the placements that the intervals of a sequence allow, spread evenly. They do not follow the phases that a schedule
/// has learned, so that they favour none.
fn placement(sequence: &Sequence, k: usize) -> impl Iterator<Item = i64> {
    sequence.updates.iter().enumerate().map(move |(i, u)| match u.exact() {
        Some(time) => time.0,
        // The interval's first moment is the one after its beginning.
        None => u.after.0 + 1 + whole((u.before.0 - u.after.0 - 1) as f64 * low_discrepancy(i, k, EXPECTATION)),
    })
}

/// All of them that an expectation is taken over, as distinct moments.
fn possible(sequence: &Sequence) -> Vec<Vec<i64>> {
    if sequence.updates.iter().all(|u| u.exact().is_some()) {
        return vec![sequence.moments()];
    }
    (0..EXPECTATION)
        .map(|k| {
            let mut moments: Vec<i64> = placement(sequence, k).collect();
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

    /// What two timetables see of all pages, switched by the signal of the versions that are seen, and how many polls a
    /// period that takes: in the mean over what is possible.
    #[must_use]
    pub(crate) fn switched(
        &self,
        calendar: &Calendar,
        period: Period,
        (on, off): (&[i64], &[i64]),
        reading: SignalReading,
    ) -> (Metrics, f64) {
        let (on, off) = (self.polls(calendar, period, on), self.polls(calendar, period, off));
        let ways = self.placements.iter().map(Vec::len).max().unwrap_or(0);
        let (mut sum, mut polled, mut lasted) = (Tally::default(), 0.0, 0.0);
        for way in 0..ways {
            let updates = self.placed(way);
            let (Some(first), Some(last)) = (updates.first(), updates.last()) else { continue };
            let polls = switched(&on, &off, &updates, reading);
            polled += polls.partition_point(|poll| *poll <= last.at) as f64;
            lasted += (last.at - first.at) as f64 / (period.mean_seconds() * SECOND as f64);
            for placements in &self.placements {
                sum.add(&replay(&polls, &placements[way % placements.len()]));
            }
        }
        let ways = ways.max(1) as f64;
        (sum.scaled(1.0 / ways).metrics(), polled / ways / (lasted / ways).max(1.0))
    }

    /// The updates of all pages as one of the placements has them, ascending.
    fn placed(&self, way: usize) -> Vec<PageUpdate> {
        let of_page = |(page, sequence): (usize, &'a Sequence)| {
            let moments = placement(sequence, way).zip(&sequence.updates);
            moments.map(move |(at, update)| PageUpdate { at, page, shows: update.signal == Some(true) })
        };
        let mut updates: Vec<PageUpdate> = self.history.sequences.iter().enumerate().flat_map(of_page).collect();
        updates.sort_by_key(|update| update.at);
        updates
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Update;
    use proptest::prelude::*;

    const MINUTE: i64 = 60 * SECOND;

    /// What a minute-by-minute walk counts: recall, freshness, polls an hour.
    fn walk(pages: &[Vec<(i64, bool)>], on: &[i64], off: &[i64], reading: SignalReading) -> (f64, f64, f64) {
        let first = pages.iter().map(|page| page[0].0).min().unwrap();
        let last = pages.iter().map(|page| page.last().unwrap().0).max().unwrap();
        let newest = |page: &Vec<(i64, bool)>, now: i64| page.iter().rposition(|(at, _)| *at <= now);
        let mut seen: Vec<Option<usize>> = vec![None; pages.len()];
        let (mut caught, mut stale, mut polls, mut shows) = (std::collections::BTreeSet::new(), 0, 0, false);
        for now in first..=last {
            let there: Vec<Option<usize>> = pages.iter().map(|page| newest(page, now)).collect();
            if (if shows { on } else { off }).contains(&now.rem_euclid(60)) {
                polls += 1;
                let signal = |i: usize| there[i].is_some_and(|version| pages[i][version].1);
                let changed: Vec<usize> = (0..pages.len()).filter(|i| there[*i] != seen[*i]).collect();
                if !changed.is_empty() {
                    shows = match reading {
                        SignalReading::Newest => changed.iter().any(|i| signal(*i)),
                        SignalReading::Any => (0..pages.len()).any(signal),
                    };
                }
                caught.extend(changed.iter().map(|i| (*i, there[*i])));
                seen = there.clone();
            }
            let counts = |i: &usize| there[*i].is_some_and(|version| version + 1 < pages[*i].len());
            stale += (0..pages.len()).filter(counts).filter(|i| there[*i] != seen[*i]).count();
        }
        let versions: usize = pages.iter().map(|page| page.len() - 1).sum();
        let span: i64 = pages.iter().map(|page| page.last().unwrap().0 - page[0].0).sum();
        let ended = |(i, version): &&(usize, Option<usize>)| version.is_some_and(|v| v + 1 < pages[*i].len());
        let recall = caught.iter().filter(ended).count() as f64 / versions as f64;
        let hours = ((last - first) as f64 / 60.0).max(1.0);
        (recall, 1.0 - stale as f64 / span as f64, f64::from(polls) / hours)
    }

    fn pages() -> impl Strategy<Value = Vec<Vec<(i64, bool)>>> {
        let page = prop::collection::btree_map(0i64..400, prop::bool::ANY, 2..30);
        prop::collection::vec(page.prop_map(|page| page.into_iter().collect()), 1..5)
    }

    fn times() -> impl Strategy<Value = Vec<i64>> {
        prop::collection::btree_set(0i64..60, 0..8).prop_map(|times| times.into_iter().collect())
    }

    fn reading() -> impl Strategy<Value = SignalReading> {
        prop::sample::select(SignalReading::ALL.to_vec())
    }

    fn seconds(minutes: &[i64]) -> Vec<i64> {
        minutes.iter().map(|minute| minute * 60).collect()
    }

    fn history(pages: &[Vec<(i64, bool)>], update: impl Fn(i64) -> Update) -> History {
        let update = |(at, shows): &(i64, bool)| Update { signal: Some(*shows), ..update(*at) };
        History::new("s", pages.iter().map(|page| Sequence::new(page.iter().map(update).collect()).0).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn two_timetables_see_what_a_walk_sees(
            pages in pages(), on in times(), off in times(), reading in reading(),
        ) {
            let history = history(&pages, |at| Update::at(Timestamp(at * MINUTE)));
            let times = (seconds(&on), seconds(&off));
            let judge = Judge::new(&history);
            let (found, spent) = judge.switched(&Calendar::utc(), Period::Hour, (&times.0, &times.1), reading);
            let (recall, freshness, polls) = walk(&pages, &on, &off, reading);
            prop_assert!((found.recall.unwrap() - recall).abs() < 1e-9, "{found:?} {recall}");
            prop_assert!((found.freshness.unwrap() - freshness).abs() < 1e-9, "{found:?} {freshness}");
            prop_assert!((spent - polls).abs() < 1e-9, "{spent} {polls}");
            // Two that are the same are one.
            let same = judge.switched(&Calendar::utc(), Period::Hour, (&times.0, &times.0), reading).0;
            prop_assert_eq!(same, judge.expected(&Calendar::utc(), Period::Hour, &times.0));
        }

        /// Where only intervals are known, what is expected is the mean over the placements of all pages.
        #[test]
        fn intervals_are_an_expectation(pages in pages(), on in times(), off in times(), reading in reading()) {
            let crawled = history(&pages, |at| Update::within(Timestamp((at - 1) * MINUTE), Timestamp(at * MINUTE)));
            let times = (seconds(&on), seconds(&off));
            let (found, _) =
                Judge::new(&crawled).switched(&Calendar::utc(), Period::Hour, (&times.0, &times.1), reading);
            let recall = |k: usize| {
                let placed = crawled.sequences.iter().map(|sequence| {
                    let at = placement(sequence, k).zip(&sequence.updates);
                    let updates = at.map(|(at, u)| Update { signal: u.signal, ..Update::at(Timestamp(at)) });
                    Sequence::new(updates.collect()).0
                });
                let exact = History::new("s", placed.collect());
                let judge = Judge::new(&exact);
                judge.switched(&Calendar::utc(), Period::Hour, (&times.0, &times.1), reading).0.recall.unwrap()
            };
            let mean = (0..EXPECTATION).map(recall).sum::<f64>() / EXPECTATION as f64;
            prop_assert!((found.recall.unwrap() - mean).abs() < 1e-9, "{found:?} {mean}");
        }
    }
}
