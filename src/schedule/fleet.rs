//! A budget of polls shared by many sources.
//!
//! The value of a source's best schedule is concave in its number of polls, so giving one poll after the other to
//! whoever gains most is exact (and so is the Poisson baseline, whose values are concave too: that is the allocation of
//! Cho and Garcia-Molina in whole polls). `Macro` sums the sources' values, so every source counts the same; `Micro`
//! weighs them by their updates, so every version does; beyond that each source counts its weight.
//!
//! Two methods share in another way: `freshness-optimal` by rates ([`super::water`]), `adaptive` by a crawler's rule
//! ([`super::adaptive`]).
//!
//! Curves are the costly part. They depend on nothing but the source, so that they can be kept: sharing anew costs
//! `sources + budget log sources`.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use super::adaptive::{adapt, proportional};
use super::fit::SlotFitter;
use super::history::History;
use super::optimal::{curve, total_cost};
use super::options::Options;
use super::uniform::{NamePhase, poisson_value};
use super::water::{PoissonSource, whole};
use crate::model::closed_set::closed_set;
use crate::model::{Method, Period};

/// What a source's schedules are worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceCurve {
    /// `[n]`: value of the best `n` polls, by the objective on the history learned from. Of a source without updates
    /// only the value of no poll, which is that of any number.
    pub values: Vec<f64>,
    /// Updates a period.
    pub weight: f64,
    /// More polls than this do not fit.
    pub most: usize,
    /// What methods without values share by: updates of one URL a period, or polls that a rule would make.
    pub pull: f64,
}

impl SourceCurve {
    /// Of a source of which no update is known: no poll of it gains anything.
    #[must_use]
    pub(crate) fn of_nothing(options: &Options, period: Period) -> Self {
        Self { values: vec![0.0], weight: 0.0, most: options.most_polls(period), pull: 0.0 }
    }
}

/// The curve of one source up to `polls` polls in a period. This is the costly part: sources may run in parallel.
#[must_use]
pub(crate) fn source_curve(
    history: &History,
    phase: &NamePhase,
    options: &Options,
    period: Period,
    polls: usize,
) -> SourceCurve {
    if history.updates() == 0 {
        return SourceCurve::of_nothing(options, period);
    }
    let fitter = SlotFitter::new(history, phase, options, period, options.grain_s);
    let most = fitter.most_polls();
    let polls = polls.min(most);
    let objective = options.objective.with_ties_to_freshness();
    let rate = fitter.learned.pattern.per_period;
    let nothing = poisson_value(rate, 0, objective);
    let urls = history.sequences.len() as f64;
    let mut pull = 0.0;
    let values = match options.method {
        Method::FreshnessOptimal => {
            pull = rate;
            vec![0.0]
        }
        Method::Adaptive => {
            pull = adapted_polls(history, options, period);
            vec![0.0]
        }
        Method::Poisson => (0..=polls).map(|n| poisson_value(rate, n, objective)).collect(),
        Method::Optimal => {
            let solved = curve(fitter.cost(), polls, fitter.min_gap);
            [nothing].into_iter().chain(solved.iter().map(|s| objective.freshness - s.cost)).collect()
        }
        method => {
            let value = |n| objective.freshness - total_cost(fitter.cost(), &fitter.slots(method, n));
            [nothing].into_iter().chain((1..=polls).map(value)).collect()
        }
    };
    SourceCurve { values, weight: rate * urls, most, pull }
}

/// Polls a period that a crawler's rule comes to on a history, mean over its URLs.
fn adapted_polls(history: &History, options: &Options, period: Period) -> f64 {
    let first = period.mean_seconds() / options.polls.max(1) as f64;
    let polls = |moments: &[i64]| {
        let span = (moments.first().copied().unwrap_or(0), moments.last().copied().unwrap_or(0));
        period.mean_seconds() / adapt(moments, span, first, options.min_gap_s as f64).interval_s
    };
    let all = history.sequences.iter().map(|sequence| polls(&sequence.moments())).sum::<f64>();
    all / history.sequences.len().max(1) as f64
}

closed_set! {
    /// Which mean over sources a budget serves.
    #[derive(Default)]
    pub enum Average: "average" {
        /// All sources count the same.
        #[default]
        Macro = "macro",
        /// All versions count the same.
        Micro = "micro",
    }
}

