//! `suffix-tree`: all maximal old regions, the result of Cyclex's Algorithm 1 (ST).
//!
//! **Problem.** For every place of the new page p, how far does the text from there also stand somewhere in the old
//! page q? Comparing every place of p with every place of q takes |p| times |q| steps. We want |p| + |q|.
//!
//! # The tree
//! Write all suffixes of q below one root, sharing what they have in common: a string occurs in q if and only if it
//! can be read downwards from the root. Only places where readings part become nodes; the text between two nodes is
//! an edge, stored as a range of q. So there are at most |q| leaves (one per suffix) and fewer inner nodes. Where
//! we are in the tree, maybe in the middle of an edge, is called the *locus* of the string read so far.
//!
//! **Suffix links.** An inner node that spells `xw` (x one byte) points to the node that spells `w`. It exists: if
//! the readings of `xw` part, so do those of `w`. The links are what makes everything linear: having read
//! `p[i..k)`, we reach the locus of `p[i+1..k)` without reading it again. Go up to the nearest node, across its
//! link, and down again; on the way down only the first byte of each edge is looked at, since the rest is known to
//! fit (*skip and count*). Every step down is paid for by the node depth that a later link loses, at most one per
//! hop.
//!
//! **Construction** is Ukkonen's: q is read once from left to right, and for each byte the suffixes that cannot be
//! read on get a leaf, longest first, following suffix links from one to the next; the first that can be read on
//! ends the round, because then all shorter ones can, too. `build` is that loop.
//!
//! # Matching statistics
//! For every i let `end(i)` be the largest k such that `p[i..k)` occurs in q. `walk` computes all of them in one
//! pass: read on from k as far as the tree allows, note `end(i) = k`, hop to `p[i+1..k)`, go on. k never goes back
//! (what follows i also follows i+1), so p is read once, with one hop per place.
//!
//! **Lemma 1 of the paper.** `p[i..end(i))` is a maximal old region if and only if it is not empty and `end(i) >
//! end(i-1)`: it cannot be extended to the right by definition, and if it could to the left, `p[i-1..end(i))` would
//! occur in q, so `end(i-1)` would not be smaller. So maximal regions come out in order, and their starts and ends
//! both grow strictly.
//!
//! # Where we differ from the paper
//! * *p is not inserted.* The paper inserts the suffixes of p into q's tree. A reading can then run on in text that
//!   only p has, and each node needs a *prefix link* to its lowest ancestor that q has, too. A walk that leaves the
//!   tree alone never leaves q, so the node at hand always is its own prefix link; the ends found are the same,
//!   with half the memory.
//! * *No terminator.* A `$` must not occur in the text, but a page may hold any byte, NUL included. Without it, a
//!   suffix that also occurs earlier in q ends within the tree instead of at a leaf of its own. Nothing is lost:
//!   the same string can be read. Leaves have no suffix link, so a locus at the very end of a leaf's edge is kept
//!   as a place on that edge, and left upwards.
//! * *Whole characters.* i and k stop only where a character of p begins: `end(i)` is taken back to the last such
//!   place, a hop is as many links as the character has bytes. That gives the byte-maximal regions trimmed to
//!   characters, those contained in others dropped: a span of whole characters that occurs in q lies in a
//!   byte-maximal region, hence in its trimmed span.
//! * *Empty regions* (a character that q does not have) are not reported.
//! * *The smallest place in q* comes free: each node holds the start of the first suffix that came through it, and
//!   leaves are made in order of their suffixes.
//!
//! # Cost
//! O((|p| + |q|) c) time, with c the cost of finding a child: children are a linked list, from the ninth on a table
//! of 256 (as many as fit 2 bytes per byte of q; the root always). No allocation per node: inner nodes take 24
//! bytes, leaves 8, about 20 bytes per byte of q together. A large p is cut into one piece per thread, all walking
//! the same tree: a piece starts one character early, for the lemma's `end(i-1)`, so the result does not depend on
//! the cuts.

mod build;
mod walk;

use rayon::prelude::*;

use crate::matching::bytes::floor_boundary;
use crate::model::Region;

/// Pages from this size on are walked in parallel (bytes of p). Below it, pages are the unit of parallel work.
const LARGE: usize = 1 << 20;

/// A reference to a node: an inner one by its index, a leaf by its suffix's start with the top bit set.
type Node = u32;

const NONE: Node = u32::MAX;
const LEAF: Node = 1 << 31;
const ROOT: Node = 0;

#[derive(Clone, Copy)]
struct Inner {
    /// Length of the string that the node spells.
    depth: u32,
    /// The smallest place in q where that string stands.
    place: u32,
    /// The node that spells the same without the first byte.
    link: Node,
    /// First child, or the index of a table of children.
    children: u32,
    /// Next child of the same parent, if that has no table.
    next: Node,
    /// First byte of the edge from the parent.
    byte: u8,
    count: u8,
    has_table: bool,
}

#[derive(Clone, Copy)]
struct Leaf {
    next: Node,
    byte: u8,
}

/// The suffix tree of a text; its memory is reused from text to text.
#[derive(Default)]
pub(super) struct SuffixTree {
    inner: Vec<Inner>,
    /// By start of their suffix.
    leaves: Vec<Leaf>,
    tables: Vec<[Node; 256]>,
    most_tables: usize,
}

