//! What goes wrong on the first day is told in ordinary words, with its place and a way out; what is asked for is shown.

use std::fs;

use serde_json::Value;

use crate::workspace::{Workspace, html};

const OFFERS: &str = "[[extractor]]\nname = 'thing'\nkind = 'regex'\npattern = '[A-Z][a-z]{2,9}'\n\
     [[extractor]]\nname = 'price'\nkind = 'regex'\npattern = '[0-9]{1,5} EUR'\n\
     [[extractor]]\nname = 'offer'\nkind = 'record'\nscope = 60\nside = 'after'\nattributes = { thing = 'thing', price = 'price' }\n";

/// `try` shows of a record what the night has of it.
#[test]
fn records_are_tried_too() {
    let w = Workspace::new(OFFERS);
    w.snapshot("2024-01-01", &[("shop", "<p>Table for 120 EUR, Chair for 40 EUR.</p><p>Nothing else.</p>")]);
    w.run();
    let page = "http://site.test/shop";
    let shown = w.ratoon(&["try", "p.toml", page, "--extractor", "offer"]).expect(0).stdout;
    assert!(shown.contains("offer (record of thing, price): 2 mentions\n"), "{shown}");
    assert!(shown.contains("thing = Table; price = 120 EUR") && !shown.contains("thing (regex)"), "{shown}");
    let all: Value = serde_json::from_str(&w.ratoon(&["try", "p.toml", page, "--json"]).expect(0).stdout).unwrap();
    let names: Vec<&str> =
        all["extractors"].as_array().unwrap().iter().map(|e| e["extractor"].as_str().unwrap()).collect();
    assert_eq!(names, ["thing", "price", "offer"]);
    let stored = "select start, \"end\", text from mentions_offer order by start, \"end\"";
    let stored: Value = serde_json::from_str(&w.ratoon(&["sql", "p.toml", stored, "--json"]).expect(0).stdout).unwrap();
    let place = |row: &Value| (row["start"].as_u64(), row["end"].as_u64(), row["text"].as_str().map(str::to_owned));
    let stored: Vec<_> = stored.as_array().unwrap().iter().map(place).collect();
    let tried: Vec<_> = all["extractors"][2]["units"][0]["mentions"].as_array().unwrap().iter().map(place).collect();
    assert_eq!((tried.len(), &tried), (2, &stored));
}

#[test]
fn nothing_to_try_is_told() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>one")]);
    w.run();
    let shown = w.ratoon(&["try", "p.toml", "http://site.test/a"]).expect(0).stdout;
    assert!(shown.ends_with("no extractor is declared: there is nothing to try\n"), "{shown}");
}

#[test]
fn a_record_says_which_part_of_it_failed() {
    let w = Workspace::new(
        "[[extractor]]\nname = 'x'\nkind = 'command'\ncommand = ['sh', 'worker.sh']\nunit = 'page'\n\
         [[extractor]]\nname = 'r'\nkind = 'record'\nscope = 60\nattributes = { a = 'x' }\n",
    );
    let worker = "read -r hello; echo '{\"name\":\"x\"}'; read -r line; echo 'good morning'";
    fs::write(w.path("worker.sh"), worker).unwrap();
    w.snapshot("2024-01-01", &[("a", "<p>one")]);
    w.ratoon(&["run", "p.toml"]);
    let shown = w.ratoon(&["try", "p.toml", "http://site.test/a", "--extractor", "r"]).expect(0).stdout;
    assert!(shown.contains("r (record of x): 0 mentions\n    failed: its part 'x' has no mentions\n"), "{shown}");
    let shown = w.ratoon(&["try", "p.toml", "http://site.test/a", "--extractor", "x"]).expect(0).stdout;
    assert!(shown.contains("not JSON: unexpected at column 1; it said: good morning"), "{shown}");
}

#[test]
fn a_worker_that_prints_rubbish_is_quoted() {
    let w =
        Workspace::new("[[extractor]]\nname = 'x'\nkind = 'command'\ncommand = ['sh', 'worker.sh']\nunit = 'page'\n");
    fs::write(w.path("worker.sh"), "read -r hello; echo hello world").unwrap();
    w.snapshot("2024-01-01", &[("a", "<p>one")]);
    w.ratoon(&["run", "p.toml"]).expect(1).says("{\"name\": \"dates\"}").says("it said: hello world");
}

