//! What was read from a store or written to it and is likely to be read again: manifests, the footers of partitions,
//! rows that a stage of this run wrote, and old texts. Manifests are only changed by who holds the lock, and who changes one forgets
//! it; a partition that was replaced is opened anew.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::at_hand::TextsAtHand;
use super::manifest::SnapshotDone;
use super::parquet::{Partition, Shelf, Written};
use super::{Result, Store, catalogue};
use crate::model::{SnapshotId, StageId};

/// Partitions that are kept open at most: each takes a file handle.
const OPEN_PARTITIONS: usize = 48;
/// Rows of partitions that are kept after they were written, in bytes.
const RECENT_BYTES: usize = 256 << 20;

/// Shared by all views of a store.
#[derive(Clone, Default)]
pub(super) struct Memory {
    remembered: Arc<Mutex<Remembered>>,
    at_hand: AtHand,
}

/// Rows and texts that a run has in memory. They go by the identity of their files, so that whoever looks at the store after
/// the run may have them too, though others may have changed it since.
#[derive(Clone)]
pub(crate) struct AtHand {
    shelf: Shelf,
    texts: TextsAtHand,
}

impl Default for AtHand {
    fn default() -> Self {
        Self { shelf: Shelf::new(RECENT_BYTES), texts: TextsAtHand::default() }
    }
}

impl std::fmt::Debug for AtHand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AtHand")
    }
}

#[derive(Default)]
struct Remembered {
    done: HashMap<SnapshotId, Arc<SnapshotDone>>,
    /// Of all snapshots, oldest first.
    all_done: Option<Arc<Vec<Arc<SnapshotDone>>>>,
    catalogue: Option<Arc<catalogue::Remembered>>,
    partitions: HashMap<PathBuf, (Identity, Partition)>,
}

/// Tells whether a file is still the one that was read: replacing it gives another inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(super) inode: u64,
    pub(super) bytes: u64,
    pub(super) modified: (i64, i64),
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Memory")
    }
}

/// `None` if there is no such file.
pub(super) fn identity(path: &Path) -> Result<Option<Identity>> {
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
    /// Makes room for the rows of a stage that begins.
    pub(super) fn make_room(&self, stage: StageId) {
        if stage == StageId::Ingest {
            self.memory.at_hand.texts.clear();
        }
        if self.memory.at_hand.shelf.make_room() {
            // Whoever holds a partition open holds its rows.
            self.with_memory(|memory| memory.partitions.clear());
        }
    }

    /// What it has in memory, for who opens it next.
    pub(crate) fn at_hand(&self) -> AtHand {
        self.memory.at_hand.clone()
    }

    /// The same store, with what somebody else has of it in memory.
    #[must_use]
    pub(crate) fn with_at_hand(mut self, at_hand: AtHand) -> Self {
        self.memory.at_hand = at_hand;
        self
    }

    /// Where rows go that are written now and read again soon.
    pub(super) fn shelf(&self) -> &Shelf {
        &self.memory.at_hand.shelf
    }

    /// Old texts that later stages of the night ask for again.
    pub(super) fn texts_at_hand(&self) -> &TextsAtHand {
        &self.memory.at_hand.texts
    }

    fn with_memory<T>(&self, act: impl FnOnce(&mut Remembered) -> T) -> T {
        act(&mut self.memory.remembered.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is done for a snapshot, if it was asked for before.
    pub(super) fn remembered_done(&self, snapshot: &SnapshotId) -> Option<Arc<SnapshotDone>> {
        self.with_memory(|memory| memory.done.get(snapshot).cloned())
    }

    pub(super) fn remember_done(&self, done: &Arc<SnapshotDone>) {
        self.with_memory(|memory| memory.done.insert(done.snapshot.id.clone(), Arc::clone(done)));
    }

    pub(super) fn remembered_all_done(&self) -> Option<Arc<Vec<Arc<SnapshotDone>>>> {
        self.with_memory(|memory| memory.all_done.clone())
    }

    pub(super) fn remember_all_done(&self, all: &Arc<Vec<Arc<SnapshotDone>>>) {
        self.with_memory(|memory| memory.all_done = Some(Arc::clone(all)));
    }

    /// The manifest of a snapshot was changed.
    pub(super) fn forget_done(&self, snapshot: &SnapshotId) {
        self.with_memory(|memory| {
            memory.done.remove(snapshot);
            memory.all_done = None;
        });
    }

    /// The catalogue, read by `read` if it was not before.
    pub(super) fn remembered_catalogue(
        &self,
        read: impl FnOnce() -> catalogue::Remembered,
    ) -> Arc<catalogue::Remembered> {
        if let Some(catalogue) = self.with_memory(|memory| memory.catalogue.clone()) {
            return catalogue;
        }
        let catalogue = Arc::new(read());
        self.with_memory(|memory| memory.catalogue = Some(Arc::clone(&catalogue)));
        catalogue
    }

    /// A partition, opened; `None` if it has no file.
    pub(super) fn remembered_partition(&self, path: &Path, written: Option<&Written>) -> Result<Option<Partition>> {
        let Some(now) = identity(path)? else { return Ok(None) };
        let known = self.with_memory(|memory| memory.partitions.get(path).filter(|(then, _)| *then == now).cloned());
        if let Some((_, partition)) = known {
            return Ok(Some(partition));
        }
        let partition = Partition::open_with(path, written, self.memory.at_hand.shelf.find(now))?;
        self.with_memory(|memory| {
            if memory.partitions.len() >= OPEN_PARTITIONS {
                memory.partitions.clear();
            }
            memory.partitions.insert(path.to_owned(), (now, partition.clone()));
        });
        Ok(Some(partition))
    }
}
