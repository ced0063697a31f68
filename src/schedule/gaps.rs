//! What a gap between two polls costs: missed versions, stale time, delay.
//!
//! Updates are put on the circle of slots once ([`Pattern`]); a poll at slot `p` stands at the slot's beginning, so it
//! sees an update iff the update's slot, rounded up, is at most `p`. In a gap `(a, b]` of one period only the *first*
//! update matters for recall (one version is captured however many there were) and for freshness (the copy is stale
//! from it to `b`); all matter for delay. An update with the previous one `d` slots before it is first in `(a, b]` iff
//! `a < x <= b` and `x - d <= a`, so each cost is a sum over a rectangle of points `(x, x - d)`.
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

/// Two sums over points: of weights, and of weights times position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    weight: f64,
    moment: f64,
}

impl Sums {
    fn add(&mut self, other: Self) {
        self.weight += other.weight;
        self.moment += other.moment;
    }

    fn plus(mut self, other: Self) -> Self {
        self.add(other);
        self
    }

    fn minus(self, other: Self) -> Self {
        Self { weight: self.weight - other.weight, moment: self.moment - other.moment }
    }

    /// The same for points one period later.
    fn turned(self, slots: f64) -> Self {
        Self { weight: self.weight, moment: self.moment + self.weight * slots }
    }
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
    rule: Rule,
    firsts: Firsts,
    /// `[x]`: all updates up to slot `x`.
    all: Vec<Sums>,
    /// `[length]`: the Poisson share of the cost.
    poisson: Vec<f64>,
}

/// How sums become a cost. The factors hold the share of the empirical pattern.
#[derive(Clone, Copy)]
struct Rule {
    captured: f64,
    stale: f64,
    delayed: f64,
}

impl Rule {
    fn cost(self, to: f64, first: Sums, all: Sums) -> f64 {
        self.stale * (to * first.weight - first.moment) - self.captured * first.weight
            + self.delayed * (to * all.weight - all.moment)
    }
}

impl PatternCost {
    #[must_use]
    pub fn new(pattern: &Pattern, objective: Objective, shrinkage: f64) -> Self {
        Self::with_limit(pattern, objective, shrinkage, DENSE_SLOTS)
    }

    pub(crate) fn with_limit(pattern: &Pattern, objective: Objective, shrinkage: f64, dense: usize) -> Self {
        let s = pattern.slots;
        let share = if pattern.points.is_empty() { 0.0 } else { 1.0 - shrinkage.clamp(0.0, 1.0) };
        let rule = Rule {
            captured: share * objective.recall,
            stale: share * objective.freshness * pattern.per_period / s as f64,
            delayed: share * objective.delay / s as f64,
        };
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
            all[point.slot as usize].add(Sums { weight: point.weight, moment: point.weight * point.at });
        }
        for x in 1..=s {
            all[x] = all[x].plus(all[x - 1]);
        }
        let store = if s <= dense {
            Store::Table(table(pattern, rule, &all, &poisson))
        } else {
            Store::Sparse(Box::new(Sparse { rule, firsts: Firsts::new(pattern), all, poisson }))
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
                sparse.rule.cost(to as f64, sparse.firsts.sum(from, to), all) + sparse.poisson[to - from]
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
    objective.freshness * (share - fresh) - objective.recall * fresh + objective.delay * share * share / 2.0
}

/// The table: for each start, gaps grow slot by slot, and slot `x` adds the points whose previous update is at least as
/// far back as the gap is long.
fn table(pattern: &Pattern, rule: Rule, all: &[Sums], poisson: &[f64]) -> Vec<f64> {
    let s = pattern.slots;
    let mut points: Vec<&Point> = pattern.points.iter().filter(|p| p.since > 0).collect();
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
            cells[to % s * s + length - 1] = rule.cost(to as f64, sum, between(all, s, from, to)) + poisson[length];
        }
    }
    cells
}

fn advance(sum: &mut Sums, next: &mut usize, points: &[&Point], start: usize, distance: usize) {
    while let Some(point) = points.get(*next - start) {
        if (point.since as usize) < distance {
            break;
        }
        sum.add(Sums { weight: point.weight, moment: point.weight * point.at });
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
    fn new(pattern: &Pattern) -> Self {
        let s = pattern.slots;
        // Points of equal (slot, since) are merged, so that a long history on a small circle takes little room.
        let mut points: Vec<Point> = pattern.points.iter().filter(|p| p.since > 0).copied().collect();
        points.sort_by(|a, b| (a.slot, a.since).cmp(&(b.slot, b.since)).then(a.at.total_cmp(&b.at)));
        let mut merged: Vec<(u32, u32, Sums)> = Vec::new();
        for point in points {
            let sums = Sums { weight: point.weight, moment: point.weight * point.at };
            match merged.last_mut() {
                Some((slot, since, sum)) if (*slot, *since) == (point.slot, point.since) => sum.add(sums),
                _ => merged.push((point.slot, point.since, sums)),
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
