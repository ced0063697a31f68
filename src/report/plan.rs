//! Why a snapshot was done the way it was: what each alternative was expected to cost, what decided, what it came to.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::run::saved;
use super::terminal::{size, table};
use crate::manifests::{Planned, Saved};
use crate::model::SnapshotId;
use crate::plan::{PlanChoice, Served};
use crate::tables::plan::{PlanCost, PlanRow};

/// A plan, and what came of it.
pub(crate) struct Explained {
    pub snapshot: SnapshotId,
    pub planned: Planned,
    pub rows: Vec<PlanRow>,
    /// Empty before the snapshot is extracted.
    pub costs: Vec<PlanCost>,
    pub saved: Option<Saved>,
    /// What is left to ask.
    pub to_ask: Vec<ToAsk>,
}

/// Distinct units of a snapshot that an extractor whose answers are kept is to be asked about.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub(crate) struct ToAsk {
    pub extractor: String,
    /// Without an answer, and their bytes.
    pub units: u64,
    pub bytes: u64,
    /// Units that kept answers serve.
    pub kept: u64,
    /// What asking is expected to cost, and at most; where it has a price.
    pub price: Option<f64>,
    pub most: f64,
}

/// The units that the numbers of a table are told in: small nights in small units.
struct Units {
    time: &'static str,
    per_second: f64,
    matched: &'static str,
    extracted: &'static str,
    bytes_per_unit: f64,
}

impl Units {
    fn of(alternatives: &[&PlanRow]) -> Self {
        let longest = alternatives.iter().map(|row| row.predicted_s).fold(0.0, f64::max);
        let most = alternatives.iter().map(|row| row.bytes_extracted.max(row.bytes_matched)).max().unwrap_or(0);
        let (time, per_second) = if longest < 0.1 { ("ms", 1e3) } else { ("seconds", 1.0) };
        let (matched, extracted, bytes_per_unit) =
            if most < 1_000_000 { ("kB matched", "kB extracted", 1e3) } else { ("MB matched", "MB extracted", 1e6) };
        Self { time, per_second, matched, extracted, bytes_per_unit }
    }

    fn size(&self, bytes: i64) -> String {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let bytes = bytes as f64;
        format!("{:.3}", bytes / self.bytes_per_unit)
    }
}

impl Explained {
    /// The sum over all rows of `plan_costs`.
    fn measured(&self, of: impl Fn(&PlanCost) -> Option<f64>) -> f64 {
        // Not `sum`: of nothing that is -0.
        self.costs.iter().filter_map(of).fold(0.0, |sum, more| sum + more)
    }

    #[must_use]
    pub(crate) fn json(&self) -> Value {
        let alternative = |row: &PlanRow| {
            json!({
                "alternative": row.alternative, "extractor": row.extractor, "chosen": row.chosen, "recycle": row.recycle,
                "predicted_s": row.predicted_s, "predicted_price": row.predicted_price,
                "bytes_matched": row.bytes_matched, "bytes_extracted": row.bytes_extracted,
            })
        };
        let measured = (!self.costs.is_empty()).then(|| {
            json!({
                "match_s": self.measured(|c| c.match_s), "extract_s": self.measured(|c| c.extract_s),
                "copy_s": self.measured(|c| c.copy_s), "choose_s": self.measured(|c| c.choose_s),
                "bytes_extracted": self.costs.iter().filter_map(|c| c.bytes_extracted).sum::<i64>(),
                "saved": self.saved,
            })
        });
        json!({
            "snapshot": self.snapshot, "choice": self.planned.plan.choice, "plan": self.planned.plan,
            "alternatives": self.rows.iter().map(alternative).collect::<Vec<_>>(), "measured": measured,
            "to_ask": self.to_ask,
        })
    }

