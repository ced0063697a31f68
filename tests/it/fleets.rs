//! Budgets over many sources: what sources count, other ways to share, and all methods beside each other.

use std::fmt::Write as _;
use std::fs;

use ratoon::inside::tables::schedule::ScheduleRow;
use ratoon::inside::tables::stats::UpdateRow;
use serde_json::Value;

use crate::workspace::{Workspace, html};

fn json(w: &Workspace, args: &[&str]) -> Value {
    let ended = w.ratoon(args).expect(0);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

/// Polls by source.
fn polls(found: &Value) -> Vec<(String, usize)> {
    let schedules = found["schedules"].as_array().unwrap().iter();
    schedules.map(|s| (s["source"].as_str().unwrap().to_owned(), s["poll_times"].as_array().unwrap().len())).collect()
}

/// Sources with the same updates.
fn alike(w: &Workspace, names: &[&str]) {
    let mut text = String::from("source,updated_at\n");
    let start: jiff::Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
    for i in 0..300i64 {
        for name in names {
            writeln!(text, "{name},{}", start + jiff::SignedDuration::from_mins(i * 443 + i * i % 391)).unwrap();
        }
    }
    fs::write(w.path("log.csv"), text).unwrap();
}

#[test]
fn weights_turn_a_budget() {
    let w = Workspace::new("");
    alike(&w, &["http://a.test/1", "http://b.test/1", "http://b.test/2", "http://c.test/"]);
    fs::write(w.path("weights.csv"), "url,weight\nhttp://b.test/2,1\nhttp://b.test/*,6\nhttp://c.test/,0\n").unwrap();
    for method in ["optimal", "poisson", "freshness-optimal"] {
        let args = ["schedule", "--updates", "log.csv", "--period", "day", "--budget", "24", "--floor", "0", "--json"];
        let even = polls(&json(&w, &[&args[..], &["--method", method]].concat()));
        assert!(even.iter().all(|(_, polls)| (5..=7).contains(polls)), "{method}: {even:?}");
        let found = polls(&json(&w, &[&args[..], &["--method", method, "--weights", "weights.csv"]].concat()));
        let of = |name: &str| found.iter().find(|(source, _)| source == name).unwrap().1;
        assert!(of("http://b.test/1") > of("http://a.test/1") + 1, "{method}: {found:?}");
        // A name counts before a glob; one poll goes to the first of equals.
        assert!(of("http://b.test/2").abs_diff(of("http://a.test/1")) <= 1, "{method}: {found:?}");
        assert_eq!(of("http://c.test/"), 0, "{method}");
        assert_eq!(found.iter().map(|(_, polls)| polls).sum::<usize>(), 24, "{method}");
    }
    fs::write(w.path("weights.csv"), "a,1\nb,x\n").unwrap();
    let args = ["schedule", "--updates", "log.csv", "--budget", "24", "--weights", "weights.csv"];
    assert!(w.ratoon(&args).expect(2).stderr.contains("weights.csv: line 2: 'x' is no number"));
}

#[test]
fn weights_without_a_budget_are_refused_where_they_stand() {
    let w = Workspace::new("");
    fs::write(w.path("weights.csv"), "a,1\n").unwrap();
    for (lines, says) in [
        ("weights = 'weights.csv'", "`weights` says what sources count in a budget, and there is none"),
        ("weight = 'in_links'", "`weight` says what sources count in a budget"),
        ("budget = 3\nweights = 'none.csv'", "`weights`: none.csv: "),
        ("budget = 3\nweight = 'links'", "unknown value `links`"),
        ("budget = 3\nweights = 'weights.csv'\nweight = 'mentions'", "exclude each other"),
        ("objective = 'speed'", "'speed' is none of recall, freshness, delay, staleness"),
    ] {
        w.pipeline(&format!("[schedule]\n{lines}"));
        let said = w.ratoon(&["status", "p.toml"]).expect(2).stderr;
        assert!(said.contains(says) && said.contains("p.toml:"), "{lines}\n{said}");
    }
    w.pipeline("[schedule]\nobjective = 'staleness'\nmethod = 'freshness-optimal'");
    w.snapshot("2024-01-01", &[("a", "<p>one")]);
    w.run().expect(0);
    assert_eq!(w.rows::<ScheduleRow>("2024-01-01")[0].objective, "recall=0,freshness=0,delay=0,staleness=1");
}

/// Two pages that change every night: one brings names, the other is linked to.
/// A letter for a digit.
fn letter(digit: u32) -> char {
    char::from_digit(digit + 10, 36).unwrap()
}

fn nights(w: &Workspace) {
    for day in 1..=8 {
        let names = format!("Anna Berg{day} met Carl Dorn{day} and Eva Falk{day}");
        let names: String = names.chars().map(|c| c.to_digit(10).map_or(c, letter)).collect();
        let noted = html("named", &names, "http://site.test/linked");
        let linked = html("linked", &format!("the count is {day}"), "http://elsewhere.test/");
        let other = html("other", "always the same", "http://site.test/linked");
        let pages = [("linked", linked.as_str()), ("named", &noted), ("x", &other), ("y", &other), ("z", &other)];
        w.snapshot(&format!("2024-01-0{day}"), &pages);
    }
}

#[test]
fn the_store_tells_what_sources_count() {
    let polls = |schedule: &str| {
        let extractor = "[[extractor]]\nname = 'name'\nkind = 'regex'\npattern = '[A-Z][a-z]+ [A-Z][a-z]+'";
        let w = Workspace::new(&format!("[schedule]\nbudget = 24\nperiod = 'day'\nfloor = 1\n{schedule}\n{extractor}"));
        nights(&w);
        w.run().expect(0);
        let shown =
            w.ratoon(&["sql", "p.toml", "--format", "csv", "select source, polls from schedules order by source"]);
        let shown = shown.expect(0).stdout;
        let of = |name: &str| -> i64 {
            let line =
                shown.lines().find(|line| line.starts_with(&format!("http://site.test/{name},"))).expect("a line");
            line.rsplit(',').next().unwrap().parse().unwrap()
        };
        (of("linked"), of("named"))
    };
    let (linked, named) = polls("");
    assert!(linked.abs_diff(named) <= 1, "the same histories: {linked} {named}");
    for method in ["optimal", "freshness-optimal"] {
        let (linked, named) = polls(&format!("weight = 'mentions'\nmethod = '{method}'"));
        assert!(named > linked + 1, "{method}: {named} {linked}");
        let (linked, named) = polls(&format!("weight = 'in_links'\nmethod = '{method}'"));
        assert!(linked > named + 1, "{method}: {linked} {named}");
    }
}

#[test]
fn all_methods_are_compared_on_one_log() {
    let w = Workspace::new("");
    // Without a log, on generated ones.
    let shown = w.ratoon(&["simulate", "--compare"]).expect(0).stdout;
    for words in ["uniform, mean over phases", "theoretical", "poisson", "adaptive", "freshness-optimal", "free"] {
        assert!(shown.contains(words), "{words} is not in\n{shown}");
    }
    w.ratoon(&["synth", "--log", "poisson", "log.csv", "--sources", "7"]).expect(0);
    let found = json(&w, &["simulate", "--compare", "--updates", "log.csv", "--budget", "21", "--json"]);
    let ways = found["ways"].as_array().unwrap();
    let way = |name: &str, sharing: &str| {
        let is_it = |way: &&Value| way["way"] == name && way["sharing"] == sharing;
        ways.iter().find(is_it).unwrap_or_else(|| panic!("{name} is not in {found}"))
    };
    let freshness = |name: &str, sharing: &str| way(name, sharing)["freshness"].as_f64().unwrap();
    // Where sources change by chance, its allocation is the best there is; held-out time is no more than a sample.
    let best = freshness("freshness-optimal", "shared");
    for (name, sharing) in [("uniform", "each"), ("optimal", "each"), ("adaptive", "shared")] {
        assert!(best > freshness(name, sharing) - 0.01, "{name}: {found}");
    }
    for way in ways.iter().filter(|way| way["sharing"] != "free") {
        assert!(way["polls"].as_f64().unwrap() <= 21.0 + 1e-9, "{way}");
        assert_eq!(way["judged"], 7);
    }
}

#[test]
fn logs_have_the_rhythm_that_is_asked_for() {
    let w = Workspace::new("");
    for (kind, polls, period) in [("datis", "2", "hour"), ("hollywood", "1", "week")] {
        let file = format!("{kind}.csv");
        w.ratoon(&["synth", "--log", kind, &file]).expect(0);
        let args = ["schedule", "--updates", &file, "--period", period, "--polls", polls, "--min-gap", "0s", "--json"];
        let found = json(&w, &args);
        let source = &found["schedules"][0];
        let recall = source["held_out"]["expected"]["recall"].as_f64().unwrap();
        assert!(recall > 0.85, "{kind}: {source}");
    }
    w.ratoon(&["synth", "--log", "cnn", "cnn.csv", "--days", "30"]).expect(0);
    assert!(fs::read_to_string(w.path("cnn.csv")).unwrap().starts_with("source,updated_at,signal\ncnn-1,2024-01-01T"));
    assert!(w.ratoon(&["synth", "--log", "cnn", "cnn.csv"]).expect(2).stderr.contains("--force"));
    w.ratoon(&["synth", "--log", "sun", "x.csv"]).expect(2);
}

/// A page of which four versions last half an hour each, while a story is breaking, and the next four three hours. Each of
/// `versions` is a snapshot that saw it when it was new and again just before it went. A page about the house, with the first
/// one on its host, has another version with every third one of that.
fn newsroom(w: &Workspace, versions: std::ops::Range<usize>) {
    let start: jiff::Timestamp = "2024-01-01T00:10:00Z".parse().unwrap();
    for version in versions {
        let lasts = |version: usize| if version % 8 < 4 { 30 } else { 180 };
        let time = |version: usize| start + jiff::SignedDuration::from_mins((0..version).map(lasts).sum());
        let again = time(version + 1) - jiff::SignedDuration::from_mins(1);
        // Only what is new on the page shows the signal.
        let headline =
            if version % 8 < 4 { format!("BREAKING-{version}: the bridge,") } else { "The weather".to_owned() };
        let dir = w.snapshot_dir(&format!("{version:04}"));
        fs::write(dir.join("0.html"), format!("<p>All the news</p><p>{headline} number {version} of the day</p>"))
            .unwrap();
        fs::write(dir.join("1.html"), format!("<p>We are the news</p><p>since {} years</p>", version / 3)).unwrap();
        let line = |path: &str, file: &str, time: jiff::Timestamp| {
            serde_json::json!({
                "url": format!("http://news.test/{path}"), "file": file, "status": 200,
                "fetched_at": time.to_string(), "content_type": "text/html; charset=utf-8",
            })
        };
        let both = |time: jiff::Timestamp| {
            let later = time + jiff::SignedDuration::from_secs(20);
            format!("{}\n{}\n", line("", "0.html", time), line("about", "1.html", later))
        };
        fs::write(dir.join("manifest.jsonl"), both(time(version)) + &both(again)).unwrap();
    }
}

/// The newest row of a source.
fn schedule_of(w: &Workspace, source: &str, snapshot: &str) -> ScheduleRow {
    w.rows::<ScheduleRow>(snapshot).into_iter().find(|row| row.source == source).expect("it has a row")
}

/// Whether the front page's update shows the signal.
fn front_page_shows(w: &Workspace, snapshot: &str) -> Option<bool> {
    w.rows::<UpdateRow>(snapshot).into_iter().find(|row| row.url == "http://news.test/").expect("it changed").signal
}

/// A newsroom whose pages are polled `by` their URLs or their host has two timetables, which reach `schedules` and `due`.
fn two_timetables(by: &str, source: &str, polled: &[&str]) -> Workspace {
    let schedule = format!(
        "coverage = 'partial'\n[schedule]\nby = '{by}'\nperiod = 'day'\npolls = 24\nsignal = {{ new_text = 'BREAKING' }}"
    );
    let (w, rebuilt) = (Workspace::new(&schedule), Workspace::new(&schedule));
    for w in [&w, &rebuilt] {
        newsroom(w, 0..68);
        w.run().expect(0);
    }
    // The last version is breaking.
    let breaking = schedule_of(&w, source, "0067");
    let other = breaking.other_poll_times.clone().expect("two timetables");
    assert_eq!(breaking.signal, Some(true), "{breaking:?}");
    assert!(breaking.signal_multiplier.unwrap() > 3.0, "{breaking:?}");
    assert!(breaking.poll_times.len() > other.len(), "{breaking:?}");
    assert_eq!(front_page_shows(&w, "0067"), Some(true));
    // What is due follows the timetable in force: the first poll after the capture.
    let due = w.ratoon(&["due", "p.toml", "--at", "2024-02-01T00:00:00Z", "--format", "jsonl"]).expect(0).stdout;
    let due: Vec<Value> = due.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for url in polled {
        let due = due.iter().find(|due| due["url"] == *url).expect("it is due");
        let at: jiff::Timestamp = due["due_at"].as_str().unwrap().parse().unwrap();
        assert!(breaking.poll_times.contains(&(at.as_second() % 86_400)), "{due} {breaking:?}");
    }
    // A quiet version, seen by a store whose index is made again: the other timetable, and the same bytes.
    fs::remove_dir_all(rebuilt.path("store/_meta/index")).unwrap();
    for w in [&w, &rebuilt] {
        newsroom(w, 68..69);
        w.run().expect(0);
    }
    let quiet = schedule_of(&w, source, "0068");
    assert_eq!((quiet.signal, front_page_shows(&w, "0068")), (Some(false), Some(false)));
    assert!(quiet.poll_times.len() < quiet.other_poll_times.as_ref().unwrap().len(), "{quiet:?}");
    let tables = |w: &Workspace| {
        let measured = |path: &std::path::Path| path.components().any(|part| part.as_os_str() == "plan_costs");
        w.table_bytes().into_iter().filter(|(path, _)| !measured(path)).collect::<Vec<_>>()
    };
    assert!(tables(&w) == tables(&rebuilt));
    w
}

#[test]
fn breaking_news_has_a_timetable_of_its_own() {
    let w = two_timetables("url", "http://news.test/", &["http://news.test/"]);
    // Nothing is asked: nothing is told.
    w.pipeline("coverage = 'partial'\n[schedule]\nperiod = 'day'\npolls = 8");
    w.run().expect(0);
    assert_eq!(schedule_of(&w, "http://news.test/", "0068").signal, None);
    for (signal, says) in [
        ("{ }", "nothing to look for"),
        ("{ mention = 'event' }", "there is no extractor 'event'"),
        ("{ new_text = '(' }", "`new_text`: "),
        ("{ share = 1.5 }", "`share` is not a share"),
    ] {
        w.pipeline(&format!("[schedule]\nsignal = {signal}"));
        assert!(w.ratoon(&["status", "p.toml"]).expect(2).stderr.contains(says), "{signal}");
    }
}

#[test]
fn breaking_news_of_a_host_has_a_timetable_of_its_own() {
    let w = two_timetables("host", "news.test", &["http://news.test/", "http://news.test/about"]);
    let notes = schedule_of(&w, "news.test", "0068").notes.unwrap();
    assert!(notes.contains("while the signal shows on "), "{notes}");
}
