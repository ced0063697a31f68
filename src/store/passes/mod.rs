//! Passes: parts of a night that others work on, and the folder where whoever commits it finds what came of them.
//!
//! ```text
//! <work>/<snapshot>.<pass>.<token>/order          what is to be done, for workers
//! <work>/<snapshot>.<pass>.<token>/<name>         what workers need besides
//! <work>/<snapshot>.<pass>.<token>/captures-7.spill   captures of bucket 7, as they were read
//! <work>/<snapshot>.<pass>.<token>/parcel-7       rows of all tables that a stage has for bucket 7
//! <work>/<snapshot>.<pass>.<token>/_SUCCESS       all of it is there
//! ```
//! The token follows from all that the pass builds on: what was worked out from something else is never taken.

mod parcel;
mod rows;

use std::hash::BuildHasher as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use arrow_schema::ArrowError;
use fs_err as fs;
use serde::{Deserialize, Serialize};

pub(crate) use self::parcel::Parcel;
pub(crate) use self::rows::{BucketRow, RowReader, RowWriter};
use super::{Result, StoreError, files, without_panic};
use crate::model::Digest;

/// What is there once all of a pass was kept.
pub(crate) const COMPLETE: &str = "_SUCCESS";

/// Rows of this name are captures as they are spilled; those of [`READ`] say what else a part of the archive held.
pub(crate) const SPILLED: &str = "spilled";
pub(crate) const READ: &str = "read";

/// Reads Arrow that others wrote.
fn read_arrow<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    without_panic(read, ArrowError::IpcError)
}

/// The folder of a pass.
#[derive(Clone, Debug)]
pub(crate) struct PassFolder {
    dir: PathBuf,
}

impl PassFolder {
    /// The folder of a pass on a snapshot; it is made by [`save`](Self::save).
    #[must_use]
    pub(crate) fn new(work: &Path, snapshot: &str, pass: &str, token: Digest) -> Self {
        let token = token.hex();
        Self { dir: work.join(format!("{snapshot}.{pass}.{}", &token.as_str()[..12])) }
    }

    #[must_use]
    pub(crate) fn open(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    #[must_use]
    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// Whether all that workers are to leave is there.
    #[must_use]
    pub(crate) fn is_complete(&self) -> bool {
        self.dir.join(COMPLETE).exists()
    }

    /// Leaves something for workers.
    pub(crate) fn save<T: Serialize>(&self, name: &str, value: &T) -> Result<()> {
        let bytes = postcard::to_stdvec(value).map_err(|error| self.damaged(name, &error))?;
        Ok(files::write_whole(&self.dir.join(name), &bytes)?)
    }

    pub(crate) fn load<T: for<'a> Deserialize<'a>>(&self, name: &str) -> Result<T> {
        let bytes = fs::read(self.dir.join(name))?;
        postcard::from_bytes(&bytes).map_err(|error| self.damaged(name, &error))
    }

    /// What a part of the archive held besides captures, of all parts.
    pub(crate) fn read_parts<T: for<'a> Deserialize<'a>>(&self, parts: u32) -> Result<Vec<T>> {
        (0..parts).map(|part| self.load(&format!("{READ}-{part}"))).collect()
    }

    /// What a stage has for a bucket.
    pub(crate) fn parcel(&self, bucket: u32) -> Result<Parcel> {
        let path = self.dir.join(format!("parcel-{bucket}"));
        let mut bytes = Vec::new();
        fs::File::open(&path)?.read_to_end(&mut bytes)?;
        Parcel::unframed(&bytes).ok_or_else(|| self.damaged(&format!("parcel-{bucket}"), &"it ends in the middle"))
    }

    /// Removes the folder: what it holds is committed, or worth nothing.
    pub(crate) fn remove(&self) -> Result<()> {
        super::remove_dir_if_there(&self.dir)
    }

    fn damaged(&self, name: &str, problem: &dyn std::fmt::Display) -> StoreError {
        let hint = "remove the folder of the pass and begin it again";
        StoreError::Damaged { path: self.dir.join(name), problem: format!("{problem}; {hint}") }
    }

    /// Keeps rows of workers, sorted by bucket, each bucket in files of its own that appear whole. The same rows may be
    /// kept twice: the later files take the place of the earlier ones.
    pub(crate) fn keep(&self, rows: &mut RowReader<impl std::io::Read>) -> Result<u64> {
        let mut keeping = Keeping { folder: self, bucket: None, files: Vec::new() };
        let mut kept = 0;
        rows.each(|row| {
            kept += 1;
            keeping.row(row)
        })?;
        keeping.finish()?;
        Ok(kept)
    }
}

/// The files of one bucket that are being written.
struct Keeping<'a> {
    folder: &'a PassFolder,
    bucket: Option<i32>,
    /// Name, temporary path, and what it is written by.
    files: Vec<(String, PathBuf, std::io::BufWriter<fs::File>)>,
}

impl Keeping<'_> {
    fn row(&mut self, row: BucketRow<'_>) -> Result<()> {
        use std::io::Write as _;
        if self.bucket != Some(row.bucket) {
            self.finish()?;
            self.bucket = Some(row.bucket);
        }
        let bucket = row.bucket;
        let (name, framed) = match row.table {
            SPILLED => (format!("captures-{bucket}.spill"), false),
            READ => (format!("{READ}-{bucket}"), false),
            _ => (format!("parcel-{bucket}"), true),
        };
        let file = self.file(name)?;
        if framed {
            file.write_all(&Parcel::frame(row.table, row.rows.len()))?;
        }
        Ok(file.write_all(row.rows)?)
    }

    fn file(&mut self, name: String) -> Result<&mut std::io::BufWriter<fs::File>> {
        let at = match self.files.iter().position(|(known, ..)| *known == name) {
            Some(at) => at,
            None => {
                // Another attempt may be under way, on another machine too.
                let chance = std::hash::RandomState::new().hash_one(std::process::id());
                let own = format!(".{name}.{chance:016x}.tmp");
                let path = self.folder.dir.join(own);
                let file = std::io::BufWriter::with_capacity(1 << 18, fs::File::create(&path)?);
                self.files.push((name, path, file));
                self.files.len() - 1
            }
        };
        Ok(&mut self.files[at].2)
    }

    fn finish(&mut self) -> Result<()> {
        for (name, path, file) in self.files.drain(..) {
            let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            file.sync_all()?;
            fs::rename(&path, self.folder.dir.join(name))?;
        }
        Ok(())
    }
}
