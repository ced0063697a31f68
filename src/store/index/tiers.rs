//! Which runs are merged when a new one comes.

/// How much of a run counts, and how much was cleared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    pub entries: u64,
    pub bytes: u64,
    pub cleared_bytes: u64,
}

/// The first of the runs, oldest first, that is merged with all newer ones; their number if none is.
///
/// A run is left alone as long as it is larger than all newer ones together. So each of them is at least twice as large
/// as the next, there are few, and an entry is rewritten once for every doubling of what came after it; and what is
/// stale is never more than what counts. Entries are compared too: deletions have no bytes, but hide some.
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
