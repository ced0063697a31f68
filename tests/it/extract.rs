//! `extract`: mentions that are recycled exactly, whatever the plan.

use std::fs;
use std::time::Duration;

use ratoon::inside::extract::{LabelColumn, Status};
use ratoon::inside::model::{MentionChange, SnapshotId};
use ratoon::inside::plan::Served;
use ratoon::inside::store::parquet::Partition;
use ratoon::inside::tables::delta::TupleDelta;
use ratoon::inside::tables::extract::{Extraction, MentionDelta};
use ratoon::inside::tables::mentions::{MentionRow, MentionSchema};

use crate::workspace::{Workspace, html, project};

/// One extractor of every kind that runs in this process.
const EXTRACTORS: &str = r#"
[[extractor]]
name = "person"
kind = "regex"
pattern = '(?P<first>[A-Z][a-z]{1,15}) (?P<last>[A-Z][a-z]{1,20})'

[[extractor]]
name = "quoted"
kind = "regex"
patterns = ['"[^"\n]+"', '[0-9]+(?:[.][0-9]+)*']

[[extractor]]
name = "topic"
kind = "dictionary"
terms = "terms.txt"
whole_word = true
ignore_case = true

[[extractor]]
name = "talk"
kind = "record"
scope = 80
pairing = "nearest"
attributes = { who = "person", what = { extractor = "topic", many = true, optional = true } }
"#;

const WORKER: &str = r#"
[[extractor]]
name = "word"
kind = "command"
command = ["python3", "worker.py"]
scope = 20
context = 1
offsets = "char"
timeout = "20s"
"#;

/// Finds capitalised words; dies on POISON once, hangs on nothing.
const WORKER_PY: &str = r#"
import json, re, sys
for line in sys.stdin:
    request = json.loads(line)
    if "hello" in request or "id" not in request:
        print(json.dumps({"name": "word", "version": "1", "fingerprint": "f1", "attributes": ["initial"],
                          "offsets": "char", "unit": "window", "scope": 20, "context": 1, "deterministic": True}), flush=True)
        continue
    if "POISON" in request["text"]:
        sys.exit(3)
    found = []
    for m in re.finditer(r"(?<!\w)[A-Z]\w{1,18}(?!\w)", request["text"]):
        found.append({"start": m.start(), "end": m.end(), "text": m.group(), "attrs": {"initial": m.group()[0]}})
    print(json.dumps({"id": request["id"], "mentions": found}), flush=True)
"#;

fn workspace(extractors: &str) -> Workspace {
    let w = Workspace::new(extractors);
    fs::write(w.path("terms.txt"), "web archives\ngraph theory\ngraph\n").unwrap();
    fs::write(w.path("worker.py"), WORKER_PY).unwrap();
    w
}

/// Nights on which text is edited, moved, dropped, added, missed and brought back.
fn nights(w: &Workspace) {
    let a = "Ada Lovelace speaks on Graph Theory and web archives. \"A quoted line\" with 3.14 in it.";
    let b = "Émile Zola met Grace Hopper; graph and \"another one\" came up 42 times. New York City.";
    let c = "Nothing to see here but filler text that goes on for a while, as filler text is wont to do.";
    let page = |parts: &[&str]| html("T", &parts.join("</p><p>"), "x");
    w.snapshot(
        "2024-01-01",
        &[("a", &page(&[a, b, c])), ("b", &page(&[b])), ("c", &page(&[c, a])), ("gone", &page(&[a]))],
    );
    let edited = a.replace("Ada", "Augusta Ada");
    w.snapshot("2024-01-02", &[("a", &page(&[c, &edited, b])), ("c", &page(&[c, a])), ("moved", &page(&[b]))]);
    w.snapshot(
        "2024-01-03",
        &[("a", &page(&[b, c, a])), ("b", &page(&[b, a])), ("c", &page(&[a])), ("moved", &page(&[b, c]))],
    );
}

const DAYS: [&str; 3] = ["2024-01-01", "2024-01-02", "2024-01-03"];

