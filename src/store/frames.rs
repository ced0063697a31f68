//! Partitions as polars frames: for questions in SQL, and for sums over tables.
//!
//! The stages read rows as records, by shard and by URL ([`super::parquet`]); here whole columns of whole partitions are
//! read, and only those that are asked for.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::DataType as ArrowType;
use fs_err as fs;
use polars::prelude::{
    Column, DataFrame, DataType, Field, IdxCa, IdxSize, NamedFrom as _, PlSmallStr, PolarsError, Scalar, Schema,
    SchemaRef, SerReader as _, TimeUnit, TimeZone,
};
use polars_io::prelude::{ParquetReader, ParquetWriter};

use super::{Result, Store, StoreError, guarded};
use crate::model::SnapshotId;
use crate::tables::record::Column as Declared;

/// The column that says which snapshot's partition has a row. It stands in the name of the partition's folder.
pub(crate) const SNAPSHOT: &str = "snapshot";

/// Rows of a partition, by their places in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) snapshot: SnapshotId,
    /// `None`: all rows.
    pub(crate) rows: Option<Vec<IdxSize>>,
}

impl Store {
    /// Columns of a partition, each by its name and type, in this order; all NULL are those that its file lacks.
    pub(crate) fn frame(&self, table: &str, snapshot: &SnapshotId, columns: &Schema) -> Result<DataFrame> {
        let partition = self.partition(table, snapshot)?;
        let Some(there) = partition.schema() else { return Ok(DataFrame::empty_with_schema(columns)) };
        let path = self.partition_file(table, snapshot);
        let damaged = |error: PolarsError| StoreError::Damaged { path: path.clone(), problem: error.to_string() };
        let wanted = |name: &str| there.field_with_name(name).is_ok();
        let mut names: Vec<String> =
            columns.iter_names().map(ToString::to_string).filter(|name| wanted(name)).collect();
        let counted = names.is_empty();
        if counted {
            // Some column has to be read, to know how many rows there are.
            names.extend(there.fields().first().map(|field| field.name().clone()));
        }
        // The reader compares nothing, and believes what damage says: it may ask for memory that there is not.
        partition.compare(&names)?;
        let reader = ParquetReader::new(fs::File::open(&path)?.into_parts().0).with_columns(Some(names));
        let found = guarded(&path, || reader.finish().map_err(damaged))?;
        let column = |(name, data_type): (&PlSmallStr, &DataType)| match found.column(name) {
            Ok(column) if !counted => column.cast(data_type).map_err(damaged),
            _ => Ok(Column::full_null(name.clone(), found.height(), data_type)),
        };
        let filled: Vec<Column> = columns.iter().map(column).collect::<Result<_>>()?;
        DataFrame::new(found.height(), filled).map_err(damaged)
    }

    /// Rows of a partition, with these columns; `snapshot` may be one of them.
    pub(crate) fn chosen_frame(&self, table: &str, chosen: &Chosen, columns: &Schema) -> Result<DataFrame> {
        let path = || self.partition_file(table, &chosen.snapshot);
        let damaged = |error: PolarsError| StoreError::Damaged { path: path(), problem: error.to_string() };
        let mut stored = columns.clone();
        let place = columns.index_of(SNAPSHOT);
        stored.shift_remove(SNAPSHOT);
        let mut frame = self.frame(table, &chosen.snapshot, &stored)?;
        if let Some(rows) = &chosen.rows {
            frame = frame.take(&IdxCa::new(PlSmallStr::EMPTY, rows)).map_err(damaged)?;
        }
        if let Some(place) = place {
            let id = Scalar::from(PlSmallStr::from_str(chosen.snapshot.as_str()));
            let column = Column::new_scalar(SNAPSHOT.into(), id, frame.height());
            frame.insert_column(place, column).map_err(damaged)?;
        }
        Ok(frame)
    }

    /// The columns that the file of a partition has; `None` if it has no file.
    pub(crate) fn columns_of(&self, table: &str, snapshot: &SnapshotId) -> Result<Option<Vec<Field>>> {
        let partition = self.partition(table, snapshot)?;
        let field =
            |field: &Arc<arrow_schema::Field>| Field::new(field.name().as_str().into(), data_type(field.data_type()));
        Ok(partition.schema().map(|schema| schema.fields().iter().map(field).collect()))
    }
}

/// Columns as a frame has them.
#[must_use]
pub(crate) fn declared(columns: &[Declared]) -> Vec<Field> {
    columns.iter().map(|column| Field::new(column.name.into(), data_type(&column.data_type))).collect()
}

fn data_type(arrow: &ArrowType) -> DataType {
    match arrow {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int64 => DataType::Int64,
        ArrowType::Float64 => DataType::Float64,
        ArrowType::Timestamp(_, _) => DataType::Datetime(TimeUnit::Microseconds, Some(TimeZone::UTC)),
        ArrowType::List(item) => DataType::List(Box::new(data_type(item.data_type()))),
        ArrowType::Struct(fields) => {
            let field = |field: &Arc<arrow_schema::Field>| {
                Field::new(field.name().as_str().into(), data_type(field.data_type()))
            };
            DataType::Struct(fields.iter().map(field).collect())
        }
        // All else is text: the tables have no other types.
        _ => DataType::String,
    }
}

/// All rows of frames that have the same columns.
pub(crate) fn stacked(frames: impl IntoIterator<Item = DataFrame>, columns: &SchemaRef) -> Result<DataFrame> {
    let mut all = DataFrame::empty_with_schema(columns);
    for frame in frames {
        all.vstack_mut_owned(frame)?;
    }
    Ok(all)
}

/// Writes a frame as a Parquet file.
pub(crate) fn write_parquet(frame: &mut DataFrame, to: impl Write) -> Result<()> {
    ParquetWriter::new(to).finish(frame)?;
    Ok(())
}
