//! From a history to its pattern on the circle of slots: what the methods learn from.
//!
//! Known update times go on the circle as they are. Updates known by their interval are spread over it: phases are
//! estimated by expectation-maximisation in bins no finer than the intervals ([`crate::stats::phase`]), and each update
//! is placed [`DRAWS`] times at quantiles of what the phases leave of its interval. Taking the crawl's times instead
//! would learn the crawl's own rhythm.
//!
//! A history is a small sample of a source that drifts, so the plain optimum overfits. Four mild corrections, all
//! non-negative mixtures that keep the costs Monge and the optimum exact; on 26 public logs, recall on held-out time
//! moved by less than its noise when any of the values was halved or doubled:
//! - a share of the Poisson cost ([`Smoothing::shrinkage`]),
//! - more of it for few periods: the rest is trusted to `p / (p + prior_periods)` for `p` periods with updates, which makes
//!   10 % of Poisson for a year of days, 20 % for two years of weeks, and nearly all for the first days,
//! - older updates count less ([`Smoothing::half_life_days`]),
//! - a week or month is mixed with the day repeated ([`Smoothing::day_share`]): seven times more data for the hour.

use super::gaps::{Pattern, Point};
use super::history::{History, Sequence};
use crate::model::{Period, Timestamp};
use crate::stats::calendar::SECOND;
use crate::stats::phase::{PhaseModel, bins_for};
use crate::stats::summary::median_width;
use crate::stats::{Calendar, Update};

/// Placements of an update that is known by its interval.
pub(crate) const DRAWS: usize = 8;

/// Updates that the repeated day is made of: a sample of a long history, which bounds the memory.
const DAY_POINTS: usize = 8_000;

/// How much an empirical pattern is trusted.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Smoothing {
    pub shrinkage: f64,
    pub prior_periods: f64,
    /// 0: all updates count the same.
    pub half_life_days: f64,
    pub day_share: f64,
}

impl Default for Smoothing {
    fn default() -> Self {
        Self { shrinkage: 0.05, prior_periods: 20.0, half_life_days: 730.0, day_share: 0.3 }
    }
}

impl Smoothing {
    /// The history as it is.
    pub const NONE: Self = Self { shrinkage: 0.0, prior_periods: 0.0, half_life_days: 0.0, day_share: 0.0 };
}

/// A pattern and how far to trust it.
#[derive(Clone, Debug)]
pub struct Learned {
    pub pattern: Pattern,
    /// Share of the Poisson cost.
    pub shrinkage: f64,
    /// Updates were spread over their intervals.
    pub spread: bool,
    /// The intervals are too wide to tell any phase of this period.
    pub blind: bool,
}

impl Learned {
    /// Whether the history says nothing about phases, so that all of them are equally good.
    pub(crate) fn tells_nothing(&self) -> bool {
        self.blind || self.pattern.points.is_empty()
    }
}

/// Learns a pattern from a history, on slots of `grain_s` seconds.
#[must_use]
pub fn learn(history: &History, calendar: &Calendar, period: Period, grain_s: i64, smoothing: &Smoothing) -> Learned {
    let spread = history.is_censored(grain_s as f64);
    let all: Vec<Update> = history.sequences.iter().flat_map(|s| s.updates.iter().copied()).collect();
    let bins = bins_for(period, median_width(&all));
    let blind = spread && bins < 2;
    let placed = if spread { place(history, calendar, period, bins, &all) } else { moments(history) };
    let mut pattern = circle(&placed, calendar, period, grain_s, smoothing.half_life_days);
    if matches!(period, Period::Week | Period::Month) && smoothing.day_share > 0.0 {
        // A repeated day knows nothing of the days before it, so that distances between updates end at a day.
        let mut day = circle(&placed, calendar, Period::Day, grain_s, smoothing.half_life_days);
        thin(&mut day, DAY_POINTS);
        pattern = repeat_day(&day, smoothing.day_share, pattern);
    }
    let mut seen: Vec<i64> = all.iter().map(|u| calendar.place(period, u.central()).index).collect();
    seen.sort_unstable();
    seen.dedup();
    let periods = seen.len() as f64;
    let trust = if periods > 0.0 { periods / (periods + smoothing.prior_periods) } else { 0.0 };
    let shrinkage = if blind { 1.0 } else { 1.0 - (1.0 - smoothing.shrinkage) * trust };
    Learned { pattern, shrinkage, spread, blind }
}

