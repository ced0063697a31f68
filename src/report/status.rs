//! What is done, what each snapshot brought, and what waits for the next run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::run::{open_windows, passed_over, stage_names};
use super::terminal::{duration, one_line, size, table};
use crate::model::{SnapshotId, Timestamp};
use crate::run::Unfinished;
use crate::run::problems::Seen;

/// A pipeline's store and archive.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// The pipeline file.
    pub pipeline: PathBuf,
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
    /// Snapshots of the archive that are passed over, for they were dropped.
    pub dropped: Vec<SnapshotId>,
    pub last_run: Option<LastRun>,
    pub under_way: Option<UnfinishedRun>,
    /// Extractors, and how many pages of the newest snapshot have what an earlier definition of them found.
    pub older: Vec<(String, u64)>,
}

/// The last run that did something or failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LastRun {
    pub start: String,
    pub end: String,
    pub exit_code: u8,
    pub error: Option<String>,
}

/// A run that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct UnfinishedRun {
    pub start: String,
    pub process: u32,
    /// It is under way; else it was interrupted.
    pub is_alive: bool,
}

impl UnfinishedRun {
    fn line(&self) -> String {
        let start = to_the_second(&self.start);
        match self.is_alive {
            true => format!("a run is under way since {start} (process {})", self.process),
            false => format!("the run that began at {start} was interrupted; the next one goes on where it stopped"),
        }
    }
}

/// Times to the second are enough for people.
fn to_the_second(time: &str) -> String {
    format!("{}Z", time.split('.').next().unwrap_or_default().trim_end_matches('Z'))
}

impl LastRun {
    fn line(&self) -> String {
        let how = match self.exit_code {
            0 => "done".to_owned(),
            3 => "done, with a problem".to_owned(),
            code => format!("failed (exit {code})"),
        };
        let end = to_the_second(&self.end);
        match &self.error {
            Some(error) => {
                let error = error.split('\n').map(|line| line.strip_prefix("hint: ").unwrap_or(line));
                format!("last run {end}: {how}: {}", one_line(&error.collect::<Vec<_>>().join("; ")))
            }
            None => format!("last run {end}: {how}"),
        }
    }
}

/// An ingested snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotStatus {
    pub snapshot: SnapshotId,
    pub time: Timestamp,
    pub rejects: u64,
    pub base: bool,
    /// What asking extractors cost, if any has a price.
    pub price: Option<f64>,
    /// It has rows of all pages, not only of those that it touched.
    pub whole: bool,
    /// Whether its folder is still in the archive.
    pub folder: bool,
    /// The crawl did not come to its end.
    pub incomplete: bool,
    /// Pages and extractors that failed.
    pub failed_extractions: u64,
    /// Pages and extractors that wait for a budget.
    pub deferred_extractions: u64,
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
    /// Pages of URLs that never had one.
    pub added: u64,
    /// Pages of URLs that had one, but not in the snapshot before; they are modified or unchanged as well.
    pub returned: u64,
    pub modified: u64,
    pub unchanged: u64,
    pub carried: u64,
    /// Pages of the snapshot before that are no longer there.
    pub deleted: u64,
    pub moved: u64,
    /// Captures that are no pages though the server says so.
    pub suspects: u64,
    pub text_bytes: u64,
}

impl Status {
    #[must_use]
    pub(crate) fn json(&self) -> Value {
        let snapshot = |snapshot: &SnapshotStatus| {
            let unfinished = self.unfinished.iter().find(|unfinished| unfinished.snapshot == snapshot.snapshot);
            json!({
                "incomplete": snapshot.incomplete, "suspects": snapshot.counts.suspects,
                "deleted": snapshot.counts.deleted, "failed": snapshot.failed_extractions,
                "deferred": snapshot.deferred_extractions,
                "unfinished": unfinished.map(|unfinished| unfinished.stages.as_slice()).unwrap_or_default(),
                "snapshot": snapshot.snapshot, "time": snapshot.time.to_string(), "rejects": snapshot.rejects,
                "base": snapshot.base, "whole": snapshot.whole, "folder": snapshot.folder, "price": snapshot.price,
                "counts": snapshot.counts,
            })
        };
        let mut status = json!({
            "store": self.store, "snapshots": self.snapshots.iter().map(snapshot).collect::<Vec<_>>(),
            "unfinished": self.unfinished, "waiting": self.waiting, "problems": self.problems,
            "open_windows": self.open_windows,
            "last_run": self.last_run,
        });
        if let Some(run) = &self.under_way {
            status["under_way"] = json!(run);
        }
        if !self.dropped.is_empty() {
            status["dropped"] = json!(self.dropped);
        }
        if !self.older.is_empty() {
            status["older"] = json!(self.older.iter().cloned().collect::<BTreeMap<_, _>>());
        }
        status
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
                "returned",
                "modified",
                "unchanged",
                "carried",
                "deleted",
                "moved",
                "suspects",
                "rejects",
                "failed",
                "deferred",
                "text",
            ];
            text.push_str(&table(&header, &self.snapshots.iter().map(SnapshotStatus::row).collect::<Vec<_>>()));
        }
        if let Some(last) = &self.last_run {
            let _ = writeln!(text, "{}", last.line());
        }
        if let Some(run) = &self.under_way {
            let _ = writeln!(text, "{}", run.line());
        }
        let prices: Vec<(&SnapshotId, f64)> =
            self.snapshots.iter().filter_map(|snapshot| Some((&snapshot.snapshot, snapshot.price?))).collect();
        if let Some((newest, price)) = prices.last() {
            let all: f64 = prices.iter().map(|(_, price)| price).sum();
            let _ = writeln!(text, "extraction cost {price:.4} in {newest}, {all:.4} in all");
        }
        for (extractor, pages) in &self.older {
            let _ =
                writeln!(text, "{extractor}: {pages} pages have what an earlier definition found, until they change");
        }
        for unfinished in &self.unfinished {
            let _ = writeln!(text, "{}: {} not done", unfinished.snapshot, stage_names(&unfinished.stages));
        }
        for seen in &self.problems {
            let accepted = if seen.accepted { " (accepted)" } else { "" };
            let _ = writeln!(text, "{}: {}{accepted}", seen.snapshot, seen.problem);
        }
        text.push_str(&open_windows(&self.open_windows));
        text.push_str(&passed_over(&self.dropped, &self.pipeline));
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

