//! What schedule knows of sources from earlier snapshots, in the index: the newest schedule of each, and its curve.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::model::{SnapshotId, StageId};
use crate::stages::follow::{Kept, Night, decode, encode};
use crate::store::Store;
use crate::store::index::{Index, Kind, Moment};
use crate::tables::record::Table as _;
use crate::tables::schedule::{RecallCurveRow, ScheduleRow};

/// What is kept of a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptSource {
    pub(super) schedule: ScheduleRow,
    pub(super) curve: Vec<RecallCurveRow>,
}

/// What is known of sources.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// As the snapshot before left it.
    pub(super) at: &'a Moment,
    /// As this snapshot leaves it.
    pub(super) index: &'a Index,
}

impl Known<'_> {
    /// What is kept of sources, in the order asked for.
    pub(super) fn of(&self, sources: &[&str]) -> Result<Vec<Option<KeptSource>>> {
        let found = self.at.get_many(Kind::Sources, sources)?.into_iter();
        found.map(|value| value.as_deref().map(decode).transpose()).collect()
    }

    /// Whether anything is kept of sources, in the order asked for.
    pub(super) fn are_known(&self, sources: &[&str]) -> Result<Vec<bool>> {
        Ok(self.at.get_many(Kind::Sources, sources)?.into_iter().map(|value| value.is_some()).collect())
    }

    /// All sources.
    pub(super) fn all(&self) -> Result<Vec<KeptSource>> {
        let mut values = Vec::new();
        self.at.scan(Kind::Sources, &[], &mut |_, value| {
            values.push(value.to_vec());
            Ok(true)
        })?;
        values.iter().map(|value| decode(value)).collect()
    }

    pub(super) fn put(&self, source: &KeptSource) -> Result<()> {
        Ok(self.index.put(Kind::Sources, source.schedule.source.clone().into_bytes(), encode(source)?)?)
    }
}

/// What schedule keeps in the index.
pub(crate) struct SourceSchedules;

impl SourceSchedules {
    /// Takes in the rows of a snapshot.
    fn take(store: &Store, index: &Index, snapshot: &SnapshotId) -> Result<()> {
        let (schedules, curves) =
            (store.partition(ScheduleRow::NAME, snapshot)?, store.partition(RecallCurveRow::NAME, snapshot)?);
        let moment = index.moment();
        let known = Known { at: &moment, index };
        for shard in 0..store.shards() {
            // Both tables have their sources in the same order.
            let mut points = curves.shard::<RecallCurveRow>(shard)?.into_iter().peekable();
            for schedule in schedules.shard::<ScheduleRow>(shard)? {
                let mut curve = Vec::new();
                while let Some(point) = points.next_if(|point| point.source == schedule.source) {
                    curve.push(point);
                }
                known.put(&KeptSource { schedule, curve })?;
            }
        }
        Ok(())
    }
}

impl Kept for SourceSchedules {
    const STAGE: StageId = StageId::Schedule;
    const FOLLOWS: StageId = StageId::Schedule;
    const KINDS: &'static [Kind] = &[Kind::Sources];

    fn load(store: &Store, index: &Index, base: &SnapshotId) -> Result<()> {
        Self::take(store, index, base)
    }

    fn replay(store: &Store, index: &Index, night: Night<'_>) -> Result<()> {
        Self::take(store, index, &night.now.snapshot)
    }
}
