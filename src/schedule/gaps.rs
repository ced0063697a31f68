//! What a gap between two polls costs: missed versions, stale time, delay.
//!
//! Updates are put on the circle of slots once ([`Pattern`]); a poll at slot `p` stands at the slot's beginning, so it
//! sees an update iff the update's slot, rounded up, is at most `p`. In a gap `(a, b]` of one period only the *first*
//! update matters for recall (one version is captured however many there were) and for freshness (the copy is stale
//! from it to `b`); all matter for delay. An update with the previous one `d` slots before it is first in `(a, b]` iff
//! `a < x <= b` and `x - d <= a`, so each cost is a sum over a rectangle of points `(x, x - d)`.
//!
//! For staleness the `k`-th update of a gap counts `1 / k`. That is a sum over rectangles too: an update counts
//! `1 / j - 1 / (j + 1)` in every gap that has no more than `j` updates up to it, for all `j`, and these add up to `1 / k`.
//! So it is `k` points with the distances to the `k`-th updates before it ([`layers`]). (As any penalty that grows with the
//! number of unseen updates, it is Monge: what a longer gap adds only grows with where the gap ends.)
//!
//! Up to [`DENSE_SLOTS`] slots the costs are a table, filled in `s^2 + n`; beyond it sums come from a wavelet matrix
//! over the points, in `log s` a gap and `n log s` memory, never `s^2`.
//!
//! A Poisson process of the same rate is mixed in (`shrinkage`): an empirical optimum overfits the noise of a short
//! history. Its costs depend on the gap's length only and are convex, so the mixture stays Monge. Where nothing of the
//! pattern is left in the mixture, the lengths are all there is.

use super::objective::Objective;
use super::optimal::GapCost;
use crate::stats::whole::{count, small};

/// Largest circle whose costs are kept as a table (8 MB).
pub(crate) const DENSE_SLOTS: usize = 1_024;

/// One update on the circle of slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The first slot at or after it, in `1..=slots`: slot 0 of the next period is `slots`.
    pub slot: u32,
    /// Slots since the update before it, at most a period; 0 if they share a slot, which hides the earlier one.
    pub since: u32,
    /// Where it is, in slots: in `(slot - 1, slot]`.
    pub at: f64,
    pub weight: f64,
    /// The point before it in the list is the update before it, `since` slots earlier.
    pub follows: bool,
}

/// The updates of a source on the circle. Weights add up to 1.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub slots: usize,
    pub points: Vec<Point>,
    /// Mean number of updates in a period.
    pub per_period: f64,
}

impl Pattern {
    /// Adds an update at `line` slots on the unrolled line, `previous` the one before it in the same sequence.
    pub(crate) fn push(&mut self, line: f64, previous: Option<f64>, weight: f64) {
        let s = self.slots as f64;
        let slot = line.ceil();
        let since = previous.map_or(s, |p| (slot - p.ceil()).clamp(0.0, s));
        let turn = ((slot - 1.0) / s).floor() * s;
        self.points.push(Point {
            slot: small(count(slot - turn)),
            since: small(count(since)),
            at: line - turn,
            weight,
            follows: previous.is_some() && since < s,
        });
    }

    pub(crate) fn normalise(&mut self) {
        let total: f64 = self.points.iter().map(|p| p.weight).sum();
        if total > 0.0 {
            for point in &mut self.points {
                point.weight /= total;
            }
        }
    }

    /// Both patterns, each with its share.
    #[must_use]
    pub fn mixed(mut self, other: &Self, share: f64) -> Self {
        debug_assert_eq!(self.slots, other.slots, "patterns of different circles");
        for point in &mut self.points {
            point.weight *= 1.0 - share;
        }
        self.points.extend(other.points.iter().map(|p| Point { weight: p.weight * share, ..*p }));
        self
    }
}

/// How points that count in a gap make its cost: `rate` a slot from each to the gap's end, less what is gained once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    gain: f64,
    rate: f64,
    /// Rate times position.
    moment: f64,
}

impl Sums {
    fn of(gain: f64, rate: f64, at: f64) -> Self {
        Self { gain, rate, moment: rate * at }
    }

