//! Answers that are kept, and models: each distinct unit is sent once, what was billed is what the tables say, and a
//! server's moods change nothing.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::time::Duration;

use ratoon::inside::extract::{LabelColumn, Status};
use ratoon::inside::model::{MentionChange, SnapshotId};
use ratoon::inside::store::parquet::Partition;
use ratoon::inside::tables::extract::{AnswerRow, Extraction, MentionDelta, MentionRow, MentionSchema};
use ratoon::inside::tables::plan::PlanCost;

use crate::model_server::{Asked, Manner, ModelServer, Tokens};
use crate::workspace::Workspace;

const RULE: &str = r"(?P<who>[A-Z][a-z]+ [A-Z][a-z]+) speaks(?: at (?P<time>[0-9]+))?";

/// A pipeline file with a model, and further keys of it.
fn with_model(model: &ModelServer, keys: &str) -> Workspace {
    let w = Workspace::new("");
    pipeline(&w, model, keys);
    w
}

fn pipeline(w: &Workspace, model: &ModelServer, keys: &str) {
    fs::write(w.path("event.md"), "Find who speaks: {attributes}.\n").unwrap();
    w.pipeline(&format!(
        "[[extractor]]\nname = 'event'\nkind = 'llm'\nendpoint = '{}'\nmodel = 'm'\nprompt = 'event.md'\n\
         attributes = {{ who = 'string', time = {{ type = 'string', optional = true }} }}\nblock_bytes = 120\n\
         price = {{ input = 1.0, output = 2.0 }}\n{keys}",
        model.endpoint()
    ));
}

fn line(i: usize) -> String {
    const FIRST: [&str; 7] = ["Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gil"];
    const LAST: [&str; 5] = ["Abel", "Brook", "Cole", "Dover", "Elm"];
    let (first, last) = (FIRST[i % 7], LAST[i / 7 % 5]);
    if i.is_multiple_of(3) {
        format!("{first} {last} speaks at {i}")
    } else {
        format!("{first} {last} speaks of {i} things")
    }
}

/// A menu that all pages have, then lines of their own.
fn page(own: &[usize]) -> String {
    let menu = (900..912).map(line).map(|line| format!("<li>{line}</li>")).collect::<String>();
    let lines = own.iter().map(|&i| format!("<p>{}</p>", line(i))).collect::<String>();
    format!("<html><head><title>T</title></head><body><ul>{menu}</ul>{lines}</body></html>")
}

const DAYS: [&str; 3] = ["2024-01-01", "2024-01-02", "2024-01-03"];

/// Three nights of twelve pages that share a menu; some lines come, go and move.
fn nights(w: &Workspace) {
    for (night, day) in DAYS.iter().enumerate() {
        let pages: Vec<(String, String)> = (0..12)
            .map(|p| {
                let mut own: Vec<usize> = (p * 20..p * 20 + 14).collect();
                if p % 4 == 1 {
                    own[3] += 300 * night;
                    own.rotate_left(night);
                }
                (format!("p{p}"), page(&own))
            })
            .collect();
        let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
        w.snapshot(day, &pages);
    }
}

fn schema() -> MentionSchema {
    MentionSchema { label: None::<LabelColumn>, attributes: vec![("who".into(), false), ("time".into(), false)] }
}

fn mentions(w: &Workspace, day: &str) -> Vec<MentionRow> {
    let file = w.store().partition_file("mentions/event", &SnapshotId::new(day).unwrap());
    let partition = Partition::open(&file).unwrap();
    partition.batches(&partition.all(), None).unwrap().iter().flat_map(|b| schema().decode(b).unwrap()).collect()
}

fn answers(w: &Workspace, extractor: &str, day: &str) -> Vec<AnswerRow> {
    let file = w.store().partition_file(&format!("answers/{extractor}"), &SnapshotId::new(day).unwrap());
    if file.exists() { Partition::open(&file).unwrap().all_rows().unwrap() } else { Vec::new() }
}

/// Mentions without where they come from.
fn found(w: &Workspace) -> Vec<(String, MentionRow)> {
    let since = SnapshotId::new("x").unwrap();
    let plain = |row: MentionRow| MentionRow { copied: false, since: since.clone(), ..row };
    DAYS.iter().flat_map(|day| mentions(w, day).into_iter().map(|row| ((*day).to_owned(), plain(row)))).collect()
}

/// Tables that must not depend on how answers came.
fn tables(w: &Workspace) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    w.table_bytes().into_iter().filter(|(path, _)| !path.starts_with("answers")).collect()
}

