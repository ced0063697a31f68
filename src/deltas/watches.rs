//! Watches: what of the changes between two snapshots somebody wants to be told.
//!
//! A watch has a *scope* (pages by URL, the pages of a query, or all) and a *condition*. Conditions on text look at
//! news only: text that did not stand on the page before, did not move, and was never seen on that URL. A pattern is
//! searched in the whole text, so that what stands around a match decides as usual, and a match counts if it takes in
//! news.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex::Regex;

use crate::model::{Change, Digest, MentionChange, Span};

/// A watch of the pipeline file.
#[derive(Debug)]
pub struct Watch {
    pub name: Arc<str>,
    pub scope: Scope,
    pub when: When,
    pub notify: Option<Notify>,
    /// Identifies scope and condition.
    pub digest: Digest,
}

/// Which pages matter; both if both are given, all pages if neither.
#[derive(Debug, Default)]
pub struct Scope {
    pub pages: Option<Pages>,
    /// Pages of this query's web table.
    pub query: Option<String>,
}

/// Pages by URL.
#[derive(Debug)]
pub enum Pages {
    /// Case is ignored; `*` goes over slashes.
    Globs(GlobSet),
    Matching(Regex),
}

/// What makes a watch fire.
#[derive(Debug)]
pub enum When {
    /// A page, or a tuple of the query, that changed in one of these ways.
    Change(Vec<Change>),
    /// News that the pattern matches.
    NewText(Regex),
    /// At least this share of a page is news.
    Share(f64),
    /// So many pages changed since it last fired.
    Changes(u64),
    /// Mentions of an extractor that came or went.
    Mentions(String, Vec<MentionChange>),
}

/// A program that is told: it gets each alert as JSON on its standard input.
#[derive(Clone, Debug)]
pub struct Notify {
    pub command: Vec<String>,
    pub timeout: Duration,
}

impl Pages {
    /// The error names the glob that is wrong, by index, and what is wrong with it.
    pub fn globs<'a>(globs: impl IntoIterator<Item = &'a str>) -> Result<Self, (usize, String)> {
        let mut set = GlobSetBuilder::new();
        for (i, glob) in globs.into_iter().enumerate() {
            let glob = GlobBuilder::new(glob).case_insensitive(true).literal_separator(false).build();
            set.add(glob.map_err(|error| (i, error.kind().to_string()))?);
        }
        set.build().map(Self::Globs).map_err(|error| (0, error.kind().to_string()))
    }

    #[must_use]
    pub fn has(&self, url: &str) -> bool {
        match self {
            Self::Globs(globs) => globs.is_match(url),
            Self::Matching(regex) => regex.is_match(url),
        }
    }
}

/// A text and where it stands.
pub(crate) type Standing<'t> = (usize, &'t str);

/// Matches that cover a part of `news`, each text once, in page order. The spans of `news` ascend and do not overlap.
#[must_use]
pub(crate) fn matches_in_news<'t>(regex: &Regex, text: &'t str, news: &[Span]) -> Vec<Standing<'t>> {
    let mut found: Vec<Standing<'t>> = Vec::new();
    if news.is_empty() {
        return found;
    }
    for matched in regex.find_iter(text) {
        let next = news.partition_point(|span| span.end as usize <= matched.start());
        let is_news = news.get(next).is_some_and(|span| (span.start as usize) < matched.end());
        if is_news && !matched.is_empty() && !found.iter().any(|(_, text)| *text == matched.as_str()) {
            found.push((matched.start(), matched.as_str()));
        }
    }
    found
}

/// Matches in a text before that the text now has nowhere, in page order.
#[must_use]
pub(crate) fn matches_that_went<'t>(regex: &Regex, before: &'t str, now: &str) -> Vec<Standing<'t>> {
    let stay: HashSet<&str> = regex.find_iter(now).map(|found| found.as_str()).collect();
    let went = regex.find_iter(before).filter(|found| !found.is_empty() && !stay.contains(found.as_str()));
    went.map(|found| (found.start(), found.as_str())).collect()
}

