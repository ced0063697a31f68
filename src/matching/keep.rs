//! From maximal regions to the rows that are stored: which are kept, and at which place of q each is said to stand.
//!
//! **Kept** are regions of length `min_len` or more and, if asked for, the common prefix and suffix of the two
//! pages where they are maximal, however short: extraction at the edges of a page depends on them.
//!
//! **`old_start`.** A region may stand at several places of q. The first of these that applies is taken: q's start,
//! if the region starts p; q's end, if it ends p; the shift of the kept region before it; the smallest place. So
//! the result does not depend on the matcher.
//!
//! **Cost.** A region that overlaps or touches the one before it cannot stand at the same shift: the two together
//! would be one longer region. So shifts are tried only for regions that leave a gap, which are disjoint, and all
//! comparisons together are linear in p.

use crate::matching::bytes::offset;
use crate::model::Region;

/// What becomes of a region for which no preferred place holds.
pub(super) enum Place {
    /// The smallest place where it stands in q.
    At(u32),
    /// The matcher was wrong: it does not stand where it was said to.
    False,
    /// Finding out costs more than the matcher may spend.
    TooDear,
}

pub(super) struct Choice<'a> {
    pub(super) old: &'a [u8],
    pub(super) new: &'a [u8],
    pub(super) min_len: u32,
    /// Keep a maximal common prefix and suffix that are shorter than `min_len`.
    pub(super) short_edges: bool,
    /// Each given region was found by comparing bytes at its `old_start`.
    pub(super) proven: bool,
}

impl Choice<'_> {
    /// Replaces `out` by the kept ones of `maximal`, which come by start; `smallest` gets one and its number.
    /// Without a result if a place was too dear.
    pub(super) fn run(
        &self,
        maximal: impl Iterator<Item = Region>,
        out: &mut Vec<Region>,
        mut smallest: impl FnMut(usize, Region) -> Place,
    ) -> Option<()> {
        out.clear();
        for (index, region) in maximal.enumerate() {
            let edge = self.at_edge(region);
            if region.len() < self.min_len && !(self.short_edges && edge.is_some()) {
                continue;
            }
            let place = match edge.or_else(|| self.at_shift(region, out.last().copied())) {
                Some(old_start) => Place::At(old_start),
                None => smallest(index, region),
            };
            match place {
                Place::At(old_start) => out.push(Region { old_start, ..region }),
                Place::False => debug_assert!(false, "{region:?} is no old region"),
                Place::TooDear => return None,
            }
        }
        Some(())
    }

    fn at_edge(&self, region: Region) -> Option<u32> {
        let start = || (region.start == 0).then_some(0).filter(|&place| self.stands(region, place));
        let end = || {
            let place = self.old.len().checked_sub(region.len() as usize)?;
            (region.end as usize == self.new.len()).then_some(offset(place)).filter(|&place| self.stands(region, place))
        };
        start().or_else(end)
    }

    fn at_shift(&self, region: Region, before: Option<Region>) -> Option<u32> {
        let before = before.filter(|before| before.end < region.start)?;
        let place = u32::try_from(i64::from(region.start) - before.shift()).ok()?;
        Some(place).filter(|&place| self.stands(region, place))
    }

    fn stands(&self, region: Region, place: u32) -> bool {
        if self.proven && region.old_start == place {
            return true;
        }
        let place = place as usize;
        self.old.get(place..place + region.len() as usize) == Some(&self.new[region.span().range()])
    }
}
