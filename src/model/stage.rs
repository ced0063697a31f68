//! The steps that a snapshot goes through.

use super::closed_set::closed_set;

closed_set! {
    /// A stage, in the order in which a snapshot goes through them.
    pub enum StageId: "stage" {
        Ingest = "ingest",
        Plan = "plan",
        Match = "match",
        Extract = "extract",
        Delta = "delta",
        Stats = "stats",
        Schedule = "schedule",
        Close = "close",
    }
}
