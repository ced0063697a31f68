//! One shard of a snapshot: pages, their old pages' mentions and regions to mentions, extractions and deltas.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use anyhow::{Context as _, Result};

use super::changes::{Before, Changes};
use super::costs::CostsBy;
use super::edits::Edits;
use super::live::{Live, LiveExtractor, LiveRunner, Making};
use super::rows;
use super::sources::{ExtractedPage, Sources};
use super::ways::{Way, Ways};
use crate::extract::record::Used;
use crate::extract::{Extractor, Failure, Found, Mention, Origin, Record, Status};
use crate::manifests::Costs;
use crate::matching::MatcherKind;
use crate::model::{Region, SnapshotId};
use crate::plan::model::Speed;
use crate::plan::{Plan, Served};
use crate::recycle::{Old, Recycled, recycle, recycle_edited, scratch};
use crate::run::clock::{Clock, Stopwatch};
use crate::store::Store;
use crate::store::batches::batches;
use crate::store::texts::ShardReader;
use crate::tables::extract::{Extraction, MentionDelta, MentionRow};
use crate::tables::ingest::{Page, PagePair};
use crate::tables::matching::RegionRow;
use crate::tables::record::Table as _;

/// What all shards share.
pub(super) struct Job<'a> {
    pub(super) store: &'a Store,
    pub(super) live: &'a Live,
    pub(super) edits: &'a Edits<'a>,
    pub(super) snapshot: &'a SnapshotId,
    pub(super) plan: &'a Plan,
    /// By extractor, whether its mentions of this snapshot are already there.
    pub(super) kept: Vec<bool>,
    /// The snapshot before, and for each extractor whether it ran there as it is now.
    pub(super) previous: Option<(SnapshotId, Vec<bool>)>,
    /// Position of each snapshot in time.
    pub(super) order: HashMap<SnapshotId, usize>,
}

/// The rows of a shard. Vectors of vectors are by extractor.
#[derive(Default)]
pub(super) struct Output {
    pub(super) mentions: Vec<Vec<MentionRow>>,
    pub(super) extractions: Vec<Extraction>,
    pub(super) deltas: Vec<MentionDelta>,
    pub(super) costs: Vec<CostsBy>,
    /// Texts read.
    pub(super) read: Speed,
}

pub(super) fn extract_shard(job: &Job<'_>, shard: u32) -> Result<Output> {
    let partition = job.store.partition(Page::NAME, job.snapshot)?;
    let pages = partition.shard::<PagePair>(shard)?;
    let mut sources = Sources::new(job.store, job.live);
    let before = match &job.previous {
        Some((id, same)) => Some(Before { mentions: sources.of(id, shard)?, same }),
        None => None,
    };
    let mut work = Work {
        job,
        ways: Ways::new(job, shard, sources),
        changes: Changes::new(job.live, before),
        regions: regions(job, shard)?,
        reader: ShardReader::new(job.store, shard),
        runners: job.live.all.iter().map(LiveExtractor::runner).collect(),
        output: Output {
            mentions: job.live.all.iter().map(|_| Vec::new()).collect(),
            costs: vec![CostsBy::new(); job.live.all.len()],
            ..Output::default()
        },
    };
    for batch in batches(&pages, |page| page.text_bytes) {
        work.batch(batch)?;
    }
    work.changes.deletions(&pages);
    Ok(Output { deltas: work.changes.finish(), ..work.output })
}

/// The old regions of a page and what found them.
struct Regions {
    matcher: MatcherKind,
    list: Vec<Region>,
}

fn regions(job: &Job<'_>, shard: u32) -> Result<HashMap<Arc<str>, Regions>> {
    let mut regions: HashMap<Arc<str>, Regions> = HashMap::new();
    if job.plan.matches() {
        let partition = job.store.partition(RegionRow::NAME, job.snapshot)?;
        for row in partition.shard::<RegionRow>(shard)? {
            let region = Region {
                start: u32::try_from(row.start)?,
                end: u32::try_from(row.end)?,
                old_start: u32::try_from(row.old_start)?,
            };
            match regions.entry(row.url) {
                Entry::Occupied(mut page) => page.get_mut().list.push(region),
                Entry::Vacant(page) => _ = page.insert(Regions { matcher: row.matcher, list: vec![region] }),
            }
        }
    }
    Ok(regions)
}

struct Work<'a> {
    job: &'a Job<'a>,
    ways: Ways<'a>,
    changes: Changes<'a>,
    regions: HashMap<Arc<str>, Regions>,
    reader: ShardReader<'a>,
    runners: Vec<LiveRunner<'a>>,
    output: Output,
}

