//! Web tables, and what changed between two of them (WHOWEDA).
//!
//! Problem: a query asked of two snapshots gives two tables of tuples, and their readers want to know which tuples
//! came, went or changed, and how the pages that changed hang together with those that did not. Idea: every node URL of
//! the two tables is added, deleted, updated or joinable ([`Pair`]); all else follows from these four sets.
//!
//! | file | question it answers |
//! |---|---|
//! | `table` | what a web table is, and how it becomes rows and comes from rows |
//! | `pair` | which node URLs were added, deleted, updated or stayed; which tuples join or dangle |
//! | `tuple_deltas` | which tuples are `plus`, `minus`, `modified`, `relinked_new`, `relinked_old` |
//!
//! Deviations from the paper: a node's version is a digest and not a date, so that undated pages count too; the
//! algorithm of its figures 11 to 14 depends on the order of tuples and loses some, so the delta tables are defined by
//! rules instead, which give the result that it prints for its example.

mod names;
mod pair;
mod table;
mod tuple_deltas;

#[cfg(test)]
mod tests;

pub use pair::Pair;
pub use table::{TupleLinkRow, TupleNodeRow, WebTable};

pub(in crate::deltas) use names::by_name;
pub(in crate::deltas) use table::{TableBuilder, TupleLink};
