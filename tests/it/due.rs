//! What is due, and what has left the schedule.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use ratoon::inside::model::Method;
use ratoon::inside::tables::schedule::ScheduleRow;
use ratoon::inside::tables::stats::UpdateStatsRow;
use serde_json::Value;

use crate::workspace::Workspace;

/// A capture: path, status, HTML.
type Poll<'a> = (&'a str, u16, &'a str);

/// A snapshot in manifest layout of captures at noon.
fn night(w: &Workspace, day: &str, polls: &[Poll<'_>]) {
    let dir = w.snapshot_dir(day);
    let mut manifest = String::new();
    for (i, (path, status, html)) in polls.iter().enumerate() {
        let mut line = serde_json::json!({
            "url": format!("http://site.test/{path}"), "status": status, "fetched_at": format!("{day}T00:00:00Z"),
        });
        if *status == 200 {
            fs::write(dir.join(format!("{i}.html")), html).unwrap();
            line["file"] = format!("{i}.html").into();
            line["etag"] = format!("\"{path}-{day}\"").into();
            line["last_modified"] = "Fri, 01 Mar 2024 00:00:00 GMT".into();
        }
        writeln!(manifest, "{line}").unwrap();
    }
    fs::write(dir.join("manifest.jsonl"), manifest).unwrap();
}

/// The newest row of each source.
fn schedules(w: &Workspace, days: &[&str]) -> BTreeMap<String, ScheduleRow> {
    let rows = days.iter().flat_map(|day| w.rows::<ScheduleRow>(day));
    rows.map(|row| (row.source.replace("http://site.test/", ""), row)).collect()
}

fn gone(w: &Workspace, days: &[&str]) -> Vec<String> {
    schedules(w, days).into_iter().filter(|(_, row)| row.method == Method::Gone).map(|(source, _)| source).collect()
}

fn due(w: &Workspace, args: &[&str]) -> Vec<Value> {
    let args = [&["due", "p.toml", "--format", "jsonl"], args].concat();
    let ended = w.ratoon(&args).expect(0);
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn paths(due: &[Value]) -> Vec<String> {
    let mut paths: Vec<String> =
        due.iter().map(|url| url["url"].as_str().unwrap().replace("http://site.test/", "")).collect();
    paths.sort();
    paths
}

const LONG: &str = "a text that is long enough to be told from all others, wherever it stands on the site";

#[test]
fn what_is_gone_leaves_the_schedule_and_returns_to_it() {
    for coverage in ["partial", "full"] {
        let w = Workspace::new(&format!("coverage = '{coverage}'"));
        let days = ["2024-03-01", "2024-03-02", "2024-03-03"];
        night(&w, days[0], &[("a", 200, "<p>a"), ("b", 200, "<p>b"), ("c", 200, "<p>c"), ("d", 200, "<p>d")]);
        night(&w, days[1], &[("a", 404, ""), ("b", 410, ""), ("c", 503, ""), ("d", 200, "<p>d")]);
        w.run();
        assert_eq!(gone(&w, &days[..2]), ["a", "b"], "an outage is no end ({coverage})");
        let rows = schedules(&w, &days[..2]);
        assert_eq!((rows["a"].polls, rows["a"].recall), (0, None));
        assert_eq!(rows["a"].gone_since.unwrap().to_string(), "2024-03-02T00:00:00Z");
        let crontab = w.path("cron");
        w.ratoon(&["schedule", "p.toml", "--crontab", crontab.to_str().unwrap()]).expect(0);
        let crontab = fs::read_to_string(crontab).unwrap();
        assert!(crontab.contains("/d") && !crontab.contains("/a'"), "{crontab}");
        night(&w, days[2], &[("a", 200, "<p>a again"), ("b", 404, ""), ("c", 200, "<p>c"), ("d", 200, "<p>d")]);
        w.run();
        assert_eq!(gone(&w, &days), ["b"], "{coverage}");
        assert!(schedules(&w, &days)["a"].polls > 0);
    }
}

#[test]
fn a_page_that_is_absent_from_a_full_crawl_is_gone() {
    let w = Workspace::new("");
    night(&w, "2024-03-01", &[("a", 200, "<p>a"), ("b", 200, "<p>b"), ("c", 200, "<p>c")]);
    night(&w, "2024-03-02", &[("a", 200, "<p>a"), ("b", 200, "<p>b")]);
    w.run();
    assert_eq!(gone(&w, &["2024-03-01", "2024-03-02"]), ["c"]);
}

#[test]
fn a_moved_page_takes_its_history_along() {
    for coverage in ["partial", "full"] {
        let w = Workspace::new(&format!("coverage = '{coverage}'"));
        let page = |n: u32| format!("<p>{LONG} {n}");
        let days = ["2024-03-01", "2024-03-02", "2024-03-03", "2024-03-04"];
        for (n, day) in (0..).zip(&days[..3]) {
            night(&w, day, &[("old", 200, &page(n)), ("x", 200, "<p>x")]);
        }
        night(&w, days[3], &[("old", 404, ""), ("new", 200, &page(2)), ("x", 200, "<p>x")]);
        w.run();
        let stats = w.rows::<UpdateStatsRow>(days[3]).into_iter();
        let stats: BTreeMap<String, UpdateStatsRow> = stats.map(|row| (row.source.clone(), row)).collect();
        let (old, new) = (&stats["http://site.test/old"], &stats["http://site.test/new"]);
        assert_eq!((new.captures, new.updates, new.first_seen), (4, 2, old.first_seen), "{coverage}");
        assert!(old.gone_since.is_some() && new.gone_since.is_none());
        assert_eq!(gone(&w, &days), ["old"], "{coverage}");
    }
}

/// The newest row of each source.
fn stats(w: &Workspace, days: &[&str]) -> BTreeMap<String, UpdateStatsRow> {
    let rows = days.iter().flat_map(|day| w.rows::<UpdateStatsRow>(day));
    rows.map(|row| (row.source.replace("http://site.test/", ""), row)).collect()
}

/// Where the old place goes only after the new one came, all is as if it had gone at once: in numbers, in schedules, night by
/// night and in one go.
#[test]
fn a_move_that_is_told_later_takes_the_history_along() {
    let days: Vec<String> = (1..=9).map(|day| format!("2024-03-0{day}")).collect();
    let days: Vec<&str> = days.iter().map(String::as_str).collect();
    let page = |n: usize| format!("<p>{LONG} {n}");
    for coverage in ["partial", "full"] {
        // The old place answers as before until this day.
        let play = |gone_on: usize, nightly: bool| {
            let w = Workspace::new(&format!("coverage = '{coverage}'"));
            for (n, day) in days.iter().enumerate() {
                let (old, new) = (page(n.min(4)), page(if n > 5 { 5 } else { 4 }));
                let mut polls = vec![("x", 200, "<p>x")];
                match n {
                    _ if n < gone_on => polls.push(("old", 200, &old)),
                    // Where not all is asked for, the server says it; a full crawl just no longer finds it.
                    _ if n == gone_on && coverage == "partial" => polls.push(("old", 404, "")),
                    _ => {}
                }
                if n > 4 {
                    polls.push(("new", 200, &new));
                }
                night(&w, day, &polls);
                if nightly {
                    w.run();
                }
            }
            w.run();
            w
        };
        let at_once = play(5, false);
        let later = play(7, false);
        let expected = &stats(&at_once, &days)["new"];
        assert_eq!((expected.captures, expected.updates), (9, 5), "{coverage}");
        assert_eq!(stats(&later, &days)["new"], *expected, "{coverage}");
        assert_eq!(stats(&later, &days[..6])["new"].updates, 0, "{coverage}: nothing is told as long as both stand");
        assert_eq!(schedules(&later, &days)["new"], schedules(&at_once, &days)["new"], "{coverage}");
        assert_eq!(gone(&later, &days), ["old"], "{coverage}");
        assert_eq!(play(7, true).table_bytes(), later.table_bytes(), "{coverage}: nightly is catch-up");
        // What is known of a page that may have moved lies in bases too.
        later.ratoon(&["prune", "p.toml", "--before", days[6]]).expect(0);
        let _ = fs::remove_dir_all(later.path("store/_meta/index"));
        later.ratoon(&["stats", "p.toml", "--force", "--snapshot", days[7]]).expect(0);
        later.run();
        assert_eq!(stats(&later, &days[6..])["new"], *expected, "{coverage}");
    }
}

#[test]
fn a_copy_of_a_page_that_goes_on_has_a_history_of_its_own() {
    let w = Workspace::new("coverage = 'partial'");
    let page = |n: u32| format!("<p>{LONG} {n}");
    let days = ["2024-03-01", "2024-03-02", "2024-03-03", "2024-03-04", "2024-03-05"];
    night(&w, days[0], &[("old", 200, &page(0))]);
    night(&w, days[1], &[("old", 200, &page(1))]);
    night(&w, days[2], &[("old", 200, &page(1)), ("copy", 200, &page(1))]);
    night(&w, days[3], &[("old", 200, &page(2)), ("copy", 200, &page(1))]);
    night(&w, days[4], &[("old", 404, ""), ("copy", 200, &page(1))]);
    w.run();
    let found = &stats(&w, &days)["copy"];
    assert_eq!((found.captures, found.updates), (3, 0), "the old page had become another one");
}

#[test]
fn a_redirect_to_where_the_page_stands_now_is_a_move() {
    let w = Workspace::new("coverage = 'partial'");
    night(&w, "2024-03-01", &[("old", 200, &format!("<p>{LONG}")), ("x", 200, "<p>x")]);
    night(&w, "2024-03-02", &[("old", 301, ""), ("x", 301, "")]);
    w.run();
    assert!(gone(&w, &["2024-03-01", "2024-03-02"]).is_empty(), "a redirect alone may be a passing one");
    night(&w, "2024-03-03", &[("new", 200, &format!("<p>{LONG}"))]);
    w.run();
    let days = ["2024-03-01", "2024-03-02", "2024-03-03", "2024-03-04"];
    assert_eq!(gone(&w, &days[..3]), ["old"]);
    night(&w, days[3], &[("new", 200, &format!("<p>{LONG}"))]);
    w.run();
    let found = stats(&w, &days);
    assert_eq!((found["new"].captures, found["new"].first_seen), (3, found["old"].first_seen));
}

#[test]
fn polls_after_one_moment_and_up_to_another_are_due() {
    let w = Workspace::new("coverage = 'partial'\n[schedule]\npolls = 4\nperiod = 'day'");
    night(&w, "2024-03-01", &[("a", 200, "<p>a"), ("b", 200, "<p>b"), ("dead", 200, "<p>dead")]);
    night(&w, "2024-03-02", &[("a", 200, "<p>other a"), ("b", 304, ""), ("dead", 404, "")]);
    w.run();
    let rows = schedules(&w, &["2024-03-01", "2024-03-02"]);
    let all = due(&w, &["--at", "2024-03-03T00:00:00Z"]);
    assert_eq!(paths(&all), ["a", "b"], "everything that lives has a poll within a day");
    let of = |due: &[Value], path: &str| {
        due.iter().find(|url| url["url"] == format!("http://site.test/{path}")).unwrap().clone()
    };
    let a = of(&all, "a");
    assert_eq!(a["etag"], "\"a-2024-03-02\"");
    assert_eq!((a["last_modified"].as_str(), a["host"].as_str()), (Some("2024-03-01T00:00:00Z"), Some("site.test")));
    assert_eq!(of(&all, "b")["etag"], "\"b-2024-03-01\"", "a 304 confirms what was stated before");
    assert_eq!(all[0]["url"], "http://site.test/a", "what changed before is likely to change again");
    // Exactly at a poll it is due, and afterwards no more.
    let second = rows["a"].poll_times[1];
    let time = |s: i64| format!("2024-03-02T{:02}:{:02}:{:02}Z", s / 3600, s / 60 % 60, s % 60);
    let at = |since: i64, at: i64| paths(&due(&w, &["--since", &time(since), "--at", &time(at)]));
    assert!(at(second - 1, second).contains(&"a".to_owned()));
    assert!(!at(second, second + 1).contains(&"a".to_owned()));
    assert_eq!(of(&due(&w, &["--since", &time(second - 1), "--at", &time(second)]), "a")["due_at"], time(second));
    assert_eq!(due(&w, &["--at", "2024-03-03T00:00:00Z", "--limit", "1"]).len(), 1);
    assert!(due(&w, &["--since", "2024-03-05", "--at", "2024-03-04"]).is_empty());
    // What is gone is looked at again after a month.
    let recheck = due(&w, &["--since", "2024-03-31T23:59:59Z", "--at", "2024-04-01T00:00:00Z"]);
    assert!(paths(&recheck).contains(&"dead".to_owned()), "{recheck:?}");
    let urls = w.ratoon(&["due", "p.toml", "--at", "2024-03-03T00:00:00Z"]).expect(0).stdout;
    assert_eq!(urls.lines().next(), Some("http://site.test/a"));
    w.ratoon(&["due", "p.toml", "--at", "tomorrow"]).expect(2).says("--at");
}

#[test]
fn links_that_were_never_followed_are_due_when_asked_for() {
    let w = Workspace::new("coverage = 'partial'\n[schedule]\ndiscover = { scope = 'host', polls = 2 }");
    let page = "<p>a <a href='/n1'>1</a><a href='/n2#x'>2</a><a href='/a'>self</a><a href='http://else.test/'>far</a>";
    night(&w, "2024-03-01", &[("a", 200, page), ("b", 200, "<p>b <a href='/n2'>2</a> <a href='/n3'>3</a>")]);
    w.run();
    let new = |args: &[&str]| {
        let due = due(&w, args);
        paths(&due.into_iter().filter(|url| url["new"] == true).collect::<Vec<_>>())
    };
    let at = ["--at", "2024-03-01T00:00:01Z"];
    assert_eq!(new(&at), ["n1", "n2"], "the most linked first, two at a time");
    // One is fetched, one fails and is tried again after a month.
    night(&w, "2024-03-02", &[("n2", 200, "<p>n2 <a href='/n4'>4</a>"), ("n1", 503, "")]);
    w.run();
    assert_eq!(new(&["--at", "2024-03-02T00:00:01Z"]), ["n3", "n4"]);
    assert!(new(&["--at", "2024-04-02T00:00:00Z"]).contains(&"n1".to_owned()));
    // What is noted of links can always be made again.
    let before = new(&["--at", "2024-03-02T00:00:01Z"]);
    fs::write(w.path("store/_meta/frontier.json"), "{").unwrap();
    assert_eq!(new(&["--at", "2024-03-02T00:00:01Z"]), before);
}

#[test]
fn sources_of_several_pages_are_due_with_all_of_them() {
    let w = Workspace::new("coverage = 'partial'\n[schedule]\nby = 'host'\npolls = 4\nperiod = 'day'");
    night(&w, "2024-03-01", &[("a", 200, "<p>a"), ("b", 200, "<p>b"), ("dead", 200, "<p>dead")]);
    night(&w, "2024-03-02", &[("dead", 404, "")]);
    w.run();
    let all = due(&w, &["--at", "2024-03-03T00:00:00Z"]);
    assert_eq!(paths(&all), ["a", "b"]);
    assert_eq!(all[0]["etag"].as_str().map(|etag| etag.contains("2024-03-01")), Some(true));
}

#[test]
fn groups_that_are_gone_are_looked_at_again() {
    for coverage in ["partial", "full"] {
        let lines = format!("coverage = '{coverage}'\n[schedule]\nby = '^http://site[.]test/([a-z]+)/'");
        let w = Workspace::new(&lines);
        night(
            &w,
            "2024-03-01",
            &[("x/1", 200, "<p>1"), ("x/2", 200, "<p>2"), ("y/3", 200, "<p>3"), ("y/4", 200, "<p>4")],
        );
        night(&w, "2024-03-02", &[("x/1", 404, ""), ("x/2", 410, ""), ("y/3", 404, ""), ("y/4", 200, "<p>4")]);
        w.run();
        assert_eq!(gone(&w, &["2024-03-01", "2024-03-02"]).len(), 1, "one page of the other group lives ({coverage})");
        assert_eq!(paths(&due(&w, &["--at", "2024-03-03T12:00:00Z"])), ["y/4"], "{coverage}");
        let recheck = due(&w, &["--since", "2024-03-31T23:59:59Z", "--at", "2024-04-01T00:00:00Z"]);
        let gone: Vec<String> = paths(&recheck).into_iter().filter(|path| path.starts_with('x')).collect();
        assert_eq!(gone, ["x/1", "x/2"], "{coverage}: {recheck:?}");
        assert!(!paths(&recheck).contains(&"y/3".to_owned()), "a page that its group has left behind is not asked for");
        assert!(
            recheck.iter().filter(|url| url["url"].as_str().unwrap().contains("/x/")).all(|url| url["gain"] == 0.0)
        );
    }
}

#[test]
fn gone_cannot_be_asked_for() {
    let w = Workspace::new("[schedule]\nmethod = 'gone'");
    w.snapshot("2024-03-01", &[("a", "<p>a")]);
    w.ratoon(&["run", "p.toml"]).expect(2).says("gone");
    for lines in ["recheck = '0s'", "recheck = 'soon'", "discover = { scope = 'moon' }"] {
        w.pipeline(&format!("[schedule]\n{lines}"));
        w.ratoon(&["run", "p.toml"]).expect(2);
    }
}
