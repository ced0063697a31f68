//! The matcher of one page, once its edges are known.

use serde::{Deserialize, Serialize};

use super::model::{BUCKETS, bucket};
use crate::matching::{MatcherKind, PerMatcher};

/// What a matcher costs on a page: so much a byte of both pages, and so much a byte of the residual for the extraction
/// that it leaves. In seconds, or in price where extraction has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cost {
    pub both: f64,
    pub residual: f64,
}

/// What decides page by page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    /// By class of residual.
    pub costs: [PerMatcher<Cost>; BUCKETS],
    /// Extraction of the whole page from scratch, a byte.
    pub scratch: f64,
    /// Copying, a byte of the page: what every matcher costs and extraction from scratch does not.
    pub copy: f64,
}

impl Rules {
    /// The cheapest matcher of a page with the given lengths, of which `residual` bytes lie between the common prefix
    /// and suffix; `None` if its regions would not pay for the copying. Of equal ones the simplest.
    #[must_use]
    pub(crate) fn matcher(&self, old_len: u64, new_len: u64, residual: u64) -> Option<MatcherKind> {
        let costs = &self.costs[bucket(residual, new_len)];
        let mut best = (None, self.scratch * as_f64(new_len));
        for (kind, cost) in costs.iter() {
            let cost =
                cost.both * as_f64(old_len + new_len) + cost.residual * as_f64(residual) + self.copy * as_f64(new_len);
            if cost < best.1 {
                best = (Some(kind), cost);
            }
        }
        best.0
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes of pages")]
fn as_f64(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rules(extraction: f64) -> Rules {
        let costs = PerMatcher::from_fn(|kind| {
            let (both, left) = match kind {
                MatcherKind::Edges => (0.0, 1.0),
                MatcherKind::Diff => (0.6e-9, 0.7),
                MatcherKind::SuffixTree => (30e-9, 0.3),
                MatcherKind::Anchor => (0.5e-9, 0.3),
            };
            Cost { both, residual: left * extraction }
        });
        Rules { costs: [costs; BUCKETS], scratch: extraction, copy: 0.1e-9 }
    }

    #[test]
    fn dear_extraction_is_worth_regions_and_cheap_extraction_is_not() {
        assert_eq!(rules(1e-6).matcher(10_000, 10_000, 5_000), Some(MatcherKind::Anchor));
        assert_eq!(rules(1e-9).matcher(10_000, 10_000, 5_000), Some(MatcherKind::Edges));
        assert_eq!(rules(1e-12).matcher(10_000, 10_000, 5_000), None);
    }

    #[test]
    fn a_small_residual_is_left_to_edges() {
        assert_eq!(rules(20e-9).matcher(10_000, 10_000, 100), Some(MatcherKind::Edges));
        assert_eq!(rules(20e-9).matcher(10_000, 10_000, 9_000), Some(MatcherKind::Anchor));
        // Nothing between the edges: nothing to save.
        assert_eq!(rules(1.0).matcher(10_000, 10_000, 0), Some(MatcherKind::Edges));
    }

    proptest! {
        #[test]
        fn no_matcher_is_cheaper_than_the_chosen_one(
            raw in prop::collection::vec((0.0f64..1e-7, 0.0f64..1e-6), MatcherKind::ALL.len() * BUCKETS), scratch in 0.0f64..1e-6,
            copy in 0.0f64..1e-8, old in 0u64..100_000, new in 0u64..100_000, share in 0.0f64..1.0,
        ) {
            let mut rules = Rules { scratch, copy, ..Rules::default() };
            let costs = rules.costs.iter_mut().flat_map(PerMatcher::iter_mut);
            for ((_, cost), (both, residual)) in costs.zip(raw) {
                *cost = Cost { both, residual };
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
            let residual = (as_f64(new) * share) as u64;
            let of = |kind: Option<MatcherKind>| match kind {
                None => scratch * as_f64(new),
                Some(k) => {
                    let cost = rules.costs[bucket(residual, new)][k];
                    cost.both * as_f64(old + new) + cost.residual * as_f64(residual) + copy * as_f64(new)
                }
            };
            let chosen = of(rules.matcher(old, new, residual));
            for kind in MatcherKind::ALL.map(Some).into_iter().chain([None]) {
                prop_assert!(chosen <= of(kind));
            }
        }
    }
}
