//! `ratoon plan`: chooses, and explains.

use std::fmt::Write as _;

use anyhow::Context as _;
use clap::Args;

use super::outcome::Outcome;
use super::{Options, PlannedArgs, open_store, output, run};
use crate::config::Pipeline;
use crate::manifests::{Extracted, Planned, Saved};
use crate::model::{SnapshotId, StageId};
use crate::plan::PlanChoice;
use crate::store::Store;
use crate::tables::plan::{PlanCost, PlanRow};
use crate::tables::record::Table as _;

#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    planned: PlannedArgs,
    /// Show every alternative with its expected cost, and what the snapshot came to once it is done
    #[arg(long)]
    explain: bool,
}

pub(super) fn plan(args: &PlanArgs, options: &Options) -> anyhow::Result<Outcome> {
    let planned = &args.planned;
    if !args.explain {
        return run::run(Some(StageId::Plan), &planned.stage, Some(planned), options);
    }
    // Only what is told goes to stdout.
    let outcome = run::run(
        Some(StageId::Plan),
        &planned.stage,
        Some(planned),
        &Options { quiet: true, json: false, ..options.clone() },
    )?;
    let pipeline = Pipeline::load(&planned.stage.pipeline)?;
    let store = open_store(&pipeline)?;
    let snapshot = match &planned.stage.snapshot {
        Some(id) => id.clone(),
        None => store.manifests::<Planned>()?.pop().context("no snapshot has a plan")?.snapshot,
    };
    let explained = Explained::load(&store, &snapshot)?;
    if options.json {
        output::json(&explained.json())?;
    } else {
        output::text(&explained.text(options.verbose > 0))?;
    }
    Ok(outcome)
}

/// A plan, and what came of it.
struct Explained {
    snapshot: SnapshotId,
    planned: Planned,
    rows: Vec<PlanRow>,
    /// Empty before the snapshot is extracted.
    costs: Vec<PlanCost>,
    saved: Option<Saved>,
}

impl Explained {
    fn load(store: &Store, snapshot: &SnapshotId) -> anyhow::Result<Self> {
        let planned = store.manifest::<Planned>(snapshot)?;
        let planned = planned.with_context(|| format!("snapshot {snapshot} has no plan"))?.summary;
        let rows = store.partition(PlanRow::NAME, snapshot)?.shard::<PlanRow>(0)?;
        let extracted = store.manifest::<Extracted>(snapshot)?;
        let costs = match &extracted {
            Some(extracted) if extracted.tables.contains_key(PlanCost::NAME) => {
                store.partition(PlanCost::NAME, snapshot)?.shard::<PlanCost>(0)?
            }
            _ => Vec::new(),
        };
        let saved = extracted.map(|extracted| extracted.summary.saved);
        Ok(Self { snapshot: snapshot.clone(), planned, rows, costs, saved })
    }

    fn measured(&self, of: impl Fn(&PlanCost) -> Option<f64>) -> f64 {
        // Not `sum`: of nothing that is -0.
        self.costs.iter().filter_map(of).fold(0.0, |sum, more| sum + more)
    }

    fn json(&self) -> serde_json::Value {
        let alternative = |row: &PlanRow| {
            serde_json::json!({
                "alternative": row.alternative, "extractor": row.extractor, "chosen": row.chosen, "recycle": row.recycle,
                "predicted_s": row.predicted_s, "predicted_price": row.predicted_price,
                "bytes_matched": row.bytes_matched, "bytes_extracted": row.bytes_extracted,
            })
        };
        let measured = (!self.costs.is_empty()).then(|| {
            serde_json::json!({
                "match_s": self.measured(|c| c.match_s), "extract_s": self.measured(|c| c.extract_s),
                "copy_s": self.measured(|c| c.copy_s), "choose_s": self.measured(|c| c.choose_s),
                "bytes_extracted": self.costs.iter().filter_map(|c| c.bytes_extracted).sum::<i64>(),
                "saved": self.saved,
            })
        });
        serde_json::json!({
            "snapshot": self.snapshot, "choice": self.planned.plan.choice, "plan": self.planned.plan,
            "alternatives": self.rows.iter().map(alternative).collect::<Vec<_>>(), "measured": measured,
        })
    }

