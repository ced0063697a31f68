//! The report: one HTML file that says what happened, the answer first.
//!
//! Every section is a record that is looked up elsewhere ([`crate::look::overview`]) and drawn here, in a file of its own.
//! The record stands in the file once more as data, so that every number that is shown can be compared with the tables.

mod changes;
mod costs;
mod figure;
mod found;
mod growth;
mod health;
mod polls;
mod rhythm;
mod table;

use std::fmt::Write as _;

use serde::Serialize;

pub(crate) use self::changes::{AlertLine, Changes, PageLine, QueryLine, TriageLine, WebLine};
pub(crate) use self::costs::{Alternative, Costs, ExtractorCost, Measured, NightCost};
pub(crate) use self::found::{ExtractorLine, Found, MentionLine};
pub(crate) use self::growth::{Growth, NightGrowth};
pub(crate) use self::health::{Counted, Failure, Health, NightLine, ProblemLine};
pub(crate) use self::polls::{CurvePoint, PollLine, Polls};
pub(crate) use self::rhythm::{RateClass, Rhythm, SourceLine};
use self::table::count;
use super::html::{Document, data_block, escape};
use super::terminal::{duration, size};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// All that the report says.
#[derive(Default, Serialize)]
pub(crate) struct Overview {
    /// Of the pipeline file.
    pub name: String,
    /// Snapshots that are shown of each development.
    pub window: usize,
    pub health: Health,
    pub changes: Changes,
    pub found: Found,
    pub costs: Costs,
    pub rhythm: Rhythm,
    pub polls: Polls,
    pub growth: Growth,
}

/// A section: its name in the file, its heading, and what draws it.
type Section = (&'static str, &'static str, fn(&Overview, &mut String));

const SECTIONS: [Section; 7] = [
    ("health", "Did it work?", |all, out| all.health.render(out)),
    ("changes", "What changed?", |all, out| all.changes.render(out)),
    ("found", "What was found?", |all, out| all.found.render(out)),
    ("costs", "What did it cost, and save?", |all, out| all.costs.render(out)),
    ("rhythm", "When do sources change?", |all, out| all.rhythm.render(out)),
    ("polls", "What to poll?", |all, out| all.polls.render(out)),
    ("growth", "How does it develop?", |all, out| all.growth.render(out)),
];

impl Overview {
    /// One file that needs nothing else.
    #[must_use]
    pub(crate) fn html(&self) -> String {
        let mut body = String::from(figure::PATTERNS);
        self.head(&mut body);
        body.push_str("<nav aria-label=\"Sections\"><ul>");
        for (id, heading, _) in SECTIONS {
            let _ = write!(body, "<li><a href=\"#{id}\">{}</a></li>", escape(heading));
        }
        body.push_str("</ul></nav>\n<main>\n");
        for (id, heading, draw) in SECTIONS {
            let _ = writeln!(body, "<section id=\"{id}\"><h2>{}</h2>", escape(heading));
            draw(self, &mut body);
            body.push_str("</section>\n");
        }
        body.push_str("</main>\n<footer><p>Written by ratoon from the tables of the store; nothing is loaded from anywhere.</p></footer>\n");
        body.push_str(&data_block("data", &serde_json::to_value(self).unwrap_or_default()));
        let title = format!("{} – report", self.name);
        Document { title: &title, style: STYLE, script: Some(SCRIPT), body: &body }.render()
    }

