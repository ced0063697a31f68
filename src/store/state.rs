//! The state at a snapshot: all that holds there, from the newest whole partition at or before it and the slim ones since.
//!
//! A whole partition says all that holds in its snapshot; a slim one only what the snapshot touched. So the state of a URL
//! is its newest row, unless that says that the page went, or a later whole partition has none. This is the only place
//! that knows it.

use std::collections::HashSet;

use polars::prelude::{BooleanChunked, ChunkCompareEq as _, DataFrame, DataType, Field, IdxSize, Schema};

use super::frames::Chosen;
use super::parquet::Partition;
use super::{Result, Store, StoreError};
use crate::model::SnapshotId;
use crate::tables::ingest::{Page, UrlOnly};
use crate::tables::nature::Gone;
use crate::tables::record::{OfUrl, Record, Table as _};

/// The partitions of a table that make up a state.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    table: String,
    /// Newest first; the last one is whole.
    snapshots: Vec<SnapshotId>,
}

/// A row of a state and the snapshot whose partition holds it.
#[derive(Clone, Debug)]
pub(crate) struct Placed<R> {
    pub(crate) snapshot: SnapshotId,
    pub(crate) row: R,
}

/// The column that says it.
fn gone_column(gone: Gone) -> Field {
    match gone {
        Gone::Where(column, _) => Field::new(column.into(), DataType::String),
        // Only whether there is a time counts, so its type does not matter.
        Gone::Since(column) => Field::new(column.into(), DataType::Int64),
    }
}

/// Which of these rows say that what they are of went.
fn are_gone(gone: Gone, rows: &DataFrame) -> Result<BooleanChunked> {
    Ok(match gone {
        Gone::Where(column, value) => rows.column(column)?.str()?.equal(value),
        Gone::Since(column) => rows.column(column)?.is_not_null(),
    })
}

impl Store {
    /// The partitions that make up the state of a table at a snapshot.
    pub(crate) fn layers(&self, table: &str, at: &SnapshotId) -> Result<Layers> {
        let all = self.all_done()?;
        let newest = all.iter().position(|done| done.snapshot.id == *at);
        let upto = newest.map_or(&[][..], |newest| &all[..=newest]);
        let mut snapshots = Vec::new();
        for done in upto.iter().rev() {
            let Some(written) = done.table(table) else { continue };
            snapshots.push(done.snapshot.id.clone());
            if written.whole {
                return Ok(Layers { table: table.to_owned(), snapshots });
            }
        }
        if snapshots.is_empty() {
            return Ok(Layers { table: table.to_owned(), snapshots });
        }
        let problem = format!("no whole partition at or before snapshot {at}");
        Err(StoreError::Damaged { path: self.root().join(table), problem })
    }

    /// The state of the pages at a snapshot.
    pub(crate) fn pages_at(&self, at: &SnapshotId) -> Result<Layers> {
        self.layers(Page::NAME, at)
    }
}

impl Layers {
    /// Newest first; the last one is whole.
    pub(crate) fn snapshots(&self) -> &[SnapshotId] {
        &self.snapshots
    }

    fn open(&self, store: &Store, snapshot: &SnapshotId) -> Result<Partition> {
        store.partition(&self.table, snapshot)
    }

    /// The rows of a shard, by URL.
    pub(crate) fn shard<R: Record + OfUrl>(&self, store: &Store, shard: u32) -> Result<Vec<R>> {
        Ok(self.placed(store, shard)?.into_iter().map(|placed| placed.row).collect())
    }

    /// The rows of a shard, by URL, each with the snapshot that holds it.
    pub(crate) fn placed<R: Record + OfUrl>(&self, store: &Store, shard: u32) -> Result<Vec<Placed<R>>> {
        let mut rows: Vec<Placed<R>> = Vec::new();
        let mut settled: HashSet<String> = HashSet::new();
        for (i, snapshot) in self.snapshots.iter().enumerate() {
            let partition = self.open(store, snapshot)?;
            let is_oldest = i + 1 == self.snapshots.len();
            let found: Vec<R> = partition.shard(shard)?;
            let placed = |row| Placed { snapshot: snapshot.clone(), row };
            if self.snapshots.len() == 1 {
                return Ok(found.into_iter().map(placed).collect());
            }
            let mut deleted = Vec::new();
            partition.visit::<UrlOnly<'_>>(&partition.deleted(shard), |row| deleted.push(row.url.to_owned()))?;
            let fresh: Vec<R> = found.into_iter().filter(|row| !settled.contains(row.url())).collect();
            if !is_oldest {
                settled.extend(fresh.iter().map(|row| row.url().to_owned()));
                settled.extend(deleted);
            }
            rows.extend(fresh.into_iter().map(placed));
        }
        // Rows of one URL stay in their order.
        rows.sort_by(|a, b| a.row.url().cmp(b.row.url()));
        Ok(rows)
    }

