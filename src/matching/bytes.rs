//! Comparing bytes: common prefixes and suffixes, and where characters begin.
//!
//! The long runs go through slice equality, which is `memcmp`; only the block that differs is looked at word by word.

/// Compared at once in the long run. Large enough to hide the call, small enough to redo the one that differs.
const BLOCK: usize = 1024;
/// Small enough to be compared without a call.
const SMALL_BLOCK: usize = 32;
pub(super) const WORD: usize = 8;
/// Most comparisons end within this many bytes: these are done word by word.
const NEAR: usize = 64;

#[inline]
pub(super) fn word(text: &[u8], at: usize) -> u64 {
    let bytes: [u8; WORD] = text[at..at + WORD].try_into().expect("the slice is one word long");
    u64::from_le_bytes(bytes)
}

#[inline]
fn small_block(text: &[u8], at: usize) -> &[u8; SMALL_BLOCK] {
    text[at..at + SMALL_BLOCK].try_into().expect("the slice is one small block long")
}

/// Length of the longest common prefix.
#[inline]
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let n = a.len().min(b.len());
    let (a, b) = (&a[..n], &b[..n]);
    let mut at = 0;
    while at < NEAR && at + WORD <= n {
        let differ = word(a, at) ^ word(b, at);
        if differ != 0 {
            return at + (differ.trailing_zeros() / 8) as usize;
        }
        at += WORD;
    }
    common_prefix_from(a, b, at)
}

fn common_prefix_from(a: &[u8], b: &[u8], mut at: usize) -> usize {
    let n = a.len();
    while at + BLOCK <= n && a[at..at + BLOCK] == b[at..at + BLOCK] {
        at += BLOCK;
    }
    while at + SMALL_BLOCK <= n && small_block(a, at) == small_block(b, at) {
        at += SMALL_BLOCK;
    }
    while at + WORD <= n {
        let differ = word(a, at) ^ word(b, at);
        if differ != 0 {
            return at + (differ.trailing_zeros() / 8) as usize;
        }
        at += WORD;
    }
    while at < n && a[at] == b[at] {
        at += 1;
    }
    at
}

/// Length of the longest common suffix.
#[inline]
pub(super) fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let n = a.len().min(b.len());
    let (a, b) = (&a[a.len() - n..], &b[b.len() - n..]);
    let mut left = n;
    while left + NEAR > n && left >= WORD {
        let differ = word(a, left - WORD) ^ word(b, left - WORD);
        if differ != 0 {
            return n - left + (differ.leading_zeros() / 8) as usize;
        }
        left -= WORD;
    }
    common_suffix_before(a, b, left)
}

fn common_suffix_before(a: &[u8], b: &[u8], mut left: usize) -> usize {
    let n = a.len();
    while left >= BLOCK && a[left - BLOCK..left] == b[left - BLOCK..left] {
        left -= BLOCK;
    }
    while left >= SMALL_BLOCK && small_block(a, left - SMALL_BLOCK) == small_block(b, left - SMALL_BLOCK) {
        left -= SMALL_BLOCK;
    }
    while left >= WORD {
        let differ = word(a, left - WORD) ^ word(b, left - WORD);
        if differ != 0 {
            return n - left + (differ.leading_zeros() / 8) as usize;
        }
        left -= WORD;
    }
    while left > 0 && a[left - 1] == b[left - 1] {
        left -= 1;
    }
    n - left
}

/// Whether a character of a UTF-8 text begins (or the text ends) at `at`.
#[inline]
pub(super) fn is_boundary(text: &[u8], at: usize) -> bool {
    at >= text.len() || text[at] & 0xC0 != 0x80
}

/// The last boundary at or before `at`.
#[inline]
pub(super) fn floor_boundary(text: &[u8], mut at: usize) -> usize {
    while !is_boundary(text, at) {
        at -= 1;
    }
    at
}

/// The first boundary at or after `at`.
#[inline]
pub(super) fn ceil_boundary(text: &[u8], mut at: usize) -> usize {
    while !is_boundary(text, at) {
        at += 1;
    }
    at
}

/// An offset as the model stores it.
#[inline]
pub(super) fn offset(at: usize) -> u32 {
    debug_assert!(u32::try_from(at).is_ok(), "texts are shorter than 4 GiB");
    at as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slow_prefix(a: &[u8], b: &[u8]) -> usize {
        a.iter().zip(b).take_while(|(x, y)| x == y).count()
    }

    fn slow_suffix(a: &[u8], b: &[u8]) -> usize {
        a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count()
    }

    #[test]
    fn every_length_and_every_place_of_the_difference() {
        for n in (0..200).chain([1023, 1024, 1025, 1100, 2100, 3000]) {
            let a = vec![7; n];
            assert_eq!(common_prefix(&a, &a), n);
            assert_eq!(common_suffix(&a, &a), n);
            for at in (0..n).filter(|at| n < 200 || at % 61 == 0) {
                let mut b = a.clone();
                b[at] = 8;
                assert_eq!(common_prefix(&a, &b), at);
                assert_eq!(common_suffix(&a, &b), n - at - 1);
            }
        }
    }

    proptest! {
        #[test]
        fn as_the_byte_by_byte_loops(a in "[ab]{0,40}", b in "[ab]{0,40}") {
            let (a, b) = (a.as_bytes(), b.as_bytes());
            prop_assert_eq!(common_prefix(a, b), slow_prefix(a, b));
            prop_assert_eq!(common_suffix(a, b), slow_suffix(a, b));
        }

        #[test]
        fn boundaries_as_str_says(text in "[aé€🦀]{0,9}") {
            for at in 0..=text.len() {
                prop_assert_eq!(is_boundary(text.as_bytes(), at), text.is_char_boundary(at));
                prop_assert_eq!(floor_boundary(text.as_bytes(), at), text.floor_char_boundary(at));
                prop_assert_eq!(ceil_boundary(text.as_bytes(), at), text.ceil_char_boundary(at));
            }
        }
    }
}
