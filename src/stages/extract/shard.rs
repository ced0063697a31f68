//! One shard of a snapshot: pages, their old pages' mentions and regions to mentions, extractions and deltas.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::{Context as _, Result};

use super::edits::Edits;
use super::live::{Live, LiveExtractor, LiveRunner};
use super::rows;
use super::sources::{ExtractedPage, OldMentions, Sources};
use crate::deltas::multiset;
use crate::extract::{Extractor, Found, Mention};
use crate::manifests::Costs;
use crate::matching::MatcherKind;
use crate::model::{MentionChange, Region, SnapshotId};
use crate::plan::model::{Speed, Spent};
use crate::plan::{Plan, Served};
use crate::recycle::{Old, Recycled, recycle, recycle_edited, scratch};
use crate::run::clock::{Clock, Stopwatch};
use crate::store::Store;
use crate::store::batches::batches;
use crate::store::texts::ShardReader;
use crate::tables::extract::{Extraction, MentionDelta, MentionRow, PieceRow};
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
    /// Extractors whose mentions of this snapshot are already there.
    pub(super) kept: Vec<bool>,
    /// The snapshot before, and for each extractor whether it ran there as it is now.
    pub(super) previous: Option<(SnapshotId, Vec<bool>)>,
    /// Position of each snapshot in time.
    pub(super) order: HashMap<SnapshotId, usize>,
}

#[derive(Default)]
pub(super) struct Output {
    /// By extractor.
    pub(super) mentions: Vec<Vec<MentionRow>>,
    pub(super) extractions: Vec<Extraction>,
    pub(super) deltas: Vec<MentionDelta>,
    pub(super) costs: Vec<CostsBy>,
    /// Texts read.
    pub(super) read: Speed,
}

/// What an extractor cost, by how its pages were served.
pub(super) type CostsBy = BTreeMap<Served, Costs>;

/// What an extractor cost on all pages.
pub(super) fn total(costs: &CostsBy) -> Costs {
    costs.values().fold(Costs::default(), |mut sum, more| {
        sum += *more;
        sum
    })
}

/// What an extractor cost, as the cost model remembers it.
pub(super) fn spent(costs: &CostsBy) -> Spent {
    let mut spent = Spent::default();
    for (served, costs) in costs {
        let speed = Speed { bytes: costs.bytes_extracted, seconds: costs.extract_s };
        match served {
            Served::None => spent.scratch.add(speed),
            Served::Equal => {}
            Served::Units | Served::Matcher(_) => {
                spent.recycled.add(speed);
                spent.recycled_pages += costs.pages;
            }
        }
        spent.copied += costs.copied;
        spent.copy_s += costs.copy_s;
    }
    spent
}

/// How a page gets its mentions from an extractor.
#[derive(Clone)]
enum Way {
    /// They are there already, or the text is the old one: rows are taken over as they are.
    Rows {
        from: Arc<OldMentions>,
        url: Arc<str>,
        fresh: bool,
    },
    /// From the old page where regions allow it.
    Recycle {
        from: Arc<OldMentions>,
        url: Arc<str>,
    },
    /// As `Recycle`, with mentions of another term list.
    Edit {
        from: Arc<OldMentions>,
        url: Arc<str>,
        same_text: bool,
    },
    Scratch,
}

/// A page's mentions of one extractor.
struct Done {
    rows: Vec<MentionRow>,
    extraction: Extraction,
}

pub(super) fn extract_shard(job: &Job<'_>, shard: u32) -> Result<Output> {
    let partition = job.store.partition(Page::NAME, job.snapshot)?;
    let pages = partition.shard::<PagePair>(shard)?;
    let mut work = Work {
        job,
        shard,
        sources: Sources::new(job.store, job.live),
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
    work.deletions(&pages)?;
    let mut output = work.output;
    output.deltas.sort_by_cached_key(|delta| {
        (Arc::clone(&delta.url), Arc::clone(&delta.extractor), delta.change.clone(), delta.start, delta.end)
    });
    Ok(output)
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
                Entry::Vacant(page) => {
                    let matcher: MatcherKind = row.matcher.parse()?;
                    page.insert(Regions { matcher, list: vec![region] });
                }
            }
        }
    }
    Ok(regions)
}

