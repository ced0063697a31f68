//! How often does a page change, when it is only seen at its captures?
//!
//! The number of changes seen over the time is too low: several changes between two captures look like one. For
//! captures at a regular interval this uses the bias-reduced estimator of Cho and Garcia-Molina ("Estimating Frequency
//! of Change", 2003), `-ln((n - x + 0.5) / (n + 0.5))` per interval, with Wilson's interval for the share of intervals
//! with a change. For irregular captures it maximises the likelihood of a Poisson process,
//! `sum over changed ln(1 - e^(-r d)) - r * unchanged time`, with the interval where it is within 1.92 of its maximum.

use serde::{Deserialize, Serialize};

use super::updates::{Update, UrlState, seconds_between};
use crate::model::Estimator;

const DAY_S: f64 = 86_400.0;

/// Changes a day, with a 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    pub per_day: f64,
    pub low: f64,
    pub high: f64,
    pub estimator: Estimator,
}

/// What a Poisson process is fitted to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Evidenced {
    /// Lengths of intervals with at least one change, in days.
    pub changed: Vec<f64>,
    /// Changes at known moments; the time around them is in `quiet`.
    pub moments: f64,
    /// Time watched without another change, in days.
    pub quiet: f64,
}

impl Evidenced {
    /// Takes in the kept history of a URL.
    pub(crate) fn add(&mut self, state: &UrlState) {
        self.quiet += state.unchanged().iter().map(|(from, to)| seconds_between(*from, *to)).sum::<f64>() / DAY_S;
        self.add_updates(&state.updates);
    }

    pub(crate) fn add_updates(&mut self, updates: &[Update]) {
        for update in updates {
            let length = seconds_between(update.after, update.before) / DAY_S;
            if update.exact().is_some() {
                self.moments += 1.0;
                self.quiet += length;
            } else {
                self.changed.push(length);
            }
        }
    }

    /// Derivative of the log likelihood at `rate` per day: falls strictly.
    fn slope(&self, rate: f64) -> f64 {
        let changed: f64 = self.changed.iter().map(|d| d / (rate * d).exp_m1()).sum();
        changed + self.moments / rate - self.quiet
    }

    fn log_likelihood(&self, rate: f64) -> f64 {
        let changed: f64 = self.changed.iter().map(|d| (-(-rate * d).exp_m1()).ln()).sum();
        let moments = if self.moments > 0.0 { self.moments * rate.ln() } else { 0.0 };
        changed + moments - rate * self.quiet
    }

