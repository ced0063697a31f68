//! The exact optimum: `N` polls on a circle of `s` slots with the least total gap cost.
//!
//! Problem: choose slots `p_0 < … < p_{N-1}`; each gap `(p_i, p_{i+1}]`, the last one across the period's end, costs
//! `cost(p_i, p_{i+1})`; minimise the sum, with gaps of at least `min_gap` slots. The cost must be Monge:
//! `cost(a,c) + cost(b,d) <= cost(a,d) + cost(b,c)` for `a <= b <= c <= d`. All of [`super::gaps`] is.
//!
//! Idea, in three steps.
//! 1. With a poll forced at slot 0 this is a shortest path of `N` links on a line. Monge costs make the best
//!    predecessor monotone, in the end and in the number of links, so divide and conquer fills layer `k` with
//!    `s min(log s, s / k)` evaluations instead of `s^2`.
//! 2. An optimal solution `R` interleaves the forced one `P`: `P_i <= R_i <= P_{i+1}`, ends included. (Number both
//!    lifted to the line, `Q` any optimum with `Q_0` its first poll at or after 0. Swapping to the pointwise minimum and
//!    maximum of `P` and `Q` does not cost more; slot 0 stays in the minimum, which thus costs at least `P`, so the
//!    maximum is an optimum with `Q_i >= P_i`. The same with `P` shifted by one index, where slot 0 stays in the
//!    maximum, gives `R`.) So the first poll may be sought in the smallest gap of `P` only, at most `s / N` wide, and
//!    poll `i` in the `i`-th gap after it.
//! 3. Paths of neighbouring starts do not cross, for the same reason: divide and conquer over the starts, each path
//!    bounded by those of the starts around it. All starts together cost `s log^2 s`.
//!
//! Cost: `N s log s + s log^2 s` evaluations, memory `N s` predecessors of four bytes. A curve for every number of
//! polls up to `N` shares step 1. Paper: Ashish, Kulkarni and Wang on source update capture (2003), which fills a table
//! in `s^3 N`; its recurrence, corrected, is an oracle in the tests, and so are all subsets.

/// Cost of the gaps between polls, Monge in `(from, to)`.
pub trait GapCost {
    /// Slots of the circle.
    fn slots(&self) -> usize;

    /// Cost of a gap `(from, to]`, `from < slots`, `from < to <= from + slots`.
    fn cost(&self, from: usize, to: usize) -> f64;

    /// The same for a gap that lies any number of whole periods later.
    fn lifted(&self, from: usize, to: usize) -> f64 {
        let s = self.slots();
        if from >= s { self.cost(from - s, to - s) } else { self.cost(from, to) }
    }

    /// The least of `before[i]` plus the cost from `first + i` to `to`, and its `first + i`, the first of several; gaps
    /// may be lifted. The solver's inner loop.
    fn least(&self, first: usize, before: &[f64], to: usize) -> (f64, usize) {
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

/// Polls at ascending slots and what their gaps cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    pub cost: f64,
    pub slots: Vec<usize>,
}

/// The most polls that fit.
#[must_use]
pub(crate) fn most_polls(slots: usize, min_gap: usize) -> usize {
    slots / min_gap.max(1)
}

/// The best `polls` polls, or as many as fit.
#[must_use]
pub fn optimal(gaps: &impl GapCost, polls: usize, min_gap: usize) -> Solution {
    let polls = polls.min(most_polls(gaps.slots(), min_gap));
    if polls == 0 {
        return Solution { cost: 0.0, slots: Vec::new() };
    }
    let forced = Forced::solve(gaps, polls, min_gap.max(1));
    around(gaps, &forced.path(polls), min_gap.max(1))
}

/// The best solutions for 1, 2, … `polls` polls, as many as fit.
#[must_use]
pub fn curve(gaps: &impl GapCost, polls: usize, min_gap: usize) -> Vec<Solution> {
    let polls = polls.min(most_polls(gaps.slots(), min_gap));
    let forced = Forced::solve(gaps, polls, min_gap.max(1));
    (1..=polls).map(|n| around(gaps, &forced.path(n), min_gap.max(1))).collect()
}

/// Total cost of polls at ascending slots.
#[must_use]
pub fn total_cost(gaps: &impl GapCost, slots: &[usize]) -> f64 {
    let Some((&first, rest)) = slots.split_first() else {
        return 0.0;
    };
    let mut total = 0.0;
    let mut from = first;
    for &to in rest {
        total += gaps.cost(from, to);
        from = to;
    }
    total + gaps.cost(from, first + gaps.slots())
}

/// One layer of the path, filled by divide and conquer.
struct Layer<'a, G> {
    gaps: &'a G,
    min_gap: usize,
    /// Column `first_column + j` has value `before[j]`.
    first_column: usize,
    before: &'a [f64],
    /// Least column of each row, if known: a path with one link more has its last stop no earlier.
    earliest: Option<&'a [u32]>,
    /// Row `first_row + i` gets value `values[i]` and predecessor `from[i]`.
    first_row: usize,
    values: &'a mut [f64],
    from: &'a mut [u32],
}