/// Sequences of moments, each with the same weight.
struct Placed {
    sequences: Vec<Vec<Timestamp>>,
    /// How many of them stand for one sequence of updates.
    copies: usize,
}

fn moments(history: &History) -> Placed {
    let moments = |s: &Sequence| s.updates.iter().map(Update::central).collect();
    Placed { sequences: history.sequences.iter().map(moments).collect(), copies: 1 }
}

/// Places every update [`DRAWS`] times within its interval.
fn place(history: &History, calendar: &Calendar, period: Period, bins: usize, all: &[Update]) -> Placed {
    let unchanged: Vec<(Timestamp, Timestamp)> = history
        .sequences
        .iter()
        .flat_map(|s| s.updates.windows(2).map(|pair| (pair[0].before, pair[1].after)))
        .filter(|(from, to)| from < to)
        .collect();
    let model = PhaseModel::fit(calendar, period, bins, all, &unchanged);
    let mut sequences = Vec::with_capacity(history.sequences.len() * DRAWS);
    for sequence in &history.sequences {
        let mut draws = vec![Vec::new(); DRAWS];
        for (i, update) in sequence.updates.iter().enumerate() {
            match update.exact() {
                Some(time) => {
                    for draw in &mut draws {
                        draw.push(time);
                    }
                }
                None => {
                    let stretch = model.between(calendar, update.after, update.before);
                    for (k, draw) in draws.iter_mut().enumerate() {
                        draw.push(stretch.quantile(low_discrepancy(i, k, DRAWS)));
                    }
                }
            }
        }
        sequences.extend(draws);
    }
    Placed { sequences, copies: DRAWS }
}

/// The `k`-th of `n` even shares, turned by the golden ratio from one `i` to the next so that placements of different
/// updates do not move together.
pub(crate) fn low_discrepancy(i: usize, k: usize, n: usize) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    ((k as f64 + 0.5) / n as f64 + i as f64 * GOLDEN).fract()
}

fn circle(placed: &Placed, calendar: &Calendar, period: Period, grain_s: i64, half_life_days: f64) -> Pattern {
    let slots = usize::try_from(period.seconds() / grain_s).expect("a grain divides the period");
    let mut pattern = Pattern { slots, points: Vec::new(), per_period: 1.0 };
    let newest = placed.sequences.iter().filter_map(|s| s.last()).max().map_or(0, |t| t.0);
    let (mut updates, mut periods) = (0.0, 0.0);
    for sequence in &placed.sequences {
        let mut line: Vec<(f64, i64)> = sequence
            .iter()
            .map(|t| (calendar.place(period, *t).line(period) as f64 / (grain_s * SECOND) as f64, t.0))
            .collect();
        // In an hour that comes twice on the clock, two updates may change places.
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (i, (at, time)) in line.iter().enumerate() {
            let age_days = (newest - time) as f64 / (86_400 * SECOND) as f64;
            let weight = if half_life_days > 0.0 { (-age_days / half_life_days).exp2() } else { 1.0 };
            pattern.push(*at, i.checked_sub(1).map(|j| line[j].0), weight);
        }
        updates += line.len() as f64;
        if let (Some(first), Some(last)) = (line.first(), line.last()) {
            periods += (last.0 - first.0) / slots as f64;
        }
    }
    let copies = placed.copies as f64;
    pattern.per_period = updates / periods.max(copies);
    pattern.normalise();
    pattern
}

/// Keeps every k-th point, so that at most `most` are left.
fn thin(pattern: &mut Pattern, most: usize) {
    let every = pattern.points.len().div_ceil(most).max(1);
    if every > 1 {
        // What remains has lost its neighbours.
        let alone = |point: &Point| Point { follows: false, ..*point };
        pattern.points = pattern.points.iter().step_by(every).map(alone).collect();
        pattern.normalise();
    }
}

