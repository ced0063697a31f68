//! Rows in batches whose texts fit into memory together.

/// Bytes of text in a batch. Where a page's old text is read too, that comes to about as much again.
pub(crate) const BATCH_BYTES: u64 = 16 << 20;

/// Cuts rows into batches of at most [`BATCH_BYTES`]; a row that is larger is a batch of its own.
pub(crate) fn batches<T>(rows: &[T], bytes: impl Fn(&T) -> i64) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let mut sum = 0;
        let fitting = rest.iter().take_while(|row| {
            sum += u64::try_from(bytes(row)).unwrap_or(0);
            sum <= BATCH_BYTES
        });
        let (batch, after) = rest.split_at_checked(fitting.count().max(1))?;
        rest = after;
        Some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_all_rows_in_order_and_are_no_larger_than_they_must_be() {
        const BATCH: i64 = BATCH_BYTES as i64;
        let rows = [1, BATCH - 1, 1, 2 * BATCH, 0, 3, BATCH, -5];
        let cut: Vec<&[i64]> = batches(&rows, |bytes| *bytes).collect();
        assert_eq!(cut, [&[1, BATCH - 1][..], &[1], &[2 * BATCH], &[0, 3], &[BATCH, -5]]);
        assert_eq!(batches(&[] as &[i64], |bytes| *bytes).count(), 0);
    }
}
