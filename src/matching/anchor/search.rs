//! Looking up the seeds of p, and what follows from a hit. The module above says why this is exact.

use memchr::memmem;

use super::index::Index;
use super::{Anchor, Edges, Spent, Task};
use crate::matching::bytes::{WORD, ceil_boundary, common_prefix, common_suffix, floor_boundary, offset, word};
use crate::matching::keep::{Choice, Place};
use crate::model::Region;

pub(super) struct Search<'a, const SPAN: usize, const WORDS: usize, const BURST: usize> {
    pub(super) old: &'a [u8],
    pub(super) new: &'a [u8],
    /// L.
    pub(super) least: usize,
    /// s: a region of L bytes meets a sample within this many places.
    pub(super) reach: usize,
    pub(super) index: &'a Index,
    /// Whether that holds seeds of q.
    pub(super) of_old: bool,
    pub(super) found: &'a mut Vec<Found>,
    pub(super) budget: usize,
    /// A unit is added to the budget for so many places.
    pub(super) pace: usize,
}

/// What a seed inside the last known region suggests.
enum Candidate {
    /// Part of the known region.
    Useless,
    /// The known region, at this smaller place: perhaps.
    Same(usize),
    /// A region that ends after the known one or starts before it: perhaps.
    Longer,
}

impl Candidate {
    /// By the two words that hold the last byte of the known region and the next one, and the byte before it and the
    /// first one: as cheap as bytes, and they reject more.
    #[inline]
    fn inside(known: Region, old: &[u8], new: &[u8], at: usize, place: usize) -> Self {
        let (start, end) = (known.start as usize, known.end as usize);
        let old_end = place + (end - at);
        let has_next = end < new.len() && old_end < old.len();
        let tail = if has_next { word(new, end + 1 - WORD) ^ word(old, old_end + 1 - WORD) } else { NEXT_BYTE };
        if tail == 0 {
            return Self::Longer;
        }
        let Some(old_start) = (place + start).checked_sub(at) else {
            return Self::Useless;
        };
        let has_previous = start > 0 && old_start > 0;
        let head = if has_previous { word(new, start - 1) ^ word(old, old_start - 1) } else { PREVIOUS_BYTE };
        if head == 0 {
            return Self::Longer;
        }
        let same = tail & !NEXT_BYTE == 0 && head & !PREVIOUS_BYTE == 0;
        if same && old_start < known.old_start as usize { Self::Same(old_start) } else { Self::Useless }
    }
}

/// In a word that ends, or starts, with the byte beyond the known region: that byte.
const NEXT_BYTE: u64 = 0xFF << 56;
const PREVIOUS_BYTE: u64 = 0xFF;

#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) region: Region,
    /// `old_start` is known to be the smallest place where it stands.
    pub(super) is_smallest: bool,
}

impl Found {
    pub(super) fn new(start: usize, end: usize, old_start: usize) -> Self {
        let region = Region { start: offset(start), end: offset(end), old_start: offset(old_start) };
        Self { region, is_smallest: false }
    }

    pub(super) fn start(&self) -> usize {
        self.region.start as usize
    }

    pub(super) fn end(&self) -> usize {
        self.region.end as usize
    }
}

impl<'a, const SPAN: usize, const WORDS: usize, const BURST: usize> Search<'a, SPAN, WORDS, BURST> {
    pub(super) fn run(
        anchor: &'a mut Anchor,
        task: Task<'a>,
        edges: Edges,
        (budget, pace): (usize, usize),
        out: &mut Vec<Region>,
    ) -> Result<(), Spent> {
        let Task { old, new, min_len, .. } = task;
        let least = min_len as usize;
        let Anchor { index, found, .. } = anchor;
        found.clear();
        let reach = least - SPAN + 1;
        let whole = edges.prefix == new.len() || edges.suffix == new.len();
        let seeds = !whole && least <= new.len().min(old.len());
        if seeds {
            index.build::<SPAN, WORDS>(old, reach - BURST + 1, BURST);
        }
        let mut search = Self { old, new, least, reach, index, of_old: true, found, budget, pace };
        if seeds {
            search.scan(edges)?;
        } else if whole && !new.is_empty() {
            let old_start = if edges.prefix == new.len() { 0 } else { old.len() - new.len() };
            search.found.push(Found::new(0, new.len(), old_start));
        }
        search.finish(task, edges, out)
    }

    /// From byte-maximal regions to the chosen ones.
    pub(super) fn finish(mut self, task: Task<'a>, edges: Edges, out: &mut Vec<Region>) -> Result<(), Spent> {
        self.trim();
        if task.short_edges {
            self.add_short_edges(edges);
        }
        self.choose(task.min_len, task.short_edges, out)
    }

