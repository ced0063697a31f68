//! Partitions as Parquet files: rows by shard, a row group never spans two shards.
//!
//! Row groups are encoded in parallel (by [`Encoder`]s) and appended in order, so that the bytes do not depend on the
//! number of threads. The shard of each row group stands in the file's metadata.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use ::parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriter, compute_leaves};
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{KeyValue, PageIndexPolicy};
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::reader::{ChunkReader, Length};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::ColumnPath;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use fs_err as fs;

use super::{Result, StoreError};
use crate::tables::record::{Record, Table, View};

const SHARDS_KEY: &str = "ratoon.row_group_shards";
const SCHEMA_VERSION_KEY: &str = "ratoon.schema_version";
const SCHEMA_VERSION: &str = "1";
/// Rows that a row group holds at most, and bytes of text at which it is closed: bounds the memory of a writer and
/// of every reader.
pub(crate) const GROUP_ROWS: usize = 122_880;
pub const GROUP_BYTES: usize = 8 << 20;
/// Text is cut into data pages of about this size, so that one page's text can be read without its neighbours'.
const TEXT_PAGE_BYTES: usize = 128 << 10;

fn properties() -> Result<WriterProperties, ParquetError> {
    let text = ColumnPath::from("text");
    Ok(WriterProperties::builder()
        .set_created_by("ratoon".into())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_column_dictionary_enabled(text.clone(), false)
        .set_column_statistics_enabled(text.clone(), EnabledStatistics::None)
        .set_column_data_page_size_limit(text, TEXT_PAGE_BYTES)
        // Page limits are looked at after each batch of this many values.
        .set_write_batch_size(32)
        .build())
}

/// Writes one partition of rows of type `T`.
pub struct PartitionWriter<T> {
    inner: BatchWriter,
    record: PhantomData<fn() -> T>,
}

/// Writes one partition of batches that share a schema.
pub struct BatchWriter {
    file: SerializedFileWriter<fs::File>,
    encoder: BatchEncoder,
    shards: Vec<u32>,
    rows: u64,
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
    factory: Arc<ArrowRowGroupWriterFactory>,
    schema: SchemaRef,
}

/// A row group ready to be appended.
pub struct EncodedGroup {
    shard: u32,
    rows: u64,
    chunks: Vec<ArrowColumnChunk>,
}

impl<T: Record> PartitionWriter<T> {
    pub fn create(path: &Path) -> Result<Self> {
        Ok(Self { inner: BatchWriter::create(path, T::schema())?, record: PhantomData })
    }

    /// What encodes rows for this partition.
    #[must_use]
    pub fn encoder(&self) -> Encoder<T> {
        Encoder { inner: self.inner.encoder(), record: PhantomData }
    }

    /// Appends a row group; shards come in order.
    pub fn append(&mut self, group: EncodedGroup) -> Result<()> {
        self.inner.append(group)
    }

    /// Encodes and appends rows of one shard, in as many row groups as [`GROUP_ROWS`] asks for.
    pub fn write(&mut self, shard: u32, rows: &[T]) -> Result<()> {
        for part in rows.chunks(GROUP_ROWS) {
            let group = self.inner.encoder.encode(shard, &T::encode(part))?;
            self.append(group)?;
        }
        Ok(())
    }

    /// Writes the footer and syncs; gives the number of rows.
    pub fn finish(self) -> Result<u64> {
        self.inner.finish()
    }
}

/// Writes a table outside of a store: a folder of its name with one file.
pub(crate) fn write_table<T: Table>(dir: &Path, rows: &[T]) -> Result<()> {
    let folder = dir.join(T::NAME);
    fs::create_dir_all(&folder)?;
    let mut writer = PartitionWriter::<T>::create(&folder.join(super::PART))?;
    writer.write(0, rows)?;
    writer.finish()?;
    Ok(())
}

impl<T: Record> Encoder<T> {
    /// Encodes rows of one shard as a row group. Rows must fit into one (see [`GROUP_ROWS`], [`GROUP_BYTES`]).
    pub fn encode(&self, shard: u32, rows: &[T]) -> Result<EncodedGroup> {
        self.inner.encode(shard, &T::encode(rows))
    }
}

impl BatchEncoder {
    fn encode_chunks(&self, batch: &RecordBatch) -> Result<Vec<ArrowColumnChunk>, ParquetError> {
        // The index only matters to encryption.
        let mut writers = self.factory.create_column_writers(0)?.into_iter();
        let mut chunks = Vec::new();
        for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
            for leaf in compute_leaves(field, array)? {
                let mut writer = writers.next().expect("one writer per leaf column");
                writer.write(&leaf)?;
                chunks.push(writer.close()?);
            }
        }
        Ok(chunks)
    }

    /// Encodes a batch of one shard's rows as a row group.
    pub fn encode(&self, shard: u32, batch: &RecordBatch) -> Result<EncodedGroup> {
        let chunks = self.encode_chunks(batch).map_err(|source| self.fail(source))?;
        Ok(EncodedGroup { shard, rows: batch.num_rows() as u64, chunks })
    }

    fn fail(&self, source: ParquetError) -> StoreError {
        StoreError::Parquet { path: self.path.to_path_buf(), source }
    }
}

