//! Traces of a folder's files by which it is known again, without opening one.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use crate::model::{Digest, DigestBuilder};

/// The files of a folder as the file system knows them.
#[derive(Clone, Debug, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Traces {
    files: u64,
    /// Of all paths and sizes.
    names: Digest,
    /// Of the numbers by which the file system knows them.
    numbers: Digest,
    /// When content, name or rights of any of them last changed. Programs that set times cannot set this one.
    touched: (i64, i64),
    /// When each of them was; not kept.
    #[serde(skip)]
    times: Vec<(i64, i64)>,
}

impl PartialEq for Traces {
    fn eq(&self, other: &Self) -> bool {
        let told = |traces: &Self| (traces.files, traces.names, traces.numbers, traces.touched);
        told(self) == told(other)
    }
}

impl Traces {
    /// Walks a folder; a snapshot that is one file is a folder of one.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "archive is the place that walks folders")]
    pub(crate) fn of(path: &Path) -> Self {
        let (mut names, mut numbers) = (DigestBuilder::new(), DigestBuilder::new());
        let mut times = Vec::new();
        for entry in WalkDir::new(path).follow_links(true).sort_by_file_name().into_iter().flatten() {
            let Some(metadata) = entry.metadata().ok().filter(std::fs::Metadata::is_file) else { continue };
            names.field(entry.path().strip_prefix(path).unwrap_or(path).as_os_str().as_encoded_bytes());
            names.number(metadata.len());
            numbers.number(metadata.ino());
            times.push((metadata.ctime(), metadata.ctime_nsec()));
        }
        let touched = times.iter().copied().max().unwrap_or_default();
        Self { files: times.len() as u64, names: names.finish(), numbers: numbers.finish(), touched, times }
    }

    #[must_use]
    pub(crate) fn files(&self) -> u64 {
        self.files
    }

    /// Whether some of the files were touched since, and not just all of them copied.
    #[must_use]
    pub(crate) fn edited_since(&self, before: &Self) -> bool {
        let touched = self.times.iter().filter(|time| **time > before.touched).count();
        let copied = touched == self.times.len() && self.numbers != before.numbers;
        touched > 0 && !copied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_told_from_a_copy() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs_err::write(dir.path().join(name), "12345").unwrap();
        }
        let before = Traces::of(dir.path());
        assert_eq!(Traces::of(dir.path()), before);
        let copy = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs_err::copy(dir.path().join(name), copy.path().join(name)).unwrap();
        }
        let copied = Traces::of(copy.path());
        assert!(copied != before && !copied.edited_since(&before));
        // A body of the same size, with its old time.
        let file = dir.path().join("b");
        let time = fs_err::metadata(&file).unwrap().modified().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs_err::write(&file, "54321").unwrap();
        fs_err::OpenOptions::new().write(true).open(&file).unwrap().set_modified(time).unwrap();
        assert!(Traces::of(dir.path()).edited_since(&before));
    }
}
