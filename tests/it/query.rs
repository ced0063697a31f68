//! Queries: web tables, and what changed in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;

use ratoon::inside::model::{NodeVersion, SnapshotId, TupleChange, WebJoin};
use ratoon::inside::store::parquet::Partition;
use ratoon::inside::tables::delta::{
    Alert, TupleDelta, TupleLinkDelta, WebJoinRow, WebLinkRow, WebSchemaRow, WebTupleRow,
};
use ratoon::inside::tables::ingest::Page;
use ratoon::inside::tables::record::Record;

use crate::workspace::{Workspace, project};

fn rows<R: Record>(w: &Workspace, table: &str, snapshot: &str) -> Vec<R> {
    let id = SnapshotId::new(snapshot).unwrap();
    let partition = Partition::open(&w.store().partition_file(table, &id)).unwrap();
    partition.all_rows::<R>().unwrap()
}

/// The running example of the paper, on the sample data.
fn drugs() -> Workspace {
    Workspace::sample("drugs")
}

/// URL to the paper's name of the page.
fn paper_names() -> BTreeMap<String, String> {
    let truth = fs::read_to_string(project().join("sample_data/drugs_truth/nodes.csv")).unwrap();
    let line = |line: &str| {
        let mut cells = line.split(',');
        let node = cells.next().unwrap().to_owned();
        (cells.next().unwrap().to_owned(), node)
    };
    truth.lines().skip(1).map(line).collect()
}

fn tuples<'a>(rows: impl IntoIterator<Item = &'a TupleDelta>) -> BTreeSet<String> {
    rows.into_iter().map(|row| row.tuple.to_string()).collect()
}

#[test]
fn the_paper_s_example_gives_the_paper_s_result() {
    let w = drugs();
    w.ratoon(&["delta", "p.toml", "--keep-joins"]).expect(0);
    let (january, february) = ("2001-01-15", "2001-02-15");
    let names = paper_names();
    let nodes = |snapshot: &str| -> BTreeMap<String, String> {
        let rows = rows::<WebTupleRow>(&w, "web_tuples/drugs", snapshot).into_iter();
        rows.map(|row| (names[&row.url].clone(), row.content_digest.to_string())).collect()
    };
    let (old, new) = (nodes(january), nodes(february));
    let set = |ids: &str| ids.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
    let of = |keep: &dyn Fn(&String) -> bool| {
        old.keys().chain(new.keys()).filter(|id| keep(id)).cloned().collect::<BTreeSet<String>>()
    };
    let both = |id: &String| old.contains_key(id) && new.contains_key(id);
    assert_eq!(of(&|id| both(id) && old[id] == new[id]), set("b0 b2 u0 u1 d0 d6 d1 k0 k1 k7"));
    assert_eq!(of(&|id| !old.contains_key(id)), set("k4 u9 k8 d8 d7 u3 u12 d9 k9 u10 u11 d10 k10"));
    assert_eq!(of(&|id| !new.contains_key(id)), set("b3 u4 u5 u6 u8 d4 d5 d12 k5 k6 k12"));
    assert_eq!(of(&|id| both(id) && old[id] != new[id]), set("a0 b1 d2 k2 u2 d3 k3 b4 u7"));

    assert_eq!(w.rows::<TupleDelta>(january), []);
    let deltas = w.rows::<TupleDelta>(february);
    let kind = |kind: &str| tuples(deltas.iter().filter(|row| row.delta.as_str() == kind));
    assert_eq!((kind("plus").len(), kind("minus").len(), kind("modified").len()), (4, 4, 5));
    assert_eq!((kind("relinked_new").len(), kind("relinked_old").len()), (0, 0));
    // Every node is annotated as its set says.
    for row in &deltas {
        let id = &names[&row.url];
        let expected = match (old.get(id), new.get(id)) {
            (None, _) => "added",
            (_, None) => "deleted",
            (Some(a), Some(b)) => {
                if a == b {
                    "unchanged"
                } else {
                    "modified"
                }
            }
        };
        assert_eq!(row.change.as_str(), expected, "{id}");
    }
    // Niacin was there before, but not in the table.
    let pages: BTreeSet<String> = w
        .rows::<ratoon::inside::tables::ingest::Page>(january)
        .into_iter()
        .map(|page| names.get(&page.url).cloned().unwrap_or_default())
        .collect();
    assert!(["u3", "k4"].iter().all(|id| pages.contains(*id) && !old.contains_key(*id)));
    let links = rows::<WebLinkRow>(&w, "web_links/drugs", february);
    assert!(
        links.iter().any(|row| row.from_node == "u"
            && row.to_node == "d"
            && row.label.to_lowercase().starts_with("side effects"))
    );
    let joins = rows::<WebJoinRow>(&w, "web_joins/drugs", february);
    assert!(
        joins.iter().any(|row| row.join == WebJoin::Joined) && joins.iter().any(|row| row.join == WebJoin::LeftOuter)
    );
    // A joined tuple has the nodes and links of both tuples; the front page changed, what did not stands there once.
    let pair = joins.iter().find(|row| row.join == WebJoin::Joined).map(|row| (row.old_tuple, row.tuple));
    let joined: Vec<&WebJoinRow> = joins.iter().filter(|row| Some((row.old_tuple, row.tuple)) == pair).collect();
    let front = joined.iter().filter(|row| names[&row.url] == "a0" && row.to_node.is_none());
    assert_eq!(front.map(|row| row.version.as_str()).collect::<Vec<_>>(), ["old", "new"]);
    assert!(joined.iter().any(|row| row.version == NodeVersion::Both && row.content_digest.is_some()));
    assert!(joined.iter().any(|row| row.to_url.is_some() && row.label.is_some() && row.kind.is_some()));
    links_of_the_paper(&w, &names);
    let pool = w.rows::<WebSchemaRow>(february);
    assert_eq!(pool.iter().map(|row| row.tuples).sum::<i64>(), 9, "{pool:?}");
    assert!(pool.iter().all(|row| row.query == "drugs" && row.definition.contains("side effects*")));
    let schema: serde_json::Value =
        serde_json::from_slice(&fs::read(w.path("store/_meta/queries/drugs.json")).unwrap()).unwrap();
    assert_eq!(schema["query"]["name"], "drugs");
    // The watch tells of what came.
    let alerts = w.rows::<Alert>(february);
    assert_eq!(alerts.len(), 4);
    assert!(alerts.iter().all(|alert| alert.kind.as_str() == "tuple_plus" && alert.tuple.is_some()));
    // The same of any two snapshots, and backwards.
    let counts = |from: &str, to: &str| {
        let json = w.ratoon(&["delta", "p.toml", "--from", from, "--to", to, "--json"]).expect(0).stdout;
        serde_json::from_str::<serde_json::Value>(&json).unwrap()["counts"]["tuples"].clone()
    };
    assert_eq!(counts(january, february), serde_json::json!({"plus": 4, "minus": 4, "modified": 5}));
    assert_eq!(counts(february, january), serde_json::json!({"plus": 4, "minus": 4, "modified": 5}));
}

