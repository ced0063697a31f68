//! Recycling an extractor that is a black box with a declared reach.
//!
//! - *Copy*: a mention of the old page whose window lies in an old region, page edges settled. The first region (in
//!   page order) that covers a mention owns it, so nothing is copied twice.
//! - *Extract*: the page without the cores of its super regions, as slices that the box sees as if they were pages.
//!   Of what it finds, only mentions whose window lies in the slice are trusted (others may be inventions of the
//!   cut), and only those that no region covers are taken (the others are copied).
//!
//! Both together are the mentions of the page, each exactly once. A mention longer than the declared scope is dropped
//! on every path, from scratch too, so that all agree; how many is reported.
//!
//! *Free audit*: where two regions cover the same mention, their old pages must agree about it. If not, the box is
//! not as local as declared; the page is extracted from scratch and the caller told.
//!
//! All positions are in the box's own unit (bytes, characters, UTF-16 units).

use super::chain::{Chain, FAR, Range, merged, total};
use super::{Old, Recycled};
use crate::extract::command::Ruler;
use crate::extract::mention::{Found, Mention};
use crate::extract::reach::{Reach, Windows};
use crate::extract::{Failure, Runner};
use crate::model::{Region, Span};

/// A page whose slices are to be extracted.
struct Slicing<'a> {
    new: &'a str,
    ruler: Ruler<'a>,
    chain: Chain,
}

/// Cores shorter than this share of the window are extracted too, because another request would cost more. That adds 3 %
/// at most: the ranges next to a core are two windows long each.
const LEAST_CORE_SHARE: i64 = 16;

/// Extracts everything: the page is one slice.
pub(crate) fn scratch(runner: &mut dyn Runner, new: &str, windows: Windows) -> Result<Recycled, Failure> {
    let Windows { reach, offsets, .. } = windows;
    let ruler = Ruler::new(new, offsets);
    let chain = Chain::of_windows([], 0, i64::from(ruler.len()), reach);
    Slicing { new, ruler, chain }.run(runner, reach, Vec::new())
}

pub(crate) fn recycle(
    runner: &mut dyn Runner,
    old: Old<'_>,
    new: &str,
    regions: &[Region],
    windows: Windows,
) -> Result<Recycled, Failure> {
    let Windows { reach, offsets, deterministic } = windows;
    let (old_ruler, ruler) = (Ruler::new(old.text, offsets), Ruler::new(new, offsets));
    let measured = regions.iter().map(|region| Region {
        start: ruler.units(region.start),
        end: ruler.units(region.end),
        old_start: old_ruler.units(region.old_start),
    });
    let chain = Chain::of_windows(measured, i64::from(old_ruler.len()), i64::from(ruler.len()), reach);
    let spans: Vec<Range> = old
        .mentions
        .iter()
        .map(|mention| (i64::from(old_ruler.units(mention.start)), i64::from(old_ruler.units(mention.end))))
        .collect();
    let copier = Copier { old, spans, regions, chain: &chain };
    // Somebody who may answer the same question differently may also disagree with himself between two old pages.
    if deterministic && !copier.regions_agree() {
        let mut redone = scratch(runner, new, windows)?;
        redone.not_local = true;
        return Ok(redone);
    }
    let copied = copier.copy();
    Slicing { new, ruler, chain }.run(runner, reach, copied)
}

struct Copier<'a> {
    old: Old<'a>,
    /// Of the old mentions, in units.
    spans: Vec<Range>,
    regions: &'a [Region],
    chain: &'a Chain,
}

