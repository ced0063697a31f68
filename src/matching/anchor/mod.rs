//! `anchor`: exactly the maximal old regions of length L or more, at the speed of reading the pages.
//!
//! **Problem.** A region shorter than L saves no extraction, so only those of L or more are wanted, but all of
//! them: moved blocks and parts of lines, which a line diff misses. The suffix tree visits every byte with several
//! dependent memory accesses; most of these bytes lie inside long matches, where comparing 8 to 64 bytes at a time
//! would do.
//!
//! **Idea.** Hash seeds of K bytes, sampled from q so that every L bytes of q hold one: with s = L-K+1, in every s
//! consecutive places one is sampled. Look up the seeds of p at *every* place: each region of L or more then meets
//! a sample, and comparing bytes in both directions from there gives the region. Four things make it fast:
//! * The common prefix and suffix are found first. They are provisional: another place of q may match longer. They
//!   are measured on the whole pages (in q they may overlap), and q is indexed as a whole (any part may be matched
//!   by any part of p).
//! * *Jump.* After a region `[a, e)`, what is still unknown ends after e, so it contains the L bytes from J =
//!   e+1-L: go on there. The inside of a match costs only the comparison.
//! * A bitmap answers most look-ups from the nearest cache (`index`).
//! * Two words of q are enough to reject most candidates: those that a known region explains, by the words at its
//!   ends; elsewhere those around which L bytes cannot match, by the words before and after the seed.
//!
//! The samples come in bursts of b consecutive places, and p is looked up at multiples of b only; a burst starts every
//! s-b+1 places at least, so that each L bytes hold a whole one, and it holds a multiple of b in p.
//!
//! # Pages that hardly differ
//! They come first: the *narrow* search aligns the two pages, indexes what lies around the differences in p and looks up
//! samples of q. It says itself why it is exact, and leaves pages with much new text to the others (`narrow`).
//!
//! # Repetitive text
//! What costs time is a seed that stands at many places of q: each is a candidate. So the search is *quick* next,
//! with seeds that are cheap to look up, of which only a few words are hashed. If it meets many candidates, the
//! *thorough* search starts over with longer seeds, hashed nearly byte by byte: they are rarer, and tell lines apart
//! that consist mostly of indentation. Either may place a sample earlier than it must, to keep it out of runs of
//! spaces. What is still too much (one repeated line) is left to the suffix `automaton`.
//!
//! # Why no region is lost
//! Let R = `[x, y)` be maximal, y-x >= L. R contains a seed of q that is looked up at one of the places x..x+s-1,
//! and likewise for the L bytes from any later place of R. Claim: whenever we jump, every unknown R ends after the
//! last known region `[a, e)`. Suppose y <= e. R is not inside `[a, e)`, so x < a, and all of x..x+s-1 lie at or
//! before a+s-2. The first trap: *we do not jump before all places up to a+s-2 have been looked up.* So if x is not
//! before J', where the last jump went, R has been found. Otherwise R was unknown at that jump, contained the L
//! bytes from J', and has been found if we do not jump again *before J'+s-1 has been looked up*, too.
//!
//! The second trap: while the places up to a+s-2 are looked up, most candidates are parts of `[a, e)`. One may be
//! skipped only if it neither passes e nor starts before a. Both are single words: those around `p[e]` and `p[a-1]`
//! against q at the candidate's shift.
//!
//! The end: a region unknown at the end is not inside the common suffix `[n-c, n)`, so it starts before n-c, and
//! nothing after n-c+s-2 need be looked up.
//!
//! # Certificate, places, characters
//! A region is found by comparing its bytes in p and q, so finding it certifies it; no hash is trusted. Then
//! regions are trimmed to whole characters and contained ones dropped; that cannot lose one of length L, because
//! trimming only shortens. The smallest place of a region: every place where it stands in q holds a sample. One met
//! while the region was the last known one is compared on the spot; for the few that were trimmed or overtaken, the
//! s places from their start are looked up again. A common prefix or suffix shorter than L is maximal if, with one
//! more character, it stands nowhere in q: a substring search.
//!
//! # Cost
//! Time O(|p| + |q|) always: work (candidates, compared bytes, list moves) is counted. The narrow search has an eighth of
//! a unit per byte of p and q. The quick search starts with a quarter of that and earns a unit for every 12 places of p, so
//! that it is given up soon where text repeats itself. The thorough search has five eighths per byte; what is more is left to the automaton. Typically
//! one pass of `memcmp`, and |q|/s samples. Memory: 20 to 28 bytes per seed; for L = 89 one or two per byte of q.
//! Property tests hold the result of all three searches against the oracle and the tree; the traps have tests of their
//! own.

mod index;
mod narrow;
mod search;
#[cfg(test)]
mod tests;

use std::ops::Range;

use self::index::Index;
use self::search::{Found, Search};
use crate::matching::bytes::{common_prefix, common_suffix};
use crate::model::Region;

/// Units of work per 8 bytes of p and q before a search gives up: a candidate, 64 compared bytes or one moved list
/// element are a unit each.
const NARROW_BUDGET: usize = 1;
const THOROUGH_BUDGET: usize = 5;
/// The quick search starts with a unit for so many bytes of p and q, and earns one for so many places of p: what repeats
/// itself is told early.
const QUICK_START: usize = 32;
const QUICK_PACE: usize = 12;
/// Small pages may spend this.
const BUDGET_AT_LEAST: usize = 4096;

