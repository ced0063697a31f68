//! Numbers that look random and are the same on every machine: for audits, and for all that `lab` makes.
//!
//! `SplitMix64`: one 64-bit state, one multiply-and-shift mix per number, integers only. A generator made from a *key*
//! (seed, page, day, purpose…) needs no state carried from one thing to the next, so that any of them can be made
//! alone and in any order.

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Debug)]
pub struct Rng(u64);

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number that depends on every part of the key and on their order.
#[must_use]
pub(crate) fn key(parts: &[u64]) -> u64 {
    parts.iter().fold(0x5261_746f_6f6e_2121, |acc, &part| mix(acc.wrapping_add(GAMMA) ^ mix(part.wrapping_add(GAMMA))))
}

impl Rng {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[must_use]
    pub fn keyed(parts: &[u64]) -> Self {
        Self(key(parts))
    }

    /// For a round of many that share a seed: each round can be repeated alone.
    #[must_use]
    pub fn of_round(seed: u64, round: u64) -> Self {
        let mut rng = Self(seed ^ round.wrapping_mul(GAMMA));
        rng.number();
        rng
    }

    /// Any 64 bits.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// A place in something of that length; 0 if it is empty.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.number() % (length.max(1) as u64)).expect("below a usize")
    }

    /// One of a list that is not empty.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_its_published_first_numbers() {
        // Reference values of `SplitMix64` started at 1234567.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.number(), 6_457_827_717_110_365_317);
        assert_eq!(rng.number(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn keys_depend_on_every_part_and_on_order() {
        assert_ne!(key(&[1, 2]), key(&[2, 1]));
        assert_ne!(key(&[1]), key(&[1, 0]));
        assert_eq!(key(&[7, 8, 9]), key(&[7, 8, 9]));
    }

    #[test]
    fn rounds_differ_and_can_be_repeated() {
        let first = |round| Rng::of_round(7, round).number();
        assert_eq!(first(3), first(3));
        assert_ne!(first(3), first(4));
        assert_eq!(Rng::new(1).index(0), 0);
        assert!((0..1000).all(|seed| Rng::new(seed).index(7) < 7));
    }
}
