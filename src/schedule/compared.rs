//! What ways to poll are worth beside each other, over all sources of a log.

use serde::Serialize;

use super::evaluate::Metrics;
use crate::model::Period;
use crate::model::closed_set::closed_set;

closed_set! {
    /// Who gets how many polls.
    pub(crate) enum Sharing: "sharing" {
        /// Every source the same.
        Each = "each",
        /// A budget over all of them, shared by the method.
        Shared = "shared",
        /// As many as the method makes.
        Free = "free",
    }
}

/// A way to poll, and what it was worth.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ComparedWay {
    pub way: String,
    pub sharing: Sharing,
    /// Over all sources, a period.
    pub polls: f64,
    /// Sources with versions to judge by.
    pub judged: usize,
    /// Means over these sources, each by its weight.
    pub recall: Option<f64>,
    pub freshness: Option<f64>,
    pub staleness: Option<f64>,
    pub age_s: Option<f64>,
    pub delay_s: Option<f64>,
    /// Each version alike.
    pub recall_by_version: Option<f64>,
}

/// What was compared.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison {
    pub period: Period,
    pub sources: usize,
    /// Polls a period, over all sources.
    pub budget: usize,
    pub holdout: f64,
    pub ways: Vec<ComparedWay>,
}

/// A source by one way: its polls a period, its weight and what it came to.
pub(crate) struct Judged {
    pub polls: f64,
    pub weight: f64,
    pub metrics: Metrics,
}

/// The means over the sources.
#[must_use]
pub(crate) fn summed_up(way: &str, sharing: Sharing, judged: &[Judged]) -> ComparedWay {
    let counted = || judged.iter().filter(|one| one.metrics.recall.is_some());
    let mean = |value: &dyn Fn(&Judged) -> Option<f64>, weight: &dyn Fn(&Judged) -> f64| {
        let sum = counted().filter_map(|one| Some((value(one)? * weight(one), weight(one))));
        let (sum, weights) = sum.fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        (weights > 0.0).then(|| sum / weights)
    };
    let by_source = |value: &dyn Fn(&Metrics) -> Option<f64>| mean(&|one| value(&one.metrics), &|one| one.weight);
    ComparedWay {
        way: way.to_owned(),
        sharing,
        polls: judged.iter().map(|one| one.polls).sum(),
        judged: counted().count(),
        recall: by_source(&|m| m.recall),
        freshness: by_source(&|m| m.freshness),
        staleness: by_source(&|m| m.staleness),
        age_s: by_source(&|m| m.age_s),
        delay_s: by_source(&|m| m.delay_s),
        recall_by_version: mean(&|one| one.metrics.recall, &|one| one.metrics.versions as f64),
    }
}
