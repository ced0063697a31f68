//! One retrieval of a URL as an archive holds it, before anything is decoded.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::closed_set::closed_set;
use crate::model::Timestamp;

closed_set! {
    /// Where a time comes from, most to least trustworthy.
    pub enum TimeSource: "source of a time" {
        /// A header of the archive record or of the HTTP response.
        Header = "header",
        Manifest = "manifest",
        /// The file's modification time.
        Mtime = "mtime",
        /// The snapshot's own time: nothing better is known.
        Snapshot = "snapshot",
    }
}

closed_set! {
    /// What a URL that was not captured means.
    #[derive(Default)]
    pub enum Coverage: "coverage" {
        /// The crawler visits everything every time: the page is gone.
        #[default]
        Full = "full",
        /// The crawler follows a schedule: the page is as it was.
        Partial = "partial",
    }
}

closed_set! {
    /// Why a capture is taken for no page of its URL, though the server says that it is one.
    pub enum Suspect: "reason of a suspect" {
        /// A page that wants to know whether a person asks.
        Challenge = "challenge",
        /// A page that says that the crawler is shut out, or that the server is out of order.
        Block = "block",
        /// A page that asks to log in, where there was another.
        Login = "login",
        /// A page that says that there is none, where there was another.
        SoftNotFound = "soft_404",
        /// One text on many URLs of a host that had different ones.
        SameText = "same_text",
        /// What is left of a page is short, and others shrank to the same.
        Stub = "stub",
    }
}

closed_set! {
    /// Why a capture has no text.
    pub enum NoText: "reason for no text" {
        /// The server did not answer with a page: an error, a redirection.
        Status = "status",
        /// The archive holds no body.
        NoBody = "no_body",
        /// A body of a kind that has no text, such as a picture.
        Binary = "binary",
        /// The body is short or cannot be decoded.
        Broken = "broken",
        /// It says 'as before', and what was before is not known.
        Unresolved = "unresolved",
        /// It is taken for no page.
        Suspect = "suspect",
    }
}

/// A capture as a reader of an archive yields it. The body is still encoded as the archive holds it: decoding is
/// work for many threads, reading an archive is work for one.
#[derive(Clone, Debug)]
pub struct RawCapture {
    /// As the archive states it, not normalised.
    pub url: String,
    pub fetched_at: Option<(Timestamp, TimeSource)>,
    /// HTTP status; `None` if the archive does not know.
    pub status: Option<u16>,
    /// The whole `Content-Type` header, with parameters.
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    pub transfer_encoding: Option<String>,
    pub last_modified: Option<(Timestamp, TimeSource)>,
    pub etag: Option<String>,
    /// What headers say that only such pages have.
    pub wall: Option<Suspect>,
    /// Payload digest as the archive states it, such as `sha1:…`.
    pub archive_digest: Option<String>,
    pub revisit: Option<Revisit>,
    pub body: Body,
    /// It is a file of a mirror: its URL was rebuilt from its path, and links were perhaps rewritten.
    pub mirrored: bool,
    /// Why the body is known to be incomplete, if it is.
    pub truncated: Option<String>,
    /// Path of the archive file, relative to the snapshot folder, with `/`.
    pub source_file: String,
    /// Byte offset of the record (of its compressed member), or line number of a manifest.
    pub source_offset: u64,
}

/// A record that says "same content as before" instead of repeating it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revisit {
    /// URL of the capture it refers to, if it names one.
    pub refers_to_url: Option<String>,
    pub refers_to_date: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub enum Body {
    /// Read already, still with its transfer and content encodings.
    Bytes(Vec<u8>),
    /// A file of its own, to be read by whoever processes the capture. Known to lie inside the snapshot.
    File(PathBuf),
    /// There is none (a revisit, a 304).
    None,
}

/// Something in an archive that could not be used; the run goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reject {
    pub source_file: String,
    pub source_offset: Option<u64>,
    pub url: Option<String>,
    pub reason: String,
    #[serde(skip)]
    pub lost: Loss,
}

closed_set! {
    /// What is missing besides what was rejected.
    #[derive(Default)]
    pub enum Loss: "loss" {
        #[default]
        Nothing = "nothing",
        /// A capture, or a few, of URLs that nobody knows.
        Captures = "captures",
        /// All that came behind: an archive ends in the middle or cannot be read.
        Rest = "rest",
    }
}
