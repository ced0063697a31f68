//! Schedules as others read them: JSON, crontab, systemd timers, a table. Text in memory; the caller writes it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::model::{Digest, Period};
use crate::schedule::{Metrics, PollCommand, Schedule, SourcePlan};

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// What `ratoon simulate` reads again.
#[must_use]
pub fn json(planned: &[SourcePlan]) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        schedules: &'a [SourcePlan],
    }
    let mut text = serde_json::to_string_pretty(&Document { schedules: planned }).expect("plain data serialises");
    text.push('\n');
    text
}

/// A poll time for a person: `:05`, `06:30`, `Mon 06:30` or `15 06:30`.
#[must_use]
pub fn poll_time(period: Period, seconds: i64) -> String {
    let (day, rest) = (seconds / 86_400, seconds % 86_400);
    let mut clock = format!("{:02}:{:02}", rest / 3_600, rest / 60 % 60);
    if seconds % 60 != 0 {
        let _ = write!(clock, ":{:02}", seconds % 60);
    }
    match period {
        Period::Hour => clock[2..].to_owned(),
        Period::Day => clock,
        Period::Week => format!("{} {clock}", DAYS[usize::try_from(day).unwrap_or(0) % 7]),
        Period::Month => format!("{} {clock}", day + 1),
    }
}

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
            printable(&schedule.source),
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

/// Whether a source cannot stand in files that are read line by line: control characters end lines, and some readers
/// take the line and paragraph separators of Unicode for line ends too.
fn breaks_lines(source: &str) -> bool {
    source.chars().any(ends_line)
}

fn ends_line(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// A text on one line, for a person.
fn printable(text: &str) -> String {
    text.chars().map(|c| if ends_line(c) { '?' } else { c }).collect()
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

/// A unit file of systemd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitFile {
    pub name: String,
    pub text: String,
}

/// A timer and a service for each schedule.
#[must_use]
pub fn systemd(schedules: &[Schedule], command: &PollCommand) -> Vec<UnitFile> {
    let mut files = Vec::with_capacity(schedules.len() * 2);
    for schedule in schedules.iter().filter(|schedule| !breaks_lines(&schedule.source)) {
        let unit = unit_name(&schedule.source);
        // A backslash at the end of a line would take the next line in.
        let source = schedule.source.replace('%', "%%").replace('\\', "/");
        let mut timer = format!("[Unit]\nDescription=Polls {source}\n\n[Timer]\n");
        for time in &schedule.poll_times {
            let _ = writeln!(timer, "OnCalendar={}", on_calendar(schedule.period, *time, &schedule.time_zone));
        }
        timer.push_str("AccuracySec=1s\n\n[Install]\nWantedBy=timers.target\n");
        let escaped = command.fill(&schedule.source);
        let escaped = escaped.replace('\\', r"\\").replace('"', r#"\""#).replace('$', "$$").replace('%', "%%");
        let service = format!(
            "[Unit]\nDescription=Polls {source}\n\n[Service]\nType=oneshot\nExecStart=/bin/sh -c \"{escaped}\"\n"
        );
        files.push(UnitFile { name: format!("{unit}.timer"), text: timer });
        files.push(UnitFile { name: format!("{unit}.service"), text: service });
    }
    files
}

/// `ratoon-`, what is readable of the source, and a digest that keeps sources apart.
fn unit_name(source: &str) -> String {
    let source_part = source.split_once("://").map_or(source, |(_, rest)| rest);
    let readable: String =
        source_part.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).take(40).collect();
    format!("ratoon-{}-{}", readable.trim_matches('-'), &Digest::of(source.as_bytes()).to_string()[..8])
}

/// A calendar event of systemd.
#[must_use]
pub fn on_calendar(period: Period, seconds: i64, time_zone: &str) -> String {
    let (day, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", rest / 3_600, rest / 60 % 60, rest % 60);
    match period {
        Period::Hour => format!("*-*-* *:{} {time_zone}", &clock[3..]),
        Period::Day => format!("*-*-* {clock} {time_zone}"),
        Period::Week => format!("{} *-*-* {clock} {time_zone}", DAYS[usize::try_from(day).unwrap_or(0) % 7]),
        Period::Month => format!("*-*-{:02} {clock} {time_zone}", day + 1),
    }
}

/// A share for a person.
#[must_use]
pub fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| format!("{v:.3}"))
}

/// A duration for a person.
#[must_use]
pub fn duration(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(s) if s < 120.0 => format!("{s:.0} s"),
        Some(s) if s < 7_200.0 => format!("{:.1} min", s / 60.0),
        Some(s) if s < 172_800.0 => format!("{:.1} h", s / 3_600.0),
        Some(s) => format!("{:.1} d", s / 86_400.0),
    }
}

/// All that must be told of a source: times, held-out quality next to uniform's, what each further poll brings.
#[must_use]
pub fn table(planned: &[SourcePlan]) -> String {
    let mut text = String::new();
    for (i, plan) in planned.iter().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        describe(plan, &mut text);
    }
    text
}