impl<G: GapCost> Layer<'_, G> {
    fn fill(&mut self) {
        if !self.before.is_empty() {
            self.rows(0, self.values.len(), self.first_column, self.first_column + self.before.len() - 1);
        }
    }

    /// Rows `low..high`, whose best columns lie in `left..=right`.
    fn rows(&mut self, low: usize, high: usize, left: usize, right: usize) {
        if low >= high {
            return;
        }
        let middle = low.midpoint(high);
        let row = self.first_row + middle;
        let (mut best, mut best_column) = (f64::INFINITY, left);
        if row >= left + self.min_gap {
            let last = right.min(row - self.min_gap);
            // Should rounding ever let the bound pass the range, the range holds.
            let first = self.earliest.map_or(left, |e| left.max(e[middle] as usize).min(last));
            let before = &self.before[first - self.first_column..=last - self.first_column];
            (best, best_column) = self.gaps.least(first, before, row);
        }
        self.values[middle] = best;
        self.from[middle] = u32::try_from(best_column).expect("slots fit in 32 bits");
        if best == f64::INFINITY {
            // Nothing reaches this row, hence no row before it either.
            self.values[low..middle].fill(f64::INFINITY);
            self.from[low..middle].fill(u32::try_from(left).expect("slots fit in 32 bits"));
        } else {
            self.rows(low, middle, left, best_column);
        }
        self.rows(middle + 1, high, best_column, right);
    }
}

/// Shortest paths of every number of links from slot 0 around to itself.
struct Forced {
    slots: usize,
    /// `from[(k - 1) * (slots + 1) + c]`: the poll before `c` on the best path of `k` links from 0 to `c`.
    from: Vec<u32>,
}

impl Forced {
    fn solve(gaps: &impl GapCost, polls: usize, min_gap: usize) -> Self {
        let slots = gaps.slots();
        let width = slots + 1;
        let mut before = vec![f64::INFINITY; width];
        before[0] = 0.0;
        let mut values = vec![f64::INFINITY; width];
        let mut from = vec![0u32; polls * width];
        let mut done: Option<&[u32]> = None;
        for from in from.chunks_exact_mut(width) {
            let mut layer = Layer {
                gaps,
                min_gap,
                first_column: 0,
                before: &before,
                earliest: done,
                first_row: 0,
                values: &mut values,
                from,
            };
            layer.fill();
            done = Some(from);
            std::mem::swap(&mut before, &mut values);
        }
        Self { slots, from }
    }

    /// The polls of the best path of `links` links; the first is 0.
    fn path(&self, links: usize) -> Vec<usize> {
        let mut path = vec![0; links];
        let mut at = self.slots;
        for k in (0..links).rev() {
            at = self.from[k * (self.slots + 1) + at] as usize;
            path[k] = at;
        }
        path
    }
}

