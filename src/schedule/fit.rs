//! From the updates of a history to the slots of its polls, by any method.

use super::gaps::PatternCost;
use super::history::History;
use super::optimal::{most_polls, optimal};
use super::options::Options;
use super::pattern::{Learned, learn};
use super::{theoretical, uniform};
use crate::model::{Method, Period};
use crate::stats::Calendar;
use crate::stats::calendar::SECOND;

/// A history on the slots of a period, with what the gaps between polls cost there.
pub(crate) struct SlotFitter<'a> {
    history: &'a History,
    calendar: &'a Calendar,
    period: Period,
    /// Length of a slot.
    grain_s: i64,
    /// Slots between two polls at least.
    pub(crate) min_gap: usize,
    pub(crate) learned: Learned,
    pub(crate) cost: PatternCost,
}

impl<'a> SlotFitter<'a> {
    /// Learns the pattern of a history.
    pub(crate) fn new(history: &'a History, options: &'a Options, period: Period, grain_s: i64) -> Self {
        let learned = learn(history, &options.calendar, period, grain_s, &options.smoothing);
        Self::with(learned, history, options, period, grain_s)
    }

    /// With a pattern that was learned already, of this history and on these slots.
    pub(crate) fn with(
        learned: Learned,
        history: &'a History,
        options: &'a Options,
        period: Period,
        grain_s: i64,
    ) -> Self {
        let cost = PatternCost::new(&learned.pattern, options.objective, learned.shrinkage);
        let min_gap = options.min_gap_slots(grain_s);
        Self { history, calendar: &options.calendar, period, grain_s, min_gap, learned, cost }
    }

    /// How many polls fit into the period.
    pub(crate) fn most_polls(&self) -> usize {
        most_polls(self.learned.pattern.slots, self.min_gap)
    }

    /// Slots of at most so many polls.
    pub(crate) fn slots(&self, method: Method, polls: usize) -> Vec<usize> {
        let slots = self.learned.pattern.slots;
        let polls = polls.min(self.most_polls());
        let any_phase = || uniform::even(slots, polls, uniform::any_phase(&self.history.source, slots));
        match method {
            // Costs depend on the gaps' lengths only: even spacing is the optimum, at every phase.
            Method::Optimal | Method::Uniform if self.learned.tells_nothing() => any_phase(),
            Method::Optimal => optimal(&self.cost, polls, self.min_gap).slots,
            Method::Uniform => uniform::best_phase(&self.cost, polls),
            Method::Poisson => any_phase(),
            Method::Theoretical => {
                let kinds = theoretical::kinds(&by_period(self.history, self.calendar, self.period, self.grain_s));
                theoretical::polls(&kinds, &self.cost, polls, self.min_gap)
            }
        }
    }

    /// When the slots begin, in seconds from the period's start.
    pub(crate) fn times(&self, slots: &[usize]) -> Vec<i64> {
        slots.iter().map(|slot| *slot as i64 * self.grain_s).collect()
    }
}

/// For each period with updates, and each URL, the slots of its updates in order.
fn by_period(history: &History, calendar: &Calendar, period: Period, grain_s: i64) -> Vec<Vec<i64>> {
    let mut periods: Vec<Vec<i64>> = Vec::new();
    for sequence in &history.sequences {
        let mut current = None;
        for update in &sequence.updates {
            let place = calendar.place(period, update.central());
            if current != Some(place.index) {
                current = Some(place.index);
                periods.push(Vec::new());
            }
            let slot = (place.phase + grain_s * SECOND - 1).div_euclid(grain_s * SECOND);
            periods.last_mut().expect("just pushed").push(slot);
        }
    }
    periods
}
