//! A page against its old version, cut into pieces that are old, moved or new; and what of the old version is gone.
//!
//! Regions overlap and repeat, so they are first thinned to a cover: left to right, the region that reaches furthest.
//! Of the cover, the heaviest chain that keeps the order of the old page is *kept* (what a reader would call
//! unchanged); the other pieces *moved*. Two pieces may share some bytes of the old page (a line inserted behind one
//! with the same ending): the later one then keeps what comes after. The chain is found in O(n log n) by trees over old
//! positions that hold the best weight of a chain ending there.

use crate::model::closed_set::closed_set;
use crate::model::{Region, Span};

closed_set! {
    /// How a piece of the new page stands to the old page.
    pub(crate) enum SegmentKind: "kind of segment" {
        /// It stood in the old page, in the same order.
        Kept = "kept",
        /// It stood in the old page, elsewhere.
        Moved = "moved",
        /// It did not stand in the old page.
        New = "new",
    }
}

/// A piece of the new page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub span: Span,
    pub kind: SegmentKind,
    /// Where it stood in the old page; 0 for new text.
    pub old_start: u32,
}

/// Both sides of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Together the whole new page, in order.
    pub segments: Vec<Segment>,
    /// What of the old page is in no kept or moved piece, in order.
    pub deleted: Vec<Span>,
}

impl Comparison {
    /// Compares pages of the given lengths by regions sorted by start, each inside both pages.
    #[must_use]
    pub(crate) fn new(old_len: u32, new_len: u32, regions: &[Region]) -> Self {
        let cover = cover(regions);
        let kept = heaviest_chain(&cover);
        let mut segments = Vec::new();
        let mut at = 0;
        for (piece, kept) in cover.iter().zip(kept) {
            if at < piece.start {
                segments.push(Segment { span: Span::new(at, piece.start), kind: SegmentKind::New, old_start: 0 });
            }
            let moved = kept.unwrap_or(piece.len());
            let (moved_end, kept_start) = (piece.start + moved, piece.old_start + moved);
            if moved > 0 {
                let span = Span::new(piece.start, moved_end);
                segments.push(Segment { span, kind: SegmentKind::Moved, old_start: piece.old_start });
            }
            if moved_end < piece.end {
                let span = Span::new(moved_end, piece.end);
                segments.push(Segment { span, kind: SegmentKind::Kept, old_start: kept_start });
            }
            at = piece.end;
        }
        if at < new_len {
            segments.push(Segment { span: Span::new(at, new_len), kind: SegmentKind::New, old_start: 0 });
        }
        Self { segments, deleted: gaps(old_len, &cover) }
    }

    /// Counts pieces of fewer bytes than `least` that moved as kept: so short a piece stands elsewhere by chance, or was
    /// cut from a longer one that did not move.
    #[must_use]
    pub(crate) fn without_short_moves(mut self, least: u32) -> Self {
        for segment in &mut self.segments {
            if segment.kind == SegmentKind::Moved && segment.span.len() < least {
                segment.kind = SegmentKind::Kept;
            }
        }
        self
    }

