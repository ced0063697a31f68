//! What a stage has for one bucket, on its way from a worker to whoever commits it: rows of tables as Arrow, and what is
//! no table in the same form that scratch data has.

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use serde::{Deserialize, Serialize};

use super::read_arrow;
use crate::store::parquet::{EncodedGroup, Encoder, GROUP_ROWS};
use crate::store::{Result, StoreError};
use crate::tables::record::Record;

/// What is no table.
const VALUES: &str = "values";

/// Rows of one table, or all that is no table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) table: String,
    pub(crate) rows: Vec<u8>,
}

/// A bucket's rows of all tables of a stage.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    sections: Vec<Section>,
}

fn damaged(table: &str, problem: &dyn std::fmt::Display) -> StoreError {
    StoreError::Damaged { path: table.into(), problem: format!("rows of a worker: {problem}") }
}

fn to_bytes(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    writer.into_inner()
}

fn from_bytes(bytes: &[u8]) -> Result<RecordBatch, ArrowError> {
    let missing = || ArrowError::IpcError("no rows".to_owned());
    read_arrow(|| StreamReader::try_new(bytes, None)?.next().ok_or_else(missing)?)
}

impl Parcel {
    pub(crate) fn into_sections(self) -> impl Iterator<Item = Section> {
        self.sections.into_iter()
    }

    /// Adds rows of a table that came as a batch.
    pub(crate) fn put_batch(&mut self, table: &str, batch: &RecordBatch) -> Result<()> {
        let rows = to_bytes(batch).map_err(|error| damaged(table, &error))?;
        self.sections.push(Section { table: table.to_owned(), rows });
        Ok(())
    }

    /// Adds rows of a table.
    pub(crate) fn put<R: Record>(&mut self, table: &str, rows: &[R]) -> Result<()> {
        rows.chunks(GROUP_ROWS).try_for_each(|rows| self.put_batch(table, &R::encode(rows)))
    }

    /// Adds row groups of a table, in order.
    pub(crate) fn put_groups(&mut self, table: &str, groups: Vec<EncodedGroup>) -> Result<()> {
        groups.into_iter().try_for_each(|group| match group.into_batch() {
            Some(batch) => self.put_batch(table, &batch),
            None => Err(damaged(table, &"a row group was packed already")),
        })
    }

    /// Adds what is no table; at most once.
    pub(crate) fn put_values<T: Serialize>(&mut self, values: &T) -> Result<()> {
        let rows = postcard::to_stdvec(values).map_err(|error| damaged(VALUES, &error))?;
        self.sections.push(Section { table: VALUES.to_owned(), rows });
        Ok(())
    }

    fn sections_of(&mut self, table: &str) -> Vec<Section> {
        let (of_table, others) = std::mem::take(&mut self.sections).into_iter().partition(|s| s.table == table);
        self.sections = others;
        of_table
    }

    /// Takes the rows of a table as batches, as they were added.
    pub(crate) fn take_batches(&mut self, table: &str) -> Result<Vec<RecordBatch>> {
        let batch = |section: Section| from_bytes(&section.rows).map_err(|error| damaged(table, &error));
        self.sections_of(table).into_iter().map(batch).collect()
    }

    /// Takes the rows of a table.
    pub(crate) fn take<R: Record>(&mut self, table: &str) -> Result<Vec<R>> {
        let mut rows = Vec::new();
        for batch in self.take_batches(table)? {
            rows.extend(R::decode(&batch).map_err(|error| damaged(table, &error))?);
        }
        Ok(rows)
    }

    /// Takes the rows of a table and packs them as the local program does.
    pub(crate) fn take_groups<R: Record>(
        &mut self,
        table: &str,
        shard: u32,
        encoder: &Encoder<R>,
    ) -> Result<Vec<EncodedGroup>> {
        self.take_batches(table)?.into_iter().map(|batch| encoder.encode_batch(shard, batch)).collect()
    }

    pub(crate) fn take_values<T: for<'a> Deserialize<'a>>(&mut self) -> Result<T> {
        let section = self.sections_of(VALUES).pop().ok_or_else(|| damaged(VALUES, &"missing"))?;
        postcard::from_bytes(&section.rows).map_err(|error| damaged(VALUES, &error))
    }

    /// What stands before the rows of a section in a file.
    pub(crate) fn frame(table: &str, rows: usize) -> Vec<u8> {
        let mut frame = (table.len() as u64).to_le_bytes().to_vec();
        frame.extend_from_slice(&(rows as u64).to_le_bytes());
        frame.extend_from_slice(table.as_bytes());
        frame
    }

    /// The sections of a file; `None` if it ends in the middle.
    pub(crate) fn unframed(mut bytes: &[u8]) -> Option<Self> {
        let mut sections = Vec::new();
        while !bytes.is_empty() {
            let (table, rest) = bytes.split_first_chunk::<8>()?;
            let (rows, rest) = rest.split_first_chunk::<8>()?;
            let length = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).ok();
            let (table, rest) = rest.split_at_checked(length(table)?)?;
            let (rows, rest) = rest.split_at_checked(length(rows)?)?;
            sections.push(Section { table: String::from_utf8(table.to_vec()).ok()?, rows: rows.to_vec() });
            bytes = rest;
        }
        Some(Self { sections })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::matching::RegionRow;
    use crate::tables::record::Table as _;

    fn region(i: i64) -> RegionRow {
        RegionRow {
            url: format!("http://a/{i}").into(),
            matcher: crate::matching::MatcherKind::Edges,
            start: i,
            end: i + 1,
            old_start: 2 * i,
            old_snapshot: crate::model::SnapshotId::new("2024-01-01").unwrap(),
        }
    }

    #[test]
    fn a_parcel_survives_its_way() {
        let rows: Vec<RegionRow> = (0..5).map(region).collect();
        let mut parcel = Parcel::default();
        parcel.put(RegionRow::NAME, &rows[..3]).unwrap();
        parcel.put_values(&(7u32, "seven")).unwrap();
        parcel.put(RegionRow::NAME, &rows[3..]).unwrap();
        let mut bytes = Vec::new();
        for section in parcel.into_sections() {
            bytes.extend(Parcel::frame(&section.table, section.rows.len()));
            bytes.extend(section.rows);
        }
        assert!((1..bytes.len()).all(|end| Parcel::unframed(&bytes[..end]).is_none_or(|cut| cut.sections.len() < 3)));
        let mut parcel = Parcel::unframed(&bytes).unwrap();
        assert_eq!(parcel.take::<RegionRow>(RegionRow::NAME).unwrap(), rows);
        assert_eq!(parcel.take::<RegionRow>(RegionRow::NAME).unwrap(), []);
        assert_eq!(parcel.take_values::<(u32, String)>().unwrap(), (7, "seven".to_owned()));
        assert!(parcel.take_values::<u8>().unwrap_err().to_string().contains("missing"));
    }
}
