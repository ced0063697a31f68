//! How it develops: pages, change, mentions, time and store over snapshots.

use std::collections::BTreeMap;

use serde::Serialize;

use super::figure::{Series, bars, lines};
use super::table::whole;
use super::{nothing, short_size, short_time};
use crate::model::{SnapshotId, StageId};
use crate::report::terminal::size;

#[derive(Default, Serialize)]
pub(crate) struct Growth {
    /// Oldest first.
    pub nights: Vec<NightGrowth>,
    /// Files of all tables of all snapshots.
    pub store_bytes: u64,
}

#[derive(Serialize)]
pub(crate) struct NightGrowth {
    pub snapshot: SnapshotId,
    pub pages: i64,
    pub added: i64,
    pub modified: i64,
    pub deleted: i64,
    pub mentions: i64,
    pub new_text_bytes: i64,
    /// Of all its tables.
    pub bytes: u64,
    pub seconds: BTreeMap<StageId, f64>,
}

impl NightGrowth {
    pub(super) fn all_seconds(&self) -> f64 {
        self.seconds.values().sum()
    }
}

impl Growth {
    pub(super) fn render(&self, out: &mut String) {
        if self.nights.len() < 2 {
            return nothing(out, "There is one snapshot; a development takes two.");
        }
        let places: Vec<&str> = self.nights.iter().map(|night| night.snapshot.as_str()).collect();
        let of = |value: &dyn Fn(&NightGrowth) -> f64| self.nights.iter().map(value).collect::<Vec<f64>>();
        let number = whole;
        out.push_str("<div class=\"charts\">");
        let series = [Series { name: "pages", values: of(&|night| night.pages as f64) }];
        out.push_str(&lines("Pages", &places, &series, number));
        let series = [
            Series { name: "modified", values: of(&|night| night.modified as f64) },
            Series { name: "added", values: of(&|night| night.added as f64) },
            Series { name: "deleted", values: of(&|night| night.deleted as f64) },
        ];
        // On the first night all pages came, which says nothing.
        let skipped = usize::from(self.nights[0].added == self.nights[0].pages);
        let series = series.map(|series| Series { values: series.values[skipped..].to_vec(), ..series });
        out.push_str(&bars("Pages that changed", &places[skipped..], &series, number));
        let series = [Series { name: "mentions", values: of(&|night| night.mentions as f64) }];
        out.push_str(&lines("Mentions", &places, &series, number));
        let series = [Series { name: "new text", values: of(&|night| night.new_text_bytes as f64) }];
        out.push_str(&bars("New text", &places, &series, short_size));
        let stage = |name, stages: &'static [StageId]| Series {
            name,
            values: of(&|night| stages.iter().filter_map(|stage| night.seconds.get(stage)).sum()),
        };
        let series = [
            stage("extract", &[StageId::Extract]),
            stage("ingest", &[StageId::Ingest]),
            stage(
                "others",
                &[StageId::Plan, StageId::Match, StageId::Delta, StageId::Stats, StageId::Schedule, StageId::Close],
            ),
        ];
        out.push_str(&bars("Time by stage", &places, &series, short_time));
        let series = [Series { name: "tables", values: of(&|night| night.bytes as f64) }];
        let title = format!("Store by snapshot, {} in all", size(self.store_bytes));
        out.push_str(&bars(&title, &places, &series, short_size));
        out.push_str("</div>\n");
    }
}
