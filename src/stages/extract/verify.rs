//! Fresh looks at what the store has: pages are extracted from scratch and compared, and the reach that a command declares
//! is put to the test.

pub(crate) mod nightly;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use rayon::prelude::*;

use super::live::{Live, LiveExtractor, LiveRunner, Making};
use super::rows;
use super::shown::Beside;
use super::sources::{OldMentions, Shape, SharedSources, Sources, Wanted};
use super::state::extracted_at;
use crate::config::Pipeline;
use crate::extract::reach::{Cut, Sees, Windows};
use crate::extract::traits::Finds;
use crate::extract::units::units;
use crate::extract::{Extractor, Mention, Question, Status};
use crate::manifests::{Extracted, Ingested};
use crate::model::{Digest, DigestBuilder, SnapshotId};
use crate::recycle::audit::{Audited, Auditor, audit_units};
use crate::recycle::scratch;
use crate::recycle::verify::Verified;
use crate::report::checks::Verification;
use crate::run::progress::Progress;
use crate::store::Store;
use crate::store::texts::ShardReader;
use crate::tables::extract::Extraction;
use crate::tables::ingest::{PagePointer, PageTitle};

/// Which pages to look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// How many; `None` for all.
    pub pages: Option<usize>,
    pub seed: u64,
}

/// The pages of a sample, by shard: those whose URLs hash lowest with the seed.
fn sample(store: &Store, snapshot: &SnapshotId, sample: Sample) -> Result<Vec<(u32, PagePointer)>> {
    let layers = store.pages_at(snapshot)?;
    let mut pages: Vec<(Digest, u32, PagePointer)> = Vec::new();
    for shard in 0..store.shards() {
        for page in layers.shard::<PagePointer>(store, shard)? {
            let mut rank = DigestBuilder::new();
            rank.number(sample.seed).field(page.url.as_bytes());
            pages.push((rank.finish(), shard, page));
        }
        if let Some(most) = sample.pages
            && pages.len() > most
        {
            pages.sort_by_key(|(rank, ..)| *rank);
            pages.truncate(most);
        }
    }
    let mut pages: Vec<_> = pages.into_iter().map(|(_, shard, page)| (shard, page)).collect();
    pages.sort_by(|(a, p), (b, q)| (a, &p.url).cmp(&(b, &q.url)));
    Ok(pages)
}

/// Re-extracts a sample of a snapshot's pages and compares.
pub(crate) fn verify(
    pipeline: &Pipeline,
    store: &Store,
    snapshot: &SnapshotId,
    which: Sample,
    progress: Progress,
) -> Result<Verification> {
    let Some(manifest) = store.manifest::<Extracted>(snapshot)? else {
        bail!("snapshot {snapshot} has no mentions yet; run `ratoon run {}` first", pipeline.path.display());
    };
    let mut live = Live::new(pipeline)?;
    live.read_answers(store, snapshot)?;
    for live in &live.all {
        let found_by = manifest.summary.fingerprints.get(&*live.name).copied();
        if found_by != Some(live.fingerprint) && !live.leaves(found_by) {
            bail!(
                "extractor '{}' is not the one that snapshot {snapshot} was extracted with; run `ratoon extract {}` first",
                live.name,
                pipeline.path.display()
            );
        }
    }
    let pages = sample(store, snapshot, which)?;
    let bar = progress.count(&format!("verify {snapshot}"), pages.len() as u64);
    let by_shard: Vec<&[(u32, PagePointer)]> = pages.chunk_by(|(a, _), (b, _)| a == b).collect();
    let results: Vec<Result<Vec<Verified>>> = by_shard
        .par_iter()
        .map(|pages| {
            let shard = pages[0].0;
            let urls: HashSet<&str> = pages.iter().map(|(_, page)| page.url.as_str()).collect();
            let mut check = Check::new(&live, StoredMentions::load(store, &live, snapshot, shard, &urls)?);
            let mut reader = ShardReader::new(store, shard);
            let shown = beside_at(store, &live, snapshot, shard)?;
            let nothing = Beside::default();
            for (_, page) in *pages {
                let text = reader.texts(&[(&page.url, &page.text_snapshot)])?.pop().unwrap_or_default();
                let shown = shown.get(&page.url).unwrap_or(&nothing);
                check.page(&page.url, &text, shown);
                bar.add(1);
            }
            Ok(check.verified)
        })
        .collect();
    let mut all: Vec<(String, Verified)> =
        live.all.iter().map(|live| (live.name.to_string(), Verified::default())).collect();
    for result in results {
        all.iter_mut().zip(result?).for_each(|((_, sum), more)| sum.add(more));
    }
    let alive = store.manifest::<Ingested>(snapshot)?.map_or(0, |manifest| manifest.summary.alive);
    let every_page = alive <= pages.len() as u64;
    Ok(Verification { snapshot: snapshot.clone(), extractors: all, every_page })
}

