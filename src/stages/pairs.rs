//! Pages with their old pages, shard by shard, in batches that bound the memory.

use anyhow::Result;

use crate::model::SnapshotId;
use crate::plan::model::Speed;
use crate::run::clock::{Clock, Stopwatch};
use crate::store::Store;
use crate::store::batches::batches;
use crate::store::texts::ShardReader;
use crate::tables::ingest::{Page, PagePair};
use crate::tables::record::Table as _;

/// A page and what it is compared with, with both texts.
pub(super) struct Pair<'a> {
    pub(super) row: &'a PagePair,
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

/// The pages of a shard whose text differs from the last good one of their URL, in URL order.
pub(super) fn changed_rows(store: &Store, snapshot: &SnapshotId, shard: u32) -> Result<Vec<PagePair>> {
    let partition = store.partition(Page::NAME, snapshot)?;
    Ok(partition.shard::<PagePair>(shard)?.into_iter().filter(differs).collect())
}

/// Pages with both texts, and what reading them cost.
pub(super) fn with_texts<'a>(reader: &mut ShardReader<'_>, rows: &'a [PagePair]) -> Result<(Vec<Pair<'a>>, Speed)> {
    let watch = Stopwatch::start(Clock::Own);
    let new: Vec<_> = rows.iter().map(|row| (row.url.as_str(), &row.text_snapshot)).collect();
    let texts = reader.texts(&new)?;
    let old: Vec<_> = rows.iter().filter_map(|row| Some((row.url.as_str(), row.old_text_snapshot.as_ref()?))).collect();
    let old_texts = reader.old_texts(&old)?;
    let bytes = texts.iter().chain(&old_texts).map(String::len).sum::<usize>() as u64;
    let speed = Speed { bytes, seconds: watch.seconds() };
    let pairs = rows.iter().zip(texts.into_iter().zip(old_texts));
    Ok((pairs.map(|(row, (text, old_text))| Pair { row, text, old_text }).collect(), speed))
}

/// Calls `visit` with batches of the changed pages of a shard, in URL order; returns what reading them cost.
pub(super) fn changed_pages(
    store: &Store,
    snapshot: &SnapshotId,
    shard: u32,
    mut visit: impl FnMut(Vec<Pair<'_>>) -> Result<()>,
) -> Result<Speed> {
    let mut read = Speed::default();
    let mut reader = ShardReader::new(store, shard);
    let rows = changed_rows(store, snapshot, shard)?;
    for batch in batches(&rows, |row| row.text_bytes) {
        let (pairs, speed) = with_texts(&mut reader, batch)?;
        read.add(speed);
        visit(pairs)?;
    }
    Ok(read)
}
