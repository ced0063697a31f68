//! What the clock says of runs: one line a run, for people and their monitoring. No result depends on it.

use std::collections::BTreeMap;
use std::io::Write as _;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{Result, Store, StoreError, read_if_there, remove_file_if_there};
use crate::model::{SnapshotId, StageId, Timestamp};

const FILE: &str = "runs.jsonl";
const UNDER_WAY: &str = "under_way.json";
const UNTOLD: &str = "untold.jsonl";

/// A run that ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunLine {
    pub(crate) start: String,
    pub(crate) end: String,
    /// By stage, over all snapshots.
    pub(crate) seconds: BTreeMap<StageId, f64>,
    /// Snapshots that something was done on.
    pub(crate) snapshots: usize,
    pub(crate) exit_code: u8,
    pub(crate) error: Option<String>,
    pub(crate) version: String,
    /// The most memory that the program held.
    pub(crate) peak_memory_bytes: Option<u64>,
    /// Pages that were extracted from scratch and compared after the run.
    pub(crate) verified: Option<VerifiedPart>,
}

/// How far the nightly verification has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerifiedPart {
    pub(crate) pages: u64,
    /// Extractors that differ.
    pub(crate) different: Vec<String>,
    pub(crate) seconds: f64,
    /// Where the next run goes on: the shard, and the URL after which.
    pub(crate) shard: u32,
    pub(crate) after: Option<String>,
    /// Seconds that were saved up.
    pub(crate) credit: f64,
    /// What it took to find the pages.
    pub(crate) listing_seconds: f64,
}

/// Snapshots that something was done on, and whether they were compared, so that there may be alerts.
pub(crate) type Untold = BTreeMap<SnapshotId, bool>;

/// A run that has not ended: it is under way, or it was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnderWay {
    pub(crate) start: String,
    pub(crate) process: u32,
}

/// Forgets the run that is under way when it ends, however it ends but by a kill.
pub(crate) struct Ending<'a>(&'a Store);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let _ = remove_file_if_there(&self.0.meta().join(UNDER_WAY));
    }
}

impl RunLine {
    /// Since 1970.
    pub(crate) fn start_seconds(&self) -> f64 {
        Timestamp::parse_rfc3339(&self.start).map_or(0.0, Timestamp::seconds)
    }

    /// Since 1970.
    pub(crate) fn end_seconds(&self) -> f64 {
        Timestamp::parse_rfc3339(&self.end).map_or(0.0, Timestamp::seconds)
    }
}

impl Store {
    /// A run begins, for the holder of the lock: gives the one before it if that was killed. No run fails for this.
    pub(crate) fn run_begins(&self, start: String) -> (Option<UnderWay>, Ending<'_>) {
        let before = self.under_way();
        let now = UnderWay { start, process: std::process::id() };
        if let Err(error) = self.write_meta_file(UNDER_WAY, &now) {
            log::debug!("cannot note that a run begins: {error}");
        }
        (before, Ending(self))
    }

    /// The run that has not ended, if there is one. What cannot be read is as good as none.
    pub(crate) fn under_way(&self) -> Option<UnderWay> {
        self.meta_file(UNDER_WAY).ok().flatten()
    }

    /// What runs have done and told nobody of: they do so at their end, and may be killed before.
    pub(crate) fn untold(&self) -> Untold {
        let bytes = read_if_there(&self.meta().join(UNTOLD)).ok().flatten().unwrap_or_default();
        let mut untold = Untold::new();
        let noted = |line: &[u8]| serde_json::from_slice::<(SnapshotId, bool)>(line).ok();
        for (snapshot, compared) in bytes.split(|byte| *byte == b'\n').filter_map(noted) {
            *untold.entry(snapshot).or_default() |= compared;
        }
        untold
    }

    /// Adds to that. No run fails for this.
    pub(crate) fn note_untold(&self, snapshot: &SnapshotId, compared: bool) {
        if let Err(error) = self.add_line(UNTOLD, &(snapshot, compared)) {
            log::debug!("cannot note what nobody was told of: {error}");
        }
    }

    /// Somebody was told of everything.
    pub(crate) fn all_is_told(&self) {
        if let Err(error) = remove_file_if_there(&self.meta().join(UNTOLD)) {
            log::debug!("cannot note that all is told: {error}");
        }
    }

    /// Adds a run to `_meta/runs.jsonl`.
    pub(crate) fn note_run(&self, run: &RunLine) -> Result<()> {
        self.add_line(FILE, run)
    }

    /// Adds a line to a file below `_meta`.
    fn add_line<T: Serialize>(&self, name: &str, value: &T) -> Result<()> {
        let path = self.meta().join(name);
        let mut line = serde_json::to_vec(value).map_err(|source| StoreError::Json { path: path.clone(), source })?;
        line.push(b'\n');
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&path)?;
        Ok(file.write_all(&line)?)
    }

    /// What the newest run says of which `of` says something. A line that cannot be read is left out: a crash may have
    /// cut it.
    pub(crate) fn last_run<T>(&self, of: impl Fn(RunLine) -> Option<T>) -> Result<Option<T>> {
        let bytes = read_if_there(&self.meta().join(FILE))?.unwrap_or_default();
        Ok(bytes.rsplit(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).find_map(of))
    }
}

/// The most memory that this process has held, where the system tells.
pub(crate) fn peak_memory_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
