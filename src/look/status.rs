//! What is done, what each snapshot brought, and what waits.

use anyhow::Result;
use polars::prelude::{DataFrame, IntoLazy as _, PolarsResult, col, len};

use crate::config::Pipeline;
use crate::manifests::Ingested;
use crate::model::Standing;
use crate::model::closed_set::ClosedSet as _;
use crate::report::status::{Counts, SnapshotStatus, Status};
use crate::run::inventory::Inventory;
use crate::run::stage::Task;
use crate::run::unfinished;
use crate::stages;
use crate::store::Store;
use crate::store::manifest::Manifest;
use crate::tables::ingest::{Capture, CaptureStatus, Page, PageChange, RejectRow};
use crate::tables::record::Table as _;

/// All snapshots of the archive and the store.
pub(crate) fn status(pipeline: &Pipeline) -> Result<Status> {
    let store = Store::open(&pipeline.corpus.store)?;
    let inventory = Inventory::take(pipeline, store.as_ref())?;
    let mut status = Status { store: pipeline.corpus.store.clone(), ..Status::default() };
    for task in &inventory.tasks {
        let manifest = match &store {
            Some(store) => store.manifest::<Ingested>(&task.snapshot.id)?,
            None => None,
        };
        match (&store, manifest) {
            (Some(store), Some(manifest)) => status.snapshots.push(snapshot_status(store, task, &manifest)?),
            _ => status.waiting.push(task.snapshot.id.clone()),
        }
    }
    if let Some(store) = &store {
        status.unfinished = unfinished(stages::graph(), pipeline, store, &inventory)?;
    }
    Ok(status)
}

fn snapshot_status(store: &Store, task: &Task, manifest: &Manifest<Ingested>) -> Result<SnapshotStatus> {
    let snapshot = task.snapshot.id.clone();
    let captures = store.frame::<CaptureStatus>(Capture::NAME, &snapshot)?;
    let pages = store.frame::<PageChange>(Page::NAME, &snapshot)?;
    Ok(SnapshotStatus {
        snapshot,
        time: manifest.time,
        rejects: manifest.rows(RejectRow::NAME),
        base: manifest.summary.base,
        folder: task.folder.is_some(),
        counts: counts(&captures, &pages)?,
    })
}

/// Counts `captures` (`CaptureStatus`) and `pages` (`PageChange`).
fn counts(captures: &DataFrame, pages: &DataFrame) -> PolarsResult<Counts> {
    let status = captures
        .clone()
        .lazy()
        .select([
            len().alias("captures"),
            col("status").neq(200).and(col("status").neq(304)).sum().alias("failed"),
            col("revisit").sum().alias("revisits"),
        ])
        .collect()?;
    let changes = pages
        .clone()
        .lazy()
        .group_by([col("change")])
        .agg([
            len().alias("pages"),
            col("moved_from").is_not_null().sum().alias("moved"),
            col("text_bytes").sum().alias("text_bytes"),
        ])
        .collect()?;
    let mut counts = Counts {
        captures: number(&status, "captures", 0)?,
        failed: number(&status, "failed", 0)?,
        revisits: number(&status, "revisits", 0)?,
        ..Counts::default()
    };
    let names = changes.column("change")?.str()?.clone();
    for (i, name) in names.iter().enumerate() {
        let pages = number(&changes, "pages", i)?;
        counts.pages += pages;
        counts.moved += number(&changes, "moved", i)?;
        counts.text_bytes += number(&changes, "text_bytes", i)?;
        match name.and_then(Standing::named) {
            Some(Standing::Added) => counts.added = pages,
            Some(Standing::Modified) => counts.modified = pages,
            Some(Standing::Unchanged) => counts.unchanged = pages,
            Some(Standing::Carried) => counts.carried = pages,
            None => {}
        }
    }
    Ok(counts)
}

fn number(frame: &DataFrame, column: &str, row: usize) -> PolarsResult<u64> {
    frame.column(column)?.get(row)?.try_extract::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use polars::prelude::df;

    #[test]
    fn counts_are_by_kind() {
        let captures =
            df!("status" => [Some(200i64), Some(404), Some(304), None], "revisit" => [false, false, true, false])
                .unwrap();
        let pages = df!(
            "change" => ["added", "modified", "added"],
            "moved_from" => [None, None, Some("http://a/")],
            "text_bytes" => [1i64, 20, 300],
        )
        .unwrap();
        let expected = Counts {
            captures: 4,
            failed: 1,
            revisits: 1,
            pages: 3,
            added: 2,
            modified: 1,
            moved: 1,
            text_bytes: 321,
            ..Counts::default()
        };
        assert_eq!(counts(&captures, &pages).unwrap(), expected);
        assert_eq!(counts(&captures.head(Some(0)), &pages.head(Some(0))).unwrap(), Counts::default());
    }
}
