//! The files of a folder, in order of their names, without leaving it.

use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use walkdir::WalkDir;

use super::layouts::claim;
use crate::model::{Loss, Reject, Timestamp};

/// A regular file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Relative to the snapshot folder.
    pub path: PathBuf,
    pub bytes: u64,
    pub modified: Option<Timestamp>,
}

impl SourceFile {
    /// The relative path with `/`, for tables and messages.
    #[must_use]
    pub fn name(&self) -> String {
        slashed(&self.path)
    }
}

/// A file of this name in a snapshot's folder says that nothing more will be added. It holds no capture.
pub(crate) const COMPLETE: &str = "_complete";

#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) files: Vec<SourceFile>,
    pub(crate) rejects: Vec<Reject>,
    /// Whether there are links inside the folder, so that one file may have two names.
    pub(crate) linked: bool,
}

/// Walks all of `root`. `real_root` is its canonical path: links that point elsewhere are rejected, not followed.
#[expect(clippy::disallowed_methods, reason = "archive is the place that walks folders")]
pub(crate) fn walk(root: &Path, real_root: &Path) -> Walk {
    let mut found = Walk::default();
    let mut entries = WalkDir::new(root).min_depth(1).follow_links(true).sort_by_file_name().into_iter();
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = error.path().unwrap_or(root);
                let reason = match error.loop_ancestor() {
                    Some(_) => "link makes a loop".to_owned(),
                    // The plain error, without the path, which the reject names anyway.
                    None => error.io_error().map_or_else(|| error.to_string(), ToString::to_string),
                };
                let lost = if error.io_error().is_some() { Loss::Rest } else { Loss::Nothing };
                found.rejects.push(Reject { lost, ..reject(&relative(path, root), reason) });
                continue;
            }
        };
        let path = relative(entry.path(), root);
        if path == Path::new(COMPLETE) && entry.file_type().is_file() {
            continue;
        }
        if entry.path_is_symlink() {
            found.linked = true;
            let inside = fs_err::canonicalize(entry.path()).is_ok_and(|target| target.starts_with(real_root));
            if !inside {
                let lost = if claim(&slashed(&path)).is_some() { Loss::Rest } else { Loss::Nothing };
                found.rejects.push(Reject { lost, ..reject(&path, "link leaves the snapshot") });
                if entry.file_type().is_dir() {
                    entries.skip_current_dir();
                }
                continue;
            }
        }
        if entry.file_type().is_file() {
            match entry.metadata() {
                Ok(metadata) => {
                    found.files.push(SourceFile { path, bytes: metadata.len(), modified: modified(&metadata) });
                }
                Err(error) => found.rejects.push(Reject { lost: Loss::Rest, ..reject(&path, error.to_string()) }),
            }
        }
    }
    found
}

pub(crate) fn reject(path: &Path, reason: impl Into<String>) -> Reject {
    Reject { source_file: slashed(path), source_offset: None, url: None, reason: reason.into(), lost: Loss::Nothing }
}

fn relative(path: &Path, root: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).to_path_buf()
}

fn slashed(path: &Path) -> String {
    let names: Vec<_> = path.components().map(Component::as_os_str).map(|name| name.to_string_lossy()).collect();
    names.join("/")
}

pub(crate) fn modified(metadata: &std::fs::Metadata) -> Option<Timestamp> {
    metadata.modified().ok().and_then(timestamp)
}

fn timestamp(time: std::time::SystemTime) -> Option<Timestamp> {
    let micros = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).ok()?,
        Err(before) => -i64::try_from(before.duration().as_micros()).ok()?,
    };
    Some(Timestamp(micros))
}
