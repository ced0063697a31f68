//! An old region of a new page.

use crate::model::Span;

/// `p[start..end)` equals `q[old_start..)`, in bytes. Ordered by `(start, old_start)`, then `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    pub start: u32,
    pub end: u32,
    pub old_start: u32,
}

impl Region {
    #[must_use]
    pub fn len(self) -> u32 {
        self.end - self.start
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    #[must_use]
    pub fn old_end(self) -> u32 {
        self.old_start + self.len()
    }

    /// Where it lies in the new page.
    #[must_use]
    pub fn span(self) -> Span {
        Span::new(self.start, self.end)
    }

    /// Where it lies in the old page.
    #[must_use]
    pub fn old_span(self) -> Span {
        Span::new(self.old_start, self.old_end())
    }

    /// How far a position moved: new minus old.
    #[must_use]
    pub fn shift(self) -> i64 {
        i64::from(self.start) - i64::from(self.old_start)
    }

    fn key(self) -> (u32, u32, u32) {
        (self.start, self.old_start, self.end)
    }
}

impl Ord for Region {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Region {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
