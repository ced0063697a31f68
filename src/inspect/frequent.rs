//! Which values are frequent, in bounded memory.
//!
//! Problem: hosts and media types are counted, and a hostile or a very large archive has more of them than fit into
//! memory.
//!
//! Idea (Misra and Gries, in the mergeable form of Agarwal and others): when there are too many counters, take the
//! count of the `limit`-th from all of them and drop those that reach zero. As long as that never happens counts are
//! exact; afterwards each is too low by at most `error`, and `error` is less than the number of all values divided by
//! `limit`, so that whatever makes up a larger share is still there.
//!
//! Cost: amortised constant time, at most twice `limit` counters.

use std::collections::HashMap;

#[derive(Clone, Debug)]
pub(super) struct Frequent {
    counts: HashMap<String, u64>,
    limit: usize,
    error: u64,
}

impl Frequent {
    #[must_use]
    pub(super) fn new(limit: usize) -> Self {
        Self { counts: HashMap::new(), limit: limit.max(1), error: 0 }
    }

    pub(super) fn add(&mut self, value: &str) {
        self.add_many(value, 1);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.error += other.error;
        for (value, count) in other.counts {
            self.add_many(&value, count);
        }
    }

    /// All values kept with their counts, the most frequent first, equal ones by name.
    #[must_use]
    pub(super) fn ranked(&self) -> Vec<(&str, u64)> {
        let mut ranked: Vec<_> = self.counts.iter().map(|(value, count)| (value.as_str(), *count)).collect();
        ranked.sort_by(|(a, m), (b, n)| n.cmp(m).then(a.cmp(b)));
        ranked
    }

    /// By how much a count may be too low.
    #[must_use]
    pub(super) fn error(&self) -> u64 {
        self.error
    }

    fn add_many(&mut self, value: &str, count: u64) {
        match self.counts.get_mut(value) {
            Some(known) => *known += count,
            None => {
                self.counts.insert(value.to_owned(), count);
                if self.counts.len() >= 2 * self.limit {
                    self.trim();
                }
            }
        }
    }

    fn trim(&mut self) {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        let at = counts.len() - self.limit;
        let (_, taken, _) = counts.select_nth_unstable(at);
        let taken = *taken;
        self.counts.retain(|_, count| {
            *count = count.saturating_sub(taken);
            *count > 0
        });
        self.error += taken;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_a_map_would_within_the_error(values in prop::collection::vec(0u32..60, 0..600), limit in 1usize..80) {
            let mut exact: HashMap<String, u64> = HashMap::new();
            let mut parts = [Frequent::new(limit), Frequent::new(limit)];
            for (i, value) in values.iter().enumerate() {
                // Skewed, so that some are frequent.
                let value = (value * value / 60).to_string();
                *exact.entry(value.clone()).or_default() += 1;
                parts[i % 2].add(&value);
            }
            let [mut frequent, other] = parts;
            frequent.merge(other);
            let kept: HashMap<&str, u64> = frequent.ranked().into_iter().collect();
            prop_assert!(kept.len() < 2 * limit);
            prop_assert!(frequent.error() <= (values.len() / limit) as u64);
            for (value, count) in &exact {
                let found = kept.get(value.as_str()).copied().unwrap_or(0);
                prop_assert!(found <= *count && *count <= found + frequent.error(), "{}: {} for {}", value, found, count);
            }
            if exact.len() < 2 * limit {
                prop_assert_eq!(frequent.error(), 0);
            }
        }
    }

    #[test]
    fn the_most_frequent_come_first() {
        let mut frequent = Frequent::new(10);
        for value in ["b", "a", "c", "c"] {
            frequent.add(value);
        }
        assert_eq!(frequent.ranked(), [("c", 2), ("a", 1), ("b", 1)]);
    }
}