#[test]
fn each_distinct_unit_is_sent_once_over_all_pages_and_nights() {
    let model = ModelServer::start(RULE);
    let w = with_model(&model, "in_flight = 8\n");
    nights(&w);
    let mut known: HashSet<String> = HashSet::new();
    for day in DAYS {
        model.forget();
        w.ratoon(&["run", "p.toml", "--snapshot", day]).expect(0);
        let texts = model.texts();
        assert!(!texts.is_empty() && texts.iter().all(|(_, times)| *times == 1), "{texts:?}");
        assert!(texts.iter().all(|(text, _)| known.insert(text.clone())), "nothing is sent that an earlier night sent");
        let sent: usize = texts.iter().map(|(text, _)| text.len()).sum();
        let counted: i64 = w.rows::<Extraction>(day).iter().map(|row| row.bytes_extracted).sum();
        assert_eq!(i64::try_from(sent), Ok(counted), "{day}");
        let rows = answers(&w, "event", day);
        assert_eq!(rows.iter().map(|row| row.unit_bytes).sum::<i64>(), counted);
        let billed = model.totals().billed;
        let total = |of: fn(&AnswerRow) -> Option<i64>| rows.iter().filter_map(of).sum::<i64>();
        assert_eq!(total(|row| row.input_tokens), i64::try_from(billed.input).unwrap());
        assert_eq!(total(|row| row.output_tokens), i64::try_from(billed.output).unwrap());
    }
    // The menu's mentions are extracted on the first page that has them, and copied on all others.
    let first = mentions(&w, DAYS[0]);
    let menu = |row: &&MentionRow| row.text == line(900);
    assert_eq!(first.iter().filter(menu).count(), 12);
    assert_eq!(first.iter().filter(menu).filter(|row| !row.copied).count(), 1);
    assert!(mentions(&w, DAYS[2]).iter().filter(menu).all(|row| row.copied && row.since.as_str() == DAYS[0]));
    // What is kept outlives everything: no request is sent when all is done again, and the tables are the same.
    let before = tables(&w);
    model.forget();
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", DAYS[0]]).expect(0);
    assert_eq!(model.totals().requests, 0);
    assert!(tables(&w) == before);
    fs::rename(w.path("store/_meta/answers"), w.path("answers")).unwrap();
    fs::remove_dir_all(w.path("store")).unwrap();
    fs::create_dir_all(w.path("store/_meta")).unwrap();
    fs::rename(w.path("answers"), w.path("store/_meta/answers")).unwrap();
    w.run();
    assert_eq!(model.totals().requests, 0, "a store made again from its answers");
    // From scratch means: with the answers at hand.
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
    assert_eq!(model.totals().requests, 0);
    let expected = found(&w);
    assert!(expected.len() > 500, "{}", expected.len());
    for plan in ["none", "anchor"] {
        w.ratoon(&["run", "p.toml", "--force", "--snapshot", DAYS[0], "--plan", plan]).expect(0);
        assert!(found(&w) == expected, "{plan}");
    }
}

#[test]
fn the_tables_are_the_same_with_one_and_eight_in_flight_and_any_number_of_threads() {
    let model = ModelServer::start(RULE);
    let mut before = None;
    for (in_flight, threads) in [(1, "1"), (8, "1"), (8, "4")] {
        model.forget();
        let w = with_model(&model, &format!("in_flight = {in_flight}\n"));
        nights(&w);
        w.ratoon(&["run", "p.toml", "--threads", threads]).expect(0);
        assert!(model.totals().most_in_flight <= in_flight, "{:?}", model.totals());
        let tables = tables(&w);
        assert!(*before.get_or_insert_with(|| tables.clone()) == tables, "{in_flight} in flight, {threads} threads");
    }
    let slow = Duration::from_millis(30);
    model.behave(move |_| Manner::Slow(slow));
    model.forget();
    let w = with_model(&model, "in_flight = 8\n");
    nights(&w);
    w.ratoon(&["run", "p.toml", "--threads", "1"]).expect(0);
    assert_eq!(model.totals().most_in_flight, 8, "also on one thread");
}

