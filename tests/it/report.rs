//! `report`: one file that says what happened, with the numbers of the tables, harmless whatever pages say.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::workspace::{Ended, Workspace, project};

fn embedded(report: &Path) -> Value {
    let html = fs::read_to_string(report).unwrap();
    let block = html.split("<script type=\"application/json\" id=\"data\">").nth(1).unwrap();
    serde_json::from_str(block.split("</script>").next().unwrap()).unwrap()
}

fn python(script: &str) -> Command {
    let python = std::env::var("RATOON_PYTHON").expect("RATOON_PYTHON names a Python; make test sets it");
    let mut command = Command::new(python);
    command.arg("-B").arg(project().join("tests/python/report").join(script));
    command
}

/// What a browser makes of a file.
fn look(file: &Path) {
    let browser = std::env::var("RATOON_BROWSER").expect("RATOON_BROWSER names a Chromium; make test sets it");
    let ended = Ended::of(&python("look.py").arg(browser).arg(file).output().unwrap()).expect(0);
    assert!(ended.stdout.contains("nothing wrong"), "{}", ended.stdout);
}

/// What tables say of a report.
fn recompute(w: &Workspace, report: &str) {
    let ended = Ended::of(&python("recompute.py").arg(w.path("store")).arg(w.path(report)).output().unwrap()).expect(0);
    assert!(ended.stdout.contains("numbers agree"), "{}", ended.stdout);
}

const HOSTILE: &str = "&lt;/script&gt;&lt;script&gt;document.title='owned'&lt;/script&gt;&lt;img src='http://127.0.0.1:9/x' onerror=alert(1)&gt; \" ' &lt;/style&gt; \u{202e}gnp.exe";

/// A site that says nothing good, in its texts, titles, links and URLs.
fn hostile() -> Workspace {
    let w = Workspace::new(
        "[[extractor]]\nname = 'all'\nkind = 'regex'\npattern = '[^\\n]{1,200}'\n\n[[watch]]\nname = 'any'\non = { new_text = '.{1,99}' }\n",
    );
    let page = |more: &str| format!("<title>{HOSTILE}</title><p>{more}</p><a href='/?%3Cscript%3E'>{HOSTILE}</a>");
    for (id, more) in [("2024-01-01", "old"), ("2024-01-02", HOSTILE), ("2024-01-03", "</textarea><b>bold")] {
        let path = "p?q=%3Cscript%3Ealert(1)%3C/script%3E'\"><img src=x onerror=alert(1)>";
        w.snapshot(id, &[(path, &page(more)), ("b", &page("same"))]);
    }
    w.run();
    w
}

#[test]
fn a_run_leaves_a_report_and_shows_link_to_it() {
    let w = hostile();
    let data = embedded(&w.path("store/report.html"));
    assert_eq!(data["health"]["snapshots"], 3);
    assert_eq!(data["changes"]["since"], "2024-01-02");
    let html = fs::read_to_string(w.path("store/report.html")).unwrap();
    for tag in ["<img", "<script>", "javascript:", "\u{202e}", "<b>bold"] {
        assert!(!html.contains(tag), "{tag}");
    }
    assert_eq!(html.matches("</style>").count(), 1);
    assert_eq!(html.matches("</script>").count(), 2, "the data and the script");
    assert!(html.contains("default-src 'none'"));
    // Elsewhere, with the pages to read, which lead back.
    let ended = w.ratoon(&["report", "p.toml", "--out", "out/night.html", "--pages", "--json"]).expect(0);
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(said["report"], "out/night.html");
    let data = embedded(&w.path("out/night.html"));
    let page = data["changes"]["triage"][0]["page"].as_str().unwrap();
    assert!(page.starts_with("night_pages/"), "another report beside it has pages of its own: {page}");
    let page = fs::read_to_string(w.path("out").join(page)).unwrap();
    assert!(page.contains("<a href=\"../night.html\">") && !page.contains("<script") && !page.contains("<img"));
    assert_eq!(said["pages"].as_u64().unwrap(), data["changes"]["triage"].as_array().unwrap().len() as u64);
    w.ratoon(&["show", "p.toml", "http://site.test/b", "--html", "out/b.html"]).expect(0);
    assert!(fs::read_to_string(w.path("out/b.html")).unwrap().contains("<a href=\"../store/report.html\">"));
    fs::remove_file(w.path("store/report.html")).unwrap();
    w.ratoon(&["show", "p.toml", "http://site.test/b", "--html", "out/b.html"]).expect(0);
    assert!(!fs::read_to_string(w.path("out/b.html")).unwrap().contains("<a "), "there is no report to go to");
}

