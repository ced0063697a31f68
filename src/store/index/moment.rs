//! The index as it is at one moment: what is changed later is not seen. So the work of a night reads what the night
//! before left, whatever other threads have come to in the meantime.

use std::sync::Arc;

use super::merge::{Merge, Source};
use super::pending::Frozen;
use super::run::{Run, RunScan, Unpacker};
use super::{Index, KINDS, Kind, Visit};
use crate::store::Result;

/// The index at one moment.
pub struct Moment {
    /// Newest first, as the runs.
    frozen: Vec<Frozen>,
    runs: Vec<Arc<Run>>,
    since: [u64; KINDS],
}

impl Index {
    /// All that has been put so far.
    pub fn moment(&self) -> Moment {
        let mut state = self.state_mut();
        state.freeze();
        Moment {
            frozen: state.frozen.iter().rev().cloned().collect(),
            runs: state.runs.iter().rev().cloned().collect(),
            since: state.since,
        }
    }
}

impl Moment {
    fn frozen_of(&self, kind: Kind) -> impl Iterator<Item = &Frozen> {
        self.frozen.iter().filter(move |frozen| frozen.counts(kind, &self.since))
    }

    fn runs_of(&self, kind: Kind) -> impl Iterator<Item = &Arc<Run>> {
        self.runs.iter().filter(move |run| run.holds(kind, &self.since))
    }

    /// The values of keys in any order.
    pub fn get_many<K: AsRef<[u8]>>(&self, kind: Kind, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut found = vec![None; keys.len()];
        let mut left: Vec<usize> = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            match self.frozen_of(kind).find_map(|frozen| frozen.of(kind).get(key.as_ref())) {
                Some(value) => found[place].clone_from(value),
                None => left.push(place),
            }
        }
        left.sort_unstable_by_key(|&place| keys[place].as_ref());
        let mut unpacker = Unpacker::default();
        for run in self.runs_of(kind) {
            if left.is_empty() {
                break;
            }
            run.find(kind, keys, &mut left, &mut found, &mut unpacker)?;
        }
        Ok(found)
    }

    /// Shows all entries whose key starts with `prefix`, by key; `visit` ends it by returning false.
    pub fn scan(&self, kind: Kind, prefix: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        let mut sources: Vec<Source<'_>> =
            self.frozen_of(kind).map(|frozen| Source::memory(frozen.of(kind), prefix)).collect();
        for run in self.runs_of(kind) {
            sources.push(Source::Run(Box::new(RunScan::new(run, kind, prefix)?)));
        }
        let mut merge = Merge::new(sources)?;
        while let Some((key, value)) = merge.next()? {
            if let Some(value) = value
                && !visit(key, value)?
            {
                break;
            }
        }
        Ok(())
    }
}
