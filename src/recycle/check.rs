//! Recycled mentions against those from scratch.

use std::fmt;

#[cfg(any(test, feature = "lab"))]
use super::Recycled;
use crate::extract::Mention;

/// How a recycled page differs from the same page from scratch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Mentions that only the run from scratch has, and those that only recycling has; at most [`SHOWN`] each.
    pub missing: Vec<Mention>,
    pub extra: Vec<Mention>,
    pub total: usize,
}

pub(crate) const SHOWN: usize = 5;

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
pub(crate) fn compare<'a>(
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

#[cfg(any(test, feature = "lab"))]
pub(crate) fn mentions(page: &Recycled) -> Vec<Mention> {
    page.found.iter().map(|found| found.mention.clone()).collect()
}
