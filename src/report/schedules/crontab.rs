//! Schedules for cron.
//!
//! Not every cron knows `CRON_TZ`, so times are written by the clock that cron itself goes by. Where that is another zone
//! than the schedule's they hold until one of the two changes its clock, and the file says so.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::tz::TimeZone;

use super::super::terminal::one_line;
use super::breaks_lines;
use crate::model::Period;
use crate::schedule::{PollCommand, Schedule};

/// Lines of a crontab that cron takes at most; Debian's refuses a longer one as a whole.
pub(crate) const MOST_LINES: usize = 10_000;

/// Bytes of a command that cron takes at most; with a longer one it refuses the whole file.
pub(crate) const LONGEST_COMMAND: usize = 998;

/// The clock that cron goes by, and what time it is.
#[derive(Clone, Debug)]
pub struct CronClock {
    zone: TimeZone,
    now: jiff::Timestamp,
}

impl CronClock {
    #[must_use]
    pub fn new(zone: TimeZone, now: jiff::Timestamp) -> Self {
        Self { zone, now }
    }

    /// The zone's name, for people.
    fn name(&self) -> &str {
        self.zone.iana_name().unwrap_or("the machine")
    }

    /// Seconds by which it is ahead of another zone at the moment.
    fn ahead_of(&self, zone: &str) -> i64 {
        let offset = |zone: &TimeZone| i64::from(zone.to_offset(self.now).seconds());
        TimeZone::get(zone).map_or(0, |other| offset(&self.zone) - offset(&other))
    }

    /// A poll time of a schedule by this clock. A day of the month stays in its month: cron knows no last day.
    fn time(&self, schedule: &Schedule, seconds: i64) -> i64 {
        let period = schedule.period.seconds();
        let time = seconds + self.ahead_of(&schedule.time_zone);
        if schedule.period == Period::Month { time.clamp(0, period - 60) } else { time.rem_euclid(period) }
    }
}