    /// Finds the byte-maximal regions of L or more.
    fn scan(&mut self, Edges { prefix, suffix }: Edges) -> Result<(), Spent> {
        let (least, reach, index, new) = (self.least, self.reach, self.index, self.new);
        let n = new.len();
        let (mut at, mut earned) = (0, 0);
        // Every place up to this one must be looked up before the next jump: a jump's reach.
        let mut settled = 0;
        if prefix >= least {
            self.found.push(Found::new(0, prefix, 0));
            at = prefix + 1 - least;
            settled = at + reach - 1;
        }
        // What starts later lies inside the common suffix.
        let stop = n - suffix + reach - 2;
        let last_place = n - SPAN;
        loop {
            let mut until = last_place.min(stop.max(settled));
            if let Some(last) = self.found.last_mut() {
                // One place more than needed to miss no region: so all places of q were met where this one stands.
                let zone = settled.max(last.start() + reach - 1);
                if at > zone {
                    last.is_smallest = true;
                    let end = last.end();
                    if end == n {
                        break;
                    }
                    if at < end + 1 - least {
                        at = end + 1 - least;
                        settled = at + reach - 1;
                        continue;
                    }
                } else {
                    until = until.min(zone);
                }
            }
            if at > until {
                break;
            }
            at = at.next_multiple_of(BURST);
            while at <= until {
                let Some((hit, hash)) = index.next_hit::<SPAN, WORDS, BURST>(new, at, until) else {
                    at = (until + 1).next_multiple_of(BURST);
                    break;
                };
                if hit > earned {
                    self.budget = self.budget.saturating_add((hit - earned) / self.pace);
                    earned = hit;
                }
                let mut changed = false;
                for place in index.places(hash) {
                    changed |= self.consider(hit, place)?;
                }
                at = hit + BURST;
                if changed {
                    break;
                }
            }
        }
        self.budget = self.budget.saturating_add(n / self.pace);
        self.add_suffix(suffix);
        Ok(())
    }

    /// Says whether a new region was found.
    fn consider(&mut self, at: usize, place: usize) -> Result<bool, Spent> {
        let known = self.found.len().wrapping_sub(1);
        self.consider_near(known, at, place)
    }

    /// Holds the candidate against the known region of this number, if there is one and the seed lies in it.
    #[inline]
    pub(super) fn consider_near(&mut self, known: usize, at: usize, place: usize) -> Result<bool, Spent> {
        self.spend(1)?;
        let (old, new) = (self.old, self.new);
        let around = self.found.get(known).map(|known| known.region).filter(|known| at + WORD <= known.end as usize);
        match around.map(|region| Candidate::inside(region, old, new, at, place)) {
            Some(Candidate::Useless) => return Ok(false),
            Some(Candidate::Same(place)) => return self.consider_place(known, place),
            Some(Candidate::Longer) => {}
            None if self.may_be_long(at, place) => {}
            None => return Ok(false),
        }
        let after = common_prefix(&new[at..], &old[place..]);
        if after < SPAN {
            return Ok(false);
        }
        let before = common_suffix(&new[..at], &old[..place]);
        self.spend((before + after) / 64)?;
        if before + after < self.least {
            return Ok(false);
        }
        self.insert(Found::new(at - before, at + after, place - before))
    }

    /// A smaller place for a known region: finds no new one.
    fn consider_place(&mut self, known: usize, place: usize) -> Result<bool, Spent> {
        let known = &mut self.found[known];
        let text = &self.new[known.region.span().range()];
        let same = common_prefix(text, &self.old[place..]);
        if same == text.len() {
            known.region.old_start = offset(place);
        }
        self.spend(same / 64)?;
        Ok(false)
    }

    /// Whether a region with this seed can be L long: if L is not much more than a seed, or if what stands on one side of
    /// the seed belongs to it, at least half of what is missing.
    #[inline]
    fn may_be_long(&self, at: usize, place: usize) -> bool {
        match self.least - SPAN {
            ..15 => true,
            15..31 => self.is_beside::<WORD>(at, place),
            _ => self.is_beside::<{ 2 * WORD }>(at, place),
        }
    }

    /// Whether so many bytes before the seed, or behind it, are equal.
    #[inline]
    fn is_beside<const BYTES: usize>(&self, at: usize, place: usize) -> bool {
        let (old, new) = (self.old, self.new);
        let block = |text: &[u8], at: usize| -> Option<[u8; BYTES]> { text.get(at..at + BYTES)?.try_into().ok() };
        let equal = |at, place| matches!((block(new, at), block(old, place)), (Some(a), Some(b)) if a == b);
        equal(at + SPAN, place + SPAN) || at >= BYTES && place >= BYTES && equal(at - BYTES, place - BYTES)
    }