impl Copier<'_> {
    /// The old mentions whose window, shifted, lies in `[lo, hi)` and ends after `beyond`.
    fn within(&self, place: usize, lo: i64, hi: i64, beyond: i64) -> impl Iterator<Item = usize> + '_ {
        let reach = self.chain.reach();
        let (left, right) = (i64::from(reach.left), i64::from(reach.right));
        let shift = self.chain.places()[place].shift;
        let first_start = (lo + left).max(beyond - right - i64::from(reach.scope) + 1) - shift;
        let first = self.spans.partition_point(|span| span.0 < first_start);
        let last_end = hi - right - shift;
        (first..self.spans.len())
            .take_while(move |&index| self.spans[index].0 < last_end)
            .filter(move |&index| self.spans[index].1 <= last_end && self.spans[index].1 + shift + right > beyond)
    }

    fn copy(&self) -> Vec<Found> {
        let mut found = Vec::new();
        let mut beyond = -FAR;
        for (at, place) in self.chain.places().iter().enumerate() {
            let shift = self.regions[place.region].shift();
            for index in self.within(at, place.lo, place.hi, beyond) {
                let mention = self.old.mentions[index].shifted(shift);
                found.push(Found { mention, source: u32::try_from(index).ok() });
            }
            beyond = place.hi;
        }
        found
    }

    /// Where neighbouring places overlap, both must say the same. Looks at as many mentions as the page has, not more.
    fn regions_agree(&self) -> bool {
        let mut budget = 2 * self.spans.len() + 64;
        for (at, pair) in self.chain.places().windows(2).enumerate() {
            if pair[0].hi <= pair[1].lo || pair[0].shift == pair[1].shift {
                continue;
            }
            let side = |place: usize| -> Vec<Mention> {
                let shift = self.regions[self.chain.places()[place].region].shift();
                let inside = self.within(place, pair[1].lo, pair[0].hi, -FAR);
                let mut mentions: Vec<_> = inside.map(|index| self.old.mentions[index].shifted(shift)).collect();
                mentions.sort_unstable();
                mentions
            };
            let (before, after) = (side(at), side(at + 1));
            if before != after {
                return false;
            }
            budget = budget.saturating_sub(before.len() + after.len());
            if budget == 0 {
                break;
            }
        }
        true
    }
}

impl Slicing<'_> {
    fn run(self, runner: &mut dyn Runner, declared: Reach, mut found: Vec<Found>) -> Result<Recycled, Failure> {
        let least_core = self.chain.reach().gamma() / LEAST_CORE_SHARE;
        let ranges: Vec<Range> =
            self.chain.extraction_ranges(least_core).iter().map(|range| self.outward(*range)).collect();
        let ranges = merged(ranges);
        let slices: Vec<Span> = ranges.iter().map(span_of).collect();
        let answers = if slices.is_empty() { Vec::new() } else { runner.run(self.new, &slices)? };
        let mut too_long = 0;
        for (slice, mentions) in slices.iter().zip(answers) {
            let from = if slice.start == 0 { -FAR } else { self.units(slice.start) };
            let to = if slice.end as usize == self.new.len() { FAR } else { self.units(slice.end) };
            for mention in mentions {
                let (start, end) = (self.units(mention.start), self.units(mention.end));
                if end - start > i64::from(declared.scope) {
                    too_long += 1;
                    continue;
                }
                let trusted = from <= start - i64::from(declared.left) && end + i64::from(declared.right) <= to;
                if trusted && !self.chain.covers(start, end) {
                    found.push(Found::extracted(mention));
                }
            }
        }
        found.sort_by(|a, b| a.mention.cmp(&b.mention));
        let lower: Vec<Range> = self.chain.uncovered_windows().iter().map(|range| self.outward(*range)).collect();
        Ok(Recycled {
            found,
            bytes_extracted: total(&ranges),
            lower_bound: Some(total(&merged(lower))),
            too_long,
            ..Recycled::default()
        })
    }

    fn units(&self, byte: u32) -> i64 {
        i64::from(self.ruler.units(byte))
    }

    /// A range of units as bytes, rounded outward to characters.
    fn outward(&self, range: Range) -> Range {
        let unit = |at: i64| u32::try_from(at).expect("ranges lie in the page");
        let end = self.ruler.at_or_after(unit(range.1)).expect("ranges lie in the page");
        (i64::from(self.ruler.at_or_before(unit(range.0))), i64::from(end))
    }
}

fn span_of(range: &Range) -> Span {
    let at = |at: i64| u32::try_from(at).expect("ranges lie in the page");
    Span::new(at(range.0), at(range.1))
}