    /// As text; with `by_extractor` also what each extractor does under each alternative.
    #[must_use]
    pub(crate) fn text(&self, by_extractor: bool) -> String {
        let alternatives: Vec<&PlanRow> = self.rows.iter().filter(|row| row.extractor.is_none()).collect();
        let Some(first) = alternatives.first() else {
            return format!("snapshot {} has an empty plan\n", self.snapshot);
        };
        let mut text = format!(
            "snapshot {}: {} pages, {:.0} % with an old version, {:.0} % equal to it; every matcher tried on {} pages\n",
            self.snapshot,
            first.m,
            100.0 * first.f,
            100.0 * first.e,
            self.planned.sample.pages
        );
        text.push_str(&self.costs_expected(&alternatives, by_extractor));
        text.push_str(&self.what_decided(&alternatives));
        text.push_str(&self.left_to_ask());
        text.push_str(&self.costs_measured(&alternatives));
        text
    }

    /// Kept answers serve under every alternative, so that this is the price of the night whichever is taken.
    fn left_to_ask(&self) -> String {
        let mut text = String::new();
        for ToAsk { extractor, units, bytes, kept, price, most } in &self.to_ask {
            let of = units + kept;
            let _ = write!(text, "{extractor}: {units} of {of} distinct units have no kept answer, {}", size(*bytes));
            if let Some(price) = price {
                let _ = write!(text, "; price about {price:.4}, at most {most:.4}");
            }
            text.push('\n');
        }
        text
    }

    fn costs_expected(&self, alternatives: &[&PlanRow], by_extractor: bool) -> String {
        let units = Units::of(alternatives);
        let priced = alternatives.iter().any(|row| row.predicted_price > 0.0);
        let mut header = vec!["alternative", units.time, units.matched, units.extracted];
        if priced {
            header.push("price");
        }
        header.push("");
        let line = |row: &PlanRow| {
            let (name, matched) = match &row.extractor {
                None => (row.alternative.to_string(), units.size(row.bytes_matched)),
                Some(extractor) => (format!("  {extractor}"), String::new()),
            };
            let time = format!("{:.4}", units.per_second * row.predicted_s);
            let mut cells = vec![name, time, matched, units.size(row.bytes_extracted)];
            if priced {
                cells.push(format!("{:.4}", row.predicted_price));
            }
            let note = match (row.extractor.is_some(), row.chosen, row.recycle) {
                (false, true, _) => "<- chosen",
                (true, _, true) => "recycles",
                (true, _, false) => "from scratch",
                (false, false, _) => "",
            };
            cells.push(note.to_owned());
            cells
        };
        let shown = self.rows.iter().filter(|row| by_extractor || row.extractor.is_none());
        table(&header, &shown.map(line).collect::<Vec<_>>())
    }

    fn costs_measured(&self, alternatives: &[&PlanRow]) -> String {
        if self.costs.is_empty() {
            return "not extracted yet: nothing to compare with\n".to_owned();
        }
        let chosen = alternatives.iter().find(|row| row.chosen).map_or(0.0, |row| row.predicted_s);
        let (matched, extracted, copied) =
            (self.measured(|c| c.match_s), self.measured(|c| c.extract_s), self.measured(|c| c.copy_s));
        let mut text = format!(
            "expected {chosen:.4} s with reading; measured: match {matched:.4} s, extract {extracted:.4} s, copy {copied:.4} s, choose {:.4} s\n",
            self.measured(|c| c.choose_s)
        );
        if let Some(saved) = self.saved.as_ref().and_then(saved) {
            let _ = writeln!(text, "{saved}");
        }
        text
    }

    fn what_decided(&self, alternatives: &[&PlanRow]) -> String {
        let Some(chosen) = alternatives.iter().find(|row| row.chosen) else { return String::new() };
        let plan = &self.planned.plan;
        if plan.choice != PlanChoice::Auto {
            return format!("`{}` was asked for\n", plan.choice);
        }
        let others = alternatives.iter().filter(|row| !row.chosen);
        let value = |row: &PlanRow| (row.predicted_price, row.predicted_s);
        let next = others.min_by(|a, b| {
            let (a, b) = (value(a), value(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let mut text = match next {
            Some(next) if value(next) < value(chosen) && chosen.matcher == Served::None => {
                let saved = 1e3 * (chosen.predicted_s - next.predicted_s);
                format!(
                    "{}: {} would save {saved:.2} ms, too little to be worth it",
                    chosen.alternative, next.alternative
                )
            }
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
