//! What is done, what each snapshot brought, and what waits for the next run.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use super::run::{open_windows, stage_names};
use super::terminal::{size, table};
use crate::model::{SnapshotId, Timestamp};
use crate::run::Unfinished;
use crate::run::problems::Seen;

/// A pipeline's store and archive.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub store: PathBuf,
    /// The ingested snapshots, oldest first.
    pub snapshots: Vec<SnapshotStatus>,
    /// Those of them on which later stages are not done.
    pub unfinished: Vec<Unfinished>,
    /// Snapshots of the archive that are not ingested.
    pub waiting: Vec<SnapshotId>,
    /// What is wrong with snapshots, oldest first.
    pub problems: Vec<Seen>,
    /// Windows that are not over.
    pub open_windows: Vec<SnapshotId>,
}

/// An ingested snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotStatus {
    pub snapshot: SnapshotId,
    pub time: Timestamp,
    pub rejects: u64,
    pub base: bool,
    /// It has rows of all pages, not only of those that it touched.
    pub whole: bool,
    /// Whether its folder is still in the archive.
    pub folder: bool,
    pub counts: Counts,
}

/// A snapshot in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub captures: u64,
    /// Captures with a status other than 200 and 304 (unknown ones are good).
    pub failed: u64,
    pub revisits: u64,
    pub pages: u64,
    pub added: u64,
    pub modified: u64,
    pub unchanged: u64,
    pub carried: u64,
    /// Pages of the snapshot before that are no longer there.
    pub deleted: u64,
    pub moved: u64,
    pub text_bytes: u64,
}

impl Status {
    #[must_use]
    pub(crate) fn json(&self) -> Value {
        let snapshot = |snapshot: &SnapshotStatus| {
            json!({
                "snapshot": snapshot.snapshot, "time": snapshot.time.to_string(), "rejects": snapshot.rejects,
                "base": snapshot.base, "whole": snapshot.whole, "folder": snapshot.folder, "counts": snapshot.counts,
            })
        };
        json!({
            "store": self.store, "snapshots": self.snapshots.iter().map(snapshot).collect::<Vec<_>>(),
            "unfinished": self.unfinished, "waiting": self.waiting, "problems": self.problems,
            "open_windows": self.open_windows,
        })
    }

    #[must_use]
    pub(crate) fn text(&self) -> String {
        let mut text = format!("store {}\n", self.store.display());
        if !self.snapshots.is_empty() {
            let header = [
                "snapshot",
                "captures",
                "pages",
                "added",
                "modified",
                "unchanged",
                "carried",
                "deleted",
                "moved",
                "rejects",
                "text",
            ];
            text.push_str(&table(&header, &self.snapshots.iter().map(SnapshotStatus::row).collect::<Vec<_>>()));
        }
        for unfinished in &self.unfinished {
            let _ = writeln!(text, "{}: {} not done", unfinished.snapshot, stage_names(&unfinished.stages));
        }
        for seen in &self.problems {
            let accepted = if seen.accepted { " (accepted)" } else { "" };
            let _ = writeln!(text, "{}: {}{accepted}", seen.snapshot, seen.problem);
        }
        text.push_str(&open_windows(&self.open_windows));
        let _ = write!(text, "{} snapshots done", self.snapshots.len() - self.unfinished.len());
        if !self.unfinished.is_empty() {
            let _ = write!(text, ", {} unfinished", self.unfinished.len());
        }
        let waiting: Vec<&str> = self.waiting.iter().map(SnapshotId::as_str).collect();
        let _ = match waiting.as_slice() {
            [] => writeln!(text, ", none waiting"),
            _ => writeln!(text, ", waiting: {}", waiting.join(", ")),
        };
        text
    }
}

impl SnapshotStatus {
    fn row(&self) -> Vec<String> {
        let c = &self.counts;
        let numbers =
            [c.captures, c.pages, c.added, c.modified, c.unchanged, c.carried, c.deleted, c.moved, self.rejects];
        let mut row = vec![self.snapshot.to_string()];
        row.extend(numbers.map(|number| number.to_string()));
        row.push(size(c.text_bytes));
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::StageId;

    fn id(name: &str) -> SnapshotId {
        SnapshotId::new(name).unwrap()
    }

    fn ingested(name: &str) -> SnapshotStatus {
        let counts = Counts { captures: 4, pages: 3, added: 2, text_bytes: 1_500, ..Counts::default() };
        SnapshotStatus {
            snapshot: id(name),
            time: Timestamp(0),
            rejects: 1,
            base: true,
            whole: true,
            folder: true,
            counts,
        }
    }

    #[test]
    fn what_waits_is_said() {
        let mut status =
            Status { store: "out".into(), snapshots: vec![ingested("n1"), ingested("n2")], ..Status::default() };
        let line = |status: &Status| status.text().lines().last().unwrap().to_owned();
        assert_eq!(line(&status), "2 snapshots done, none waiting");
        status.waiting = vec![id("n3"), id("n4")];
        assert_eq!(line(&status), "2 snapshots done, waiting: n3, n4");
        status.unfinished = vec![Unfinished { snapshot: id("n2"), stages: vec![StageId::Extract, StageId::Delta] }];
        assert!(status.text().contains("\nn2: extract, delta not done\n"), "{}", status.text());
        assert_eq!(line(&status), "1 snapshots done, 1 unfinished, waiting: n3, n4");
        let json = status.json();
        assert_eq!(json["unfinished"], json!([{"snapshot": "n2", "stages": ["extract", "delta"]}]));
        assert_eq!(json["snapshots"][0]["counts"]["pages"], 3);
        assert_eq!(Status::default().text(), "store \n0 snapshots done, none waiting\n");
    }
}
