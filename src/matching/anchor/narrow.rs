//! The other way round, for pages with little new text: index p around what is new, and look up samples of q.
//!
//! **Problem.** Where two pages hardly differ, most time goes into the index of q, of which next to nothing is asked.
//!
//! **Idea.** First *align* the pages as a person would: after the common prefix go on at the next lines that agree, and
//! so on to the end. This finds most regions, and trusts nothing: it only says where to look. Then index all seeds of p
//! *around* the ends of the known regions, and look up q once in every s places; what q has elsewhere is not asked.
//!
//! # Why no region is lost
//! Let R = `[x, y)` be maximal, y-x >= L, inside no known region. Each L bytes of R stand in q, where they hold a sample,
//! which is met if the s places from where they start are indexed in p. Let k = `[a, e)` be the last known region that
//! starts at or before x, and a' where the next one starts. R ends after e, or it would lie in k. If x > e-L, the
//! places x to x+s-1 are enough: they lie between e+1-L and a'+s-2. Otherwise R contains the L bytes from e+1-L: the s
//! places from there are enough. So we index from e+1-L to the greater of e+s-L and a'+s-1, from 0 where no region
//! starts at or before x, and to the end after the last one. A sample that is met there is held against the last
//! known region that starts at or before it: R passes its end or starts before it, or it would lie in it.
//!
//! *The smallest place*: where R stands several times in q, each place is met in the same way, and of equal regions the
//! smaller place is kept. For known regions the s places from their start are indexed, too. Only for those that were
//! trimmed to whole characters q is searched again.
//!
//! **Cost.** One pass of `memcmp`, |q|/s look-ups in a table that fits the nearest cache, about 2 L seeds for each
//! place where the pages differ. Where there are too many of these, or too many candidates, the other searches do it.

use super::index::seed;
use super::search::{Found, Search};
use super::{Anchor, Edges, NARROW, Spent, Task};
use crate::matching::bytes::{common_prefix, common_suffix};
use crate::model::Region;

/// After a difference so many lines of each page are looked at to find where they agree again.
const LINES: usize = 16;
/// And so many where that was not enough, once for so many bytes of q: it takes as long as searching some thousand bytes.
const MORE_LINES: usize = 256;
const BYTES_PER_LONG_LOOK: usize = 1 << 16;
/// Bytes of lines that must be equal to try it there.
const EQUAL: usize = 32;
/// Where text was replaced by as much other text, the pages agree again after so many bytes.
const IN_PLACE: usize = 64;

impl<'a, const SPAN: usize, const WORDS: usize, const BURST: usize> Search<'a, SPAN, WORDS, BURST> {
    pub(super) fn run_narrow(
        anchor: &'a mut Anchor,
        task: Task<'a>,
        edges: Edges,
        most: usize,
        budget: usize,
        out: &mut Vec<Region>,
    ) -> Result<(), Spent> {
        let Task { old, new, min_len, .. } = task;
        let least = min_len as usize;
        let whole = edges.prefix == new.len() || edges.suffix == new.len();
        if whole || least > new.len().min(old.len()) {
            return Err(Spent);
        }
        let reach = least - SPAN + 1;
        let Anchor { index, found, ranges } = anchor;
        found.clear();
        let mut search = Search::<SPAN, WORDS, BURST> {
            old,
            new,
            least,
            reach,
            index,
            of_old: false,
            found,
            budget,
            pace: usize::MAX,
        };
        search.align(edges, most)?;
        search.places_around(ranges);
        if ranges.iter().map(ExactSizeIterator::len).sum::<usize>() > most {
            return Err(Spent);
        }
        index.build_at::<SPAN, WORDS, BURST>(new, ranges);
        let mut search = Self { old, new, least, reach, index, of_old: false, found, budget, pace: usize::MAX };
        search.scan_old()?;
        for found in search.found.iter_mut() {
            found.is_smallest = true;
        }
        search.finish(task, edges, out)
    }

    /// Finds regions that follow each other in both pages, as long as little lies between them.
    fn align(&mut self, edges: Edges, most: usize) -> Result<(), Spent> {
        let n = self.new.len();
        let (mut at, mut place) = (edges.prefix, edges.prefix);
        if at >= self.least {
            self.found.push(Found::new(0, at, 0));
        }
        let mut around = 0_usize;
        let mut long_looks = 1 + self.old.len() / BYTES_PER_LONG_LOOK;
        while at < n {
            let mut next = self.resume(at, place);
            if next.is_none() && long_looks > 0 {
                long_looks -= 1;
                next = self.resume_far(at, place);
            }
            let Some(next) = next else { break };
            around += self.least + next.start().saturating_sub(at);
            // At the pace of too much new text, pages are given up before their end.
            if around > most / 2 + next.end() / (2 * NARROW) {
                return Err(Spent);
            }
            at = next.end();
            place = next.region.old_end() as usize;
            self.insert(next)?;
        }
        self.add_suffix(edges.suffix);
        Ok(())
    }

