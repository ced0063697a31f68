//! What a snapshot is read from: a folder, also one that cannot be used.

use std::path::Path;

use anyhow::Result;

use crate::archive::{Layout, SnapshotFolder};
use crate::model::{Coverage, Digest};

/// What a snapshot is read from.
pub(super) enum Source<'a> {
    Folder(SnapshotFolder),
    /// A folder that cannot be used at all, and why.
    Unusable(&'a Path, String),
}

impl<'a> Source<'a> {
    pub(super) fn open(path: &'a Path, layout: Layout) -> Result<Self> {
        match SnapshotFolder::open(path, layout) {
            Ok(folder) => Ok(Self::Folder(folder)),
            // A folder that vanished meanwhile is no snapshot.
            Err(error) if !path.exists() => Err(error.into()),
            Err(error) => Ok(Self::Unusable(path, error.to_string())),
        }
    }

    pub(super) fn layout_names(&self) -> String {
        match self {
            Self::Folder(folder) => folder.layout_names(),
            Self::Unusable(..) => String::new(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Folder(folder) => folder.bytes(),
            Self::Unusable(..) => 0,
        }
    }

    /// Changes when reading it again could give something else. What gave nothing is looked at file by file.
    pub(super) fn fingerprint(&self, unusable: bool) -> Result<Digest> {
        match self {
            Self::Folder(folder) if !unusable => Ok(folder.fingerprint()?),
            Self::Folder(folder) => Ok(SnapshotFolder::listing(folder.path())),
            Self::Unusable(path, _) => Ok(SnapshotFolder::listing(path)),
        }
    }

    /// Whether nothing is what was to be expected: a poll that had nothing to fetch.
    pub(super) fn may_be_empty(&self, coverage: Coverage) -> bool {
        let is_manifest = |folder: &SnapshotFolder| folder.layouts() == [Layout::Manifest];
        coverage == Coverage::Partial && matches!(self, Self::Folder(folder) if is_manifest(folder))
    }
}
