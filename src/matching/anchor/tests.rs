//! The traps of exactness, each as page pairs that a careless version gets wrong. The suffix tree, which has its
//! own tests against the oracle, says what is right.

use super::*;
use crate::matching::{self, MatcherKind, Scratch};

/// Around each change of seed shape.
const LENGTHS: [u32; 23] =
    [12, 13, 17, 23, 24, 25, 40, 47, 48, 60, 74, 75, 83, 84, 89, 149, 150, 152, 200, 400, 410, 800, 811];

const UNLIMITED: (usize, usize) = (usize::MAX, 1);

struct Random(u32);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as usize % limit
    }

    fn text(&mut self, length: usize) -> String {
        (0..length).map(|_| char::from(b'a' + self.below(26) as u8)).collect()
    }
}

fn text(length: usize) -> String {
    Random(7).text(length)
}

/// Without fallback; held against the tree.
fn regions(old: &str, new: &str, min_len: u32, short_edges: bool, scratch: &mut Scratch) -> Vec<Region> {
    let task = Task { old: old.as_bytes(), new: new.as_bytes(), min_len, short_edges };
    let (mut out, mut expected) = (Vec::new(), Vec::new());
    MatcherKind::SuffixTree.run(task, scratch, &mut expected);
    let edges = Edges::of(task);
    scratch.anchor.thorough(task, edges, UNLIMITED, &mut out).expect("there is no budget");
    assert_eq!(out, expected, "thorough, L = {min_len}, {old:?} -> {new:?}");
    // Pages that are equal, or shorter than L, are none of its business.
    if scratch.anchor.narrow(task, edges, usize::MAX, usize::MAX, &mut out).is_ok() {
        assert_eq!(out, expected, "narrow, L = {min_len}, {old:?} -> {new:?}");
    }
    // The same with lines, along which it aligns pages.
    if !old.contains('\n') && !new.contains('\n') {
        let (old, new) = (old.replace('e', "\n"), new.replace('e', "\n"));
        let task = Task { old: old.as_bytes(), new: new.as_bytes(), ..task };
        if scratch.anchor.narrow(task, edges, usize::MAX, usize::MAX, &mut out).is_ok() {
            assert_eq!(out, expected, "narrow by lines, L = {min_len}, {old:?} -> {new:?}");
        }
    }
    scratch.anchor.quick(task, edges, UNLIMITED, &mut out).expect("there is no budget");
    assert_eq!(out, expected, "quick, L = {min_len}, {old:?} -> {new:?}");
    out
}

fn check(old: &str, new: &str) {
    let mut scratch = Scratch::new();
    for min_len in LENGTHS {
        for short_edges in [true, false] {
            regions(old, new, min_len, short_edges, &mut scratch);
        }
    }
}

/// Trap: `[0, 100)` may meet its first sample after `[20, 160)` does, and must not be jumped over.
#[test]
fn a_region_that_starts_before_the_known_one_but_is_hit_later() {
    let new = text(200);
    let mut scratch = Scratch::new();
    for pad in 0..24 {
        for other in 0..24 {
            let old = format!("{}{}{}{}#", "#".repeat(pad), &new[20..160], "#".repeat(1 + other), &new[..100]);
            let found = regions(&old, &new, 47, false, &mut scratch);
            assert_eq!(found.len(), 2, "pads {pad}, {other}");
        }
    }
}

/// Trap: a region that a jump lands in, hit later than one that starts and ends after it.
#[test]
fn a_region_that_starts_before_the_last_jump() {
    let new = text(400);
    let mut scratch = Scratch::new();
    for pad in 0..24 {
        for other in 0..24 {
            let (pad, other) = ("#".repeat(pad), "#".repeat(1 + other));
            let old = format!("{pad}{}#{pad}{}{other}{}#", &new[..150], &new[110..320], &new[60..250]);
            let found = regions(&old, &new, 47, false, &mut scratch);
            assert_eq!(found.len(), 3);
        }
    }
}