/// A page with the texts that its ways need.
struct Loaded<'a> {
    page: &'a PagePair,
    url: Arc<str>,
    text: Option<&'a str>,
    old_text: Option<&'a str>,
}

impl Loaded<'_> {
    fn text(&self) -> Result<&str> {
        self.text.context("a text was not loaded")
    }

    fn old_text(&self) -> Result<&str> {
        self.old_text.context("an old text was not loaded")
    }
}

/// A page's mentions of one extractor.
struct Done {
    rows: Vec<MentionRow>,
    extraction: Extraction,
}

/// An extraction that was tried, and what it took.
struct Tried<'w> {
    result: Result<Recycled, Failure>,
    /// The rows that mentions may have been copied from.
    source: &'w [MentionRow],
    served: Served,
    /// Seconds of making mentions of those rows.
    converting: f64,
    /// Seconds of the extraction itself.
    extracting: f64,
}

impl Work<'_> {
    fn batch(&mut self, pages: &[PagePair]) -> Result<()> {
        let mut ways = Vec::new();
        for page in pages {
            let has_regions = self.regions.contains_key(page.url.as_str());
            let each = (0..self.job.live.all.len()).map(|i| self.ways.of(page, i, has_regions));
            ways.push(each.collect::<Result<Vec<Way>>>()?);
        }
        let needing = |needs: fn(&Way) -> bool| {
            pages.iter().zip(&ways).filter(move |(_, ways)| ways.iter().any(needs)).map(|(page, _)| page)
        };
        let new: Vec<_> = needing(Way::needs_text).map(|page| (page.url.as_str(), &page.text_snapshot)).collect();
        let old: Vec<_> = needing(Way::needs_old_text)
            .filter_map(|page| Some((page.url.as_str(), page.old_text_snapshot.as_ref()?)))
            .collect();
        let watch = Stopwatch::start(Clock::Own);
        let texts = self.reader.texts(&new)?;
        let old_texts = self.reader.texts(&old)?;
        let bytes = texts.iter().chain(&old_texts).map(String::len).sum::<usize>() as u64;
        self.output.read.add(Speed { bytes, seconds: watch.seconds() });
        let texts: HashMap<&str, String> = new.iter().map(|(url, _)| *url).zip(texts).collect();
        let old_texts: HashMap<&str, String> = old.iter().map(|(url, _)| *url).zip(old_texts).collect();
        for (page, ways) in pages.iter().zip(&ways) {
            let text = texts.get(page.url.as_str()).map(String::as_str);
            let old_text = old_texts.get(page.url.as_str()).map(String::as_str);
            self.page(&Loaded { page, url: page.url.as_str().into(), text, old_text }, ways)?;
        }
        Ok(())
    }

    fn page(&mut self, page: &Loaded<'_>, ways: &[Way]) -> Result<()> {
        let mut done: Vec<Option<Done>> = ways.iter().map(|_| None).collect();
        // Records come after what they are made of.
        let all = &self.job.live.all;
        let (others, records): (Vec<usize>, Vec<usize>) = (0..ways.len()).partition(|&i| all[i].extractor().is_some());
        for i in others.into_iter().chain(records) {
            done[i] = Some(match (&ways[i], &all[i].making) {
                (Way::Keep(source), _) => self.keep(page, i, source.of(page.page, i)),
                (Way::TakeOver(source), _) => self.take_over(page, i, source.of(page.page, i)),
                (way, Making::Extracts(extractor)) => self.extract(page, i, extractor, way)?,
                (_, Making::Joins { record, parts }) => self.join(page, i, record, parts, &done)?,
            });
        }
        for (i, done) in done.into_iter().enumerate() {
            let Done { rows, extraction } = done.context("an extractor was left out")?;
            self.changes.page(i, &extraction, &rows);
            self.output.extractions.push(extraction);
            self.output.mentions[i].extend(rows);
        }
        Ok(())
    }

    /// What the extractor costs on pages served in this way, with one more page.
    fn costs(&mut self, page: &Loaded<'_>, i: usize, served: Served) -> &mut Costs {
        let costs = self.output.costs[i].entry(served).or_default();
        costs.pages += 1;
        costs.text_bytes += u64::try_from(page.page.text_bytes).unwrap_or(0);
        costs
    }

    /// The rows of an earlier run, as they are.
    fn keep(&mut self, page: &Loaded<'_>, i: usize, source: &ExtractedPage) -> Done {
        let watch = Stopwatch::start(Clock::Wall);
        let rows = source.rows.clone();
        self.count_copied(page, i, &rows, watch);
        Done { rows, extraction: source.extraction.clone() }
    }

    /// The rows of the old page, under this page's URL.
    fn take_over(&mut self, page: &Loaded<'_>, i: usize, source: &ExtractedPage) -> Done {
        let watch = Stopwatch::start(Clock::Wall);
        let mut rows = source.rows.clone();
        for row in &mut rows {
            row.url = Arc::clone(&page.url);
            row.copied = true;
        }
        let mut extraction = self.extraction(page, i, Served::Equal);
        extraction.mentions = rows.len() as i64;
        extraction.copied = extraction.mentions;
        self.count_copied(page, i, &rows, watch);
        Done { rows, extraction }
    }

    fn count_copied(&mut self, page: &Loaded<'_>, i: usize, rows: &[MentionRow], watch: Stopwatch) {
        let costs = self.costs(page, i, Served::Equal);
        costs.copied += rows.len() as u64;
        costs.copy_s += watch.seconds();
    }

    /// A page's mentions, found or copied from its old page.
    fn extract(&mut self, page: &Loaded<'_>, i: usize, extractor: &Extractor, way: &Way) -> Result<Done> {
        let Tried { result, source, served, converting, extracting } = self.attempt(page, i, extractor, way)?;
        let mut extraction = self.extraction(page, i, served);
        let (job, url) = (self.job, &page.url);
        let live = &job.live.all[i];
        let costs = self.costs(page, i, served);
        let recycled = match result {
            Ok(recycled) => recycled,
            Err(failure) => {
                log::warn!("extractor '{}' on {url}: {failure}", live.name);
                costs.failed += 1;
                costs.failed_s += extracting;
                extraction.status = failure.status();
                return Ok(Done { rows: Vec::new(), extraction });
            }
        };
        if recycled.not_local {
            costs.not_local += 1;
            log::warn!(
                "extractor '{}' on {url}: depends on more than its declared context; ratoon audit tells",
                live.name
            );
        }
        extraction.bytes_extracted = recycled.bytes_extracted as i64;
        extraction.mentions = recycled.found.len() as i64;
        extraction.copied = recycled.copied() as i64;
        let watch = Stopwatch::start(Clock::Wall);
        let text = page.text()?;
        let row = |found: &Found| {
            let since = found.source.map_or(job.snapshot, |index| &source[index as usize].since);
            rows::row(live, &found.mention, url, text, found.source.is_some(), since.clone())
        };
        let rows: Vec<MentionRow> = recycled.found.iter().map(row).collect();
        count(costs, &recycled, converting, extracting, watch.seconds());
        Ok(Done { rows, extraction })
    }

    /// Runs an extractor on a page in the way that was decided on.
    fn attempt<'w>(&mut self, page: &Loaded<'_>, i: usize, extractor: &Extractor, way: &'w Way) -> Result<Tried<'w>> {
        let live = &self.job.live.all[i];
        let found = self.regions.get(&page.url);
        let regions = found.map(|found| found.list.as_slice()).unwrap_or_default();
        let by_region = found.map_or(Served::None, |found| Served::Matcher(found.matcher));
        let mut served = if live.by_units() { Served::Units } else { by_region };
        let runner = &mut self.runners[i];
        let text = page.text()?;
        let mut source: &[MentionRow] = &[];
        let mut converting = 0.0;
        let watch = Stopwatch::start(live.clock());
        let result = match way {
            Way::Recycle(from) => {
                source = &from.of(page.page, i).rows;
                let mentions: Option<Vec<Mention>> = source.iter().map(|row| rows::mention(live, row)).collect();
                let old_text = page.old_text()?;
                converting = watch.seconds();
                match mentions {
                    Some(mentions) => {
                        let old = Old { text: old_text, mentions: &mentions };
                        recycle(extractor, runner, Some(old), text, regions)
                    }
                    None => scratch(extractor, runner, text),
                }
            }
            Way::Edit { source: from, same_text } => {
                source = &from.of(page.page, i).rows;
                let (old_terms, edit) = self.job.edits.of(i).context("no edit")?;
                let label = |row: &MentionRow| old_terms.label(row.label.as_deref()?);
                let mentions: Option<Vec<Mention>> =
                    source.iter().map(|row| rows::mention_with(live, row, label(row)?)).collect();
                let old_text = if *same_text { text } else { page.old_text()? };
                converting = watch.seconds();
                match mentions {
                    Some(mentions) => {
                        let regions = if *same_text { &[] } else { regions };
                        Ok(recycle_edited(edit, Old { text: old_text, mentions: &mentions }, text, regions))
                    }
                    None => scratch(extractor, runner, text),
                }
            }
            Way::Scratch | Way::Keep(_) | Way::TakeOver(_) => {
                served = Served::None;
                scratch(extractor, runner, text)
            }
        };
        Ok(Tried { result, source, served, converting, extracting: watch.seconds() - converting })
    }

    /// A page's records, joined from the mentions of their parts.
    fn join(
        &mut self,
        page: &Loaded<'_>,
        i: usize,
        record: &Record,
        parts: &[usize],
        done: &[Option<Done>],
    ) -> Result<Done> {
        let (job, url) = (self.job, &page.url);
        let live = &job.live.all[i];
        let served = self.regions.get(url).map_or(Served::None, |found| Served::Matcher(found.matcher));
        let watch = Stopwatch::start(Clock::Wall);
        let mut extraction = self.extraction(page, i, served);
        let costs = self.costs(page, i, served);
        let made_of: Vec<&Done> = parts.iter().filter_map(|&part| done[part].as_ref()).collect();
        if let Some(failed) = made_of.iter().find(|part| part.extraction.status != Status::Ok) {
            costs.failed += 1;
            extraction.status = failed.extraction.status;
            return Ok(Done { rows: Vec::new(), extraction });
        }
        let mentions = |(&part, done): (&usize, &&Done)| -> Option<Vec<Mention>> {
            done.rows.iter().map(|row| rows::mention(&job.live.all[part], row)).collect()
        };
        let mentions: Option<Vec<Vec<Mention>>> = parts.iter().zip(&made_of).map(mentions).collect();
        let mentions = mentions.context("mentions do not fit their extractor")?;
        let lists: Vec<&[Mention]> = mentions.iter().map(Vec::as_slice).collect();
        let joined = record.join(&lists);
        if joined.capped {
            log::warn!(
                "extractor '{}' on {url}: more than {} records; the rest is left out",
                live.name,
                record.max_records()
            );
        }
        let text = page.text()?;
        let mut rows = Vec::with_capacity(joined.records.len());
        for record in &joined.records {
            let row_of = |used: &Used| &made_of[used.extractor as usize].rows[used.mention as usize];
            let copied = record.origin(|used| row_of(used).copied) == Origin::Copied;
            // A record is as new as the newest of its parts.
            let all_since = record.parts.iter().map(|used| &row_of(used).since);
            let since = all_since.max_by_key(|id| job.order.get(*id).copied()).unwrap_or(job.snapshot);
            rows.push(rows::row(live, &record.mention, url, text, copied, since.clone()));
        }
        extraction.mentions = rows.len() as i64;
        extraction.copied = rows.iter().filter(|row| row.copied).count() as i64;
        costs.copied += extraction.copied.unsigned_abs();
        costs.extracted += (extraction.mentions - extraction.copied).unsigned_abs();
        costs.extract_s += watch.seconds();
        Ok(Done { rows, extraction })
    }

    fn extraction(&self, page: &Loaded<'_>, i: usize, served: Served) -> Extraction {
        let live = &self.job.live.all[i];
        Extraction {
            url: Arc::clone(&page.url),
            extractor: Arc::clone(&live.name),
            status: Status::Ok,
            matcher: served,
            text_digest: page.page.text_digest,
            fingerprint: live.fingerprint,
            bytes_extracted: 0,
            mentions: 0,
            copied: 0,
        }
    }
}

/// Counts a page that was extracted. `rows` is the seconds that making rows of all its mentions took: for mentions that
/// were found it belongs to finding them, for copied ones to copying.
fn count(costs: &mut Costs, recycled: &Recycled, converting: f64, extracting: f64, rows: f64) {
    #[expect(clippy::cast_precision_loss, reason = "a share of counts")]
    let copying = rows * (recycled.copied() as f64 / recycled.found.len().max(1) as f64);
    costs.bytes_extracted += recycled.bytes_extracted;
    costs.lower_bound += recycled.lower_bound.unwrap_or(recycled.bytes_extracted);
    costs.copied += recycled.copied();
    costs.extracted += recycled.extracted();
    costs.extract_s += extracting + (rows - copying);
    costs.copy_s += converting + copying;
}