    fn text(&self, whole: bool) -> String {
        let wholes: Vec<&PlanRow> = self.rows.iter().filter(|row| row.extractor.is_none()).collect();
        let Some(first) = wholes.first() else { return format!("snapshot {} has an empty plan\n", self.snapshot) };
        let mut text = format!(
            "snapshot {}: {} pages, {:.0} % with an old version, {:.0} % equal to it; every matcher tried on {} pages\n",
            self.snapshot,
            first.m,
            100.0 * first.f,
            100.0 * first.e,
            self.planned.sample.pages
        );
        let priced = wholes.iter().any(|row| row.predicted_price > 0.0);
        // Small nights in small units.
        let longest = wholes.iter().map(|row| row.predicted_s).fold(0.0, f64::max);
        let most = wholes.iter().map(|row| row.bytes_extracted.max(row.bytes_matched)).max().unwrap_or(0);
        let (time, times) = if longest < 0.1 { ("ms", 1e3) } else { ("seconds", 1.0) };
        let (matched, extracted, per) =
            if most < 1_000_000 { ("kB matched", "kB extracted", 1e3) } else { ("MB matched", "MB extracted", 1e6) };
        let mut header = vec!["alternative", time, matched, extracted];
        if priced {
            header.push("price");
        }
        header.push("");
        let mut rows = Vec::new();
        for row in self.rows.iter().filter(|row| whole || row.extractor.is_none()) {
            let name = match &row.extractor {
                None => row.alternative.to_string(),
                Some(extractor) => format!("  {extractor}"),
            };
            let size = |bytes: i64| {
                #[expect(clippy::cast_precision_loss, reason = "for people")]
                let bytes = bytes as f64;
                format!("{:.3}", bytes / per)
            };
            let matched = if row.extractor.is_none() { size(row.bytes_matched) } else { String::new() };
            let mut cells = vec![name, format!("{:.4}", times * row.predicted_s), matched, size(row.bytes_extracted)];
            if priced {
                cells.push(format!("{:.4}", row.predicted_price));
            }
            cells.push(match (row.extractor.is_some(), row.chosen, row.recycle) {
                (false, true, _) => "<- chosen".into(),
                (true, _, true) => "recycles".into(),
                (true, _, false) => "from scratch".into(),
                (false, false, _) => String::new(),
            });
            rows.push(cells);
        }
        text.push_str(&output::table(&header, &rows));
        text.push_str(&self.why(&wholes));
        if self.costs.is_empty() {
            text.push_str("not extracted yet: nothing to compare with\n");
            return text;
        }
        let chosen = wholes.iter().find(|row| row.chosen).map_or(0.0, |row| row.predicted_s);
        let (matched, extracted, copied) =
            (self.measured(|c| c.match_s), self.measured(|c| c.extract_s), self.measured(|c| c.copy_s));
        let _ = writeln!(
            text,
            "expected {chosen:.4} s with reading; measured: match {matched:.4} s, extract {extracted:.4} s, copy {copied:.4} s, choose {:.4} s",
            self.measured(|c| c.choose_s)
        );
        if let Some(saved) = self.saved.as_ref().and_then(run::saved) {
            let _ = writeln!(text, "{saved}");
        }
        text
    }

    /// What decided.
    fn why(&self, wholes: &[&PlanRow]) -> String {
        let Some(chosen) = wholes.iter().find(|row| row.chosen) else { return String::new() };
        let plan = &self.planned.plan;
        if plan.choice != PlanChoice::Auto {
            return format!("`{}` was asked for\n", plan.choice);
        }
        let others = wholes.iter().filter(|row| !row.chosen);
        let value = |row: &PlanRow| (row.predicted_price, row.predicted_s);
        let next = others.min_by(|a, b| {
            let (a, b) = (value(a), value(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let mut text = match next {
            Some(next) if value(next) < value(chosen) => {
                format!("{}: as good as {} within 2 %, and decided page by page", chosen.alternative, next.alternative)
            }
            Some(next) if next.predicted_price > chosen.predicted_price => {
                format!(
                    "{}: the least price, {:.4} below {}",
                    chosen.alternative,
                    next.predicted_price - chosen.predicted_price,
                    next.alternative
                )
            }
            Some(next) => format!(
                "{}: {:.2} ms less than {}",
                chosen.alternative,
                1e3 * (next.predicted_s - chosen.predicted_s),
                next.alternative
            ),
            None => chosen.alternative.to_string(),
        };
        let scratch: Vec<&str> = plan.recycle.iter().filter(|(_, on)| !**on).map(|(name, _)| name.as_str()).collect();
        if !scratch.is_empty() && plan.matches() {
            let _ = write!(text, "; from scratch on changed pages: {}", scratch.join(", "));
        }
        text.push('\n');
        text
    }
}
