//! The parts of a snapshot: what the search for layouts finds and what readers are made for.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use crate::model::{TimeSource, Timestamp};

use super::CaptureReader;
#[cfg(any(test, feature = "lab"))]
use super::records::RecordsPart;
use super::walk::SourceFile;

/// A part of a snapshot that is read by readers of its own: a file of records, a manifest, a tree.
pub(crate) trait SnapshotPart: Debug + Send + Sync {
    /// Readers that together yield every capture of the part once.
    fn readers(&self, opening: &Opening<'_>) -> Vec<Box<dyn CaptureReader>>;

    /// The newest modification time among its files, if its captures state no time of their own. `files` are those
    /// of the snapshot.
    fn newest_modified(&self, _files: &[SourceFile]) -> Option<Timestamp> {
        None
    }

    /// The part as a file of records, if it is one.
    #[cfg(any(test, feature = "lab"))]
    fn as_records(&self) -> Option<&RecordsPart> {
        None
    }
}

/// What the readers of a part are told.
pub(crate) struct Opening<'a> {
    /// The folder that all paths are relative to.
    pub(crate) root: &'a Path,
    /// Its canonical path, which nothing may lead out of.
    pub(crate) real_root: &'a Path,
    /// The files of the snapshot.
    pub(crate) files: &'a Arc<[SourceFile]>,
    /// Their size.
    pub(crate) bytes: u64,
    pub(crate) window: Window,
    /// How many threads will read.
    pub(crate) threads: usize,
}

/// When captures that state no time can have been made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// Time of the snapshot before this one.
    pub(crate) previous: Option<Timestamp>,
    /// Time of this snapshot.
    pub(crate) time: Option<Timestamp>,
}

impl Window {
    /// The modification time of a file, if it lies after the previous snapshot and not after this one; else the
    /// snapshot's own time, which is then all that is known.
    pub(crate) fn fetched_at(self, modified: Option<Timestamp>) -> Option<(Timestamp, TimeSource)> {
        let time = self.time?;
        match (self.previous, modified) {
            (Some(previous), Some(modified)) if previous < modified && modified <= time => {
                Some((modified, TimeSource::Mtime))
            }
            _ => Some((time, TimeSource::Snapshot)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mtimes_count_between_two_snapshots() {
        let t = |n: i64| Some(Timestamp(n));
        let window = Window { previous: t(10), time: t(20) };
        assert_eq!(window.fetched_at(t(15)), Some((Timestamp(15), TimeSource::Mtime)));
        assert_eq!(window.fetched_at(t(20)), Some((Timestamp(20), TimeSource::Mtime)));
        for outside in [t(10), t(5), t(21), None] {
            assert_eq!(window.fetched_at(outside), Some((Timestamp(20), TimeSource::Snapshot)));
        }
        let first = Window { previous: None, time: t(20) };
        assert_eq!(first.fetched_at(t(15)), Some((Timestamp(20), TimeSource::Snapshot)));
        assert_eq!(Window::default().fetched_at(t(15)), None);
    }
}
