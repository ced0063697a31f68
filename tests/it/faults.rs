//! `ratoon synth --faults` plays nights that went wrong to a store, and the same site without faults to another: what a
//! fault spoiled leaves no trace, and after the next good night both stores say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use ratoon::inside::model::{SnapshotId, Timestamp};
use ratoon::inside::tables::close::SnapshotRow;
use ratoon::inside::tables::delta::{Alert, PageDelta};
use ratoon::inside::tables::extract::MentionDelta;
use ratoon::inside::tables::ingest::{Capture, Page};
use ratoon::inside::tables::stats::UpdateRow;

use crate::workspace::Workspace;

const SECTIONS: &str = "ignore = ['Visitors: [0-9,]+', 'Served .*']
[[extractor]]
name = 'room'
kind = 'regex'
pattern = '(?:Room|Hall) [A-D]?[0-9]{1,3}'
[[watch]]
name = 'rooms'
on = { mentions = 'room' }
[[watch]]
name = 'news'
on = { share = 0.5 }";

/// A store of a site with or without faults, after a run over all nights.
fn played(layout: &str, faults: bool) -> Workspace {
    let w = Workspace::new(SECTIONS);
    let mut args = vec!["synth", "snapshots", "--truth", "truth", "--pages", "120", "--snapshots", "16", "--seed", "5"];
    args.extend(["--page-bytes", "1500", "--layout", layout, "-q"]);
    args.extend(faults.then_some("--faults"));
    fs::remove_dir(w.path("snapshots")).unwrap();
    w.ratoon(&args).expect(0);
    w.ratoon(&["run", "p.toml", "-q"]).expect(if faults { 3 } else { 0 });
    w
}

type Spoiled = BTreeMap<String, (String, BTreeSet<String>)>;

/// By snapshot: its fault, and the URLs that it spoiled.
fn truth(w: &Workspace) -> Spoiled {
    let mut spoiled = Spoiled::new();
    for line in fs::read_to_string(w.path("truth/faults.csv")).unwrap().lines().skip(1) {
        let [snapshot, fault, url] = line.splitn(3, ',').collect::<Vec<_>>().try_into().unwrap();
        let entry = spoiled.entry(snapshot.to_owned()).or_insert_with(|| (fault.to_owned(), BTreeSet::new()));
        entry.1.extend((!url.is_empty()).then(|| url.to_owned()));
    }
    spoiled
}

/// The pages of a snapshot and their texts.
fn state(w: &Workspace, night: &str) -> BTreeMap<String, String> {
    let pages = w.rows::<Page>(night).into_iter();
    pages.map(|page| (page.url, page.masked_text_digest.to_string())).collect()
}

fn captured(w: &Workspace, night: &str) -> Vec<Capture> {
    w.rows::<Capture>(night)
}

fn suspects(w: &Workspace, night: &str) -> BTreeSet<String> {
    captured(w, night).into_iter().filter(|capture| capture.suspect.is_some()).map(|capture| capture.url).collect()
}

/// All URLs that a night tells news of.
fn news(w: &Workspace, night: &str) -> BTreeSet<String> {
    let pages = w.rows::<PageDelta>(night).into_iter().filter(|row| row.change.as_str() != "unchanged");
    let mut urls: BTreeSet<String> = pages.map(|row| row.url.to_string()).collect();
    urls.extend(w.rows::<MentionDelta>(night).into_iter().map(|row| row.url.to_string()));
    urls.extend(w.rows::<UpdateRow>(night).into_iter().map(|row| row.url));
    urls.extend(w.rows::<Alert>(night).into_iter().filter_map(|row| row.url));
    urls
}

