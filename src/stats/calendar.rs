//! The wall clock of a time zone: where a moment falls within a period, and when a schedule polls.
//!
//! A schedule repeats by the wall clock of a time zone: 06:30 every day, summer and winter. So phases are read off
//! the local clock, and poll times are turned back into moments with the zone's rules: at a reading that does not exist
//! (spring) there is no poll, and one that comes twice (autumn) means the first. That is what timers of systemd do;
//! Debian's cron runs what it skipped in spring when the clock has changed, which is one poll more than is counted here.
//! An hourly schedule runs in every hour that passes, also in the repeated one. A month has 31 days here; days that a
//! month lacks do not happen, as with cron.

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::model::{Period, Timestamp};

pub(crate) const SECOND: i64 = Timestamp::SECOND;
const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 86_400;

/// A moment as a period sees it: how many periods since 1970, and how far into this one by the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeriodPlace {
    pub index: i64,
    /// Microseconds from the period's start.
    pub phase: i64,
}

impl PeriodPlace {
    /// Position on a line where every period has its full length.
    #[must_use]
    pub fn line(self, period: Period) -> i64 {
        self.index * period.seconds() * SECOND + self.phase
    }
}

/// The wall clock of one time zone.
#[derive(Clone, Debug)]
pub struct Calendar {
    zone: TimeZone,
    name: String,
    utc: bool,
}

impl Calendar {
    #[must_use]
    pub fn utc() -> Self {
        Self::new(TimeZone::UTC)
    }

    #[must_use]
    pub fn new(zone: TimeZone) -> Self {
        let name = zone.iana_name().unwrap_or("UTC").to_owned();
        let utc = zone == TimeZone::UTC || matches!(name.as_str(), "UTC" | "Etc/UTC");
        Self { zone, name, utc }
    }

    #[must_use]
    pub(crate) fn is_utc(&self) -> bool {
        self.utc
    }

    /// IANA name of the zone; of a zone without one (a bare offset), UTC, so schedules want a named zone.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    fn offset_s(&self, time: i64) -> i64 {
        if self.utc {
            return 0;
        }
        jiff::Timestamp::from_microsecond(time).map_or(0, |t| i64::from(self.zone.to_offset(t).seconds()))
    }

    /// The wall clock reading of a moment, in microseconds on a line where days have 24 hours.
    #[must_use]
    pub fn local(&self, time: Timestamp) -> i64 {
        time.micros() + self.offset_s(time.micros()) * SECOND
    }

    /// The moment of a wall clock reading, the first of two; `None` if the clock never shows it.
    fn moment(&self, local: i64) -> Option<i64> {
        if self.utc {
            return Some(local);
        }
        let civil = TimeZone::UTC.to_datetime(jiff::Timestamp::from_microsecond(local).ok()?);
        let moment = self.zone.to_ambiguous_timestamp(civil);
        if matches!(moment.offset(), AmbiguousOffset::Gap { .. }) {
            return None;
        }
        Some(moment.earlier().ok()?.as_microsecond())
    }

    #[must_use]
    pub fn place(&self, period: Period, time: Timestamp) -> PeriodPlace {
        let local = self.local(time);
        match period {
            Period::Month => month_place(local),
            _ => {
                // 1970 began on a Thursday: the week of that Monday is number 0.
                let local = if period == Period::Week { local + 3 * DAY_S * SECOND } else { local };
                let length = period.seconds() * SECOND;
                PeriodPlace { index: local.div_euclid(length), phase: local.rem_euclid(length) }
            }
        }
    }

    /// The moments in `[from, to]` at which a schedule polls, ascending; `times` are seconds from the period's start.
    #[must_use]
    pub fn polls(&self, period: Period, times: &[i64], from: Timestamp, to: Timestamp) -> Vec<i64> {
        let mut polls = Vec::new();
        if times.is_empty() || to < from {
            return polls;
        }
        match period {
            Period::Hour => {
                // By hours that pass, not by hours of the clock: only the zone's minutes shift the phase.
                let (first, last) = ((from.0 / SECOND).div_euclid(HOUR_S) - 1, (to.0 / SECOND).div_euclid(HOUR_S) + 1);
                for hour in first..=last {
                    let shift = self.offset_s(hour * HOUR_S * SECOND).rem_euclid(HOUR_S);
                    polls.extend(times.iter().map(|t| (hour * HOUR_S + (t - shift).rem_euclid(HOUR_S)) * SECOND));
                }
            }
            _ => {
                let (first, last) = (self.place(period, from).index - 1, self.place(period, to).index + 1);
                for index in first..=last {
                    let Some((start, days)) = period_start(period, index) else {
                        continue;
                    };
                    let there = times.iter().filter(|t| **t < days * DAY_S);
                    polls.extend(there.filter_map(|t| self.moment(start + t * SECOND)));
                }
            }
        }
        polls.retain(|t| (from.0..=to.0).contains(t));
        polls.sort_unstable();
        polls.dedup();
        polls
    }
}