/// Trap: inside the zone after a region's start, a candidate counts if it passes the end or precedes the start.
#[test]
fn candidates_inside_a_known_region() {
    let mut random = Random(3);
    let mut scratch = Scratch::new();
    for _ in 0..3000 {
        let length = 150 + random.below(150);
        let new = random.text(length);
        let mut old = String::new();
        for _ in 0..2 + random.below(6) {
            let from = random.below(new.len() - 20);
            let to = from + 20 + random.below(new.len() - from - 19);
            old += &new[from..to];
            old += &"#".repeat(random.below(4));
        }
        for min_len in [14, 30, 47, 60, 80] {
            regions(&old, &new, min_len, random.below(2) == 0, &mut scratch);
        }
    }
}

#[test]
fn bursts_of_samples() {
    let mut random = Random(5);
    let mut scratch = Scratch::new();
    for _ in 0..300 {
        let new = random.text(1500);
        let mut old = String::new();
        for _ in 0..2 + random.below(6) {
            let from = random.below(new.len() - 160);
            let to = from + 160 + random.below(new.len() - from - 159);
            old += &new[from..to];
            old += &"#".repeat(random.below(9));
        }
        for min_len in [150, 151, 152, 160, 399, 400, 404, 500, 799, 800, 805] {
            regions(&old, &new, min_len, false, &mut scratch);
        }
    }
}

/// Trap: measured after removing the prefix, the suffix would be too short.
#[test]
fn prefix_and_suffix_that_overlap_in_the_old_page() {
    let block = text(200);
    check(&block, &format!("{block}{block}"));
    check(&block, &format!("{block}-{block}"));
    check(&format!("{block}{block}"), &block.repeat(3));
    let found = regions(&block, &format!("{}-{}", &block[..150], &block[50..]), 89, false, &mut Scratch::new());
    assert_eq!(found.iter().map(|region| region.len()).collect::<Vec<_>>(), [150, 150]);
}

/// Trap: the prefix and the suffix are provisional.
#[test]
fn prefix_and_suffix_that_stand_elsewhere_and_longer() {
    let block = text(300);
    let old = format!("{}#{}#{}", &block[..100], &block, &block[200..]);
    let found = regions(&old, &block, 89, true, &mut Scratch::new());
    assert_eq!(found, [Region { start: 0, end: 300, old_start: 101 }]);
    check(&old, &block);
    check(&old, &format!("{block}!"));
    check(&old, &format!("!{block}"));
}

/// Trap: any part of the old page may match, also what prefix and suffix have matched already.
#[test]
fn a_copy_of_what_the_prefix_matched() {
    let block = text(400);
    let new = format!("{}+{}+{}", &block[..200], &block[20..150], &block[200..]);
    let found = regions(&block, &new, 89, false, &mut Scratch::new());
    assert_eq!(found.len(), 3);
    check(&block, &new);
}

#[test]
fn regions_of_just_the_least_length_and_one_less() {
    let block = text(900);
    let mut scratch = Scratch::new();
    for min_len in LENGTHS {
        for pad in 0..50 {
            let old = format!(
                "{}{}##{}#",
                "#".repeat(pad),
                &block[10..10 + min_len as usize],
                &block[..min_len as usize - 1]
            );
            let new = format!("-{}-{}-", &block[10..10 + min_len as usize], &block[..min_len as usize - 1]);
            assert_eq!(regions(&old, &new, min_len, false, &mut scratch).len(), 1);
        }
    }
}

#[test]
fn the_smallest_of_many_places() {
    let block = text(120);
    let mut scratch = Scratch::new();
    for pad in 0..60 {
        // The first copy is cut short; the shift of the region before holds at none.
        let pad = "#".repeat(pad);
        let old = format!("{pad}{}#{block}#{pad}{block}#{block}{pad}", &block[..100]);
        let new = format!("-{block}--{block}-{block}-");
        for min_len in [47, 75, 89, 100] {
            let found = regions(&old, &new, min_len, false, &mut scratch);
            assert_eq!(found[0].old_start as usize, pad.len() + 101);
        }
    }
}

