//! Which snapshots there are, in the archive and in the store, and in which order.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::stage::Task;
use super::summary::Summary;
use super::windows::{CutFolder, Cutter, FolderTimes, Found, Late, Taking};
use crate::archive::{SnapshotFolder, list_snapshots};
use crate::config::{Corpus, Pipeline};
use crate::manifests::Ingested;
use crate::model::{Snapshot, SnapshotId, Timestamp};
use crate::store::Store;
use crate::store::manifest::Manifest;

/// Every snapshot, done or not, in order.
#[derive(Default)]
pub(crate) struct Inventory {
    pub tasks: Vec<Task>,
    pub done: HashSet<SnapshotId>,
    /// Windows that are not over: no tasks yet.
    pub open: Vec<Snapshot>,
    /// What came too late for its window.
    pub late_captures: Vec<Late>,
    /// Snapshots of the archive that were dropped and are passed over.
    pub dropped: Vec<SnapshotId>,
}

/// The snapshot folders of the archive; if one is `needed`, there must be one.
pub(super) fn folders(pipeline: &Pipeline, needed: bool) -> Result<BTreeMap<SnapshotId, PathBuf>> {
    let root = &pipeline.corpus.snapshots;
    if !root.exists() {
        bail!(
            "`snapshots` of {}: there is no folder {root}; make it, with a folder or an archive file for each crawl in it, \
             such as {root}/2024-03-01",
            pipeline.path.display(),
            root = root.display()
        );
    }
    if root.is_file() {
        bail!(
            "`snapshots` of {}: {} is a file; name the folder that has a folder or an archive file for each crawl in it",
            pipeline.path.display(),
            root.display()
        );
    }
    let listed = list_snapshots(root).with_context(|| format!("`snapshots` of {}", pipeline.path.display()))?;
    if listed.is_empty() && needed {
        bail!("no snapshot in {}: every folder or archive file below it is one, such as 2024-03-01", root.display());
    }
    Ok(listed.into_iter().collect())
}

/// The ingested snapshots, oldest first. Those that a prune was about to drop when it was interrupted do not count.
pub(crate) fn ingested(store: &Store) -> Result<Vec<Manifest<Ingested>>> {
    let mut manifests = store.manifests::<Ingested>()?;
    if let Some(first) = store.first_kept()? {
        manifests.retain(|manifest| !first.is_after(manifest.time, &manifest.snapshot));
    }
    Ok(manifests)
}

/// A snapshot that somebody named and that is not there.
#[derive(Debug, thiserror::Error)]
#[error("no snapshot {asked}; there are {known}")]
pub(crate) struct UnknownSnapshot {
    asked: SnapshotId,
    known: String,
}

/// The place of a snapshot among those that are known.
pub(crate) fn find(known: &[SnapshotId], asked: &SnapshotId) -> Result<usize, UnknownSnapshot> {
    known.iter().position(|id| id == asked).ok_or_else(|| UnknownSnapshot::new(known, asked))
}

impl UnknownSnapshot {
    fn new<'a>(known: impl IntoIterator<Item = &'a SnapshotId>, asked: &SnapshotId) -> Self {
        let known: Vec<&str> = known.into_iter().map(SnapshotId::as_str).collect();
        Self { asked: asked.clone(), known: known.join(", ") }
    }
}

/// The ids of all snapshots in the store, oldest first, once those `asked` for are found to be among them.
pub(crate) fn known_snapshots<'a>(
    store: &Store,
    asked: impl IntoIterator<Item = &'a SnapshotId>,
) -> Result<Vec<SnapshotId>> {
    let known: Vec<SnapshotId> = store.manifests::<Ingested>()?.into_iter().map(|manifest| manifest.snapshot).collect();
    for asked in asked {
        find(&known, asked)?;
    }
    Ok(known)
}

