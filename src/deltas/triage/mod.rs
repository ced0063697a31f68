//! What of a night a person should read first.
//!
//! A page that changed is cut into *edits*: stretches of words that came, went or became others. Edits that are alike are
//! one row, however many pages have them: a new footer on 400 pages is read once. Edits are alike if they are the same
//! but for white space; where three pages or more have edits that differ only in their numbers (visitors, dates, prices),
//! these are alike too. Pages that came are alike if their texts are; pages that went, or moved, if they lay in one folder.
//!
//! A row counts by what it brings, and by how few pages have it:
//! ```text
//! score = (news + 2 log2(1 + mentions)) * (1 + log2(1 + links in) / 8) * rarity
//! news  = log2(1 + new words + gone words / 2), half of it if only numbers changed, a quarter if the text only came back
//! rarity = log2(1 + n / alike) / log2(1 + n), for n pages that changed; 1 of pages that came, went or moved
//! ```
//! Mentions and links in are the most that one of its pages has. All logarithms, so that no side drowns the others.

mod edits;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::words::words;
use crate::model::{Digest, DigestBuilder};
pub(crate) use edits::{Edit, edits};

use crate::model::closed_set::closed_set;

closed_set! {
    /// What became of a page, as a person is told.
    pub(crate) enum TriageChange: "kind of change" {
        Added = "added",
        Deleted = "deleted",
        Modified = "modified",
        Moved = "moved",
    }
}

/// From so many pages on, edits that differ only in their numbers are alike.
const ALIKE_BY_NUMBERS: usize = 3;

/// An edit of a page, or all of a page that came, went or moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub url: Arc<str>,
    pub change: TriageChange,
    /// What stood there; empty if nothing did.
    pub before: String,
    /// What stands there; empty if nothing does.
    pub after: String,
    /// What makes it alike others, if not its words: the folder of a page that went.
    pub together: Option<String>,
    /// Mentions that came or went with it.
    pub mentions: u64,
    /// Pages that link to the page.
    pub links_in: u64,
    /// The text stood on this page before.
    pub returned: bool,
}

/// Edits that are alike.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TriageRow {
    /// The edit of the page that is linked most; of equal ones, the first by URL.
    pub shown: Candidate,
    /// Pages that have it, by URL.
    pub urls: Vec<Arc<str>>,
    pub mentions: u64,
    pub links_in: u64,
    pub score: f64,
}

impl TriageRow {
    #[must_use]
    pub(crate) fn alike(&self) -> usize {
        self.urls.len()
    }
}

/// All rows, those first that should be read first. The order of the candidates does not matter.
#[must_use]
pub(crate) fn triage(candidates: Vec<Candidate>) -> Vec<TriageRow> {
    let pages = candidates.iter().map(|candidate| &candidate.url).collect::<HashSet<_>>().len();
    let mut by_shape: HashMap<Digest, HashSet<&str>> = HashMap::new();
    let keys: Vec<(Digest, Digest)> =
        candidates.iter().map(|candidate| (key(candidate, false), key(candidate, true))).collect();
    for (candidate, (_, shape)) in candidates.iter().zip(&keys) {
        by_shape.entry(*shape).or_default().insert(&candidate.url);
    }
    let common: HashSet<Digest> =
        by_shape.iter().filter(|(_, urls)| urls.len() >= ALIKE_BY_NUMBERS).map(|(shape, _)| *shape).collect();
    drop(by_shape);
    let mut groups: BTreeMap<Digest, Vec<Candidate>> = BTreeMap::new();
    for (candidate, (exact, shape)) in candidates.into_iter().zip(keys) {
        groups.entry(if common.contains(&shape) { shape } else { exact }).or_default().push(candidate);
    }
    let mut rows: Vec<TriageRow> = groups.into_values().filter_map(|group| row(group, pages)).collect();
    rows.sort_by(order);
    rows
}

fn order(a: &TriageRow, b: &TriageRow) -> Ordering {
    let words = |row: &TriageRow| (row.shown.url.clone(), row.shown.before.clone(), row.shown.after.clone());
    b.score.total_cmp(&a.score).then_with(|| words(a).cmp(&words(b)))
}

