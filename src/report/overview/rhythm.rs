//! When sources change: hours of the week, and how often.

use std::fmt::Write as _;

use serde::Serialize;

use super::figure::{Series, bars, week};
use super::table::{Cell, Table, count, whole};
use super::{moment, nothing};
use crate::report::html::escape;

#[derive(Default, Serialize)]
pub(crate) struct Rhythm {
    pub time_zone: String,
    /// Updates that the snapshots of the window show, and those of them that fall into less than a week.
    pub updates: u64,
    pub placed: u64,
    /// By weekday from Monday, then hour: updates, each spread evenly over the time in which it came.
    pub week: Vec<Vec<f64>>,
    pub sources: u64,
    /// How many sources change how often.
    pub classes: Vec<RateClass>,
    /// Those that change most.
    pub most: Vec<SourceLine>,
    pub changing: usize,
}

#[derive(Serialize)]
pub(crate) struct RateClass {
    pub name: &'static str,
    pub sources: u64,
}

#[derive(Serialize)]
pub(crate) struct SourceLine {
    pub source: String,
    pub captures: i64,
    pub updates: i64,
    pub rate_per_day: f64,
    pub rate_low: f64,
    /// `None`: every look found a change.
    pub rate_high: Option<f64>,
    pub regularity: Option<&'static str>,
    pub period: Option<&'static str>,
    pub last_update: Option<String>,
    pub warnings: Option<String>,
}

impl Rhythm {
    pub(super) fn render(&self, out: &mut String) {
        if self.sources == 0 {
            return nothing(out, "Nothing is known of sources yet.");
        }
        let _ = writeln!(
            out,
            "<p>{} sources, {} of them seen to change; {} updates in the snapshots shown.</p>\n<div class=\"charts\">",
            count(self.sources),
            count(self.changing as u64),
            count(self.updates)
        );
        if self.placed > 0 {
            out.push_str(&week(&format!("Updates by hour and weekday ({})", self.time_zone), &self.week));
        }
        let places: Vec<&str> = self.classes.iter().map(|class| class.name).collect();
        if self.changing > 0 {
            let series =
                [Series { name: "sources", values: self.classes.iter().map(|class| class.sources as f64).collect() }];
            out.push_str(&bars("Sources by how often they change", &places, &series, whole));
        }
        out.push_str("</div>\n");
        if self.placed < self.updates {
            let _ = writeln!(
                out,
                "<p><small>{} updates are known to a week or less and are in the map, each spread over the time in which it came ({}).</small></p>",
                count(self.placed),
                escape(&self.time_zone)
            );
        }
        let row = |line: &SourceLine| {
            let high =
                line.rate_high.map_or_else(|| Cell::Number(f64::MAX, "∞".to_owned()), |high| Cell::number(high, 2));
            vec![
                Cell::name(&line.source),
                Cell::count(line.updates),
                Cell::count(line.captures),
                Cell::number(line.rate_per_day, 2),
                Cell::number(line.rate_low, 2),
                high,
                Cell::text(line.regularity.unwrap_or("–")),
                Cell::text(line.period.unwrap_or("–")),
                Cell::Text(line.last_update.as_deref().map_or_else(|| "–".to_owned(), moment)),
                Cell::Note(line.warnings.clone().unwrap_or_default()),
            ]
        };
        let head = [
            "source",
            "updates",
            "captures",
            "a day",
            "at least",
            "at most",
            "rhythm",
            "period",
            "last update",
            "beware",
        ];
        let rows = self.most.iter().map(row).collect();
        Table {
            id: "sources",
            caption: "Sources that change most",
            head: &head,
            rows,
            of: self.changing,
            cards: false,
        }
        .render(out);
    }
}
