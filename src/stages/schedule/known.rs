//! What schedule knows of sources from earlier snapshots, in the index: the newest schedule of each, and its curve.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::manifests::Scheduled;
use crate::model::{Method, Period, SnapshotId, StageId};
use crate::schedule::kept::KeptSource;
use crate::stages::follow::{Kept, Night, decode, encode, forget};
use crate::store::Store;
use crate::store::index::{Index, Kind, Moment};
use crate::tables::record::Table as _;
use crate::tables::schedule::{RecallCurveRow, ScheduleRow};

/// What is known of a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredSource {
    pub(super) schedule: ScheduleRow,
    pub(super) curve: Vec<RecallCurveRow>,
    /// What planning it again together with others needs; learned again where it is not at hand.
    pub(super) kept: Option<KeptSource>,
}

impl StoredSource {
    pub(super) fn name(&self) -> &String {
        &self.schedule.source
    }

    /// Whether both have the same rows.
    pub(super) fn says_as(&self, other: &Self) -> bool {
        (&self.schedule, &self.curve) == (&other.schedule, &other.curve)
    }
}

/// What a value of the index begins with: as much of a schedule as tells how its polls were found.
#[derive(Deserialize)]
struct Begin {
    _source: String,
    _period: Period,
    _time_zone: String,
    _polls: i64,
    _poll_times: Vec<i64>,
    method: Method,
}

/// Sources by name, with what is known of each: mostly nothing, which takes no room.
pub(super) type ByName = BTreeMap<String, Option<Box<StoredSource>>>;

/// What is known of sources.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// As the snapshot before left it.
    pub(super) at: &'a Moment,
    /// As this snapshot leaves it.
    pub(super) index: &'a Index,
}

impl Known<'_> {
    /// What is known of some sources.
    pub(super) fn of(&self, sources: &BTreeSet<String>) -> Result<ByName> {
        let names: Vec<&String> = sources.iter().collect();
        let found = self.at.get_many(Kind::Sources, &names)?.into_iter();
        let found = found.map(|value| value.as_deref().map(decode).transpose());
        names.into_iter().zip(found).map(|(name, source)| Ok((name.clone(), source?))).collect()
    }

    /// What is known of all sources, and of others.
    pub(super) fn all_and(&self, others: &BTreeSet<String>) -> Result<ByName> {
        let mut all: ByName = others.iter().map(|name| (name.clone(), None)).collect();
        all.extend(self.all()?.into_iter().map(|source| (source.name().clone(), Some(Box::new(source)))));
        Ok(all)
    }

    /// Whether anything is kept of sources, in the order asked for.
    pub(super) fn are_known(&self, sources: &[&str]) -> Result<Vec<bool>> {
        Ok(self.at.get_many(Kind::Sources, sources)?.into_iter().map(|value| value.is_some()).collect())
    }

    /// Whether sources have a schedule, in the order asked for: they are known, and not gone.
    pub(super) fn are_scheduled(&self, sources: &[&str]) -> Result<Vec<bool>> {
        let found = self.at.get_many(Kind::Sources, sources)?.into_iter();
        let is_there = |value: &[u8]| Ok(decode::<Begin>(value)?.method != Method::Gone);
        found.map(|value| value.as_deref().map_or(Ok(false), is_there)).collect()
    }

    /// All sources.
    pub(super) fn all(&self) -> Result<Vec<StoredSource>> {
        let mut values = Vec::new();
        self.at.scan(Kind::Sources, &[], &mut |_, value| {
            values.push(value.to_vec());
            Ok(true)
        })?;
        values.iter().map(|value| decode(value)).collect()
    }

    pub(super) fn put(&self, source: &StoredSource) -> Result<()> {
        Ok(self.index.put(Kind::Sources, source.name().clone().into_bytes(), encode(source)?)?)
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
                known.put(&StoredSource { schedule, curve, kept: None })?;
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
        let scheduled = store.manifest::<Scheduled>(&night.now.snapshot)?;
        if scheduled.is_some_and(|scheduled| scheduled.tables.get(ScheduleRow::NAME).is_some_and(|table| table.whole)) {
            // Sources that it does not have are none any more.
            forget::<Self>(index)?;
        }
        Self::take(store, index, &night.now.snapshot)
    }
}
