//! Snapshot ids and the times they state.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::model::Timestamp;

/// A folder name made of `[A-Za-z0-9._-]`, safe as a path component and as a partition value.
/// Every row names several, so that copies share their text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(Arc<str>);

thread_local! {
    /// The ids that were made last: the cells of rows that are read one after the other mostly name the same few.
    static LAST: RefCell<LastIds> = const { RefCell::new(LastIds { ids: [const { None }; 4], next: 0 }) };
}

/// A few ids; a new one takes the place of the oldest.
struct LastIds {
    ids: [Option<SnapshotId>; 4],
    next: usize,
}

impl LastIds {
    fn find(&self, name: &str) -> Option<SnapshotId> {
        self.ids.iter().flatten().find(|id| id.as_str() == name).cloned()
    }

    fn add(&mut self, id: SnapshotId) {
        self.ids[self.next] = Some(id);
        self.next = (self.next + 1) % self.ids.len();
    }
}

#[derive(Debug, thiserror::Error)]
#[error("'{0}' cannot be a snapshot id: letters, digits, '.', '_' and '-' only, not starting with '.'")]
pub struct BadSnapshotId(String);

/// A snapshot to be processed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Snapshot {
    pub id: SnapshotId,
    /// From the id, else its newest capture.
    pub time: Timestamp,
}

impl SnapshotId {
    pub fn new(name: impl AsRef<str>) -> Result<Self, BadSnapshotId> {
        let name = name.as_ref();
        if let Some(same) = LAST.with_borrow(|last| last.find(name)) {
            return Ok(same);
        }
        let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(allowed) {
            return Err(BadSnapshotId(name.to_owned()));
        }
        let id = Self(name.into());
        LAST.with_borrow_mut(|last| last.add(id.clone()));
        Ok(id)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The time that the id states: `YYYY-MM-DD`, `YYYY-MM-DDTHH-MM[-SS]` or `YYYYMMDD[hhmmss]` in `zone`, or
    /// `YYYYMMDDThhmmssZ` in UTC.
    #[must_use]
    pub fn stated_time(&self, zone: &TimeZone) -> Option<Timestamp> {
        if let Some((date, time)) = self.0.strip_suffix('Z').and_then(|id| id.split_once('T'))
            && (date.len(), time.len()) == (8, 6)
        {
            return Timestamp::from_civil(parse_civil(&[date, time].concat())?, &TimeZone::UTC);
        }
        Timestamp::from_civil(parse_civil(&self.0)?, zone)
    }

    /// Whether the id has the form of a date and states none, such as `2024-13-40`.
    #[must_use]
    pub fn is_mistaken_date(&self) -> bool {
        is_like_a_date(&self.0) && parse_civil(&self.0).is_none()
    }
}

fn is_like_a_date(id: &str) -> bool {
    let shape: String = id.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let known = ["0000-00-00", "0000-00-00T00-00", "0000-00-00T00-00-00", "00000000", "00000000000000"];
    known.contains(&shape.as_str())
}

fn parse_civil(id: &str) -> Option<DateTime> {
    if !is_like_a_date(id) {
        return None;
    }
    let digits: String = id.chars().filter(char::is_ascii_digit).collect();
    let number = |range: std::ops::Range<usize>| match digits.get(range) {
        Some(part) => part.parse::<i16>().ok(),
        None => Some(0),
    };
    let small = |range| number(range).and_then(|n| i8::try_from(n).ok());
    let date = Date::new(number(0..4)?, small(4..6)?, small(6..8)?).ok()?;
    let time = Time::new(small(8..10)?, small(10..12)?, small(12..14)?, 0).ok()?;
    Some(date.to_datetime(time))
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for SnapshotId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SnapshotId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = SnapshotId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a snapshot id")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<SnapshotId, E> {
                SnapshotId::new(name).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_state_their_time() {
        let time = |id: &str| {
            let id = SnapshotId::new(id).unwrap();
            id.stated_time(&TimeZone::UTC).map(|t| t.to_string())
        };
        assert_eq!(time("2024-03-01").as_deref(), Some("2024-03-01T00:00:00Z"));
        assert_eq!(time("2024-03-01T23-05").as_deref(), Some("2024-03-01T23:05:00Z"));
        assert_eq!(time("2024-03-01T23-05-09").as_deref(), Some("2024-03-01T23:05:09Z"));
        assert_eq!(time("20240301").as_deref(), Some("2024-03-01T00:00:00Z"));
        assert_eq!(time("20240301230509").as_deref(), Some("2024-03-01T23:05:09Z"));
        for id in ["2024-02-30", "night-1", "2024", "2024-03-01T25-00", "202403011"] {
            assert_eq!(time(id), None, "{id}");
            let is_mistaken = SnapshotId::new(id).unwrap().is_mistaken_date();
            assert_eq!(is_mistaken, ["2024-02-30", "2024-03-01T25-00"].contains(&id), "{id}");
        }
    }

    #[test]
    fn a_local_reading_becomes_utc() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let id = SnapshotId::new("2024-07-01").unwrap();
        assert_eq!(id.stated_time(&zone).unwrap().to_string(), "2024-06-30T22:00:00Z");
        let id = SnapshotId::new("20240701T103000Z").unwrap();
        assert_eq!(id.stated_time(&zone).unwrap().to_string(), "2024-07-01T10:30:00Z", "what says UTC is UTC");
    }

    #[test]
    fn other_characters_are_refused() {
        for id in ["", "a/b", "a b", "ä", ".staging", "a=b"] {
            assert!(SnapshotId::new(id).is_err(), "{id}");
        }
    }
}
