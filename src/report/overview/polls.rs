//! What to poll: what schedules are worth, against a fixed interval, and what one more poll brings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::figure::{Series, lines, pair};
use super::nothing;
use super::table::{Cell, Table, count};
use crate::manifests::Overall;
use crate::model::{Period, SnapshotId};

#[derive(Default, Serialize)]
pub(crate) struct Polls {
    pub snapshot: Option<SnapshotId>,
    pub sources: u64,
    pub methods: BTreeMap<&'static str, u64>,
    pub overall: Option<Overall>,
    /// Means over sources, by period and number of polls.
    pub curves: Vec<CurvePoint>,
    /// Sources with most updates first.
    pub schedules: Vec<PollLine>,
}

#[derive(Serialize)]
pub(crate) struct CurvePoint {
    pub period: Period,
    pub polls: i64,
    pub sources: u64,
    pub recall: f64,
    pub freshness: f64,
}

#[derive(Serialize)]
pub(crate) struct PollLine {
    pub source: String,
    pub period: Period,
    pub polls: i64,
    pub method: &'static str,
    pub updates: i64,
    pub versions: i64,
    pub recall: Option<f64>,
    pub uniform_recall: Option<f64>,
    pub freshness: Option<f64>,
    pub uniform_freshness: Option<f64>,
    pub polls_for_90_percent: Option<i64>,
    pub notes: Option<String>,
}

impl Polls {
    pub(super) fn render(&self, out: &mut String) {
        if self.sources == 0 {
            return nothing(out, "Nothing is scheduled yet.");
        }
        let methods: Vec<String> = self.methods.iter().map(|(name, n)| format!("{} {name}", count(*n))).collect();
        let _ = write!(out, "<p>{} sources: {}.", count(self.sources), methods.join(", "));
        if let Some(Overall { judged, polls_a_day, recall, uniform_recall, freshness, uniform_freshness, .. }) =
            &self.overall
        {
            let _ = write!(out, " {polls_a_day:.1} polls a day.");
            if let (Some(recall), Some(uniform)) = (recall, uniform_recall) {
                let _ = write!(
                    out,
                    " On held-out time of {} sources a schedule catches <b>{:.1} %</b> of the versions; as many polls at a fixed \
                     interval catch {:.1} %.",
                    count(*judged as u64),
                    100.0 * recall,
                    100.0 * uniform
                );
            }
            if let (Some(freshness), Some(uniform)) = (freshness, uniform_freshness) {
                let _ = write!(
                    out,
                    " The copy is current {:.1} % of the time, instead of {:.1} %.",
                    100.0 * freshness,
                    100.0 * uniform
                );
            }
        }
        out.push_str("</p>\n");
        self.curves(out);
        self.schedules(out);
    }

    fn curves(&self, out: &mut String) {
        let mut figures = String::new();
        for points in self.curves.chunk_by(|a, b| a.period == b.period) {
            // Where half of the sources have no figure any more, a mean says something else.
            let most = points.iter().map(|point| point.sources).max().unwrap_or(0);
            let points: Vec<&CurvePoint> = points.iter().filter(|point| 2 * point.sources >= most).collect();
            if points.len() < 2 {
                continue;
            }
            let places: Vec<String> = points.iter().map(|point| point.polls.to_string()).collect();
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            let series = [
                Series { name: "recall", values: points.iter().map(|point| point.recall).collect() },
                Series { name: "freshness", values: points.iter().map(|point| point.freshness).collect() },
            ];
            let title = format!("What polls {} bring, mean of {} sources", points[0].period.each(), count(most));
            figures.push_str(&lines(&title, &places, &series, |share| format!("{share:.2}")));
        }
        if !figures.is_empty() {
            let _ = writeln!(out, "<div class=\"charts\">{figures}</div>");
        }
    }

    fn schedules(&self, out: &mut String) {
        let row = |line: &PollLine| {
            let share = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), |share| format!("{share:.2}"));
            let picture = match (line.recall, line.uniform_recall) {
                (None, None) => Cell::Unknown,
                (ours, other) => {
                    let figures = format!("<span class=\"shares\">● {} ○ {}</span>", share(ours), share(other));
                    Cell::Html(pair(ours, other) + &figures)
                }
            };
            vec![
                Cell::name(&line.source),
                Cell::text(&format!("{} {}", line.polls, line.period.each())),
                Cell::text(line.method),
                Cell::count(line.updates),
                picture,
                Cell::optional(line.recall, 3),
                Cell::optional(line.uniform_recall, 3),
                Cell::optional(line.freshness, 3),
                Cell::optional(line.uniform_freshness, 3),
                line.polls_for_90_percent.map_or(Cell::Unknown, Cell::count),
                Cell::Note(line.notes.clone().unwrap_or_default()),
            ]
        };
        let head = [
            "source",
            "polls",
            "method",
            "updates",
            "● schedule ○ fixed interval",
            "recall",
            "fixed: recall",
            "freshness",
            "fixed: freshness",
            "polls for 90 %",
            "notes",
        ];
        let rows = self.schedules.iter().map(row).collect();
        let of = usize::try_from(self.sources).unwrap_or(usize::MAX);
        Table { id: "schedules", caption: "Schedules", head: &head, rows, of, cards: false }.render(out);
    }
}
