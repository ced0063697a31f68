//! The suffix automaton of q: the linear fallback of `anchor`.
//!
//! **Problem.** As for the suffix tree: the maximal old regions of p, whatever the text, in linear time. Where
//! `anchor` meets hostile text it needs an answer that is certain and cheap.
//!
//! **Idea.** The smallest automaton that accepts the suffixes of q (Blumer et al. 1985): two strings share a state
//! if they end at the same places of q. A state's strings are the suffixes of its longest one down to some length;
//! the next shorter suffix belongs to its `link`. Reading p byte by byte, we keep the longest string that ends here
//! and stands in q: if there is no edge, follow links to shorter strings. So the tree of suffix links is that of
//! the reversed text, and where the suffix tree asks for each start how far it goes, the automaton asks for each
//! end how early it starts. A region `p[i..k)` is maximal if the longest match that ends one character later starts
//! later (Lemma 1, mirrored). A state keeps the first place where its strings end, hence the smallest place of
//! each.
//!
//! As in the tree walk, starts and ends are taken at whole characters. A start moved up by at most three bytes
//! needs at most three links.
//!
//! **Cost.** O(|p| + |q|) time for a fixed alphabet; 24 bytes per state (up to two per byte of q), one edge inline,
//! 12 bytes per further edge. It is faster than the tree (a match in progress is one inline edge per byte, no hop),
//! but answers only for regions, where the tree can also be walked in pieces.

use crate::matching::bytes::{ceil_boundary, is_boundary, offset};
use crate::model::Region;

const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;

#[derive(Clone, Copy)]
struct State {
    /// Of the longest string.
    length: u32,
    link: u32,
    /// The first place where the strings end.
    end: u32,
    /// The first edge, if `to` is not `NONE`, and a list of the others.
    to: u32,
    more: u32,
    byte: u8,
}

#[derive(Clone, Copy)]
struct Edge {
    to: u32,
    next: u32,
    byte: u8,
}

/// The suffix automaton of a text; its memory is reused from text to text.
#[derive(Default)]
pub(super) struct Automaton {
    states: Vec<State>,
    edges: Vec<Edge>,
    /// The root has up to 256 edges and is asked most.
    root: Vec<u32>,
}

impl Automaton {
    /// All maximal old regions of `new`, by start, each with the smallest place where it stands in `old`.
    pub(super) fn regions(&mut self, old: &[u8], new: &[u8], out: &mut Vec<Region>) {
        out.clear();
        self.build(old);
        self.walk(new, out);
    }

    /// Gives memory back that only an unusually large text needed.
    pub(super) fn shrink(&mut self, most_bytes: usize) {
        if self.states.capacity() * size_of::<State>() + self.edges.capacity() * size_of::<Edge>() > most_bytes {
            *self = Self::default();
        }
    }

    fn build(&mut self, text: &[u8]) {
        self.states.clear();
        self.edges.clear();
        self.root.clear();
        self.root.resize(256, NONE);
        self.states.reserve_exact(2 + text.len() * 3 / 2);
        self.edges.reserve_exact(text.len());
        self.add_state(State { length: 0, link: NONE, end: 0, to: NONE, more: NONE, byte: 0 }, text.len());
        let mut last = ROOT;
        for (at, &byte) in text.iter().enumerate() {
            let length = offset(at + 1);
            let new =
                self.add_state(State { length, link: ROOT, end: length, to: NONE, more: NONE, byte: 0 }, text.len());
            // All suffixes so far that were never followed by this byte now are.
            let mut state = last;
            let mut target = NONE;
            while state != NONE {
                target = self.follow(state, byte);
                if target != NONE {
                    break;
                }
                self.add_edge(state, byte, new, text.len());
                state = self.states[state as usize].link;
            }
            if state != NONE {
                self.states[new as usize].link = self.link_target(state, byte, target, text.len());
            }
            last = new;
        }
    }

    /// The state whose longest string is that of `state` and the byte: `target`, or a part split off from it.
    fn link_target(&mut self, state: u32, byte: u8, target: u32, size: usize) -> u32 {
        let length = self.states[state as usize].length + 1;
        if self.states[target as usize].length == length {
            return target;
        }
        let mut copy = self.states[target as usize];
        copy.length = length;
        let mut more = copy.more;
        copy.more = NONE;
        let part = self.add_state(copy, size);
        while more != NONE {
            let edge = self.edges[more as usize];
            let rest = self.states[part as usize].more;
            self.states[part as usize].more = self.push_edge(Edge { next: rest, ..edge }, size);
            more = edge.next;
        }
        self.states[target as usize].link = part;
        let mut state = state;
        while state != NONE && self.redirect(state, byte, target, part) {
            state = self.states[state as usize].link;
        }
        part
    }

