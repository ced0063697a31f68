//! The paper's theoretical method, for comparison.
//!
//! Kind `j` is the `j`-th update of a period. Each kind is taken to happen within its support; the ends of the supports
//! cut the period into intervals in which none, one or several kinds can happen. In a *single-update* interval one poll
//! at its end suffices, and one at its beginning where a *multiple-update* interval ends there (the paper's Figure 3
//! polls at 10, 20, 30, 35, 40). The remaining polls go to the multiple-update intervals by condition I: of `K` parts,
//! interval `i` of length `t` gets a share in proportion to `t sqrt C`, with `C` the sum over pairs of kinds of the
//! product of their densities (which equals the paper's subdivision by the greatest common divisor), rounded by largest
//! remainder. Where polls are too few, those with the least expected loss are dropped. Linear in the slots but for the
//! last step.
//!
//! Deviations: a support runs from the 1st to the 99th percentile of its kind, and a kind that happens in less than 5 %
//! of the periods is left out; one stray update would otherwise stretch every support over the whole period. Polls that
//! the method has no use for are not spent.

use super::optimal::GapCost;
use crate::stats::whole::{count, index, whole};

/// When the `j`-th update of a period happens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UpdateKind {
    /// Support in slots, `(start, end]`: a poll at `end` sees it.
    pub start: i64,
    pub end: i64,
    /// Slots of its updates, ascending, and the number of periods they come from.
    slots: Vec<i64>,
    periods: f64,
}

impl UpdateKind {
    /// From the slots of its updates (rounded up) in so many periods.
    #[must_use]
    pub(crate) fn new(mut slots: Vec<i64>, periods: usize) -> Option<Self> {
        if slots.is_empty() || slots.len() * 20 < periods {
            return None;
        }
        slots.sort_unstable();
        let trim = slots.len() / 100;
        let (start, end) = (slots[trim] - 1, slots[slots.len() - 1 - trim]);
        Some(Self { start, end, slots, periods: periods as f64 })
    }

    /// Probability per slot that it happens in `(from, to]`.
    fn density(&self, from: i64, to: i64) -> f64 {
        let inside = self.slots.partition_point(|s| *s <= to) - self.slots.partition_point(|s| *s <= from);
        inside as f64 / self.periods / (to - from) as f64
    }
}

/// The kinds of a history: for each period, the slots of its updates in order.
#[must_use]
pub(crate) fn kinds(periods: &[Vec<i64>]) -> Vec<UpdateKind> {
    let most = periods.iter().map(Vec::len).max().unwrap_or(0);
    (0..most)
        .map_while(|j| UpdateKind::new(periods.iter().filter_map(|p| p.get(j).copied()).collect(), periods.len()))
        .collect()
}

/// An interval in which several kinds can happen.
struct Multiple {
    from: i64,
    to: i64,
    weight: f64,
    /// A poll stands at its end already.
    closed: bool,
}

/// Slots to poll, at most `polls`, ascending. `gaps` is the expected loss by which polls are dropped.
#[must_use]
pub(crate) fn polls(kinds: &[UpdateKind], gaps: &impl GapCost, polls: usize, min_gap: usize) -> Vec<usize> {
    let slots = gaps.slots() as i64;
    let (mut chosen, multiples) = intervals(kinds);
    let spare = polls.saturating_sub(chosen.len());
    chosen.extend(subdivide(&multiples, spare));
    let mut found: Vec<usize> = chosen.into_iter().map(|p| index(p.rem_euclid(slots))).collect();
    found.sort_unstable();
    found.dedup();
    while found.len() > polls || crowded(&found, gaps.slots(), min_gap) {
        let victims: Vec<usize> = if found.len() > polls {
            (0..found.len()).collect()
        } else {
            (0..found.len()).filter(|i| near(&found, gaps.slots(), *i) < min_gap).collect()
        };
        let n = found.len();
        let loss = |i: &usize| {
            if n == 1 {
                return 0.0;
            }
            let here = found[*i];
            let before = if *i == 0 { found[n - 1] } else { found[*i - 1] };
            // Moved to later periods as needed, so that before < here < after.
            let here = if before < here { here } else { here + gaps.slots() };
            let after = here + near(&found, gaps.slots(), *i);
            gaps.lifted(before, after.min(before + gaps.slots())) - gaps.lifted(before, here) - gaps.lifted(here, after)
        };
        let Some(least) = victims.into_iter().min_by(|a, b| loss(a).total_cmp(&loss(b))) else {
            break;
        };
        found.remove(least);
    }
    found
}

/// Distance from poll `i` to the next.
fn near(found: &[usize], slots: usize, i: usize) -> usize {
    if i + 1 == found.len() { found[0] + slots - found[i] } else { found[i + 1] - found[i] }
}

fn crowded(found: &[usize], slots: usize, min_gap: usize) -> bool {
    found.len() > 1 && (0..found.len()).any(|i| near(found, slots, i) < min_gap)
}

