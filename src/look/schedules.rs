//! The schedules of a store.

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
    let partition = store.partition(ScheduleRow::NAME, &snapshot)?;
    let rows = partition.groups::<ScheduleRow>(&partition.all_groups())?;
    Ok(Some(Stored {
        snapshot,
        rows,
        newest: newest.snapshot,
        host_limit: newest.summary.host_limit,
        timers: root.join("schedule.timers").exists(),
        root: root.clone(),
    }))
}
