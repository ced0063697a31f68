//! When sources change.

use std::collections::BTreeMap;

use anyhow::Result;
use jiff::tz::TimeZone;

use super::{Look, ROWS};
use crate::model::Timestamp;
use crate::model::closed_set::ClosedSet;
use crate::report::overview::{RateClass, Rhythm, SourceLine};
use crate::tables::record::Table as _;
use crate::tables::stats::{SourceRate, UpdateStatsRow};

/// A longer time does not tell the hour of the week.
const WEEK: i64 = 7 * 86_400 * Timestamp::SECOND;
/// All time zones differ by whole quarters of an hour.
const SLOT: i64 = 900 * Timestamp::SECOND;

/// Updates a day below which a source is in a class; the first is of those that were never seen to change.
const CLASSES: [(&str, f64); 6] = [
    ("never", 0.0),
    ("<1/month", 1.0 / 30.0),
    ("<1/week", 1.0 / 7.0),
    ("<1/day", 1.0),
    ("<1/hour", 24.0),
    ("more", f64::INFINITY),
];

pub(super) fn rhythm(look: &Look<'_>) -> Result<Rhythm> {
    let corpus = &look.pipeline.corpus;
    let mut rhythm = Rhythm { time_zone: corpus.time_zone_name.clone(), ..Rhythm::default() };
    let mut spread = Spread::default();
    for (night, past) in look.nights.iter().zip(&look.past) {
        for update in past.updates(look.store, &night.snapshot)? {
            rhythm.updates += 1;
            let placed = match update.updated_at {
                Some(at) => spread.at(at),
                None => spread.over(update.after, update.before),
            };
            rhythm.placed += u64::from(placed);
        }
    }
    rhythm.week = spread.week(&corpus.time_zone);
    let mut rows = look.sources::<SourceRate>(UpdateStatsRow::NAME, |row| &row.source)?;
    rows.retain(|row| row.gone_since.is_none());
    rhythm.sources = rows.len() as u64;
    let class = |row: &SourceRate| match row.updates {
        0 => 0,
        _ => CLASSES
            .iter()
            .skip(1)
            .position(|(_, below)| row.rate_per_day < *below)
            .map_or(CLASSES.len() - 1, |at| at + 1),
    };
    let mut counts = [0; CLASSES.len()];
    rows.iter().for_each(|row| counts[class(row)] += 1);
    rhythm.classes = CLASSES.iter().zip(counts).map(|((name, _), sources)| RateClass { name, sources }).collect();
    rows.retain(|row| row.updates > 0);
    rhythm.changing = rows.len();
    rows.sort_by(|a, b| b.rate_per_day.total_cmp(&a.rate_per_day).then_with(|| a.source.cmp(&b.source)));
    rhythm.most = rows.into_iter().take(ROWS).map(source_line).collect();
    Ok(rhythm)
}

fn source_line(row: SourceRate) -> SourceLine {
    SourceLine {
        source: row.source,
        captures: row.captures,
        updates: row.updates,
        rate_per_day: row.rate_per_day,
        rate_low: row.rate_low,
        rate_high: row.rate_high.is_finite().then_some(row.rate_high),
        regularity: row.regularity.map(ClosedSet::name),
        period: row.period.map(ClosedSet::name),
        last_update: row.last_update.map(|time| time.to_string()),
        warnings: row.warnings,
    }
}

/// Updates by quarter of an hour. One that came somewhere in a stretch of time counts evenly over all of it; stretches are
/// kept by where they begin and end, so that a long one costs no more than a short one.
#[derive(Default)]
struct Spread {
    /// By quarter: what it has on its own, and by how much more each quarter from here on has than those before.
    slots: BTreeMap<i64, (f64, f64)>,
}

impl Spread {
    fn at(&mut self, time: Timestamp) -> bool {
        self.slots.entry(time.micros().div_euclid(SLOT)).or_default().0 += 1.0;
        true
    }

