//! What a run leaves for monitoring.

use std::collections::BTreeMap;

use anyhow::Result;

use super::status;
use crate::config::Pipeline;
use crate::report::metrics::{Metrics, Newest};
use crate::run::problems::Seen;
use crate::store::files;
use crate::store::runs::RunLine;

/// Writes the file of metrics, if one is asked for: whole, then renamed.
pub(crate) fn write(pipeline: &Pipeline, line: &RunLine, problems: &[Seen]) -> Result<()> {
    let Some(path) = &pipeline.notify.metrics else { return Ok(()) };
    let mut by_kind = BTreeMap::new();
    for seen in problems.iter().filter(|seen| !seen.accepted) {
        *by_kind.entry(seen.problem.kind().as_str()).or_insert(0) += 1;
    }
    let file = pipeline.path.file_name().map(|name| name.to_string_lossy().into_owned());
    let metrics = Metrics {
        pipeline: file.unwrap_or_default(),
        run_end: line.end_seconds(),
        run_seconds: line.end_seconds() - line.start_seconds(),
        exit_code: line.exit_code,
        stage_seconds: line.seconds.clone(),
        problems: by_kind,
        // Also where the store is what failed.
        newest: newest(pipeline).unwrap_or_default(),
    };
    Ok(files::write_whole(path, metrics.text().as_bytes())?)
}

fn newest(pipeline: &Pipeline) -> Result<Option<Newest>> {
    let status = status::ingested(pipeline)?;
    let snapshots = status.snapshots.len() as u64;
    Ok(status.snapshots.last().map(|last| Newest {
        time: last.time.seconds(),
        snapshots,
        captures: last.counts.captures,
        pages: last.counts.pages,
        added: last.counts.added,
        modified: last.counts.modified,
        deleted: last.counts.deleted,
        suspects: last.counts.suspects,
        rejects: last.rejects,
        failed_extractions: last.failed_extractions,
        deferred_extractions: last.deferred_extractions,
        incomplete: last.incomplete,
    }))
}