/// Mixes the day, repeated, into a longer period.
fn repeat_day(day: &Pattern, share: f64, pattern: Pattern) -> Pattern {
    let days = pattern.slots / day.slots;
    let points = Vec::with_capacity(day.points.len() * days);
    let mut repeated = Pattern { slots: pattern.slots, points, per_period: pattern.per_period };
    for d in 0..days {
        let shift = d * day.slots;
        for point in &day.points {
            repeated.points.push(Point {
                slot: point.slot + u32::try_from(shift).expect("slots fit in 32 bits"),
                at: point.at + shift as f64,
                weight: point.weight / days as f64,
                ..*point
            });
        }
    }
    pattern.mixed(&repeated, share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::whole::whole;

    fn at(hours: f64) -> Timestamp {
        Timestamp(whole(hours * 3_600.0) * SECOND)
    }

    #[test]
    fn moments_lie_on_their_slots() {
        let history = History::of_moments("s", &[at(9.0), at(33.5), at(33.75)]);
        let learned = learn(&history, &Calendar::utc(), Period::Day, 3_600, &Smoothing::NONE);
        let points: Vec<(u32, u32, f64)> = learned.pattern.points.iter().map(|p| (p.slot, p.since, p.at)).collect();
        assert_eq!(points, [(9, 24, 9.0), (10, 24, 9.5), (10, 0, 9.75)]);
        assert_eq!((learned.shrinkage, learned.spread, learned.blind), (0.0, false, false));
        assert!((learned.pattern.per_period - 3.0 / (24.75 / 24.0)).abs() < 1e-9);
    }

    #[test]
    fn midnight_belongs_to_the_last_slot() {
        let history = History::of_moments("s", &[at(24.0)]);
        let learned = learn(&history, &Calendar::utc(), Period::Day, 3_600, &Smoothing::NONE);
        assert_eq!(learned.pattern.points[0].slot, 24);
    }

    #[test]
    fn few_periods_are_trusted_less() {
        let few = History::of_moments("s", &(0..3).map(|d| at(f64::from(d) * 24.0 + 5.0)).collect::<Vec<_>>());
        let many = History::of_moments("s", &(0..300).map(|d| at(f64::from(d) * 24.0 + 5.0)).collect::<Vec<_>>());
        let shrinkage = |h| learn(h, &Calendar::utc(), Period::Day, 300, &Smoothing::default()).shrinkage;
        assert!(shrinkage(&few) > 0.85 && shrinkage(&many) < 0.12);
    }

    #[test]
    fn a_daily_crawl_is_blind_for_the_day_and_sees_the_week() {
        let updates = (0..40).map(|w| Update::within(at(f64::from(w) * 168.0 + 3.0), at(f64::from(w) * 168.0 + 27.0)));
        let history = History::new("s", vec![Sequence::new(updates.collect()).0]);
        let day = learn(&history, &Calendar::utc(), Period::Day, 300, &Smoothing::default());
        assert!(day.blind && day.spread);
        assert_eq!(day.shrinkage, 1.0);
        let week = learn(&history, &Calendar::utc(), Period::Week, 3_600, &Smoothing::NONE);
        assert!(!week.blind);
        // All on Thursday 03:00 to Friday 03:00.
        assert!(week.pattern.points.iter().all(|p| (75.0..=99.5).contains(&p.at)));
        assert!((week.pattern.per_period - 1.0).abs() < 0.1);
    }

    #[test]
    fn the_day_is_repeated_through_the_week() {
        let history = History::of_moments("s", &[at(9.0), at(105.0)]);
        let smoothing = Smoothing { day_share: 0.5, ..Smoothing::NONE };
        let learned = learn(&history, &Calendar::utc(), Period::Week, 3_600, &smoothing);
        let total: f64 = learned.pattern.points.iter().map(|p| p.weight).sum();
        assert!((total - 1.0).abs() < 1e-9);
        assert_eq!(learned.pattern.points.len(), 2 + 2 * 7);
        assert!(learned.pattern.points.iter().all(|p| p.slot % 24 == 9));
    }
}
