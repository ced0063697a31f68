//! A page against its old version, cut into pieces that are old, moved or new; and what of the old version is gone.
//!
//! Regions overlap and repeat, so they are first thinned to a cover: left to right, the region that reaches furthest.
//! Of the cover, the heaviest chain that keeps the order of the old page is *kept* (what a reader would call
//! unchanged); the other pieces *moved*. The chain is found in O(n log n) by a Fenwick tree over old positions that
//! holds the best weight of a chain ending there.

use crate::model::{Region, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Stood in the old page, in the same order.
    Kept,
    /// Stood in the old page, elsewhere.
    Moved,
    /// Did not.
    New,
}

impl Kind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Moved => "moved",
            Self::New => "new",
        }
    }
}

/// A piece of the new page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub span: Span,
    pub kind: Kind,
    /// Where it stood; meaningless for new text.
    pub old_start: u32,
}

/// Both sides of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Together the whole new page, in order.
    pub segments: Vec<Segment>,
    /// What of the old page is in no kept or moved piece, in order.
    pub deleted: Vec<Span>,
}

impl Comparison {
    /// Compares pages of the given lengths by regions sorted by start, each inside both pages.
    #[must_use]
    pub fn new(old_len: u32, new_len: u32, regions: &[Region]) -> Self {
        let cover = cover(regions);
        let kept = heaviest_chain(&cover);
        let mut segments = Vec::new();
        let mut at = 0;
        for (piece, kept) in cover.iter().zip(kept) {
            if at < piece.start {
                segments.push(Segment { span: Span::new(at, piece.start), kind: Kind::New, old_start: 0 });
            }
            let kind = if kept { Kind::Kept } else { Kind::Moved };
            segments.push(Segment { span: piece.span(), kind, old_start: piece.old_start });
            at = piece.end;
        }
        if at < new_len {
            segments.push(Segment { span: Span::new(at, new_len), kind: Kind::New, old_start: 0 });
        }
        Self { segments, deleted: gaps(old_len, &cover) }
    }

    /// Bytes of the new page of a kind.
    #[must_use]
    pub fn bytes(&self, kind: Kind) -> u64 {
        self.segments.iter().filter(|segment| segment.kind == kind).map(|segment| u64::from(segment.span.len())).sum()
    }
}

/// Pieces of regions that do not overlap in the new page and cover what the regions cover: where regions overlap, the
/// one that reaches furthest goes on.
fn cover(regions: &[Region]) -> Vec<Region> {
    let mut pieces: Vec<Region> = Vec::new();
    let mut at = 0;
    let mut rest = regions.iter().copied().peekable();
    while let Some(first) = rest.next() {
        let mut best = first;
        // Of those that begin before the covered part ends, the furthest.
        while let Some(next) = rest.next_if(|next| next.start <= best.start.max(at)) {
            if next.end > best.end {
                best = next;
            }
        }
        if best.end <= at {
            continue;
        }
        let skip = at.saturating_sub(best.start);
        pieces.push(Region { start: best.start + skip, end: best.end, old_start: best.old_start + skip });
        at = best.end;
    }
    pieces
}

/// For each piece, whether it is in the heaviest chain of pieces whose old spans follow each other.
fn heaviest_chain(pieces: &[Region]) -> Vec<bool> {
    let mut ends: Vec<u32> = pieces.iter().map(|piece| piece.old_end()).collect();
    ends.sort_unstable();
    ends.dedup();
    // best[i]: the heaviest chain that ends at or before ends[i], as (weight, last piece), by Fenwick prefixes.
    let mut best: Vec<(u64, usize)> = vec![(0, usize::MAX); ends.len() + 1];
    let mut before = Vec::with_capacity(pieces.len());
    let mut heaviest = (0, usize::MAX);
    for (i, piece) in pieces.iter().enumerate() {
        let mut chain = (0, usize::MAX);
        let mut k = ends.partition_point(|&end| end <= piece.old_start);
        while k > 0 {
            if best[k].0 > chain.0 {
                chain = best[k];
            }
            k &= k - 1;
        }
        before.push(chain.1);
        let mine = (chain.0 + u64::from(piece.len()), i);
        if mine.0 > heaviest.0 {
            heaviest = mine;
        }
        let mut k = ends.partition_point(|&end| end < piece.old_end()) + 1;
        while k < best.len() {
            if mine.0 > best[k].0 {
                best[k] = mine;
            }
            k += k & k.wrapping_neg();
        }
    }
    let mut kept = vec![false; pieces.len()];
    let mut i = heaviest.1;
    while i != usize::MAX {
        kept[i] = true;
        i = before[i];
    }
    kept
}

