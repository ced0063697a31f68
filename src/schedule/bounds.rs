//! The least and the most that recall and freshness can be, where updates are known by their intervals only.
//!
//! Problem: each update of a URL came at some moment of its interval; the intervals of a URL follow each other. Over all
//! ways to place the updates, what are the extremes of the share of versions that polls capture, and of the share of time
//! in which the copy is current? Placing all updates as early or all as late as they can be gives neither.
//!
//! Idea: polls cut time into gaps. A version is captured iff the next update lies in a later gap. The copy is stale from
//! the first update in a gap to the gap's end (or to the last update of all, where time ends). So of an update it only
//! matters in which gap it lies and, where it is the first there, when: in an extreme, as early or as late as interval and
//! gap allow, since all is linear in between. Neighbouring intervals share one gap at most, so that from one update to the
//! next two values suffice: the best with the update in the last gap that its interval touches, and the best with it in
//! one before. Stale time over all time is a ratio, whose extremes are found by Dinkelbach's iteration: the ratio `r` is
//! extreme iff no placement has `stale - r time` beyond 0; a placement that has gives the next `r`.
//!
//! Cost: a round takes time in proportion to the gaps that the intervals touch; the rounds are few.

use super::history::{History, Sequence};
use crate::stats::Update;
use crate::stats::calendar::SECOND;

/// Least and most of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extremes {
    pub recall: (f64, f64),
    pub freshness: (f64, f64),
}

/// The extremes over all placements of a history's updates; `polls` ascending. `None` if there is no version.
#[must_use]
pub(crate) fn extremes(history: &History, polls: &[i64]) -> Option<Extremes> {
    let placed = |sequence: &Sequence| Placeable::new(sequence, polls);
    let sequences: Vec<Placeable<'_>> = history.sequences.iter().filter_map(placed).collect();
    let versions: usize = sequences.iter().map(|sequence| sequence.spans.len() - 1).sum();
    if versions == 0 {
        return None;
    }
    let captured = |sign: i64| {
        let most: Option<i64> = sequences.iter().map(|sequence| sequence.captured(sign)).sum();
        most.map(|most| (sign * most) as f64 / versions as f64)
    };
    let (freshest, stalest) = (stale_share(&sequences, -1.0)?, stale_share(&sequences, 1.0)?);
    let share = |stale: f64| (1.0 - stale).clamp(0.0, 1.0);
    Some(Extremes { recall: (captured(-1)?, captured(1)?), freshness: (share(stalest), share(freshest)) })
}

/// The largest share of stale time for a sign of 1, the least for -1.
fn stale_share(sequences: &[Placeable<'_>], sign: f64) -> Option<f64> {
    const ROUNDS: usize = 100;
    let mut share = 0.5;
    for round in 0..ROUNDS {
        let (mut stale, mut time) = (0.0, 0.0);
        for sequence in sequences {
            let (more_stale, more_time) = sequence.placed_for(sign, share)?;
            stale += more_stale as f64 / SECOND as f64;
            time += more_time as f64 / SECOND as f64;
        }
        let next = if time > 0.0 { stale / time } else { return None };
        // The first share was a guess, so that the second may lie on either side of it.
        if round > 0 && sign * (next - share) <= 1e-15 {
            break;
        }
        share = next;
    }
    Some(share)
}

/// The updates of one URL that are to be placed, and the polls that cut its time.
struct Placeable<'a> {
    polls: &'a [i64],
    /// First and last moment of each update.
    spans: Vec<(i64, i64)>,
    /// No earlier than any moment; ends the gap after the last poll.
    end: i64,
}

/// The best so far with the present update in the last gap that its interval touches, and in one before.
#[derive(Clone, Copy)]
struct Best<T> {
    last_gap: usize,
    before: Option<T>,
    last: Option<T>,
}

impl<T: Copy> Best<T> {
    fn new(last_gap: usize) -> Self {
        Self { last_gap, before: None, last: None }
    }

    /// Takes a way that ends in a gap, if it is better.
    fn take(&mut self, gap: usize, way: T, value: impl Fn(T) -> f64) {
        let place = if gap == self.last_gap { &mut self.last } else { &mut self.before };
        if place.is_none_or(|best| value(way) > value(best)) {
            *place = Some(way);
        }
    }

