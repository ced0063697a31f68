//! One table of cases and one set of properties, for all matchers.

use proptest::prelude::*;

use super::anchor::Edges;
use super::*;

const LENGTHS: [u32; 12] = [1, 2, 5, 12, 13, 20, 24, 30, 48, 75, 89, 150];

fn run(kind: MatcherKind, old: &str, new: &str, min_len: u32) -> Vec<Region> {
    let mut out = vec![Region { start: 9, end: 9, old_start: 9 }];
    kind.regions(old, new, min_len, &mut Scratch::new(), &mut out);
    out
}

fn run_at_least(kind: MatcherKind, old: &str, new: &str, min_len: u32) -> Vec<Region> {
    let mut out = Vec::new();
    kind.regions_at_least(old, new, min_len, &mut Scratch::new(), &mut out);
    out
}

fn region(start: u32, end: u32, old_start: u32) -> Region {
    Region { start, end, old_start }
}

/// Name, old page, new page, all maximal regions as (start, end, old start).
type Case = (&'static str, &'static str, &'static str, &'static [(u32, u32, u32)]);

const CASES: &[Case] = &[
    ("both empty", "", "", &[]),
    ("old empty", "", "abc", &[]),
    ("new empty", "abc", "", &[]),
    ("equal", "abc", "abc", &[(0, 3, 0)]),
    ("nothing in common", "abc", "xyz", &[]),
    ("one byte", "a", "a", &[(0, 1, 0)]),
    ("new is a prefix", "abcdef", "abc", &[(0, 3, 0)]),
    ("new is a suffix", "abcdef", "def", &[(0, 3, 3)]),
    ("new is inside", "abcdef", "cd", &[(0, 2, 2)]),
    ("old is a prefix", "abc", "abcdef", &[(0, 3, 0)]),
    ("a byte changed", "abcdefg", "abcXefg", &[(0, 3, 0), (4, 7, 4)]),
    ("blocks swapped", "abcdXYZ", "XYZabcd", &[(0, 3, 4), (3, 7, 0)]),
    (
        "example of the paper, figure 4",
        "ac",
        "baabaaabaaa",
        &[(1, 2, 0), (2, 3, 0), (4, 5, 0), (5, 6, 0), (6, 7, 0), (8, 9, 0), (9, 10, 0), (10, 11, 0)],
    ),
    ("regions overlap", "abcd bcde", "abcde", &[(0, 4, 0), (1, 5, 5)]),
    ("prefix and suffix overlap", "ababa", "aba", &[(0, 3, 0)]),
    ("longer elsewhere than the prefix", "abX abcd", "abcd", &[(0, 4, 4)]),
    ("longer elsewhere than the suffix", "abcd cd", "Zabcd", &[(1, 5, 0)]),
    ("repeats in new", "aba", "ababab", &[(0, 3, 0), (2, 5, 0), (4, 6, 0)]),
    ("prefers the start", "ab ab", "abX", &[(0, 2, 0)]),
    ("prefers the end", "ab ab", "Xab", &[(1, 3, 3)]),
    ("prefers the shift before", "12ab34ab5", "12XX34ab_", &[(0, 2, 0), (4, 8, 4)]),
    ("the shift before, though not the smallest", "AB..CD..CD", "AB..XX..CD!", &[(0, 4, 0), (6, 10, 6)]),
    ("trimmed at the start, stands earlier", "ab ĩab", "éab-", &[(2, 4, 0)]),
    ("trimmed at the end, stands earlier", "ab abé", "-abè", &[(1, 3, 0)]),
    ("smallest otherwise", "ab_ab_ab_", "XabX", &[(1, 3, 0)]),
    ("NUL", "a\0b\0c", "\0b\0", &[(0, 3, 1)]),
    ("only NUL", "\0\0\0", "\0\0\0\0", &[(0, 3, 0), (1, 4, 0)]),
    ("é and è share a byte", "é", "è", &[]),
    ("whole characters only", "aéb", "aèb", &[(0, 1, 0), (3, 4, 3)]),
    ("trimmed at both ends", "é€🦀", "è€🦁", &[(2, 5, 2)]),
    ("trimmed inside another", "ü€x aü€", "bü€x", &[(1, 7, 0)]),
    ("a region of characters that share all but one byte", "ЖЗИ", "ЖЙИ", &[(0, 2, 0), (4, 6, 4)]),
];