/// How a budget was spent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    pub polls: usize,
    pub period: Period,
    pub spent: usize,
    pub floor: usize,
    pub average: Average,
    /// Sources that got no poll.
    pub unpolled: usize,
}

/// Polls for each source.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Allocation {
    pub polls: Vec<usize>,
    pub spent: usize,
    /// Sources whose curve ended before they did: to be exact, extend these curves and share again.
    pub cut_short: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Offer {
    gain: f64,
    source: usize,
}

impl Ord for Offer {
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.source.cmp(&self.source))
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Offer {}

/// Shares `budget` polls a period by the way of a method: `floor` for each source first (as far as the budget goes). A
/// source without a weight counts 1.
#[must_use]
pub(crate) fn allocate<C: Borrow<SourceCurve>>(
    method: Method,
    curves: &[C],
    weights: &[f64],
    (budget, floor): (usize, usize),
    average: Average,
) -> Allocation {
    if !matches!(method, Method::FreshnessOptimal | Method::Adaptive) {
        return share(curves, weights, budget, floor, average);
    }
    let curves: Vec<&SourceCurve> = curves.iter().map(Borrow::borrow).collect();
    let (least, _) = floors(&curves, budget, floor);
    let bounds: Vec<(usize, usize)> = least.into_iter().zip(&curves).map(|(least, c)| (least, c.most)).collect();
    let polls = if method == Method::Adaptive {
        proportional(&curves.iter().map(|curve| curve.pull).collect::<Vec<_>>(), &bounds, budget)
    } else {
        let source = |(i, curve): (usize, &&SourceCurve)| PoissonSource {
            rate: curve.pull,
            weight: factor(curve, weights.get(i), average),
        };
        whole(&curves.iter().enumerate().map(source).collect::<Vec<_>>(), &bounds, budget)
    };
    Allocation { spent: polls.iter().sum(), polls, cut_short: Vec::new() }
}

/// What the values of a source count.
fn factor(curve: &SourceCurve, weight: Option<&f64>, average: Average) -> f64 {
    let weight = weight.copied().unwrap_or(1.0);
    match average {
        Average::Macro => weight,
        Average::Micro => weight * curve.weight,
    }
}

/// What each source gets before gains decide, and what is left then.
fn floors(curves: &[&SourceCurve], budget: usize, floor: usize) -> (Vec<usize>, usize) {
    let mut polls = vec![0; curves.len()];
    let mut left = budget;
    // Round by round, so that a budget below the floors still reaches as many sources as it can.
    for _ in 0..floor {
        if left == 0 {
            break;
        }
        for (polls, curve) in polls.iter_mut().zip(curves) {
            if left > 0 && *polls < curve.most {
                *polls += 1;
                left -= 1;
            }
        }
    }
    (polls, left)
}

/// Shares by gain: `floor` for each source first.
#[must_use]
pub(crate) fn share<C: Borrow<SourceCurve>>(
    curves: &[C],
    weights: &[f64],
    budget: usize,
    floor: usize,
    average: Average,
) -> Allocation {
    let curves: Vec<&SourceCurve> = curves.iter().map(Borrow::borrow).collect();
    let (mut polls, mut left) = floors(&curves, budget, floor);
    let offer = |source: usize, n: usize| {
        let values = &curves[source].values;
        let gain = (values.get(n + 1)? - values[n]) * factor(curves[source], weights.get(source), average);
        Some(Offer { gain: gain.max(0.0), source })
    };
    let mut heap: BinaryHeap<Offer> = (0..curves.len()).filter_map(|s| offer(s, polls[s])).collect();
    while left > 0 {
        let Some(best) = heap.pop() else { break };
        if best.gain <= 0.0 {
            break;
        }
        polls[best.source] += 1;
        left -= 1;
        heap.extend(offer(best.source, polls[best.source]));
    }
    let cut_short =
        (0..curves.len()).filter(|s| polls[*s] + 1 >= curves[*s].values.len() && polls[*s] < curves[*s].most);
    Allocation { spent: budget - left, cut_short: cut_short.filter(|s| curves[*s].values.len() > 1).collect(), polls }
}

