//! `adopt = "new-text"`: a changed definition is for pages that change; all others keep what the one before found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use ratoon::inside::model::MentionChange;
use ratoon::inside::tables::extract::{Extraction, MentionDelta};
use serde_json::Value;

use crate::model_server::ModelServer;
use crate::models::declare;
use crate::workspace::Workspace;

const DAYS: [&str; 5] = ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05"];
/// Words with a capital letter, and those of two letters, or of more than three.
const FIRST: &str = r"\b[A-Z][a-z]+\b";
const SECOND: &str = r"\b[A-Z][a-z]\b|\b[A-Z][a-z]{3,}\b";

/// A pipeline file with an extractor `word`, a list of terms and a record made of both.
fn pipeline(w: &Workspace, corpus: &str, pattern: &str, terms: &str, adopt: &str) {
    fs::write(w.path("terms.txt"), terms).unwrap();
    w.pipeline(&format!(
        "{corpus}\n[[extractor]]\nname = 'word'\nkind = 'regex'\npattern = '{pattern}'\n{adopt}\n\
         [[extractor]]\nname = 'term'\nkind = 'dictionary'\nterms = 'terms.txt'\n{adopt}\n\
         [[extractor]]\nname = 'pair'\nkind = 'record'\nscope = 40\n\
         attributes = {{ who = 'word', does = 'term' }}\n"
    ));
}

const TERMS: [&str; 2] = ["sings\nruns\n", "sings\nsleeps\n"];

/// The text of page `p` on a night: page 1 changes every night, page 2 on the third and page 3 on the fifth.
fn page(p: usize, night: usize) -> String {
    let version = match p {
        1 => night,
        2 => usize::from(night >= 2),
        3 => usize::from(night >= 4),
        _ => 0,
    };
    let line = |i: usize| format!("<p>Al Bea Carl {p} sings {i}, Dee runs, Ed sleeps and Finn {version} sings</p>");
    format!("<html><head><title>T</title></head><body>{}</body></html>", (0..6).map(line).collect::<String>())
}

/// Under full coverage page 4 goes on the third night and page 5 comes; other nights of a partial crawl bring pages 1 to 3
/// and one that did not change.
fn night(w: &Workspace, night: usize, full: bool) {
    let brought = |p: &usize| match (full, night, *p) {
        (true, ..2, 5) | (true, 2.., 4) => false,
        (true, ..) | (false, 0, _) => true,
        (false, _, p) => (1..4).contains(&p) || p == 10 + night,
    };
    let pages: Vec<(String, String)> = (0..30).filter(brought).map(|p| (format!("p{p}"), page(p, night))).collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot(DAYS[night], &pages);
}

const COVERAGES: [(bool, &str); 2] = [(true, ""), (false, "coverage = 'partial'")];

/// Two nights with the first definitions, then the second ones are declared.
fn two_nights(corpus: &str, full: bool) -> Workspace {
    let w = Workspace::new("");
    pipeline(&w, corpus, FIRST, TERMS[0], "");
    for i in 0..2 {
        night(&w, i, full);
    }
    w.run();
    pipeline(&w, corpus, SECOND, TERMS[1], "adopt = 'new-text'");
    w
}

/// The mentions of an extractor at the newest state, by URL, without where they come from.
fn state(w: &Workspace, extractor: &str) -> BTreeMap<String, Vec<String>> {
    let ask = format!("select url, start, text from mentions_{extractor} order by url, start");
    let ended = w.ratoon(&["sql", "p.toml", &ask, "--format", "json"]).expect(0);
    let rows: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    let mut by_url: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        let url = row["url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        by_url.entry(url).or_default().push(format!("{} {}", row["start"], row["text"]));
    }
    by_url
}

/// What a store from scratch has of the newest night, with one of the two definitions.
fn from_scratch(full: bool, nights: usize, second: bool) -> Workspace {
    let w = Workspace::new("");
    let at = usize::from(second);
    pipeline(&w, COVERAGES[usize::from(!full)].1, [FIRST, SECOND][at], TERMS[at], "");
    (0..nights).for_each(|i| night(&w, i, full));
    w.run();
    w
}

const EXTRACTORS: [&str; 3] = ["word", "term", "pair"];

fn older(w: &Workspace) -> Value {
    let status = w.ratoon(&["status", "p.toml", "--json"]).expect(0);
    serde_json::from_str::<Value>(&status.stdout).unwrap()["older"].clone()
}

