//! Extractors that scan: leftmost match, then on from its end.

use crate::extract::mention::Mention;

/// A left-to-right scan for leftmost, non-overlapping, non-empty matches.
pub(crate) trait Scan {
    /// The leftmost match inside `text[from..end)`, with everything around the span visible to look-around. `from` and
    /// `end` may lie inside a character; no match does. A match of the page that ends beyond `end` may be missed, cut
    /// short, or give way to another; callers leave room for it.
    fn next(&mut self, text: &str, from: usize, end: usize) -> Option<Mention>;
}
