//! What changed: what to read first, pages, links, queries, alerts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::nothing;
use super::table::{Cell, Table, count};
use crate::deltas::triage::{TriageChange, TriageRow};
use crate::model::{Deletion, Fate, SnapshotId};
use crate::report::html::escape;
use crate::report::triage::{TOLD, shortened};

/// Pages that a row names; `alike` says how many there are.
const NAMED: usize = 5;
/// Pictures that are shown without being asked for.
const OPEN: usize = 4;

#[derive(Default, Serialize)]
pub(crate) struct Changes {
    /// `None`: there is no snapshot to compare with.
    pub since: Option<SnapshotId>,
    pub to: Option<SnapshotId>,
    /// Rows by table and change, such as `pages added`.
    pub counts: BTreeMap<String, u64>,
    /// Pages that changed, and how many of them triage looked at.
    pub changed: usize,
    pub looked: usize,
    /// Rows of triage, of which the first are in `triage`.
    pub edits: usize,
    pub triage: Vec<TriageLine>,
    pub pages: Vec<PageLine>,
    pub pages_in_all: usize,
    pub alerts: Vec<AlertLine>,
    pub alerts_in_all: usize,
    pub queries: Vec<QueryLine>,
    pub webs: Vec<WebLine>,
}

/// An edit that one page has, or many.
#[derive(Serialize)]
pub(crate) struct TriageLine {
    pub url: String,
    pub change: TriageChange,
    pub score: f64,
    pub alike: usize,
    pub mentions: u64,
    pub links_in: u64,
    pub returned: bool,
    pub before: String,
    pub after: String,
    pub urls: Vec<String>,
    /// A file with both versions of the page, as seen from the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

impl TriageLine {
    #[must_use]
    pub(crate) fn of(row: &TriageRow) -> Self {
        let shown = &row.shown;
        Self {
            url: shown.url.to_string(),
            change: shown.change,
            score: row.score,
            alike: row.alike(),
            mentions: row.mentions,
            links_in: row.links_in,
            returned: shown.returned,
            before: shortened(&shown.before, TOLD),
            after: shortened(&shown.after, TOLD),
            urls: row.urls.iter().take(NAMED).map(ToString::to_string).collect(),
            page: None,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct PageLine {
    pub url: String,
    pub change: Fate,
    pub reason: Option<Deletion>,
    pub old_bytes: Option<i64>,
    pub new_bytes: Option<i64>,
    pub new_text_bytes: Option<i64>,
    pub moved_bytes: Option<i64>,
    pub title_changed: bool,
    pub links_changed: bool,
    pub moved_to: Option<String>,
    pub moved_from: Option<String>,
    pub unlinked: bool,
    pub structure_changed: bool,
}

#[derive(Serialize)]
pub(crate) struct AlertLine {
    pub watch: String,
    pub kind: &'static str,
    pub url: Option<String>,
    pub text: Option<String>,
    pub value: Option<f64>,
}

#[derive(Serialize)]
pub(crate) struct QueryLine {
    pub name: String,
    pub tuples: u64,
    pub failed: Option<String>,
}

/// What changed in the matches of a query.
#[derive(Serialize)]
pub(crate) struct WebLine {
    pub query: String,
    pub headline: String,
    /// Delta tuples, of which the first are drawn.
    pub tuples: usize,
    #[serde(skip)]
    pub pictures: Vec<String>,
}

impl Changes {
    /// Rows of a table with a change, such as `pages added`.
    pub(super) fn of(&self, what: &str) -> i64 {
        self.counts.get(what).map_or(0, |n| i64::try_from(*n).unwrap_or(i64::MAX))
    }

    pub(super) fn render(&self, out: &mut String) {
        let Some(since) = &self.since else {
            return nothing(out, "There is no snapshot before to compare with.");
        };
        let _ = write!(out, "<p>Since <b>{}</b>: ", escape(since.as_str()));
        let groups = ["pages", "links", "regions", "tuples"].map(|what| {
            let of = |(key, n): (&String, &u64)| {
                let change = key.strip_prefix(what)?.strip_prefix(' ')?;
                // A page that did not change has a row only if nothing leads to it any more or its elements are others.
                let change = if change == "unchanged" { "only no longer linked or built otherwise" } else { change };
                (*n > 0).then(|| format!("{} {}", count(*n), escape(change)))
            };
            let said: Vec<String> = self.counts.iter().filter_map(of).collect();
            (!said.is_empty())
                .then(|| format!("{} {}", if what == "regions" { "parts of texts" } else { what }, said.join(", ")))
        });
        let said: Vec<String> = groups.into_iter().flatten().collect();
        let said = if said.is_empty() { "no difference".to_owned() } else { said.join("; ") };
        let _ = writeln!(out, "{said}.</p>");
        self.triage(out);
        self.alerts(out);
        self.pages(out);
        let query = |line: &QueryLine| {
            vec![Cell::text(&line.name), Cell::count(line.tuples), Cell::text(line.failed.as_deref().unwrap_or(""))]
        };
        let rows = self.queries.iter().map(query).collect();
        Table { id: "queries", caption: "Queries", head: &["query", "matches", "failed"], rows, of: 0, cards: false }
            .render(out);
        if !self.webs.is_empty() {
            let said = "In these pictures, added and deleted are pages and links that came into the matches of a query or left \
                        them; the pages themselves may stand as before.";
            let _ = writeln!(out, "<p>{said}</p>");
        }
        self.webs.iter().for_each(|web| web.render(out));
    }

    fn triage(&self, out: &mut String) {
        if self.triage.is_empty() {
            return nothing(out, "There is nothing to read.");
        }
        if self.looked < self.changed {
            let _ = writeln!(
                out,
                "<p>Looked at the {} pages with most new text, of {} that changed.</p>",
                count(self.looked as u64),
                count(self.changed as u64)
            );
        }
        let row = |(rank, line): (usize, &TriageLine)| {
            vec![
                Cell::count(rank as u64 + 1),
                Cell::Html(line.html()),
                Cell::count(line.alike as u64),
                Cell::count(line.mentions),
                Cell::count(line.links_in),
                Cell::number(line.score, 2),
            ]
        };
        let head = ["#", "what to read", "pages alike", "mentions", "links in", "score"];
        let rows = self.triage.iter().enumerate().map(row).collect();
        Table { id: "triage", caption: "Read this first", head: &head, rows, of: self.edits, cards: true }.render(out);
    }

    fn alerts(&self, out: &mut String) {
        let row = |line: &AlertLine| {
            let text = line.text.clone().unwrap_or_default();
            let value = Cell::optional(line.value, 3);
            vec![
                Cell::text(&line.watch),
                Cell::text(line.kind),
                Cell::name(line.url.as_deref().unwrap_or("")),
                Cell::Text(shortened(&text, 300)),
                value,
            ]
        };
        let head = ["watch", "kind", "page", "text", "value"];
        let rows = self.alerts.iter().map(row).collect();
        Table { id: "alerts", caption: "Alerts", head: &head, rows, of: self.alerts_in_all, cards: true }.render(out);
    }

    fn pages(&self, out: &mut String) {
        let row = |line: &PageLine| {
            let bytes = |n: Option<i64>| n.map_or(Cell::Unknown, Cell::bytes);
            vec![
                Cell::name(&line.url),
                Cell::text(&line.change.to_string()),
                bytes(line.new_text_bytes),
                bytes(line.moved_bytes),
                bytes(line.old_bytes),
                bytes(line.new_bytes),
                Cell::Note(line.notes()),
            ]
        };
        let head = ["page", "change", "new text", "moved", "text before", "text now", "notes"];
        let rows = self.pages.iter().map(row).collect();
        Table { id: "pages", caption: "Pages that changed", head: &head, rows, of: self.pages_in_all, cards: false }
            .render(out);
    }
}

impl WebLine {
    fn render(&self, out: &mut String) {
        let open = if self.pictures.len() <= OPEN { " open" } else { "" };
        let _ = writeln!(out, "<details class=\"web\"{open}><summary>{}</summary>", escape(&self.headline));
        for picture in &self.pictures {
            let _ = writeln!(out, "<div class=\"graph\" tabindex=\"0\">{picture}</div>");
        }
        if self.pictures.len() < self.tuples {
            let more = count((self.tuples - self.pictures.len()) as u64);
            let query = escape(&self.query);
            let _ = writeln!(
                out,
                "<p>And {more} more: <code>ratoon web PIPELINE {query} --delta -v</code> tells them all.</p>"
            );
        }
        out.push_str("</details>\n");
    }
}

impl PageLine {
    fn notes(&self) -> String {
        let mut notes: Vec<String> = self.reason.iter().map(ToString::to_string).collect();
        notes.extend(self.moved_to.as_ref().map(|to| format!("moved to {to}")));
        notes.extend(self.moved_from.as_ref().map(|from| format!("moved from {from}")));
        let flags = [
            (self.unlinked, "no longer linked"),
            (self.title_changed, "title"),
            (self.links_changed, "links"),
            (self.structure_changed, "elements"),
        ];
        notes.extend(flags.into_iter().filter(|(is, _)| *is).map(|(_, name)| name.to_owned()));
        notes.join(", ")
    }
}

impl TriageLine {
    /// The page, and both sides next to each other.
    fn html(&self) -> String {
        let mark = match self.change {
            TriageChange::Added => "+",
            TriageChange::Deleted => "−",
            TriageChange::Modified => "±",
            TriageChange::Moved => "→",
        };
        let mut out = format!(
            "<p class=\"page\"><span class=\"tag {0}\">{mark} {0}</span> <bdi>{1}</bdi>",
            self.change,
            escape(&self.url)
        );
        if let Some(page) = &self.page {
            let _ = write!(out, " <a href=\"{}\">both versions</a>", escape(page));
        }
        if self.returned {
            out.push_str(" <small>stood here before</small>");
        }
        out.push_str("</p>");
        if self.alike > 1 {
            let names: Vec<String> =
                self.urls.iter().map(|url| format!("<li><bdi>{}</bdi></li>", escape(url))).collect();
            let more = self.alike - self.urls.len();
            let more = if more > 0 { format!("<li>and {} more</li>", count(more as u64)) } else { String::new() };
            let _ = write!(
                out,
                "<details><summary>on {} pages</summary><ul>{}{more}</ul></details>",
                count(self.alike as u64),
                names.concat()
            );
        }
        let side = |tag: &str, name: &str, text: &str| match text.is_empty() {
            true => String::new(),
            false => {
                format!("<div dir=\"auto\"><span class=\"side\">{name}</span><{tag}>{}</{tag}></div>", escape(text))
            }
        };
        let _ = write!(
            out,
            "<div class=\"sides{}\">{}{}</div>",
            if self.before.is_empty() || self.after.is_empty() { " one" } else { "" },
            side("del", "before", &self.before),
            side("ins", "after", &self.after)
        );
        out
    }
}
