//! How the sources of a store change.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::config::Pipeline;
use crate::manifests::Observed;
use crate::model::SnapshotId;
use crate::report::sources::Sources;
use crate::store::Store;
use crate::tables::record::Table as _;
use crate::tables::stats::UpdateStatsRow;

/// What is known of all sources after a snapshot; without one, after the newest. `None` if nothing was learned yet.
pub(crate) fn sources(pipeline: &Pipeline, snapshot: Option<&SnapshotId>) -> Result<Option<Sources>> {
    let Some(store) = Store::open(&pipeline.corpus.store)? else { return Ok(None) };
    let observed = store.manifests::<Observed>()?;
    let known = observed.into_iter().map(|manifest| manifest.snapshot);
    let at = match snapshot {
        Some(id) => known.into_iter().find(|known| known == id),
        None => known.last(),
    };
    let Some(at) = at else { return Ok(None) };
    let mut rows: BTreeMap<String, UpdateStatsRow> = BTreeMap::new();
    for snapshot in store.layers(UpdateStatsRow::NAME, &at)?.snapshots().iter().rev() {
        for row in store.partition(UpdateStatsRow::NAME, snapshot)?.all_rows::<UpdateStatsRow>()? {
            rows.insert(row.source.clone(), row);
        }
    }
    Ok(Some(Sources { snapshot: at, rows: rows.into_values().collect() }))
}
