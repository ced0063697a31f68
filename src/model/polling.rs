//! The words of schedules: what they repeat over and how they were found.

use super::closed_set::closed_set;

const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 86_400;

closed_set! {
    /// What a schedule repeats over. Weeks begin on Monday 00:00.
    pub enum Period: "period" {
        Hour = "hour",
        Day = "day",
        Week = "week",
        Month = "month",
    }
}

impl Period {
    /// With its article: polls come four `a day` or `an hour`.
    #[must_use]
    pub fn each(self) -> &'static str {
        match self {
            Self::Hour => "an hour",
            Self::Day => "a day",
            Self::Week => "a week",
            Self::Month => "a month",
        }
    }

    /// Length in seconds by the wall clock; of a month, the longest.
    #[must_use]
    pub fn seconds(self) -> i64 {
        match self {
            Self::Hour => HOUR_S,
            Self::Day => DAY_S,
            Self::Week => 7 * DAY_S,
            Self::Month => 31 * DAY_S,
        }
    }

    /// Mean length in seconds: a month is the twelfth of a Gregorian year.
    #[must_use]
    pub fn mean_seconds(self) -> f64 {
        match self {
            Self::Month => 2_629_746.0,
            other => other.seconds() as f64,
        }
    }

    /// How many polls at these seconds from its start come in a period, in the mean: days that a month lacks have none.
    #[must_use]
    pub fn mean_polls(self, times: &[i64]) -> f64 {
        // Of the 4,800 months in which the Gregorian calendar repeats itself, 303 have no 29th, 400 no 30th.
        let share = |time: &i64| match (self, time / DAY_S) {
            (Self::Month, 28) => 4_497.0 / 4_800.0,
            (Self::Month, 29) => 11.0 / 12.0,
            (Self::Month, 30) => 7.0 / 12.0,
            _ => 1.0,
        };
        times.iter().map(share).sum()
    }

    /// Whether `grain_s` divides the period and the calendar unit its cron lines are written in.
    #[must_use]
    pub fn divisible_by(self, grain_s: i64) -> bool {
        let unit = if self == Self::Hour { HOUR_S } else { DAY_S };
        grain_s > 0 && unit % grain_s == 0
    }
}

closed_set! {
    /// How poll times are found.
    #[derive(Default)]
    pub enum Method: "method" {
        /// The exact optimum.
        #[default]
        Optimal = "optimal",
        /// A fixed interval at its best phase.
        Uniform = "uniform",
        /// The paper's method, by which update of a period comes when.
        Theoretical = "theoretical",
        /// A fixed interval at any phase: only the rate is known.
        Poisson = "poisson",
        /// A fixed interval at any phase; a budget is shared so that most copies are fresh, if sources change by chance.
        FreshnessOptimal = "freshness-optimal",
        /// A fixed interval at any phase; a budget is shared by the rule of crawlers that keep no history.
        Adaptive = "adaptive",
        /// Not at all: there is nothing to poll any more. Never asked for.
        Gone = "gone",
    }
}
