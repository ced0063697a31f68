//! The `ignore` rules of a pipeline: parts of a text that must not count as change.

use std::borrow::Cow;
use std::ops::Range;

use regex::Regex;

/// Stands for whatever a rule matched: that something is there counts, not what it is. An object replacement
/// character, which pages do not contain.
pub(crate) const MARK: &str = "\u{FFFC}";

#[derive(Clone, Debug, Default)]
pub struct Mask {
    rules: Vec<Regex>,
}

impl Mask {
    #[must_use]
    pub fn new(rules: &[Regex]) -> Self {
        Self { rules: rules.to_vec() }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The text with every match of every rule replaced by one [`MARK`]. Each rule sees the original text; matches
    /// that overlap or touch the same bytes are one. An empty match masks nothing.
    #[must_use]
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let ranges = self.ranges(text);
        if ranges.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(masked(text, 0..text.len(), &ranges))
    }

    /// What is masked in a text, in order.
    #[must_use]
    pub(crate) fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        let matches = self.rules.iter().flat_map(|rule| rule.find_iter(text)).filter(|found| !found.is_empty());
        let mut matches: Vec<Range<usize>> = matches.map(|found| found.range()).collect();
        matches.sort_unstable_by_key(|found| (found.start, found.end));
        let mut ranges: Vec<Range<usize>> = Vec::with_capacity(matches.len());
        for found in matches {
            match ranges.last_mut() {
                Some(last) if found.start < last.end => last.end = last.end.max(found.end),
                _ => ranges.push(found),
            }
        }
        ranges
    }
}

/// A part of a text with what is masked in it replaced; where it begins or ends inside of that, all of it is.
pub(crate) fn masked(text: &str, part: Range<usize>, ranges: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(part.len());
    let first = ranges.partition_point(|range| range.end <= part.start);
    let mut kept_to = part.start;
    for range in ranges[first..].iter().take_while(|range| range.start < part.end) {
        out.push_str(&text[kept_to..range.start.max(kept_to)]);
        out.push_str(MARK);
        kept_to = range.end;
    }
    out.push_str(&text[kept_to.min(part.end)..part.end]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(rules: &[&str]) -> Mask {
        Mask::new(&rules.iter().map(|rule| Regex::new(rule).unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn the_place_counts_and_not_the_value() {
        let clock = mask(&[r"\d\d:\d\d", "visitor [0-9]+"]);
        assert_eq!(clock.apply("at 12:30, visitor 99"), "at \u{FFFC}, \u{FFFC}");
        assert_eq!(clock.apply("at 12:30, visitor 99"), clock.apply("at 07:05, visitor 100"));
        assert_ne!(clock.apply("at 12:30"), clock.apply("at "));
    }

    #[test]
    fn rules_see_the_original_text() {
        let both = mask(&["abc", "bcd", "x*"]);
        assert_eq!(both.apply("abcd abc xx"), "\u{FFFC} \u{FFFC} \u{FFFC}");
        assert_eq!(both.apply("abcd"), mask(&["bcd", "abc"]).apply("abcd"));
    }

    #[test]
    fn nothing_to_mask_is_no_copy() {
        for mask in [Mask::default(), mask(&["nowhere"])] {
            assert!(matches!(mask.apply("text"), Cow::Borrowed("text")));
        }
        assert!(Mask::default().is_empty());
    }
}
