//! Patterns without a longest match, cut at barriers.
//!
//! What a pattern finds between two barriers (see `extract::regex::analysis`) depends on the bytes between them only.
//! So a stretch of an old region is copied if at each of its ends a barrier or a page edge stands in *both* pages;
//! the bytes themselves tell, no margin is needed. The rest is searched, stretch by stretch.

use super::chain::Range;
use super::synced::OldMatches;
use crate::extract::mention::Found;
use crate::extract::scan::{Barriers, Scan};
use crate::model::Region;

/// Finds barriers; looks at every byte once in each direction if asked in increasing order.
struct Finder<'a> {
    text: &'a [u8],
    barriers: &'a Barriers,
    /// The first barrier at or after `.0`.
    next: (usize, usize),
    /// The last barrier before `.0`.
    last: (usize, Option<usize>),
}

impl Finder<'_> {
    fn at_or_after(&mut self, from: usize) -> usize {
        if !(self.next.0..=self.next.1).contains(&from) {
            let found = self.text[from..].iter().position(|&byte| self.barriers.contains(byte));
            self.next = (from, found.map_or(self.text.len(), |ahead| from + ahead));
        }
        self.next.1
    }

    fn before(&mut self, to: usize) -> Option<usize> {
        let known = if to >= self.last.0 { self.last } else { (0, None) };
        let found = self.text[known.0..to].iter().rposition(|&byte| self.barriers.contains(byte));
        self.last = (to, found.map(|behind| known.0 + behind).or(known.1));
        self.last.1
    }

    /// The part of a region between the first and last position where both pages can be cut.
    fn between_cuts(&mut self, region: Region, old: &[u8]) -> (usize, usize) {
        let (start, end) = (region.start as usize, region.end as usize);
        let (old_start, old_end) = (region.old_start as usize, region.old_end() as usize);
        let cut_before = |text: &[u8], at: usize| at == 0 || self.barriers.contains(text[at - 1]);
        let cut_after = |text: &[u8], at: usize| at == text.len() || self.barriers.contains(text[at]);
        let starts_at_cut = cut_before(self.text, start) && cut_before(old, old_start);
        let ends_at_cut = cut_after(self.text, end) && cut_after(old, old_end);
        let from = if starts_at_cut { start } else { self.at_or_after(start) };
        let to = if ends_at_cut { end } else { self.before(end).unwrap_or(0) };
        (from, to)
    }
}

/// A pattern's work on a page.
pub(crate) struct Cutting<'a> {
    pub(crate) barriers: &'a Barriers,
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    /// Certified, in order.
    pub(crate) regions: &'a [Region],
}

impl Cutting<'_> {
    /// The stretches that are copied, each with its region: in order, none overlapping another.
    pub(crate) fn stretches(&self) -> Vec<(usize, usize, Region)> {
        let mut finder = Finder { text: self.new.as_bytes(), barriers: self.barriers, next: (1, 0), last: (0, None) };
        let mut stretches = Vec::new();
        let mut at = 0;
        let mut furthest = 0;
        for &region in self.regions {
            // Regions inside others have nothing to add.
            if region.end <= furthest {
                continue;
            }
            furthest = region.end;
            let (from, to) = finder.between_cuts(region, self.old.as_bytes());
            // Where the last stretch ended a barrier stands in the new page, hence in this region and in the old page.
            let from = from.max(at);
            if to > from {
                stretches.push((from, to, region));
                at = to;
            }
        }
        stretches
    }

    /// Appends all matches, in page order, and the ranges that were searched.
    pub(crate) fn recycle(
        &self,
        scan: &mut dyn Scan,
        old_matches: &OldMatches<'_>,
        out: &mut Vec<Found>,
        searched: &mut Vec<Range>,
    ) {
        let mut at = 0;
        for (from, to, region) in self.stretches() {
            search(scan, self.new, at, from, out, searched);
            let position = |at: usize| i64::try_from(at).expect("texts are shorter than 4 GiB");
            let shift = region.shift();
            old_matches.copy(position(from) - shift, position(to) - shift, shift, out);
            at = to;
        }
        search(scan, self.new, at, self.new.len(), out, searched);
    }
}

/// All matches of a stretch that ends at a barrier or with the page.
fn search(scan: &mut dyn Scan, text: &str, from: usize, to: usize, out: &mut Vec<Found>, searched: &mut Vec<Range>) {
    if from < to {
        let position = |at: usize| i64::try_from(at).expect("texts are shorter than 4 GiB");
        searched.push((position(from), position(to)));
    }
    let mut at = from;
    while at < to {
        let Some(mention) = scan.next(text, at, to) else { return };
        at = mention.end as usize;
        out.push(Found::extracted(mention));
    }
}