fn mentions(w: &Workspace, schema: &MentionSchema, extractor: &str, day: &str) -> Vec<MentionRow> {
    let file = w.store().partition_file(&format!("mentions/{extractor}"), &SnapshotId::new(day).unwrap());
    let partition = Partition::open(&file).unwrap();
    partition.batches(&partition.all(), None).unwrap().iter().flat_map(|batch| schema.decode(batch).unwrap()).collect()
}

fn schema(extractor: &str) -> MentionSchema {
    let attributes: &[(&str, bool)] = match extractor {
        "person" => &[("first", false), ("last", false)],
        "talk" => &[("who", false), ("what", true)],
        "word" => &[("initial", false)],
        _ => &[],
    };
    let label = match extractor {
        "person" | "quoted" => Some(LabelColumn::Pattern),
        "topic" => Some(LabelColumn::Term),
        _ => None,
    };
    MentionSchema { label, attributes: attributes.iter().map(|(name, many)| ((*name).to_owned(), *many)).collect() }
}

/// Every mention of every night without where it comes from.
fn found(w: &Workspace, extractors: &[&str]) -> Vec<(String, MentionRow)> {
    let mut all = Vec::new();
    for extractor in extractors {
        for day in DAYS {
            for row in mentions(w, &schema(extractor), extractor, day) {
                let since = SnapshotId::new("x").unwrap();
                all.push((format!("{extractor} {day}"), MentionRow { copied: false, since, ..row }));
            }
        }
    }
    all
}

#[test]
fn recycled_equals_from_scratch_for_every_kind_and_plan() {
    let kinds = ["person", "quoted", "topic", "talk", "word"];
    let run = |plan: &str| {
        let w = workspace(&format!("{EXTRACTORS}{WORKER}"));
        nights(&w);
        w.ratoon(&["run", "p.toml", "--plan", plan]).expect(0);
        w
    };
    let scratch = run("none");
    let expected = found(&scratch, &kinds);
    assert!(expected.len() > 100, "{}", expected.len());
    assert!(DAYS.iter().all(|day| mentions(&scratch, &schema("word"), "word", day).iter().all(|row| !row.copied)));
    for plan in ["edges", "diff", "suffix-tree", "anchor", "auto"] {
        let w = run(plan);
        assert!(found(&w, &kinds) == expected, "{plan} differs from scratch");
        let copied =
            |extractor: &str| mentions(&w, &schema(extractor), extractor, DAYS[1]).iter().any(|row| row.copied);
        assert!(kinds.iter().all(|extractor| copied(extractor)), "{plan} copies nothing");
    }
}

#[test]
fn a_copied_mention_knows_since_when_it_is_there() {
    let w = workspace(EXTRACTORS);
    nights(&w);
    w.ratoon(&["run", "p.toml", "--plan", "anchor"]).expect(0);
    let rows = mentions(&w, &schema("person"), "person", DAYS[2]);
    let on = |url: &str, text: &str| {
        let row = rows.iter().find(|row| row.url.ends_with(url) && row.text == text);
        let row = row.unwrap_or_else(|| panic!("no {text} on {url}: {rows:?}"));
        (row.copied, row.since.to_string())
    };
    // b was missing one night: its old page is that of the first.
    assert_eq!(on("/b", "Grace Hopper"), (true, DAYS[0].into()));
    assert_eq!(on("/b", "Ada Lovelace"), (false, DAYS[2].into()));
    // Taken over from the page it moved away from, and copied again.
    assert_eq!(on("/moved", "Grace Hopper"), (true, DAYS[0].into()));
    let extractions = w.rows::<Extraction>(DAYS[1]);
    let moved = extractions.iter().find(|e| e.url.ends_with("/moved") && &*e.extractor == "person").unwrap();
    assert_eq!((moved.matcher, moved.bytes_extracted), (Served::Equal, 0));
}

