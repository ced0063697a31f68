//! When within a period does a page change? Phases by expectation-maximisation on intervals.
//!
//! Model: a rate that depends on the bin of the period only. An update known by its interval is spread over the
//! interval in proportion to the rates (expectation), then each bin's rate is its updates over the time it was watched
//! (maximisation). It starts flat, and where the intervals cannot tell phases apart it stays flat. Watched time without
//! change counts by bin too, so a bin is not thought quiet because it was never looked at.
//!
//! An interval counts as one update, though it may hide more: counting the expected number of a Poisson process lets
//! the rate of a bin in which every interval shows a change, as on a page updated daily at a fixed hour, grow without
//! bound. How often a page changes is estimated elsewhere ([`super::rate`]); here only the shape matters.
//!
//! Cost: (intervals x bins they touch) a round, at most 200 rounds.

use serde::{Deserialize, Serialize};

use super::calendar::{Calendar, PeriodPlace, SECOND, period_start};
use super::updates::Update;
use super::whole::{index, small, whole};
use crate::model::{Period, Timestamp};

const ROUNDS: usize = 200;

/// Bins that divide each period evenly, finest first.
#[must_use]
pub(crate) fn bin_counts(period: Period) -> &'static [usize] {
    match period {
        Period::Hour => &[60, 12, 6, 4, 3, 2, 1],
        Period::Day => &[288, 96, 48, 24, 12, 8, 6, 4, 3, 2, 1],
        Period::Week => &[672, 336, 168, 84, 56, 28, 14, 7, 1],
        Period::Month => &[744, 124, 62, 31, 1],
    }
}

/// The finest division of the period whose bins are no shorter than `resolution_s`.
#[must_use]
pub(crate) fn bins_for(period: Period, resolution_s: f64) -> usize {
    let fits = |bins: &&usize| period.seconds() as f64 / **bins as f64 >= resolution_s;
    bin_counts(period).iter().find(fits).copied().unwrap_or(1)
}

/// Rates by phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseModel {
    pub period: Period,
    /// Expected updates in each bin.
    pub updates: Vec<f64>,
    /// Seconds watched in each bin.
    pub exposure_s: Vec<f64>,
    /// Seconds of these in which it is known that nothing changed.
    pub unchanged_s: Vec<f64>,
    /// Updates a second in each bin.
    pub rate: Vec<f64>,
}

/// The bins that a stretch of time touches, with its seconds in each.
type Overlap = Vec<(u32, f64)>;

impl PhaseModel {
    /// Of a source without updates: no bins.
    #[must_use]
    pub(crate) fn unknown(period: Period) -> Self {
        Self { period, updates: Vec::new(), exposure_s: Vec::new(), unchanged_s: Vec::new(), rate: Vec::new() }
    }

    /// Fits `bins` rates to updates and to stretches known to be unchanged.
    #[must_use]
    pub(crate) fn fit(
        calendar: &Calendar,
        period: Period,
        bins: usize,
        updates: &[Update],
        unchanged: &[(Timestamp, Timestamp)],
    ) -> Self {
        let mut unchanged_s = vec![0.0; bins];
        let mut seconds = vec![0.0; bins];
        for (from, to) in unchanged {
            seconds.fill(0.0);
            add_overlap(calendar, period, *from, *to, &mut seconds);
            for (sum, seconds) in unchanged_s.iter_mut().zip(&seconds) {
                *sum += seconds;
            }
        }
        let mut exposure_s = unchanged_s.clone();
        let mut known = vec![0.0; bins];
        let mut intervals: Vec<Overlap> = Vec::new();
        for update in updates {
            let touched = overlap(calendar, period, bins, update.after, update.before);
            for (bin, seconds) in &touched {
                exposure_s[*bin as usize] += seconds;
            }
            match update.exact() {
                Some(time) => known[bin_of(calendar.place(period, time), period, bins)] += 1.0,
                None => intervals.push(touched),
            }
        }
        let mut model = Self { period, updates: known.clone(), exposure_s, unchanged_s, rate: vec![0.0; bins] };
        model.maximise(&known, &intervals);
        model
    }

