//! What is done: one file per (stage, snapshot), written after everything that it names.
//!
//! A manifest also carries what its stage leaves for later ones, as a typed [`Summary`]. Reading is strict: a manifest
//! of another version, or one with a field too few or too many, is an error that names the file and what to do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::{Result, Store, StoreError, read_json, remove_file_if_there, sync_dir, write_json};
use crate::model::{Digest, Snapshot, SnapshotId, StageId, Timestamp};

/// What a stage leaves for later ones.
pub trait Summary: Serialize + DeserializeOwned {
    const STAGE: StageId;
    /// Raised when a field comes, goes or changes its meaning.
    const VERSION: u32;
}

/// A stage is done for a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest<S> {
    pub snapshot: SnapshotId,
    /// The snapshot's time, which orders snapshots.
    pub time: Timestamp,
    /// Version of the program that wrote it.
    pub ratoon: String,
    /// What was read: folder listing, earlier manifests.
    pub inputs: Digest,
    /// Settings that the result depends on.
    pub settings: Digest,
    /// Rows per table.
    pub tables: BTreeMap<String, u64>,
    pub seconds: f64,
    pub summary: S,
}

/// A manifest without what the stage leaves for others: all that is needed to know that a stage is done.
pub(crate) type Done = Manifest<()>;

impl<S> Manifest<S> {
    pub fn new(snapshot: &Snapshot, inputs: Digest, settings: Digest, summary: S) -> Self {
        Self {
            snapshot: snapshot.id.clone(),
            time: snapshot.time,
            ratoon: env!("CARGO_PKG_VERSION").to_owned(),
            inputs,
            settings,
            tables: BTreeMap::new(),
            seconds: 0.0,
            summary,
        }
    }

    /// Rows that were written to a table.
    #[must_use]
    pub fn rows(&self, table: &str) -> u64 {
        self.tables.get(table).copied().unwrap_or(0)
    }
}

impl<S: Summary> Manifest<S> {
    /// The manifest without its summary.
    #[must_use]
    pub fn done(&self) -> Done {
        Manifest {
            snapshot: self.snapshot.clone(),
            time: self.time,
            ratoon: self.ratoon.clone(),
            inputs: self.inputs,
            settings: self.settings,
            tables: self.tables.clone(),
            seconds: self.seconds,
            summary: (),
        }
    }
}

/// A manifest as it lies on disk.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<S> {
    stage: StageId,
    version: u32,
    snapshot: SnapshotId,
    time: Timestamp,
    ratoon: String,
    inputs: Digest,
    settings: Digest,
    tables: BTreeMap<String, u64>,
    seconds: f64,
    summary: S,
}

impl<S> File<S> {
    fn into_manifest<T>(self, summary: T) -> Manifest<T> {
        Manifest {
            snapshot: self.snapshot,
            time: self.time,
            ratoon: self.ratoon,
            inputs: self.inputs,
            settings: self.settings,
            tables: self.tables,
            seconds: self.seconds,
            summary,
        }
    }
}

impl Store {
    fn manifest_file(&self, stage: StageId, snapshot: &SnapshotId) -> PathBuf {
        self.meta().join(stage.as_str()).join(format!("{snapshot}.json"))
    }

    /// The manifest of a stage for a snapshot; `None` if the stage is not done for it.
    pub fn manifest<S: Summary>(&self, snapshot: &SnapshotId) -> Result<Option<Manifest<S>>> {
        self.note_manifest(S::STAGE)?;
        read(&self.manifest_file(S::STAGE, snapshot))
    }

    /// All manifests of a stage, oldest snapshot first.
    pub fn manifests<S: Summary>(&self) -> Result<Vec<Manifest<S>>> {
        self.note_manifest(S::STAGE)?;
        self.all_manifests(S::STAGE, read)
    }

    /// Whether a stage is done for a snapshot, whatever its summary says.
    pub fn done(&self, stage: StageId, snapshot: &SnapshotId) -> Result<Option<Done>> {
        read_done(&self.manifest_file(stage, snapshot))
    }

    /// The snapshots that a stage is done for, oldest first.
    pub fn all_done(&self, stage: StageId) -> Result<Vec<Done>> {
        self.all_manifests(stage, read_done)
    }

