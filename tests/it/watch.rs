//! Watches: what fires, on what, and who is told.

use std::fs;

use ratoon::inside::tables::delta::Alert;
use ratoon::inside::tables::extract::MentionDelta;

use crate::workspace::Workspace;

const SAME: &str = "A paragraph that is long enough to be found again wherever it goes, and goes again.";
const OTHER: &str = "Another paragraph of much the same length, so that both can change their places.";

fn page(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("<p>{line}</p>")).collect()
}

fn fired(w: &Workspace, snapshot: &str) -> Vec<(String, String, String, String)> {
    let short = |url: Option<String>| url.map_or(String::new(), |url| url.rsplit('/').next().unwrap().to_owned());
    let mut alerts: Vec<_> = w
        .rows::<Alert>(snapshot)
        .into_iter()
        .map(|alert| {
            (alert.watch.to_string(), alert.kind.to_string(), short(alert.url), alert.text.unwrap_or_default())
        })
        .collect();
    alerts.sort();
    alerts
}

fn alert(watch: &str, kind: &str, url: &str, text: &str) -> (String, String, String, String) {
    (watch.to_owned(), kind.to_owned(), url.to_owned(), text.to_owned())
}

#[test]
fn watches_fire_on_what_they_ask_for() {
    let w = Workspace::new(
        r#"
[[extractor]]
name = "who"
kind = "regex"
pattern = 'Dr\. [A-Z][a-z]{1,9}'
[[watch]]
name = "came"
on = { pages = "http://site.test/news/*", change = ["added", "deleted"] }
[[watch]]
name = "any-b"
on = { matching = '/b$' }
[[watch]]
name = "sale"
on = { new_text = '(?i)\bsale\b[^.\n]*' }
[[watch]]
name = "much"
on = { share = 0.5 }
[[watch]]
name = "doctors"
on = { mentions = "who" }
[[watch]]
name = "three"
on = { changes = 3 }
"#,
    );
    w.snapshot(
        "2024-01-01",
        &[
            ("a", &page(&[SAME, "Sale of the year.", OTHER, "Dr. No"])),
            ("b", &page(&["b"])),
            ("news/1", &page(&["Sale here, on a page that will move to another address before long, text and all."])),
        ],
    );
    w.snapshot(
        "2024-01-02",
        &[
            // The sale moved, another one is new.
            ("a", &page(&["Sale of the year.", OTHER, SAME, "A sale today. Dr. Who."])),
            ("b", &page(&["b, but all of it is other text now"])),
            ("news/2", &page(&["Sale here, on a page that will move to another address before long, text and all."])),
        ],
    );
    w.snapshot("2024-01-03", &[("a", &page(&[OTHER, SAME])), ("b", &page(&["b"]))]);
    w.snapshot(
        "2024-01-04",
        &[("a", &page(&["Sale of the year.", OTHER, SAME, "A sale today.", "More."])), ("b", &page(&["b"]))],
    );
    let ended = w.ratoon(&["run", "p.toml", "--json"]).expect(0);
    assert_eq!(fired(&w, "2024-01-01"), []);
    let expected = [
        alert("any-b", "page_modified", "b", ""),
        alert("came", "page_added", "2", ""),
        alert("came", "page_deleted", "1", "absent"),
        alert("doctors", "mention_added", "a", "Dr. Who"),
        alert("doctors", "mention_deleted", "a", "Dr. No"),
        alert("much", "share", "b", ""),
        alert("sale", "new_text", "a", "sale today"),
        alert("three", "changes", "", ""),
    ];
    assert_eq!(fired(&w, "2024-01-02"), expected);
    // What comes back is no news; one change is not three.
    let expected = [
        alert("any-b", "page_modified", "b", ""),
        alert("came", "page_deleted", "2", "absent"),
        alert("doctors", "mention_deleted", "a", "Dr. Who"),
        alert("three", "changes", "", ""),
    ];
    assert_eq!(fired(&w, "2024-01-03"), expected);
    assert_eq!(fired(&w, "2024-01-04"), []);
    let value = |snapshot: &str| w.rows::<Alert>(snapshot).into_iter().find(|a| &*a.watch == "three").unwrap().value;
    assert_eq!((value("2024-01-02"), value("2024-01-03")), (Some(4.0), Some(3.0)));
    let summary: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let told = summary["alerts"].as_array().unwrap();
    assert_eq!(told.len(), 12);
    assert!(told.iter().any(|a| a["watch"] == "sale" && a["snapshot"] == "2024-01-02" && a["text"] == "sale today"));
    // Again, the same.
    let before = w.table_bytes();
    w.ratoon(&["delta", "p.toml", "--force", "--snapshot", "2024-01-03"]).expect(0);
    w.run();
    assert!(w.table_bytes() == before);
}

