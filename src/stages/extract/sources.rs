//! Mentions of earlier snapshots, by shard: what a page's mentions can be copied from.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;

use super::fingerprints;
use super::live::Live;
use crate::manifests::Extracted;
use crate::model::SnapshotId;
use crate::store::Store;
use crate::tables::extract::{Extraction, MentionRow, mentions_of};
use crate::tables::record::Table as _;

/// What a snapshot has for one shard.
#[derive(Default)]
pub(super) struct OldMentions {
    /// By extractor and URL.
    pub(super) pages: Vec<HashMap<Arc<str>, ExtractedPage>>,
}

pub(super) struct ExtractedPage {
    pub(super) extraction: Extraction,
    /// In canonical order.
    pub(super) rows: Vec<MentionRow>,
}

/// Loads what is asked for and keeps it: most pages have their old page in the snapshot before.
pub(super) struct Sources<'a> {
    store: &'a Store,
    live: &'a Live,
    /// By snapshot and shard.
    loaded: HashMap<SnapshotId, HashMap<u32, Arc<OldMentions>>>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(store: &'a Store, live: &'a Live) -> Self {
        Self { store, live, loaded: HashMap::new() }
    }

    pub(super) fn of(&mut self, snapshot: &SnapshotId, shard: u32) -> Result<Arc<OldMentions>> {
        if let Some(mentions) = self.loaded.get(snapshot).and_then(|shards| shards.get(&shard)) {
            return Ok(Arc::clone(mentions));
        }
        let mentions = Arc::new(load(self.store, self.live, snapshot, shard)?);
        self.loaded.entry(snapshot.clone()).or_default().insert(shard, Arc::clone(&mentions));
        Ok(mentions)
    }
}

fn load(store: &Store, live: &Live, snapshot: &SnapshotId, shard: u32) -> Result<OldMentions> {
    let mut pages: Vec<HashMap<Arc<str>, ExtractedPage>> = live.all.iter().map(|_| HashMap::new()).collect();
    let Some(manifest) = store.manifest::<Extracted>(snapshot)? else { return Ok(OldMentions { pages }) };
    let vouched = fingerprints(Some(&manifest), live);
    let partition = store.partition(Extraction::NAME, snapshot)?;
    for extraction in partition.shard::<Extraction>(shard)? {
        // If the manifest does not name the extractor, its rows were rewritten for another definition.
        if let Some(i) = live.all.iter().position(|live| live.name == extraction.extractor)
            && vouched[i].is_some()
        {
            pages[i].insert(Arc::clone(&extraction.url), ExtractedPage { extraction, rows: Vec::new() });
        }
    }
    for (live, pages) in live.all.iter().zip(&mut pages) {
        if pages.is_empty() {
            continue;
        }
        let Some(partition) = store.partition_if_there(&mentions_of(&live.name), snapshot)? else { continue };
        for batch in partition.batches(shard)? {
            for row in live.schema.decode(&batch)? {
                if let Some(page) = pages.get_mut(&row.url) {
                    page.rows.push(row);
                }
            }
        }
    }
    Ok(OldMentions { pages })
}