    fn maximise(&mut self, known: &[f64], intervals: &[Overlap]) {
        let bins = known.len();
        let (seen, watched) = (known.iter().sum::<f64>() + intervals.len() as f64, self.exposure_s.iter().sum::<f64>());
        if seen == 0.0 || watched <= 0.0 {
            return;
        }
        // Half an update at the mean rate, over all bins, keeps a bin that was hardly watched from running away.
        let mean = seen / watched;
        let prior = 0.5 / bins as f64;
        self.rate = vec![mean; bins];
        for _ in 0..ROUNDS {
            let mut counts = known.to_vec();
            for touched in intervals {
                let expected: f64 = touched.iter().map(|(bin, s)| self.rate[*bin as usize] * s).sum();
                if expected <= 0.0 {
                    continue;
                }
                for (bin, s) in touched {
                    counts[*bin as usize] += self.rate[*bin as usize] * s / expected;
                }
            }
            let mut moved = 0.0f64;
            for ((rate, count), exposure) in self.rate.iter_mut().zip(&counts).zip(&self.exposure_s) {
                let before = *rate;
                *rate = (count + prior) / (exposure + prior / mean);
                moved = moved.max((*rate - before).abs());
            }
            self.updates = counts;
            if moved < mean * 1e-5 {
                break;
            }
        }
    }

    /// Share of the updates in each bin.
    #[must_use]
    pub(crate) fn histogram(&self) -> Vec<f64> {
        let total: f64 = self.updates.iter().sum();
        self.updates.iter().map(|n| if total > 0.0 { n / total } else { 0.0 }).collect()
    }

    /// The model over `(from, to]`: how many updates are expected there, and when a share of them is over.
    #[must_use]
    pub(crate) fn between<'a>(&'a self, calendar: &Calendar, from: Timestamp, to: Timestamp) -> Stretch<'a> {
        let mut pieces = Vec::new();
        let mut total = 0.0;
        walk(calendar, self.period, self.rate.len(), from, to, |bin, seconds| {
            total += self.rate[bin as usize].max(f64::MIN_POSITIVE) * seconds;
            pieces.push((bin, seconds, total));
        });
        Stretch { model: self, from, pieces, expected: total }
    }
}

/// The model over one interval of time.
pub(crate) struct Stretch<'a> {
    model: &'a PhaseModel,
    from: Timestamp,
    pieces: Vec<(u32, f64, f64)>,
    pub expected: f64,
}

impl Stretch<'_> {
    /// The moment below which `share` of the expected updates lie.
    #[must_use]
    pub(crate) fn quantile(&self, share: f64) -> Timestamp {
        let target = share.clamp(0.0, 1.0) * self.expected;
        let mut elapsed = 0.0;
        for (bin, seconds, upto) in &self.pieces {
            if *upto >= target {
                let rate = self.model.rate[*bin as usize].max(f64::MIN_POSITIVE);
                let into = seconds - (upto - target) / rate;
                elapsed += into.clamp(0.0, *seconds);
                break;
            }
            elapsed += seconds;
        }
        Timestamp(self.from.0 + whole(elapsed * SECOND as f64))
    }
}

fn bin_of(place: PeriodPlace, period: Period, bins: usize) -> usize {
    let width = period.seconds() * SECOND / bins as i64;
    index(place.phase / width).min(bins - 1)
}