#[test]
fn deltas_tell_what_came_and_went_whatever_its_place() {
    let w = workspace(EXTRACTORS);
    nights(&w);
    w.run();
    assert_eq!(w.rows::<MentionDelta>(DAYS[0]), []);
    let deltas: Vec<_> = w
        .rows::<MentionDelta>(DAYS[1])
        .into_iter()
        .filter(|delta| &*delta.extractor == "person")
        .map(|delta| (delta.url.rsplit('/').next().unwrap().to_owned(), delta.change, delta.text))
        .collect();
    let has = |url: &str, change: MentionChange, text: &str| {
        assert!(deltas.contains(&(url.into(), change, text.into())), "{url} {change} {text}: {deltas:?}");
    };
    has("a", MentionChange::Added, "Augusta Ada");
    has("a", MentionChange::Deleted, "Ada Lovelace");
    has("b", MentionChange::Deleted, "Grace Hopper");
    has("gone", MentionChange::Deleted, "Ada Lovelace");
    has("moved", MentionChange::Added, "Grace Hopper");
    // Blocks of a only changed their places.
    assert!(!deltas.iter().any(|(url, _, text)| url == "a" && text == "Grace Hopper"), "{deltas:?}");
}

/// More old mentions than are read at once, of all pages of a shard and of some, compared with and without their rows.
#[test]
fn deltas_of_many_mentions_are_those_of_the_texts_under_every_plan() {
    const PAGES: usize = 60;
    const LISTED: usize = 200;
    let numbers = |page: usize, night: usize| -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..LISTED).map(|k| (page * 31 + k * 7) % 90).collect();
        match page % 4 {
            // One comes and one goes, at places that move from night to night.
            0 => numbers[(page * 13 + night * 50) % LISTED] = 1000 + night,
            // The same in another order: no news.
            1 => numbers.rotate_left(night * 3),
            2 => numbers.truncate(LISTED - night),
            _ => {}
        }
        numbers
    };
    // The last night is a poll of some pages.
    let touched = |page: usize, night: usize| night < 2 || page.is_multiple_of(5);
    let run = |plan: &str| {
        let pattern = "[[extractor]]\nname = \"number\"\nkind = \"regex\"\npattern = '[0-9]{1,6}'\n";
        let w = Workspace::new(&format!("coverage = \"partial\"\n{pattern}"));
        for (night, day) in DAYS.iter().enumerate() {
            let page = |page: usize| {
                let listed: Vec<String> = numbers(page, night).iter().map(usize::to_string).collect();
                (format!("p{page}"), html("T", &listed.join(" "), "x"))
            };
            let pages: Vec<_> = (0..PAGES).filter(|&of| touched(of, night)).map(page).collect();
            let pages: Vec<_> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
            w.snapshot(day, &pages);
        }
        w.ratoon(&["extract", "p.toml", "--plan", plan]).expect(0);
        w
    };
    let w = run("none");
    for (night, day) in DAYS.iter().enumerate().skip(1) {
        let mut expected = Vec::new();
        for page in (0..PAGES).filter(|&page| touched(page, night)) {
            let (mut came, mut went) = (numbers(page, night), Vec::new());
            for number in numbers(page, night - 1) {
                match came.iter().position(|new| *new == number) {
                    Some(at) => _ = came.swap_remove(at),
                    None => went.push(number),
                }
            }
            let row = |change: MentionChange| move |number: usize| (page, change, number);
            expected.extend(came.into_iter().map(row(MentionChange::Added)));
            expected.extend(went.into_iter().map(row(MentionChange::Deleted)));
        }
        let told = w.rows::<MentionDelta>(day).into_iter().map(|delta| {
            let page = delta.url.rsplit_once("/p").unwrap().1.parse().unwrap();
            (page, delta.change, delta.text.parse().unwrap())
        });
        let mut told: Vec<(usize, MentionChange, usize)> = told.collect();
        told.sort_unstable();
        expected.sort_unstable();
        assert!(expected.len() > 10 && told == expected, "{day}: {told:?} instead of {expected:?}");
    }
    for plan in ["anchor", "auto"] {
        let other = run(plan);
        assert!(DAYS.iter().all(|day| other.rows::<MentionDelta>(day) == w.rows::<MentionDelta>(day)), "{plan}");
    }
}

