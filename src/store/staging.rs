//! How a partition gets into the store: written and synced beside it, renamed into place, then named by a manifest.

use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use fs_err as fs;

use super::manifest::{Manifest, Summary};
use super::parquet::{BatchWriter, PartitionWriter};
use super::{PART, Result, Store, remove_dir_if_there, sync_dir};
use crate::model::{SnapshotId, StageId};
use crate::tables::record::Table;

/// Work in progress of one stage on one snapshot.
pub struct Staging<'a> {
    store: &'a Store,
    dir: PathBuf,
    stage: StageId,
    snapshot: SnapshotId,
    tables: Vec<String>,
}

impl Store {
    /// Starts work on a snapshot: what an interrupted run left of it is dropped.
    pub fn stage(&self, stage: StageId, snapshot: &SnapshotId) -> Result<Staging<'_>> {
        let dir = self.scratch_dir(&format!("{stage}-{snapshot}"))?;
        Ok(Staging { store: self, dir, stage, snapshot: snapshot.clone(), tables: Vec::new() })
    }

    /// Drops what interrupted runs left behind. Only for the holder of the lock.
    pub fn clear_staging(&self) -> Result<()> {
        remove_dir_if_there(&self.staging())
    }

    /// The snapshots that a table has partitions of.
    pub fn partitions(&self, table: &str) -> Result<Vec<SnapshotId>> {
        let dir = self.root().join(table);
        let mut ids = Vec::new();
        if dir.is_dir() {
            for entry in fs::read_dir(&dir)? {
                let name = entry?.file_name();
                let id = name.to_str().and_then(|name| name.strip_prefix("snapshot="));
                ids.extend(id.and_then(|id| SnapshotId::new(id).ok()));
            }
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// A table and the tables inside it: mentions have one for each extractor.
    pub fn tables_below(&self, table: &str) -> Result<Vec<String>> {
        let dir = self.root().join(table);
        let mut tables = vec![table.to_owned()];
        if dir.is_dir() {
            for entry in fs::read_dir(&dir)? {
                let name = entry?.file_name();
                let inner = name.to_str().filter(|name| !name.starts_with("snapshot="));
                tables.extend(inner.map(|name| format!("{table}/{name}")));
            }
        }
        tables.sort_unstable();
        Ok(tables)
    }

    /// Drops partitions that no manifest of the stage names: an interrupted run left them.
    pub fn sweep(&self, stage: StageId, tables: &[&str]) -> Result<()> {
        let done: Vec<SnapshotId> = self.all_done(stage)?.into_iter().map(|manifest| manifest.snapshot).collect();
        for table in tables {
            for table in self.tables_below(table)? {
                for id in self.partitions(&table)?.into_iter().filter(|id| !done.contains(id)) {
                    log::debug!("dropping {table} of {id}, which no manifest names");
                    self.drop_partition(&table, &id)?;
                }
            }
        }
        Ok(())
    }

    /// Replaces a partition's file by what `write` makes of each shard.
    pub fn rewrite(
        &self,
        file: &Path,
        schema: SchemaRef,
        mut write: impl FnMut(u32, &mut BatchWriter) -> Result<()>,
    ) -> Result<()> {
        fs::create_dir_all(self.staging())?;
        let staged = self.staging().join("rewrite.parquet");
        let mut writer = BatchWriter::create(&staged, schema)?;
        for shard in 0..self.shards() {
            write(shard, &mut writer)?;
        }
        writer.finish()?;
        fs::rename(&staged, file)?;
        sync_dir(file.parent().expect("a file has a folder"))
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

    /// Opens a partition of a table whose schema is made at run time.
    pub fn batch_writer(&mut self, table: &str, schema: SchemaRef) -> Result<BatchWriter> {
        self.tables.push(table.to_owned());
        let dir = self.staged_dir(table);
        fs::create_dir_all(&dir)?;
        BatchWriter::create(&dir.join(PART), schema)
    }

    fn staged_dir(&self, table: &str) -> PathBuf {
        self.dir.join(table).join(format!("snapshot={}", self.snapshot))
    }

    /// Renames finished partitions into place, then `more` (other files, as pairs of staged and final path), then
    /// writes the manifest.
    pub fn commit<S: Summary>(self, manifest: &Manifest<S>, more: &[(PathBuf, PathBuf)]) -> Result<()> {
        debug_assert_eq!((S::STAGE, &manifest.snapshot), (self.stage, &self.snapshot));
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
