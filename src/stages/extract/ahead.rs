//! What a night has yet to ask: the units of its pages that no kept answer serves, before anything is sent.

use std::collections::HashSet;

use anyhow::Result;

use super::answers::Asker;
use super::live::{Live, LiveExtractor};
use super::shown::Beside;
use crate::config::{DeclaredExtractor, Pipeline};
use crate::extract::reach::Sees;
use crate::extract::traits::Finds;
use crate::extract::units::units;
use crate::extract::{Declaration, Question};
use crate::manifests::Extracted;
use crate::model::{Digest, SnapshotId};
use crate::report::plan::ToAsk;
use crate::stages::plan::price_per_mb;
use crate::store::Store;
use crate::store::manifest::Manifest;
use crate::store::texts::ShardReader;
use crate::tables::ingest::{Page, PageTitle, TitledText};
use crate::tables::record::Table as _;

/// By extractor whose answers are kept, what a snapshot has yet to ask; none of those that have nothing to ask about.
pub(crate) fn to_ask(pipeline: &Pipeline, store: &Store, snapshot: &SnapshotId) -> Result<Vec<ToAsk>> {
    let asks = |declared: &DeclaredExtractor| {
        matches!(declared.declaration, Declaration::Command(_)) || declared.declaration.model().is_some()
    };
    if !pipeline.extractors.iter().any(asks) {
        return Ok(Vec::new());
    }
    let live = Live::new(pipeline)?;
    let own = store.manifest::<Extracted>(snapshot)?;
    let before = extracted_before(store, snapshot)?;
    let mut all = Vec::new();
    for (live, declared) in live.all.iter().zip(&pipeline.extractors) {
        let lacks = |of: &Manifest<Extracted>| lacks(of, live);
        let pages = match (&own, &before) {
            (Some(own), _) if lacks(own) => Pages::All,
            (Some(_), _) => continue,
            (None, Some(before)) if !lacks(before) => Pages::New,
            (None, Some(before)) if live.leaves(found_by(before, live)) => Pages::New,
            (None, _) => Pages::All,
        };
        let Some(mut asked) = count(store, live, snapshot, pages)? else { continue };
        let per_mb = price_per_mb(declared, own.as_ref().or(before.as_ref()));
        #[expect(clippy::cast_precision_loss, reason = "a size of text")]
        let expected = per_mb * asked.bytes as f64 / 1e6;
        asked.price = (per_mb > 0.0).then_some(expected);
        all.push(asked);
    }
    Ok(all)
}

/// The units of all pages of a snapshot that have no answer; `None` if answers are not kept.
pub(super) fn unanswered(store: &Store, live: &LiveExtractor, snapshot: &SnapshotId) -> Result<Option<ToAsk>> {
    count(store, live, snapshot, Pages::All)
}

/// Pages whose units are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pages {
    All,
    /// Those whose text is new in the snapshot.
    New,
}

/// The newest snapshot before one that was extracted.
fn extracted_before(store: &Store, snapshot: &SnapshotId) -> Result<Option<Manifest<Extracted>>> {
    let mut before = None;
    for manifest in store.manifests::<crate::manifests::Ingested>()? {
        if manifest.snapshot == *snapshot {
            break;
        }
        before = store.manifest::<Extracted>(&manifest.snapshot)?;
    }
    Ok(before)
}

/// Whether a snapshot leaves pages without their mentions, or has those of another definition.
fn lacks(extracted: &Manifest<Extracted>, live: &LiveExtractor) -> bool {
    let costs = extracted.summary.costs.get(&*live.name);
    let found_by = found_by(extracted, live);
    (found_by != Some(live.fingerprint) && !live.leaves(found_by))
        || costs.is_some_and(|costs| costs.failed + costs.deferred > 0)
}

/// The definition of an extractor that a snapshot was extracted with.
fn found_by(extracted: &Manifest<Extracted>, live: &LiveExtractor) -> Option<Digest> {
    extracted.summary.fingerprints.get(&*live.name).copied()
}

/// Counts the distinct units of pages, and those without an answer; `None` if answers are not kept.
fn count(store: &Store, live: &LiveExtractor, snapshot: &SnapshotId, pages: Pages) -> Result<Option<ToAsk>> {
    let Some(extractor) = live.extractor().filter(|extractor| extractor.keeps_answers()) else { return Ok(None) };
    let Finds::ByAsking(Sees::Units(cut)) = extractor.finds() else { return Ok(None) };
    let (asker, log) = (Asker { extractor, fingerprint: live.fingerprint }, store.answers_to_read(&live.name)?);
    let outbox = store.outbox(&live.name)?;
    let mut asked = ToAsk { extractor: live.name.to_string(), ..ToAsk::default() };
    let mut seen: HashSet<Digest> = HashSet::new();
    let layers = store.pages_at(snapshot)?;
    for shard in 0..store.shards() {
        let mut rows: Vec<TitledText> = match pages {
            Pages::All => layers.shard(store, shard)?,
            Pages::New => store.partition(Page::NAME, snapshot)?.shard(shard)?,
        };
        rows.retain(|row| pages == Pages::All || row.text_snapshot == *snapshot);
        let mut reader = ShardReader::new(store, shard);
        for TitledText { url, title, text_snapshot, .. } in rows {
            let text = reader.texts(&[(&url, &text_snapshot)])?.pop().unwrap_or_default();
            let beside = Beside::from(PageTitle { url: url.clone(), title });
            for unit in units(&text, cut) {
                let [before, own, after] = unit.texts(&text);
                let question = Question { text: own, before, after, ..beside.of(live.along, &url) };
                let key = asker.key(&question);
                if !seen.insert(key) {
                    continue;
                }
                // What a server has in a batch is asked already.
                if log.has(key) || outbox.has(key) {
                    asked.kept += 1;
                } else {
                    asked.units += 1;
                    asked.bytes += own.len() as u64;
                    asked.most += live.most(&question);
                }
            }
        }
    }
    Ok(Some(asked))
}
