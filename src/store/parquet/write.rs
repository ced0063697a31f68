//! Writing partitions.
//!
//! Large row groups are encoded in parallel (by [`Encoder`]s) and appended in order; small ones wait until several fill
//! a row group together, so that a table of a few rows is not mostly footer. Neither depends on the number of threads,
//! so that the bytes do not.

use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowWriter, ArrowWriterOptions};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::writer::SerializedFileWriter;
use arrow_array::{Array as _, RecordBatch, new_null_array};
use arrow_schema::SchemaRef;
use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::pack::{Packer, properties};
use super::recent::{KeptBatch, RecentRows, Room, Shelf};
use super::sums::{SUMS_KEY, Summing, Tail};
use super::{GroupShards, SHARDS_KEY, ShardRows, listed};
use crate::model::Digest;
use crate::store::memory::identity;
use crate::store::{PART, Result, StoreError};
use crate::tables::record::{Record, Table};

const SCHEMA_VERSION_KEY: &str = "ratoon.schema_version";
const SCHEMA_VERSION: &str = "2";
/// Rows that a row group holds at most, and bytes of text at which it is closed: bounds the memory of a writer and
/// of every reader.
pub(crate) const GROUP_ROWS: usize = 122_880;
pub const GROUP_BYTES: usize = 8 << 20;
/// Batches below this size wait for others to share a row group with.
const SMALL_BATCH: usize = 64 << 10;
/// A shared row group is closed at this size. A file that has no other row group is a small file: it needs neither
/// statistics nor an index, and would be mostly these.
const SHARED_GROUP: usize = 1 << 20;

/// A partition as its manifest names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    pub rows: u64,
    /// Size of its file; 0 if it has none, because it has no rows.
    pub bytes: u64,
    /// Of its file.
    pub digest: Digest,
    /// The end of its file, which is looked at before it is believed.
    pub tail: Tail,
    /// It says all that holds in its snapshot, not only what the snapshot touched.
    pub whole: bool,
}

impl Written {
    #[must_use]
    pub fn slim(self) -> Self {
        Self { whole: false, ..self }
    }

    #[must_use]
    pub fn whole_if(self, whole: bool) -> Self {
        Self { whole, ..self }
    }
}

/// Writes one partition of rows of type `T`.
pub struct PartitionWriter<T> {
    inner: BatchWriter,
    record: PhantomData<fn() -> T>,
}

/// Writes one partition of batches that share a schema.
pub struct BatchWriter {
    path: PathBuf,
    encoder: BatchEncoder,
    /// `None` as long as the file may turn out to be a small one.
    file: Option<FileWriter>,
    /// What waits for a row group, with its bytes.
    waiting: Vec<SmallBatch>,
    waiting_bytes: usize,
    /// Rows of deleted pages, which come last.
    deleted: Vec<SmallBatch>,
    /// Descriptions of columns are written even if the file is small.
    described: bool,
    /// The file is written even if it has no rows.
    keep_empty: bool,
    /// Rows that are likely to be read again soon, and where they go.
    recent: RecentRows,
    shelf: Option<Shelf>,
}

struct SmallBatch {
    shard: u32,
    batch: RecordBatch,
}

/// A file that row groups are being written to.
struct FileWriter {
    writer: SerializedFileWriter<Hashed>,
    packer: Packer,
    groups: Vec<GroupShards>,
    rows: u64,
}