/// The links of the paper's delta tuples: Vasomax was told by another site, and is told by this one now.
fn links_of_the_paper(w: &Workspace, names: &BTreeMap<String, String>) {
    let links = w.rows::<TupleLinkDelta>("2001-02-15");
    let found = |from: &str, to: &str| -> BTreeSet<(&str, &str, &str)> {
        let ends = links.iter().filter(|row| names[&row.from] == from && names[&row.to] == to);
        ends.map(|row| (row.delta.as_str(), row.change.as_str(), row.kind.as_str())).collect()
    };
    assert_eq!(found("b4", "u4"), BTreeSet::from([("minus", "deleted", "global")]));
    assert_eq!(found("b4", "u9"), BTreeSet::from([("plus", "added", "local")]));
    assert_eq!(found("u7", "u8"), BTreeSet::from([("minus", "deleted", "local"), ("modified", "deleted", "local")]));
    assert_eq!(found("u0", "d0"), BTreeSet::from([("modified", "unchanged", "local")]));
    let deltas = w.rows::<TupleDelta>("2001-02-15");
    let tuples = |kind: TupleChange| -> BTreeSet<String> {
        deltas.iter().filter(|row| row.delta == kind).map(|row| row.tuple.to_string()).collect()
    };
    for kind in [TupleChange::Plus, TupleChange::Minus, TupleChange::Modified] {
        let with_links = links.iter().filter(|row| row.delta == kind).map(|row| row.tuple.to_string());
        assert_eq!(with_links.collect::<BTreeSet<_>>(), tuples(kind));
    }
}

/// Old table and all five kinds rebuild the new table.
#[test]
fn deltas_rebuild_the_new_web_table() {
    let w = drugs();
    w.run();
    let table = |snapshot: &str| -> BTreeMap<String, BTreeSet<(String, String, String)>> {
        let mut tuples: BTreeMap<String, BTreeSet<_>> = BTreeMap::new();
        for row in rows::<WebTupleRow>(&w, "web_tuples/drugs", snapshot) {
            tuples.entry(row.tuple.to_string()).or_default().insert((
                row.node,
                row.url,
                row.content_digest.to_string(),
            ));
        }
        tuples
    };
    let mut rebuilt = table("2001-01-15");
    for row in w.rows::<TupleDelta>("2001-02-15") {
        let gone = if row.delta == TupleChange::Modified { row.old_tuple } else { Some(row.tuple) };
        if matches!(row.delta.as_str(), "minus" | "modified" | "relinked_old") {
            rebuilt.remove(&gone.unwrap().to_string());
        }
    }
    for row in w.rows::<TupleDelta>("2001-02-15") {
        if matches!(row.delta.as_str(), "plus" | "modified" | "relinked_new") && row.version != NodeVersion::Old {
            let tuple = rebuilt.entry(row.tuple.to_string()).or_default();
            tuple.insert((row.node, row.url, row.content_digest.to_string()));
        }
    }
    let new = table("2001-02-15");
    assert_eq!(rebuilt.keys().collect::<Vec<_>>(), new.keys().collect::<Vec<_>>());
    assert_eq!(rebuilt, new);
}