/// What the pages of a shard have beside their texts, if any extractor is shown it.
fn beside_at(store: &Store, live: &Live, at: &SnapshotId, shard: u32) -> Result<HashMap<String, Beside>> {
    if !live.all.iter().any(|live| live.along.title) {
        return Ok(HashMap::new());
    }
    let rows: Vec<PageTitle> = store.pages_at(at)?.shard(store, shard)?;
    Ok(rows.into_iter().map(|row| (row.url.clone(), Beside::from(row))).collect())
}

/// The mentions that the store has of some pages of a shard, by extractor.
struct StoredMentions {
    extractions: Vec<HashMap<Arc<str>, Extraction>>,
    mentions: OldMentions,
}

impl StoredMentions {
    fn load(store: &Store, live: &Live, at: &SnapshotId, shard: u32, urls: &HashSet<&str>) -> Result<Self> {
        let mut extractions = Vec::new();
        for live in &live.all {
            let rows = extracted_at(store, &live.name, at, shard)?.into_iter();
            let rows = rows.filter(|row| urls.contains(&*row.url)).map(|row| (Arc::clone(&row.url), row));
            extractions.push(rows.collect::<HashMap<_, _>>());
        }
        let mut wanted = Vec::new();
        for (extractor, rows) in extractions.iter().enumerate() {
            for row in rows.values() {
                let mentions = Some(row.mentions);
                let place = row.mentions_snapshot.as_ref();
                wanted.extend(place.map(|snapshot| Wanted {
                    extractor,
                    url: &row.url,
                    snapshot,
                    mentions,
                    shape: Shape::Rows,
                }));
            }
        }
        let mentions = Sources::new(store, live, &SharedSources::default()).look(&wanted)?;
        Ok(Self { extractions, mentions })
    }
}

/// Pages of one shard against what the store has of them.
struct Check<'a> {
    live: &'a Live,
    stored: StoredMentions,
    runners: Vec<LiveRunner<'a>>,
    /// By extractor.
    verified: Vec<Verified>,
}

impl<'a> Check<'a> {
    fn new(live: &'a Live, stored: StoredMentions) -> Self {
        let runners = live.all.iter().map(LiveExtractor::runner).collect();
        Self { live, stored, runners, verified: vec![Verified::default(); live.all.len()] }
    }

    /// Extracts a page anew, joins its records anew, and compares.
    fn page(&mut self, url: &str, text: &str, shown: &Beside) {
        let older: Vec<bool> = (0..self.live.all.len()).map(|i| self.is_older(i, url)).collect();
        let mut fresh: Vec<Option<Vec<Mention>>> = Vec::new();
        for ((live, runner), older) in self.live.all.iter().zip(&mut self.runners).zip(&older) {
            if *older {
                fresh.push(None);
                continue;
            }
            runner.turn_to(shown, url);
            let found = live.extractor().and_then(|extractor| scratch(extractor, runner, text).ok());
            fresh.push(found.map(|page| page.found.into_iter().map(|found| found.mention).collect()));
        }
        for (i, live) in self.live.all.iter().enumerate() {
            if older[i] {
                self.verified[i].older += 1;
                continue;
            }
            let stored = self.stored(i, url);
            let verified = &mut self.verified[i];
            let compared = match &live.making {
                Making::Extracts(_) => fresh[i].as_ref().zip(stored).map(|(fresh, stored)| {
                    verified.compare(url, fresh, &stored);
                }),
                Making::Joins { record, parts } => {
                    let parts: Option<Vec<&[Mention]>> = parts.iter().map(|&part| fresh[part].as_deref()).collect();
                    parts.zip(stored).map(|(parts, stored)| verified.records(record, (url, text), &parts, &stored))
                }
            };
            if compared.is_none() {
                verified.failed += 1;
            }
        }
    }