/// A file, and the digest of what was written to it.
struct Hashed {
    file: fs::File,
    hasher: blake3::Hasher,
    sums: Summing,
    bytes: u64,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.hasher.update(&bytes[..n]);
        self.sums.update(&bytes[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Encodes rows of type `T` for a partition, on any thread.
pub struct Encoder<T> {
    inner: BatchEncoder,
    record: PhantomData<fn() -> T>,
}

/// Encodes batches for a partition, on any thread.
#[derive(Clone)]
pub struct BatchEncoder {
    path: Arc<Path>,
    packer: Arc<Packer>,
    schema: SchemaRef,
    /// Where rows are kept that are likely to be read again soon.
    room: Option<Room>,
    /// Rows are only put together: somebody else packs them.
    only_gathers: bool,
}

/// Rows of a shard ready to be appended.
pub struct EncodedGroup {
    shard: u32,
    rows: usize,
    body: Body,
}

enum Body {
    /// A row group of its own, and its rows if they are kept.
    Chunks(Vec<ArrowColumnChunk>, Option<KeptBatch>),
    /// Too few rows for that.
    Small(RecordBatch),
}

impl EncodedGroup {
    /// The rows, if they are not packed yet.
    pub(crate) fn into_batch(self) -> Option<RecordBatch> {
        match self.body {
            Body::Small(batch) => Some(batch),
            Body::Chunks(..) => None,
        }
    }
}

impl<T: Record> PartitionWriter<T> {
    pub fn create(path: &Path) -> Result<Self> {
        Ok(Self { inner: BatchWriter::create(path, T::schema())?, record: PhantomData })
    }

    /// Columns are described, and a file is made even without rows: it shows readers what the table looks like.
    #[must_use]
    pub fn first_of_table(self, first: bool) -> Self {
        Self { inner: self.inner.first_of_table(first), ..self }
    }

    /// Rows are kept in memory, too, as far as there is room.
    #[must_use]
    pub(crate) fn keeping(self, shelf: &Shelf) -> Self {
        Self { inner: self.inner.keeping(shelf), ..self }
    }

    /// What encodes rows for this partition.
    #[must_use]
    pub fn encoder(&self) -> Encoder<T> {
        Encoder { inner: self.inner.encoder(), record: PhantomData }
    }

    /// Appends rows; shards come in order.
    pub fn append(&mut self, group: EncodedGroup) -> Result<()> {
        self.inner.append(group)
    }

    /// Encodes and appends rows of one shard, in as many row groups as [`GROUP_ROWS`] asks for.
    pub fn write(&mut self, shard: u32, rows: &[T]) -> Result<()> {
        for part in rows.chunks(GROUP_ROWS) {
            let group = self.inner.encoder.encode(shard, T::encode(part))?;
            self.append(group)?;
        }
        Ok(())
    }

    /// Adds rows of deleted pages; the columns of `T` that `R` does not have are NULL.
    pub fn write_deleted<R: Record>(&mut self, shard: u32, rows: &[R]) {
        if !rows.is_empty() {
            let batch = widened(&R::encode(rows), &self.inner.encoder.schema);
            self.inner.deleted.push(SmallBatch { shard, batch });
        }
    }

    /// Writes the footer and syncs.
    pub fn finish(self) -> Result<Written> {
        self.inner.finish()
    }
}

/// A batch with all columns of a schema; those that it does not have are NULL.
fn widened(batch: &RecordBatch, schema: &SchemaRef) -> RecordBatch {
    let column = |field: &Arc<arrow_schema::Field>| match batch.column_by_name(field.name()) {
        Some(array) => Arc::clone(array),
        None => new_null_array(field.data_type(), batch.num_rows()),
    };
    let columns = schema.fields().iter().map(column).collect();
    RecordBatch::try_new(Arc::clone(schema), columns).expect("what a deleted page lacks may be NULL")
}

/// Writes a table outside of a store: a folder of its name with one file.
pub(crate) fn write_table<T: Table>(dir: &Path, rows: &[T]) -> Result<()> {
    let folder = dir.join(T::NAME);
    fs::create_dir_all(&folder)?;
    let mut writer = PartitionWriter::<T>::create(&folder.join(PART))?.first_of_table(true);
    writer.write(0, rows)?;
    writer.finish()?;
    Ok(())
}

impl<T: Record> Encoder<T> {
    /// Encodes rows of one shard. Rows must fit into a row group (see [`GROUP_ROWS`], [`GROUP_BYTES`]).
    pub fn encode(&self, shard: u32, rows: &[T]) -> Result<EncodedGroup> {
        self.inner.encode(shard, T::encode(rows))
    }

    /// The same of rows that are not needed afterwards: they are gone before their texts are packed.
    pub(crate) fn encode_all(&self, shard: u32, rows: Vec<T>) -> Result<EncodedGroup> {
        let batch = T::encode(&rows);
        drop(rows);
        self.inner.encode(shard, batch)
    }
}

impl<T> Encoder<T> {
    /// One that leaves it to others to pack rows, if so.
    #[must_use]
    pub(crate) fn only_gathers(self, only_gathers: bool) -> Self {
        Self { inner: BatchEncoder { only_gathers, ..self.inner }, ..self }
    }

    /// Encodes rows of one shard that were put together elsewhere.
    pub(crate) fn encode_batch(&self, shard: u32, batch: RecordBatch) -> Result<EncodedGroup> {
        self.inner.encode(shard, batch)
    }
}

fn bytes_of(batch: &RecordBatch) -> usize {
    // Arrays that a record encodes have no offsets and no unusual types, so that their sizes are known.
    batch.columns().iter().map(|array| array.to_data().get_slice_memory_size().unwrap_or(SMALL_BATCH)).sum()
}

impl BatchEncoder {
    /// Encodes a batch of one shard's rows.
    pub fn encode(&self, shard: u32, batch: RecordBatch) -> Result<EncodedGroup> {
        let rows = batch.num_rows();
        let bytes = bytes_of(&batch);
        let body = if bytes < SMALL_BATCH || self.only_gathers {
            Body::Small(batch)
        } else {
            let chunks = self.packer.pack(&[&batch]).map_err(|source| self.fail(source))?;
            Body::Chunks(chunks, self.room.as_ref().and_then(|room| room.keep(&batch, bytes)))
        };
        Ok(EncodedGroup { shard, rows, body })
    }

    fn fail(&self, source: ParquetError) -> StoreError {
        StoreError::Parquet { path: self.path.to_path_buf(), source }
    }
}

impl FileWriter {
    fn create(path: &Path, schema: &SchemaRef, small: bool, described: bool) -> Result<Self> {
        let fail = |source| StoreError::Parquet { path: path.to_owned(), source };
        let file =
            Hashed { file: fs::File::create(path)?, hasher: blake3::Hasher::new(), sums: Summing::new(), bytes: 0 };
        let options = ArrowWriterOptions::new()
            .with_properties(properties(small, schema).map_err(fail)?)
            .with_skip_arrow_metadata(small && !described);
        let writer = ArrowWriter::try_new_with_options(file, Arc::clone(schema), options).map_err(fail)?;
        let (writer, _) = writer.into_serialized_writer().map_err(fail)?;
        let packer = Packer::new(schema, &Arc::new(writer.schema_descr().clone()), small);
        Ok(Self { writer, packer, groups: Vec::new(), rows: 0 })
    }

    fn chunks(&mut self, chunks: Vec<ArrowColumnChunk>, group: GroupShards) -> Result<(), ParquetError> {
        let mut row_group = self.writer.next_row_group()?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut row_group)?;
        }
        row_group.close()?;
        self.rows += group.shards.iter().map(|part| part.rows as u64).sum::<u64>();
        self.groups.push(group);
        Ok(())
    }

    /// Writes batches of several shards as one row group.
    fn shared(&mut self, batches: &[SmallBatch], deleted: bool) -> Result<(), ParquetError> {
        let mut group = GroupShards { shards: Vec::new(), deleted };
        for SmallBatch { shard, batch } in batches {
            match group.shards.last_mut().filter(|last| last.shard == *shard) {
                Some(last) => last.rows += batch.num_rows(),
                None => group.shards.push(ShardRows { shard: *shard, rows: batch.num_rows() }),
            }
        }
        let batches: Vec<&RecordBatch> = batches.iter().map(|small| &small.batch).collect();
        let chunks = self.packer.pack(&batches)?;
        self.chunks(chunks, group)
    }
}

impl BatchWriter {
    pub fn create(path: &Path, schema: SchemaRef) -> Result<Self> {
        let fail = |source| StoreError::Parquet { path: path.to_owned(), source };
        // Row groups are encoded without the file that they will be part of.
        let options = ArrowWriterOptions::new().with_properties(properties(false, &schema).map_err(fail)?);
        let writer = ArrowWriter::try_new_with_options(io::sink(), Arc::clone(&schema), options).map_err(fail)?;
        let (writer, _) = writer.into_serialized_writer().map_err(fail)?;
        let packer = Arc::new(Packer::new(&schema, &Arc::new(writer.schema_descr().clone()), false));
        let encoder = BatchEncoder { path: path.into(), packer, schema, room: None, only_gathers: false };
        Ok(Self {
            path: path.to_owned(),
            encoder,
            file: None,
            waiting: Vec::new(),
            waiting_bytes: 0,
            deleted: Vec::new(),
            described: false,
            keep_empty: false,
            recent: RecentRows::default(),
            shelf: None,
        })
    }