/// One line per schedule and time of day. Seconds are dropped: cron knows minutes.
#[must_use]
pub fn crontab(schedules: &[Schedule], command: &PollCommand, clock: &CronClock) -> String {
    let mut text = String::from("# written by ratoon schedule\n");
    let mut zone = None;
    for schedule in schedules {
        if zone != Some(&schedule.time_zone) {
            zone = Some(&schedule.time_zone);
            text.push_str(&zone_line(&schedule.time_zone, clock));
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
        let command = cron_command(schedule, command);
        if command.len() > LONGEST_COMMAND {
            let _ = writeln!(text, "# left out: cron takes no command of more than {LONGEST_COMMAND} bytes");
            continue;
        }
        for when in cron_times(schedule, clock) {
            let _ = writeln!(text, "{when} {command}");
        }
    }
    text
}

/// The command as it stands in a line: a percent sign would end it.
fn cron_command(schedule: &Schedule, command: &PollCommand) -> String {
    command.fill(&schedule.source).replace('%', r"\%")
}

/// The sources whose commands are too long for cron, as they can be shown.
#[must_use]
pub(crate) fn too_long(schedules: &[Schedule], command: &PollCommand) -> Vec<String> {
    let long = schedules.iter().filter(|schedule| cron_command(schedule, command).len() > LONGEST_COMMAND);
    long.map(|schedule| one_line(&schedule.source)).collect()
}

/// Which clock the lines below are for.
fn zone_line(zone: &str, clock: &CronClock) -> String {
    if clock.name() == zone {
        return format!("# by the clock of {zone}\n");
    }
    let day = clock.now.to_zoned(clock.zone.clone()).date();
    let cron = clock.name();
    format!("# times of {zone} by the clock of {cron} on {day}; write this file again when either changes its clock\n")
}

/// The five fields of cron, polls that differ in one field only on one line.
fn cron_times(schedule: &Schedule, clock: &CronClock) -> Vec<String> {
    let list = |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let mut groups: BTreeMap<(i64, i64), Vec<i64>> = BTreeMap::new();
    for time in schedule.poll_times.iter().map(|time| clock.time(schedule, *time)) {
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

    fn clock(zone: &str) -> CronClock {
        CronClock::new(TimeZone::get(zone).unwrap(), "2024-07-01T12:00:00Z".parse().unwrap())
    }

    fn lines_by(clock: &CronClock, schedules: &[Schedule], command: &str) -> Vec<String> {
        let text = crontab(schedules, &PollCommand::parse(command).unwrap(), clock);
        text.lines().filter(|l| !l.starts_with('#')).map(str::to_owned).collect()
    }

    fn lines(schedules: &[Schedule], command: &str) -> Vec<String> {
        lines_by(&clock("Europe/Berlin"), schedules, command)
    }

    #[test]
    fn cron_lines_say_when() {
        let day = schedule(Period::Day, &[23_400, 27_000, 64_800]);
        assert_eq!(
            lines(&[day], "fetch {url} >> log"),
            [
                r"0 18 * * * fetch 'http://a.org/it'\''s?x=50\%' >> log",
                r"30 6,7 * * * fetch 'http://a.org/it'\''s?x=50\%' >> log"
            ]
        );
        let first_fields = |s: Schedule| -> Vec<String> {
            lines(&[s], "f").iter().map(|l| l.split(' ').take(5).collect::<Vec<_>>().join(" ")).collect()
        };
        assert_eq!(first_fields(schedule(Period::Hour, &[300, 900])), ["5,15 * * * *"]);
        let week = schedule(Period::Week, &[23_400, 6 * 86_400 + 23_400, 86_400]);
        assert_eq!(first_fields(week), ["0 0 * * 2", "30 6 * * 0,1"]);
        assert_eq!(first_fields(schedule(Period::Month, &[0, 30 * 86_400])), ["0 0 1,31 * *"]);
        let mut bad = schedule(Period::Day, &[0]);
        bad.source = "a\nrm".to_owned();
        assert_eq!(lines(&[bad], "f"), [""; 0]);
    }

    #[test]
    fn times_are_those_of_crons_clock() {
        // In summer, Berlin is two hours ahead of UTC, and Kathmandu 3:45 of Berlin.
        let fields = |zone: &str, period, times: &[i64]| -> Vec<String> {
            let found = lines_by(&clock(zone), &[schedule(period, times)], "f");
            found.iter().map(|l| l.split(' ').take(5).collect::<Vec<_>>().join(" ")).collect()
        };
        assert_eq!(fields("UTC", Period::Day, &[3_600, 23_400]), ["0 23 * * *", "30 4 * * *"]);
        assert_eq!(fields("UTC", Period::Week, &[3_600]), ["0 23 * * 0"]);
        assert_eq!(fields("UTC", Period::Month, &[3_600, 86_400 + 3_600]), ["0 0 1 * *", "0 23 1 * *"]);
        assert_eq!(fields("UTC", Period::Hour, &[300]), ["5 * * * *"]);
        assert_eq!(fields("Asia/Kathmandu", Period::Hour, &[300]), ["50 * * * *"]);
        assert_eq!(fields("Asia/Kathmandu", Period::Month, &[30 * 86_400 + 85_000]), ["59 23 31 * *"]);
        let text = crontab(&[schedule(Period::Day, &[0])], &PollCommand::default(), &clock("UTC"));
        assert!(text.contains("# times of Europe/Berlin by the clock of UTC on 2024-07-01; write"), "{text}");
    }

    #[test]
    fn one_long_url_does_not_spoil_the_file() {
        let mut long = schedule(Period::Day, &[0]);
        long.source = format!("http://a.org/{}", "x".repeat(1_500));
        assert_eq!(lines(&[long, schedule(Period::Hour, &[0])], "f").len(), 1);
    }
}