#[test]
fn a_servers_moods_change_nothing_and_what_it_billed_is_what_the_tables_say() {
    let model = ModelServer::start(RULE);
    let good = with_model(&model, "");
    nights(&good);
    good.run();
    let expected = found(&good);
    type Mood = fn(&Asked) -> Manner;
    let moods: Vec<(&str, Mood)> = vec![
        ("429", |asked| match asked.attempt % 3 {
            1 => Manner::TooMany { retry_after: Some("0".into()) },
            2 if asked.draws(0.1) => Manner::TooMany { retry_after: None },
            _ => Manner::Good,
        }),
        ("500", |asked| if asked.attempt % 2 == 1 && asked.draws(0.3) { Manner::Fails(503) } else { Manner::Good }),
        ("unusable", |asked| match asked.attempt % 3 {
            1 if asked.draws(0.3) => Manner::CutAnswer,
            1 if asked.draws(0.5) => Manner::WrongJson,
            1 if asked.draws(0.6) => Manner::Refuses,
            2 if asked.draws(0.5) => Manner::Empty,
            2 if asked.draws(0.6) => Manner::WrongShape,
            _ => Manner::Good,
        }),
        ("odd", |asked| match asked.number % 6 {
            0 => Manner::Invented,
            1 if has_one_place_for_each(&asked.text) => Manner::Duplicates,
            2 => Manner::ClosesAfter,
            3 => Manner::Chunked,
            _ => Manner::Good,
        }),
        // A request over a connection that the server has closed was not answered badly: it costs nothing and counts for
        // nothing.
        ("closes", |_| Manner::ClosesOnNext),
        ("plain", |_| Manner::NoSchemas { fenced: true }),
    ];
    for (name, mood) in moods {
        model.behave(mood);
        model.forget();
        let w = with_model(&model, "in_flight = 8\n");
        nights(&w);
        w.run();
        assert!(found(&w) == expected, "{name}");
        let rows: Vec<AnswerRow> = DAYS.iter().flat_map(|day| answers(&w, "event", day)).collect();
        let billed = model.totals().billed;
        let total = |of: fn(&AnswerRow) -> Option<i64>| rows.iter().filter_map(of).sum::<i64>();
        assert_eq!(total(|row| row.input_tokens), i64::try_from(billed.input).unwrap(), "{name}");
        assert_eq!(total(|row| row.output_tokens), i64::try_from(billed.output).unwrap(), "{name}");
        if name == "odd" {
            let refused: i64 = w.rows::<Extraction>(DAYS[0]).iter().map(|row| row.refused).sum();
            assert!(refused > 0);
        }
    }
    // Resets, cut bodies and missing figures: nobody knows what they cost, so that what was reserved counts.
    let fresh = ModelServer::start(RULE);
    fresh.behave(|asked| match asked.attempt {
        1 if asked.draws(0.2) => Manner::Resets,
        1 if asked.draws(0.4) => Manner::CutBody,
        1 if asked.draws(0.6) => Manner::NoUsage,
        1 if asked.draws(0.7) => Manner::Oversized(6 << 20),
        1 if asked.draws(0.8) => Manner::WrongUsage(Tokens { input: u64::MAX / 4, output: u64::MAX / 4 }),
        _ => Manner::Good,
    });
    let w = with_model(&fresh, "");
    nights(&w);
    w.run();
    assert!(found(&w) == expected);
    let rows: Vec<AnswerRow> = DAYS.iter().flat_map(|day| answers(&w, "event", day)).collect();
    assert!(
        rows.iter().filter_map(|row| row.input_tokens).sum::<i64>()
            >= i64::try_from(fresh.totals().billed.input).unwrap()
    );
}

/// Whether every quote of the rule stands once in a text, so that a quote said twice has nowhere else to go.
fn has_one_place_for_each(text: &str) -> bool {
    let rule = regex::Regex::new(RULE).unwrap();
    rule.find_iter(text).all(|quote| text.matches(quote.as_str()).count() == 1)
}

#[test]
fn a_quote_said_twice_takes_another_place_where_there_is_one() {
    let model = ModelServer::start(RULE);
    let good = with_model(&model, "");
    nights(&good);
    good.run();
    let ambiguous = model.texts().into_iter().filter(|(text, _)| !has_one_place_for_each(text)).count();
    assert!(ambiguous > 0, "the pages have units in which a quote stands twice");
    model.behave(|_| Manner::Duplicates);
    let w = with_model(&model, "in_flight = 8\n");
    nights(&w);
    w.run();
    let mut twice = found(&w);
    let once = found(&good);
    assert!(once.iter().all(|row| twice.contains(row)), "what is said once is found");
    twice.retain(|row| !once.contains(row));
    let quoted: HashSet<(&str, &str)> = once.iter().map(|(_, row)| (&*row.url, &*row.text)).collect();
    assert!(!twice.is_empty() && twice.iter().all(|(_, row)| quoted.contains(&(&*row.url, &*row.text))), "{twice:?}");
}

#[test]
fn a_unit_that_is_never_answered_fails_its_pages_and_no_others() {
    let model = ModelServer::start(RULE);
    model.behave(|asked| if asked.text.contains("20 things") { Manner::WrongJson } else { Manner::Good });
    let w = with_model(&model, "");
    nights(&w);
    w.ratoon(&["run", "p.toml", "--snapshot", DAYS[0]]);
    let rows = w.rows::<Extraction>(DAYS[0]);
    let failed: Vec<&Extraction> = rows.iter().filter(|row| row.status != Status::Ok).collect();
    assert!(!failed.is_empty() && failed.len() < rows.len(), "{failed:?}");
    let asked: u64 = model.texts().iter().filter(|(text, _)| text.contains("20 things")).map(|(_, times)| times).sum();
    assert_eq!(asked % 3, 0, "each is asked three times");
    // When the server is well again only what failed is asked.
    model.behave(|_| Manner::Good);
    model.forget();
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", DAYS[0]]).expect(0);
    assert!(model.texts().iter().any(|(text, _)| text.contains("20 things")));
    // A server that refuses everybody is asked a few times, not once for every unit.
    let closed = ModelServer::start(RULE);
    closed.behave(|_| Manner::Fails(401));
    let w = with_model(&closed, "in_flight = 2\n");
    nights(&w);
    w.ratoon(&["run", "p.toml"]);
    assert!(closed.totals().requests <= 12, "{:?}", closed.totals());
}