    /// The first region of L or more that lies behind a difference, where lines agree again.
    fn resume(&self, at: usize, place: usize) -> Option<Found> {
        let in_place = self.extend(at + IN_PLACE, place + IN_PLACE);
        if in_place.is_some() {
            return in_place;
        }
        let (new, old) = (Lines::after(self.new, at), Lines::after(self.old, place));
        // Those near the difference come first.
        (0..new.count + old.count).find_map(|skipped| {
            let from = (skipped + 1).saturating_sub(old.count);
            (from..new.count.min(skipped + 1)).find_map(|line| {
                let ((mark, at), (other, place)) = (new.lines[line], old.lines[skipped - line]);
                if mark == other { self.extend(at, place) } else { None }
            })
        })
    }

    /// As [`Self::resume`], of more lines, and without their order: the first of p that stands in q.
    fn resume_far(&self, at: usize, place: usize) -> Option<Found> {
        let mut old: Vec<(u64, usize)> = lines(self.old, place).take(MORE_LINES).collect();
        old.sort_unstable();
        lines(self.new, at).take(MORE_LINES).find_map(|(mark, at)| {
            let first = old.partition_point(|&(other, _)| other < mark);
            let equal = old.get(first).filter(|(other, _)| *other == mark);
            equal.and_then(|&(_, place)| self.extend(at, place))
        })
    }

    /// The region around two equal places, if it is L or longer and goes on behind them.
    fn extend(&self, at: usize, place: usize) -> Option<Found> {
        let (new, old) = (self.new.get(at..)?, self.old.get(place..)?);
        if new.get(..EQUAL)? != old.get(..EQUAL)? {
            return None;
        }
        let after = common_prefix(new, old);
        let before = common_suffix(&self.new[..at], &self.old[..place]);
        (before + after >= self.least).then(|| Found::new(at - before, at + after, place - before))
    }

    /// The places of p whose seeds a region that is still unknown would show.
    fn places_around(&self, ranges: &mut Vec<Range>) {
        let end = self.new.len() + 1 - SPAN;
        ranges.clear();
        let mut from = 0;
        for known in self.found.iter() {
            let start = known.start();
            if start > 0 || known.region.old_start > 0 {
                if start < from {
                    ranges.push(start..(start + self.reach).min(from));
                }
                ranges.push(from..(start.max(from) + self.reach).min(end));
            }
            from = known.end() + 1 - self.least;
        }
        if from < end && self.found.last().is_none_or(|last| last.end() < self.new.len()) {
            ranges.push(from..end);
        }
    }

    /// Looks up q once in every s places.
    fn scan_old(&mut self) -> Result<(), Spent> {
        let (old, index) = (self.old, self.index);
        let period = self.reach - BURST + 1;
        let Some(last) = (old.len() + 1).checked_sub(SPAN + BURST) else {
            return Ok(());
        };
        for at in (period - 1..=last).step_by(period) {
            for place in at..at + BURST {
                let hash = seed::<SPAN, WORDS>(old, place);
                if index.may_hold(hash) {
                    self.consider_all(hash, place)?;
                }
            }
        }
        Ok(())
    }

    /// All places of p that may hold what stands at this place of q.
    fn consider_all(&mut self, hash: u64, place: usize) -> Result<(), Spent> {
        let index = self.index;
        for at in index.places(hash) {
            let near = self.found.partition_point(|known| known.start() <= at).wrapping_sub(1);
            let is_known = self.found.get(near).is_some_and(|known| {
                at + SPAN <= known.end() && at - known.start() + known.region.old_start as usize == place
            });
            if !is_known {
                self.consider_near(near, at, place)?;
            }
        }
        Ok(())
    }
}

type Range = std::ops::Range<usize>;

/// The next lines of a page.
struct Lines {
    count: usize,
    lines: [(u64, usize); LINES],
}

impl Lines {
    fn after(text: &[u8], at: usize) -> Self {
        let mut found = Self { count: 0, lines: [(0, 0); LINES] };
        for (slot, line) in found.lines.iter_mut().zip(lines(text, at)) {
            *slot = line;
            found.count += 1;
        }
        found
    }
}

/// What tells the lines behind a place apart, and where they start.
fn lines(text: &[u8], at: usize) -> impl Iterator<Item = (u64, usize)> {
    let starts = memchr::memchr_iter(b'\n', &text[at..]).map(move |end| at + end + 1);
    starts.take_while(|start| start + EQUAL <= text.len()).map(|start| (seed::<EQUAL, 4>(text, start), start))
}