struct Work<'a> {
    job: &'a Job<'a>,
    shard: u32,
    sources: Sources<'a>,
    regions: HashMap<Arc<str>, Regions>,
    reader: ShardReader<'a>,
    runners: Vec<LiveRunner<'a>>,
    output: Output,
}

impl Work<'_> {
    fn batch(&mut self, pages: &[PagePair]) -> Result<()> {
        let mut ways = Vec::new();
        for page in pages {
            ways.push((0..self.job.live.all.len()).map(|i| self.way(page, i)).collect::<Result<Vec<Way>>>()?);
        }
        // Texts that somebody has to look at.
        let needs_text = |ways: &[Way]| ways.iter().any(|way| !matches!(way, Way::Rows { .. }));
        let needs_old = |ways: &[Way]| {
            ways.iter().any(|way| matches!(way, Way::Recycle { .. } | Way::Edit { same_text: false, .. }))
        };
        let wanted: Vec<_> =
            pages.iter().zip(&ways).filter(|(_, ways)| needs_text(ways)).map(|(page, _)| page).collect();
        let pointers: Vec<_> = wanted.iter().map(|page| (page.url.as_str(), &page.text_snapshot)).collect();
        let watch = Stopwatch::start(Clock::Own);
        let texts = self.reader.texts(&pointers)?;
        let texts: HashMap<&str, String> = wanted.iter().map(|page| page.url.as_str()).zip(texts).collect();
        let olds: Vec<_> = pages
            .iter()
            .zip(&ways)
            .filter(|(_, ways)| needs_old(ways))
            .filter_map(|(page, _)| Some((page.url.as_str(), page.old_text_snapshot.as_ref()?)))
            .collect();
        let old_texts = self.reader.texts(&olds)?;
        let read = texts.values().chain(&old_texts).map(String::len).sum::<usize>() as u64;
        self.output.read.add(Speed { bytes: read, seconds: watch.seconds() });
        let old_texts: HashMap<&str, String> = olds.iter().map(|(url, _)| *url).zip(old_texts).collect();
        for (page, ways) in pages.iter().zip(&ways) {
            let text = texts.get(page.url.as_str()).map(String::as_str);
            let old_text = old_texts.get(page.url.as_str()).map(String::as_str);
            self.page(page, ways, text, old_text)?;
        }
        Ok(())
    }

    /// Decides how a page gets its mentions.
    fn way(&mut self, page: &PagePair, i: usize) -> Result<Way> {
        let live = &self.job.live.all[i];
        let fits = |extracted: &OldMentions, url: &str, digest| {
            let found = extracted.pages[i].get(url).map(|page| &page.extraction);
            found.filter(|e| e.status == "ok" && Some(e.text_digest) == digest).map(|e| e.fingerprint)
        };
        let own = if self.job.kept[i] || self.job.edits.of(i).is_some() {
            Some(self.sources.of(self.job.snapshot, self.shard)?)
        } else {
            None
        };
        let url: Arc<str> = page.url.as_str().into();
        if let Some(own) = own {
            match fits(&own, &page.url, Some(page.text_digest)) {
                Some(fingerprint) if self.job.kept[i] && fingerprint == live.fingerprint => {
                    return Ok(Way::Rows { from: own, url, fresh: false });
                }
                Some(fingerprint) if !self.job.plan.from_scratch && self.job.edits.is_from(i, fingerprint) => {
                    return Ok(Way::Edit { from: own, url, same_text: true });
                }
                _ => {}
            }
        }
        let Some(old_snapshot) = page.old_snapshot.as_ref().filter(|_| !self.job.plan.from_scratch) else {
            return Ok(Way::Scratch);
        };
        let source: Arc<str> = page.moved_from.as_deref().unwrap_or(&page.url).into();
        let shard = self.job.store.shard_of(&source);
        let at_hand = || shard == self.shard && self.job.previous.as_ref().is_some_and(|(id, _)| id == old_snapshot);
        if self.job.plan.near.contains(&*live.name) && !at_hand() {
            return Ok(Way::Scratch);
        }
        let from = self.sources.of(old_snapshot, shard)?;
        let same_text = page.old_text_digest == Some(page.text_digest);
        Ok(match fits(&from, &source, page.old_text_digest) {
            Some(fingerprint) if fingerprint == live.fingerprint && same_text => {
                Way::Rows { from, url: source, fresh: true }
            }
            // A pruned old page has mentions but no text.
            _ if !same_text && (page.old_text_snapshot.is_none() || !self.pays(i, &page.url)) => Way::Scratch,
            Some(fingerprint) if fingerprint == live.fingerprint && live.parts.is_empty() => {
                Way::Recycle { from, url: source }
            }
            Some(fingerprint) if self.job.edits.is_from(i, fingerprint) => Way::Edit { from, url: source, same_text },
            _ => Way::Scratch,
        })
    }

    /// Whether the plan has an extractor recycle a changed page: one that needs regions must have some.
    fn pays(&self, i: usize, url: &str) -> bool {
        let live = &self.job.live.all[i];
        self.job.plan.recycles(&live.name) && (live.by_units() || self.regions.contains_key(url))
    }

    fn page(&mut self, page: &PagePair, ways: &[Way], text: Option<&str>, old_text: Option<&str>) -> Result<()> {
        let url: Arc<str> = page.url.as_str().into();
        let mut done: Vec<Option<Done>> = ways.iter().map(|_| None).collect();
        // Records come after what they are made of.
        let (records, others): (Vec<usize>, Vec<usize>) =
            (0..ways.len()).partition(|&i| !self.job.live.all[i].parts.is_empty());
        for i in others.into_iter().chain(records) {
            let result = match &ways[i] {
                Way::Rows { from, url: source, fresh } => self.take_over(page, &url, i, &from.pages[i][source], *fresh),
                way => {
                    let text = text.context("a text was not loaded")?;
                    if self.job.live.all[i].parts.is_empty() {
                        self.extract(page, &url, i, way, text, old_text)?
                    } else {
                        self.join(page, &url, i, text, &done)?
                    }
                }
            };
            done[i] = Some(result);
        }
        for (i, done) in done.into_iter().enumerate() {
            let Done { rows, extraction } = done.context("an extractor was left out")?;
            self.delta(&url, i, &extraction, &rows)?;
            self.output.extractions.push(extraction);
            self.output.mentions[i].extend(rows);
        }
        Ok(())
    }

    /// Rows as they are, under this page's URL.
    fn take_over(&mut self, page: &PagePair, url: &Arc<str>, i: usize, source: &ExtractedPage, fresh: bool) -> Done {
        let watch = Stopwatch::start(Clock::Wall);
        let mut rows = source.rows.clone();
        let mut extraction = source.extraction.clone();
        if fresh {
            for row in &mut rows {
                row.url = Arc::clone(url);
                row.copied = true;
            }
            extraction = self.extraction(page, url, i, Served::Equal);
            extraction.mentions = rows.len() as i64;
            extraction.copied = extraction.mentions;
        }
        let costs = self.output.costs[i].entry(Served::Equal).or_default();
        costs.pages += 1;
        costs.text_bytes += u64::try_from(page.text_bytes).unwrap_or(0);
        costs.copied += rows.len() as u64;
        costs.copy_s += watch.seconds();
        Done { rows, extraction }
    }

    fn extract(
        &mut self,
        page: &PagePair,
        url: &Arc<str>,
        i: usize,
        way: &Way,
        text: &str,
        old_text: Option<&str>,
    ) -> Result<Done> {
        let live = &self.job.live.all[i];
        let found = self.regions.get(url);
        let regions = found.map(|found| found.list.as_slice()).unwrap_or_default();
        let runner = &mut self.runners[i];
        let mut source: &[MentionRow] = &[];
        let by_region = found.map_or(Served::None, |found| Served::Matcher(found.matcher));
        let mut served = if live.by_units() { Served::Units } else { by_region };
        let clock = live.clock();
        let watch = Stopwatch::start(clock);
        let mut converted = 0.0;
        let result = match way {
            Way::Recycle { from, url: old_url } => {
                source = &from.pages[i][old_url].rows;
                let mentions: Option<Vec<Mention>> = source.iter().map(|row| rows::mention(live, row)).collect();
                let old_text = old_text.context("an old text was not loaded")?;
                converted = watch.seconds();
                match mentions {
                    Some(mentions) => {
                        let old = Old { text: old_text, mentions: &mentions };
                        recycle(&live.extractor, runner, Some(old), text, regions)
                    }
                    None => scratch(&live.extractor, runner, text),
                }
            }
            Way::Edit { from, url: old_url, same_text } => {
                source = &from.pages[i][old_url].rows;
                let (old_terms, edit) = self.job.edits.of(i).context("no edit")?;
                let label = |row: &MentionRow| old_terms.label(row.label.as_deref()?);
                let mentions: Option<Vec<Mention>> =
                    source.iter().map(|row| rows::mention_with(live, row, label(row)?)).collect();
                let old_text = if *same_text { text } else { old_text.context("an old text was not loaded")? };
                converted = watch.seconds();
                match mentions {
                    Some(mentions) => {
                        let regions = if *same_text { &[] } else { regions };
                        Ok(recycle_edited(edit, Old { text: old_text, mentions: &mentions }, text, regions))
                    }
                    None => scratch(&live.extractor, runner, text),
                }
            }
            Way::Scratch | Way::Rows { .. } => {
                served = Served::None;
                scratch(&live.extractor, runner, text)
            }
        };
        let seconds = watch.seconds() - converted;
        let mut extraction = self.extraction(page, url, i, served);
        let costs = self.output.costs[i].entry(served).or_default();
        costs.pages += 1;
        costs.text_bytes += text.len() as u64;
        let recycled: Recycled = match result {
            Ok(recycled) => recycled,
            Err(failure) => {
                log::warn!("extractor '{}' on {url}: {failure}", live.name);
                costs.failed += 1;
                costs.failed_s += seconds;
                failure.status().clone_into(&mut extraction.status);
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
        costs.bytes_extracted += recycled.bytes_extracted;
        costs.lower_bound += recycled.lower_bound.unwrap_or(recycled.bytes_extracted);
        costs.copied += recycled.copied();
        costs.extracted += recycled.extracted();
        costs.extract_s += seconds;
        let watch = Stopwatch::start(Clock::Wall);
        let row = |found: &Found| {
            let since = found.source.map_or(self.job.snapshot, |index| &source[index as usize].since);
            rows::row(live, &found.mention, url, text, found.source.is_some(), since.clone())
        };
        let rows: Vec<MentionRow> = recycled.found.iter().map(row).collect();
        // Making rows of what was found belongs to finding it, of what was copied to copying.
        #[expect(clippy::cast_precision_loss, reason = "a share of counts")]
        let copied = watch.seconds() * (recycled.copied() as f64 / rows.len().max(1) as f64);
        costs.extract_s += watch.seconds() - copied;
        costs.copy_s += converted + copied;
        Ok(Done { rows, extraction })
    }

    /// A record, from the mentions of its parts.
    fn join(&mut self, page: &PagePair, url: &Arc<str>, i: usize, text: &str, done: &[Option<Done>]) -> Result<Done> {
        let live = &self.job.live.all[i];
        let Extractor::Record(record) = &*live.extractor else { anyhow::bail!("only records have parts") };
        let served = self.regions.get(url).map_or(Served::None, |found| Served::Matcher(found.matcher));
        let watch = Stopwatch::start(Clock::Wall);
        let mut extraction = self.extraction(page, url, i, served);
        let costs = self.output.costs[i].entry(served).or_default();
        costs.pages += 1;
        costs.text_bytes += text.len() as u64;
        let parts: Vec<&Done> = live.parts.iter().filter_map(|&part| done[part].as_ref()).collect();
        if let Some(failed) = parts.iter().find(|part| part.extraction.status != "ok") {
            costs.failed += 1;
            extraction.status.clone_from(&failed.extraction.status);
            return Ok(Done { rows: Vec::new(), extraction });
        }
        let mentions: Vec<Vec<Mention>> = live
            .parts
            .iter()
            .zip(&parts)
            .map(|(&part, done)| {
                let of = &self.job.live.all[part];
                done.rows.iter().map(|row| rows::mention(of, row)).collect::<Option<_>>()
            })
            .collect::<Option<_>>()
            .context("mentions do not fit their extractor")?;
        let lists: Vec<&[Mention]> = mentions.iter().map(Vec::as_slice).collect();
        let joined = record.join(&lists);
        if joined.capped {
            log::warn!(
                "extractor '{}' on {url}: more than {} records; the rest is left out",
                live.name,
                record.max_records()
            );
        }
        let mut rows = Vec::with_capacity(joined.records.len());
        for record in &joined.records {
            let used = || record.parts.iter().map(|used| &parts[used.extractor as usize].rows[used.mention as usize]);
            let copied = used().all(|row| row.copied);
            let time = |id: &SnapshotId| self.job.order.get(id).copied();
            let since = used().map(|row| &row.since).max_by_key(|id| time(id)).unwrap_or(self.job.snapshot);
            rows.push(rows::row(live, &record.mention, url, text, copied, since.clone()));
        }
        extraction.mentions = rows.len() as i64;
        extraction.copied = rows.iter().filter(|row| row.copied).count() as i64;
        costs.copied += extraction.copied.unsigned_abs();
        costs.extracted += (extraction.mentions - extraction.copied).unsigned_abs();
        costs.extract_s += watch.seconds();
        Ok(Done { rows, extraction })
    }

    fn extraction(&self, page: &PagePair, url: &Arc<str>, i: usize, served: Served) -> Extraction {
        let live = &self.job.live.all[i];
        Extraction {
            url: Arc::clone(url),
            extractor: Arc::clone(&live.name),
            status: "ok".into(),
            matcher: served.as_str().to_owned(),
            text_digest: page.text_digest,
            fingerprint: live.fingerprint,
            bytes_extracted: 0,
            mentions: 0,
            copied: 0,
        }
    }

    /// What came and went on a page since the snapshot before.
    fn delta(&mut self, url: &Arc<str>, i: usize, extraction: &Extraction, new: &[MentionRow]) -> Result<()> {
        let Some((previous, same)) = &self.job.previous else { return Ok(()) };
        if !same[i] || extraction.status != "ok" {
            return Ok(());
        }
        let before = self.sources.of(previous, self.shard)?;
        let old: &[MentionRow] = match before.pages[i].get(url) {
            None => &[],
            Some(page) if page.extraction.status != "ok" => return Ok(()),
            Some(page) if page.extraction.text_digest == extraction.text_digest => return Ok(()),
            Some(page) => &page.rows,
        };
        let (added, deleted) = multiset::difference(old.iter().map(meaning), new.iter().map(meaning));
        let name = &self.job.live.all[i].name;
        self.output.deltas.extend(added.into_iter().map(|k| delta_row(name, &new[k], MentionChange::Added)));
        self.output.deltas.extend(deleted.into_iter().map(|k| delta_row(name, &old[k], MentionChange::Deleted)));
        Ok(())
    }

    /// What went with pages that are no longer there.
    fn deletions(&mut self, pages: &[PagePair]) -> Result<()> {
        let Some((previous, same)) = &self.job.previous else { return Ok(()) };
        let before = self.sources.of(previous, self.shard)?;
        for (i, old) in before.pages.iter().enumerate().filter(|(i, _)| same[*i]) {
            for (url, page) in old {
                let there = pages.binary_search_by(|page| (*page.url).cmp(url)).is_ok();
                if !there && page.extraction.status == "ok" {
                    let name = &self.job.live.all[i].name;
                    self.output.deltas.extend(page.rows.iter().map(|row| delta_row(name, row, MentionChange::Deleted)));
                }
            }
        }
        Ok(())
    }
}

type Meaning<'a> = (&'a str, Option<&'a str>, Vec<Option<Vec<&'a str>>>);

/// What makes two mentions the same wherever they stand: their text and the texts of their attributes.
fn meaning(row: &MentionRow) -> Meaning<'_> {
    let attributes = row.attributes.iter().map(|value| value.as_deref().map(texts)).collect();
    (&row.text, row.label.as_deref(), attributes)
}

fn texts(pieces: &[PieceRow]) -> Vec<&str> {
    pieces.iter().map(|piece| piece.text.as_str()).collect()
}

fn delta_row(extractor: &Arc<str>, row: &MentionRow, change: MentionChange) -> MentionDelta {
    MentionDelta {
        url: Arc::clone(&row.url),
        extractor: Arc::clone(extractor),
        change,
        text: row.text.clone(),
        start: row.start,
        end: row.end,
    }
}
