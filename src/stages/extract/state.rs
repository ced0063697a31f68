//! The state of extractions at a snapshot: for each page that lives there, what an extractor made of it last.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use anyhow::Result;

use crate::model::SnapshotId;
use crate::store::Store;
use crate::store::texts::rows_of;
use crate::tables::extract::Extraction;
use crate::tables::ingest::PagePointer;
use crate::tables::mentions::{MentionRow, MentionSchema, mentions_of};
use crate::tables::record::Table as _;

/// The extractions of a shard's pages by one extractor, by URL; none if the extractor did not run in the snapshot.
pub(crate) fn extracted_at(store: &Store, extractor: &str, at: &SnapshotId, shard: u32) -> Result<Vec<Extraction>> {
    let layers = store.layers(&mentions_of(extractor), at)?;
    if layers.snapshots().first() != Some(at) {
        return Ok(Vec::new());
    }
    let pages: Vec<PagePointer> = store.pages_at(at)?.shard(store, shard)?;
    let mut living: HashSet<&str> = pages.iter().map(|page| page.url.as_str()).collect();
    let mut found: Vec<Extraction> = Vec::new();
    for snapshot in layers.snapshots() {
        for row in store.partition(Extraction::NAME, snapshot)?.shard::<Extraction>(shard)? {
            // The newest row of a page counts.
            if *row.extractor == *extractor && living.remove(&*row.url) {
                found.push(row);
            }
        }
    }
    found.sort_by(|a, b| Arc::cmp(&a.url, &b.url));
    Ok(found)
}

/// Those of these pages, which live at the snapshot and are ascending.
pub(crate) fn extracted_of(
    store: &Store,
    extractor: &str,
    at: &SnapshotId,
    shard: u32,
    urls: &[&str],
) -> Result<Vec<Extraction>> {
    let layers = store.layers(&mentions_of(extractor), at)?;
    let mut left: Vec<&str> = if layers.snapshots().first() == Some(at) { urls.to_vec() } else { Vec::new() };
    let mut found: Vec<Extraction> = Vec::new();
    for snapshot in layers.snapshots() {
        if left.is_empty() {
            break;
        }
        let rows = rows_of::<Extraction>(store, shard, Extraction::NAME, snapshot, &left)?;
        let rows = rows.into_iter().flatten().filter(|row| *row.extractor == *extractor);
        let known = found.len();
        found.extend(rows);
        // The newest row of a page counts.
        let settled: HashSet<&str> = found[known..].iter().map(|row| &*row.url).collect();
        left.retain(|url| !settled.contains(url));
    }
    found.sort_by(|a, b| Arc::cmp(&a.url, &b.url));
    Ok(found)
}

/// The mentions of these extractions, wherever they lie, by URL.
pub(crate) fn mentions_of_rows(
    store: &Store,
    extractor: &str,
    shard: u32,
    extractions: &[Extraction],
) -> Result<Vec<MentionRow>> {
    let mut places: BTreeMap<&SnapshotId, Vec<&str>> = BTreeMap::new();
    for row in extractions {
        if let Some(snapshot) = &row.mentions_snapshot {
            places.entry(snapshot).or_default().push(&row.url);
        }
    }
    let mut rows = Vec::new();
    for (snapshot, urls) in places {
        let partition = store.partition(&mentions_of(extractor), snapshot)?;
        let Some(schema) = partition.schema().map(|schema| MentionSchema::of(schema)) else { continue };
        let part = partition.part(shard);
        for batch in partition.batches(&part, Some(&partition.find(&part, &urls)?))? {
            rows.extend(schema.decode(&batch)?);
        }
    }
    rows.sort_by(|a: &MentionRow, b| Arc::cmp(&a.url, &b.url));
    Ok(rows)
}

/// The columns of an extractor's mentions at a snapshot; `None` if it has never found any.
pub(crate) fn mention_schema(store: &Store, extractor: &str, at: &SnapshotId) -> Result<Option<MentionSchema>> {
    for snapshot in store.layers(&mentions_of(extractor), at)?.snapshots() {
        if let Some(schema) = store.partition(&mentions_of(extractor), snapshot)?.schema() {
            return Ok(Some(MentionSchema::of(schema)));
        }
    }
    Ok(None)
}
