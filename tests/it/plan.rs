//! `plan`: what is chosen, that it is kept, and what it came to.

use ratoon::inside::matching::MatcherKind;
use ratoon::inside::plan::{AlternativeKind, Served};
use ratoon::inside::tables::extract::Extraction;
use ratoon::inside::tables::matching::RegionRow;
use ratoon::inside::tables::plan::{PlanCost, PlanRow};
use serde_json::Value;

use crate::workspace::{Workspace, html};

/// The sample is there to be looked at: from the second night on old and new pages are matched, mentions are copied from
/// regions and units, and the run says what that saved and what to look at next.
#[test]
fn the_sample_shows_regions_plans_and_savings() {
    let w = Workspace::sample("campus");
    let told = w.run().stdout;
    assert!(told.contains("recycling saved ") && told.contains("next: "), "{told}");
    let nights: Vec<String> = (2..=7).map(|day| format!("2024-03-0{day}")).collect();
    let matched = nights.iter().filter(|night| !w.rows::<RegionRow>(night).is_empty()).count();
    assert!(matched >= 4, "regions on {matched} of {} nights", nights.len());
    let (mut copied, mut found) = (0, 0);
    for night in &nights {
        let rows: Vec<Extraction> = w.rows(night);
        let of = |name: &str, served: fn(Served) -> bool| -> Vec<&Extraction> {
            rows.iter().filter(|row| &*row.extractor == name && served(row.matcher)).collect()
        };
        let by_unit = of("subject", |served| served == Served::Units);
        assert!(!by_unit.is_empty() && by_unit.iter().any(|row| row.copied > 0), "{night}");
        assert!(w.rows::<PlanRow>(night).iter().any(|row| row.chosen && row.recycle), "{night}");
        for cost in w.rows::<PlanCost>(night) {
            copied += cost.mentions_copied.unwrap_or(0);
            found += cost.mentions_extracted.unwrap_or(0);
        }
    }
    // One of the nights changes all pages, so that this holds for the week and not for each night.
    assert!(copied > found, "{copied} copied, {found} found");
}

const DAYS: [&str; 3] = ["2024-01-01", "2024-01-02", "2024-01-03"];

/// Pages that are edited in two places every night, pages that are not, and one that is new.
fn nights(w: &Workspace) {
    for (night, day) in DAYS.iter().enumerate() {
        let page = |i: usize| {
            let edit = if i.is_multiple_of(2) { night } else { 0 };
            let filler =
                |from: usize| (from..from + 250).map(|k| format!("word{i}x{k} Name{k}")).collect::<Vec<_>>().join(" ");
            let text = format!("Edit{edit} begins. {}. Edit{edit} in between. {}. The End", filler(0), filler(1000));
            (format!("p{i}"), html(&format!("Page {i}"), &text, "p0"))
        };
        let pages: Vec<_> = (0..30 + night).map(page).collect();
        let pages: Vec<_> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
        w.snapshot(day, &pages);
    }
}

/// A worker of our own, so slow that it is worth thinking about.
fn worker(more: &str) -> String {
    format!(
        "[[extractor]]\nname = 'names'\nkind = 'command'\ncommand = ['{}', 'bench-worker', '--bytes-per-second', '400000']\n\
         scope = 30\ncontext = 1\n{more}\n",
        env!("CARGO_BIN_EXE_ratoon")
    )
}

fn json(w: &Workspace, args: &[&str]) -> Value {
    serde_json::from_str(&w.ratoon(args).expect(0).stdout).unwrap()
}

fn step<'a>(summary: &'a Value, stage: &str, day: &str) -> &'a Value {
    let steps = summary["done"].as_array().unwrap();
    &steps.iter().find(|step| step["stage"] == stage && step["snapshot"] == day).unwrap()["summary"]
}