fn describe(plan: &SourcePlan, text: &mut String) {
    let schedule = &plan.schedule;
    let _ = writeln!(
        text,
        "{}\n  {} polls {} ({}, {}), from {} updates",
        printable(&schedule.source),
        schedule.poll_times.len(),
        schedule.period.each(),
        schedule.method.as_str(),
        schedule.time_zone,
        plan.updates
    );
    let times: Vec<String> = schedule.poll_times.iter().map(|t| poll_time(schedule.period, *t)).collect();
    let _ = writeln!(text, "  at {}", times.join(", "));
    if plan.held_out.expected.recall.is_none() {
        let _ = writeln!(text, "  too few updates on held-out time to say what it is worth");
    } else {
        let _ =
            writeln!(text, "  on the last {} updates      recall  freshness        age      delay", plan.test_updates);
        let mut row = |name: &str, m: &Metrics| {
            let _ = writeln!(
                text,
                "  {name:<27} {:>7}  {:>9} {:>10} {:>10}",
                share(m.recall),
                share(m.freshness),
                duration(m.age_s),
                duration(m.delay_s)
            );
        };
        row("this schedule", &plan.held_out.expected);
        row("uniform, mean over phases", &plan.uniform);
        row("uniform, best phase", &plan.uniform_best);
        let _ = writeln!(text, "  {:<27} {:>7}", "every slot polled", share(plan.recall_ceiling));
        if let Some((low, high)) = plan.held_out.recall_bounds {
            let _ = write!(text, "  only intervals are known: recall lies between {low:.3} and {high:.3}");
            if let Some((low, high)) = plan.held_out.freshness_bounds {
                let _ = write!(text, ", freshness between {low:.3} and {high:.3}");
            }
            text.push('\n');
        }
        let mut before = 0.0;
        let steps: Vec<String> = (plan.curve.iter())
            .filter_map(|point| {
                let recall = point.recall?;
                let step = format!("{}: {recall:.3} ({:+.3})", point.polls, recall - before);
                before = recall;
                Some(step)
            })
            .collect();
        let _ = writeln!(text, "  recall by polls: {}", steps.join("  "));
        match plan.polls_for_90_percent {
            Some(n) => {
                let _ = writeln!(text, "  90 % of what can be had needs {n} polls {}", schedule.period.each());
            }
            None => {
                let _ = writeln!(text, "  90 % of what can be had needs more than {} polls", plan.curve.len());
            }
        }
    }
    if let Some(signal) = plan.signal {
        let _ = write!(
            text,
            "  signal: versions with it end {:.2} times as fast; held-out gain {:+.4} +- {:.4} nats a version, ",
            signal.multiplier, signal.gain, signal.standard_error
        );
        if signal.kept {
            let (on, off) = signal.split(schedule.poll_times.len(), schedule.period, schedule.objective);
            let _ = writeln!(text, "kept: {on} polls {} while it shows, {off} while not", schedule.period.each());
        } else {
            let _ = writeln!(text, "not kept");
        }
    }
    for note in &plan.notes {
        let _ = writeln!(text, "  note: {note}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Method, Timestamp};
    use crate::schedule::simulate::read_plans;
    use crate::schedule::{History, Objective, Options, plan};

    fn schedule(period: Period, poll_times: &[i64]) -> Schedule {
        Schedule {
            source: "http://a.org/it's?x=50%".to_owned(),
            period,
            time_zone: "Europe/Berlin".to_owned(),
            poll_times: poll_times.to_vec(),
            method: Method::Optimal,
            objective: Objective::default(),
        }
    }

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

    #[test]
    fn timers_say_the_same() {
        assert_eq!(on_calendar(Period::Hour, 300, "UTC"), "*-*-* *:05:00 UTC");
        assert_eq!(on_calendar(Period::Day, 23_400, "UTC"), "*-*-* 06:30:00 UTC");
        assert_eq!(on_calendar(Period::Week, 6 * 86_400, "UTC"), "Sun *-*-* 00:00:00 UTC");
        assert_eq!(on_calendar(Period::Month, 30 * 86_400, "UTC"), "*-*-31 00:00:00 UTC");
        let files = systemd(&[schedule(Period::Day, &[0, 60])], &PollCommand::parse(r#"fetch "$X" {url}"#).unwrap());
        assert_eq!(files.len(), 2);
        assert!(files[0].name.starts_with("ratoon-a.org-it-s") && files[0].name.ends_with(".timer"));
        assert_eq!(files[0].text.matches("OnCalendar=").count(), 2);
        assert!(files[1].text.contains(r#"ExecStart=/bin/sh -c "fetch \"$$X\" 'http://a.org/it'\\''s?x=50%%'""#));
    }

    #[test]
    fn times_for_people() {
        assert_eq!(poll_time(Period::Hour, 305), ":05:05");
        assert_eq!(poll_time(Period::Day, 23_400), "06:30");
        assert_eq!(poll_time(Period::Week, 86_400 + 60), "Tue 00:01");
        assert_eq!(poll_time(Period::Month, 14 * 86_400), "15 00:00");
    }

    #[test]
    fn json_can_be_simulated_and_tables_are_complete() {
        let times: Vec<Timestamp> = (0..200).map(|d| Timestamp((d * 24 + 9) * 3_600_000_000)).collect();
        let history = History::of_moments("s", &times);
        let options = Options { period: Some(Period::Day), polls: 2, ..Options::default() };
        let planned = plan(&history, &options).unwrap();
        let plans = read_plans(&json(std::slice::from_ref(&planned))).unwrap();
        assert_eq!(plans[0].poll_times, planned.schedule.poll_times);
        assert_eq!(plans[0].source.as_deref(), Some("s"));
        let table = table(&[planned]);
        for word in ["2 polls a day", "uniform, mean over phases", "every slot polled", "recall by polls: 1: 1.000"] {
            assert!(table.contains(word), "{word} not in\n{table}");
        }
    }
}
