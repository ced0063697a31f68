//! From captures to pages, as pure functions: nothing here opens a file or asks a clock.
//!
//! ```text
//! RawCapture ──judge──► URL, payload ──notes──► CaptureNote, Content
//!                                                   │
//! what other URLs hold (referred) ──────────────resolve──► what each capture of a URL stands for
//!                                                   │
//! what was known of the URL (Head) ───────────────fold───► rows of captures, pages and links, and the next Head
//! ```
//! [`Answer`] says what makes a capture good, [`suspect`] what is no page though it looks good, [`UniqueTexts`] what
//! counts as moved; whoever needs one of them asks here.
//! How bytes become text belongs to `text`, where captures come from to `archive`, and reading and writing files to
//! `stages::ingest`.

mod answer;
mod fold;
mod judge;
mod moved;
mod notes;
mod referred;
mod resolve;
pub(crate) mod suspect;

pub(crate) use answer::Answer;
pub(crate) use fold::{ContentAt, LastPage, Others, Tonight, UrlRows, UrlTonight};
pub(crate) use judge::{judge, media_type};
pub(crate) use moved::UniqueTexts;
pub(crate) use notes::{CaptureNote, JudgedCapture, NoteTaker, NotedText, ReadingRules, SpilledAt, SpilledCapture};
pub(crate) use referred::{Elsewhere, Referable, StoredVersion};
pub(crate) use resolve::{ContentOf, resolve};

#[cfg(test)]
mod tests;
