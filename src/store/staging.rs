//! How a partition gets into the store: written and synced beside it, renamed into place, then named by a manifest.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::manifest::Manifest;
use super::parquet::PartitionWriter;
use super::{PART, Result, Store, remove_dir_if_there, sync_dir};
use crate::model::SnapshotId;
use crate::tables::record::Table;

/// Work in progress of one stage on one snapshot.
pub struct Staging<'a> {
    store: &'a Store,
    dir: PathBuf,
    stage: String,
    snapshot: SnapshotId,
    tables: Vec<String>,
}

impl Store {
    /// Starts work on a snapshot: what an interrupted run left of it is dropped.
    pub fn stage(&self, stage: &str, snapshot: &SnapshotId) -> Result<Staging<'_>> {
        let dir = self.staging().join(format!("{stage}-{snapshot}"));
        remove_dir_if_there(&dir)?;
        fs::create_dir_all(&dir)?;
        Ok(Staging { store: self, dir, stage: stage.to_owned(), snapshot: snapshot.clone(), tables: Vec::new() })
    }

    /// Drops what interrupted runs left behind. Only for the holder of the lock.
    pub fn clear_staging(&self) -> Result<()> {
        remove_dir_if_there(&self.staging())
    }

    /// Drops partitions that no manifest of the stage names: an interrupted run left them.
    pub fn sweep(&self, stage: &str, tables: &[&str]) -> Result<()> {
        let done: Vec<SnapshotId> = self.manifests(stage)?.into_iter().map(|manifest| manifest.snapshot).collect();
        for table in tables {
            let dir = self.root().join(table);
            if !dir.is_dir() {
                continue;
            }
            for entry in fs::read_dir(&dir)? {
                let path = entry?.path();
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let id = name.strip_prefix("snapshot=").and_then(|id| SnapshotId::new(id).ok());
                if id.is_some_and(|id| !done.contains(&id)) {
                    log::debug!("dropping {}, which no manifest names", path.display());
                    remove_dir_if_there(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Drops a folder of the store that is no table, if it is there.
    pub fn remove_folder(&self, path: &Path) -> Result<()> {
        remove_dir_if_there(path)
    }

    /// Drops a partition, if it is there.
    pub fn drop_partition(&self, table: &str, snapshot: &SnapshotId) -> Result<()> {
        remove_dir_if_there(&self.partition_dir(table, snapshot))
    }
}

impl Staging<'_> {
    /// A folder for files that only this stage sees; gone after commit.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens a partition of `T` for writing.
    pub fn writer<T: Table>(&mut self) -> Result<PartitionWriter<T>> {
        self.tables.push(T::NAME.to_owned());
        let dir = self.staged_dir(T::NAME);
        fs::create_dir_all(&dir)?;
        PartitionWriter::create(&dir.join(PART))
    }

    fn staged_dir(&self, table: &str) -> PathBuf {
        self.dir.join(table).join(format!("snapshot={}", self.snapshot))
    }

    /// Renames finished partitions into place, then `more` (other files, as pairs of staged and final path), then
    /// writes the manifest.
    pub fn commit(self, manifest: &Manifest, more: &[(PathBuf, PathBuf)]) -> Result<()> {
        debug_assert_eq!((&manifest.stage, &manifest.snapshot), (&self.stage, &self.snapshot));
        for table in &self.tables {
            let from = self.staged_dir(table);
            let to = self.store.partition_dir(table, &self.snapshot);
            let table_dir = to.parent().expect("a partition lies in its table");
            fs::create_dir_all(table_dir)?;
            sync_dir(&from)?;
            if to.exists() {
                // A partition is one file, so that replacing it is one atomic rename.
                fs::rename(from.join(PART), to.join(PART))?;
                sync_dir(&to)?;
            } else {
                fs::rename(&from, &to)?;
            }
            sync_dir(table_dir)?;
        }
        for (from, to) in more {
            let dir = to.parent().expect("a file has a folder");
            fs::create_dir_all(dir)?;
            fs::rename(from, to)?;
            sync_dir(dir)?;
        }
        sync_dir(self.store.root())?;
        self.store.write_manifest(manifest)?;
        fs::remove_dir_all(&self.dir)?;
        Ok(())
    }
}