    fn add(&mut self, other: Self) {
        self.gain += other.gain;
        self.rate += other.rate;
        self.moment += other.moment;
    }

    fn plus(mut self, other: Self) -> Self {
        self.add(other);
        self
    }

    fn minus(self, other: Self) -> Self {
        Self { gain: self.gain - other.gain, rate: self.rate - other.rate, moment: self.moment - other.moment }
    }

    /// The same for points one period later.
    fn turned(self, slots: f64) -> Self {
        Self { moment: self.moment + self.rate * slots, ..self }
    }

    /// Cost of a gap that ends at `to`.
    fn cost(self, to: f64) -> f64 {
        to * self.rate - self.moment - self.gain
    }
}

/// A point that counts in the gaps that end at or after it and begin at most `since` slots before it.
struct FirstPoint {
    slot: u32,
    since: u32,
    sums: Sums,
}

/// Gap costs of a pattern under an objective.
pub struct PatternCost {
    slots: usize,
    store: Store,
}

enum Store {
    /// `[length]`: the pattern has no share in the cost.
    Lengths(Vec<f64>),
    /// `[to % slots * slots + length - 1]`: the solver looks at all gaps with one end after the other.
    Table(Vec<f64>),
    Sparse(Box<Sparse>),
}

struct Sparse {
    firsts: Firsts,
    /// `[x]`: all updates up to slot `x`.
    all: Vec<Sums>,
    /// `[length]`: the Poisson share of the cost.
    poisson: Vec<f64>,
}

impl PatternCost {
    #[must_use]
    pub fn new(pattern: &Pattern, objective: Objective, shrinkage: f64) -> Self {
        Self::with_limit(pattern, objective, shrinkage, DENSE_SLOTS)
    }

    pub(crate) fn with_limit(pattern: &Pattern, objective: Objective, shrinkage: f64, dense: usize) -> Self {
        let s = pattern.slots;
        let share = if pattern.points.is_empty() { 0.0 } else { 1.0 - shrinkage.clamp(0.0, 1.0) };
        let poisson: Vec<f64> = (0..=s)
            .map(|length| {
                let cost = poisson_cost(pattern.per_period, length as f64 / s as f64, objective);
                if share < 1.0 { (1.0 - share) * cost } else { 0.0 }
            })
            .collect();
        if share == 0.0 {
            return Self { slots: s, store: Store::Lengths(poisson) };
        }
        let mut all = vec![Sums::default(); s + 1];
        for point in &pattern.points {
            all[point.slot as usize].add(Sums::of(0.0, share * objective.delay / s as f64 * point.weight, point.at));
        }
        for x in 1..=s {
            all[x] = all[x].plus(all[x - 1]);
        }
        let firsts = first_points(pattern, objective, share);
        let store = if s <= dense {
            Store::Table(table(s, firsts, &all, &poisson))
        } else {
            Store::Sparse(Box::new(Sparse { firsts: Firsts::new(s, firsts), all, poisson }))
        };
        Self { slots: s, store }
    }
}

impl GapCost for PatternCost {
    fn slots(&self) -> usize {
        self.slots
    }

    #[inline]
    fn cost(&self, from: usize, to: usize) -> f64 {
        match &self.store {
            Store::Lengths(lengths) => lengths[to - from],
            Store::Table(cells) => cells[to % self.slots * self.slots + (to - from - 1)],
            Store::Sparse(sparse) => {
                let all = between(&sparse.all, self.slots, from, to);
                sparse.firsts.sum(from, to).plus(all).cost(to as f64) + sparse.poisson[to - from]
            }
        }
    }

    fn least(&self, first: usize, before: &[f64], to: usize) -> (f64, usize) {
        match &self.store {
            Store::Lengths(lengths) => least_of(&lengths[to - first + 1 - before.len()..=to - first], first, before),
            Store::Table(cells) => {
                let longest = to % self.slots * self.slots + (to - first);
                least_of(&cells[longest - before.len()..longest], first, before)
            }
            Store::Sparse(_) => {
                let mut best = (f64::INFINITY, first);
                for (i, before) in before.iter().enumerate() {
                    if *before < f64::INFINITY {
                        let value = before + self.lifted(first + i, to);
                        if value < best.0 {
                            best = (value, first + i);
                        }
                    }
                }
                best
            }
        }
    }
}

