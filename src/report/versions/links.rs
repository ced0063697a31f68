//! What became of the links of a page.

use std::fmt::Write as _;

use crate::deltas::links::{LinkChange, changes};
use crate::report::terminal::{count, one_line};

/// Links that are listed; the table `link_deltas` has all.
const LISTED: usize = 10;

/// The links of a page against those of its old version.
#[derive(Debug, Default)]
pub(crate) struct LinksBetween {
    new: Vec<Link>,
    deleted: Vec<Link>,
    /// Each with the label it had.
    relabelled: Vec<(Link, String)>,
    /// They are the same, but in another order.
    is_reordered: bool,
}

/// Target and label.
type Link = (String, String);

impl LinksBetween {
    pub(crate) fn new(old: &[Link], new: &[Link]) -> Self {
        fn borrowed(links: &[Link]) -> Vec<(&str, &str)> {
            links.iter().map(|(target, label)| (target.as_str(), label.as_str())).collect()
        }
        let mut between = Self::default();
        for change in changes(&borrowed(old), &borrowed(new)) {
            match change {
                LinkChange::Added(at) => between.new.push(new[at].clone()),
                LinkChange::Deleted(at) => between.deleted.push(old[at].clone()),
                LinkChange::Modified(was, is) => between.relabelled.push((new[is].clone(), old[was].1.clone())),
            }
        }
        let is_same = between.new.is_empty() && between.deleted.is_empty() && between.relabelled.is_empty();
        between.is_reordered = is_same && old != new;
        between
    }

    /// In a line; `None` if they are the same.
    pub(super) fn in_words(&self) -> Option<String> {
        if self.is_reordered {
            return Some("the same in another order".to_owned());
        }
        let mut words = Vec::new();
        for (links, what) in [(self.new.len(), "new"), (self.deleted.len(), "deleted")] {
            words.extend((links > 0).then(|| format!("{links} {what}")));
        }
        let labels = self.relabelled.len();
        words.extend((labels > 0).then(|| format!("{labels} with another label")));
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// A line for each of the first, and how many more there are.
    pub(super) fn list(&self, text: &mut String) {
        let named = |(target, label): &Link| format!("{} ({})", one_line(target), one_line(label));
        let deleted = self.deleted.iter().map(|link| format!("- {}", named(link)));
        let new = self.new.iter().map(|link| format!("+ {}", named(link)));
        let relabelled =
            self.relabelled.iter().map(|(link, was)| format!("~ {}, was ({})", named(link), one_line(was)));
        let mut lines = deleted.chain(new).chain(relabelled);
        for line in lines.by_ref().take(LISTED) {
            let _ = writeln!(text, "  {line}");
        }
        match lines.count() {
            0 => {}
            more => _ = writeln!(text, "  and {} more", count(more as u64, "link")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(target: &str, label: &str) -> Link {
        (target.to_owned(), label.to_owned())
    }

    #[test]
    fn links_are_told_as_they_changed() {
        let old = [link("http://a/", "a"), link("http://b/", "b"), link("http://c/", "c")];
        let new = [link("http://a/", "a"), link("http://b/", "B\u{1b}"), link("http://d/", "d")];
        let between = LinksBetween::new(&old, &new);
        assert_eq!(between.in_words().as_deref(), Some("1 new, 1 deleted, 1 with another label"));
        let mut text = String::new();
        between.list(&mut text);
        assert_eq!(text, "  - http://c/ (c)\n  + http://d/ (d)\n  ~ http://b/ (B?), was (b)\n");
        assert_eq!(LinksBetween::new(&old, &old).in_words(), None);
        let turned: Vec<Link> = old.iter().rev().cloned().collect();
        assert_eq!(LinksBetween::new(&old, &turned).in_words().as_deref(), Some("the same in another order"));
    }

    #[test]
    fn long_lists_are_cut() {
        let many: Vec<Link> = (0..LISTED + 1).map(|i| link(&format!("http://{i}/"), "x")).collect();
        let mut text = String::new();
        LinksBetween::new(&[], &many).list(&mut text);
        assert_eq!((text.lines().count(), text.lines().last()), (LISTED + 1, Some("  and 1 link more")));
    }
}
