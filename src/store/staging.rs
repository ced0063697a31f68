//! How a partition gets into the store: written and synced beside it, renamed into place, then named by a manifest.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::SchemaRef;
use fs_err as fs;

use super::intent::Intent;
use super::manifest::{Manifest, SnapshotDone, Summary};
use super::parquet::{BatchWriter, PartitionWriter};
use super::{PART, Result, Store, remove_dir_if_there};
use crate::model::{Snapshot, SnapshotId, StageId};
use crate::tables::record::Table;

/// Work in progress of one stage on one snapshot.
pub struct Staging<'a> {
    store: &'a Store,
    dir: PathBuf,
    stage: StageId,
    snapshot: SnapshotId,
    tables: Vec<String>,
    /// What is done for the snapshots before.
    earlier: Vec<Arc<SnapshotDone>>,
}

impl Store {
    /// Starts work on a snapshot: what an interrupted run left of it is dropped. `time` is the snapshot's.
    pub fn stage(&self, stage: StageId, snapshot: &Snapshot) -> Result<Staging<'_>> {
        let dir = self.scratch_dir(&format!("{stage}-{}", snapshot.id))?;
        self.make_room(stage);
        let all = self.all_done()?;
        let is_earlier =
            |done: &Arc<SnapshotDone>| (done.snapshot.time, &done.snapshot.id) < (snapshot.time, &snapshot.id);
        let earlier = all.iter().take_while(|done| is_earlier(done)).cloned().collect();
        Ok(Staging { store: self, dir, stage, snapshot: snapshot.id.clone(), tables: Vec::new(), earlier })
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

    /// Drops partitions that no manifest names: an interrupted run left them.
    pub fn sweep(&self, tables: &[&str]) -> Result<()> {
        let all = self.all_done()?;
        let all: HashMap<&SnapshotId, &Arc<SnapshotDone>> = all.iter().map(|done| (&done.snapshot.id, done)).collect();
        for table in tables {
            for table in self.tables_below(table)? {
                for id in self.partitions(&table)? {
                    if all.get(&id).is_none_or(|done| done.table(&table).is_none()) {
                        log::debug!("dropping {table} of {id}, which no manifest names");
                        self.drop_partition(&table, &id)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Replaces partitions of a snapshot by finished files, together with what the manifest says of them. The lineage
    /// stays: the tables say the same in another way.
    pub fn replace<S: Summary>(
        &self,
        manifest: &Manifest<S>,
        files: &[(PathBuf, String)],
        staging: &Path,
    ) -> Result<()> {
        let place = |table: &str| self.inside(&self.partition_file(table, &manifest.snapshot));
        let moved = files.iter().filter(|(file, _)| file.exists());
        let moves = moved.map(|(file, table)| (self.inside(file), place(table))).collect();
        // A partition that has no rows any more has no file.
        let gone = files.iter().filter(|(file, table)| !file.exists() && manifest.bytes(table) == 0);
        let removals = gone.map(|(_, table)| place(table)).collect();
        let (path, bytes) = self.manifest_bytes(manifest)?;
        let text = String::from_utf8(bytes).expect("JSON is UTF-8");
        let writes = vec![(self.inside(&path), text)];
        self.carry_out(&Intent { moves, writes, removals, staging: self.inside(staging) })?;
        self.forget_done(&manifest.snapshot);
        Ok(())
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
        let first = self.is_first(T::NAME);
        Ok(PartitionWriter::create(&self.staged(T::NAME)?)?.first_of_table(first).keeping(self.store.shelf()))
    }

    /// Opens a partition of a table whose schema is made at run time.
    pub fn batch_writer(&mut self, table: &str, schema: SchemaRef) -> Result<BatchWriter> {
        let first = self.is_first(table);
        Ok(BatchWriter::create(&self.staged(table)?, schema)?.first_of_table(first).keeping(self.store.shelf()))
    }

    /// Whether no earlier snapshot has a file of the table.
    fn is_first(&self, table: &str) -> bool {
        !self.earlier.iter().any(|done| done.table(table).is_some_and(|written| written.bytes > 0))
    }

    fn staged(&mut self, table: &str) -> Result<PathBuf> {
        self.tables.push(table.to_owned());
        let file = self.staged_file(table);
        fs::create_dir_all(file.parent().expect("a file has a folder"))?;
        Ok(file)
    }

    fn staged_file(&self, table: &str) -> PathBuf {
        self.dir.join(table).join(PART)
    }

    /// Puts finished partitions into place and names them in the manifest, which is sealed. What the manifest named before
    /// and names no more is removed.
    pub fn commit<S: Summary>(self, manifest: &mut Manifest<S>) -> Result<()> {
        debug_assert_eq!((S::STAGE, &manifest.snapshot), (self.stage, &self.snapshot));
        let store = self.store;
        manifest.made_of = store.made_of(&self.snapshot)?;
        Store::sealed(manifest);
        let mut intent = Intent { staging: store.inside(&self.dir), ..Intent::default() };
        for table in &self.tables {
            let from = self.staged_file(table);
            if from.exists() {
                let to = store.partition_file(table, &self.snapshot);
                intent.moves.push((store.inside(&from), store.inside(&to)));
            }
        }
        if let Some(before) = store.done(self.stage, &self.snapshot)? {
            for (table, _) in before.tables.iter().filter(|(_, written)| written.bytes > 0) {
                let file = store.inside(&store.partition_file(table, &self.snapshot));
                if !intent.moves.iter().any(|(_, to)| *to == file) && manifest.bytes(table) == 0 {
                    intent.removals.push(file);
                }
            }
        }
        let (path, bytes) = store.manifest_bytes(manifest)?;
        let text = String::from_utf8(bytes).expect("JSON is UTF-8");
        intent.writes.push((store.inside(&path), text));
        store.carry_out(&intent)?;
        store.forget_done(&self.snapshot);
        Ok(())
    }
}
