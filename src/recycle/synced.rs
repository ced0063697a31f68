//! The synchronised scan: exact recycling of leftmost, non-overlapping matches.
//!
//! Such a scan is not local for any context: in `aaaaa` every match of `aa` depends on where the run of `a` begins.
//! But what is the match *at* a given start depends on the bytes from `left` before it to `scope + right` after it
//! only. So two scans that stand at corresponding positions inside an old region stay together until the region's end
//! comes into view.
//!
//! A position r is a *restart* of the new scan if scanning from r gives the rest of it: 0, the end of a match, or any
//! position up to which no further match starts. If r is a restart, lies in a region (with `left` bytes of it before
//! r) and its old position is not strictly inside an old match, then the new matches that start in [r, t) are the old
//! ones, shifted, where t = hi - scope - right + 1; and the larger of t and the last one's end is a restart.
//! Otherwise the page is searched from r, but only as far as the next position where the scans might fall into step:
//! a region's start, or the end of the old match in the way.
//!
//! Cost: a search of what is not copied plus less than `scope` bytes per region, a binary search per step. On a page
//! where nothing can be copied it is the plain scan.

use super::chain::{Chain, Range};
use crate::extract::Mention;
use crate::extract::mention::Found;
use crate::extract::scan::Scan;

/// Regions looked at per step. Only where more than these overlap in one place can one be missed, which costs a few
/// bytes of search and nothing else.
const CANDIDATES: usize = 8;

/// The old page's matches of one pattern (or of a term list), in page order, none overlapping another.
pub(crate) struct OldMatches<'a> {
    pub(crate) mentions: &'a [Mention],
    /// Indices into `mentions`; `None` for all of them.
    pub(crate) chosen: Option<&'a [u32]>,
}

impl OldMatches<'_> {
    fn len(&self) -> usize {
        self.chosen.map_or(self.mentions.len(), <[u32]>::len)
    }

    fn index(&self, at: usize) -> u32 {
        self.chosen.map_or_else(|| u32::try_from(at).expect("fewer than 2^32 mentions"), |chosen| chosen[at])
    }

    fn get(&self, at: usize) -> &Mention {
        &self.mentions[self.index(at) as usize]
    }

    /// Number of matches that start before a position.
    pub(crate) fn before(&self, position: i64) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if i64::from(self.get(middle).start) < position {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The end of the match that a position is strictly inside of.
    fn blocking(&self, position: i64) -> Option<i64> {
        let last = self.get(self.before(position).checked_sub(1)?);
        (i64::from(last.end) > position).then_some(i64::from(last.end))
    }

    /// Copies the matches that start in `[from, to)` of the old page; returns the last one's end.
    pub(crate) fn copy(&self, from: i64, to: i64, shift: i64, out: &mut Vec<Found>) -> Option<i64> {
        let mut end = None;
        for at in self.before(from)..self.len() {
            let mention = self.get(at);
            if i64::from(mention.start) >= to {
                break;
            }
            end = Some(i64::from(mention.end));
            out.push(Found { mention: mention.shifted(shift), source: Some(self.index(at)) });
        }
        end
    }
}

/// Appends all matches of `text`, in page order, and the ranges that were searched.
pub(crate) fn recycle(
    scan: &mut dyn Scan,
    old: &OldMatches<'_>,
    text: &str,
    chain: &Chain,
    out: &mut Vec<Found>,
    searched: &mut Vec<Range>,
) {
    let reach = chain.reach();
    let len = text.len();
    let (scope, left, right) = (i64::from(reach.scope), i64::from(reach.left), i64::from(reach.right));
    let places = chain.places();
    let position = |at: usize| i64::try_from(at).expect("texts are shorter than 4 GiB");
    let horizon = |hi: i64| hi - scope - right + 1;
    let mut at = 0usize;
    let mut first = 0;
    while at < len {
        let r = position(at);
        while places.get(first).is_some_and(|place| horizon(place.hi) <= r) {
            first += 1;
        }
        if first == places.len() {
            return scan_to_the_end(scan, text, at, out, searched);
        }
        let mut until = position(len);
        let mut synced = None;
        for place in places.iter().skip(first).take(CANDIDATES) {
            if place.lo + left > r {
                until = until.min(place.lo + left);
                break;
            }
            match old.blocking(r - place.shift) {
                // The last one reaches furthest.
                None => synced = Some(place),
                Some(end) if end + place.shift < horizon(place.hi) => until = until.min(end + place.shift),
                Some(_) => {}
            }
        }
        if let Some(place) = synced {
            let t = horizon(place.hi);
            let last = old.copy(r - place.shift, t - place.shift, place.shift, out);
            let restart = last.map_or(t, |end| t.max(end + place.shift));
            at = usize::try_from(restart).map_or(len, |restart| restart.min(len));
            continue;
        }
        let end = (until - 1 + scope).min(position(len));
        let end_at = usize::try_from(end).unwrap_or(len);
        let found = scan.next(text, at, end_at).filter(|mention| i64::from(mention.start) < until);
        if let Some(mention) = found {
            searched.push((r, i64::from(mention.end)));
            at = mention.end as usize;
            out.push(Found::extracted(mention));
        } else {
            searched.push((r, end));
            at = usize::try_from(until).unwrap_or(len);
        }
    }
}

/// The plain scan, for when nothing more can be copied.
pub(crate) fn scan_to_the_end(
    scan: &mut dyn Scan,
    text: &str,
    from: usize,
    out: &mut Vec<Found>,
    searched: &mut Vec<Range>,
) {
    let position = |at: usize| i64::try_from(at).expect("texts are shorter than 4 GiB");
    searched.push((position(from), position(text.len())));
    let mut at = from;
    while let Some(mention) = scan.next(text, at, text.len()) {
        at = mention.end as usize;
        out.push(Found::extracted(mention));
    }
}
