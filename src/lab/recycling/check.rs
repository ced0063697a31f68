//! Recycled against from scratch, on one pair of pages.

use crate::extract::{Extractor, Failure, Mention, Runner, Works};
use crate::model::Region;
#[cfg(test)]
use crate::model::Span;
use crate::recycle::check::{Difference, compare, mentions};
use crate::recycle::{Old, Recycled, recycle, scratch};

/// Why a check did not pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    #[error("{0}")]
    Differs(Difference),
    #[error("counters or sources are wrong: {0}")]
    Inconsistent(String),
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Extracts `q` and `p` from scratch, recycles `p` from `q`, and compares everything that can be compared. Returns the
/// recycled page.
pub(crate) fn check_pair(
    extractor: &Extractor,
    runner: &mut dyn Runner,
    q: &str,
    p: &str,
    regions: &[Region],
) -> Result<Recycled, Broken> {
    let old = mentions(&scratch(extractor, runner, q)?);
    let fresh = mentions(&scratch(extractor, runner, p)?);
    let recycled = recycle(extractor, runner, Some(Old { text: q, mentions: &old }), p, regions)?;
    compare(&fresh, recycled.found.iter().map(|found| &found.mention)).map_err(Broken::Differs)?;
    check_consistent(&recycled, &old, q, p).map_err(Broken::Inconsistent)?;
    // The bound counts windows. A synchronised scan may search beyond them until it is in step again; a command that is
    // asked by window may not.
    let by_window = extractor.traits().works == Works::Elsewhere && !recycled.not_local;
    check_bound(&recycled, by_window).map_err(Broken::Inconsistent)?;
    Ok(recycled)
}

fn check_consistent(recycled: &Recycled, old: &[Mention], q: &str, p: &str) -> Result<(), String> {
    if !recycled.found.iter().map(|found| &found.mention).is_sorted() {
        return Err("not in canonical order".to_owned());
    }
    for found in &recycled.found {
        let Some(source) = found.source else { continue };
        let source = &old[source as usize];
        let same = source.payload() == found.mention.payload();
        if !same || q[source.span().range()] != p[found.mention.span().range()] {
            return Err(format!("{}..{} is not what it was copied from", found.mention.start, found.mention.end));
        }
    }
    if recycled.bytes_extracted > p.len() as u64 {
        return Err(format!("{} bytes extracted of a page of {}", recycled.bytes_extracted, p.len()));
    }
    Ok(())
}

fn check_bound(recycled: &Recycled, by_window: bool) -> Result<(), String> {
    // Rounding to characters may add up to three bytes at each end of a slice.
    if let Some(bound) = recycled.lower_bound.filter(|_| by_window) {
        let allowed = bound + bound / 10 + 6;
        if recycled.bytes_extracted > allowed {
            return Err(format!("{} bytes extracted, lower bound {bound}", recycled.bytes_extracted));
        }
    }
    Ok(())
}

/// A function from a text to its mentions, as a runner.
#[cfg(test)]
pub(crate) struct FromFn<F>(pub F);

#[cfg(test)]
impl<F: FnMut(&str) -> Vec<Mention>> Runner for FromFn<F> {
    fn run(&mut self, page: &str, slices: &[Span]) -> Result<Vec<Vec<Mention>>, Failure> {
        let mut each = |slice: &Span| {
            let found = (self.0)(&page[slice.range()]);
            found.iter().map(|mention| mention.shifted(i64::from(slice.start))).collect()
        };
        Ok(slices.iter().map(&mut each).collect())
    }
}
