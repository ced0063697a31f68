//! What there is to know of a night before its shards are worked on, by whoever works on them.

use std::collections::HashMap;

use super::edits::Edits;
use super::known::Known;
use super::live::Live;
use super::sources::SharedSources;
use crate::model::{Digest, SnapshotId};
use crate::plan::Plan;
use crate::store::Store;

/// What all shards share.
pub(super) struct Job<'a> {
    pub(super) store: &'a Store,
    pub(super) known: Known<'a>,
    pub(super) live: &'a Live,
    pub(super) edits: &'a Edits<'a>,
    pub(super) snapshot: &'a SnapshotId,
    /// `pages` has all pages of the snapshot.
    pub(super) pages_whole: bool,
    pub(super) plan: &'a Plan,
    /// By extractor, whether it is run on all pages of the snapshot, not only on those that it touched.
    pub(super) whole: Vec<bool>,
    /// By extractor, whether its mentions of this snapshot are already there.
    pub(super) kept: Vec<bool>,
    /// By extractor, its fingerprint in the snapshot before.
    pub(super) before: Vec<Option<Digest>>,
    /// By extractor, whether it has changed since the snapshot before, and old text keeps what was found before.
    pub(super) crosses: Vec<bool>,
    /// By extractor, whether its mentions are compared with those of the snapshot before: it crosses, or
    /// ran there as it is now.
    pub(super) compares: Vec<bool>,
    /// By extractor, whether this process runs it.
    pub(super) does: Vec<bool>,
    /// An earlier run has rows of this snapshot.
    pub(super) done_before: bool,
    /// An earlier run has told what changed in this snapshot.
    pub(super) stands: bool,
    /// Position of each snapshot in time.
    pub(super) order: HashMap<SnapshotId, usize>,
    pub(super) sources: SharedSources,
}
