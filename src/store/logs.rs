//! Update logs, which are other people's files: CSV, plain or compressed, or Parquet, told apart by their bytes.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::column::page::PageReader as _;
use ::parquet::file::metadata::ParquetMetaDataReader;
use ::parquet::file::serialized_reader::SerializedPageReader;
use fs_err as fs;
use jiff::tz::TimeZone;
use polars::prelude::{Column, DataFrame, DataType, SerReader as _, TimeUnit};
use polars_io::prelude::ParquetReader;

use super::parquet::Partition;
use super::{Result, StoreError, guarded};
use crate::model::Timestamp;
use crate::tables::record::Table;

/// A log, opened.
pub(crate) enum LogFile {
    /// CSV, decompressed as it is read.
    Text(Box<dyn BufRead>),
    /// A table, as text: times in RFC 3339, local ones without offset.
    Rows { header: Vec<String>, rows: Vec<Vec<String>> },
}

/// Columns of a table that a log may have.
const COLUMNS: [&str; 6] = ["source", "url", "updated_at", "after", "before", "signal"];

/// Rows that a log may have as a table. One that went bad can say any number, and a row takes memory before it is looked at.
const MOST_ROWS: usize = 1 << 25;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const PARQUET: &[u8] = b"PAR1";

/// Opens a log: a file, or a folder of Parquet files such as the table `updates`.
pub(crate) fn open(path: &Path) -> Result<LogFile> {
    if path.is_dir() {
        let mut header: Vec<String> = Vec::new();
        let mut rows = Vec::new();
        for file in parquet_files(path)? {
            let frame = guarded(&file, || read_frame(&file))?;
            let (names, more) = text_rows(&frame, &file)?;
            if !rows.is_empty() && names != header {
                return Err(StoreError::Damaged { path: file, problem: "other columns than the files before".into() });
            }
            header = names;
            rows.extend(more);
        }
        return Ok(LogFile::Rows { header, rows });
    }
    let mut file = BufReader::with_capacity(1 << 18, fs::File::open(path)?);
    let begin = file.fill_buf()?;
    if begin.starts_with(PARQUET) {
        let (header, rows) = text_rows(&guarded(path, || read_frame(path))?, path)?;
        return Ok(LogFile::Rows { header, rows });
    }
    Ok(LogFile::Text(if begin.starts_with(GZIP) {
        Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(file)))
    } else if begin.starts_with(ZSTD) {
        Box::new(BufReader::new(zstd::stream::read::Decoder::with_buffer(file)?))
    } else {
        Box::new(file)
    }))
}

/// Parquet files below a folder, by name.
fn parquet_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "parquet") {
                files.push(path);
            }
        }
    }
    files.sort();
    if files.is_empty() {
        let problem = "no Parquet file below it".to_owned();
        return Err(StoreError::Damaged { path: dir.to_owned(), problem });
    }
    Ok(files)
}

/// A table with more rows than a log may have is not read.
fn bounded(rows: usize, path: &Path) -> Result<usize> {
    if rows <= MOST_ROWS {
        return Ok(rows);
    }
    let problem = format!("it says that it has {rows} rows; a log may have {MOST_ROWS}");
    Err(StoreError::Damaged { path: path.to_owned(), problem })
}

fn read_frame(path: &Path) -> Result<DataFrame> {
    let damaged =
        |error: polars::error::PolarsError| StoreError::Damaged { path: path.to_owned(), problem: error.to_string() };
    let mut reader = ParquetReader::new(fs::File::open(path)?.into_parts().0);
    let names: Vec<String> = reader.schema().map_err(damaged)?.iter_names().map(ToString::to_string).collect();
    let wanted: Vec<String> =
        names.iter().filter(|name| COLUMNS.contains(&name.to_ascii_lowercase().as_str())).cloned().collect();
    if wanted.is_empty() {
        let problem = format!("no column of an update log; it has {}", names.join(", "));
        return Err(StoreError::Damaged { path: path.to_owned(), problem });
    }
    bounded(reader.num_rows().map_err(damaged)?, path)?;
    // The reader compares nothing, and damage may make it ask for memory that there is not. A table of a store has sums, if
    // they are not what went bad; of any table the numbers of values are looked at.
    if let Ok(table) = Partition::open(path) {
        table.compare(&wanted)?;
    }
    count_values(path, &wanted)?;
    reader.with_columns(Some(wanted)).finish().map_err(damaged)
}