impl Status {
    /// What is to be said of a pipeline that should be in order, on one line; `None` if it is. `now` is the time of day;
    /// the newest snapshot may be `max_age` old.
    #[must_use]
    pub(crate) fn complaint(&self, now: Timestamp, max_age: Option<Duration>) -> Option<String> {
        if let Some(waiting) = self.waiting.last() {
            return Some(format!("snapshot {waiting} is not done"));
        }
        let Some(newest) = self.snapshots.last() else { return Some("there is no snapshot".to_owned()) };
        let id = &newest.snapshot;
        if let Some(unfinished) = self.unfinished.iter().find(|unfinished| unfinished.snapshot == *id) {
            return Some(format!("snapshot {id}: {} not done", stage_names(&unfinished.stages)));
        }
        let mut open = self.problems.iter().filter(|seen| seen.snapshot == *id && !seen.accepted);
        if let Some(first) = open.next() {
            let more = open.count();
            let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
            return Some(format!("snapshot {id}: {}{more}", first.problem));
        }
        let age = now.seconds() - newest.time.seconds();
        let too_old = max_age.filter(|max_age| age > max_age.as_secs_f64())?;
        let (age, allowed) = (duration(Some(age)), duration(Some(too_old.as_secs_f64())));
        Some(format!("snapshot {id} is the newest, and {age} old; {allowed} are allowed"))
    }
}

impl SnapshotStatus {
    fn row(&self) -> Vec<String> {
        let c = &self.counts;
        let known = [c.captures, c.pages, c.added, c.returned, c.modified, c.unchanged, c.carried];
        let pages = known.into_iter().chain([c.deleted, c.moved, c.suspects]);
        let numbers = pages.chain([self.rejects, self.failed_extractions, self.deferred_extractions]);
        let mut row = vec![self.snapshot.to_string()];
        row.extend(numbers.map(|number| number.to_string()));
        row.push(size(c.text_bytes));
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Problem, StageId};

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
            price: None,
            whole: true,
            folder: true,
            incomplete: false,
            failed_extractions: 0,
            deferred_extractions: 0,
            counts,
        }
    }

    #[test]
    fn what_is_not_in_order_is_said_in_one_line() {
        let hour = Duration::from_secs(3_600);
        let mut status = Status { snapshots: vec![ingested("n1")], ..Status::default() };
        let complaint = |status: &Status, now| status.complaint(Timestamp(now), Some(hour));
        assert_eq!(Status::default().complaint(Timestamp(0), None).unwrap(), "there is no snapshot");
        assert_eq!(complaint(&status, 3_600 * Timestamp::SECOND), None);
        let old = complaint(&status, 7_300 * Timestamp::SECOND).unwrap();
        assert_eq!(old, "snapshot n1 is the newest, and 2.0 h old; 60.0 min are allowed");
        assert_eq!(status.complaint(Timestamp(i64::MAX), None), None, "any age, if none is said");
        let problem = Problem::Rejects { rejects: 2, captures: 3 };
        let seen = Seen { snapshot: id("n1"), stage: StageId::Ingest, problem, accepted: false };
        status.problems = vec![seen.clone(), seen];
        let said = "snapshot n1: 2 rejects beside 3 captures (and 1 more)";
        assert_eq!(complaint(&status, 0).unwrap(), said);
        status.problems.iter_mut().for_each(|seen| seen.accepted = true);
        assert_eq!(complaint(&status, 0), None);
        status.unfinished = vec![Unfinished { snapshot: id("n1"), stages: vec![StageId::Extract] }];
        assert_eq!(complaint(&status, 0).unwrap(), "snapshot n1: extract not done");
        status.waiting = vec![id("n2")];
        assert_eq!(complaint(&status, 0).unwrap(), "snapshot n2 is not done");
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
