//! Schedules as JSON, which `ratoon simulate` reads again.

use serde::Serialize;
use serde_json::{Value, json};

use crate::manifests::Overall;
use crate::schedule::SourcePlan;
use crate::schedule::fleet::{Budget, HostRepair};
use crate::schedule::log::Log;
use crate::schedule::simulate::Simulated;

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
