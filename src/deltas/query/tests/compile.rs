//! What is refused, with the place and the fix.

use super::*;

/// Line, column, key, problem and fix of what is refused.
fn refused(text: &str) -> String {
    let text = format!("[[query]]\n{text}\n");
    let error = config(&text).compile(&TimeZone::UTC, &["talk", "person"]).expect_err(&text);
    let place = error.offset.map_or("?".to_owned(), |offset| {
        let before = &text[..offset];
        let line = before.matches('\n').count() + 1;
        format!("{line}:{}", before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1)
    });
    format!("{place} {}: {} | {}", error.key, error.problem, error.fix)
}

#[test]
fn what_has_no_meaning_is_refused_in_its_place() {
    for (text, expected) in [
        ("name = 'Q'\nlinks = ['a -> b']", "2:8 name: 'Q' cannot be a name"),
        ("name = 'q'", "? links: the query has neither links nor nodes"),
        ("name = 'q'\nlinks = ['a -> b', 'b ->']", "3:25 links: 'b ->', column 5: the arrow leads to no node"),
        ("name = 'q'\nlinks = ['a -{3,2}-> b']", "3:13 links: 'a -{3,2}-> b', column 3: a path of at least 3"),
        ("name = 'q'\nlinks = ['a -> b [label = \"[x\"]']", "3:28 links: label glob '[x': unclosed character class"),
        ("name = 'q'\nlinks = ['a -> b', 'a->b']", "3:21 links: 'a -> b' stands here twice"),
        ("name = 'q'\nlinks = ['a -{1,2}-> b', 'a -{2,3}-> b']", "3:27 links: two paths from 'a' to 'b'"),
        ("name = 'q'\nlinks = ['a -{1,2}-> a']", "3:11 links: 'a -{1,2}-> a': a path visits no page twice"),
        ("name = 'q'\nlinks = ['a -> b', 'c -> d', 'd -> c']", "3:20 links: 'c -> d' has no connection"),
        ("name = 'q'\nlinks = ['a -> b']\nnodes.c = { url = 'x' }", "4:7 nodes.c: no link uses node 'c' | add a link"),
        (
            "name = 'q'\nnodes.drug = {}\nlinks = ['a -> drugs']",
            "3:7 nodes.drug: no link uses node 'drug' | did you mean 'drugs'",
        ),
        ("name = 'q'\nnodes.a = {}\nnodes.b = {}", "3:7 nodes.a: no link uses node 'a'"),
        ("name = 'q'\nnodes.A = {}", "3:7 nodes.A: 'A' cannot be the name of a node"),
        ("name = 'q'\nnodes.a = { title = '{x' }", "3:21 nodes.a.title: glob '{x': unclosed alternate group"),
        ("name = 'q'\nnodes.a = { text = '(' }", "3:20 nodes.a.text: regex '(': unclosed group"),
        (
            "name = 'q'\nnodes.a = { mention = 'tlak' }",
            "3:23 nodes.a.mention: no extractor is named 'tlak' | did you mean 'talk'?",
        ),
        (
            "name = 'q'\nnodes.a = { mention = 'x' }",
            "3:23 nodes.a.mention: no extractor is named 'x' | known here: talk, person",
        ),
        ("name = 'q'\nnodes.a = { bytes = {} }", "3:21 nodes.a.bytes: no size is given"),
        ("name = 'q'\nnodes.a = { bytes = { min = 2, max = 1 } }", "3:21 nodes.a.bytes: min is larger than max"),
        ("name = 'q'\nnodes.a = { last_modified = {} }", "3:29 nodes.a.last_modified: no time is given"),
        (
            "name = 'q'\nnodes.a = { last_modified = { after = 'soon' } }",
            "3:29 nodes.a.last_modified: 'soon' is no time",
        ),
        (
            "name = 'q'\nnodes.a = { last_modified = { after = 2001-02-16, before = 2001-02-15 } }",
            "3:29 nodes.a.last_modified: no time is after",
        ),
        ("name = 'q'\nmax_tuples = 0\nnodes.a = {}", "3:14 max_tuples: a table of no tuples"),
    ] {
        let refused = refused(text);
        assert!(refused.starts_with(expected), "{text}\n  {refused}\n  {expected}");
    }
}

#[test]
fn unknown_keys_are_refused_by_the_reader() {
    for text in [
        "name = 'q'\nlink = ['a -> b']",
        "name = 'q'\nnodes.a = { titel = 'x' }",
        "name = 'q'\nnodes.a = { bytes = { least = 1 } }",
        "name = 'q'\nnodes.a = { last_modified = { since = 2001-01-01 } }",
        "name = 'q'\npaths = 'some'",
        "nodes.a = {}",
    ] {
        let error = toml::from_str::<File>(&format!("[[query]]\n{text}")).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("expected") || error.contains("missing")), "{text}");
    }
}

#[test]
fn what_decides_the_tuples_is_in_the_fingerprint() {
    let base = "nodes.a = { title = 'x' }\nlinks = ['a -{0,2}-> b']\n";
    let same = [base.to_owned(), format!("{base}max_tuples = 7"), base.replace("a -{0,2}-> b", "a-{0,2}->b")];
    for text in same {
        assert_eq!(query(&text).fingerprint(), query(base).fingerprint(), "{text}");
    }
    let others = [
        base.replace("'x'", "'y'"),
        base.replace("title", "url"),
        base.replace("0,2", "0,3"),
        base.replace("-> b", "-> b [kind = \"local\"]"),
        format!("{base}paths = 'all'"),
    ];
    for text in others {
        assert_ne!(query(&text).fingerprint(), query(base).fingerprint(), "{text}");
    }
}

#[test]
fn dates_are_read_in_the_zone() {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let text = "[[query]]\nname = 'q'\nnodes.a = { last_modified = { after = 2001-07-01 } }";
    let query = config(text).compile(&zone, &[]).unwrap();
    assert_eq!(query.schema().nodes[0].predicates, ["last_modified = { after = '2001-06-30T22:00:00Z' }"]);
}