/// Start of a period on the wall clock line, and its days.
pub(super) fn period_start(period: Period, index: i64) -> Option<(i64, i64)> {
    match period {
        Period::Month => {
            let year = i16::try_from(index.div_euclid(12) + 1970).ok()?;
            let month = i8::try_from(index.rem_euclid(12) + 1).ok()?;
            let date = Date::new(year, month, 1).ok()?;
            Some((civil_micros(date.to_datetime(jiff::civil::Time::midnight()))?, i64::from(date.days_in_month())))
        }
        Period::Week => Some(((index * 7 - 3) * DAY_S * SECOND, 7)),
        _ => Some((index * DAY_S * SECOND, 1)),
    }
}

fn civil_micros(civil: DateTime) -> Option<i64> {
    Some(TimeZone::UTC.to_timestamp(civil).ok()?.as_microsecond())
}

fn month_place(local: i64) -> PeriodPlace {
    let civil = jiff::Timestamp::from_microsecond(local).map_or(DateTime::ZERO, |t| TimeZone::UTC.to_datetime(t));
    let index = (i64::from(civil.year()) - 1970) * 12 + i64::from(civil.month()) - 1;
    let phase = (i64::from(civil.day()) - 1) * DAY_S * SECOND + local.rem_euclid(DAY_S * SECOND);
    PeriodPlace { index, phase }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    fn berlin() -> Calendar {
        Calendar::new(TimeZone::get("Europe/Berlin").unwrap())
    }

    fn show(polls: &[i64]) -> Vec<String> {
        polls.iter().map(|t| Timestamp(*t).to_string()).collect()
    }

    #[test]
    fn phases_follow_the_calendar() {
        let utc = Calendar::utc();
        let time = at("2024-03-06T05:10:00Z");
        assert_eq!(utc.place(Period::Hour, time).phase, 600 * SECOND);
        assert_eq!(utc.place(Period::Day, time).phase, (5 * 3600 + 600) * SECOND);
        assert_eq!(utc.place(Period::Week, time).phase, (2 * 86_400 + 5 * 3600 + 600) * SECOND);
        assert_eq!(utc.place(Period::Month, time).phase, (5 * 86_400 + 5 * 3600 + 600) * SECOND);
        assert_eq!(berlin().place(Period::Day, time).phase, (6 * 3600 + 600) * SECOND);
        // Before 1970 as well.
        assert_eq!(utc.place(Period::Week, at("1969-12-29T00:00:00Z")), PeriodPlace { index: 0, phase: 0 });
        assert_eq!(utc.place(Period::Month, at("1969-12-01T00:00:00Z")), PeriodPlace { index: -1, phase: 0 });
    }

    #[test]
    fn a_reading_that_the_clock_skips_is_no_poll() {
        let times = [2 * 3600 + 1800];
        let polls = |from: &str, to: &str| show(&berlin().polls(Period::Day, &times, at(from), at(to)));
        // 02:30 does not exist on 31 March 2024, and comes twice on 27 October.
        let spring = polls("2024-03-30T00:00:00Z", "2024-04-02T00:00:00Z");
        assert_eq!(spring, ["2024-03-30T01:30:00Z", "2024-04-01T00:30:00Z"]);
        let autumn = polls("2024-10-26T00:00:00Z", "2024-10-29T00:00:00Z");
        assert_eq!(autumn, ["2024-10-26T00:30:00Z", "2024-10-27T00:30:00Z", "2024-10-28T01:30:00Z"]);
        // Hourly polls run in every hour that passes.
        let hourly = berlin().polls(Period::Hour, &[300], at("2024-10-27T00:00:00Z"), at("2024-10-27T04:00:00Z"));
        assert_eq!(hourly.len(), 4);
        let kathmandu = Calendar::new(TimeZone::get("Asia/Kathmandu").unwrap());
        let polls = kathmandu.polls(Period::Hour, &[0], at("2024-01-01T00:00:00Z"), at("2024-01-01T01:00:00Z"));
        assert_eq!(show(&polls), ["2024-01-01T00:15:00Z"]);
    }

    #[test]
    fn days_a_month_lacks_do_not_happen() {
        let polls = Calendar::utc().polls(
            Period::Month,
            &[30 * 86_400],
            at("2024-01-01T00:00:00Z"),
            at("2024-06-01T00:00:00Z"),
        );
        assert_eq!(show(&polls), ["2024-01-31T00:00:00Z", "2024-03-31T00:00:00Z", "2024-05-31T00:00:00Z"]);
    }

    #[test]
    fn polls_fall_on_their_phase() {
        let calendar = berlin();
        for period in Period::ALL {
            let times = [0, 1_200, 3_000];
            for poll in calendar.polls(period, &times, at("2024-05-01T00:00:00Z"), at("2024-07-01T00:00:00Z")) {
                let phase = calendar.place(period, Timestamp(poll)).phase / SECOND;
                assert!(times.contains(&phase), "{period}: {phase}");
            }
        }
    }
}
