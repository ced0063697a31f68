//! What a changed definition does to old text: all of it is extracted again, or it keeps what was found before.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::job::Job;
use super::live::Live;
use super::output::Output;
use crate::extract::Adopt;
use crate::manifests::Extracted;
use crate::model::{Digest, SnapshotId};
use crate::store::Store;
use crate::store::manifest::Manifest;
use crate::tables::mentions::{MentionSchema, mentions_of};

/// How a snapshot goes on from the one before; all by extractor, see [`Job`].
pub(super) struct Adopting {
    pub(super) crosses: Vec<bool>,
    pub(super) compares: Vec<bool>,
    pub(super) whole: Vec<bool>,
}

impl Adopting {
    /// `before`: the definitions of the snapshot before, which left `previous`. An extractor that starts or changed is run
    /// on all pages, unless that is left to new text.
    pub(super) fn new(
        live: &Live,
        before: &[Option<Digest>],
        previous: Option<&Manifest<Extracted>>,
        pages_whole: bool,
    ) -> Self {
        let mut all = Self { crosses: Vec::new(), compares: Vec::new(), whole: Vec::new() };
        for (live, before) in live.all.iter().zip(before) {
            let crosses = live.leaves(*before);
            let compares = crosses || *before == Some(live.fingerprint);
            let older = previous.is_some_and(|previous| previous.summary.older.contains_key(&*live.name));
            all.whole.push(pages_whole || !compares || (older && live.adopt == Adopt::Now));
            all.crosses.push(crosses);
            all.compares.push(compares);
        }
        all
    }
}

/// Refuses a definition that leaves old text to another one with other columns: one table cannot hold both.
pub(super) fn columns_fit(store: &Store, live: &Live, before: &[Option<Digest>]) -> Result<()> {
    for (live, _) in live.all.iter().zip(before).filter(|(live, before)| live.leaves(**before)) {
        let name = &live.name;
        // A partition without rows has no file, and no columns.
        let columns = |id: &SnapshotId| {
            let partition = store.partition(&mentions_of(name), id).ok()?;
            partition.schema().map(|schema| MentionSchema::of(schema))
        };
        let newest = store.partitions(&mentions_of(name))?.iter().rev().find_map(columns);
        if newest.is_some_and(|there| there != live.schema) {
            bail!(
                "extractor '{name}' has other columns than mentions/{name}, where adopt = \"new-text\" leaves what was \
                 found before; say adopt = \"now\", or give it another name"
            );
        }
    }
    Ok(())
}

/// On how many pages of the snapshot each extractor has what another definition found; only those that have any.
/// `alive`: pages of the snapshot before; `older`: such pages of those worked on, now and before.
pub(super) fn older_totals(
    job: &Job<'_>,
    previous: Option<&Manifest<Extracted>>,
    alive: u64,
    older: &[(u64, u64)],
) -> BTreeMap<String, u64> {
    let total = |i: usize| {
        let name = &job.live.all[i].name;
        let known = || previous.and_then(|previous| previous.summary.older.get(&**name)).copied().unwrap_or(0);
        let before = if job.crosses[i] { alive } else { known() };
        let (now, worked_on) = older[i];
        (name.to_string(), if job.whole[i] { now } else { before.saturating_sub(worked_on) + now })
    };
    (0..job.live.all.len()).map(total).filter(|(_, pages)| *pages > 0).collect()
}

/// Adds the pages of a shard.
pub(super) fn add(older: &mut [(u64, u64)], shard: &Output) {
    for ((now, before), (more, more_before)) in older.iter_mut().zip(shard.older.iter().zip(&shard.older_before)) {
        *now += more;
        *before += more_before;
    }
}
