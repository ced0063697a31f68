//! What a schedule is chosen for.

use std::fmt;
use std::str::FromStr;

/// Weights of what a schedule is good for: `recall + freshness - delay / period - staleness`, each times its weight.
///
/// Staleness is harmonic: where `n` updates are unseen, the copy is `1 + 1/2 + … + 1/n` stale (Kolobov et al., "Staying up
/// to Date with Online Content Changes", 2019), so that the first counts most and none counts nothing. It is meant over time.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Objective {
    pub recall: f64,
    pub freshness: f64,
    pub delay: f64,
    pub staleness: f64,
}

impl Default for Objective {
    /// Plain recall overfits and hurts freshness; a third of freshness costs next to no recall.
    fn default() -> Self {
        Self { recall: 1.0, freshness: 0.3, ..Self::NOTHING }
    }
}

impl Objective {
    /// No weight at all, to begin with.
    pub(crate) const NOTHING: Self = Self { recall: 0.0, freshness: 0.0, delay: 0.0, staleness: 0.0 };
    pub const RECALL: Self = Self { recall: 1.0, ..Self::NOTHING };
    pub const FRESHNESS: Self = Self { freshness: 1.0, ..Self::NOTHING };
    pub const DELAY: Self = Self { delay: 1.0, ..Self::NOTHING };
    pub const STALENESS: Self = Self { staleness: 1.0, ..Self::NOTHING };

    /// The same with ties going to freshness: where a history leaves the other weights a choice, or next to one, it
    /// decides. It weighs a tenth of them: enough to outweigh the pull of the Poisson share towards even gaps, which is
    /// no evidence, and a third of what costs next to no recall (see the default).
    #[must_use]
    pub(crate) fn with_ties_to_freshness(self) -> Self {
        const TIE: f64 = 0.1;
        Self { freshness: self.freshness.max(TIE * (self.recall + self.delay)), ..self }
    }

    /// Whether it says anything, without negative or infinite weights (those would break exactness).
    #[must_use]
    pub fn is_valid(self) -> bool {
        let weights = [self.recall, self.freshness, self.delay, self.staleness];
        weights.iter().all(|w| w.is_finite() && *w >= 0.0) && weights.iter().any(|w| *w > 0.0)
    }
}

/// As tables and the command line have it: `recall=1,freshness=0.3,delay=0`, and staleness where it counts.
impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "recall={},freshness={},delay={}", self.recall, self.freshness, self.delay)?;
        if self.staleness > 0.0 { write!(f, ",staleness={}", self.staleness) } else { Ok(()) }
    }
}

/// What is wrong with the text of an objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadObjective(String);

/// What is not named weighs nothing; a name alone weighs 1.
impl FromStr for Objective {
    type Err = BadObjective;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut objective = Self::NOTHING;
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
            let weight: f64 = weight.trim().parse().map_err(|_| BadObjective(format!("'{weight}' is no number")))?;
            match name.trim() {
                "recall" => objective.recall = weight,
                "freshness" => objective.freshness = weight,
                "delay" => objective.delay = weight,
                "staleness" => objective.staleness = weight,
                other => return Err(BadObjective(format!("'{other}' is none of recall, freshness, delay, staleness"))),
            }
        }
        if objective.is_valid() {
            Ok(objective)
        } else {
            Err(BadObjective("weights must be 0 or more, and one above 0".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_read_as_they_are_written() {
        let objective: Objective = "recall=0.5, delay = 2".parse().unwrap();
        assert_eq!(objective.to_string().parse::<Objective>().unwrap(), objective);
        assert_eq!("freshness".parse::<Objective>().unwrap(), Objective::FRESHNESS);
        assert_eq!("staleness".parse::<Objective>().unwrap(), Objective::STALENESS);
        assert_eq!(Objective::STALENESS.to_string().parse::<Objective>().unwrap(), Objective::STALENESS);
        assert_eq!(Objective::default().to_string(), "recall=1,freshness=0.3,delay=0");
        for bad in ["recall=x", "speed=1", "recall=-1", "", "recall=0"] {
            assert!(bad.parse::<Objective>().is_err(), "{bad}");
        }
    }
}
