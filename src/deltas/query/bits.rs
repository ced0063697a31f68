//! Sets of pages.

/// A set of small numbers, a bit for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// The empty set of numbers below `len`.
    pub(super) fn none(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)] }
    }

    pub(super) fn all(len: usize) -> Self {
        let mut words = vec![u64::MAX; len.div_ceil(64)];
        if let Some(last) = words.last_mut().filter(|_| !len.is_multiple_of(64)) {
            *last = (1 << (len % 64)) - 1;
        }
        Self { words }
    }

    pub(super) fn has(&self, number: u32) -> bool {
        self.words[number as usize / 64] >> (number % 64) & 1 == 1
    }

    pub(super) fn insert(&mut self, number: u32) {
        self.words[number as usize / 64] |= 1 << (number % 64);
    }

    pub(super) fn remove(&mut self, number: u32) {
        self.words[number as usize / 64] &= !(1 << (number % 64));
    }

    pub(super) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Keeps what is in both sets; says whether anything was removed.
    pub(super) fn retain(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            changed |= *word & !other != 0;
            *word &= other;
        }
        changed
    }

    pub(super) fn insert_all(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    pub(super) fn remove_all(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= !other);
    }

    /// Its numbers, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).step_by(64).zip(&self.words).flat_map(|(first, &word)| {
            std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)))
                .take_while(|&rest| rest != 0)
                .map(move |rest| first + rest.trailing_zeros())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    #[test]
    fn sets_hold_what_was_put_in() {
        let mut set = Bits::none(130);
        for number in [0, 63, 64, 129] {
            set.insert(number);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 129]);
        set.remove(63);
        assert!(!set.has(63) && set.has(64));
        assert_eq!((Bits::all(130).count(), Bits::all(64).count(), Bits::all(0).count()), (130, 64, 0));
        let mut all = Bits::all(130);
        assert!(all.retain(&set));
        assert!(!all.retain(&set));
        assert_eq!(all, set);
        all.remove_all(&set);
        assert!(all.is_empty());
        all.insert_all(&set);
        assert_eq!(all.count(), 3);
    }
}
