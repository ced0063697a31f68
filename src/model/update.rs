//! How the updates of a page are known, and what they look like.

use super::closed_set::closed_set;

closed_set! {
    /// How the moment of an update is known.
    pub enum UpdatedAtSource: "source of an update's time" {
        /// A trusted `Last-Modified` inside the interval.
        LastModified = "last_modified",
        /// An update log states it.
        Log = "log",
    }
}

closed_set! {
    /// How a rate of updates was estimated.
    #[derive(Default)]
    pub enum Estimator: "estimator" {
        /// There is nothing to estimate from.
        #[default]
        None = "none",
        /// Cho and Garcia-Molina, for regular captures.
        Regular = "regular",
        /// Maximum likelihood on intervals.
        Likelihood = "likelihood",
    }
}

closed_set! {
    /// How updates follow each other.
    pub enum Rhythm: "rhythm" {
        /// A Poisson process is not rejected.
        Random = "random",
        /// More evenly than in a Poisson process.
        Regular = "regular",
        /// More unevenly.
        Bursty = "bursty",
    }
}