#[test]
fn cases() {
    for &(name, old, new, expected) in CASES {
        let expected: Vec<Region> =
            expected.iter().map(|&(start, end, old_start)| region(start, end, old_start)).collect();
        assert_eq!(naive::regions(old.as_bytes(), new.as_bytes(), 1, false), expected, "{name}: oracle");
        for kind in [MatcherKind::SuffixTree, MatcherKind::Anchor] {
            assert_eq!(run(kind, old, new, 1), expected, "{name}: {kind}");
        }
        assert_exact(old, new);
        // Long enough for seeds: each character as a block.
        let long = |text: &str| text.chars().flat_map(|c| [c; 30]).collect::<String>();
        assert_exact(&long(old), &long(new));
        for kind in MatcherKind::ALL {
            assert_sound(old, new, &run(kind, old, new, 1), kind);
        }
    }
}

/// What holds for the regions of every matcher.
fn assert_sound(old: &str, new: &str, regions: &[Region], kind: MatcherKind) {
    for region in regions {
        assert!(!region.is_empty());
        assert_eq!(old[region.old_span().range()], new[region.span().range()], "{kind}");
    }
    assert!(regions.is_sorted_by(|a, b| a < b && a.start < b.start && a.end < b.end), "{kind}: {regions:?}");
}

/// The exact matchers, the automaton and the oracle agree, for all lengths.
fn assert_exact(old: &str, new: &str) {
    let all = naive::maximal(old.as_bytes(), new.as_bytes());
    let mut scratch = Scratch::new();
    for min_len in LENGTHS {
        for short_edges in [false, true] {
            let task = Task { old: old.as_bytes(), new: new.as_bytes(), min_len, short_edges };
            let expected = naive::choose(task.old, task.new, &all, min_len, short_edges);
            let mut out = Vec::new();
            MatcherKind::SuffixTree.run(task, &mut scratch, &mut out);
            assert_eq!(out, expected, "suffix-tree({min_len}, {short_edges}) of {old:?} -> {new:?}");
            run_automaton(task, &mut scratch, &mut out);
            assert_eq!(out, expected, "automaton({min_len}, {short_edges}) of {old:?} -> {new:?}");
            MatcherKind::Anchor.run(task, &mut scratch, &mut out);
            assert_eq!(out, expected, "anchor({min_len}, {short_edges}) of {old:?} -> {new:?}");
            let edges = Edges::of(task);
            if scratch.anchor.narrow(task, edges, usize::MAX, usize::MAX, &mut out).is_ok() {
                assert_eq!(out, expected, "narrow anchor({min_len}, {short_edges}) of {old:?} -> {new:?}");
            }
            if scratch.anchor.quick(task, edges, (usize::MAX, 1), &mut out).is_ok() {
                assert_eq!(out, expected, "quick anchor({min_len}, {short_edges}) of {old:?} -> {new:?}");
            }
            if scratch.anchor.thorough(task, edges, (usize::MAX, 1), &mut out).is_ok() {
                assert_eq!(out, expected, "thorough anchor({min_len}, {short_edges}) of {old:?} -> {new:?}");
            }
        }
    }
}