impl BatchWriter {
    pub fn create(path: &Path, schema: SchemaRef) -> Result<Self> {
        let fail = |source| StoreError::Parquet { path: path.to_owned(), source };
        let file = fs::File::create(path)?;
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties().map_err(fail)?)).map_err(fail)?;
        let (file, factory) = writer.into_serialized_writer().map_err(fail)?;
        let encoder = BatchEncoder { path: path.into(), factory: Arc::new(factory), schema };
        Ok(Self { file, encoder, shards: Vec::new(), rows: 0 })
    }

    /// What encodes batches for this partition.
    #[must_use]
    pub fn encoder(&self) -> BatchEncoder {
        self.encoder.clone()
    }

    /// Encodes and appends a batch of one shard's rows.
    pub fn write(&mut self, shard: u32, batch: &RecordBatch) -> Result<()> {
        let group = self.encoder.encode(shard, batch)?;
        self.append(group)
    }

    /// Appends a row group; shards come in order.
    pub fn append(&mut self, group: EncodedGroup) -> Result<()> {
        debug_assert!(self.shards.last().is_none_or(|&last| last <= group.shard), "shards are written in order");
        let append = || -> Result<(), ParquetError> {
            let mut row_group = self.file.next_row_group()?;
            for chunk in group.chunks {
                chunk.append_to_row_group(&mut row_group)?;
            }
            row_group.close()?;
            Ok(())
        };
        append().map_err(|source| self.encoder.fail(source))?;
        self.shards.push(group.shard);
        self.rows += group.rows;
        Ok(())
    }

    /// Writes the footer and syncs; gives the number of rows.
    pub fn finish(mut self) -> Result<u64> {
        let shards = self.shards.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        for (key, value) in [(SCHEMA_VERSION_KEY, SCHEMA_VERSION.to_owned()), (SHARDS_KEY, shards)] {
            self.file.append_key_value_metadata(KeyValue::new(key.into(), value));
        }
        let file = self.file.into_inner().map_err(|source| self.encoder.fail(source))?;
        file.sync_all()?;
        Ok(self.rows)
    }
}

/// A file read by position. (A clone of a `File` shares its cursor, so that two threads would disturb each other.)
#[derive(Clone)]
struct SharedFile {
    file: Arc<File>,
    len: u64,
}

/// Reads a [`SharedFile`] from a position of its own.
struct At {
    file: Arc<File>,
    position: u64,
}

