//! Extractors that scan: the leftmost match, then on from its end.

use crate::extract::mention::Mention;
use crate::extract::reach::Reach;

/// One pass of an extractor over a page: a pattern, or a whole term list.
pub(crate) trait Pass {
    /// What its matches depend on.
    fn mode(&self) -> &Mode;

    /// A scan at work, with the memory that it needs.
    fn scan(&self) -> Box<dyn Scan + '_>;
}

/// A scan from left to right for leftmost matches that do not overlap and are not empty.
pub(crate) trait Scan {
    /// The leftmost match inside `text[from..end)`. Look-around sees the whole text. `from` and `end` may lie inside a
    /// character; no match does. A match of the page that ends beyond `end` may be missed, cut short, or give way to
    /// another one, so callers leave room for the longest match.
    fn next(&mut self, text: &str, from: usize, end: usize) -> Option<Mention>;
}

/// All matches of all passes, in canonical order.
pub(crate) fn scan_all(passes: &[&dyn Pass], text: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    for pass in passes {
        let mut scan = pass.scan();
        let mut from = 0;
        while let Some(mention) = scan.next(text, from, text.len()) {
            from = mention.end as usize;
            found.push(mention);
        }
    }
    if passes.len() > 1 {
        found.sort_unstable();
    }
    found
}

/// What the matches of one pass depend on, which decides how they are recycled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A match depends on its window and on where the scan stands: recycled by the synchronised scan.
    Window(Reach),
    /// Matches depend on the bytes between two barriers: whole stretches are recycled.
    Cut(Barriers),
    /// A match may depend on the whole page: recycled only if the page is equal.
    Page,
}

impl Mode {
    /// `None` if there are no windows.
    #[must_use]
    pub(crate) fn reach(&self) -> Option<Reach> {
        match self {
            Self::Window(reach) => Some(*reach),
            Self::Cut(_) | Self::Page => None,
        }
    }
}

/// A set of ASCII bytes that no match contains and that look-around cannot tell from a page edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Barriers {
    member: Box<[bool; 256]>,
}

impl Barriers {
    #[must_use]
    pub(crate) fn new(member: Box<[bool; 256]>) -> Self {
        Self { member }
    }

    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        !self.member.contains(&true)
    }

    #[must_use]
    pub(crate) fn contains(&self, byte: u8) -> bool {
        self.member[usize::from(byte)]
    }

    #[must_use]
    pub(crate) fn bytes(&self) -> Vec<u8> {
        (0..128).filter(|&b| self.contains(b)).collect()
    }
}
