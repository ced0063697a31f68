//! What `close` leaves.

use serde::{Deserialize, Serialize};

use crate::model::StageId;
use crate::store::manifest::Summary;

/// A snapshot was counted. Nothing is left for later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Closed {}

impl Summary for Closed {
    const STAGE: StageId = StageId::Close;
    const VERSION: u32 = 1;
}
