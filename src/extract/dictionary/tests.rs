use proptest::prelude::*;
use regex_syntax::is_word_character;

use super::*;

fn dictionary(terms: &[&str], whole_word: bool, ignore_case: bool) -> Dictionary {
    Dictionary::new(terms.iter().copied(), Options { whole_word, ignore_case, ..Options::default() }).unwrap()
}

/// The same by the finder that many terms get.
fn of_many(terms: &[&str], ignore_case: bool) -> Dictionary {
    Dictionary::with_few(terms.iter().copied(), Options { ignore_case, ..Options::default() }, 0).unwrap()
}

/// The definition, read literally.
fn naive(terms: &[&str], whole_word: bool, ignore_case: bool, text: &str) -> Vec<(usize, usize, String)> {
    let key = |s: &str| if ignore_case { fold(s) } else { s.to_owned() };
    let folded = key(text);
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let mut best: Option<(usize, &str)> = None;
        for &term in terms {
            let wanted = key(term);
            if !text.is_char_boundary(at) || term.is_empty() || !folded[at..].starts_with(&wanted) {
                continue;
            }
            let end = at + wanted.len();
            let touches = text[..at].chars().next_back().is_some_and(is_word_character)
                || text[end..].chars().next().is_some_and(is_word_character);
            if (whole_word && touches) || best.is_some_and(|(longest, _)| end <= longest) {
                continue;
            }
            best = Some((end, term));
        }
        match best {
            Some((end, term)) => {
                out.push((at, end, term.to_owned()));
                at = end;
            }
            None => at += 1,
        }
    }
    out
}

fn found(dictionary: &Dictionary, text: &str) -> Vec<(usize, usize, String)> {
    let row = |m: &Mention| (m.start as usize, m.end as usize, dictionary.term(m.label).unwrap().to_owned());
    dictionary.extract(text).iter().map(row).collect()
}

fn term() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]{1,4}", "[abA é+]{1,6}"]
        .prop_map(|s: String| s.trim().to_owned())
        .prop_filter("empty", |s| !s.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn means_what_the_definition_says(
        terms in prop::collection::vec(term(), 1..8),
        text in "[abA éÉ+_\n]{0,40}",
        whole_word: bool,
        ignore_case: bool,
    ) {
        let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
        let dictionary = dictionary(&terms, whole_word, ignore_case);
        let expected = naive(&terms, whole_word, ignore_case, &text);
        prop_assert_eq!(&found(&dictionary, &text), &expected);
        if !whole_word {
            prop_assert_eq!(found(&of_many(&terms, ignore_case), &text), expected);
        }
    }

    /// Every span gives what the page gives, as long as it leaves room for the longest term.
    #[test]
    fn a_span_sees_the_page_around_it(
        terms in prop::collection::vec(term(), 1..6),
        text in "[abA é+]{1,30}",
        whole_word: bool,
        ignore_case: bool,
        many: bool,
        from in 0usize..30,
    ) {
        let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
        let dictionary =
            if many && !whole_word { of_many(&terms, ignore_case) } else { dictionary(&terms, whole_word, ignore_case) };
        let from = from.min(text.len());
        let all: Vec<_> = (from..=text.len()).filter_map(|at| dictionary.scan().next(&text, at, text.len())).collect();
        for until in from..text.len() {
            let end = (until + dictionary.reach().scope as usize).min(text.len());
            let first = dictionary.scan().next(&text, from, end).filter(|m| m.start as usize <= until);
            prop_assert_eq!(first, all.first().cloned().filter(|m| m.start as usize <= until));
        }
    }

    /// Trap 46 in general: any change of the list, any page.
    #[test]
    fn an_edit_gives_what_the_new_list_gives(
        before in prop::collection::vec(term(), 1..8),
        after in prop::collection::vec(term(), 0..5),
        keep in prop::collection::vec(any::<bool>(), 8),
        text in "[abA é+]{0,60}",
        whole_word: bool,
        ignore_case: bool,
    ) {
        let old_terms: Vec<&str> = before.iter().map(String::as_str).collect();
        let kept = old_terms.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(term, _)| *term);
        let new_terms: Vec<&str> = after.iter().map(String::as_str).chain(kept).collect();
        let old = dictionary(&old_terms, whole_word, ignore_case);
        let new = dictionary(&new_terms, whole_word, ignore_case);
        let edit = Edit::new(&old, &new).unwrap().unwrap();
        let mentions = old.extract(&text);
        let edited = edit.apply(&text, &mentions);
        let got: Vec<Mention> = edited.found.iter().map(|found| found.mention.clone()).collect();
        prop_assert_eq!(got, new.extract(&text));
        for found in &edited.found {
            if let Some(source) = found.source {
                prop_assert_eq!(mentions[source as usize].span(), found.mention.span());
            }
        }
    }
}

