//! Schedules as JSON, which `ratoon simulate` reads again.

use serde::Serialize;
use serde_json::{Value, json};

use crate::manifests::Overall;
use crate::schedule::SourcePlan;
use crate::schedule::fleet::{Budget, HostRepair};
use crate::schedule::log::Log;
use crate::schedule::simulate::Simulated;
use crate::tables::schedule::ScheduleRow;

/// `schedule.json` of a log: all that is known of each source.
#[must_use]
pub(crate) fn plans(planned: &[SourcePlan]) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        schedules: &'a [SourcePlan],
    }
    let mut text = serde_json::to_string_pretty(&Document { schedules: planned }).expect("plain data serialises");
    text.push('\n');
    text
}

/// `schedule.json` of a store: the rows of the table `schedules`, one a line.
#[must_use]
pub(crate) fn rows(rows: &[ScheduleRow], overall: &Overall) -> String {
    let mut text = format!("{{\"overall\":{},\n\"schedules\":[", json!(overall));
    for (i, schedule) in rows.iter().enumerate() {
        text.push_str(if i == 0 { "\n" } else { ",\n" });
        text.push_str(&row(schedule).to_string());
    }
    text.push_str("\n]}\n");
    text
}

fn row(row: &ScheduleRow) -> Value {
    json!({
        "source": row.source, "period": row.period, "time_zone": row.time_zone, "poll_times": row.poll_times,
        "method": row.method, "objective": row.objective, "updates": row.updates, "test_updates": row.test_updates,
        "recall": row.recall, "recall_bounds": row.recall_low.zip(row.recall_high),
        "freshness": row.freshness, "freshness_bounds": row.freshness_low.zip(row.freshness_high),
        "age_s": row.age_s, "delay_s": row.delay_s,
        "uniform_recall": row.uniform_recall, "uniform_freshness": row.uniform_freshness,
        "uniform_age_s": row.uniform_age_s, "uniform_best_recall": row.uniform_best_recall,
        "recall_ceiling": row.recall_ceiling, "polls_for_90_percent": row.polls_for_90_percent, "notes": row.notes,
    })
}

/// What `schedule --updates --json` prints.
#[must_use]
pub(crate) fn from_log(
    log: &Log,
    planned: &[SourcePlan],
    overall: &Overall,
    budget: Option<&Budget>,
    host_limit: Option<&HostRepair>,
) -> Value {
    json!({
        "log": {
            "rows": log.rows, "sources": log.histories.len(), "bad": log.bad.len(), "duplicates": log.duplicates,
            "out_of_order": log.out_of_order,
        },
        "overall": overall, "budget": budget, "host_limit": host_limit, "schedules": planned,
    })
}

/// What `simulate --json` prints. `without_schedule`: sources of the log that no schedule is for.
#[must_use]
pub(crate) fn simulated(simulated: &[Simulated], without_schedule: usize) -> Value {
    json!({"simulated": simulated, "without_schedule": without_schedule})
}

#[cfg(test)]
mod tests {
    use crate::model::{Period, Timestamp};
    use crate::schedule::simulate::read_plans;
    use crate::schedule::source::plan;
    use crate::schedule::{History, Options};

    #[test]
    fn what_is_written_can_be_simulated() {
        let times: Vec<Timestamp> = (0..200).map(|d| Timestamp((d * 24 + 9) * 3_600_000_000)).collect();
        let options = Options { period: Some(Period::Day), polls: 2, ..Options::default() };
        let planned = plan(&History::of_moments("s", &times), &options).unwrap();
        let plans = read_plans(&super::plans(std::slice::from_ref(&planned))).unwrap();
        assert_eq!(plans[0].poll_times, planned.schedule.poll_times);
        assert_eq!(plans[0].source.as_deref(), Some("s"));
    }
}
