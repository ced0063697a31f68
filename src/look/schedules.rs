//! The schedules of a store.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::config::Pipeline;
use crate::manifests::Scheduled;
use crate::model::SnapshotId;
use crate::report::schedules::tables::Stored;
use crate::store::Store;
use crate::tables::record::Table as _;
use crate::tables::schedule::ScheduleRow;

/// The schedules after a snapshot; without one, after the newest that has some. `None` if there are none at all.
pub(crate) fn stored(pipeline: &Pipeline, snapshot: Option<&SnapshotId>) -> Result<Option<Stored>> {
    let root = &pipeline.corpus.store;
    let Some(store) = Store::open(root)? else { return Ok(None) };
    let Some(newest) = store.manifests::<Scheduled>()?.pop() else { return Ok(None) };
    let snapshot = snapshot.unwrap_or(&newest.snapshot).clone();
    let rows = schedule_rows(&store, &snapshot)?;
    Ok(Some(Stored {
        snapshot,
        rows,
        newest: newest.snapshot,
        host_limit: newest.summary.host_limit,
        timers: root.join("schedule.timers").exists(),
        root: root.clone(),
    }))
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
