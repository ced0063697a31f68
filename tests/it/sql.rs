//! `ratoon sql`: what holds at a snapshot, asked in one line.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::workspace::{Ended, Workspace};

/// Writes a partial crawl: pages with their HTML, and URLs that answered with a status only.
fn crawl(w: &Workspace, id: &str, pages: &[(&str, &str)], statuses: &[(&str, u16)]) {
    w.snapshot(id, pages);
    let manifest = w.path("snapshots").join(id).join("manifest.jsonl");
    let mut lines = std::fs::read_to_string(&manifest).unwrap();
    for (path, status) in statuses {
        writeln!(lines, "{}", json!({"url": format!("http://site.test/{path}"), "status": status})).unwrap();
    }
    std::fs::write(manifest, lines).unwrap();
}

/// Twelve pages with rooms and links; then a poll that changes one, a poll that finds one gone, and a crawl of nearly all.
pub(crate) fn polled() -> Workspace {
    let w = Workspace::new(
        "coverage = 'partial'\n[[extractor]]\nname = 'room'\nkind = 'regex'\npatterns = ['Room (?P<number>[0-9]+)']\n\
         [[query]]\nname = 'next'\nlinks = ['a -> b']\n",
    );
    let page = |i: usize, room: usize| {
        format!("<title>P{i}</title><p>Prof. Ágnes sits in Room {room}</p><a href='/p{}'>next</a>", i + 1)
    };
    let html: Vec<(String, String)> = (0..12).map(|i| (format!("p{i}"), page(i, 100 + i))).collect();
    let all: Vec<(&str, &str)> = html.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot("2024-01-01", &all);
    crawl(&w, "2024-01-02", &[("p1", &page(1, 201))], &[]);
    crawl(&w, "2024-01-03", &[("p2", "<title>P2</title><p>nothing here</p>")], &[("p3", 404)]);
    let most: Vec<(&str, &str)> = all.iter().copied().filter(|(path, _)| !["p1", "p3"].contains(path)).collect();
    crawl(&w, "2024-01-04", &most, &[]);
    w.run();
    w
}