/// What of the old page no piece covers.
fn gaps(old_len: u32, pieces: &[Region]) -> Vec<Span> {
    let mut spans: Vec<Span> = pieces.iter().map(|piece| piece.old_span()).collect();
    spans.sort_unstable();
    let mut gaps = Vec::new();
    let mut at = 0;
    for span in spans {
        if at < span.start {
            gaps.push(Span::new(at, span.start));
        }
        at = at.max(span.end);
    }
    if at < old_len {
        gaps.push(Span::new(at, old_len));
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn region(start: u32, end: u32, old_start: u32) -> Region {
        Region { start, end, old_start }
    }

    fn kinds(comparison: &Comparison) -> Vec<(u32, u32, &'static str)> {
        comparison.segments.iter().map(|s| (s.span.start, s.span.end, s.kind.as_str())).collect()
    }

    #[test]
    fn the_lighter_of_two_swapped_blocks_moved() {
        // old: AAAAABBB, new: BBBxAAAAA
        let comparison = Comparison::new(8, 9, &[region(0, 3, 5), region(4, 9, 0)]);
        assert_eq!(kinds(&comparison), [(0, 3, "moved"), (3, 4, "new"), (4, 9, "kept")]);
        assert_eq!(comparison.deleted, []);
    }

    #[test]
    fn overlapping_regions_are_cut() {
        let comparison = Comparison::new(20, 10, &[region(0, 6, 0), region(2, 5, 10), region(4, 10, 14)]);
        assert_eq!(kinds(&comparison), [(0, 6, "kept"), (6, 10, "kept")]);
        assert_eq!(comparison.segments[1].old_start, 16);
        assert_eq!(comparison.deleted, [Span::new(6, 16)]);
    }

    #[test]
    fn without_regions_all_is_new_and_all_is_gone() {
        let comparison = Comparison::new(3, 4, &[]);
        assert_eq!(kinds(&comparison), [(0, 4, "new")]);
        assert_eq!(comparison.deleted, [Span::new(0, 3)]);
        assert_eq!(Comparison::new(0, 0, &[]), Comparison::default());
    }

    /// The heaviest chain by trying all subsets.
    fn slow_weight(pieces: &[Region]) -> u64 {
        (0..1u32 << pieces.len())
            .filter_map(|set| {
                let chosen: Vec<_> = (0..pieces.len()).filter(|i| set >> i & 1 == 1).map(|i| pieces[i]).collect();
                let ordered = chosen.windows(2).all(|pair| pair[0].old_end() <= pair[1].old_start);
                ordered.then(|| chosen.iter().map(|piece| u64::from(piece.len())).sum())
            })
            .max()
            .unwrap_or(0)
    }

    proptest! {
        #[test]
        fn segments_are_the_page_and_the_chain_is_heaviest(raw in prop::collection::vec((0u32..30, 1u32..10, 0u32..30), 0..8)) {
            let mut regions: Vec<_> = raw.iter().map(|&(start, len, old)| region(start, start + len, old)).collect();
            regions.sort_unstable();
            let comparison = Comparison::new(40, 40, &regions);
            let mut at = 0;
            for segment in &comparison.segments {
                prop_assert_eq!(segment.span.start, at);
                prop_assert!(!segment.span.is_empty());
                at = segment.span.end;
                if segment.kind != Kind::New {
                    let shift = i64::from(segment.span.start) - i64::from(segment.old_start);
                    prop_assert!(regions.iter().any(|r| r.shift() == shift && r.span().contains(segment.span)));
                }
            }
            prop_assert_eq!(at, 40);
            for x in 0..40 {
                let covered = regions.iter().any(|r| r.start <= x && x < r.end);
                let new = comparison.segments.iter().any(|s| s.kind == Kind::New && s.span.start <= x && x < s.span.end);
                prop_assert_eq!(covered, !new);
            }
            let pieces = cover(&regions);
            prop_assert_eq!(comparison.bytes(Kind::Kept), slow_weight(&pieces));
            for x in 0..40 {
                let held = pieces.iter().any(|r| r.old_start <= x && x < r.old_end());
                let gone = comparison.deleted.iter().any(|s| s.start <= x && x < s.end);
                prop_assert_eq!(held, !gone);
            }
        }
    }
}