#[test]
fn pages_that_change_get_the_new_definition_and_no_others() {
    for (full, corpus) in COVERAGES {
        let w = two_nights(corpus, full);
        let before = w.table_bytes();
        w.run();
        assert!(w.table_bytes() == before, "a change is for the nights to come");
        w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
        for nights in 3..=5 {
            night(&w, nights - 1, full);
            let ended = w.run();
            let told = ended.stderr.contains("pages that change from snapshot 2024-01-03 on are extracted with it");
            assert_eq!(told, nights == 3, "{}", ended.stderr);
            if nights == 4 {
                continue;
            }
            // Every page has exactly what one of the two finds from scratch.
            let both = [false, true].map(|second| from_scratch(full, nights, second));
            let changed: BTreeSet<&str> = ["p1", "p2", "p3", "p5"].into_iter().collect();
            let is_new = |url: &str| match url {
                "p3" => nights == 5,
                "p5" => full,
                url => changed.contains(url),
            };
            for extractor in EXTRACTORS {
                let [first, second] = [0, 1].map(|at| state(&both[at], extractor));
                assert_ne!(first, second, "{extractor}");
                let now = state(&w, extractor);
                for url in first.keys().chain(second.keys()) {
                    let expected = if is_new(url) { second.get(url) } else { first.get(url) };
                    assert_eq!(now.get(url), expected, "{extractor} {url} after {nights} nights");
                }
            }
            let said = w.ratoon(&["verify", "p.toml", "--all"]).expect(0).stdout;
            assert!(said.contains("have what an earlier definition found"), "{said}");
            let pages = if full { 29 } else { 30 };
            let crossed = 2 + u64::from(nights == 5) + u64::from(full);
            let expected: serde_json::Map<String, Value> =
                EXTRACTORS.iter().map(|name| ((*name).to_owned(), (pages - crossed).into())).collect();
            assert_eq!(older(&w), Value::Object(expected));
        }
        let shown = w.ratoon(&["show", "p.toml", "http://site.test/p9"]).expect(0).stdout;
        assert!(shown.contains("mentions  word: found by an earlier definition"), "{shown}");
        let shown = w.ratoon(&["show", "p.toml", "http://site.test/p1"]).expect(0).stdout;
        assert!(!shown.contains("earlier definition"), "{shown}");
        // Whoever wants it on all pages after all says so.
        pipeline(&w, corpus, SECOND, TERMS[1], "adopt = 'now'");
        w.run();
        let scratch = from_scratch(full, 5, true);
        for extractor in EXTRACTORS {
            assert_eq!(state(&w, extractor), state(&scratch, extractor), "{extractor}");
        }
        assert_eq!(older(&w), Value::Null);
        w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
        let before = w.table_bytes();
        w.run();
        assert!(w.table_bytes() == before, "and that is all");
    }
}

#[test]
fn a_crossing_is_no_news_and_everything_else_is() {
    let told = |w: &Workspace, day: &str| -> BTreeSet<(String, String, MentionChange)> {
        let row = |row: &MentionDelta| {
            (row.url.rsplit('/').next().unwrap().to_owned(), row.extractor.to_string(), row.change)
        };
        w.rows::<MentionDelta>(day).iter().map(row).collect()
    };
    let w = two_nights("", true);
    let stood = w.rows::<MentionDelta>(DAYS[1]);
    assert!(stood.iter().any(|row| row.url.ends_with("/p1")));
    for i in 2..4 {
        night(&w, i, true);
        w.run();
    }
    let third = told(&w, DAYS[2]);
    let of = |set: &BTreeSet<(String, String, MentionChange)>, page: &str| -> Vec<MentionChange> {
        set.iter().filter(|(url, name, _)| url == page && name == "word").map(|(.., change)| *change).collect()
    };
    assert_eq!(of(&third, "p1"), [], "it crossed");
    assert_eq!(of(&third, "p2"), [], "it crossed");
    assert_eq!(of(&third, "p4"), [MentionChange::Deleted], "it went, with what it had");
    assert_eq!(of(&third, "p5"), [MentionChange::Added], "it came");
    // Once a page has crossed it is compared as ever: only the number that the pattern does not see changes.
    assert_eq!(of(&told(&w, DAYS[3]), "p1"), []);
    // What was told before stays told, also where the night is done again with the new definition.
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", DAYS[1]]).expect(0);
    assert!(w.rows::<MentionDelta>(DAYS[1]) == stood);
    let prints: BTreeSet<String> = w
        .rows::<Extraction>(DAYS[1])
        .iter()
        .filter(|row| &*row.extractor == "word")
        .map(|row| row.fingerprint.to_string())
        .collect();
    assert_eq!(prints.len(), 2, "the fingerprint of each row says which definition found it");
}