    fn add_state(&mut self, state: State, size: usize) -> u32 {
        if self.states.len() == self.states.capacity() {
            // In small steps: doubling would be the peak of memory.
            self.states.reserve_exact(64 + size / 8);
        }
        self.states.push(state);
        offset(self.states.len() - 1)
    }

    fn push_edge(&mut self, edge: Edge, size: usize) -> u32 {
        if self.edges.len() == self.edges.capacity() {
            self.edges.reserve_exact(64 + size / 4);
        }
        self.edges.push(edge);
        offset(self.edges.len() - 1)
    }

    fn add_edge(&mut self, from: u32, byte: u8, to: u32, size: usize) {
        if from == ROOT {
            self.root[byte as usize] = to;
            return;
        }
        let state = &mut self.states[from as usize];
        if state.to == NONE {
            state.to = to;
            state.byte = byte;
            return;
        }
        let next = state.more;
        self.states[from as usize].more = self.push_edge(Edge { to, next, byte }, size);
    }

    #[inline]
    fn follow(&self, from: u32, byte: u8) -> u32 {
        if from == ROOT {
            return self.root[byte as usize];
        }
        let state = &self.states[from as usize];
        if state.byte == byte && state.to != NONE {
            return state.to;
        }
        let mut edge = state.more;
        while edge != NONE {
            let entry = &self.edges[edge as usize];
            if entry.byte == byte {
                return entry.to;
            }
            edge = entry.next;
        }
        NONE
    }

    /// Turns the edge to `target` towards `part`; says whether it led to `target`.
    fn redirect(&mut self, from: u32, byte: u8, target: u32, part: u32) -> bool {
        let to = if from == ROOT {
            &mut self.root[byte as usize]
        } else {
            let state = &mut self.states[from as usize];
            if state.byte == byte {
                &mut state.to
            } else {
                let mut edge = state.more as usize;
                while self.edges[edge].byte != byte {
                    edge = self.edges[edge].next as usize;
                }
                &mut self.edges[edge].to
            }
        };
        let leads = *to == target;
        if leads {
            *to = part;
        }
        leads
    }

    fn walk(&self, new: &[u8], out: &mut Vec<Region>) {
        let mut state = ROOT;
        let mut length = 0;
        // The longest match that ends at the last character boundary, and its start in whole characters.
        let mut before = Match { state: ROOT, start: 0, end: 0 };
        for at in 0..=new.len() {
            if is_boundary(new, at) {
                let start = ceil_boundary(new, at - length);
                if start != before.start && before.start < before.end {
                    out.push(self.region(before));
                }
                before = Match { state, start, end: at };
            }
            let Some(&byte) = new.get(at) else { break };
            loop {
                let next = self.follow(state, byte);
                if next != NONE {
                    state = next;
                    length += 1;
                    break;
                }
                if state == ROOT {
                    break;
                }
                state = self.states[state as usize].link;
                length = self.states[state as usize].length as usize;
            }
        }
        if before.start < before.end {
            out.push(self.region(before));
        }
    }

    fn region(&self, found: Match) -> Region {
        let length = offset(found.end - found.start);
        let mut state = &self.states[found.state as usize];
        while self.states[state.link as usize].length >= length {
            state = &self.states[state.link as usize];
        }
        Region { start: offset(found.start), end: offset(found.end), old_start: state.end - length }
    }
}

#[derive(Clone, Copy)]
struct Match {
    /// Of the longest match in bytes, which may start up to three bytes before `start`.
    state: u32,
    start: usize,
    end: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_has_its_smallest_place() {
        for text in ["ababbabaab", "aaaaaaa", "mississippi", "abcabxabcd", "bbbaabab", "x", ""] {
            let mut automaton = Automaton::default();
            for i in 0..text.len() {
                for k in i + 1..=text.len() {
                    let mut found = Vec::new();
                    automaton.regions(text.as_bytes(), &text.as_bytes()[i..k], &mut found);
                    let place = text.find(&text[i..k]).expect("a substring");
                    let whole = Region { start: 0, end: (k - i) as u32, old_start: place as u32 };
                    assert_eq!(found, [whole], "{} in {text}", &text[i..k]);
                }
            }
        }
    }

    #[test]
    fn no_more_than_two_states_and_three_edges_per_byte() {
        for text in ["abbbbbbbbbbbbbbbbbbb", "abbcabbcabbcabbc", "abcdefghabcdefghi", "aabbaabbabababbaab"] {
            let mut automaton = Automaton::default();
            automaton.build(text.as_bytes());
            assert!(automaton.states.len() < 2 * text.len(), "{text}");
            assert!(automaton.edges.len() < 3 * text.len(), "{text}");
        }
    }
}
