//! Whole numbers out of measured ones, in one place, with what happens at the edges said once.

/// Without its fraction; beyond the range, the range's end.
#[expect(clippy::cast_possible_truncation, reason = "cutting the fraction is the purpose, and `as` saturates")]
pub(crate) fn whole(x: f64) -> i64 {
    x as i64
}

/// The same for a number of things: at least 0.
pub(crate) fn count(x: f64) -> usize {
    usize::try_from(whole(x)).unwrap_or(0)
}

/// An index from a number known not to be negative.
pub(crate) fn index(x: i64) -> usize {
    usize::try_from(x).expect("an index is not negative and fits in memory")
}

/// A slot or bin; there are far fewer than 2^32.
pub(crate) fn small(x: usize) -> u32 {
    u32::try_from(x).expect("slots and bins fit in 32 bits")
}