    /// Keeps the list free of regions inside others, starts and ends growing. Of equal ones the smaller place counts.
    pub(super) fn insert(&mut self, new: Found) -> Result<bool, Spent> {
        let mut index = self.found.len();
        while index > 0 && self.found[index - 1].start() >= new.start() {
            index -= 1;
        }
        self.spend(self.found.len() - index)?;
        if let Some(same) = self.found.get_mut(index).filter(|known| known.region.span() == new.region.span()) {
            same.region.old_start = same.region.old_start.min(new.region.old_start);
            return Ok(false);
        }
        let inside = |outer: Option<&Found>| outer.is_some_and(|outer| outer.region.span().contains(new.region.span()));
        if inside(self.found.get(index)) || (index > 0 && inside(self.found.get(index - 1))) {
            return Ok(false);
        }
        let swallowed = self.found[index..].iter().take_while(|other| other.end() <= new.end()).count();
        self.found.splice(index..index + swallowed, [new]);
        Ok(true)
    }

    pub(super) fn add_suffix(&mut self, suffix: usize) {
        let n = self.new.len();
        let start = n - suffix;
        let swallowing = self.found.last().is_some_and(|last| last.end() == n && last.start() <= start);
        if suffix < self.least || swallowing {
            return;
        }
        while self.found.last().is_some_and(|last| last.start() >= start) {
            self.found.pop();
        }
        self.found.push(Found::new(start, n, self.old.len() - suffix));
    }

    /// To whole characters, without those that then lie inside others.
    fn trim(&mut self) {
        let new = self.new;
        let mut kept = 0;
        for index in 0..self.found.len() {
            let found = self.found[index];
            let start = ceil_boundary(new, found.start());
            let end = floor_boundary(new, found.end());
            if start >= end || (kept > 0 && self.found[kept - 1].end() >= end) {
                continue;
            }
            if kept > 0 && self.found[kept - 1].start() == start {
                kept -= 1;
            }
            // What was trimmed may stand at more places.
            let as_found = (start, end) == (found.start(), found.end());
            let trimmed = Found::new(start, end, found.region.old_start as usize + (start - found.start()));
            self.found[kept] = if as_found { found } else { trimmed };
            kept += 1;
        }
        self.found.truncate(kept);
    }

    /// Adds the common prefix and suffix, in whole characters, if they are too short to be found but maximal.
    fn add_short_edges(&mut self, Edges { prefix, suffix }: Edges) {
        let (old, new) = (self.old, self.new);
        let n = new.len();
        let prefix = floor_boundary(new, prefix);
        if prefix > 0 && self.found.first().is_none_or(|first| first.start() > 0) {
            let longer = ceil_boundary(new, prefix + 1);
            if memmem::find(old, &new[..longer]).is_none() {
                self.found.insert(0, Found::new(0, prefix, 0));
            }
        }
        let start = ceil_boundary(new, n - suffix);
        if start < n && self.found.last().is_none_or(|last| last.end() < n) {
            let longer = floor_boundary(new, start - 1);
            if memmem::find(old, &new[longer..]).is_none() {
                self.found.push(Found::new(start, n, old.len() - (n - start)));
            }
        }
    }

    fn choose(mut self, min_len: u32, short_edges: bool, out: &mut Vec<Region>) -> Result<(), Spent> {
        let choice = Choice { old: self.old, new: self.new, min_len, short_edges, proven: true };
        let found = std::mem::take(self.found);
        let chosen = choice.run(found.iter().map(|found| found.region), out, |index, region| {
            if found[index].is_smallest {
                return Place::At(region.old_start);
            }
            self.smallest(region).map_or(Place::TooDear, Place::At)
        });
        *self.found = found;
        chosen.ok_or(Spent)
    }

    /// The smallest place where a region of L or more stands: each contains a sample.
    fn smallest(&mut self, region: Region) -> Result<u32, Spent> {
        let (start, index) = (region.start as usize, self.index);
        let text = &self.new[region.span().range()];
        let mut smallest = region.old_start as usize;
        if !self.of_old {
            let first = memmem::find(&self.old[..smallest + text.len()], text).unwrap_or(smallest);
            self.spend((first + text.len()) / 64)?;
            return Ok(offset(first));
        }
        let (mut at, until) = (start.next_multiple_of(BURST), start + self.reach - 1);
        while at <= until {
            let Some((hit, hash)) = index.next_hit::<SPAN, WORDS, BURST>(self.new, at, until) else {
                break;
            };
            for place in index.places(hash) {
                self.spend(1)?;
                let Some(place) = place.checked_sub(hit - start).filter(|&place| place < smallest) else {
                    continue;
                };
                let same = common_prefix(text, &self.old[place..]);
                self.spend(same / 64)?;
                if same == text.len() {
                    smallest = place;
                }
            }
            at = hit + BURST;
        }
        Ok(offset(smallest))
    }

    #[inline]
    pub(super) fn spend(&mut self, units: usize) -> Result<(), Spent> {
        self.budget = self.budget.checked_sub(units).ok_or(Spent)?;
        Ok(())
    }
}
