//! Finding the parts of a new page p that stand in its old version q.
//!
//! An *old region* is a span of p that also stands in q. It is *maximal* if it is not empty and, extended by a
//! character on either side, stands nowhere in q. What lies in old regions need not be extracted again.
//!
//! # Which matcher
//! | matcher | finds | time | memory | choose it |
//! |---|---|---|---|---|
//! | `edges` | the common prefix and suffix | one `memcmp` | none | if pages change in one place |
//! | `diff` | common lines, in order | a hash per line | 1 to 2 bytes per byte | to compare: the paper's UD |
//! | `suffix-tree` | all maximal regions | 30 ns per byte | 30 bytes per byte of q | to compare: the paper's ST |
//! | `anchor` | the maximal ones of length L or more | near `memcmp` | about a byte per byte | by default |
//!
//! `anchor` and `suffix-tree` give the same regions, places included: those of length L or more, and the common
//! prefix and suffix where maximal. A shorter region can neither be copied from nor join two others, so nothing is
//! gained by more. For L of 75 or more `anchor` is also faster than `diff` on most pages, and slower on heavily changed
//! repetitive ones (`tests/benches/matching.rs` measures). `diff` and `edges` find less than there is: their
//! regions need not be maximal.
//!
//! # What all have in common
//! * Regions come by start; those of `anchor` and `suffix-tree` may overlap. They begin and end between characters.
//! * Every region is certified by comparing bytes (`certify`), or was found by doing so (`anchor`, `edges`).
//! * The result depends on the texts and L alone: not on threads, memory or earlier pages.
//! * All stay linear on hostile text: `aaaa…`, repeated rows. `anchor` leaves such pages to the suffix `automaton`,
//!   `diff` finds less.
//!
//! Pages are the unit of parallel work: each thread keeps a [`Scratch`]. The core is in bytes; `keep` says
//! which regions are kept, and which of several places in q is named.
//!
//! # To add a matcher
//! Two files: its own module here, and this one, where it gets a member of [`MatcherKind`], its facts and its line in
//! `run`. Plans, tables, the pipeline file, the command line, tests and reports take it from there.

#![allow(
    clippy::cast_possible_truncation,
    reason = "texts are at most LONGEST bytes, so offsets fit 32 bits; hashes are cut on purpose"
)]

mod anchor;
mod automaton;
mod bytes;
mod certify;
mod diff;
mod edges;
mod keep;
#[cfg(test)]
mod naive;
mod per_matcher;
mod suffix_tree;
#[cfg(test)]
mod tests;

use self::anchor::{Anchor, Task};
use self::automaton::Automaton;
use self::certify::Certifier;
use self::keep::{Choice, Place};
use self::suffix_tree::SuffixTree;
use crate::model::Region;
use crate::model::closed_set::closed_set;

pub(crate) use self::per_matcher::PerMatcher;

/// Longer texts (bytes) are matched by `edges`: node and state numbers have 31 bits.
const LONGEST: usize = 1 << 29;

/// Memory (bytes) that a thread keeps per linear structure from one page to the next.
const KEPT: usize = 64 << 20;

closed_set! {
    /// How old regions are found. The module says which to choose.
    pub enum MatcherKind: "matcher" {
        Edges = "edges",
        Diff = "diff",
        SuffixTree = "suffix-tree",
        Anchor = "anchor",
    }
}

/// Memory that matchers reuse from page to page: one per thread.
#[derive(Default)]
pub struct Scratch {
    anchor: Anchor,
    automaton: Automaton,
    tree: SuffixTree,
    maximal: Vec<Region>,
}

