//! The ways to be wrong, one by one.
//!
//! Each is a test below, or cannot happen by construction, or is watched elsewhere:
//!
//! | trap | where |
//! | --- | --- |
//! | 1 to 11, 13 to 16, 18 to 23, 26 to 31, 44 to 46 | tests below |
//! | 12 UTF-8 cut | test below; regions off a character boundary are refused, slices are rounded outward |
//! | 17 page gate, 25 state across pages | a command that has them is not local: `audit` shows it; test below for the gate |
//! | 24 clock, URL, headers | an extractor is given text and nothing else |
//! | 32 false equality, 37 pages and mentions of different runs | every region is compared with both texts before use; test below |
//! | 33, 34, 35 something else changed | fingerprints: `extract::fingerprint`, tests there; a worker's own in its handshake |
//! | 36 failed page as a source | a failure is an error, not an empty list; test below. The caller keeps the status per page |
//! | 38, 39, 40 duplicate URL, missing URL, two runs | the store's: pages have one good capture, heads carry them forward, runs lock |
//! | 41 error lives for ever | `verify` |
//! | 42 equal sets, unequal files | canonical order; test below |
//! | 43 BOM, CRLF, NUL, invalid UTF-8 | text is `&str` before anything else happens; answers are checked against it; test below |

use crate::extract::command::{Command, CommandSpec, Offsets};
use crate::extract::dictionary::{Dictionary, Edit, Options};
use crate::extract::reach::{Declared, Reach, Unit};
use crate::extract::record::{Pairing, Part, Record};
use crate::extract::regex::Patterns;
use crate::extract::runner::Status;
use crate::extract::schema::{Attribute, Schema};
use crate::extract::traits::Extracts as _;
use crate::lab::recycling::check::{FromFn, check_pair};
use crate::lab::recycling::pages::all_regions;
use crate::recycle::audit::Auditor;
use crate::recycle::check::{compare, mentions};
use crate::recycle::*;

fn regex(pattern: &str) -> Extractor {
    Extractor::Regex(Patterns::new("pattern", &[pattern], Declared::default()).unwrap())
}

fn terms(list: &[&str]) -> Dictionary {
    Dictionary::new(list.iter().copied(), Options::default()).unwrap()
}

fn command(reach: (u32, u32, u32)) -> Extractor {
    let ready = serde_json::json!({ "name": "x", "offsets": "byte", "context": [reach.1, reach.2] });
    let spec = CommandSpec {
        argv: vec!["x".into()],
        declared: Declared { scope: Some(reach.0), context: None },
        unit: Some(Unit::Window),
        offsets: None,
        timeout: std::time::Duration::from_secs(1),
        in_flight: 1,
        ..CommandSpec::default()
    };
    Extractor::Command(Command::agree(spec, serde_json::from_value(ready).unwrap()).unwrap())
}

fn region(start: u32, end: u32, old_start: u32) -> Region {
    Region { start, end, old_start }
}

/// Matches at every start: nothing hides anything.
fn all_starts(pattern: &str) -> impl FnMut(&str) -> Vec<Mention> {
    let regex = ::regex::Regex::new(pattern).unwrap();
    move |text| {
        let starts = text.char_indices().map(|(at, _)| at);
        let found = starts.filter_map(|at| regex.find_at(text, at).filter(|m| m.start() == at));
        found.map(|m| Mention::plain(u32::try_from(m.start()).unwrap(), u32::try_from(m.end()).unwrap(), 0)).collect()
    }
}

/// Checks a pair with every region there is, and with each of them alone.
fn holds(extractor: &Extractor, runner: &mut dyn Runner, q: &str, p: &str) -> Recycled {
    let regions = all_regions(q, p);
    for region in &regions {
        check_pair(extractor, runner, q, p, std::slice::from_ref(region)).unwrap();
    }
    check_pair(extractor, runner, q, p, &regions).unwrap()
}

fn pattern_holds(pattern: &str, q: &str, p: &str) {
    holds(&regex(pattern), &mut NoWorker, q, p);
    holds(&regex(pattern), &mut NoWorker, p, q);
}

