//! The schedules of a store.

use anyhow::{Context as _, Result};

use crate::config::Pipeline;
use crate::manifests::Scheduled;
use crate::model::SnapshotId;
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
    let rows = schedule_rows(&store, &manifest.snapshot)?;
    Ok(Some(Stored { snapshot: manifest.snapshot, rows, host_limit: manifest.summary.host_limit }))
}

/// When each source is polled after a snapshot.
fn schedule_rows(store: &Store, snapshot: &SnapshotId) -> Result<Vec<ScheduleRow>> {
    let partition = store.partition(ScheduleRow::NAME, snapshot)?;
    Ok(partition.groups::<ScheduleRow>(&partition.all_groups())?)
}
