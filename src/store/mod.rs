//! The store: tables on disk as Hive-partitioned Parquet, what is done, who works on it.
//!
//! ```text
//! <root>/<table>/snapshot=<id>/part-00000.parquet
//! <root>/report.html                what people look at; follows the tables
//! <root>/_meta/store.json            format, number of shards
//! <root>/_meta/snapshots/<id>.json   manifest, written last: what no manifest names is not there
//! <root>/_meta/index/                what stages need by URL or digest; follows the tables, can always be made again
//! <root>/_meta/answers/              answers that were paid for: no cache, never made again
//! <root>/_meta/catalogue              what all manifests say, in one file
//! <root>/_meta/accepted             snapshots whose problems a person has acknowledged
//! <root>/_meta/dropped              snapshots whose folders are passed over
//! <root>/_meta/intent.json           a replacement under way, which the next run completes
//! <root>/.staging/                   work in progress, same filesystem
//! ```
//! With `archive` the only part of the library that touches the disk.

mod accepted;
pub(crate) mod answers;
mod at_hand;
pub(crate) mod batches;
mod catalogue;
mod dropped;
pub(crate) mod files;
pub(crate) mod frames;
mod guarded;
pub(crate) mod index;
pub(crate) mod integrity;
mod intent;
pub(crate) mod lock;
pub(crate) mod logs;
pub(crate) mod manifest;
mod memory;
pub(crate) mod outbox;
pub(crate) mod parquet;
pub(crate) mod passes;
mod pruned;
pub(crate) mod runs;
pub(crate) mod scratch;
mod shards;
pub(crate) mod staging;
pub(crate) mod state;
pub(crate) mod sums;
pub(crate) mod texts;
pub(crate) mod view;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use self::guarded::{guarded, without_panic};
pub(crate) use self::memory::AtHand;
use self::memory::Memory;
use self::parquet::Partition;
use self::view::View;
use crate::model::{Digest, SnapshotId, StageId};

pub(crate) const PART: &str = "part-00000.parquet";
/// What people look at, beside the tables.
pub(crate) const REPORT: &str = "report.html";
pub const DEFAULT_SHARDS: u32 = 16;
/// Raised when older programs could no longer read a store, or this one an older store.
const FORMAT: u32 = 5;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{path}: {source}")]
    Parquet { path: PathBuf, source: ::parquet::errors::ParquetError },
    #[error("{path}: {source}")]
    Column { path: PathBuf, source: crate::tables::record::ColumnError },
    #[error("{path}: {source}")]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("{path}: damaged: it is not what was written; `ratoon check PIPELINE` says what repairs it")]
    WentBad { path: PathBuf },
    #[error("{path}: {problem}")]
    Damaged { path: PathBuf, problem: String },
    #[error(transparent)]
    Frame(#[from] polars::error::PolarsError),
    #[error(
        "{path}: {stage}: {problem}; hint: `ratoon run PIPELINE --force --snapshot ID` with this snapshot's id makes it again"
    )]
    Manifest { path: PathBuf, stage: StageId, problem: String },
    #[error("stage {stage} reads {what} without declaring it: a mistake in the program")]
    Undeclared { stage: StageId, what: String },
    #[error("{path}: store format {found}, this program reads {FORMAT}; {}", if *found < FORMAT {
        "it was written by an older ratoon: remove the store, or name another one in the pipeline file, and run again"
    } else {
        "use a newer ratoon or another store"
    })]
    Format { path: PathBuf, found: u32 },
}

/// How often, and after which pauses, a partition is looked at again that is not what its manifest says.
const REPLACED_TRIES: u32 = 4;
const REPLACED_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    shards: u32,
    /// Set while a stage works: what it may read.
    view: Option<View>,
    /// What was read before and has not changed since.
    memory: Memory,
    /// Where work in progress lies, if not in the store.
    workroom: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct StoreFile {
    format: u32,
    shards: u32,
    /// Of the other two: with another number of shards nothing would be found where it lies. Older formats have none.
    #[serde(default)]
    sum: Option<Digest>,
}

impl StoreFile {
    fn new(shards: u32) -> Self {
        Self { format: FORMAT, shards, sum: Some(Self::sum(FORMAT, shards)) }
    }

