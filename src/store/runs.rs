//! What the clock says of runs: one line a run, for people and their monitoring. No result depends on it.

use std::collections::BTreeMap;
use std::io::Write as _;

use fs_err as fs;
use serde::Serialize;

use super::{Result, Store, StoreError};
use crate::model::StageId;

/// A run that ended.
#[derive(Debug, Serialize)]
pub(crate) struct RunLine {
    pub(crate) start: String,
    pub(crate) end: String,
    /// By stage, over all snapshots.
    pub(crate) seconds: BTreeMap<StageId, f64>,
    /// Snapshots that something was done on.
    pub(crate) snapshots: usize,
    pub(crate) exit_code: u8,
    pub(crate) error: Option<String>,
    pub(crate) version: &'static str,
    /// The most memory that the program held.
    pub(crate) peak_memory_bytes: Option<u64>,
}

impl Store {
    /// Adds a run to `_meta/runs.jsonl`.
    pub(crate) fn note_run(&self, run: &RunLine) -> Result<()> {
        let path = self.meta().join("runs.jsonl");
        let mut line = serde_json::to_vec(run).map_err(|source| StoreError::Json { path: path.clone(), source })?;
        line.push(b'\n');
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&path)?;
        Ok(file.write_all(&line)?)
    }
}

/// The most memory that this process has held, where the system tells.
pub(crate) fn peak_memory_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
