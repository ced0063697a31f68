//! From captures to pages: which capture of a URL is its page in a snapshot, and what a capture that only says
//! "as before" stands for. Pure: works on notes about captures, never on their bodies.

use serde::{Deserialize, Serialize};

use crate::model::{Digest, Revisit, TimeSource, Timestamp};

/// What is kept of a capture while its snapshot is being ingested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureNote {
    /// Normalised.
    pub url: String,
    pub fetched_at: Timestamp,
    pub fetched_at_source: TimeSource,
    pub status: Option<u16>,
    /// Media type only, lower case.
    pub content_type: Option<String>,
    pub last_modified: Option<(Timestamp, TimeSource)>,
    pub etag: Option<String>,
    pub archive_digest: Option<String>,
    /// A revisit record or a 304: says "as before" instead of repeating the content.
    pub revisit: Option<Revisit>,
    pub payload: Option<PayloadNote>,
    pub found: Found,
    /// The body is short or cannot be decoded: a capture, but never a page.
    pub broken: bool,
    pub source_file: String,
    pub source_offset: u64,
    /// Position in its source file; orders captures that share an offset.
    pub sequence: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadNote {
    pub digest: Digest,
    pub bytes: u64,
    /// Of the body and of all that decides how it is read.
    pub reading: Digest,
}

/// What a capture's body holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// No body, no text in it, or none that is of interest (an error page).
    Nothing,
    /// The very reading of the URL's last good page.
    AsLast,
    Text(ContentNote),
}

/// A content without the content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentNote {
    pub title: Option<String>,
    pub charset: Option<String>,
    pub text_digest: Digest,
    pub text_bytes: u64,
    pub content_digest: Digest,
    pub change_digest: Digest,
    /// Of the text alone, with what the ignore rules match masked.
    pub masked_text_digest: Digest,
}

impl CaptureNote {
    /// Order of the captures of one URL: the last good one is the page.
    #[must_use]
    pub fn order(&self) -> impl Ord + '_ {
        (self.fetched_at, &self.source_file, self.source_offset, self.sequence)
    }

    fn is_good(&self) -> bool {
        !self.broken && is_good(self.status, self.revisit.is_some())
    }

    /// The server says that the page is no more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.revisit.is_none() && says_gone(self.status)
    }
}

/// Whether a capture of this status can be a page. `repeats`: it is a revisit or a 304.
#[must_use]
pub fn is_good(status: Option<u16>, repeats: bool) -> bool {
    match status {
        None | Some(200) => true,
        Some(304) => repeats,
        Some(_) => false,
    }
}

/// Whether a response of this status says that the page is no more.
#[must_use]
pub fn says_gone(status: Option<u16>) -> bool {
    matches!(status, Some(404 | 410))
}

/// Where the content of a capture lies. `E`: somewhere under another URL, or in a capture of another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source<E> {
    /// With the capture of this index.
    Own(usize),
    /// It is the URL's last good page.
    Last,
    Elsewhere(E),
}

/// The captures of one URL in one snapshot, resolved.
#[derive(Debug, PartialEq, Eq)]
pub struct Resolved<E> {
    /// For each capture, where its content lies; `None` if it has none or is an unresolved revisit.
    pub sources: Vec<Option<Source<E>>>,
    /// Index of the capture that is the page.
    pub page: Option<usize>,
}

/// Resolves the captures of one URL, sorted by [`CaptureNote::order`].
///
/// `last` tells whether the URL has a last good page and which digest the archive stated for it. `elsewhere` finds a
/// capture or last page by stated digest or by the URL that a revisit names.
///
/// A revisit stands for the capture with its digest; without a digest, or as a 304, for what the URL held just before
/// it. A digest that contradicts what the URL held, and is found nowhere else, leaves it unresolved.
pub fn resolve<E: Clone>(
    notes: &[CaptureNote],
    last: Option<Option<&str>>,
    elsewhere: impl Fn(&CaptureNote) -> Option<E>,
) -> Resolved<E> {
    let mut held: Option<Source<E>> = last.map(|_| Source::Last);
    let mut held_digest: Option<String> = last.flatten().map(str::to_owned);
    let mut resolved = Resolved { sources: Vec::with_capacity(notes.len()), page: None };
    for (i, note) in notes.iter().enumerate() {
        let source = match (&note.revisit, &note.found) {
            _ if note.broken => None,
            (Some(revisit), _) => {
                let same_url = revisit.refers_to_url.as_ref().is_none_or(|url| *url == note.url);
                match (&note.archive_digest, &held_digest) {
                    _ if note.status == Some(304) => held.clone(),
                    (Some(stated), Some(known)) if stated == known => held.clone(),
                    (stated, known) => elsewhere(note).map(Source::Elsewhere).or_else(|| {
                        let contradicts = stated.is_some() && known.is_some();
                        if same_url && !contradicts { held.clone() } else { None }
                    }),
                }
            }
            (None, Found::Nothing) => None,
            (None, Found::AsLast) => Some(Source::Last),
            (None, Found::Text(_)) => Some(Source::Own(i)),
        };
        if note.is_good() && source.is_some() {
            held.clone_from(&source);
            if note.archive_digest.is_some() || note.revisit.is_none() {
                held_digest.clone_from(&note.archive_digest);
            }
            resolved.page = Some(i);
        }
        resolved.sources.push(source);
    }
    resolved
}

#[cfg(test)]
mod tests;
