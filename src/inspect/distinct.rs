//! How many different things there are, in bounded memory.
//!
//! Problem: an archive may hold more URLs than fit into memory, and counting them once each is all that is wanted.
//!
//! Idea (k minimum values): keep the smallest `limit` hashes. Up to that many things the count is exact; beyond, the
//! hashes kept are spread like a sample of the whole range, so the largest of them tells how many there are. What is
//! kept depends on the set alone, never on the order of things or on how they were divided among threads.
//!
//! Cost: amortised constant time; at most twice `limit` hashes of 8 bytes. Standard error beyond the limit:
//! `1/sqrt(limit)`, 0.1 % for a million.

use std::collections::HashSet;

#[derive(Clone, Debug)]
pub(super) struct Distinct {
    kept: HashSet<u64>,
    limit: usize,
    /// Hashes above this one are not kept.
    ceiling: u64,
}

impl Distinct {
    #[must_use]
    pub(super) fn new(limit: usize) -> Self {
        Self { kept: HashSet::new(), limit: limit.max(2), ceiling: u64::MAX }
    }

    /// `hash` must be spread evenly: the digest of the thing.
    pub(super) fn add(&mut self, hash: u64) {
        if hash <= self.ceiling && self.kept.insert(hash) && self.kept.len() >= 2 * self.limit {
            self.trim();
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.ceiling = self.ceiling.min(other.ceiling);
        for hash in other.kept {
            self.add(hash);
        }
    }

    /// The number of different hashes, and whether it is exact.
    #[must_use]
    pub(super) fn count(&self) -> (u64, bool) {
        if self.kept.len() <= self.limit && self.ceiling == u64::MAX {
            return (self.kept.len() as u64, true);
        }
        let mut hashes: Vec<u64> = self.kept.iter().copied().collect();
        let at = self.limit.min(hashes.len()) - 1;
        let (_, largest, _) = hashes.select_nth_unstable(at);
        let estimate = (at as u128 * (1u128 << 64)) / (u128::from(*largest) + 1);
        (u64::try_from(estimate).unwrap_or(u64::MAX), false)
    }

    fn trim(&mut self) {
        let mut hashes: Vec<u64> = self.kept.drain().collect();
        let (_, largest, _) = hashes.select_nth_unstable(self.limit - 1);
        self.ceiling = *largest;
        self.kept.extend(&hashes[..self.limit]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Digest;

    fn hash(n: u64) -> u64 {
        Digest::of(&n.to_le_bytes()).low64()
    }

    proptest! {
        /// Small sets are counted, large ones estimated, and neither order nor division among threads is seen.
        #[test]
        fn as_a_set_would(numbers in prop::collection::vec(0u64..400, 0..800), cut in 0usize..800) {
            let exact = numbers.iter().collect::<HashSet<_>>().len() as u64;
            let mut whole = Distinct::new(64);
            numbers.iter().for_each(|n| whole.add(hash(*n)));
            let (count, is_exact) = whole.count();
            prop_assert_eq!(is_exact, exact <= 64);
            if is_exact {
                prop_assert_eq!(count, exact);
            } else {
                // Four standard errors.
                prop_assert!(count.abs_diff(exact) * 8 <= exact * 4, "{} for {}", count, exact);
            }
            let mut parts = [Distinct::new(64), Distinct::new(64)];
            for (i, n) in numbers.iter().enumerate().rev() {
                parts[usize::from(i < cut)].add(hash(*n));
            }
            let [mut one, other] = parts;
            one.merge(other);
            prop_assert_eq!(one.count(), (count, is_exact));
        }
    }

    #[test]
    fn large_sets_are_estimated_well() {
        let mut distinct = Distinct::new(10_000);
        (0..300_000).for_each(|n| distinct.add(hash(n)));
        let (count, exact) = distinct.count();
        assert!(!exact && (288_000..=312_000).contains(&count), "{count}");
        assert!(distinct.kept.len() <= 20_000);
    }
}