impl SuffixTree {
    /// All maximal old regions of `new`, by start, each with the smallest place where it stands in `old`.
    pub(super) fn regions(&mut self, old: &[u8], new: &[u8], out: &mut Vec<Region>) {
        out.clear();
        self.build(old);
        let pieces = if new.len() < LARGE { 1 } else { rayon::current_num_threads() };
        if pieces == 1 {
            self.walk(old, new, 0..new.len(), out);
            return;
        }
        self.regions_in_pieces(old, new, pieces, out);
    }

    fn regions_in_pieces(&self, old: &[u8], new: &[u8], pieces: usize, out: &mut Vec<Region>) {
        let cut = |piece: usize| floor_boundary(new, new.len() * piece / pieces);
        let found: Vec<Vec<Region>> = (0..pieces)
            .into_par_iter()
            .map(|piece| {
                let mut found = Vec::new();
                self.walk(old, new, cut(piece)..cut(piece + 1), &mut found);
                found
            })
            .collect();
        out.extend(found.into_iter().flatten());
    }

    /// Gives memory back that only an unusually large text needed.
    pub(super) fn shrink(&mut self, most_bytes: usize) {
        let bytes = self.inner.capacity() * size_of::<Inner>() + self.leaves.capacity() * size_of::<Leaf>();
        if bytes > most_bytes {
            *self = Self::default();
        }
    }

    #[inline]
    fn byte(&self, node: Node) -> u8 {
        if node & LEAF == 0 { self.inner[node as usize].byte } else { self.leaves[(node & !LEAF) as usize].byte }
    }

    #[inline]
    fn next(&self, node: Node) -> Node {
        if node & LEAF == 0 { self.inner[node as usize].next } else { self.leaves[(node & !LEAF) as usize].next }
    }

    /// The smallest place in q of the string that the node spells.
    #[inline]
    fn place(&self, node: Node) -> u32 {
        if node & LEAF == 0 { self.inner[node as usize].place } else { node & !LEAF }
    }

    #[inline]
    fn depth(&self, inner: Node) -> usize {
        self.inner[inner as usize].depth as usize
    }

    /// The child whose edge begins with this byte.
    #[inline]
    fn child(&self, parent: Node, byte: u8) -> Node {
        let parent = &self.inner[parent as usize];
        if parent.has_table {
            return self.tables[parent.children as usize][byte as usize];
        }
        let mut child = parent.children;
        while child != NONE && self.byte(child) != byte {
            child = self.next(child);
        }
        child
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::naive;

    #[test]
    fn pieces_do_not_change_the_result() {
        let old = "the quick brown fox jumps över the lazy dög; ".repeat(20) + "aaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        let new = old.replace("quick", "slow").replace("lazy dög; the", "dög") + "aaaaaaaaaaaaa";
        let (old, new) = (old.as_bytes(), new.as_bytes());
        let mut tree = SuffixTree::default();
        let mut whole = Vec::new();
        tree.regions(old, new, &mut whole);
        assert!(whole.len() > 10);
        for pieces in [1, 2, 3, 7, 40, new.len()] {
            let mut found = Vec::new();
            tree.regions_in_pieces(old, new, pieces, &mut found);
            assert_eq!(found, whole, "{pieces} pieces");
        }
    }

    #[test]
    fn every_string_has_its_smallest_place() {
        for text in ["ababbabaab", "aaaaaaa", "mississippi", "abcabxabcd", "x", ""] {
            let mut tree = SuffixTree::default();
            for i in 0..text.len() {
                for k in i + 1..=text.len() {
                    let mut found = Vec::new();
                    tree.regions(text.as_bytes(), &text.as_bytes()[i..k], &mut found);
                    let place = text.find(&text[i..k]).expect("a substring");
                    let whole = Region { start: 0, end: (k - i) as u32, old_start: place as u32 };
                    assert_eq!(found, [whole], "{} in {text}", &text[i..k]);
                }
            }
        }
    }

    #[test]
    fn nodes_with_many_children_with_and_without_a_table() {
        // Every two bytes of 'A'..'z' after each other: each inner node has dozens of children, more than the
        // tables allowed.
        let mut old = String::new();
        for a in b'A'..=b'z' {
            for b in b'A'..=b'z' {
                old.extend([char::from(a), char::from(b), ' ']);
            }
        }
        let new = "Hello World! The five boxing wizards jump quickly ".repeat(3);
        let mut tree = SuffixTree::default();
        let mut found = Vec::new();
        tree.regions(old.as_bytes(), new.as_bytes(), &mut found);
        assert_eq!(found, naive::maximal(old.as_bytes(), new.as_bytes()));
        assert!(tree.inner.iter().any(|node| !node.has_table && node.count > 8));
        assert!(tree.tables.len() > 1);
    }

    #[test]
    fn at_most_fifty_bytes_of_memory_per_byte_of_the_old_page() {
        let mut state = 1_u32;
        let text: Vec<u8> = (0..100_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                b' ' + (state >> 24) as u8 % 90
            })
            .collect();
        let mut tree = SuffixTree::default();
        tree.regions(&text, b"", &mut Vec::new());
        let bytes = tree.inner.capacity() * size_of::<Inner>()
            + tree.leaves.capacity() * size_of::<Leaf>()
            + tree.tables.capacity() * 1024;
        assert!(bytes <= 50 * text.len(), "{bytes}");
    }
}
