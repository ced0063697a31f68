//! Dates of the synthetic calendar: days since 1970 and seconds within a day, UTC, written as the formats want them.

use crate::model::Timestamp;

pub(crate) const DAY: i64 = 86_400;

#[rustfmt::skip]
const MONTHS: [&str; 12] = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// A date of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: usize,
    pub(crate) day: i64,
}

impl Civil {
    /// Counts from 1 March of year 0, because leap days then end a year; 400 years have 146,097 days.
    pub(crate) fn of_day(day: i64) -> Self {
        let shifted = day + 719_468;
        let era = shifted.div_euclid(146_097);
        let in_era = shifted.rem_euclid(146_097);
        let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
        let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * in_year + 2) / 153;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        Self {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month: usize::try_from(month).expect("a month is 1 to 12"),
            day: in_year - (153 * march_month + 2) / 5 + 1,
        }
    }

    pub(crate) fn month_name(self) -> &'static str {
        MONTHS[self.month - 1]
    }
}

/// Weekday as a number, Monday is 0.
pub(crate) fn weekday(day: i64) -> u32 {
    u32::try_from((day + 3).rem_euclid(7)).expect("0 to 6")
}

pub(crate) fn weekday_name(day: i64) -> &'static str {
    WEEKDAYS[usize::try_from(day.rem_euclid(7)).expect("0 to 6")]
}

/// A moment from a day and seconds within it (which may exceed a day).
pub(crate) fn moment(day: i64, second: i64) -> Timestamp {
    Timestamp((day * DAY + second) * Timestamp::SECOND)
}

fn split(time: Timestamp) -> (Civil, i64, i64) {
    let seconds = time.micros().div_euclid(Timestamp::SECOND);
    let day = seconds.div_euclid(DAY);
    (Civil::of_day(day), day, seconds.rem_euclid(DAY))
}

pub(crate) fn iso_date(day: i64) -> String {
    let date = Civil::of_day(day);
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

/// `2024-03-01T02:10:07Z`.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    let (date, _, second) = split(time);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        date.year,
        date.month,
        date.day,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// `Fri, 01 Mar 2024 02:10:07 GMT`.
pub(crate) fn http_date(time: Timestamp) -> String {
    let (date, day, second) = split(time);
    format!(
        "{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
        &weekday_name(day)[..3],
        date.day,
        &date.month_name()[..3],
        date.year,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// `1 March 2024, 02:10:07 UTC`, for footers.
pub(crate) fn spoken(time: Timestamp) -> String {
    let (date, _, second) = split(time);
    format!(
        "{} {} {}, {:02}:{:02}:{:02} UTC",
        date.day,
        date.month_name(),
        date.year,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_agree_with_a_full_calendar() {
        for day in (-20_000..60_000).step_by(7) {
            let time = moment(day, 3_661);
            assert_eq!(rfc3339(time), time.to_string());
            assert_eq!(Timestamp::parse_http(&http_date(time)).filter(|_| day >= 0), Some(time).filter(|_| day >= 0));
        }
    }

    #[test]
    fn weekdays_start_on_monday() {
        // 1 January 1970 was a Thursday.
        assert_eq!((weekday(0), weekday_name(0)), (3, "Thursday"));
        assert_eq!((weekday(4), weekday_name(4)), (0, "Monday"));
        assert_eq!(iso_date(19_783), "2024-03-01");
    }
}
