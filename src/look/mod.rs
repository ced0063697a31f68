//! What commands read from a store, without a run: a page against its old version, why a plan was chosen, what is done
//! and what waits, what a night changed, how sources change, schedules, the texts and the pages of a snapshot, and whatever is
//! asked in SQL.
//!
//! A look changes no table of the store and takes no lock. It gives records of [`crate::report`], which renders them, but
//! for [`export`], which writes files elsewhere, and [`catalog`], which writes one beside the tables. Looks that need the insides of a stage lie beside it: `inspect`, `verify`
//! and `audit`, deltas of any two snapshots.

pub(crate) mod catalog;
pub(crate) mod deltas;
pub(crate) mod export;
pub(crate) mod frames;
pub(crate) mod integrity;
pub(crate) mod metrics;
pub(crate) mod overview;
pub(crate) mod plan;
mod rewrite;
pub(crate) mod schedules;
pub(crate) mod sql;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod triage;
pub(crate) mod urls;
pub(crate) mod versions;

use anyhow::{Result, bail};

use crate::config::Pipeline;
use crate::store::Store;

/// The store of a pipeline that has run.
pub(crate) fn open_store(pipeline: &Pipeline) -> Result<Store> {
    match Store::open(&pipeline.corpus.store)? {
        Some(store) => Ok(store),
        None => {
            bail!("no store at {}; run `ratoon run {}` first", pipeline.corpus.store.display(), pipeline.path.display())
        }
    }
}
