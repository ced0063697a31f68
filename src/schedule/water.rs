//! The allocation of polls that keeps most copies fresh, of sources that change by chance: `freshness-optimal`.
//!
//! A Poisson source with `l` updates a period that is polled `r` times evenly is fresh for `F(r) = r / l (1 - e^(-l / r))` of
//! the time (Cho and Garcia-Molina, 2000). Of all ways to share a budget, the best one gives each source polls up to the
//! point where another one gains as much for all of them: `w F'(r) = price`, and none to those whose first poll gains
//! less (the Karush-Kuhn-Tucker conditions; Azar et al., 2018, show how to find the price fast). `F'` is a function of
//! `x = l / r` over `l`, `(1 - e^-x (1 + x)) / l`, whose inverse is Lambert's, so that a price gives all polls at once; the
//! price that spends the budget is found by Newton's method.
//!
//! Polls are whole. [`whole`] starts from the solution in fractions and moves single polls while that gains anything; `F` is
//! concave, so that what no single move improves is the optimum.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A source that wants polls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoissonSource {
    /// Updates a period.
    pub rate: f64,
    /// What its freshness counts.
    pub weight: f64,
}

/// Polls in fractions, and what another one would gain for any source that has some.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    pub polls: Vec<f64>,
    pub price: f64,
}

impl PoissonSource {
    /// Share of the time in which a copy with so many polls is fresh.
    #[must_use]
    pub fn freshness(self, polls: f64) -> f64 {
        if self.rate <= 0.0 {
            return 1.0;
        }
        if polls <= 0.0 {
            return 0.0;
        }
        let x = self.rate / polls;
        if x < 1e-6 { 1.0 - x / 2.0 } else { -(-x).exp_m1() / x }
    }

    /// What one more poll gains, in whole polls.
    fn gain(self, polls: usize) -> f64 {
        self.weight * (self.freshness((polls + 1) as f64) - self.freshness(polls as f64))
    }

    /// What a little more of a poll gains, for each poll.
    #[must_use]
    pub fn slope(self, polls: f64) -> f64 {
        if self.rate <= 0.0 {
            return 0.0;
        }
        if polls <= 0.0 {
            return self.weight / self.rate;
        }
        let x = self.rate / polls;
        // Where x is small, the difference loses its digits.
        let part = if x < 1e-2 {
            x * x * (0.5 - x * (1.0 / 3.0 - x * (0.125 - x * (1.0 / 30.0 - x / 144.0))))
        } else {
            -(-x).exp_m1() - x * (-x).exp()
        };
        self.weight / self.rate * part
    }

    /// The polls at which another one gains the price, and how fast they grow with its logarithm.
    fn polls_at(self, price: f64) -> (f64, f64) {
        if self.rate <= 0.0 || self.weight <= 0.0 {
            return (0.0, 0.0);
        }
        let part = price * self.rate / self.weight;
        if part >= 1.0 {
            return (0.0, 0.0);
        }
        let x = updates_a_poll(part);
        (self.rate / x, -self.rate * part * x.exp() / (x * x * x))
    }
}

/// The `x` at which `1 - e^-x (1 + x)` is `part`, between 0 and 1: that is `-1 - W(-(1 - part) / e)` on Lambert's lower branch.
fn updates_a_poll(part: f64) -> f64 {
    let depth = -(-part).ln_1p();
    let s = (2.0 * depth).sqrt();
    if s < 0.02 {
        // Its series at the branch point.
        return s * (1.0 + s * (1.0 / 3.0 + s * (1.0 / 36.0 - s * (1.0 / 270.0 - s / 4_320.0))));
    }
    // ln(1 + x) - x + depth falls and is concave: from anywhere, Newton's steps come down to its zero.
    let mut x = s + 0.9 * depth;
    for _ in 0..60 {
        let step = (x.ln_1p() - x + depth) * (1.0 + x) / x;
        x += step;
        if step.abs() <= 1e-14 * x {
            break;
        }
    }
    x
}

/// What all sources take at a price, and how fast that grows with its logarithm.
fn spent_at(sources: &[PoissonSource], price: f64) -> (f64, f64) {
    let each = sources.iter().map(|source| source.polls_at(price));
    each.fold((0.0, 0.0), |sum, (polls, growth)| (sum.0 + polls, sum.1 + growth))
}

