//! Which stages build on which: read off what each declares to read.

use std::collections::BTreeSet;

use super::stage::Stage;
use crate::model::StageId;
use crate::store::view::Read;

/// The stages of a program and what follows from their declarations.
#[derive(Clone, Copy)]
pub struct Graph {
    stages: &'static [&'static dyn Stage],
}

impl Graph {
    /// Of all stages, in the order in which a snapshot goes through them.
    #[must_use]
    pub fn new(stages: &'static [&'static dyn Stage]) -> Self {
        Self { stages }
    }

    /// All stages, in order.
    #[must_use]
    pub fn stages(&self) -> &'static [&'static dyn Stage] {
        self.stages
    }

    /// The stages up to and including `last`; all without.
    #[must_use]
    pub fn up_to(&self, last: Option<StageId>) -> &'static [&'static dyn Stage] {
        let last = last.and_then(|id| self.stages.iter().position(|stage| stage.id() == id));
        last.map_or(self.stages, |last| &self.stages[..=last])
    }

    /// A stage and all that build on it, in order: what has to be done again when it is.
    #[must_use]
    pub fn from(&self, first: StageId) -> Vec<&'static dyn Stage> {
        let mut again = BTreeSet::from([first]);
        // A stage only reads what earlier ones left, so that one pass finds all.
        for stage in self.stages {
            if stage.reads().iter().filter_map(|read| self.writer(*read)).any(|writer| again.contains(&writer)) {
                again.insert(stage.id());
            }
        }
        self.stages.iter().copied().filter(|stage| again.contains(&stage.id())).collect()
    }

    /// The stage that what is read comes from; `None` where a change there makes nothing wrong.
    fn writer(&self, read: Read) -> Option<StageId> {
        match read {
            Read::Table(table) => {
                self.stages.iter().find(|stage| stage.writes().contains(&table)).map(|stage| stage.id())
            }
            Read::Index(stage) | Read::Manifest(stage) => Some(stage),
            Read::Derived(_) | Read::Measured(_) | Read::MeasuredTable(_) => None,
        }
    }
}
