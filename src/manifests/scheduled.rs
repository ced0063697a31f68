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
    /// What the means are made of, so that the next snapshot need not look at all sources.
    pub sums: OverallSums,
    /// Sources whose schedules were not taken over from the snapshot before.
    pub learned: usize,
    /// How a budget over all sources was spent.
    pub budget: Option<Budget>,
    /// What keeping to a limit of polls per host did.
    pub host_limit: Option<HostRepair>,
}

impl Summary for Scheduled {
    const STAGE: StageId = StageId::Schedule;
    const VERSION: u32 = 3;
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

/// A weighted mean in the making.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, value: Option<f64>, weight: f64) {
        if let Some(value) = value {
            self.sum += weight * value;
            self.weight += weight;
        }
    }

    fn value(self) -> Option<f64> {
        // What is left of weights that were taken away again is no weight.
        (self.weight > 0.5).then(|| self.sum / self.weight)
    }
}

/// Sums over sources: a source can be added, and taken away when it is planned anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverallSums {
    sources: i64,
    /// Sources that left the schedule; the figures are of the others.
    gone: i64,
    judged: i64,
    uniform: i64,
    polls_a_day: f64,
    /// Each source the same, in the order of [`JUDGED_BY`].
    by_source: [Mean; JUDGED_BY.len()],
    /// Each version the same.
    by_version: [Mean; JUDGED_BY.len()],
}

/// What sources are judged by.
const JUDGED_BY: [fn(&ScheduleRow) -> Option<f64>; 9] = [
    |row| row.recall,
    |row| row.freshness,
    |row| row.age_s,
    |row| row.delay_s,
    |row| row.uniform_recall,
    |row| row.uniform_freshness,
    |row| row.uniform_age_s,
    |row| row.uniform_delay_s,
    |row| row.recall_ceiling,
];

impl OverallSums {
    #[must_use]
    pub(crate) fn of(rows: &[ScheduleRow]) -> Self {
        let mut sums = Self::default();
        rows.iter().for_each(|row| sums.add(row));
        sums
    }

    pub(crate) fn add(&mut self, row: &ScheduleRow) {
        self.change(row, 1);
    }

    pub(crate) fn remove(&mut self, row: &ScheduleRow) {
        self.change(row, -1);
    }

    fn change(&mut self, row: &ScheduleRow, by: i64) {
        if row.method == Method::Gone {
            self.gone += by;
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a sign, and counts")]
        let (sign, versions, polls) = (by as f64, row.versions as f64, row.polls as f64);
        self.sources += by;
        self.uniform += if row.method == Method::Uniform { by } else { 0 };
        self.polls_a_day += sign * polls * 86_400.0 / row.period.mean_seconds();
        if row.recall.is_none() {
            return;
        }
        self.judged += by;
        for (i, judged_by) in JUDGED_BY.iter().enumerate() {
            self.by_source[i].add(judged_by(row), sign);
            self.by_version[i].add(judged_by(row), sign * versions);
        }
    }

    /// Whether any source left the schedule.
    #[must_use]
    pub(crate) fn has_gone(&self) -> bool {
        self.gone > 0
    }

    #[must_use]
    pub(crate) fn means(&self) -> Overall {
        let [
            recall,
            freshness,
            age_s,
            delay_s,
            uniform_recall,
            uniform_freshness,
            uniform_age_s,
            uniform_delay_s,
            recall_ceiling,
        ] = self.by_source.map(Mean::value);
        let [
            micro_recall,
            micro_freshness,
            _,
            _,
            micro_uniform_recall,
            micro_uniform_freshness,
            _,
            _,
            micro_recall_ceiling,
        ] = self.by_version.map(Mean::value);
        let count = |n: i64| usize::try_from(n).unwrap_or(0);
        Overall {
            sources: count(self.sources),
            judged: count(self.judged),
            uniform: count(self.uniform),
            polls_a_day: self.polls_a_day,
            recall,
            freshness,
            age_s,
            delay_s,
            uniform_recall,
            uniform_freshness,
            uniform_age_s,
            uniform_delay_s,
            recall_ceiling,
            micro_recall,
            micro_freshness,
            micro_uniform_recall,
            micro_uniform_freshness,
            micro_recall_ceiling,
        }
    }
}

impl Overall {
    #[must_use]
    pub(crate) fn of(rows: &[ScheduleRow]) -> Self {
        OverallSums::of(rows).means()
    }
}