/// Calls `piece(bin, seconds)` along the wall clock from `from` to `to`. Bins divide the period evenly, and a day is a
/// whole number of bins or a bin of days. The calendar is asked where it begins and at the end of a month: all else
/// follows.
fn walk(
    calendar: &Calendar,
    period: Period,
    bins: usize,
    from: Timestamp,
    to: Timestamp,
    mut piece: impl FnMut(u32, f64),
) {
    const DAY: i64 = 86_400 * SECOND;
    let width = period.seconds() * SECOND / bins as i64;
    // A short month ends within a bin of several days.
    let most = if period == Period::Month { width.min(DAY) } else { width };
    let length = |index: i64| match period {
        Period::Month => period_start(period, index).map_or(31, |(_, days)| days) * DAY,
        _ => period.seconds() * SECOND,
    };
    let end = calendar.local(to);
    let mut at = calendar.local(from);
    // The wall clock is read as if it were UTC, so that places on it need no zone any more.
    let place = Calendar::utc().place(period, Timestamp(at));
    let mut bin = small(bin_of(place, period, bins));
    let mut index = place.index;
    let mut left_of_period = length(index) - place.phase;
    let mut left_of_bin = width - place.phase % width;
    let mut step = most - place.phase % most;
    while at < end {
        step = step.min(end - at);
        piece(bin, step as f64 / SECOND as f64);
        at += step;
        left_of_period -= step;
        left_of_bin -= step;
        step = most;
        if left_of_period <= 0 {
            index += 1;
            (bin, left_of_bin, left_of_period) = (0, width, length(index));
        } else if left_of_bin <= 0 {
            bin += 1;
            left_of_bin = width;
        }
    }
}

fn overlap(calendar: &Calendar, period: Period, bins: usize, from: Timestamp, to: Timestamp) -> Overlap {
    let mut seconds = vec![0.0; bins];
    add_overlap(calendar, period, from, to, &mut seconds);
    seconds.into_iter().enumerate().filter(|(_, s)| *s > 0.0).map(|(bin, s)| (small(bin), s)).collect()
}

