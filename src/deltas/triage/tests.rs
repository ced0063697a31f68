use proptest::prelude::*;

use super::*;
use crate::deltas::segments::Comparison;
use crate::matching::{MatcherKind, Scratch};
use crate::model::rng::Rng;

fn candidate(url: &str, before: &str, after: &str) -> Candidate {
    Candidate {
        url: url.into(),
        change: TriageChange::Modified,
        before: before.to_owned(),
        after: after.to_owned(),
        together: None,
        mentions: 0,
        links_in: 0,
        returned: false,
    }
}

/// The groups, by the definition: two candidates at a time.
fn naive_groups(candidates: &[Candidate]) -> BTreeSet<BTreeSet<usize>> {
    let fold = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let numbers = |text: &str| {
        let mut out = String::new();
        for c in fold(text).chars() {
            let c = if c.is_numeric() { '0' } else { c };
            if !(c == '0' && out.ends_with('0')) {
                out.push(c);
            }
        }
        out
    };
    let same = |a: &Candidate, b: &Candidate, of: &dyn Fn(&str) -> String| {
        a.change == b.change
            && match (&a.together, &b.together) {
                (None, None) => of(&a.before) == of(&b.before) && of(&a.after) == of(&b.after),
                (a, b) => a == b,
            }
    };
    let by_numbers = |a: &Candidate, b: &Candidate| a.change == TriageChange::Modified && same(a, b, &numbers);
    let alike = |a: &Candidate, b: &Candidate| {
        let pages: BTreeSet<&str> = candidates.iter().filter(|c| by_numbers(a, c)).map(|c| &*c.url).collect();
        same(a, b, &fold) || (by_numbers(a, b) && pages.len() >= ALIKE_BY_NUMBERS)
    };
    let group = |a: &Candidate| (0..candidates.len()).filter(|&i| alike(a, &candidates[i])).collect();
    candidates.iter().map(group).collect()
}

fn any_candidate() -> impl Strategy<Value = Candidate> {
    let text = prop_oneof![Just(""), Just("a 1"), Just("a  1"), Just("a 22"), Just("b 3"), Just("b"), Just("a 1 b 7")];
    let change = prop_oneof![4 => Just(TriageChange::Modified), 1 => Just(TriageChange::Added)];
    let together = prop_oneof![5 => Just(None), 1 => Just(Some("x/".to_owned()))];
    ("[p-u]", text.clone(), text, change, together, 0u64..3, 0u64..4).prop_map(
        |(url, before, after, change, together, mentions, links_in)| Candidate {
            change,
            together,
            mentions,
            links_in,
            ..candidate(&url, before, after)
        },
    )
}

proptest! {
    /// Rows are the groups of the definition, whatever the order; every edit is in one row, and the first row counts most.
    #[test]
    fn rows_are_groups_of_edits_that_are_alike(candidates in proptest::collection::vec(any_candidate(), 0..30), turn in 0usize..30) {
        let rows = triage(candidates.clone());
        let urls = |group: &BTreeSet<usize>| group.iter().map(|&i| candidates[i].url.clone()).collect::<BTreeSet<_>>();
        let mut expected: Vec<Vec<Arc<str>>> =
            naive_groups(&candidates).iter().map(|group| urls(group).into_iter().collect()).collect();
        let mut found: Vec<Vec<Arc<str>>> = rows.iter().map(|row| row.urls.clone()).collect();
        expected.sort();
        found.sort();
        prop_assert_eq!(found, expected);
        prop_assert!(rows.is_sorted_by(|a, b| a.score >= b.score));
        prop_assert!(rows.iter().all(|row| row.score.is_finite() && row.score >= 0.0));
        let mut turned = candidates.clone();
        turned.rotate_left(turn.min(candidates.len()));
        prop_assert_eq!(triage(turned), rows);
    }
}

#[test]
fn what_a_row_counts_by() {
    let first = |a: Candidate, b: Candidate| triage(vec![a.clone(), b]).remove(0).shown == a;
    let words = candidate("a", "", "three new words");
    assert!(first(words.clone(), candidate("b", "", "word")), "more words");
    assert!(first(Candidate { mentions: 1, ..candidate("b", "", "word") }, candidate("a", "", "ward")), "a mention");
    assert!(first(Candidate { links_in: 9, ..candidate("b", "", "word") }, candidate("a", "", "ward")), "links");
    assert!(first(candidate("b", "", "word"), candidate("a", "", "1234")), "numbers");
    assert!(first(candidate("b", "", "word"), Candidate { returned: true, ..candidate("a", "", "ward") }), "news");
    let footer =
        (0..400).map(|i| candidate(&format!("p{i:03}"), "Site version 1", "Site version 2 with a long new footer"));
    let rows = triage(footer.chain([words.clone()]).collect());
    assert_eq!(
        (rows.len(), rows[0].shown == words, rows[1].alike()),
        (2, true, 400),
        "one edit on many pages is one row"
    );
}