/// The snapshots that are whole folders and not in the store, and the folders that are cut into windows. A folder goes on
/// as it was begun, whatever the pipeline file says by now.
fn sort_folders(
    corpus: &Corpus,
    folders: BTreeMap<SnapshotId, PathBuf>,
    manifests: &[Manifest<Ingested>],
) -> Result<(Vec<Task>, Vec<CutFolder>)> {
    let mut done: HashMap<&SnapshotId, BTreeMap<Timestamp, &Manifest<Ingested>>> = HashMap::new();
    for manifest in manifests {
        let of = manifest.summary.window.as_ref().map_or(&manifest.snapshot, |window| &window.folder);
        done.entry(of).or_default().insert(manifest.time, manifest);
    }
    let (mut whole, mut cut, mut ages) = (Vec::new(), Vec::new(), Vec::new());
    for (id, path) in folders {
        let windows = done.remove(&id).unwrap_or_default();
        let begun = windows.values().next();
        // What cannot be used has no parts.
        let every = corpus.every.filter(|_| begun.is_some() || SnapshotFolder::open(&path, corpus.layout).is_ok());
        let every = begun.map_or(every, |begun| Some(begun.summary.window.as_ref()?.every));
        let stated = id.stated_time(&corpus.time_zone);
        let age = match stated.or_else(|| windows.keys().next_back().copied()) {
            Some(time) => time,
            None => match newest_capture(corpus, &id, &path)? {
                Some(time) => time,
                None => continue,
            },
        };
        ages.push((age, id.clone()));
        if let Some(every) = every {
            let windows = windows.into_iter();
            let done = windows.filter_map(|(end, manifest)| Some((end, manifest.summary.window.clone()?))).collect();
            let times = FolderTimes { previous: None, time: stated };
            cut.push(CutFolder { id, path, every, done, followed: false, times });
        } else if begun.is_none() {
            whole.push(Task { snapshot: Snapshot { id, time: age }, folder: Some(path), window: None });
        }
    }
    ages.sort();
    for folder in &mut cut {
        let own = ages.iter().position(|(_, id)| *id == folder.id).unwrap_or(0);
        folder.followed = own + 1 < ages.len();
        let before = own.checked_sub(1).map(|before| &ages[before]);
        folder.times.previous = before.and_then(|(_, id)| id.stated_time(&corpus.time_zone));
    }
    Ok((whole, cut))
}

/// The time of a folder whose name states none. One that cannot be used has no place among the others: it is passed over.
fn newest_capture(corpus: &Corpus, id: &SnapshotId, path: &Path) -> Result<Option<Timestamp>> {
    match SnapshotFolder::newest_capture(path, corpus.layout) {
        Ok(Some(time)) => {
            if id.is_mistaken_date() {
                log::warn!("snapshot {id}: that is no date; its time is that of its newest capture, {time}");
            }
            Ok(Some(time))
        }
        Ok(None) => bail!("snapshot {id}: neither its name nor any capture states a time; name it like 2024-03-01"),
        Err(error) => {
            log::warn!("{} is passed over: {error}", path.display());
            Ok(None)
        }
    }
}

fn order(snapshot: &Snapshot) -> (Timestamp, &SnapshotId) {
    (snapshot.time, &snapshot.id)
}