#[test]
fn lengths_filter_before_places_are_chosen() {
    // The short region between shifts the shift; without it, that of the prefix holds on.
    let old = "begin begin begin|middle|finish finish finish|ab|finish finish finish ";
    let new = "begin begin begin|MIDDLE|xab|finish finish finish END";
    let all = run_at_least(MatcherKind::SuffixTree, old, new, 1);
    let long = run_at_least(MatcherKind::SuffixTree, old, new, 12);
    assert_eq!(long, run_at_least(MatcherKind::Anchor, old, new, 12));
    assert!(all.len() > long.len());
}

#[test]
fn short_prefix_and_suffix_are_kept_where_maximal() {
    let body = "0123456789".repeat(10);
    let old = format!("head {body} tail");
    let new = format!("head!{body}!tail");
    for kind in [MatcherKind::SuffixTree, MatcherKind::Anchor] {
        assert_eq!(run(kind, &old, &new, 89), [region(0, 4, 0), region(5, 105, 5), region(106, 110, 106)], "{kind}");
        assert_eq!(run_at_least(kind, &old, &new, 89), [region(5, 105, 5)], "{kind}");
        // "head!" and "!tail" now stand elsewhere in q: longer, but short of L, so neither they nor the edges are
        // kept.
        let old = format!("head {body} head! !tail tail");
        assert_eq!(run(kind, &old, &new, 89), [region(5, 105, 5)], "{kind}");
    }
}

#[test]
fn diff_and_edges_keep_what_counts() {
    let (old, new) = ("a\nb\nc\nd\n", "a\nX\nc\nY\nd\n");
    assert_eq!(run(MatcherKind::Edges, old, new, 50), [region(0, 2, 0), region(7, 10, 5)]);
    assert_eq!(run(MatcherKind::Diff, old, new, 1), [region(0, 2, 0), region(4, 6, 4), region(8, 10, 6)]);
    assert_eq!(run(MatcherKind::Diff, old, new, 50), [region(0, 2, 0), region(8, 10, 6)]);
}

#[test]
fn edges_by_whole_characters_and_without_doubles() {
    assert_eq!(run(MatcherKind::Edges, "é", "è", 1), []);
    assert_eq!(run(MatcherKind::Edges, "aéb", "aèb", 1), [region(0, 1, 0), region(3, 4, 3)]);
    assert_eq!(run(MatcherKind::Edges, "same", "same", 1), [region(0, 4, 0)]);
    assert_eq!(run(MatcherKind::Edges, "aaa", "aa", 1), [region(0, 2, 0)]);
    assert_eq!(run(MatcherKind::Edges, "abcb", "cb", 1), [region(0, 2, 2)]);
    assert_eq!(run(MatcherKind::Edges, "aaXaa", "aaa", 1), [region(0, 2, 0), region(1, 3, 3)]);
}

#[test]
fn names_round_trip_and_are_unique() {
    for kind in MatcherKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    let error = "ud".parse::<MatcherKind>().expect_err("not a name");
    for kind in MatcherKind::ALL {
        assert!(error.to_string().contains(kind.as_str()));
    }
}

/// Time may not show in a test, but a quadratic matcher would not end.
#[test]
fn hostile_pages_end() {
    let a = "a".repeat(300_000);
    let rows = "<tr><td>0</td><td>n/a</td></tr>\n".repeat(10_000);
    let mut edited = rows.clone().into_bytes();
    for at in (0..20).map(|edit| edit * 15_000 + 777) {
        edited[at] = b'#';
    }
    let edited = String::from_utf8(edited).expect("ASCII");
    let longer = "a".repeat(360_000);
    let numbered =
        |from: u32| (from..from + 10_000).map(|row| format!("<tr><td>{row:08}</td></tr>\n")).collect::<String>();
    let (window, shifted) = (numbered(0), numbered(5000));
    let pairs = [(&a, &longer), (&longer, &a), (&rows, &edited), (&edited, &rows), (&window, &shifted)];
    let mut scratch = Scratch::new();
    for (old, new) in pairs {
        let (mut tree, mut anchor, mut out) = (Vec::new(), Vec::new(), Vec::new());
        MatcherKind::SuffixTree.regions(old, new, 89, &mut scratch, &mut tree);
        MatcherKind::Anchor.regions(old, new, 89, &mut scratch, &mut anchor);
        assert_eq!(tree, anchor);
        assert!(!tree.is_empty());
        MatcherKind::Diff.regions(old, new, 89, &mut scratch, &mut out);
        MatcherKind::Edges.regions(old, new, 89, &mut scratch, &mut out);
    }
}

