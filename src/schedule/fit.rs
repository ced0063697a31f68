//! From a learned pattern to the slots of its polls, by any method.

use super::gaps::PatternCost;
use super::history::History;
use super::optimal::{most_polls, optimal};
use super::options::Method;
use super::pattern::Learned;
use super::{theoretical, uniform};
use crate::stats::period::SECOND;
use crate::stats::{Calendar, Period};

/// Slots of polls by a method.
pub(crate) fn fit_slots(
    history: &History,
    learned: &Learned,
    cost: &PatternCost,
    method: Method,
    polls: usize,
    min_gap: usize,
    place: (&Calendar, Period, i64),
) -> Vec<usize> {
    let slots = learned.pattern.slots;
    let polls = polls.min(most_polls(slots, min_gap));
    let any_phase = || uniform::even(slots, polls, uniform::any_phase(&history.source, slots));
    match method {
        // Costs depend on the gaps' lengths only: even spacing is the optimum, at every phase.
        Method::Optimal | Method::Uniform if learned.blind || learned.pattern.points.is_empty() => any_phase(),
        Method::Optimal => optimal(cost, polls, min_gap).slots,
        Method::Uniform => uniform::best_phase(cost, polls),
        Method::Poisson => any_phase(),
        Method::Theoretical => {
            let (calendar, period, grain_s) = place;
            let kinds = theoretical::kinds(&by_period(history, calendar, period, grain_s));
            theoretical::polls(&kinds, cost, polls, min_gap)
        }
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