    /// Bytes of the new page that are of this kind.
    #[must_use]
    pub(crate) fn bytes(&self, kind: SegmentKind) -> u64 {
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
        // Of the regions that begin before the covered part ends, take the one that reaches furthest.
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

/// For each piece in the heaviest chain, how many of its bytes the piece before it in the chain has taken already;
/// `None` if it is not in it. In a chain the old ends ascend, and a piece weighs what it adds to those before it.
fn heaviest_chain(pieces: &[Region]) -> Vec<Option<u32>> {
    let mut ends: Vec<u32> = pieces.iter().map(|piece| piece.old_end()).collect();
    ends.sort_unstable();
    ends.dedup();
    // For each old end: the weight of the heaviest chain that ends there, and the same less the end itself. A piece
    // that begins inside the last piece of such a chain adds only what lies beyond that end.
    let (mut whole, mut shared) = (MaxTree::new(ends.len()), MaxTree::new(ends.len()));
    let mut before = Vec::with_capacity(pieces.len());
    let mut heaviest = (0, usize::MAX);
    for (i, piece) in pieces.iter().enumerate() {
        let inside = ends.partition_point(|&end| end <= piece.old_start);
        let end = ends.partition_point(|&end| end < piece.old_end());
        let apart = whole.max(0, inside).map_or((0, usize::MAX), |(weight, last)| (weight, last));
        let mut best = (apart.0 + i64::from(piece.len()), apart.1);
        if let Some((weight, last)) = shared.max(inside, end) {
            let weight = weight + i64::from(piece.old_end());
            if weight > best.0 {
                best = (weight, last);
            }
        }
        before.push(best.1);
        if best.0 > heaviest.0 {
            heaviest = (best.0, i);
        }
        whole.raise(end, (best.0, i));
        shared.raise(end, (best.0 - i64::from(piece.old_end()), i));
    }
    let mut kept = vec![None; pieces.len()];
    let mut i = heaviest.1;
    while i != usize::MAX {
        let taken = pieces.get(before[i]).map_or(0, |last| last.old_end().saturating_sub(pieces[i].old_start));
        kept[i] = Some(taken);
        i = before[i];
    }
    kept
}

/// Maxima over ranges; of equal values the one that came first stays.
struct MaxTree {
    leaves: usize,
    nodes: Vec<Option<(i64, usize)>>,
}

impl MaxTree {
    fn new(leaves: usize) -> Self {
        Self { leaves, nodes: vec![None; 2 * leaves] }
    }

    fn raise(&mut self, at: usize, value: (i64, usize)) {
        let mut node = at + self.leaves;
        while node > 0 && self.nodes[node].is_none_or(|known| value.0 > known.0) {
            self.nodes[node] = Some(value);
            node /= 2;
        }
    }

    /// The largest of the values at `from..to`, and what it belongs to.
    fn max(&self, from: usize, to: usize) -> Option<(i64, usize)> {
        let (mut from, mut to) = (from + self.leaves, to + self.leaves);
        let mut best: Option<(i64, usize)> = None;
        let mut take = |node: Option<(i64, usize)>| {
            let better = |value: &(i64, usize)| best.is_none_or(|best| (value.0, best.1) > (best.0, value.1));
            if let Some(value) = node.filter(better) {
                best = Some(value);
            }
        };
        while from < to {
            if from % 2 == 1 {
                take(self.nodes[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                take(self.nodes[to]);
            }
            from /= 2;
            to /= 2;
        }
        best
    }
}

/// What of the old page no piece covers.
pub(super) fn gaps(old_len: u32, pieces: &[Region]) -> Vec<Span> {
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
    fn a_short_piece_has_not_moved() {
        let comparison = Comparison::new(8, 9, &[region(0, 3, 5), region(4, 9, 0)]);
        let kinds_of = |least| kinds(&comparison.clone().without_short_moves(least));
        assert_eq!(kinds_of(3), [(0, 3, "moved"), (3, 4, "new"), (4, 9, "kept")]);
        assert_eq!(kinds_of(4), [(0, 3, "kept"), (3, 4, "new"), (4, 9, "kept")]);
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

    #[test]
    fn a_line_inserted_behind_one_with_the_same_ending_moves_nothing_else() {
        // old: "Home y\nTalk", new: "Home y\nDay\nTalk": both pieces have a claim to the old "y\n".
        let comparison = Comparison::new(11, 16, &[region(0, 7, 0), region(9, 16, 5)]);
        assert_eq!(kinds(&comparison), [(0, 7, "kept"), (7, 9, "new"), (9, 11, "moved"), (11, 16, "kept")]);
        assert_eq!(comparison.segments[3].old_start, 7);
        assert_eq!(comparison.deleted, []);
    }

    /// The heaviest chain by trying all subsets.
    fn slow_weight(pieces: &[Region]) -> u64 {
        (0..1u32 << pieces.len())
            .filter_map(|set| {
                let mut weight = 0;
                let mut at = 0;
                for piece in (0..pieces.len()).filter(|i| set >> i & 1 == 1).map(|i| pieces[i]) {
                    if piece.old_end() <= at {
                        return None;
                    }
                    weight += u64::from(piece.old_end() - piece.old_start.max(at));
                    at = piece.old_end();
                }
                Some(weight)
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
                if segment.kind != SegmentKind::New {
                    let shift = i64::from(segment.span.start) - i64::from(segment.old_start);
                    prop_assert!(regions.iter().any(|r| r.shift() == shift && r.span().contains(segment.span)));
                }
            }
            prop_assert_eq!(at, 40);
            for x in 0..40 {
                let covered = regions.iter().any(|r| r.start <= x && x < r.end);
                let new = comparison.segments.iter().any(|s| s.kind == SegmentKind::New && s.span.start <= x && x < s.span.end);
                prop_assert_eq!(covered, !new);
            }
            let pieces = cover(&regions);
            prop_assert_eq!(comparison.bytes(SegmentKind::Kept), slow_weight(&pieces));
            for x in 0..40 {
                let held = pieces.iter().any(|r| r.old_start <= x && x < r.old_end());
                let gone = comparison.deleted.iter().any(|s| s.start <= x && x < s.end);
                prop_assert_eq!(held, !gone);
            }
        }
    }
}
