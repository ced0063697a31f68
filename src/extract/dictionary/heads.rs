//! Many terms that may stand anywhere, found by their first bytes.
//!
//! **Problem.** An automaton of a hundred thousand terms takes longer to build than a night's text takes to read.
//! **Idea.** Only the terms are sorted. At each place of a text a bit tells whether any term begins with the next few bytes;
//! if so, the greatest term that is not greater than the text from there on is looked up. A term that the text has there
//! is that one or one that it begins with: from each term a link leads to the longest other one that it begins with.
//!
//! Where looking up has cost about as much as building the automaton would, it is built, and goes on: so this never takes
//! more than twice the time of the better way. Both find the same.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use daachorse::{DoubleArrayAhoCorasick, DoubleArrayAhoCorasickBuilder};

/// Bytes that a head has at most, and at least: below that nearly every place of a text looks like the beginning of a term.
const WIDEST: usize = 8;
const NARROWEST: usize = 3;
/// So many look-ups a term take about as long as building the automaton.
const WORTH_BUILDING: usize = 16;
const NONE: u32 = u32::MAX;

pub(super) struct Heads {
    /// All terms in order, one after the other; where each ends, its label, and the position of the longest term that it
    /// begins with.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    labels: Vec<u32>,
    shorter: Vec<u32>,
    /// Bytes of a head: all terms have as many.
    width: usize,
    /// Bits by hash of a head: whether a term has it.
    filter: Vec<u64>,
    /// Open addressing by hash of a head: the head, and the terms that have it.
    slots: Vec<Slot>,
    looked_up: AtomicUsize,
    automaton: OnceLock<Option<DoubleArrayAhoCorasick<u32>>>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    head: u64,
    first: u32,
    /// 0: free.
    count: u32,
}

impl Heads {
    /// `terms` are distinct and ascending, each with its label. `None` if one is too short to be told by its head.
    pub(super) fn new(terms: &[(&str, u32)]) -> Option<Self> {
        let shortest = terms.iter().map(|(term, _)| term.len()).min()?;
        if shortest < NARROWEST || u32::try_from(terms.len()).is_err() {
            return None;
        }
        let size = terms.len().next_power_of_two();
        let mut heads = Self {
            bytes: Vec::with_capacity(terms.iter().map(|(term, _)| term.len()).sum()),
            ends: Vec::with_capacity(terms.len()),
            labels: terms.iter().map(|(_, label)| *label).collect(),
            shorter: Vec::with_capacity(terms.len()),
            width: shortest.min(WIDEST),
            filter: vec![0; (size / 4).max(1)],
            slots: vec![Slot::default(); size * 2],
            looked_up: AtomicUsize::new(0),
            automaton: OnceLock::new(),
        };
        // The terms that the last one begins with, itself included, from short to long.
        let mut nested: Vec<u32> = Vec::new();
        let mut last = None;
        for (position, (term, _)) in (0..).zip(terms) {
            heads.bytes.extend_from_slice(term.as_bytes());
            heads.ends.push(heads.bytes.len());
            while nested.last().is_some_and(|&outer| !term.as_bytes().starts_with(heads.term(outer))) {
                nested.pop();
            }
            heads.shorter.push(nested.last().copied().unwrap_or(NONE));
            nested.push(position);
            let head = heads.head(term.as_bytes());
            let slot = heads.slot(head);
            if last != Some(head) {
                heads.slots[slot] = Slot { head, first: position, count: 0 };
                let (word, bit) = heads.bit(head);
                heads.filter[word] |= bit;
                last = Some(head);
            }
            heads.slots[slot].count += 1;
        }
        Some(heads)
    }

    fn term(&self, position: u32) -> &[u8] {
        let at = position as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }

    /// The first bytes of what is at least as long as a head.
    fn head(&self, bytes: &[u8]) -> u64 {
        let head = match bytes.first_chunk::<WIDEST>() {
            Some(all) => u64::from_le_bytes(*all),
            None => {
                let mut all = [0; WIDEST];
                all[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(all)
            }
        };
        head & (u64::MAX >> (64 - 8 * self.width))
    }

    fn hash(head: u64) -> u64 {
        let mixed = head.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    }

    fn bit(&self, head: u64) -> (usize, u64) {
        let hash = Self::hash(head);
        let word = (hash >> 6) as usize & (self.filter.len() - 1);
        (word, 1 << (hash & 63))
    }

    /// The slot of a head, or a free one where it would be.
    fn slot(&self, head: u64) -> usize {
        let mut slot = (Self::hash(head) >> 3) as usize & (self.slots.len() - 1);
        while self.slots[slot].count > 0 && self.slots[slot].head != head {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    /// The first place at or after `from` where a term stands before `end`, and the longest term there: start, end, label.
    pub(super) fn find(&self, text: &[u8], from: usize, end: usize) -> Option<(usize, usize, u32)> {
        if let Some(Some(automaton)) = self.automaton.get() {
            let found = automaton.leftmost_find_iter(&text[from..end]).next()?;
            return Some((found.start() + from, found.end() + from, found.value()));
        }
        let mut looked_up = 0;
        let places = from..(end + 1).saturating_sub(self.width);
        let found = places.into_iter().find_map(|start| {
            let rest = &text[start..end];
            let head = self.head(rest);
            let (word, bit) = self.bit(head);
            if self.filter[word] & bit == 0 {
                return None;
            }
            looked_up += 1;
            let (length, label) = self.longest(head, rest)?;
            Some((start, start + length, label))
        });
        let before = self.looked_up.fetch_add(looked_up, Ordering::Relaxed);
        if before + looked_up > self.labels.len() * WORTH_BUILDING {
            self.automaton.get_or_init(|| self.build());
        }
        found
    }

    /// The longest term that `rest` begins with: its length and label.
    fn longest(&self, head: u64, rest: &[u8]) -> Option<(usize, u32)> {
        let Slot { first, count, .. } = self.slots[self.slot(head)];
        // The first of those with this head that is greater than the rest; the one before it is not.
        let (mut low, mut high) = (first, first + count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.term(middle) <= rest {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut position = if low > first { low - 1 } else { NONE };
        while position != NONE {
            let term = self.term(position);
            if rest.starts_with(term) {
                return Some((term.len(), self.labels[position as usize]));
            }
            position = self.shorter[position as usize];
        }
        None
    }

    #[cfg(test)]
    pub(super) fn is_built(&self) -> bool {
        matches!(self.automaton.get(), Some(Some(_)))
    }

    fn build(&self) -> Option<DoubleArrayAhoCorasick<u32>> {
        let terms = (0..).zip(&self.labels).map(|(position, label)| (self.term(position), *label));
        automaton(terms).ok()
    }
}

/// An automaton that finds the longest term at the first place that has one.
pub(super) fn automaton<T: AsRef<[u8]>>(
    terms: impl Iterator<Item = (T, u32)>,
) -> Result<DoubleArrayAhoCorasick<u32>, String> {
    let builder = DoubleArrayAhoCorasickBuilder::new().match_kind(daachorse::MatchKind::LeftmostLongest);
    builder.build_with_values(terms).map_err(|error| error.to_string())
}
