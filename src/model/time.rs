//! Moments, as the crawl states them; never this machine's clock.

use std::fmt;

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

    /// A wall clock reading in `zone`; of a reading that happens twice or never, the earlier.
    #[must_use]
    pub fn from_civil(civil: jiff::civil::DateTime, zone: &TimeZone) -> Option<Self> {
        zone.to_ambiguous_timestamp(civil).earlier().ok().map(Self::from)
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
