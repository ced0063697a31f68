//! Whether the files of a store are what their manifests say.

use std::collections::{HashMap, HashSet};

use fs_err as fs;

use super::parquet::Written;
use super::{Result, Store};
use crate::model::closed_set::closed_set;
use crate::model::{Digest, SnapshotId, StageId};

closed_set! {
    /// What is wrong with a file.
    pub(crate) enum Harm: "harm" {
        /// There is no file.
        Missing = "missing",
        /// Its bytes are not those that were written.
        Damaged = "damaged",
    }
}

/// A partition whose file is not what its manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Harmed {
    pub(crate) snapshot: SnapshotId,
    pub(crate) stage: StageId,
    pub(crate) table: String,
    pub(crate) harm: Harm,
}

/// One of several parts of all files, such as the third of thirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subset {
    /// From 1.
    pub(crate) part: u64,
    pub(crate) of: u64,
}

impl Subset {
    pub(crate) const ALL: Self = Self { part: 1, of: 1 };

    /// Reads `3/30`.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (part, of) = text.split_once('/')?;
        let (part, of) = (part.trim().parse().ok()?, of.trim().parse().ok()?);
        (1..=of).contains(&part).then_some(Self { part, of })
    }

    /// Whether something of this name belongs to it. Every name belongs to one part.
    #[must_use]
    pub(crate) fn has(self, name: &str) -> bool {
        self.of == 1 || Digest::of(name.as_bytes()).low64() % self.of + 1 == self.part
    }
}

/// A file that a manifest names.
#[derive(Clone, Debug)]
pub(crate) struct NamedFile {
    pub(crate) snapshot: SnapshotId,
    pub(crate) stage: StageId,
    pub(crate) table: String,
    written: Written,
}

impl NamedFile {
    /// Its size, as it was written.
    pub(crate) fn bytes(&self) -> u64 {
        self.written.bytes
    }

    fn harmed(&self, harm: Harm) -> Harmed {
        Harmed { snapshot: self.snapshot.clone(), stage: self.stage, table: self.table.clone(), harm }
    }
}

impl Store {
    /// All files that manifests name, and that belong to a subset.
    pub(crate) fn named_files(&self, subset: Subset) -> Result<Vec<NamedFile>> {
        let mut files = Vec::new();
        for done in self.all_done()?.iter() {
            for (stage, manifest) in &done.stages {
                for (table, written) in manifest.tables.iter().filter(|(_, written)| written.bytes > 0) {
                    if subset.has(&format!("{table}/{}", done.snapshot.id)) {
                        let (snapshot, table) = (done.snapshot.id.clone(), table.clone());
                        files.push(NamedFile { snapshot, stage: *stage, table, written: *written });
                    }
                }
            }
        }
        Ok(files)
    }

    /// Compares a file with its digest; `None` if it is what was written.
    pub(crate) fn harm(&self, file: &NamedFile) -> Result<Option<Harmed>> {
        let path = self.partition_file(&file.table, &file.snapshot);
        let opened = match fs::File::open(&path) {
            Ok(opened) => opened,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Some(file.harmed(Harm::Missing))),
            Err(error) => return Err(error.into()),
        };
        if opened.metadata()?.len() != file.written.bytes {
            return Ok(Some(file.harmed(Harm::Damaged)));
        }
        let mut hasher = blake3::Hasher::new();
        // A disk that cannot read it any more is harm, too.
        let read = hasher.update_reader(opened).is_ok();
        Ok((!read || Digest::finish(&hasher) != file.written.digest).then(|| file.harmed(Harm::Damaged)))
    }

    /// Files that manifests name and that are not there, found without opening any.
    pub(crate) fn missing(&self) -> Result<Vec<Harmed>> {
        let mut there: HashMap<String, HashSet<SnapshotId>> = HashMap::new();
        let mut missing = Vec::new();
        for file in self.named_files(Subset::ALL)? {
            if !there.contains_key(&file.table) {
                there.insert(file.table.clone(), self.partitions(&file.table)?.into_iter().collect());
            }
            if !there[&file.table].contains(&file.snapshot) {
                missing.push(file.harmed(Harm::Missing));
            }
        }
        Ok(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_in_one_part() {
        for i in 0..200 {
            let name = format!("pages/{i}");
            assert_eq!((1..=30).filter(|&part| Subset { part, of: 30 }.has(&name)).count(), 1);
            assert!(Subset::ALL.has(&name));
        }
        assert_eq!(Subset::parse("3/30"), Some(Subset { part: 3, of: 30 }));
        for wrong in ["", "3", "0/3", "4/3", "a/3", "1/0", "-1/3"] {
            assert_eq!(Subset::parse(wrong), None, "{wrong}");
        }
    }
}
