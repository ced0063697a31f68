//! Programs that are told of alerts: each alert as one JSON object on standard input.
//!
//! A program that fails or takes too long is reported and never stops the run. Which watches were told of which
//! snapshot is kept in `_meta/told`, so that neither a rerun nor `--force` tells them again; a run that is killed while
//! telling repeats at most the watch it was at.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::deltas::watches::Notify;
use crate::model::SnapshotId;
use crate::run::stage::Context;
use crate::tables::delta::Alert;

/// After so many failures in a row a program is left alone for this snapshot.
const FAILURES: usize = 3;
/// How much of a program's complaint is shown.
const COMPLAINT: u64 = 2_000;

/// Tells the programs of all watches that fired and were not told yet.
pub(super) fn tell(context: &Context<'_>, snapshot: &SnapshotId, alerts: &[Alert]) -> Result<()> {
    let name = format!("told/{snapshot}.json");
    let mut told: Vec<String> = context.store.meta_file(&name)?.unwrap_or_default();
    let folder = context.pipeline.path.parent().filter(|dir| !dir.as_os_str().is_empty());
    for watch in &context.pipeline.watches {
        let Some(notify) = &watch.notify else { continue };
        let fired: Vec<&Alert> = alerts.iter().filter(|alert| alert.watch == watch.name).collect();
        if fired.is_empty() || told.iter().any(|name| **name == *watch.name) {
            continue;
        }
        let mut failures = 0;
        for (i, alert) in fired.iter().enumerate() {
            match run(notify, folder.unwrap_or(Path::new(".")), &alert.to_json(snapshot)) {
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
        told.push(watch.name.to_string());
        context.store.write_meta_file(&name, &told)?;
    }
    Ok(())
}

fn run(notify: &Notify, folder: &Path, alert: &serde_json::Value) -> Result<(), String> {
    let mut child = Command::new(&notify.command[0])
        .args(&notify.command[1..])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start it: {error}"))?;
    let line = format!("{alert}\n");
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input must not hold up the run.
        thread::spawn(move || {
            let _ = stdin.write_all(line.as_bytes());
        });
    }
    let (said, complaint) = channel();
    if let Some(mut stderr) = child.stderr.take() {
        thread::spawn(move || {
            let mut words = Vec::new();
            let _ = stderr.by_ref().take(COMPLAINT).read_to_end(&mut words);
            let _ = said.send(String::from_utf8_lossy(&words).trim().to_owned());
            // The rest is read and dropped, so that a full pipe does not block the program.
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        });
    }
    let until = Instant::now() + notify.timeout;
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                let words = complaint.recv_timeout(Duration::from_millis(200)).unwrap_or_default();
                let last = words.lines().last().unwrap_or_default();
                return Err(if last.is_empty() { status.to_string() } else { format!("{status}: {last}") });
            }
            Ok(None) if Instant::now() >= until => {
                // An error means that the program has ended already.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no end after {} s; stopped", notify.timeout.as_secs()));
            }
            Ok(None) => thread::sleep(pause),
            Err(error) => return Err(error.to_string()),
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, timeout: Duration) -> Result<(), String> {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        run(&Notify { command, timeout }, Path::new("."), &serde_json::json!({"text": "x".repeat(200_000)}))
    }

    #[test]
    fn failures_say_why() {
        let long = Duration::from_secs(20);
        assert_eq!(sh("cat > /dev/null", long), Ok(()));
        assert_eq!(sh("exit 0", long), Ok(()));
        assert_eq!(sh("echo no such room >&2; exit 3", long).unwrap_err(), "exit status: 3: no such room");
        assert_eq!(sh("yes >&2 & sleep 0.1; kill $!; cat > /dev/null; exit 1", long).unwrap_err(), "exit status: 1: y");
        assert!(sh("exec sleep 60", Duration::from_millis(100)).unwrap_err().contains("no end after"));
        let missing = Notify { command: vec!["no-such-program-here".into()], timeout: long };
        assert!(run(&missing, Path::new("."), &serde_json::Value::Null).unwrap_err().contains("cannot start"));
    }
}
