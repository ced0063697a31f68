//! `diff`: common lines, as Unix diff finds them (Cyclex's UD), by `imara-diff`.
//!
//! **Problem.** A cheap matcher that finds most of what is old, to compare with: lines in order, no moved blocks,
//! no parts of lines. **Idea.** Intern lines, strip the lines that both pages begin and end with, run the histogram
//! algorithm on the rest, merge neighbouring common lines into regions.
//!
//! **Linear on hostile text.** The histogram algorithm searches the rest again after each piece it finds, and
//! Myers, to which it turns on repeated lines, is exact without bound below a split: both are quadratic in the
//! worst case, on rows that repeat and on pages where every other line changed. So it only sees problems whose
//! product of sides is small. A larger one is first cut at the lines that are unique on both sides and in the same
//! order (a longest increasing subsequence, as in patience diff), and its gaps again, a few times; through a gap
//! that is still too large (a long table of equal rows) both sides are walked in step, with a bounded look ahead
//! where they differ. Nothing false is ever found, only less.
//!
//! **Cost.** O(n log n) line operations, of which interning (one hash per line) is most. Memory follows the number
//! of lines.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, Token};
use memchr::memchr_iter;

use crate::matching::bytes::offset;
use crate::model::Region;

/// Old lines times new lines that `imara-diff` may see as a whole page: at worst some milliseconds.
const WHOLE: usize = 1 << 20;
/// The same, for what lies between two unique lines: bounds the work per line by the square root.
const GAP: usize = 1 << 16;
/// How often a gap is cut at lines that are unique within it.
const CUTS: usize = 4;
/// In a gap that is still too large: how many lines are skipped at most to find this many equal ones.
const LOOK_AHEAD: usize = 32;
const IN_STEP: usize = 3;

pub(super) fn regions(old: &[u8], new: &[u8], out: &mut Vec<Region>) {
    out.clear();
    let mut input = InternedInput::default();
    let old_lines = Lines::of(old);
    let new_lines = Lines::of(new);
    input.reserve(offset(old_lines.count()), offset(new_lines.count()));
    input.update_before(old_lines.iter(old));
    input.update_after(new_lines.iter(new));
    let names = Names { stamp: 0, names: vec![(0, 0); input.interner.num_tokens() as usize] };
    let mut lines = Common { old: &input.before, new: &input.after, names, runs: Vec::new() };
    lines.find(0..input.before.len(), 0..input.after.len(), 0);
    out.extend(lines.runs.iter().map(|run| Region {
        start: new_lines.starts[run.new],
        end: new_lines.starts[run.new + run.count],
        old_start: old_lines.starts[run.old],
    }));
}

/// Where the lines of a text begin; last, where the text ends.
struct Lines {
    starts: Vec<u32>,
}

impl Lines {
    fn of(text: &[u8]) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr_iter(b'\n', text).map(|at| offset(at + 1)));
        if starts.last() != Some(&offset(text.len())) {
            starts.push(offset(text.len()));
        }
        Self { starts }
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Each with its line end: a last line without one differs from the same line with one.
    fn iter<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.starts.windows(2).map(|pair| &text[pair[0] as usize..pair[1] as usize])
    }
}

/// Equal lines: `count` of them from `old` and from `new`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    old: usize,
    new: usize,
    count: usize,
}

struct Common<'a> {
    old: &'a [Token],
    new: &'a [Token],
    names: Names,
    /// In order, none touching the next.
    runs: Vec<Run>,
}

