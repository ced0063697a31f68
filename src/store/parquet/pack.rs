//! How the columns of a row group are packed: by what they hold.
//!
//! zstd gains where texts and digests are packed, and costs more than it gains elsewhere: every column of a row group that is
//! packed makes two contexts, when it is written and again whenever it is read. Columns of a few values are a few bits a
//! row in a dictionary, and whole numbers are a few bytes as differences; neither is packed further. What is chosen
//! depends on the rows alone, so that the bytes do too.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use ::parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnPath, SchemaDescPtr};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef, TimeUnit};

/// Text is cut into data pages of about this size, so that one page's text can be read without its neighbours'.
const TEXT_PAGE_BYTES: usize = 32 << 10;
/// Other columns are cut into data pages of this many rows, so that the rows of one URL are found without reading all.
const PAGE_ROWS: usize = 2_048;
/// So are links: those of a few pages here and there are read every night.
const LINK_PAGE_ROWS: usize = 256;
/// As many different values are few.
const FEW: usize = 16;
/// Where the first values, as many as this, all differ, a dictionary would hold most of the others too.
const LOOKED_AT: usize = 64;

/// Columns with as many values as rows, or nearly. A dictionary of them would have to be read as a whole to get at one
/// row, and limits of them (but of URLs, by which rows are ordered) exclude nothing.
const DISTINCT: [&str; 15] = [
    "url",
    "text",
    "title",
    "target",
    "label",
    "text_digest",
    "content_digest",
    "change_digest",
    "masked_text_digest",
    "old_text_digest",
    "payload_digest",
    "archive_digest",
    "reading_digest",
    "structure_digest",
    "canonical",
];

/// How a file is packed, whatever its rows are. `small`: it has one row group of little size, and would be mostly limits
/// and indexes.
pub(super) fn properties(small: bool, schema: &Schema) -> Result<WriterProperties, ParquetError> {
    Ok(builder(small, schema)?.build())
}

fn builder(small: bool, schema: &Schema) -> Result<WriterPropertiesBuilder, ParquetError> {
    let page_rows = if schema.column_with_name("target").is_some() { LINK_PAGE_ROWS } else { PAGE_ROWS };
    let (text, url) = (ColumnPath::from("text"), ColumnPath::from("url"));
    let builder = WriterProperties::builder()
        .set_created_by("ratoon".into())
        // Data pages of the second version are packed from where their values lie. Those of the first are copied before, and
        // into a buffer that is copied once more: one very large text took twice as much memory.
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_encoding(Encoding::PLAIN)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?));
    Ok(if small {
        builder
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
    } else {
        let builder = DISTINCT.iter().fold(builder, |builder, column| {
            // Lengths that are all the same lie apart from digests, so that zstd does not look for them in between.
            let is_digest = column.ends_with("_digest");
            let encoding = if is_digest { Encoding::DELTA_LENGTH_BYTE_ARRAY } else { Encoding::PLAIN };
            let column = ColumnPath::from(*column);
            builder
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column.clone(), encoding)
                .set_column_statistics_enabled(column, EnabledStatistics::None)
        });
        builder
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_column_statistics_enabled(url, EnabledStatistics::Page)
            .set_column_data_page_size_limit(text, TEXT_PAGE_BYTES)
            .set_data_page_row_count_limit(page_rows)
            // The number of rows is looked at after each batch of this many values, the bytes of long texts within it.
            .set_write_batch_size(page_rows.min(512))
    })
}

/// What a column is packed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    /// As the properties of its file have it.
    Usual,
    /// There is next to nothing of it.
    Bare,
    /// Whole numbers, each as the difference to the one before.
    Differences,
    /// Without a dictionary.
    Plain,
}

/// Packs batches as row groups of one file.
pub(super) struct Packer {
    schema: SchemaRef,
    columns: SchemaDescPtr,
    small: bool,
}

impl Packer {
    /// Of batches of `schema`, for a file with these columns.
    pub(super) fn new(schema: &SchemaRef, columns: &SchemaDescPtr, small: bool) -> Self {
        Self { schema: Arc::clone(schema), columns: Arc::clone(columns), small }
    }

    /// Packs batches as one row group.
    pub(super) fn pack(&self, batches: &[&RecordBatch]) -> Result<Vec<ArrowColumnChunk>, ParquetError> {
        let properties = Arc::new(self.properties(batches)?);
        let nowhere = SerializedFileWriter::new(io::sink(), self.columns.root_schema_ptr(), properties)?;
        let factory = ArrowRowGroupWriterFactory::new(&nowhere, Arc::clone(&self.schema));
        // The index only matters to encryption.
        let mut writers = factory.create_column_writers(0)?;
        for batch in batches {
            let schema = batch.schema();
            let mut next = writers.iter_mut();
            for (field, array) in schema.fields().iter().zip(batch.columns()) {
                for leaf in compute_leaves(field, array)? {
                    next.next().expect("one writer per leaf column").write(&leaf)?;
                }
            }
        }
        writers.into_iter().map(ArrowColumnWriter::close).collect()
    }