impl Scratch {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// Classes of changed pages: how much of a page lies between its common prefix and suffix, from little to all of it.
pub(crate) const CLASSES: usize = 4;

/// What is known of a matcher before anything was measured.
#[derive(Clone, Copy, Debug)]
pub struct MatcherFacts {
    /// Whether it finds all regions of a given length: what it leaves to extract is then the least possible.
    pub complete: bool,
    /// Nanoseconds a byte of both pages, by class of page.
    pub nanoseconds: [f64; CLASSES],
    /// Share of the text between prefix and suffix that is left to extract.
    pub leaves: f64,
    /// Regions a page.
    pub regions: f64,
}

impl MatcherKind {
    #[must_use]
    pub const fn facts(self) -> MatcherFacts {
        let (complete, nanoseconds, leaves, regions) = match self {
            Self::Edges => (false, [0.05, 0.05, 0.05, 0.05], 1.0, 2.0),
            Self::Diff => (false, [0.7, 0.8, 1.0, 1.2], 0.6, 6.0),
            Self::SuffixTree => (true, [15.0, 15.0, 16.0, 17.0], 0.4, 6.0),
            Self::Anchor => (true, [0.2, 0.3, 0.5, 0.8], 0.4, 6.0),
        };
        MatcherFacts { complete, nanoseconds, leaves, regions }
    }

    /// Replaces `out` by the old regions of `new` that are `min_len` bytes long or more, or a common prefix or
    /// suffix of the two pages (for `suffix-tree` and `anchor`: where it is maximal).
    pub fn regions(self, old: &str, new: &str, min_len: u32, scratch: &mut Scratch, out: &mut Vec<Region>) {
        let task = Task { old: old.as_bytes(), new: new.as_bytes(), min_len: min_len.max(1), short_edges: true };
        self.run(task, scratch, out);
    }

    /// As [`MatcherKind::regions`], but for `suffix-tree` and `anchor` without shorter prefixes and suffixes. With
    /// a `min_len` of 1, `suffix-tree` gives the result of the paper's Algorithm 1.
    pub fn regions_at_least(self, old: &str, new: &str, min_len: u32, scratch: &mut Scratch, out: &mut Vec<Region>) {
        let task = Task { old: old.as_bytes(), new: new.as_bytes(), min_len: min_len.max(1), short_edges: false };
        self.run(task, scratch, out);
    }

    fn run(self, task: Task<'_>, scratch: &mut Scratch, out: &mut Vec<Region>) {
        let Task { old, new, .. } = task;
        let too_long = old.len().max(new.len()) > LONGEST;
        match self {
            _ if too_long => edges::regions(old, new, out),
            Self::Edges => edges::regions(old, new, out),
            Self::Diff => {
                diff::regions(old, new, out);
                let mut certifier = Certifier::new(old, new);
                out.retain(|&region| {
                    let edge = region.start == 0 && region.old_start == 0
                        || region.end as usize == new.len() && region.old_end() as usize == old.len();
                    (edge || region.len() >= task.min_len) && certifier.holds(region)
                });
            }
            Self::SuffixTree => {
                scratch.tree.regions(old, new, &mut scratch.maximal);
                scratch.tree.shrink(KEPT);
                choose_certified(task, &scratch.maximal, out);
            }
            Self::Anchor => {
                if scratch.anchor.regions(task, out).is_err() {
                    run_automaton(task, scratch, out);
                }
            }
        }
    }
}

/// What `anchor` falls back to, on its own, with the result of `suffix-tree`: to measure the one against the other.
pub fn automaton_regions(old: &str, new: &str, min_len: u32, scratch: &mut Scratch, out: &mut Vec<Region>) {
    let task = Task { old: old.as_bytes(), new: new.as_bytes(), min_len: min_len.max(1), short_edges: true };
    run_automaton(task, scratch, out);
}

fn run_automaton(task: Task<'_>, scratch: &mut Scratch, out: &mut Vec<Region>) {
    scratch.automaton.regions(task.old, task.new, &mut scratch.maximal);
    scratch.automaton.shrink(KEPT);
    choose_certified(task, &scratch.maximal, out);
}

/// Chooses among the results of a matcher that gives smallest places but is not believed.
fn choose_certified(task: Task<'_>, maximal: &[Region], out: &mut Vec<Region>) {
    let Task { old, new, min_len, short_edges } = task;
    let mut certifier = Certifier::new(old, new);
    let choice = Choice { old, new, min_len, short_edges, proven: false };
    let chosen = choice.run(maximal.iter().copied(), out, |_, region| match certifier.holds(region) {
        true => Place::At(region.old_start),
        false => Place::False,
    });
    debug_assert!(chosen.is_some(), "certifying has no budget");
}
