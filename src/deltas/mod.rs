//! What changed: between two versions of a page.

pub mod multiset;
pub mod segments;