fn intervals(kinds: &[UpdateKind]) -> (Vec<i64>, Vec<Multiple>) {
    let mut cuts: Vec<i64> = kinds.iter().flat_map(|k| [k.start, k.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut chosen = Vec::new();
    let mut multiples: Vec<Multiple> = Vec::new();
    let mut after_multiple = false;
    for pair in cuts.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let active: Vec<&UpdateKind> = kinds.iter().filter(|k| k.start <= from && k.end >= to).collect();
        match active.len() {
            0 => {}
            1 => {
                if after_multiple {
                    chosen.push(from);
                    if let Some(last) = multiples.last_mut() {
                        last.closed = true;
                    }
                }
                chosen.push(to);
            }
            _ => {
                let densities: Vec<f64> = active.iter().map(|k| k.density(from, to)).collect();
                let sum: f64 = densities.iter().sum();
                let squares: f64 = densities.iter().map(|d| d * d).sum();
                let pairs = ((sum * sum - squares) / 2.0).max(0.0);
                multiples.push(Multiple { from, to, weight: (to - from) as f64 * pairs.sqrt(), closed: false });
            }
        }
        after_multiple = active.len() > 1;
    }
    chosen.dedup();
    (chosen, multiples)
}

/// Condition I: polls inside the multiple-update intervals.
fn subdivide(multiples: &[Multiple], spare: usize) -> Vec<i64> {
    let total: f64 = multiples.iter().map(|m| m.weight).sum();
    if spare == 0 || total <= 0.0 {
        return Vec::new();
    }
    // An interval whose end is polled anyway has one part more than it gets polls.
    let parts = spare + multiples.iter().filter(|m| m.closed).count();
    let ideal: Vec<f64> = multiples.iter().map(|m| m.weight / total * parts as f64).collect();
    let mut counts: Vec<usize> =
        multiples.iter().zip(&ideal).map(|(m, x)| count(*x).max(usize::from(m.closed))).collect();
    while counts.iter().sum::<usize>() > parts {
        // A closed interval was lifted to one part: take it back where the excess is largest.
        let over = |i: &usize| counts[*i] as f64 - ideal[*i];
        let floor = |i: &usize| counts[*i] > usize::from(multiples[*i].closed);
        match (0..counts.len()).filter(floor).max_by(|a, b| over(a).total_cmp(&over(b)).then(b.cmp(a))) {
            Some(i) => counts[i] -= 1,
            None => break,
        }
    }
    while counts.iter().sum::<usize>() < parts {
        let missing = |i: &usize| ideal[*i] - counts[*i] as f64;
        let next = (0..counts.len()).max_by(|a, b| missing(a).total_cmp(&missing(b)).then(b.cmp(a)));
        counts[next.expect("there are intervals")] += 1;
    }
    let mut found = Vec::new();
    for (multiple, count) in multiples.iter().zip(counts) {
        let inner = if multiple.closed { count.saturating_sub(1) } else { count };
        for j in 1..=inner {
            let into = (multiple.to - multiple.from) as f64 * j as f64 / count as f64;
            found.push(multiple.from + whole(into.round()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Costs nothing: nothing is dropped for its loss.
    struct Free(usize);

    impl GapCost for Free {
        fn slots(&self) -> usize {
            self.0
        }

        fn cost(&self, from: usize, to: usize) -> f64 {
            ((to - from) as f64).powi(2)
        }
    }

    fn kind(from: i64, to: i64) -> UpdateKind {
        UpdateKind::new((from + 1..=to).collect(), index(to - from)).unwrap()
    }

    #[test]
    fn figure_2_polls_at_the_ends() {
        let kinds = [kind(5, 15), kind(25, 35), kind(40, 50)];
        assert_eq!(polls(&kinds, &Free(60), 3, 1), [15, 35, 50]);
        // No use for more.
        assert_eq!(polls(&kinds, &Free(60), 6, 1), [15, 35, 50]);
    }

    #[test]
    fn figure_3_polls_at_10_20_30_35_40() {
        let kinds = [kind(5, 20), kind(10, 35), kind(30, 40)];
        assert_eq!(polls(&kinds, &Free(60), 5, 1), [10, 20, 30, 35, 40]);
        // Five more go inside 10..20 and 30..35 by condition I: t sqrt(C) is 10 sqrt(1/375) and 5 sqrt(1/250).
        let more = polls(&kinds, &Free(60), 10, 1);
        assert_eq!(more.len(), 10);
        let first = more.iter().filter(|p| **p > 10 && **p < 20).count();
        assert_eq!((first, more.iter().filter(|p| **p > 30 && **p < 35).count()), (3, 2));
    }

    #[test]
    fn too_few_polls_drop_the_least_loss() {
        let kinds = [kind(5, 20), kind(10, 35), kind(30, 40)];
        for n in 0..5 {
            assert_eq!(polls(&kinds, &Free(60), n, 1).len(), n);
        }
        assert!(polls(&kinds, &Free(60), 10, 10).windows(2).all(|p| p[1] - p[0] >= 10));
    }

    #[test]
    fn rare_kinds_and_stray_updates_are_left_out() {
        let periods: Vec<Vec<i64>> = (0..200)
            .map(|i| {
                if i == 7 {
                    vec![5, 50]
                } else if i == 9 {
                    vec![44]
                } else {
                    vec![5]
                }
            })
            .collect();
        let kinds = kinds(&periods);
        assert_eq!(kinds.len(), 1);
        assert_eq!((kinds[0].start, kinds[0].end), (4, 5));
    }
}
