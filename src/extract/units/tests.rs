//! Blocks against their definition, and what an edit does to them.

use proptest::prelude::*;

use super::*;

fn texts(text: &str, cut: Cut) -> Vec<&str> {
    units(text, cut).iter().map(|unit| &text[unit.span.range()]).collect()
}

#[test]
fn lines_paragraphs_and_pages() {
    let text = "a\nb\r\n\n \nc\n";
    assert_eq!(texts(text, Cut::Lines), ["a", "b\r", "c"]);
    assert_eq!(texts(text, Cut::Paragraphs), ["a\nb\r", "c"]);
    assert_eq!(texts(text, Cut::Page), [text]);
    for cut in [Cut::Lines, Cut::Paragraphs, Cut::Page, Cut::Blocks(Blocks { bytes: 10, context: 2 })] {
        assert_eq!(units("", cut), []);
    }
}

#[test]
fn a_line_that_is_too_long_is_cut_between_words() {
    let text = format!("{} {}\nnext\n", "x".repeat(30), "y".repeat(30));
    let cut: Vec<&str> = blocks(&text, 10).iter().map(|block| &text[block.range()]).collect();
    assert_eq!(cut.concat(), text);
    assert_eq!(cut[0], format!("{} ", "x".repeat(30)));
    assert!(blocks(&"é".repeat(100), 10).iter().all(|block| block.len() <= 40 && block.len() % 2 == 0));
}

/// The definition, word for word.
fn naive_ends(text: &str, reach: u32) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let content = line.strip_suffix('\n').unwrap_or(line);
        let hash: [u8; 8] = blake3::hash(content.as_bytes()).as_bytes()[..8].try_into().unwrap();
        lines.push((at, at + line.len(), hash));
        at += line.len();
    }
    let reach = reach as usize;
    let is_end = |(start, _, hash): &&(usize, usize, [u8; 8])| {
        lines.iter().all(|(other, _, theirs)| {
            let before = other < start && start - other <= reach;
            let after = other > start && other - start <= reach;
            (!before || hash < theirs) && (!after || hash <= theirs)
        })
    };
    lines.iter().filter(is_end).map(|(_, end, _)| *end).collect()
}

fn lines_of_words() -> impl Strategy<Value = String> {
    let line = prop_oneof![4 => "[abc é]{0,12}", 1 => Just(String::new()), 1 => "[a-d ]{30,60}"];
    prop::collection::vec(line, 0..60).prop_map(|lines| lines.concat_with_feeds())
}

trait Feeds {
    fn concat_with_feeds(&self) -> String;
}

impl Feeds for Vec<String> {
    fn concat_with_feeds(&self) -> String {
        self.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Ends of blocks that the hashes ask for, and those that are forced, of a text.
fn ends_of(text: &str, bytes: u32) -> (Vec<usize>, Vec<usize>) {
    let asked = naive_ends(text, bytes / 2);
    let forced =
        blocks(text, bytes).iter().map(|block| block.end as usize).filter(|end| !asked.contains(end)).collect();
    (asked, forced)
}

proptest! {
    #[test]
    fn blocks_are_the_text_and_follow_the_definition(text in lines_of_words(), tail in "[ab]{0,3}", bytes in 1u32..80) {
        let text = text + &tail;
        let all = blocks(&text, bytes);
        let joined: String = all.iter().map(|block| &text[block.range()]).collect();
        prop_assert_eq!(&joined, &text);
        prop_assert!(all.iter().all(|block| !block.is_empty() && block.len() <= (4 * bytes).max(4)));
        let (asked, _) = ends_of(&text, bytes);
        let cuts: Vec<usize> = all.iter().map(|block| block.end as usize).collect();
        prop_assert!(asked.iter().all(|end| cuts.contains(end)), "{:?} in {:?}", asked, cuts);
        // A cut that the hashes do not ask for is forced by size: the stretch that it lies in is too large.
        for cut in cuts.iter().filter(|cut| !asked.contains(cut) && **cut < text.len()) {
            let from = asked.iter().filter(|end| *end <= cut).max().copied().unwrap_or(0);
            let to = asked.iter().find(|end| *end > cut).copied().unwrap_or(text.len());
            prop_assert!(to - from > 4 * bytes as usize);
        }
        // With context the units are the same ones, and together with it they are stretches of the text.
        for context in 0..3 {
            let shown = units(&text, Cut::Blocks(Blocks { bytes, context }));
            let alone = units(&text, Cut::Blocks(Blocks { bytes, context: 0 }));
            prop_assert_eq!(shown.iter().map(|unit| unit.span).collect::<Vec<_>>(), alone.iter().map(|unit| unit.span).collect::<Vec<_>>());
            prop_assert!(shown.iter().all(|unit| unit.before.end == unit.span.start && unit.span.end == unit.after.start));
            prop_assert!(context > 0 || shown.iter().all(|unit| unit.before.is_empty() && unit.after.is_empty()));
        }
    }

    /// An edit of whole lines leaves all blocks alone that end more than half a block before it, and those after it
    /// that begin behind an end of which the same is true.
    #[test]
    fn an_edit_changes_only_blocks_around_it(
        head in lines_of_words(), old in lines_of_words(), new in lines_of_words(), tail in lines_of_words(), bytes in 1u32..60,
    ) {
        let (q, p) = (format!("{head}{old}{tail}"), format!("{head}{new}{tail}"));
        let reach = bytes as usize / 2;
        let longest = q.lines().chain(p.lines()).map(str::len).max().unwrap_or(0) + 1;
        let near = reach + longest;
        let ((asked_q, forced_q), (asked_p, forced_p)) = (ends_of(&q, bytes), ends_of(&p, bytes));
        let before = |ends: &[usize]| ends.iter().copied().filter(|end| end + near < head.len()).collect::<Vec<_>>();
        prop_assert_eq!(before(&asked_q), before(&asked_p));
        let after = |text: &str, ends: &[usize]| {
            let from = text.len() - tail.len() + near;
            ends.iter().filter(|end| **end > from).map(|end| text.len() - end).collect::<Vec<_>>()
        };
        prop_assert_eq!(after(&q, &asked_q), after(&p, &asked_p));
        // Forced cuts follow from the start of their stretch: the same up to the edit, and from the first common end on.
        let forced_before = |ends: &[usize], asked: &[usize]| {
            let to = asked.iter().filter(|end| **end + near < head.len()).max().copied().unwrap_or(0);
            ends.iter().copied().filter(|end| *end < to).collect::<Vec<_>>()
        };
        prop_assert_eq!(forced_before(&forced_q, &asked_q), forced_before(&forced_p, &asked_p));
        let forced_after = |text: &str, ends: &[usize], asked: &[usize]| {
            let from = asked.iter().copied().find(|end| *end > text.len() - tail.len() + near).unwrap_or(text.len());
            ends.iter().filter(|end| **end > from).map(|end| text.len() - end).collect::<Vec<_>>()
        };
        prop_assert_eq!(forced_after(&q, &forced_q, &asked_q), forced_after(&p, &forced_p, &asked_p));
    }
}

/// Blocks are about as large as they are asked to be, on lines of ordinary length.
#[test]
fn blocks_have_the_size_that_was_asked_for() {
    let text: String =
        (0..20_000u32).map(|i| format!("line {} of some text {i}\n", i.wrapping_mul(2_654_435_761))).collect();
    for bytes in [400, 1200, 4000] {
        let mean = text.len() / blocks(&text, bytes).len();
        assert!((bytes as usize * 8 / 10..bytes as usize * 13 / 10).contains(&mean), "{bytes}: {mean}");
    }
}
