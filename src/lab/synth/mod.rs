//! A synthetic evolving site with known truth.
//!
//! Problem: to test recycling, deltas and schedules one needs a corpus whose every change is known, that can be made at
//! any size, and that is the same on every machine. Idea: a page at a moment is a pure function of (parameters, page,
//! time); the site is never held in memory, captures are handed out one by one and written by small writers into
//! whatever the caller provides. What is true (mentions, times of updates, moves) falls out of the same functions.
//!
//! | file | question it answers |
//! |---|---|
//! | `params` | what is asked for |
//! | `draws`, `clock` | what looks random; days and times |
//! | `section`, `rhythm` | which pages exist when, under which URL; when they change |
//! | `state` | which blocks a page has after those changes |
//! | `prose`, `words`, `markup`, `out`, `charset` | how blocks become text, markup and bytes |
//! | `site` | what a crawler finds on a night; what is true |
//! | `faults` | what goes wrong in some nights |
//! | `write`, `warc`, `gzip` | how that lies in files |
//! | `drugs` | the two-night site of the WHOWEDA paper's example |
//!
//! Cost: time proportional to the text made, and memory of a few bytes a page (about 200 more in WARC, where unchanged
//! payloads are recognised). Deviation from real sites: texts are drawn from small word lists, so that short stretches
//! repeat more often than in human prose; matchers meet more short common substrings than they would.

mod charset;
mod clock;
mod draws;
mod drugs;
mod faults;
mod gzip;
mod markup;
mod out;
mod params;
mod prose;
mod rhythm;
mod section;
pub(crate) mod site;
mod state;
mod warc;
mod words;
mod write;

#[cfg(test)]
mod tests;

pub use params::Params;
pub(crate) use params::share;
pub(crate) use params::{Layout, Part};
pub(crate) use write::SynthError;
pub use write::{Root, Sink, write_site};
