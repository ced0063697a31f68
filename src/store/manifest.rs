//! What is done: one file per (stage, snapshot), written after everything that it names.

use std::collections::BTreeMap;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{Result, Store, read_json, remove_file_if_there, sync_dir, write_json};
use crate::model::{Digest, SnapshotId, Timestamp};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub stage: String,
    pub snapshot: SnapshotId,
    /// The snapshot's time, which orders snapshots.
    pub time: Timestamp,
    /// Version of the program that wrote it.
    pub ratoon: String,
    /// What was read: folder listing, earlier manifests.
    pub inputs: Digest,
    /// Settings that the result depends on.
    pub settings: Digest,
    /// The `ignore` rules among them.
    #[serde(default)]
    pub ignore: Option<Digest>,
    /// Rows per table.
    pub tables: BTreeMap<String, u64>,
    /// Holds the text and links of every page, not only of changed ones.
    #[serde(default)]
    pub base: bool,
    pub seconds: f64,
    /// What the stage wants to say about itself.
    #[serde(default)]
    pub summary: serde_json::Value,
}

impl Manifest {
    /// Digest of the `ignore` rules; of none where the stage does not know any.
    #[must_use]
    pub fn ignore_digest(&self) -> Digest {
        self.ignore.unwrap_or_else(|| Digest::of(b""))
    }
}

impl Store {
    pub fn manifest(&self, stage: &str, snapshot: &SnapshotId) -> Result<Option<Manifest>> {
        read_json(&self.meta().join(stage).join(format!("{snapshot}.json")))
    }

    /// All manifests of a stage, oldest snapshot first.
    pub fn manifests(&self, stage: &str) -> Result<Vec<Manifest>> {
        let dir = self.meta().join(stage);
        let mut manifests = Vec::new();
        if dir.is_dir() {
            for entry in fs::read_dir(&dir)? {
                let path = entry?.path();
                if path.extension().is_some_and(|e| e == "json")
                    && let Some(manifest) = read_json::<Manifest>(&path)?
                {
                    manifests.push(manifest);
                }
            }
        }
        manifests.sort_by(|a, b| (a.time, &a.snapshot).cmp(&(b.time, &b.snapshot)));
        Ok(manifests)
    }

    /// Changes what a manifest says.
    pub fn replace_manifest(&self, manifest: &Manifest) -> Result<()> {
        self.write_manifest(manifest)
    }

    pub(super) fn write_manifest(&self, manifest: &Manifest) -> Result<()> {
        let dir = self.meta().join(&manifest.stage);
        if !dir.is_dir() {
            fs::create_dir_all(&dir)?;
            sync_dir(&self.meta())?;
        }
        write_json(&dir.join(format!("{}.json", manifest.snapshot)), manifest)
    }

    /// From now on the stage has not been done for this snapshot.
    pub fn forget(&self, stage: &str, snapshot: &SnapshotId) -> Result<()> {
        remove_file_if_there(&self.meta().join(stage).join(format!("{snapshot}.json")))
    }
}
