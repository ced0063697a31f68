//! Poll commands as cron and systemd would run them, by a real shell: whatever a crawled URL looks like, the program is
//! given exactly that URL and nothing else runs.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use proptest::test_runner::{Config, TestRunner};
use ratoon::inside::model::{Method, Period};
use ratoon::inside::report::schedules::crontab::{CronClock, crontab};
use ratoon::inside::report::schedules::timers::systemd;
use ratoon::inside::schedule::{Objective, PollCommand, Schedule};

use crate::workspace::Workspace;

/// URLs that try to run `touch`, to add lines and to escape from quotes.
const HOSTILE: &[&str] = &[
    "http://evil.test/?;touch${IFS}x;{source}",
    "http://evil.test/?;touch${IFS}x;{url}",
    "http://evil.test/{source}{url}{source}",
    "http://evil.test/'{source}';touch x;'",
    "http://evil.test/';touch x;'",
    "http://evil.test/\";touch x;\"",
    "http://evil.test/$(touch x)",
    "http://evil.test/`touch x`",
    "http://evil.test/\\';touch x;\\'",
    "http://evil.test/\\\\';touch x;#",
    "http://evil.test/100%",
    "http://evil.test/\\%",
    "http://evil.test/\\\\%';touch x;%\\%%",
    "http://evil.test/%h%n%i%%$HOME$$${HOME}",
    "http://evil.test/?a=1&touch x&b=2|touch x>x<x",
    "http://evil.test/ with spaces * ? [a-z] ~ ! #",
    "http://evil.test/\\",
    "http://evil.test/\\\\",
    "http://evil.test/'",
    "http://evil.test/\u{2019}\u{a0}é\u{202e}",
    "-rf /",
    "",
];

/// Sources that must not stand in these files at all.
const REFUSED: &[&str] = &[
    "http://evil.test/\n* * * * * touch x",
    "http://evil.test/\r[Service]\rExecStart=/bin/touch x",
    "http://evil.test/\u{85}\u{2028}touch x",
    "http://evil.test/\u{0}",
];

/// A folder with a program that writes its arguments, each with a NUL behind it, to `said`.
fn printer(dir: &Path) -> String {
    let path = dir.join("printer");
    fs::write(&path, format!("#!/bin/sh\nprintf '%s\\0' \"$@\" >> '{}'\n", dir.join("said").display())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// What the program is given when `sh` runs a command in an empty folder; nothing may be left there.
fn arguments(dir: &Path, command: &str) -> Vec<String> {
    let (said, work) = (dir.join("said"), dir.join("work"));
    let _ = fs::remove_file(&said);
    fs::create_dir_all(&work).unwrap();
    let output = Command::new("/bin/sh").args(["-c", command]).current_dir(&work).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{command}: {output:?}");
    let left: Vec<_> = fs::read_dir(&work).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{command} made {left:?}");
    let said = String::from_utf8(fs::read(&said).unwrap()).unwrap();
    said.split_terminator('\0').map(str::to_owned).collect()
}

/// What cron gives to `sh` of the command in a line, and to the command as its input. Some versions remove the backslash
/// before a backslash too.
fn read_by_cron(command: &str, unescapes_backslashes: bool) -> String {
    let mut out = String::new();
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek().copied()) {
            ('%', _) => panic!("cron cuts {command}"),
            ('\\', Some('%')) => out.extend(chars.next()),
            ('\\', Some('\\')) if unescapes_backslashes => out.extend(chars.next()),
            ('\\', Some(next)) => {
                out.extend([c, next]);
                chars.next();
            }
            (c, _) => out.push(c),
        }
    }
    out
}

