//! Which mentions nobody has chosen yet. The nearest free one in either direction is found in nearly constant time, by
//! union-find with path halving.

pub(super) struct Free {
    /// `next[i]` leads towards the first free index at or after `i`; `len` if none.
    next: Vec<u32>,
    /// The same towards lower ones, shifted by one; 0 if none.
    previous: Vec<u32>,
    len: u32,
}

impl Free {
    pub(super) fn new(len: usize) -> Self {
        let len = u32::try_from(len).expect("fewer than 2^32 mentions");
        Self { next: (0..=len).collect(), previous: (0..=len).collect(), len }
    }

    pub(super) fn is_free(&self, index: u32) -> bool {
        self.next[index as usize] == index
    }

    pub(super) fn take(&mut self, index: u32) {
        if self.is_free(index) {
            self.next[index as usize] = index + 1;
            self.previous[index as usize + 1] = index;
        }
    }

    pub(super) fn at_or_after(&mut self, index: u32) -> Option<u32> {
        let root = find(&mut self.next, index.min(self.len));
        (root < self.len).then_some(root)
    }

    pub(super) fn at_or_before(&mut self, index: u32) -> Option<u32> {
        find(&mut self.previous, index + 1).checked_sub(1)
    }
}

fn find(links: &mut [u32], mut at: u32) -> u32 {
    while links[at as usize] != at {
        let beyond = links[links[at as usize] as usize];
        links[at as usize] = beyond;
        at = beyond;
    }
    at
}