    /// The row of each of these URLs of a shard, which are ascending; of a table that has one row per URL.
    pub(crate) fn of_urls<R: Record + OfUrl>(
        &self,
        store: &Store,
        shard: u32,
        urls: &[&str],
    ) -> Result<Vec<Option<Placed<R>>>> {
        let mut found: Vec<Option<Placed<R>>> = urls.iter().map(|_| None).collect();
        let mut left: Vec<usize> = (0..urls.len()).collect();
        for snapshot in &self.snapshots {
            if left.is_empty() {
                break;
            }
            let partition = self.open(store, snapshot)?;
            let asked: Vec<&str> = left.iter().map(|&i| urls[i]).collect();
            let part = partition.part(shard);
            let ranges = partition.find(&part, &asked)?;
            let mut settled: HashSet<usize> =
                left.iter().zip(&ranges).filter(|(_, range)| !range.is_empty()).map(|(i, _)| *i).collect();
            for row in partition.rows_at::<R>(&part, &ranges)? {
                if let Ok(i) = urls.binary_search(&row.url()) {
                    found[i] = Some(Placed { snapshot: snapshot.clone(), row });
                }
            }
            let gone = partition.find(&partition.deleted(shard), &asked)?;
            settled.extend(left.iter().zip(gone).filter(|(_, range)| !range.is_empty()).map(|(i, _)| *i));
            left.retain(|i| !settled.contains(i));
        }
        Ok(found)
    }

    /// The rows of one URL.
    pub(crate) fn of_url<R: Record>(&self, store: &Store, url: &str) -> Result<Vec<Placed<R>>> {
        let shard = store.shard_of(url);
        for snapshot in &self.snapshots {
            let partition = self.open(store, snapshot)?;
            for (part, deleted) in [(partition.part(shard), false), (partition.deleted(shard), true)] {
                let ranges = partition.find(&part, &[url])?;
                if ranges[0].is_empty() {
                    continue;
                }
                if deleted {
                    return Ok(Vec::new());
                }
                let rows = partition.rows_at::<R>(&part, &ranges)?.into_iter();
                return Ok(rows.map(|row| Placed { snapshot: snapshot.clone(), row }).collect());
            }
        }
        Ok(Vec::new())
    }

    /// Which rows of which partitions make up the state, newest partition first. `key` is the column of text that says
    /// what a row is of: a URL, a source.
    pub(crate) fn chosen(&self, store: &Store, key: &str, gone: Gone) -> Result<Vec<Chosen>> {
        let columns = Schema::from_iter([Field::new(key.into(), DataType::String), gone_column(gone)]);
        let mut settled: HashSet<String> = HashSet::new();
        let mut all = Vec::new();
        for (i, snapshot) in self.snapshots.iter().enumerate() {
            let rows = store.frame(&self.table, snapshot, &columns)?;
            let (keys, gone) = (rows.column(key)?.str()?, are_gone(gone, &rows)?);
            let mut chosen: Vec<IdxSize> = Vec::new();
            let mut more: Vec<&str> = Vec::new();
            for ((place, key), gone) in (0..).zip(keys.iter()).zip(gone.iter()) {
                let Some(key) = key.filter(|key| !settled.contains(*key)) else { continue };
                more.push(key);
                if gone != Some(true) {
                    chosen.push(place);
                }
            }
            if i + 1 < self.snapshots.len() {
                settled.extend(more.into_iter().map(str::to_owned));
            }
            all.push(Chosen { snapshot: snapshot.clone(), rows: Some(chosen) });
        }
        Ok(all)
    }
}
