//! What is kept of a source from one plan of a fleet to the next.
//!
//! A budget and a limit per host couple the sources: news of one can move the polls of another. What is learned from a
//! history does not depend on the others, and that is the slow part. So the curve of each source is kept, with what its
//! rows follow from; it holds as long as the history and the settings are those it was learned from.

use serde::{Deserialize, Serialize};

use super::fleet::SourceCurve;
use super::hosts::MovedPolls;
use crate::model::{Digest, Period};

/// A source as it was planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptSource {
    /// Identifies the options that it was planned with. The budget and the limit do not count.
    pub settings: Digest,
    /// Identifies its history.
    pub evidence: Digest,
    pub updates: usize,
    /// Under a budget, what its polls are worth; not if no update is known.
    pub curve: Option<SourceCurve>,
    /// Its share of the budget.
    pub share: Option<usize>,
    pub period: Period,
    /// The polls that it wants.
    pub poll_times: Vec<i64>,
    /// The polls that it got, if the limit of its host did not allow those.
    pub moved: Option<MovedPolls>,
}

impl KeptSource {
    /// When it is polled.
    #[must_use]
    pub(crate) fn polled_at(&self) -> &[i64] {
        self.moved.as_ref().map_or(&self.poll_times, |moved| &moved.poll_times)
    }
}