fn play(layout: &str) {
    let (good, bad) = (played(layout, false), played(layout, true));
    let spoiled = truth(&bad);
    let faults: BTreeSet<&str> = spoiled.values().map(|(fault, _)| fault.as_str()).collect();
    assert_eq!(faults.len(), 7, "{faults:?}");
    let nights: Vec<String> = bad.store().partitions("captures").unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(nights.len(), 16);
    let mut before: BTreeMap<String, String> = BTreeMap::new();
    for night in &nights {
        let now = state(&bad, night);
        let row = &bad.rows::<SnapshotRow>(night)[0];
        let heard: BTreeSet<String> = captured(&bad, night).into_iter().map(|capture| capture.url).collect();
        match spoiled.get(night) {
            None => {
                assert!(suspects(&bad, night).is_empty() && !row.incomplete, "{night}");
                assert_eq!(difference(&good, &bad, night, &now), BTreeSet::new(), "{night}");
            }
            Some((fault, urls)) => {
                let case = format!("{layout}, {night}, {fault}");
                // What was spoiled, or did not come, is as it was.
                for url in urls.iter().filter(|_| fault != "clock") {
                    assert_eq!(now.get(url), before.get(url), "{case}: {url}");
                }
                let incomplete =
                    matches!(fault.as_str(), "half_crawl" | "cut_archive" | "challenge" | "login" | "storm");
                assert_eq!(row.incomplete, incomplete, "{case}");
                let told: BTreeSet<String> = news(&bad, night);
                let lost =
                    |url: &&String| (fault != "clock" && urls.contains(*url)) || (incomplete && !heard.contains(*url));
                assert_eq!(told.iter().filter(lost).collect::<Vec<_>>(), Vec::<&String>::new(), "{case}");
                let expected = match fault.as_str() {
                    "challenge" | "login" | "soft_404" => urls.clone(),
                    _ => BTreeSet::new(),
                };
                assert_eq!(suspects(&bad, night), expected, "{case}");
            }
        }
        for update in bad.rows::<UpdateRow>(night) {
            let year = |time: Timestamp| time.to_string()[..4].to_owned();
            assert_eq!((year(update.after), year(update.before)), ("2024".into(), "2024".into()), "{night}");
        }
        before = now;
    }
}

/// URLs whose pages differ from those of a crawler that nothing disturbed, after a good night. What the server refused
/// that night is as old as it was, and so is what is said to be as in an archive that was cut.
fn difference(good: &Workspace, bad: &Workspace, night: &str, now: &BTreeMap<String, String>) -> BTreeSet<String> {
    let failed: BTreeSet<String> =
        captured(bad, night).into_iter().filter(|c| c.status == Some(503) || c.revisit).map(|c| c.url).collect();
    let undisturbed = state(good, night);
    let urls: BTreeSet<&String> = now.keys().chain(undisturbed.keys()).collect();
    let differ = urls.into_iter().filter(|url| now.get(*url) != undisturbed.get(*url) && !failed.contains(*url));
    differ.cloned().collect()
}

#[test]
fn the_gate_lets_nothing_false_through_in_warc() {
    play("warc");
}

#[test]
fn the_gate_lets_nothing_false_through_in_manifests() {
    play("manifest");
}

#[test]
fn ordinary_nights_of_every_kind_have_no_suspects() {
    for (part, change, layout) in [
        ("campus", "0.05", "warc"),
        ("entertainment", "0.6", "manifest"),
        ("both", "0.9", "mirror"),
        ("drugs", "0", "mirror"),
    ] {
        let w = Workspace::new("");
        fs::remove_dir(w.path("snapshots")).unwrap();
        let args = ["synth", "snapshots", "--truth", "truth", "--pages", "200", "--snapshots", "6", "--part", part];
        w.ratoon(&[&args[..], &["--change", change, "--layout", layout, "-q"]].concat()).expect(0);
        assert_eq!(w.ratoon(&["run", "p.toml", "-q"]).expect(0).stderr, "", "{part}");
        for night in w.store().partitions("captures").unwrap() {
            assert_eq!(suspects(&w, SnapshotId::as_str(&night)), BTreeSet::new(), "{part} {night}");
        }
    }
}
