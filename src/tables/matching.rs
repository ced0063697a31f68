//! The table that `match` writes.

use std::sync::Arc;

use crate::matching::MatcherKind;
use crate::model::SnapshotId;
use crate::tables::record::{Table, record};

record! {
    /// An old region of a changed page.
    pub struct RegionRow {
        url: Arc<str> = "page whose text differs from the last good text of its URL",
        matcher: MatcherKind = "matcher that found the region",
        start: i64 = "first byte in the page's text",
        end: i64 = "byte after the last",
        old_start: i64 = "first byte in the old page's text; as many bytes from there on are equal",
        old_snapshot: SnapshotId = "snapshot of the old page",
    }
}

impl Table for RegionRow {
    const NAME: &'static str = "regions";
    const ABOUT: &'static str = "old regions: what of a changed page stood in its old page, and where";
}