impl Common<'_> {
    /// Finds common lines of two ranges, in order.
    fn find(&mut self, mut old: Range<usize>, mut new: Range<usize>, cuts: usize) {
        let first = equal(&self.old[old.clone()], &self.new[new.clone()]);
        self.push(Run { old: old.start, new: new.start, count: first });
        old.start += first;
        new.start += first;
        let last = equal_from_end(&self.old[old.clone()], &self.new[new.clone()]);
        old.end -= last;
        new.end -= last;
        if !old.is_empty() && !new.is_empty() {
            let limit = if cuts == 0 { WHOLE } else { GAP };
            if old.len().saturating_mul(new.len()) <= limit {
                self.histogram(old.clone(), new.clone());
            } else if cuts < CUTS {
                self.cut(old.clone(), new.clone(), cuts + 1);
            } else {
                self.keep_step(old.clone(), new.clone());
            }
        }
        self.push(Run { old: old.end, new: new.end, count: last });
    }

    fn push(&mut self, run: Run) {
        if let Some(before) = self.runs.last_mut()
            && before.old + before.count == run.old
            && before.new + before.count == run.new
        {
            before.count += run.count;
            return;
        }
        if run.count > 0 {
            self.runs.push(run);
        }
    }

    fn histogram(&mut self, old: Range<usize>, new: Range<usize>) {
        let (before, after, tokens) = self.names.renumber(&self.old[old.clone()], &self.new[new.clone()]);
        let mut diff = Diff::default();
        diff.compute_with(Algorithm::Histogram, &before, &after, tokens);
        let (mut at_old, mut at_new) = (old.start, new.start);
        for hunk in diff.hunks() {
            let next_new = new.start + hunk.after.start as usize;
            self.push(Run { old: at_old, new: at_new, count: next_new - at_new });
            at_old = old.start + hunk.before.end as usize;
            at_new = new.start + hunk.after.end as usize;
        }
        self.push(Run { old: at_old, new: at_new, count: new.end - at_new });
    }

    /// Walks both sides at once; where they differ, goes on at the nearest place where some lines are equal again.
    fn keep_step(&mut self, old: Range<usize>, new: Range<usize>) {
        let (mut at_old, mut at_new) = (old.start, new.start);
        while at_old < old.end && at_new < new.end {
            let count = equal(&self.old[at_old..old.end], &self.new[at_new..new.end]);
            self.push(Run { old: at_old, new: at_new, count });
            at_old += count;
            at_new += count;
            let in_step = |&(skip_old, skip_new): &(usize, usize)| {
                let (a, b) = (at_old + skip_old, at_new + skip_new);
                a + IN_STEP <= old.end && b + IN_STEP <= new.end && self.old[a..a + IN_STEP] == self.new[b..b + IN_STEP]
            };
            let skip = (1..=LOOK_AHEAD).flat_map(|skip| [(skip, skip), (0, skip), (skip, 0)]).find(in_step);
            let (skip_old, skip_new) = skip.unwrap_or((LOOK_AHEAD, LOOK_AHEAD));
            at_old += skip_old;
            at_new += skip_new;
        }
    }

    /// Cuts at lines that are unique on both sides, and searches what lies between.
    fn cut(&mut self, old: Range<usize>, new: Range<usize>, cuts: usize) {
        let (before, after, tokens) = self.names.renumber(&self.old[old.clone()], &self.new[new.clone()]);
        let anchors = unique_in_order(&before, &after, tokens as usize);
        let (mut at_old, mut at_new) = (old.start, new.start);
        for (anchor_old, anchor_new) in anchors {
            let (next_old, next_new) = (old.start + anchor_old, new.start + anchor_new);
            self.find(at_old..next_old, at_new..next_new, cuts);
            self.push(Run { old: next_old, new: next_new, count: 1 });
            (at_old, at_new) = (next_old + 1, next_new + 1);
        }
        let whole = at_old == old.start && at_new == new.start;
        // Without any anchor the same problem would come back.
        self.find(at_old..old.end, at_new..new.end, if whole { CUTS } else { cuts });
    }
}