#[test]
fn a_failed_page_is_marked_and_never_a_source() {
    let w = workspace(WORKER);
    w.snapshot("2024-01-01", &[("a", &html("T", "Alpha POISON Beta", "x")), ("b", &html("T", "Gamma", "x"))]);
    w.snapshot("2024-01-02", &[("a", &html("T", "Alpha POISON Beta", "x")), ("b", &html("T", "Gamma", "x"))]);
    w.snapshot("2024-01-03", &[("a", &html("T", "Alpha Beta", "x")), ("b", &html("T", "Gamma", "x"))]);
    w.ratoon(&["run", "p.toml"]).expect(3).says("worker ended");
    let status = |day: &str| {
        let mut rows: Vec<_> = w.rows::<Extraction>(day).into_iter().map(|e| (e.url.to_string(), e.status)).collect();
        rows.sort();
        rows.into_iter().map(|(_, status)| status).collect::<Vec<_>>()
    };
    assert_eq!(status("2024-01-01"), [Status::Failed, Status::Ok]);
    assert_eq!(status("2024-01-02"), [Status::Failed, Status::Ok], "unchanged, but tried again");
    assert_eq!(status("2024-01-03"), [Status::Ok, Status::Ok]);
    let texts: Vec<_> = mentions(&w, &schema("word"), "word", "2024-01-03").into_iter().map(|row| row.text).collect();
    assert!(texts.contains(&"Alpha".to_owned()) && texts.contains(&"Beta".to_owned()), "{texts:?}");
}

#[test]
fn a_worker_that_cannot_start_fails_the_run_with_its_name() {
    let w = workspace("[[extractor]]\nname = 'x'\nkind = 'command'\ncommand = ['no-such-program']\nscope = 9\n");
    w.snapshot("2024-01-01", &[("a", "<p>a")]);
    w.ratoon(&["run", "p.toml"]).expect(1).says("extractor 'x'").says("no-such-program");
}

#[test]
fn a_new_extractor_starts_with_the_newest_snapshot_and_backfills_on_demand() {
    let w = workspace(
        "[[extractor]]\nname = 'person'\nkind = 'regex'\npattern = '(?P<first>[A-Z][a-z]+) (?P<last>[A-Z][a-z]+)'\n",
    );
    nights(&w);
    w.run();
    let before = w.table_bytes();
    w.pipeline(EXTRACTORS);
    w.run().says("extractor 'topic' is new").says("extractor 'person' changed");
    assert!(!w.path("store/mentions/topic/snapshot=2024-01-02").exists());
    assert!(w.path("store/mentions/topic/snapshot=2024-01-03").exists());
    assert_ne!(w.table_bytes(), before);
    assert!(w.run().stdout.contains("nothing to do"));
    w.ratoon(&["extract", "p.toml", "--backfill", "2024-01-01"]).expect(0);
    let all = workspace(EXTRACTORS);
    nights(&all);
    all.run();
    let kinds = ["person", "quoted", "topic", "talk"];
    assert!(found(&w, &kinds) == found(&all, &kinds));
}

/// How long a worker may take, and how many requests it is given at a time, say nothing about what it finds.
#[test]
fn a_command_with_another_timeout_is_the_same_extractor() {
    let query = "[[query]]\nname = 'q'\nnodes.a = { mention = 'word' }\nlinks = ['a -> b']\n";
    let pipeline = format!("{WORKER}{query}");
    let w = workspace(&pipeline);
    let night = |id: &str, word: &str| {
        w.snapshot(id, &[("a", &html("T", word, "b")), ("b", &html("T", "nothing", "c"))]);
    };
    night(DAYS[0], "Alpha");
    night(DAYS[1], "Beta");
    w.run();
    let before = w.table_bytes();
    assert!(!w.rows::<TupleDelta>(DAYS[1]).is_empty());
    w.pipeline(&pipeline.replace("timeout = \"20s\"", "timeout = \"19s\"\nin_flight = 3"));
    assert!(w.run().stdout.contains("nothing to do"));
    assert!(w.table_bytes() == before);
    // The next night goes on from the one before.
    night(DAYS[2], "Gamma");
    let said = w.run().stderr;
    assert!(!said.contains("changed"), "{said}");
    assert!(!w.rows::<TupleDelta>(DAYS[2]).is_empty());
    assert!(!w.rows::<MentionDelta>(DAYS[2]).is_empty());
    // Another command line is another extractor.
    w.pipeline(&pipeline.replace("\"worker.py\"", "\"-u\", \"worker.py\""));
    assert!(!w.run().stdout.contains("nothing to do"));
}