impl Inventory {
    /// Lists the snapshots of the archive and those in the store. Those that were dropped are passed over, but for the one
    /// that `comes_back`.
    pub(crate) fn take(
        pipeline: &Pipeline,
        store: Option<&Store>,
        how: Taking,
        comes_back: Option<&SnapshotId>,
    ) -> Result<Self> {
        let manifests = match store {
            Some(store) => ingested(store)?,
            None => Vec::new(),
        };
        let first_kept = match store {
            Some(store) => store.first_kept()?,
            None => None,
        };
        let mut dropped = match store {
            Some(store) => store.dropped()?,
            None => BTreeSet::new(),
        };
        comes_back.map(|id| dropped.remove(id));
        let mut folders = folders(pipeline, manifests.is_empty())?;
        let mut inventory = Self::default();
        inventory.dropped.extend(folders.extract_if(.., |id, _| dropped.contains(id)).map(|(id, _)| id));
        for manifest in &manifests {
            let id = &manifest.snapshot;
            let of = manifest.summary.window.as_ref().map_or(id, |window| &window.folder);
            inventory.done.insert(id.clone());
            inventory.tasks.push(Task {
                snapshot: Snapshot { id: id.clone(), time: manifest.time },
                folder: folders.get(of).cloned(),
                window: None,
            });
        }
        let (whole, cut) = sort_folders(&pipeline.corpus, folders, &manifests)?;
        inventory.tasks.extend(whole);
        let cutter = Cutter { corpus: &pipeline.corpus, store, newest: manifests.last(), how };
        for folder in &cut {
            inventory.add_windows(cutter.cut(folder)?);
        }
        let Self { tasks, done, dropped: passed_over, .. } = &mut inventory;
        passed_over.extend(tasks.iter().map(|task| &task.snapshot.id).filter(|id| dropped.contains(id)).cloned());
        tasks.retain(|Task { snapshot: Snapshot { id, time }, .. }| {
            let pruned = first_kept.as_ref().is_some_and(|first| first.is_after(*time, id)) && !done.contains(id);
            if pruned {
                log::debug!("snapshot {id} was pruned");
            }
            !pruned && !dropped.contains(id)
        });
        tasks.sort_by(|a, b| order(&a.snapshot).cmp(&order(&b.snapshot)));
        inventory.hold_back();
        inventory.warn_of_equal_times();
        Ok(inventory)
    }

    fn add_windows(&mut self, found: Found) {
        let Found { tasks, open, mut again, late } = found;
        for task in &mut self.tasks {
            task.window = task.window.take().or_else(|| again.remove(&task.snapshot.id));
        }
        self.tasks.extend(tasks);
        self.open.extend(open);
        self.late_captures.extend(late);
    }

    /// Snapshots are done in order of time: none is done before a window that is not over.
    fn hold_back(&mut self) {
        let Self { tasks, done, open, .. } = self;
        let Some(first) = open.iter().map(order).min() else { return };
        tasks.retain(|task| done.contains(&task.snapshot.id) || order(&task.snapshot) < first);
    }

    fn warn_of_equal_times(&self) {
        for pair in self.tasks.windows(2) {
            let [a, b] = [&pair[0].snapshot, &pair[1].snapshot];
            if a.time == b.time && !(self.done.contains(&a.id) && self.done.contains(&b.id)) {
                log::warn!(
                    "snapshots {} and {} have the same time {}; taken in the order of their names",
                    a.id,
                    b.id,
                    a.time
                );
            }
        }
    }

    /// What a run tells whatever it does: windows that are not over, and what it passes over.
    pub(super) fn told(&self, store: PathBuf) -> Summary {
        Summary { store, open_windows: self.open_windows(), dropped: self.dropped.clone(), ..Summary::default() }
    }

    /// The windows that are not over.
    pub(crate) fn open_windows(&self) -> Vec<SnapshotId> {
        self.open.iter().map(|snapshot| snapshot.id.clone()).collect()
    }

    pub(super) fn position(&self, id: &SnapshotId) -> Option<usize> {
        self.tasks.iter().position(|task| task.snapshot.id == *id)
    }

    /// The snapshots up to and including one that must be there.
    pub(super) fn up_to(&self, id: &SnapshotId) -> Result<&[Task], UnknownSnapshot> {
        let known = self.tasks.iter().map(|task| &task.snapshot.id);
        let position = self.position(id).ok_or_else(|| UnknownSnapshot::new(known, id))?;
        Ok(&self.tasks[..=position])
    }

    /// The newest snapshot that is ingested.
    pub(super) fn newest_done(&self) -> Option<&Task> {
        self.tasks.iter().rev().find(|task| self.done.contains(&task.snapshot.id))
    }

    /// A snapshot that is not done though a later one is.
    pub(super) fn late(&self) -> Option<&Task> {
        let newest = &self.newest_done()?.snapshot.id;
        let before = self.tasks.iter().take_while(|task| task.snapshot.id != *newest);
        before.into_iter().find(|task| !self.done.contains(&task.snapshot.id))
    }
}
