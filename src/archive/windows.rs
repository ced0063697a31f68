//! Which windows the captures of a folder lie in.
//!
//! Only captures that state when they were fetched have a window of their own: in a header, a manifest, or by the time of
//! their file. Those dated by nothing but their snapshot belong to the folder's last window, whichever that is.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::CaptureReader;
use crate::model::window::{CaptureSet, Every};
use crate::model::{Digest, DigestBuilder, RawCapture, TimeSource, Timestamp};

/// When the captures of a folder were fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FetchTimes {
    /// By the end of their window.
    pub(crate) windows: BTreeMap<Timestamp, Fetched>,
    pub(crate) undated: Fetched,
    /// The newest moment that a capture states.
    pub(crate) newest: Option<Timestamp>,
}

/// Captures, and what they are read from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fetched {
    pub(crate) captures: CaptureSet,
    /// Names of readers.
    pub(crate) files: BTreeSet<String>,
}

/// The end of the window that a capture lies in; `None` if it does not state when it was fetched.
#[must_use]
pub(crate) fn window_of(capture: &RawCapture, every: Every) -> Option<Timestamp> {
    let (time, source) = capture.fetched_at?;
    if source == TimeSource::Snapshot { None } else { every.end_of(time) }
}

impl FetchTimes {
    /// Reads to the end of a reader; its rejects are left to whoever reads the captures. `None` if it misread.
    pub(crate) fn of(mut reader: Box<dyn CaptureReader>, every: Every) -> Option<Self> {
        let mut times = Self::default();
        let name = reader.name().to_owned();
        for capture in reader.by_ref().flatten() {
            let window = window_of(&capture, every);
            let fetched = match window {
                Some(end) => times.windows.entry(end).or_default(),
                None => &mut times.undated,
            };
            fetched.captures.add(capture_print(&capture));
            if !fetched.files.contains(&name) {
                fetched.files.insert(name.clone());
            }
            if let (Some(_), Some((time, _))) = (window, capture.fetched_at) {
                times.newest = times.newest.max(Some(time));
            }
        }
        (!reader.misread()).then_some(times)
    }

    pub(crate) fn join(mut self, other: Self) -> Self {
        for (end, fetched) in other.windows {
            self.windows.entry(end).or_default().join(fetched);
        }
        self.undated.join(other.undated);
        self.newest = self.newest.max(other.newest);
        self
    }

    /// Puts the undated captures where they belong: into the last window. Without any, into that of `time`.
    pub(crate) fn settle_undated(&mut self, time: Option<Timestamp>, every: Every) {
        if self.undated.captures.count == 0 {
            return;
        }
        let last = self.windows.keys().next_back().copied();
        if let Some(end) = last.or_else(|| every.end_of(time?)) {
            let undated = std::mem::take(&mut self.undated);
            self.windows.entry(end).or_default().join(undated);
        }
    }
}

impl Fetched {
    fn join(&mut self, other: Self) {
        self.captures.join(other.captures);
        self.files.extend(other.files);
    }
}

/// Tells a capture from others, as far as can be seen without its body.
#[must_use]
pub(crate) fn capture_print(capture: &RawCapture) -> Digest {
    let time = |time: Option<(Timestamp, TimeSource)>| time.map_or([0; 8], |(time, _)| time.0.to_le_bytes());
    let mut digest = DigestBuilder::new();
    digest.field(capture.url.as_bytes());
    // What is undated has the time of whatever snapshot it falls into.
    let fetched_at = capture.fetched_at.filter(|(_, source)| *source != TimeSource::Snapshot);
    digest.field(&time(fetched_at)).field(&time(capture.last_modified));
    digest.number(capture.status.map_or(0, u64::from));
    for stated in [&capture.etag, &capture.archive_digest] {
        digest.field(stated.as_deref().unwrap_or_default().as_bytes());
    }
    digest.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{Layout, SnapshotFolder};

    fn folder(lines: &[(&str, Option<&str>)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut manifest = String::new();
        for (i, (url, fetched_at)) in lines.iter().enumerate() {
            fs_err::write(folder.path().join(format!("{i}.html")), "<p>x").unwrap();
            let time = fetched_at.map(|time| format!(",\"fetched_at\":\"{time}\"")).unwrap_or_default();
            manifest.push_str(&format!("{{\"url\":\"http://{url}/\",\"file\":\"{i}.html\"{time}}}\n"));
        }
        fs_err::write(folder.path().join("manifest.jsonl"), manifest).unwrap();
        folder
    }

    fn times(folder: &tempfile::TempDir, every: i64) -> FetchTimes {
        let every = Every::new(every).unwrap();
        let folder = SnapshotFolder::open(folder.path(), Layout::Auto).unwrap();
        let readers = folder.readers(None, None).into_iter();
        readers.map(|reader| FetchTimes::of(reader, every).unwrap()).fold(FetchTimes::default(), FetchTimes::join)
    }

    #[test]
    fn captures_fall_into_windows_by_their_time() {
        let folder = folder(&[
            ("a", Some("2024-03-01T10:10:00Z")),
            ("a", Some("2024-03-01T10:50:00Z")),
            ("a", Some("2024-03-01T12:00:00Z")),
            ("b", None),
        ]);
        let mut times = times(&folder, 3_600);
        let counts = |times: &FetchTimes| -> Vec<(String, u64)> {
            times.windows.iter().map(|(end, fetched)| (end.to_string(), fetched.captures.count)).collect()
        };
        let expected = [("2024-03-01T11:00:00Z".to_owned(), 2), ("2024-03-01T12:00:00Z".to_owned(), 1)];
        assert_eq!(counts(&times), expected);
        assert_eq!(times.undated.captures.count, 1);
        times.settle_undated(None, Every::new(3_600).unwrap());
        assert_eq!(counts(&times)[1].1, 2, "what is undated belongs to the last window");
        assert_eq!(times.newest.unwrap().to_string(), "2024-03-01T12:00:00Z");
    }

    #[test]
    fn a_folder_without_times_is_one_window() {
        let folder = folder(&[("a", None), ("b", None)]);
        let day = Every::new(86_400).unwrap();
        let mut undated = times(&folder, 86_400);
        assert!(undated.windows.is_empty());
        undated.settle_undated(Timestamp::parse_rfc3339("2024-03-01T00:00:00Z"), day);
        let ends: Vec<String> = undated.windows.keys().map(ToString::to_string).collect();
        assert_eq!(ends, ["2024-03-01T00:00:00Z"]);
    }

    #[test]
    fn a_capture_that_is_another_is_noticed() {
        let line = [("a", Some("2024-03-01T10:10:00Z"))];
        let (one, same) = (times(&folder(&line), 60), times(&folder(&line), 60));
        assert_eq!(one, same);
        let other = times(&folder(&[("b", Some("2024-03-01T10:10:00Z"))]), 60);
        let sets = |times: &FetchTimes| times.windows.values().map(|fetched| fetched.captures).collect::<Vec<_>>();
        assert_ne!(sets(&one), sets(&other));
        assert_eq!(sets(&one)[0].count, sets(&other)[0].count);
    }
}
