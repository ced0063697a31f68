//! The solver and the gap costs against their slow counterparts.

use std::collections::HashMap;

use proptest::prelude::*;

use super::gaps::{Pattern, PatternCost, poisson_cost};
use super::objective::Objective;
use super::optimal::{GapCost, Solution, curve, most_polls, optimal, total_cost};
use crate::model::Rng;
use crate::stats::whole::whole;

const OBJECTIVES: [Objective; 7] = [
    Objective::RECALL,
    Objective::FRESHNESS,
    Objective::DELAY,
    Objective { recall: 1.0, freshness: 0.3, delay: 0.0, staleness: 0.0 },
    Objective { recall: 0.7, freshness: 0.2, delay: 0.5, staleness: 0.0 },
    Objective::STALENESS,
    Objective { recall: 0.4, freshness: 0.1, delay: 0.3, staleness: 0.6 },
];

/// Updates in slots on the unrolled line, ascending.
fn history(random: &mut Rng, slots: usize) -> Vec<f64> {
    let periods = 1 + random.index(5);
    let favourites: Vec<usize> = (0..1 + random.index(4)).map(|_| random.index(slots)).collect();
    let mut line = Vec::new();
    for period in 0..periods {
        for _ in 0..random.index(6) {
            let slot =
                if random.index(3) > 0 { favourites[random.index(favourites.len())] } else { random.index(slots) };
            line.push((period * slots + slot) as f64 + [0.0, 0.25, 0.5][random.index(3)]);
        }
    }
    line.sort_by(f64::total_cmp);
    line.dedup();
    if line.is_empty() {
        line.push(random.index(slots) as f64);
    }
    line
}

fn pattern(line: &[f64], slots: usize) -> Pattern {
    let mut pattern = Pattern { slots, points: Vec::new(), per_period: 1.5 };
    for (i, at) in line.iter().enumerate() {
        pattern.push(*at, i.checked_sub(1).map(|j| line[j]), 1.0);
    }
    pattern.normalise();
    pattern
}

/// A gap's cost by its definition, period by period.
fn naive_cost(line: &[f64], slots: usize, objective: Objective, shrinkage: f64, from: usize, to: usize) -> f64 {
    let (n, s, per_period) = (line.len() as f64, slots as f64, 1.5);
    let last_period = line.last().map_or(0, |x| whole(x / s)) + 2;
    let mut cost = 0.0;
    for period in -2..=last_period {
        let (a, b) = (period as f64 * s + from as f64, period as f64 * s + to as f64);
        let inside: Vec<f64> = line.iter().copied().filter(|u| a < *u && *u <= b).collect();
        if let Some(first) = inside.first() {
            cost -= objective.recall / n;
            cost += objective.freshness * per_period / s * (b - first) / n;
            cost += objective.delay / s * inside.iter().map(|u| b - u).sum::<f64>() / n;
            let unseen = inside.iter().zip(1..).map(|(u, k)| (b - u) / f64::from(k)).sum::<f64>();
            cost += objective.staleness * per_period / s * unseen / n;
        }
    }
    let share = (to - from) as f64 / s;
    (1.0 - shrinkage) * cost + shrinkage * poisson_cost(per_period, share, objective)
}

fn subsets(gaps: &impl GapCost, polls: usize, min_gap: usize) -> f64 {
    let s = gaps.slots();
    let mut best = f64::INFINITY;
    for mask in 0u32..1 << s {
        if mask.count_ones() as usize != polls {
            continue;
        }
        let slots: Vec<usize> = (0..s).filter(|i| mask >> i & 1 == 1).collect();
        let spaced = (0..polls).all(|i| {
            let next = if i + 1 == polls { slots[0] + s } else { slots[i + 1] };
            next - slots[i] >= min_gap
        });
        if spaced {
            best = best.min(total_cost(gaps, &slots));
        }
    }
    best
}

/// The paper's recurrence, corrected: the best cost of a stretch of `k` slots from `i` with `l` polls inside it.
fn recurrence(
    gaps: &impl GapCost,
    i: usize,
    k: usize,
    l: usize,
    min_gap: usize,
    memo: &mut HashMap<(usize, usize, usize), f64>,
) -> f64 {
    let s = gaps.slots();
    let i = i % s;
    if l == 0 {
        return if k < min_gap { f64::INFINITY } else { gaps.cost(i, i + k) };
    }
    if let Some(known) = memo.get(&(i, k, l)) {
        return *known;
    }
    let mut best = f64::INFINITY;
    for j in 1..k {
        let first = recurrence(gaps, i, j, 0, min_gap, memo);
        let rest = recurrence(gaps, i + j, k - j, l - 1, min_gap, memo);
        best = best.min(first + rest);
    }
    memo.insert((i, k, l), best);
    best
}

