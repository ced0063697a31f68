//! What is asked of a schedule.

use super::objective::Objective;
use super::optimal::most_polls;
use super::pattern::Smoothing;
use crate::model::closed_set::closed_set;
use crate::model::{Digest, DigestBuilder, Method, Period};
use crate::stats::Calendar;

closed_set! {
    /// Which part of the history the delivered schedule learns from.
    #[derive(Default)]
    pub enum FitOn: "part of the history" {
        #[default]
        All = "all",
        /// Only what the held-out numbers were learned from, for comparisons.
        Train = "train",
    }
}

/// What is asked of the schedule of a source.
#[derive(Clone, Debug)]
pub struct Options {
    /// `None` if it is to be chosen by cross-validation.
    pub period: Option<Period>,
    /// Polls in a period; without a period, polls a day.
    pub polls: usize,
    pub grain_s: i64,
    pub method: Method,
    pub objective: Objective,
    /// Share of the updates, the last ones, that the schedule is judged on.
    pub holdout: f64,
    pub fit: FitOn,
    pub min_gap_s: i64,
    pub smoothing: Smoothing,
    pub calendar: Calendar,
    /// The recall curve goes to this number of polls at least.
    pub curve_polls: usize,
    /// Whether to measure what the versions' signal tells about the next update.
    pub signal: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            period: None,
            polls: 4,
            grain_s: 300,
            method: Method::Optimal,
            objective: Objective::default(),
            holdout: 0.3,
            fit: FitOn::All,
            min_gap_s: 600,
            smoothing: Smoothing::default(),
            calendar: Calendar::utc(),
            curve_polls: 24,
            signal: false,
        }
    }
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum OptionsError {
    #[error("a grain of {0} s does not divide {1}: use 1m, 5m, 15m, 30m or 1h")]
    Grain(i64, &'static str),
    #[error("the objective needs weights of 0 or more, and one above 0")]
    Objective,
    #[error(
        "method: gone is what a source becomes, not a way to find polls; use optimal, uniform, theoretical, \
         poisson, freshness-optimal or adaptive"
    )]
    Gone,
    #[error("polls must be at least 1")]
    Polls,
    #[error("holdout is {0}: it must be at least 0 and below 1")]
    Holdout(f64),
    #[error("min_gap is negative")]
    MinGap,
}

impl Options {
    pub fn check(&self) -> Result<(), OptionsError> {
        let coarsest = self.period.unwrap_or(Period::Hour);
        if self.grain_s < 60 || self.grain_s % 60 != 0 || !coarsest.divisible_by(self.grain_s) {
            return Err(OptionsError::Grain(self.grain_s, if coarsest == Period::Hour { "an hour" } else { "a day" }));
        }
        if !self.objective.is_valid() {
            return Err(OptionsError::Objective);
        }
        if self.method == Method::Gone {
            return Err(OptionsError::Gone);
        }
        if self.polls == 0 {
            return Err(OptionsError::Polls);
        }
        if !(0.0..1.0).contains(&self.holdout) {
            return Err(OptionsError::Holdout(self.holdout));
        }
        if self.min_gap_s < 0 {
            return Err(OptionsError::MinGap);
        }
        Ok(())
    }

    /// Identifies all that a schedule depends on besides the history.
    #[must_use]
    pub(crate) fn digest(&self) -> Digest {
        DigestBuilder::new()
            .optional("period", self.period)
            .named("polls", self.polls)
            .named("grain_s", self.grain_s)
            .named("method", self.method)
            .named("objective", self.objective)
            .named("holdout", self.holdout)
            .named("fit", self.fit)
            .named("min_gap_s", self.min_gap_s)
            .named("smoothing.shrinkage", self.smoothing.shrinkage)
            .named("smoothing.prior_periods", self.smoothing.prior_periods)
            .named("smoothing.half_life_days", self.smoothing.half_life_days)
            .named("smoothing.day_share", self.smoothing.day_share)
            .named("time_zone", self.calendar.name())
            .named("curve_polls", self.curve_polls)
            .named("signal", self.signal)
            .finish()
    }

    /// Slots of a period.
    pub(crate) fn slots(&self, period: Period) -> usize {
        usize::try_from(period.seconds() / self.grain_s).unwrap_or(0)
    }

    /// How many polls fit into a period.
    pub(crate) fn most_polls(&self, period: Period) -> usize {
        most_polls(self.slots(period), self.min_gap_slots(self.grain_s))
    }

    /// Minimum gap in slots of `grain_s`.
    pub(crate) fn min_gap_slots(&self, grain_s: i64) -> usize {
        usize::try_from((self.min_gap_s + grain_s - 1) / grain_s).unwrap_or(1).max(1)
    }
}
