//! Schedules for cron.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::terminal::one_line;
use super::breaks_lines;
use crate::model::Period;
use crate::schedule::{PollCommand, Schedule};

/// One line per schedule and time of day, under `CRON_TZ`. Seconds are dropped: cron knows minutes.
#[must_use]
pub fn crontab(schedules: &[Schedule], command: &PollCommand) -> String {
    let mut text = String::from("# written by ratoon schedule\n");
    let mut zone = None;
    for schedule in schedules {
        if zone != Some(&schedule.time_zone) {
            let _ = writeln!(text, "CRON_TZ={}", schedule.time_zone);
            zone = Some(&schedule.time_zone);
        }
        let _ = writeln!(
            text,
            "# {}: {} polls {}, {}",
            one_line(&schedule.source),
            schedule.poll_times.len(),
            schedule.period.each(),
            schedule.method.as_str()
        );
        if breaks_lines(&schedule.source) {
            text.push_str("# left out: the source's name has control characters\n");
            continue;
        }
        // A percent sign ends a cron command.
        let command = command.fill(&schedule.source).replace('%', r"\%");
        for when in cron_times(schedule) {
            let _ = writeln!(text, "{when} {command}");
        }
    }
    text
}

/// The five fields of cron, polls that differ in one field only on one line.
fn cron_times(schedule: &Schedule) -> Vec<String> {
    let list = |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let mut groups: BTreeMap<(i64, i64), Vec<i64>> = BTreeMap::new();
    for time in &schedule.poll_times {
        let (day, hour, minute) = (time / 86_400, time % 86_400 / 3_600, time / 60 % 60);
        let (key, value) = match schedule.period {
            Period::Hour => ((0, 0), minute),
            Period::Day => ((0, minute), hour),
            // Sunday is 0 to every cron.
            Period::Week => ((hour, minute), (day + 1) % 7),
            Period::Month => ((hour, minute), day + 1),
        };
        groups.entry(key).or_default().push(value);
    }
    let line = |((hour, minute), mut values): ((i64, i64), Vec<i64>)| {
        values.sort_unstable();
        values.dedup();
        match schedule.period {
            Period::Hour => format!("{} * * * *", list(&values)),
            Period::Day => format!("{minute} {} * * *", list(&values)),
            Period::Week => format!("{minute} {hour} * * {}", list(&values)),
            Period::Month => format!("{minute} {hour} {} * *", list(&values)),
        }
    };
    groups.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::schedule;
    use super::*;

    fn lines(schedules: &[Schedule], command: &str) -> Vec<String> {
        let text = crontab(schedules, &PollCommand::parse(command).unwrap());
        text.lines().filter(|l| !l.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn cron_lines_say_when() {
        let day = schedule(Period::Day, &[23_400, 27_000, 64_800]);
        assert_eq!(
            lines(&[day], "fetch {url} >> log"),
            [
                "CRON_TZ=Europe/Berlin",
                r"0 18 * * * fetch 'http://a.org/it'\''s?x=50\%' >> log",
                r"30 6,7 * * * fetch 'http://a.org/it'\''s?x=50\%' >> log"
            ]
        );
        let first_fields = |s: Schedule| -> Vec<String> {
            lines(&[s], "f")[1..].iter().map(|l| l.split(' ').take(5).collect::<Vec<_>>().join(" ")).collect()
        };
        assert_eq!(first_fields(schedule(Period::Hour, &[300, 900])), ["5,15 * * * *"]);
        let week = schedule(Period::Week, &[23_400, 6 * 86_400 + 23_400, 86_400]);
        assert_eq!(first_fields(week), ["0 0 * * 2", "30 6 * * 0,1"]);
        assert_eq!(first_fields(schedule(Period::Month, &[0, 30 * 86_400])), ["0 0 1,31 * *"]);
        let mut bad = schedule(Period::Day, &[0]);
        bad.source = "a\nrm".to_owned();
        assert_eq!(lines(&[bad], "f"), ["CRON_TZ=Europe/Berlin"]);
    }
}
