//! Which runs are merged when a new one comes.

/// How much of a run counts, and how much was cleared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    /// A deletion counts twice: it makes another entry stale and is soon stale itself.
    pub entries: u64,
    pub bytes: u64,
    pub cleared_bytes: u64,
}

/// The first of the runs, oldest first, that is merged with all newer ones; their number if none is.
///
/// A run is left alone as long as it is larger than all newer ones together, in entries and in bytes. So with every
/// older run the index doubles: there are few, an entry is rewritten about once for each doubling of what came after it,
/// and what is stale is no more than what counts.
pub(super) fn first_to_merge(runs: &[Weight], most: usize) -> usize {
    let mut first = runs.len();
    let (mut entries, mut bytes) = (0, 0);
    for (i, run) in runs.iter().enumerate().rev() {
        let outgrown = i + 1 < runs.len() && (run.entries <= entries || run.bytes <= bytes);
        if outgrown || run.cleared_bytes > run.bytes {
            first = i;
        }
        entries += run.entries;
        bytes += run.bytes;
    }
    if first.min(runs.len().saturating_sub(1)) >= most { most - 1 } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(size: u64) -> Weight {
        Weight { entries: size, bytes: size * 100, cleared_bytes: 0 }
    }

    /// Sizes of the runs after a new one.
    fn merged(sizes: &[u64]) -> Vec<u64> {
        let weights: Vec<Weight> = sizes.iter().copied().map(run).collect();
        let (kept, newer) = sizes.split_at(first_to_merge(&weights, 12));
        let sum = newer.iter().sum();
        kept.iter().copied().chain((sum > 0).then_some(sum)).collect()
    }

    #[test]
    fn a_run_is_merged_when_newer_ones_have_outgrown_it() {
        assert!(merged(&[]).is_empty());
        assert_eq!(merged(&[5]), [5]);
        assert_eq!(merged(&[100, 5]), [100, 5]);
        assert_eq!(merged(&[100, 5, 5]), [100, 10]);
        assert_eq!(merged(&[100, 60, 30, 9, 1]), [200]);
        assert_eq!(merged(&[200, 60, 30, 9, 30]), [200, 129]);
        assert_eq!(merged(&[1, 2, 3]), [6]);
    }

    #[test]
    fn deletions_outgrow_what_they_hide() {
        let large = Weight { entries: 100, bytes: 100_000, cleared_bytes: 0 };
        let deletions = Weight { entries: 2 * 50, bytes: 1500, cleared_bytes: 0 };
        assert_eq!(first_to_merge(&[large, deletions], 12), 0);
    }

    #[test]
    fn a_run_that_was_mostly_cleared_is_merged() {
        let cleared = Weight { entries: 100, bytes: 10, cleared_bytes: 11 };
        assert_eq!(first_to_merge(&[run(1000), cleared], 12), 1);
        assert_eq!(first_to_merge(&[run(1000), cleared, run(1)], 12), 1);
    }

    #[test]
    fn there_are_never_too_many() {
        let halves: Vec<u64> = (0..20).rev().map(|i| 3 << i).collect();
        assert_eq!(merged(&halves).len(), 12);
        assert_eq!(merged(&halves[..12]).len(), 12);
    }

    #[test]
    fn entries_are_rewritten_once_for_each_doubling() {
        let (mut runs, mut rewritten, mut most) = (Vec::new(), 0, 0);
        for _ in 0..20_000 {
            runs.push(1);
            runs = merged(&runs);
            rewritten += runs.last().copied().unwrap_or(0);
            most = most.max(runs.len());
        }
        assert!(most <= 12 && rewritten < 20_000 * 15, "{most} runs, {rewritten} rewritten");
    }
}