/// A run notes what its next report shows of earlier nights; with the note or without, damaged or of other tables, the report
/// is the same.
#[test]
fn what_is_noted_of_nights_is_what_their_tables_say() {
    let extractor = |pattern: &str| format!("[[extractor]]\nname = 'word'\nkind = 'regex'\npattern = '{pattern}'\n");
    let w = Workspace::new(&extractor("[a-z]{1,9}"));
    for n in 1..=5 {
        w.snapshot(&format!("2024-01-0{n}"), &[("a", &format!("<p>night {n}")), ("b", "<p>as ever")]);
        w.run();
    }
    let note = w.path("store/_meta/nights");
    let same = |why: &str| {
        let noted = {
            w.ratoon(&["report", "p.toml", "--out", "noted.html"]).expect(0);
            embedded(&w.path("noted.html"))
        };
        let kept = fs::read(&note).unwrap();
        fs::remove_file(&note).unwrap();
        w.ratoon(&["report", "p.toml", "--out", "read.html"]).expect(0);
        assert!(!note.exists(), "only a run writes into the store");
        assert_eq!(noted, embedded(&w.path("read.html")), "{why}");
        fs::write(&note, kept).unwrap();
        noted
    };
    let data = same("after five nights");
    assert_eq!(data["costs"]["nights"].as_array().unwrap().len(), 5);
    assert_eq!(data["rhythm"]["updates"], 4);
    let mut bytes = fs::read(&note).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&note, &bytes).unwrap();
    same("damaged");
    w.ratoon(&["run", "p.toml", "--force", "--snapshot", "2024-01-03"]).expect(0);
    same("done again");
    w.ratoon(&["drop", "p.toml", "--snapshot", "2024-01-05"]).expect(0);
    assert_eq!(same("dropped")["costs"]["nights"].as_array().unwrap().len(), 4);
}

#[test]
fn there_is_a_report_of_little_or_nothing() {
    let w = Workspace::new("");
    w.ratoon(&["report", "p.toml"]).expect(1).says("no store");
    w.snapshot("2024-01-01", &[("a", "<p>text")]);
    w.run();
    let data = embedded(&w.path("store/report.html"));
    assert_eq!((&data["changes"]["since"], data["health"]["shown"].as_array().unwrap().len()), (&Value::Null, 1));
    assert_eq!(data["found"]["extractors"], Value::Array(Vec::new()));
    w.ratoon(&["report", "p.toml", "--out", "/proc/no/such/file"]).expect(1).says("cannot write");
    w.ratoon(&["report", "p.toml", "--dry-run", "--out", "x.html"]).expect(0);
    assert!(!w.path("x.html").exists());
    assert!(w.ratoon(&["check", "p.toml"]).expect(0).stderr.is_empty(), "the report is none of the store's own files");
}

/// A poll is too small for a new report; problems are told in it.
#[test]
fn polls_leave_the_report_and_problems_are_in_it() {
    let w = Workspace::new("coverage = 'partial'");
    let pages: Vec<(String, String)> = (0..30).map(|i| (format!("p{i}"), format!("<p>page {i}</p>"))).collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot("2024-01-01", &pages);
    w.run();
    let before = fs::read(w.path("store/report.html")).unwrap();
    w.snapshot("2024-01-02", &[("p1", "<p>page one")]);
    w.run();
    assert_eq!(fs::read(w.path("store/report.html")).unwrap(), before);
    w.ratoon(&["report", "p.toml"]).expect(0);
    assert_eq!(embedded(&w.path("store/report.html"))["changes"]["changed"], 1);

    let w = Workspace::new("");
    w.snapshot("2024-01-01", &pages);
    w.snapshot("2024-01-02", &pages[..10]);
    w.ratoon(&["run", "p.toml"]).expect(3);
    let data = embedded(&w.path("store/report.html"));
    assert_eq!(data["health"]["problems"][0]["kind"], "missing_pages");
    assert_eq!(data["health"]["last_run"]["exit_code"], 3);
    assert!(fs::read_to_string(w.path("store/report.html")).unwrap().contains("class=\"verdict warn\""));
}

#[test]
#[ignore = "needs a Python with DuckDB and a browser: make test provides them"]
fn numbers_are_those_of_the_tables_and_a_browser_shows_them() {
    let w = Workspace::sample("campus");
    w.ratoon(&["run", "p.toml", "--plan", "anchor"]).expect(0);
    recompute(&w, "store/report.html");
    look(&w.path("store/report.html"));
    w.ratoon(&["report", "p.toml", "--out", "out/r.html", "--pages"]).expect(0);
    let data = embedded(&w.path("out/r.html"));
    look(&w.path("out").join(data["changes"]["triage"][0]["page"].as_str().unwrap()));
}

#[test]
#[ignore = "needs a Python with DuckDB and a browser: make test provides them"]
fn hostile_and_small_reports_are_harmless_in_a_browser() {
    let w = hostile();
    recompute(&w, "store/report.html");
    look(&w.path("store/report.html"));
    let w = Workspace::new("");
    w.snapshot("2024-01-01", &[("a", "<p>text")]);
    w.run();
    recompute(&w, "store/report.html");
    look(&w.path("store/report.html"));
}