/// All ways to do the same nights.
#[test]
fn nights_one_by_one_are_nights_in_one_run_on_any_threads_and_plan_and_after_kills() {
    for (full, corpus) in COVERAGES {
        let nightly = two_nights(corpus, full);
        for i in 2..5 {
            night(&nightly, i, full);
            nightly.run();
        }
        let expected = nightly.table_bytes();
        let same = |w: &Workspace, how: &str| {
            let tables = w.table_bytes();
            let other = tables.iter().zip(&expected).find(|(a, b)| a != b).map(|(a, b)| (&a.0, &b.0));
            assert_eq!((other, tables.len()), (None, expected.len()), "{how}");
        };
        let rest = |w: &Workspace| (2..5).for_each(|i| night(w, i, full));
        for threads in ["1", "3"] {
            let w = two_nights(corpus, full);
            rest(&w);
            w.ratoon(&["run", "p.toml", "--threads", threads]).expect(0);
            same(&w, threads);
        }
        let w = two_nights(corpus, full);
        rest(&w);
        w.kill_at_many_points(&["run", "p.toml", "-q"], Duration::from_millis(25));
        w.run();
        same(&w, "kills");
        for plan in ["none", "anchor"] {
            let w = two_nights(corpus, full);
            rest(&w);
            w.ratoon(&["run", "p.toml", "--plan", plan]).expect(0);
            for extractor in EXTRACTORS {
                assert_eq!(state(&w, extractor), state(&nightly, extractor), "{plan} {extractor}");
            }
            assert_eq!(older(&w), older(&nightly), "{plan}");
        }
        // The index made again from the tables knows who found what.
        fs::remove_dir_all(nightly.path("store/_meta/index")).unwrap();
        let w = two_nights(corpus, full);
        rest(&w);
        w.run();
        for w in [&w, &nightly] {
            w.snapshot("2024-01-06", &[("p1", &page(1, 6)), ("p7", &page(8, 0))]);
            // To a full crawl that is half a night.
            w.ratoon(&["run", "p.toml"]).expect(if full { 3 } else { 0 });
        }
        assert_eq!(older(&w), older(&nightly));
        assert!(w.table_bytes() == nightly.table_bytes());
    }
}

/// A model is asked about pages that change, and told by name on the others.
#[test]
fn a_changed_model_is_asked_about_new_text_only() {
    let model = ModelServer::start(r"(?P<who>[A-Z][a-z]+) [0-9]+ sings");
    let write = |w: &Workspace, name: &str, more: &str| declare(w, &model, name, "who = 'string'", more);
    let w = Workspace::new("");
    write(&w, "small", "");
    (0..2).for_each(|i| night(&w, i, true));
    w.run();
    write(&w, "large", "adopt = 'new-text'\n");
    model.forget();
    w.run();
    assert_eq!(model.totals().requests, 0, "nothing is new yet");
    night(&w, 2, true);
    let asked = w.ratoon(&["plan", "p.toml", "--explain"]).expect(0).stdout;
    w.run();
    let texts = model.texts();
    assert!(!texts.is_empty());
    assert!(
        texts.iter().all(|(text, _)| [" 1 sings", " 2 sings", " 5 sings"].iter().any(|new| text.contains(new))),
        "{texts:?}"
    );
    let all: BTreeSet<String> = w.rows::<Extraction>(DAYS[2]).iter().map(|row| row.fingerprint.to_string()).collect();
    assert_eq!(all.len(), 2, "{asked}");
    let shown = w.ratoon(&["show", "p.toml", "http://site.test/p9"]).expect(0).stdout;
    assert!(shown.contains("mentions  event: found by an earlier definition, small"), "{shown}");
    let said = w.ratoon(&["status", "p.toml"]).expect(0).stdout;
    assert!(said.contains("event: 26 pages have what an earlier definition found, until they change"), "{said}");
    model.forget();
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
    assert_eq!(model.totals().requests, 0);
    // One table cannot have two sets of columns.
    write(&w, "larger", "adopt = 'new-text'\n");
    let text = fs::read_to_string(w.path("p.toml")).unwrap();
    fs::write(w.path("p.toml"), text.replace("{ who = 'string' }", "{ who = 'string', what = 'string' }")).unwrap();
    night(&w, 3, true);
    w.ratoon(&["run", "p.toml"]).expect(1).says("has other columns than mentions/event");
}
