//! Extraction by asking: somebody is given parts of a page and answers with their mentions.

use std::time::Duration;

use crate::extract::mention::Mention;
use crate::model::Span;
use crate::model::closed_set::closed_set;

/// Finds mentions in parts of a page without seeing the rest of it: a worker process, or a function in a test.
pub trait Runner {
    /// The mentions of each slice, each extracted as if it were a page, with offsets in bytes of the page. If one slice
    /// fails, the page fails.
    fn run(&mut self, page: &str, slices: &[Span]) -> Result<Vec<Vec<Mention>>, Failure>;
}

/// Why a page has no mentions. The page is marked and tried again next time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    #[error("worker ended: {0}")]
    Crashed(String),
    #[error("worker reports an error: {0}")]
    Reported(String),
    #[error("answer does not fit the page: {0}")]
    BadAnswer(String),
}

impl Failure {
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::Timeout(_) => Status::Timeout,
            Self::Crashed(_) | Self::Reported(_) | Self::BadAnswer(_) => Status::Failed,
        }
    }
}

closed_set! {
    /// How extracting a page ended. Only the mentions of pages that are `ok` are ever copied.
    pub enum Status: "status" {
        Ok = "ok",
        Failed = "failed",
        Timeout = "timeout",
    }
}