    fn sum(format: u32, shards: u32) -> Digest {
        Digest::of(format!("{format} {shards}").as_bytes())
    }

    fn read(path: &Path) -> Result<Option<Self>> {
        let damaged = |problem: String| {
            let hint = "remove this file and run again: it says nothing but the format and the number of shards";
            StoreError::Damaged { path: path.to_owned(), problem: format!("{problem}; {hint}") }
        };
        let file = match read_json::<Self>(path) {
            Err(StoreError::Json { source, .. }) => return Err(damaged(source.to_string())),
            other => other?,
        };
        match file {
            Some(Self { format, shards, sum })
                if shards == 0 || sum.map_or(format == FORMAT, |sum| sum != Self::sum(format, shards)) =>
            {
                Err(damaged("damaged: it is not what was written".to_owned()))
            }
            file => Ok(file),
        }
    }
}

impl Store {
    /// Opens the store, or `None` if there is none at `root`.
    pub fn open(root: &Path) -> Result<Option<Self>> {
        let path = root.join("_meta/store.json");
        let Some(file) = StoreFile::read(&path)? else {
            return Ok(None);
        };
        if file.format != FORMAT {
            return Err(StoreError::Format { path, found: file.format });
        }
        Ok(Some(Self::at(root, file.shards)))
    }

    /// Opens the store, making it first if need be.
    pub fn open_or_create(root: &Path) -> Result<Self> {
        Self::open_or_create_with(root, DEFAULT_SHARDS)
    }

    /// The same; a store that is made has so many shards, unless there are tables already.
    pub(crate) fn open_or_create_with(root: &Path, shards: u32) -> Result<Self> {
        if let Some(store) = Self::open(root)? {
            return Ok(store);
        }
        let shards = Self::at(root, shards).shards_of_pages()?;
        fs::create_dir_all(root.join("_meta"))?;
        write_json(&root.join("_meta/store.json"), &StoreFile::new(shards))?;
        Ok(Self::at(root, shards))
    }

    fn at(root: &Path, shards: u32) -> Self {
        Self { root: root.to_owned(), shards, view: None, memory: Memory::default(), workroom: None }
    }

