//! How the last run went and what the newest snapshot brought, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::model::StageId;

/// What is measured.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// The name of the pipeline file, so that several can be told apart.
    pub pipeline: String,
    /// In seconds since 1970.
    pub run_end: f64,
    pub run_seconds: f64,
    pub exit_code: u8,
    pub stage_seconds: BTreeMap<StageId, f64>,
    /// Of all problems of the snapshots that the run worked on that nobody accepted, by kind.
    pub problems: BTreeMap<&'static str, u64>,
    /// `None` if there is no snapshot, or the store cannot be read.
    pub newest: Option<Newest>,
}

/// The newest snapshot in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Newest {
    /// In seconds since 1970.
    pub time: f64,
    pub snapshots: u64,
    pub captures: u64,
    pub pages: u64,
    pub added: u64,
    pub modified: u64,
    pub deleted: u64,
    pub suspects: u64,
    pub rejects: u64,
    pub failed_extractions: u64,
    pub deferred_extractions: u64,
    pub incomplete: bool,
}

impl Metrics {
    #[must_use]
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let pipeline = format!("pipeline=\"{}\"", escaped(&self.pipeline));
        let mut gauge = |name: &str, help: &str, values: &[(String, f64)]| {
            let _ = writeln!(text, "# HELP ratoon_{name} {help}\n# TYPE ratoon_{name} gauge");
            for (labels, value) in values {
                let comma = if labels.is_empty() { "" } else { "," };
                let _ = writeln!(text, "ratoon_{name}{{{pipeline}{comma}{labels}}} {value}");
            }
        };
        let one = |value: f64| vec![(String::new(), value)];
        gauge("last_run_timestamp_seconds", "When the last run ended.", &one(self.run_end));
        gauge("last_run_duration_seconds", "How long the last run took.", &one(self.run_seconds));
        gauge(
            "last_run_exit_code",
            "0 done, 1 failed, 2 wrong pipeline file, 3 done with a problem.",
            &one(f64::from(self.exit_code)),
        );
        let stages: Vec<_> =
            self.stage_seconds.iter().map(|(stage, seconds)| (format!("stage=\"{stage}\""), *seconds)).collect();
        gauge("last_run_stage_seconds", "How long each stage took.", &stages);
        #[expect(clippy::cast_precision_loss, reason = "counts for people")]
        let number = |n: u64| n as f64;
        let problems: Vec<_> = self.problems.iter().map(|(kind, n)| (format!("kind=\"{kind}\""), number(*n))).collect();
        gauge("last_run_problems", "Problems of the snapshots that the last run worked on.", &problems);
        let Some(newest) = self.newest else { return text };
        gauge("newest_snapshot_timestamp_seconds", "Time of the newest snapshot.", &one(newest.time));
        gauge("snapshots", "Snapshots in the store.", &one(number(newest.snapshots)));
        gauge(
            "newest_snapshot_incomplete",
            "1 if the newest crawl did not come to its end.",
            &one(f64::from(u8::from(newest.incomplete))),
        );
        for (name, help, value) in [
            ("captures", "Captures of the newest snapshot.", newest.captures),
            ("pages", "Pages of the newest snapshot.", newest.pages),
            ("added", "Pages that came with the newest snapshot.", newest.added),
            ("modified", "Pages that changed in the newest snapshot.", newest.modified),
            ("deleted", "Pages that went with the newest snapshot.", newest.deleted),
            ("suspects", "Captures of the newest snapshot that are no pages.", newest.suspects),
            ("rejects", "What could not be used of the newest snapshot.", newest.rejects),
            ("failed_extractions", "Extractions of the newest snapshot that failed.", newest.failed_extractions),
            ("deferred_extractions", "Extractions of the newest snapshot that wait.", newest.deferred_extractions),
        ] {
            gauge(&format!("newest_snapshot_{name}"), help, &one(number(value)));
        }
        text
    }
}

/// A label's value as the format wants it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_comment_or_a_sample() {
        let metrics = Metrics {
            pipeline: "my \"own\".toml".into(),
            exit_code: 3,
            stage_seconds: [(StageId::Ingest, 1.5)].into(),
            problems: [("suspects", 2)].into(),
            newest: Some(Newest { pages: 7, ..Newest::default() }),
            ..Metrics::default()
        };
        let text = metrics.text();
        assert!(text.contains("ratoon_last_run_exit_code{pipeline=\"my \\\"own\\\".toml\"} 3\n"), "{text}");
        assert!(text.contains(",stage=\"ingest\"} 1.5\n") && text.contains(",kind=\"suspects\"} 2\n"), "{text}");
        assert!(text.contains("ratoon_newest_snapshot_pages{"), "{text}");
        for line in text.lines() {
            let value = line.rsplit(' ').next().unwrap();
            assert!(line.starts_with("# ") || value.parse::<f64>().is_ok(), "{line}");
        }
        assert_eq!(text.matches("# TYPE").count(), text.lines().filter(|line| line.starts_with("# HELP")).count());
    }
}
