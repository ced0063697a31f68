//! All methods beside each other, for a terminal.

use super::super::terminal::{duration, share, table};
use crate::schedule::compared::{ComparedWay, Comparison};

#[must_use]
pub(crate) fn table_of(compared: &Comparison) -> String {
    let header = ["method", "polls", "in all", "recall", "of versions", "freshness", "staleness", "age", "delay"];
    let row = |way: &ComparedWay| {
        vec![
            way.way.clone(),
            way.sharing.to_string(),
            format!("{:.0}", way.polls),
            share(way.recall),
            share(way.recall_by_version),
            share(way.freshness),
            share(way.staleness),
            duration(way.age_s),
            duration(way.delay_s),
        ]
    };
    let rows: Vec<Vec<String>> = compared.ways.iter().map(row).collect();
    let judged = compared.ways.iter().map(|way| way.judged).max().unwrap_or(0);
    format!(
        "{} sources, {} polls {} in all; learned from the first {:.0} % of each source's updates, judged on the rest of \
         {judged}\n{}each: every source gets as many; shared: a budget goes where the method says; free: the rule takes \
         what it likes\n",
        compared.sources,
        compared.budget,
        compared.period.each(),
        100.0 * (1.0 - compared.holdout),
        table(&header, &rows),
    )
}