    /// What the newest snapshot is, whether it went well, and the few numbers that matter.
    fn head(&self, out: &mut String) {
        let Some(newest) = self.health.newest() else {
            let begun = match self.health.unfinished.len() {
                0 => String::new(),
                n => format!("{} begun by single stages, none finished. ", count(n as u64)),
            };
            let _ = writeln!(
                out,
                "<header><p class=\"what\">{}</p><h1>Nothing yet</h1><p class=\"verdict\">No snapshot is done. {begun}<code>ratoon \
                 run</code> with the pipeline file makes the first.</p></header>",
                escape(&self.name)
            );
            return;
        };
        let (class, verdict) = self.health.verdict();
        let _ = write!(
            out,
            "<header><p class=\"what\">{}</p><h1>{}</h1><p class=\"verdict {class}\">{}</p>\n<dl class=\"tiles\">",
            escape(&self.name),
            escape(newest.snapshot.as_str()),
            escape(&verdict)
        );
        let row = &newest.row;
        let number = table::grouped;
        let mut tile = |name: &str, value: &str, more: &str| {
            let _ = write!(
                out,
                "<div><dt>{}</dt><dd><b>{}</b><small>{}</small></dd></div>",
                escape(name),
                escape(value),
                escape(more)
            );
        };
        tile(
            "pages",
            &number(row.pages),
            &format!("+{} −{}", number(self.changes.of("pages added")), number(self.changes.of("pages deleted"))),
        );
        let text = size(u64::try_from(row.new_text_bytes).unwrap_or(0));
        tile("modified", &number(self.changes.of("pages modified")), &format!("{text} of new text"));
        tile(
            "mentions",
            &number(row.mentions),
            &format!("+{} −{}", number(row.mentions_added), number(row.mentions_deleted)),
        );
        tile("alerts", &number(row.alerts), &format!("{} to read", count(self.changes.edits as u64)));
        if let Some(saved) = &self.costs.saved {
            let share = if saved.of_bytes > 0 { 100.0 * saved.bytes as f64 / saved.of_bytes as f64 } else { 0.0 };
            tile("recycled", &format!("{share:.1} %"), &format!("{} of {}", size(saved.bytes), size(saved.of_bytes)));
        }
        let seconds = self.growth.nights.last().map(NightGrowth::all_seconds);
        let price = row.price.map_or_else(|| "all stages".to_owned(), |price| format!("price {price:.4}"));
        tile("took", &seconds.map_or_else(|| "–".to_owned(), took), &price);
        out.push_str("</dl></header>\n");
    }
}

/// How long something took.
fn took(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2} s") } else { duration(Some(seconds)) }
}

/// A moment to the minute.
fn moment(rfc3339: &str) -> String {
    match rfc3339.get(..16) {
        Some(minute) if rfc3339.ends_with('Z') => format!("{} UTC", minute.replace('T', " ")),
        _ => rfc3339.to_owned(),
    }
}

/// A size on an axis, such as `800 kB`.
fn short_size(bytes: f64) -> String {
    let (value, unit) = match bytes {
        b if b >= 1e9 => (b / 1e9, "GB"),
        b if b >= 1e6 => (b / 1e6, "MB"),
        b if b >= 1e3 => (b / 1e3, "kB"),
        b => (b, "B"),
    };
    format!("{} {unit}", short(value))
}

/// A duration on an axis, such as `2.5 s`.
fn short_time(seconds: f64) -> String {
    match seconds {
        0.0 => "0".to_owned(),
        s if s < 1.0 => format!("{} ms", short(1e3 * s)),
        s if s < 120.0 => format!("{} s", short(s)),
        s if s < 7_200.0 => format!("{} min", short(s / 60.0)),
        s => format!("{} h", short(s / 3_600.0)),
    }
}

/// A number on an axis: three digits are enough.
fn short(value: f64) -> String {
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A quiet line where a section has nothing to show.
fn nothing(out: &mut String, what: &str) {
    let _ = writeln!(out, "<p class=\"none\">{}</p>", escape(what));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_short_names() {
        assert_eq!([0.0, 950.0, 800_000.0, 2.5e6].map(short_size), ["0 B", "950 B", "800 kB", "2.5 MB"]);
        assert_eq!([0.0, 0.25, 4.0, 300.0, 9_000.0].map(short_time), ["0", "250 ms", "4 s", "5 min", "2.5 h"]);
        assert_eq!(moment("2026-11-17T12:26:29.238Z"), "2026-11-17 12:26 UTC");
        assert_eq!(moment("é"), "é");
    }

    #[test]
    fn an_empty_store_has_a_report_too() {
        let html = Overview { name: "<x>".to_owned(), ..Overview::default() }.html();
        assert!(html.contains("Nothing yet") && html.contains("&lt;x&gt;") && !html.contains("<x>"));
        for (id, ..) in SECTIONS {
            assert!(html.contains(&format!("<section id=\"{id}\">")), "{id}");
        }
        assert!(!html.contains("NaN"));
    }
}