/// A page whose text is the same says what else of it changed.
#[test]
fn a_page_with_other_links_or_another_title_says_so() {
    let w = Workspace::new("");
    let page = |title: &str, links: &str| format!("<title>{title}</title><p>The same text. {links}</p>");
    let [old, new] = ["http://site.test/b", "http://site.test/c"].map(|to| format!("<a href='{to}'>there</a>"));
    w.snapshot("2024-01-01", &[("a", &page("One", &old)), ("t", &page("One", &old))]);
    w.snapshot("2024-01-02", &[("a", &page("One", &new)), ("t", &page("Two", &old))]);
    w.run();
    let shown = w.ratoon(&["show", "p.toml", "http://site.test/a"]).expect(0).stdout;
    let links = "links     1 new, 1 deleted\n  - http://site.test/b (there)\n  + http://site.test/c (there)\n";
    assert!(shown.contains("0 new, 0 deleted\n") && shown.contains(links) && !shown.contains("old title"), "{shown}");
    let shown = w.ratoon(&["show", "p.toml", "http://site.test/t"]).expect(0).stdout;
    assert!(
        shown.contains("title     Two\n") && shown.contains("old title One\n") && !shown.contains("links "),
        "{shown}"
    );
    w.ratoon(&["show", "p.toml", "http://site.test/a", "--html", "a.html"]).expect(0);
    assert!(fs::read_to_string(w.path("a.html")).unwrap().contains("1 new, 1 deleted"));
}

#[test]
fn folders_that_are_none_are_told_with_their_key() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>one")]);
    fs::write(w.path("store"), "mine").unwrap();
    let ended =
        w.ratoon(&["run", "p.toml"]).expect(2).says("p.toml:3:9: `store` is a file: store\nhint: name a folder");
    assert!(!ended.stderr.contains("os error"), "{}", ended.stderr);
    fs::remove_file(w.path("store")).unwrap();
    fs::create_dir(w.path("snapshots/my night")).unwrap();
    let ended = w.ratoon(&["run", "p.toml"]).expect(1).says("hint: rename it, or move it out of the snapshots' root");
    assert_eq!(ended.stderr.matches("cannot be a snapshot id").count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.trim_end().ends_with("root"), "{}", ended.stderr);
    fs::remove_dir_all(w.path("snapshots")).unwrap();
    fs::write(w.path("snapshots"), "a list").unwrap();
    w.ratoon(&["run", "p.toml"]).expect(1).says("`snapshots` of p.toml: snapshots is a file; name the folder");
}

#[test]
fn a_stray_quote_costs_one_line_of_a_log() {
    let w = Workspace::new("");
    let day = |d: usize| format!("a,2024-02-{d:02}T09:00:00Z\n");
    let text: String = (1..=8).map(day).chain(["a,\"unclosed,2024\n".to_owned()]).chain((9..=28).map(day)).collect();
    fs::write(w.path("log.csv"), format!("source,updated_at\n{text}b,never\n")).unwrap();
    let ended = w.ratoon(&["schedule", "--updates", "log.csv"]).expect(3);
    let ended = ended.says("log.csv, line 10: a quoted field does not end; left out").says("log.csv, line 31: 'never'");
    assert!(ended.stdout.contains("from 28 updates"), "{}", ended.stdout);
}

#[test]
fn schedules_and_logs_that_are_missing_or_none_are_told() {
    let w = Workspace::new("");
    fs::write(w.path("log.csv"), "source,updated_at\na,2024-02-01T09:00:00Z\n").unwrap();
    let ended = w.ratoon(&["simulate", "--schedule", "log.csv", "--updates", "log.csv"]).expect(1);
    let told = "log.csv: not JSON: unexpected at column 1; a schedule is JSON, as `ratoon schedule --out DIR` writes";
    let ended = ended.says(told);
    assert_eq!(ended.stderr.matches("column").count(), 1, "{}", ended.stderr);
    w.ratoon(&["schedule"]).expect(2).says("ratoon schedule my.toml").says("ratoon schedule --updates log.csv");
}

