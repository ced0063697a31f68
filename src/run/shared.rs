//! A run that others work for goes on over many calls of `ratoon commit`, which end with one that finds nothing to do. What
//! a run does once, at its start, is done once in all of them: somebody is told, and what failed is tried again.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::config::Pipeline;
use crate::store::Store;

const FILE: &str = "shared.json";

/// How far a run is that others work for.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct SharedRun {
    under_way: bool,
    /// Some stage was done: what the newest snapshot lacked has been tried again, or it is not the newest any more.
    tried: bool,
}

/// Whether the next call of `ratoon commit` is the first of a run.
pub(crate) fn begins(pipeline: &Pipeline) -> bool {
    let store = Store::open(&pipeline.corpus.store).ok().flatten();
    !store.is_some_and(|store| SharedRun::of(&store).under_way)
}

impl SharedRun {
    /// What cannot be read is as good as none: nothing is known of calls before.
    fn of(store: &Store) -> Self {
        store.meta_file(FILE).ok().flatten().unwrap_or_default()
    }

    /// Goes on with the run, or begins one.
    pub(super) fn take_up(store: &Store) -> Result<Self> {
        let known = Self::of(store);
        if known.under_way {
            return Ok(known);
        }
        let begun = Self { under_way: true, tried: false };
        store.write_meta_file(FILE, &begun)?;
        Ok(begun)
    }

    /// Whether what failed is to be tried again.
    pub(super) fn retries(self) -> bool {
        !self.tried
    }

    /// A call came to its end. `did`: something was done, be it that the next step waits for others.
    pub(super) fn went_on(self, store: &Store, ran: &Result<()>, did: bool) -> Result<()> {
        match (did, ran) {
            (true, _) => Ok(store.write_meta_file(FILE, &Self { under_way: true, tried: true })?),
            (false, Ok(())) => Ok(store.write_meta_file(FILE, &Self::default())?),
            (false, Err(_)) => Ok(()),
        }
    }
}
