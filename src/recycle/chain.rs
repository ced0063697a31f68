//! Old regions made ready for reasoning about windows.
//!
//! A *place* is a region with its page edges settled: if it begins with both pages it has no left end, if it ends
//! with both no right one. (The edge of one page only is an edge: `cat` at the start of q is a word, in the middle of
//! p's `concat` it is none.) A *chain* is a set of places none of which lies inside another, so both ends increase
//! along it; every question about windows then has a linear or logarithmic answer, whatever overlapping, repeated or
//! nested regions a matcher reports. Leaving out regions is always safe: a region only ever saves work.
//!
//! Positions are in whatever unit the extractor counts in.

use crate::extract::Reach;
use crate::model::Region;

/// A position beyond the end of every page.
pub(crate) const FAR: i64 = i64::MAX / 4;

/// A half-open range of positions in the new page.
pub(crate) type Range = (i64, i64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The new page and the shifted old one agree on `[lo, hi)`, page edges included.
    pub(crate) lo: i64,
    pub(crate) hi: i64,
    /// New minus old, in the unit of the chain.
    pub(crate) shift: i64,
    /// Index of the region it was made from.
    pub(crate) region: usize,
}

#[derive(Debug)]
pub(crate) struct Chain {
    places: Vec<Place>,
    reach: Reach,
    /// Length of the new page.
    len: i64,
    /// Every position below is the start of a window of full length.
    starts: i64,
}

impl Chain {
    /// For an extractor whose mentions depend on their windows. Regions and lengths in the unit that `reach` is
    /// counted in.
    pub(crate) fn of_windows(
        regions: impl IntoIterator<Item = Region>,
        old_len: i64,
        new_len: i64,
        reach: Reach,
    ) -> Self {
        // No mention is longer than the page.
        let scope = u32::try_from(new_len.min(i64::from(reach.scope))).unwrap_or(reach.scope);
        let reach = Reach::new(scope, reach.left, reach.right);
        Self::new(regions, old_len, new_len, reach, new_len - i64::from(reach.scope) + 1)
    }

    /// For a scan, which at every start looks as far as the longest match could go, page end or not: in `aaa`, a
    /// match of `a{1,9}` at 0 sees the end of the page.
    pub(crate) fn of_scan(regions: impl IntoIterator<Item = Region>, old_len: i64, new_len: i64, reach: Reach) -> Self {
        Self::new(regions, old_len, new_len, reach, new_len)
    }

    fn new(regions: impl IntoIterator<Item = Region>, old_len: i64, new_len: i64, reach: Reach, starts: i64) -> Self {
        let mut places: Vec<Place> = Vec::new();
        for (index, region) in regions.into_iter().enumerate() {
            if region.is_empty() {
                continue;
            }
            let (start, end) = (i64::from(region.start), i64::from(region.end));
            let from_both_starts = start == 0 && region.old_start == 0;
            let to_both_ends = end == new_len && i64::from(region.old_end()) == old_len;
            let lo = if from_both_starts { -FAR } else { start };
            let hi = if to_both_ends { FAR } else { end };
            places.push(Place { lo, hi, shift: region.shift(), region: index });
        }
        places.sort_by_key(|place| (place.lo, -place.hi));
        let mut furthest = -FAR;
        places.retain(|place| {
            let keeps = place.hi > furthest && place.hi - place.lo >= reach.window();
            if keeps {
                furthest = place.hi;
            }
            keeps
        });
        Self { places, reach, len: new_len, starts }
    }

    /// Both ends increase; each is at least as long as the longest window.
    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    /// Whether the window of a mention lies in some place.
    pub(crate) fn covers(&self, start: i64, end: i64) -> bool {
        let (from, to) = (start - i64::from(self.reach.left), end + i64::from(self.reach.right));
        // Of the places that begin early enough, the last one reaches furthest.
        let after = self.places.partition_point(|place| place.lo <= from);
        after > 0 && to <= self.places[after - 1].hi
    }

    /// What must be extracted blindly: the page without the cores of its super regions. Every mention that no place
    /// covers has its window, as far as the page goes, in one of these. Cores shorter than `least_core` are not worth
    /// a cut.
    pub(crate) fn extraction_ranges(&self, least_core: i64) -> Vec<Range> {
        let gamma = self.reach.gamma();
        let mut ranges = Vec::new();
        let mut from = 0;
        let mut rest = self.places.iter().peekable();
        while let Some(first) = rest.next() {
            // A window across a seam of at least gamma lies on one of its sides.
            let mut hi = first.hi;
            while let Some(next) = rest.next_if(|next| hi - next.lo >= gamma) {
                hi = next.hi;
            }
            // No window begins before -left or ends after len + right.
            let from_start = first.lo <= -i64::from(self.reach.left);
            let to_end = hi >= self.len + i64::from(self.reach.right);
            let core = (
                if from_start { 0 } else { first.lo + gamma },
                if to_end { self.len } else { (hi - gamma).min(self.len) },
            );
            if core.1 - core.0 >= least_core.max(1) {
                if core.0 > from {
                    ranges.push((from, core.0));
                }
                from = core.1;
            }
        }
        if from < self.len {
            ranges.push((from, self.len));
        }
        ranges
    }

