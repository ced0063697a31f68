//! What the report says, looked up section by section.
//!
//! It costs what it shows: the last snapshots in numbers, what the newest one changed, the events of those nights, and a few
//! columns of the sources. Pages and mentions that stayed as they were are never read.

mod changes;
mod costs;
mod found;
mod growth;
mod health;
mod past;
mod polls;
mod rhythm;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use self::past::{Past, PastNight};
use crate::config::Pipeline;
use crate::model::{Digest, SnapshotId};
use crate::report::overview::{NightLine, Overview};
use crate::store::Store;
use crate::store::manifest::SnapshotDone;
use crate::tables::close::SnapshotRow;
use crate::tables::ingest::Page;
use crate::tables::record::{Record, Table as _};
use crate::tables::schedule::SourceOnly;

/// Snapshots that are shown of each development.
const WINDOW: usize = 60;
/// Rows of a table that are shown.
const ROWS: usize = 200;

/// What has been looked up for all sections.
struct Look<'a> {
    pipeline: &'a Pipeline,
    store: &'a Store,
    /// Snapshots that are done, oldest first.
    done: Vec<Arc<SnapshotDone>>,
    /// The last of them in numbers, oldest first.
    nights: Vec<NightLine>,
    /// The same nights, as they are shown beside each other.
    past: Vec<PastNight>,
}

/// The whole report. `file`: where it will lie. A run notes what the next report needs of these nights.
pub(crate) fn overview(pipeline: &Pipeline, store: &Store, file: &Path, is_run: bool) -> Result<Overview> {
    let name = pipeline.path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut overview = Overview { name, window: WINDOW, ..Overview::default() };
    let all = store.all_done()?;
    let is_done = |done: &&Arc<SnapshotDone>| done.table(SnapshotRow::NAME).is_some();
    let done: Vec<Arc<SnapshotDone>> = all.iter().filter(is_done).map(Arc::clone).collect();
    let noted = Past::noted(store);
    let last = &done[done.len().saturating_sub(WINDOW)..];
    let past = last.iter().map(|night| noted.night(store, night)).collect::<Result<Vec<_>>>()?;
    if is_run {
        noted.note(store, last.iter().map(|night| night.snapshot.id.clone()).zip(past.iter().cloned()))?;
    }
    let line = |(night, past): (&Arc<SnapshotDone>, &PastNight)| NightLine {
        snapshot: night.snapshot.id.clone(),
        row: past.row.clone(),
    };
    let nights = last.iter().zip(&past).map(line).collect();
    let look = Look { pipeline, store, done, nights, past };
    // The first reads about as much as all others together.
    let (changes, others) = rayon::join(
        || changes::changes(&look, file),
        || anyhow::Ok((found::found(&look)?, costs::costs(&look)?, rhythm::rhythm(&look)?, polls::polls(&look)?)),
    );
    overview.changes = changes?;
    (overview.found, overview.costs, overview.rhythm, overview.polls) = others?;
    overview.growth = growth::growth(&look);
    overview.health = health::health(&look, &all)?;
    Ok(overview)
}

/// Whether one of these snapshots has rows of all pages.
pub(crate) fn has_whole(store: &Store, snapshots: &[&SnapshotId]) -> Result<bool> {
    for snapshot in snapshots {
        let done = store.snapshot_done(snapshot)?;
        if done.is_some_and(|done| done.table(Page::NAME).is_some_and(|written| written.whole)) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Look<'_> {
    fn newest(&self) -> Option<&SnapshotId> {
        self.nights.last().map(|night| &night.snapshot)
    }

    /// All rows that a snapshot has of a table.
    fn rows<R: Record>(&self, table: &str, snapshot: &SnapshotId) -> Result<Vec<R>> {
        Ok(self.store.partition(table, snapshot)?.all_rows()?)
    }

    /// The newest row of every source.
    fn sources<R: Record>(&self, table: &str, source: impl Fn(&R) -> &String) -> Result<Vec<R>> {
        let Some(at) = self.done.iter().rev().find(|done| done.table(table).is_some()) else { return Ok(Vec::new()) };
        let layers = self.store.layers(table, &at.snapshot.id)?;
        let Some((newest, older)) = layers.snapshots().split_first() else { return Ok(Vec::new()) };
        let mut rows = self.rows::<R>(table, newest)?;
        let mut seen: HashSet<String> = HashSet::new();
        if !older.is_empty() {
            seen.extend(rows.iter().map(|row| source(row).clone()));
        }
        for snapshot in older {
            // Mostly all sources have newer rows: only those that have none are read.
            let partition = self.store.partition(table, snapshot)?;
            let (all, mut place) = (partition.all(), 0..0);
            let mut fresh = Vec::new();
            partition.visit::<SourceOnly<'_>>(&all, |row| {
                place = place.end..place.end + 1;
                if !seen.contains(row.source) {
                    fresh.push(place.clone());
                }
            })?;
            let more = partition.rows_at::<R>(&all, &fresh)?;
            seen.extend(more.iter().map(|row| source(row).clone()));
            rows.extend(more);
        }
        Ok(rows)
    }
}

/// Where a file with both versions of a page lies, as seen from the report: reports side by side have a folder each.
#[must_use]
pub(crate) fn page_file(report: &Path, to: &SnapshotId, url: &str) -> String {
    let name = report.file_stem().unwrap_or_default().to_string_lossy();
    format!("{name}_pages/{to}-{}.html", Digest::of(url.as_bytes()))
}

/// How often each is there, the most frequent first.
fn counted(all: impl Iterator<Item = String>) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts
}
