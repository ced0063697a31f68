//! What each stage leaves for later ones: one typed, versioned record per stage, kept in its manifest.
//!
//! Stages meet through tables and through these records, nowhere else. A record belongs here if another stage, a command
//! or a later night reads it; what a stage needs for itself alone stays with the stage. Every record refuses fields that
//! it does not know and fields that are missing: a store that does not fit the program is told, never guessed at.
//! Whoever changes a record raises its version.

mod closed;
mod compared;
mod extracted;
mod ingested;
mod matched;
mod observed;
mod planned;
mod scheduled;

pub(crate) use closed::Closed;
pub(crate) use compared::{AskedQuery, Compared, Waiting};
pub(crate) use extracted::Saved;
pub(crate) use extracted::{Costs, Extracted};
pub use ingested::{Changes, Ingested};
pub(crate) use matched::{Matched, MatchedPages, MatcherCost};
pub(crate) use observed::Observed;
pub(crate) use planned::Planned;
pub(crate) use scheduled::{Overall, OverallSums, Scheduled};

use crate::model::{Digest, DigestBuilder, SnapshotId};

/// Identifies how the result of an extractor or a query in a snapshot came about: its definition, and the result of the
/// snapshot before that it goes on from. Where that one is made anew, what was built on it is out of date.
#[must_use]
pub(crate) fn lineage(snapshot: &SnapshotId, fingerprint: Digest, before: Option<Digest>) -> Digest {
    let mut builder = DigestBuilder::new();
    builder.field(snapshot.as_str().as_bytes()).field(&fingerprint.0);
    if let Some(before) = before {
        builder.field(&before.0);
    }
    builder.finish()
}
