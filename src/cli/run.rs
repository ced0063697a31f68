//! `ratoon run` and the stages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::outcome::{Outcome, code_of, is_locked};
use super::{Options, PlannedArgs, RunArgs, StageArgs, output, report as page};
use crate::config::Pipeline;
use crate::config::notify::Event;
use crate::look;
use crate::model::StageId;
use crate::report;
use crate::report::run::Telling;
use crate::run::hands::PassNeeded;
use crate::run::inventory::UnknownSnapshot;
use crate::run::problems::TOLD;
use crate::run::stage::Asked;
use crate::run::{self, Step, Summary, Wanted, notify, shared};
use crate::stages;
use crate::stages::extract::verify::nightly;
use crate::store::Store;
use crate::store::lock::StoreLock;
use crate::store::runs::{RunLine, peak_memory_bytes};

/// All stages.
pub(super) fn all(args: &RunArgs, options: &Options) -> anyhow::Result<Outcome> {
    let wanted = wanted(&args.planned.stage, Some(&args.planned), options);
    carry_out(&args.planned.stage.pipeline, &Wanted { accept: args.accept.clone(), ..wanted }, options)
}

/// The stages up to one.
pub(super) fn stage(
    stage: StageId,
    args: &StageArgs,
    planned: Option<&PlannedArgs>,
    options: &Options,
) -> anyhow::Result<Outcome> {
    let wanted = Wanted { stage: Some(stage), ..wanted(args, planned, options) };
    let outcome = carry_out(&args.pipeline, &wanted, options)?;
    let shown = !options.json && !options.quiet && !options.dry_run;
    if shown && stage == StageId::Stats {
        let pipeline = Pipeline::load(&args.pipeline)?;
        if let Some(sources) = look::stats::sources(&pipeline, args.snapshot.as_ref())? {
            output::text(&sources.text(options.verbose > 0))?;
        }
    }
    Ok(outcome)
}

fn wanted(args: &StageArgs, planned: Option<&PlannedArgs>, options: &Options) -> Wanted {
    Wanted {
        snapshot: args.snapshot.clone(),
        force: options.force,
        discard_history: args.discard_history,
        dry_run: options.dry_run,
        backfill: planned.and_then(|planned| planned.backfill.clone()),
        repair: None,
        asked: Asked {
            plan: planned.and_then(|planned| planned.plan),
            keep_joins: false,
            whole: args.whole,
            retry: true,
        },
        ..Wanted::default()
    }
}

/// Does what is wanted and says what was done.
pub(super) fn carry_out(pipeline: &Path, wanted: &Wanted, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(pipeline)?;
    let start = jiff::Timestamp::now();
    if !wanted.dry_run && (wanted.elsewhere.is_none() || shared::begins(&pipeline)) {
        notify::started(&pipeline);
    }
    let mut summary = Summary::default();
    let ran = run::run_into(&mut summary, stages::graph(), &pipeline, wanted, options.progress());
    if ran.is_ok() && wanted.stage.is_none() {
        verify_some(&pipeline, start, &mut summary);
    }
    // Another run that holds the store, or a snapshot that is not there: this one did not begin. One that waits for
    // workers has not ended.
    let is_no_end =
        |error: &anyhow::Error| is_locked(error) || error.is::<UnknownSnapshot>() || error.is::<PassNeeded>();
    if !wanted.dry_run && !ran.as_ref().is_err_and(is_no_end) {
        let lock = summary.lock.take();
        ended(&pipeline, start, &summary, ran.as_ref().err(), options, lock);
    }
    ran?;
    if options.json {
        output::json(&summary)?;
    } else if !options.quiet {
        let telling = Telling { dry_run: options.dry_run, steps: wanted.stage.is_some() || options.verbose > 0 };
        output::text(&report::run::summary(&summary, &pipeline.path, telling))?;
    }
    Ok(outcome(&summary, options))
}

/// Looks at some pages again after a run that did something. That it cannot be done is no reason for a run to fail.
fn verify_some(pipeline: &Pipeline, start: jiff::Timestamp, summary: &mut Summary) {
    if summary.done.iter().all(|step| step.seconds.is_none()) {
        return;
    }
    let night = jiff::Timestamp::now().duration_since(start).as_secs_f64();
    let looked = look::open_store(pipeline).and_then(|store| {
        let last = store.last_run(|run| run.verified)?;
        nightly::verify_some(pipeline, &store, night, last.as_ref())
    });
    match looked {
        Ok(part) => summary.verified = part,
        Err(error) => log::warn!(target: TOLD, "cannot verify some pages: {error:#}"),
    }
}

