//! What `stats` leaves.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::StageId;
use crate::store::manifest::Summary;

/// Update times were learned from the captures. All that later stages need of them is carried per URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Observed {
    /// Known sources that took over the history of a page which, as was only told now, has moved there: they are to be
    /// learned from again, though no update of theirs is new.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub moved: BTreeSet<String>,
}

impl Summary for Observed {
    const STAGE: StageId = StageId::Stats;
    const VERSION: u32 = 1;
}
