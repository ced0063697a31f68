//! Requests and answers: each distinct unit is sent once, and a server's moods change nothing.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use ratoon::inside::extract::Status;
use ratoon::inside::tables::extract::{AnswerRow, Extraction};
use ratoon::inside::tables::mentions::MentionRow;

use super::{DAYS, RULE, answers, billed, found, line, mentions, nights, tables, with_model};
use crate::model_server::{Asked, Manner, ModelServer, Tokens};
use crate::workspace::Workspace;

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
