//! A budget of polls shared by many sources.
//!
//! The value of a source's best schedule is concave in its number of polls, so giving one poll after the other to
//! whoever gains most is exact (and so is the Poisson baseline, whose values are concave too: that is the allocation of
//! Cho and Garcia-Molina in whole polls). `Macro` sums the sources' values, so every source counts the same; `Micro`
//! weighs them by their updates, so every version does.
//!
//! A limit on the polls that one host gets in a slot couples the sources; it is repaired afterwards, poll by poll, to
//! the nearest slots with room, and what that costs is reported.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use serde::{Deserialize, Serialize};

use super::fit::SlotFitter;
use super::gaps::PatternCost;
use super::history::{History, host};
use super::optimal::{GapCost, curve, total_cost};
use super::options::Options;
use super::pattern::learn;
use super::source::Schedule;
use super::uniform::{NamePhase, poisson_value};
use crate::model::closed_set::closed_set;
use crate::model::{Method, Period};
use crate::stats::whole::index;

/// What a source's schedules are worth.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SourceCurve {
    /// `[n]`: value of the best `n` polls, by the objective on the history learned from. Of a source without updates
    /// only the value of no poll, which is that of any number.
    pub values: Vec<f64>,
    /// Updates a period.
    pub weight: f64,
    /// More polls than this do not fit.
    pub most: usize,
}

