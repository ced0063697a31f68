//! What to poll, and what that is worth.

use std::collections::{BTreeMap, HashSet};

use anyhow::Result;

use super::{Look, ROWS};
use crate::manifests::Scheduled;
use crate::model::closed_set::ClosedSet;
use crate::model::{Method, Period};
use crate::report::overview::{CurvePoint, PollLine, Polls};
use crate::tables::record::Table as _;
use crate::tables::schedule::{PollSummary, RecallCurveRow, ScheduleRow, SourceOnly};

pub(super) fn polls(look: &Look<'_>) -> Result<Polls> {
    let mut polls = Polls::default();
    let Some(newest) = look.newest() else { return Ok(polls) };
    polls.overall = look.store.manifest::<Scheduled>(newest)?.map(|scheduled| scheduled.summary.overall);
    polls.snapshot = Some(newest.clone());
    let mut rows = look.sources::<PollSummary>(ScheduleRow::NAME, |row| &row.source)?;
    polls.curves = curves(look)?;
    rows.retain(|row| row.method != Method::Gone);
    polls.sources = rows.len() as u64;
    rows.iter().for_each(|row| *polls.methods.entry(row.method.name()).or_default() += 1);
    let most_first = |a: &PollSummary, b: &PollSummary| b.updates.cmp(&a.updates).then_with(|| a.source.cmp(&b.source));
    if rows.len() > ROWS {
        // Only those that are shown are put in order.
        rows.select_nth_unstable_by(ROWS, most_first);
        rows.truncate(ROWS);
    }
    rows.sort_by(most_first);
    let line = |row: PollSummary| PollLine {
        source: row.source,
        period: row.period,
        polls: row.polls,
        method: row.method.name(),
        updates: row.updates,
        versions: row.versions,
        recall: row.recall,
        uniform_recall: row.uniform_recall,
        freshness: row.freshness,
        uniform_freshness: row.uniform_freshness,
        polls_for_90_percent: row.polls_for_90_percent,
        notes: row.notes,
    };
    polls.schedules = rows.into_iter().map(line).collect();
    Ok(polls)
}

/// Means of the newest curves of all sources, by period and number of polls.
fn curves(look: &Look<'_>) -> Result<Vec<CurvePoint>> {
    let Some(at) = look.done.iter().rev().find(|done| done.table(ScheduleRow::NAME).is_some()) else {
        return Ok(Vec::new());
    };
    let mut sums: BTreeMap<(i64, i64), (Period, u64, f64, f64)> = BTreeMap::new();
    let mut settled: HashSet<String> = HashSet::new();
    let layers = look.store.layers(ScheduleRow::NAME, &at.snapshot.id)?;
    for (i, snapshot) in layers.snapshots().iter().enumerate() {
        for row in look.rows::<RecallCurveRow>(RecallCurveRow::NAME, snapshot)? {
            let (Some(recall), Some(freshness)) = (row.recall, row.freshness) else { continue };
            if !settled.contains(&row.source) {
                let sum = sums.entry((row.period.seconds(), row.polls)).or_insert((row.period, 0, 0.0, 0.0));
                *sum = (row.period, sum.1 + 1, sum.2 + recall, sum.3 + freshness);
            }
        }
        // A source has the curve of its newest schedule, also if that is none. Nothing comes after the oldest.
        if i + 1 < layers.snapshots().len() {
            let schedules = look.store.partition(ScheduleRow::NAME, snapshot)?;
            schedules.visit::<SourceOnly<'_>>(&schedules.all(), |row| {
                settled.insert(row.source.to_owned());
            })?;
        }
    }
    let point = |((_, polls), (period, sources, recall, freshness)): ((i64, i64), (Period, u64, f64, f64))| {
        let mean = |sum: f64| sum / sources as f64;
        CurvePoint { period, polls, sources, recall: mean(recall), freshness: mean(freshness) }
    };
    Ok(sums.into_iter().map(point).collect())
}
