//! A limit on the polls that one host gets in a slot.
//!
//! The limit couples the sources of a host. It is kept to afterwards: the source with most updates comes first and keeps
//! its times, and a poll that finds its slot full moves to one of the nearest slots with room, where it costs its source
//! least, or is dropped.
//!
//! What a move costs is learned from the source's history, which is slow. So it is kept with the move which slots were
//! looked at: if the same source wants the same times again and finds the same of these slots full, the move is the same.
//! What remains for all sources is to go through their polls once, since a poll more or less of one source decides what
//! those after it find.

use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fleet::HostRepair;
use super::gaps::PatternCost;
use super::history::{History, host};
use super::optimal::{GapCost, total_cost};
use super::options::Options;
use super::pattern::learn;
use crate::model::Period;
use crate::stats::whole::index;

const WEEK_S: i64 = 604_800;

/// The polls that a source would have without a limit.
pub(crate) struct WantedPolls<'a> {
    /// Its host is that of the name read as a URL.
    pub source: &'a str,
    pub updates: usize,
    pub period: Period,
    pub poll_times: &'a [i64],
    /// What was done to the same polls of the same source, with the same history, before.
    pub before: Option<&'a MovedPolls>,
}

/// The polls of a source that found slots full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MovedPolls {
    pub poll_times: Vec<i64>,
    /// Where each of the polls that were wanted went; `None` if it was dropped.
    pub placed: Vec<Option<i64>>,
    pub repair: HostRepair,
    /// The slots that were looked at, ascending.
    looked_at: Vec<SlotRun>,
}

/// Consecutive slots of a period that all had room, or all had none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SlotRun {
    first: i64,
    slots: i64,
    free: bool,
}

/// Moves polls so that no host gets more than `limit` of them in a slot: for each source its new polls, `None` if it
/// keeps those it wants. `history` is asked for the history of a source, by its place in the list, where polls must be
/// moved.
pub(crate) fn keep_to_limit<'a, E>(
    sources: &[WantedPolls<'_>],
    options: &Options,
    limit: usize,
    mut history: impl FnMut(usize) -> Result<Cow<'a, History>, E>,
) -> Result<(Vec<Option<MovedPolls>>, HostRepair), E> {
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.sort_by_key(|i| Reverse(sources[*i].updates));
    let mut hosts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for &i in &order {
        hosts.entry(host(sources[i].source)).or_default().push(i);
    }
    let mut found: Vec<Option<MovedPolls>> = sources.iter().map(|_| None).collect();
    let mut room = Room::new(options.grain_s, limit);
    // A source alone on its host finds all slots empty.
    for host in hosts.values().filter(|host| host.len() > 1) {
        room.clear();
        for &i in host {
            let source = &sources[i];
            let free = |time: i64| room.is_free(source.period, time);
            if !source.poll_times.iter().all(|time| free(*time)) {
                found[i] = Some(match source.before.filter(|before| before.holds(options.grain_s, free)) {
                    Some(before) => before.clone(),
                    None => MovedPolls::of(source, history(i)?.as_ref(), options, free),
                });
            }
            room.take(source.period, found[i].as_ref().map_or(source.poll_times, |moved| &moved.poll_times));
        }
    }
    let mut total = HostRepair::default();
    for moved in order.iter().filter_map(|i| found[*i].as_ref()) {
        total.moved += moved.repair.moved;
        total.dropped += moved.repair.dropped;
        total.loss += moved.repair.loss;
    }
    Ok((found, total))
}

/// The polls of a host so far.
struct Room {
    grain_s: i64,
    limit: usize,
    /// By slots of the week.
    polls: Vec<usize>,
}

impl Room {
    fn new(grain_s: i64, limit: usize) -> Self {
        Self { grain_s, limit, polls: vec![0; index(WEEK_S / grain_s) + 1] }
    }

    fn clear(&mut self) {
        self.polls.fill(0);
    }

    fn is_free(&self, period: Period, time: i64) -> bool {
        weekly(period, time, self.grain_s).all(|slot| self.polls[slot] < self.limit)
    }

