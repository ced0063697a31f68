//! What is settled about a snapshot before its URLs are folded: all that looks across URLs.

use serde::{Deserialize, Serialize};

use super::verdict::Suspects;
use crate::captures::{Referable, StoredVersion, Tonight};
use crate::model::maps::{HashMap, HashSet};
use crate::model::{Coverage, Digest, SnapshotId};
use crate::tables::ingest::PageFacts;
use crate::text::mask::Mask;

/// Is told to everybody who folds URLs of the snapshot; see [`Tonight`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Settled {
    pub(super) base: bool,
    pub(super) whole: bool,
    pub(super) absent_is_gone: bool,
    pub(super) coverage: Coverage,
    pub(super) rejected: HashSet<String>,
    pub(super) seen_before: HashSet<Digest>,
    pub(super) suspects: Suspects,
    pub(super) referable: Referable,
    /// What revisits stand for that earlier snapshots stored.
    pub(super) versions: HashMap<StoredVersion, PageFacts>,
}

impl Settled {
    pub(super) fn tonight<'a>(
        &'a self,
        snapshot: &'a SnapshotId,
        mask: &'a Mask,
        ignore_digest: Digest,
    ) -> Tonight<'a> {
        Tonight {
            snapshot,
            base: self.base,
            whole: self.whole,
            absent_is_gone: self.absent_is_gone,
            rejected: &self.rejected,
            coverage: self.coverage,
            seen_before: &self.seen_before,
            mask,
            ignore_digest,
        }
    }
}