/// Writes down how a run went, and tells whoever wants to know. A run that is done does not fail for any of this. `lock`: of
/// its store, which others may have before they are told.
fn ended(
    pipeline: &Pipeline,
    start: jiff::Timestamp,
    summary: &Summary,
    error: Option<&anyhow::Error>,
    options: &Options,
    lock: Option<StoreLock>,
) {
    let line = line(start, summary, error, options);
    let problems = &summary.problems;
    // One that had nothing to do is not worth a line, unless it hears that what was wrong is accepted.
    let said = line.snapshots > 0 || summary.accepted.is_some() || !summary.told_late.is_empty();
    let store = Store::open(&pipeline.corpus.store).ok().flatten();
    if let Some(store) = store.as_ref().filter(|_| error.is_some() || said)
        && let Err(error) = store.note_run(&line)
    {
        log::debug!("cannot note the run: {error}");
    }
    if error.is_none() {
        write_catalog(pipeline);
    }
    if let Err(error) = look::metrics::write(pipeline, &line, problems) {
        log::warn!(target: TOLD, "cannot write metrics: {error:#}");
    }
    let closed = |step: &&Step| step.stage == StageId::Close && step.seconds.is_some();
    let done = summary.done.iter().filter(closed).map(|step| &step.snapshot).chain(summary.told_late.keys());
    // A run that failed has said why, and nothing new is there to be shown.
    if error.is_none()
        && let Err(error) = page::refresh(pipeline, &done.collect::<Vec<_>>(), summary.at_hand.clone())
    {
        log::warn!(target: TOLD, "cannot write the report: {error:#}");
    }
    if let Some(store) = store.filter(|_| error.is_none() && lock.is_some()) {
        store.all_is_told();
    }
    drop(lock);
    let event = match line.exit_code {
        0 => Event::Success,
        code if code == Outcome::Problem.code() => Event::Problem,
        _ => Event::Failure,
    };
    let alerts = summary.alerts.len();
    notify::tell(pipeline, event, &report::run::told(&pipeline_name(pipeline), &line_json(&line), problems, alerts));
}

/// Writes the store's `catalog.sql` anew. It only helps people to read, so that a command never fails for it.
pub(super) fn write_catalog(pipeline: &Pipeline) {
    let written = match Store::open(&pipeline.corpus.store) {
        Ok(Some(store)) => look::catalog::write(&store),
        Ok(None) => Ok(()),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = written {
        log::warn!(target: TOLD, "cannot write {}: {error:#}", look::catalog::FILE);
    }
}

fn pipeline_name(pipeline: &Pipeline) -> String {
    pipeline.path.display().to_string()
}

fn line_json(line: &RunLine) -> serde_json::Value {
    serde_json::to_value(line).unwrap_or_default()
}

/// How a run went. What it did before an error counts too.
fn line(start: jiff::Timestamp, summary: &Summary, error: Option<&anyhow::Error>, options: &Options) -> RunLine {
    let mut seconds = BTreeMap::new();
    let mut snapshots = BTreeSet::new();
    for step in &summary.done {
        *seconds.entry(step.stage).or_default() += step.seconds.unwrap_or(0.0);
        snapshots.insert(&step.snapshot);
    }
    RunLine {
        start: start.to_string(),
        end: jiff::Timestamp::now().to_string(),
        seconds,
        snapshots: snapshots.len(),
        exit_code: error.map_or_else(|| outcome_of(summary, options).code(), code_of),
        error: error.map(|error| format!("{error:#}")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        peak_memory_bytes: peak_memory_bytes(),
        verified: summary.verified.clone(),
    }
}

/// Whether a fresh look at some pages found something else than what is stored.
fn differs(summary: &Summary) -> bool {
    summary.verified.as_ref().is_some_and(|part| !part.different.is_empty())
}

/// How a run that did not fail ended.
fn outcome_of(summary: &Summary, options: &Options) -> Outcome {
    match () {
        () if !summary.failed_queries.is_empty() || differs(summary) => Outcome::Failed,
        () if options.strict && summary.rejects > 0 => Outcome::Rejected,
        () if summary.problems.iter().any(|seen| !seen.accepted) => Outcome::Problem,
        () => Outcome::Done,
    }
}

fn outcome(summary: &Summary, options: &Options) -> Outcome {
    let outcome = outcome_of(summary, options);
    match outcome {
        // Each problem was said when it was seen.
        Outcome::Done | Outcome::Problem => {}
        // What differs was said when it was seen.
        Outcome::Failed if summary.failed_queries.is_empty() => {}
        Outcome::Failed => {
            let names = summary.failed_queries.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            log::error!("all else is done, but queries failed: {names}");
        }
        Outcome::Rejected => log::error!("--strict: {} rejects; see the table rejects", summary.rejects),
    }
    outcome
}
