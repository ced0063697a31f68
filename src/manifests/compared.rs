//! What `delta` leaves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{Digest, StageId, Timestamp};
use crate::store::manifest::Summary;

/// A snapshot was compared with the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compared {
    /// Rows by table and change, such as `pages added`.
    pub changes: BTreeMap<String, u64>,
    /// By name.
    pub queries: BTreeMap<String, AskedQuery>,
    pub waiting: Waiting,
    /// Identifies the `ignore` rules.
    pub ignore: Digest,
}

/// Counts of watches that wait for a number of changes: by watch, its definition and the count.
pub(crate) type Waiting = BTreeMap<String, (Digest, u64)>;

impl Compared {
    /// The lineage of a query's table here, for a snapshot that goes on from it with this fingerprint.
    #[must_use]
    pub(crate) fn source(&self, query: &str, fingerprint: Digest) -> Option<Digest> {
        let asked = self.queries.get(query)?;
        (asked.fingerprint == fingerprint && asked.failed.is_none()).then_some(asked.lineage)
    }

    /// Whether all tables of queries were compared with what the snapshot before has. Where there is none (any more),
    /// nothing can have changed.
    #[must_use]
    pub(crate) fn still_follows(&self, before: Option<&Self>) -> bool {
        before.is_none_or(|before| {
            let mut all = self.queries.iter();
            all.all(|(name, asked)| asked.built_on == before.source(name, asked.fingerprint))
        })
    }
}

impl Summary for Compared {
    const STAGE: StageId = StageId::Delta;
    const VERSION: u32 = 1;
}

/// A query on a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskedQuery {
    pub fingerprint: Digest,
    /// How its table came about, see [`super::lineage`].
    pub lineage: Digest,
    /// The lineage of the table of the snapshot before that it was compared with.
    pub built_on: Option<Digest>,
    pub tuples: u64,
    /// Where it was not due here: the time of the snapshot that it was last asked of. Its table there still holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_asked: Option<Timestamp>,
    /// Why there is no table.
    pub failed: Option<String>,
    /// The limit that it failed by.
    pub max_tuples: Option<u64>,
}
