//! How the last snapshots develop.

use crate::report::overview::{Growth, NightGrowth};
use crate::store::manifest::SnapshotDone;

use super::Look;

pub(super) fn growth(look: &Look<'_>) -> Growth {
    let bytes = |done: &SnapshotDone| -> u64 {
        done.stages.values().flat_map(|stage| stage.tables.values()).map(|written| written.bytes).sum()
    };
    let nights = look.nights.iter().filter_map(|night| {
        let done = look.done.iter().find(|done| done.snapshot.id == night.snapshot)?;
        let row = &night.row;
        Some(NightGrowth {
            snapshot: night.snapshot.clone(),
            pages: row.pages,
            added: row.added,
            modified: row.modified,
            deleted: row.deleted,
            mentions: row.mentions,
            new_text_bytes: row.new_text_bytes,
            bytes: bytes(done),
            seconds: done.stages.iter().map(|(stage, done)| (*stage, done.seconds)).collect(),
        })
    });
    Growth { nights: nights.collect(), store_bytes: look.done.iter().map(|done| bytes(done)).sum() }
}