/// The least of `before[i]` plus the cost from there, where `costs` has that of the last one first.
#[inline]
fn least_of(costs: &[f64], first: usize, before: &[f64]) -> (f64, usize) {
    let mut best = (f64::INFINITY, first);
    for (i, (before, cost)) in before.iter().zip(costs.iter().rev()).enumerate() {
        let value = before + cost;
        if value < best.0 {
            best = (value, first + i);
        }
    }
    best
}

/// The points whose sums are what first updates, or unseen ones, cost; `share` of the empirical pattern.
fn first_points(pattern: &Pattern, objective: Objective, share: f64) -> Vec<FirstPoint> {
    let a_slot = share * pattern.per_period / pattern.slots as f64;
    let mut found: Vec<FirstPoint> = Vec::new();
    if objective.recall > 0.0 || objective.freshness > 0.0 {
        found.extend(pattern.points.iter().map(|point| FirstPoint {
            slot: point.slot,
            since: point.since,
            sums: Sums::of(
                share * objective.recall * point.weight,
                a_slot * objective.freshness * point.weight,
                point.at,
            ),
        }));
    }
    if objective.staleness > 0.0 {
        layers(pattern, &mut |point, since, weight| {
            let sums = Sums::of(0.0, a_slot * objective.staleness * weight, point.at);
            found.push(FirstPoint { slot: point.slot, since, sums });
        });
    }
    found.retain(|point| point.since > 0);
    found
}

/// Calls `add` with each point, the distance to its `j`-th update before it, and what it weighs in gaps up to there.
/// Beyond the [`MOST_LAYERS`]-th unseen update all count the same, which bounds the work and is Monge as well.
fn layers(pattern: &Pattern, add: &mut impl FnMut(&Point, u32, f64)) {
    let s = small(pattern.slots);
    for (i, point) in pattern.points.iter().enumerate() {
        let (mut since, mut j) = (0, 1);
        for before in pattern.points[..=i].iter().rev() {
            since = (since + before.since).min(s);
            let weight = point.weight / f64::from(j);
            if !before.follows || since == s || j == MOST_LAYERS {
                add(point, since, weight);
                break;
            }
            add(point, since, weight / f64::from(j + 1));
            j += 1;
        }
    }
}

/// Unseen updates that differ in what they add to staleness.
const MOST_LAYERS: u32 = 64;

/// Sum over `(from, to]` from sums up to each slot.
fn between(upto: &[Sums], s: usize, from: usize, to: usize) -> Sums {
    if to <= s { upto[to].minus(upto[from]) } else { upto[s].minus(upto[from]).plus(upto[to - s].turned(s as f64)) }
}

/// Cost of a gap of `share` of a period under a Poisson process with `rate` updates a period.
#[must_use]
pub(crate) fn poisson_cost(rate: f64, share: f64, objective: Objective) -> f64 {
    let x = rate * share;
    // Captured versions per update, and the part of a period in which the copy is up to date: the same function, which
    // is the freshness of Cho and Garcia-Molina. (Where x is tiny, 1 - e^-x loses its digits.)
    let fresh = if x > 1e-6 { -(-x).exp_m1() / rate } else { share * (1.0 - x / 2.0) };
    let staleness = if objective.staleness > 0.0 { objective.staleness * poisson_staleness(x, share) } else { 0.0 };
    objective.freshness * (share - fresh) - objective.recall * fresh + objective.delay * share * share / 2.0 + staleness
}

/// Harmonic staleness summed over a gap of `share` of a period in which a Poisson process has `x` updates on average.
///
/// After `u` updates on average the mean of `1 + 1/2 + … + 1/n` is `Ein(u)`, the integral of `(1 - e^-t) / t`.
fn poisson_staleness(x: f64, share: f64) -> f64 {
    if x < 1e-4 {
        return share * x / 2.0 * (1.0 - x / 6.0);
    }
    share * (ein(x) - 1.0 - (-x).exp_m1() / x)
}

