//! When a source changes: its own rhythm, the same share of nights for all.
//!
//! Every rhythm has on average one day with updates out of `1/share` days, so that the share of changed pages per night
//! is what was asked for whatever the mix; they differ in *when*. Times are a pure function of (key, day). Poisson
//! counts use only additions, multiplications and divisions in binary64, which every machine rounds alike.

use crate::lab::synth::clock::{DAY, weekday};
use crate::lab::synth::draws::MILLION;
use crate::model::rng::{Rng, key};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rhythm {
    /// Never changes.
    Quiet,
    /// At one hour of the day, give or take some minutes.
    HourOfDay,
    /// On certain days of the week, in office hours.
    DayOfWeek,
    /// At any time, independent of the last.
    Poisson,
    /// Several updates within hours, on days in a row, then silence.
    Bursts,
}

/// A rhythm with its own hour, weekdays and so on, drawn from a key.
#[derive(Clone, Debug)]
pub(crate) struct Pulse {
    pub(crate) rhythm: Rhythm,
    key: u64,
    /// Share of days with an update, parts of a million.
    share: u32,
    hour: i64,
    weekdays: u32,
    first_weekday: u32,
}

/// Days after which a bursting source starts anew.
const BURST_CYCLE: i64 = 10;
/// Share of sources that never change, where the rate asked for leaves room for them.
const QUIET: u32 = 300_000;
/// More updates than this in a day are cut off.
const MOST_PER_DAY: usize = 12;

impl Pulse {
    /// The pulse of one source when `share` of all sources change per day.
    pub(crate) fn new(source_key: u64, share: u32) -> Self {
        let mut rng = Rng::new(source_key);
        let room = share <= 600_000;
        let quiet = room && rng.chance(QUIET);
        let share = if room {
            u32::try_from(u64::from(share) * u64::from(MILLION) / u64::from(MILLION - QUIET)).unwrap_or(MILLION)
        } else {
            share
        };
        let rhythm = match rng.below(4) {
            _ if quiet || share == 0 => Rhythm::Quiet,
            0 => Rhythm::HourOfDay,
            1 => Rhythm::DayOfWeek,
            2 => Rhythm::Poisson,
            _ => Rhythm::Bursts,
        };
        Self {
            rhythm,
            key: key(&[source_key, 1]),
            share,
            hour: i64::from(rng.below(24)),
            weekdays: (7 * share).div_ceil(MILLION).max(1),
            first_weekday: rng.below(7),
        }
    }

    /// Seconds within `day` at which the source changes, ascending.
    pub(crate) fn updates(&self, day: i64, out: &mut Vec<i64>) {
        out.clear();
        let mut rng = Rng::keyed(&[self.key, day.cast_unsigned()]);
        match self.rhythm {
            Rhythm::Quiet => {}
            Rhythm::HourOfDay => {
                if rng.chance(self.share) {
                    out.push(self.hour * 3600 + i64::from(rng.below(900)));
                }
            }
            Rhythm::DayOfWeek => {
                let place = (weekday(day) + 7 - self.first_weekday) % 7;
                if place < self.weekdays && rng.chance(7 * self.share / self.weekdays) {
                    out.push(8 * 3600 + i64::from(rng.below(9 * 3600)));
                }
            }
            Rhythm::Poisson => {
                if rng.chance(self.share) {
                    for _ in 0..poisson_at_least_one(self.share, &mut rng) {
                        out.push(i64::from(rng.below(86_400)));
                    }
                }
            }
            Rhythm::Bursts => {
                if self.bursts_on(day) {
                    let start = i64::from(rng.below(20 * 3600));
                    for _ in 0..rng.between(2, 6) {
                        out.push(start + i64::from(rng.below(3 * 3600)));
                    }
                }
            }
        }
        out.sort_unstable();
        out.dedup();
        out.truncate(MOST_PER_DAY);
        debug_assert!(out.iter().all(|s| (0..DAY).contains(s)));
    }