fn equal(a: &[Token], b: &[Token]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn equal_from_end(a: &[Token], b: &[Token]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

/// Numbers from 0 for the tokens of a small problem, so that its tables are small, too.
struct Names {
    stamp: u32,
    /// By token: the problem it was last seen in, and its number there.
    names: Vec<(u32, u32)>,
}

impl Names {
    fn renumber(&mut self, old: &[Token], new: &[Token]) -> (Vec<Token>, Vec<Token>, u32) {
        self.stamp += 1;
        let mut count = 0;
        let mut name = |token: &Token| {
            let entry = &mut self.names[token.0 as usize];
            if entry.0 != self.stamp {
                *entry = (self.stamp, count);
                count += 1;
            }
            Token(entry.1)
        };
        let old = old.iter().map(&mut name).collect();
        let new = new.iter().map(&mut name).collect();
        (old, new, count)
    }
}

/// The longest list of lines that occur once in each text and come in the same order in both, as (old, new).
fn unique_in_order(old: &[Token], new: &[Token], tokens: usize) -> Vec<(usize, usize)> {
    const NEVER: u32 = u32::MAX;
    const OFTEN: u32 = u32::MAX - 1;
    let only_place = |text: &[Token]| {
        let mut places = vec![NEVER; tokens];
        for (at, token) in text.iter().enumerate() {
            let place = &mut places[token.0 as usize];
            *place = if *place == NEVER { offset(at) } else { OFTEN };
        }
        places
    };
    let old_places = only_place(old);
    let new_places = only_place(new);
    let pairs: Vec<(u32, u32)> = new
        .iter()
        .map(|token| (old_places[token.0 as usize], new_places[token.0 as usize]))
        .filter(|&(old, new)| old < OFTEN && new < OFTEN)
        .collect();
    // Patience sorting: `tails[k]` is the pair that ends the best list of k+1 pairs, `before` the pair before each.
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let rank = tails.partition_point(|&tail| pairs[tail].0 < pair.0);
        before.push(rank.checked_sub(1).map(|rank| tails[rank]));
        if rank == tails.len() {
            tails.push(index);
        } else {
            tails[rank] = index;
        }
    }
    let mut list: Vec<(usize, usize)> = std::iter::successors(tails.last().copied(), |&index| before[index])
        .map(|index| (pairs[index].0 as usize, pairs[index].1 as usize))
        .collect();
    list.reverse();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(old: &str, new: &str) -> Vec<Region> {
        let mut out = Vec::new();
        regions(old.as_bytes(), new.as_bytes(), &mut out);
        for region in &out {
            assert_eq!(old[region.old_span().range()], new[region.span().range()]);
        }
        assert!(out.is_sorted_by(|a, b| a.end < b.start || (a.end == b.start && a.old_end() < b.old_start)));
        assert!(out.is_sorted_by(|a, b| a.old_end() <= b.old_start));
        out
    }

    fn covered(regions: &[Region]) -> u32 {
        regions.iter().map(|region| region.len()).sum()
    }

    #[test]
    fn common_lines_merge() {
        let regions = found("a\nb\nc\nd\ne\n", "a\nb\nX\nd\ne\n");
        assert_eq!(regions, [Region { start: 0, end: 4, old_start: 0 }, Region { start: 6, end: 10, old_start: 6 }]);
    }

    #[test]
    fn the_last_line_without_an_end_is_another_line() {
        assert_eq!(found("a\nb", "a\nb\n"), [Region { start: 0, end: 2, old_start: 0 }]);
        assert_eq!(found("", ""), []);
        assert_eq!(found("a\n", ""), []);
        assert_eq!(found("", "a\n"), []);
        assert_eq!(found("\n\n", "\n"), [Region { start: 0, end: 1, old_start: 0 }]);
    }

    /// More lines than `WHOLE` allows: every other line changed, which takes the histogram algorithm quadratic time.
    #[test]
    fn a_large_page_is_cut_at_unique_lines() {
        let page = |night: u32| -> String {
            (0..6000).map(|row| format!("row {row} of many\nseen {} times\n", row * 7 + night)).collect()
        };
        let (old, new) = (page(1), page(2));
        let kept: u32 = (0..6000).map(|row| format!("row {row} of many\n").len() as u32).sum();
        assert_eq!(covered(&found(&old, &new)), kept);
    }

    #[test]
    fn a_large_page_of_equal_lines_is_walked_in_step() {
        let mut old = vec!["<tr><td>0</td></tr>\n"; 20_000];
        let mut new = old.clone();
        for row in (500..19_500).step_by(1000) {
            old[row] = "<tr><td>1</td></tr>\n";
            new[row + 3] = "<tr><td>2</td></tr>\n";
        }
        assert!(covered(&found(&old.concat(), &new.concat())) >= 19_900 * 20);
    }

    #[test]
    fn longest_list_of_unique_lines() {
        let tokens = |text: &str| text.bytes().map(|byte| Token(u32::from(byte - b'a'))).collect::<Vec<_>>();
        let list = unique_in_order(&tokens("xabcxdez"), &tokens("dxabzxce"), 26);
        let letters: String = list.iter().map(|&(old, _)| &"xabcxdez"[old..=old]).collect();
        assert_eq!(letters, "abce");
        assert_eq!(list, [(1, 2), (2, 3), (3, 6), (6, 7)]);
    }
}
