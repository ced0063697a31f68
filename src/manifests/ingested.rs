//! What `ingest` leaves.

use serde::{Deserialize, Serialize};

use crate::model::window::FolderWindow;
use crate::model::{Digest, StageId};
use crate::plan::model::Extents;
use crate::store::manifest::Summary;

/// A snapshot folder was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ingested {
    /// The layouts of the folder, joined by `+`.
    pub layout: String,
    /// Size of the archive files.
    pub bytes: u64,
    /// Bodies, decoded.
    pub payload_bytes: u64,
    /// Payloads that were read as text, not only hashed.
    pub parsed: u64,
    pub changes: Changes,
    pub read_seconds: f64,
    /// The snapshot holds the text and links of every page, not only of changed ones.
    pub base: bool,
    /// `pages` has a row for every page of the snapshot, not only for those of URLs that it touched.
    pub whole: bool,
    /// URLs that have a page.
    pub alive: u64,
    /// URLs that have a page or had one.
    pub known: u64,
    /// Text of all pages of the snapshot.
    pub text_bytes: u64,
    /// Identifies the `ignore` rules.
    pub ignore: Digest,
    /// The part of its folder that it is; `None` if it is the whole folder.
    pub window: Option<FolderWindow>,
    /// The crawl did not come to its end: what it did not bring was carried, not deleted.
    pub incomplete: bool,
    /// Of a full crawl: pages known of which it says nothing.
    pub missing: u64,
    /// Archive files that end in the middle or cannot be read.
    pub cut_files: u64,
    /// Nothing in the folder could be read.
    pub unusable: bool,
    /// So many pages are missing that the crawl would be incomplete, had nobody said that the site shrank.
    pub accepted: bool,
}

impl Ingested {
    /// Whether it would be another snapshot if somebody said that the site shrank. Where a file was cut or nothing could
    /// be read, absence says nothing whatever anybody says.
    #[must_use]
    pub fn waits_for_acceptance(&self) -> bool {
        self.incomplete && self.cut_files == 0 && !self.unusable
    }
}

impl Summary for Ingested {
    const STAGE: StageId = StageId::Ingest;
    const VERSION: u32 = 3;
}

/// How the pages of a snapshot stand to those before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    pub added: u64,
    pub modified: u64,
    pub unchanged: u64,
    pub carried: u64,
    pub moved: u64,
    /// Pages of URLs that had none in the snapshot before: added, or returned.
    pub came: u64,
    /// URLs that had a page in the snapshot before and have none now.
    pub went: u64,
    pub unresolved_revisits: u64,
    /// Captures that are neither a page nor say "as before"; suspects among them.
    pub failed: u64,
    /// Captures that are no pages though the server says so.
    pub suspects: u64,
    pub revisits: u64,
    /// Versions of pages that were captured but are not stored: a snapshot keeps the last one of each page.
    pub passed_over: u64,
    /// Of the pages that have a row.
    pub text_bytes: u64,
    /// What the same URLs had in the snapshot before.
    pub old_text_bytes: u64,
    pub stored_text_bytes: u64,
    pub stored_link_bytes: u64,
    /// By what their old text is to them.
    pub texts: Extents,
}

impl std::ops::AddAssign for Changes {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.modified += other.modified;
        self.unchanged += other.unchanged;
        self.carried += other.carried;
        self.moved += other.moved;
        self.came += other.came;
        self.went += other.went;
        self.unresolved_revisits += other.unresolved_revisits;
        self.failed += other.failed;
        self.suspects += other.suspects;
        self.revisits += other.revisits;
        self.passed_over += other.passed_over;
        self.text_bytes += other.text_bytes;
        self.old_text_bytes += other.old_text_bytes;
        self.stored_text_bytes += other.stored_text_bytes;
        self.stored_link_bytes += other.stored_link_bytes;
        self.texts += other.texts;
    }
}
