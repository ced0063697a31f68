//! Nights as the report shows them beside each other.
//!
//! Of each that is a handful of numbers from four tables. A run notes them beside the store, so that its report costs the
//! tables of the newest night, not those of all that it shows. Nothing depends on the note: a night whose tables are not
//! those that were read then, or that is not in it, is read again.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::manifests::{Extracted, Saved};
use crate::model::{Digest, SnapshotId};
use crate::store::Store;
use crate::store::manifest::SnapshotDone;
use crate::tables::close::SnapshotRow;
use crate::tables::plan::{PlanCost, PlanRow};
use crate::tables::record::{Record, Table as _};
use crate::tables::stats::{UpdateMoment, UpdateRow};

const FILE: &str = "nights";
/// Raised when a note says other things.
const VERSION: u32 = 1;
/// Updates of a night that are noted; where there are more, they are read each time.
const MOST_UPDATES: usize = 256;

/// One night.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct PastNight {
    /// Identifies the tables that it was read from.
    tables: Digest,
    pub(super) row: SnapshotRow,
    pub(super) predicted_s: Option<f64>,
    pub(super) measured_s: Option<f64>,
    /// `None` if nothing was extracted.
    pub(super) saved: Option<Saved>,
    /// `None` if there are many.
    updates: Option<Vec<UpdateMoment>>,
}

/// All that are noted, by snapshot.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Past(BTreeMap<SnapshotId, PastNight>);

impl Past {
    /// A damaged note is as good as none.
    pub(super) fn noted(store: &Store) -> Self {
        let noted: Option<(u32, Self)> = store.noted(FILE);
        noted.filter(|(version, _)| *version == VERSION).map(|(_, past)| past).unwrap_or_default()
    }

    /// A night, from the note if that fits.
    pub(super) fn night(&self, store: &Store, done: &SnapshotDone) -> Result<PastNight> {
        let tables = [SnapshotRow::NAME, PlanRow::NAME, PlanCost::NAME, UpdateRow::NAME];
        let digests = tables.map(|table| done.table(table).map(|written| written.digest.to_string()));
        let tables = Digest::of(format!("{digests:?}").as_bytes());
        match self.0.get(&done.snapshot.id) {
            Some(night) if night.tables == tables => Ok(night.clone()),
            _ => PastNight::read(store, &done.snapshot.id, tables),
        }
    }

    /// Notes the nights that a report shows, if that says anything new.
    pub(super) fn note(&self, store: &Store, nights: impl Iterator<Item = (SnapshotId, PastNight)>) -> Result<()> {
        let nights = Self(nights.collect());
        let said = |past: &Self| past.0.iter().map(|(id, night)| (id.clone(), night.tables)).collect::<Vec<_>>();
        if said(self) == said(&nights) {
            return Ok(());
        }
        Ok(store.note(FILE, &(VERSION, nights))?)
    }
}

impl PastNight {
    fn read(store: &Store, snapshot: &SnapshotId, tables: Digest) -> Result<Self> {
        fn rows<R: Record>(store: &Store, table: &str, snapshot: &SnapshotId) -> Result<Vec<R>> {
            Ok(store.partition(table, snapshot)?.all_rows()?)
        }
        let row = rows::<SnapshotRow>(store, SnapshotRow::NAME, snapshot)?.pop();
        let row = row.with_context(|| format!("snapshot {snapshot} has no row in {}", SnapshotRow::NAME))?;
        let extracted = store.manifest::<Extracted>(snapshot)?;
        let (mut predicted_s, mut measured_s) = (None, None);
        if extracted.is_some() {
            let plans: Vec<PlanRow> = rows(store, PlanRow::NAME, snapshot)?;
            predicted_s =
                plans.iter().find(|plan| plan.extractor.is_none() && plan.chosen).map(|plan| plan.predicted_s);
            let costs: Vec<PlanCost> = rows(store, PlanCost::NAME, snapshot)?;
            measured_s = (!costs.is_empty()).then(|| super::costs::measured(&costs).seconds());
        }
        let updates: Vec<UpdateMoment> = rows(store, UpdateRow::NAME, snapshot)?;
        Ok(Self {
            tables,
            row,
            predicted_s,
            measured_s,
            saved: extracted.map(|extracted| extracted.summary.saved),
            updates: (updates.len() <= MOST_UPDATES).then_some(updates),
        })
    }

    /// When pages changed.
    pub(super) fn updates(&self, store: &Store, snapshot: &SnapshotId) -> Result<Vec<UpdateMoment>> {
        match &self.updates {
            Some(updates) => Ok(updates.clone()),
            None => Ok(store.partition(UpdateRow::NAME, snapshot)?.all_rows()?),
        }
    }
}
