//! Pages with their old pages, shard by shard, in batches that bound the memory.

use anyhow::Result;

use crate::model::SnapshotId;
use crate::store::Store;
use crate::store::parquet::Partition;
use crate::store::texts::ShardReader;
use crate::tables::ingest::{Page, PagePair};
use crate::tables::record::Table as _;

/// New text in a batch; old texts come to about as much again.
const BATCH_BYTES: i64 = 16 << 20;

/// A page and what it is compared with, with both texts.
pub(super) struct Pair {
    pub(super) row: PagePair,
    pub(super) text: String,
    /// Text of the old page.
    pub(super) old_text: String,
}

/// Whether a page has an old page of its own URL whose text differs.
pub(super) fn differs(row: &PagePair) -> bool {
    row.moved_from.is_none()
        && row.old_text_snapshot.is_some()
        && row.old_text_digest.is_some_and(|digest| digest != row.text_digest)
}

/// Calls `visit` with batches of the pages of a shard whose text differs from the last good one of their URL, in URL
/// order.
pub(super) fn changed_pages(
    store: &Store,
    snapshot: &SnapshotId,
    shard: u32,
    mut visit: impl FnMut(Vec<Pair>) -> Result<()>,
) -> Result<()> {
    let partition = Partition::open(&store.partition_file(Page::NAME, snapshot))?;
    let rows: Vec<PagePair> = partition.shard::<PagePair>(shard)?.into_iter().filter(differs).collect();
    let mut reader = ShardReader::new(store, shard);
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let mut batch: Vec<PagePair> = Vec::new();
        let mut bytes = 0;
        while let Some(row) = rows.next_if(|row| batch.is_empty() || bytes + row.text_bytes <= BATCH_BYTES) {
            bytes += row.text_bytes;
            batch.push(row);
        }
        let new: Vec<_> = batch.iter().map(|row| (row.url.as_str(), &row.text_snapshot)).collect();
        let texts = reader.texts(&new)?;
        let old: Vec<_> =
            batch.iter().filter_map(|row| Some((row.url.as_str(), row.old_text_snapshot.as_ref()?))).collect();
        let old_texts = reader.texts(&old)?;
        let pairs = batch.into_iter().zip(texts.into_iter().zip(old_texts));
        visit(pairs.map(|(row, (text, old_text))| Pair { row, text, old_text }).collect())?;
    }
    Ok(())
}
