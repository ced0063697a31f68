//! Rows between workers and whoever runs them: Arrow IPC streams on standard input and output, a batch at a time.
//!
//! Workers are asked for parts or buckets by their numbers, in the first column; what they answer has the columns
//! `bucket`, `table` and `rows`.

use std::io::{BufReader, BufWriter, Read, Write};
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int32Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::read_arrow;
use crate::store::{Result, StoreError};

/// A batch is sent when it has as many bytes or rows.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_ROWS: usize = 4_096;

/// A row that a worker gives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketRow<'a> {
    pub(crate) bucket: i32,
    pub(crate) table: &'a str,
    pub(crate) rows: &'a [u8],
}

fn failed(error: &ArrowError) -> StoreError {
    StoreError::Damaged { path: "Arrow stream".into(), problem: error.to_string() }
}

fn refused(problem: String) -> StoreError {
    StoreError::Damaged { path: "Arrow stream".into(), problem }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("bucket", DataType::Int32, false),
        Field::new("table", DataType::Utf8, false),
        Field::new("rows", DataType::Binary, false),
    ]))
}

/// Writes rows to whoever reads the stream.
pub(crate) struct RowWriter<W: Write> {
    stream: StreamWriter<BufWriter<W>>,
    schema: SchemaRef,
    buckets: Int32Builder,
    tables: StringBuilder,
    rows: BinaryBuilder,
    waiting: usize,
}

impl<W: Write> RowWriter<W> {
    pub(crate) fn new(out: W) -> Result<Self> {
        let schema = schema();
        let stream = StreamWriter::try_new_buffered(out, &schema).map_err(|error| failed(&error))?;
        Ok(Self {
            stream,
            schema,
            buckets: Int32Builder::new(),
            tables: StringBuilder::new(),
            rows: BinaryBuilder::new(),
            waiting: 0,
        })
    }

    pub(crate) fn write(&mut self, row: BucketRow<'_>) -> Result<()> {
        if self.waiting > 0 && self.waiting + row.rows.len() > BATCH_BYTES
            || self.buckets.values_slice().len() >= BATCH_ROWS
        {
            self.flush()?;
        }
        self.buckets.append_value(row.bucket);
        self.tables.append_value(row.table);
        self.rows.append_value(row.rows);
        self.waiting += row.rows.len();
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.buckets.values_slice().is_empty() {
            return Ok(());
        }
        let columns: Vec<Arc<dyn Array>> =
            vec![Arc::new(self.buckets.finish()), Arc::new(self.tables.finish()), Arc::new(self.rows.finish())];
        self.waiting = 0;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(|error| failed(&error))?;
        self.stream.write(&batch).and_then(|()| self.stream.flush()).map_err(|error| failed(&error))
    }

    /// Sends what is left and ends the stream.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.stream.finish().map_err(|error| failed(&error))?;
        let out = self.stream.into_inner().map_err(|error| failed(&error))?;
        out.into_inner().map_err(std::io::IntoInnerError::into_error)?.flush()?;
        Ok(())
    }
}

/// Reads rows as they come.
pub(crate) struct RowReader<R: Read> {
    /// `None` if nothing at all came: an empty part has no schema either.
    stream: Option<StreamReader<BufReader<R>>>,
}

impl<R: Read> RowReader<R> {
    pub(crate) fn new(from: R) -> Result<Self> {
        use std::io::BufRead as _;
        let mut from = BufReader::with_capacity(1 << 18, from);
        if from.fill_buf()?.is_empty() {
            return Ok(Self { stream: None });
        }
        Ok(Self { stream: Some(read_arrow(|| StreamReader::try_new(from, None)).map_err(|error| failed(&error))?) })
    }

    /// The next rows; `None` after the last.
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        read_arrow(|| stream.next().transpose()).map_err(|error| failed(&error))
    }

    /// Calls `visit` with each row of workers.
    pub(crate) fn each(&mut self, mut visit: impl FnMut(BucketRow<'_>) -> Result<()>) -> Result<()> {
        while let Some(batch) = self.batch()? {
            let column = |name: &str, data_type: DataType| {
                let found = batch.column_by_name(name).filter(|array| *array.data_type() == data_type);
                found.ok_or_else(|| refused(format!("no column {name} of type {data_type}")))
            };
            let (buckets, tables, rows) = (
                column("bucket", DataType::Int32)?.as_primitive::<Int32Type>(),
                column("table", DataType::Utf8)?.as_string::<i32>(),
                column("rows", DataType::Binary)?.as_binary::<i32>(),
            );
            for i in 0..batch.num_rows() {
                visit(BucketRow { bucket: buckets.value(i), table: tables.value(i), rows: rows.value(i) })?;
            }
        }
        Ok(())
    }

    /// Calls `visit` with each number that a worker is asked for.
    pub(crate) fn numbers<E: From<StoreError>>(mut self, mut visit: impl FnMut(u32) -> Result<(), E>) -> Result<(), E> {
        while let Some(batch) = self.batch()? {
            let first = batch.columns().first().filter(|array| *array.data_type() == DataType::Int64);
            let first = first.ok_or_else(|| refused("the first column is no int64".to_owned()))?;
            for number in first.as_primitive::<Int64Type>().values() {
                let number = u32::try_from(*number).map_err(|_| refused(format!("{number} is no part or bucket")))?;
                visit(number)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_as_they_went_in() {
        let large = vec![7u8; BATCH_BYTES / 2 + 1];
        let rows: Vec<(i32, &str, &[u8])> =
            vec![(0, "pages", b"a"), (0, "values", b""), (3, "pages", &large), (3, "links", &large), (9, "x", b"end")];
        let mut bytes = Vec::new();
        let mut writer = RowWriter::new(&mut bytes).unwrap();
        for &(bucket, table, rows) in &rows {
            writer.write(BucketRow { bucket, table, rows }).unwrap();
        }
        writer.finish().unwrap();
        let mut found = Vec::new();
        let mut reader = RowReader::new(&bytes[..]).unwrap();
        reader
            .each(|row| {
                found.push((row.bucket, row.table.to_owned(), row.rows.to_vec()));
                Ok(())
            })
            .unwrap();
        let expected: Vec<_> = rows.iter().map(|(b, t, r)| (*b, (*t).to_owned(), r.to_vec())).collect();
        assert_eq!(found, expected);
        let half = &bytes[..bytes.len() / 2];
        assert!(RowReader::new(half).unwrap().each(|_| Ok(())).is_err(), "a stream that ends in the middle");
        assert!(RowReader::new(&b""[..]).unwrap().each(|_| Ok(())).is_ok());
        assert!(RowReader::new(&b"rubbish"[..]).is_err());
        // Whatever byte is another one, it is an error or other rows.
        for at in 0..bytes.len().min(2_000) {
            let mut harmed = bytes[..2_000].to_vec();
            harmed[at] ^= 0x40;
            let _ = RowReader::new(&harmed[..]).and_then(|mut rows| rows.each(|_| Ok(())));
        }
    }
}