    #[must_use]
    pub(crate) fn fit(&self) -> Rate {
        let updates = self.changed.len() as f64 + self.moments;
        let watched = self.quiet + self.changed.iter().sum::<f64>();
        if watched <= 0.0 {
            return Rate::default();
        }
        if updates == 0.0 {
            // The rule of three: without any update the rate is below 3 over the time watched, at 95 %.
            return Rate { per_day: 0.0, low: 0.0, high: 3.0 / self.quiet, estimator: Estimator::Likelihood };
        }
        // If every interval has a change, the likelihood has no finite maximum. As Cho and Garcia-Molina do, half an
        // interval without one is added.
        let half = Self { quiet: self.quiet + watched / (updates + 1.0) / 2.0, ..self.clone() };
        let used = if self.quiet <= 0.0 { &half } else { self };
        let falls_at = |target: &dyn Fn(f64) -> f64, mut low: f64, mut high: f64| {
            for _ in 0..100 {
                let middle = (low * high).sqrt();
                if target(middle) > 0.0 {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            (low * high).sqrt()
        };
        let scale = updates / watched;
        let best = falls_at(&|r| used.slope(r), scale * 1e-6, scale * 1e6);
        let top = used.log_likelihood(best) - 1.92;
        let low = falls_at(&|r| top - used.log_likelihood(r), best * 1e-6, best);
        let high = match self.quiet > 0.0 {
            true => falls_at(&|r| used.log_likelihood(r) - top, best, best * 1e6),
            false => f64::INFINITY,
        };
        Rate { per_day: best, low, high, estimator: Estimator::Likelihood }
    }
}

/// Cho and Garcia-Molina: `changed` of `intervals` regular intervals of `days` saw a change.
#[must_use]
pub(crate) fn regular(changed: u64, intervals: u64, days: f64) -> Rate {
    if intervals == 0 || days <= 0.0 {
        return Rate::default();
    }
    let (x, n) = (changed.min(intervals) as f64, intervals as f64);
    let per_interval = -((n - x + 0.5) / (n + 0.5)).ln();
    let (low, high) = wilson(x, n);
    let bound = |p: f64| -(1.0 - p).ln() / days;
    // If every look found a change, any larger rate would have shown the same.
    let high = if x < n { bound(high) } else { f64::INFINITY };
    Rate { per_day: per_interval / days, low: bound(low), high, estimator: Estimator::Regular }
}

/// Wilson's 95 % interval for a share.
fn wilson(x: f64, n: f64) -> (f64, f64) {
    let z2 = 1.96f64 * 1.96;
    let centre = (x + z2 / 2.0) / (n + z2);
    let half = 1.96 / (n + z2) * (x * (n - x) / n + z2 / 4.0).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

/// Captures whose gaps vary less than this are regular.
const REGULAR_VARIATION: f64 = 0.1;

/// The rate of a URL by the estimator that fits its captures.
#[must_use]
pub(crate) fn rate(state: &UrlState) -> Rate {
    let exact = state.updates.iter().any(|u| u.exact().is_some());
    match state.crawl_gap() {
        Some((gap, variation)) if variation < REGULAR_VARIATION && !exact => {
            regular(state.updates_total, state.captures - 1, gap / DAY_S)
        }
        _ => {
            let mut evidence = Evidenced::default();
            evidence.add(state);
            evidence.fit()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_of_the_regular_estimator() {
        // 10 of 20 daily captures changed: -ln(10.5 / 20.5) a day.
        let rate = regular(10, 20, 1.0);
        assert!((rate.per_day - 0.669_05).abs() < 1e-4, "{rate:?}");
        assert!(rate.low < rate.per_day && rate.per_day < rate.high);
        // All changed: above one an interval, and nothing says how far.
        let rate = regular(30, 30, 0.5);
        assert!(rate.per_day > 2.0 && rate.low > 2.0 && rate.high.is_infinite(), "{rate:?}");
        assert_eq!(regular(0, 50, 1.0).per_day, 0.0);
    }

    #[test]
    fn likelihood_agrees_with_theory() {
        // n equal intervals, x changed: the maximum is -ln(1 - x/n).
        let evidence = Evidenced { changed: vec![1.0; 40], moments: 0.0, quiet: 60.0 };
        let fit = evidence.fit();
        assert!((fit.per_day - -(0.6f64.ln())).abs() < 1e-6, "{fit:?}");
        assert!(fit.low < fit.per_day && fit.per_day < fit.high);
        // Known moments: events over time.
        let fit = Evidenced { changed: Vec::new(), moments: 12.0, quiet: 24.0 }.fit();
        assert!((fit.per_day - 0.5).abs() < 1e-6);
        let none = Evidenced { changed: Vec::new(), moments: 0.0, quiet: 30.0 }.fit();
        assert_eq!((none.per_day, none.high), (0.0, 0.1));
        let every = Evidenced { changed: vec![1.0; 5], moments: 0.0, quiet: 0.0 }.fit();
        assert!(every.per_day.is_finite() && every.high.is_infinite(), "{every:?}");
        assert_eq!(Evidenced::default().fit(), Rate::default());
    }

    #[test]
    fn irregular_captures_recover_a_simulated_rate() {
        // A Poisson process of 0.8 a day seen after gaps of 0.2 to 3 days.
        let mut random = 1u64;
        let mut uniform = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        let mut evidence = Evidenced::default();
        for _ in 0..4_000 {
            let gap = 0.2 + 2.8 * uniform();
            if uniform() < 1.0 - (-0.8 * gap).exp() {
                evidence.changed.push(gap);
            } else {
                evidence.quiet += gap;
            }
        }
        let fit = evidence.fit();
        assert!(fit.low < 0.8 && 0.8 < fit.high && fit.high - fit.low < 0.1, "{fit:?}");
    }

    /// Share of sources with a known rate whose interval has it: seen by captures of one gap, or of gaps that vary.
    fn coverage(varying: bool, sources: u64) -> f64 {
        let covered = (0..sources).filter(|seed| {
            let mut rng = crate::model::Rng::new(*seed);
            let per_day = 0.05 * 40f64.powf(rng.unit());
            let captures = 20 + 5 * (seed % 40);
            let mut evidence = Evidenced::default();
            for _ in 0..captures {
                let gap = if varying { 0.2 + 1.6 * rng.unit() } else { 1.0 };
                if rng.unit() < -(-per_day * gap).exp_m1() {
                    evidence.changed.push(gap);
                } else {
                    evidence.quiet += gap;
                }
            }
            let rate = match varying {
                true => evidence.fit(),
                false => regular(evidence.changed.len() as u64, captures, 1.0),
            };
            rate.low <= per_day && per_day <= rate.high
        });
        covered.count() as f64 / sources as f64
    }

    #[test]
    fn intervals_cover_known_rates_in_90_to_99_percent() {
        for varying in [false, true] {
            let share = coverage(varying, 2_000);
            assert!((0.9..=0.99).contains(&share), "varying: {varying}, {share}");
        }
    }
}
