//! Moments, as the crawl states them, and stretches of time, as people write them; never this machine's clock.

use std::fmt;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

/// Microseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(pub i64);

impl Timestamp {
    pub const SECOND: i64 = 1_000_000;

    /// RFC 3339, as WARC and manifests write it (`2024-03-01T12:00:00Z`, with or without fraction).
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        text.trim().parse::<jiff::Timestamp>().ok().map(Self::from)
    }

    /// The three date forms of HTTP.
    #[must_use]
    pub fn parse_http(text: &str) -> Option<Self> {
        let time = httpdate::parse_http_date(text.trim()).ok()?;
        let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_micros()).ok().map(Self)
    }

    /// A date of a feed: RFC 3339, or as mail writes it (`Mon, 06 Sep 2010 00:01:00 +0200`).
    #[must_use]
    pub fn parse_feed(text: &str) -> Option<Self> {
        let mail = |text: &str| Some(Self::from(jiff::fmt::rfc2822::parse(text).ok()?.timestamp()));
        Self::parse_rfc3339(text).or_else(|| mail(text.trim()))
    }

    /// RFC 3339, or a wall clock reading in `zone`; a date is its first moment there.
    #[must_use]
    pub fn parse_in(text: &str, zone: &TimeZone) -> Option<Self> {
        let text = text.trim();
        if let Some(time) = Self::parse_rfc3339(text) {
            return Some(time);
        }
        let civil = match text.parse::<jiff::civil::Date>() {
            Ok(date) if text.len() == "2001-02-15".len() => date.at(0, 0, 0, 0),
            _ => text.parse::<jiff::civil::DateTime>().ok()?,
        };
        Self::from_civil(civil, zone)
    }

    /// A wall clock reading in `zone`; of a reading that happens twice or never, the earlier.
    #[must_use]
    pub fn from_civil(civil: jiff::civil::DateTime, zone: &TimeZone) -> Option<Self> {
        zone.to_ambiguous_timestamp(civil).earlier().ok().map(Self::from)
    }

    /// Since 1970.
    #[must_use]
    pub fn seconds(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "microseconds of our time fit")]
        let micros = self.0 as f64;
        micros / 1e6
    }

    #[must_use]
    pub fn micros(self) -> i64 {
        self.0
    }
}

impl From<jiff::Timestamp> for Timestamp {
    fn from(time: jiff::Timestamp) -> Self {
        Self(time.as_microsecond())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => write!(f, "{time}"),
            Err(_) => write!(f, "{} us", self.0),
        }
    }
}

/// A duration as people write it: `90s`, `5m`, `1h`, `1d`, and also `1h 30m` or `PT90S`. A bare number is refused, since
/// nobody agrees on its unit, and so is what lies in the past or beyond a lifetime.
#[must_use]
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    if text == "0" {
        return Some(Duration::ZERO);
    }
    one_unit(text).or_else(|| {
        let several = Duration::try_from(text.parse::<jiff::SignedDuration>().ok()?).ok()?;
        (several <= Duration::from_secs(u32::MAX.into())).then_some(several)
    })
}

/// A whole number and one unit. Days are always 24 hours here, which is why jiff leaves them out.
fn one_unit(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    let number: u32 = number.trim().parse().ok()?;
    Some(Duration::from_secs(u64::from(number) * seconds))
}

/// What to do about a duration that is none.
pub(crate) const DURATION_FIX: &str = "write 90s, 5m, 1h or 1d";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_short_and_in_long() {
        let seconds = |text: &str| parse_duration(text).map(|duration| duration.as_secs_f64());
        for (text, expected) in [
            ("90s", 90.0),
            (" 5 m", 300.0),
            ("1h", 3_600.0),
            ("2d", 172_800.0),
            ("0", 0.0),
            ("1h 30m", 5_400.0),
            ("1.5h", 5_400.0),
            ("250ms", 0.25),
            ("2 minutes", 120.0),
            ("PT90S", 90.0),
            ("50000d", 4_320_000_000.0),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["", "5", "m", "-5m", "5m ago", "5 weeks", "5\u{b5}", "99999999999s", "soon"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
