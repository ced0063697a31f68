//! What a run did, or would do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::terminal::{count, size, table};
use crate::manifests::Saved;
use crate::model::{SnapshotId, StageId};
use crate::run::problems::Seen;
use crate::run::{Fired, Step, Summary};

/// Alerts shown; all are in the table.
const ALERTS: usize = 5;

/// How much of a run is told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Telling {
    /// Nothing was done: it is told what would be.
    pub dry_run: bool,
    /// What every stage did, instead of a line for each snapshot.
    pub steps: bool,
}

/// A run as text. `pipeline` is the pipeline file, for commands that go on from here.
#[must_use]
pub(crate) fn summary(summary: &Summary, pipeline: &Path, telling: Telling) -> String {
    let store = summary.store.display();
    let mut text = String::new();
    if let Some(id) = &summary.accepted {
        let _ = writeln!(text, "snapshot {id} is accepted as it is: its problems are told no more");
    }
    if summary.done.is_empty() {
        for id in summary.told_late.keys() {
            let _ = writeln!(text, "snapshot {id} was done by a run that ended before it said so");
        }
        alerts(&mut text, &summary.alerts);
        text.push_str(&open_windows(&summary.open_windows));
        text.push_str(&passed_over(&summary.dropped, pipeline));
        let done = count(summary.skipped as u64, "snapshot");
        let _ = writeln!(text, "nothing to do: {done} done in {store}");
        return text;
    }
    if telling.steps || telling.dry_run {
        summary.done.iter().for_each(|done| step(&mut text, done));
    } else {
        nights(&mut text, &summary.done);
    }
    alerts(&mut text, &summary.alerts);
    text.push_str(&waiting(&summary.waiting, pipeline));
    text.push_str(&open_windows(&summary.open_windows));
    text.push_str(&passed_over(&summary.dropped, pipeline));
    if telling.dry_run {
        let _ = writeln!(text, "dry run: nothing was written to {store}");
        return text;
    }
    let _ = writeln!(text, "tables in {store}");
    // Who runs it every night knows what comes next.
    let is_first = summary.skipped == 0 && summary.done[0].stage == StageId::Ingest;
    if !telling.steps && is_first {
        let pipeline = pipeline.display();
        let _ = writeln!(
            text,
            "next: `ratoon delta {pipeline}` shows what the newest snapshot changed, `ratoon urls {pipeline}` its pages, \
             `ratoon show {pipeline} URL` one of them; `ratoon report {pipeline}` says it all in one file"
        );
    }
    text
}

/// A line for each snapshot, and what recycling saved on all of them.
fn nights(text: &mut String, steps: &[Step]) {
    let mut rows = Vec::new();
    let mut all = Saved { bytes: 0, of_bytes: 0, seconds: 0.0, price: None };
    for night in steps.chunk_by(|a, b| a.snapshot == b.snapshot) {
        let counts: BTreeMap<&str, u64> =
            night.iter().flat_map(|step| &step.tables).map(|(table, rows)| (table.as_str(), *rows)).collect();
        let count = |table: &str| counts.get(table).map_or_else(|| "-".to_owned(), ToString::to_string);
        let mut row = vec![night[0].snapshot.to_string()];
        row.extend(["captures", "pages", "page_deltas", "mention_deltas", "alerts"].map(count));
        let saved = night.iter().find_map(|step| step.saved.as_ref());
        row.push(saved.map_or_else(|| "-".to_owned(), |saved| size(saved.of_bytes.saturating_sub(saved.bytes))));
        row.push(saved.map_or_else(|| "-".to_owned(), |saved| size(saved.bytes)));
        row.push(format!("{:.2}", night.iter().filter_map(|step| step.seconds).sum::<f64>()));
        rows.push(row);
        if let Some(saved) = saved {
            all.bytes += saved.bytes;
            all.of_bytes += saved.of_bytes;
            all.seconds += saved.seconds;
            all.price = saved.price.map_or(all.price, |price| Some(all.price.unwrap_or(0.0) + price));
        }
    }
    let header =
        ["snapshot", "captures", "pages", "changed", "mentions ±", "alerts", "extracted", "recycled", "seconds"];
    text.push_str(&table(&header, &rows));
    if let Some(saved) = saved(&all) {
        let _ = writeln!(text, "{saved}");
    }
}