/// The command in `ExecStart=/bin/sh -c "…"`, as systemd reads it.
fn read_by_systemd(service: &str) -> String {
    let starts: Vec<&str> = service.lines().filter_map(|line| line.strip_prefix("ExecStart=")).collect();
    let [start] = starts[..] else { panic!("{service}") };
    let inside = start.strip_prefix("/bin/sh -c \"").and_then(|rest| rest.strip_suffix('"')).unwrap();
    let mut out = String::new();
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => panic!("systemd ends the argument early: {start}"),
            '\\' => {
                let next = chars.next().unwrap_or_else(|| panic!("an escape without an end: {start}"));
                assert!(matches!(next, '\\' | '"'), "\\{next} means something else: {start}");
                out.push(next);
            }
            '$' | '%' => {
                assert_eq!(chars.next(), Some(c), "{c} would be expanded: {start}");
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn schedule(source: &str) -> Schedule {
    Schedule {
        source: source.to_owned(),
        period: Period::Day,
        time_zone: "UTC".to_owned(),
        poll_times: vec![3_600],
        method: Method::Uniform,
        objective: Objective::default(),
    }
}

fn utc() -> CronClock {
    CronClock::new(jiff::tz::TimeZone::UTC, jiff::Timestamp::UNIX_EPOCH)
}

/// The command of a crontab with one line, which must have nothing but that and comments.
fn cron_command(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let [line] = lines[..] else { panic!("{text}") };
    line.strip_prefix("0 1 * * * ").unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// A unit file has the settings that it should, each on a line of its own.
fn assert_settings(unit: &str, expected: &[&str]) {
    let key = |line: &str| line.split_once('=').map_or(line, |(key, _)| key).to_owned();
    let found: Vec<String> = unit.lines().filter(|line| !line.is_empty()).map(key).collect();
    assert_eq!(found, expected, "{unit}");
    assert!(unit.lines().all(|line| !line.ends_with('\\')), "a line takes in the next one: {unit}");
}

/// Both kinds of file give exactly the source to the program, at both places.
fn check(dir: &Path, command: &PollCommand, source: &str) {
    let expected = ["-x", source, "mid", source].map(str::to_owned);
    let schedules = [schedule(source)];
    let line = cron_command(&crontab(&schedules, command, &utc()));
    for unescapes_backslashes in [false, true] {
        assert_eq!(arguments(dir, &read_by_cron(&line, unescapes_backslashes)), expected, "{line}");
    }
    let units = systemd(&schedules, command);
    let [timer, service] = &units[..] else { panic!("{units:?}") };
    assert_settings(
        &timer.text,
        &["[Unit]", "Description", "[Timer]", "OnCalendar", "AccuracySec", "[Install]", "WantedBy"],
    );
    assert_settings(&service.text, &["[Unit]", "Description", "[Service]", "Type", "ExecStart"]);
    assert_eq!(arguments(dir, &read_by_systemd(&service.text)), expected, "{}", service.text);
}

#[test]
fn a_shell_gets_the_url_and_runs_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let command = PollCommand::parse(&format!("{} -x {{url}} mid {{source}}", printer(dir.path()))).unwrap();
    for source in HOSTILE {
        check(dir.path(), &command, source);
    }
}

#[test]
fn a_shell_gets_any_printable_url() {
    let dir = tempfile::tempdir().unwrap();
    let command = PollCommand::parse(&format!("{} -x {{url}} mid {{source}}", printer(dir.path()))).unwrap();
    let mut runner = TestRunner::new(Config { cases: 150, failure_persistence: None, ..Config::default() });
    let pieces = r#"(\{url\}|\{source\}|\$IFS|touch x|[\\'"`$%;&|(){}<>#!*?~ -]|[!-~]|\PC){0,24}"#;
    runner
        .run(&pieces, |source| {
            proptest::prop_assume!(!source.chars().any(|c| matches!(c, '\u{2028}' | '\u{2029}')));
            check(dir.path(), &command, &source);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_url_with_line_ends_is_left_out_and_starts_no_line() {
    for source in REFUSED {
        let schedules = [schedule(source), schedule("http://good.test/")];
        let text = crontab(&schedules, &PollCommand::default(), &utc());
        assert_eq!(cron_command(&text), "fetch 'http://good.test/'");
        assert!(text.split(['\n']).all(|line| !line.contains(['\r', '\u{85}', '\u{2028}', '\u{0}'])), "{text:?}");
        assert_eq!(systemd(&schedules, &PollCommand::default()).len(), 2);
    }
}

/// From a log to the files of `schedule`, with the command as people type it.
#[test]
fn the_files_of_schedule_are_safe_to_install() {
    let w = Workspace::new("");
    let mut log = String::from("source,updated_at\n");
    for source in HOSTILE.iter().filter(|source| !source.is_empty()).chain(&REFUSED[..1]) {
        for day in 1..=3 {
            writeln!(log, "\"{}\",2024-01-0{day}T08:00:00Z", source.replace('"', "\"\"")).unwrap();
        }
    }
    fs::write(w.path("log.csv"), log).unwrap();
    let command = format!("{} {{url}} {{source}}", printer(&w.path("")));
    let args = ["schedule", "--updates", "log.csv", "--period", "day", "--polls", "1", "--crontab", "cron"];
    w.ratoon(&[&args[..], &["--timers", "timers", "-q", "--command", &command]].concat()).expect(0);
    let mut expected: Vec<Vec<String>> =
        HOSTILE.iter().filter(|source| !source.is_empty()).map(|source| vec![(*source).to_owned(); 2]).collect();
    expected.sort();
    let text = fs::read_to_string(w.path("cron")).unwrap();
    let lines = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let mut by_cron: Vec<Vec<String>> = lines
        .map(|line| line.splitn(6, ' ').nth(5).unwrap())
        .map(|command| arguments(&w.path(""), &read_by_cron(command, true)))
        .collect();
    by_cron.sort();
    assert_eq!(by_cron, expected);
    let services = walkdir::WalkDir::new(w.path("timers")).into_iter().map(|entry| entry.unwrap().into_path());
    let services = services.filter(|path| path.extension().is_some_and(|ending| ending == "service"));
    let mut by_systemd: Vec<Vec<String>> =
        services.map(|path| arguments(&w.path(""), &read_by_systemd(&fs::read_to_string(path).unwrap()))).collect();
    by_systemd.sort();
    assert_eq!(by_systemd, expected);
}

/// Debian's own parser takes the files as they are, also with sources that it would refuse if they stood in them.
#[test]
#[ignore = "needs crontab(1) of Debian's cron"]
fn a_real_cron_takes_the_crontab() {
    let w = Workspace::new("");
    let mut log = String::from("source,updated_at\n");
    let long: Vec<String> =
        [970, 990, 995, 1_000, 5_000].map(|n| format!("http://long.test/{}", "%".repeat(n / 2))).into();
    let sources = HOSTILE.iter().copied().filter(|source| !source.is_empty());
    for source in sources.chain(REFUSED[..1].iter().copied()).chain(long.iter().map(String::as_str)) {
        writeln!(log, "\"{}\",2024-01-01T08:00:00Z", source.replace('"', "\"\"")).unwrap();
    }
    fs::write(w.path("log.csv"), log).unwrap();
    for period in ["hour", "day", "week", "month"] {
        let args = ["schedule", "--updates", "log.csv", "--period", period, "--crontab", "cron", "-q"];
        w.ratoon(&[&args[..], &["--command", "fetch {url} >> 'a b' 2>&1"]].concat()).expect(0);
        let checked = Command::new("crontab").arg("-n").arg(w.path("cron")).output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
}

/// A place in quotes would put the URL where the shell still looks into it.
#[test]
fn a_command_that_quotes_the_url_itself_is_refused() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>hello</p>")]);
    for command in ["fetch '{url}'", "fetch \"{url}\"", "sh -c 'fetch {url}'", "fetch ${url}"] {
        let settings = format!("[schedule]\ncommand = '''{command}'''");
        w.pipeline(&settings);
        w.ratoon(&["run", "p.toml"]).expect(2).says("write it bare");
        w.ratoon(&["schedule", "--updates", "log.csv", "--command", command]).expect(2).says("write it bare");
    }
}
