//! Tables as polars frames, for relational work.

use polars::prelude::{DataFrame, SerReader as _};
use polars_io::prelude::ParquetReader;

use super::{Result, Store, StoreError};
use crate::model::SnapshotId;
use crate::tables::record::Record;

impl Store {
    /// The columns of `R` of one partition of a table.
    pub fn frame<R: Record>(&self, table: &str, snapshot: &SnapshotId) -> Result<DataFrame> {
        let path = self.partition_file(table, snapshot);
        let columns = R::columns().into_iter().map(|column| column.name.to_owned()).collect();
        let file = fs_err::File::open(&path)?.into_parts().0;
        ParquetReader::new(file)
            .with_columns(Some(columns))
            .finish()
            .map_err(|error| StoreError::Damaged { path, problem: error.to_string() })
    }
}