/// Goes through the heads of pages of columns, without unpacking them: each says how many values it has, and together they must
/// have as many as the footer says.
fn count_values(path: &Path, columns: &[String]) -> Result<()> {
    let fail = |source| StoreError::Parquet { path: path.to_owned(), source };
    let file = Arc::new(fs::File::open(path)?.into_parts().0);
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&*file).map_err(fail)?;
    for group in metadata.row_groups() {
        let rows = bounded(usize::try_from(group.num_rows()).unwrap_or(usize::MAX), path)?;
        for column in group.columns() {
            if !column.column_path().parts().first().is_some_and(|name| columns.contains(name)) {
                continue;
            }
            // However they are packed: nothing is unpacked here, and not every way to pack is known here.
            let plain =
                column.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build().map_err(fail)?;
            let mut pages = SerializedPageReader::new(Arc::clone(&file), &plain, rows, None).map_err(fail)?;
            let mut values = 0;
            while let Some(page) = pages.peek_next_page().map_err(fail)? {
                values += bounded(page.num_levels.unwrap_or(0), path)?;
                pages.skip_next_page().map_err(fail)?;
            }
            if i64::try_from(values) != Ok(column.num_values()) || values < rows {
                let problem = format!("column {} has {values} values in {rows} rows", column.column_path());
                return Err(StoreError::Damaged { path: path.to_owned(), problem });
            }
        }
    }
    Ok(())
}

fn text_rows(frame: &DataFrame, path: &Path) -> Result<(Vec<String>, Vec<Vec<String>>)> {
    // The rows of its groups may be more than the file says in all.
    let mut rows = vec![Vec::new(); bounded(frame.height(), path)?];
    let mut header = Vec::new();
    for column in frame.columns() {
        header.push(column.name().to_string());
        let cells =
            texts(column).map_err(|error| StoreError::Damaged { path: path.to_owned(), problem: error.to_string() })?;
        for (row, cell) in rows.iter_mut().zip(cells) {
            row.push(cell);
        }
    }
    Ok((header, rows))
}

/// A column as text; NULL is empty.
fn texts(column: &Column) -> Result<Vec<String>, polars::error::PolarsError> {
    let (per_unit, local) = match column.dtype() {
        DataType::Datetime(unit, zone) => {
            let per_unit = match unit {
                TimeUnit::Nanoseconds => 1_000,
                TimeUnit::Microseconds => 1,
                TimeUnit::Milliseconds => -1_000,
            };
            (per_unit, zone.is_none())
        }
        DataType::Date => (-86_400_000_000, true),
        _ => {
            let column = column.cast(&DataType::String)?;
            return Ok(column.str()?.iter().map(|cell| cell.unwrap_or_default().to_owned()).collect());
        }
    };
    let numbers = column.cast(&DataType::Int64)?;
    let text = |number: Option<i64>| {
        let Some(number) = number else { return String::new() };
        let micros = if per_unit < 0 { number.saturating_mul(-per_unit) } else { number.div_euclid(per_unit) };
        match jiff::Timestamp::from_microsecond(micros) {
            Ok(time) if local => TimeZone::UTC.to_datetime(time).to_string(),
            _ => Timestamp(micros).to_string(),
        }
    };
    Ok(numbers.i64()?.iter().map(text).collect())
}

/// The rows of a table that this program wrote: a file, or the table's folder, where of several rows with the same `key`
/// that of the newest snapshot counts.
pub(crate) fn table_rows<T: Table>(path: &Path, key: fn(&T) -> &String) -> Result<Vec<T>> {
    let files = if path.is_dir() { parquet_files(path)? } else { vec![path.to_owned()] };
    let mut rows: BTreeMap<String, T> = BTreeMap::new();
    for file in files {
        let found = Partition::open(&file)?.all_rows::<T>()?;
        rows.extend(found.into_iter().map(|row| (key(&row).clone(), row)));
    }
    Ok(rows.into_values().collect())
}