/// Identifies what makes candidates alike; with `numbers_alike` whatever their numbers.
fn key(candidate: &Candidate, numbers_alike: bool) -> Digest {
    let mut key = DigestBuilder::new();
    key.field(candidate.change.as_str().as_bytes());
    match &candidate.together {
        Some(together) => key.field(b"together").field(together.as_bytes()),
        None => {
            // Whole pages are alike only if they are the same.
            let fold = numbers_alike && candidate.change == TriageChange::Modified;
            key.field(shape(&candidate.before, fold).as_bytes()).field(shape(&candidate.after, fold).as_bytes())
        }
    };
    key.finish()
}

/// A text with its white space folded, and its numbers if they do not matter.
fn shape(text: &str, fold_numbers: bool) -> String {
    let mut shape = String::with_capacity(text.len());
    for c in text.trim().chars() {
        let (c, folds) = match c {
            c if c.is_whitespace() => (' ', true),
            c if fold_numbers && c.is_numeric() => ('0', true),
            c => (c, false),
        };
        if !(folds && shape.ends_with(c)) {
            shape.push(c);
        }
    }
    shape
}

/// Candidates that are alike, as one row.
fn row(group: Vec<Candidate>, pages: usize) -> Option<TriageRow> {
    let urls: BTreeSet<Arc<str>> = group.iter().map(|candidate| Arc::clone(&candidate.url)).collect();
    let mentions = group.iter().map(|candidate| candidate.mentions).max().unwrap_or(0);
    let links_in = group.iter().map(|candidate| candidate.links_in).max().unwrap_or(0);
    let returned = group.iter().all(|candidate| candidate.returned);
    let first = |a: &Candidate, b: &Candidate| {
        let words = |c: &Candidate| (c.url.clone(), c.before.clone(), c.after.clone());
        let rest = |c: &Candidate| (std::cmp::Reverse(c.mentions), c.returned);
        b.links_in.cmp(&a.links_in).then_with(|| words(a).cmp(&words(b))).then_with(|| rest(a).cmp(&rest(b)))
    };
    let shown = group.into_iter().min_by(first)?;
    let rarity = match shown.change {
        TriageChange::Modified => rarity(urls.len(), pages),
        TriageChange::Added | TriageChange::Deleted | TriageChange::Moved => 1.0,
    };
    let weight = news(&shown, returned) + 2.0 * log(mentions as f64);
    let score = weight * (1.0 + log(links_in as f64) / 8.0) * rarity;
    Some(TriageRow { shown, urls: urls.into_iter().collect(), mentions, links_in, score })
}

fn log(n: f64) -> f64 {
    (1.0 + n).log2()
}

/// How much there is to read.
fn news(shown: &Candidate, returned: bool) -> f64 {
    // A page that moved has nothing new on it.
    if shown.change == TriageChange::Moved {
        return 0.5;
    }
    let count = |text: &str| words(text, 0..text.len()).len() as f64;
    let news = log(count(&shown.after) + count(&shown.before) / 2.0);
    let has_letters = |text: &str| text.chars().any(char::is_alphabetic);
    let only_numbers =
        shown.change == TriageChange::Modified && !words_differ(&shown.before, &shown.after, has_letters);
    news * if only_numbers { 0.5 } else { 1.0 } * if returned { 0.25 } else { 1.0 }
}

/// Whether the two sides differ in words that are `such`.
fn words_differ(before: &str, after: &str, such: impl Fn(&str) -> bool) -> bool {
    let of = |text: &str| -> Vec<String> {
        let words = words(text, 0..text.len()).into_iter().map(|word| text[word].to_owned());
        words.filter(|word| such(word)).collect()
    };
    of(before) != of(after)
}

/// 1 of what one page has alone, towards 0 of what all that changed have.
fn rarity(alike: usize, pages: usize) -> f64 {
    let pages = pages.max(1) as f64;
    log(pages / alike.max(1) as f64) / log(pages)
}