/// The narrow search is worth its while if there are at most so many seeds of p: this part of q's length.
const NARROW: usize = 32;

/// Shortest L that seeds are made for. Below, the automaton is the matcher.
const SHORTEST: usize = 12;

#[derive(Default)]
pub(super) struct Anchor {
    index: Index,
    /// In bytes while searching, then in whole characters.
    found: Vec<Found>,
    /// Places of p around what is new.
    ranges: Vec<Range<usize>>,
}

/// What a page is to be matched against, and how.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) old: &'a [u8],
    pub(super) new: &'a [u8],
    /// L.
    pub(super) min_len: u32,
    /// Keep a maximal common prefix and suffix that are shorter than L.
    pub(super) short_edges: bool,
}

/// Lengths of the common prefix and suffix. The suffix is not measured where the prefix is the whole new page.
#[derive(Clone, Copy)]
pub(super) struct Edges {
    prefix: usize,
    suffix: usize,
}

impl Edges {
    pub(super) fn of(task: Task<'_>) -> Self {
        let Task { old, new, .. } = task;
        let prefix = common_prefix(old, new);
        let suffix = if prefix == new.len() { 0 } else { common_suffix(old, new) };
        Self { prefix, suffix }
    }
}

/// The budget is spent: another must search the page.
#[derive(Debug)]
pub(super) struct Spent;

impl Anchor {
    /// Replaces `out` by the chosen regions. Without a result if that is work for the automaton.
    pub(super) fn regions(&mut self, task: Task<'_>, out: &mut Vec<Region>) -> Result<(), Spent> {
        let bytes = task.old.len() + task.new.len();
        let budget = |per_word| BUDGET_AT_LEAST.max(bytes / 8 * per_word);
        let edges = Edges::of(task);
        let most = task.old.len() / NARROW;
        self.narrow(task, edges, most, budget(NARROW_BUDGET), out)
            .or_else(|Spent| self.quick(task, edges, (BUDGET_AT_LEAST.max(bytes / QUICK_START), QUICK_PACE), out))
            .or_else(|Spent| self.thorough(task, edges, (budget(THOROUGH_BUDGET), usize::MAX), out))
    }

    /// With seeds of p, if there are at most so many around what is new.
    pub(super) fn narrow(
        &mut self,
        task: Task<'_>,
        edges: Edges,
        most: usize,
        budget: usize,
        out: &mut Vec<Region>,
    ) -> Result<(), Spent> {
        match task.min_len as usize {
            0..SHORTEST => Err(Spent),
            SHORTEST..24 => Search::<12, 2, 1>::run_narrow(self, task, edges, most, budget, out),
            24..48 => Search::<24, 3, 1>::run_narrow(self, task, edges, most, budget, out),
            48..75 => Search::<32, 4, 1>::run_narrow(self, task, edges, most, budget, out),
            75..150 => Search::<48, 4, 1>::run_narrow(self, task, edges, most, budget, out),
            150..400 => Search::<96, 4, 2>::run_narrow(self, task, edges, most, budget, out),
            400..800 => Search::<128, 4, 4>::run_narrow(self, task, edges, most, budget, out),
            _ => Search::<256, 4, 8>::run_narrow(self, task, edges, most, budget, out),
        }
    }

    /// With seeds that are cheap to look up.
    pub(super) fn quick(
        &mut self,
        task: Task<'_>,
        edges: Edges,
        budget: (usize, usize),
        out: &mut Vec<Region>,
    ) -> Result<(), Spent> {
        match task.min_len as usize {
            0..SHORTEST => Err(Spent),
            SHORTEST..24 => Search::<12, 2, 1>::run(self, task, edges, budget, out),
            24..48 => Search::<24, 3, 1>::run(self, task, edges, budget, out),
            48..75 => Search::<32, 4, 1>::run(self, task, edges, budget, out),
            75..150 => Search::<56, 4, 2>::run(self, task, edges, budget, out),
            150..400 => Search::<96, 4, 3>::run(self, task, edges, budget, out),
            400..800 => Search::<128, 4, 8>::run(self, task, edges, budget, out),
            _ => Search::<256, 4, 8>::run(self, task, edges, budget, out),
        }
    }

    /// With longer and denser seeds, hence fewer candidates. The shortest are dense already and get a second budget.
    pub(super) fn thorough(
        &mut self,
        task: Task<'_>,
        edges: Edges,
        budget: (usize, usize),
        out: &mut Vec<Region>,
    ) -> Result<(), Spent> {
        match task.min_len as usize {
            0..SHORTEST => Err(Spent),
            SHORTEST..24 => Search::<12, 2, 1>::run(self, task, edges, budget, out),
            24..48 => Search::<24, 3, 1>::run(self, task, edges, budget, out),
            48..75 => Search::<40, 5, 1>::run(self, task, edges, budget, out),
            75..84 => Search::<56, 7, 1>::run(self, task, edges, budget, out),
            84..150 => Search::<80, 10, 1>::run(self, task, edges, budget, out),
            150..400 => Search::<128, 16, 3>::run(self, task, edges, budget, out),
            _ => Search::<256, 32, 8>::run(self, task, edges, budget, out),
        }
    }
}