impl io::Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buffer, self.position)?;
        self.position += n as u64;
        Ok(n)
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for SharedFile {
    type T = io::BufReader<At>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(io::BufReader::new(At { file: Arc::clone(&self.file), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut buffer = vec![0; length];
        self.file.read_exact_at(&mut buffer, start)?;
        Ok(buffer.into())
    }
}

/// A partition opened for reading. Cheap to share between threads.
#[derive(Clone)]
pub struct Partition {
    path: PathBuf,
    file: SharedFile,
    metadata: ArrowReaderMetadata,
    shards: Vec<u32>,
}

impl Partition {
    pub fn open(path: &Path) -> Result<Self> {
        let fail = |source| StoreError::Parquet { path: path.to_owned(), source };
        let file = fs::File::open(path)?.into_parts().0;
        let len = file.metadata()?.len();
        let file = SharedFile { file: Arc::new(file), len };
        let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&file, options).map_err(fail)?;
        let pairs = metadata.metadata().file_metadata().key_value_metadata();
        let listed = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == SHARDS_KEY));
        let damaged = |problem: &str| StoreError::Damaged { path: path.to_owned(), problem: problem.into() };
        let listed = listed.and_then(|pair| pair.value.as_deref()).ok_or_else(|| damaged("no list of shards"))?;
        let numbers = listed.split(',').filter(|s| !s.is_empty()).map(str::parse::<u32>);
        let shards = numbers.collect::<Result<Vec<_>, _>>().map_err(|_| damaged("bad list of shards"))?;
        if shards.len() != metadata.metadata().num_row_groups() {
            return Err(damaged("the list of shards does not fit the row groups"));
        }
        Ok(Self { path: path.to_owned(), file, metadata, shards })
    }

    #[must_use]
    pub fn rows(&self) -> u64 {
        u64::try_from(self.metadata.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// The row groups of a shard.
    #[must_use]
    pub fn groups_of(&self, shard: u32) -> Vec<usize> {
        (0..self.shards.len()).filter(|&group| self.shards[group] == shard).collect()
    }

    #[must_use]
    pub fn all_groups(&self) -> Vec<usize> {
        (0..self.shards.len()).collect()
    }

    /// All rows of a shard, in order, with the columns of `R`.
    pub fn shard<R: Record>(&self, shard: u32) -> Result<Vec<R>> {
        self.read(&self.groups_of(shard), None)
    }

    /// All rows of the given row groups.
    pub fn groups<R: Record>(&self, groups: &[usize]) -> Result<Vec<R>> {
        self.read(groups, None)
    }

    /// The rows at `positions` (ascending, counted over the given row groups).
    pub fn rows_at<R: Record>(&self, groups: &[usize], positions: &[usize]) -> Result<Vec<R>> {
        let total = groups.iter().map(|&g| self.group_rows(g)).sum();
        let ranges = positions.iter().map(|&position| position..position + 1);
        self.read(groups, Some(RowSelection::from_consecutive_ranges(ranges, total)))
    }

    /// Shows all rows of the given row groups to `visit`, without copying their texts.
    pub fn visit<V: View>(&self, groups: &[usize], mut visit: impl FnMut(V::Row<'_>)) -> Result<()> {
        for batch in self.read_batches(groups, Some(V::COLUMNS), None)? {
            V::visit(&batch, &mut visit).map_err(|source| StoreError::Column { path: self.path.clone(), source })?;
        }
        Ok(())
    }

    /// Rows in a row group.
    #[must_use]
    pub fn group_rows(&self, group: usize) -> usize {
        usize::try_from(self.metadata.metadata().row_group(group).num_rows()).unwrap_or(0)
    }

    /// The schema of the file.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// All columns of a shard, as batches.
    pub fn batches(&self, shard: u32) -> Result<Vec<RecordBatch>> {
        self.read_batches(&self.groups_of(shard), None, None)
    }

    fn read<R: Record>(&self, groups: &[usize], selection: Option<RowSelection>) -> Result<Vec<R>> {
        let columns: Vec<&str> = R::columns().iter().map(|column| column.name).collect();
        let mut rows = Vec::new();
        for batch in self.read_batches(groups, Some(&columns), selection)? {
            let more = R::decode(&batch).map_err(|source| StoreError::Column { path: self.path.clone(), source })?;
            rows.extend(more);
        }
        Ok(rows)
    }

    fn read_batches(
        &self,
        groups: &[usize],
        columns: Option<&[&str]>,
        selection: Option<RowSelection>,
    ) -> Result<Vec<RecordBatch>> {
        if groups.is_empty() || selection.as_ref().is_some_and(|s| !s.iter().any(is_selected)) {
            return Ok(Vec::new());
        }
        let fail = |source| StoreError::Parquet { path: self.path.clone(), source };
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone());
        let mask = match columns {
            Some(columns) => ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied()),
            None => ProjectionMask::all(),
        };
        let mut builder = builder.with_projection(mask).with_row_groups(groups.to_vec()).with_batch_size(8192);
        if let Some(selection) = selection {
            builder = builder.with_row_selection(selection);
        }
        let batches = builder.build().map_err(fail)?;
        batches.map(|batch| batch.map_err(|source| fail(source.into()))).collect()
    }
}

fn is_selected(selector: &RowSelector) -> bool {
    !selector.skip && selector.row_count > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::ingest::PageText;

    #[test]
    fn rows_come_back_by_shard_and_by_position() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.parquet");
        let row = |i: usize| PageText {
            url: format!("u{i}"),
            text: (!i.is_multiple_of(3)).then(|| format!("t{i}").repeat(i)),
        };
        let mut writer = PartitionWriter::<PageText>::create(&path).unwrap();
        writer.write(1, &(0..500).map(row).collect::<Vec<_>>()).unwrap();
        writer.write(1, &(500..510).map(row).collect::<Vec<_>>()).unwrap();
        writer.write(4, &(510..600).map(row).collect::<Vec<_>>()).unwrap();
        assert_eq!(writer.finish().unwrap(), 600);

        let partition = Partition::open(&path).unwrap();
        assert_eq!(partition.rows(), 600);
        assert_eq!(partition.groups_of(1), [0, 1]);
        assert_eq!(partition.shard::<PageText>(0).unwrap(), []);
        assert_eq!(partition.shard::<PageText>(4).unwrap(), (510..600).map(row).collect::<Vec<_>>());
        let positions = [0, 7, 8, 499, 500, 509];
        let rows = partition.rows_at::<PageText>(&partition.groups_of(1), &positions).unwrap();
        assert_eq!(rows, positions.map(row));
        assert_eq!(partition.rows_at::<PageText>(&[0], &[]).unwrap(), []);
    }

    #[test]
    fn an_empty_partition_has_its_schema() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.parquet");
        let writer = PartitionWriter::<PageText>::create(&path).unwrap();
        assert_eq!(writer.finish().unwrap(), 0);
        let partition = Partition::open(&path).unwrap();
        assert_eq!(partition.rows(), 0);
        let field = partition.metadata.schema().field_with_name("text").unwrap();
        assert!(field.is_nullable());
    }
}