/// Steps 2 and 3: the best start within the smallest gap of a forced solution.
fn around<G: GapCost>(gaps: &G, forced: &[usize], min_gap: usize) -> Solution {
    let (s, n) = (gaps.slots(), forced.len());
    if n == 1 {
        let mut best = Solution { cost: f64::INFINITY, slots: vec![0] };
        for start in 0..s {
            let cost = gaps.cost(start, start + s);
            if cost < best.cost {
                best = Solution { cost, slots: vec![start] };
            }
        }
        return best;
    }
    let lifted = |i: usize| forced[i % n] + i / n * s;
    let smallest = (0..n).min_by_key(|&i| lifted(i + 1) - lifted(i)).expect("there are polls");
    let low: Vec<usize> = (smallest..smallest + n).map(lifted).collect();
    let high: Vec<usize> = (smallest + 1..=smallest + n).map(lifted).collect();
    let mut search = Starts {
        gaps,
        min_gap,
        best: Solution { cost: f64::INFINITY, slots: forced.to_vec() },
        buffers: Buffers::default(),
    };
    let first = search.path(low[0], &low, &high);
    let last = search.path(high[0], &low, &high);
    search.between(low[0], high[0], first.as_deref().unwrap_or(&low), last.as_deref().unwrap_or(&high));
    let mut best = search.best;
    for slot in &mut best.slots {
        *slot %= s;
    }
    best.slots.sort_unstable();
    best
}

struct Starts<'a, G> {
    gaps: &'a G,
    min_gap: usize,
    best: Solution,
    buffers: Buffers,
}

#[derive(Default)]
struct Buffers {
    before: Vec<f64>,
    values: Vec<f64>,
    from: Vec<u32>,
    /// Where each layer's predecessors begin in `from`.
    layers: Vec<usize>,
}

impl<G: GapCost> Starts<'_, G> {
    /// All starts strictly between two, given the paths of these.
    fn between(&mut self, low: usize, high: usize, low_path: &[usize], high_path: &[usize]) {
        if high - low < 2 {
            return;
        }
        let middle = low.midpoint(high);
        // Rounding may let two paths of equal cost cross by a hair; the window holds both.
        let from: Vec<usize> = low_path.iter().zip(high_path).map(|(a, b)| *a.min(b)).collect();
        let to: Vec<usize> = low_path.iter().zip(high_path).map(|(a, b)| *a.max(b)).collect();
        match self.path(middle, &from, &to) {
            Some(path) => {
                self.between(low, middle, low_path, &path);
                self.between(middle, high, &path, high_path);
            }
            // No path from here keeps the minimum gap: its neighbours keep the wider bounds.
            None => {
                self.between(low, middle, low_path, high_path);
                self.between(middle, high, low_path, high_path);
            }
        }
    }

    /// The best path from `start` around to itself whose poll `i` lies in `low[i]..=high[i]`.
    fn path(&mut self, start: usize, low: &[usize], high: &[usize]) -> Option<Vec<usize>> {
        let n = low.len();
        let end = start + self.gaps.slots();
        let buffers = &mut self.buffers;
        buffers.before.clear();
        buffers.before.push(0.0);
        buffers.from.clear();
        buffers.layers.clear();
        let mut first_column = start;
        for i in 1..=n {
            let (first_row, rows) = if i == n { (end, 1) } else { (low[i], high[i] - low[i] + 1) };
            let offset = buffers.from.len();
            buffers.layers.push(offset);
            buffers.from.resize(offset + rows, 0);
            buffers.values.clear();
            buffers.values.resize(rows, f64::INFINITY);
            let mut layer = Layer {
                gaps: self.gaps,
                min_gap: self.min_gap,
                first_column,
                before: &buffers.before,
                earliest: None,
                first_row,
                values: &mut buffers.values,
                from: &mut buffers.from[offset..],
            };
            layer.fill();
            std::mem::swap(&mut buffers.before, &mut buffers.values);
            first_column = first_row;
        }
        let cost = buffers.before[0];
        if cost == f64::INFINITY {
            return None;
        }
        let mut path = vec![start; n];
        let mut at = buffers.from[buffers.layers[n - 1]] as usize;
        for i in (1..n).rev() {
            path[i] = at;
            at = buffers.from[buffers.layers[i - 1] + at - low[i]] as usize;
        }
        if cost < self.best.cost {
            self.best = Solution { cost, slots: path.clone() };
        }
        Some(path)
    }
}