fn box_holds(pattern: &str, reach: (u32, u32, u32), q: &str, p: &str) -> Recycled {
    holds(&command(reach), &mut FromFn(all_starts(pattern)), p, q);
    holds(&command(reach), &mut FromFn(all_starts(pattern)), q, p)
}

#[test]
fn trap_01_non_overlapping_scan() {
    let page = check_pair(&regex("aa"), &mut NoWorker, "aaaa", "aaaaa", &[region(1, 5, 0)]).unwrap();
    assert_eq!(mentions(&page), [Mention::plain(0, 2, 0), Mention::plain(2, 4, 0)]);
    pattern_holds("aa", "aaaa", "aaaaa");
}

#[test]
fn trap_02_unbounded_quantifier() {
    pattern_holds("a+", "aab", "aaab");
    pattern_holds(r"(?s)a.*b", "aab", "baab\nb");
}

#[test]
fn trap_03_greedy_looks_right() {
    pattern_holds("a{1,3}", "xa", "xaa");
    box_holds("a{1,3}", (3, 0, 2), "xa", "xaa");
}

#[test]
fn trap_04_suppressed_by_an_earlier_alternative() {
    pattern_holds("abcd|b", "abc", "abcd");
    pattern_holds("abcd|b", "xabc", "xabcdabc");
}

#[test]
fn trap_05_look_around_at_a_cut() {
    pattern_holds(r"\bcat\b", "a dog sat on a mat and more of that", "a concat sat on a mat and more of that");
    box_holds(r"\bcat\b", (3, 4, 4), "a dog sat on a mat and more of that", "a concat sat on a mat and more");
}

#[test]
fn trap_06_anchors_at_a_cut() {
    pattern_holds(r"\Acat", "xcat and more", "cat and more");
    pattern_holds(r"cat\z", "some cats", "some cat");
    box_holds(r"\Acat", (3, 1, 0), "xcat and more", "cat and more");
    box_holds(r"cat\z", (3, 0, 1), "some cats", "some cat");
}

#[test]
fn trap_07_edge_of_the_old_page_only() {
    let page = check_pair(&regex(r"\bcat\b"), &mut NoWorker, "cat", "concat", &[region(3, 6, 0)]).unwrap();
    assert_eq!(page.found, []);
    box_holds(r"\bcat\b", (3, 4, 4), "cat", "concat");
}

#[test]
fn trap_08_edge_of_the_new_page_only() {
    let page = check_pair(&regex(r"\bcat\b"), &mut NoWorker, "concat", "cat", &[region(0, 3, 3)]).unwrap();
    assert_eq!(page.found.len(), 1);
    box_holds(r"\bcat\b", (3, 4, 4), "concat", "cat");
}

#[test]
fn trap_09_a_cut_invents() {
    // Finds a letter that nothing stands before.
    box_holds(r"\A[a-z]", (1, 1, 0), "aab", "aab ");
    box_holds(r"\A[a-z]", (1, 1, 0), "aabaabaab", "aabxaabaab");
}

#[test]
fn trap_10_gamma_off_by_one() {
    box_holds("(?:^|b)?c", (2, 1, 0), "bc", "c");
    for (pattern, reach) in [(r"\bc", (1, 1, 0)), (r"c\b", (1, 0, 1)), (r"\bc\b", (1, 1, 1)), (r"\bc", (2, 1, 1))] {
        box_holds(pattern, reach, "bc", "c");
        box_holds(pattern, reach, "cb bc", "c bc");
    }
}

#[test]
fn trap_11_characters_against_bytes() {
    assert_eq!(regex(r"\w{1,30}").reach().unwrap().scope, 120);
    assert_eq!(regex(r"\d{3}-\d{4}").reach().unwrap().scope, 29);
    assert_eq!(regex(r"(?i)k").reach().unwrap().scope, 3);
    pattern_holds(r"\b\w{1,3}\b", "ééé €€€ a", "éééé €€€ ab");
}

