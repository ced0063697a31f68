//! Numbers that look random and are the same on every machine.
//!
//! `SplitMix64`: one 64-bit state, one multiply-and-shift mix per number, integers only. A generator made from a *key*
//! (seed, page, day, purpose…) needs no state carried from page to page, so that any page of any night can be made
//! alone and in any order.

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// One million parts make the whole: shares are integers, so that no rounding differs between machines.
pub(crate) const MILLION: u32 = 1_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number that depends on every part of the key and on their order.
pub(crate) fn key(parts: &[u64]) -> u64 {
    parts.iter().fold(0x5261_746f_6f6e_2121, |acc, &part| mix(acc.wrapping_add(GAMMA) ^ mix(part.wrapping_add(GAMMA))))
}

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn keyed(parts: &[u64]) -> Self {
        Self(key(parts))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// Uniform in `0..n`; `n` of 0 gives 0. The bias of the multiply-shift is below 2^-32 per value.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        let high = self.next() >> 32;
        // The product of two 32-bit numbers, shifted down, fits 32 bits.
        u32::try_from((high * u64::from(n)) >> 32).unwrap_or(u32::MAX)
    }

    /// Uniform in `low..=high`.
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True in `parts` of a million cases.
    pub(crate) fn chance(&mut self, parts: u32) -> bool {
        self.below(MILLION) < parts
    }

    /// True in `percent` of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        let len = u32::try_from(list.len()).expect("word lists are short");
        list[self.below(len) as usize]
    }

    /// Uniform in `[0, 1)`, exact in binary64.
    pub(crate) fn unit(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / 9_007_199_254_740_992.0;
        // 53 bits are exactly a binary64 mantissa.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let bits = (self.next() >> 11) as f64;
        bits * SCALE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_its_published_first_numbers() {
        // Reference values of `SplitMix64` started at 1234567.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn keys_depend_on_every_part_and_on_order() {
        assert_ne!(key(&[1, 2]), key(&[2, 1]));
        assert_ne!(key(&[1]), key(&[1, 0]));
        assert_eq!(key(&[7, 8, 9]), key(&[7, 8, 9]));
    }

    #[test]
    fn shares_come_out_as_asked() {
        let mut rng = Rng::new(5);
        let hits = (0..100_000).filter(|_| rng.chance(50_000)).count();
        assert!((4_700..5_300).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| rng.between(3, 5) >= 3));
        assert!((0..1000).all(|_| rng.below(7) < 7));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.unit())));
    }
}