    /// As [`PartitionWriter::keeping`].
    #[must_use]
    pub(crate) fn keeping(mut self, shelf: &Shelf) -> Self {
        self.encoder.room = Some(shelf.room().clone());
        self.shelf = Some(shelf.clone());
        self
    }

    /// As [`PartitionWriter::first_of_table`].
    #[must_use]
    pub fn first_of_table(self, first: bool) -> Self {
        Self { described: first, keep_empty: first, ..self }
    }

    /// What encodes batches for this partition.
    #[must_use]
    pub fn encoder(&self) -> BatchEncoder {
        self.encoder.clone()
    }

    /// Encodes and appends a batch of one shard's rows.
    pub fn write(&mut self, shard: u32, batch: RecordBatch) -> Result<()> {
        let group = self.encoder.encode(shard, batch)?;
        self.append(group)
    }

    /// Appends rows; shards come in order.
    pub fn append(&mut self, group: EncodedGroup) -> Result<()> {
        let EncodedGroup { shard, rows, body } = group;
        if rows == 0 {
            return Ok(());
        }
        match body {
            Body::Small(batch) => {
                self.waiting_bytes += bytes_of(&batch);
                self.waiting.push(SmallBatch { shard, batch });
                if self.waiting_bytes >= SHARED_GROUP {
                    self.flush(false)?;
                }
                Ok(())
            }
            Body::Chunks(chunks, kept) => {
                self.flush(false)?;
                let group = GroupShards { shards: vec![ShardRows { shard, rows }], deleted: false };
                let file = self.file(false)?;
                file.chunks(chunks, group).map_err(|source| self.encoder.fail(source))?;
                self.recent.push(kept.map(|kept| vec![kept]));
                Ok(())
            }
        }
    }