#[test]
fn trap_12_utf8_cut() {
    pattern_holds("[éè]{1,2}", "aéb", "aèb");
    let inside = [region(0, 2, 0), region(2, 4, 2)];
    let page = check_pair(&regex("[éè]"), &mut NoWorker, "aéb", "aèb", &inside).unwrap();
    assert_eq!(page.copied(), 0);
    box_holds("[éè]", (2, 3, 3), "aéb😀éèé", "aèb😀éèé");
}

#[test]
fn trap_13_empty_matches() {
    for pattern in ["x*", r"\b", "(?:a|)", "a{0,3}"] {
        assert!(Patterns::new("pattern", &[pattern], Declared::default()).is_err(), "{pattern}");
    }
}

#[test]
fn trap_14_dictionary_longest_match() {
    let dictionary = Extractor::Dictionary(terms(&["new york", "york city"]));
    let page = holds(&dictionary, &mut NoWorker, "york city", "new york city");
    assert_eq!(mentions(&page), [Mention::plain(0, 8, 0)]);
}

fn record(pairing: Pairing, many: bool, optional: bool, scope: u32) -> (Record, [Extractor; 2]) {
    let mut schema = Schema::default();
    let part = |name: &str, many, optional| Part { attribute: name.into(), extractor: name.into(), many, optional };
    let parts = vec![part("name", false, false), part("room", many, optional)];
    for part in &parts {
        schema.push(Attribute { name: part.attribute.clone(), many: part.many }).unwrap();
    }
    let extractors = [regex("Ann|Mary"), regex("Room [0-9]")];
    (Record::new(scope, parts, 0, pairing, 100, schema), extractors)
}

/// Recycles the parts, joins, compares with a join from scratch; returns the number of records.
fn record_holds((record, parts): &(Record, [Extractor; 2]), q: &str, p: &str) -> usize {
    let regions = all_regions(q, p);
    let recycled: Vec<Vec<Mention>> =
        parts.iter().map(|part| mentions(&check_pair(part, &mut NoWorker, q, p, &regions).unwrap())).collect();
    let fresh: Vec<Vec<Mention>> =
        parts.iter().map(|part| mentions(&scratch(part, &mut NoWorker, p).unwrap())).collect();
    let join = |lists: &[Vec<Mention>]| record.join(p, &[&lists[0], &lists[1]]);
    assert_eq!(join(&recycled), join(&fresh));
    join(&fresh).records.len()
}

#[test]
fn trap_15_overlap_resolution() {
    // A better mention arrives on the left: the scan is resolved left to right, in step.
    pattern_holds("abc|bcd|cde", "xbcde", "abcde");
}

#[test]
fn trap_16_cap() {
    // A cap counts the page's complete mentions; here the cap on records.
    let (_, extractors) = record(Pairing::All, false, false, 100);
    let mut schema = Schema::default();
    schema.push(Attribute { name: "name".into(), many: false }).unwrap();
    let part = Part { attribute: "name".into(), extractor: "name".into(), many: false, optional: false };
    let capped = Record::new(10, vec![part], 0, Pairing::All, 2, schema);
    let [q, p] = ["Ann Ann Mary", "Mary Ann Ann Mary"];
    let old = mentions(&scratch(&extractors[0], &mut NoWorker, q).unwrap());
    let recycled =
        recycle(&extractors[0], &mut NoWorker, Some(Old { text: q, mentions: &old }), p, &all_regions(q, p)).unwrap();
    let join = capped.join(p, &[&mentions(&recycled)]);
    assert!(join.capped);
    assert_eq!(join, capped.join(p, &[&mentions(&scratch(&extractors[0], &mut NoWorker, p).unwrap())]));
}

fn audit_fails(extract: impl FnMut(&str) -> Vec<Mention>, reach: (u32, u32, u32)) {
    let pages: Vec<String> = (0..4).map(|i| "Ann went to Mary. Then the rest of it. ".repeat(6 + i)).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let mut runner = FromFn(extract);
    let auditor = Auditor::new(&mut runner, Offsets::Byte, &pages).unwrap();
    let audit = auditor.audit(&mut runner, Reach::new(reach.0, reach.1, reach.2), 1, 200, 1).unwrap();
    assert!(!audit.passes());
}

