//! A sparse index of q: the hashes of sampled seeds.
//!
//! A *seed* is `SPAN` bytes of which `WORDS` evenly spread words are hashed. It need not be hashed densely: what a
//! seed suggests is checked by comparing bytes anyway. Long, spread seeds matter more than many: short ones repeat
//! endlessly in indented or tabular text.
//!
//! Three tables: a bitmap of 64 bits per sample answers most questions with "no" from the nearest cache; heads and
//! entries hold the places of equal hashes as lists, latest first.

use crate::matching::bytes::{offset, word};

/// Multipliers for the words of a seed: odd, with well-spread bits.
const FACTORS: [u64; 4] = [0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0xD6E8_FEB8_6659_FD93];

/// The upper bits are the good ones: they depend on all bytes that are looked at.
#[inline]
fn hash<const SPAN: usize, const WORDS: usize>(text: &[u8; SPAN]) -> u64 {
    let mut sum = 0_u64;
    for (at, factor) in FACTORS.iter().enumerate().take(WORDS) {
        sum = sum.wrapping_add(word(text, at * (SPAN - 8) / (WORDS - 1)).wrapping_mul(*factor));
    }
    sum
}

#[inline]
pub(super) fn seed<const SPAN: usize, const WORDS: usize>(text: &[u8], at: usize) -> u64 {
    hash::<SPAN, WORDS>(text[at..at + SPAN].try_into().expect("the slice is one span long"))
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
    /// Samples `burst` consecutive seeds of q, at most every `period` bytes.
    pub(super) fn build<const SPAN: usize, const WORDS: usize>(&mut self, old: &[u8], period: usize, burst: usize) {
        let samples = (old.len() / period + 1) * burst;
        let log = samples.next_power_of_two().trailing_zeros().max(1);
        self.head_shift = 64 - log;
        self.bitmap_shift = 64 - (log + 6);
        self.bitmap.clear();
        self.bitmap.resize(1 << log, 0);
        self.heads.clear();
        self.heads.resize(1 << log, 0);
        self.entries.clear();
        self.entries.reserve_exact(samples);

        let Some(last) = (old.len() + 1).checked_sub(SPAN + burst) else {
            return;
        };
        // The least place that the next burst may take, and the greatest.
        let mut least = 0;
        let mut greatest = period - 1;
        while greatest <= last {
            let mut at = greatest;
            let mut hash = seed::<SPAN, WORDS>(old, at);
            if self.may_contain(hash) {
                // A seed seen before would only lengthen a list. Half a period earlier is as good, and likely past
                // what repeats.
                let other = at - period / 2;
                let other_hash = seed::<SPAN, WORDS>(old, other);
                if other >= least && !self.may_contain(other_hash) {
                    (at, hash) = (other, other_hash);
                }
            }
            self.insert(hash, at);
            for further in 1..burst {
                self.insert(seed::<SPAN, WORDS>(old, at + further), at + further);
            }
            least = at + burst;
            greatest = at + period;
        }
    }

    #[inline]
    fn insert(&mut self, hash: u64, place: usize) {
        let bit = hash >> self.bitmap_shift;
        self.bitmap[(bit >> 6) as usize] |= 1 << (bit & 63);
        let head = &mut self.heads[(hash >> self.head_shift) as usize];
        self.entries.push(Entry { place: offset(place), tag: tag(hash), next: *head });
        *head = offset(self.entries.len());
    }

    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
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
