//! How sources change, for a terminal.

use std::cmp::Reverse;
use std::fmt::Write as _;

use super::terminal::{count, one_line, table};
use crate::model::SnapshotId;
use crate::model::closed_set::ClosedSet;
use crate::tables::stats::UpdateStatsRow;

/// Sources that have a line unless all are asked for.
const WITH_A_LINE: usize = 20;

/// What is known of the sources of a store after a snapshot.
pub(crate) struct Sources {
    pub snapshot: SnapshotId,
    pub rows: Vec<UpdateStatsRow>,
}

impl Sources {
    /// Those that changed most come first.
    #[must_use]
    pub(crate) fn text(&self, all: bool) -> String {
        let mut text = format!("\nupdates up to {}\n", self.snapshot);
        let mut rows: Vec<&UpdateStatsRow> = self.rows.iter().collect();
        rows.sort_by_key(|row| (Reverse(row.updates), &row.source));
        let changing = rows.iter().filter(|row| row.updates > 0).count();
        let most = if all { rows.len() } else { WITH_A_LINE.min(changing) };
        if most > 0 {
            let header = ["source", "captures", "updates", "a day", "from", "to", "rhythm", "period", "last update"];
            text.push_str(&table(&header, &rows[..most].iter().map(|row| line(row)).collect::<Vec<_>>()));
        }
        if changing > most {
            let _ = writeln!(text, "and {} more that changed; -v shows all", changing - most);
        }
        let updates: i64 = rows.iter().map(|row| row.updates).sum();
        let _ = writeln!(text, "{}, {changing} of them changed; {updates} updates", count(rows.len() as u64, "source"));
        text
    }
}

fn line(row: &UpdateStatsRow) -> Vec<String> {
    let rate = |rate: f64| format!("{rate:.2}");
    let known = |name: Option<&str>| name.unwrap_or("-").to_owned();
    vec![
        one_line(&row.source),
        row.captures.to_string(),
        row.updates.to_string(),
        rate(row.rate_per_day),
        rate(row.rate_low),
        rate(row.rate_high),
        known(row.regularity.map(ClosedSet::name)),
        known(row.period.map(ClosedSet::name)),
        row.last_update.map_or_else(|| "-".to_owned(), |time| time.to_string()),
    ]
}