    fn bursts_on(&self, day: i64) -> bool {
        // Cycles of different sources start on different days.
        let shifted = day + i64::from(self.first_weekday) + self.hour;
        let cycle = shifted.div_euclid(BURST_CYCLE);
        let mut rng = Rng::keyed(&[self.key, cycle.cast_unsigned(), 2]);
        let wanted = u32::try_from(BURST_CYCLE).expect("ten") * self.share;
        let days = i64::from(wanted / MILLION) + i64::from(rng.chance(wanted % MILLION));
        let start = i64::from(rng.below(u32::try_from(BURST_CYCLE).expect("ten")));
        (shifted.rem_euclid(BURST_CYCLE) - start).rem_euclid(BURST_CYCLE) < days
    }
}

/// A Poisson count given that it is not zero, where a day without update has probability `1 - share`.
fn poisson_at_least_one(share: u32, rng: &mut Rng) -> u32 {
    let share = f64::from(share.min(990_000)) / f64::from(MILLION);
    let rate = minus_ln(1.0 - share);
    // Inversion: walk up the distribution until the drawn mass is used.
    let mut mass = rng.unit() * share;
    let mut probability = (1.0 - share) * rate;
    let mut count = 1;
    while mass >= probability && count < 12 {
        mass -= probability;
        count += 1;
        probability = probability * rate / f64::from(count);
    }
    count
}

/// `-ln(x)` for `0 < x <= 1` from the series of artanh, basic operations only: library logarithms differ between
/// machines in the last bit.
fn minus_ln(x: f64) -> f64 {
    let z = (1.0 - x) / (1.0 + x);
    let (mut power, mut sum) = (z, 0.0);
    for term in 0..400 {
        sum += power / f64::from(2 * term + 1);
        power *= z * z;
    }
    2.0 * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of (source, day) with an update, over many sources.
    fn measured(share: u32, rhythm: Option<Rhythm>) -> f64 {
        let (mut days, mut active, mut times) = (0u32, 0u32, Vec::new());
        for source in 0..600 {
            let pulse = Pulse::new(key(&[9, source]), share);
            if rhythm.is_some_and(|r| r != pulse.rhythm) {
                continue;
            }
            for day in 19_783..19_783 + 140 {
                pulse.updates(day, &mut times);
                days += 1;
                active += u32::from(!times.is_empty());
            }
        }
        f64::from(active) / f64::from(days)
    }

    #[test]
    fn the_share_of_active_days_is_the_share_asked_for() {
        for share in [50_000, 400_000, 800_000, MILLION] {
            let asked = f64::from(share) / 1e6;
            assert!((measured(share, None) - asked).abs() < 0.02, "{share}: {}", measured(share, None));
            let per_source = if share <= 600_000 { asked / 0.7 } else { asked };
            for rhythm in [Rhythm::HourOfDay, Rhythm::DayOfWeek, Rhythm::Poisson, Rhythm::Bursts] {
                let found = measured(share, Some(rhythm));
                assert!((found - per_source).abs() < 0.04, "{rhythm:?} {share}: {found}");
            }
        }
        assert!(measured(0, None) < 1e-9);
    }

    #[test]
    fn rhythms_keep_their_hours_and_days() {
        let mut times = Vec::new();
        for source in 0..200 {
            let pulse = Pulse::new(key(&[3, source]), 100_000);
            let mut weekdays = [false; 7];
            for day in 19_783..20_483 {
                pulse.updates(day, &mut times);
                for &second in &times {
                    weekdays[weekday(day) as usize] = true;
                    match pulse.rhythm {
                        Rhythm::HourOfDay => assert_eq!(second / 3600, pulse.hour),
                        Rhythm::DayOfWeek => assert!((8..17).contains(&(second / 3600))),
                        _ => {}
                    }
                }
            }
            if pulse.rhythm == Rhythm::DayOfWeek {
                assert_eq!(weekdays.iter().filter(|&&on| on).count(), 1);
            }
        }
    }

    #[test]
    fn the_logarithm_is_right() {
        for x in [0.01, 0.3, 0.5, 0.95, 0.999] {
            assert!((minus_ln(x) + f64::ln(x)).abs() < 1e-6, "{x}");
        }
    }
}
