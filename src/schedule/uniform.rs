//! Polls at a fixed interval: at the best phase (`uniform`), or by the rate alone (`poisson`).
//!
//! Under a Poisson process every phase is as good as another and even spacing is optimal, whatever the rate: for one
//! source the `poisson` method is even spacing, and its knowledge shows in how a budget is shared by many sources (Cho
//! and Garcia-Molina, "Synchronizing a Database to Improve Freshness", 2000; [`super::fleet`]). Where nothing speaks
//! for a phase it is drawn from the source's name: always the same, and not the same for all, so that polls do not
//! crowd at midnight.

use std::cell::RefCell;

use super::gaps::poisson_cost;
use super::objective::Objective;
use super::optimal::{GapCost, total_cost};
use crate::model::Digest;

/// A phase for a source about which nothing is known.
#[must_use]
pub fn any_phase(source: &str, slots: usize) -> usize {
    NamePhase::of(source).at(slots)
}

/// The phases that a source's name stands for, and which of them were asked for: a schedule depends on the name through
/// these alone.
#[derive(Clone, Debug)]
pub(crate) struct NamePhase {
    number: u64,
    asked: RefCell<Vec<usize>>,
}

impl NamePhase {
    #[must_use]
    pub(crate) fn of(source: &str) -> Self {
        Self { number: Digest::of(source.as_bytes()).low64(), asked: RefCell::default() }
    }

    /// The phase on a circle of so many slots.
    #[must_use]
    pub(crate) fn on(&self, slots: usize) -> usize {
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(&slots) {
            asked.push(slots);
        }
        self.at(slots)
    }

    /// The same, without a trace.
    #[must_use]
    pub(crate) fn at(&self, slots: usize) -> usize {
        usize::try_from(self.number % slots.max(1) as u64).unwrap_or(0)
    }

    /// The circles that a phase was asked for on.
    #[must_use]
    pub(crate) fn asked(self) -> Vec<usize> {
        self.asked.into_inner()
    }
}

/// `polls` slots spread evenly, the first at `phase`; ascending.
#[must_use]
pub fn even(slots: usize, polls: usize, phase: usize) -> Vec<usize> {
    let polls = polls.min(slots);
    let mut found: Vec<usize> = (0..polls).map(|j| (phase + j * slots / polls) % slots).collect();
    found.sort_unstable();
    found
}

/// Even spacing at the phase with the least cost; the earliest of several.
#[must_use]
pub fn best_phase(gaps: &impl GapCost, polls: usize) -> Vec<usize> {
    let slots = gaps.slots();
    if polls == 0 {
        return Vec::new();
    }
    let mut best = (f64::INFINITY, Vec::new());
    for phase in 0..slots.div_ceil(polls.min(slots)) {
        let candidate = even(slots, polls, phase);
        let cost = total_cost(gaps, &candidate);
        if cost < best.0 - 1e-12 {
            best = (cost, candidate);
        }
    }
    best.1
}

/// What `polls` even polls are worth to a Poisson source with `rate` updates a period.
#[must_use]
pub(crate) fn poisson_value(rate: f64, polls: usize, objective: Objective) -> f64 {
    if polls == 0 {
        // Nothing is ever seen, and every update waits for ever: a whole period, in the unit of the delay. What is unseen
        // grows without end; it is taken to be what one poll in two periods leaves.
        return -objective.delay
            - 0.5 * poisson_cost(rate, 2.0, Objective { staleness: objective.staleness, ..Objective::NOTHING });
    }
    let n = polls as f64;
    objective.freshness - n * poisson_cost(rate, 1.0 / n, objective)
}

#[cfg(test)]
mod tests {
    use super::super::gaps::{Pattern, PatternCost};
    use super::*;

    #[test]
    fn even_polls_keep_their_distance() {
        assert_eq!(even(12, 4, 2), [2, 5, 8, 11]);
        assert_eq!(even(12, 5, 0), [0, 2, 4, 7, 9]);
        assert_eq!(even(3, 9, 1), [0, 1, 2]);
        assert_eq!(even(12, 0, 1), [0usize; 0]);
    }

    #[test]
    fn the_best_phase_polls_after_the_updates() {
        let mut pattern = Pattern { slots: 12, points: Vec::new(), per_period: 2.0 };
        for period in 0..10 {
            for slot in [1.0, 7.0] {
                let at = f64::from(period) * 12.0 + slot;
                pattern.push(at, (at > 1.0).then_some(at - 6.0), 1.0);
            }
        }
        pattern.normalise();
        let gaps = PatternCost::new(&pattern, Objective::default(), 0.0);
        assert_eq!(best_phase(&gaps, 2), [1, 7]);
    }

    #[test]
    fn poisson_values_are_concave_and_known() {
        // One update a period, one poll: recall and freshness are both 1 - 1/e.
        let value = poisson_value(1.0, 1, Objective::RECALL);
        assert!((value - (1.0 - (-1.0f64).exp())).abs() < 1e-12);
        assert!((poisson_value(1.0, 1, Objective::FRESHNESS) - value).abs() < 1e-12);
        let objective = Objective { recall: 0.5, freshness: 0.5, delay: 0.2, staleness: 0.7 };
        let values: Vec<f64> = (0..30).map(|n| poisson_value(3.0, n, objective)).collect();
        for three in values.windows(3) {
            assert!(three[2] - three[1] <= three[1] - three[0] + 1e-12);
            assert!(three[2] >= three[1]);
        }
    }
}
