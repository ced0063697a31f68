//! Mentions of earlier snapshots: what a page's mentions can be copied from, and what they are compared with.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;

use super::known::Good;
use super::live::Live;
use crate::manifests::Extracted;
use crate::model::SnapshotId;
use crate::store::{Store, StoreError};
use crate::tables::extract::{MentionRow, mentions_of};

/// Mentions that are wanted: of a URL by an extractor, where they lie and how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'w> {
    pub(super) extractor: usize,
    pub(super) url: &'w str,
    pub(super) snapshot: &'w SnapshotId,
    /// `None` if nobody has counted.
    pub(super) mentions: Option<i64>,
}

/// Mentions by extractor and URL, in canonical order.
#[derive(Default)]
pub(super) struct OldMentions {
    rows: HashMap<(usize, SnapshotId), HashMap<String, Vec<MentionRow>>>,
}

impl OldMentions {
    /// The mentions of a good extraction, if they were loaded; one without mentions has none.
    pub(super) fn of(&self, extractor: usize, url: &str, lies_in: Option<&SnapshotId>) -> &[MentionRow] {
        let partition = lies_in.and_then(|snapshot| self.rows.get(&(extractor, snapshot.clone())));
        partition.and_then(|rows| rows.get(url)).map_or(&[], Vec::as_slice)
    }
}

/// Reads mentions of earlier snapshots.
pub(super) struct Sources<'a> {
    store: &'a Store,
    live: &'a Live,
    /// By snapshot, which extractors its manifest names.
    vouched: HashMap<SnapshotId, Vec<bool>>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(store: &'a Store, live: &'a Live) -> Self {
        Self { store, live, vouched: HashMap::new() }
    }

    /// Whether the mentions of an extraction are still as they were found. Where the manifest does not name the extractor,
    /// they were rewritten for another definition, or are gone.
    pub(super) fn vouches(&mut self, extractor: usize, good: &Good) -> Result<bool> {
        if !self.vouched.contains_key(&good.snapshot) {
            let manifest = self.store.manifest::<Extracted>(&good.snapshot)?;
            let named = |name: &str| manifest.as_ref().is_some_and(|m| m.summary.fingerprints.contains_key(name));
            let named = self.live.all.iter().map(|live| named(&live.name)).collect();
            self.vouched.insert(good.snapshot.clone(), named);
        }
        Ok(self.vouched[&good.snapshot][extractor])
    }

    /// Reads mentions, partition by partition. Not to find as many as there should be is an error.
    pub(super) fn load(&self, wanted: &[Wanted<'_>]) -> Result<OldMentions> {
        let found = self.look(wanted)?;
        for Wanted { extractor, url, snapshot, mentions } in wanted {
            let there = found.of(*extractor, url, Some(snapshot)).len();
            let Some(mentions) = mentions else { continue };
            if i64::try_from(there) != Ok(*mentions) {
                let path = self.store.partition_file(&mentions_of(&self.live.all[*extractor].name), snapshot);
                let problem = format!("{url} has {there} mentions there, not {mentions}");
                return Err(StoreError::Damaged { path, problem }.into());
            }
        }
        Ok(found)
    }

    /// Reads mentions, as many as there are.
    pub(super) fn look(&self, wanted: &[Wanted<'_>]) -> Result<OldMentions> {
        let mut partitions: BTreeMap<(usize, &SnapshotId, u32), BTreeSet<&str>> = BTreeMap::new();
        for Wanted { extractor, url, snapshot, .. } in wanted {
            partitions.entry((*extractor, *snapshot, self.store.shard_of(url))).or_default().insert(url);
        }
        let mut rows: HashMap<_, HashMap<String, Vec<MentionRow>>> = HashMap::new();
        for ((extractor, snapshot, shard), urls) in partitions {
            let names: Vec<&str> = urls.into_iter().collect();
            let found = self.read(extractor, snapshot, shard, &names)?;
            let by_url = rows.entry((extractor, snapshot.clone())).or_default();
            by_url.extend(names.into_iter().map(str::to_owned).zip(found));
        }
        Ok(OldMentions { rows })
    }

    /// The mentions of URLs (ascending) in one shard of a partition.
    fn read(&self, extractor: usize, snapshot: &SnapshotId, shard: u32, urls: &[&str]) -> Result<Vec<Vec<MentionRow>>> {
        let live = &self.live.all[extractor];
        let partition = self.store.partition(&mentions_of(&live.name), snapshot)?;
        let part = partition.part(shard);
        let ranges = partition.find(&part, urls)?;
        let mut rows = Vec::new();
        for batch in partition.batches(&part, Some(&ranges))? {
            rows.extend(live.schema.decode(&batch)?);
        }
        let mut rows = rows.into_iter();
        Ok(ranges.iter().map(|range| rows.by_ref().take(range.len()).collect()).collect())
    }
}
