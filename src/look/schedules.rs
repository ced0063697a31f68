//! The schedules of a store.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use crate::config::Pipeline;
use crate::manifests::Scheduled;
use crate::model::{Method, SnapshotId};
use crate::report::schedules::tables::Stored;
use crate::store::Store;
use crate::tables::record::Table as _;
use crate::tables::schedule::ScheduleRow;

/// The schedules after a snapshot; without one, after the newest that has some. `None` if there are none at all.
pub(crate) fn stored(pipeline: &Pipeline, snapshot: Option<&SnapshotId>) -> Result<Option<Stored>> {
    let Some(store) = Store::open(&pipeline.corpus.store)? else { return Ok(None) };
    let manifest = match snapshot {
        Some(id) => Some(store.manifest::<Scheduled>(id)?.with_context(|| format!("{id} has no schedules"))?),
        None => store.manifests::<Scheduled>()?.pop(),
    };
    let Some(manifest) = manifest else { return Ok(None) };
    let mut rows = schedule_rows(&store, &manifest.snapshot)?;
    // What has gone is not polled.
    rows.retain(|row| row.method != Method::Gone);
    Ok(Some(Stored { snapshot: manifest.snapshot, rows, host_limit: manifest.summary.host_limit }))
}

/// The newest schedule of each source at a snapshot, in the order of shards and names.
fn schedule_rows(store: &Store, at: &SnapshotId) -> Result<Vec<ScheduleRow>> {
    let mut rows: BTreeMap<(u32, String), ScheduleRow> = BTreeMap::new();
    for snapshot in store.layers(ScheduleRow::NAME, at)?.snapshots().iter().rev() {
        for row in store.partition(ScheduleRow::NAME, snapshot)?.all_rows::<ScheduleRow>()? {
            rows.insert((store.shard_of(&row.source), row.source.clone()), row);
        }
    }
    Ok(rows.into_values().collect())
}
