//! Is there anything to learn, and over which period? Blocked cross-validation.
//!
//! The training part is cut into [`BLOCKS`] stretches of time with equally many updates. For each, a schedule is
//! learned from the others and replayed on it against a fixed interval with as many polls, averaged over its phases.
//! Stretches, not single updates, because neighbouring updates resemble each other. A gain counts if its mean exceeds
//! both its standard error and [`LEAST_GAIN`]. Slots are coarse here (at most about 720 a period, and fewer where updates
//! are known to wide intervals): it is the period that is chosen, not the minute.

use serde::{Deserialize, Serialize};

use super::assess::Judge;
use super::evaluate::Metrics;
use super::fit::SlotFitter;
use super::history::History;
use super::objective::Objective;
use super::options::Options;
use super::uniform::NamePhase;
use crate::model::{Period, Timestamp};
use crate::stats::Update;
use crate::stats::phase::bins_for;
use crate::stats::summary::median_width;

pub(crate) const BLOCKS: usize = 5;
/// A gain below this, in units of the objective, is not worth a schedule.
pub(crate) const LEAST_GAIN: f64 = 0.002;
/// Periods that a history must span before their phases are believed.
const LEAST_PERIODS: f64 = 4.0;

/// Gain of the objective over a fixed interval, by cross-validation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    pub mean: f64,
    pub standard_error: f64,
    pub blocks: usize,
}

impl Gain {
    #[must_use]
    pub fn is_shown(self) -> bool {
        self.blocks >= 3 && self.mean > self.standard_error.max(LEAST_GAIN)
    }
}

/// A period whose schedule shows a gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PeriodChoice {
    pub period: Period,
    /// Polls in it, for the polls a day that were asked for.
    pub polls: usize,
    pub gain: Gain,
}

/// Value of a schedule under an objective; delays in units of a day, so that periods compare.
#[must_use]
pub(crate) fn value(metrics: &Metrics, objective: Objective) -> Option<f64> {
    Some(
        objective.recall * metrics.recall? + objective.freshness * metrics.freshness?
            - objective.delay * metrics.delay_s? / Period::Day.seconds() as f64,
    )
}

/// Grain for comparing periods: coarse, and coarser where updates are known to wide intervals only, as long as so many
/// polls find room.
fn coarse_grain(period: Period, options: &Options, polls: usize, width_s: f64) -> i64 {
    /// Slots in the median interval of updates that are known by intervals.
    const SLOTS_IN_WIDTH: f64 = 8.0;
    let coarse = match period {
        Period::Hour => 60,
        Period::Day => 300,
        Period::Week => 900,
        Period::Month => 3_600,
    };
    let coarse = coarse.max(options.grain_s);
    let wide = [10_800, 7_200, 3_600, 1_800, 900].into_iter().filter(|grain| *grain > coarse && grain % coarse == 0);
    let mut fits = wide.filter(|grain| *grain as f64 * SLOTS_IN_WIDTH <= width_s);
    fits.find(|grain| polls * 2 <= room(period, options, *grain)).unwrap_or(coarse)
}

/// How many polls a period has room for at a grain.
fn room(period: Period, options: &Options, grain_s: i64) -> usize {
    usize::try_from(period.seconds() / grain_s).unwrap_or(0) / options.min_gap_slots(grain_s)
}

/// The gain that a schedule over this period shows within a history.
#[must_use]
pub(crate) fn gain(
    history: &History,
    phase: &NamePhase,
    options: &Options,
    period: Period,
    polls: usize,
) -> Option<Gain> {
    let (first, last) = history.span()?;
    if (last.0 - first.0) as f64 / 1e6 < LEAST_PERIODS * period.seconds() as f64 {
        return None;
    }
    let updates: Vec<Update> = history.sequences.iter().flat_map(|s| s.updates.iter().copied()).collect();
    let width_s = median_width(&updates);
    if bins_for(period, width_s) < 2 {
        // No phase of this period can be told, so that none can be gained from.
        return None;
    }
    let grain_s = coarse_grain(period, options, polls, width_s);
    let mut times: Vec<Timestamp> = updates.iter().map(Update::central).collect();
    times.sort_unstable();
    let mut gains = Vec::new();
    for block in 0..BLOCKS {
        let (from, to) = (times.len() * block / BLOCKS, times.len() * (block + 1) / BLOCKS);
        if from >= to {
            continue;
        }
        let begin = times[from];
        let end = times.get(to).map_or(Timestamp(i64::MAX), |t| *t);
        let rest = history.without(begin, end);
        let held = history.part(|t| begin <= t && t < end);
        let fitter = SlotFitter::new(&rest, phase, options, period, grain_s);
        let poll_times = fitter.times(&fitter.slots(options.method, polls));
        let judge = Judge::new(&held);
        let scheduled = value(&judge.expected(&options.calendar, period, &poll_times), options.objective);
        let uniform = value(&judge.uniform(period, &poll_times), options.objective);
        if let (Some(scheduled), Some(uniform)) = (scheduled, uniform) {
            gains.push(scheduled - uniform);
        }
    }
    if gains.len() < 2 {
        return None;
    }
    let n = gains.len() as f64;
    let mean = gains.iter().sum::<f64>() / n;
    let variance = gains.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(Gain { mean, standard_error: (variance / n).sqrt(), blocks: gains.len() })
}