fn step(text: &mut String, step: &Step) {
    let _ = write!(text, "{} {}", step.stage, step.snapshot);
    if let Some(bytes) = step.archive_bytes {
        let _ = write!(text, ": {}", size(bytes));
    }
    for (table, rows) in &step.tables {
        let _ = write!(text, ", {rows} {table}");
    }
    if let Some(seconds) = step.seconds {
        let _ = write!(text, " ({seconds:.2} s)");
    }
    text.push('\n');
    if let Some(saved) = step.saved.as_ref().and_then(saved) {
        let _ = writeln!(text, "  {saved}");
    }
}

/// The first alerts, and how many more there are.
fn alerts(text: &mut String, alerts: &[Fired]) {
    for fired in in_order(alerts).take(ALERTS) {
        alert(text, fired);
    }
    if alerts.len() > ALERTS {
        let _ = writeln!(text, "and {} more in the table alerts", alerts.len() - ALERTS);
    }
}

/// Alerts by night, and those of a night by page.
fn in_order(alerts: &[Fired]) -> impl Iterator<Item = &Fired> {
    alerts.chunk_by(|a, b| a.snapshot == b.snapshot).flat_map(|night| {
        let mut night: Vec<&Fired> = night.iter().collect();
        night.sort_by_key(|fired| (&fired.alert.url, &fired.alert.watch));
        night
    })
}

fn alert(text: &mut String, fired: &Fired) {
    let alert = &fired.alert;
    let value = alert.value.map(|value| format!("{value:.3}"));
    let parts = [Some(&*alert.watch), Some(alert.kind.as_str()), alert.url.as_deref(), value.as_deref()];
    let _ = write!(text, "alert {}:", fired.snapshot);
    for part in parts.into_iter().chain([alert.text.as_deref()]).flatten() {
        let _ = write!(text, " {}", part.replace(char::is_control, " "));
    }
    text.push('\n');
}

/// The stages that wait, and the command that does them; nothing if none does.
fn waiting(stages: &[StageId], pipeline: &Path) -> String {
    let (wait, them) = match stages {
        [] => return String::new(),
        [_] => ("waits", "it"),
        _ => ("wait", "them"),
    };
    format!("{} {wait}; `ratoon run {}` does {them}\n", stage_names(stages), pipeline.display())
}

/// A line for each window that is not over.
pub(super) fn open_windows(windows: &[SnapshotId]) -> String {
    let line = |window: &SnapshotId| {
        format!("window {window} is still open: it waits for a later capture, a later folder or a file _complete\n")
    };
    windows.iter().map(line).collect()
}

/// A line that names the snapshots which are passed over, for they were dropped, and says how one comes back.
pub(super) fn passed_over(dropped: &[SnapshotId], pipeline: &Path) -> String {
    let Some(first) = dropped.first() else { return String::new() };
    let ids: Vec<&str> = dropped.iter().map(SnapshotId::as_str).collect();
    format!(
        "passed over, for dropped: {}; `ratoon run {} --force --snapshot {first}` takes {first} in again\n",
        ids.join(", "),
        pipeline.display()
    )
}

