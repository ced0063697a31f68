//! Whether the files of a store are what was written, and what repairs those that are not.

use anyhow::Result;
use rayon::prelude::*;

use crate::config::Pipeline;
use crate::model::StageId;
use crate::report::integrity::{HarmedFile, Integrity};
use crate::run::inventory::Inventory;
use crate::run::windows::Taking;
use crate::store::Store;
use crate::store::integrity::{Harmed, NamedFile, Subset};

/// Compares files with what their manifests say.
pub(crate) fn check(pipeline: &Pipeline, store: &Store, subset: Subset) -> Result<Integrity> {
    let named = store.named_files(subset)?;
    let (files, bytes) = (named.len() as u64, named.iter().map(NamedFile::bytes).sum());
    let looked: Vec<Option<Harmed>> = named.par_iter().map(|file| store.harm(file)).collect::<Result<_, _>>()?;
    if looked.iter().all(Option::is_none) {
        return Ok(Integrity { files, bytes, harmed: Vec::new() });
    }
    let inventory = Inventory::take(pipeline, Some(store), Taking::default(), None)?;
    let mut harmed = Vec::new();
    for Harmed { snapshot, stage, table, harm } in looked.into_iter().flatten() {
        let task = inventory.tasks.iter().find(|task| task.snapshot.id == snapshot);
        let repair = if store.is_first_kept(&snapshot)? {
            Err("it cannot be made again: what came before it was pruned; take the file from a backup".to_owned())
        } else if stage == StageId::Ingest && task.is_none_or(|task| task.folder.is_none()) {
            Err("it cannot be made again: the snapshot's folder is gone; take the file from a backup".to_owned())
        } else {
            Ok(format!("ratoon check {} --repair", pipeline.path.display()))
        };
        harmed.push(HarmedFile { table, snapshot, stage, harm: harm.as_str(), repair, repaired: false });
    }
    Ok(Integrity { files, bytes, harmed })
}
