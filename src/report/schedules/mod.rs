//! Schedules as others read them: crontab, units of systemd, JSON, tables and a figure.

pub(crate) mod compared;
pub(crate) mod crontab;
pub(crate) mod figure;
pub(crate) mod json;
pub(crate) mod tables;
pub(crate) mod timers;

use super::terminal::ends_line;

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Whether a source cannot stand in files that are read line by line.
fn breaks_lines(source: &str) -> bool {
    source.chars().any(ends_line)
}

#[cfg(test)]
mod tests {
    use crate::model::{Method, Period};
    use crate::schedule::{Objective, Schedule};

    /// A schedule of a source that needs quoting.
    pub(super) fn schedule(period: Period, poll_times: &[i64]) -> Schedule {
        Schedule {
            source: "http://a.org/it's?x=50%".to_owned(),
            period,
            time_zone: "Europe/Berlin".to_owned(),
            poll_times: poll_times.to_vec(),
            method: Method::Optimal,
            objective: Objective::default(),
        }
    }
}
