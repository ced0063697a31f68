//! After each run some pages are extracted from scratch and compared: as many as fit into a small share of the night's
//! time. The next run goes on where this one stopped, so that in time all pages have their turn.
//!
//! What a night is too short for is saved up: where a look at the pages, or the start of a worker, takes longer than the
//! share allows, nothing is done until enough nights have paid for it.

use std::collections::HashSet;
use std::time::Instant;

use anyhow::Result;

use super::{Beside, Check, Live, StoredMentions, beside_at};
use crate::config::Pipeline;
use crate::extract::Extractor;
use crate::manifests::{Extracted, Ingested};
use crate::store::Store;
use crate::store::runs::VerifiedPart;
use crate::store::texts::ShardReader;
use crate::tables::ingest::PagePointer;

/// Of the time of a night.
const SHARE: f64 = 0.02;
/// What is saved up at most, in seconds.
const MOST_CREDIT: f64 = 600.0;
/// Workers are only started where there is this much time: that alone may take seconds.
const WORKER_SECONDS: f64 = 2.0;
/// What listing a page is taken to cost before it was measured, in seconds.
const LISTING: f64 = 2e-6;
/// Pages whose mentions are read together.
const TOGETHER: usize = 128;

/// Looks at pages of the newest snapshot. `night`: the seconds that the run took; `last`: how far the run before came.
/// `None` if there is nothing to look at.
pub(crate) fn verify_some(
    pipeline: &Pipeline,
    store: &Store,
    night: f64,
    last: Option<&VerifiedPart>,
) -> Result<Option<VerifiedPart>> {
    let Some(of) = pipeline.verify.nightly.filter(|_| !pipeline.extractors.is_empty()) else { return Ok(None) };
    let Some(newest) = store.all_done()?.last().map(|done| done.snapshot.id.clone()) else { return Ok(None) };
    let Some(newest) = store.manifest::<Ingested>(&newest)? else { return Ok(None) };
    let Some(extracted) = store.manifest::<Extracted>(&newest.snapshot)? else { return Ok(None) };
    let last = last.cloned().unwrap_or_default();
    let credit = (last.credit + SHARE * night).min(MOST_CREDIT);
    let mut part = VerifiedPart { credit, pages: 0, different: Vec::new(), seconds: 0.0, ..last };
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let guess = newest.summary.alive as f64 / f64::from(store.shards()) * LISTING;
    let listing = if part.listing_seconds > 0.0 { part.listing_seconds } else { guess };
    let needed = if extracted.summary.workers.is_empty() { 0.0 } else { WORKER_SECONDS };
    if credit < listing.max(needed) {
        return Ok(Some(part));
    }
    let started = Instant::now();
    let mut live = Live::new(pipeline)?;
    live.read_answers(store, &newest.snapshot)?;
    // A definition that was edited meanwhile is the next run's matter.
    if live.is_what_found(&extracted.summary.fingerprints) {
        let most = newest.summary.alive.div_ceil(of).max(1);
        look(store, &live, &newest.snapshot, most, (started, credit), &mut part)?;
    }
    part.seconds = started.elapsed().as_secs_f64();
    part.credit = credit - part.seconds;
    Ok(Some(part))
}

/// Goes on from where `part` stands until the time is used up, `most` pages were looked at, or all were.
fn look(
    store: &Store,
    live: &Live,
    at: &crate::model::SnapshotId,
    most: u64,
    (started, credit): (Instant, f64),
    part: &mut VerifiedPart,
) -> Result<()> {
    let layers = store.pages_at(at)?;
    for _ in 0..store.shards() {
        part.shard %= store.shards();
        let listing = Instant::now();
        let mut pages: Vec<PagePointer> = layers.shard(store, part.shard)?;
        pages.retain(|page| part.after.as_ref().is_none_or(|after| page.url > *after));
        for pages in pages.chunks(TOGETHER) {
            let urls: HashSet<&str> = pages.iter().map(|page| page.url.as_str()).collect();
            let mut check = Check::new(live, StoredMentions::load(store, live, at, part.shard, &urls)?);
            part.listing_seconds = listing.elapsed().as_secs_f64();
            let shown = beside_at(store, live, at, part.shard)?;
            let mut reader = ShardReader::new(store, part.shard);
            for page in pages {
                if part.pages >= most || started.elapsed().as_secs_f64() >= credit {
                    note(live, &check, part);
                    return Ok(());
                }
                let text = reader.texts(&[(&page.url, &page.text_snapshot)])?.pop().unwrap_or_default();
                check.page(&page.url, &text, shown.get(&page.url).unwrap_or(&Beside::default()));
                part.pages += 1;
                part.after = Some(page.url.clone());
            }
            note(live, &check, part);
        }
        (part.shard, part.after) = (part.shard + 1, None);
    }
    Ok(())
}

/// Notes the extractors that differ. One that does not claim to be deterministic may.
fn note(live: &Live, check: &Check<'_>, part: &mut VerifiedPart) {
    for (live, verified) in live.all.iter().zip(&check.verified) {
        let claims = !matches!(live.extractor(), Some(Extractor::Command(command)) if !command.ready().deterministic);
        let name = live.name.to_string();
        if claims && !verified.is_clean() && !part.different.contains(&name) {
            let page = verified.first.first().map(|(url, _)| format!(", first on {url}")).unwrap_or_default();
            log::error!("extractor '{name}': what is stored is not what extraction from scratch gives{page}");
            part.different.push(name);
        }
    }
}