fn by_recurrence(gaps: &impl GapCost, polls: usize, min_gap: usize) -> f64 {
    let s = gaps.slots();
    let mut memo = HashMap::new();
    (0..s).map(|i| recurrence(gaps, i, s, polls - 1, min_gap, &mut memo)).fold(f64::INFINITY, f64::min)
}

fn check(found: &Solution, gaps: &impl GapCost, polls: usize, min_gap: usize, expected: f64, what: &str) {
    assert_eq!(found.slots.len(), polls, "{what}");
    assert!((found.cost - expected).abs() < 1e-9, "{what}: {} instead of {expected}", found.cost);
    assert!((total_cost(gaps, &found.slots) - found.cost).abs() < 1e-9, "{what}: cost is not that of its polls");
    for i in 0..polls {
        let next = if i + 1 == polls { found.slots[0] + gaps.slots() } else { found.slots[i + 1] };
        assert!(next - found.slots[i] >= min_gap, "{what}: gap below the minimum");
    }
}

#[test]
fn equals_all_subsets_on_2000_cases_of_every_objective() {
    for (o, objective) in OBJECTIVES.into_iter().enumerate() {
        for seed in 0..2_000u64 {
            let mut random = Rng::new(seed * 31 + o as u64);
            let slots = 2 + random.index(10);
            let line = history(&mut random, slots);
            let shrinkage = [0.0, 0.1, 0.5][random.index(3)];
            let limit = if random.index(2) == 0 { 0 } else { 100 };
            let gaps = PatternCost::with_limit(&pattern(&line, slots), objective, shrinkage, limit);
            let min_gap = 1 + random.index(3.min(slots));
            let polls = 1 + random.index(most_polls(slots, min_gap));
            let expected = subsets(&gaps, polls, min_gap);
            let what = format!("objective {o}, seed {seed}, s = {slots}, N = {polls}, gap {min_gap}");
            check(&optimal(&gaps, polls, min_gap), &gaps, polls, min_gap, expected, &what);
        }
    }
}

#[test]
fn equals_the_corrected_recurrence_on_2000_cases() {
    for seed in 0..2_000u64 {
        let mut random = Rng::new(seed + 77_000);
        let slots = 4 + random.index(13);
        let line = history(&mut random, slots);
        let objective = OBJECTIVES[random.index(OBJECTIVES.len())];
        let gaps = PatternCost::new(&pattern(&line, slots), objective, 0.1 * random.index(2) as f64);
        let min_gap = 1 + random.index(2);
        let polls = 1 + random.index(most_polls(slots, min_gap).min(6));
        let expected = by_recurrence(&gaps, polls, min_gap);
        let what = format!("seed {seed}, s = {slots}, N = {polls}, gap {min_gap}");
        check(&optimal(&gaps, polls, min_gap), &gaps, polls, min_gap, expected, &what);
    }
}

/// Every start, every predecessor: `s^3 N`, without any of the shortcuts.
fn every_start(gaps: &impl GapCost, polls: usize, min_gap: usize) -> f64 {
    let s = gaps.slots();
    let mut best = f64::INFINITY;
    for start in 0..s {
        let mut before = vec![f64::INFINITY; s + 1];
        before[0] = 0.0;
        for _ in 0..polls {
            let mut after = vec![f64::INFINITY; s + 1];
            for (to, value) in after.iter_mut().enumerate().skip(min_gap) {
                let reached = before.iter().enumerate().take(to - min_gap + 1).filter(|(_, cost)| cost.is_finite());
                *value = reached
                    .map(|(from, cost)| cost + gaps.lifted(start + from, start + to))
                    .fold(f64::INFINITY, f64::min);
            }
            before = after;
        }
        best = best.min(before[s]);
    }
    best
}