fn page(title: &str, text: &str, links: &[(&str, &str)]) -> String {
    let links: String = links.iter().map(|(target, label)| format!("<a href='{target}'>{label}</a> ")).collect();
    format!("<html><head><title>{title}</title></head><body><p>{text}</p>{links}</body></html>")
}

const LISTS: &str = "[[query]]\nname = 'lists'\nnodes.a = { title = 'list*' }\nlinks = ['a -> b']\n";

fn lists(w: &Workspace, id: &str, targets: &[&str]) {
    let links: Vec<(&str, &str)> = targets.iter().map(|target| (*target, "item")).collect();
    let mut pages = vec![("list".to_owned(), page("List of things", "things", &links))];
    pages.extend(["x", "y", "z"].map(|name| (name.to_owned(), page(name, &format!("all about {name}"), &[]))));
    let pages: Vec<_> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot(id, &pages);
}

#[test]
fn a_changed_query_starts_anew_on_the_newest_snapshot() {
    let w = Workspace::new(LISTS);
    lists(&w, "2024-01-01", &["x"]);
    lists(&w, "2024-01-02", &["x", "y"]);
    let ended = w.run();
    assert!(!ended.stderr.contains("lists"), "{}", ended.stderr);
    // A page linked anew from the same list: its tuple is added, the old one modified.
    let deltas = w.rows::<TupleDelta>("2024-01-02");
    let kinds: BTreeSet<&str> = deltas.iter().map(|row| row.delta.as_str()).collect();
    assert_eq!(kinds, BTreeSet::from(["plus", "modified"]), "{deltas:?}");
    let before = rows::<WebTupleRow>(&w, "web_tuples/lists", "2024-01-01");
    w.pipeline(&LISTS.replace("a -> b'", "a -{0,1}-> b'"));
    w.run().says("query 'lists' changed: starts anew with snapshot 2024-01-02");
    assert_eq!(w.rows::<TupleDelta>("2024-01-02"), []);
    assert_eq!(rows::<WebTupleRow>(&w, "web_tuples/lists", "2024-01-01"), before);
    assert!(w.run().stdout.contains("nothing to do"));
    lists(&w, "2024-01-03", &["x", "y", "z"]);
    w.run();
    assert!(!w.rows::<TupleDelta>("2024-01-03").is_empty());
    // Another query beside it.
    w.pipeline(&format!("{LISTS}{}", LISTS.replace("'lists'", "'more'")));
    let ended = w.run();
    assert!(ended.stderr.contains("query 'more' is new: starts with snapshot 2024-01-03"), "{}", ended.stderr);
    w.ratoon(&["run", "p.toml", "--backfill", "2024-01-01"]).expect(0);
    assert_eq!(rows::<WebTupleRow>(&w, "web_tuples/more", "2024-01-01").len(), 2);
    assert!(w.rows::<TupleDelta>("2024-01-02").iter().any(|row| &*row.query == "more"));
    // The night that had been asked before is compared with the answers that it lacked.
    assert!(w.rows::<TupleDelta>("2024-01-03").iter().any(|row| &*row.query == "more"));
    assert!(w.run().stdout.contains("nothing to do"));
}

#[test]
fn an_empty_answer_says_what_emptied_it() {
    let w = Workspace::new("[[query]]\nname = 'none'\nnodes.a = { title = 'lists of*' }\nlinks = ['a -> b']\n");
    lists(&w, "2024-01-01", &["x"]);
    let ended = w.run().says("query 'none' matches nothing in snapshot 2024-01-01");
    assert!(ended.stderr.contains("title") && ended.stderr.contains("lists of*"), "{}", ended.stderr);
    assert_eq!(rows::<WebTupleRow>(&w, "web_tuples/none", "2024-01-01"), []);
}

