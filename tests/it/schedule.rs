//! `schedule` and `simulate`: from updates, or from a log, to poll times and what they are worth.

use std::fmt::Write as _;
use std::fs;

use ratoon::inside::store::parquet::Partition;
use ratoon::inside::tables::record::Table;
use ratoon::inside::tables::schedule::{RecallCurveRow, ScheduleRow};
use serde_json::Value;

use crate::workspace::{Ended, Workspace};

/// Three updates every morning, one source; another that changes once a week.
fn log(w: &Workspace, name: &str) {
    let mut text = String::from("source,updated_at\n");
    let start: jiff::Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
    for day in 0..100i64 {
        for minute in [8 * 60 + 2, 9 * 60 + 32, 11 * 60 + day % 5] {
            let time = start + jiff::SignedDuration::from_mins(day * 1_440 + minute);
            writeln!(text, "http://news.test/,{time}").unwrap();
        }
        if day % 7 == 3 {
            let time = start + jiff::SignedDuration::from_hours(day * 24 + 15);
            writeln!(text, "http://weekly.test/,{time}").unwrap();
        }
    }
    fs::write(w.path(name), text).unwrap();
}

fn json(ended: &Ended) -> Value {
    assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.stdout);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// The rows of a table outside of a store.
fn all_rows<T: Table>(folder: &std::path::Path) -> Vec<T> {
    Partition::open(&folder.join("part-00000.parquet")).unwrap().all_rows().unwrap()
}

#[test]
fn a_log_alone_gives_tables_json_and_crontab() {
    let w = Workspace::new("");
    log(&w, "log.csv");
    let args = ["schedule", "--updates", "log.csv", "--period", "day", "--polls", "3", "--out", "out"];
    let shown = w.ratoon(&[&args[..], &["--command", "fetch {url} > /dev/null"]].concat()).expect(0).stdout;
    for words in [
        "3 polls a day (optimal, UTC)",
        "uniform, mean over phases",
        "every slot polled",
        "90 % of what",
        "overall: 2 sources",
    ] {
        assert!(shown.contains(words), "{words} is not in {shown}");
    }
    let mut files: Vec<String> = walkdir::WalkDir::new(w.path("out"))
        .into_iter()
        .map(|entry| entry.unwrap().path().strip_prefix(w.path("out")).unwrap().display().to_string())
        .filter(|path| path.contains('.'))
        .collect();
    files.sort();
    let expected =
        ["recall_curves/part-00000.parquet", "schedule.crontab", "schedule.json", "schedules/part-00000.parquet"];
    assert_eq!(files, expected);
    let rows = all_rows::<ScheduleRow>(&w.path("out/schedules"));
    let news = rows.iter().find(|row| row.source == "http://news.test/").unwrap();
    assert_eq!(
        (news.polls, news.poll_times.len(), news.period.as_str(), news.method.as_str()),
        (3, 3, "day", "optimal")
    );
    assert!(news.recall.unwrap() > 0.99 && news.uniform_recall.unwrap() < 0.6, "{news:?}");
    let curve = all_rows::<RecallCurveRow>(&w.path("out/recall_curves"));
    let point = curve.iter().find(|row| row.source == news.source && row.polls == 3).unwrap();
    assert_eq!(point.recall, news.recall);
    let crontab = fs::read_to_string(w.path("out/schedule.crontab")).unwrap();
    let lines: Vec<&str> = crontab.lines().filter(|l| l.ends_with("fetch 'http://news.test/' > /dev/null")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(" * * * ")), "{crontab}");
    // Again, on one thread: the same bytes.
    let before = fs::read(w.path("out/schedules/part-00000.parquet")).unwrap();
    w.ratoon(&[&args[..], &["--threads", "1"]].concat()).expect(0);
    assert!(before == fs::read(w.path("out/schedules/part-00000.parquet")).unwrap());
}

