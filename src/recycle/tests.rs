//! How much is saved: pages of words with a few edits, regions as the matchers report them.

mod traps;

use super::*;
use crate::extract::command::{Command, CommandSpec};
use crate::extract::dictionary::{Dictionary, Options};
use crate::extract::reach::Declared;
use crate::extract::regex::Patterns;
use crate::lab::recycling::check::{FromFn, check_pair};
use crate::lab::recycling::pages::all_regions;
use crate::model::Rng;

const WORDS: &[&str] = &[
    "the",
    "seminar",
    "Ann",
    "Lee",
    "talks",
    "about",
    "Room",
    "12",
    "Hall",
    "5pm",
    "information",
    "retrieval",
    "and",
    "databases",
    "on",
    "Monday",
    "Bob",
    "Smith",
    "\n",
    "crawling",
    "né",
    "10:30",
    "am",
    "web",
    "of",
    "a",
    "for",
    "will",
];

fn page(rng: &mut Rng, words: usize) -> String {
    (0..words).map(|_| format!("{}{} ", WORDS[rng.index(WORDS.len())], rng.index(7))).collect()
}

fn edit(rng: &mut Rng, text: &str) -> String {
    let mut out = text.to_owned();
    for _ in 0..1 + rng.index(3) {
        let at = out.floor_char_boundary(rng.index(out.len()));
        let end = out.ceil_char_boundary((at + rng.index(30)).min(out.len()));
        let insert = page(rng, 2);
        out.replace_range(at..end, &insert);
    }
    out
}

/// Maximal regions of at least `least` bytes and the common prefix and suffix, none inside another.
fn matched(q: &str, p: &str, least: u32) -> Vec<Region> {
    let edge = |r: &Region| {
        (r.start == 0 && r.old_start == 0) || (r.end as usize == p.len() && r.old_end() as usize == q.len())
    };
    let mut regions = all_regions(q, p);
    regions.retain(|region| region.len() >= least || edge(region));
    let all = regions.clone();
    regions.retain(|r| edge(r) || !all.iter().any(|o| o.span().contains(r.span()) && o.len() > r.len()));
    regions
}

fn share(extractor: &Extractor, runner: &mut dyn Runner) -> (u64, u64, u64) {
    let mut rng = Rng::of_round(77, 0);
    let mut sums = (0, 0, 0);
    for _ in 0..25 {
        let q = page(&mut rng, 300);
        let p = edit(&mut rng, &q);
        let least = extractor.traits().useful_region.unwrap();
        let recycled = check_pair(extractor, runner, &q, &p, &matched(&q, &p, least)).unwrap();
        sums.0 += recycled.bytes_extracted;
        sums.1 += recycled.lower_bound.unwrap();
        sums.2 += p.len() as u64;
    }
    sums
}

fn stays_near(extractor: &Extractor, runner: &mut dyn Runner) {
    let (extracted, bound, total) = share(extractor, runner);
    assert!(extracted * 10 <= bound * 11, "{extracted} extracted, bound {bound}");
    assert!(extracted * 3 < total, "{extracted} of {total}");
}

#[test]
fn work_stays_within_a_tenth_of_the_lower_bound() {
    let patterns = [
        "(?P<first>[A-Z][a-z]{1,15}) (?P<last>[A-Z][a-z]{1,20})",
        r"\b[0-9]{1,2}(?::[0-9]{2})? ?[ap]m\b",
        "(?:Room|Hall) [A-Z]?[0-9]{1,4}",
    ];
    for pattern in patterns {
        let patterns = Patterns::new("pattern", &[pattern], Declared::default()).unwrap();
        stays_near(&Extractor::Regex(patterns), &mut NoWorker);
    }
    let options = Options { whole_word: true, ignore_case: true, ..Options::default() };
    let dictionary =
        Dictionary::new(["information0 retrieval1", "web3", "talks2 about4 databases", "monday2"], options);
    stays_near(&Extractor::Dictionary(dictionary.unwrap()), &mut NoWorker);
    let spec = CommandSpec {
        argv: vec!["x".into()],
        declared: Declared { scope: Some(20), context: Some(8) },
        unit: None,
        offsets: None,
        timeout: std::time::Duration::from_secs(1),
        in_flight: 1,
        ..CommandSpec::default()
    };
    let ready = serde_json::from_value(serde_json::json!({ "name": "x" })).unwrap();
    let command = Extractor::Command(Command::agree(spec, ready).unwrap());
    let regex = ::regex::Regex::new(r"\b[A-Z][a-z]{1,9}[0-9]\b").unwrap();
    let extract = |text: &str| {
        let plain = |m: ::regex::Match<'_>| {
            Mention::plain(u32::try_from(m.start()).unwrap(), u32::try_from(m.end()).unwrap(), 0)
        };
        regex.find_iter(text).map(plain).collect()
    };
    stays_near(&command, &mut FromFn(extract));
}

#[test]
fn an_equal_page_is_copied_whole_and_an_unlike_one_not_at_all() {
    let extractor = Extractor::Regex(Patterns::new("pattern", &[r"\A.+\z"], Declared::default()).unwrap());
    let page = check_pair(&extractor, &mut NoWorker, "abc", "abc", &[]).unwrap();
    assert_eq!((page.copied(), page.bytes_extracted), (1, 0));
    let page = check_pair(&extractor, &mut NoWorker, "abc", "abcd", &all_regions("abc", "abcd")).unwrap();
    assert_eq!((page.copied(), page.bytes_extracted), (0, 4));
}