#[test]
fn a_query_that_explodes_fails_alone() {
    let names: Vec<String> = (0..12).map(|i| format!("p{i}")).collect();
    let links: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "menu")).collect();
    let html = page("M", "menu", &links);
    let pages: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), html.as_str())).collect();
    let big = "[[query]]\nname = 'big'\nlinks = ['a -{1,9}-> b']\npaths = 'all'\n";
    let w = Workspace::new(&format!("{big}{LISTS}"));
    w.snapshot("2024-01-01", &pages);
    let ended = w.ratoon(&["run", "p.toml"]).expect(1).says("big");
    assert!(ended.stderr.contains("queries failed: big") && ended.stderr.contains("max_tuples"), "{}", ended.stderr);
    assert!(!w.path("store/web_tuples/big").exists());
    assert!(w.path("store/web_tuples/lists/snapshot=2024-01-01").exists());
    // Done is done; a smaller question is asked at once.
    assert!(w.run().stdout.contains("nothing to do"));
    w.pipeline(&format!("{}{LISTS}", big.replace("{1,9}", "{1,2}")));
    w.run();
    assert_eq!(rows::<WebTupleRow>(&w, "web_tuples/big", "2024-01-01").len(), 12 * 11 * 2 + 12 * 11 * 10 * 3);
    // Once more too large: the table of the smaller one does not stay.
    w.pipeline(&format!("{big}max_tuples = 100\n{LISTS}"));
    w.ratoon(&["run", "p.toml"]).expect(1);
    assert!(!w.path("store/web_tuples/big/snapshot=2024-01-01").exists());
}

#[test]
fn what_is_wrong_with_a_query_is_told_with_its_line() {
    let head = "[corpus]\nsnapshots = 'snapshots'\nstore = 'store'\n[[query]]\nname = 'q'\n";
    let cases = [
        ("nodes.a = { title = 'x' }\nnodes.zz = { title = 'y' }\nlinks = ['a -> b']\n", "p.toml:7:", "zz"),
        ("nodes.a = { title = 'x[' }\nlinks = ['a -> b']\n", "p.toml:6:", "x["),
        ("nodes.a = { text = '(' }\nlinks = ['a -> b']\n", "p.toml:6:", "("),
        ("links = ['a => b']\n", "p.toml:6:", "=>"),
        ("nodes.a = { tag = 'h1 h2' }\n", "p.toml:6:", "names no element"),
        ("nodes.a = { path = '//a[1]' }\n", "p.toml:6:", "//div/h1"),
        ("nodes.a = { path = '//a', tag = 'a' }\n", "p.toml:6:", "leave out `tag`"),
        ("nodes.a = { mention = 'who' }\nlinks = ['a -> b']\n", "p.toml:6:", "who"),
        ("nodes.a = { titel = 'who' }\nlinks = ['a -> b']\n", "p.toml:6:", "did you mean `title`?"),
        ("links = ['a -> b']\n[[query]]\nname = 'q'\nlinks = ['a -> b']\n", "p.toml:8:", "two queries 'q'"),
    ];
    let w = Workspace::new("");
    lists(&w, "2024-01-01", &["x"]);
    for (text, place, words) in cases {
        fs::write(w.path("p.toml"), format!("{head}{text}")).unwrap();
        let ended = w.ratoon(&["run", "p.toml"]).expect(2);
        assert!(ended.stderr.contains(place) && ended.stderr.contains(words), "{text}\n{}", ended.stderr);
        assert!(ended.stderr.contains("hint: "), "{}", ended.stderr);
    }
}

#[test]
fn texts_and_mentions_are_looked_at() {
    let w = Workspace::new(
        "[[extractor]]\nname = 'who'\nkind = 'regex'\npattern = 'Dr\\. [A-Z][a-z]{1,9}'\n\
         [[query]]\nname = 'q'\nnodes.a = { text = 'list of \\w+' }\nnodes.b = { mention = 'who' }\nlinks = ['a -> b']\n",
    );
    let night = |id: &str, doctor: &str| {
        let item = page("I", doctor, &[]);
        let list = page("L", "a list of names", &[("x", "x"), ("y", "y")]);
        w.snapshot(
            id,
            &[("l", &list), ("m", &page("M", "no", &[("x", "x")])), ("x", &item), ("y", &page("Y", "Dr. No", &[]))],
        );
    };
    night("2024-01-01", "nobody");
    night("2024-01-02", "Dr. Who");
    w.run();
    let urls = |night: &str| -> Vec<String> {
        let rows = rows::<WebTupleRow>(&w, "web_tuples/q", night).into_iter();
        rows.filter(|row| row.node == "b").map(|row| row.url).collect()
    };
    assert_eq!(urls("2024-01-01"), ["http://site.test/y"]);
    assert_eq!(urls("2024-01-02").len(), 2);
}