#[test]
fn equals_every_start_on_larger_circles() {
    for seed in 0..120u64 {
        let mut random = Rng::new(seed + 40_000);
        let slots = 30 + random.index(50);
        let line = history(&mut random, slots);
        let objective = OBJECTIVES[random.index(OBJECTIVES.len())];
        let shrinkage = [0.0, 0.1, 1.0][random.index(3)];
        let gaps = PatternCost::with_limit(&pattern(&line, slots), objective, shrinkage, [0, 100][random.index(2)]);
        let min_gap = 1 + random.index(4);
        let polls = 1 + random.index(most_polls(slots, min_gap).min(9));
        let expected = every_start(&gaps, polls, min_gap);
        let what = format!("seed {seed}, s = {slots}, N = {polls}, gap {min_gap}");
        check(&optimal(&gaps, polls, min_gap), &gaps, polls, min_gap, expected, &what);
    }
}

#[test]
fn table_and_matrix_equal_the_definition() {
    for seed in 0..300u64 {
        let mut random = Rng::new(seed + 5_000);
        let slots = 2 + random.index(24);
        let line = history(&mut random, slots);
        let objective = OBJECTIVES[random.index(OBJECTIVES.len())];
        let shrinkage = [0.0, 0.1][random.index(2)];
        let pattern = pattern(&line, slots);
        let table = PatternCost::with_limit(&pattern, objective, shrinkage, usize::MAX);
        let matrix = PatternCost::with_limit(&pattern, objective, shrinkage, 0);
        for from in 0..slots {
            for to in from + 1..=from + slots {
                let expected = naive_cost(&line, slots, objective, shrinkage, from, to);
                for (kind, found) in [("table", table.cost(from, to)), ("matrix", matrix.cost(from, to))] {
                    assert!(
                        (found - expected).abs() < 1e-9,
                        "{kind}, seed {seed}: ({from}, {to}] {found} != {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn curves_are_concave_and_agree_with_single_solutions() {
    for seed in 0..200u64 {
        let mut random = Rng::new(seed + 9_000);
        let slots = 12 + random.index(40);
        let line = history(&mut random, slots);
        let objective = OBJECTIVES[random.index(OBJECTIVES.len())];
        let gaps = PatternCost::new(&pattern(&line, slots), objective, 0.1);
        let curve = curve(&gaps, slots, 1);
        assert_eq!(curve.len(), slots);
        for (i, solution) in curve.iter().enumerate() {
            let alone = optimal(&gaps, i + 1, 1);
            assert!((alone.cost - solution.cost).abs() < 1e-9);
        }
        for three in curve.windows(3) {
            let (first, second) = (three[0].cost - three[1].cost, three[1].cost - three[2].cost);
            assert!(second <= first + 1e-9 && second >= -1e-9, "seed {seed}: gains {first} then {second}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn costs_are_monge(
        line in prop::collection::btree_set(0u32..400, 1..40),
        objective in 0usize..5,
        corners in prop::collection::vec(0usize..40, 4),
    ) {
        let line: Vec<f64> = line.into_iter().map(|u| f64::from(u) / 4.0).collect();
        let gaps = PatternCost::new(&pattern(&line, 20), OBJECTIVES[objective], 0.1);
        let mut c = corners;
        c.sort_unstable();
        prop_assume!(c[1] < c[2] && c[3] - c[0] <= 20 && c[1] < 20);
        let (left, right) = (
            gaps.lifted(c[0], c[2]) + gaps.lifted(c[1], c[3]),
            gaps.lifted(c[0], c[3]) + gaps.lifted(c[1], c[2]),
        );
        prop_assert!(left <= right + 1e-12, "{left} > {right}");
    }
}

#[test]
fn costs_by_length_alone_are_those_of_the_table() {
    let mut random = Rng::new(11);
    for objective in OBJECTIVES {
        let slots = 24;
        let learned = pattern(&history(&mut random, slots), slots);
        let lengths = PatternCost::new(&learned, objective, 1.0);
        // A share of the pattern this small is lost in rounding, but the table is made.
        let table = PatternCost::new(&learned, objective, 1.0 - 1e-16);
        for polls in 1..=slots {
            assert_eq!(optimal(&lengths, polls, 1).slots.len(), polls);
            let (a, b) = (optimal(&lengths, polls, 1), optimal(&table, polls, 1));
            assert!((a.cost - b.cost).abs() < 1e-9, "{a:?} {b:?}");
        }
        for from in 0..slots {
            for to in from + 1..=from + slots {
                assert!((lengths.cost(from, to) - table.cost(from, to)).abs() < 1e-12);
            }
        }
    }
}
