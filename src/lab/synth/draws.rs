//! What a site draws from a generator: numbers in a range, chances, words.
//!
//! All numbers are integers, so that no rounding differs between machines. [`unit`](Rng::unit) gives a fraction, but an
//! exact one.

use crate::model::Rng;

/// One million parts make the whole: shares are integers.
pub(crate) const MILLION: u32 = 1_000_000;

impl Rng {
    /// Uniform in `0..n`; `n` of 0 gives 0. The bias of the multiply-shift is below 2^-32 per value.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        let high = self.number() >> 32;
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
        let bits = (self.number() >> 11) as f64;
        bits * SCALE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
