//! Programs that are told of alerts: each alert as one JSON object on standard input.
//!
//! A program that fails or takes too long is reported and never stops the run. Which alerts of a snapshot were told is
//! kept in `_meta/told`, so that neither a rerun nor `--force` tells them again, and pages that are extracted at a second
//! try only tell what is new; a run that is killed while telling repeats at most the watch it was at.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::model::{Digest, SnapshotId};
use crate::run::program;
use crate::run::stage::Context;
use crate::tables::delta::Alert;

/// After so many failures in a row a program is left alone for this snapshot.
const FAILURES: usize = 3;

/// Tells the programs of all watches that fired and were not told yet.
pub(super) fn tell(context: &Context<'_>, snapshot: &SnapshotId, alerts: &[Alert]) -> Result<()> {
    let name = format!("told/{snapshot}.json");
    let mut told: Told = context.store.meta_file(&name)?.unwrap_or_default();
    let folder = context.pipeline.path.parent().filter(|dir| !dir.as_os_str().is_empty());
    for watch in &context.pipeline.watches {
        let Some(notify) = &watch.notify else { continue };
        let fired = alerts.iter().filter(|alert| alert.watch == watch.name).map(|alert| alert.to_json(snapshot));
        let fired = not_told(fired, told.entry(watch.name.to_string()).or_default());
        if fired.is_empty() {
            continue;
        }
        let mut failures = 0;
        for (i, alert) in fired.iter().enumerate() {
            match program::tell(&notify.command, notify.timeout, folder.unwrap_or(Path::new(".")), alert) {
                Ok(()) => failures = 0,
                Err(problem) => {
                    log::warn!("watch '{}': command '{}': {problem}", watch.name, notify.command[0]);
                    failures += 1;
                }
            }
            let left = fired.len() - i - 1;
            if failures == FAILURES && left > 0 {
                log::warn!(
                    "watch '{}': command failed {FAILURES} times; {left} more alerts are only in the table",
                    watch.name
                );
                break;
            }
        }
        context.store.write_meta_file(&name, &told)?;
    }
    Ok(())
}

/// By watch, the digest of each alert that was told, and how often.
type Told = BTreeMap<String, BTreeMap<Digest, usize>>;

/// The alerts that were not told yet; from now on they are.
fn not_told(
    alerts: impl Iterator<Item = serde_json::Value>,
    told: &mut BTreeMap<Digest, usize>,
) -> Vec<serde_json::Value> {
    let mut seen: BTreeMap<Digest, usize> = BTreeMap::new();
    let mut new = Vec::new();
    for alert in alerts {
        let digest = Digest::of(alert.to_string().as_bytes());
        let (seen, told) = (seen.entry(digest).or_default(), told.entry(digest).or_default());
        *seen += 1;
        if *seen > *told {
            *told = *seen;
            new.push(alert);
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_told_as_often_as_it_came_and_not_again() {
        let alerts = |names: &[&str]| names.iter().map(|name| serde_json::json!({"text": name})).collect::<Vec<_>>();
        let mut told = BTreeMap::new();
        assert_eq!(not_told(alerts(&["a", "b", "a"]).into_iter(), &mut told), alerts(&["a", "b", "a"]));
        assert_eq!(not_told(alerts(&["a", "c", "b", "a", "a"]).into_iter(), &mut told), alerts(&["c", "a"]));
        assert!(not_told(alerts(&["c", "b"]).into_iter(), &mut told).is_empty());
    }
}