    fn take(&mut self, period: Period, times: &[i64]) {
        for slot in times.iter().flat_map(|time| weekly(period, *time, self.grain_s)) {
            self.polls[slot] += 1;
        }
    }
}

/// The slots of a week in which a poll time comes round; a day of the month may be any day of the week.
fn weekly(period: Period, time: i64, grain_s: i64) -> impl Iterator<Item = usize> {
    let (first, step) = match period {
        Period::Hour => (time, 3_600),
        Period::Day => (time, 86_400),
        Period::Week => (time, 604_800),
        Period::Month => (time % 86_400, 86_400),
    };
    (first..WEEK_S).step_by(step).map(move |t| index(t / grain_s))
}

impl MovedPolls {
    /// Whether the slots that were looked at are as they were then.
    fn holds(&self, grain_s: i64, free: impl Fn(i64) -> bool) -> bool {
        let holds = |run: &SlotRun| (run.first..run.first + run.slots).all(|slot| free(slot * grain_s) == run.free);
        self.looked_at.iter().all(holds)
    }

    fn of(source: &WantedPolls<'_>, history: &History, options: &Options, free: impl Fn(i64) -> bool) -> Self {
        let looked_at: RefCell<BTreeMap<i64, bool>> = RefCell::default();
        let free = |time: i64| *looked_at.borrow_mut().entry(time / options.grain_s).or_insert_with(|| free(time));
        let (placed, repair) = move_polls(source, history, options, &free);
        let mut poll_times: Vec<i64> = placed.iter().copied().flatten().collect();
        poll_times.sort_unstable();
        let mut runs: Vec<SlotRun> = Vec::new();
        for (slot, free) in looked_at.into_inner() {
            match runs.last_mut() {
                Some(run) if run.free == free && run.first + run.slots == slot => run.slots += 1,
                _ => runs.push(SlotRun { first: slot, slots: 1, free }),
            }
        }
        Self { poll_times, placed, repair, looked_at: runs }
    }
}

