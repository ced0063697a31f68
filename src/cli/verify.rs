//! `ratoon verify` and `ratoon audit`: fresh looks at what is stored and declared.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::outcome::Outcome;
use super::{Options, open_store, output, snapshot_id};
use crate::config::Pipeline;
use crate::model::SnapshotId;
use crate::stages::extract::verify::{self, Sample};

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The snapshot to look at [default: the newest with mentions]
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    snapshot: Option<SnapshotId>,
    /// Pages to look at
    #[arg(long, value_name = "N", default_value_t = 300)]
    sample: usize,
    /// Look at every page
    #[arg(long, conflicts_with = "sample")]
    all: bool,
    /// Chooses the sample
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// The pipeline file
    pipeline: PathBuf,
    /// The snapshot whose pages to use [default: the newest with mentions]
    #[arg(long, value_name = "ID", value_parser = snapshot_id)]
    snapshot: Option<SnapshotId>,
    /// Pages to draw from
    #[arg(long, value_name = "N", default_value_t = 50)]
    sample: usize,
    /// Times to change the text around a mention
    #[arg(long, value_name = "N", default_value_t = 1000)]
    trials: u64,
    /// Chooses pages and changes
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(super) fn verify(args: &VerifyArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let store = open_store(&pipeline)?;
    let snapshot = args.snapshot.clone().map_or_else(|| verify::newest_extracted(&store), Ok)?;
    let sample = Sample { pages: (!args.all).then_some(args.sample), seed: args.seed };
    let (results, every) = verify::verify(&pipeline, &store, &snapshot, sample, options.progress())?;
    let clean = results.iter().all(|(_, verified)| verified.is_clean());
    if options.json {
        let rows: Vec<_> = results
            .iter()
            .map(|(name, v)| {
                let first: Vec<_> =
                    v.first.iter().map(|(url, d)| json!({"url": url, "difference": d.to_string()})).collect();
                json!({"extractor": name, "pages": v.pages, "mentions": v.mentions, "failed": v.failed,
                       "different": v.different, "bound": if every { 0.0 } else { v.bound() }, "first": first})
            })
            .collect();
        output::json(&json!({"snapshot": snapshot, "clean": clean, "extractors": rows}))?;
    } else {
        let mut text = format!("snapshot {snapshot}\n");
        for (name, v) in &results {
            let failed =
                if v.failed > 0 { format!(", {} could not be extracted anew", v.failed) } else { String::new() };
            if v.is_clean() {
                let (pages, mentions, bound) = (v.pages, v.mentions, v.bound() * 100.0);
                let _ = if every {
                    writeln!(text, "{name}: 0 wrong in all {pages} pages ({mentions} mentions){failed}")
                } else {
                    writeln!(
                        text,
                        "{name}: 0 wrong in {pages} pages ({mentions} mentions){failed}: at most {bound:.2} % of all, at 95 %"
                    )
                };
            } else {
                let _ = writeln!(text, "{name}: {} wrong in {} pages{failed}", v.different, v.pages);
                for (url, difference) in &v.first {
                    let _ = writeln!(text, "  {url}: {difference}");
                }
            }
        }
        if results.is_empty() {
            text.push_str("the pipeline file declares no extractor\n");
        }
        if !options.quiet || !clean {
            output::text(&text)?;
        }
    }
    if !clean {
        log::error!("stored mentions differ from extraction from scratch");
        return Ok(Outcome::Rejected);
    }
    Ok(Outcome::Done)
}

pub(super) fn audit(args: &AuditArgs, options: &Options) -> anyhow::Result<Outcome> {
    let pipeline = Pipeline::load(&args.pipeline)?;
    let store = open_store(&pipeline)?;
    let snapshot = args.snapshot.clone().map_or_else(|| verify::newest_extracted(&store), Ok)?;
    let sample = Sample { pages: Some(args.sample), seed: args.seed };
    let results = verify::audit(&pipeline, &store, &snapshot, sample, args.trials)?;
    let passes = results.iter().all(|audited| audited.audit.passes());
    if options.json {
        let rows: Vec<_> = results
            .iter()
            .map(|a| {
                let (scope, left, right) = a.declared;
                json!({"extractor": a.extractor, "scope": scope, "context": [left, right], "trials": a.audit.trials,
                       "wrong": a.audit.wrong, "too_long": a.audit.too_long, "passes": a.audit.passes(),
                       "bound": a.audit.bound(), "smallest_context": a.smallest_context})
            })
            .collect();
        output::json(&json!({"snapshot": snapshot, "passes": passes, "extractors": rows}))?;
    } else {
        let mut text = String::new();
        for a in &results {
            let (scope, left, right) = a.declared;
            let _ = write!(text, "{}: scope {scope}, context {left} and {right}: ", a.extractor);
            if a.audit.passes() {
                let bound = a.audit.bound() * 100.0;
                let _ = write!(text, "holds in {} trials (fails in at most {bound:.2} %, at 95 %)", a.audit.trials);
            } else {
                let _ = write!(text, "WRONG in {} of {} trials", a.audit.wrong, a.audit.trials);
                if a.audit.too_long > 0 {
                    let _ = write!(text, ", {} mentions longer than the scope", a.audit.too_long);
                }
                if let Some(first) = a.audit.violations.first() {
                    let _ = write!(text, ", first with {}", first.fill.as_str());
                }
            }
            let _ = match a.smallest_context {
                Some(context) => writeln!(text, "; smallest context that passes: {context}"),
                None => writeln!(text, "; no context tried passes: use unit = \"paragraph\" or \"page\""),
            };
        }
        if results.is_empty() {
            text.push_str("no command extractor works by window: nothing to audit\n");
        }
        output::text(&text)?;
    }
    Ok(if passes { Outcome::Done } else { Outcome::Rejected })
}