#[test]
fn trap_17_page_gate() {
    let mut names = all_starts("Ann|Mary");
    audit_fails(move |text| if text.len() > 200 { names(text) } else { Vec::new() }, (4, 2, 2));
}

#[test]
fn trap_18_nearest_pairing() {
    let talk = record(Pairing::Nearest, false, false, 60);
    assert_eq!(record_holds(&talk, "Ann went to the Room 1", "Room 2 Ann went to the Room 1"), 1);
}

#[test]
fn trap_19_exclusive_pairing() {
    let talk = record(Pairing::Once, false, false, 60);
    let q = "Ann Room 1 Mary Room 2 Ann Room 3";
    assert_eq!(record_holds(&talk, q, &format!("Mary {q}")), 3);
}

#[test]
fn trap_20_nil_attribute() {
    let talk = record(Pairing::Nearest, false, true, 60);
    assert_eq!(record_holds(&talk, "Mary", "Mary Room 5"), 1);
    assert_eq!(record_holds(&talk, "Mary Room 5", "Mary"), 1);
}

#[test]
fn trap_21_set_valued_attribute() {
    let talk = record(Pairing::Nearest, true, true, 60);
    assert_eq!(record_holds(&talk, "Mary Room 1 Room 2", "Mary Room 1, Room 3 Room 2"), 1);
}

#[test]
fn trap_22_attributes_from_two_regions() {
    // Ann moved, Room 1 did not: no record may be pieced together from an old one.
    let talk = record(Pairing::Nearest, false, false, 40);
    let (q, p) = (
        "Ann sat in a chair ............................ Room 1",
        "............................ Room 1 Ann sat in a chair",
    );
    assert_eq!(record_holds(&talk, q, p), 1);
}

#[test]
fn trap_23_absolute_payload() {
    let named = regex("(?P<first>[A-Z]) (?P<last>[A-Z])");
    let page = holds(&named, &mut NoWorker, "A B and more text here", "xyz A B and more text here");
    let mention = &page.found[0].mention;
    let last = mention.attributes[1].pieces().first().unwrap();
    assert_eq!(mention.locate(last), Some(Span::new(6, 7)));
}

#[test]
fn trap_26_nondeterminism_is_declared() {
    let ready = serde_json::json!({ "name": "llm", "scope": 9, "deterministic": false });
    let Extractor::Command(known) = command((9, 0, 0)) else { unreachable!() };
    let agreed = Command::agree(known.spec().clone(), serde_json::from_value(ready).unwrap()).unwrap();
    assert!(!agreed.ready().deterministic);
    assert_eq!(agreed.notes().len(), 1);
}

#[test]
fn trap_27_sentence_context() {
    // Counts words from the start of what it sees: by window wrong, by paragraph right.
    let numbered = |text: &str| -> Vec<Mention> {
        let words = text.split(' ').filter(|word| !word.is_empty());
        let at = |word: &str| u32::try_from(word.as_ptr() as usize - text.as_ptr() as usize).unwrap();
        (0..)
            .zip(words)
            .map(|(i, word)| Mention::plain(at(word), at(word) + u32::try_from(word.len()).unwrap(), i))
            .collect()
    };
    let (q, p) = ("one two three\n\nfour five", "one two three\n\nzero four five");
    let Extractor::Command(windows) = command((9, 1, 1)) else { unreachable!() };
    let mut spec = windows.spec().clone();
    spec.unit = Some(Unit::Paragraph);
    let paragraphs = Extractor::Command(Command::agree(spec, windows.ready().clone()).unwrap());
    let page = holds(&paragraphs, &mut FromFn(numbered), q, p);
    assert_eq!((page.copied(), page.extracted()), (3, 3));
    assert!(check_pair(&Extractor::Command(windows), &mut FromFn(numbered), q, p, &all_regions(q, p)).is_err());
}