/// Trap: the span in whole characters may stand earlier than the span in bytes that it was trimmed from.
#[test]
fn trimmed_regions_stand_earlier_and_get_shorter() {
    let block = text(90);
    let mut scratch = Scratch::new();
    // In bytes é and è begin alike: the second copy matches one byte more.
    let old = format!("###{block}#é{block}è###");
    let new = format!("é{block}é");
    let found = regions(&old, &new, 75, true, &mut scratch);
    assert_eq!(found, [Region { start: 0, end: 92, old_start: 94 }]);
    let new = format!("-{block}é");
    let found = regions(&old, &new, 75, true, &mut scratch);
    assert_eq!(found, [Region { start: 1, end: 91, old_start: 3 }]);
    check(&old, &new);
    // Long enough in bytes, too short in characters.
    let found = regions(&format!("#{block}é#"), &format!("-{block}è-"), 91, true, &mut scratch);
    assert_eq!(found, []);
}

#[test]
fn pages_shorter_than_the_least_length_or_a_seed() {
    for (old, new) in
        [("", "a"), ("a", ""), ("ab", "ab"), ("abc", "abd"), ("xbc", "abc"), ("b", "abc"), ("abcabc", "bca")]
    {
        check(old, new);
        check(&old.repeat(15), &new.repeat(15));
    }
}

/// Whatever the budget, the answer is right or none, and the automaton's is the same.
#[test]
fn any_budget_gives_the_same_or_nothing() {
    let block = text(300);
    let old = format!("{}#{}#{}", &block[100..], &block[..250], "ab".repeat(100));
    let new = format!("{}+{}{}+", &block[..200], &block[100..], "ab".repeat(90));
    let task = Task { old: old.as_bytes(), new: new.as_bytes(), min_len: 30, short_edges: true };
    let (mut expected, mut out) = (Vec::new(), Vec::new());
    matching::run_automaton(task, &mut Scratch::new(), &mut expected);
    let (mut anchor, edges) = (Anchor::default(), Edges::of(task));
    let narrow = |anchor: &mut Anchor, task: Task<'_>, edges: Edges, budget: (usize, usize), out: &mut Vec<Region>| {
        anchor.narrow(task, edges, usize::MAX, budget.0, out)
    };
    for search in [Anchor::quick, Anchor::thorough, narrow] {
        let allowed = |budget| (budget, usize::MAX);
        let enough = (0..100_000).find(|&budget| search(&mut anchor, task, edges, allowed(budget), &mut out).is_ok());
        assert!(enough.is_some_and(|enough| enough > 10), "some budgets are too small, some are not");
        assert_eq!(out, expected);
    }
}

/// Lines that are mostly indentation, by `depth` spaces on average.
fn indented(random: &mut Random, lines: usize, depth: usize) -> Vec<String> {
    let words = ["{", "}", "\"fn\": \"isSet\",", "\"argv\": [", "]", "true", "},", "é"];
    (0..lines).map(|_| " ".repeat(random.below(2 * depth)) + words[random.below(words.len())] + "\n").collect()
}

/// Trap: samples that are moved out of runs must still leave no gap, and runs of L or more need theirs.
#[test]
fn deep_indentation() {
    let mut random = Random(11);
    let mut scratch = Scratch::new();
    for depth in [10, 30, 60, 120, 400] {
        for _ in 0..12 {
            let old = indented(&mut random, 30, depth);
            let mut new = old.clone();
            for _ in 0..1 + random.below(6) {
                let (at, from) = (random.below(new.len()), random.below(old.len()));
                match random.below(3) {
                    0 => drop(new.remove(at)),
                    1 => new.insert(at, old[from].clone()),
                    _ => new[at].insert(0, ' '),
                }
            }
            for min_len in LENGTHS {
                regions(&old.concat(), &new.concat(), min_len, random.below(2) == 0, &mut scratch);
            }
        }
    }
}

