//! Folders that changed since they were ingested: what is in them now would be missed in silence.
//!
//! To read all archives again every night would cost more than the night. So it is remembered of every folder how many
//! files it had, which, and when the newest of them was last touched (by its change time, which nobody can set back).
//! Only a folder in which a file was touched since is looked at more closely. The newest snapshot is looked at by every
//! run, the others a few at a time.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::inventory::Inventory;
use super::problems::TOLD;
use super::stage::{Again, Task};
use crate::archive::{SnapshotFolder, Traces};
use crate::config::Pipeline;
use crate::manifests::Ingested;
use crate::model::{SnapshotId, StageId};
use crate::store::{Store, StoreError};

const FILE: &str = "folders";
/// So many files are looked at in a run, besides those of the newest snapshot: a night costs what it brought, however many
/// came before it. An edit of an old folder is told some runs later.
const FILES: u64 = 1_024;
/// A folder takes as long as so many files, if it has fewer.
const FOLDER: u64 = 8;
/// So many folders are named.
const NAMED: usize = 5;

/// What is remembered of folders.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remembered {
    folders: BTreeMap<SnapshotId, Traces>,
    /// Where the next run goes on looking.
    next: Option<SnapshotId>,
}

/// What is remembered. If it cannot be read all folders are looked at again.
fn remembered(store: &Store) -> Result<Remembered> {
    match store.meta_file(FILE) {
        Err(StoreError::Json { .. }) => Ok(Remembered::default()),
        other => Ok(other?.unwrap_or_default()),
    }
}

/// Remembers folders as they were before they were read.
pub(super) fn remember(store: &Store, read: Vec<(SnapshotId, Traces)>) -> Result<()> {
    if read.is_empty() {
        return Ok(());
    }
    let mut remembered = remembered(store)?;
    remembered.folders.extend(read);
    Ok(store.write_meta_file(FILE, &remembered)?)
}

/// Says which folders changed since they were ingested.
pub(super) fn tell_changed(pipeline: &Pipeline, store: &Store, inventory: &Inventory, again: &Again) -> Result<()> {
    let mut remembered = remembered(store)?;
    let mut changed: Vec<&SnapshotId> = Vec::new();
    let done: Vec<&Task> = inventory.tasks.iter().filter(|task| inventory.done.contains(&task.snapshot.id)).collect();
    let Some((newest, older)) = done.split_last() else { return Ok(()) };
    let start = older.iter().position(|task| Some(&task.snapshot.id) == remembered.next.as_ref()).unwrap_or(0);
    let (before, from) = older.split_at(start);
    let mut files = 0;
    let (mut next, mut learned) = (None, Vec::new());
    for task in [newest].into_iter().chain(from).chain(before) {
        if files > FILES {
            next = Some(task.snapshot.id.clone());
            break;
        }
        if again.contains(&(StageId::Ingest, task.snapshot.id.clone())) {
            continue;
        }
        let known = remembered.folders.get(&task.snapshot.id);
        let looked = look(pipeline, store, task, known)?;
        changed.extend(looked.differs.then_some(&task.snapshot.id));
        files += if std::ptr::eq(task, newest) { 0 } else { looked.files.max(FOLDER) };
        learned.extend(looked.copied.map(|traces| (task.snapshot.id.clone(), traces)));
    }
    if next != remembered.next || !learned.is_empty() {
        remembered.folders.extend(learned);
        remembered.next = next;
        store.write_meta_file(FILE, &remembered)?;
    }
    changed.sort_by_key(|id| inventory.position(id));
    let path = pipeline.path.display();
    for id in changed.iter().take(NAMED) {
        log::warn!(
            target: TOLD,
            "the folder of snapshot {id} changed since it was ingested; `ratoon run {path} --force --snapshot {id}` does it again"
        );
    }
    if let Some(more) = changed.len().checked_sub(NAMED).filter(|more| *more > 0) {
        log::warn!(target: TOLD, "and the folders of {more} later snapshots");
    }
    Ok(())
}

/// What a look at a folder told.
#[derive(Default)]
struct Looked {
    /// It is not as it was.
    differs: bool,
    files: u64,
    /// It is, but its files are others than those remembered.
    copied: Option<Traces>,
}

fn look(pipeline: &Pipeline, store: &Store, task: &Task, known: Option<&Traces>) -> Result<Looked> {
    let (Some(folder), Some(manifest)) = (&task.folder, store.manifest::<Ingested>(&task.snapshot.id)?) else {
        return Ok(Looked::default());
    };
    // What comes to a folder that is cut into windows is told with them.
    if manifest.summary.window.is_some() {
        return Ok(Looked::default());
    }
    let traces = Traces::of(folder);
    let files = traces.files();
    if known.is_some_and(|known| *known == traces || traces.edited_since(known)) {
        return Ok(Looked { differs: known != Some(&traces), files, copied: None });
    }
    // It was copied, or was never looked at: names, sizes and the ends of files decide.
    let print = match manifest.summary.unusable {
        true => SnapshotFolder::listing(folder),
        false => SnapshotFolder::open(folder, pipeline.corpus.layout)
            .and_then(|folder| folder.fingerprint())
            .unwrap_or_else(|_| SnapshotFolder::listing(folder)),
    };
    let differs = store.done(StageId::Ingest, &task.snapshot.id)?.is_some_and(|done| done.inputs != print);
    Ok(Looked { differs, files, copied: (!differs).then_some(traces) })
}

/// Whether the newest snapshot gave nothing when its folder was read, and the folder is another now.
pub(super) fn newest_was_filled(store: &Store, inventory: &Inventory) -> Result<Option<SnapshotId>> {
    let Some(Task { snapshot, folder: Some(folder), .. }) = inventory.newest_done() else { return Ok(None) };
    let manifest = store.manifest::<Ingested>(&snapshot.id)?;
    let unusable = manifest.filter(|manifest| manifest.summary.unusable);
    let filled = unusable.is_some_and(|manifest| manifest.inputs != SnapshotFolder::listing(folder));
    Ok(filled.then(|| snapshot.id.clone()))
}