#[test]
fn a_key_is_sent_and_stands_nowhere() {
    let model = ModelServer::start(RULE);
    model.behave(|asked| if asked.attempt == 1 && asked.draws(0.2) { Manner::Fails(500) } else { Manner::Good });
    let w = with_model(&model, "api_key_env = 'EVENT_KEY'\n");
    nights(&w);
    w.ratoon(&["run", "p.toml"]).expect(1).says("EVENT_KEY");
    let output = w.command(&["run", "p.toml", "-vv"]).env("EVENT_KEY", "s3cret-k3y").output().unwrap();
    assert!(output.status.success());
    assert!(model.log().iter().all(|entry| entry.asked.authorization.as_deref() == Some("Bearer s3cret-k3y")));
    let said = [output.stdout, output.stderr].concat();
    assert!(!String::from_utf8_lossy(&said).contains("s3cret-k3y"));
    for entry in walkdir::WalkDir::new(w.path("store")).into_iter().map(Result::unwrap).filter(|e| e.path().is_file()) {
        let bytes = fs::read(entry.path()).unwrap();
        assert!(memchr::memmem::find(&bytes, b"s3cret-k3y").is_none(), "{}", entry.path().display());
    }
}

/// What a server billed, in the prices of the pipeline file.
fn billed(model: &ModelServer) -> f64 {
    let Tokens { input, output } = model.totals().billed;
    (input as f64 + 2.0 * output as f64) / 1e6
}

#[test]
fn a_budget_is_never_exceeded_and_what_it_left_is_done_later() {
    let model = ModelServer::start(RULE);
    let whole = with_model(&model, "");
    nights(&whole);
    whole.run();
    let budget = billed(&model) * 0.4;
    model.forget();
    let keys = format!("in_flight = 8\nmax_tokens = 600\nbudget = {budget}\n");
    let w = with_model(&model, &keys);
    nights(&w);
    let mut runs = 0;
    loop {
        model.forget();
        let ended = w.ratoon(&["run", "p.toml"]);
        assert!(billed(&model) <= budget + 1e-12, "{} of {budget}", billed(&model));
        runs += 1;
        if ended.code == 0 {
            break;
        }
        assert_eq!(ended.code, 3, "{}", ended.stderr);
        assert!(ended.stderr.contains("deferred"), "{}", ended.stderr);
        let newest = w.rows::<Extraction>(DAYS[2]);
        assert!(newest.iter().any(|row| row.status == Status::Deferred && row.units_deferred > 0));
        assert!(runs < 40, "it goes on and on");
    }
    assert!(runs > 1);
    // The newest night is whole now; the older ones are when that is asked for.
    let text = |rows: Vec<MentionRow>| {
        rows.into_iter().map(|row| (row.url.to_string(), row.start, row.text)).collect::<Vec<_>>()
    };
    assert_eq!(text(mentions(&w, DAYS[2])), text(mentions(&whole, DAYS[2])));
    nothing_was_told_twice(&w);
    w.ratoon(&["run", "p.toml", "--backfill", DAYS[0]]);
    w.ratoon(&["run", "p.toml", "--backfill", DAYS[0]]);
    w.ratoon(&["run", "p.toml", "--backfill", DAYS[0]]).expect(0);
    for day in DAYS {
        assert_eq!(text(mentions(&w, day)), text(mentions(&whole, day)), "{day}");
    }
}

/// Nights whose budget left some units out.
pub(crate) fn deferred() -> (ModelServer, Workspace) {
    let model = ModelServer::start(RULE);
    let whole = with_model(&model, "");
    nights(&whole);
    whole.run();
    let budget = billed(&model) * 0.4;
    let w = with_model(&model, &format!("in_flight = 1\nmax_tokens = 600\nbudget = {budget}\n"));
    nights(&w);
    w.ratoon(&["run", "p.toml"]).expect(3).says("deferred");
    (model, w)
}

/// Whatever was told on the way: changes lead from what the first night had to what the newest has.
fn nothing_was_told_twice(w: &Workspace) {
    let mut sums: BTreeMap<(String, String), i64> = BTreeMap::new();
    let mut add = |url: &str, text: &str, n: i64| *sums.entry((url.to_owned(), text.to_owned())).or_insert(0) += n;
    mentions(w, DAYS[0]).iter().for_each(|row| add(&row.url, &row.text, 1));
    mentions(w, DAYS[2]).iter().for_each(|row| add(&row.url, &row.text, -1));
    for row in DAYS[1..].iter().flat_map(|day| w.rows::<MentionDelta>(day)) {
        add(&row.url, &row.text, if row.change == MentionChange::Added { 1 } else { -1 });
    }
    sums.retain(|_, sum| *sum != 0);
    assert_eq!(sums, BTreeMap::new());
}

