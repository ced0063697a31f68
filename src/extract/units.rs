//! Units: the parts of a page that somebody is shown one at a time.
//!
//! The caller cuts, so that what is found in a unit depends on what is shown and on nothing else.
//!
//! A **block** is a stretch of consecutive lines, of `bytes` bytes on average. Where it ends is told by the lines around
//! that place alone: every line has a hash, and a block ends after a line whose hash is the smallest of all lines that
//! start within half a block before or after it. So an edit moves ends only near itself, and the blocks of the rest of
//! the page stay what they were. Stretches without an end for four blocks are cut from their start, line by line.

use std::collections::VecDeque;

use crate::extract::mention::offset;
use crate::extract::reach::{Blocks, Cut};
use crate::model::{Digest, Span};

/// A unit of a page, with the text on both sides that is shown along with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    pub span: Span,
    /// Ends where the unit starts.
    pub before: Span,
    /// Begins where the unit ends.
    pub after: Span,
}

impl Shown {
    fn alone(span: Span) -> Self {
        Self { span, before: Span::new(span.start, span.start), after: Span::new(span.end, span.end) }
    }

    /// What is shown, which is all that an answer can depend on.
    #[must_use]
    pub fn texts<'t>(&self, page: &'t str) -> [&'t str; 3] {
        [self.before, self.span, self.after].map(|span| &page[span.range()])
    }
}

/// The units of a text, without the line feed that ends them. Units of white space only are left out, because there is
/// nothing in them to ask about.
#[must_use]
pub fn units(text: &str, cut: Cut) -> Vec<Shown> {
    match cut {
        Cut::Lines => lines(text, false),
        Cut::Paragraphs => lines(text, true),
        Cut::Blocks(Blocks { bytes, context }) => with_context(text, &blocks(text, bytes), context as usize),
        Cut::Page if text.is_empty() => Vec::new(),
        Cut::Page => vec![Shown::alone(Span::new(0, offset(text.len())))],
    }
}

/// Lines, or paragraphs, which are runs of lines that are not blank.
fn lines(text: &str, paragraphs: bool) -> Vec<Shown> {
    let mut units: Vec<Span> = Vec::new();
    let mut in_paragraph = false;
    for span in Lines::of(text) {
        let blank = text[span.range()].trim().is_empty();
        if !blank {
            match units.last_mut() {
                Some(last) if in_paragraph => last.end = span.end,
                _ => units.push(span),
            }
        }
        in_paragraph = paragraphs && !blank;
    }
    units.into_iter().map(Shown::alone).collect()
}

/// Blocks that are not blank, each with up to `context` blocks on both sides.
fn with_context(text: &str, blocks: &[Span], context: usize) -> Vec<Shown> {
    let mut units = Vec::new();
    for (i, block) in blocks.iter().enumerate() {
        let content = &text[block.range()];
        if content.trim().is_empty() {
            continue;
        }
        let end = offset(block.start as usize + content.strip_suffix('\n').unwrap_or(content).len());
        let first = blocks[i.saturating_sub(context)].start;
        let last = blocks[(i + context).min(blocks.len() - 1)].end;
        units.push(Shown {
            span: Span::new(block.start, end),
            before: Span::new(first, block.start),
            // Without context the line feed is not shown either.
            after: Span::new(end, if last > block.end { last } else { end }),
        });
    }
    units
}

/// A block is cut where it has grown to so many times the size that was asked for.
const LARGEST: usize = 4;

/// Cuts a text into blocks of about so many bytes. Together they are the text.
pub(crate) fn blocks(text: &str, bytes: u32) -> Vec<Span> {
    let lines: Vec<Span> = Lines::of(text).collect();
    let most = LARGEST * bytes.max(1) as usize;
    let mut blocks = Vec::new();
    let mut start = 0;
    for end in ends(text, &lines, bytes / 2) {
        // Behind the line feed, if there is one.
        let end = (lines[end].end as usize + 1).min(text.len());
        cut_large(text, start, end, most, &mut blocks);
        start = end;
    }
    cut_large(text, start, text.len(), most, &mut blocks);
    blocks
}

/// The lines that end a block: those whose hash is smaller than that of every line that starts at most `reach` bytes
/// before them, and not larger than that of every line that starts at most `reach` bytes after.
fn ends(text: &str, lines: &[Span], reach: u32) -> Vec<usize> {
    let hash = |line: &Span| Digest::of(text[line.range()].as_bytes()).ordered64();
    let hashes: Vec<u64> = lines.iter().map(hash).collect();
    let places: Vec<i64> = lines.iter().map(|line| i64::from(line.start)).collect();
    let before = least_before(&hashes, &places, reach);
    // The same from the other end.
    let backwards = |values: &[i64]| values.iter().rev().map(|place| -place).collect::<Vec<_>>();
    let reversed: Vec<u64> = hashes.iter().rev().copied().collect();
    let mut after = least_before(&reversed, &backwards(&places), reach);
    after.reverse();
    let is_end =
        |&i: &usize| before[i].is_none_or(|least| hashes[i] < least) && after[i].is_none_or(|least| hashes[i] <= least);
    (0..lines.len()).filter(is_end).collect()
}

/// For each line the smallest hash among the lines that lie at most `reach` before it.
fn least_before(hashes: &[u64], places: &[i64], reach: u32) -> Vec<Option<u64>> {
    // Lines that may still be the smallest ones: their hashes grow from the front.
    let mut candidates: VecDeque<usize> = VecDeque::new();
    let mut least = Vec::with_capacity(hashes.len());
    for i in 0..hashes.len() {
        while candidates.front().is_some_and(|&j| places[j] < places[i] - i64::from(reach)) {
            candidates.pop_front();
        }
        least.push(candidates.front().map(|&j| hashes[j]));
        while candidates.back().is_some_and(|&j| hashes[j] >= hashes[i]) {
            candidates.pop_back();
        }
        candidates.push_back(i);
    }
    least
}

/// Adds a stretch as one block, or, if it is larger than `most`, as several: as many whole lines as fit into each, and of
/// a line that does not fit as many words.
fn cut_large(text: &str, mut start: usize, end: usize, most: usize, blocks: &mut Vec<Span>) {
    while end - start > most {
        let longest = text.floor_char_boundary(start + most).max(text.ceil_char_boundary(start + 1));
        let fitting = &text[start..longest];
        let lines = fitting.rfind('\n').map(|at| at + 1);
        let words = || fitting.char_indices().rev().find(|(_, c)| c.is_whitespace()).map(|(at, c)| at + c.len_utf8());
        let length = lines.or_else(words).unwrap_or(fitting.len());
        blocks.push(Span::new(offset(start), offset(start + length)));
        start += length;
    }
    if start < end {
        blocks.push(Span::new(offset(start), offset(end)));
    }
}

/// The lines of a text, without their line feeds. What follows the last line feed is a line only if there is something.
struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Lines<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let length = rest.find('\n').unwrap_or(rest.len());
        let span = Span::new(offset(self.at), offset(self.at + length));
        self.at += length + 1;
        Some(span)
    }
}

#[cfg(test)]
mod tests;
