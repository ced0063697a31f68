//! What a night changed, as the tables have it.

use std::collections::HashSet;

use anyhow::Result;

use crate::config::Pipeline;
use crate::manifests::Compared;
use crate::model::SnapshotId;
use crate::report::difference::Difference;
use crate::store::Store;
use crate::tables::delta::{LinkDelta, PageDelta, RegionDelta, TupleDelta, TupleLinkDelta};
use crate::tables::ingest::{Page, PageReturned};
use crate::tables::record::Table;

/// A snapshot against the one before it.
pub(crate) struct Night {
    pub from: SnapshotId,
    pub to: SnapshotId,
    pub difference: Difference,
}

/// What a snapshot changed; without one, the newest that was compared. `None` where there is nothing to compare with.
pub(crate) fn night(pipeline: &Pipeline, snapshot: Option<&SnapshotId>) -> Result<Option<Night>> {
    let Some(store) = Store::open(&pipeline.corpus.store)? else { return Ok(None) };
    let compared = store.manifests::<Compared>()?;
    let at = match snapshot {
        Some(id) => compared.iter().position(|manifest| manifest.snapshot == *id),
        None => compared.len().checked_sub(1),
    };
    let Some((at, before)) = at.and_then(|at| Some((at, at.checked_sub(1)?))) else { return Ok(None) };
    let (from, to) = (compared[before].snapshot.clone(), compared[at].snapshot.clone());
    let difference = Difference {
        pages: rows::<PageDelta>(&store, &to)?,
        links: rows::<LinkDelta>(&store, &to)?,
        regions: rows::<RegionDelta>(&store, &to)?,
        tuples: rows::<TupleDelta>(&store, &to)?,
        tuple_links: rows::<TupleLinkDelta>(&store, &to)?,
        returned: returned(&store, &to)?,
    };
    Ok(Some(Night { from, to, difference }))
}

/// The URLs whose pages were there before, but not in the snapshot before.
fn returned(store: &Store, snapshot: &SnapshotId) -> Result<HashSet<String>> {
    let pages = store.partition(Page::NAME, snapshot)?.all_rows::<PageReturned>()?;
    Ok(pages.into_iter().filter(|page| page.returned).map(|page| page.url).collect())
}

fn rows<T: Table>(store: &Store, snapshot: &SnapshotId) -> Result<Vec<T>> {
    Ok(store.partition(T::NAME, snapshot)?.all_rows()?)
}
