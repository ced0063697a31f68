//! What changed: between two versions of a page, and between two snapshots.

pub mod links;
pub mod multiset;
pub mod pieces;
pub mod query;
pub mod seen;
pub mod segments;
pub mod watches;
pub mod web;
