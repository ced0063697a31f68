//! What `schedule` leaves.

use serde::{Deserialize, Serialize};

use crate::model::{Method, StageId};
use crate::schedule::fleet::{Budget, HostRepair};
use crate::store::manifest::Summary;
use crate::tables::schedule::ScheduleRow;

/// Polls were planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scheduled {
    pub overall: Overall,
    /// Sources whose schedules were not taken over from the snapshot before.
    pub learned: usize,
    /// How a budget over all sources was spent.
    pub budget: Option<Budget>,
    /// What keeping to a limit of polls per host did.
    pub host_limit: Option<HostRepair>,
}

impl Summary for Scheduled {
    const STAGE: StageId = StageId::Schedule;
    const VERSION: u32 = 1;
}

/// Means over the sources that could be judged: each source the same, and each version the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Overall {
    pub sources: usize,
    /// Sources with versions on held-out time.
    pub judged: usize,
    /// Sources whose polls are uniform.
    pub uniform: usize,
    pub polls_a_day: f64,
    pub recall: Option<f64>,
    pub freshness: Option<f64>,
    pub age_s: Option<f64>,
    pub delay_s: Option<f64>,
    pub uniform_recall: Option<f64>,
    pub uniform_freshness: Option<f64>,
    pub uniform_age_s: Option<f64>,
    pub uniform_delay_s: Option<f64>,
    pub recall_ceiling: Option<f64>,
    pub micro_recall: Option<f64>,
    pub micro_freshness: Option<f64>,
    pub micro_uniform_recall: Option<f64>,
    pub micro_uniform_freshness: Option<f64>,
    pub micro_recall_ceiling: Option<f64>,
}

impl Overall {
    #[must_use]
    pub(crate) fn of(rows: &[ScheduleRow]) -> Self {
        let judged: Vec<&ScheduleRow> = rows.iter().filter(|row| row.recall.is_some()).collect();
        let mean = |value: fn(&ScheduleRow) -> Option<f64>, by_version: bool| {
            let (mut sum, mut weights) = (0.0, 0.0);
            for row in &judged {
                let weight = if by_version { row.versions as f64 } else { 1.0 };
                if let Some(value) = value(row) {
                    sum += weight * value;
                    weights += weight;
                }
            }
            (weights > 0.0).then(|| sum / weights)
        };
        let a_day = |row: &ScheduleRow| row.polls as f64 * 86_400.0 / row.period.mean_seconds();
        Self {
            sources: rows.len(),
            judged: judged.len(),
            uniform: rows.iter().filter(|row| row.method == Method::Uniform).count(),
            polls_a_day: rows.iter().map(a_day).sum(),
            recall: mean(|r| r.recall, false),
            freshness: mean(|r| r.freshness, false),
            age_s: mean(|r| r.age_s, false),
            delay_s: mean(|r| r.delay_s, false),
            uniform_recall: mean(|r| r.uniform_recall, false),
            uniform_freshness: mean(|r| r.uniform_freshness, false),
            uniform_age_s: mean(|r| r.uniform_age_s, false),
            uniform_delay_s: mean(|r| r.uniform_delay_s, false),
            recall_ceiling: mean(|r| r.recall_ceiling, false),
            micro_recall: mean(|r| r.recall, true),
            micro_freshness: mean(|r| r.freshness, true),
            micro_uniform_recall: mean(|r| r.uniform_recall, true),
            micro_uniform_freshness: mean(|r| r.uniform_freshness, true),
            micro_recall_ceiling: mean(|r| r.recall_ceiling, true),
        }
    }
}
