//! What `stats` leaves.

use serde::{Deserialize, Serialize};

use crate::model::StageId;
use crate::store::manifest::Summary;

/// Update times were learned from the captures. All that later stages need of them is carried per URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Observed {}

impl Summary for Observed {
    const STAGE: StageId = StageId::Stats;
    const VERSION: u32 = 1;
}
