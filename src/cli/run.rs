//! `ratoon run` and the stages.

use std::fmt::Write as _;
use std::path::Path;

use super::outcome::Outcome;
use super::{Options, PlannedArgs, StageArgs, output};
use crate::config::Pipeline;
use crate::manifests::Saved;
use crate::model::StageId;
use crate::run::stage::Asked;
use crate::run::{self, Summary, Wanted};
use crate::stages;

/// Alerts shown; all are in the table.
const ALERTS: usize = 20;

pub(super) fn run(
    stage: Option<StageId>,
    args: &StageArgs,
    planned: Option<&PlannedArgs>,
    options: &Options,
) -> anyhow::Result<Outcome> {
    let wanted = Wanted {
        stage,
        snapshot: args.snapshot.clone(),
        force: options.force,
        dry_run: options.dry_run,
        backfill: planned.and_then(|planned| planned.backfill.clone()),
        asked: Asked { plan: planned.and_then(|planned| planned.plan), keep_joins: false },
    };
    carry_out(&args.pipeline, &wanted, options)
}

/// Does what is wanted and says what was done.
pub(super) fn carry_out(pipeline: &Path, wanted: &Wanted, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(pipeline)?;
    let summary = run::run(stages::graph(), &pipeline, wanted, options.progress())?;
    if options.json {
        output::json(&summary)?;
    } else if !options.quiet {
        output::text(&describe(&summary, options))?;
    }
    Ok(if !summary.failed_queries.is_empty() {
        let names = summary.failed_queries.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        log::error!("all else is done, but queries failed: {names}");
        Outcome::Failed
    } else if options.strict && summary.rejects > 0 {
        log::error!("--strict: {} rejects; see the table rejects", summary.rejects);
        Outcome::Rejected
    } else if summary.too_many_rejects {
        log::warn!("more rejects than max_reject_share allows; see the table rejects");
        Outcome::TooManyRejects
    } else {
        Outcome::Done
    })
}

fn describe(summary: &Summary, options: &Options) -> String {
    let mut text = String::new();
    let store = summary.store.display();
    if summary.done.is_empty() {
        return format!("nothing to do: {} snapshots done in {store}\n", summary.skipped);
    }
    for step in &summary.done {
        let _ = write!(text, "{} {}", step.stage, step.snapshot);
        if let Some(bytes) = step.summary.get("bytes").and_then(serde_json::Value::as_u64) {
            let _ = write!(text, ": {}", output::size(bytes));
        }
        for (table, rows) in &step.tables {
            let _ = write!(text, ", {rows} {table}");
        }
        if let Some(seconds) = step.seconds {
            let _ = write!(text, " ({seconds:.2} s)");
        }
        text.push('\n');
        if let Some(saved) = serde_json::from_value(step.summary["saved"].clone()).ok().as_ref().and_then(saved) {
            let _ = writeln!(text, "  {saved}");
        }
    }
    for alert in summary.alerts.iter().take(ALERTS) {
        let part = |key: &str| alert[key].as_str().map(|part| format!(" {}", part.replace(char::is_control, " ")));
        let value = alert["value"].as_f64().map(|value| format!(" {value:.3}"));
        let parts: String =
            [part("watch"), part("kind"), part("url"), value, part("text")].into_iter().flatten().collect();
        let _ = writeln!(text, "alert {}:{parts}", alert["snapshot"].as_str().unwrap_or_default());
    }
    if summary.alerts.len() > ALERTS {
        let _ = writeln!(text, "and {} more in the table alerts", summary.alerts.len() - ALERTS);
    }
    if options.dry_run {
        let _ = writeln!(text, "dry run: nothing was written to {store}");
    } else {
        let _ = writeln!(text, "tables in {store}");
    }
    text
}

/// What recycling saved, as a line.
pub(super) fn saved(saved: &Saved) -> Option<String> {
    let Saved { bytes, of_bytes, seconds, price } = *saved;
    if bytes == 0 {
        return None;
    }
    let mut line = format!("recycling saved {} of {} of extraction", output::size(bytes), output::size(of_bytes));
    if seconds >= 0.01 {
        let _ = write!(line, ", about {seconds:.2} s of work");
    } else if seconds <= -0.01 {
        let _ = write!(line, ", though it took about {:.2} s more work", -seconds);
    }
    if let Some(price) = price {
        let _ = write!(line, ", {price:.4} in price");
    }
    Some(line)
}
