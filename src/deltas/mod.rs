//! What changed: between two versions of a page, and between two snapshots.
//!
//! | module | question it answers |
//! |---|---|
//! | [`segments`] | which parts of a page's text were kept, moved or are new, and what of the old text is gone |
//! | [`words`] | the same by whole words, as people read them |
//! | [`short_changes`] | the same without changes so short that they tell nothing |
//! | [`links`], [`multiset`] | which links, or other things without identity, came and went |
//! | [`moved`] | did a page move to another URL |
//! | [`first_seen`], [`pieces`] | is text that came really new on its URL, or does it only come back |
//! | [`query`], [`web`] | which pages and links match a pattern, and what changed in these matches |
//! | [`triage`] | what of it a person should read first |
//! | [`watches`] | what of all this somebody wants to be told |
//!
//! Everything here is computed from texts, links and digests that are given to it. Reading them from the store and
//! writing rows is the work of [`crate::stages::delta`].

pub(crate) mod first_seen;
pub(crate) mod links;
pub(crate) mod moved;
pub(crate) mod multiset;
pub(crate) mod pieces;
pub(crate) mod query;
pub(crate) mod segments;
pub(crate) mod short_changes;
pub(crate) mod triage;
pub(crate) mod watches;
pub(crate) mod web;
pub(crate) mod words;
