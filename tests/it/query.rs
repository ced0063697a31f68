//! Queries: web tables, and what changed in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use ratoon::inside::model::{NodeVersion, SnapshotId, TupleChange, WebJoin};
use ratoon::inside::store::parquet::Partition;
use ratoon::inside::tables::delta::{Alert, TupleDelta, WebJoinRow, WebLinkRow, WebTupleRow};
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