const BLOCKS: &[&str] = &["a", "abracadabra ", "\0", "the quick brown fox ", "jumps over the lazy dog\n"];
const CHARACTERS: &[&str] = &["a", "é", "è", "ĩ", "Ã", "€", "₭", "🦀", "🦁", "\u{7f0}"];

/// An old page and a new one made from it by cutting, moving, repeating and editing blocks.
fn page_pairs(alphabet: &'static [&'static str], length: usize) -> impl Strategy<Value = (String, String)> {
    let page = prop::collection::vec(prop::sample::select(alphabet), 0..length);
    let edit = (0..6_u8, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<prop::sample::Index>());
    (page, prop::collection::vec(edit, 0..6)).prop_map(move |(old, edits)| {
        let mut new = old.clone();
        for (kind, a, b, c) in edits {
            let (a, b) = (a.index(new.len() + 1), b.index(new.len() + 1));
            let (a, b) = (a.min(b), a.max(b));
            let block: Vec<&str> = new[a..b].to_vec();
            match kind {
                0 => drop(new.drain(a..b)),
                1 => drop(new.splice(a..a, block)),
                2 => {
                    new.drain(a..b);
                    let at = c.index(new.len() + 1);
                    new.splice(at..at, block);
                }
                3 if !old.is_empty() => {
                    let (x, y) = (c.index(old.len()), a.min(old.len()));
                    new.splice(b..b, old[x.min(y)..x.max(y)].iter().copied());
                }
                4 if a < new.len() => new[a] = alphabet[c.index(alphabet.len())],
                _ => new.insert(a, alphabet[c.index(alphabet.len())]),
            }
            new.truncate(2 * length);
        }
        (old.concat(), new.concat())
    })
}

proptest! {
    #[test]
    fn exact_on_two_letters((old, new) in page_pairs(&["a", "b"], 60)) {
        assert_exact(&old, &new);
    }

    #[test]
    fn exact_on_four_letters((old, new) in page_pairs(&["a", "b", "c", "d"], 120)) {
        assert_exact(&old, &new);
    }

    #[test]
    fn exact_on_blocks((old, new) in page_pairs(BLOCKS, 20)) {
        assert_exact(&old, &new);
    }

    #[test]
    fn exact_on_characters_that_share_bytes((old, new) in page_pairs(CHARACTERS, 50)) {
        assert_exact(&old, &new);
    }

    #[test]
    fn exact_on_any_text(old in "\\PC{0,30}", new in "\\PC{0,30}") {
        assert_exact(&old, &new);
    }

    #[test]
    fn all_are_sound((old, new) in page_pairs(&["a", "\n", "b\n", "é", "è\n"], 80), min_len in 1..40_u32) {
        for kind in MatcherKind::ALL {
            let regions = run(kind, &old, &new, min_len);
            assert_sound(&old, &new, &regions, kind);
            if old == new && !old.is_empty() {
                prop_assert_eq!(regions, vec![region(0, new.len() as u32, 0)]);
            }
        }
    }

    #[test]
    fn scratch_holds_no_state(pairs in prop::collection::vec(page_pairs(&["a", "b", "é"], 60), 1..4)) {
        let mut scratch = Scratch::new();
        for (old, new) in &pairs {
            for kind in MatcherKind::ALL {
                let mut out = Vec::new();
                kind.regions(old, new, 13, &mut scratch, &mut out);
                prop_assert_eq!(out, run(kind, old, new, 13));
            }
        }
    }
}
