//! What polls at given moments would have seen of known update times.
//!
//! Version `i` lives in `[u_i, u_{i+1})` and is captured iff a poll falls in it; the last version is open and not
//! counted. Time is counted from the first to the last update, and at its beginning nothing has been seen. The copy is
//! stale from the first update it has not seen to the next poll; `age_s` is the mean over time of the time since that
//! update (0 while fresh), `age_last_s` since the *last* update, as in the paper. `delay_s` is the mean time from an
//! update to the first poll at or after it, also of versions that are missed. `staleness` is the mean over time of
//! `1 + 1/2 + … + 1/n` where `n` updates are unseen.

use serde::{Deserialize, Serialize};

use crate::stats::calendar::SECOND;
use crate::stats::whole::count;

/// Held-out or simulated quality of a schedule. `None` where nothing could be counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Versions that could be captured.
    pub versions: u64,
    pub recall: Option<f64>,
    pub freshness: Option<f64>,
    pub age_s: Option<f64>,
    pub age_last_s: Option<f64>,
    pub delay_s: Option<f64>,
    #[serde(default)]
    pub staleness: Option<f64>,
}

/// Sums behind [`Metrics`], additive over sequences (the URLs of a source). Times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub versions: f64,
    pub captured: f64,
    pub span: f64,
    pub stale: f64,
    pub age: f64,
    pub age_last: f64,
    pub delay: f64,
    /// Updates whose delay is known.
    pub delayed: f64,
    pub staleness: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.versions += other.versions;
        self.captured += other.captured;
        self.span += other.span;
        self.stale += other.stale;
        self.age += other.age;
        self.age_last += other.age_last;
        self.delay += other.delay;
        self.delayed += other.delayed;
        self.staleness += other.staleness;
    }

    /// So many times as much.
    #[must_use]
    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self {
            versions: self.versions * factor,
            captured: self.captured * factor,
            span: self.span * factor,
            stale: self.stale * factor,
            age: self.age * factor,
            age_last: self.age_last * factor,
            delay: self.delay * factor,
            delayed: self.delayed * factor,
            staleness: self.staleness * factor,
        }
    }

    #[must_use]
    pub(crate) fn metrics(&self) -> Metrics {
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        Metrics {
            versions: count(self.versions.round()) as u64,
            recall: ratio(self.captured, self.versions),
            freshness: ratio(self.stale, self.span).map(|stale| (1.0 - stale).clamp(0.0, 1.0)),
            age_s: ratio(self.age, self.span),
            age_last_s: ratio(self.age_last, self.span),
            delay_s: ratio(self.delay, self.delayed),
            staleness: ratio(self.staleness, self.span),
        }
    }
}

fn seconds(micros: i64) -> f64 {
    micros as f64 / SECOND as f64
}

/// Counts over one sequence of ascending update times; `polls` ascending, from the first update to beyond the last.
#[must_use]
pub(crate) fn replay(polls: &[i64], updates: &[i64]) -> Tally {
    let mut tally = Tally::default();
    let (Some(first), Some(last)) = (updates.first(), updates.last()) else {
        return tally;
    };
    tally.span = seconds(last - first);
    let mut next = 0;
    let mut unseen: Option<i64> = None;
    // How many are unseen, and how stale that is.
    let (mut missed, mut harmonic) = (0.0, 0.0);
    for pair in updates.windows(2) {
        let (born, died) = (pair[0], pair[1]);
        while polls.get(next).is_some_and(|p| *p < born) {
            next += 1;
        }
        tally.versions += 1.0;
        let since = *unseen.get_or_insert(born);
        missed += 1.0;
        harmonic += 1.0 / missed;
        let now = harmonic;
        let poll = polls.get(next).copied();
        if let Some(poll) = poll {
            tally.delay += seconds(poll - born);
            tally.delayed += 1.0;
        }
        let until = match poll.filter(|p| *p < died) {
            Some(poll) => {
                tally.captured += 1.0;
                unseen = None;
                (missed, harmonic) = (0.0, 0.0);
                poll
            }
            None => died,
        };
        let life = seconds(until - born);
        tally.stale += life;
        tally.staleness += now * life;
        tally.age_last += life * life / 2.0;
        let (begin, end) = (seconds(born - since), seconds(until - since));
        tally.age += (end * end - begin * begin) / 2.0;
    }
    tally
}

/// The same for polls at a fixed interval, averaged over all its phases: in closed form, not by trying phases.
///
/// With the time since the last poll uniform in `[0, interval)`, a version is captured with probability
/// `min(1, life / interval)`, and the copy is stale `x` after an update iff that time exceeds `x`.
#[must_use]
pub(crate) fn uniform_mean(interval_s: f64, updates: &[i64]) -> Tally {
    let mut tally = Tally::default();
    let (Some(first), Some(last)) = (updates.first(), updates.last()) else {
        return tally;
    };
    tally.span = seconds(last - first);
    let i = interval_s;
    let mut before = f64::INFINITY;
    for pair in updates.windows(2) {
        let life = seconds(pair[1] - pair[0]);
        let shown = life.min(i);
        tally.versions += 1.0;
        tally.captured += shown / i;
        tally.stale += shown - shown * shown / (2.0 * i);
        tally.age_last += shown * shown / 2.0 - shown * shown * shown / (3.0 * i);
        // The first unseen update is this one if the last poll lies between the update before it and this one.
        let reach = i.min(seconds(last - pair[0]));
        let bend = (i - before).max(0.0).min(reach);
        let tail = |y: f64| y * y / 2.0 - y * y * y / (3.0 * i);
        let flat = if bend > 0.0 { before / i * bend * bend / 2.0 } else { 0.0 };
        tally.age += flat + tail(reach) - tail(bend);
        tally.delay += i / 2.0;
        tally.delayed += 1.0;
        before = life;
    }
    tally.staleness = uniform_staleness(i, updates);
    tally
}