#[test]
fn edits_are_what_a_reader_sees() {
    let compare = |old: &str, new: &str| {
        let mut regions = Vec::new();
        MatcherKind::Anchor.regions(old, new, 32, &mut Scratch::new(), &mut regions);
        let len = |text: &str| u32::try_from(text.len()).unwrap();
        let comparison = Comparison::new(len(old), len(new), &regions).by_words(old, new);
        let found = edits(old, new, &comparison, |_| true).into_iter();
        found.map(|edit| (old[edit.old].to_owned(), new[edit.new].to_owned())).collect::<Vec<_>>()
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let line = "A line that is long enough to be found again, wherever it stands.\n";
    let (old, new) =
        (format!("€27.00\n{line}The talk at 5 pm in room 3\n"), format!("€24.00\n{line}The talk at 6 pm in room 4\n"));
    assert_eq!(compare(&old, &new), [pair("€27.00", "€24.00"), pair("5 pm in room 3", "6 pm in room 4")]);
    let other = "Another line, of much the same length, that stands in both texts.\n";
    assert_eq!(compare(&format!("{line}{other}"), &format!("{other}{line}")), [], "moved, not edited");
    assert_eq!(compare(line, &format!("{line}More.\n")), [pair("", "More.")]);
    assert_eq!(compare(&format!("{line}More.\n"), line), [pair("More.", "")]);
    assert_eq!(compare("", ""), []);
}

/// A night of a site whose edits are labelled: words of the template begin with t, those of pages with c.
fn labelled_night(seed: u64) -> Vec<(String, String, String)> {
    let mut rng = Rng::new(seed);
    let text = |rng: &mut Rng, letter: char, n: u32| {
        (0..n).map(|_| format!("{letter}{:05}", rng.below(90_000))).collect::<Vec<_>>().join(" ")
    };
    let nav = text(&mut rng, 't', 30);
    let (banner, teaser) = (text(&mut rng, 't', 12), text(&mut rng, 't', 40));
    let sections = 1 + rng.below(4);
    let deploys: Vec<bool> = (0..sections).map(|_| rng.percent(70)).collect();
    let mut pages = Vec::new();
    for number in 0..400u32 {
        let section = number % sections;
        let paragraphs: Vec<String> = (0..6).map(|_| text(&mut rng, 'c', 25)).collect();
        let page = |paragraphs: &[String], version: u32, visitors: u32| {
            let banner = if version > 0 { &*banner } else { "tplain" };
            let teaser = if version > 0 { &teaser } else { &nav };
            format!(
                "{nav}\n{banner}\n{}\n{teaser}\ttail {section}.{version}\ntvisitors {visitors}\n",
                paragraphs.join("\n")
            )
        };
        let visitors = rng.below(10_000);
        let old = page(&paragraphs, 0, visitors);
        let mut now = paragraphs.clone();
        // Some pages are edited: a word, a sentence, a new paragraph.
        if rng.percent(6) {
            let at = rng.below(6) as usize;
            match rng.below(3) {
                0 => now[at] = now[at].replacen(' ', &format!(" {} ", text(&mut rng, 'c', 1)), 1),
                1 => now[at] = format!("{} {}", now[at], text(&mut rng, 'c', 9)),
                _ => now.insert(at, text(&mut rng, 'c', 30)),
            }
        }
        let new = page(&now, u32::from(deploys[section as usize]), visitors + 1 + rng.below(50));
        pages.push((format!("http://site.test/{section}/{number}"), old, new));
    }
    pages
}

/// Of the first 20 rows, how many are edits of pages and not of the template: over labelled nights.
#[test]
fn the_first_twenty_rows_are_content() {
    let mut precisions = Vec::new();
    for seed in 0..20 {
        let mut candidates = Vec::new();
        for (url, old, new) in labelled_night(seed) {
            let mut regions = Vec::new();
            MatcherKind::Anchor.regions(&old, &new, 32, &mut Scratch::new(), &mut regions);
            let len = |text: &str| u32::try_from(text.len()).unwrap();
            let comparison = Comparison::new(len(&old), len(&new), &regions).by_words(&old, &new);
            candidates.extend(
                edits(&old, &new, &comparison, |_| true)
                    .into_iter()
                    .map(|edit| candidate(&url, &old[edit.old], &new[edit.new])),
            );
        }
        let rows = triage(candidates);
        let is_content = |row: &TriageRow| row.shown.after.contains('c') || row.shown.before.contains('c');
        let there = rows.iter().filter(|row| is_content(row)).count().min(20);
        let found = rows.iter().take(there).filter(|row| is_content(row)).count();
        precisions.push(found as f64 / there as f64);
        let template = rows.iter().filter(|row| !is_content(row)).count();
        assert!(template <= 16, "seed {seed}: {template} rows for a few edits of the template");
    }
    let mean = precisions.iter().sum::<f64>() / precisions.len() as f64;
    assert!(mean >= 0.98, "precision at 20 is {mean:.3}: {precisions:?}");
}
