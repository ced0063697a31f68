//! An index of seeds by hash: those sampled from q, or all that lie around what is new in p.
//!
//! A *seed* is `SPAN` bytes of which `WORDS` evenly spread words are hashed. It need not be hashed densely: what a
//! seed suggests is checked by comparing bytes anyway. Long, spread seeds matter more than many: short ones repeat
//! endlessly in indented or tabular text.
//!
//! A seed is *dull* if the hashed words are all equal: in deeply indented text most seeds are nothing but spaces. As
//! samples may stand closer than they must, a dull one gives way to one a little earlier.
//!
//! Three tables: a bitmap of 32 bits per seed answers most questions with "no" from the nearest cache; heads and
//! entries hold the places of equal hashes as lists, greatest first.

use std::ops::Range;

use crate::matching::bytes::{WORD, offset, word};

/// Odd, with well-spread bits.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
/// By so many bits the words of a seed are turned against each other: up to 64 words, all differently.
const TURN: u32 = 23;
/// A sample that is moved is moved by multiples of this.
const MOVE: usize = 8;

/// The bitmap has two to the power of this bits for each seed: few enough to stay in the nearest caches.
const BITS: u32 = 5;

/// Where the words lie that are hashed.
#[inline]
const fn word_at<const SPAN: usize, const WORDS: usize>(number: usize) -> usize {
    number * (SPAN - WORD) / (WORDS - 1)
}

/// The upper bits are the good ones: they depend on all bytes that are looked at.
#[inline]
fn hash<const SPAN: usize, const WORDS: usize>(text: &[u8; SPAN]) -> u64 {
    let mut sum = 0_u64;
    for number in 0..WORDS {
        sum = sum.rotate_left(TURN) ^ word(text, word_at::<SPAN, WORDS>(number));
    }
    sum.wrapping_mul(FACTOR)
}

#[inline]
pub(super) fn seed<const SPAN: usize, const WORDS: usize>(text: &[u8], at: usize) -> u64 {
    hash::<SPAN, WORDS>(text[at..at + SPAN].try_into().expect("the slice is one span long"))
}

#[inline]
fn is_dull<const SPAN: usize, const WORDS: usize>(text: &[u8], at: usize) -> bool {
    let text = &text[at..at + SPAN];
    (1..WORDS).all(|number| word(text, word_at::<SPAN, WORDS>(number)) == word(text, 0))
}

#[derive(Clone, Copy)]
struct Entry {
    place: u32,
    /// Bits of the hash that the head does not tell.
    tag: u32,
    /// One more than the index of the next entry with this head, 0 for none.
    next: u32,
}

/// Memory is reused from text to text.
#[derive(Default)]
pub(super) struct Index {
    bitmap: Vec<u64>,
    /// One more than the index of an entry, 0 for none.
    heads: Vec<u32>,
    entries: Vec<Entry>,
    bitmap_shift: u32,
    head_shift: u32,
}

impl Index {
    /// Empties it, for so many seeds at most.
    fn clear(&mut self, seeds: usize) {
        let log = seeds.next_power_of_two().trailing_zeros().max(1);
        self.head_shift = 64 - log;
        self.bitmap_shift = 64 - (log + BITS).max(6);
        self.bitmap.clear();
        self.bitmap.resize(1 << (log + BITS).saturating_sub(6), 0);
        self.heads.clear();
        self.heads.resize(1 << log, 0);
        self.entries.clear();
        self.entries.reserve_exact(seeds);
    }

    /// The seeds at every `STEP`th place of these ranges.
    pub(super) fn build_at<const SPAN: usize, const WORDS: usize, const STEP: usize>(
        &mut self,
        text: &[u8],
        ranges: &[Range<usize>],
    ) {
        self.clear(ranges.iter().map(|range| range.len() / STEP + 1).sum());
        for range in ranges {
            for place in (range.start.next_multiple_of(STEP)..range.end).step_by(STEP) {
                self.insert::<SPAN, WORDS>(text, place);
            }
        }
    }

    /// Samples `burst` consecutive seeds of q, at least once in every `period` places.
    pub(super) fn build<const SPAN: usize, const WORDS: usize>(&mut self, old: &[u8], period: usize, burst: usize) {
        self.clear((old.len() / period + 1) * burst);
        let Some(last) = (old.len() + 1).checked_sub(SPAN + burst) else {
            return;
        };
        // At the greatest distance, but for dull seeds: these are moved back to where there is something to see.
        // Moving all repeated seeds would save candidates, too, but each place would wait for the look-up before it.
        let (mut free, mut at) = (0, period - 1);
        while at <= last {
            if is_dull::<SPAN, WORDS>(old, at) {
                let mut earlier = (free..at).rev().skip(MOVE - 1).step_by(MOVE);
                at = earlier.find(|&at| !is_dull::<SPAN, WORDS>(old, at)).unwrap_or(at);
            }
            for place in at..at + burst {
                self.insert::<SPAN, WORDS>(old, place);
            }
            free = at + burst;
            at += period;
        }
    }

    #[inline]
    fn insert<const SPAN: usize, const WORDS: usize>(&mut self, text: &[u8], place: usize) {
        let text = text[place..place + SPAN].try_into().expect("the slice is one span long");
        let hash = hash::<SPAN, WORDS>(text);
        let bit = hash >> self.bitmap_shift;
        self.bitmap[(bit >> 6) as usize] |= 1 << (bit & 63);
        let head = &mut self.heads[(hash >> self.head_shift) as usize];
        self.entries.push(Entry { place: offset(place), tag: tag(hash), next: *head });
        *head = offset(self.entries.len());
    }

    /// The first of the places `from`, `from + STEP`, … up to `until` whose seed may be in the index, and its hash.
    #[inline]
    pub(super) fn next_hit<const SPAN: usize, const WORDS: usize, const STEP: usize>(
        &self,
        text: &[u8],
        from: usize,
        until: usize,
    ) -> Option<(usize, u64)> {
        for (count, text) in text[from..until + SPAN].windows(SPAN).step_by(STEP).enumerate() {
            let hash = hash::<SPAN, WORDS>(text.try_into().expect("the window is one span long"));
            if self.may_hold(hash) {
                return Some((from + count * STEP, hash));
            }
        }
        None
    }

    #[inline]
    pub(super) fn may_hold(&self, hash: u64) -> bool {
        let bit = hash >> self.bitmap_shift;
        self.bitmap[(bit >> 6) as usize] >> (bit & 63) & 1 != 0
    }

    /// The places whose seeds may have this hash, greatest first.
    #[inline]
    pub(super) fn places(&self, hash: u64) -> impl Iterator<Item = usize> + '_ {
        let mut next = self.heads[(hash >> self.head_shift) as usize];
        let tag = tag(hash);
        std::iter::from_fn(move || {
            loop {
                let entry = self.entries.get((next as usize).wrapping_sub(1))?;
                next = entry.next;
                if entry.tag == tag {
                    return Some(entry.place as usize);
                }
            }
        })
    }
}

#[inline]
fn tag(hash: u64) -> u32 {
    (hash >> 16) as u32
}