/// The polls in fractions that keep most copies fresh, all of them together `budget`.
#[must_use]
pub fn fill(sources: &[PoissonSource], budget: f64) -> Filled {
    let dearest = sources.iter().filter(|s| s.rate > 0.0).map(|s| s.slope(0.0)).fold(0.0, f64::max);
    if dearest <= 0.0 || budget <= 0.0 {
        return Filled { polls: vec![0.0; sources.len()], price: dearest };
    }
    // By logarithms: spending falls as the price grows, and is close to a power of it.
    let (mut low, mut high) = (dearest.ln(), dearest.ln());
    while spent_at(sources, low.exp()).0 < budget {
        low -= 4.0;
    }
    let mut at = f64::midpoint(low, high);
    for _ in 0..200 {
        let (spent, growth) = spent_at(sources, at.exp());
        if (spent - budget).abs() <= 1e-12 * budget || high - low < 1e-15 * high.abs().max(1.0) {
            break;
        }
        if spent > budget {
            low = at;
        } else {
            high = at;
        }
        let newton = at - (spent / budget).ln() * spent / growth;
        at = if newton > low && newton < high { newton } else { f64::midpoint(low, high) };
    }
    let price = at.exp();
    Filled { polls: sources.iter().map(|source| source.polls_at(price).0).collect(), price }
}

/// A poll that may be given or taken; the greatest is the one to move first.
#[derive(Clone, Copy, PartialEq)]
struct Move {
    worth: f64,
    source: usize,
    /// Polls that the source had when this was written down; if it has others by now, it no longer holds.
    polls: usize,
}

impl Eq for Move {}

impl Ord for Move {
    fn cmp(&self, other: &Self) -> Ordering {
        self.worth.total_cmp(&other.worth).then(other.source.cmp(&self.source))
    }
}

impl PartialOrd for Move {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Polls on their way to the optimum.
struct Moves<'a> {
    sources: &'a [PoissonSource],
    /// Least and most polls of each.
    bounds: &'a [(usize, usize)],
    polls: Vec<usize>,
    spent: usize,
    give: BinaryHeap<Move>,
    take: BinaryHeap<Move>,
}

impl Moves<'_> {
    fn giving(&self, source: usize) -> Option<Move> {
        let polls = self.polls[source];
        (polls < self.bounds[source].1).then(|| Move { worth: self.sources[source].gain(polls), source, polls })
    }

    fn taking(&self, source: usize) -> Option<Move> {
        let polls = self.polls[source];
        (polls > self.bounds[source].0).then(|| Move { worth: -self.sources[source].gain(polls - 1), source, polls })
    }

    fn change(&mut self, source: usize, polls: usize) {
        self.spent = self.spent + polls - self.polls[source];
        self.polls[source] = polls;
        let (give, take) = (self.giving(source), self.taking(source));
        self.give.extend(give);
        self.take.extend(take);
    }

    /// The best move that still holds.
    fn best(heap: &mut BinaryHeap<Move>, polls: &[usize]) -> Option<Move> {
        while heap.peek().is_some_and(|found| polls[found.source] != found.polls) {
            heap.pop();
        }
        heap.peek().copied()
    }
}