#[test]
fn a_dear_worker_is_given_complete_regions_and_the_summary_says_what_that_saved() {
    // As long as it takes to try every matcher.
    let w = Workspace::new(&format!("[plan]\nshare = 1000\n{}", worker("")));
    nights(&w);
    let summary = json(&w, &["run", "p.toml", "--json"]);
    let plan = step(&summary, "plan", DAYS[2]);
    assert_eq!((plan["alternative"].as_str(), plan["matcher"].as_str()), (Some("refined"), Some("anchor")), "{plan}");
    assert_eq!(plan["sample"]["pages"], 16, "every matcher is tried on every changed page: there are less than 30");
    assert!(w.rows::<RegionRow>(DAYS[2]).iter().all(|region| region.matcher == MatcherKind::Anchor));
    let extract = step(&summary, "extract", DAYS[2]);
    let saved = &extract["saved"];
    assert!(saved["bytes"].as_u64().unwrap() > saved["of_bytes"].as_u64().unwrap() / 2, "{saved}");
    assert!(saved["seconds"].as_f64().unwrap() > 0.0, "{saved}");
    assert!(saved["price"].is_null());
    // The table says the same, by how pages were served.
    let costs = w.rows::<PlanCost>(DAYS[2]);
    let of = |extractor: Option<&str>, matcher: &str| {
        costs.iter().find(|cost| cost.extractor.as_deref() == extractor && cost.matcher.as_str() == matcher).unwrap()
    };
    let (anchor, equal) = (of(Some("names"), "anchor"), of(Some("names"), "equal"));
    assert_eq!(anchor.pages + equal.pages + of(Some("names"), "none").pages, 32);
    assert!(anchor.bytes_extracted >= anchor.lower_bound_bytes && anchor.lower_bound_bytes > Some(0));
    assert_eq!(of(None, "anchor").pages, anchor.pages);
    assert!(of(None, "plan").choose_s.unwrap() > 0.0);
}

#[test]
fn a_price_is_minimised_and_its_saving_told() {
    let w = Workspace::new(&worker("price_per_mb = 2.5"));
    nights(&w);
    let summary = json(&w, &["run", "p.toml", "--json"]);
    let costs = &step(&summary, "extract", DAYS[1])["costs"]["names"];
    let saved = &step(&summary, "extract", DAYS[1])["saved"];
    let bytes = costs["text_bytes"].as_f64().unwrap() - costs["bytes_extracted"].as_f64().unwrap();
    assert!((saved["price"].as_f64().unwrap() - 2.5 * bytes / 1e6).abs() < 1e-9, "{saved}");
    let rows = w.rows::<PlanRow>(DAYS[1]);
    let wholes: Vec<_> = rows.iter().filter(|row| row.extractor.is_none()).collect();
    let chosen = wholes.iter().find(|row| row.chosen).unwrap();
    assert!(wholes.iter().all(|row| chosen.predicted_price <= row.predicted_price + 1e-9));
    let said = w.ratoon(&["plan", "p.toml", "--explain"]).expect(0).stdout;
    assert!(said.contains("price") && said.contains("<- chosen"), "{said}");
}

#[test]
fn cheap_patterns_are_extracted_again_rather_than_matched() {
    let w = Workspace::new("[[extractor]]\nname = 'name'\nkind = 'regex'\npattern = 'Edit[0-9]+'\n");
    nights(&w);
    w.run();
    assert_eq!(w.rows::<RegionRow>(DAYS[1]), []);
    let served = |page: &str| {
        let all = w.rows::<Extraction>(DAYS[1]);
        all.iter().find(|e| e.url.ends_with(page)).unwrap().matcher
    };
    assert_eq!((served("/p0"), served("/p1")), (Served::None, Served::Equal));
}