#[test]
fn an_index_made_again_while_work_is_deferred_tells_no_addition_twice() {
    let model = ModelServer::start(RULE);
    let whole = with_model(&model, "");
    nights(&whole);
    whole.run();
    let budget = billed(&model) * 0.4;
    let stores = [true, false].map(|rebuilt| {
        let w = with_model(&model, &format!("in_flight = 1\nmax_tokens = 600\nbudget = {budget}\n"));
        nights(&w);
        for run in 0.. {
            let ended = w.ratoon(&["run", "p.toml"]);
            if ended.code == 0 {
                assert!(run > 0, "something was deferred");
                break;
            }
            assert_eq!(ended.code, 3, "{}", ended.stderr);
            assert!(run < 40, "it goes on and on");
            if rebuilt {
                fs::remove_dir_all(w.path("store/_meta/index")).unwrap();
            }
        }
        nothing_was_told_twice(&w);
        w
    });
    // What the tables say of a night does not depend on it either.
    let told = |w: &Workspace| {
        let mut rows: Vec<String> =
            DAYS.iter().flat_map(|day| w.rows::<MentionDelta>(day)).map(|row| format!("{row:?}")).collect();
        rows.sort();
        rows
    };
    assert_eq!(told(&stores[0]), told(&stores[1]));
}

