//! `ratoon status`: what is done, what is left.

use serde_json::json;

use super::outcome::Outcome;
use super::{Options, output};
use crate::config::Pipeline;
use crate::manifests::Ingested;
use crate::report::overview::Overview;
use crate::run::inventory::Inventory;
use crate::store::Store;
use crate::tables::ingest::{Capture, CaptureStatus, Page, PageChange, RejectRow};
use crate::tables::record::Table as _;

pub(super) fn status(pipeline: &Pipeline, options: &Options) -> anyhow::Result<Outcome> {
    let store = Store::open(&pipeline.corpus.store)?;
    let inventory = Inventory::take(pipeline, store.as_ref())?;
    let mut snapshots = Vec::new();
    let mut rows = Vec::new();
    let mut waiting = Vec::new();
    for task in &inventory.tasks {
        let id = &task.snapshot.id;
        let manifest = match &store {
            Some(store) => store.manifest::<Ingested>(id)?,
            None => None,
        };
        let (Some(store), Some(manifest)) = (&store, manifest) else {
            waiting.push(id.as_str());
            continue;
        };
        let captures = store.frame::<CaptureStatus>(Capture::NAME, id)?;
        let pages = store.frame::<PageChange>(Page::NAME, id)?;
        let seen = Overview::of(&captures, &pages)?;
        let rejects = manifest.rows(RejectRow::NAME);
        rows.push(
            [seen.captures, seen.pages, seen.added, seen.modified, seen.unchanged, seen.carried, seen.moved, rejects]
                .iter()
                .map(ToString::to_string)
                .fold(vec![id.to_string()], |mut row, cell| {
                    row.push(cell);
                    row
                }),
        );
        if let Some(row) = rows.last_mut() {
            row.push(output::size(seen.text_bytes));
        }
        snapshots.push(json!({
            "snapshot": id, "time": manifest.time.to_string(), "rejects": rejects, "base": manifest.summary.base,
            "folder": task.folder.is_some(), "counts": seen,
        }));
    }
    if options.json {
        let store = &pipeline.corpus.store;
        return output::json(&json!({"store": store, "snapshots": snapshots, "waiting": waiting}));
    }
    let mut text = format!("store {}\n", pipeline.corpus.store.display());
    if !rows.is_empty() {
        let header =
            ["snapshot", "captures", "pages", "added", "modified", "unchanged", "carried", "moved", "rejects", "text"];
        text.push_str(&output::table(&header, &rows));
    }
    text.push_str(&match waiting.as_slice() {
        [] => format!("{} snapshots done, none waiting\n", rows.len()),
        _ => format!("{} snapshots done, waiting: {}\n", rows.len(), waiting.join(", ")),
    });
    output::text(&text)
}