/// Lines of a few kinds, some of them with characters that share bytes, edited, moved and repeated.
#[test]
fn pages_that_are_aligned_by_lines() {
    let mut random = Random(17);
    let mut scratch = Scratch::new();
    for kinds in [3, 12, 60] {
        let lines: Vec<String> = (0..kinds)
            .map(|kind| {
                let length = random.below(60);
                format!("{}{}\n", random.text(length), ["é", "è", "", " "][kind % 4])
            })
            .collect();
        for _ in 0..16 {
            let old: Vec<String> = (0..60).map(|_| lines[random.below(kinds)].clone()).collect();
            let mut new = old.clone();
            for _ in 0..1 + random.below(5) {
                let (at, from) = (random.below(new.len()), random.below(old.len()));
                let block = old[from..(from + random.below(9)).min(old.len())].to_vec();
                match random.below(4) {
                    0 => drop(new.remove(at)),
                    1 => drop(new.splice(at..at, block)),
                    2 => new[at] = random.text(30) + "\n",
                    _ => new[at].insert(0, 'è'),
                }
            }
            for min_len in [13, 40, 60, 89, 150, 200, 410, 811] {
                regions(&old.concat(), &new.concat(), min_len, random.below(2) == 0, &mut scratch);
            }
        }
    }
}

/// Trap: a region whose parts of length L all lie in known ones, which overlap by more than L.
#[test]
fn a_region_between_two_that_overlap() {
    let new = text(600);
    let mut scratch = Scratch::new();
    for pad in 0..24 {
        let pad = "#".repeat(pad);
        let old = format!("{}#{pad}{}#{pad}{}#", &new[..300], &new[100..500], &new[50..400]);
        for min_len in [47, 75, 89] {
            assert_eq!(regions(&old, &new, min_len, false, &mut scratch).len(), 3);
        }
    }
}

#[test]
fn a_page_with_little_new_text_is_searched_narrowly_and_one_with_much_is_not() {
    let mut random = Random(19);
    let lines: Vec<String> = (0..2000).map(|_| random.text(40) + "\n").collect();
    let mut new = lines.clone();
    new.remove(300);
    new.insert(200, random.text(40) + "\n");
    new[100].insert_str(10, "new");
    let block: Vec<String> = (0..20).map(|_| random.text(40) + "\n").collect();
    new.splice(50..50, block);
    let (old, new, other) = (lines.concat(), new.concat(), random.text(80_000));
    let mut out = Vec::new();
    let mut narrow = |new: &str| {
        let task = Task { old: old.as_bytes(), new: new.as_bytes(), min_len: 89, short_edges: true };
        let most = old.len() / NARROW;
        Anchor::default().narrow(task, Edges::of(task), most, BUDGET_AT_LEAST, &mut out).is_ok()
    };
    assert!(narrow(&new));
    assert!(!narrow(&other));
}

#[test]
fn what_is_too_dear_for_the_quick_search_is_left_to_the_thorough_one() {
    let mut random = Random(13);
    let old = indented(&mut random, 4000, 38).concat();
    let new = old.replace("true", "null");
    let task = Task { old: old.as_bytes(), new: new.as_bytes(), min_len: 200, short_edges: true };
    let (mut scratch, mut out, mut expected) = (Scratch::new(), Vec::new(), Vec::new());
    let budget = (BUDGET_AT_LEAST, QUICK_PACE);
    assert!(scratch.anchor.quick(task, Edges::of(task), budget, &mut out).is_err());
    assert!(scratch.anchor.regions(task, &mut out).is_ok());
    MatcherKind::SuffixTree.run(task, &mut scratch, &mut expected);
    assert_eq!(out, expected);
}

#[test]
fn hostile_text_is_left_to_the_automaton() {
    let (old, new) = ("a".repeat(20_000), "a".repeat(24_000) + "b");
    let task = Task { old: old.as_bytes(), new: new.as_bytes(), min_len: 89, short_edges: true };
    assert!(Anchor::default().regions(task, &mut Vec::new()).is_err());
}
