//! Stored mentions against extraction from scratch.
//!
//! An error that gets into a store is copied from night to night; only a fresh look finds it. `verify` re-extracts
//! pages and compares. If none of N pages drawn at random is wrong, at most 3/N of all pages are, at 95 % (the rule
//! of three).

use super::check::{Difference, compare};
use crate::extract::Mention;
use crate::extract::record::Record;

/// What verifying pages of one extractor found so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verified {
    pub pages: u64,
    pub mentions: u64,
    /// Pages that could not be extracted anew (a worker failed); they prove nothing and do not count as `pages`.
    pub failed: u64,
    /// Pages that have what another definition found: they are not looked at and do not count as `pages`.
    pub older: u64,
    pub different: u64,
    /// The first differences, at most [`FIRST`].
    pub first: Vec<(String, Difference)>,
}

pub(crate) const FIRST: usize = 10;

impl Verified {
    /// Looks at the records of one page, given its URL, its text and the parts' mentions from scratch.
    pub(crate) fn records(&mut self, record: &Record, page: (&str, &str), parts: &[&[Mention]], stored: &[Mention]) {
        let (url, text) = page;
        let fresh: Vec<Mention> = record.join(text, parts).records.into_iter().map(|joined| joined.mention).collect();
        self.compare(url, &fresh, stored);
    }

    /// Looks at one page: its mentions from scratch, and what the store has. Both are in canonical order.
    pub(crate) fn compare(&mut self, url: &str, fresh: &[Mention], stored: &[Mention]) {
        self.pages += 1;
        self.mentions += fresh.len() as u64;
        if let Err(difference) = compare(fresh, stored) {
            self.different += 1;
            if self.first.len() < FIRST {
                self.first.push((url.to_owned(), difference));
            }
        }
    }

    /// Takes in what was found on other pages.
    pub(crate) fn add(&mut self, other: Self) {
        self.pages += other.pages;
        self.mentions += other.mentions;
        self.failed += other.failed;
        self.older += other.older;
        self.different += other.different;
        self.first.extend(other.first);
        self.first.truncate(FIRST);
    }

    #[must_use]
    pub(crate) fn is_clean(&self) -> bool {
        self.different == 0
    }

    /// The share of wrong pages that a clean result leaves possible at 95 %; 1 if it says nothing.
    #[must_use]
    pub(crate) fn bound(&self) -> f64 {
        rule_of_three(self.pages)
    }
}

/// Upper end of a 95 % interval for a rate when `n` trials had no failure.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a bound printed with a few digits")]
pub(crate) fn rule_of_three(n: u64) -> f64 {
    if n == 0 { 1.0 } else { (3.0 / n as f64).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::reach::Declared;
    use crate::extract::regex::Patterns;

    #[test]
    fn finds_what_is_wrong_and_says_how_sure_it_is() {
        let patterns = Patterns::new("pattern", &["a+"], Declared::default()).unwrap();
        let mut verified = Verified::default();
        for _ in 0..299 {
            verified.compare("u", &patterns.extract("xaay"), &[Mention::plain(1, 3, 0)]);
        }
        assert!(verified.is_clean());
        assert!((verified.bound() - 3.0 / 299.0).abs() < 1e-12);
        verified.compare("bad", &patterns.extract("xaaya"), &[Mention::plain(1, 2, 0)]);
        assert_eq!(verified.different, 1);
        let (url, difference) = &verified.first[0];
        assert_eq!((url.as_str(), difference.total), ("bad", 3));
        assert_eq!(difference.to_string().matches("missing").count(), 2);
        assert!((rule_of_three(0) - 1.0).abs() < f64::EPSILON);
    }
}