/// The entire exponential integral.
fn ein(x: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    if x > 6.0 {
        // Of the part beyond the logarithm, a continued fraction from its tail.
        let tail = (1..=40).rev().fold(0.0, |tail, k| {
            let k = f64::from(k);
            k * k / (x + 2.0 * k + 1.0 - tail)
        });
        return EULER + x.ln() + (-x).exp() / (x + 1.0 - tail);
    }
    let (mut sum, mut term) = (0.0, -1.0);
    for k in 1..60 {
        let k = f64::from(k);
        term *= -x / k;
        sum += term / k;
    }
    sum
}

/// The table: for each start, gaps grow slot by slot, and slot `x` adds the points whose previous update is at least as
/// far back as the gap is long.
fn table(s: usize, mut points: Vec<FirstPoint>, all: &[Sums], poisson: &[f64]) -> Vec<f64> {
    points.sort_by_key(|p| (p.slot, std::cmp::Reverse(p.since)));
    let mut start = vec![0usize; s + 2];
    for point in &points {
        start[point.slot as usize + 1] += 1;
    }
    for x in 1..start.len() {
        start[x] += start[x - 1];
    }
    // first[x]: points of slot x with `since` at least the distance from the present start.
    let mut first = vec![Sums::default(); s + 1];
    let mut next: Vec<usize> = start[..=s].to_vec();
    let mut cells = vec![0.0; s * s];
    // The start before slot 0 is the last slot: distances from there are x itself plus one, all of them at most s.
    for x in 1..=s {
        advance(&mut first[x], &mut next[x], &points[start[x]..start[x + 1]], start[x], x + 1);
    }
    for from in 0..s {
        for x in 1..=s {
            let distance = if x > from { x - from } else { x + s - from };
            if distance == s {
                // This slot has just been passed: from now on it is the farthest.
                (first[x], next[x]) = (Sums::default(), start[x]);
            }
            advance(&mut first[x], &mut next[x], &points[start[x]..start[x + 1]], start[x], distance);
        }
        let mut sum = Sums::default();
        for length in 1..=s {
            let to = from + length;
            let here = if to <= s { first[to] } else { first[to - s].turned(s as f64) };
            sum.add(here);
            cells[to % s * s + length - 1] = sum.plus(between(all, s, from, to)).cost(to as f64) + poisson[length];
        }
    }
    cells
}

fn advance(sum: &mut Sums, next: &mut usize, points: &[FirstPoint], start: usize, distance: usize) {
    while let Some(point) = points.get(*next - start) {
        if (point.since as usize) < distance {
            break;
        }
        sum.add(point.sums);
        *next += 1;
    }
}

/// Sums over the points that are first in a gap, for any gap, without a table of gaps.
struct Firsts {
    slots: usize,
    /// `[x]`: points up to slot `x` that are first in some gap.
    upto: Vec<Sums>,
    /// `[a]`: points with `slot - since <= a`.
    since_upto: Vec<Sums>,
    /// Points up to slot `x`, in the matrix's order.
    rank: Vec<u32>,
    matrix: Wavelet,
}

impl Firsts {
    fn new(s: usize, mut points: Vec<FirstPoint>) -> Self {
        // Points of equal (slot, since) are merged, so that a long history on a small circle takes little room.
        points.sort_by_key(|point| (point.slot, point.since));
        let mut merged: Vec<(u32, u32, Sums)> = Vec::new();
        for FirstPoint { slot, since, sums } in points {
            match merged.last_mut() {
                Some((same, gap, sum)) if (*same, *gap) == (slot, since) => sum.add(sums),
                _ => merged.push((slot, since, sums)),
            }
        }
        let mut upto = vec![Sums::default(); s + 1];
        let mut since_upto = vec![Sums::default(); s + 1];
        let mut rank = vec![0u32; s + 1];
        for (slot, since, sums) in &merged {
            upto[*slot as usize].add(*sums);
            since_upto[slot.saturating_sub(*since) as usize].add(*sums);
            rank[*slot as usize] += 1;
        }
        for x in 1..=s {
            upto[x] = upto[x].plus(upto[x - 1]);
            since_upto[x] = since_upto[x].plus(since_upto[x - 1]);
            rank[x] += rank[x - 1];
        }
        let slots = u32::try_from(s).expect("slots fit in 32 bits");
        let keys: Vec<u32> = merged.iter().map(|(slot, since, _)| slot + slots - since).collect();
        let sums: Vec<Sums> = merged.iter().map(|(_, _, sums)| *sums).collect();
        Self { slots: s, upto, since_upto, rank, matrix: Wavelet::new(&keys, &sums, 2 * slots) }
    }

