//! What lies between two snapshots.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::model::closed_set::ClosedSet;
use crate::model::{Change, Fate, SnapshotId};
use crate::tables::delta::{LinkDelta, PageDelta, RegionDelta, TupleDelta, TupleLinkDelta};

/// What lies between two snapshots. Rows by shard, then URL.
#[derive(Default)]
pub(crate) struct Difference {
    pub pages: Vec<PageDelta>,
    pub links: Vec<LinkDelta>,
    pub regions: Vec<RegionDelta>,
    pub tuples: Vec<TupleDelta>,
    pub tuple_links: Vec<TupleLinkDelta>,
    /// Of the added pages those that were there before, but not in the snapshot before.
    pub returned: HashSet<String>,
}

/// How many of each kind of change, by what changed.
type Counts = BTreeMap<&'static str, BTreeMap<&'static str, usize>>;

impl Difference {
    fn counts(&self) -> Counts {
        fn count<S: ClosedSet>(changes: impl Iterator<Item = S>) -> BTreeMap<&'static str, usize> {
            let mut counts = BTreeMap::new();
            changes.for_each(|change| *counts.entry(change.name()).or_default() += 1);
            counts
        }
        // A tuple has a row for each of its pages.
        let tuples = self.tuples.chunk_by(|a, b| (&a.query, a.delta, a.tuple) == (&b.query, b.delta, b.tuple));
        BTreeMap::from([
            ("pages", count(self.pages.iter().map(|row| row.change))),
            ("links", count(self.links.iter().map(|row| row.change))),
            ("regions", count(self.regions.iter().map(|row| row.change))),
            ("tuples", count(tuples.map(|rows| rows[0].delta))),
        ])
    }

    /// What became of a page, in the words of `status`: one that is back is not added.
    fn fate(&self, row: &PageDelta) -> &'static str {
        if self.has_returned(row) { "returned" } else { row.change.name() }
    }

    fn has_returned(&self, row: &PageDelta) -> bool {
        row.change == Fate::Changed(Change::Added) && self.returned.contains(&*row.url)
    }

    /// `out`: where the tables were written.
    #[must_use]
    pub(crate) fn json(&self, from: &SnapshotId, to: &SnapshotId, out: Option<&Path>) -> Value {
        let page = |row: &PageDelta| {
            let mut page = page_json(row);
            page["returned"] = self.has_returned(row).into();
            page
        };
        let pages: Vec<Value> = self.pages.iter().map(page).collect();
        json!({"from": from, "to": to, "counts": self.counts(), "out": out, "pages": pages})
    }

    /// At most so many pages are listed.
    #[must_use]
    pub(crate) fn text(&self, from: &SnapshotId, to: &SnapshotId, out: Option<&Path>, most: usize) -> String {
        let mut text = String::new();
        let mut pages: Vec<&PageDelta> = self.pages.iter().collect();
        pages.sort_by_key(|row| &row.url);
        if !pages.is_empty() {
            text.push_str("change     new bytes     moved  page\n");
        }
        for row in pages.iter().take(most) {
            page_line(&mut text, row, self.fate(row));
        }
        if pages.len() > most {
            let _ = writeln!(text, "and {} more pages; -v shows all", pages.len() - most);
        }
        let _ = write!(text, "{from} to {to}:");
        let mut counts = self.counts();
        let mut pages = BTreeMap::new();
        self.pages.iter().for_each(|row| *pages.entry(self.fate(row)).or_default() += 1);
        counts.insert("pages", pages);
        for (i, (what, counts)) in counts.iter().filter(|(_, counts)| !counts.is_empty()).enumerate() {
            let counts = counts.iter().map(|(change, n)| format!("{n} {change}")).collect::<Vec<_>>().join(", ");
            let _ = write!(text, "{} {what} {counts}", if i > 0 { ";" } else { "" });
        }
        if counts.values().all(BTreeMap::is_empty) {
            text.push_str(" no difference");
        }
        text.push('\n');
        if let Some(out) = out {
            let _ = writeln!(text, "tables in {}", out.display());
        }
        text
    }
}

fn page_json(row: &PageDelta) -> Value {
    json!({
        "url": *row.url, "change": row.change, "reason": row.reason, "old_bytes": row.old_bytes,
        "new_bytes": row.new_bytes, "text_changed": row.text_changed, "title_changed": row.title_changed,
        "links_changed": row.links_changed, "new_text_bytes": row.new_text_bytes, "moved_bytes": row.moved_bytes,
        "moved_to": row.moved_to, "moved_from": row.moved_from, "unlinked": row.unlinked, "structure_changed": row.structure_changed,
    })
}

fn page_line(text: &mut String, row: &PageDelta, fate: &str) {
    let mut notes: Vec<String> = row.reason.iter().map(ToString::to_string).collect();
    notes.extend(row.moved_to.as_ref().map(|to| format!("moved to {to}")));
    notes.extend(row.moved_from.as_ref().map(|from| format!("moved from {from}")));
    notes.extend(row.unlinked.then(|| "no longer linked".to_owned()));
    notes.extend(row.structure_changed.then(|| "other elements".to_owned()));
    if row.change == Fate::Changed(Change::Modified) && !row.text_changed {
        notes.push("only title or links".to_owned());
    }
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    let number = |n: Option<i64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let (new, moved) = (number(row.new_text_bytes), number(row.moved_bytes));
    let _ = writeln!(text, "{:<9}  {new:>9}  {moved:>8}  {}{notes}", fate, row.url);
}