impl SourceCurve {
    /// Of a source of which no update is known: no poll of it gains anything.
    #[must_use]
    pub(crate) fn of_nothing(options: &Options, period: Period) -> Self {
        Self { values: vec![0.0], weight: 0.0, most: options.most_polls(period) }
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
    let objective = options.objective;
    let rate = fitter.learned.pattern.per_period;
    let nothing = poisson_value(rate, 0, objective);
    let urls = history.sequences.len() as f64;
    let values = match options.method {
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
    SourceCurve { values, weight: rate * urls, most }
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
pub(crate) struct Budget {
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

/// Shares `budget` polls a period: `floor` for each source first (as far as the budget goes), then by gain.
#[must_use]
pub(crate) fn share(curves: &[SourceCurve], budget: usize, floor: usize, average: Average) -> Allocation {
    let factor = |c: &SourceCurve| match average {
        Average::Macro => 1.0,
        Average::Micro => c.weight,
    };
    let mut polls = vec![0; curves.len()];
    let mut left = budget;
    // Round by round, so that a budget below the floors still reaches as many sources as it can.
    for _ in 0..floor {
        for (source, curve) in curves.iter().enumerate() {
            if left > 0 && polls[source] < curve.most {
                polls[source] += 1;
                left -= 1;
            }
        }
    }
    let offer = |source: usize, n: usize| {
        let values = &curves[source].values;
        let gain = (values.get(n + 1)? - values[n]) * factor(&curves[source]);
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
pub(crate) struct HostRepair {
    pub moved: usize,
    pub dropped: usize,
    /// Sum over sources of what their objective lost.
    pub loss: f64,
}

/// Moves polls so that no host gets more than `limit` of them in a slot. Sources with more updates keep their times.
/// `histories` in the order of `schedules`; the host of a source is that of its name read as a URL.
pub(crate) fn repair_hosts(
    schedules: &mut [Schedule],
    histories: &[History],
    options: &Options,
    limit: usize,
) -> HostRepair {
    let mut order: Vec<usize> = (0..schedules.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(histories[*i].updates()));
    let mut busy: BTreeMap<(String, i64), usize> = BTreeMap::new();
    let mut repair = HostRepair::default();
    for i in order {
        let schedule = &mut schedules[i];
        let (at, period) = (host(&schedule.source).to_owned(), schedule.period);
        let free = |busy: &BTreeMap<(String, i64), usize>, time: i64| {
            let full = |slot| busy.get(&(at.clone(), slot)).is_some_and(|n| *n >= limit);
            !weekly(period, time, options.grain_s).any(full)
        };
        let crowded = schedule.poll_times.iter().any(|t| !free(&busy, *t));
        if crowded {
            let moved = move_polls(schedule, &histories[i], options, &|time| free(&busy, time));
            repair.moved += moved.moved;
            repair.dropped += moved.dropped;
            repair.loss += moved.loss;
        }
        for time in &schedule.poll_times {
            for slot in weekly(period, *time, options.grain_s) {
                *busy.entry((at.clone(), slot)).or_default() += 1;
            }
        }
    }
    repair
}

/// The slots of a week in which a poll time comes round; a day of the month may be any day of the week.
fn weekly(period: Period, time: i64, grain_s: i64) -> impl Iterator<Item = i64> {
    let (first, step) = match period {
        Period::Hour => (time, 3_600),
        Period::Day => (time, 86_400),
        Period::Week => (time, 604_800),
        Period::Month => (time % 86_400, 86_400),
    };
    (first..604_800).step_by(step).map(move |t| t / grain_s)
}

fn move_polls(schedule: &mut Schedule, history: &History, options: &Options, free: &dyn Fn(i64) -> bool) -> HostRepair {
    /// Slots with room that are tried on each side.
    const TRIED: usize = 4;
    let grain_s = options.grain_s;
    let learned = learn(history, &options.calendar, schedule.period, grain_s, &options.smoothing);
    let cost = PatternCost::new(&learned.pattern, options.objective, learned.shrinkage);
    let slots = cost.slots();
    let min_gap = options.min_gap_slots(grain_s);
    let mut polls: Vec<usize> = schedule.poll_times.iter().map(|t| index(t / grain_s) % slots).collect();
    let value = |polls: &[usize]| {
        if polls.is_empty() { 0.0 } else { options.objective.freshness - total_cost(&cost, polls) }
    };
    let before = value(&polls);
    let mut repair = HostRepair::default();
    let mut i = 0;
    while i < polls.len() {
        if free(polls[i] as i64 * grain_s) {
            i += 1;
            continue;
        }
        let others: Vec<usize> = polls.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, p)| *p).collect();
        let apart = |slot: usize| others.iter().all(|p| p.abs_diff(slot).min(slots - p.abs_diff(slot)) >= min_gap);
        let usable = |slot: &usize| free(*slot as i64 * grain_s) && apart(*slot);
        let later = (1..slots).map(|d| (polls[i] + d) % slots).filter(usable).take(TRIED);
        let earlier = (1..slots).map(|d| (polls[i] + slots - d) % slots).filter(usable).take(TRIED);
        let with = |slot: usize| {
            let mut all = others.clone();
            all.push(slot);
            all.sort_unstable();
            all
        };
        let candidates: Vec<usize> = later.chain(earlier).collect();
        match candidates.into_iter().max_by(|a, b| value(&with(*a)).total_cmp(&value(&with(*b)))) {
            Some(slot) => {
                polls = with(slot);
                repair.moved += 1;
            }
            None => {
                polls = others;
                repair.dropped += 1;
            }
        }
        i = 0;
    }
    repair.loss = (before - value(&polls)).max(0.0);
    schedule.poll_times = polls.iter().map(|p| *p as i64 * grain_s).collect();
    repair
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
                    SourceCurve { values, weight: 0.5 + random(), most: 6 }
                })
                .collect();
            let budget = count(random() * 19.0);
            for average in [Average::Macro, Average::Micro] {
                let factor = |c: &SourceCurve| if average == Average::Macro { 1.0 } else { c.weight };
                let found = share(&curves, budget, 0, average);
                let worth =
                    |polls: &[usize]| -> f64 { curves.iter().zip(polls).map(|(c, n)| c.values[*n] * factor(c)).sum() };
                let mut best = 0.0f64;
                for a in 0..=6 {
                    for b in 0..=6 {
                        for c in 0..=6 {
                            if a + b + c <= budget {
                                best = best.max(worth(&[a, b, c]));
                            }
                        }
                    }
                }
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
        let shared = share(&curves, 24, 1, Average::Macro);
        assert_eq!((shared.polls[2], shared.spent), (1, 24));
        assert!(shared.polls[0] > shared.polls[1] && shared.polls[1] >= 1, "{shared:?}");
        let micro = share(&curves, 24, 0, Average::Micro);
        assert!(micro.polls[0] >= shared.polls[0] && micro.polls[2] == 0);
        assert_eq!(share(&curves, 2, 1, Average::Macro).polls, [1, 1, 0]);
        // A curve that ends early is reported.
        let short: Vec<SourceCurve> = curves
            .iter()
            .map(|c| SourceCurve { values: c.values.iter().copied().take(3).collect(), ..c.clone() })
            .collect();
        assert!(share(&short, 24, 0, Average::Macro).cut_short.contains(&0));
    }

    #[test]
    fn shares_become_plans() {
        let options = Options::default();
        let histories = [daily("a", 9.0, 100), History::new("never", Vec::new())];
        let curves: Vec<SourceCurve> = histories.iter().map(|h| curve_of(h, &options, 10)).collect();
        let shared = share(&curves, 3, 0, Average::Macro);
        assert_eq!(shared.polls[1], 0);
        let planned: Vec<_> = histories
            .iter()
            .zip(&shared.polls)
            .map(|(h, n)| super::super::source::plan_share(h, &options, Period::Day, *n).unwrap())
            .collect();
        assert!(planned[1].schedule.poll_times.is_empty());
        assert_eq!(planned.iter().map(|plan| plan.schedule.poll_times.len()).sum::<usize>(), shared.spent);
        assert_eq!(planned.iter().map(|plan| plan.held_out.expected.recall).collect::<Vec<_>>(), [Some(1.0), None]);
    }

    #[test]
    fn a_hosts_limit_is_kept_and_its_price_told() {
        let options = Options { period: Some(Period::Day), polls: 1, ..Options::default() };
        let histories: Vec<History> = (0..5).map(|i| daily(&format!("http://a.org/{i}"), 9.0, 100 + i)).collect();
        let mut schedules: Vec<Schedule> =
            histories.iter().map(|h| super::super::source::plan(h, &options).unwrap().schedule).collect();
        let wanted = schedules[4].poll_times.clone();
        let repair = repair_hosts(&mut schedules, &histories, &options, 2);
        let mut slots: BTreeMap<i64, usize> = BTreeMap::new();
        schedules.iter().flat_map(|s| &s.poll_times).for_each(|t| *slots.entry(t / 300).or_default() += 1);
        assert!(slots.values().all(|n| *n <= 2), "{slots:?}");
        assert_eq!((repair.moved, repair.dropped), (3, 0));
        assert!(repair.loss > 0.0 && repair.loss < 0.1, "{repair:?}");
        assert_eq!(schedules[4].poll_times, wanted, "the busiest keeps its time");
        // Another host is not concerned.
        let mut other = schedules.clone();
        other.iter_mut().enumerate().for_each(|(i, s)| s.source = format!("http://{i}.org/"));
        assert_eq!(repair_hosts(&mut other, &histories, &options, 1), HostRepair::default());
    }
}