/// Whether a file is Parquet, or a folder.
pub(crate) fn is_table(path: &Path) -> io::Result<bool> {
    if path.is_dir() {
        return Ok(true);
    }
    let mut begin = Vec::new();
    fs::File::open(path)?.take(PARQUET.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == PARQUET)
}

/// A log as another program writes it: with dictionaries, not compressed; for the fuzzer.
#[cfg(any(test, feature = "lab"))]
pub(crate) fn foreign_log() -> Vec<u8> {
    use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray, TimestampMicrosecondArray};

    let source = StringArray::from_iter_values((0..100).map(|i| format!("s{}", i % 7)));
    let time = TimestampMicrosecondArray::from_iter((0..100).map(|i| (i % 9 != 0).then_some(i * 3_600_000_000)));
    let signal = BooleanArray::from_iter((0..100).map(|i| Some(i % 3 == 0)));
    let columns: [(&str, ArrayRef); 3] = [
        ("source", Arc::new(source)),
        ("updated_at", Arc::new(time.with_timezone("UTC"))),
        ("signal", Arc::new(signal)),
    ];
    let write = || -> Option<Vec<u8>> {
        let batch = RecordBatch::try_from_iter(columns).ok()?;
        let mut writer = ::parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).ok()?;
        writer.write(&batch).ok()?;
        writer.into_inner().ok()
    };
    write().unwrap_or_else(|| b"PAR1".to_vec())
}

#[cfg(test)]
mod tests {
    use polars::prelude::Scalar;

    use super::*;
    use crate::store::parquet::PartitionWriter;
    use crate::tables::stats::UpdateRow;

    #[test]
    fn a_table_that_claims_too_many_rows_is_told_as_damaged() {
        let nothing = |rows: usize| {
            let column = Column::new_scalar("source".into(), Scalar::null(DataType::String), rows);
            DataFrame::new(rows, vec![column]).unwrap()
        };
        let (header, rows) = text_rows(&nothing(3), Path::new("log")).unwrap();
        assert_eq!((header, rows), (vec!["source".to_owned()], vec![vec![String::new()]; 3]));
        let error = text_rows(&nothing(33_895_881_900_004), Path::new("log")).unwrap_err().to_string();
        assert!(error.contains("log") && error.contains("33895881900004 rows"), "{error}");
    }

    /// Whatever byte of it went bad: nothing asks for memory that there is not.
    #[test]
    fn a_table_of_somebody_else_that_went_bad_is_read_or_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.parquet");
        let sound = foreign_log();
        let read = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            open(&path)
        };
        assert!(matches!(read(&sound), Ok(LogFile::Rows { rows, .. }) if rows.len() == 100));
        let mut told = 0;
        for at in PARQUET.len()..sound.len() {
            for flipped in [0x01, 0x80, 0xff] {
                let mut bytes = sound.clone();
                bytes[at] ^= flipped;
                told += usize::from(read(&bytes).is_err_and(|error| error.to_string().contains("log.parquet")));
            }
        }
        assert!(told > sound.len() / 10, "{told}");
    }

    #[test]
    fn a_table_whose_parts_contradict_each_other_is_told_as_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.parquet");
        let writer = PartitionWriter::<UpdateRow>::create(&path).unwrap().first_of_table(true);
        writer.finish().unwrap();
        let sound = fs::read(&path).unwrap();
        assert!(matches!(open(&path), Ok(LogFile::Rows { rows, .. }) if rows.is_empty()));
        let mut told = 0;
        for at in PARQUET.len()..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x04;
            fs::write(&path, bytes).unwrap();
            told += usize::from(open(&path).is_err_and(|error| error.to_string().contains("log.parquet")));
        }
        assert!(told > sound.len() / 20, "{told}");
    }
}