/// Whole polls that keep most copies fresh, at most `budget` of them beyond what the lower bounds take; polls that gain
/// nothing are not spent.
#[must_use]
pub fn whole(sources: &[PoissonSource], bounds: &[(usize, usize)], budget: usize) -> Vec<usize> {
    let filled = fill(sources, budget as f64);
    let start =
        |(polls, &(least, most)): (&f64, &(usize, usize))| crate::stats::whole::count(*polls).clamp(least, most);
    let polls: Vec<usize> = filled.polls.iter().zip(bounds).map(start).collect();
    let spent = polls.iter().sum();
    let mut moves = Moves { sources, bounds, polls, spent, give: BinaryHeap::new(), take: BinaryHeap::new() };
    moves.give = (0..sources.len()).filter_map(|source| moves.giving(source)).collect();
    moves.take = (0..sources.len()).filter_map(|source| moves.taking(source)).collect();
    loop {
        let give = Moves::best(&mut moves.give, &moves.polls).filter(|give| give.worth > 0.0);
        let take = Moves::best(&mut moves.take, &moves.polls);
        match (give, take) {
            (_, Some(take)) if moves.spent > budget => moves.change(take.source, take.polls - 1),
            (Some(give), _) if moves.spent < budget => moves.change(give.source, give.polls + 1),
            // Of one source only rounding could say that a later poll gains more than an earlier one.
            (Some(give), Some(take))
                if moves.spent == budget && give.worth > -take.worth && give.source != take.source =>
            {
                moves.change(take.source, take.polls - 1);
                moves.change(give.source, give.polls + 1);
            }
            // What gains nothing is given back.
            (_, Some(take)) if take.worth >= 0.0 => moves.change(take.source, take.polls - 1),
            _ => return moves.polls,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fleet::{Average, SourceCurve, share};
    use super::super::objective::Objective;
    use super::super::uniform::poisson_value;
    use super::*;
    use crate::model::Rng;

    fn sources(random: &mut Rng, n: usize) -> Vec<PoissonSource> {
        // Rates from one in years to thousands a day, weights over four orders.
        let mut power = |low: f64, high: f64| 10f64.powf(low + (high - low) * random.unit());
        (0..n).map(|_| PoissonSource { rate: power(-4.0, 4.0), weight: power(-2.0, 2.0) }).collect()
    }

    fn value(sources: &[PoissonSource], polls: &[f64]) -> f64 {
        sources.iter().zip(polls).map(|(source, polls)| source.weight * source.freshness(*polls)).sum()
    }

    /// The conditions, each relative to the price.
    fn assert_optimal(sources: &[PoissonSource], filled: &Filled, budget: f64) {
        let spent: f64 = filled.polls.iter().sum();
        assert!((spent - budget).abs() <= 1e-6 * budget, "{spent} of {budget}");
        for (source, polls) in sources.iter().zip(&filled.polls) {
            let slope = source.slope(*polls) / filled.price;
            if *polls > 0.0 {
                assert!((slope - 1.0).abs() < 1e-6, "{source:?} {polls} {slope}");
            } else {
                assert!(slope < 1.0 + 1e-6, "{source:?} {slope}");
            }
        }
    }

    #[test]
    fn the_conditions_hold_at_any_budget() {
        let mut random = Rng::new(1);
        for budget in [1e-3, 0.5, 10.0, 3e3, 1e6] {
            let sources = sources(&mut random, 300);
            assert_optimal(&sources, &fill(&sources, budget), budget);
        }
        let none = [PoissonSource { rate: 0.0, weight: 1.0 }, PoissonSource { rate: 2.0, weight: 0.0 }];
        assert_eq!(fill(&none, 5.0).polls, [0.0, 0.0]);
    }

    #[test]
    fn no_random_allocation_is_better() {
        let mut random = Rng::new(2);
        let sources = sources(&mut random, 40);
        let budget = 100.0;
        let filled = fill(&sources, budget);
        let best = value(&sources, &filled.polls);
        let mut near = f64::NEG_INFINITY;
        for i in 0..10_000 {
            // Every other one is a small step from the optimum, which is harder to beat.
            let base = |polls: f64, unit: f64| if i % 2 == 0 { unit } else { polls * (0.9 + 0.2 * unit) };
            let mut polls: Vec<f64> = filled.polls.iter().map(|polls| base(*polls, random.unit())).collect();
            let sum: f64 = polls.iter().sum();
            polls.iter_mut().for_each(|polls| *polls *= budget / sum);
            near = near.max(value(&sources, &polls));
        }
        assert!(near <= best + 1e-12 * best, "{near} {best}");
        assert!(near > 0.99 * best, "the small steps are near: {near} {best}");
    }

    /// By curves and gains, one poll after the other.
    fn greedy(sources: &[PoissonSource], most: usize, budget: usize, floor: usize) -> Vec<usize> {
        let curve = |source: &PoissonSource| SourceCurve {
            values: (0..=most).map(|n| poisson_value(source.rate, n, Objective::FRESHNESS)).collect(),
            weight: source.rate,
            most,
            pull: 0.0,
        };
        let curves: Vec<SourceCurve> = sources.iter().map(curve).collect();
        let weights: Vec<f64> = sources.iter().map(|source| source.weight).collect();
        share(&curves, &weights, budget, floor, Average::Macro).polls
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn whole_polls_are_those_of_one_after_the_other(
            seed in 0u64..1_000_000, n in 1usize..30, budget in 0usize..200, floor in 0usize..2, most in 1usize..40,
        ) {
            let sources = sources(&mut Rng::new(seed), n);
            let budget = budget.max(floor * n);
            let found = whole(&sources, &vec![(floor, most); n], budget);
            let expected = greedy(&sources, most, budget, floor);
            prop_assert_eq!(found.iter().sum::<usize>(), expected.iter().sum::<usize>());
            let worth = |polls: &[usize]| value(&sources, &polls.iter().map(|n| *n as f64).collect::<Vec<_>>());
            prop_assert!((worth(&found) - worth(&expected)).abs() <= 1e-9 * worth(&expected).max(1e-9), "{found:?} {expected:?}");
        }
    }
}