    /// The best that ends in a gap before this one.
    fn best_before(&self, gap: usize, value: impl Fn(T) -> f64) -> Option<T> {
        match (self.before, self.last.filter(|_| self.last_gap < gap)) {
            (Some(a), Some(b)) => Some(if value(b) > value(a) { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    /// The best that ends in this gap, for a gap no earlier than the last.
    fn best_in(&self, gap: usize) -> Option<T> {
        self.last.filter(|_| self.last_gap == gap)
    }
}

/// A placement of the updates so far.
#[derive(Clone, Copy)]
struct Placement {
    /// Stale time, where every gap with an update is stale to its end.
    stale: i64,
    first: i64,
}

impl<'a> Placeable<'a> {
    /// `None` if it has no version.
    fn new(sequence: &Sequence, polls: &'a [i64]) -> Option<Self> {
        let span = |update: &Update| match update.exact() {
            Some(time) => (time.0, time.0),
            None => (update.after.0 + 1, update.before.0),
        };
        let spans: Vec<(i64, i64)> = sequence.updates.iter().map(span).collect();
        let end = spans.iter().map(|(_, to)| *to).max().filter(|_| spans.len() > 1)?;
        Some(Self { polls, spans, end })
    }

    /// The gap of a moment: gap `g` ends with poll `g`, which sees what came up to its own moment.
    fn gap(&self, moment: i64) -> usize {
        self.polls.partition_point(|poll| *poll < moment)
    }

    fn gap_end(&self, gap: usize) -> i64 {
        self.polls.get(gap).copied().unwrap_or(self.end)
    }

    /// The gaps that an interval touches, each with the first and last moment in both.
    fn gaps(&self, (from, to): (i64, i64)) -> impl Iterator<Item = (usize, [i64; 2])> {
        (self.gap(from)..=self.gap(to)).map(move |gap| {
            let begin = gap.checked_sub(1).map_or(from, |before| from.max(self.polls[before] + 1));
            (gap, [begin, self.polls.get(gap).map_or(to, |end| to.min(*end))])
        })
    }

    /// Versions captured at most, times the sign: with -1, at least.
    fn captured(&self, sign: i64) -> Option<i64> {
        let value = |way: i64| way as f64;
        let mut best: Option<Best<i64>> = None;
        for span in &self.spans {
            let mut next = Best::new(self.gap(span.1));
            for (gap, _) in self.gaps(*span) {
                match &best {
                    None => next.take(gap, 0, value),
                    Some(best) => {
                        let captured = best.best_before(gap, value).map(|way| way + sign);
                        [captured, best.best_in(gap)].into_iter().flatten().for_each(|way| next.take(gap, way, value));
                    }
                }
            }
            best = Some(next);
        }
        best?.best_before(usize::MAX, value)
    }

    /// Stale time and all time of the placement with the most of `sign (stale - share time)`.
    fn placed_for(&self, sign: f64, share: f64) -> Option<(i64, i64)> {
        let origin = self.spans[0].0;
        let value = |way: Placement| sign * (way.stale as f64 + share * (way.first - origin) as f64);
        let (last, others) = self.spans.split_last()?;
        let mut best: Option<Best<Placement>> = None;
        for span in others {
            let mut next = Best::new(self.gap(span.1));
            for (gap, moments) in self.gaps(*span) {
                for moment in moments {
                    let stale = self.gap_end(gap) - moment;
                    let way = match &best {
                        None => Some(Placement { stale, first: moment }),
                        Some(best) => best
                            .best_before(gap, value)
                            .map(|way| Placement { stale: way.stale + stale, first: way.first }),
                    };
                    way.into_iter().for_each(|way| next.take(gap, way, value));
                }
                best.and_then(|best| best.best_in(gap)).into_iter().for_each(|way| next.take(gap, way, value));
            }
            best = Some(next);
        }
        // Time ends with the last update, and so does the stale time of its gap.
        let (best, mut found) = (best?, None::<(f64, (i64, i64))>);
        for (gap, moments) in self.gaps(*last) {
            for moment in moments {
                let cut = best.best_in(gap).map(|way| (way.stale + moment - self.gap_end(gap), way.first));
                let uncut = best.best_before(gap, value).map(|way| (way.stale, way.first));
                for (stale, first) in [cut, uncut].into_iter().flatten() {
                    let time = moment - first;
                    let worth = sign * (stale as f64 - share * time as f64);
                    if found.is_none_or(|(most, _)| worth > most) {
                        found = Some((worth, (stale, time)));
                    }
                }
            }
        }
        found.map(|(_, sums)| sums)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::evaluate::{Tally, replay};
    use super::*;
    use crate::model::Timestamp;

    /// All placements of some updates, moment by moment.
    fn placements(spans: &[(i64, i64)]) -> Vec<Vec<i64>> {
        let mut all = vec![Vec::new()];
        for (from, to) in spans {
            all = all
                .into_iter()
                .flat_map(|placed: Vec<i64>| {
                    (*from..=*to).map(move |moment| placed.iter().copied().chain([moment]).collect())
                })
                .collect();
        }
        all
    }

    /// Every placement of every sequence, replayed.
    fn brute_force(history: &History, polls: &[i64]) -> Option<Extremes> {
        let of_sequence = |sequence: &Sequence| -> Vec<Tally> {
            let span = |u: &Update| u.exact().map_or((u.after.0 + 1, u.before.0), |t| (t.0, t.0));
            let spans: Vec<(i64, i64)> = sequence.updates.iter().map(span).collect();
            placements(&spans).iter().map(|moments| replay(polls, moments)).collect()
        };
        let mut sums = vec![Tally::default()];
        for sequence in &history.sequences {
            let tallies = of_sequence(sequence);
            let with = |sum: &Tally| -> Vec<Tally> {
                let plus = |tally: &Tally| {
                    let mut sum = *sum;
                    sum.add(tally);
                    sum
                };
                tallies.iter().map(plus).collect()
            };
            sums = sums.iter().flat_map(with).collect();
        }
        let range = |value: fn(&Tally) -> Option<f64>| {
            let values: Option<Vec<f64>> = sums.iter().map(value).collect();
            let values = values?;
            Some((values.iter().copied().fold(1.0, f64::min), values.iter().copied().fold(0.0, f64::max)))
        };
        Some(Extremes { recall: range(|t| t.metrics().recall)?, freshness: range(|t| t.metrics().freshness)? })
    }

    fn near(a: (f64, f64), b: (f64, f64)) -> bool {
        (a.0 - b.0).abs() < 1e-12 && (a.1 - b.1).abs() < 1e-12
    }

    /// Updates of one URL: for each the quiet time before it and the width of its interval, 0 for a known moment.
    fn sequence(steps: &[(i64, i64)]) -> Sequence {
        let (mut now, mut updates) = (100, Vec::new());
        for (quiet, width) in steps {
            now += quiet;
            let (after, before) = (Timestamp(now), Timestamp(now + width.max(&1)));
            updates.push(if *width == 0 { Update::at(before) } else { Update::within(after, before) });
            now = before.0;
        }
        Sequence::new(updates).0
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        #[test]
        fn extremes_are_those_of_all_placements(
            urls in prop::collection::vec(prop::collection::vec((0i64..5, 0i64..6), 1..5), 1..3),
            polls in prop::collection::btree_set(98i64..135, 0..9),
        ) {
            let history = History::new("s", urls.iter().map(|steps| sequence(steps)).collect());
            let polls: Vec<i64> = polls.into_iter().collect();
            let (found, expected) = (extremes(&history, &polls), brute_force(&history, &polls));
            match (found, expected) {
                (Some(found), Some(expected)) => prop_assert!(
                    near(found.recall, expected.recall) && near(found.freshness, expected.freshness),
                    "{found:?} {expected:?}"
                ),
                (found, _) => prop_assert_eq!(found, None),
            }
        }
    }

    #[test]
    fn earliest_and_latest_are_no_extremes() {
        // A poll in the middle of both intervals: freshest if the first update comes right before a poll, and the second
        // after one.
        let history = History::new("s", vec![sequence(&[(0, 10), (0, 10), (0, 10)])]);
        let polls = [105, 115, 125];
        let found = extremes(&history, &polls).unwrap();
        let edge = |moments: [i64; 3]| replay(&polls, &moments).metrics().freshness.unwrap();
        let edges = [edge([101, 111, 121]), edge([110, 120, 130])];
        assert!(edges.iter().all(|edge| found.freshness.0 < *edge && *edge < found.freshness.1), "{edges:?} {found:?}");
    }
}