#[test]
fn a_changed_term_list_is_brought_up_to_date_exactly() {
    let w = workspace(EXTRACTORS);
    nights(&w);
    w.run();
    fs::write(w.path("terms.txt"), "web\ngraph\nquoted line\nzola\n").unwrap();
    w.run().says("terms added, 2 removed");
    let fresh = workspace(EXTRACTORS);
    fs::write(fresh.path("terms.txt"), "web\ngraph\nquoted line\nzola\n").unwrap();
    nights(&fresh);
    fresh.run();
    let of = |w: &Workspace| -> Vec<_> {
        let rows = mentions(w, &schema("topic"), "topic", DAYS[2]).into_iter();
        rows.map(|row| (row.url, row.start, row.end, row.label)).collect()
    };
    assert!(!of(&w).is_empty());
    assert_eq!(of(&w), of(&fresh));
    let talks = |w: &Workspace| -> Vec<_> {
        mentions(w, &schema("talk"), "talk", DAYS[2])
            .into_iter()
            .map(|row| (row.url, row.start, row.attributes))
            .collect()
    };
    assert_eq!(talks(&w), talks(&fresh));
}

#[test]
fn earlier_partitions_get_the_schema_of_today() {
    let one = "[[extractor]]\nname = 'person'\nkind = 'regex'\npattern = '(?P<first>[A-Z][a-z]+) [A-Z][a-z]+'\n";
    let w = workspace(one);
    nights(&w);
    w.run();
    w.pipeline(&one.replace("[A-Z][a-z]+'", "(?P<last>[A-Z][a-z]+)'"));
    w.run();
    let schema = schema("person");
    for day in DAYS {
        let file = w.store().partition_file("mentions/person", &SnapshotId::new(day).unwrap());
        let partition = Partition::open(&file).unwrap();
        assert_eq!(MentionSchema::of(partition.schema().unwrap()), schema, "{day}");
    }
    assert!(mentions(&w, &schema, "person", DAYS[0]).iter().all(|row| row.attributes[1].is_none()));
    assert!(mentions(&w, &schema, "person", DAYS[2]).iter().all(|row| row.attributes[1].is_some()));
}

#[test]
fn nightly_and_catch_up_and_threads_give_the_same_mentions() {
    let (nightly, late) = (workspace(EXTRACTORS), workspace(EXTRACTORS));
    nights(&nightly);
    nights(&late);
    for day in DAYS {
        nightly.ratoon(&["run", "p.toml", "--snapshot", day, "--threads", "1"]).expect(0);
    }
    late.ratoon(&["run", "p.toml", "--threads", "4"]).expect(0);
    assert!(nightly.table_bytes() == late.table_bytes());
}

/// What the generator says is there, the sample pipelines find.
#[test]
fn the_sample_pipelines_find_what_is_true() {
    for (name, extractors) in
        [("campus", ["researcher", "affiliation"].as_slice()), ("entertainment", &["actor", "play", "award"])]
    {
        let w = Workspace::sample(name);
        w.run();
        let truth = fs::read_to_string(project().join(format!("sample_data/{name}_truth/mentions.jsonl"))).unwrap();
        for extractor in extractors {
            let mut expected: Vec<(String, String, String)> = Vec::new();
            for line in truth.lines() {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                if line["extractor"] == *extractor {
                    let field = |key: &str| line[key].as_str().unwrap().to_owned();
                    expected.push((field("snapshot"), field("url"), field("text")));
                }
            }
            let plain = MentionSchema { label: Some(LabelColumn::Pattern), attributes: Vec::new() };
            let days: std::collections::BTreeSet<_> = expected.iter().map(|(day, ..)| day.clone()).collect();
            let mut got: Vec<_> = days
                .iter()
                .flat_map(|day| {
                    mentions(&w, &plain, extractor, day).into_iter().map(|m| (day.clone(), m.url.to_string(), m.text))
                })
                .collect();
            expected.sort();
            got.sort();
            assert!(!expected.is_empty());
            let missing = expected.iter().filter(|e| got.binary_search(e).is_err()).count();
            let share = f64::from(u32::try_from(missing).unwrap()) / f64::from(u32::try_from(expected.len()).unwrap());
            assert!(share < 0.02, "{name} {extractor}: {missing} of {} missing", expected.len());
        }
    }
}

