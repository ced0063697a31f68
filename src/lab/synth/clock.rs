//! Dates of the synthetic calendar: days since 1970 and seconds within a day, UTC, written as the formats want them.

use jiff::civil::Date;
use jiff::fmt::strtime;

use crate::model::Timestamp;

pub(crate) const DAY: i64 = 86_400;

/// A moment from a day and seconds within it (which may exceed a day).
pub(crate) fn moment(day: i64, second: i64) -> Timestamp {
    Timestamp((day * DAY + second) * Timestamp::SECOND)
}

fn date(day: i64) -> Date {
    let time = jiff::Timestamp::from_second(day * DAY).expect("days of a site lie in this age");
    jiff::tz::Offset::UTC.to_datetime(time).date()
}

/// Weekday as a number, Monday is 0.
pub(crate) fn weekday(day: i64) -> u32 {
    u32::try_from(date(day).weekday().to_monday_zero_offset()).expect("0 to 6")
}

pub(crate) fn iso_date(day: i64) -> String {
    date(day).to_string()
}

fn written(format: &str, time: Timestamp) -> String {
    let time = jiff::Timestamp::from_microsecond(time.micros()).expect("times of a site lie in this age");
    strtime::format(format, time).expect("a sound format")
}

/// `Fri, 01 Mar 2024 02:10:07 GMT`.
pub(crate) fn http_date(time: Timestamp) -> String {
    written("%a, %d %b %Y %H:%M:%S GMT", time)
}

/// `1 March 2024, 02:10:07 UTC`, for footers.
pub(crate) fn spoken(time: Timestamp) -> String {
    written("%-d %B %Y, %H:%M:%S UTC", time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_the_formats_want_them() {
        let time = moment(19_783, 2 * 3600 + 10 * 60 + 7);
        assert_eq!(time.to_string(), "2024-03-01T02:10:07Z");
        assert_eq!(http_date(time), "Fri, 01 Mar 2024 02:10:07 GMT");
        assert_eq!(Timestamp::parse_http(&http_date(time)), Some(time));
        assert_eq!(spoken(time), "1 March 2024, 02:10:07 UTC");
    }

    #[test]
    fn weekdays_start_on_monday() {
        // 1 January 1970 was a Thursday.
        assert_eq!((weekday(0), weekday(4)), (3, 0));
        assert_eq!((iso_date(0), iso_date(19_783)), ("1970-01-01".to_owned(), "2024-03-01".to_owned()));
    }
}
