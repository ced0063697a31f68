//! `triage`: what a person should read first, on sites whose edits are known.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::workspace::Workspace;

fn triage(w: &Workspace, args: &[&str]) -> Value {
    let args = [&["triage", "p.toml", "--json"], args].concat();
    serde_json::from_str(&w.ratoon(&args).expect(0).stdout).unwrap()
}

const TEXT: &str = "A paragraph of a page that is long enough to be found again wherever it may go.";

/// Forty pages below one navigation and footer, by night.
fn site(night: u32, content: impl Fn(u32) -> String) -> Vec<(String, String)> {
    let page = |number: u32| {
        let html = format!(
            "<title>Page {number}</title><p>Home | Version {night} of the navigation</p><p>{TEXT} It is of page {number}.</p>\
             <p>{}</p><a href='/p0'>start</a><p>Copyright 202{night}, all rights reserved</p>",
            content(number)
        );
        (format!("p{number}"), html)
    };
    (0..40).map(page).collect()
}

fn write(w: &Workspace, id: &str, pages: &[(String, String)]) {
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    w.snapshot(id, &pages);
}

#[test]
fn one_edit_on_many_pages_is_one_row() {
    let w = Workspace::new("ignore = ['Visitors: [0-9]+']");
    write(&w, "2024-01-01", &site(1, |number| format!("Visitors: {number}. The price is €27.00 today")));
    w.run();
    let first = w.ratoon(&["triage", "p.toml"]).expect(0).stdout;
    assert!(first.contains("nothing to compare it with"), "{first}");
    let content = |number: u32| {
        let price = if number == 7 { "24" } else { "27" };
        format!("Visitors: {}. The price is €{price}.00 today", number + 100)
    };
    write(&w, "2024-01-02", &site(2, content));
    w.run();
    let found = triage(&w, &[]);
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(
        (&found["since"], &found["to"], &found["pages"]),
        (&"2024-01-01".into(), &"2024-01-02".into(), &40.into())
    );
    // What is on one page first; navigation and footer once each, whatever ignore rules match not at all.
    assert_eq!(rows.len(), 3, "{found:#}");
    let sides = |row: &Value| (row["before"].as_str().unwrap().to_owned(), row["after"].as_str().unwrap().to_owned());
    assert_eq!(sides(&rows[0]), ("€27.00".to_owned(), "€24.00".to_owned()), "by words");
    assert_eq!((&rows[0]["url"], &rows[0]["alike"]), (&"http://site.test/p7".into(), &1.into()));
    assert_eq!(rows[1..].iter().map(|row| row["alike"].as_u64().unwrap()).collect::<Vec<_>>(), [40, 40]);
    assert_eq!(rows[1]["links_in"], 39, "all link to the first page: {found:#}");
    let text = w.ratoon(&["triage", "p.toml", "--limit", "1"]).expect(0).stdout;
    assert!(text.starts_with("  1. modified http://site.test/p7"), "{text}");
    assert!(text.contains("     - €27.00\n     + €24.00\nand 2 more"), "{text}");
    w.ratoon(&["triage", "p.toml", "--since", "2023-01-01"]).expect(2).says("2023-01-01");
}

#[test]
fn several_nights_are_one_change() {
    let w = Workspace::new("[[extractor]]\nname = 'who'\nkind = 'regex'\npattern = 'Dr\\. [A-Z][a-z]{1,9}'\n");
    let page = |text: &str| format!("<title>t</title><p>{TEXT}</p><p>{text}</p>");
    let night = |id: &str, a: &str, rest: &[(&str, &str)]| {
        let a = page(a);
        let mut pages = vec![("a", a.as_str())];
        pages.extend(rest);
        w.snapshot(id, &pages);
    };
    let (b, c) = (page("b stays until it goes"), page("c comes"));
    night("2024-01-01", "Dr. No was here", &[("b", &b)]);
    night("2024-01-02", "Dr. Who was here", &[("b", &b), ("c", &c)]);
    night("2024-01-03", "Dr. Jones was here", &[("c", &c)]);
    w.run();
    let found = triage(&w, &["--since", "2024-01-01"]);
    let rows: BTreeMap<&str, &Value> =
        found["rows"].as_array().unwrap().iter().map(|row| (row["url"].as_str().unwrap(), row)).collect();
    assert_eq!(rows.len(), 3, "{found:#}");
    let edit = rows["http://site.test/a"];
    assert_eq!(
        (&edit["before"], &edit["after"], &edit["mentions"]),
        (&"No".into(), &"Jones".into(), &2.into()),
        "{found:#}"
    );
    assert_eq!(rows["http://site.test/b"]["change"], "deleted");
    assert_eq!(rows["http://site.test/c"]["change"], "added");
    let last = triage(&w, &[]);
    assert_eq!(last["since"], "2024-01-02");
    assert_eq!(last["found"], 2, "the last night alone: {last:#}");
}

/// Sites of `ratoon synth`, which says what it changed: on nights with a new template, what comes first is what pages say.
#[test]
fn content_comes_before_templates_on_synthetic_nights() {
    let (mut precisions, mut template_nights) = (Vec::new(), 0);
    for seed in ["3", "4"] {
        let w = Workspace::new("coverage = 'partial'");
        let args = ["synth", "snapshots", "--pages", "400", "--snapshots", "4", "--seed", seed, "--part", "campus"];
        w.ratoon(&[&args[..], &["--boilerplate", "0.7", "--layout", "manifest", "--change", "0.06"]].concat())
            .expect(0);
        let read = |name: &str| fs::read_to_string(w.path("truth").join(name)).unwrap();
        let labels = read("edits.csv");
        for night in 1..4 {
            let id = format!("2024-03-0{}", night + 1);
            w.ratoon(&["run", "p.toml", "--snapshot", &id, "-q"]).expect(0);
            let of = |kind: &str| -> BTreeSet<String> {
                let lines = labels.lines().filter_map(|line| line.strip_prefix(&format!("{id},{kind},")));
                lines.map(ToOwned::to_owned).collect()
            };
            let (content, template) = (of("content"), of("template"));
            template_nights += usize::from(!template.is_empty());
            let found = triage(&w, &["--limit", "20"]);
            // What the template and counters say is in their own words.
            let is_template = |row: &Value| {
                let text = format!("{} {}", row["before"].as_str().unwrap(), row["after"].as_str().unwrap());
                ["Site version", "Page served on", "Visitors:"].iter().any(|words| text.contains(words))
                    || ["", "Open Day", "Summer School", "Vacancies"].contains(&text.trim())
                    || row["alike"].as_u64() > Some(40)
            };
            let rows = found["rows"].as_array().unwrap();
            let good = |row: &&Value| {
                let urls = row["urls"].as_array().unwrap();
                !is_template(row) && urls.iter().any(|url| content.contains(url.as_str().unwrap()))
            };
            precisions.push(rows.iter().filter(good).count() as f64 / rows.len().min(20) as f64);
        }
    }
    let mean = precisions.iter().sum::<f64>() / precisions.len() as f64;
    assert!(template_nights >= 3, "{template_nights} nights with a new template");
    assert!(mean >= 0.95, "precision at 20 is {mean:.3}: {precisions:?}");
}
