//! Schedules, and what they are worth, for a terminal.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::path::Path;

use super::super::terminal::{count, duration, one_line, share, table};
use super::DAYS;
use crate::manifests::Overall;
use crate::model::{Period, SnapshotId};
use crate::schedule::fleet::{Budget, HostRepair};
use crate::schedule::simulate::Simulated;
use crate::schedule::{Metrics, SourcePlan};
use crate::tables::schedule::ScheduleRow;

/// Up to so many sources are told in full.
const IN_FULL: usize = 40;
/// Of more sources, so many have a line.
const WITH_A_LINE: usize = 20;

/// The schedules of a store, as a look finds them.
pub(crate) struct Stored {
    /// The snapshot after which these schedules hold.
    pub snapshot: SnapshotId,
    pub rows: Vec<ScheduleRow>,
    /// What keeping to a limit of polls per host did.
    pub host_limit: Option<HostRepair>,
}

impl Stored {
    /// With a line for each source if `all` are asked for; `wrote` are the files and folders that were written.
    #[must_use]
    pub(crate) fn text(&self, all: bool, wrote: &[&Path]) -> String {
        let mut text = format!("\nschedules after {}\n", self.snapshot);
        text.push_str(&compact(&self.rows, all));
        text.push_str(&overall(&Overall::of(&self.rows)));
        if let Some(HostRepair { moved, dropped, loss }) = self.host_limit {
            let _ = writeln!(text, "host limit: {moved} polls moved, {dropped} dropped, loss {loss:.4}");
        }
        text.push_str(&written(wrote));
        text
    }
}

/// What was learned from a log. Few sources are told in full, many only if `all` are asked for; `wrote` are the files and
/// folders that were written.
#[must_use]
pub(crate) fn from_log(
    planned: &[SourcePlan],
    rows: &[ScheduleRow],
    budget: Option<&Budget>,
    host_limit: Option<&HostRepair>,
    all: bool,
    wrote: &[&Path],
) -> String {
    let mut text = if rows.len() <= IN_FULL || all { in_full(planned) + "\n" } else { compact(rows, false) };
    text.push_str(&overall(&Overall::of(rows)));
    if let Some(budget) = budget {
        let _ = writeln!(
            text,
            "budget: {} of {} polls {} spent; {} sources get none",
            budget.spent,
            budget.polls,
            budget.period.each(),
            budget.unpolled
        );
    }
    if let Some(HostRepair { moved, dropped, loss }) = host_limit {
        let _ =
            writeln!(text, "host limit: {moved} polls moved, {dropped} dropped; the objectives lose {loss:.4} in sum");
    }
    text.push_str(&written(wrote));
    text
}

fn written(wrote: &[&Path]) -> String {
    wrote.iter().map(|path| format!("wrote {}\n", path.display())).collect()
}

/// One line per source, those with most updates first.
fn compact(rows: &[ScheduleRow], all: bool) -> String {
    let mut order: Vec<&ScheduleRow> = rows.iter().collect();
    order.sort_by_key(|row| Reverse(row.updates));
    let shown = if all { order.len() } else { order.len().min(WITH_A_LINE) };
    let header = [
        "source", "updates", "polls", "method", "recall", "uniform", "ceiling", "fresh", "uniform", "age", "delay",
        "90 %",
    ];
    let lines: Vec<Vec<String>> = order[..shown]
        .iter()
        .map(|row| {
            vec![
                shortened(&row.source),
                row.updates.to_string(),
                format!("{} / {}", row.polls, row.period),
                row.method.to_string(),
                share(row.recall),
                share(row.uniform_recall),
                share(row.recall_ceiling),
                share(row.freshness),
                share(row.uniform_freshness),
                duration(row.age_s),
                duration(row.delay_s),
                row.polls_for_90_percent.map_or_else(|| "-".to_owned(), |n| n.to_string()),
            ]
        })
        .collect();
    let mut text = table(&header, &lines);
    if shown < rows.len() {
        let _ = writeln!(text, "… and {} more (-v shows all)", count((rows.len() - shown) as u64, "source"));
    }
    text
}

/// The end of a source's name, which tells it from others of its host.
fn shortened(source: &str) -> String {
    let name = one_line(source);
    match name.char_indices().rev().nth(59) {
        Some((at, _)) if at > 0 => format!("…{}", &name[at..]),
        _ => name,
    }
}

