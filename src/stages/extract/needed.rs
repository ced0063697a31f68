//! Which kept answers the kept texts need.

use std::collections::HashSet;

use anyhow::Result;

use super::answers::Asker;
use super::live::{Live, LiveExtractor};
use super::shown::Beside;
use crate::config::Pipeline;
use crate::extract::reach::{Cut, Sees};
use crate::extract::traits::Finds;
use crate::extract::units::units;
use crate::extract::{Extractor, Question};
use crate::manifests::Ingested;
use crate::model::Digest;
use crate::report::upkeep::AnswersLeft;
use crate::store::Store;
use crate::store::texts::ShardReader;
use crate::tables::ingest::{Page, PageTitle, TitledText};
use crate::tables::record::Table as _;

/// Drops the answers that no text of a kept snapshot needs. Only for the holder of the lock.
pub(crate) fn prune_answers(pipeline: &Pipeline, store: &Store) -> Result<Vec<AnswersLeft>> {
    let live = Live::new(pipeline)?;
    let mut pruned = Vec::new();
    for live in &live.all {
        let Some(extractor) = live.extractor().filter(|extractor| extractor.keeps_answers()) else { continue };
        let Finds::ByAsking(Sees::Units(cut)) = extractor.finds() else { continue };
        let needed = needed(store, live, extractor, cut)?;
        let (kept, dropped) = store.answers(&live.name)?.prune(|key| needed.contains(&key))?;
        pruned.push(AnswersLeft { extractor: live.name.to_string(), kept, dropped });
    }
    Ok(pruned)
}

/// The requests of all units of all versions of pages in the store.
fn needed(store: &Store, live: &LiveExtractor, extractor: &Extractor, cut: Cut) -> Result<HashSet<Digest>> {
    let asker = Asker { extractor, fingerprint: live.fingerprint };
    let mut needed = HashSet::new();
    let snapshots = store.manifests::<Ingested>()?;
    for shard in 0..store.shards() {
        let mut reader = ShardReader::new(store, shard);
        let mut seen: HashSet<(Digest, Option<Digest>)> = HashSet::new();
        for snapshot in &snapshots {
            let partition = store.partition(Page::NAME, &snapshot.snapshot)?;
            for row in partition.shard::<TitledText>(shard)? {
                let (url, title) = (row.url, row.title);
                let beside = Beside::from(PageTitle { url: url.clone(), title });
                if !seen.insert((row.text_digest, beside.digest(live.along, &url))) {
                    continue;
                }
                let text = reader.texts(&[(&url, &row.text_snapshot)])?.pop().unwrap_or_default();
                for unit in units(&text, cut) {
                    let [before, own, after] = unit.texts(&text);
                    needed.insert(asker.key(&Question { text: own, before, after, ..beside.of(live.along, &url) }));
                }
            }
        }
    }
    Ok(needed)
}