    /// Whether the stretch is short enough to say something.
    fn over(&mut self, after: Timestamp, before: Timestamp) -> bool {
        let (from, to) = (after.micros(), before.micros());
        let length = to - from;
        if length <= 0 || length > WEEK {
            return false;
        }
        let share = |micros: i64| micros as f64 / length as f64;
        let (first, last) = (from.div_euclid(SLOT), to.div_euclid(SLOT));
        if first == last {
            self.slots.entry(first).or_default().0 += 1.0;
            return true;
        }
        self.slots.entry(first).or_default().0 += share((first + 1) * SLOT - from);
        self.slots.entry(last).or_default().0 += share(to - last * SLOT);
        self.slots.entry(first + 1).or_default().1 += share(SLOT);
        self.slots.entry(last).or_default().1 -= share(SLOT);
        true
    }

    /// By weekday from Monday, then hour, of a zone's wall clock.
    fn week(&self, zone: &TimeZone) -> Vec<Vec<f64>> {
        let mut week = vec![vec![0.0; 24]; 7];
        let mut add = |slot: i64, value: f64| {
            let Ok(time) = jiff::Timestamp::from_microsecond(slot.saturating_mul(SLOT)) else { return };
            let local = zone.to_datetime(time);
            let (day, hour) = (local.weekday().to_monday_zero_offset(), local.hour());
            if let (Ok(day), Ok(hour)) = (usize::try_from(day), usize::try_from(hour)) {
                week[day][hour] += value;
            }
        };
        let mut rate = 0.0;
        let mut slots = self.slots.iter().peekable();
        while let Some((slot, (own, more))) = slots.next() {
            add(*slot, *own);
            rate += more;
            let next = slots.peek().map_or(*slot, |(next, _)| **next);
            if rate > 1e-9 {
                (*slot..next).for_each(|slot| add(slot, rate));
            }
        }
        week
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn a_stretch_counts_evenly_over_its_hours() {
        let mut spread = Spread::default();
        // Friday 22:30 to Saturday 00:30, and a moment on Monday.
        assert!(spread.over(at("2024-03-01T22:30:00Z"), at("2024-03-02T00:30:00Z")));
        assert!(spread.at(at("2024-03-04T07:59:59Z")));
        assert!(!spread.over(at("2024-03-01T00:00:00Z"), at("2024-03-09T00:00:00Z")), "longer than a week");
        assert!(!spread.over(at("2024-03-01T00:00:00Z"), at("2024-03-01T00:00:00Z")));
        let week = spread.week(&TimeZone::UTC);
        for (day, hour, value) in [(4, 22, 0.25), (4, 23, 0.5), (5, 0, 0.25), (0, 7, 1.0)] {
            assert!((week[day][hour] - value).abs() < 1e-9, "{day} {hour}: {}", week[day][hour]);
        }
        assert!((week.iter().flatten().sum::<f64>() - 2.0).abs() < 1e-9);
        let india = spread.week(&TimeZone::get("Asia/Kolkata").unwrap());
        assert!((india[5][4] - 0.5).abs() < 1e-9 && (india[0][13] - 1.0).abs() < 1e-9, "half an hour off the others");
    }

    proptest::proptest! {
        /// Against a sum over every minute.
        #[test]
        fn stretches_are_summed(stretches in proptest::collection::vec((0i64..2_000, 1i64..600), 0..20)) {
            let (mut spread, mut naive) = (Spread::default(), vec![vec![0.0; 24]; 7]);
            let start = at("2024-03-01T00:00:00Z").micros();
            let minute = 60 * Timestamp::SECOND;
            for (from, length) in stretches {
                spread.over(Timestamp(start + from * minute), Timestamp(start + (from + length) * minute));
                for passed in from..from + length {
                    let (day, hour) = ((4 + passed / 1_440) % 7, passed / 60 % 24);
                    naive[usize::try_from(day).unwrap()][usize::try_from(hour).unwrap()] += 1.0 / length as f64;
                }
            }
            let week = spread.week(&TimeZone::UTC);
            for (a, b) in week.iter().flatten().zip(naive.iter().flatten()) {
                proptest::prop_assert!((a - b).abs() < 1e-6);
            }
        }
    }
}
