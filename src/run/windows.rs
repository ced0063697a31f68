//! Folders cut into windows: which windows there are, which of them can be taken in, and what came too late for one.
//!
//! A window can be taken in once its folder has a later one, or is closed: there is a later folder, or a file `_complete`
//! in it. Then nothing should come for it any more; what does is told, and taken in only when that is forced. So a folder
//! that grows gives the same snapshots as one that was complete from the start.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::stage::{Task, TaskWindow};
use crate::archive::{FetchTimes, SnapshotFolder};
use crate::config::Corpus;
use crate::manifests::Ingested;
use crate::model::window::{Every, FolderWindow, window_id};
use crate::model::{Digest, DigestBuilder, Snapshot, SnapshotId, Timestamp};
use crate::store::Store;
use crate::store::manifest::Manifest;

/// A folder of the archive that is cut into windows.
pub(super) struct CutFolder {
    pub(super) id: SnapshotId,
    pub(super) path: PathBuf,
    pub(super) every: Every,
    /// Its windows that are in the store, by their ends.
    pub(super) done: BTreeMap<Timestamp, FolderWindow>,
    /// There is a later folder.
    pub(super) followed: bool,
    /// When it was crawled, as far as folders tell.
    pub(super) times: FolderTimes,
}

impl CutFolder {
    fn window(&self, last: bool, files: Option<BTreeSet<String>>) -> TaskWindow {
        TaskWindow { folder: self.id.clone(), every: self.every, last, files, times: self.times }
    }
}

/// What dates captures that state no time: the time of their folder and of the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FolderTimes {
    pub(crate) previous: Option<Timestamp>,
    pub(crate) time: Option<Timestamp>,
}

/// What a folder's windows come to.
#[derive(Default)]
pub(super) struct Found {
    /// Windows that are not in the store and can be taken in.
    pub(super) tasks: Vec<Task>,
    /// A window that is not over yet.
    pub(super) open: Option<Snapshot>,
    /// Windows in the store as they would be taken in again.
    pub(super) again: BTreeMap<SnapshotId, TaskWindow>,
    pub(super) late: Vec<Late>,
}

/// Captures that came when their window had been taken in, or had been passed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) snapshot: SnapshotId,
    /// More captures than there were; none if they are others.
    pub(crate) captures: u64,
}

/// What an inventory is taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taking {
    /// What is done is done again: late windows are taken in too, and those in the store looked at again.
    pub(crate) forced: bool,
    /// What was found out by reading folders may be noted in the store, which is locked.
    pub(crate) notes: bool,
}

/// How folders are cut.
pub(super) struct Cutter<'a> {
    pub(super) corpus: &'a Corpus,
    pub(super) store: Option<&'a Store>,
    /// The newest snapshot in the store.
    pub(super) newest: Option<&'a Manifest<Ingested>>,
    pub(super) how: Taking,
}

impl Cutter<'_> {
    /// The windows of a folder. One that was closed when its last window was taken in is not looked at again, unless it
    /// is the newest or something is forced.
    pub(super) fn cut(&self, cut: &CutFolder) -> Result<Found> {
        let newest = self.newest.and_then(|newest| newest.summary.window.as_ref());
        let is_newest = newest.is_some_and(|window| window.folder == cut.id);
        let over = cut.done.values().next_back().is_some_and(|window| window.last);
        if over && !is_newest && !self.how.forced {
            let again = cut
                .done
                .iter()
                .filter_map(|(end, window)| Some((window_id(&cut.id, *end)?, cut.window(window.last, None))));
            return Ok(Found { again: again.collect(), ..Found::default() });
        }
        let folder = SnapshotFolder::open(&cut.path, self.corpus.layout)?;
        let closed = cut.followed || folder.is_complete();
        let fetched = self.fetch_times(cut, &folder)?;
        let last = fetched.windows.keys().next_back().copied();
        let mut found = Found::default();
        for (end, fetched) in fetched.windows {
            let Some(id) = window_id(&cut.id, end) else { continue };
            let is_last = Some(end) == last;
            let snapshot = Snapshot { id, time: end };
            let task = cut.window(is_last && closed, Some(fetched.files));
            let (captures, before) = (fetched.captures, cut.done.get(&end));
            if let Some(before) = before {
                if before.captures != captures {
                    let captures = captures.count.saturating_sub(before.captures.count);
                    found.late.push(Late { snapshot: snapshot.id.clone(), captures });
                }
                found.again.insert(snapshot.id, task);
            } else if is_last && !closed {
                found.open = Some(snapshot);
            } else if self.is_passed(&snapshot) && !self.how.forced {
                found.late.push(Late { snapshot: snapshot.id, captures: captures.count });
            } else {
                found.tasks.push(Task { snapshot, folder: Some(cut.path.clone()), window: Some(task) });
            }
        }
        Ok(found)
    }

    /// Whether a later snapshot is in the store.
    fn is_passed(&self, snapshot: &Snapshot) -> bool {
        self.newest.is_some_and(|newest| (newest.time, &newest.snapshot) > (snapshot.time, &snapshot.id))
    }

    /// When the captures of a folder were fetched, from what was noted if the folder has not changed since.
    fn fetch_times(&self, cut: &CutFolder, folder: &SnapshotFolder) -> Result<FetchTimes> {
        let mut of = DigestBuilder::new();
        of.field(&folder.fingerprint()?.0).field(&serde_json::to_vec(&(cut.every, cut.times))?);
        let of = of.finish();
        let name = format!("windows/{}.json", cut.id);
        // Damaged notes are as good as none.
        let noted = self.store.and_then(|store| store.meta_file::<Noted>(&name).ok().flatten());
        if let Some(noted) = noted.filter(|noted| noted.of == of) {
            return Ok(noted.fetched);
        }
        let mut fetched = read(folder, cut.every, cut.times).with_context(|| format!("folder {}", cut.id))?;
        fetched.settle_undated(cut.times.time.or(folder.newest_modified()), cut.every);
        let noted = Noted { of, fetched };
        if let Some(store) = self.store.filter(|_| self.how.notes)
            && let Err(error) = store.write_meta_file(&name, &noted)
        {
            log::debug!("cannot note the windows of {}: {error}", cut.id);
        }
        Ok(noted.fetched)
    }
}

/// When the captures of a folder were fetched, and what folder that was.
#[derive(Serialize, Deserialize)]
struct Noted {
    of: Digest,
    fetched: FetchTimes,
}

/// Reads a folder to its end.
fn read(folder: &SnapshotFolder, every: Every, times: FolderTimes) -> Result<FetchTimes> {
    let FolderTimes { previous, time } = times;
    let all = |readers: Vec<_>| {
        let parts = readers.into_par_iter().map(|reader| FetchTimes::of(reader, every));
        parts.try_reduce(FetchTimes::default, |a, b| Some(a.join(b)))
    };
    let pieces = folder.split_readers(previous, time, rayon::current_num_threads());
    let read = all(pieces).or_else(|| all(folder.readers(previous, time)));
    read.context("its files cannot be read in one piece")
}
