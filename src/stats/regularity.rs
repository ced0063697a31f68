//! Is a page's rhythm that of a Poisson process? Spread of gaps, a test, and bursts.
//!
//! The gaps of a Poisson process are exponential with the mean seen. The test is the Kolmogorov-Smirnov distance to
//! that, with the correction for an estimated mean and the critical values of Stephens (1974):
//! `(D - 0.2/n) (sqrt n + 0.26 + 0.5/sqrt n)`.

use serde::{Deserialize, Serialize};

use crate::model::Rhythm;

/// Shape of the gaps between updates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regularity {
    /// Standard deviation over mean: 1 for Poisson, 0 for a clock, above 1 in bursts.
    pub variation: f64,
    /// Stephens' statistic; above 1.094 a Poisson process is rejected at 5 %.
    pub statistic: f64,
    /// Upper bound of the test's p-value: one of 0.01, 0.025, 0.05, 0.1, 0.15, or 1 if above.
    pub p_value: f64,
    pub rhythm: Rhythm,
}

/// Fewer gaps say nothing about their shape.
const LEAST_GAPS: usize = 8;

/// Critical values of the statistic for an exponential with estimated mean.
const CRITICAL: [(f64, f64); 5] = [(1.308, 0.01), (1.190, 0.025), (1.094, 0.05), (0.990, 0.1), (0.926, 0.15)];

/// The shape of gaps, which are given in any unit and order; `None` if they are too few.
#[must_use]
pub(crate) fn regularity(gaps: &[f64]) -> Option<Regularity> {
    if gaps.len() < LEAST_GAPS {
        return None;
    }
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    if mean <= 0.0 {
        return None;
    }
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let variation = variance.sqrt() / mean;
    let mut sorted = gaps.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut distance = 0.0f64;
    for (i, gap) in sorted.iter().enumerate() {
        let expected = -(-gap / mean).exp_m1();
        distance = distance.max(expected - i as f64 / n).max((i as f64 + 1.0) / n - expected);
    }
    let statistic = (distance - 0.2 / n) * (n.sqrt() + 0.26 + 0.5 / n.sqrt());
    let p_value = CRITICAL.iter().find(|(value, _)| statistic > *value).map_or(1.0, |(_, p)| *p);
    let rhythm = match (p_value <= 0.05, variation < 1.0) {
        (false, _) => Rhythm::Random,
        (true, true) => Rhythm::Regular,
        (true, false) => Rhythm::Bursty,
    };
    Some(Regularity { variation, statistic, p_value, rhythm })
}

/// Runs of updates that follow each other much faster than usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bursts {
    pub bursts: u64,
    /// Share of all updates that are in a burst.
    pub share: f64,
    /// Updates in the largest burst.
    pub largest: u64,
}

/// A gap below this share of the mean is fast: one in twenty of a Poisson process.
const FAST: f64 = 0.05;
/// Updates that make a burst.
const BURST: u64 = 3;

/// Bursts in consecutive gaps between updates.
#[must_use]
pub(crate) fn bursts(gaps: &[f64]) -> Bursts {
    let mut found = Bursts::default();
    let mean = gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
    let (mut run, mut inside) = (1u64, 0u64);
    for gap in gaps.iter().map(|g| g / mean).chain([f64::INFINITY]) {
        if gap < FAST {
            run += 1;
            continue;
        }
        if run >= BURST {
            found.bursts += 1;
            inside += run;
            found.largest = found.largest.max(run);
        }
        run = 1;
    }
    found.share = inside as f64 / (gaps.len() as f64 + 1.0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_bursts_and_chance_are_told_apart() {
        let clock: Vec<f64> = (0..100).map(|i| 24.0 + f64::from(i % 3) * 0.1).collect();
        assert_eq!(regularity(&clock).unwrap().rhythm, Rhythm::Regular);
        // Quantiles of the exponential itself.
        let chance: Vec<f64> = (0..200).map(|i| -(1.0 - (f64::from(i) + 0.5) / 200.0).ln()).collect();
        let found = regularity(&chance).unwrap();
        assert_eq!((found.rhythm, found.p_value), (Rhythm::Random, 1.0));
        let bursty: Vec<f64> = (0..100).map(|i| if i % 5 == 0 { 100.0 } else { 0.1 }).collect();
        assert_eq!(regularity(&bursty).unwrap().rhythm, Rhythm::Bursty);
        let bursts = bursts(&bursty);
        assert_eq!((bursts.bursts, bursts.largest), (20, 5));
        assert_eq!(regularity(&[1.0; 3]), None);
    }

    #[test]
    fn even_gaps_have_no_bursts() {
        assert_eq!(bursts(&[1.0; 30]), Bursts::default());
        assert_eq!(bursts(&[]), Bursts::default());
    }
}