#[test]
fn a_kill_loses_no_answer_and_spends_no_budget_twice() {
    let model = ModelServer::start(RULE);
    let whole = with_model(&model, "in_flight = 4\n");
    nights(&whole);
    whole.run();
    model.behave(|_| Manner::Slow(Duration::from_millis(3)));
    model.forget();
    let w = with_model(&model, "in_flight = 4\n");
    nights(&w);
    w.kill_at_many_points(&["run", "p.toml"], Duration::from_millis(40));
    w.run();
    // What a night cost, in `snapshots`, counts what the kills lost.
    let without_price =
        |w: &Workspace| tables(w).into_iter().filter(|(path, _)| !path.starts_with("snapshots")).collect::<Vec<_>>();
    let (disturbed, undisturbed) = (without_price(&w), without_price(&whole));
    let other = disturbed.iter().zip(&undisturbed).find(|(a, b)| a != b).map(|(a, b)| (&a.0, &b.0));
    assert_eq!((other, disturbed.len()), (None, undisturbed.len()), "the tables are those of an undisturbed run");
    // What was being asked when a kill came is asked again, and nothing else.
    let more: u64 = model.texts().iter().map(|(_, times)| times - 1).sum();
    assert!(more <= 4 * 200, "{more}");
    model.forget();
    let budget = 0.01;
    let w = with_model(&model, &format!("in_flight = 4\nmax_tokens = 600\nbudget = {budget}\n"));
    nights(&w);
    for attempt in 1..8 {
        let mut child = w.command(&["run", "p.toml", "-q"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(60 * attempt));
        let _ = child.kill();
        if child.wait().unwrap().code().is_some() {
            break;
        }
        assert!(billed(&model) <= budget, "a run that is killed and its continuation have one budget");
    }
}

/// Counts what it is asked in a file; finds capitalised words.
const WORKER: &str = r#"
import json, re, sys
for line in sys.stdin:
    request = json.loads(line)
    if "hello" in request:
        print(json.dumps({"name": "w", "version": "1", "fingerprint": "f", "unit": "block", "attributes": ["shown"]}), flush=True)
        continue
    with open("asked.jsonl", "a") as log:
        log.write(json.dumps([request["text"], request.get("title"), request["span"], request["edges"]]) + "\n")
    shown = (request.get("title") or "") + "|" + request.get("before", "")[-3:] + "|" + request.get("after", "")[:3]
    found = [{"start": m.start(), "end": m.end(), "attrs": {"shown": shown}} for m in re.finditer(r"[A-Z][a-z]+", request["text"])]
    print(json.dumps({"id": request["id"], "mentions": found}), flush=True)
"#;

/// The same, and it says what each answer cost: a token a byte, ten for the answer, and with `price` what that makes.
fn paid_worker(price: bool) -> String {
    let price = if price { ", \"price\": 0.001" } else { "" };
    let usage = format!("\"usage\": {{\"input_tokens\": len(request[\"text\"]), \"output_tokens\": 10{price}}}");
    WORKER.replace("\"mentions\": found}", &format!("\"mentions\": found, {usage}}}"))
}

#[test]
fn what_a_worker_states_that_it_cost_is_accounted() {
    let w = with_worker("");
    fs::write(w.path("worker.py"), paid_worker(true)).unwrap();
    nights(&w);
    w.run();
    let sent = asked(&w).len();
    let rows: Vec<AnswerRow> = DAYS.iter().flat_map(|day| answers(&w, "word", day)).collect();
    assert_eq!(rows.len(), sent);
    assert!(rows.iter().all(|row| row.input_tokens == Some(row.unit_bytes) && row.output_tokens == Some(10)));
    let price: f64 = rows.iter().filter_map(|row| row.price).sum();
    assert!((price - 0.001 * sent as f64).abs() < 1e-9, "{price}");
    let costs = |w: &Workspace| -> (f64, i64) {
        let rows: Vec<PlanCost> = DAYS.iter().flat_map(|day| w.rows::<PlanCost>(day)).collect();
        (rows.iter().filter_map(|row| row.price).sum(), rows.iter().filter_map(|row| row.output_tokens).sum())
    };
    assert!((costs(&w).0 - price).abs() < 1e-9);
    assert_eq!(costs(&w).1, 10 * sent as i64);
    let status: serde_json::Value =
        serde_json::from_str(&w.ratoon(&["status", "p.toml", "--json"]).expect(0).stdout).unwrap();
    let nights_price: f64 =
        status["snapshots"].as_array().unwrap().iter().filter_map(|night| night["price"].as_f64()).sum();
    assert!((nights_price - price).abs() < 1e-9, "{status}");
    // Answers that are not kept cost as well.
    let alone = with_worker("reuse = false\n");
    fs::write(alone.path("worker.py"), paid_worker(true)).unwrap();
    nights(&alone);
    alone.run();
    let sent = asked(&alone).len();
    assert!((costs(&alone).0 - 0.001 * sent as f64).abs() < 1e-9, "{:?} of {sent}", costs(&alone));
    assert_eq!(costs(&alone).1, 10 * sent as i64);
    // One that states nonsense is not believed.
    let mad = with_worker("");
    fs::write(mad.path("worker.py"), paid_worker(true).replace("0.001", "-1.0")).unwrap();
    nights(&mad);
    mad.ratoon(&["run", "p.toml"]).expect(3).says("below 0");
}

#[test]
fn the_budget_of_a_worker_is_held_and_what_it_left_is_done_later() {
    let price = "price = { input = 1.0, output = 2.0 }\nmax_tokens = 10\n";
    let whole = with_worker(price);
    fs::write(whole.path("worker.py"), paid_worker(false)).unwrap();
    nights(&whole);
    whole.run();
    let paid = |w: &Workspace| -> f64 {
        DAYS.iter().flat_map(|day| answers(w, "word", day)).filter_map(|row| row.price).sum()
    };
    let all = paid(&whole);
    let by_hand: i64 = DAYS.iter().flat_map(|day| answers(&whole, "word", day)).map(|row| row.unit_bytes + 20).sum();
    assert!((all - by_hand as f64 / 1e6).abs() < 1e-12, "{all} {by_hand}");
    let budget = 0.3 * all;
    let w = with_worker(&format!("{price}budget = {budget}\n"));
    fs::write(w.path("worker.py"), paid_worker(false)).unwrap();
    nights(&w);
    let (mut runs, mut before) = (0, 0.0);
    loop {
        let ended = w.ratoon(&["run", "p.toml", "--threads", "4"]);
        // Tables count what a night cost whenever it was asked; the difference is what this run paid.
        let (now, sent) = (paid(&w), asked(&w));
        assert!(now - before <= budget + 1e-12, "{now} after {before}, {budget} a run");
        before = now;
        runs += 1;
        if ended.code == 0 {
            break;
        }
        assert!(!sent.is_empty(), "every run gets on");
        ended.expect(3).says("deferred");
        assert!(runs < 40, "it goes on and on");
    }
    assert!(runs > 2, "{runs}");
    let rows = |w: &Workspace| -> Vec<(String, i64, i64)> {
        let schema = MentionSchema { label: None, attributes: vec![("shown".into(), false)] };
        let file = w.store().partition_file("mentions/word", &SnapshotId::new(DAYS[2]).unwrap());
        let partition = Partition::open(&file).unwrap();
        let rows = partition.batches(&partition.all(), None).unwrap();
        rows.iter()
            .flat_map(|b| schema.decode(b).unwrap())
            .map(|row| (row.url.to_string(), row.start, row.end))
            .collect()
    };
    assert_eq!(rows(&w), rows(&whole));
    for (keys, words) in [
        ("budget = 1.0\n", "price"),
        ("price = { input = 1.0, output = 2.0 }\nprice_per_mb = 1.0\n", "exclude"),
        ("max_tokens = 5\n", "price"),
        ("price_per_mb = 1.0\nbudget = 1.0\nreuse = false\n", "kept"),
    ] {
        with_worker(keys).ratoon(&["status", "p.toml"]).expect(2).says(words);
    }
}

#[test]
fn what_a_night_has_yet_to_ask_is_told_without_what_is_kept() {
    let model = ModelServer::start(RULE);
    let w = with_model(&model, "");
    nights(&w);
    let explained = |day: &str| -> serde_json::Value {
        let told = w.ratoon(&["plan", "p.toml", "--snapshot", day, "--explain", "--json"]).expect(0).stdout;
        serde_json::from_str(&told).unwrap()
    };
    for day in DAYS {
        let told = explained(day)["to_ask"][0].clone();
        assert_eq!(told["extractor"], "event");
        model.forget();
        w.ratoon(&["run", "p.toml", "--snapshot", day]).expect(0);
        let sent = model.texts();
        assert_eq!(told["units"], sent.len(), "{told}");
        assert_eq!(told["bytes"], sent.iter().map(|(text, _)| text.len()).sum::<usize>());
        let billed = billed(&model);
        assert!(told["most"].as_f64().unwrap() >= billed && told["price"].as_f64().unwrap() > 0.0, "{told} {billed}");
        assert_eq!(told["kept"].as_u64().unwrap() > 0, day != DAYS[0], "the menu is known from the second night on");
    }
    assert_eq!(explained(DAYS[2])["to_ask"], serde_json::json!([]), "all is answered");
    let text = w.ratoon(&["plan", "p.toml", "--snapshot", DAYS[1], "--explain"]).expect(0).stdout;
    assert!(!text.contains("no kept answer"), "{text}");
}

#[test]
fn audit_finds_a_worker_that_remembers_what_it_was_asked_before() {
    let w = with_worker("");
    nights(&w);
    w.run();
    let held = w.ratoon(&["audit", "p.toml", "--trials", "200"]).expect(0).stdout;
    assert!(held.contains("word") && held.contains("200 trials"), "{held}");
    // One that leaves out what it has found before.
    let forgetful = WORKER
        .replace("import json, re, sys", "import json, re, sys\nseen = set()")
        .replace("    print(json.dumps({\"id\"", "    found = [f for f in found if not (request[\"text\"][f[\"start\"]:f[\"end\"]] in seen or seen.add(request[\"text\"][f[\"start\"]:f[\"end\"]]))]\n    print(json.dumps({\"id\"");
    fs::write(w.path("worker.py"), forgetful).unwrap();
    w.ratoon(&["audit", "p.toml", "--trials", "200"]).expect(1);
}

fn with_worker(keys: &str) -> Workspace {
    let w = Workspace::new(&format!(
        "[[extractor]]\nname = 'word'\nkind = 'command'\ncommand = ['python3', 'worker.py']\nunit = 'block'\n\
         block_bytes = 120\n{keys}"
    ));
    fs::write(w.path("worker.py"), WORKER).unwrap();
    w
}

fn asked(w: &Workspace) -> Vec<String> {
    let text = fs::read_to_string(w.path("asked.jsonl")).unwrap_or_default();
    let _ = fs::remove_file(w.path("asked.jsonl"));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_worker_is_sent_each_unit_once_and_answers_serve_every_night() {
    let w = with_worker("");
    nights(&w);
    w.ratoon(&["run", "p.toml", "--threads", "4"]).expect(0);
    let sent = asked(&w);
    let distinct: HashSet<&String> = sent.iter().collect();
    assert_eq!(distinct.len(), sent.len(), "no unit is sent twice");
    let bytes =
        |line: &String| serde_json::from_str::<(String, Option<String>, [u32; 2], [bool; 2])>(line).unwrap().0.len();
    let sent_bytes: usize = sent.iter().map(bytes).sum();
    let counted: i64 = DAYS.iter().flat_map(|day| w.rows::<Extraction>(day)).map(|row| row.bytes_extracted).sum();
    assert_eq!(i64::try_from(sent_bytes), Ok(counted));
    let before = tables(&w);
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", DAYS[0], "--threads", "1"]).expect(0);
    assert!(asked(&w).is_empty() && tables(&w) == before);
    // To verify it, it is asked anew, and nothing of that is kept.
    let log = fs::read(w.path("store/_meta/answers/word.log")).unwrap();
    w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
    assert!(!asked(&w).is_empty());
    assert!(fs::read(w.path("store/_meta/answers/word.log")).unwrap() == log);
    // Without reuse units are still copied from the old page, but not from other pages.
    let alone = with_worker("reuse = false\n");
    nights(&alone);
    alone.run();
    assert!(asked(&alone).len() > sent.len());
    assert!(!alone.path("store/_meta/answers/word.log").exists());
    // Answers that no kept text needs go when that is asked for, and only those.
    w.ratoon(&["prune", "p.toml", "--before", DAYS[2], "--answers"]).expect(0);
    assert!(fs::metadata(w.path("store/_meta/answers/word.log")).unwrap().len() < log.len() as u64);
    asked(&w);
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", DAYS[2], "--discard-history"]).expect(0);
    assert!(asked(&w).is_empty(), "what is kept needs no question");
}

#[test]
fn context_and_title_belong_to_a_unit() {
    let night = |w: &Workspace, day: &str, title: &str, own: &[usize]| {
        w.snapshot(day, &[("p", &page(own).replace("<title>T", &format!("<title>{title}")))]);
    };
    let own: Vec<usize> = (0..40).collect();
    let mut edited = own.clone();
    edited[20] = 500;
    let run = |keys: &str| {
        let w = with_worker(keys);
        night(&w, DAYS[0], "One", &own);
        night(&w, DAYS[1], "One", &edited);
        night(&w, DAYS[2], "Two", &edited);
        let mut sent = Vec::new();
        for day in DAYS {
            w.ratoon(&["run", "p.toml", "--snapshot", day]).expect(0);
            sent.push(asked(&w).len());
            w.ratoon(&["verify", "p.toml", "--all"]).expect(0);
            asked(&w);
        }
        sent
    };
    let (plain, context, title) = (run(""), run("context_blocks = 1\n"), run("title = true\n"));
    assert!(plain[1] < context[1] && context[1] < context[0], "{plain:?} {context:?}");
    assert_eq!((plain[2], context[2]), (0, 0), "a title that is not shown does not matter");
    assert_eq!(title[1], plain[1]);
    assert!(title[2] + 3 > title[0], "one that is shown sends the page again: {title:?}");
}

#[test]
fn try_shows_what_is_sent_and_found_and_writes_nothing() {
    let model = ModelServer::start(RULE);
    let w = with_model(&model, "");
    nights(&w);
    w.ratoon(&["ingest", "p.toml"]).expect(0);
    let before = w.table_bytes();
    let shown = w.ratoon(&["try", "p.toml", "http://site.test/p1", "--extractor", "event", "--raw"]).expect(0).stdout;
    assert!(shown.contains("speaks") && shown.contains("\"mentions\""), "{shown}");
    assert!(model.totals().requests > 0);
    assert!(w.table_bytes() == before && !w.path("store/_meta/answers/event.log").exists());
    w.run();
    model.forget();
    w.ratoon(&["try", "p.toml", "http://site.test/p1"]).expect(0);
    assert_eq!(model.totals().requests, 0, "kept answers are shown");
    w.ratoon(&["try", "p.toml", "http://site.test/none"]).expect(1).says("no page");
    w.ratoon(&["try", "p.toml", "http://site.test/p1", "--extractor", "evnt"]).expect(2).says("event");
}

#[test]
fn the_price_of_a_night_is_told_before_it_runs() {
    let model = ModelServer::start(RULE);
    let w = with_model(&model, "");
    nights(&w);
    let told = w.ratoon(&["plan", "p.toml", "--snapshot", DAYS[0], "--explain"]).expect(0).stdout;
    assert_eq!(model.totals().requests, 0);
    assert!(told.contains("price"), "{told}");
    w.run();
    let rows: Vec<AnswerRow> = DAYS.iter().flat_map(|day| answers(&w, "event", day)).collect();
    let price: f64 = rows.iter().filter_map(|row| row.price).sum();
    assert!((price - billed(&model)).abs() < 1e-9, "{price} {}", billed(&model));
    let status = w.ratoon(&["status", "p.toml", "--json"]).expect(0).stdout;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let of_nights: f64 =
        status["snapshots"].as_array().unwrap().iter().filter_map(|night| night["price"].as_f64()).sum();
    assert!((of_nights - price).abs() < 1e-9, "{status}");
}

#[test]
fn mistakes_in_a_models_keys_are_told() {
    let w = Workspace::new("");
    fs::write(w.path("p.md"), "Find things.").unwrap();
    let base = "[[extractor]]\nname = 'e'\nkind = 'llm'\n";
    let cases = [
        ("", "endpoint"),
        ("endpoint = 'x'\nmodel = 'm'\nprompt = 'p.md'\n", "http"),
        ("endpoint = 'http://h/v1'\nmodel = 'm'\n", "prompt"),
        ("endpoint = 'http://h/v1'\nmodel = 'm'\nprompt = 'none.md'\n", "none.md"),
        ("endpoint = 'http://h/v1'\nmodel = 'm'\nprompt = 'p.md'\nunit = 'window'\n", "block"),
        ("endpoint = 'http://h/v1'\nmodel = 'm'\nprompt = 'p.md'\nbudget = 1.0\n", "price"),
        ("endpoint = 'http://h/v1'\nmodel = 'm'\nprompt = 'p.md'\napi_key_env = 'sk-abc-123'\n", "never the key"),
        ("endpoint = 'http://h/v1'\nmodel = 'm'\nprompt = 'p.md'\nattributes = { a = 'int' }\n", "string"),
        ("endpoint = 'http://h/v1'\nmodel = 'm'\nprompt = 'p.md'\nunit = 'line'\nblock_bytes = 100\n", "block"),
        ("endpoint = 'http://h/v1'\nmodel = 'm'\nprompt = 'p.md'\npattern = 'x'\n", "pattern"),
    ];
    for (keys, words) in cases {
        w.pipeline(&format!("{base}{keys}"));
        w.ratoon(&["status", "p.toml"]).expect(2).says(words);
    }
}