/// Means over the sources.
fn overall(total: &Overall) -> String {
    let mut text = format!(
        "overall: {}, {} of them uniform, {:.1} polls a day; ",
        count(total.sources as u64, "source"),
        total.uniform,
        total.polls_a_day
    );
    if total.judged == 0 {
        text.push_str("too few updates on held-out time to say what that is worth\n");
        return text;
    }
    let _ = writeln!(text, "on the held-out updates of {}", total.judged);
    let row = |name: &str, recall, freshness, age, delay| {
        vec![format!("  {name}"), share(recall), share(freshness), duration(age), duration(delay)]
    };
    let rows = vec![
        row("each source alike", total.recall, total.freshness, total.age_s, total.delay_s),
        row(
            "  uniform, mean over phases",
            total.uniform_recall,
            total.uniform_freshness,
            total.uniform_age_s,
            total.uniform_delay_s,
        ),
        row("  every slot polled", total.recall_ceiling, None, None, None),
        row("each version alike", total.micro_recall, total.micro_freshness, None, None),
        row("  uniform, mean over phases", total.micro_uniform_recall, total.micro_uniform_freshness, None, None),
        row("  every slot polled", total.micro_recall_ceiling, None, None, None),
    ];
    text.push_str(&table(&["", "recall", "freshness", "age", "delay"], &rows));
    text
}

/// A poll time, such as `:05`, `06:30`, `Mon 06:30` or `15 06:30`.
fn poll_time(period: Period, seconds: i64) -> String {
    let (day, rest) = (seconds / 86_400, seconds % 86_400);
    let mut clock = format!("{:02}:{:02}", rest / 3_600, rest / 60 % 60);
    if seconds % 60 != 0 {
        let _ = write!(clock, ":{:02}", seconds % 60);
    }
    match period {
        Period::Hour => clock[2..].to_owned(),
        Period::Day => clock,
        Period::Week => format!("{} {clock}", DAYS[usize::try_from(day).unwrap_or(0) % 7]),
        Period::Month => format!("{} {clock}", day + 1),
    }
}

/// All that must be told of a source: times, held-out quality next to uniform's, what each further poll brings.
#[must_use]
pub(crate) fn in_full(planned: &[SourcePlan]) -> String {
    let mut text = String::new();
    for (i, plan) in planned.iter().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        times(plan, &mut text);
        if plan.held_out.expected.recall.is_none() {
            text.push_str("  too few updates on held-out time to say what it is worth\n");
        } else {
            quality(plan, &mut text);
            by_polls(plan, &mut text);
        }
        signal(plan, &mut text);
        for note in &plan.notes {
            let _ = writeln!(text, "  note: {note}");
        }
    }
    text
}

fn times(plan: &SourcePlan, text: &mut String) {
    let schedule = &plan.schedule;
    let _ = writeln!(
        text,
        "{}\n  {} {} ({}, {}), from {}",
        one_line(&schedule.source),
        count(schedule.poll_times.len() as u64, "poll"),
        schedule.period.each(),
        schedule.method.as_str(),
        schedule.time_zone,
        count(plan.updates as u64, "update")
    );
    let times: Vec<String> = schedule.poll_times.iter().map(|t| poll_time(schedule.period, *t)).collect();
    let _ = writeln!(text, "  at {}", times.join(", "));
}

fn quality(plan: &SourcePlan, text: &mut String) {
    let _ = writeln!(text, "  on the last {} updates      recall  freshness        age      delay", plan.test_updates);
    let mut row = |name: &str, m: &Metrics| {
        let _ = writeln!(
            text,
            "  {name:<27} {:>7}  {:>9} {:>10} {:>10}",
            share(m.recall),
            share(m.freshness),
            duration(m.age_s),
            duration(m.delay_s)
        );
    };
    row("this schedule", &plan.held_out.expected);
    row("uniform, mean over phases", &plan.uniform);
    row("uniform, best phase", &plan.uniform_best);
    let _ = writeln!(text, "  {:<27} {:>7}", "every slot polled", share(plan.recall_ceiling));
    if let Some((low, high)) = plan.held_out.recall_bounds {
        let _ = write!(text, "  only intervals are known: recall lies between {low:.3} and {high:.3}");
        if let Some((low, high)) = plan.held_out.freshness_bounds {
            let _ = write!(text, ", freshness between {low:.3} and {high:.3}");
        }
        text.push('\n');
    }
    if let (Some(recall), Some(freshness)) = (plan.held_out.recall_forecast, plan.held_out.freshness_forecast) {
        let _ = writeln!(
            text,
            "  as many versions to come: recall {:.3} to {:.3}, freshness {:.3} to {:.3} (95 %)",
            recall.0, recall.1, freshness.0, freshness.1
        );
    }
}

fn by_polls(plan: &SourcePlan, text: &mut String) {
    let mut before = 0.0;
    let shown = some_of(&plan.curve.iter().map(|point| point.polls).collect::<Vec<_>>());
    let steps: Vec<String> = (shown.into_iter().map(|at| &plan.curve[at]))
        .filter_map(|point| {
            let recall = point.recall?;
            let step = format!("{}: {recall:.3} ({:+.3})", point.polls, recall - before);
            before = recall;
            Some(step)
        })
        .collect();
    let _ = writeln!(text, "  recall by polls: {}", steps.join("  "));
    let _ = match plan.polls_for_90_percent {
        Some(n) => {
            let (polls, each) = (count(n as u64, "poll"), plan.schedule.period.each());
            writeln!(text, "  90 % of what can be had needs {polls} {each}")
        }
        None => writeln!(text, "  90 % of what can be had needs more than {} polls", plan.curve.len()),
    };
}

