//! What `ratoon check` found, and what repairs it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::terminal::size;
use crate::model::{SnapshotId, StageId};

/// A store that was looked at.
#[derive(Debug, Default)]
pub(crate) struct Integrity {
    pub files: u64,
    pub bytes: u64,
    pub harmed: Vec<HarmedFile>,
}

/// A file that is not what its manifest says.
#[derive(Clone, Debug)]
pub(crate) struct HarmedFile {
    pub table: String,
    pub snapshot: SnapshotId,
    pub stage: StageId,
    /// `missing` or `damaged`.
    pub harm: &'static str,
    /// The command that repairs it.
    pub repair: Result<String, String>,
    /// It was harmed, and has been made again.
    pub repaired: bool,
}

impl Integrity {
    #[must_use]
    pub(crate) fn is_sound(&self) -> bool {
        self.harmed.iter().all(|file| file.repaired)
    }

    #[must_use]
    pub(crate) fn json(&self) -> Value {
        let harmed = |file: &HarmedFile| {
            json!({"table": file.table, "snapshot": file.snapshot, "stage": file.stage, "harm": file.harm,
                   "repair": file.repair.as_ref().ok(), "why_not": file.repair.as_ref().err(), "repaired": file.repaired})
        };
        let harmed: Vec<Value> = self.harmed.iter().map(harmed).collect();
        json!({"files": self.files, "bytes": self.bytes, "sound": self.is_sound(), "harmed": harmed})
    }

    #[must_use]
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for file in &self.harmed {
            let HarmedFile { table, snapshot, harm, repair, repaired, .. } = file;
            let _ = match repair {
                _ if *repaired => writeln!(text, "{table} of {snapshot}: was {harm}, has been made again"),
                Ok(command) => writeln!(text, "{table} of {snapshot}: {harm}; `{command}` repairs it"),
                Err(why) => writeln!(text, "{table} of {snapshot}: {harm}; {why}"),
            };
        }
        let bad = self.harmed.iter().filter(|file| !file.repaired).count();
        let _ = match bad {
            0 => writeln!(text, "{} files, {}: all as they were written", self.files, size(self.bytes)),
            _ => writeln!(text, "{} files, {}: {bad} are not as they were written", self.files, size(self.bytes)),
        };
        text
    }
}