#[test]
fn commands_are_told_once() {
    let w = Workspace::new(
        r#"
[[watch]]
name = "all"
on = { change = "modified" }
command = ["sh", "-c", "cat >> told.jsonl"]
[[watch]]
name = "failing"
on = { change = "modified" }
command = ["sh", "-c", "echo no >&2; exit 7"]
[[watch]]
name = "slow"
on = { change = "modified" }
command = ["sleep", "60"]
timeout = "1s"
"#,
    );
    w.snapshot("2024-01-01", &[("a", "<p>\"1\"\nx</p>"), ("b", "<p>1</p>")]);
    w.snapshot("2024-01-02", &[("a", "<p>\"2\"\nx</p>"), ("b", "<p>1</p>")]);
    let ended = w.run();
    assert!(ended.stderr.contains("watch 'failing': command 'sh': exit status: 7: no"), "{}", ended.stderr);
    assert!(ended.stderr.contains("watch 'slow': command 'sleep': no end after 1 s"), "{}", ended.stderr);
    assert!(ended.stdout.contains("alert 2024-01-02: all page_modified http://site.test/a"), "{}", ended.stdout);
    let told = || fs::read_to_string(w.path("told.jsonl")).unwrap();
    let object: serde_json::Value = serde_json::from_str(told().trim()).unwrap();
    assert_eq!((&object["watch"], &object["url"]), (&"all".into(), &"http://site.test/a".into()));
    assert_eq!(object["snapshot"], "2024-01-02");
    w.run();
    let ended = w.ratoon(&["delta", "p.toml", "--force"]).expect(0);
    assert!(!ended.stderr.contains("failing"), "{}", ended.stderr);
    assert_eq!(told().lines().count(), 1);
    w.snapshot("2024-01-03", &[("a", "<p>3</p>"), ("b", "<p>3</p>")]);
    w.run();
    assert_eq!(told().lines().count(), 3);
}

#[test]
fn what_is_wrong_with_a_watch_is_told_with_its_line() {
    let head = "[corpus]\nsnapshots = 'snapshots'\nstore = 'store'\n[[watch]]\nname = 'w'\n";
    let cases = [
        ("on = {}\n", "6:6: watch: `on` says nothing"),
        ("on = 'x'\n", "6:6: invalid type: string \"x\", expected a table such as { mentions"),
        ("on = { new_text = '(' }\n", "6:19: watch: `new_text`: '(': unclosed group"),
        ("on = { new_text = 'a*' }\n", "matches the empty string"),
        ("on = { pages = 'x[' }\n", "6:16: watch: `pages`: glob 'x['"),
        ("on = { pages = 7 }\n", "6:16: watch: `pages` is no glob"),
        ("on = { matching = '(' }\n", "6:19: watch: `matching`"),
        ("on = { pages = 'a', matching = 'b' }\n", "exclude each other"),
        ("on = { mentions = 'who' }\n", "6:19: watch: there is no extractor 'who'\nhint: none is declared"),
        ("on = { query = 'who' }\n", "6:16: watch: there is no query 'who'"),
        ("on = { share = 1.5 }\n", "6:16: watch: `share` is not a share"),
        ("on = { changes = 0 }\n", "6:18: watch: `changes` is 0"),
        ("on = { change = 'gone' }\n", "6:17: watch: `change`: 'gone' is no kind of change\nhint: use added, "),
        ("on = { share = 0.5, changes = 2 }\n", "`share` and `changes` exclude each other"),
        ("on = { share = 0.5, change = 'added' }\n", "`change` does not go with `share`"),
        ("on = { chnge = 'added' }\n", "unknown key `chnge`\nhint: did you mean `change`?"),
        ("on = { change = 'added' }\ncommand = []\n", "7:11: watch: `command` is empty"),
        ("on = { change = 'added' }\ncommand = ['x']\ntimeout = 'soon'\n", "8:11: watch: `timeout` is no duration"),
        ("on = { change = 'added' }\ntimeout = '5s'\n", "7:11: watch: `timeout` without `command`"),
        (
            "on = { change = 'added' }\n[[watch]]\nname = 'w'\non = { share = 1.0 }\n",
            "8:8: watch: `name`: there are two",
        ),
    ];
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>x</p>")]);
    for (text, words) in cases {
        fs::write(w.path("p.toml"), format!("{head}{text}")).unwrap();
        let ended = w.ratoon(&["run", "p.toml"]).expect(2);
        assert!(ended.stderr.contains(words), "{text}\n{}", ended.stderr);
        assert!(ended.stderr.contains("hint: ") || words.contains("expected"), "{}", ended.stderr);
    }
    let named = head.replace("'w'", "'W!'");
    fs::write(w.path("p.toml"), format!("{named}on = {{ share = 1.0 }}\n")).unwrap();
    w.ratoon(&["run", "p.toml"]).expect(2).says("5:8: watch: `name`: 'W!' is no name");
}