#[test]
fn whole_words_are_not_hidden_by_what_is_no_whole_word() {
    let d = dictionary(&["new york", "york city", "new", "c++", "+"], true, false);
    assert_eq!(found(&d, "new yorker"), [(0, 3, "new".to_owned())]);
    assert_eq!(found(&d, "new york city")[0], (0, 8, "new york".to_owned()));
    assert_eq!(found(&d, "renew york city"), [(6, 15, "york city".to_owned())]);
    assert_eq!(found(&d, "in c++, or c++11"), [(3, 6, "c++".to_owned())]);
    assert_eq!(found(&d, "1 + 1"), [(2, 3, "+".to_owned())]);
}

/// Quadratic construction would take minutes here (F13).
#[test]
fn a_long_list_of_terms_that_are_alike_is_soon_loaded() {
    let file: String = (0..300_000).map(|i| format!("term {i}\n")).collect();
    let d = Dictionary::new(Dictionary::terms_of(&file), Options::default()).unwrap();
    assert!(matches!(d.finder, Finder::ManyAnywhere(_)));
    let expected = [(2, 13, "term 299999".to_owned()), (15, 25, "term 30000".to_owned())];
    assert_eq!(found(&d, "a term 299999, term 300000"), expected);
}

#[test]
fn terms_equal_after_folding_are_one() {
    let d = dictionary(&["École", "école", "ÉCOLE"], true, true);
    assert_eq!(d.len(), 1);
    assert_eq!(found(&d, "l'ÉCOLE"), [(2, 8, "École".to_owned())]);
    assert_eq!(d.label("École"), Some(0));
    assert_eq!(d.label("école"), None);
}

#[test]
fn lists_are_read_line_by_line() {
    let terms: Vec<_> = Dictionary::terms_of("\u{feff}alpha\r\n\n  beta gamma \n#3\n").collect();
    assert_eq!(terms, ["alpha", "beta gamma", "#3"]);
}

#[test]
fn an_edit_touches_little() {
    let old = dictionary(&["new york", "york city", "paris"], true, false);
    let new = dictionary(&["york city", "paris", "rome"], true, false);
    let text = "paris, new york city, rome, paris ".repeat(100);
    let edited = Edit::new(&old, &new).unwrap().unwrap().apply(&text, &old.extract(&text));
    let copied = edited.found.iter().filter(|found| found.source.is_some()).count();
    assert_eq!((copied, edited.found.len()), (200, 400));
    assert!(edited.bytes_extracted < text.len() as u64 * 6 / 10, "{}", edited.bytes_extracted);
    assert!(Edit::new(&dictionary(&["a"], false, false), &new).unwrap().is_none());
}

fn long_term() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]{3,9}", "[abA é+]{3,12}", "[ab]{2}é[ab ]{1,9}"]
        .prop_map(|s: String| s.trim().to_owned())
        .prop_filter("short", |s| s.len() >= 3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    /// By heads, and by the automaton that takes over from them where texts are many.
    #[test]
    fn heads_find_what_the_definition_says(
        terms in prop::collection::vec(long_term(), 1..12),
        text in "[abA é+]{0,80}",
        ignore_case: bool,
    ) {
        let terms: Vec<&str> = terms.iter().map(String::as_str).collect();
        let d = of_many(&terms, ignore_case);
        prop_assert!(matches!(d.finder, Finder::ManyAnywhere(_)));
        let expected = naive(&terms, false, ignore_case, &text);
        prop_assert_eq!(found(&d, &text), expected.clone());
        for _ in 0..40 {
            let _ = d.extract(&text);
        }
        prop_assert_eq!(found(&d, &text), expected);
    }
}

#[test]
fn where_there_is_much_text_the_automaton_takes_over() {
    let d = of_many(&["abcdef", "abc", "abcd"], false);
    let Finder::ManyAnywhere(heads) = &d.finder else { panic!("they are many") };
    let text = "abcde abcdef abx ".repeat(20);
    let before = found(&d, &text);
    assert_eq!(before[..2], [(0, 4, "abcd".to_owned()), (6, 12, "abcdef".to_owned())]);
    assert!(!heads.is_built());
    (0..10).for_each(|_| _ = d.extract(&text));
    assert!(heads.is_built());
    assert_eq!(found(&d, &text), before);
}
