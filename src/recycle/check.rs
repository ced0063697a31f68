//! Recycled against from scratch, on one pair of pages.

use std::fmt;

use super::{Old, Recycled, recycle, scratch};
use crate::extract::command::{Failure, Runner};
use crate::extract::{Extractor, Mention};
use crate::model::Region;

/// How a recycled page differs from the same page from scratch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Mentions that only the run from scratch has, and those that only recycling has; at most [`SHOWN`] each.
    pub missing: Vec<Mention>,
    pub extra: Vec<Mention>,
    pub total: usize,
}

pub const SHOWN: usize = 5;

/// Why a check did not pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("{0}")]
    Differs(Difference),
    #[error("counters or sources are wrong: {0}")]
    Inconsistent(String),
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} mentions differ", self.total)?;
        let mut list = |what: &str, mentions: &[Mention]| {
            mentions.iter().try_for_each(|m| write!(f, "; {what} {}..{} (label {})", m.start, m.end, m.label))
        };
        list("missing", &self.missing)?;
        list("extra", &self.extra)
    }
}

/// Compares two lists in canonical order as multisets.
pub fn compare<'a>(
    scratch: impl IntoIterator<Item = &'a Mention>,
    recycled: impl IntoIterator<Item = &'a Mention>,
) -> Result<(), Difference> {
    let (mut left, mut right) = (scratch.into_iter().peekable(), recycled.into_iter().peekable());
    let mut difference = Difference { missing: Vec::new(), extra: Vec::new(), total: 0 };
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(b),
        };
        let side = match order {
            std::cmp::Ordering::Equal => {
                _ = (left.next(), right.next());
                continue;
            }
            std::cmp::Ordering::Less => (&mut difference.missing, left.next()),
            std::cmp::Ordering::Greater => (&mut difference.extra, right.next()),
        };
        difference.total += 1;
        if side.0.len() < SHOWN {
            side.0.extend(side.1.cloned());
        }
    }
    if difference.total == 0 { Ok(()) } else { Err(difference) }
}

/// Extracts `q` and `p` from scratch, recycles `p` from `q`, and compares everything that can be compared. Returns the
/// recycled page.
pub fn check_pair(
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
    // A scan may be out of step for a while, which no bound by windows knows; a command has no excuse.
    let by_window = matches!(extractor, Extractor::Command(_)) && !recycled.not_local;
    check_bound(&recycled, by_window).map_err(Broken::Inconsistent)?;
    Ok(recycled)
}

pub(crate) fn mentions(page: &Recycled) -> Vec<Mention> {
    page.found.iter().map(|found| found.mention.clone()).collect()
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
pub struct FromFn<F>(pub F);

impl<F: FnMut(&str) -> Vec<Mention>> Runner for FromFn<F> {
    fn run(&mut self, page: &str, slices: &[crate::model::Span]) -> Result<Vec<Vec<Mention>>, Failure> {
        let mut each = |slice: &crate::model::Span| {
            let found = (self.0)(&page[slice.range()]);
            found.iter().map(|mention| mention.shifted(i64::from(slice.start))).collect()
        };
        Ok(slices.iter().map(&mut each).collect())
    }
}