    fn properties(&self, batches: &[&RecordBatch]) -> Result<WriterProperties, ParquetError> {
        let mut builder = builder(self.small, &self.schema)?;
        for (i, column) in self.columns.columns().iter().enumerate() {
            let root = self.columns.get_column_root_idx(i);
            let arrays: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(root)).collect();
            let path = column.path();
            let named = path.parts().first().map_or("", String::as_str);
            builder = match packing(&arrays, self.small || DISTINCT.contains(&named)) {
                Packing::Usual => builder,
                Packing::Plain => builder.set_column_dictionary_enabled(path.clone(), false),
                Packing::Bare => builder.set_column_compression(path.clone(), Compression::UNCOMPRESSED),
                Packing::Differences => builder
                    .set_column_compression(path.clone(), Compression::UNCOMPRESSED)
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED),
            };
        }
        Ok(builder.build())
    }
}

/// How a column with these values is packed. `plain`: it has no dictionary.
fn packing(arrays: &[&ArrayRef], plain: bool) -> Packing {
    let most = if plain { 0 } else { FEW };
    let Some(first) = arrays.first() else { return Packing::Usual };
    match first.data_type() {
        DataType::Boolean => Packing::Bare,
        DataType::Int64 | DataType::Timestamp(TimeUnit::Microsecond, _) if has_few(arrays, most) => Packing::Bare,
        DataType::Int64 | DataType::Timestamp(TimeUnit::Microsecond, _) => Packing::Differences,
        _ if has_few(arrays, most) => Packing::Bare,
        DataType::Utf8 if all_differ(arrays) => Packing::Plain,
        _ => Packing::Usual,
    }
}

/// Whether the first texts all differ, and there are enough of them.
fn all_differ(arrays: &[&ArrayRef]) -> bool {
    let texts = arrays.iter().flat_map(|array| array.as_string::<i32>().iter().flatten());
    let first: HashSet<&str> = texts.take(LOOKED_AT).collect();
    let texts = arrays.iter().map(|array| array.len() - array.null_count()).sum::<usize>();
    texts >= LOOKED_AT && first.len() == LOOKED_AT
}

/// Whether there are at most so many different values, NULL aside. What is no plain column of values has few if it has none.
fn has_few(arrays: &[&ArrayRef], most: usize) -> bool {
    if arrays.iter().all(|array| array.null_count() == array.len()) {
        return true;
    }
    let data_type = arrays[0].data_type();
    match data_type {
        DataType::List(_) => arrays.iter().all(|array| array.as_list::<i32>().values().is_empty()),
        _ if most == 0 => false,
        DataType::Utf8 => at_most(most, arrays.iter().flat_map(|array| array.as_string::<i32>().iter().flatten())),
        DataType::Int64 => {
            at_most(most, arrays.iter().flat_map(|array| array.as_primitive::<Int64Type>().iter().flatten()))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let values = arrays.iter().flat_map(|array| array.as_primitive::<TimestampMicrosecondType>().iter());
            at_most(most, values.flatten())
        }
        DataType::Float64 => {
            let values = arrays.iter().flat_map(|array| array.as_primitive::<Float64Type>().iter());
            at_most(most, values.flatten().map(f64::to_bits))
        }
        _ => false,
    }
}

/// Whether at most so many of the values differ.
fn at_most<T: PartialEq>(most: usize, values: impl Iterator<Item = T>) -> bool {
    let mut seen: Vec<T> = Vec::with_capacity(most);
    for value in values {
        // Values come in runs: the one before is the last that was looked for.
        match seen.iter().rposition(|other| *other == value) {
            Some(at) if at + 1 == seen.len() => {}
            Some(at) => {
                let last = seen.len() - 1;
                seen.swap(at, last);
            }
            None if seen.len() == most => return false,
            None => seen.push(value),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use arrow_array::{BooleanArray, Int64Array, StringArray};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn few_values_are_counted(values: Vec<u8>, most in 1..20usize) {
            let distinct = values.iter().copied().collect::<HashSet<u8>>().len();
            prop_assert_eq!(at_most(most, values.into_iter()), distinct <= most);
        }
    }

    #[test]
    fn columns_are_packed_by_what_they_hold() {
        let few: ArrayRef = Arc::new((0..100).map(|i| Some(format!("{}", i % FEW))).collect::<StringArray>());
        let many: ArrayRef = Arc::new((0..100).map(|i| Some(format!("{i}"))).collect::<StringArray>());
        let some: ArrayRef = Arc::new((0..100).map(|i| Some(format!("{}", i % 50))).collect::<StringArray>());
        let none: ArrayRef = Arc::new((0..100).map(|_| None::<String>).collect::<StringArray>());
        let numbers: ArrayRef = Arc::new((0..100).collect::<Int64Array>());
        let constant: ArrayRef = Arc::new((0..100).map(|_| 7).collect::<Int64Array>());
        let flags: ArrayRef = Arc::new((0..100).map(|i| Some(i % 3 == 0)).collect::<BooleanArray>());
        for (array, plain, expected) in [
            (&few, false, Packing::Bare),
            (&few, true, Packing::Usual),
            (&many, false, Packing::Plain),
            (&some, false, Packing::Usual),
            (&none, true, Packing::Bare),
            (&numbers, false, Packing::Differences),
            (&constant, false, Packing::Bare),
            (&constant, true, Packing::Differences),
            (&flags, true, Packing::Bare),
        ] {
            assert_eq!(packing(&[array], plain), expected, "{array:?}");
        }
        assert_eq!(packing(&[&few, &many], false), Packing::Usual);
        assert_eq!(packing(&[&many.slice(0, LOOKED_AT - 1)], false), Packing::Usual);
    }
}
