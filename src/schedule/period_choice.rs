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
use crate::model::{Method, Period, Timestamp};
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
            - objective.delay * metrics.delay_s? / Period::Day.seconds() as f64
            - objective.staleness * metrics.staleness?,
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

/// A schedule over a period beside a fixed interval, within a history.
struct Comparison<'a> {
    history: &'a History,
    options: &'a Options,
    period: Period,
    polls: usize,
    grain_s: i64,
    /// Stretches with equally many updates.
    blocks: Vec<(Timestamp, Timestamp)>,
}

impl<'a> Comparison<'a> {
    /// `None` if the history tells nothing of the period.
    fn new(history: &'a History, options: &'a Options, period: Period, polls: usize) -> Option<Self> {
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
        let block = |block: usize| {
            let (from, to) = (times.len() * block / BLOCKS, times.len() * (block + 1) / BLOCKS);
            let end = times.get(to).map_or(Timestamp(i64::MAX), |t| *t);
            (from < to).then(|| (times[from], end))
        };
        let blocks = (0..BLOCKS).filter_map(block).collect();
        Some(Self { history, options, period, polls, grain_s, blocks })
    }

    /// What becomes of each block, held out. `poll_times`: what a block is polled at, and what a fixed interval is to
    /// have as many polls as.
    fn gains(&self, poll_times: impl Fn((Timestamp, Timestamp)) -> (Vec<i64>, Vec<i64>)) -> Vec<f64> {
        let objective = self.options.objective;
        let gain = |block: &(Timestamp, Timestamp)| {
            let held = self.history.part(|t| block.0 <= t && t < block.1);
            let judge = Judge::new(&held);
            let (polled, as_many) = poll_times(*block);
            let scheduled = value(&judge.expected(&self.options.calendar, self.period, &polled), objective)?;
            Some(scheduled - value(&judge.uniform(self.period, &as_many), objective)?)
        };
        self.blocks.iter().filter_map(gain).collect()
    }

    fn gain(&self, phase: &NamePhase) -> Option<Gain> {
        let gains = self.gains(|(begin, end)| {
            let rest = self.history.without(begin, end);
            let fitter = SlotFitter::new(&rest, phase, self.options, self.period, self.grain_s);
            let times = fitter.times(&fitter.slots(self.options.method, self.polls));
            (times.clone(), times)
        });
        if gains.len() < 2 {
            return None;
        }
        let n = gains.len() as f64;
        let mean = gains.iter().sum::<f64>() / n;
        let variance = gains.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some(Gain { mean, standard_error: (variance / n).sqrt(), blocks: gains.len() })
    }

    /// Whether a gain can be shown at all: no schedule sees more than polls at all slots do, and a fixed interval sees
    /// least if as many of its polls as possible lie on days that not all months have. Nothing is learned to tell this.
    fn may_show_gain(&self) -> bool {
        // Other methods may have use for fewer polls.
        if self.options.method != Method::Optimal {
            return true;
        }
        let (length, grain) = (self.period.seconds(), self.grain_s);
        let gap = i64::try_from(self.options.min_gap_slots(grain)).unwrap_or(1) * grain;
        let all: Vec<i64> = (0..length / grain).map(|slot| slot * grain).collect();
        let latest: Vec<i64> = (1..).map(|i| length - i * gap).take(self.polls).collect();
        let most = self.gains(|_| (all.clone(), latest.clone()));
        most.iter().sum::<f64>() / most.len().max(1) as f64 > LEAST_GAIN - ROUNDING
    }
}

/// More than sums of such numbers are ever off.
const ROUNDING: f64 = 1e-9;

/// The gain that a schedule over this period shows within a history.
#[must_use]
pub(crate) fn gain(
    history: &History,
    phase: &NamePhase,
    options: &Options,
    period: Period,
    polls: usize,
) -> Option<Gain> {
    Comparison::new(history, options, period, polls)?.gain(phase)
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
            let comparison = Comparison::new(history, options, period, polls)?;
            let gain = comparison.may_show_gain().then(|| comparison.gain(phase)).flatten().filter(|g| g.is_shown())?;
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
    use crate::schedule::history::Sequence;
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

    /// Where it is told without learning that no gain can be shown, learning shows none.
    #[test]
    fn what_cannot_gain_does_not() {
        let (mut skipped, mut shown) = (0, 0);
        for i in 0..24u32 {
            // Crawls of every so many hours see updates by their intervals; some keep to a day of the week.
            let (crawl, mean) = ([24.0, 12.0, 6.0][(i % 3) as usize], [30.0, 100.0, 300.0, 700.0][(i % 4) as usize]);
            let (mut time, mut updates) = (0.0, Vec::new());
            for k in 0..60 {
                time += if i % 5 == 0 { 168.0 + noise(k) } else { -(1.0 - noise(k + 97 * i)).ln() * mean };
                let seen = (time / crawl).ceil() * crawl;
                updates.push(Update::within(at(seen - crawl), at(seen)));
            }
            let history = History::new("s", vec![Sequence::new(updates).0]);
            for objective in [Objective::default(), Objective::RECALL, Objective::FRESHNESS] {
                let options = Options { polls: 1 + i as usize % 4, objective, ..Options::default() };
                for period in Period::ALL {
                    let polls = polls_in(period, options.polls, &options);
                    let compared = polls.and_then(|polls| Comparison::new(&history, &options, period, polls));
                    let Some(compared) = compared else { continue };
                    let is_shown = compared.gain(&NamePhase::of("s")).is_some_and(Gain::is_shown);
                    shown += u32::from(is_shown);
                    if !compared.may_show_gain() {
                        skipped += 1;
                        assert!(!is_shown, "{i} {objective} {period}");
                    }
                }
            }
        }
        assert!(skipped > 0 && shown > 0, "{skipped} skipped, {shown} shown");
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
