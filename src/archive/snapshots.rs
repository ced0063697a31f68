//! Which snapshots lie below a root.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::model::snapshot::SnapshotId;

use super::ArchiveError;
use super::layouts::{WARC_ENDING, claim};

/// The snapshots below `root`, sorted by id: folders, which may be links, and archive files, whose id is their name up
/// to what makes it the name of one: `2024-03-01.warc.gz`. Other files are no snapshots, nor is what is set aside.
pub(crate) fn list_snapshots(root: &Path) -> Result<Vec<(SnapshotId, PathBuf)>, ArchiveError> {
    let mut snapshots = BTreeMap::new();
    for entry in fs_err::read_dir(root)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_set_aside(&name) {
            continue;
        }
        // Follows links. One that leads nowhere is an error: there should be a snapshot.
        let metadata = fs_err::metadata(&path)?;
        let id = match metadata.is_dir() {
            true => name,
            false => match file_id(&name) {
                Some(id) if metadata.is_file() => id.to_owned(),
                _ => continue,
            },
        };
        let id = match SnapshotId::new(id) {
            Ok(id) => id,
            Err(why) => return Err(ArchiveError::BadSnapshotId { path, why }),
        };
        if let Some(other) = snapshots.insert(id.clone(), path.clone()) {
            let (a, b) = if other < path { (other, path) } else { (path, other) };
            return Err(ArchiveError::TwoOfOneId { id, a, b });
        }
    }
    Ok(snapshots.into_iter().collect())
}

/// Whether a name says that something is hidden, not meant or not finished: what crawlers and copying programs work in,
/// and what a file system keeps at its root.
fn is_set_aside(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    name.starts_with(['.', '_'])
        || [".tmp", ".part", ".partial", "~"].iter().any(|ending| lower.ends_with(ending))
        || name == "lost+found"
}

/// The id of a snapshot that is one file, from its name. `None` if the name is not that of an archive, or of one that
/// is still being written.
#[must_use]
pub(crate) fn file_id(name: &str) -> Option<&str> {
    let (_, ending) = claim(name).filter(|_| !name.to_ascii_lowercase().ends_with(".open"))?;
    let id = &name[..name.len() - ending.len()];
    // A WET file is named after the WARC file that it was made from: `2024-03-01.warc.wet.gz`.
    let is_warc = id.to_ascii_lowercase().ends_with(WARC_ENDING);
    Some(&id[..id.len() - if is_warc { WARC_ENDING.len() } else { 0 }])
}

#[cfg(test)]
mod tests;