    fn sum(&self, from: usize, to: usize) -> Sums {
        let s = self.slots;
        if to <= s {
            // Points up to `to` whose previous is up to `from`; those up to `from` themselves have it too.
            self.matrix.below(self.rank[to], small(from + s + 1)).minus(self.upto[from])
        } else {
            let this_period = self.since_upto[from].minus(self.upto[from]);
            let next_period = self.matrix.below(self.rank[to - s], small(from + 1));
            this_period.plus(next_period.turned(s as f64))
        }
    }
}

/// Sums over the points among the first `n` whose key is below a bound, in one step per bit of the key.
struct Wavelet {
    levels: Vec<Level>,
}

struct Level {
    bit: u32,
    /// Of the first `i` points in this level's order, how many have the bit clear.
    zeros: Vec<u32>,
    /// Sums over these points.
    sums: Vec<Sums>,
    all_zeros: u32,
}

impl Wavelet {
    fn new(keys: &[u32], sums: &[Sums], limit: u32) -> Self {
        let bits = u32::BITS - limit.leading_zeros();
        let mut order: Vec<(u32, Sums)> = keys.iter().copied().zip(sums.iter().copied()).collect();
        let mut levels = Vec::with_capacity(bits as usize);
        for bit in (0..bits).rev() {
            let mut zeros = Vec::with_capacity(order.len() + 1);
            let mut running = Vec::with_capacity(order.len() + 1);
            let (mut count, mut sum) = (0u32, Sums::default());
            zeros.push(0);
            running.push(sum);
            for (key, sums) in &order {
                if key >> bit & 1 == 0 {
                    count += 1;
                    sum.add(*sums);
                }
                zeros.push(count);
                running.push(sum);
            }
            let (clear, set): (Vec<_>, Vec<_>) = order.into_iter().partition(|(key, _)| key >> bit & 1 == 0);
            order = clear;
            order.extend(set);
            levels.push(Level { bit, zeros, sums: running, all_zeros: count });
        }
        Self { levels }
    }

    fn below(&self, n: u32, bound: u32) -> Sums {
        let (mut low, mut high) = (0u32, n);
        let mut total = Sums::default();
        for level in &self.levels {
            let (zeros_low, zeros_high) = (level.zeros[low as usize], level.zeros[high as usize]);
            if bound >> level.bit & 1 == 1 {
                total.add(level.sums[high as usize].minus(level.sums[low as usize]));
                low = level.all_zeros + low - zeros_low;
                high = level.all_zeros + high - zeros_high;
            } else {
                (low, high) = (zeros_low, zeros_high);
            }
            if low == high {
                break;
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staleness_of_chance_is_its_integral() {
        for x in [1e-5, 0.003, 0.7, 3.0, 5.9, 6.1, 30.0, 900.0] {
            let steps = 200_000;
            let (mut sum, mut integral) = (0.0, 0.0);
            for i in 0..steps {
                // The middle of each step, weighed so that it is integrated twice.
                let t = x * (f64::from(i) + 0.5) / f64::from(steps);
                let slope = -(-t).exp_m1() / t * x / f64::from(steps);
                integral += (sum + slope / 2.0) / f64::from(steps);
                sum += slope;
            }
            assert!((ein(x) - sum).abs() < 1e-6 * sum, "{x}: {} {sum}", ein(x));
            assert!((poisson_staleness(x, 0.25) - 0.25 * integral).abs() < 1e-6 * integral, "{x}");
        }
    }
}
