//! Schedules for systemd: a timer and a service for each source.

use std::fmt::Write as _;

use jiff::tz::TimeZone;

use super::{DAYS, breaks_lines};
use crate::model::{Digest, Period};
use crate::schedule::{PollCommand, Schedule};

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

/// The minutes of an hour at which a zone is ahead of UTC, if they are the same in winter and summer.
fn odd_minutes(time_zone: &str) -> Option<i64> {
    const WINTER_AND_SUMMER: [i64; 2] = [1_704_067_200, 1_719_792_000];
    let zone = TimeZone::get(time_zone).ok()?;
    let odd = |second: i64| {
        let offset = zone.to_offset(jiff::Timestamp::from_second(second).ok()?);
        Some(i64::from(offset.seconds()).rem_euclid(3_600))
    };
    let [winter, summer] = WINTER_AND_SUMMER.map(odd);
    winter.filter(|_| winter == summer)
}

/// A calendar event of systemd. Hours are told by UTC: by the clock of a zone, systemd leaves out the hour that comes
/// twice in autumn.
fn on_calendar(period: Period, seconds: i64, time_zone: &str) -> String {
    if let (Period::Hour, Some(odd)) = (period, odd_minutes(time_zone)) {
        let rest = (seconds - odd).rem_euclid(3_600);
        return format!("*-*-* *:{:02}:{:02} UTC", rest / 60, rest % 60);
    }
    let (day, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", rest / 3_600, rest / 60 % 60, rest % 60);
    match period {
        Period::Hour => format!("*-*-* *:{} {time_zone}", &clock[3..]),
        Period::Day => format!("*-*-* {clock} {time_zone}"),
        Period::Week => format!("{} *-*-* {clock} {time_zone}", DAYS[usize::try_from(day).unwrap_or(0) % 7]),
        Period::Month => format!("*-*-{:02} {clock} {time_zone}", day + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::schedule;
    use super::*;

    #[test]
    fn timers_say_the_same() {
        assert_eq!(on_calendar(Period::Hour, 300, "UTC"), "*-*-* *:05:00 UTC");
        assert_eq!(on_calendar(Period::Hour, 300, "Europe/Berlin"), "*-*-* *:05:00 UTC");
        assert_eq!(on_calendar(Period::Hour, 300, "Asia/Kathmandu"), "*-*-* *:20:00 UTC");
        assert_eq!(on_calendar(Period::Hour, 300, "Australia/Lord_Howe"), "*-*-* *:05:00 Australia/Lord_Howe");
        assert_eq!(on_calendar(Period::Day, 23_400, "UTC"), "*-*-* 06:30:00 UTC");
        assert_eq!(on_calendar(Period::Week, 6 * 86_400, "UTC"), "Sun *-*-* 00:00:00 UTC");
        assert_eq!(on_calendar(Period::Month, 30 * 86_400, "UTC"), "*-*-31 00:00:00 UTC");
        let files = systemd(&[schedule(Period::Day, &[0, 60])], &PollCommand::parse(r#"fetch "$X" {url}"#).unwrap());
        assert_eq!(files.len(), 2);
        assert!(files[0].name.starts_with("ratoon-a.org-it-s") && files[0].name.ends_with(".timer"));
        assert_eq!(files[0].text.matches("OnCalendar=").count(), 2);
        assert!(files[1].text.contains(r#"ExecStart=/bin/sh -c "fetch \"$$X\" 'http://a.org/it'\\''s?x=50%%'""#));
    }
}
