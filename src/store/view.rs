//! What a stage reads: declared, and held to.
//!
//! A stage is given the store as a view that knows what the stage declares. Reading anything else is an error, so the
//! declarations cannot lie by leaving something out; the view also notes what was read, so that a test can tell when
//! they name too much. What a stage writes itself it may always read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::manifest::Done;
use super::{Result, Store, StoreError};
use crate::model::{Digest, SnapshotId, StageId};

/// One thing that a stage reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// Rows of a table, of this snapshot or earlier ones. Tables of extractors and queries by their common folder.
    Table(&'static str),
    /// Rows of a table that follow from what the stage reads anyway: while that is the same, they are too, whenever they
    /// are written again.
    Derived(&'static str),
    /// What another stage keeps by URL or digest.
    Index(StageId),
    /// What another stage left, and the result depends on.
    Manifest(StageId),
    /// What another stage measured on earlier nights: it guides, but no result becomes wrong when it changes.
    Measured(StageId),
    /// How large a table of an earlier night is, which guides likewise.
    MeasuredTable(&'static str),
}

/// A stage's view of the store.
#[derive(Clone, Debug)]
pub(super) struct View {
    stage: StageId,
    reads: &'static [Read],
    writes: &'static [&'static str],
    seen: Arc<Mutex<BTreeSet<Read>>>,
}

impl View {
    fn note(&self, is_it: impl Fn(&Read) -> bool, own: bool, what: impl FnOnce() -> String) -> Result<()> {
        let declared: Vec<Read> = self.reads.iter().copied().filter(is_it).collect();
        if declared.is_empty() && !own {
            return Err(StoreError::Undeclared { stage: self.stage, what: what() });
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).extend(declared);
        Ok(())
    }
}

impl Store {
    /// The store as a stage sees it.
    #[must_use]
    pub fn for_stage(&self, stage: StageId, reads: &'static [Read], writes: &'static [&'static str]) -> Self {
        Self { view: Some(View { stage, reads, writes, seen: Arc::default() }), ..self.clone() }
    }

    /// The lineages of what the stage of this view reads of a snapshot.
    pub(super) fn made_of(&self, snapshot: &SnapshotId) -> Result<BTreeMap<StageId, Digest>> {
        let (Some(view), Some(done)) = (&self.view, self.snapshot_done(snapshot)?) else { return Ok(BTreeMap::new()) };
        let writes = |stage: &Done, table: &str| {
            stage.tables.keys().any(|name| name == table || name.split('/').next() == Some(table))
        };
        let mut made_of = BTreeMap::new();
        for read in view.reads {
            let stage = match read {
                Read::Manifest(stage) | Read::Index(stage) => Some(*stage),
                Read::Table(table) => done.stages.iter().find(|(_, done)| writes(done, table)).map(|(stage, _)| *stage),
                Read::Derived(_) | Read::Measured(_) | Read::MeasuredTable(_) => None,
            };
            if let Some((stage, done)) = stage.and_then(|stage| done.stages.get_key_value(&stage)) {
                made_of.insert(*stage, done.lineage);
            }
        }
        made_of.remove(&view.stage);
        Ok(made_of)
    }

    /// Whether what a stage left was made of what is there now: of the same snapshot, and of the one before it.
    pub(crate) fn is_up_to_date(&self, stage: StageId, done: &Done, before: Option<&SnapshotId>) -> Result<bool> {
        for (of, lineage) in &done.made_of {
            if self.done(*of, &done.snapshot)?.is_none_or(|now| now.lineage != *lineage) {
                return Ok(false);
            }
        }
        match (done.follows, before) {
            (Some(lineage), Some(before)) => Ok(self.done(stage, before)?.is_some_and(|now| now.lineage == lineage)),
            // What came before was pruned, or there never was anything: then nothing can have changed.
            _ => Ok(true),
        }
    }

    /// The store without a view.
    #[must_use]
    pub(crate) fn unrestricted(&self) -> Self {
        Self { view: None, ..self.clone() }
    }

    /// What was read through this view, of what it declares.
    #[must_use]
    pub fn seen_reads(&self) -> BTreeSet<Read> {
        let seen = self.view.as_ref().map(|view| &view.seen);
        seen.map(|seen| seen.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default()
    }

    pub(super) fn note_table(&self, table: &str) -> Result<()> {
        let Some(view) = &self.view else { return Ok(()) };
        let folder = table.split('/').next().unwrap_or(table);
        let is_it = |read: &Read| match read {
            Read::Table(name) | Read::Derived(name) | Read::MeasuredTable(name) => *name == folder,
            _ => false,
        };
        view.note(is_it, view.writes.contains(&folder) || view.writes.contains(&table), || format!("table {table}"))
    }

    /// Notes that a stage reads what `stage` keeps in the index.
    pub(crate) fn note_index(&self, stage: StageId) -> Result<()> {
        let Some(view) = &self.view else { return Ok(()) };
        let is_it = |read: &Read| *read == Read::Index(stage);
        view.note(is_it, stage == view.stage, || format!("index of {stage}"))
    }

    pub(super) fn note_manifest(&self, stage: StageId) -> Result<()> {
        let Some(view) = &self.view else { return Ok(()) };
        let is_it = |read: &Read| matches!(read, Read::Manifest(of) | Read::Measured(of) if *of == stage);
        view.note(is_it, stage == view.stage, || format!("manifest of {stage}"))
    }
}