#[test]
fn a_plan_holds_once_something_was_done_by_it() {
    let w = Workspace::new(&worker(""));
    nights(&w);
    w.ratoon(&["extract", "p.toml", "--snapshot", DAYS[0], "--plan", "none"]).expect(0);
    w.ratoon(&["plan", "p.toml", "--snapshot", DAYS[1]]).expect(0);
    let chosen = |day: &str| {
        let summary = json(&w, &["plan", "p.toml", "--explain", "--json", "--snapshot", day]);
        (summary["choice"].as_str().unwrap().to_owned(), summary["measured"].is_null())
    };
    assert_eq!(chosen(DAYS[1]), ("auto".into(), true));
    // Nothing was done by it yet, so another can be asked for.
    w.ratoon(&["extract", "p.toml", "--snapshot", DAYS[1], "--plan", "edges"]).expect(0);
    assert!(w.rows::<RegionRow>(DAYS[1]).iter().all(|region| region.matcher == MatcherKind::Edges));
    // Now it holds, also when the extraction alone is done again.
    w.ratoon(&["extract", "p.toml", "--force", "--snapshot", DAYS[1]]).expect(0);
    let said: Value = json(&w, &["plan", "p.toml", "--explain", "--json", "--snapshot", DAYS[1]]);
    assert_eq!((said["choice"].as_str(), said["measured"].is_null()), (Some("edges"), false), "{said}");
    // Matching again by another plan is another matter.
    w.ratoon(&["match", "p.toml", "--force", "--snapshot", DAYS[1], "--plan", "diff"]).expect(0);
    let said: Value = json(&w, &["plan", "p.toml", "--explain", "--json", "--snapshot", DAYS[1]]);
    assert_eq!(said["choice"], "diff");
}

#[test]
fn a_forced_plan_is_taken_on_every_page() {
    for kind in MatcherKind::ALL {
        let w = Workspace::new(&format!(
            "[plan]\nchoose = '{kind}'\n[[extractor]]\nname = 'name'\nkind = 'regex'\npattern = 'Name[0-9]+'\n"
        ));
        nights(&w);
        w.run();
        let regions = w.rows::<RegionRow>(DAYS[1]);
        let mut urls: Vec<_> = regions.iter().map(|region| region.url.clone()).collect();
        urls.dedup();
        assert_eq!(urls.len(), 15, "{kind}");
        assert!(regions.iter().all(|region| region.matcher == kind));
        let rows = w.rows::<PlanRow>(DAYS[1]);
        let chosen = rows.iter().find(|row| row.chosen && row.extractor.is_none()).unwrap();
        assert_eq!(chosen.alternative, AlternativeKind::Matcher(kind));
    }
    let w = Workspace::new("[[extractor]]\nname = 'name'\nkind = 'regex'\npattern = 'Name[0-9]+'\n");
    nights(&w);
    w.ratoon(&["run", "p.toml", "--plan", "none"]).expect(0);
    assert!(w.rows::<Extraction>(DAYS[1]).iter().all(|e| e.matcher == Served::None && e.copied == 0));
}

#[test]
fn a_plan_is_explained_before_and_after_it_is_carried_out() {
    let w = Workspace::new(&worker(""));
    nights(&w);
    w.ratoon(&["extract", "p.toml", "--snapshot", DAYS[0]]).expect(0);
    let before = w.ratoon(&["plan", "p.toml", "--snapshot", DAYS[1], "--explain", "-v"]).expect(0).stdout;
    for word in [
        "none",
        "equal",
        "edges",
        "diff",
        "suffix-tree",
        "anchor",
        "refined",
        "  names",
        "<- chosen",
        "not extracted yet",
    ] {
        assert!(before.contains(word), "{word}: {before}");
    }
    w.run();
    let after = w.ratoon(&["plan", "p.toml", "--snapshot", DAYS[1], "--explain"]).expect(0).stdout;
    assert!(after.contains("measured: match") && after.contains("recycling saved"), "{after}");
    let wrong = w.ratoon(&["plan", "p.toml", "--explain", "--snapshot", "2030-01-01"]).expect(2).stderr;
    assert!(wrong.contains("no snapshot 2030-01-01"), "{wrong}");
}