#[test]
fn a_query_is_a_set_of_pages_too() {
    let w = Workspace::new(
        "[[query]]\nname = 'list'\nnodes.a = { url = '*/list' }\nlinks = ['a -> b']\n\
         [[watch]]\nname = 'inside'\non = { query = 'list', new_text = 'red' }\n\
         [[watch]]\nname = 'outside'\non = { new_text = 'red' }\n",
    );
    let list = "<p>l</p><a href='x'>x</a>";
    w.snapshot("2024-01-01", &[("list", list), ("x", "<p>x</p>"), ("y", "<p>y</p>")]);
    w.snapshot("2024-01-02", &[("list", list), ("x", "<p>red x</p>"), ("y", "<p>red y</p>")]);
    w.run();
    let expected = [
        alert("inside", "new_text", "x", "red"),
        alert("outside", "new_text", "x", "red"),
        alert("outside", "new_text", "y", "red"),
    ];
    assert_eq!(fired(&w, "2024-01-02"), expected);
}

/// What came is told with what it took the place of.
#[test]
fn an_alert_says_what_stood_there_before() {
    let w = Workspace::new(
        r#"
[[extractor]]
name = "room"
kind = "regex"
pattern = 'Room (?P<number>[0-9]+)'
[[watch]]
name = "rooms"
on = { mentions = "room" }
[[watch]]
name = "prices"
on = { new_text = '[0-9]+ euros' }
"#,
    );
    let night = |rooms: &str, price: &str| page(&[SAME, rooms, OTHER, price]);
    w.snapshot("2024-01-01", &[("a", &night("Talks in Room 12 and in Room 20.", "It costs 7 euros."))]);
    w.snapshot("2024-01-02", &[("a", &night("Talks in Room 13 and in Room 20.", "It costs 9 euros, or 11 euros."))]);
    w.snapshot("2024-01-03", &[("a", &night("No talks.", "It is free."))]);
    w.run();
    let told = |snapshot: &str| {
        let alerts = w.rows::<Alert>(snapshot).into_iter();
        let mut told: Vec<_> = alerts.map(|alert| (alert.kind.to_string(), alert.text, alert.old_value)).collect();
        told.sort();
        told
    };
    let row = |kind: &str, text: &str, old: Option<&str>| {
        (kind.to_owned(), Some(text.to_owned()), old.map(ToOwned::to_owned))
    };
    assert_eq!(
        told("2024-01-02"),
        [
            row("mention_added", "Room 13", Some("Room 12")),
            row("mention_deleted", "Room 12", Some("Room 12")),
            row("new_text", "11 euros", None),
            row("new_text", "9 euros", Some("7 euros")),
        ]
    );
    let went = ["Room 13", "Room 20"].map(|room| row("mention_deleted", room, Some(room)));
    assert_eq!(told("2024-01-03"), went);
    let attributes: Vec<_> = ["2024-01-02", "2024-01-03"]
        .iter()
        .flat_map(|snapshot| w.rows::<MentionDelta>(snapshot))
        .map(|row| (row.change.to_string(), row.attributes.unwrap()))
        .collect();
    let row = |change: &str, number: u32| (change.to_owned(), format!(r#"{{"number":"{number}"}}"#));
    assert_eq!(attributes, [row("added", 13), row("deleted", 12), row("deleted", 13), row("deleted", 20)]);
}
