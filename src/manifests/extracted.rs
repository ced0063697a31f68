//! What `extract` leaves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::extract::command::protocol::Ready;
use crate::model::{Digest, StageId};
use crate::plan::Served;
use crate::plan::model::{Speed, Spent};
use crate::store::manifest::Summary;

/// Mentions were extracted. Maps are by extractor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Extracted {
    /// Identifies what the pipeline file said, as far as it decides the result.
    pub declared: BTreeMap<String, Digest>,
    /// Identifies what ran: definition, engine, what a worker said of itself.
    pub fingerprints: BTreeMap<String, Digest>,
    /// How the mentions came about, see [`super::lineage`].
    pub lineage: BTreeMap<String, Digest>,
    /// The lineage of the snapshot before that mentions were copied from.
    pub built_on: BTreeMap<String, Digest>,
    /// The plan's matcher, `none` without.
    pub matcher: Served,
    /// What the workers of commands said of themselves.
    pub workers: BTreeMap<String, Ready>,
    pub costs: BTreeMap<String, Costs>,
    /// Mentions on all pages of the snapshot.
    pub mentions: BTreeMap<String, u64>,
    /// Pages that have what another definition found, because the present one was adopted for new text only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub older: BTreeMap<String, u64>,
    /// As the cost model remembers it.
    pub spent: BTreeMap<String, Spent>,
    /// Texts read.
    pub read: Speed,
    pub read_s: f64,
    pub saved: Saved,
    /// What was paid in the snapshot; `None` if no extractor has a price.
    pub price: Option<f64>,
}

impl Extracted {
    /// The lineage of an extractor here, for a snapshot that goes on from it with this fingerprint.
    #[must_use]
    pub(crate) fn source(&self, extractor: &str, fingerprint: Digest) -> Option<Digest> {
        let same = self.fingerprints.get(extractor) == Some(&fingerprint);
        same.then(|| self.lineage.get(extractor).copied()).flatten()
    }

    /// Whether everything that was copied from the snapshot before is still what that snapshot has. Where there is none
    /// (any more), nothing can have changed.
    #[must_use]
    pub(crate) fn still_follows(&self, before: Option<&Self>) -> bool {
        before.is_none_or(|before| {
            // What another definition found may be gone on from as well, and its lineage tells.
            let follows = |name: &str, print| match self.built_on.get(name) {
                Some(built_on) => before.lineage.get(name) == Some(built_on),
                None => before.source(name, print).is_none(),
            };
            self.fingerprints.iter().all(|(name, print)| follows(name, *print))
        })
    }
}

impl Summary for Extracted {
    const STAGE: StageId = StageId::Extract;
    const VERSION: u32 = 3;
}

/// What an extractor cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Costs {
    pub pages: u64,
    pub failed: u64,
    pub text_bytes: u64,
    pub bytes_extracted: u64,
    pub lower_bound: u64,
    pub copied: u64,
    pub extracted: u64,
    pub not_local: u64,
    /// Pages that wait for a budget, and their units that do.
    pub deferred: u64,
    pub units_deferred: u64,
    /// What answers told of that does not stand in the text.
    pub refused: u64,
    /// Requests that were sent in the snapshot, attempts included, and what they came to.
    pub requests: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub price: f64,
    /// Of pages that did not fail.
    pub extract_s: f64,
    pub copy_s: f64,
    /// Waiting for failures.
    pub failed_s: f64,
}

impl std::ops::AddAssign for Costs {
    fn add_assign(&mut self, other: Self) {
        self.pages += other.pages;
        self.failed += other.failed;
        self.text_bytes += other.text_bytes;
        self.bytes_extracted += other.bytes_extracted;
        self.lower_bound += other.lower_bound;
        self.copied += other.copied;
        self.extracted += other.extracted;
        self.not_local += other.not_local;
        self.deferred += other.deferred;
        self.units_deferred += other.units_deferred;
        self.refused += other.refused;
        self.requests += other.requests;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.price += other.price;
        self.extract_s += other.extract_s;
        self.copy_s += other.copy_s;
        self.failed_s += other.failed_s;
    }
}

/// What extraction from scratch would have cost beyond what the night did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    pub bytes: u64,
    /// Text that extraction from scratch would have been given.
    pub of_bytes: u64,
    /// Seconds of work; below 0 where recycling cost more than it saved.
    pub seconds: f64,
    /// Where extraction has a price.
    pub price: Option<f64>,
}
