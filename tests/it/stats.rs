//! `stats`: when pages changed, as far as captures tell.

use std::fmt::Write as _;
use std::fs;

use ratoon::inside::model::{Timestamp, UpdatedAtSource};
use ratoon::inside::tables::stats::{UpdateRow, UpdateStatsRow};

use crate::workspace::Workspace;

/// One line of a manifest: path, time of the capture, status, text, Last-Modified.
type Line<'a> = (&'a str, &'a str, u16, &'a str, Option<&'a str>);

fn night(w: &Workspace, id: &str, lines: &[Line<'_>]) {
    let dir = w.snapshot_dir(id);
    let mut manifest = String::new();
    for (i, (path, time, status, text, modified)) in lines.iter().enumerate() {
        fs::write(dir.join(format!("{i}.html")), format!("<p>{text}</p>")).unwrap();
        let mut line = serde_json::json!({
            "url": format!("http://site.test/{path}"), "file": format!("{i}.html"), "status": status,
            "content_type": "text/html", "fetched_at": format!("{time}:00Z"),
        });
        if let Some(modified) = modified {
            line["last_modified"] = format!("{modified}:00Z").into();
        }
        writeln!(manifest, "{line}").unwrap();
    }
    fs::write(dir.join("manifest.jsonl"), manifest).unwrap();
}

fn at(time: &str) -> Timestamp {
    Timestamp::parse_rfc3339(&format!("{time}:00Z")).unwrap()
}

/// Path, after, before, updated_at of the updates of a snapshot.
fn updates(w: &Workspace, snapshot: &str) -> Vec<(String, Timestamp, Timestamp, Option<Timestamp>)> {
    let mut rows: Vec<_> = (w.rows::<UpdateRow>(snapshot).into_iter())
        .map(|row| (row.url.rsplit('/').next().unwrap().to_owned(), row.after, row.before, row.updated_at))
        .collect();
    rows.sort();
    rows
}

#[test]
fn intervals_end_where_captures_saw_them() {
    let w = Workspace::new("");
    night(
        &w,
        "2024-01-01",
        &[
            ("a", "2024-01-01T03:00", 200, "one", None),
            ("b", "2024-01-01T03:01", 200, "same", None),
            ("m", "2024-01-01T03:02", 200, "one", Some("2023-12-30T00:00")),
        ],
    );
    // a: unchanged at noon by a 304, an error says nothing, then two versions in one snapshot.
    night(
        &w,
        "2024-01-02",
        &[
            ("a", "2024-01-01T12:00", 304, "", None),
            ("a", "2024-01-01T18:00", 503, "down", None),
            ("a", "2024-01-02T03:00", 200, "two", None),
            ("a", "2024-01-02T09:00", 200, "three", None),
            ("b", "2024-01-02T03:01", 200, "same", None),
            ("m", "2024-01-02T03:02", 200, "two", Some("2024-01-01T17:30")),
        ],
    );
    // b is missing one night; m states a date that cannot be right.
    night(&w, "2024-01-03", &[("m", "2024-01-03T03:02", 200, "three", Some("2024-01-01T17:30"))]);
    night(&w, "2024-01-04", &[("b", "2024-01-04T03:01", 200, "other", None)]);
    w.ratoon(&["stats", "p.toml"]).expect(0);
    assert_eq!(updates(&w, "2024-01-01"), []);
    assert_eq!(
        updates(&w, "2024-01-02"),
        [
            ("a".to_owned(), at("2024-01-01T12:00"), at("2024-01-02T03:00"), None),
            ("a".to_owned(), at("2024-01-02T03:00"), at("2024-01-02T09:00"), None),
            ("m".to_owned(), at("2024-01-01T03:02"), at("2024-01-02T03:02"), Some(at("2024-01-01T17:30"))),
        ]
    );
    assert_eq!(
        updates(&w, "2024-01-03"),
        [("m".to_owned(), at("2024-01-02T03:02"), at("2024-01-03T03:02"), None)],
        "a Last-Modified outside the interval is not believed"
    );
    assert_eq!(
        updates(&w, "2024-01-04"),
        [("b".to_owned(), at("2024-01-02T03:01"), at("2024-01-04T03:01"), None)],
        "an absent page was last seen two nights before"
    );
    let source = w.rows::<UpdateRow>("2024-01-02").into_iter().find_map(|row| row.updated_at_source);
    assert_eq!(source.map(UpdatedAtSource::as_str), Some("last_modified"));
    let stats = w.rows::<UpdateStatsRow>("2024-01-04");
    assert_eq!(stats.len(), 3);
    let a = stats.iter().find(|row| row.source.ends_with("/a")).unwrap();
    assert_eq!((a.captures, a.updates, a.urls), (4, 2, 1));
    assert_eq!((a.first_seen, a.last_update), (Some(at("2024-01-01T03:00")), Some(at("2024-01-02T09:00"))));
    assert!(a.rate_low < a.rate_per_day && a.rate_per_day < a.rate_high);
    // Known unchanged from 03:00 to the 304 at noon.
    assert!((a.unchanged_s - 9.0 * 3_600.0).abs() < 1.0, "{}", a.unchanged_s);
    for shares in [&a.phase_hour, &a.phase_day, &a.phase_week, &a.phase_month] {
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
    }
}

#[test]
fn what_the_ignore_rules_match_is_no_update() {
    let text = |visitors: u32| format!("News of the day. Visitors: {visitors}");
    let lines = |w: &Workspace| {
        for (day, visitors) in [(1, 10), (2, 20), (3, 30)] {
            night(
                w,
                &format!("2024-01-0{day}"),
                &[("a", &format!("2024-01-0{day}T03:00"), 200, &text(visitors), None)],
            );
        }
    };
    let w = Workspace::new("ignore = ['Visitors: [0-9]+']");
    lines(&w);
    w.ratoon(&["stats", "p.toml"]).expect(0);
    assert_eq!((updates(&w, "2024-01-02").len(), updates(&w, "2024-01-03").len()), (0, 0));
    // Rules that come later: the digests of both sides are not of the same rules, the comparison still is.
    let w = Workspace::new("");
    lines(&w);
    w.ratoon(&["stats", "p.toml", "--snapshot", "2024-01-02"]).expect(0);
    assert_eq!(updates(&w, "2024-01-02").len(), 1);
    w.pipeline("ignore = ['Visitors: [0-9]+']");
    w.ratoon(&["stats", "p.toml"]).expect(0);
    assert_eq!(updates(&w, "2024-01-03"), []);
}

#[test]
fn new_text_is_told_from_old() {
    let w = Workspace::new("");
    let old = "A paragraph that is long enough to be found again in the next version of the page.";
    night(&w, "2024-01-01", &[("a", "2024-01-01T03:00", 200, old, None)]);
    night(
        &w,
        "2024-01-02",
        &[("a", "2024-01-02T03:00", 200, &format!("{old}</p><p>{}", "x".repeat(old.len() - 1)), None)],
    );
    w.ratoon(&["stats", "p.toml"]).expect(0);
    let share = w.rows::<UpdateRow>("2024-01-02")[0].new_text_share.unwrap();
    assert!((share - 0.5).abs() < 0.01, "{share}");
}

/// Whatever the plan, every update says how much is new.
#[test]
fn new_text_does_not_depend_on_the_plan() {
    // Lines that share no part with each other.
    let word = |i: u32| format!("{:08x}", i.wrapping_mul(2_654_435_761));
    let line = |i: u32| format!("<p>{}</p>", (8 * i..8 * i + 8).map(word).collect::<Vec<_>>().join(" "));
    let text = |new: u32| -> String { (new..new + 12).map(line).collect() };
    let shares = |plan: &str| {
        let w = Workspace::new("[[extractor]]\nname = 'n'\nkind = 'regex'\npattern = '[0-9]+'");
        for day in 1..=4 {
            let time = format!("2024-01-0{day}T03:00");
            let (a, b) = (text(3 * day), text(if day < 3 { 0 } else { 50 }));
            // Two versions of c in each night, of which one is kept.
            let lines = [
                ("a", time.as_str(), 200, a.as_str(), None),
                ("b", &time, 200, &b, None),
                ("c", &format!("2024-01-0{day}T01:00"), 200, &format!("morning {day}"), None),
                ("c", &time, 200, "the same every night", None),
            ];
            night(&w, &format!("2024-01-0{day}"), &lines);
        }
        w.ratoon(&["run", "p.toml", "--plan", plan]).expect(0);
        let rows = (1..=4).flat_map(|day| w.rows::<UpdateRow>(&format!("2024-01-0{day}")));
        rows.map(|row| (row.url, row.before, row.new_text_share.unwrap())).collect::<Vec<_>>()
    };
    let expected = shares("auto");
    let of = |name: &str| -> Vec<f64> {
        expected.iter().filter(|(url, ..)| url.ends_with(name)).map(|(.., share)| *share).collect()
    };
    assert!(of("/a").len() == 3 && of("/a").iter().all(|share| (share - 0.25).abs() < 0.05), "{expected:?}");
    assert!(of("/b").len() == 1 && of("/b")[0] > 0.5, "{expected:?}");
    // The first night has nothing to compare with; later ones keep the text of the night before.
    assert_eq!(of("/c"), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    for plan in ["none", "edges", "diff", "suffix-tree", "anchor"] {
        assert_eq!(shares(plan), expected, "{plan}");
    }
}

fn nights(w: &Workspace, days: std::ops::RangeInclusive<u32>) {
    for day in days {
        let time = format!("2024-01-{day:02}T03:00");
        let texts: Vec<String> = (1..=20).map(|page: u32| format!("page {page} version {}", day / page)).collect();
        let names: Vec<String> = (1..=20).map(|page| format!("p{page}")).collect();
        let lines: Vec<Line<'_>> = names
            .iter()
            .zip(&texts)
            .map(|(name, text)| (name.as_str(), time.as_str(), 200, text.as_str(), None))
            .collect();
        night(w, &format!("2024-01-{day:02}"), &lines);
    }
}

#[test]
fn nightly_runs_catching_up_and_lost_states_give_the_same_bytes() {
    for by in ["url", "host"] {
        let make = || Workspace::new(&format!("[schedule]\nby = '{by}'\n"));
        let (late, nightly, lost) = (make(), make(), make());
        nights(&late, 1..=6);
        late.ratoon(&["run", "p.toml", "--threads", "1"]).expect(0);
        for day in 1..=6 {
            nights(&nightly, day..=day);
            nightly.run();
            nights(&lost, day..=day);
            lost.run();
            fs::remove_dir_all(lost.path("store/_meta/index")).unwrap();
        }
        assert!(late.table_bytes() == nightly.table_bytes(), "{by}");
        assert!(late.table_bytes() == lost.table_bytes(), "{by}");
        let sources = w_sources(&late);
        assert_eq!(sources, if by == "url" { 20 } else { 1 });
    }
}

fn w_sources(w: &Workspace) -> usize {
    w.rows::<UpdateStatsRow>("2024-01-06").len()
}

#[test]
fn pruning_keeps_what_is_known_of_updates() {
    let (pruned, whole) = (Workspace::new(""), Workspace::new(""));
    nights(&whole, 1..=6);
    whole.run();
    nights(&pruned, 1..=5);
    pruned.run();
    pruned.ratoon(&["prune", "p.toml", "--before", "2024-01-05"]).expect(0);
    assert!(!pruned.path("store/updates/snapshot=2024-01-04").exists());
    nights(&pruned, 6..=6);
    pruned.run();
    assert_eq!(pruned.rows::<UpdateStatsRow>("2024-01-06"), whole.rows::<UpdateStatsRow>("2024-01-06"));
}