    /// The store of somebody else: it is only read, and work in progress lies in `dir`.
    #[must_use]
    pub(crate) fn working_in(self, dir: &Path) -> Self {
        Self { workroom: Some(dir.to_owned()), ..self }
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    #[must_use]
    pub fn shards(&self) -> u32 {
        self.shards
    }

    /// The shard of a URL: the same in every snapshot, so that old and new page meet.
    #[must_use]
    pub fn shard_of(&self, url: &str) -> u32 {
        shard_of(url, self.shards)
    }

    #[must_use]
    pub fn partition_dir(&self, table: &str, snapshot: &SnapshotId) -> PathBuf {
        self.root.join(table).join(format!("snapshot={snapshot}"))
    }

    #[must_use]
    pub fn partition_file(&self, table: &str, snapshot: &SnapshotId) -> PathBuf {
        self.partition_dir(table, snapshot).join(PART)
    }

    /// Opens a partition for reading. One without rows may have no file.
    pub fn partition(&self, table: &str, snapshot: &SnapshotId) -> Result<Partition> {
        self.note_table(table)?;
        let file = self.partition_file(table, snapshot);
        let mut tries = 0;
        loop {
            let done = self.snapshot_done(snapshot)?;
            let written = done.as_ref().and_then(|done| done.table(table)).filter(|written| written.bytes > 0);
            match self.remembered_partition(&file, written) {
                Ok(Some(partition)) => return Ok(partition),
                Ok(None) if written.is_none() => return Ok(Partition::without_rows(&file)),
                Ok(None) | Err(StoreError::WentBad { .. }) if tries < REPLACED_TRIES => {
                    // Whoever reads without the lock may meet a partition that is just being replaced.
                    tries += 1;
                    self.forget_done(snapshot);
                    std::thread::sleep(REPLACED_PAUSE * tries);
                }
                Ok(None) => {
                    let problem =
                        "the manifest names it, but it is not there; `ratoon check PIPELINE` says what repairs it";
                    return Err(StoreError::Damaged { path: file, problem: problem.to_owned() });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Size of a partition's file; 0 if there is none.
    pub fn partition_bytes(&self, table: &str, snapshot: &SnapshotId) -> Result<u64> {
        self.note_table(table)?;
        let file = self.partition_file(table, snapshot);
        Ok(if file.exists() { fs::metadata(&file)?.len() } else { 0 })
    }

    /// Reads a small file below `_meta`; `None` if it does not exist.
    pub fn meta_file<T: for<'a> Deserialize<'a>>(&self, name: &str) -> Result<Option<T>> {
        read_json(&self.meta().join(name))
    }

    #[must_use]
    pub fn has_meta_file(&self, name: &str) -> bool {
        self.meta().join(name).exists()
    }

    /// Writes a small file below `_meta`, whole or not at all.
    pub fn write_meta_file<T: Serialize>(&self, name: &str, value: &T) -> Result<()> {
        let path = self.meta().join(name);
        fs::create_dir_all(path.parent().expect("a file has a folder"))?;
        write_json(&path, value)
    }

    /// Reads a note below `_meta` that nothing depends on; `None` if there is none, or not as it was written. Numbers come
    /// back to the last bit.
    #[must_use]
    pub(crate) fn noted<T: for<'a> Deserialize<'a>>(&self, name: &str) -> Option<T> {
        let bytes = read_if_there(&self.meta().join(name)).ok()??;
        let (sum, value) = bytes.split_first_chunk::<32>()?;
        (Digest::of(value).to_string().as_bytes() == sum).then(|| postcard::from_bytes(value).ok())?
    }

    /// Writes a note.
    pub(crate) fn note<T: Serialize>(&self, name: &str, value: &T) -> Result<()> {
        let path = self.meta().join(name);
        let value = postcard::to_stdvec(value)
            .map_err(|error| StoreError::Damaged { path: path.clone(), problem: error.to_string() })?;
        write_bytes(&path, &[Digest::of(&value).to_string().as_bytes(), &value].concat())
    }

    /// An empty folder for work in progress, on the same filesystem as the tables.
    pub fn scratch_dir(&self, name: &str) -> Result<PathBuf> {
        let dir = self.staging().join(name);
        remove_dir_if_there(&dir)?;
        fs::create_dir_all(&dir)?;
        Ok(dir)
    }

    /// Where the index lies.
    #[must_use]
    pub(crate) fn index_folder(&self) -> PathBuf {
        self.meta().join("index")
    }

    fn meta(&self) -> PathBuf {
        self.root.join("_meta")
    }

    fn staging(&self) -> PathBuf {
        self.workroom.clone().unwrap_or_else(|| self.root.join(".staging"))
    }
}

#[must_use]
pub(crate) fn shard_of(url: &str, shards: u32) -> u32 {
    shard_of_digest(Digest::of(url.as_bytes()), shards)
}

/// The same of a URL's digest.
pub(crate) fn shard_of_digest(url: Digest, shards: u32) -> u32 {
    u32::try_from(url.low64() % u64::from(shards)).expect("less than a u32")
}

/// Reads a file; `None` if it does not exist.
fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads a small JSON file; `None` if it does not exist.
fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Option<T>> {
    let Some(bytes) = read_if_there(path)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|source| StoreError::Json { path: path.to_owned(), source })
}

/// Writes a small JSON file so that after a crash there is the old one or the new one, whole.
fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let mut bytes =
        serde_json::to_vec_pretty(value).map_err(|source| StoreError::Json { path: path.to_owned(), source })?;
    bytes.push(b'\n');
    write_bytes(path, &bytes)
}

/// Writes a small file so that after a crash there is the old one or the new one, whole.
fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    let dir = path.parent().expect("a file has a folder");
    if !dir.is_dir() {
        fs::create_dir_all(dir)?;
        sync_dir(dir.parent().expect("it lies in the store"))?;
    }
    let temporary = path.with_extension("tmp");
    let mut file = fs::File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    sync_dir(dir)
}

/// Makes renames in a folder survive a crash.
fn sync_dir(dir: &Path) -> Result<()> {
    Ok(fs::File::open(dir)?.sync_all()?)
}

fn remove_file_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn remove_dir_if_there(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