    /// The union of all windows that no place covers, clipped to the page: no way of recycling by these
    /// regions can leave any of it unseen, so it is what the work is measured against.
    pub(crate) fn uncovered_windows(&self) -> Vec<Range> {
        let (scope, left, right) =
            (i64::from(self.reach.scope), i64::from(self.reach.left), i64::from(self.reach.right));
        // Shorter windows lie inside those of full length.
        let starts = self.starts;
        let mut ranges = Vec::new();
        let mut add = |from: i64, to: i64| {
            if from < to {
                ranges.push(((from - left).max(0), (to - 1 + scope + right).min(self.len)));
            }
        };
        let mut from = 0;
        for place in &self.places {
            add(from, (place.lo + left).min(starts));
            from = from.max(place.hi - right - scope + 1);
        }
        if self.len > 0 {
            add(from, starts);
        }
        merged(ranges)
    }
}

/// The ranges in order. Those that overlap or touch are joined.
pub(crate) fn merged(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut out: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.0 <= last.1 => last.1 = last.1.max(range.1),
            _ => out.push(range),
        }
    }
    out
}

pub(crate) fn total(ranges: &[Range]) -> u64 {
    ranges.iter().map(|range| u64::try_from(range.1 - range.0).unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Definition 3.1, read literally: some region has the window inside its settled edges.
    fn covered(regions: &[Region], old_len: i64, new_len: i64, from: i64, to: i64) -> bool {
        regions.iter().any(|r| {
            let lo = if r.start == 0 && r.old_start == 0 { -FAR } else { i64::from(r.start) };
            let both = i64::from(r.end) == new_len && i64::from(r.old_end()) == old_len;
            let hi = if both { FAR } else { i64::from(r.end) };
            !r.is_empty() && lo <= from && to <= hi
        })
    }

    fn regions(len: u32, old_len: u32) -> impl Strategy<Value = Vec<Region>> {
        let region = (0..=len, 0..=len, 0..=old_len).prop_map(move |(a, b, old_start)| {
            let (start, end) = (a.min(b), a.max(b));
            Region { start, end: end.min(start + (old_len - old_start)), old_start }
        });
        prop::collection::vec(region, 0..7)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

        #[test]
        fn extraction_ranges_are_exactly_the_uncovered_windows(
            (len, old_len, set) in (0u32..30, 0u32..30).prop_flat_map(|(n, m)| (Just(n), Just(m), regions(n, m))),
            scope in 1u32..6, left in 0u32..4, right in 0u32..4,
        ) {
            let (n, m) = (i64::from(len), i64::from(old_len));
            let reach = Reach::new(scope, left, right);
            let chain = Chain::of_windows(set.iter().copied(), m, n, reach);
            let mut seen = vec![false; len as usize];
            for start in 0..n {
                for end in start + 1..=(start + i64::from(scope)).min(n) {
                    let (from, to) = (start - i64::from(left), end + i64::from(right));
                    let is_covered = covered(&set, m, n, from, to);
                    // Only windows of full length make use of every region; shorter regions are left out.
                    prop_assert!(is_covered || !chain.covers(start, end));
                    if end - start == i64::from(scope).min(n) {
                        prop_assert_eq!(chain.covers(start, end), is_covered);
                    }
                    if !is_covered {
                        (from.max(0)..to.min(n)).for_each(|x| seen[usize::try_from(x).unwrap()] = true);
                    }
                    if !chain.covers(start, end) {
                        let inside = |r: &Range| r.0 <= from.max(0) && to.min(n) <= r.1;
                        prop_assert!(chain.extraction_ranges(0).iter().any(inside));
                        prop_assert!(chain.extraction_ranges(3).iter().any(inside));
                    }
                }
            }
            let uncovered = seen.iter().filter(|&&seen| seen).count() as u64;
            prop_assert_eq!(total(&chain.uncovered_windows()), uncovered);
            prop_assert_eq!(merged(chain.extraction_ranges(0)), chain.uncovered_windows());
        }
    }
}
