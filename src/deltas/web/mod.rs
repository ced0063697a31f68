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
//! | `tuple_links` | which links of these tuples came, went, changed or stayed |
//! | `joined` | what a joined web tuple holds |
//! | `stored` | what of a table is stored where the one before is known, and the table again from that |
//!
//! Deviations from the paper: a node's version is a digest and not a date, so that undated pages count too; the
//! algorithm of its figures 11 to 14 depends on the order of tuples and loses some, so the delta tables are defined by
//! rules instead, which give the result that it prints for its example.

mod joined;
mod names;
mod pair;
mod stored;
mod table;
mod tuple_deltas;
mod tuple_links;

#[cfg(test)]
mod tests;

pub use pair::Pair;
pub(crate) use stored::Layered;
pub(crate) use table::BadRows;
pub use table::{TupleLinkRow, TupleNodeRow, WebTable};
pub(crate) use tuple_deltas::DeltaRow;
pub(crate) use tuple_links::DeltaLinkRow;

pub(in crate::deltas) use names::by_name;
pub(crate) use table::tuple_id;
pub(in crate::deltas) use table::{TableBuilder, TupleLink};
