//! A plan, and what came of it.

use anyhow::{Context as _, Result};

use crate::config::Pipeline;
use crate::manifests::{Extracted, Planned};
use crate::model::SnapshotId;
use crate::report::plan::Explained;
use crate::stages::extract::ahead::to_ask;
use crate::store::Store;
use crate::tables::plan::{PlanCost, PlanRow};
use crate::tables::record::Table as _;

/// The plan of a snapshot; without one, of the newest that has a plan.
pub(crate) fn explain(pipeline: &Pipeline, store: &Store, snapshot: Option<&SnapshotId>) -> Result<Explained> {
    let first = || format!("run `ratoon plan {}` first", pipeline.path.display());
    let snapshot = match snapshot {
        Some(id) => id.clone(),
        None => {
            let newest = store.manifests::<Planned>()?.pop();
            newest.with_context(|| format!("no snapshot has a plan; {}", first()))?.snapshot
        }
    };
    let planned = store.manifest::<Planned>(&snapshot)?;
    let planned = planned.with_context(|| format!("snapshot {snapshot} has no plan; {}", first()))?.summary;
    let rows = store.partition(PlanRow::NAME, &snapshot)?.shard::<PlanRow>(0)?;
    let extracted = store.manifest::<Extracted>(&snapshot)?;
    let costs = match &extracted {
        Some(extracted) if extracted.tables.contains_key(PlanCost::NAME) => {
            store.partition(PlanCost::NAME, &snapshot)?.shard::<PlanCost>(0)?
        }
        _ => Vec::new(),
    };
    let saved = extracted.map(|extracted| extracted.summary.saved);
    let to_ask = to_ask(pipeline, store, &snapshot)?;
    Ok(Explained { snapshot, planned, rows, costs, saved, to_ask })
}
