//! What the newest snapshot changed.

use std::path::Path;

use anyhow::Result;

use super::{Look, ROWS, page_file};
use crate::look::triage;
use crate::manifests::Compared;
use crate::model::SnapshotId;
use crate::model::closed_set::ClosedSet as _;
use crate::report::overview::{AlertLine, Changes, PageLine, QueryLine, TriageLine, WebLine};
use crate::report::webs::picture;
use crate::stages::delta::webs::{AskedWeb, web};
use crate::store::files;
use crate::tables::delta::{Alert, PageDelta};
use crate::tables::record::Table as _;

/// Pages that triage looks at: more would be felt at the end of a night.
const LOOKED: usize = 2_000;
/// Rows of triage that are shown.
const READ: usize = 60;
/// Tuples of a query that are drawn.
const DRAWN: usize = 12;

pub(super) fn changes(look: &Look<'_>, report: &Path) -> Result<Changes> {
    let mut changes = Changes::default();
    let Some(newest) = look.newest() else { return Ok(changes) };
    let Some(compared) = look.store.manifest::<Compared>(newest)? else { return Ok(changes) };
    changes.counts = compared.summary.changes;
    let query = |(name, asked): (String, crate::manifests::AskedQuery)| QueryLine {
        name,
        tuples: asked.tuples,
        failed: asked.failed,
    };
    for (name, asked) in &compared.summary.queries {
        // One that was not due has nothing new to tell.
        if asked.last_asked.is_none() && asked.failed.is_none() {
            changes.webs.extend(web_deltas(look, newest, name)?);
        }
    }
    changes.queries = compared.summary.queries.into_iter().map(query).collect();
    let triaged = triage::changes(look.pipeline, look.store, None, LOOKED)?;
    changes.since = triaged.since;
    changes.to = Some(triaged.to);
    (changes.changed, changes.looked, changes.edits) = (triaged.changed, triaged.looked, triaged.rows.len());
    let line = |row| {
        let line = TriageLine::of(row);
        let file = page_file(report, newest, &line.url);
        let page = files::is_in_use(&report.with_file_name(&file)).unwrap_or(false).then_some(file);
        TriageLine { page, ..line }
    };
    changes.triage = triaged.rows.iter().take(READ).map(line).collect();
    let mut pages: Vec<PageDelta> = look.rows(PageDelta::NAME, newest)?;
    changes.pages_in_all = pages.len();
    pages.sort_by(|a, b| b.new_text_bytes.cmp(&a.new_text_bytes).then_with(|| a.url.cmp(&b.url)));
    changes.pages = pages.into_iter().take(ROWS).map(page_line).collect();
    let alerts: Vec<Alert> = look.rows(Alert::NAME, newest)?;
    changes.alerts_in_all = alerts.len();
    let alert = |alert: Alert| AlertLine {
        watch: alert.watch.to_string(),
        kind: alert.kind.name(),
        url: alert.url,
        text: alert.text,
        value: alert.value,
    };
    changes.alerts = alerts.into_iter().take(ROWS).map(alert).collect();
    Ok(changes)
}

/// What changed in the matches of a query; `None` if nothing did, or if the pipeline file has the query no more.
fn web_deltas(look: &Look<'_>, at: &SnapshotId, query: &str) -> Result<Option<WebLine>> {
    if !look.pipeline.queries.iter().any(|declared| declared.query.name() == query) {
        return Ok(None);
    }
    let asked = AskedWeb { query, at: Some(at), delta: true, anew: false, conditions: &[], nodes: &[] };
    let view = web(look.pipeline, look.store, &asked)?;
    let pictures = view.tuples.iter().take(DRAWN).map(|tuple| picture(&view, tuple)).collect();
    Ok((!view.tuples.is_empty()).then(|| WebLine {
        query: query.to_owned(),
        headline: view.headline(),
        tuples: view.tuples.len(),
        pictures,
    }))
}

fn page_line(row: PageDelta) -> PageLine {
    PageLine {
        url: row.url.to_string(),
        change: row.change,
        reason: row.reason,
        old_bytes: row.old_bytes,
        new_bytes: row.new_bytes,
        new_text_bytes: row.new_text_bytes,
        moved_bytes: row.moved_bytes,
        title_changed: row.title_changed,
        links_changed: row.links_changed,
        moved_to: row.moved_to,
        moved_from: row.moved_from,
        unlinked: row.unlinked,
        structure_changed: row.structure_changed,
    }
}
