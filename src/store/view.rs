//! What a stage reads: declared, and held to.
//!
//! A stage is given the store as a view that knows what the stage declares. Reading anything else is an error, so the
//! declarations cannot lie by leaving something out; the view also notes what was read, so that a test can tell when
//! they name too much. What a stage writes itself it may always read.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::carried::Carried;
use super::{Result, Store, StoreError};
use crate::model::StageId;

/// One thing that a stage reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// Rows of a table, of this snapshot or earlier ones. Tables of extractors and queries by their common folder.
    Table(&'static str),
    /// What is carried along by another stage.
    Carried(Carried),
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

    /// What was read through this view, of what it declares.
    #[must_use]
    pub fn seen_reads(&self) -> BTreeSet<Read> {
        let seen = self.view.as_ref().map(|view| &view.seen);
        seen.map(|seen| seen.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default()
    }

    pub(super) fn note_table(&self, table: &str) -> Result<()> {
        let Some(view) = &self.view else { return Ok(()) };
        let folder = table.split('/').next().unwrap_or(table);
        let is_it = |read: &Read| matches!(read, Read::Table(name) | Read::MeasuredTable(name) if *name == folder);
        view.note(is_it, view.writes.contains(&folder), || format!("table {folder}"))
    }

    pub(super) fn note_carried(&self, what: Carried) -> Result<()> {
        let Some(view) = &self.view else { return Ok(()) };
        let is_it = |read: &Read| *read == Read::Carried(what);
        view.note(is_it, what.stage() == view.stage, || format!("carried file {what}"))
    }

    pub(super) fn note_manifest(&self, stage: StageId) -> Result<()> {
        let Some(view) = &self.view else { return Ok(()) };
        let is_it = |read: &Read| matches!(read, Read::Manifest(of) | Read::Measured(of) if *of == stage);
        view.note(is_it, stage == view.stage, || format!("manifest of {stage}"))
    }
}
