//! A disk that fills up while answers are kept: nobody is asked what cannot be kept, and what was paid for is not lost.

use std::fs;

use super::workers::{asked, with_worker};
use super::{DAYS, RULE, nights, tables, with_model};
use crate::mishaps::with_small_files;
use crate::model_server::ModelServer;
use crate::workspace::{Ended, Workspace};

/// A limit of the size of files under which the last quarter of a log finds no room. What is written before it is smaller.
fn limit(quiet: &Workspace, log: &str) -> u64 {
    fs::metadata(quiet.path(log)).unwrap().len() * 3 / 4
}

#[track_caller]
fn is_told(ended: &Ended, log: &str) {
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains(log) && ended.stderr.contains("too large"), "{}", ended.stderr);
}

#[test]
fn workers_are_not_asked_again_and_again_when_their_answers_find_no_room() {
    const LOG: &str = "store/_meta/answers/word.log";
    for threads in ["1", "4"] {
        let (quiet, w) = (with_worker(""), with_worker(""));
        nights(&quiet);
        nights(&w);
        quiet.run();
        let whole = asked(&quiet).len();
        let ended = with_small_files(&w, limit(&quiet, LOG), &["run", "p.toml", "-q", "--threads", threads]);
        is_told(&ended, LOG);
        let first = asked(&w).len();
        w.run();
        let second = asked(&w).len();
        // What a page is asked at once is lost when its first answer finds no room.
        assert!(first < whole && first + second < whole + 40, "{first} and {second} of {whole}");
        assert_eq!(tables(&w), tables(&quiet));
    }
}

#[test]
fn a_model_is_not_asked_what_finds_no_room() {
    const LOG: &str = "store/_meta/answers/event.log";
    for keys in ["in_flight = 4", "in_flight = 4\nbudget = 1.0", "in_flight = 1"] {
        let (model, calm) = (ModelServer::start(RULE), ModelServer::start(RULE));
        let (quiet, w) = (with_model(&calm, keys), with_model(&model, keys));
        nights(&quiet);
        nights(&w);
        quiet.run();
        is_told(&with_small_files(&w, limit(&quiet, LOG), &["run", "p.toml", "-q"]), LOG);
        w.run();
        let (requests, whole) = (model.log().len(), calm.log().len());
        assert!(requests <= whole + 4, "{requests} of {whole}: only what was in flight is asked again");
        assert_eq!(tables(&w), tables(&quiet));
    }
}

#[test]
fn a_batch_stays_open_until_all_its_answers_have_found_room() {
    const LOG: &str = "store/_meta/answers/event.log";
    let keys = "mode = 'batch'";
    let (model, calm) = (ModelServer::start(RULE), ModelServer::start(RULE));
    let (quiet, w) = (with_model(&calm, keys), with_model(&model, keys));
    nights(&quiet);
    nights(&w);
    quiet.run();
    w.run();
    quiet.run();
    is_told(&with_small_files(&w, limit(&quiet, LOG), &["run", "p.toml", "-q"]), LOG);
    w.run();
    assert_eq!(tables(&w), tables(&quiet));
    assert_eq!(model.batches_made(), calm.batches_made());
    for day in DAYS {
        assert_eq!(super::answers(&w, "event", day).len(), super::answers(&quiet, "event", day).len(), "{day}");
    }
}