/// Adds the seconds of a stretch of time in each bin.
fn add_overlap(calendar: &Calendar, period: Period, from: Timestamp, to: Timestamp, seconds: &mut [f64]) {
    let bins = seconds.len();
    let length = period.seconds() * SECOND;
    let mut to = to;
    if period != Period::Month && to.0 - from.0 > 2 * length {
        // Whole periods touch every bin alike.
        let whole = (to.0 - from.0) / length - 1;
        let each = whole as f64 * length as f64 / SECOND as f64 / bins as f64;
        for s in &mut *seconds {
            *s += each;
        }
        to = Timestamp(to.0 - whole * length);
    }
    walk(calendar, period, bins, from, to, |bin, s| {
        seconds[bin as usize] += s;
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600 * SECOND;

    /// As [`walk`], asking the calendar at every step.
    fn slow_walk(calendar: &Calendar, period: Period, bins: usize, from: Timestamp, to: Timestamp) -> Vec<(u32, f64)> {
        let width = period.seconds() * SECOND / bins as i64;
        let (mut at, end) = (calendar.local(from), calendar.local(to));
        let mut pieces = Vec::new();
        while at < end {
            let place = Calendar::utc().place(period, Timestamp(at));
            let mut stop = at + (width - place.phase % width);
            if period == Period::Month {
                stop = stop.min(at + (24 * HOUR - place.phase % (24 * HOUR)));
            }
            let stop = stop.min(end);
            pieces.push((small(bin_of(place, period, bins)), (stop - at) as f64 / SECOND as f64));
            at = stop;
        }
        pieces
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn a_walk_that_asks_once_is_one_that_asks_at_every_step(
            from in -3_000_000_000_000_000i64..3_000_000_000_000_000,
            length in prop_oneof![0i64..3 * HOUR, 0i64..3_000 * HOUR],
            period in prop::sample::select(Period::ALL.to_vec()),
            bins in any::<prop::sample::Index>(),
            zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/New_York"]),
        ) {
            let calendar = Calendar::new(jiff::tz::TimeZone::get(zone).unwrap());
            let bins = *bins.get(bin_counts(period));
            let (from, to) = (Timestamp(from), Timestamp(from + length));
            let mut pieces = Vec::new();
            walk(&calendar, period, bins, from, to, |bin, seconds| pieces.push((bin, seconds)));
            prop_assert_eq!(pieces, slow_walk(&calendar, period, bins, from, to));
        }
    }

    fn at(hours: f64) -> Timestamp {
        Timestamp(whole(hours * HOUR as f64))
    }

    #[test]
    fn overlaps_add_up() {
        let calendar = Calendar::utc();
        for (from, to) in [(0.0, 1.0), (5.5, 77.25), (1.0, 10_000.0), (3.0, 3.0)] {
            for period in Period::ALL {
                let bins = bins_for(period, 3_600.0);
                let sum: f64 = overlap(&calendar, period, bins, at(from), at(to)).iter().map(|(_, s)| s).sum();
                assert!((sum - (to - from) * 3_600.0).abs() < 1e-3, "{period} {from} {to}: {sum}");
            }
        }
    }

    #[test]
    fn intervals_find_the_hour_they_share() {
        // The page changes daily at 14:30; captures at varying times bracket it more or less tightly.
        let mut updates = Vec::new();
        let mut unchanged = Vec::new();
        let mut last = 0.0;
        for day in 0..60 {
            let noise = f64::from(day * 7 % 11);
            let (after, before) = (f64::from(day) * 24.0 + 14.4 - noise, f64::from(day) * 24.0 + 14.6 + noise * 0.8);
            if last < after {
                unchanged.push((at(last), at(after)));
            }
            updates.push(Update::within(at(after), at(before)));
            last = before;
        }
        let model = PhaseModel::fit(&Calendar::utc(), Period::Day, 24, &updates, &unchanged);
        let histogram = model.histogram();
        assert!(histogram[14] > 0.9, "{histogram:?}");
        assert!((histogram.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_daily_crawl_tells_the_weekday_but_not_the_hour() {
        let mut updates = Vec::new();
        let mut unchanged = Vec::new();
        for day in 0..140 {
            let (from, to) = (at(f64::from(day) * 24.0 + 3.0), at(f64::from(day) * 24.0 + 27.0));
            // 1970-01-01 was a Thursday; changes on Tuesdays.
            if day % 7 == 5 {
                updates.push(Update::within(from, to));
            } else {
                unchanged.push((from, to));
            }
        }
        let day = PhaseModel::fit(&Calendar::utc(), Period::Day, 24, &updates, &unchanged).histogram();
        assert!(day.iter().all(|share| (share - 1.0 / 24.0).abs() < 0.002), "{day:?}");
        let week = PhaseModel::fit(&Calendar::utc(), Period::Week, 7, &updates, &unchanged).histogram();
        assert!(week[1] > 0.8, "{week:?}");
        assert_eq!(bins_for(Period::Week, 86_400.0), 7);
        assert_eq!(bins_for(Period::Day, 86_400.0), 1);
    }

    #[test]
    fn exact_times_are_counted_where_they_are() {
        let updates: Vec<Update> = (0..50).map(|day| Update::at(at(f64::from(day) * 24.0 + 9.5))).collect();
        let model = PhaseModel::fit(&Calendar::utc(), Period::Day, 24, &updates, &[(at(0.0), at(1_200.0))]);
        assert_eq!(model.histogram()[9], 1.0);
        assert!((model.exposure_s[9] - 50.0 * 3_600.0).abs() < 1.0);
    }

    #[test]
    fn quantiles_follow_the_rates() {
        let updates: Vec<Update> = (0..50).map(|day| Update::at(at(f64::from(day) * 24.0 + 9.5))).collect();
        let calendar = Calendar::utc();
        let model = PhaseModel::fit(&calendar, Period::Day, 24, &updates, &[(at(0.0), at(1_200.0))]);
        let stretch = model.between(&calendar, at(0.0), at(24.0));
        let middle = stretch.quantile(0.5);
        assert!(at(9.0) <= middle && middle <= at(10.0), "{middle}");
        assert!(stretch.quantile(0.0) <= middle && middle <= stretch.quantile(1.0));
        assert!(stretch.quantile(1.0) <= at(24.0));
    }
}