#[test]
fn simulate_agrees_with_the_held_out_figures() {
    let w = Workspace::new("");
    log(&w, "log.csv");
    for zone in ["UTC", "Europe/Berlin"] {
        let args = ["schedule", "--updates", "log.csv", "--period", "day", "--polls", "2", "--time-zone", zone];
        let planned = w.ratoon(&[&args[..], &["--fit", "train", "--out", "out", "--json"]].concat()).expect(0);
        fs::write(w.path("s.json"), &planned.stdout).unwrap();
        let planned = json(&planned);
        for schedule in ["s.json", "out/schedule.json", "out/schedules", "out/schedules/part-00000.parquet"] {
            let args = ["simulate", "--schedule", schedule, "--updates", "log.csv", "--holdout", "0.3", "--json"];
            let found = json(&w.ratoon(&args).expect(0));
            assert_eq!(found["simulated"].as_array().unwrap().len(), 2);
            for (plan, found) in
                planned["schedules"].as_array().unwrap().iter().zip(found["simulated"].as_array().unwrap())
            {
                assert_eq!(plan["source"], found["source"]);
                for what in ["expected", "recall_bounds"] {
                    assert_eq!(plan["held_out"][what], found[what], "{schedule} {zone}");
                }
                assert_eq!((&plan["uniform"], &plan["recall_ceiling"]), (&found["uniform"], &found["recall_ceiling"]));
            }
        }
    }
    // By hand, for all sources.
    fs::write(w.path("hand.json"), r#"{"period": "day", "poll_times": ["08:05", "09:35", "11:10"]}"#).unwrap();
    let shown = w.ratoon(&["simulate", "--schedule", "hand.json", "--updates", "log.csv"]).expect(0).stdout;
    assert!(shown.contains("mean over sources") && shown.contains("3 / day   1.000"), "{shown}");
    fs::write(w.path("bad.json"), r#"{"period": "day", "poll_times": ["25:00"]}"#).unwrap();
    w.ratoon(&["simulate", "--schedule", "bad.json", "--updates", "log.csv"]).expect(1).says("25:00");
    w.ratoon(&["simulate", "--schedule", "none.json", "--updates", "log.csv"]).expect(1).says("none.json");
    w.ratoon(&["simulate", "--schedule", "hand.json"]).expect(2);
}

#[test]
fn figures_are_those_of_the_polls_that_a_host_limit_leaves() {
    let w = Workspace::new("");
    let mut text = String::from("source,updated_at\n");
    let start: jiff::Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
    for source in 0..40i64 {
        for day in 0..60i64 {
            let minutes = day * 1_440 + 9 * 60 + (day * 7 + source * 3) % 11;
            let time = start + jiff::SignedDuration::from_mins(minutes);
            writeln!(text, "http://one.test/{source},{time}").unwrap();
        }
    }
    fs::write(w.path("log.csv"), text).unwrap();
    // With slots of an hour and one poll in each, a day has room for 24 polls.
    let args = ["schedule", "--updates", "log.csv", "--period", "day", "--polls", "2", "--grain", "1h"];
    let args = [&args[..], &["--host-limit", "1", "--fit", "train", "--json"]].concat();
    let planned = w.ratoon(&args).expect(0);
    fs::write(w.path("s.json"), &planned.stdout).unwrap();
    let planned = json(&planned);
    assert!(planned["host_limit"]["dropped"].as_u64().unwrap() >= 40, "{}", planned["host_limit"]);
    let args =
        ["simulate", "--schedule", "s.json", "--updates", "log.csv", "--holdout", "0.3", "--grain", "1h", "--json"];
    let found = json(&w.ratoon(&args).expect(0));
    let (schedules, found) = (planned["schedules"].as_array().unwrap(), found["simulated"].as_array().unwrap());
    assert_eq!((schedules.len(), found.len()), (40, 40));
    for (plan, found) in schedules.iter().zip(found) {
        assert_eq!(
            (&plan["held_out"]["expected"], &plan["uniform"]),
            (&found["expected"], &found["uniform"]),
            "{plan}"
        );
    }
    let unpolled = schedules.iter().filter(|plan| plan["poll_times"].as_array().unwrap().is_empty());
    let unpolled: Vec<&Value> = unpolled.collect();
    assert!(!unpolled.is_empty() && unpolled.iter().all(|plan| plan["held_out"]["expected"]["recall"] == 0.0));
}

#[test]
fn logs_are_read_in_every_form() {
    let w = Workspace::new("");
    log(&w, "log.csv");
    let schedules = |log: &str| {
        let ended = w.ratoon(&["schedule", "--updates", log, "--period", "day", "--json"]).expect(0);
        json(&ended)["schedules"].clone()
    };
    let plain = schedules("log.csv");
    let bytes = fs::read(w.path("log.csv")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, &bytes).unwrap();
    fs::write(w.path("log.csv.gz"), gzip.finish().unwrap()).unwrap();
    assert_eq!(schedules("log.csv.gz"), plain);
    fs::write(w.path("log.csv.zst"), zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
    assert_eq!(schedules("log.csv.zst"), plain);
    // Our own table of updates is a log too; a local time zone with its clock changes reads as well.
    w.ratoon(&["schedule", "--updates", "log.csv", "--time-zone", "America/New_York"]).expect(0);
}

#[test]
fn bad_logs_are_answered_with_their_lines() {
    let w = Workspace::new("");
    let run = |text: &str, more: &[&str]| {
        fs::write(w.path("log.csv"), text).unwrap();
        w.ratoon(&[&["schedule", "--updates", "log.csv", "-v"], more].concat())
    };
    let rows: String = (1..=28).map(|d| format!("a,2024-02-{d:02}T09:00:00Z\n")).collect();
    let head = "source,updated_at\n";
    run(&format!("{head}{rows}a,yesterday\n"), &[]).expect(3).says("line 30: 'yesterday' in 'updated_at' is no time");
    run(&format!("{head}{rows}a,yesterday\n"), &["--strict"]).expect(1).says("--strict");
    run(&format!("{head}a,2024-03-01T00:00:00Z\n{rows}{rows}"), &[])
        .expect(0)
        .says("lines out of order")
        .says("28 lines repeat others");
    let one = run(&format!("{head}a,2024-03-01T00:00:00Z\n"), &[]).expect(0).stdout;
    assert!(one.contains("one update is known: polls are uniform"), "{one}");
    run("", &[]).expect(1).says("log.csv: the log is empty");
    run(head, &[]).expect(1).says("no update in it");
    run("a,b\n1,2\n", &[]).expect(1).says("the columns are: a, b");
    run(&format!("{head}a,never\n"), &[]).expect(1).says("line 2").says("no update in it");
    w.ratoon(&["schedule", "--updates", "missing.csv"]).expect(1).says("missing.csv");
    let many = run(&format!("{head}{rows}"), &["--period", "hour", "--polls", "50"]).expect(0).stdout;
    assert!(many.contains("50 polls do not fit into an hour at a grain of 300 s"), "{many}");
    let intervals = "source,after,before\n".to_owned()
        + &(1..=28).map(|d| format!("a,2024-02-{d:02}T03:00:00Z,2024-02-{:02}T03:00:00Z\n", d + 1)).collect::<String>();
    let shown = run(&intervals, &["--period", "day"]).expect(0).stdout;
    assert!(shown.contains("only intervals are known: recall lies between"), "{shown}");
}

#[test]
fn usage_errors_exit_with_2() {
    let w = Workspace::new("");
    log(&w, "log.csv");
    w.ratoon(&["schedule"]).expect(2);
    w.ratoon(&["schedule", "p.toml", "--polls", "3"]).expect(2).says("--updates");
    w.pipeline("");
    w.ratoon(&["schedule", "p.toml", "--crontab", "cron"]).expect(1);
    for bad in [
        ["--grain", "7m"],
        ["--grain", "5"],
        ["--period", "year"],
        ["--polls", "0"],
        ["--objective", "speed=1"],
        ["--holdout", "1"],
        ["--method", "best"],
        ["--time-zone", "Mars"],
    ] {
        w.ratoon(&[&["schedule", "--updates", "log.csv"], &bad[..]].concat()).expect(2);
    }
    w.ratoon(&["schedule", "--updates", "log.csv", "--polls", "3", "--budget", "9"]).expect(2);
}

#[test]
fn a_budget_goes_where_it_is_worth_most() {
    let w = Workspace::new("");
    log(&w, "log.csv");
    let args = ["schedule", "--updates", "log.csv", "--period", "day", "--budget", "4", "--json"];
    let found = json(&w.ratoon(&args).expect(0));
    let polls = |found: &Value| -> Vec<usize> {
        found["schedules"].as_array().unwrap().iter().map(|s| s["poll_times"].as_array().unwrap().len()).collect()
    };
    assert_eq!(polls(&found), [3, 1]);
    assert_eq!(found["budget"]["spent"], 4);
    let shown = w.ratoon(&["schedule", "--updates", "log.csv", "--period", "day", "--budget", "1"]).expect(0).stdout;
    assert!(shown.contains("1 of 1 polls a day spent; 1 sources get none"), "{shown}");
    let args = ["schedule", "--updates", "log.csv", "--period", "day", "--polls", "2", "--host-limit", "1"];
    assert!(w.ratoon(&args).expect(0).stdout.contains("host limit: 0 polls moved, 0 dropped"));
}

#[test]
fn a_figure_and_timers_are_written_on_request() {
    let w = Workspace::new("");
    log(&w, "log.csv");
    let args = ["schedule", "--updates", "log.csv", "--period", "day", "--figure", "f/5.svg", "--timers", "t", "-q"];
    let ended = w.ratoon(&args).expect(0);
    assert_eq!(ended.stdout, "");
    assert!(fs::read_to_string(w.path("f/5.svg")).unwrap().starts_with("<svg"));
    let timers = fs::read_dir(w.path("t")).unwrap().count();
    assert_eq!(timers, 4, "a timer and a service for each of two sources");
}

#[test]
fn cron_and_systemd_get_no_more_than_they_take() {
    let w = Workspace::new("");
    let run = |sources: usize, args: &[&str]| {
        let mut text = String::from("source,updated_at\n");
        (0..sources).for_each(|i| writeln!(text, "http://many.test/{i},2024-01-01T08:00:00Z").unwrap());
        fs::write(w.path("log.csv"), text).unwrap();
        w.ratoon(&[&["schedule", "--updates", "log.csv", "--period", "day"], args].concat())
    };
    let many = run(1_000, &["--crontab", "some/cron", "-q"]).expect(0);
    assert_eq!(fs::read_to_string(w.path("some/cron")).unwrap().lines().count(), 2 + 2 * 1_000);
    assert_eq!(many.stdout, "");
    for (option, what) in [("--timers", "no timers for 1001 sources"), ("--crontab", "no crontab for 1001 sources")] {
        let refused = run(1_001, &[option, "more"]).expect(1).says(what).says("`ratoon due`");
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    }
    assert!(!w.path("more").exists());
    // Where no crontab was asked for in so many words, it is left out with the same line.
    run(1_001, &["--out", "out"]).expect(0).says("`ratoon due`");
    assert!(w.path("out/schedule.json").exists() && !w.path("out/schedule.crontab").exists());
    // Seven lines of each of a thousand would be fine, eleven are not.
    run(1_000, &["--polls", "11", "--grain", "1m", "--crontab", "lines"])
        .expect(1)
        .says("cron refuses more than 10000");
}

#[test]
fn what_is_too_long_for_cron_is_named() {
    let w = Workspace::new("");
    let long = format!("http://long.test/{}", "x".repeat(1_500));
    let line = |source: &str| format!("{source},2024-01-01T08:00:00Z\n");
    fs::write(w.path("log.csv"), format!("source,updated_at\n{}{}", line(&long), line("http://a.test/"))).unwrap();
    let args = ["schedule", "--updates", "log.csv", "--period", "day", "--polls", "1", "--crontab", "cron", "-q"];
    w.ratoon(&args[..args.len() - 1]).expect(0).says("no command of more than 998 bytes").says(&long);
    let text = fs::read_to_string(w.path("cron")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() == 1 && lines[0].ends_with("fetch 'http://a.test/'"), "{lines:?}");
}

/// Sources are others when `by` is edited: those of before are none any more, wherever one looks.
#[test]
fn sources_of_before_an_edit_are_gone_with_it() {
    const HOSTS: &str = "coverage = 'partial'\n[schedule]\nby = 'host'\nbudget = 6\nperiod = 'day'\n";
    const URLS: &str = "coverage = 'partial'\n[schedule]\nby = 'url'\nbudget = 6\nperiod = 'day'\n";
    let night = |w: &Workspace, day: usize| {
        let (a, b) = (format!("<p>version {day}"), format!("<p>version {}", day / 3));
        let pages: [(&str, &str); 3] = [("a", &a), ("b", &b), ("c", "<p>always the same")];
        // On most nights only some of the pages come.
        w.snapshot(&format!("2024-01-{day:02}"), if day.is_multiple_of(4) { &pages } else { &pages[..day % 4] });
    };
    let told = |w: &Workspace| {
        let ask = |query: &str| w.ratoon(&["sql", "p.toml", query, "--format", "json"]).expect(0).stdout;
        let schedules =
            "select source, polls, poll_times, method, recall, freshness, updates from schedules order by source";
        let stats = "select source, urls, captures, updates, rate_per_day, phase_day from update_stats order by source";
        let due = w.ratoon(&["due", "p.toml", "--at", "2024-01-12T12:00:00Z", "--format", "jsonl"]).expect(0);
        [ask(schedules), ask(stats), due.stdout]
    };
    let (edited, fresh) = (Workspace::new(HOSTS), Workspace::new(URLS));
    for day in 1..=8 {
        night(&edited, day);
        night(&fresh, day);
        edited.run();
    }
    fresh.run();
    assert!(told(&edited)[0].contains("\"site.test\"") && !told(&fresh)[0].contains("\"site.test\""));
    edited.pipeline(URLS);
    edited.run();
    assert_eq!(told(&edited), told(&fresh), "at once");
    for w in [&edited, &fresh] {
        night(w, 9);
        w.run();
    }
    assert_eq!(told(&edited), told(&fresh), "and on the nights after");
    fs::remove_dir_all(edited.path("store/_meta/index")).unwrap();
    for w in [&edited, &fresh] {
        night(w, 10);
        w.run();
    }
    assert_eq!(told(&edited), told(&fresh), "also when the index is made again");
    edited.pipeline(HOSTS);
    edited.run();
    assert!(!told(&edited)[1].contains("site.test/a") && told(&edited)[1].contains("\"urls\":3"));
}

#[test]
fn the_stage_writes_tables_and_files_on_request() {
    let w = Workspace::new("[schedule]\npolls = 2\nperiod = 'day'\ncommand = 'get {url}'");
    for day in 1..=9 {
        let id = format!("2024-01-0{day}");
        w.snapshot(&id, &[("a", &format!("<p>version {day}")), ("b", "<p>always the same")]);
    }
    let shown = w.ratoon(&["schedule", "p.toml"]).expect(0).stdout;
    assert!(shown.contains("schedules after 2024-01-09") && shown.contains("overall: 2 sources"), "{shown}");
    let rows = w.rows::<ScheduleRow>("2024-01-09");
    assert_eq!(rows.len(), 2);
    let row = |name: &str| rows.iter().find(|row| row.source.ends_with(name)).unwrap();
    assert_eq!((row("/a").updates, row("/a").polls, row("/b").updates), (8, 2, 0));
    assert!(row("/b").notes.as_ref().unwrap().contains("no update is known: polls are uniform"));
    assert!(row("/a").recall_low <= row("/a").recall && row("/a").recall <= row("/a").recall_high);
    let points = w.rows::<RecallCurveRow>("2024-01-09");
    assert!(points.len() == 24 && points.iter().all(|row| row.source.ends_with("/a")), "b has nothing to show");
    // All is done; the files are written from what the store has.
    let again = ["schedule", "p.toml", "--crontab", "cron", "--timers", "timers"];
    w.ratoon(&[&again[..], &["--dry-run"]].concat()).expect(0);
    assert!(!w.path("cron").exists() && !w.path("timers").exists());
    let shown = w.ratoon(&again).expect(0).stdout;
    assert!(shown.contains("schedules after 2024-01-09") && shown.contains("wrote cron\nwrote timers\n"), "{shown}");
    let in_zone = |zone: &str, more: &[&str]| {
        fs::remove_file(w.path("cron")).unwrap();
        let args = [&again[..4], more].concat();
        let ended = Ended::of(&w.command(&args).env("TZ", zone).output().unwrap()).expect(0);
        (ended.stdout, fs::read_to_string(w.path("cron")).unwrap())
    };
    let (quiet, utc) = in_zone("UTC", &["-q"]);
    assert!(quiet.is_empty() && utc.contains(" get 'http://site.test/a'\n"), "{utc}");
    let (summary, kathmandu) = in_zone("Asia/Kathmandu", &["--json"]);
    assert!(summary.starts_with('{') && summary.lines().count() == 1, "{summary}");
    let minute = |text: &str| {
        let line = text.lines().find(|line| line.ends_with("get 'http://site.test/b'")).unwrap();
        line.split(' ').next().unwrap().parse::<u32>().unwrap()
    };
    assert_eq!(minute(&kathmandu), (minute(&utc) + 45) % 60, "by the clock of the machine");
    assert_eq!(fs::read_dir(w.path("timers")).unwrap().count(), 4);
    // The table, and the table of updates as a log, serve `simulate`.
    let args = ["simulate", "--schedule", "store/schedules", "--updates", "store/updates", "--json"];
    let found = json(&w.ratoon(&args).expect(0));
    assert_eq!(found["simulated"][0]["source"], "http://site.test/a");
    assert_eq!(found["simulated"][0]["updates"], 8);
    let summary = json(&w.ratoon(&["schedule", "p.toml", "--force", "--json"]).expect(0));
    assert_eq!(summary["done"][0]["stage"], "schedule", "later stages only");
    assert_eq!(w.rows::<ScheduleRow>("2024-01-09"), rows);
}

#[test]
fn a_budget_and_a_host_limit_hold_in_the_stage() {
    let w = Workspace::new("[schedule]\nbudget = 3\nperiod = 'day'\nhost_limit = 1");
    for day in 1..=4 {
        let id = format!("2024-01-0{day}");
        w.snapshot(&id, &[("a", &format!("<p>version {day}")), ("b", "<p>always the same")]);
    }
    let shown = w.ratoon(&["schedule", "p.toml"]).expect(0).stdout;
    assert!(shown.contains("host limit: "), "{shown}");
    let rows = w.rows::<ScheduleRow>("2024-01-04");
    let mut times: Vec<i64> = rows.iter().flat_map(|row| row.poll_times.clone()).collect();
    assert!(times.len() <= 3 && times.len() >= 2, "{rows:?}");
    times.sort_unstable();
    times.dedup();
    assert_eq!(times.len(), rows.iter().map(|row| row.poll_times.len()).sum::<usize>(), "one host, one poll a slot");
}

#[test]
fn a_kept_schedule_is_what_would_be_learned_anew() {
    let w = Workspace::new("[schedule]\nperiod = 'day'");
    for day in 1..=9 {
        let (a, b) = (format!("<p>version {day}"), format!("<p>version {}", day.min(6)));
        w.snapshot(&format!("2024-01-0{day}"), &[("a", &a), ("b", &b), ("c", "<p>the same")]);
    }
    w.run();
    let learned = |w: &Workspace| {
        let text = fs::read_to_string(w.path("store/_meta/snapshots/2024-01-09.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["stages"]["schedule"]["summary"]["learned"].clone()
    };
    assert_eq!(learned(&w), 1, "only a changed in the last night");
    let before = w.table_bytes();
    // With other settings in the night before, nothing can be kept.
    let path = w.path("store/_meta/snapshots/2024-01-08.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    manifest["stages"]["schedule"]["settings"] = "0123456789abcdef0123456789abcdef".into();
    w.write_manifest("2024-01-08", manifest);
    w.ratoon(&["schedule", "p.toml", "--force", "--snapshot", "2024-01-09"]).expect(0);
    assert_eq!(learned(&w), 3);
    assert!(w.table_bytes() == before);
}

/// A source with a long history is learned from again once there is news enough; what that gives follows from the history
/// alone, night by night, in one go, and done again.
#[test]
fn a_long_history_waits_for_news_and_is_the_same_however_it_came() {
    let night = |n: u32| format!("2024-{:02}-{:02}", 1 + n / 28, 1 + n % 28);
    let write = |w: &Workspace, n: u32| {
        let text = format!("<p>night {n}");
        w.snapshot(&night(n), &["a", "b", "c", "d", "e"].map(|name| (name, text.as_str())));
    };
    let by_host = "[schedule]\nby = 'host'";
    let (once, nightly) = (Workspace::new(by_host), Workspace::new(by_host));
    for n in 0..57 {
        write(&once, n);
    }
    once.run();
    for n in 0..50 {
        write(&nightly, n);
    }
    for n in 50..57 {
        nightly.run();
        write(&nightly, n);
    }
    nightly.run();
    assert_eq!(once.table_bytes(), nightly.table_bytes());
    let updates = |n: u32| once.rows::<ScheduleRow>(&night(n)).into_iter().map(|row| row.updates).collect::<Vec<i64>>();
    // Each night after the first shows five updates.
    for (n, learned) in [(1, 5), (30, 150), (51, 255), (52, 256), (55, 272)] {
        assert_eq!(updates(n), [learned], "night {n}");
    }
    for (n, learned) in [(53, 256), (54, 256), (56, 272)] {
        let told = updates(n);
        assert!(told.is_empty() || told == [learned], "night {n} waits for news: {told:?}");
    }
    let before = once.table_bytes();
    once.ratoon(&["schedule", "p.toml", "--force", "--snapshot", &night(53)]).expect(0);
    once.run();
    assert_eq!(once.table_bytes(), before, "done again it is the same");
}
