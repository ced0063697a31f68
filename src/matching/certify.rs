//! Certifying regions: no matcher is believed, the bytes are compared.
//!
//! **Problem.** Maximal regions overlap, so their lengths can sum to the square of the page: for p = a^n and q =
//! a^m every one of the n-m+1 regions is m long. Comparing each of them byte by byte would undo the linear
//! matchers.
//!
//! **Idea.** Compare bytes as long as the total stays within a few times the two pages, which is always so on real
//! pages. Beyond that compare Karp-Rabin fingerprints modulo the prime 2^61 - 1: a table of all prefix fingerprints
//! of q and two running ones of p (starts and ends of maximal regions only grow) make each check one subtraction.
//! The base is drawn from BLAKE3 of both pages, so a page cannot be written against it; a false region, which first
//! needs a wrong matcher, then passes with probability below 2^-30.
//!
//! **Cost.** O(|p| + |q| + regions); the table (8 bytes per byte of q) exists only on hostile text.

use crate::model::Region;

/// Bytes compared directly, as a multiple of |p| + |q|.
const DIRECT: usize = 4;

/// 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;

pub(super) struct Certifier<'a> {
    old: &'a [u8],
    new: &'a [u8],
    direct: usize,
    prints: Option<Fingerprints>,
}

impl<'a> Certifier<'a> {
    pub(super) fn new(old: &'a [u8], new: &'a [u8]) -> Self {
        Self { old, new, direct: DIRECT * (old.len() + new.len()), prints: None }
    }

    /// Whether `new[start..end)` is what stands in `old` at `old_start`. To be asked in order of start and end.
    pub(super) fn holds(&mut self, region: Region) -> bool {
        let (start, end, old_start) = (region.start as usize, region.end as usize, region.old_start as usize);
        let length = end - start;
        if old_start + length > self.old.len() {
            return false;
        }
        if length <= self.direct {
            self.direct -= length;
            return self.new[start..end] == self.old[old_start..old_start + length];
        }
        let prints = self.prints.get_or_insert_with(|| Fingerprints::new(self.old, self.new));
        prints.of_new(self.new, start, end) == prints.of_old(old_start, length)
    }
}

struct Fingerprints {
    base: u64,
    /// Of `old[..i]`, for every i.
    old: Vec<u64>,
    /// base^i for i below `STEP`, and base^(i * STEP).
    powers: (Vec<u64>, Vec<u64>),
    /// Of `new[..at]`, for the largest start and the largest end asked for so far.
    start: Running,
    end: Running,
}

const STEP: usize = 1024;

#[derive(Clone, Copy, Default)]
struct Running {
    at: usize,
    print: u64,
}

impl Running {
    fn advance(&mut self, base: u64, text: &[u8], to: usize) -> u64 {
        debug_assert!(self.at <= to, "regions come in order");
        for &byte in &text[self.at..to] {
            self.print = push(self.print, base, byte);
        }
        self.at = to;
        self.print
    }
}

impl Fingerprints {
    fn new(old: &[u8], new: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(old.len() as u64).to_le_bytes()).update(old).update(new);
        let seed: [u8; 8] = hasher.finalize().as_bytes()[..8].try_into().expect("a digest has 32 bytes");
        // Any base of the upper range; small ones would leave short texts unmixed.
        let base = PRIME / 2 + u64::from_le_bytes(seed) % (PRIME / 2);
        Self::with_base(base, old)
    }

    fn with_base(base: u64, old: &[u8]) -> Self {
        let mut prints = Vec::with_capacity(old.len() + 1);
        let mut print = 0;
        prints.push(print);
        prints.extend(old.iter().map(|&byte| {
            print = push(print, base, byte);
            print
        }));
        let powers_of = |base: u64, count: usize| {
            std::iter::successors(Some(1), |&power| Some(times(power, base))).take(count).collect::<Vec<u64>>()
        };
        let small = powers_of(base, STEP + 1);
        let large = powers_of(small[STEP], old.len() / STEP + 1);
        Self { base, old: prints, powers: (small, large), start: Running::default(), end: Running::default() }
    }

    fn of_new(&mut self, new: &[u8], start: usize, end: usize) -> u64 {
        let before = self.start.advance(self.base, new, start);
        let after = self.end.advance(self.base, new, end);
        self.between(before, after, end - start)
    }

    fn of_old(&self, start: usize, length: usize) -> u64 {
        self.between(self.old[start], self.old[start + length], length)
    }

    /// The fingerprint of a text of this length, from those of the prefixes before and with it.
    fn between(&self, before: u64, after: u64, length: usize) -> u64 {
        let power = times(self.powers.0[length % STEP], self.powers.1[length / STEP]);
        let shifted = times(before, power);
        if after >= shifted { after - shifted } else { after + PRIME - shifted }
    }
}

#[inline]
fn push(print: u64, base: u64, byte: u8) -> u64 {
    let sum = times(print, base) + u64::from(byte) + 1;
    if sum >= PRIME { sum - PRIME } else { sum }
}

/// Product modulo 2^61 - 1, by folding the upper bits onto the lower ones.
#[inline]
fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let folded = (product as u64 & PRIME) + (product >> 61) as u64;
    if folded >= PRIME { folded - PRIME } else { folded }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: u32, end: u32, old_start: u32) -> Region {
        Region { start, end, old_start }
    }

    #[test]
    fn true_and_false_regions_by_bytes() {
        let mut certifier = Certifier::new(b"abcabd", b"xabd");
        assert!(certifier.holds(region(1, 3, 0)));
        assert!(certifier.holds(region(1, 4, 3)));
        assert!(!certifier.holds(region(1, 4, 0)));
        assert!(!certifier.holds(region(1, 4, 4)), "reaches past the end of q");
    }

    #[test]
    fn fingerprints_take_over_and_still_tell() {
        let old = vec![b'a'; 3000];
        let mut new = vec![b'a'; 6000];
        new[5000] = b'b';
        let mut certifier = Certifier::new(&old, &new);
        for start in 0..=2000 {
            assert!(certifier.holds(region(start, start + 3000, 0)));
        }
        assert!(certifier.prints.is_some(), "the direct comparisons are used up");
        assert!(!certifier.holds(region(2001, 5001, 0)), "holds the b");
        assert!(certifier.holds(region(5001, 6000, 2001)));
    }

    #[test]
    fn arithmetic_modulo_the_prime() {
        let slow = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64;
        for a in [0, 1, 2, 12_345, PRIME / 2, PRIME - 2, PRIME - 1] {
            for b in [0, 1, 3, 1 << 60, PRIME - 1] {
                assert_eq!(times(a, b), slow(a, b));
            }
        }
    }
}
