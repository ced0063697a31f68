//! What crawlers do that keep no history: `adaptive`, for comparison.
//!
//! The rule of Apache Nutch (AdaptiveFetchSchedule, without its synchronisation): a poll that finds a change makes the
//! interval a fifth shorter, one that finds none makes it two fifths longer. It settles where six polls in ten find a
//! change, so that it knows no budget: to compare it with others, polls of a budget are shared in proportion to those
//! that it would make.

use crate::stats::whole::whole;

const SHORTER: f64 = 0.8;
const LONGER: f64 = 1.4;
const LONGEST_S: f64 = 365.0 * 86_400.0;
const SECOND: f64 = 1e6;

/// The rule at work on one URL.
#[derive(Clone, Debug)]
pub(crate) struct Adapted {
    /// Moments of its polls.
    pub polls: Vec<i64>,
    /// Where the interval has come to.
    pub interval_s: f64,
}

/// Polls a URL from `start` to `end` by the rule, its updates ascending; `shortest_s`: the least interval.
#[must_use]
pub(crate) fn adapt(updates: &[i64], (start, end): (i64, i64), interval_s: f64, shortest_s: f64) -> Adapted {
    let shortest_s = shortest_s.max(60.0);
    let mut adapted = Adapted { polls: Vec::new(), interval_s: interval_s.clamp(shortest_s, LONGEST_S) };
    let (mut at, mut seen) = (start, 0);
    while at <= end {
        adapted.polls.push(at);
        let upto = seen + updates[seen..].partition_point(|update| *update <= at);
        let factor = if upto > seen { SHORTER } else { LONGER };
        seen = upto;
        adapted.interval_s = (adapted.interval_s * factor).clamp(shortest_s, LONGEST_S);
        at += whole(adapted.interval_s * SECOND).max(1);
    }
    adapted
}

/// Shares a budget in proportion to `pulls`, in whole polls within bounds, by largest remainders.
#[must_use]
pub(crate) fn proportional(pulls: &[f64], bounds: &[(usize, usize)], budget: usize) -> Vec<usize> {
    let mut polls: Vec<usize> = bounds.iter().map(|(least, most)| *least.min(most)).collect();
    let mut left = budget.saturating_sub(polls.iter().sum());
    // Who is full leaves the rest to the others.
    loop {
        let open: Vec<usize> = (0..pulls.len()).filter(|i| pulls[*i] > 0.0 && polls[*i] < bounds[*i].1).collect();
        let pull: f64 = open.iter().map(|i| pulls[*i]).sum();
        if left == 0 || open.is_empty() {
            return polls;
        }
        let mut parts: Vec<(f64, usize)> = Vec::with_capacity(open.len());
        let mut given = 0;
        for i in open {
            let part = left as f64 * pulls[i] / pull;
            let gets = crate::stats::whole::count(part).min(bounds[i].1 - polls[i]);
            polls[i] += gets;
            given += gets;
            parts.push((part - gets as f64, i));
        }
        left -= given;
        if given == 0 {
            parts.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            for (_, i) in parts.into_iter().take(left) {
                polls[i] += 1;
                left -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(times: impl IntoIterator<Item = i64>) -> Vec<i64> {
        times.into_iter().map(|t| t * 1_000_000).collect()
    }

    #[test]
    fn the_interval_follows_the_updates() {
        let updates = seconds((1..2_000).map(|i| i * 3_600));
        let span = (0, 2_000 * 3_600 * 1_000_000);
        let quick = adapt(&updates, span, 86_400.0, 60.0);
        // Six polls in ten find a change of an hourly page: about 36 minutes apart.
        assert!((1_500.0..3_000.0).contains(&quick.interval_s), "{}", quick.interval_s);
        let slow = adapt(&[], span, 86_400.0, 60.0);
        assert!(slow.interval_s > 10.0 * 86_400.0 && slow.polls.len() < 20);
        let bounded = adapt(&updates, span, 86_400.0, 7_200.0);
        assert!((bounded.interval_s - 7_200.0).abs() < 4_000.0);
    }

    #[test]
    fn shares_follow_pulls_and_keep_to_bounds() {
        assert_eq!(proportional(&[1.0, 2.0, 1.0], &[(0, 99); 3], 8), [2, 4, 2]);
        assert_eq!(proportional(&[1.0, 9.0], &[(1, 3); 2], 8), [3, 3]);
        assert_eq!(proportional(&[1.0, 1.0, 1.0], &[(0, 9); 3], 2), [1, 1, 0]);
        assert_eq!(proportional(&[0.0, 1.0], &[(1, 9), (0, 9)], 5), [1, 4]);
    }
}
