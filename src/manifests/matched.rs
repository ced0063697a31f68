//! What `match` leaves.

use serde::{Deserialize, Serialize};

use crate::matching::PerMatcher;
use crate::model::StageId;
use crate::plan::Served;
use crate::plan::model::{BUCKETS, Speed};
use crate::store::manifest::Summary;

/// The old regions of changed pages were found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Matched {
    /// The plan's matcher, `none` without.
    pub matcher: Served,
    pub refined: bool,
    pub min_region: u32,
    pub changed: MatchedPages,
    pub matchers: PerMatcher<MatcherCost>,
    pub match_s: f64,
    /// Texts read.
    pub read: Speed,
    pub read_s: f64,
    /// How fast matchers were, by class of page.
    pub speeds: [PerMatcher<Speed>; BUCKETS],
}

impl Summary for Matched {
    const STAGE: StageId = StageId::Match;
    const VERSION: u32 = 1;
}

/// The pages that were matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MatchedPages {
    pub pages: u64,
    pub bytes: u64,
    pub old_bytes: u64,
    /// Text in old regions.
    pub region_bytes: u64,
}

/// The pages whose regions are a matcher's, and the time it took on these and on pages that were left to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MatcherCost {
    pub pages: u64,
    pub bytes: u64,
    pub seconds: f64,
}