#[test]
fn trap_28_length_changing_normalisation() {
    // Folding keeps offsets in a dictionary; a worker's claim about its text is compared with the page (protocol
    // tests).
    let options = Options { ignore_case: true, ..Options::default() };
    let dictionary = Extractor::Dictionary(Dictionary::new(["stra\u{df}e"], options).unwrap());
    let page = holds(&dictionary, &mut NoWorker, "İ STRAßE", "İİ STRAßE");
    assert_eq!(page.found[0].mention.span(), Span::new(5, 12));
}

#[test]
fn trap_29_covered_twice() {
    let (q, p) = ("....cat....cat....", "....cat....cat....cat....");
    let page = box_holds("cat", (3, 1, 1), q, p);
    assert_eq!(page.found.len(), 3);
}

#[test]
fn trap_30_in_copy_and_extraction_zone() {
    let (q, p) = ("......cat.......................", "x.....cat.......................");
    let page = box_holds("cat", (3, 3, 3), q, p);
    assert_eq!(page.found.len(), 1);
}

#[test]
fn trap_31_widened_slices() {
    // Byte windows in text of three-byte characters: slices are rounded outward and may touch.
    let (q, p) = ("€€€€€€€€€€€€€€€€€€€€", "€€€€€é€€€€€é€€€€€€€€");
    box_holds("€", (3, 2, 2), q, p);
    box_holds("€€", (6, 4, 4), q, p);
}

#[test]
fn trap_32_false_equality() {
    let page = check_pair(&regex("a[0-9]"), &mut NoWorker, "a1 a2 a3", "a1 b2 a3", &[region(0, 8, 0)]).unwrap();
    assert_eq!(page.found.len(), 2);
    // Beyond either page, and backwards.
    let wild = [region(2, 900, 0), region(5, 3, 0), region(0, 8, 7)];
    check_pair(&regex("a[0-9]"), &mut NoWorker, "a1 a2 a3", "a1 b2 a3", &wild).unwrap();
}

#[test]
fn trap_36_a_failure_is_no_empty_page() {
    let failure = scratch(&command((9, 0, 0)), &mut NoWorker, "text").unwrap_err();
    assert_eq!(failure.status(), Status::Failed);
}

#[test]
fn trap_42_canonical_order() {
    let several = Extractor::Regex(Patterns::new("patterns", &["b.", "a.", "."], Declared::default()).unwrap());
    let page = holds(&several, &mut NoWorker, "abab", "xabab");
    assert!(page.found.is_sorted_by(|a, b| a.mention <= b.mention));
}

#[test]
fn trap_43_odd_characters() {
    pattern_holds("(?mR)^a$", "a\r\na\n\0a", "a\r\na\r\0a");
    pattern_holds("[^b]{2}", "\0\0\u{feff}b", "\0\u{feff}\0b\u{fffd}");
}

#[test]
fn trap_44_regions_around_split_points() {
    // Two overlapping regions with different shifts: each mention in their seam is copied once.
    let q = "--one two three--....--two three four--";
    let p = "--one two three four--";
    let page = box_holds("one|two|three|four", (5, 1, 1), q, p);
    assert_eq!(page.found.len(), 4);
}

#[test]
fn trap_45_empty_regions() {
    check_pair(&regex("a"), &mut NoWorker, "x", "ab", &[region(0, 0, 0), region(2, 2, 1)]).unwrap();
}

#[test]
fn trap_46_dictionary_edit() {
    let (before, after) = (terms(&["new york", "york city"]), terms(&["york city"]));
    let text = "new york city, new york";
    let edit = Edit::new(&before, &after).unwrap().unwrap();
    let got: Vec<Mention> = edit.apply(text, &before.extract(text)).found.into_iter().map(|f| f.mention).collect();
    assert_eq!(got, [Mention::plain(4, 13, 0)]);
    compare(&after.extract(text), &got).unwrap();
    // And the other way: an added term hides one that was found.
    let edit = Edit::new(&after, &before).unwrap().unwrap();
    let got: Vec<Mention> = edit.apply(text, &after.extract(text)).found.into_iter().map(|f| f.mention).collect();
    compare(&before.extract(text), &got).unwrap();
}