    fn all_manifests<S>(
        &self,
        stage: StageId,
        read: impl Fn(&Path) -> Result<Option<Manifest<S>>>,
    ) -> Result<Vec<Manifest<S>>> {
        let dir = self.meta().join(stage.as_str());
        let mut manifests = Vec::new();
        if dir.is_dir() {
            for entry in fs::read_dir(&dir)? {
                let path = entry?.path();
                if path.extension().is_some_and(|e| e == "json") {
                    manifests.extend(read(&path)?);
                }
            }
        }
        manifests.sort_by(|a, b| (a.time, &a.snapshot).cmp(&(b.time, &b.snapshot)));
        Ok(manifests)
    }

    /// Changes what a manifest says.
    pub fn replace_manifest<S: Summary>(&self, manifest: &Manifest<S>) -> Result<()> {
        self.write_manifest(manifest)
    }

    pub(super) fn write_manifest<S: Summary>(&self, manifest: &Manifest<S>) -> Result<()> {
        let path = self.manifest_file(S::STAGE, &manifest.snapshot);
        let dir = path.parent().expect("a file has a folder");
        if !dir.is_dir() {
            fs::create_dir_all(dir)?;
            sync_dir(&self.meta())?;
        }
        let Done { snapshot, time, ratoon, inputs, settings, tables, seconds, summary: () } = manifest.done();
        let (stage, version, summary) = (S::STAGE, S::VERSION, &manifest.summary);
        write_json(&path, &File { stage, version, snapshot, time, ratoon, inputs, settings, tables, seconds, summary })
    }

    /// From now on the stage has not been done for this snapshot.
    pub fn forget(&self, stage: StageId, snapshot: &SnapshotId) -> Result<()> {
        remove_file_if_there(&self.manifest_file(stage, snapshot))
    }
}

fn read<S: Summary>(path: &Path) -> Result<Option<Manifest<S>>> {
    let Some(mut file) = read_json::<File<serde_json::Value>>(path)? else { return Ok(None) };
    let bad = |problem: String| StoreError::Manifest { path: path.to_owned(), stage: S::STAGE, problem };
    if file.version != S::VERSION {
        return Err(bad(format!("version {}, this program reads {}", file.version, S::VERSION)));
    }
    let summary = S::deserialize(file.summary.take()).map_err(|error| bad(format!("summary: {error}")))?;
    Ok(Some(file.into_manifest(summary)))
}

fn read_done(path: &Path) -> Result<Option<Done>> {
    Ok(read_json::<File<IgnoredAny>>(path)?.map(|file| file.into_manifest(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Counted {
        pages: u64,
    }

    impl Summary for Counted {
        const STAGE: StageId = StageId::Ingest;
        const VERSION: u32 = 3;
    }

    #[test]
    fn what_a_manifest_lacks_is_told_and_never_made_up() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path()).unwrap();
        let snapshot = Snapshot { id: SnapshotId::new("n1").unwrap(), time: Timestamp(7) };
        let manifest = Manifest::new(&snapshot, Digest::of(b"i"), Digest::of(b"s"), Counted { pages: 5 });
        store.write_manifest(&manifest).unwrap();
        assert_eq!(store.manifest::<Counted>(&snapshot.id).unwrap().unwrap(), manifest);
        assert_eq!(store.all_done(StageId::Ingest).unwrap(), [manifest.done()]);
        let path = store.manifest_file(StageId::Ingest, &snapshot.id);
        let sound = fs::read_to_string(&path).unwrap();
        for (from, to, said) in [
            ("\"pages\": 5", "", "missing field `pages`"),
            ("\"pages\": 5", "\"pages\": 5, \"page\": 5", "unknown field `page`"),
            ("\"version\": 3", "\"version\": 2", "version 2, this program reads 3"),
            ("\"ingest\"", "\"swallow\"", "unknown variant `swallow`"),
        ] {
            assert!(sound.contains(from), "{sound}");
            fs::write(&path, sound.replace(from, to)).unwrap();
            let error = store.manifest::<Counted>(&snapshot.id).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("n1.json"), "{error}");
        }
    }
}
