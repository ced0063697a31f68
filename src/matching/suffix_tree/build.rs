//! Ukkonen's construction.

use super::{Inner, LEAF, Leaf, NONE, Node, ROOT, SuffixTree};
use crate::matching::bytes::offset;

/// A node with more children than this gets a table, if one is left.
const LIST: u8 = 8;

/// Where a child hangs, to put another in its stead.
#[derive(Clone, Copy)]
enum Hook {
    Table(u32, u8),
    First(Node),
    After(Node),
}

impl SuffixTree {
    fn reset(&mut self, text: &[u8]) {
        self.inner.clear();
        self.leaves.clear();
        self.tables.clear();
        self.most_tables = 1 + text.len() / 512;
        self.leaves.reserve_exact(text.len());
        // Text has 0.5 to 0.8 inner nodes per byte.
        self.inner.reserve_exact(1 + text.len() * 3 / 4);
        self.tables.push([NONE; 256]);
        let root =
            Inner { depth: 0, place: 0, link: ROOT, children: 0, next: NONE, byte: 0, count: 0, has_table: true };
        self.inner.push(root);
    }

    pub(super) fn build(&mut self, text: &[u8]) {
        self.reset(text);
        // The locus of `text[suffix..at)`: below `node`, on the edge to `child` if that is known and needed.
        let mut node = ROOT;
        let mut child = NONE;
        let mut hook = Hook::First(ROOT);
        let mut suffix = 0;
        for at in 0..text.len() {
            let byte = text[at];
            // The inner node made last: its link leads to the next locus, which is or becomes a node.
            let mut unlinked = NONE;
            while suffix <= at {
                let length = at - suffix;
                // Skip and count.
                while self.depth(node) < length {
                    if child == NONE {
                        (child, hook) = self.child_and_hook(node, text[suffix + self.depth(node)]);
                    }
                    if child & LEAF != 0 || self.depth(child) > length {
                        break;
                    }
                    node = child;
                    child = NONE;
                }
                if self.depth(node) == length {
                    if unlinked != NONE {
                        self.inner[unlinked as usize].link = node;
                        unlinked = NONE;
                    }
                    (child, hook) = self.child_and_hook(node, byte);
                    if child != NONE {
                        break;
                    }
                    self.add_leaf(node, byte);
                } else {
                    let after = text[self.place(child) as usize + length];
                    if after == byte {
                        debug_assert!(unlinked == NONE, "the target of a suffix link is a node");
                        break;
                    }
                    let middle = self.split(text, node, child, hook, length, after);
                    self.add_leaf(middle, byte);
                    if unlinked != NONE {
                        self.inner[unlinked as usize].link = middle;
                    }
                    unlinked = middle;
                }
                suffix += 1;
                node = self.inner[node as usize].link;
                child = NONE;
            }
            debug_assert!(unlinked == NONE, "the last suffix of a round ends at the root or at a node");
        }
    }

    #[inline]
    fn child_and_hook(&self, parent: Node, byte: u8) -> (Node, Hook) {
        let entry = &self.inner[parent as usize];
        if entry.has_table {
            return (self.tables[entry.children as usize][byte as usize], Hook::Table(entry.children, byte));
        }
        let mut hook = Hook::First(parent);
        let mut child = entry.children;
        while child != NONE && self.byte(child) != byte {
            hook = Hook::After(child);
            child = self.next(child);
        }
        (child, hook)
    }

    /// Adds the leaf of the next suffix.
    fn add_leaf(&mut self, parent: Node, byte: u8) {
        let leaf = offset(self.leaves.len()) | LEAF;
        self.leaves.push(Leaf { next: NONE, byte });
        let entry = &mut self.inner[parent as usize];
        entry.count = entry.count.saturating_add(1);
        if entry.has_table {
            self.tables[entry.children as usize][byte as usize] = leaf;
            return;
        }
        let first = entry.children;
        entry.children = leaf;
        let wants_table = entry.count > LIST;
        self.set_next(leaf, first);
        if wants_table && self.tables.len() < self.most_tables {
            self.make_table(parent);
        }
    }

    /// Puts a node on the edge from `parent` to `child`, where it spells `length` bytes and `after` comes next.
    fn split(&mut self, text: &[u8], parent: Node, child: Node, hook: Hook, length: usize, after: u8) -> Node {
        if self.inner.len() == self.inner.capacity() {
            // In small steps: doubling would be the peak of memory.
            self.inner.reserve_exact(64 + text.len() / 8);
        }
        let middle = offset(self.inner.len());
        let place = self.place(child);
        let inner = Inner {
            depth: offset(length),
            place,
            link: ROOT,
            children: child,
            next: self.next(child),
            byte: text[place as usize + self.depth(parent)],
            count: 1,
            has_table: false,
        };
        self.inner.push(inner);
        match hook {
            Hook::Table(table, byte) => self.tables[table as usize][byte as usize] = middle,
            Hook::First(parent) => self.inner[parent as usize].children = middle,
            Hook::After(sibling) => self.set_next(sibling, middle),
        }
        self.set_next(child, NONE);
        if child & LEAF == 0 {
            self.inner[child as usize].byte = after;
        } else {
            self.leaves[(child & !LEAF) as usize].byte = after;
        }
        middle
    }

    fn set_next(&mut self, node: Node, next: Node) {
        if node & LEAF == 0 {
            self.inner[node as usize].next = next;
        } else {
            self.leaves[(node & !LEAF) as usize].next = next;
        }
    }

    fn make_table(&mut self, parent: Node) {
        let mut table = [NONE; 256];
        let mut child = self.inner[parent as usize].children;
        while child != NONE {
            table[self.byte(child) as usize] = child;
            child = self.next(child);
        }
        let entry = &mut self.inner[parent as usize];
        entry.children = offset(self.tables.len());
        entry.has_table = true;
        self.tables.push(table);
    }
}
