//! Snapshot folders in: whatever a crawler left behind, read as a stream of [`RawCapture`]s.
//!
//! ```text
//! folder ──walk──► files ──sniff, detect──► parts of one or more layouts ──readers──► captures and rejects
//!                                 │                          │
//!                              layouts/  ◄── zip/      records/ ◄── zip/
//! ```
//! | where | what belongs there |
//! | --- | --- |
//! | `snapshots` | which snapshots lie below a root |
//! | `folder` | a snapshot, opened: what it is, whether it changed, readers for its parts |
//! | `walk`, `sniff`, `detect` | the files of a folder, what each of them is, and which layouts they make up |
//! | `layouts/` | one file for each layout: how it is told, and what its captures say |
//! | `records/` | files that are a sequence of records: bytes, compressed members, records |
//! | `zip/` | zip files as containers: which entries there are and where their bytes lie |
//! | `windows` | when the captures of a folder were fetched, by windows of time |
//! | `part`, `tree` | what all layouts share |
//! | `traces` | whether a folder is as it was |
//!
//! What does not belong here: decoding and judging a capture, text, URLs of pages (`stages::ingest`, `text`), and
//! archives made for tests (`lab::archives`).
//!
//! A folder is opened once ([`SnapshotFolder::open`]): its layout is told from the bytes in it, never from file
//! names, and what lies there but cannot be used is noted. [`SnapshotFolder::readers`] then gives independent
//! readers, each of which one thread reads front to back. Bodies stay encoded and, where they are files of their own,
//! unread: decoding is work for many threads.
//!
//! Nothing in an archive ends a run. What cannot be used comes out as a [`Reject`] that names file and offset, and
//! reading goes on behind it where there is a way to find the next record.
//!
//! # To add a layout
//! 1. Write `layouts/<name>.rs` with a type that implements `layouts::Rules`: what the layout is called in messages,
//!    how `find` tells it in a folder, and a `part::SnapshotPart` whose readers implement [`CaptureReader`]. If its
//!    files are sequences of records, implement `records::format::Format` too and let `layouts::record_files` find
//!    them; the readers are there already.
//! 2. Add `mod <name>;` and one line to the registry in `layouts/mod.rs`. Its place there is its precedence beside
//!    others.
//!
//! Names for the pipeline file, the command line, messages and `ratoon inspect` follow from that line. Besides: a test
//! beside the layout, a sample in `lab::archives` so that it is fuzzed, a row in the table of the user's guide.

mod detect;
mod folder;
mod layouts;
mod part;
mod records;
mod snapshots;
mod sniff;
#[cfg(test)]
mod tests;
mod traces;
mod tree;
mod walk;
mod windows;
mod zip;

use std::path::PathBuf;

use crate::model::snapshot::{BadSnapshotId, SnapshotId};
use crate::model::{RawCapture, Reject};

pub use folder::SnapshotFolder;
pub use layouts::Layout;
pub(crate) use snapshots::{file_id, list_snapshots};
pub(crate) use traces::Traces;
pub(crate) use windows::{FetchTimes, capture_print, window_of};

/// One part of a snapshot that one thread reads front to back: a WARC file, a manifest, a mirror tree.
///
/// Files are opened at the first call of `next`, so holding many readers holds no file descriptors.
pub trait CaptureReader: Iterator<Item = Result<RawCapture, Reject>> + Send {
    /// Path of what it reads, relative to the snapshot folder.
    fn name(&self) -> &str;

    /// How far it is, in the bytes that [`SnapshotFolder::bytes`] counts.
    fn bytes_read(&self) -> u64;

    /// Whether a piece of a file turned out not to be one. This is known when the reader is at its end. What all
    /// readers of the folder yielded must then be dropped, and the folder be read by [`SnapshotFolder::readers`].
    fn misread(&self) -> bool {
        false
    }
}

/// A folder that cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The message names the path.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("no capture in {}: {hint}", path.display())]
    NoCapture { path: PathBuf, hint: String },
    #[error("{}: {why}; hint: rename it, or move it out of the snapshots' root", path.display())]
    BadSnapshotId { path: PathBuf, why: BadSnapshotId },
    #[error("{} and {} are both snapshot {id}; hint: rename one, or move both into one folder", a.display(), b.display())]
    TwoOfOneId { id: SnapshotId, a: PathBuf, b: PathBuf },
    #[error("unknown layout '{name}'; hint: one of auto, {}", Layout::names())]
    UnknownLayout { name: String },
}

/// Whether a URL is one that captures can have; archives hold others too (`dns:`, `urn:`, `metadata:`).
fn is_http(url: &str) -> bool {
    let scheme_is = |scheme: &str| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    scheme_is("http://") || scheme_is("https://")
}
