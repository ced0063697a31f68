//! Changes in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::catalogue::Amount;
use super::merge::Changes;
use super::{KINDS, Kind};

/// What an entry takes beside its bytes, about.
const OVERHEAD: usize = 96;

/// Changes that no run holds yet.
#[derive(Default)]
pub(super) struct Pending {
    by_kind: [Changes; KINDS],
    bytes: usize,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.by_kind.iter().all(BTreeMap::is_empty)
    }

    /// What they take, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn of(&self, kind: Kind) -> &Changes {
        &self.by_kind[kind as usize]
    }

    pub(super) fn insert(&mut self, kind: Kind, key: Vec<u8>, value: Option<Vec<u8>>) {
        let (key_len, new) = (key.len(), length(&value));
        match self.by_kind[kind as usize].insert(key, value) {
            Some(old) => self.bytes = self.bytes + new - length(&old),
            None => self.bytes += OVERHEAD + key_len + new,
        }
    }

    pub(super) fn clear(&mut self, kind: Kind) {
        let cleared = std::mem::take(&mut self.by_kind[kind as usize]);
        self.bytes -= cleared.iter().map(|(key, value)| OVERHEAD + key.len() + length(value)).sum::<usize>();
    }

    /// How much there is of a kind.
    pub(super) fn amount(&self, kind: Kind) -> Amount {
        let mut amount = Amount::default();
        self.of(kind).iter().for_each(|(key, value)| amount.add(key, value.as_deref()));
        amount
    }
}

fn length(value: &Option<Vec<u8>>) -> usize {
    value.as_ref().map_or(0, Vec::len)
}

/// Changes that are being written to a run; seen like one until it is there.
#[derive(Clone)]
pub(super) struct Frozen {
    /// Its place among the runs.
    pub number: u64,
    pub changes: Arc<Pending>,
}

impl Frozen {
    pub(super) fn of(&self, kind: Kind) -> &Changes {
        self.changes.of(kind)
    }

    /// Whether its entries of a kind count.
    pub(super) fn counts(&self, kind: Kind, since: &[u64; KINDS]) -> bool {
        self.number >= since[kind as usize]
    }
}