    /// Whether a page has what another definition found: the present one says nothing about that.
    fn is_older(&self, i: usize, url: &str) -> bool {
        let live = &self.live.all[i];
        let found_by = self.stored.extractions[i].get(url).map(|row| row.fingerprint);
        live.leaves(found_by)
    }

    /// The mentions that the store has; `None` if the page was not extracted. Rows that do not fit the extractor are as
    /// wrong as missing ones.
    fn stored(&self, i: usize, url: &str) -> Option<Vec<Mention>> {
        let extraction = self.stored.extractions[i].get(url).filter(|row| row.status == Status::Ok)?;
        let rows = self.stored.mentions.of(i, url, extraction.mentions_snapshot.as_ref());
        Some(rows.iter().filter_map(|row| rows::mention(&self.live.all[i], row)).collect())
    }
}

/// Tests the declared scope and context of every extractor that is asked about windows, on a sample of pages.
pub(crate) fn audit(
    pipeline: &Pipeline,
    store: &Store,
    snapshot: &SnapshotId,
    which: Sample,
    trials: u64,
) -> Result<Vec<Audited>> {
    let live = Live::new(pipeline)?;
    let mut texts = Vec::new();
    for (shard, page) in sample(store, snapshot, which)? {
        texts.extend(ShardReader::new(store, shard).texts(&[(&page.url, &page.text_snapshot)])?);
    }
    let pages: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut all = Vec::new();
    for one in &live.all {
        let windows = match one.extractor().map(Extractor::finds) {
            Some(Finds::ByAsking(Sees::Windows(windows))) => windows,
            // A model is not asked without need: its answers are kept.
            Some(Finds::ByAsking(Sees::Units(cut))) if one.model().is_none() => {
                all.push(audit_of_units(one, cut, &pages, which.seed, trials)?);
                continue;
            }
            _ => continue,
        };
        let Windows { reach, offsets, .. } = windows;
        let mut runner = one.runner();
        let failed = |failure| anyhow::anyhow!("extractor '{}': {failure}", one.name);
        let auditor = Auditor::new(&mut runner, offsets, &pages).map_err(failed)?;
        let audit = auditor.audit(&mut runner, reach, which.seed, trials, 10).map_err(failed)?;
        let most = reach.left.max(reach.right).max(1).saturating_mul(4);
        let bisect = trials.clamp(1, 1000);
        let smallest_context =
            auditor.smallest_context(&mut runner, reach.scope, most, which.seed, bisect).map_err(failed)?;
        let declared = Some((reach.scope, reach.left, reach.right));
        all.push(Audited { extractor: one.name.to_string(), declared, audit, smallest_context });
    }
    Ok(all)
}

/// Puts a worker that sees units to the test: whether it remembers what it was asked before.
fn audit_of_units(one: &LiveExtractor, cut: Cut, pages: &[&str], seed: u64, trials: u64) -> Result<Audited> {
    let title = one.along.title.then_some("");
    let of_page = |page: &&'_ str| -> Vec<[String; 3]> {
        units(page, cut).iter().map(|unit| unit.texts(page).map(str::to_owned)).collect()
    };
    let shown: Vec<[String; 3]> = pages.iter().flat_map(of_page).collect();
    let questions: Vec<Question<'_>> =
        shown.iter().map(|[before, text, after]| Question { text, before, after, title, url: None }).collect();
    let mut runner = one.runner();
    let failed = |failure| anyhow::anyhow!("extractor '{}': {failure}", one.name);
    let audit = audit_units(&mut runner, &questions, seed, trials).map_err(failed)?;
    Ok(Audited { extractor: one.name.to_string(), declared: None, audit, smallest_context: None })
}

/// The newest snapshot that has mentions.
pub(crate) fn newest_extracted(store: &Store) -> Result<SnapshotId> {
    let newest = store.manifests::<Extracted>()?.pop();
    Ok(newest.context("no snapshot has mentions yet; run the pipeline first")?.snapshot)
}