#[test]
fn many_polls_are_told_by_some_of_them() {
    let w = Workspace::new("");
    let row =
        |i: usize| format!("a,2024-{:02}-{:02}T{:02}:{:02}:00Z\n", 1 + i / 560, 1 + i / 20 % 28, i % 20, i * 7 % 60);
    let text: String = (0..1_680).map(row).collect();
    fs::write(w.path("log.csv"), format!("source,updated_at\n{text}")).unwrap();
    let args = ["schedule", "--updates", "log.csv", "--period", "day", "--budget", "100"];
    let shown = w.ratoon(&args).expect(0).stdout;
    let line = shown.lines().find(|line| line.contains("recall by polls")).unwrap();
    assert!(line.contains(" 1: ") && line.contains(" 10: ") && line.contains(" 100: ") && line.len() < 500, "{line}");
}

#[test]
fn rejects_are_listed_once() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>a")]);
    let manifest = w.snapshot_dir("2024-01-01").join("manifest.jsonl");
    let lines = fs::read_to_string(&manifest).unwrap() + "{\"url\": \"http://site.test/b\"\n";
    fs::write(&manifest, lines).unwrap();
    let ended = w.ratoon(&["inspect", "snapshots", "-v"]).expect(3).says("would be rejected");
    assert!(!ended.stderr.contains("-v lists"), "{}", ended.stderr);
    assert!(ended.stdout.contains("a folder of 1 snapshot\n"), "{}", ended.stdout);
    let told = "manifest.jsonl at 2: not JSON: it ends too early";
    assert_eq!(ended.stdout.matches(told).count(), 1, "{}", ended.stdout);
    w.ratoon(&["inspect", "snapshots"]).expect(3).says("-v lists all rejects");
}

#[test]
fn damage_is_told_with_the_command_that_mends_it() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", &html("t", "one", "x"))]);
    w.run();
    let file = w.path("store/pages/snapshot=2024-01-01/part-00000.parquet");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    let ended = w.ratoon(&["show", "p.toml", "http://site.test/a"]).expect(1).says("`ratoon check p.toml`");
    assert!(!ended.stderr.contains("PIPELINE"), "{}", ended.stderr);
}

#[test]
fn a_table_called_like_its_extractor_is_told_its_name_in_sql() {
    let w = Workspace::new("[[extractor]]\nname = 'phone-w'\nkind = 'regex'\npattern = '[0-9]{3}'\n");
    w.snapshot("2024-01-01", &[("a", "<p>call 123")]);
    w.run();
    for name in ["mentions_phone-w", "mentions/phone-w"] {
        let told = format!("{name} is called mentions_phone_w in SQL");
        w.ratoon(&["sql", "p.toml", &format!("select * from {name}")]).expect(2).says(&told);
    }
    let tables = w.ratoon(&["sql", "p.toml", "show tables"]).expect(0).stdout;
    let documented = w.ratoon(&["tables"]).expect(0).stdout;
    assert!(tables.contains("texts") && documented.contains("`texts`"), "{tables}");
}

#[test]
fn what_comes_next_is_told_after_the_first_night() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>one")]);
    assert!(w.run().stdout.contains("\nnext: "));
    w.snapshot("2024-01-02", &[("a", "<p>two")]);
    let told = w.run().stdout;
    assert!(!told.contains("next: ") && told.ends_with("tables in store\n"), "{told}");
    assert!(w.run().stdout.contains("nothing to do: 2 snapshots done"));
}

/// Tabs and line ends of pages are spaces; nothing else of them is let through.
#[test]
fn page_text_on_one_line_has_spaces() {
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>Home")]);
    w.snapshot("2024-01-02", &[("a", "<p>Home</p><pre>Survey\t62494\tin the \u{1b}[2Jnorth of the country</pre>")]);
    w.run();
    let shown = w.ratoon(&["triage", "p.toml"]).expect(0).stdout;
    assert!(shown.contains("Survey 62494 in the ") && !shown.contains('\u{1b}'), "{shown}");
}