    fn file(&mut self, small: bool) -> Result<&mut FileWriter> {
        if self.file.is_none() {
            self.file = Some(FileWriter::create(&self.path, &self.encoder.schema, small, self.described)?);
        }
        Ok(self.file.as_mut().expect("it was just made"))
    }

    /// Writes what waits as one row group.
    fn flush(&mut self, small: bool) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        if waiting.is_empty() {
            return Ok(());
        }
        self.shared(&waiting, small, false)
    }

    /// Writes batches of several shards as one row group.
    fn shared(&mut self, batches: &[SmallBatch], small: bool, deleted: bool) -> Result<()> {
        let file = self.file(small)?;
        file.shared(batches, deleted).map_err(|source| self.encoder.fail(source))?;
        let keep = |small: &SmallBatch| self.encoder.room.as_ref()?.keep(&small.batch, bytes_of(&small.batch));
        self.recent.push(batches.iter().map(keep).collect());
        Ok(())
    }

    /// Writes the footer and syncs. Without rows there is no file, unless it is the first of its table.
    pub fn finish(mut self) -> Result<Written> {
        let small = self.file.is_none();
        self.flush(small)?;
        let deleted = std::mem::take(&mut self.deleted);
        if self.file.is_none() && deleted.is_empty() && !self.keep_empty {
            return Ok(Written { rows: 0, bytes: 0, digest: Digest::of(b""), tail: Tail::default(), whole: true });
        }
        self.file(small)?;
        if !deleted.is_empty() {
            self.shared(&deleted, small, true)?;
        }
        let FileWriter { mut writer, groups, rows, .. } = self.file.expect("it was made above");
        for (key, value) in [(SCHEMA_VERSION_KEY, SCHEMA_VERSION.to_owned()), (SHARDS_KEY, listed(&groups))] {
            writer.append_key_value_metadata(KeyValue::new(key.into(), value));
        }
        writer.flush()?;
        let sums = writer.inner_mut().sums.end_data();
        writer.append_key_value_metadata(KeyValue::new(SUMS_KEY.into(), sums));
        let Hashed { file, hasher, sums, bytes } = writer.into_inner().map_err(|source| self.encoder.fail(source))?;
        file.sync_all()?;
        if let Some(shelf) = self.shelf
            && let Some(identity) = identity(&self.path)?
        {
            shelf.put(identity, self.recent);
        }
        Ok(Written { rows, bytes, digest: Digest::finish(&hasher), tail: sums.finish(), whole: true })
    }
}
