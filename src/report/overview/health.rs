//! Did it work: problems, rejects, suspects, failures, and every snapshot in numbers.

use std::fmt::Write as _;

use serde::Serialize;

use super::table::{Cell, Table, count};
use super::{moment, nothing};
use crate::model::SnapshotId;
use crate::report::html::escape;
use crate::report::status::LastRun;
use crate::tables::close::SnapshotRow;

#[derive(Default, Serialize)]
pub(crate) struct Health {
    /// In the store.
    pub snapshots: usize,
    /// The newest first.
    pub shown: Vec<NightLine>,
    /// Of the snapshots that are shown, the newest first.
    pub problems: Vec<ProblemLine>,
    pub unfinished: Vec<SnapshotId>,
    pub last_run: Option<LastRun>,
    /// Of the newest snapshot.
    pub rejects: Vec<Counted>,
    pub suspects: Vec<Counted>,
    pub failures: Vec<Failure>,
}

#[derive(Serialize)]
pub(crate) struct NightLine {
    pub snapshot: SnapshotId,
    #[serde(flatten)]
    pub row: SnapshotRow,
}

#[derive(Serialize)]
pub(crate) struct ProblemLine {
    pub snapshot: SnapshotId,
    pub kind: &'static str,
    pub message: String,
    pub remedy: String,
    pub accepted: bool,
}

/// How often something was the reason.
#[derive(Serialize)]
pub(crate) struct Counted {
    pub reason: String,
    pub count: u64,
}

#[derive(Serialize)]
pub(crate) struct Failure {
    pub extractor: String,
    pub status: &'static str,
    pub error: String,
    pub pages: u64,
}

impl Health {
    pub(super) fn newest(&self) -> Option<&NightLine> {
        self.shown.first()
    }

    /// One line, and how bad it is.
    pub(super) fn verdict(&self) -> (&'static str, String) {
        let newest = self.newest().map(|night| &night.snapshot);
        let open = |line: &&ProblemLine| !line.accepted && Some(&line.snapshot) == newest;
        if let Some(error) = self.last_run.as_ref().and_then(|run| run.error.as_ref()) {
            return ("bad", format!("✕ The last run failed: {error}"));
        }
        let mut problems = self.problems.iter().filter(open);
        if let Some(first) = problems.next() {
            let more = problems.count();
            let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
            return ("warn", format!("▲ {}{more}", first.message));
        }
        if let Some(unfinished) = self.unfinished.last() {
            return ("warn", format!("▲ Snapshot {unfinished} is not done yet"));
        }
        ("good", "✓ All in order".to_owned())
    }

    pub(super) fn render(&self, out: &mut String) {
        if self.shown.is_empty() {
            return nothing(out, "No snapshot is done yet.");
        }
        if let Some(run) = &self.last_run {
            let how = match (&run.error, run.exit_code) {
                (Some(error), _) => format!("failed: {error}"),
                (None, 0) => "went well".to_owned(),
                (None, 3) => "is done, with a problem".to_owned(),
                (None, code) => format!("ended with code {code}"),
            };
            let _ = writeln!(
                out,
                "<p>The last run ended at <time>{}</time> and {}.</p>",
                escape(&moment(&run.end)),
                escape(&how)
            );
        }
        if self.problems.is_empty() {
            nothing(out, "No snapshot shown here has a problem.");
        }
        let problem = |line: &ProblemLine| {
            let state = if line.accepted { "accepted" } else { "open" };
            vec![
                Cell::text(line.snapshot.as_str()),
                Cell::text(state),
                Cell::text(line.kind),
                Cell::text(&line.message),
                Cell::Note(line.remedy.clone()),
            ]
        };
        table(
            out,
            "problems",
            "Problems",
            &["snapshot", "state", "kind", "what", "what to do"],
            self.problems.iter().map(problem).collect(),
            self.problems.len(),
        );
        let reason = |line: &Counted| vec![Cell::text(&line.reason), Cell::count(line.count)];
        table(
            out,
            "rejects",
            "Rejected in the newest snapshot",
            &["reason", "how many"],
            self.rejects.iter().map(reason).collect(),
            0,
        );
        table(
            out,
            "suspects",
            "Captures that are no pages though the server says so",
            &["reason", "captures"],
            self.suspects.iter().map(reason).collect(),
            0,
        );
        let failure = |line: &Failure| {
            vec![Cell::text(&line.extractor), Cell::text(line.status), Cell::text(&line.error), Cell::count(line.pages)]
        };
        table(
            out,
            "failures",
            "Extractions that did not end well",
            &["extractor", "status", "why", "pages"],
            self.failures.iter().map(failure).collect(),
            0,
        );
        self.nights(out);
    }

    fn nights(&self, out: &mut String) {
        let head = [
            "snapshot",
            "captures",
            "pages",
            "added",
            "modified",
            "unchanged",
            "carried",
            "deleted",
            "suspects",
            "rejects",
            "failed",
            "deferred",
            "mentions",
            "alerts",
            "text",
            "kind",
        ];
        let row = |night: &NightLine| {
            let row = &night.row;
            let mut cells = vec![Cell::text(night.snapshot.as_str())];
            cells.extend(
                [
                    row.captures,
                    row.pages,
                    row.added,
                    row.modified,
                    row.unchanged,
                    row.carried,
                    row.deleted,
                    row.suspects,
                    row.rejects,
                    row.failed_extractions,
                    row.deferred_extractions,
                    row.mentions,
                    row.alerts,
                ]
                .map(Cell::count),
            );
            cells.push(Cell::bytes(row.text_bytes));
            let kinds = [(row.incomplete, "incomplete"), (row.base, "base"), (!row.whole, "slim")];
            let kinds: Vec<&str> = kinds.into_iter().filter(|(is, _)| *is).map(|(_, kind)| kind).collect();
            cells.push(Cell::text(&kinds.join(", ")));
            cells
        };
        table(out, "snapshots", "Snapshots", &head, self.shown.iter().map(row).collect(), self.snapshots);
        out.push_str(
            "<p class=\"none\">Each page is counted once: one that came back stands under modified or unchanged here, for \
             its old version is known, and under added where two snapshots are compared.</p>\n",
        );
        if !self.unfinished.is_empty() {
            let _ = writeln!(out, "<p>{} not done yet.</p>", count(self.unfinished.len() as u64));
        }
    }
}

fn table(out: &mut String, id: &str, caption: &str, head: &[&str], rows: Vec<Vec<Cell>>, of: usize) {
    Table { id, caption, head, rows, of, cards: false }.render(out);
}