#[test]
fn links_of_unchanged_pages_are_found_where_they_lie() {
    let (nightly, late) = (Workspace::new(LISTS), Workspace::new(LISTS));
    for w in [&nightly, &late] {
        lists(w, "2024-01-01", &["x"]);
        lists(w, "2024-01-02", &["x"]);
        lists(w, "2024-01-03", &["y", "z"]);
    }
    for night in ["2024-01-01", "2024-01-02", "2024-01-03"] {
        nightly.ratoon(&["run", "p.toml", "--snapshot", night, "--threads", "1"]).expect(0);
    }
    late.run();
    assert!(nightly.table_bytes() == late.table_bytes());
    assert_eq!(rows::<WebTupleRow>(&late, "web_tuples/lists", "2024-01-02").len(), 2);
    late.ratoon(&["delta", "p.toml", "--force"]).expect(0);
    late.run();
    assert!(nightly.table_bytes() == late.table_bytes());
}

#[test]
fn rules_edited_in_between_modify_no_page() {
    let query = "[[query]]\nname = 'q'\nlinks = ['a -> b']\n";
    let w = Workspace::new(query);
    for night in 1..=3 {
        let seen = page("X", &format!("Some text. Visitors: {night}"), &[("y", "go")]);
        w.snapshot(&format!("2024-01-0{night}"), &[("x", &seen), ("y", &page("Y", "Other. Visitors: 7", &[]))]);
    }
    w.ratoon(&["run", "p.toml", "--snapshot", "2024-01-01"]).expect(0);
    w.pipeline(&format!("ignore = ['Visitors: [0-9]+']\n{query}"));
    w.run();
    for to in ["2024-01-02", "2024-01-03"] {
        let said = w.ratoon(&["delta", "p.toml", "--from", "2024-01-01", "--to", to, "--out", to, "--json"]).expect(0);
        let said: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        assert!(!said.to_string().contains("modified"), "{said}");
    }
}

/// Pages that link to each other in a ring of lists, of which a night changes a few.
fn poll(w: &Workspace, id: &str, pages: &[(usize, &str, &[usize])]) {
    let pages: Vec<(String, String)> = pages
        .iter()
        .map(|(number, words, links)| {
            let links: Vec<String> = links.iter().map(|to| format!("<a href='p{to}'>to {to}</a>")).collect();
            // The same words stand elsewhere on some pages.
            let tag = if words.contains('n') { "h2" } else { "p" };
            let html = format!("<title>list {number}</title><{tag}>{words} {number}</{tag}>{}", links.join(" "));
            (format!("p{number}"), html)
        })
        .collect();
    w.snapshot(id, &pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect::<Vec<_>>());
}

#[test]
fn a_query_is_asked_as_often_as_it_says() {
    let w = Workspace::new(&format!("{LISTS}every = '30d'\n"));
    for (night, targets) in
        [("2024-01-01", vec!["x"]), ("2024-01-15", vec!["x", "y"]), ("2024-01-31", vec!["x", "y", "z"])]
    {
        lists(&w, night, &targets);
    }
    w.run();
    let there = |night: &str| w.path(&format!("store/web_tuples/lists/snapshot={night}")).exists();
    assert_eq!([there("2024-01-01"), there("2024-01-15"), there("2024-01-31")], [true, false, true]);
    assert_eq!(w.rows::<TupleDelta>("2024-01-15"), []);
    // Between its own evaluations: two pages came since the first of January.
    let plus =
        |night: &str| tuples(w.rows::<TupleDelta>(night).iter().filter(|row| row.delta == TupleChange::Plus)).len();
    assert_eq!(plus("2024-01-31"), 2);
    assert!(w.run().stdout.contains("nothing to do"));
    // It starts anew with another question, and is then due at once.
    w.pipeline(&format!("{}every = '30d'\n", LISTS.replace("a -> b'", "a -{0,1}-> b'")));
    w.run().says("query 'lists' changed: starts anew with snapshot 2024-01-31");
    // A wrong interval is told with its line.
    w.pipeline(&format!("{LISTS}every = 'monthly'\n"));
    w.ratoon(&["run", "p.toml"]).expect(2).says("`every` is no duration");
}

