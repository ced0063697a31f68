//! `edges`: the common prefix and suffix of two pages.
//!
//! **Problem.** Most changed pages changed in one place (a date, a counter, a new item): what is before and after
//! it is old. **Idea.** Compare from both ends. An equal page is its own prefix. **Cost.** One pass of `memcmp`, no
//! memory.
//!
//! The two regions may overlap in p (p = `aba`, q = `ababa`). One that lies inside the other is left out.

use crate::matching::bytes::{ceil_boundary, common_prefix, common_suffix, floor_boundary, offset};
use crate::model::Region;

/// Lengths of the common prefix and suffix, in whole characters.
pub(super) fn lengths(old: &[u8], new: &[u8]) -> (usize, usize) {
    let prefix = floor_boundary(new, common_prefix(old, new));
    let suffix = new.len() - ceil_boundary(new, new.len() - common_suffix(old, new));
    (prefix, suffix)
}

pub(super) fn regions(old: &[u8], new: &[u8], out: &mut Vec<Region>) {
    out.clear();
    let (prefix, suffix) = lengths(old, new);
    let whole = prefix == new.len();
    if prefix > 0 && (whole || suffix < new.len()) {
        out.push(Region { start: 0, end: offset(prefix), old_start: 0 });
    }
    if suffix > 0 && !whole {
        let start = offset(new.len() - suffix);
        out.push(Region { start, end: offset(new.len()), old_start: offset(old.len() - suffix) });
    }
}