/// A run as it is told to a program. `line`: how it went.
#[must_use]
pub(crate) fn told(pipeline: &str, line: &Value, problems: &[Seen], alerts: usize) -> Value {
    let mut summary = json!({"pipeline": pipeline, "problems": problems, "alerts": alerts});
    if let (Some(summary), Some(line)) = (summary.as_object_mut(), line.as_object()) {
        summary.extend(line.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    summary
}

/// Stages as a list of words.
pub(super) fn stage_names(stages: &[StageId]) -> String {
    stages.iter().map(|stage| stage.as_str()).collect::<Vec<_>>().join(", ")
}

/// What recycling saved, as a line without its end; `None` if it saved nothing.
pub(super) fn saved(saved: &Saved) -> Option<String> {
    let Saved { bytes, of_bytes, seconds, price } = *saved;
    if bytes == 0 {
        return None;
    }
    let mut line = format!("recycling saved {} of {} of extraction", size(bytes), size(of_bytes));
    if seconds >= 0.01 {
        let _ = write!(line, ", about {seconds:.2} s of work");
    } else if seconds <= -0.01 {
        let _ = write!(line, ", though it took about {:.2} s more work", -seconds);
    }
    if let Some(price) = price {
        let _ = write!(line, ", {price:.4} in price");
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AlertKind;
    use crate::tables::delta::Alert;

    fn step_of(stage: StageId) -> Step {
        Step {
            stage,
            snapshot: SnapshotId::new("n1").unwrap(),
            tables: [("pages".to_owned(), 3)].into(),
            seconds: Some(1.0),
            summary: serde_json::Value::Null,
            archive_bytes: (stage == StageId::Ingest).then_some(1_500),
            saved: (stage == StageId::Extract).then_some(Saved {
                bytes: 7,
                of_bytes: 9,
                seconds: 0.0,
                price: Some(0.5),
            }),
        }
    }

    fn text(of: Summary) -> String {
        let telling = Telling { steps: true, dry_run: false };
        summary(&Summary { store: "out".into(), ..of }, Path::new("p.toml"), telling)
    }

    #[test]
    fn steps_say_what_came_of_them() {
        let done = vec![step_of(StageId::Ingest), step_of(StageId::Extract)];
        assert_eq!(
            text(Summary { done, ..Summary::default() }),
            "ingest n1: 1.50 kB, 3 pages (1.00 s)\nextract n1, 3 pages (1.00 s)\n  recycling saved 7 B of 9 B of extraction, \
             0.5000 in price\ntables in out\n"
        );
        assert_eq!(text(Summary { skipped: 1, ..Summary::default() }), "nothing to do: 1 snapshot done in out\n");
        assert_eq!(text(Summary { skipped: 2, ..Summary::default() }), "nothing to do: 2 snapshots done in out\n");
    }

    #[test]
    fn a_run_has_a_line_for_each_snapshot() {
        let done = vec![step_of(StageId::Ingest), step_of(StageId::Extract)];
        let of = Summary { done, store: "out".into(), ..Summary::default() };
        let text = summary(&of, Path::new("p.toml"), Telling::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1].split_whitespace().collect::<Vec<_>>(),
            ["n1", "-", "3", "-", "-", "-", "2", "B", "7", "B", "2.00"]
        );
        assert_eq!(lines[2], "recycling saved 7 B of 9 B of extraction, 0.5000 in price");
        assert_eq!(lines[3], "tables in out");
        assert!(lines[4].starts_with("next: `ratoon delta p.toml` shows"), "{text}");
        // Only after the first night of a store.
        let text = summary(&Summary { skipped: 1, ..of }, Path::new("p.toml"), Telling::default());
        assert_eq!(text.lines().last(), Some("tables in out"));
    }

    #[test]
    fn alerts_come_by_night_and_page() {
        let fired = |night: &str, url: &str| Fired {
            snapshot: SnapshotId::new(night).unwrap(),
            alert: Alert {
                watch: "w".into(),
                url: Some(url.to_owned()),
                tuple: None,
                kind: AlertKind::NewText,
                text: None,
                old_value: None,
                value: None,
            },
        };
        let alerts = vec![fired("n1", "http://c/"), fired("n1", "http://a/"), fired("n2", "http://b/")];
        let text = text(Summary { done: vec![step_of(StageId::Delta)], alerts, ..Summary::default() });
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("alert")).collect();
        let by_page =
            ["alert n1: w new_text http://a/", "alert n1: w new_text http://c/", "alert n2: w new_text http://b/"];
        assert_eq!(lines, by_page);
    }

    #[test]
    fn stages_that_wait_are_named_with_the_command_that_does_them() {
        let of = |waiting: &[StageId]| {
            let done = vec![step_of(StageId::Plan)];
            text(Summary { done, waiting: waiting.to_vec(), ..Summary::default() })
        };
        assert!(
            of(&[StageId::Extract, StageId::Delta]).contains("\nextract, delta wait; `ratoon run p.toml` does them\n")
        );
        assert!(of(&[StageId::Delta]).contains("\ndelta waits; `ratoon run p.toml` does it\n"));
        assert!(!of(&[]).contains("wait"));
    }

    #[test]
    fn an_alert_stays_on_its_line() {
        let alert = Alert {
            watch: "w".into(),
            url: Some("http://a/".to_owned()),
            tuple: None,
            kind: AlertKind::NewText,
            text: Some("a\n\u{1b}[2Jb".to_owned()),
            old_value: None,
            value: Some(0.5),
        };
        let fired = |_| Fired { snapshot: SnapshotId::new("n1").unwrap(), alert: alert.clone() };
        let alerts = (0..7).map(fired).collect();
        let text = text(Summary { done: vec![step_of(StageId::Delta)], alerts, ..Summary::default() });
        assert!(text.contains("alert n1: w new_text http://a/ 0.500 a  [2Jb\n"), "{text}");
        assert!(text.contains("and 2 more in the table alerts"), "{text}");
    }
}
