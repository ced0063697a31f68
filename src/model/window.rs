//! Windows: the captures of a folder cut into snapshots by when they were fetched.

use serde::{Deserialize, Serialize};

use crate::model::{Digest, SnapshotId, Timestamp};

/// How long a window is, in seconds. Windows are `(end - every, end]`, and their ends are counted from 1970 in UTC: those
/// of an hour end on the hour, those of a day at midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Every(i64);

impl Every {
    /// `None` unless it is a second or more.
    #[must_use]
    pub fn new(seconds: i64) -> Option<Self> {
        (seconds >= 1).then_some(Self(seconds))
    }

    /// The end of the window that a moment lies in; `None` of a moment so far off that no id can state it.
    #[must_use]
    pub fn end_of(self, time: Timestamp) -> Option<Timestamp> {
        let length = self.0.checked_mul(Timestamp::SECOND)?;
        let end = Timestamp(time.0.checked_add(length - 1)?.div_euclid(length).checked_mul(length)?);
        stated(end).map(|_| end)
    }
}

impl Every {
    /// Whether so much has passed since then. A clock may be late by an hour, or by a twenty-fourth of what is waited for:
    /// what is to happen every day happens every night, though one starts a minute earlier than the last.
    #[must_use]
    pub fn has_passed(self, since: Timestamp, now: Timestamp) -> bool {
        let late = (self.0 / 24).min(60 * 60);
        now.0.saturating_sub(since.0) >= (self.0 - late).saturating_mul(Timestamp::SECOND)
    }
}

/// The id of a folder's window that ends then: `<folder>.<YYYYMMDDThhmmssZ>`.
#[must_use]
pub(crate) fn window_id(folder: &SnapshotId, end: Timestamp) -> Option<SnapshotId> {
    SnapshotId::new(format!("{folder}.{}", stated(end)?)).ok()
}

/// A moment as an id states it.
fn stated(time: Timestamp) -> Option<String> {
    let time = jiff::Timestamp::from_microsecond(time.0).ok()?.strftime("%Y%m%dT%H%M%SZ").to_string();
    (time.len() == "YYYYMMDDThhmmssZ".len() && !time.starts_with('-')).then_some(time)
}

/// A window as it was taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderWindow {
    /// The folder's name.
    pub folder: SnapshotId,
    pub every: Every,
    /// It is the last of its folder: what no capture of the folder shows is absent.
    pub last: bool,
    pub captures: CaptureSet,
}

/// Captures as a set: equal if they are the same ones, in whichever order and files they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureSet {
    pub count: u64,
    /// Sum of the digests of the captures.
    pub sum: Digest,
}

impl Default for CaptureSet {
    fn default() -> Self {
        Self { count: 0, sum: Digest([0; 16]) }
    }
}

impl CaptureSet {
    pub fn add(&mut self, capture: Digest) {
        self.join(Self { count: 1, sum: capture });
    }

    pub fn join(&mut self, other: Self) {
        let number = |digest: Digest| u128::from_le_bytes(digest.0);
        self.count += other.count;
        self.sum = Digest(number(self.sum).wrapping_add(number(other.sum)).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn a_window_is_named_by_its_end() {
        let folder = SnapshotId::new("2024-03-01").unwrap();
        let id = |seconds, at: &str| {
            let end = Every::new(seconds).unwrap().end_of(time(at)).unwrap();
            window_id(&folder, end).unwrap().to_string()
        };
        assert_eq!(id(3_600, "2024-03-01T12:10:00Z"), "2024-03-01.20240301T130000Z");
        assert_eq!(id(3_600, "2024-03-01T13:00:00Z"), "2024-03-01.20240301T130000Z", "its end belongs to it");
        assert_eq!(id(3_600, "2024-03-01T13:00:00.000001Z"), "2024-03-01.20240301T140000Z");
        assert_eq!(id(300, "2024-03-01T12:10:00+01:00"), "2024-03-01.20240301T111000Z");
        assert_eq!(id(86_400, "2024-03-01T00:00:01Z"), "2024-03-01.20240302T000000Z");
        assert_eq!(id(86_400, "1969-12-31T12:00:00Z"), "2024-03-01.19700101T000000Z");
    }

    #[test]
    fn moments_beyond_all_calendars_have_no_window() {
        let hour = Every::new(3_600).unwrap();
        for far in [Timestamp(i64::MAX), Timestamp(i64::MIN), time("-000001-01-01T00:00:00Z")] {
            assert_eq!(hour.end_of(far), None, "{far}");
        }
        assert_eq!((Every::new(0), Every::new(-1)), (None, None));
        assert_eq!(Every::new(i64::MAX).unwrap().end_of(Timestamp(0)), None);
    }

    #[test]
    fn sets_do_not_depend_on_order() {
        let digests = [b"a", b"b", b"c"].map(|bytes| Digest::of(bytes));
        let set = |order: [usize; 3]| {
            let mut set = CaptureSet::default();
            order.iter().for_each(|i| set.add(digests[*i]));
            set
        };
        assert_eq!(set([0, 1, 2]), set([2, 0, 1]));
        assert_ne!(set([0, 1, 2]), set([0, 1, 1]));
    }
}