#[test]
fn verify_finds_what_is_wrong_in_the_store() {
    let w = workspace(&format!("{EXTRACTORS}{WORKER}"));
    nights(&w);
    w.run();
    let clean = w.ratoon(&["verify", "p.toml", "--all"]).expect(0).stdout;
    assert!(
        clean.contains("person: 0 wrong in all 4 pages") && clean.contains("word: 0 wrong in all 4 pages"),
        "{clean}"
    );
    let json = w.ratoon(&["verify", "p.toml", "--sample", "2", "--json"]).expect(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["clean"], &json["extractors"][0]["pages"]), (&true.into(), &2.into()));
    // Last night's mentions under this night's name: wrong for every page that changed.
    let (from, to) = ("store/mentions/person/snapshot=2024-01-02", "store/mentions/person/snapshot=2024-01-03");
    fs::copy(w.path(from).join("part-00000.parquet"), w.path(to).join("part-00000.parquet")).unwrap();
    let manifest = |day: &str| w.path(&format!("store/_meta/snapshots/{day}.json"));
    let read = |day| serde_json::from_slice::<serde_json::Value>(&fs::read(manifest(day)).unwrap()).unwrap();
    let (last, mut this) = (read("2024-01-02"), read("2024-01-03"));
    let written = "/stages/extract/tables/mentions~1person";
    *this.pointer_mut(written).unwrap() = last.pointer(written).unwrap().clone();
    w.write_manifest("2024-01-03", this);
    let wrong = w.ratoon(&["verify", "p.toml", "--all"]).expect(1).says("differ");
    assert!(wrong.stdout.contains("person: ") && wrong.stdout.contains("http://site.test/"), "{}", wrong.stdout);
    // A changed extractor is not compared with mentions of the old one.
    w.pipeline(&EXTRACTORS.replace("{1,15}", "{1,5}"));
    w.ratoon(&["verify", "p.toml"]).expect(1).says("is not the one");
}

#[test]
fn audit_believes_a_true_declaration_and_not_a_false_one() {
    let w = workspace(WORKER);
    nights(&w);
    w.run();
    let held = w.ratoon(&["audit", "p.toml", "--trials", "300"]).expect(0).stdout;
    assert!(held.contains("word: scope 20, context 1 and 1: holds in 300 trials"), "{held}");
    let lie = WORKER_PY.replace("\"scope\": 20, \"context\": 1", "\"scope\": 20, \"context\": 0");
    fs::write(w.path("worker.py"), lie).unwrap();
    w.pipeline(&WORKER.replace("context = 1", "context = 0"));
    let wrong = w.ratoon(&["audit", "p.toml", "--trials", "200"]).expect(1).stdout;
    assert!(wrong.contains("WRONG") && wrong.contains("smallest context that passes: 1"), "{wrong}");
}

#[test]
fn the_worked_example_runs_and_recycles() {
    let entity = "[[extractor]]\nname = 'entity'\nkind = 'command'\ncommand = ['python3', 'entity.py']\n";
    let run = |plan: &str| {
        let w = workspace(entity);
        fs::copy(project().join("pipelines/entity.py"), w.path("entity.py")).unwrap();
        let letter =
            "Dr. Ada Lovelace wrote to grace@example.org on 12 March 2024 about a machine for $300. ".repeat(3);
        for (i, day) in DAYS.iter().enumerate() {
            let text = format!("Day {i}. {letter} Émile paid €{i}0.50, said Prof. Grace Hopper.");
            w.snapshot(day, &[("a", &html("T", &text, "x")), ("b", &html("T", &letter, "x"))]);
        }
        w.ratoon(&["run", "p.toml", "--plan", plan]).expect(0);
        w
    };
    let rows = |w: &Workspace| {
        let plain = MentionSchema { label: None, attributes: Vec::new() };
        let all = DAYS.iter().flat_map(|day| mentions(w, &plain, "entity", day));
        all.map(|row| (row.url, row.start, row.end, row.text)).collect::<Vec<_>>()
    };
    let scratch = run("none");
    let recycled = run("auto");
    assert!(!rows(&scratch).is_empty());
    assert_eq!(rows(&scratch), rows(&recycled));
    assert!(w_copied(&recycled), "nothing was copied");
}

