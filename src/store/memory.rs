//! What was read from a store and is likely to be read again: manifests and the footers of partitions. A file that was
//! replaced since is read anew.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fs_err as fs;

use super::manifest::SnapshotDone;
use super::parquet::Partition;
use super::{Result, Store};
use crate::model::SnapshotId;

/// Partitions that are kept open at most: each takes a file handle.
const OPEN_PARTITIONS: usize = 64;

/// Shared by all views of a store.
#[derive(Clone, Default)]
pub(super) struct Memory(Arc<Mutex<Remembered>>);

#[derive(Default)]
struct Remembered {
    files: HashMap<PathBuf, (Identity, Arc<[u8]>)>,
    done: HashMap<SnapshotId, (Identity, Arc<SnapshotDone>)>,
    partitions: HashMap<PathBuf, (Identity, Partition)>,
}

/// Tells whether a file is still the one that was read: replacing it gives another inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memory")
    }
}

/// `None` if there is no such file.
fn identity(path: &Path) -> Result<Option<Identity>> {
    match fs::metadata(path) {
        Ok(found) => {
            let modified = (found.mtime(), found.mtime_nsec());
            Ok(Some(Identity { inode: found.ino(), bytes: found.size(), modified }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Store {
    fn with_memory<T>(&self, act: impl FnOnce(&mut Remembered) -> T) -> T {
        act(&mut self.memory.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The bytes of a small file; `None` if it does not exist.
    pub(super) fn remembered(&self, path: &Path) -> Result<Option<Arc<[u8]>>> {
        let Some(now) = identity(path)? else { return Ok(None) };
        let known = self.with_memory(|memory| memory.files.get(path).filter(|(then, _)| *then == now).cloned());
        if let Some((_, bytes)) = known {
            return Ok(Some(bytes));
        }
        let bytes: Arc<[u8]> = fs::read(path)?.into();
        self.with_memory(|memory| memory.files.insert(path.to_owned(), (now, Arc::clone(&bytes))));
        Ok(Some(bytes))
    }

    /// What is done for a snapshot, if it was asked for before and its manifest is the same.
    pub(super) fn remembered_done(&self, path: &Path, snapshot: &SnapshotId) -> Result<Option<Arc<SnapshotDone>>> {
        let now = identity(path)?;
        Ok(self.with_memory(|memory| {
            let known = memory.done.get(snapshot).filter(|(then, _)| Some(*then) == now);
            known.map(|(_, done)| Arc::clone(done))
        }))
    }

    pub(super) fn remember_done(&self, path: &Path, done: &Arc<SnapshotDone>) -> Result<()> {
        if let Some(now) = identity(path)? {
            let snapshot = done.snapshot.id.clone();
            self.with_memory(|memory| memory.done.insert(snapshot, (now, Arc::clone(done))));
        }
        Ok(())
    }

    /// A partition, opened; `None` if it has no file.
    pub(super) fn remembered_partition(&self, path: &Path) -> Result<Option<Partition>> {
        let Some(now) = identity(path)? else { return Ok(None) };
        let known = self.with_memory(|memory| memory.partitions.get(path).filter(|(then, _)| *then == now).cloned());
        if let Some((_, partition)) = known {
            return Ok(Some(partition));
        }
        let partition = Partition::open(path)?;
        self.with_memory(|memory| {
            if memory.partitions.len() >= OPEN_PARTITIONS {
                memory.partitions.clear();
            }
            memory.partitions.insert(path.to_owned(), (now, partition.clone()));
        });
        Ok(Some(partition))
    }
}
