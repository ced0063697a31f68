//! Snapshot folders in: whatever a crawler left behind, read as a stream of [`RawCapture`]s.
//!
//! A folder is opened once ([`SnapshotFolder::open`]): its layout is told from the bytes in it, never from file
//! names, and what lies there but cannot be used is noted. [`SnapshotFolder::readers`] then gives independent
//! readers, each of which one thread reads front to back. Bodies stay encoded and, where they are files of their own,
//! unread: decoding is work for many threads.
//!
//! Nothing in an archive ends a run. What cannot be used comes out as a [`Reject`] that names file and offset, and
//! reading goes on behind it where there is a way to find the next record.
//!
//! A new layout is a variant of [`Layout`], a rule in `detect`, and a type that implements [`CaptureReader`].

mod arc;
mod arc_line;
mod codec;
mod detect;
mod folder;
pub mod fuzz;
mod headers;
mod http;
mod httrack;
#[cfg(test)]
mod layout_tests;
mod manifest;
mod mirror;
mod mirror_names;
mod record_file;
mod records;
mod samples;
mod sniff;
mod source;
mod split;
mod starts;
mod stream;
mod tree;
mod walk;
mod warc;
mod zip;
mod zip_scan;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::snapshot::{BadSnapshotId, SnapshotId};
use crate::model::{RawCapture, Reject};

pub use folder::{SnapshotFolder, SourceFile, file_id, list_snapshots};

/// How a snapshot folder holds its captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Look at the folder.
    #[default]
    Auto,
    /// WARC files at any depth: plain, gzip or zstd, a member for each record or one for all.
    Warc,
    /// `manifest.jsonl`, a line for each file.
    Manifest,
    /// WACZ: zip files with WARC files in their folder `archive`.
    Wacz,
    /// A `wget --mirror` tree, `host[:port]/path`.
    Mirror,
    /// `hts-cache/new.zip` and the tree beside it.
    Httrack,
    /// ARC files, plain or gzip.
    Arc,
    /// WET files: the texts of pages, without links.
    Wet,
}

impl Layout {
    pub const ALL: [Self; 8] =
        [Self::Auto, Self::Warc, Self::Manifest, Self::Wacz, Self::Mirror, Self::Httrack, Self::Arc, Self::Wet];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Warc => "warc",
            Self::Manifest => "manifest",
            Self::Wacz => "wacz",
            Self::Mirror => "mirror",
            Self::Httrack => "httrack",
            Self::Arc => "arc",
            Self::Wet => "wet",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Layout {
    type Err = ArchiveError;

    fn from_str(name: &str) -> Result<Self, ArchiveError> {
        let known = Self::ALL.into_iter().find(|layout| layout.as_str() == name);
        known.ok_or_else(|| ArchiveError::UnknownLayout { name: name.to_owned() })
    }
}

/// One part of a snapshot that one thread reads front to back: a WARC file, a manifest, a mirror tree.
///
/// Files are opened at the first call of `next`, so holding many readers holds no file descriptors.
pub trait CaptureReader: Iterator<Item = Result<RawCapture, Reject>> + Send {
    /// Path of what it reads, relative to the snapshot folder.
    fn name(&self) -> &str;

    /// How far it is, in the bytes that [`SnapshotFolder::bytes`] counts.
    fn bytes_read(&self) -> u64;

    /// Whether what it yielded must be dropped, with that of all others, and everything be read by
    /// [`SnapshotFolder::readers`]: a part of a file turned out not to be one. Known at its end.
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
    #[error("{}: {source}; hint: rename it, or move it out of the snapshots' root", path.display())]
    BadSnapshotId { path: PathBuf, source: BadSnapshotId },
    #[error("{} and {} are both snapshot {id}; hint: rename one, or move both into one folder", a.display(), b.display())]
    TwoOfOneId { id: SnapshotId, a: PathBuf, b: PathBuf },
    #[error("unknown layout '{name}'; hint: one of auto, warc, manifest, wacz, mirror, httrack, arc, wet")]
    UnknownLayout { name: String },
}

/// Whether a URL is one that captures can have; archives hold others too (`dns:`, `urn:`, `metadata:`).
fn is_http(url: &str) -> bool {
    let scheme_is = |scheme: &str| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    scheme_is("http://") || scheme_is("https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_have_one_name_everywhere() {
        for layout in Layout::ALL {
            assert_eq!(layout.as_str().parse::<Layout>().unwrap(), layout);
            assert_eq!(serde_json::to_string(&layout).unwrap(), format!("\"{layout}\""));
        }
        let error = "rar".parse::<Layout>().unwrap_err().to_string();
        assert!(error.contains("'rar'") && error.contains("manifest"), "{error}");
    }

    #[test]
    fn only_web_addresses_are_captures() {
        assert!(is_http("http://a/") && is_http("HTTPS://a/"));
        assert!(!is_http("dns:a") && !is_http("http:") && !is_http("htt\u{e9}p://a/") && !is_http(""));
    }
}
