//! Which snapshots there are, in the archive and in the store, and in which order.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use super::stage::Task;
use crate::archive::{SnapshotFolder, list_snapshots};
use crate::config::Pipeline;
use crate::manifests::Ingested;
use crate::model::{Snapshot, SnapshotId, Timestamp};
use crate::store::Store;
use crate::store::manifest::Manifest;

/// Every snapshot, done or not, in order.
pub(crate) struct Inventory {
    pub tasks: Vec<Task>,
    pub done: HashSet<SnapshotId>,
}

/// The snapshot folders of the archive; if one is `needed`, there must be one.
pub(super) fn folders(pipeline: &Pipeline, needed: bool) -> Result<BTreeMap<SnapshotId, PathBuf>> {
    let root = &pipeline.corpus.snapshots;
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

/// A snapshot that somebody named and that the store does not have.
#[derive(Debug, thiserror::Error)]
#[error("no snapshot {asked} in the store; there are {known}")]
pub(crate) struct UnknownSnapshot {
    asked: SnapshotId,
    known: String,
}

/// The place of a snapshot among those that are known.
pub(crate) fn find(known: &[SnapshotId], asked: &SnapshotId) -> Result<usize, UnknownSnapshot> {
    known.iter().position(|id| id == asked).ok_or_else(|| UnknownSnapshot {
        asked: asked.clone(),
        known: known.iter().map(SnapshotId::as_str).collect::<Vec<_>>().join(", "),
    })
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

fn order(snapshot: &Snapshot) -> (Timestamp, &SnapshotId) {
    (snapshot.time, &snapshot.id)
}

impl Inventory {
    /// Lists the snapshots of the archive and those in the store.
    pub(crate) fn take(pipeline: &Pipeline, store: Option<&Store>) -> Result<Self> {
        let corpus = &pipeline.corpus;
        let manifests = match store {
            Some(store) => ingested(store)?,
            None => Vec::new(),
        };
        let first_kept = match store {
            Some(store) => store.first_kept()?,
            None => None,
        };
        let mut folders = folders(pipeline, manifests.is_empty())?;
        let mut tasks = Vec::new();
        let mut done = HashSet::new();
        for manifest in manifests {
            let folder = folders.remove(&manifest.snapshot);
            done.insert(manifest.snapshot.clone());
            tasks.push(Task { snapshot: Snapshot { id: manifest.snapshot, time: manifest.time }, folder });
        }
        for (id, folder) in folders {
            let time = match id.stated_time(&corpus.time_zone) {
                Some(time) => time,
                None => SnapshotFolder::newest_capture(&folder, corpus.layout)?.with_context(|| {
                    format!("snapshot {id}: neither its name nor any capture states a time; name it like 2024-03-01")
                })?,
            };
            if first_kept.as_ref().is_some_and(|first| first.is_after(time, &id)) {
                log::debug!("snapshot {id} was pruned");
                continue;
            }
            tasks.push(Task { snapshot: Snapshot { id, time }, folder: Some(folder) });
        }
        tasks.sort_by(|a, b| order(&a.snapshot).cmp(&order(&b.snapshot)));
        let inventory = Self { tasks, done };
        inventory.warn_of_equal_times();
        Ok(inventory)
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

    pub(super) fn position(&self, id: &SnapshotId) -> Option<usize> {
        self.tasks.iter().position(|task| task.snapshot.id == *id)
    }

    /// The snapshots up to and including one that must be there.
    pub(super) fn up_to(&self, id: &SnapshotId) -> Result<&[Task]> {
        let known = || self.tasks.iter().map(|task| task.snapshot.id.as_str()).collect::<Vec<_>>().join(", ");
        let position = self.position(id).with_context(|| format!("no snapshot {id}; there are {}", known()))?;
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