/// Harmonic staleness of polls at a fixed interval, mean over phases, times the length of the history.
///
/// Seen from an update, the `k`-th counted backwards from it, itself included, is the first unseen one if the last poll
/// came between that update and the one before; then this update weighs `1 / k` until the next poll.
fn uniform_staleness(interval_s: f64, updates: &[i64]) -> f64 {
    let Some(last) = updates.last() else { return 0.0 };
    let mut sum = 0.0;
    for (j, update) in updates.iter().enumerate() {
        // Waits of so long count no further: the history ends.
        let end = seconds(last - update).min(interval_s);
        // Of a poll `back` before the update, how long the update stays unseen, summed up over polls from 0 to `back`.
        let upto = |back: f64| {
            let back = back.min(interval_s);
            let flat = back.min(interval_s - end);
            flat * end + (back - flat) * (interval_s - f64::midpoint(flat, back))
        };
        let mut from = 0.0;
        for k in 1..=j + 1 {
            let to = if k <= j { seconds(update - updates[j - k]) } else { interval_s };
            sum += (upto(to) - upto(from)) / k as f64;
            from = to;
            if to >= interval_s {
                break;
            }
        }
    }
    sum / interval_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn micros(times: &[i64]) -> Vec<i64> {
        times.iter().map(|t| t * SECOND).collect()
    }

    #[test]
    fn the_papers_examples() {
        // Updates at :05 and :15; polls at :00 and :30 miss half, polls at :05 and :15 none.
        let updates: Vec<i64> = (0..24).flat_map(|h| [h * 3600 + 300, h * 3600 + 900]).collect();
        let at = |minutes: [i64; 2]| -> Vec<i64> { (0..26).flat_map(|h| minutes.map(|m| h * 3600 + m * 60)).collect() };
        let recall = |minutes| replay(&micros(&at(minutes)), &micros(&updates)).metrics().recall.unwrap();
        assert!((recall([0, 30]) - 0.5).abs() < 0.02, "{}", recall([0, 30]));
        assert!((recall([5, 15]) - 1.0).abs() < 1e-12);
        // {:00, :05, :10, :15} with four polls at a fixed interval: one half over all phases.
        let updates: Vec<i64> = (0..240).flat_map(|h| [0, 300, 600, 900].map(|m| h * 3600 + m)).collect();
        let mean = uniform_mean(900.0, &micros(&updates)).metrics().recall.unwrap();
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        let mean = uniform_mean(3600.0, &micros(&updates)).metrics().recall.unwrap();
        assert!((mean - 0.25).abs() < 0.01, "{mean}");
    }

    #[test]
    fn counts_by_hand() {
        // Updates at 0, 10, 20, 50; polls at 15, 30: versions at 10 and 20 are seen, the first is not.
        let tally = replay(&micros(&[15, 30, 60]), &micros(&[0, 10, 20, 50]));
        assert_eq!((tally.versions, tally.captured, tally.span), (3.0, 2.0, 50.0));
        // Stale in 0..15 and 20..30.
        assert_eq!(tally.stale, 25.0);
        assert_eq!(tally.age, 15.0 * 15.0 / 2.0 + 10.0 * 10.0 / 2.0);
        assert_eq!(tally.age_last, 50.0 + 12.5 + 50.0);
        assert_eq!(tally.delay, 15.0 + 5.0 + 10.0);
        // One unseen for 10, two for 5, one for 10.
        assert_eq!(tally.staleness, 10.0 + 1.5 * 5.0 + 10.0);
        assert_eq!(replay(&[], &micros(&[1])).metrics().recall, None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn closed_form_equals_the_mean_over_phases(
            gaps in prop::collection::vec(1i64..400, 2..30),
            interval in 1i64..300,
        ) {
            let mut updates = vec![1_000i64];
            for gap in gaps {
                updates.push(updates[updates.len() - 1] + gap);
            }
            let updates = micros(&updates);
            let (first, last) = (updates[0], updates[updates.len() - 1]);
            let mut sum = Tally::default();
            let phases = 2_000;
            for phase in 0..phases {
                let offset = (2 * phase + 1) * interval * SECOND / (2 * phases);
                let start = first - interval * SECOND + offset;
                let polls: Vec<i64> = (0..).map(|k| start + k * interval * SECOND)
                    .take_while(|p| *p <= last + 2 * interval * SECOND)
                    .filter(|p| *p >= first).collect();
                sum.add(&replay(&polls, &updates));
            }
            let (mean, closed) = (sum.metrics(), uniform_mean(interval as f64, &updates).metrics());
            let near = |a: Option<f64>, b: Option<f64>, scale: f64| (a.unwrap() - b.unwrap()).abs() < 2e-3 * scale;
            let scale = interval as f64;
            prop_assert!(near(mean.recall, closed.recall, 1.0), "{mean:?} {closed:?}");
            prop_assert!(near(mean.freshness, closed.freshness, 1.0), "{mean:?} {closed:?}");
            prop_assert!(near(mean.staleness, closed.staleness, 5.0), "{mean:?} {closed:?}");
            prop_assert!(near(mean.age_s, closed.age_s, scale), "{mean:?} {closed:?}");
            prop_assert!(near(mean.age_last_s, closed.age_last_s, scale), "{mean:?} {closed:?}");
            prop_assert!(near(mean.delay_s, closed.delay_s, scale), "{mean:?} {closed:?}");
        }
    }
}
