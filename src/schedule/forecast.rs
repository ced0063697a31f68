//! What recall and freshness will be: an interval for a stretch of time with as many versions as the one they were
//! measured on.
//!
//! Both are ratios of sums over versions (captured of all, stale time of all time), and neighbouring versions resemble
//! each other. So the stretch is cut into blocks of equally many versions, and the spread of the blocks about the common
//! ratio gives its variance. The stretch to come varies as much as the one measured, so that their difference has twice
//! that variance; the blocks are few, so that it is Student's. Measured coverage: `cargo bench --bench schedule`.

use super::evaluate::{Tally, replay};

/// Intervals of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Forecast {
    pub recall: (f64, f64),
    pub freshness: (f64, f64),
}

const BLOCKS: usize = 12;
/// Fewer blocks, or blocks of fewer versions, say nothing about their spread.
const LEAST_BLOCKS: usize = 4;
const LEAST_VERSIONS: usize = 2;

/// Forecast from polls and the updates of each URL, of which there may be several equally likely placements.
#[must_use]
pub(crate) fn forecast(polls: &[i64], sequences: &[Vec<Vec<i64>>]) -> Option<Forecast> {
    let versions = versions(polls, sequences);
    let blocks = BLOCKS.min(versions.len() / LEAST_VERSIONS);
    if blocks < LEAST_BLOCKS {
        return None;
    }
    let mut sums = vec![Tally::default(); blocks];
    for (i, version) in versions.iter().enumerate() {
        sums[i * blocks / versions.len()].add(version);
    }
    let captured: Vec<(f64, f64)> = sums.iter().map(|sum| (sum.captured, sum.versions)).collect();
    let stale: Vec<(f64, f64)> = sums.iter().map(|sum| (sum.stale, sum.span)).collect();
    let (recall, spread) = ratio(&captured)?;
    // Where all blocks are alike, such as all captured, the next version may still be the first that is not.
    let all: f64 = captured.iter().map(|(_, versions)| versions).sum();
    let likely = (recall * all + 1.0) / (all + 2.0);
    let least = 0.5 * likely * (1.0 - likely) / all;
    let (stale, stale_spread) = ratio(&stale)?;
    Some(Forecast {
        recall: around(recall, spread.max(least), blocks),
        freshness: around((1.0 - stale).clamp(0.0, 1.0), stale_spread, blocks),
    })
}

/// All versions by the time of their birth, each in the mean over placements.
fn versions(polls: &[i64], sequences: &[Vec<Vec<i64>>]) -> Vec<Tally> {
    let mut found: Vec<(i64, Tally)> = Vec::new();
    for placements in sequences {
        let lives = placements.iter().map(|moments| moments.len().saturating_sub(1)).min().unwrap_or(0);
        for i in 0..lives {
            let mut mean = Tally::default();
            for moments in placements {
                let polls = &polls[polls.partition_point(|poll| *poll < moments[i])..];
                mean.add(&replay(polls, &moments[i..=i + 1]));
            }
            found.push((placements[0][i], mean.scaled(1.0 / placements.len() as f64)));
        }
    }
    found.sort_by_key(|(born, _)| *born);
    found.into_iter().map(|(_, version)| version).collect()
}

/// The ratio of two sums over blocks, and its variance.
fn ratio(blocks: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = blocks.len() as f64;
    let (part, whole) = blocks.iter().fold((0.0, 0.0), |sum, block| (sum.0 + block.0, sum.1 + block.1));
    if whole <= 0.0 {
        return None;
    }
    let ratio = part / whole;
    let squares: f64 = blocks.iter().map(|(part, whole)| (part - ratio * whole).powi(2)).sum();
    Some((ratio, squares * n / (n - 1.0) / (whole * whole)))
}

/// The interval of 95 % around a share for a share yet to come, with the same variance.
fn around(share: f64, variance: f64, blocks: usize) -> (f64, f64) {
    let half = student(blocks - 1) * (2.0 * variance).sqrt();
    ((share - half).max(0.0), (share + half).min(1.0))
}

/// The 97.5 % quantile of Student's distribution (Cornish and Fisher's expansion; within 0.03 from 3 degrees on).
fn student(degrees: usize) -> f64 {
    const Z: f64 = 1.959_964;
    let n = degrees.max(1) as f64;
    let (z3, z5, z7) = (Z.powi(3), Z.powi(5), Z.powi(7));
    Z + (z3 + Z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * n * n)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * Z) / (384.0 * n * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::coverage::{forecasts, sources};

    #[test]
    fn quantiles_of_student_are_those_of_tables() {
        for (degrees, quantile) in [(3, 3.182), (5, 2.571), (11, 2.201), (30, 2.042)] {
            assert!((student(degrees) - quantile).abs() < 0.04, "{degrees}: {}", student(degrees));
        }
    }

    #[test]
    fn few_versions_say_nothing_of_what_comes() {
        assert_eq!(forecast(&[5, 15], &[vec![vec![0, 10, 20, 30]]]), None);
        // All captured so far: the next need not be.
        let moments: Vec<i64> = (0..40).map(|i| i * 10_000_000).collect();
        let polls: Vec<i64> = moments.iter().map(|m| m + 5_000_000).collect();
        let found = forecast(&polls, &[vec![moments]]).unwrap();
        assert!(found.recall.0 > 0.8 && found.recall.0 < 1.0 && found.recall.1 == 1.0, "{found:?}");
        assert!((found.freshness.0 - 0.5).abs() < 1e-9 && (found.freshness.1 - 0.5).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn forecasts_cover_what_comes_in_90_to_99_percent() {
        for (covered, judged) in forecasts(sources(400)) {
            let share = covered as f64 / judged as f64;
            assert!(judged > 380 && (0.9..=0.99).contains(&share), "{covered} of {judged}");
        }
    }
}