/// The points of a curve that are told, by their places: the first few, then each that is half as far on again, and the last.
fn some_of(polls: &[usize]) -> Vec<usize> {
    const FIRST: usize = 10;
    let mut shown: Vec<usize> = Vec::new();
    for (at, n) in polls.iter().enumerate() {
        let is_far = shown.last().is_some_and(|last| *n * 2 >= polls[*last] * 3);
        if at < FIRST || is_far || at + 1 == polls.len() {
            shown.push(at);
        }
    }
    shown
}

fn signal(plan: &SourcePlan, text: &mut String) {
    let Some(signal) = plan.signal else { return };
    let schedule = &plan.schedule;
    let _ = write!(
        text,
        "  signal: versions with it end {:.2} times as fast; held-out gain {:+.4} +- {:.4} nats a version, ",
        signal.multiplier, signal.gain, signal.standard_error
    );
    let _ = match (&plan.other_poll_times, plan.shows, signal.kept) {
        (Some(other), Some(shows), _) => {
            let (now, other) = (schedule.poll_times.len(), other.len());
            let (on, off) = if shows { (now, other) } else { (other, now) };
            writeln!(text, "kept: {on} polls {} while it shows, {off} while not", schedule.period.each())
        }
        (_, _, true) => writeln!(text, "kept, but two timetables gain nothing"),
        (_, _, false) => writeln!(text, "not kept"),
    };
}

/// What replayed schedules are worth, each next to uniform polls, and the means over all.
#[must_use]
pub(crate) fn simulated(found: &[Simulated]) -> String {
    let header = [
        "source", "updates", "polls", "recall", "uniform", "ceiling", "fresh", "uniform", "age", "uniform", "delay",
        "uniform",
    ];
    let cells = |name: String, updates: usize, polls: String, m: [Option<f64>; 9]| {
        let mut row = vec![name, updates.to_string(), polls];
        row.extend(m[..5].iter().map(|value| share(*value)));
        row.extend(m[5..].iter().map(|value| duration(*value)));
        row
    };
    let metrics = |s: &Simulated| {
        let (q, u) = (s.quality.expected, s.uniform);
        [q.recall, u.recall, s.recall_ceiling, q.freshness, u.freshness, q.age_s, u.age_s, q.delay_s, u.delay_s]
    };
    let mut rows: Vec<Vec<String>> = found
        .iter()
        .map(|s| cells(one_line(&s.source), s.updates, format!("{} / {}", s.polls, s.period), metrics(s)))
        .collect();
    let mean = |i: usize| {
        let values: Vec<f64> = found.iter().filter_map(|s| metrics(s)[i]).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let updates = found.iter().map(|s| s.updates).sum();
    rows.push(cells("mean over sources".into(), updates, String::new(), std::array::from_fn(mean)));
    let mut text = table(&header, &rows);
    for s in found {
        if let Some((low, high)) = s.quality.recall_bounds {
            let _ =
                writeln!(text, "{}: only intervals are known: recall lies between {low:.3} and {high:.3}", s.source);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;
    use crate::schedule::source::plan;
    use crate::schedule::{History, Options};

    #[test]
    fn times_for_people() {
        assert_eq!(poll_time(Period::Hour, 305), ":05:05");
        assert_eq!(poll_time(Period::Day, 23_400), "06:30");
        assert_eq!(poll_time(Period::Week, 86_400 + 60), "Tue 00:01");
        assert_eq!(poll_time(Period::Month, 14 * 86_400), "15 00:00");
    }

    #[test]
    fn a_source_is_told_in_full() {
        let times: Vec<Timestamp> = (0..200).map(|d| Timestamp((d * 24 + 9) * 3_600_000_000)).collect();
        let options = Options { period: Some(Period::Day), polls: 2, ..Options::default() };
        let planned = plan(&History::of_moments("s", &times), &options).unwrap();
        let text = in_full(&[planned]);
        for word in ["2 polls a day", "uniform, mean over phases", "every slot polled", "recall by polls: 1: 1.000"] {
            assert!(text.contains(word), "{word} not in\n{text}");
        }
    }

    #[test]
    fn long_names_keep_their_ends() {
        assert_eq!(shortened("http://a/\n"), "http://a/ ");
        let long = format!("http://a/{}", "x".repeat(80));
        assert_eq!(shortened(&long).chars().count(), 61);
    }
}