#[test]
fn under_partial_coverage_a_query_is_asked_once_a_day_and_what_changed_is_stored() {
    let w = Workspace::new(&format!("coverage = 'partial'\n{LISTS}"));
    let all: Vec<usize> = (0..24).collect();
    let pages: Vec<(usize, &str, [usize; 2])> = all.iter().map(|&n| (n, "old", [(n + 1) % 24, (n + 2) % 24])).collect();
    let pages: Vec<(usize, &str, &[usize])> = pages.iter().map(|(n, words, links)| (*n, *words, &links[..])).collect();
    poll(&w, "2024-01-01", &pages);
    poll(&w, "2024-01-01T12-00", &[(3, "noon", &[4, 5])]);
    poll(&w, "2024-01-02", &[(3, "new", &[4, 9]), (5, "new", &[6, 7])]);
    w.run();
    let partition = |id: &str| rows::<WebTupleRow>(&w, "web_tuples/lists", id);
    let first = partition("2024-01-01");
    assert_eq!(first.len(), 96);
    assert!(first.iter().all(|row| row.whole && row.change.as_str() == "added"));
    assert!(!w.path("store/web_tuples/lists/snapshot=2024-01-01T12-00").exists(), "it is not due at noon");
    let changed = partition("2024-01-02");
    assert!(changed.iter().all(|row| !row.whole && row.change.as_str() != "unchanged"));
    let count = |change: &str| {
        let rows = changed.iter().filter(|row| row.change.as_str() == change);
        rows.map(|row| row.tuple.to_string()).collect::<BTreeSet<_>>().len()
    };
    // 3 -> 5 went and 3 -> 9 came; 1, 2, 4 and 5 lead to or from the pages that changed, as does 3 -> 4.
    assert_eq!((count("added"), count("deleted")), (1, 1));
    assert_eq!(count("modified"), 1 + 2 + 2 + 2 - 1, "{changed:#?}");
    // A pruned store holds the table whole where it starts.
    w.ratoon(&["prune", "p.toml", "--before", "2024-01-02"]).expect(0);
    let whole = partition("2024-01-02");
    assert_eq!(whole.len(), 96);
    assert!(whole.iter().all(|row| row.whole));
    let there = |change: &str| whole.iter().filter(|row| row.change.as_str() == change).count();
    assert_eq!((there("added"), there("deleted"), there("modified")), (2, 0, 12));
}

fn shown(w: &Workspace, args: &[&str]) -> serde_json::Value {
    let args: Vec<&str> = ["web", "p.toml"].into_iter().chain(args.iter().copied()).chain(["--json"]).collect();
    serde_json::from_str(&w.ratoon(&args).expect(0).stdout).unwrap()
}

