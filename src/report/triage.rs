//! What a person should read first.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::overview::TriageLine;
use super::terminal::{count, one_line};
use crate::deltas::triage::TriageRow;
use crate::model::SnapshotId;

/// Bytes of an edit on either side that are shown on a terminal, and elsewhere.
const SHOWN: usize = 240;
pub(crate) const TOLD: usize = 2_000;

/// The changes between two snapshots, those first that should be read first.
pub(crate) struct Triaged {
    /// `None`: there is no snapshot to compare with.
    pub since: Option<SnapshotId>,
    pub to: SnapshotId,
    /// Pages that changed, and how many of them were looked at.
    pub changed: usize,
    pub looked: usize,
    pub rows: Vec<TriageRow>,
}

impl Triaged {
    pub(crate) fn nothing_before(to: SnapshotId) -> Self {
        Self { since: None, to, changed: 0, looked: 0, rows: Vec::new() }
    }

    #[must_use]
    pub(crate) fn json(&self, most: usize) -> Value {
        let rows: Vec<TriageLine> = self.rows.iter().take(most).map(TriageLine::of).collect();
        json!({"since": self.since, "to": self.to, "pages": self.changed, "looked": self.looked,
               "found": self.rows.len(), "rows": rows})
    }

    /// At most so many rows are listed.
    #[must_use]
    pub(crate) fn text(&self, most: usize) -> String {
        let Some(since) = &self.since else {
            return format!("{} is the first snapshot: there is nothing to compare it with\n", self.to);
        };
        let mut text = String::new();
        for (rank, row) in self.rows.iter().take(most).enumerate() {
            let alike = if row.alike() > 1 { format!(", {} pages alike", row.alike()) } else { String::new() };
            let counted = |n: u64, what: &str| if n > 0 { format!(", {}", count(n, what)) } else { String::new() };
            let _ = writeln!(
                text,
                "{:>3}. {} {}  ({:.2}{alike}{}{})",
                rank + 1,
                row.shown.change,
                one_line(&row.shown.url),
                row.score,
                counted(row.mentions, "mention"),
                counted(row.links_in, "link") + if row.links_in > 0 { " in" } else { "" }
            );
            for (mark, side) in [("-", &row.shown.before), ("+", &row.shown.after)] {
                if !side.is_empty() {
                    let _ = writeln!(
                        text,
                        "     {mark} {}",
                        shortened(&one_line(&side.lines().collect::<Vec<_>>().join(" | ")), SHOWN)
                    );
                }
            }
        }
        if self.rows.len() > most {
            let _ = writeln!(text, "and {} more; -v shows all", self.rows.len() - most);
        }
        let _ = write!(
            text,
            "{since} to {}: {} changed, {}",
            self.to,
            count(self.changed as u64, "page"),
            count(self.rows.len() as u64, "edit")
        );
        if self.looked < self.changed {
            let _ = write!(text, " on the {} pages with most new text", self.looked);
        }
        text.push('\n');
        text
    }
}

/// The beginning of a text, with a mark if there is more.
#[must_use]
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deltas::triage::{Candidate, TriageChange, triage};

    #[test]
    fn rows_stay_on_their_lines_and_say_what_is_alike() {
        let candidate = |url: &str| Candidate {
            url: url.into(),
            change: TriageChange::Modified,
            before: "old\u{1b}[2J\nx".to_owned(),
            after: "é".repeat(500),
            together: None,
            mentions: 2,
            links_in: 3,
            returned: false,
        };
        let id = |name: &str| SnapshotId::new(name).unwrap();
        let rows = triage(vec![candidate("http://a/"), candidate("http://b/")]);
        let triaged = Triaged { since: Some(id("n1")), to: id("n2"), changed: 2, looked: 2, rows };
        let text = triaged.text(9);
        assert!(text.starts_with("  1. modified http://a/  ("), "{text}");
        assert!(text.contains("2 pages alike, 2 mentions, 3 links in)\n     - old?[2J | x\n     + é"), "{text}");
        assert!(text.ends_with("…\nn1 to n2: 2 pages changed, 1 edit\n"), "{text}");
        assert_eq!(triaged.json(9)["rows"][0]["alike"], 2);
        assert_eq!(triaged.json(0)["found"], 1);
        assert!(Triaged::nothing_before(id("n1")).text(9).contains("nothing to compare"));
    }
}
