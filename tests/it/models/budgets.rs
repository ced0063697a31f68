//! Money: a budget is never exceeded, what it left is done later, and prices are told before.

use std::collections::BTreeMap;
use std::fs;

use ratoon::inside::extract::Status;
use ratoon::inside::model::MentionChange;
use ratoon::inside::tables::extract::{AnswerRow, Extraction, MentionDelta};
use ratoon::inside::tables::mentions::MentionRow;

use super::{DAYS, RULE, answers, billed, mentions, nights, with_model};
use crate::model_server::ModelServer;
use crate::workspace::Workspace;

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
