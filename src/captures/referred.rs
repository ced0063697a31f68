//! What a revisit refers to beyond its URL's last page: it may state the digest of an older version, or of a payload that
//! another URL has or had, or say "as that other URL was, at that time" and state no digest that is known.
//!
//! Digests and URLs that revisits ask for are collected while captures are read; then whoever holds them is added here.
//! A stated digest that contradicts what is found there leaves the revisit unresolved: another payload is no evidence.

use serde::{Deserialize, Serialize};

use super::{CaptureNote, SpilledAt, SpilledCapture};
use crate::model::maps::HashMap;
use crate::model::{SnapshotId, Timestamp};

/// Something that a capture of another URL holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elsewhere<'a> {
    /// A capture of this snapshot.
    Capture(SpilledAt),
    /// The last page of this URL.
    LastPageOf(&'a str),
    /// A version that an earlier snapshot stored.
    Version(&'a StoredVersion),
}

/// A page that was stored: its row in `pages`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct StoredVersion {
    pub(crate) snapshot: SnapshotId,
    pub(crate) url: String,
}

/// All that revisits of a snapshot may refer to.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Referable {
    /// Captures and stored versions, by the digest that the archive stated for them.
    captures: HashMap<String, SpilledAt>,
    versions: HashMap<String, StoredVersion>,
    /// By URL that a revisit names: captures that hold a page, by time.
    captures_of: HashMap<String, Vec<Candidate>>,
    /// By URL that a revisit names: the digest that the archive stated for its last page.
    last_page_of: HashMap<String, Option<String>>,
}

/// A capture that holds a page.
#[derive(Debug, Serialize, Deserialize)]
struct Candidate {
    fetched_at: Timestamp,
    archive_digest: Option<String>,
    at: SpilledAt,
}

impl Referable {
    /// `captures`: by stated digest, where a capture of this snapshot lies.
    #[must_use]
    pub(crate) fn new(captures: HashMap<String, SpilledAt>) -> Self {
        Self { captures, ..Self::default() }
    }

    /// Whether a capture of this snapshot or a stored version has the digest: then the URL that a revisit names besides is
    /// not looked at.
    #[must_use]
    pub(crate) fn has_digest(&self, digest: &str) -> bool {
        self.captures.contains_key(digest) || self.versions.contains_key(digest)
    }

    /// Adds the captures of URLs that revisits name; all captures of a URL come at once.
    pub(crate) fn add_named_captures(&mut self, mut captures: Vec<SpilledCapture>) {
        captures.retain(|capture| capture.note.holds_page());
        captures.sort_by(|a, b| (a.note.order(), a.at).cmp(&(b.note.order(), b.at)));
        for SpilledCapture { note, at } in captures {
            let candidate = Candidate { fetched_at: note.fetched_at, archive_digest: note.archive_digest, at };
            self.captures_of.entry(note.url).or_default().push(candidate);
        }
    }

    /// Adds a last page of a URL that a revisit names.
    pub(crate) fn add_named_page(&mut self, url: String, archive_digest: Option<String>) {
        self.last_page_of.insert(url, archive_digest);
    }

    /// Adds a stored version that has a digest which a revisit states.
    pub(crate) fn add_version(&mut self, archive_digest: String, version: StoredVersion) {
        self.versions.insert(archive_digest, version);
    }

    /// All stored versions that revisits may refer to.
    pub(crate) fn versions(&self) -> impl Iterator<Item = &StoredVersion> {
        self.versions.values()
    }

    /// What a revisit refers to: by its digest, else by the URL that it names.
    #[must_use]
    pub(crate) fn find(&self, note: &CaptureNote) -> Option<Elsewhere<'_>> {
        let by_digest = note.archive_digest.as_ref().and_then(|digest| {
            let capture = self.captures.get(digest).map(|at| Elsewhere::Capture(*at));
            capture.or_else(|| self.versions.get(digest).map(Elsewhere::Version))
        });
        by_digest.or_else(|| self.find_named(note))
    }

    /// The capture that a revisit names: at the time that it names, else the last before it, else the last page.
    fn find_named(&self, note: &CaptureNote) -> Option<Elsewhere<'_>> {
        let revisit = note.revisit.as_ref()?;
        let url = revisit.refers_to_url.as_ref().filter(|url| **url != note.url)?;
        let agrees = |digest: &Option<String>| match (&note.archive_digest, digest) {
            (Some(stated), Some(known)) => stated == known,
            _ => true,
        };
        let of_url = self.captures_of.get(url).into_iter().flatten();
        let mut captures = of_url.filter(|capture| agrees(&capture.archive_digest));
        let found = match revisit.refers_to_date {
            // Dates are often written without their fraction.
            Some(date) => captures.find(|capture| (capture.fetched_at.0 - date.0).abs() < Timestamp::SECOND),
            None => captures.take_while(|capture| capture.fetched_at <= note.fetched_at).last(),
        };
        match found {
            Some(capture) => Some(Elsewhere::Capture(capture.at)),
            None => {
                let (url, _) = self.last_page_of.get_key_value(url).filter(|(_, digest)| agrees(digest))?;
                Some(Elsewhere::LastPageOf(url))
            }
        }
    }
}
