//! From the updates of a history to the slots of its polls, by any method.
//!
//! What gaps cost is computed when a method first asks: where a history tells nothing of phases, nobody does.

use std::cell::OnceCell;

use super::gaps::PatternCost;
use super::history::History;
use super::objective::Objective;
use super::optimal::{most_polls, optimal};
use super::options::Options;
use super::pattern::{Learned, learn};
use super::theoretical;
use super::uniform::{self, NamePhase};
use crate::model::{Method, Period};
use crate::stats::Calendar;
use crate::stats::calendar::SECOND;

/// A history on the slots of a period, with what the gaps between polls cost there.
pub(crate) struct SlotFitter<'a> {
    history: &'a History,
    /// What the source's name decides where nothing else does.
    phase: &'a NamePhase,
    calendar: &'a Calendar,
    objective: Objective,
    period: Period,
    /// Length of a slot.
    grain_s: i64,
    /// Slots between two polls at least.
    pub(crate) min_gap: usize,
    pub(crate) learned: Learned,
    cost: OnceCell<PatternCost>,
}

impl<'a> SlotFitter<'a> {
    /// Learns the pattern of a history.
    pub(crate) fn new(
        history: &'a History,
        phase: &'a NamePhase,
        options: &'a Options,
        period: Period,
        grain_s: i64,
    ) -> Self {
        Self {
            history,
            phase,
            calendar: &options.calendar,
            objective: options.objective.with_ties_to_freshness(),
            period,
            grain_s,
            min_gap: options.min_gap_slots(grain_s),
            learned: learn(history, &options.calendar, period, grain_s, &options.smoothing),
            cost: OnceCell::new(),
        }
    }

    /// What the gaps between polls cost.
    pub(crate) fn cost(&self) -> &PatternCost {
        self.cost.get_or_init(|| PatternCost::new(&self.learned.pattern, self.objective, self.learned.shrinkage))
    }

    /// How many polls fit into the period.
    pub(crate) fn most_polls(&self) -> usize {
        most_polls(self.learned.pattern.slots, self.min_gap)
    }

    /// Slots of at most so many polls.
    pub(crate) fn slots(&self, method: Method, polls: usize) -> Vec<usize> {
        let slots = self.learned.pattern.slots;
        let polls = polls.min(self.most_polls());
        let any_phase = || uniform::even(slots, polls, self.phase.on(slots));
        match method {
            // Costs depend on the gaps' lengths only: even spacing is the optimum, at every phase.
            Method::Optimal | Method::Uniform if self.learned.tells_nothing() => any_phase(),
            Method::Optimal => optimal(self.cost(), polls, self.min_gap).slots,
            Method::Uniform => match self.cost.get() {
                Some(cost) => uniform::best_phase(cost, polls),
                // Few gaps are looked at: a table of all of them would take far longer than these.
                None => {
                    let (pattern, shrinkage) = (&self.learned.pattern, self.learned.shrinkage);
                    uniform::best_phase(&PatternCost::with_limit(pattern, self.objective, shrinkage, 0), polls)
                }
            },
            Method::Poisson | Method::FreshnessOptimal | Method::Adaptive => any_phase(),
            Method::Gone => Vec::new(),
            Method::Theoretical => {
                let kinds = theoretical::kinds(&by_period(self.history, self.calendar, self.period, self.grain_s));
                theoretical::polls(&kinds, self.cost(), polls, self.min_gap)
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