fn rows(w: &Workspace, at: &str, query: &str) -> Vec<Value> {
    let ended = w.ratoon(&["sql", "p.toml", "--at", at, "--format", "json", query]).expect(0);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

#[test]
fn tables_are_asked_as_they_stood_at_a_snapshot() {
    let w = polled();
    let pages = |at: &str| rows(&w, at, "select count(*) as n, count(text) as texts from pages")[0].clone();
    assert_eq!(pages("2024-01-01"), json!({"n": 12, "texts": 12}));
    assert_eq!(pages("2024-01-02"), json!({"n": 12, "texts": 12}));
    assert_eq!(pages("2024-01-03"), json!({"n": 11, "texts": 11}));
    assert_eq!(pages("2024-01-04"), json!({"n": 11, "texts": 11}));
    let rooms = |at: &str| {
        let found = rows(&w, at, "select number.text as room from mentions_room order by room");
        found.iter().map(|row| row["room"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(rooms("2024-01-01"), "100 101 102 103 104 105 106 107 108 109 110 111");
    assert_eq!(rooms("2024-01-02"), "100 102 103 104 105 106 107 108 109 110 111 201");
    assert_eq!(rooms("2024-01-03"), "100 104 105 106 107 108 109 110 111 201");
    assert_eq!(rooms("2024-01-04"), "100 102 104 105 106 107 108 109 110 111 201");
    // One extraction and one link a page, wherever their rows lie; a page without a link has none.
    for (at, links) in [("2024-01-01", 12), ("2024-01-02", 12), ("2024-01-03", 10), ("2024-01-04", 11)] {
        let joined = "select count(*) as n from pages p join extractions e on p.url = e.url";
        assert_eq!(rows(&w, at, joined)[0]["n"], pages(at)["n"], "{at}");
        assert_eq!(rows(&w, at, "select count(*) as n from links")[0]["n"], links, "{at}");
    }
    // The tuples of a query and their links, from whole partitions and what changed since.
    for (at, tuples) in [("2024-01-01", 11), ("2024-01-02", 11), ("2024-01-03", 9), ("2024-01-04", 9)] {
        let counted = rows(&w, at, "select count(distinct tuple) as n, count(*) as nodes from web_tuples_next");
        assert_eq!(counted, [json!({"n": tuples, "nodes": 2 * tuples})], "{at}");
        assert_eq!(rows(&w, at, "select count(*) as n from web_links_next")[0]["n"], tuples, "{at}");
    }
    // Offsets count bytes, and a deleted page is a row of its own where all rows are asked for.
    let sliced =
        "select slice_bytes(p.text, m.start, end) as cut, m.text from mentions_room m join pages p on m.url = p.url";
    assert!(rows(&w, "2024-01-04", sliced).iter().all(|row| row["cut"] == row["text"]));
    // Wherever in a query they are cut.
    let of = "from mentions_room m join pages p on m.url = p.url";
    let cut = format!("select m.url, m.text, slice_bytes(p.text, m.start, m.end) as cut {of}");
    for query in [
        format!("select * from ({cut}) c where c.cut = c.text"),
        format!("with c as ({cut}), d as (select url, cut, text from c) select * from d where cut = text"),
        format!("with c(a, b, cut) as ({cut}) select a as url, b as text, cut from c"),
        format!("select m.url, m.text {of} where slice_bytes(p.text, m.start, m.end) = m.text"),
        format!("select url, text from mentions_room where url in (select url from ({cut}) c where cut = text)"),
        format!(
            "{cut} where m.url < 'http://site.test/p5' union all {cut} where m.url >= 'http://site.test/p5' order by url"
        ),
        format!("select c.url, count(*) as n from ({cut}) c group by c.url"),
    ] {
        let found = rows(&w, "2024-01-04", &query);
        assert_eq!(found.len(), 11, "{query}");
        assert!(found.iter().all(|row| row.get("cut").is_none_or(|cut| *cut == row["text"])), "{query}: {found:?}");
    }
    let deleted = rows(&w, "2024-01-04", "select snapshot, url, text from pages_all where change = 'deleted'");
    assert_eq!(deleted, [json!({"snapshot": "2024-01-03", "url": "http://site.test/p3", "text": null})]);
    // Events are those up to the snapshot, and source tables have what is not gone.
    assert_eq!(rows(&w, "2024-01-02", "select max(snapshot) as s from captures")[0]["s"], "2024-01-02");
    let gone = "select count(*) as n from schedules where source = 'http://site.test/p3'";
    assert_eq!(rows(&w, "2024-01-02", gone)[0]["n"], 1);
    assert_eq!(rows(&w, "2024-01-03", gone)[0]["n"], 0);
}

#[test]
fn every_condition_of_a_join_counts() {
    let w = polled();
    let n = |query: &str| rows(&w, "2024-01-01", query)[0]["n"].clone();
    let of = "from pages p join mentions_room m on p.url = m.url";
    for (condition, expected) in [
        ("m.number.text = '105'", 1),
        ("m.start - m.end < 0 and abs(m.start - m.end) > 100", 0),
        ("p.url > 'http://site.test/p5' and p.title = p.title", 4),
        ("(m.number.text = '105' or p.title = 'P7')", 2),
        ("slice_bytes(p.text, m.start, m.end) = m.text and m.number.text < '103'", 3),
    ] {
        assert_eq!(n(&format!("select count(*) as n {of} and {condition}")), expected, "{condition}");
        let inner =
            format!("with x as (select m.url {of} and {condition}) select count(*) as n from (select * from x) y");
        assert_eq!(n(&inner), expected, "{inner}");
    }
    let pairs = "select count(*) as n from mentions_room a join mentions_room b on a.number.text < b.number.text";
    assert_eq!(n(pairs), 66);
    let left = "select count(*) as n from pages p left join mentions_room m on p.url = m.url and m.number.text = '105'";
    let ended = w.ratoon(&["sql", "p.toml", left]).expect(2);
    assert!(ended.stderr.contains("`m.number.text = '105'` in ON of left join"), "{}", ended.stderr);
    assert!(ended.stderr.contains("left join (select * from … where …) m"), "{}", ended.stderr);
    let first = "(select url from mentions_room where number.text = '105') m";
    assert_eq!(n(&format!("select count(*) as n from pages p left join {first} on p.url = m.url")), 12);
}

#[test]
fn a_query_may_come_from_stdin_and_go_to_csv_and_parquet() {
    let w = polled();
    let mut child = w
        .command(&["sql", "store", "-", "--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"select snapshot, pages\nfrom snapshots order by 1 limit 2").unwrap();
    let ended = Ended::of(&child.wait_with_output().unwrap()).expect(0);
    assert_eq!(ended.stdout, "snapshot,pages\n2024-01-01,12\n2024-01-02,12\n");
    w.ratoon(&["sql", "p.toml", "select * from mentions_room", "--format", "parquet", "--out", "rooms.parquet"])
        .expect(0);
    assert!(std::fs::read(w.path("rooms.parquet")).unwrap().starts_with(b"PAR1"));
    let table =
        w.ratoon(&["sql", "p.toml", "select snapshot, whole from snapshots order by snapshot"]).expect(0).stdout;
    assert_eq!(table, "snapshot    whole\n2024-01-01  true\n2024-01-02  false\n2024-01-03  false\n2024-01-04  true\n");
}

#[test]
fn a_wrong_name_is_told_with_the_right_one_and_nothing_is_written() {
    let w = polled();
    let before = w.table_bytes();
    for (query, said) in [
        ("select * from page", "no table page; did you mean pages?"),
        ("select * from mentions_rooms", "did you mean mentions_room?"),
        ("select txt from pages", "no column txt; did you mean text?"),
        ("select p.urls from pages p", "no column urls; did you mean url?"),
        ("delete from pages", "only questions"),
        ("describe page", "no table page; did you mean pages?"),
        ("describe", "only questions"),
        ("select (select count(*) from pages) as n", "cross join"),
        ("select url from pages where url = (select max(url) from pages)", "cross join"),
        ("select change from pages group by change order by count(*) desc", "select what rows are ordered by"),
        ("select", "sql parser error"),
        ("select 1; select 2", "one statement"),
        ("", "no query"),
    ] {
        let ended = w.ratoon(&["sql", "p.toml", query]).expect(2);
        assert!(
            ended.stderr.contains(said) || said == "one statement" || said == "sql parser error",
            "{query}: {}",
            ended.stderr
        );
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    let columns = rows(&w, "2024-01-04", "Describe mentions_room;");
    assert_eq!(columns[0], json!({"column": "snapshot", "type": "str"}));
    assert!(columns.iter().any(|row| row["column"] == "number" && row["type"].as_str().unwrap().starts_with("struct")));
    w.ratoon(&["sql", "p.toml", "--at", "2024-01-09", "select 1"]).expect(2).says("2024-01-09");
    w.ratoon(&["sql", "snapshots", "select 1"]).expect(2).says("is no store");
    assert_eq!(w.table_bytes(), before);
}