/// A few bits of a number that looks random.
fn draw(seed: u64, of: u64) -> usize {
    let mixed = (seed ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    usize::try_from(((mixed ^ (mixed >> 29)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 33) % of).unwrap()
}

/// Web tables at any state, from the newest whole partition and what changed since, are what the query gives there.
#[test]
fn a_web_table_at_any_state_is_the_query_asked_there() {
    const QUERIES: [&str; 6] = ["pairs", "paths", "near", "found", "tagged", "placed"];
    let queries = "[[query]]\nname = 'pairs'\nlinks = ['a -> b']\n\
         [[query]]\nname = 'paths'\nnodes.a = { title = 'list 1*' }\nlinks = ['a -{1,3}-> u', 'u -> k']\npaths = 'all'\n\
         [[query]]\nname = 'near'\nnodes.b = { text = 'new' }\nlinks = ['a -{0,2}-> b']\n\
         [[query]]\nname = 'found'\nnodes.b = { mention = 'new' }\nlinks = ['b -> a']\n\
         [[query]]\nname = 'tagged'\nnodes.b = { tag = 'h2', text = 'new' }\nlinks = ['b -> a']\n\
         [[query]]\nname = 'placed'\nnodes.b = { path = '/p', text = '^old [0-9]' }\nlinks = ['b -{1,2}-> a']\n\
         [[extractor]]\nname = 'new'\nkind = 'regex'\npattern = 'new [0-9]+'\n";
    for seed in 0..3 {
        let w = Workspace::new(&format!("coverage = 'partial'\n{queries}"));
        let random = |night: u64, page: u64, what: u64, of: u64| draw(seed * 7919 + night * 131 + page * 17 + what, of);
        let version = |night: u64, page: u64| {
            let links: Vec<usize> =
                (0..random(night, page, 1, 3)).map(|n| random(night, page, n as u64 + 2, 40)).collect();
            (usize::try_from(page).unwrap(), if random(night, page, 9, 3) == 0 { "new" } else { "old" }, links)
        };
        let nights: Vec<String> = (1..=6).map(|night| format!("2024-01-0{night}")).collect();
        for (night, id) in (0u64..).zip(&nights) {
            let touched = |page: &u64| night == 0 || random(night, *page, 11, 8) == 0;
            let pages: Vec<_> = (0..40).filter(touched).map(|page| version(night, page)).collect();
            let pages: Vec<_> = pages.iter().map(|(page, words, links)| (*page, *words, &links[..])).collect();
            poll(&w, id, &pages);
            // Pages go and come back.
            for page in (0..40).filter(|page| night > 0 && random(night, *page, 13, 25) == 0) {
                let path = w.path(&format!("snapshots/{id}/manifest.jsonl"));
                let mut manifest = std::fs::OpenOptions::new().append(true).open(path).unwrap();
                writeln!(manifest, "{{\"url\":\"http://site.test/p{page}\",\"status\":404}}").unwrap();
            }
        }
        let said = w.ratoon(&["run", "-vv", "p.toml"]).expect(0).stderr;
        for query in QUERIES {
            assert!(said.contains(&format!("query '{query}': asked around")), "{query}, seed {seed}: {said}");
        }
        let check = |nights: &[String]| {
            for id in nights {
                for query in QUERIES {
                    let kept = shown(&w, &[query, "--at", id]);
                    assert_eq!(kept, shown(&w, &[query, "--at", id, "--anew"]), "{query} at {id}, seed {seed}");
                }
            }
        };
        check(&nights);
        let is_slim = |id: &&String| {
            let there = w.path(&format!("store/web_tuples/pairs/snapshot={id}")).exists();
            there && rows::<WebTupleRow>(&w, "web_tuples/pairs", id).iter().all(|row| !row.whole)
        };
        assert!(nights.iter().filter(is_slim).count() >= 2, "seed {seed}");
        w.ratoon(&["prune", "p.toml", "--before", &nights[3]]).expect(0);
        check(&nights[3..]);
    }
}

#[test]
fn webs_are_selected_projected_and_drawn() {
    let w = drugs();
    w.run();
    let count = |shown: &serde_json::Value| shown["tuples"].as_array().unwrap().len();
    assert_eq!(count(&shown(&w, &["drugs", "--at", "2001-01-15"])), 8);
    let all = shown(&w, &["drugs"]);
    assert_eq!(count(&all), 9);
    assert!(all["tuples"][0]["nodes"][0]["title"].is_string() && all["tuples"][0]["links"][0]["label"].is_string());
    // Select and project: two tuples about one disease have the same front page and list.
    let some = shown(&w, &["drugs", "--where", "d.title = '*viagra*'"]);
    assert_eq!(count(&some), 1, "{some}");
    let projected = shown(&w, &["drugs", "--nodes", "a, a>u.1"]);
    assert!(count(&projected) < 9 && projected["tuples"][0]["nodes"].as_array().unwrap().len() == 2);
    let deltas = shown(&w, &["drugs", "--delta"]);
    assert_eq!((count(&deltas), &deltas["before"]), (13, &serde_json::json!("2001-01-15")));
    let ended = w.ratoon(&["web", "p.toml", "drugs", "--delta"]).expect(0);
    assert!(
        ended.stdout.starts_with("query drugs, 2001-01-15 to 2001-02-15: 4 plus, 4 minus, 5 modified\n"),
        "{}",
        ended.stdout
    );
    // Pictures, one for each delta tuple, and a page with all of them.
    w.ratoon(&["web", "p.toml", "drugs", "--delta", "--svg", "new/pictures"]).expect(0);
    let files: Vec<_> = fs::read_dir(w.path("new/pictures")).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.iter().filter(|file| file.extension().is_some_and(|end| end == "svg")).count(), 13);
    assert!(w.path("new/pictures/index.html").exists());
    w.ratoon(&["web", "p.toml", "drugs", "--svg", "new/pictures"]).expect(2).says("--force writes into it");
    w.ratoon(&["web", "p.toml", "drugs", "--svg", "new/pictures", "--force"]).expect(0);
    // What is wrong is said.
    w.ratoon(&["web", "p.toml", "drug"]).expect(2).says("it has drugs");
    w.ratoon(&["web", "p.toml", "drugs", "--nodes", "x"]).expect(2).says("has no node 'x': it has a, d, k, u");
    w.ratoon(&["web", "p.toml", "drugs", "--where", "d.titel = x"]).expect(2).says("titel");
    w.ratoon(&["web", "p.toml", "drugs", "--at", "2009-01-01"]).expect(2).says("2009-01-01");
}

const TAGGED: &str = "[[query]]\nname = 'heads'\nnodes.a = { tag = 'h1', text = '^Side effects$' }\n\
     [[query]]\nname = 'deep'\nnodes.a = { path = '//section/p', text = 'itch' }\n\
     [[query]]\nname = 'feed'\nnodes.a = { path = '/rss/channel/item/title', text = 'Rain & sun' }\n";

fn matches(w: &Workspace, query: &str, night: &str) -> Vec<String> {
    let rows = rows::<WebTupleRow>(w, &format!("web_tuples/{query}"), night).into_iter();
    rows.map(|row| row.url.trim_start_matches("http://site.test/").to_owned()).collect()
}

/// Nights on which only markup moves: texts, titles and links stay.
const MARKED_UP: [(&str, (usize, usize)); 3] = [("2024-01-01", (0, 1)), ("2024-01-02", (0, 1)), ("2024-01-03", (1, 0))];

fn marked_up(w: &Workspace, nights: &[(&str, (usize, usize))]) {
    let page = |body: &str| format!("<html><body>{body}</body></html>");
    let heads =
        [page("<h1>Side effects</h1><p>An itch</p>"), page("<h1>Side</h1> effects<section><p>An itch</p></section>")];
    let feed = "<rss><channel><item><title>Rain &amp; sun</title></item></channel></rss>";
    for &(night, (one, other)) in nights {
        let dir = w.snapshot_dir(night);
        let mut manifest = String::new();
        for (name, body, kind) in [
            ("x", heads[one].as_str(), "text/html"),
            ("y", heads[other].as_str(), "text/html"),
            ("z", feed, "application/rss+xml"),
            ("plain", "<h1>Side effects</h1>", "text/plain"),
        ] {
            fs::write(dir.join(name), body).unwrap();
            let line = serde_json::json!({
                "url": format!("http://site.test/{name}"), "file": name, "status": 200, "content_type": kind,
            });
            manifest += &format!("{line}\n");
        }
        fs::write(dir.join("manifest.jsonl"), manifest).unwrap();
    }
}

#[test]
fn where_a_text_stands_is_asked_for() {
    let (nightly, late) = (Workspace::new(TAGGED), Workspace::new(TAGGED));
    for w in [&nightly, &late] {
        marked_up(w, &MARKED_UP);
    }
    for night in ["2024-01-01", "2024-01-02", "2024-01-03"] {
        nightly.ratoon(&["run", "p.toml", "--snapshot", night, "--threads", "1"]).expect(0);
    }
    late.run();
    assert!(nightly.table_bytes() == late.table_bytes());
    let w = &late;
    assert_eq!(matches(w, "heads", "2024-01-02"), ["x"]);
    assert_eq!(matches(w, "deep", "2024-01-02"), ["y"]);
    assert_eq!(matches(w, "feed", "2024-01-03"), ["z"]);
    // No text changed, but where it stands.
    assert_eq!(matches(w, "heads", "2024-01-03"), ["y"]);
    assert_eq!(matches(w, "deep", "2024-01-03"), ["x"]);
    let kept = |night: &str| {
        let pages: Vec<Page> = w.rows(night);
        assert!(
            pages.iter().all(|page| page.elements_digest.is_some() && page.text.is_some() == page.elements.is_some())
        );
        pages.iter().filter(|page| page.elements.is_some()).count()
    };
    assert_eq!([kept("2024-01-01"), kept("2024-01-02"), kept("2024-01-03")], [4, 0, 2]);
    // What prune keeps can be asked as well.
    w.ratoon(&["prune", "p.toml", "--before", "2024-01-02"]).expect(0);
    assert_eq!(shown(w, &["heads", "--at", "2024-01-02", "--anew"]), shown(w, &["heads", "--at", "2024-01-02"]));
    assert_eq!(kept("2024-01-02"), 4);
}

#[test]
fn a_store_that_did_not_keep_where_texts_stand_says_so() {
    let (w, fresh) = (Workspace::new(""), Workspace::new(TAGGED));
    marked_up(&fresh, &MARKED_UP);
    marked_up(&w, &MARKED_UP[..1]);
    w.run();
    let unasked: Vec<Page> = w.rows("2024-01-01");
    assert!(unasked.iter().all(|page| page.elements.is_none() && page.elements_digest.is_none()));
    // Asked of a night that cannot tell, the query fails, and says what to do.
    w.pipeline(TAGGED);
    let said = w.ratoon(&["run", "p.toml"]).expect(1).stderr;
    assert!(
        said.contains("query 'heads' asks where text stands (tag, path), which was not kept when 4 pages"),
        "{said}"
    );
    assert!(said.contains("--force --snapshot 2024-01-01` reads all again"), "{said}");
    assert!(!w.path("store/web_tuples/heads").exists());
    let asked = w.ratoon(&["web", "p.toml", "heads", "--at", "2024-01-01", "--anew"]).expect(1).stderr;
    assert!(asked.contains("which was not kept"), "{asked}");
    // The next crawl brings all pages anew.
    marked_up(&w, &MARKED_UP[1..2]);
    w.run();
    assert_eq!(matches(&w, "heads", "2024-01-02"), ["x"]);
    // Without the query nothing is kept; with it again, old elements are not taken for new ones.
    w.pipeline("");
    marked_up(&w, &MARKED_UP[2..]);
    w.run();
    assert!(w.rows::<Page>("2024-01-03").iter().all(|page| page.elements_digest.is_none()));
    w.pipeline(TAGGED);
    w.ratoon(&["run", "p.toml"]).expect(1).says("which was not kept when 4 pages");
    // What it says to do makes all of it.
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", "2024-01-01"]).expect(0);
    fresh.run();
    assert!(w.table_bytes() == fresh.table_bytes());
}