/// For each poll that a source wants, where it goes; `None` if it is dropped.
fn move_polls(
    source: &WantedPolls<'_>,
    history: &History,
    options: &Options,
    free: &dyn Fn(i64) -> bool,
) -> (Vec<Option<i64>>, HostRepair) {
    /// Slots with room that are tried on each side.
    const TRIED: usize = 4;
    let grain_s = options.grain_s;
    let learned = learn(history, &options.calendar, source.period, grain_s, &options.smoothing);
    let objective = options.objective.with_ties_to_freshness();
    let cost = PatternCost::new(&learned.pattern, objective, learned.shrinkage);
    let slots = cost.slots();
    let min_gap = options.min_gap_slots(grain_s);
    let wanted: Vec<usize> = source.poll_times.iter().map(|t| index(t / grain_s) % slots).collect();
    // Each poll's slot, and which of the wanted polls it is.
    let mut polls: Vec<(usize, usize)> = wanted.iter().copied().zip(0..).collect();
    let value = |polls: &[usize]| {
        if polls.is_empty() { 0.0 } else { objective.freshness - total_cost(&cost, polls) }
    };
    let before = value(&wanted);
    let mut repair = HostRepair::default();
    let mut i = 0;
    while i < polls.len() {
        let (at, which) = polls[i];
        if free(at as i64 * grain_s) {
            i += 1;
            continue;
        }
        let others: Vec<(usize, usize)> = polls.iter().copied().filter(|(_, other)| *other != which).collect();
        let apart = |slot: usize| others.iter().all(|(p, _)| p.abs_diff(slot).min(slots - p.abs_diff(slot)) >= min_gap);
        let usable = |slot: &usize| free(*slot as i64 * grain_s) && apart(*slot);
        let later = (1..slots).map(|d| (at + d) % slots).filter(usable).take(TRIED);
        let earlier = (1..slots).map(|d| (at + slots - d) % slots).filter(usable).take(TRIED);
        let with = |slot: usize| {
            let mut all = others.clone();
            all.push((slot, which));
            all.sort_unstable();
            all
        };
        let worth = |slot: usize| value(&with(slot).into_iter().map(|(slot, _)| slot).collect::<Vec<_>>());
        let candidates: Vec<usize> = later.chain(earlier).collect();
        match candidates.into_iter().max_by(|a, b| worth(*a).total_cmp(&worth(*b))) {
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
    let left: Vec<usize> = polls.iter().map(|(slot, _)| *slot).collect();
    repair.loss = (before - value(&left)).max(0.0);
    let mut placed = vec![None; wanted.len()];
    for (slot, which) in polls {
        placed[which] = Some(slot as i64 * grain_s);
    }
    (placed, repair)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::super::source::{Schedule, plan};
    use super::*;
    use crate::model::Timestamp;

    fn daily(source: &str, days: i64) -> History {
        let times: Vec<Timestamp> = (0..days).map(|d| Timestamp((d * 24 + 9) * 3_600_000_000)).collect();
        History::of_moments(source, &times)
    }

    fn wanted<'a>(
        schedules: &'a [Schedule],
        histories: &[History],
        before: &'a [Option<MovedPolls>],
    ) -> Vec<WantedPolls<'a>> {
        let wanted = |((schedule, history), before): ((&'a Schedule, &History), &'a Option<MovedPolls>)| WantedPolls {
            source: &schedule.source,
            updates: history.updates(),
            period: schedule.period,
            poll_times: &schedule.poll_times,
            before: before.as_ref(),
        };
        schedules.iter().zip(histories).zip(before).map(wanted).collect()
    }

    #[test]
    fn a_hosts_limit_is_kept_and_its_price_told() {
        let options = Options { period: Some(Period::Day), polls: 1, ..Options::default() };
        let histories: Vec<History> = (0..5).map(|i| daily(&format!("http://a.org/{i}"), 100 + i)).collect();
        let mut schedules: Vec<Schedule> = histories.iter().map(|h| plan(h, &options).unwrap().schedule).collect();
        let asked = RefCell::new(Vec::new());
        let keep = |schedules: &[Schedule], before: &[Option<MovedPolls>], limit: usize| {
            let history = |i: usize| {
                asked.borrow_mut().push(i);
                Ok::<_, Infallible>(Cow::Borrowed(&histories[i]))
            };
            keep_to_limit(&wanted(schedules, &histories, before), &options, limit, history).unwrap()
        };
        let nothing: Vec<Option<MovedPolls>> = vec![None; 5];
        let (moved, repair) = keep(&schedules, &nothing, 2);
        let times = |i: usize| moved[i].as_ref().map_or(&schedules[i].poll_times, |moved| &moved.poll_times);
        let mut slots: BTreeMap<i64, usize> = BTreeMap::new();
        (0..5).flat_map(times).for_each(|t| *slots.entry(t / 300).or_default() += 1);
        assert!(slots.values().all(|n| *n <= 2), "{slots:?}");
        assert_eq!((repair.moved, repair.dropped), (3, 0));
        assert!(repair.loss > 0.0 && repair.loss < 0.1, "{repair:?}");
        assert!(moved[4].is_none() && moved[3].is_none(), "the busiest keep their times");
        // The same again: nothing is learned for it.
        assert_eq!(asked.take(), [2, 1, 0]);
        assert_eq!(keep(&schedules, &moved, 2), (moved.clone(), repair));
        assert_eq!(asked.take(), [0usize; 0]);
        // With room for one more, only who looks at the slot again has to think.
        let (roomier, _) = keep(&schedules, &moved, 3);
        assert_eq!(roomier, keep(&schedules, &nothing, 3).0);
        // Another host is not concerned.
        schedules.iter_mut().enumerate().for_each(|(i, s)| s.source = format!("http://{i}.org/"));
        assert_eq!(keep(&schedules, &nothing, 1), (nothing.clone(), HostRepair::default()));
    }
}