/// What each text that came most likely replaced: of those that went, the nearest that no earlier one took.
#[must_use]
pub(crate) fn replaced<'t>(came: impl IntoIterator<Item = usize>, went: &[Standing<'t>]) -> Vec<Option<&'t str>> {
    let mut left: BTreeMap<(usize, usize), &str> =
        went.iter().enumerate().map(|(i, (place, text))| ((*place, i), *text)).collect();
    let nearest = |place: usize| {
        let before = left.range(..=(place, usize::MAX)).next_back().map(|(key, _)| *key);
        let after = left.range((place, usize::MAX)..).next().map(|(key, _)| *key);
        let key = before.into_iter().chain(after).min_by_key(|(there, _)| there.abs_diff(place))?;
        left.remove(&key)
    };
    came.into_iter().map(nearest).collect()
}

/// Counts changes until there are enough: the new count, and the number to report if the watch fires.
#[must_use]
pub(crate) fn count(before: u64, more: u64, enough: u64) -> (u64, Option<u64>) {
    let count = before + more;
    if more > 0 && count >= enough { (0, Some(count)) } else { (count, None) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(found: Vec<Standing<'_>>) -> Vec<&str> {
        found.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn what_came_is_paired_with_the_nearest_that_went() {
        let regex = Regex::new("Room [0-9]+").unwrap();
        let went = matches_that_went(&regex, "Room 1, Room 2 and Room 3", "Room 2, Room 9");
        assert_eq!(went, [(0, "Room 1"), (19, "Room 3")]);
        assert_eq!(replaced([8], &went), [Some("Room 1")]);
        assert_eq!(replaced([15, 2, 3], &went), [Some("Room 3"), Some("Room 1"), None]);
        assert_eq!(replaced([0, 0], &[(0, "a"), (0, "b")]), [Some("b"), Some("a")]);
        assert_eq!(replaced([], &went), [None; 0]);
    }

    #[test]
    fn only_news_count() {
        let regex = Regex::new(r"\bcat\w*").unwrap();
        let text = "cat cats scatter catalogue cats";
        let news = |spans: &[(u32, u32)]| {
            let spans: Vec<Span> = spans.iter().map(|&(a, b)| Span::new(a, b)).collect();
            texts(matches_in_news(&regex, text, &spans))
        };
        assert_eq!(news(&[]), [""; 0]);
        assert_eq!(news(&[(0, 1)]), ["cat"]);
        assert_eq!(news(&[(3, 4), (8, 17)]), [""; 0]);
        assert_eq!(news(&[(0, 31)]), ["cat", "cats", "catalogue"]);
        assert_eq!(news(&[(7, 10), (26, 31)]), ["cats"]);
    }

    #[test]
    fn globs_go_over_slashes_and_ignore_case() {
        let pages = Pages::globs(["http://a.test/*.html", "*/news/*"]).unwrap();
        assert!(pages.has("http://a.test/x/y.HTML") && pages.has("https://b/news/1") && !pages.has("http://a.test/x"));
        assert_eq!(Pages::globs(["a", "x["]).unwrap_err().0, 1);
    }

    #[test]
    fn a_threshold_starts_again_after_it_fired() {
        let mut count_now = 0;
        let fired: Vec<_> = [2, 0, 3, 0, 5, 4]
            .iter()
            .map(|&more| {
                let (next, fired) = count(count_now, more, 5);
                count_now = next;
                fired
            })
            .collect();
        assert_eq!(fired, [None, None, Some(5), None, Some(5), None]);
        assert_eq!(count_now, 4);
    }

    proptest! {
        #[test]
        fn as_by_trying_every_byte(text in "[ab ]{0,30}", cuts in prop::collection::btree_set(0u32..30, 0..8)) {
            let regex = Regex::new("a+b?").unwrap();
            let len = u32::try_from(text.len()).unwrap();
            let cuts: Vec<u32> = cuts.into_iter().filter(|cut| *cut <= len).collect();
            let news: Vec<Span> = cuts.chunks_exact(2).map(|pair| Span::new(pair[0], pair[1])).collect();
            let mut slow: Vec<&str> = Vec::new();
            for found in regex.find_iter(&text) {
                let is_new = |at: usize| news.iter().any(|span| span.range().contains(&at));
                if found.range().any(is_new) && !slow.contains(&found.as_str()) {
                    slow.push(found.as_str());
                }
            }
            prop_assert_eq!(texts(matches_in_news(&regex, &text, &news)), slow);
        }
    }
}
