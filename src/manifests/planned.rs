//! What `plan` leaves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::StageId;
use crate::plan::model::Sample;
use crate::plan::{AlternativeKind, Plan, Served};
use crate::store::manifest::Summary;

/// How a snapshot is to be matched and extracted was chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Planned {
    pub plan: Plan,
    pub alternative: AlternativeKind,
    /// The plan's matcher, `none` without.
    pub matcher: Served,
    pub refined: bool,
    pub predicted_s: f64,
    pub predicted_price: f64,
    /// What every matcher did on a few changed pages.
    pub sample: Sample,
    /// What extracting a byte is expected to cost, by extractor.
    pub seconds_a_byte: BTreeMap<String, f64>,
    pub choose_s: f64,
}

impl Summary for Planned {
    const STAGE: StageId = StageId::Plan;
    const VERSION: u32 = 1;
}