fn w_copied(w: &Workspace) -> bool {
    w.rows::<Extraction>(DAYS[1]).iter().any(|row| row.copied > 0)
}

#[test]
fn the_fuzzer_finds_no_difference() {
    let w = Workspace::new("");
    for kind in ["regex", "dictionary", "edit", "record", "command"] {
        let out = w.ratoon(&["fuzz", kind, "--pairs", "2000", "--seed", "7"]).expect(0).stdout;
        assert!(out.contains("2000 page pairs"), "{out}");
    }
}

#[test]
fn going_back_to_an_old_definition_copies_nothing_that_was_rewritten() {
    let (with, without) = ("(?P<first>[A-Z][a-z]+) [A-Z][a-z]+", "[A-Z][a-z]+ [A-Z][a-z]+");
    let one = |pattern: &str| format!("[[extractor]]\nname = 'person'\nkind = 'regex'\npattern = '{pattern}'\n");
    let w = workspace(&one(with));
    nights(&w);
    w.ratoon(&["run", "p.toml", "--snapshot", DAYS[1]]).expect(0);
    w.pipeline(&one(without));
    w.run();
    w.pipeline(&one(with));
    w.run();
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
    let schema = MentionSchema { label: Some(LabelColumn::Pattern), attributes: vec![("first".into(), false)] };
    let rows = mentions(&w, &schema, "person", DAYS[2]);
    assert!(!rows.is_empty() && rows.iter().all(|row| row.attributes[0].is_some()), "{rows:?}");
    // What was rewritten is found again by a backfill.
    w.ratoon(&["extract", "p.toml", "--backfill", DAYS[0]]).expect(0);
    assert!(mentions(&w, &schema, "person", DAYS[0]).iter().all(|row| row.attributes[0].is_some()));
}

#[test]
fn a_late_backfill_reaches_the_snapshots_after_it() {
    let extractors = format!("[plan]\nchoose = 'anchor'\n{EXTRACTORS}");
    let (late, early) = (workspace(""), workspace(&extractors));
    nights(&late);
    nights(&early);
    late.run();
    early.run();
    late.pipeline(&extractors);
    let dry = late.ratoon(&["run", "p.toml", "--dry-run"]).expect(0).stdout;
    assert!(dry.contains("extract 2024-01-03") && !dry.contains("extract 2024-01-02"), "{dry}");
    late.run();
    late.ratoon(&["extract", "p.toml", "--backfill", DAYS[0]]).expect(0);
    for extractor in ["person", "quoted", "topic", "talk"] {
        for day in DAYS {
            let of = |w: &Workspace| mentions(w, &schema(extractor), extractor, day);
            assert!(of(&late) == of(&early), "{extractor} {day}");
        }
    }
    assert_eq!(late.rows::<MentionDelta>(DAYS[2]), early.rows::<MentionDelta>(DAYS[2]));
}

/// A backfill that is killed leaves some snapshots with the new extractor and others without; the same command again
/// brings all that was copied from them up to date.
#[test]
fn a_backfill_that_is_killed_again_and_again_ends_as_one_that_is_not() {
    let word = |pattern: &str| format!("[[extractor]]\nname = 'word'\nkind = 'regex'\npattern = '{pattern}'\n");
    let nights = |w: &Workspace| {
        for night in 1..=8 {
            let pages: Vec<_> = (0..8)
                .map(|i| {
                    (
                        format!("p{i}"),
                        html("T", &format!("some words stay {i} and one is {}", night / (i % 4 + 1)), "p0"),
                    )
                })
                .collect();
            let pages: Vec<_> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
            w.snapshot(&format!("2024-01-0{night}"), &pages);
        }
        w.pipeline(&word("[a-z]{5,9}"));
        w.run();
        w.pipeline(&word("[a-z]{3,9}"));
    };
    let backfill = ["run", "p.toml", "--backfill", "2024-01-02"];
    let (whole, killed) = (Workspace::new(""), Workspace::new(""));
    nights(&whole);
    whole.ratoon(&backfill).expect(0);
    nights(&killed);
    killed.kill_at_many_points(&backfill, Duration::from_millis(2));
    assert!(whole.table_bytes() == killed.table_bytes());
}
