//! How many shards a store has whose `store.json` was lost: where its pages lie tells.

use super::{DEFAULT_SHARDS, Result, Store, StoreError, shard_of};
use crate::tables::ingest::Page;
use crate::tables::record::Table as _;

/// So many pages are enough to tell.
const ENOUGH: usize = 2_000;
/// Keys of the index hold the number of a shard in two bytes.
const MOST_SHARDS: u32 = 1 << 16;

impl Store {
    /// The number of shards by which the pages of this store were sorted; that of `self` if nothing speaks against it.
    /// With another one nothing would be found where it lies, and nobody would notice.
    pub(super) fn shards_of_pages(&self) -> Result<u32> {
        let placed = self.placed_pages()?;
        let fits = |shards: &u32| placed.iter().all(|(shard, url)| shard_of(url, *shards) == *shard);
        let mut likely = [self.shards, DEFAULT_SHARDS].into_iter().chain(1..=MOST_SHARDS);
        likely.find(fits).ok_or_else(|| {
            let problem = "missing, and the pages of the store lie in no order that is known; name another store in the pipeline file, and run again";
            StoreError::Damaged { path: self.meta().join("store.json"), problem: problem.into() }
        })
    }

    /// URLs of pages and the shards that they lie in, of the newest snapshots.
    fn placed_pages(&self) -> Result<Vec<(u32, String)>> {
        let mut placed = Vec::new();
        for snapshot in self.named_snapshots()?.into_iter().rev() {
            // What is damaged is told by whoever needs it.
            let pages = self.partition(Page::NAME, &snapshot).and_then(|pages| pages.placed_urls(ENOUGH));
            placed.extend(pages.unwrap_or_default());
            if placed.len() >= ENOUGH {
                break;
            }
        }
        Ok(placed)
    }
}