/// What keeping to a host's limit did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRepair {
    pub moved: usize,
    pub dropped: usize,
    /// Sum over sources of what their objective lost.
    pub loss: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;
    use crate::stats::whole::{count, whole};

    fn at(hours: f64) -> Timestamp {
        Timestamp(whole(hours * 3_600.0) * 1_000_000)
    }

    fn daily(source: &str, hour: f64, days: i32) -> History {
        History::of_moments(source, &(0..days).map(|d| at(f64::from(d) * 24.0 + hour)).collect::<Vec<_>>())
    }

    fn curve_of(history: &History, options: &Options, polls: usize) -> SourceCurve {
        source_curve(history, &NamePhase::of(&history.source), options, Period::Day, polls)
    }

    #[test]
    fn greedy_equals_trying_every_share() {
        for seed in 0..300u64 {
            let mut state = seed + 1;
            let mut random = move || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as f64 / f64::from(1u32 << 24)
            };
            let curves: Vec<SourceCurve> = (0..3)
                .map(|_| {
                    let mut gains: Vec<f64> = (0..6).map(|_| random()).collect();
                    gains.sort_by(|a, b| b.total_cmp(a));
                    let mut values = vec![0.0];
                    gains.iter().for_each(|g| values.push(values[values.len() - 1] + g));
                    SourceCurve { values, weight: 0.5 + random(), most: 6, pull: 0.0 }
                })
                .collect();
            let budget = count(random() * 19.0);
            for average in [Average::Macro, Average::Micro] {
                let weights = [1.0, 0.5 + random(), 3.0 * random()];
                let found = share(&curves, &weights, budget, 0, average);
                let worth = |polls: &[usize]| -> f64 {
                    let all = curves.iter().zip(polls).zip(&weights);
                    all.map(|((c, n), weight)| c.values[*n] * factor(c, Some(weight), average)).sum()
                };
                let every = (0..7 * 7 * 7).map(|i| [i / 49, i / 7 % 7, i % 7]);
                let best = every.filter(|polls| polls.iter().sum::<usize>() <= budget).map(|polls| worth(&polls));
                let best = best.fold(0.0, f64::max);
                assert!((worth(&found.polls) - best).abs() < 1e-9);
                assert!(found.spent <= budget && found.spent == found.polls.iter().sum::<usize>());
            }
        }
    }

    #[test]
    fn busy_sources_get_more_and_floors_hold() {
        let options = Options::default();
        let busy = History::of_moments("busy", &(0..2_000).map(|i| at(f64::from(i) * 1.3)).collect::<Vec<_>>());
        let quiet = daily("quiet", 9.0, 100);
        let never = History::new("never", Vec::new());
        let curves: Vec<SourceCurve> = [&busy, &quiet, &never].into_iter().map(|h| curve_of(h, &options, 30)).collect();
        let shared = share(&curves, &[], 24, 1, Average::Macro);
        assert_eq!((shared.polls[2], shared.spent), (1, 24));
        assert!(shared.polls[0] > shared.polls[1] && shared.polls[1] >= 1, "{shared:?}");
        let micro = share(&curves, &[], 24, 0, Average::Micro);
        assert!(micro.polls[0] >= shared.polls[0] && micro.polls[2] == 0);
        assert_eq!(share(&curves, &[], 2, 1, Average::Macro).polls, [1, 1, 0]);
        // A curve that ends early is reported.
        let short: Vec<SourceCurve> = curves
            .iter()
            .map(|c| SourceCurve { values: c.values.iter().copied().take(3).collect(), ..c.clone() })
            .collect();
        assert!(share(&short, &[], 24, 0, Average::Macro).cut_short.contains(&0));
    }

    #[test]
    fn shares_become_plans() {
        let options = Options::default();
        let histories = [daily("a", 9.0, 100), History::new("never", Vec::new())];
        let curves: Vec<SourceCurve> = histories.iter().map(|h| curve_of(h, &options, 10)).collect();
        let shared = share(&curves, &[], 3, 0, Average::Macro);
        assert_eq!(shared.polls[1], 0);
        let planned: Vec<_> = histories
            .iter()
            .zip(&shared.polls)
            .map(|(h, n)| super::super::source::plan_share(h, &NamePhase::of(&h.source), &options, Period::Day, *n))
            .collect();
        assert!(planned[1].schedule.poll_times.is_empty());
        assert_eq!(planned.iter().map(|plan| plan.schedule.poll_times.len()).sum::<usize>(), shared.spent);
        assert_eq!(planned.iter().map(|plan| plan.held_out.expected.recall).collect::<Vec<_>>(), [Some(1.0), None]);
    }
}
