//! What it cost and saved: the plan against its alternatives, what was expected against what was measured.

use std::fmt::Write as _;

use serde::Serialize;

use super::figure::{Series, bars, lines};
use super::table::{Cell, Table};
use super::{nothing, short_size, short_time, took};
use crate::manifests::Saved;
use crate::model::SnapshotId;
use crate::report::html::escape;
use crate::report::terminal::size;

#[derive(Default, Serialize)]
pub(crate) struct Costs {
    /// The newest that was planned and extracted.
    pub snapshot: Option<SnapshotId>,
    pub alternatives: Vec<Alternative>,
    pub measured: Measured,
    pub saved: Option<Saved>,
    pub extractors: Vec<ExtractorCost>,
    /// Oldest first.
    pub nights: Vec<NightCost>,
}

#[derive(Serialize)]
pub(crate) struct Alternative {
    pub alternative: String,
    pub chosen: bool,
    pub predicted_s: f64,
    pub predicted_price: f64,
    pub bytes_matched: i64,
    pub bytes_extracted: i64,
}

/// Sums over `plan_costs`.
#[derive(Default, Serialize)]
pub(crate) struct Measured {
    pub match_s: f64,
    pub extract_s: f64,
    pub copy_s: f64,
    pub choose_s: f64,
    pub bytes_extracted: i64,
    pub price: Option<f64>,
}

impl Measured {
    pub(crate) fn seconds(&self) -> f64 {
        self.match_s + self.extract_s + self.copy_s + self.choose_s
    }
}

#[derive(Default, Serialize)]
pub(crate) struct ExtractorCost {
    pub name: String,
    pub bytes_extracted: i64,
    pub mentions_copied: i64,
    pub mentions_extracted: i64,
    pub requests: i64,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub price: Option<f64>,
    pub seconds: f64,
}

#[derive(Serialize)]
pub(crate) struct NightCost {
    pub snapshot: SnapshotId,
    pub predicted_s: Option<f64>,
    pub measured_s: Option<f64>,
    pub saved_bytes: u64,
    pub of_bytes: u64,
    pub price: Option<f64>,
}

impl Costs {
    pub(super) fn render(&self, out: &mut String) {
        let Some(snapshot) = &self.snapshot else { return nothing(out, "Nothing has been extracted yet.") };
        if let Some(saved) = &self.saved {
            let Saved { bytes, of_bytes, seconds, price } = *saved;
            let share = if of_bytes > 0 { bytes as f64 / of_bytes as f64 } else { 0.0 };
            let seconds = match seconds {
                s if s >= 0.01 => format!(", about {} of work", took(s)),
                s if s <= -0.01 => format!(", though it took about {} more work", took(-s)),
                _ => String::new(),
            };
            let price = price.map_or(String::new(), |price| format!(", {price:.4} in price"));
            let _ = writeln!(
                out,
                "<p>In <b>{}</b> recycling saved {} of {} of extraction{seconds}{price}.</p>\
                 <svg class=\"meter\" viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{:.1} % recycled\">\
                 <rect class=\"rest\" width=\"100\" height=\"4\"/><rect class=\"s0\" width=\"{:.2}\" height=\"4\"/></svg>",
                escape(snapshot.as_str()),
                size(bytes),
                size(of_bytes),
                100.0 * share,
                100.0 * share
            );
        }
        self.figures(out);
        self.plan(out);
        self.extractors(out);
    }

    /// Requests, tokens and prices only where there are some.
    fn extractors(&self, out: &mut String) {
        let any = |of: &dyn Fn(&ExtractorCost) -> bool| self.extractors.iter().any(of);
        let requests = any(&|line| line.requests > 0);
        let tokens = any(&|line| line.input_tokens + line.output_tokens > 0);
        let priced = any(&|line| line.price.is_some());
        let mut head = vec!["extractor", "text given", "mentions copied", "mentions found", "seconds"];
        head.extend(requests.then_some("requests"));
        head.extend(tokens.then_some(["tokens in", "tokens out"]).into_iter().flatten());
        head.extend(priced.then_some("price"));
        let row = |line: &ExtractorCost| {
            let mut cells = vec![
                Cell::text(&line.name),
                Cell::bytes(line.bytes_extracted),
                Cell::count(line.mentions_copied),
                Cell::count(line.mentions_extracted),
                Cell::number(line.seconds, 3),
            ];
            cells.extend(requests.then(|| Cell::count(line.requests)));
            cells
                .extend(tokens.then(|| [line.input_tokens, line.output_tokens].map(Cell::count)).into_iter().flatten());
            cells.extend(priced.then(|| Cell::optional(line.price, 4)));
            cells
        };
        let rows = self.extractors.iter().map(row).collect();
        Table { id: "extractor-costs", caption: "What each extractor cost", head: &head, rows, of: 0, cards: false }
            .render(out);
    }

    fn figures(&self, out: &mut String) {
        if self.nights.len() < 2 {
            return;
        }
        let places: Vec<&str> = self.nights.iter().map(|night| night.snapshot.as_str()).collect();
        let of = |value: &dyn Fn(&NightCost) -> f64| self.nights.iter().map(value).collect::<Vec<f64>>();
        out.push_str("<div class=\"charts\">");
        let series = [
            Series { name: "extracted", values: of(&|night| night.of_bytes.saturating_sub(night.saved_bytes) as f64) },
            Series { name: "recycled", values: of(&|night| night.saved_bytes as f64) },
        ];
        out.push_str(&bars("Text extracted and recycled", &places, &series, short_size));
        let series = [
            Series { name: "expected", values: of(&|night| night.predicted_s.unwrap_or(0.0)) },
            Series { name: "measured", values: of(&|night| night.measured_s.unwrap_or(0.0)) },
        ];
        out.push_str(&lines("Seconds of work, expected and measured", &places, &series, short_time));
        if self.nights.iter().any(|night| night.price.is_some()) {
            let series = [Series { name: "price", values: of(&|night| night.price.unwrap_or(0.0)) }];
            out.push_str(&bars("Price", &places, &series, |price| format!("{price:.4}")));
        }
        out.push_str("</div>\n");
    }

    fn plan(&self, out: &mut String) {
        let priced = self.alternatives.iter().any(|line| line.predicted_price > 0.0);
        let row = |line: &Alternative| {
            let mut cells = vec![
                Cell::text(&line.alternative),
                Cell::text(if line.chosen { "● chosen" } else { "" }),
                Cell::number(line.predicted_s, 4),
                Cell::bytes(line.bytes_matched),
                Cell::bytes(line.bytes_extracted),
            ];
            if priced {
                cells.push(Cell::number(line.predicted_price, 4));
            }
            cells
        };
        let head = ["way", "", "seconds expected", "text matched", "text extracted", "price expected"];
        let head = if priced { &head[..] } else { &head[..5] };
        let rows: Vec<_> = self.alternatives.iter().map(row).collect();
        if rows.is_empty() {
            return;
        }
        Table { id: "plans", caption: "The plan and its alternatives", head, rows, of: 0, cards: false }.render(out);
        let measured = &self.measured;
        let _ = writeln!(
            out,
            "<p>Measured: {} (match {}, extract {}, copy {}, choose {}) on {} of text.</p>",
            took(measured.seconds()),
            took(measured.match_s),
            took(measured.extract_s),
            took(measured.copy_s),
            took(measured.choose_s),
            size(u64::try_from(measured.bytes_extracted).unwrap_or(0))
        );
    }
}
