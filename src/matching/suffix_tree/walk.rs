//! Matching statistics of p by whole characters, and Lemma 1.

use std::ops::Range;

use super::{LEAF, NONE, Node, ROOT, SuffixTree};
use crate::matching::bytes::{common_prefix, floor_boundary, is_boundary, offset};
use crate::model::Region;

/// The locus of `new[start..end)`: `node`, or the edge below it to `child`.
struct Locus {
    node: Node,
    child: Node,
    start: usize,
    end: usize,
    /// The nodes passed last, newest first: a reading that stops within a character is taken back by up to three
    /// bytes, that is by up to three nodes.
    trail: [Node; 4],
}

impl SuffixTree {
    /// The maximal regions that start in `starts`, whose ends are character boundaries.
    pub(super) fn walk(&self, old: &[u8], new: &[u8], starts: Range<usize>, out: &mut Vec<Region>) {
        let first = if starts.start == 0 { 0 } else { floor_boundary(new, starts.start - 1) };
        let mut locus = Locus { node: ROOT, child: NONE, start: first, end: first, trail: [ROOT; 4] };
        let mut last_end = 0;
        while locus.start < starts.end {
            self.read_on(&mut locus, old, new);
            // `end > start` says not empty; `end > last_end` is Lemma 1.
            if locus.start >= starts.start && locus.end > last_end && locus.end > locus.start {
                out.push(Region {
                    start: offset(locus.start),
                    end: offset(locus.end),
                    old_start: self.place(if locus.child == NONE { locus.node } else { locus.child }),
                });
            }
            last_end = locus.end;
            self.hop(&mut locus, new);
        }
    }

    /// Extends the end as far as the string stands in q, in whole characters.
    #[inline]
    fn read_on(&self, locus: &mut Locus, old: &[u8], new: &[u8]) {
        let before = locus.end;
        locus.trail = [locus.node; 4];
        while locus.end < new.len() {
            if locus.child == NONE {
                locus.child = self.child(locus.node, new[locus.end]);
                if locus.child == NONE {
                    break;
                }
            }
            let length = locus.end - locus.start;
            let place = self.place(locus.child) as usize;
            let is_leaf = locus.child & LEAF != 0;
            let edge_end = if is_leaf { old.len() } else { place + self.depth(locus.child) };
            let edge = &old[place + length..edge_end];
            let read = common_prefix(edge, &new[locus.end..]);
            locus.end += read;
            if read < edge.len() || is_leaf {
                break;
            }
            locus.node = locus.child;
            locus.child = NONE;
            let [a, b, c, _] = locus.trail;
            locus.trail = [locus.node, a, b, c];
        }
        if locus.end > before && !is_boundary(new, locus.end) {
            self.take_back(locus, new);
        }
    }

    #[cold]
    fn take_back(&self, locus: &mut Locus, new: &[u8]) {
        locus.end = floor_boundary(new, locus.end);
        let length = locus.end - locus.start;
        let [.., oldest] = locus.trail;
        locus.node = locus.trail.into_iter().find(|&node| self.depth(node) <= length).unwrap_or(oldest);
        let depth = self.depth(locus.node);
        locus.child = if depth < length { self.child(locus.node, new[locus.start + depth]) } else { NONE };
    }

    /// Drops the first character.
    #[inline]
    fn hop(&self, locus: &mut Locus, new: &[u8]) {
        loop {
            locus.start += 1;
            locus.node = self.inner[locus.node as usize].link;
            if is_boundary(new, locus.start) {
                break;
            }
        }
        locus.child = NONE;
        if locus.end <= locus.start {
            locus.end = locus.start;
            locus.node = ROOT;
            return;
        }
        let length = locus.end - locus.start;
        // Skip and count.
        loop {
            let depth = self.depth(locus.node);
            if depth == length {
                return;
            }
            let child = self.child(locus.node, new[locus.start + depth]);
            if child & LEAF != 0 || self.depth(child) > length {
                locus.child = child;
                return;
            }
            locus.node = child;
        }
    }
}