/// Polls in a period for so many a day; `None` if that is less than one, or more than the comparison can hold.
fn polls_in(period: Period, a_day: usize, options: &Options) -> Option<usize> {
    let polls = match period {
        Period::Hour => a_day / 24,
        Period::Day => a_day,
        Period::Week => 7 * a_day,
        Period::Month => 31 * a_day,
    };
    let grain_s = coarse_grain(period, options, polls, 0.0);
    (polls >= 1 && polls * 2 <= room(period, options, grain_s)).then_some(polls)
}

/// The period with the largest gain, if any is shown; of periods within a standard error of it, the shortest.
#[must_use]
pub(crate) fn choose_period(history: &History, phase: &NamePhase, options: &Options) -> Option<PeriodChoice> {
    let shown: Vec<PeriodChoice> = Period::ALL
        .into_iter()
        .filter_map(|period| {
            let polls = polls_in(period, options.polls, options)?;
            let gain = gain(history, phase, options, period, polls).filter(|g| g.is_shown())?;
            Some(PeriodChoice { period, polls, gain })
        })
        .collect();
    let best = shown.iter().max_by(|a, b| a.gain.mean.total_cmp(&b.gain.mean))?;
    let enough = best.gain.mean - best.gain.standard_error;
    shown.iter().find(|choice| choice.gain.mean >= enough).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::whole::whole;

    fn at(hours: f64) -> Timestamp {
        Timestamp(whole(hours * 3_600.0) * 1_000_000)
    }

    /// Deterministic noise in [0, 1).
    fn noise(i: u32) -> f64 {
        (f64::from(i) * 0.754_877_666_246_692_7 + f64::from(i) * f64::from(i) * 0.569_840_290_998).fract()
    }

    #[test]
    fn a_daily_rhythm_is_found() {
        // Three updates each morning, minutes apart.
        let times: Vec<Timestamp> = (0..120u32)
            .flat_map(|day| [8.0, 9.0, 10.0].map(|h| at(f64::from(day) * 24.0 + h + noise(day) * 0.3)))
            .collect();
        let history = History::of_moments("s", &times);
        let choice = choose_period(&history, &NamePhase::of("s"), &Options { polls: 3, ..Options::default() }).unwrap();
        assert_eq!((choice.period, choice.polls), (Period::Day, 3));
        assert!(choice.gain.mean > 0.3, "{choice:?}");
    }

    #[test]
    fn a_weekly_rhythm_needs_a_week() {
        // Ten updates on Mondays, none on other days; 5 January 1970 was a Monday.
        let times: Vec<Timestamp> = (0..60u32)
            .flat_map(|week| {
                (0..10u32)
                    .map(move |i| at(96.0 + f64::from(week) * 168.0 + 8.0 + f64::from(i) + 0.2 * noise(week * 10 + i)))
            })
            .collect();
        let history = History::of_moments("s", &times);
        let choice = choose_period(&history, &NamePhase::of("s"), &Options { polls: 2, ..Options::default() }).unwrap();
        assert_eq!(choice.period, Period::Week);
    }

    #[test]
    fn chance_shows_no_gain() {
        let mut time = 0.0;
        let times: Vec<Timestamp> = (0..400u32)
            .map(|i| {
                time += -(1.0 - noise(i)).ln() * 7.3;
                at(time)
            })
            .collect();
        let history = History::of_moments("s", &times);
        assert_eq!(choose_period(&history, &NamePhase::of("s"), &Options { polls: 3, ..Options::default() }), None);
    }
}
