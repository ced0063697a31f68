//! One shard of a snapshot: pages, their old pages' mentions and regions to mentions, extractions and deltas.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::answers::About;
use super::changes::{Changes, Version};
use super::costs::CostsBy;
use super::edits::Edits;
use super::known::{Known, UrlExtractions, UrlTonight, extractor_key, rows_in};
use super::live::{Live, LiveExtractor, LiveRunner, Making};
use super::resume::{self, GoodTexts};
use super::rows;
use super::shown::{self, Beside};
use super::sources::{CarriedPart, OldMentions, SharedSources, Sources};
use super::ways::{Borrowed, Candidate, Source, Way, Ways, old_url};
use crate::extract::llm::Request;
use crate::extract::record::Used;
use crate::extract::traits::Extracts as _;
use crate::extract::{Came, Extractor, Failure, Found, Mention, Model, Origin, Record, Reported, Runner, Status};
use crate::manifests::Costs;
use crate::matching::{MatcherKind, Scratch};
use crate::model::{Digest, DigestBuilder, Region, SnapshotId, Span, Standing};
use crate::plan::model::Speed;
use crate::plan::{Plan, Served};
use crate::recycle::{Old, Recycled, recycle, recycle_edited, scratch};
use crate::run::clock::{Clock, Stopwatch};
use crate::store::Store;
use crate::store::batches::batches;
use crate::store::parquet::GROUP_ROWS;
use crate::store::passes::Parcel;
use crate::store::state::Placed;
use crate::store::texts::ShardReader;
use crate::tables::extract::{Extraction, MentionDelta};
use crate::tables::ingest::{Page, PagePair, UrlOnly};
use crate::tables::matching::RegionRow;
use crate::tables::mentions::{MentionRow, Mentions, mentions_of};
use crate::tables::record::Table as _;

/// What all shards share.
pub(super) struct Job<'a> {
    pub(super) store: &'a Store,
    pub(super) known: Known<'a>,
    pub(super) live: &'a Live,
    pub(super) edits: &'a Edits<'a>,
    pub(super) snapshot: &'a SnapshotId,
    /// `pages` has all pages of the snapshot.
    pub(super) pages_whole: bool,
    pub(super) plan: &'a Plan,
    /// By extractor, whether it is run on all pages of the snapshot, not only on those that it touched.
    pub(super) whole: Vec<bool>,
    /// By extractor, whether its mentions of this snapshot are already there.
    pub(super) kept: Vec<bool>,
    /// By extractor, its fingerprint in the snapshot before.
    pub(super) before: Vec<Option<Digest>>,
    /// By extractor, whether it has changed since the snapshot before, and old text keeps what was found before.
    pub(super) crosses: Vec<bool>,
    /// By extractor, whether its mentions are compared with those of the snapshot before: it crosses, or
    /// ran there as it is now.
    pub(super) compares: Vec<bool>,
    /// By extractor, whether this process runs it.
    pub(super) does: Vec<bool>,
    /// An earlier run has rows of this snapshot.
    pub(super) done_before: bool,
    /// An earlier run has told what changed in this snapshot.
    pub(super) stands: bool,
    /// Position of each snapshot in time.
    pub(super) order: HashMap<SnapshotId, usize>,
    pub(super) sources: SharedSources,
}

/// The rows of a shard. Vectors of vectors are by extractor.
#[derive(Default)]
pub(super) struct Output {
    pub(super) mentions: Vec<Mentions>,
    pub(super) extractions: Vec<Extraction>,
    pub(super) deltas: Vec<MentionDelta>,
    pub(super) costs: Vec<CostsBy>,
    /// URLs that have no page any more.
    pub(super) gone: Vec<String>,
    /// By extractor, mentions that the pages worked on had before, and those that went.
    pub(super) old_mentions: Vec<i64>,
    /// By extractor, pages that it failed on and had not failed on before.
    pub(super) failed_anew: Vec<u64>,
    /// By extractor, pages that have what another definition found, and of the pages worked on and those that went, how
    /// many had.
    pub(super) older: Vec<u64>,
    pub(super) older_before: Vec<u64>,
    /// Pages with units that were asked about in this snapshot, in the order of the table.
    pub(super) asked: Vec<AskedPage>,
    /// Texts read.
    pub(super) read: Speed,
    /// What is known of the URLs now, in the order of `extractions`; `None` if others found it out.
    pub(super) known: Option<Vec<UrlTonight>>,
}

/// What is no table of an [`Output`].
#[derive(Serialize, Deserialize)]
struct BesideRows {
    costs: Vec<CostsBy>,
    gone: Vec<String>,
    old_mentions: Vec<i64>,
    failed_anew: Vec<u64>,
    older: Vec<u64>,
    older_before: Vec<u64>,
    read: Speed,
}

impl Output {
    /// For whoever takes it. What was asked for is not handed on: who keeps answers works alone.
    pub(super) fn pack(self, job: &Job<'_>) -> Result<Parcel> {
        let mut parcel = Parcel::default();
        for ((live, mentions), whole) in job.live.all.iter().zip(&self.mentions).zip(&job.whole) {
            for batch in live.schema.encode_all(mentions, *whole, GROUP_ROWS) {
                parcel.put_batch(&mentions_of(&live.name), &batch)?;
            }
        }
        parcel.put(Extraction::NAME, &self.extractions)?;
        parcel.put(MentionDelta::NAME, &self.deltas)?;
        let Self { costs, gone, old_mentions, failed_anew, older, older_before, read, .. } = self;
        parcel.put_values(&BesideRows { costs, gone, old_mentions, failed_anew, older, older_before, read })?;
        Ok(parcel)
    }

    pub(super) fn unpack(mut parcel: Parcel, live: &Live) -> Result<Self> {
        let BesideRows { costs, gone, old_mentions, failed_anew, older, older_before, read } = parcel.take_values()?;
        let mut mentions = Vec::new();
        for live in &live.all {
            let mut rows = Vec::new();
            for batch in parcel.take_batches(&mentions_of(&live.name))? {
                rows.extend(live.schema.decode(&batch)?);
            }
            mentions.push(Mentions::of(rows));
        }
        let (extractions, deltas) = (parcel.take(Extraction::NAME)?, parcel.take(MentionDelta::NAME)?);
        let asked = Vec::new();
        Ok(Self {
            mentions,
            extractions,
            deltas,
            costs,
            gone,
            old_mentions,
            failed_anew,
            older,
            older_before,
            asked,
            read,
            known: None,
        })
    }
}

/// A page with units whose answers were asked for in this snapshot, for it or for another page.
pub(super) struct AskedPage {
    /// By index.
    pub(super) extractor: usize,
    pub(super) extraction: usize,
    pub(super) rows: Range<usize>,
    /// With the digest of the request.
    pub(super) units: Vec<(Span, Digest)>,
}

/// A request to be sent.
pub(super) struct Pending {
    pub(super) key: Digest,
    pub(super) request: Request,
    /// The page that lacks the answer.
    pub(super) url: String,
    /// The unit.
    pub(super) text: String,
}

impl Pending {
    pub(super) fn about(&self) -> About<'_> {
        About { key: self.key, url: &self.url, unit: &self.text }
    }

    /// Whether an answer can be used.
    pub(super) fn read(&self, model: &Model, said: &str) -> Result<(), Failure> {
        model.read(said, &self.text).map(|_| ())
    }
}

/// Calls `ask` with every request that the pages of a shard need and no answer is kept for, and with the index of its
/// extractor, as long as it says so.
pub(super) fn collect_shard(
    job: &Job<'_>,
    shard: u32,
    ask: &mut dyn FnMut(usize, Pending) -> Result<bool>,
) -> Result<()> {
    let pages = pages(job, shard)?;
    let mut work = Work::new(job, shard, Vec::new())?;
    work.runners.iter_mut().for_each(LiveRunner::collect);
    work.collects = true;
    for batch in batches(&pages, |page| page.pair.text_bytes) {
        for pages in batch.chunks(TOGETHER) {
            work.batch(pages)?;
            for i in 0..work.runners.len() {
                for pending in work.runners[i].collected() {
                    if !ask(i, pending)? {
                        return Ok(());
                    }
                }
            }
        }
    }
    Ok(())
}

/// URLs whose old mentions are read together.
const TOGETHER: usize = 2_048;

pub(super) fn extract_shard(job: &Job<'_>, shard: u32) -> Result<Output> {
    let pages = pages(job, shard)?;
    let mut work = Work::new(job, shard, gone(job, shard, &pages)?)?;
    for batch in batches(&pages, |page| page.pair.text_bytes) {
        for pages in batch.chunks(TOGETHER) {
            work.batch(pages)?;
        }
    }
    work.deletions()?;
    if job.stands {
        let told = job.store.partition(MentionDelta::NAME, job.snapshot).and_then(|told| told.shard(shard));
        // What went bad is made again, and what another definition told then is lost.
        work.changes.keep(if job.done_before { told? } else { told.unwrap_or_default() });
    }
    Ok(Output { deltas: work.changes.finish(), ..work.output })
}

/// A page of the snapshot.
struct TouchedPage {
    pair: PagePair,
    /// The snapshot touched it; else it is as the snapshot before left it.
    touched: bool,
}

/// The pages that some extractor is run on, by URL.
fn pages(job: &Job<'_>, shard: u32) -> Result<Vec<TouchedPage>> {
    let own: Vec<PagePair> = job.store.partition(Page::NAME, job.snapshot)?.shard(shard)?;
    let touched = |pair| TouchedPage { pair, touched: true };
    if job.pages_whole {
        return Ok(own.into_iter().map(touched).collect());
    }
    if !job.whole.contains(&true) {
        let urls = own.iter().map(|pair| pair.url.as_str()).collect();
        let failing = resume::still_failing(job, shard, &urls)?.into_iter();
        let failing: Vec<TouchedPage> =
            failing.map(|placed| TouchedPage { pair: as_it_was(placed), touched: false }).collect();
        let mut pages: Vec<TouchedPage> = own.into_iter().map(touched).chain(failing).collect();
        pages.sort_by(|a, b| a.pair.url.cmp(&b.pair.url));
        return Ok(pages);
    }
    let own: HashMap<String, PagePair> = own.into_iter().map(|pair| (pair.url.clone(), pair)).collect();
    let all = job.store.pages_at(job.snapshot)?.placed::<PagePair>(job.store, shard)?.into_iter();
    let page = |placed: Placed<PagePair>| match own.get(&placed.row.url) {
        Some(pair) => touched(pair.clone()),
        None => TouchedPage { pair: as_it_was(placed), touched: false },
    };
    Ok(all.map(page).collect())
}

/// A page that the snapshot did not touch: its old page is itself.
fn as_it_was(Placed { snapshot, row }: Placed<PagePair>) -> PagePair {
    PagePair {
        change: Standing::Carried,
        returned: false,
        moved_from: None,
        old_snapshot: Some(snapshot),
        old_text_digest: Some(row.text_digest),
        old_text_snapshot: Some(row.text_snapshot.clone()),
        ..row
    }
}

/// The URLs of a shard that had a page in the snapshot before and have none now.
fn gone(job: &Job<'_>, shard: u32, pages: &[TouchedPage]) -> Result<Vec<String>> {
    if job.pages_whole {
        let there = |url: &str| pages.binary_search_by(|page| page.pair.url.as_str().cmp(url)).is_ok();
        return job.known.missing(shard, there);
    }
    let mut gone = Vec::new();
    let partition = job.store.partition(Page::NAME, job.snapshot)?;
    partition.visit::<UrlOnly<'_>>(&partition.deleted(shard), |row| gone.push(row.url.to_owned()))?;
    Ok(gone)
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

/// By extractor, whether its mentions may be carried.
fn carries(live: &Live) -> Vec<bool> {
    let is_part = |i: usize| live.all.iter().any(|record| record.parts().contains(&i));
    (0..live.all.len()).map(|i| live.all[i].schema.carried_columns().is_some() && !is_part(i)).collect()
}

struct Work<'a> {
    job: &'a Job<'a>,
    shard: u32,
    ways: Ways<'a>,
    sources: Sources<'a>,
    changes: Changes<'a>,
    regions: HashMap<Arc<str>, Regions>,
    reader: ShardReader<'a>,
    runners: Vec<LiveRunner<'a>>,
    /// By extractor, whether mentions of pages that are as before may be carried: no record is made of them.
    carries: Vec<bool>,
    /// Memory of matchers.
    scratch: Scratch,
    output: Output,
    /// Nothing is extracted: only what models are to be asked is wanted.
    collects: bool,
}

/// A page with the texts that its ways need.
struct Loaded<'a> {
    page: &'a PagePair,
    url: Arc<str>,
    text: Option<&'a str>,
    old_text: Option<&'a str>,
    /// What is known of its URL.
    known: Option<&'a UrlExtractions>,
    mentions: &'a OldMentions,
    good_texts: &'a GoodTexts,
    shown: &'a Beside,
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
    /// Mentions that are carried instead.
    carried: Vec<CarriedPart>,
    extraction: Extraction,
    /// They are only looked at: another snapshot has them.
    borrowed: bool,
    /// Units whose answers were asked for in this snapshot, with the digest of the request.
    units: Vec<(Span, Digest)>,
}

impl Done {
    /// Without mentions.
    fn new(extraction: Extraction) -> Self {
        Self { rows: Vec::new(), carried: Vec::new(), extraction, borrowed: false, units: Vec::new() }
    }
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
    /// What its worker states that it came to, where answers are not kept.
    used: Reported,
}

impl<'a> Work<'a> {
    fn new(job: &'a Job<'a>, shard: u32, gone: Vec<String>) -> Result<Self> {
        Ok(Self {
            job,
            shard,
            ways: Ways::new(job),
            sources: Sources::new(job.store, job.live, &job.sources),
            changes: Changes::new(job.live, &job.compares),
            regions: regions(job, shard)?,
            reader: ShardReader::new(job.store, shard),
            runners: job.live.all.iter().map(LiveExtractor::runner).collect(),
            carries: carries(job.live),
            scratch: Scratch::default(),
            output: Output {
                mentions: job.live.all.iter().map(|_| Mentions::default()).collect(),
                costs: vec![CostsBy::new(); job.live.all.len()],
                gone,
                old_mentions: vec![0; job.live.all.len()],
                failed_anew: vec![0; job.live.all.len()],
                older: vec![0; job.live.all.len()],
                older_before: vec![0; job.live.all.len()],
                known: Some(Vec::new()),
                ..Output::default()
            },
            collects: false,
        })
    }

    fn batch(&mut self, pages: &[TouchedPage]) -> Result<()> {
        let job = self.job;
        let urls = pages.iter().flat_map(|page| [page.pair.url.as_str(), old_url(&page.pair)]);
        let known = job.known.of(urls.collect::<BTreeSet<_>>().into_iter())?;
        let names: Vec<&str> = pages.iter().map(|page| page.pair.url.as_str()).collect();
        let done = if job.done_before { rows_in(job.store, self.shard, job.snapshot, &names)? } else { HashMap::new() };
        let beside = self.beside(pages)?;
        let nothing = Beside::default();
        let shown = |page: &PagePair| beside.get(&page.url).unwrap_or(&nothing);
        let mut ways = Vec::new();
        for TouchedPage { pair, touched } in pages {
            let has_regions = self.regions.contains_key(pair.url.as_str());
            let old = known.get(old_url(pair));
            let candidate = Candidate { page: pair, touched: *touched, has_regions, old, shown: shown(pair) };
            let mut each = Vec::new();
            for (i, live) in job.live.all.iter().enumerate() {
                if !job.does[i] || (self.collects && live.model().is_none()) {
                    each.push(Way::Skip);
                    continue;
                }
                let done = done.get(&(pair.url.clone(), extractor_key(&live.name)));
                let way = self.ways.of(&self.sources, candidate, i, done)?;
                let unseen = self.is_unseen(pair, i, &way, known.get(pair.url.as_str()));
                each.push(if unseen { way.unseen(pair) } else { way });
            }
            ways.push(each);
        }
        let pairs = || pages.iter().map(|page| &page.pair);
        let mut wanted = Vec::new();
        for (page, ways) in pairs().zip(&ways) {
            for (i, way) in ways.iter().enumerate() {
                wanted.extend(way.wanted(i));
                if self.collects || !job.does[i] {
                    continue;
                }
                let known = known.get(page.url.as_str());
                let shown = shown(page).digest(job.live.all[i].along, &page.url);
                let fingerprint = way.fingerprint(job.live.all[i].fingerprint);
                let version = Version { text: page.text_digest, shown, fingerprint };
                wanted.extend(self.changes.wanted(i, &page.url, known, Some(version)));
            }
        }
        let mentions = self.sources.load(&wanted)?;
        let good_texts = GoodTexts::read(job.store, self.shard, pairs().zip(ways.iter().map(Vec::as_slice)))?;
        let needing = |needs: fn(&Way) -> bool| {
            pairs().zip(&ways).filter(move |(_, ways)| ways.iter().any(needs)).map(|(page, _)| page)
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
        for (page, ways) in pairs().zip(&ways) {
            let text = texts.get(page.url.as_str()).map(String::as_str);
            let old_text = old_texts.get(page.url.as_str()).map(String::as_str);
            let known = known.get(page.url.as_str());
            let url = page.url.as_str().into();
            let shown = shown(page);
            let (mentions, good_texts) = (&mentions, &good_texts);
            self.page(&Loaded { page, url, text, old_text, known, mentions, good_texts, shown }, ways)?;
        }
        Ok(())
    }

    /// Whether nobody looks at the mentions that a page takes over: they are neither compared nor joined.
    fn is_unseen(&self, page: &PagePair, i: usize, way: &Way, known: Option<&UrlExtractions>) -> bool {
        let Way::TakeOver(source) = way else { return false };
        let now = Version { text: page.text_digest, shown: source.shown, fingerprint: source.fingerprint };
        self.carries[i] && !self.changes.compares(i, known, now)
    }

    /// What pages have beside their texts, if any extractor is shown it.
    fn beside(&self, pages: &[TouchedPage]) -> Result<HashMap<String, Beside>> {
        if !self.job.live.all.iter().any(|live| live.along.title) {
            return Ok(HashMap::new());
        }
        let row = |page: &'_ TouchedPage| match &page.pair.old_snapshot {
            Some(snapshot) if !page.touched => snapshot.clone(),
            _ => self.job.snapshot.clone(),
        };
        let rows: Vec<SnapshotId> = pages.iter().map(row).collect();
        let urls = pages.iter().map(|page| page.pair.url.as_str());
        shown::beside(self.job.store, self.shard, urls.zip(&rows))
    }

    fn page(&mut self, page: &Loaded<'_>, ways: &[Way]) -> Result<()> {
        if self.collects {
            for (i, way) in ways.iter().enumerate() {
                if let (Some(extractor), true) = (self.job.live.all[i].extractor(), way.needs_text()) {
                    self.attempt(page, i, extractor, way)?;
                }
            }
            return Ok(());
        }
        let mut done: Vec<Option<Done>> = ways.iter().map(|_| None).collect();
        // Records come after what they are made of.
        let all = &self.job.live.all;
        let (others, records): (Vec<usize>, Vec<usize>) = (0..ways.len()).partition(|&i| all[i].extractor().is_some());
        for i in others.into_iter().chain(records) {
            done[i] = match (&ways[i], &all[i].making) {
                (Way::Skip, _) => None,
                (Way::Borrow(borrowed), _) => Some(self.borrow(page, i, borrowed)),
                (Way::Keep(extraction), _) => Some(self.keep(page, i, extraction)),
                (Way::TakeOver(source), _) => Some(self.take_over(page, i, source)),
                (Way::Carry(source), _) => Some(self.carry(page, i, source)),
                (way, Making::Extracts(extractor)) => Some(self.extract(page, i, extractor, way)?),
                (_, Making::Joins { record, parts }) => Some(self.join(page, i, record, parts, &done)?),
            };
        }
        let before = self.output.extractions.len();
        for (i, done) in done.into_iter().enumerate() {
            let Some(Done { mut rows, carried, mut extraction, borrowed: false, units }) = done else { continue };
            let whole = self.job.whole[i];
            rows.iter_mut().for_each(|row| row.whole = whole);
            let good = page.known.and_then(|known| known.good(extractor_key(&self.job.live.all[i].name)));
            let snapshot = self.job.snapshot;
            extraction.whole = whole;
            extraction.mentions_snapshot = (!rows.is_empty() || !carried.is_empty()).then(|| snapshot.clone());
            extraction.good_snapshot = match extraction.status {
                Status::Ok => Some(snapshot.clone()),
                _ => good.map(|good| good.snapshot.clone()),
            };
            self.changes.page(i, &extraction, &rows, page.known, page.mentions);
            let key = extractor_key(&self.job.live.all[i].name);
            self.output.old_mentions[i] += page.known.map_or(0, |known| known.mentions(key));
            let is_anew = extraction.error.is_some() && !page.known.is_some_and(|known| known.has_failed(key));
            self.output.failed_anew[i] += u64::from(is_anew);
            self.output.older[i] += u64::from(extraction.fingerprint != self.job.live.all[i].fingerprint);
            self.output.older_before[i] += u64::from(page.known.is_some_and(|known| self.was_older(known, i)));
            if !units.is_empty() {
                let first = self.output.mentions[i].rows.len();
                let (extraction, rows) = (self.output.extractions.len(), first..first + rows.len());
                self.output.asked.push(AskedPage { extractor: i, extraction, rows, units });
            }
            self.output.extractions.push(extraction);
            self.output.mentions[i].rows.extend(rows);
            for (from, rows) in carried {
                self.output.mentions[i].carry(&from, rows);
            }
        }
        let rows = &self.output.extractions[before..];
        if let Some(known) = self.output.known.as_mut().filter(|_| !rows.is_empty()) {
            known.push(UrlTonight::after(page.known.cloned().unwrap_or_default(), rows, self.job.snapshot));
        }
        Ok(())
    }

    /// Tells the mentions of pages that are no longer there.
    fn deletions(&mut self) -> Result<()> {
        let gone = std::mem::take(&mut self.output.gone);
        for urls in gone.chunks(TOGETHER) {
            let known = self.job.known.of(urls.iter().map(String::as_str))?;
            let mut wanted = Vec::new();
            for url in urls {
                let known = known.get(url.as_str());
                wanted.extend((0..self.job.live.all.len()).flat_map(|i| self.changes.wanted(i, url, known, None)));
            }
            let mentions = self.sources.load(&wanted)?;
            for (url, known) in urls.iter().filter_map(|url| known.get_key_value(url.as_str())) {
                self.changes.deletion(url, known, &mentions);
                for (i, live) in self.job.live.all.iter().enumerate() {
                    self.output.old_mentions[i] += known.mentions(extractor_key(&live.name));
                    let was_older = self.was_older(known, i);
                    self.output.older_before[i] += u64::from(was_older);
                }
            }
        }
        self.output.gone = gone;
        Ok(())
    }

    /// Whether a page of the snapshot before had what another definition than the present one found.
    fn was_older(&self, known: &UrlExtractions, i: usize) -> bool {
        let live = &self.job.live.all[i];
        match self.job.crosses[i] {
            true => known.alive,
            false => known.is_older(extractor_key(&live.name), live.fingerprint),
        }
    }

    /// What the extractor costs on pages served in this way, with one more page.
    fn costs(&mut self, page: &Loaded<'_>, i: usize, served: Served) -> &mut Costs {
        let costs = self.output.costs[i].entry(served).or_default();
        costs.pages += 1;
        costs.text_bytes += u64::try_from(page.page.text_bytes).unwrap_or(0);
        costs
    }

    /// What another snapshot has of a page that the extractor is not run on.
    fn borrow(&self, page: &Loaded<'_>, i: usize, borrowed: &Borrowed) -> Done {
        let mut extraction = self.extraction(page, i, Served::Equal);
        let rows = match borrowed {
            Borrowed::Mentions(source) => {
                extraction.fingerprint = source.fingerprint;
                page.mentions.of(i, &source.url, source.lies_in.as_ref()).to_vec()
            }
            Borrowed::Nothing => {
                extraction.status = Status::Failed;
                Vec::new()
            }
        };
        Done { rows, borrowed: true, ..Done::new(extraction) }
    }

    /// The rows of an earlier run, as they are.
    fn keep(&mut self, page: &Loaded<'_>, i: usize, extraction: &Extraction) -> Done {
        let watch = Stopwatch::start(Clock::Wall);
        let rows = page.mentions.of(i, &page.url, extraction.mentions_snapshot.as_ref()).to_vec();
        self.count_copied(page, i, rows.len(), watch);
        Done { rows, ..Done::new(extraction.clone()) }
    }

    /// The rows of the old page, under this page's URL.
    fn take_over(&mut self, page: &Loaded<'_>, i: usize, source: &Source) -> Done {
        let watch = Stopwatch::start(Clock::Wall);
        let mut rows = page.mentions.of(i, &source.url, source.lies_in.as_ref()).to_vec();
        for row in &mut rows {
            row.url = Arc::clone(&page.url);
            row.copied = true;
        }
        let extraction = self.taken_over(page, i, source, rows.len());
        self.count_copied(page, i, rows.len(), watch);
        Done { rows, ..Done::new(extraction) }
    }

    /// The same without a look at them.
    fn carry(&mut self, page: &Loaded<'_>, i: usize, source: &Source) -> Done {
        let watch = Stopwatch::start(Clock::Wall);
        let carried = page.mentions.carried(i, &source.url, source.lies_in.as_ref()).to_vec();
        let count = carried.iter().map(|(_, rows)| rows.len()).sum();
        let extraction = self.taken_over(page, i, source, count);
        self.count_copied(page, i, count, watch);
        Done { carried, ..Done::new(extraction) }
    }

    fn taken_over(&self, page: &Loaded<'_>, i: usize, source: &Source, mentions: usize) -> Extraction {
        let mut extraction = self.extraction(page, i, Served::Equal);
        (extraction.fingerprint, extraction.shown_digest) = (source.fingerprint, source.shown);
        extraction.mentions = mentions as i64;
        extraction.copied = extraction.mentions;
        extraction
    }

    fn count_copied(&mut self, page: &Loaded<'_>, i: usize, mentions: usize, watch: Stopwatch) {
        let costs = self.costs(page, i, Served::Equal);
        costs.copied += mentions as u64;
        costs.copy_s += watch.seconds();
    }

    /// A page's mentions, found or copied from its old page.
    fn extract(&mut self, page: &Loaded<'_>, i: usize, extractor: &Extractor, way: &Way) -> Result<Done> {
        let Tried { result, source, served, converting, extracting, used } = self.attempt(page, i, extractor, way)?;
        let mut extraction = self.extraction(page, i, served);
        let (job, url) = (self.job, &page.url);
        let live = &job.live.all[i];
        let costs = self.costs(page, i, served);
        costs.input_tokens += used.input_tokens.unwrap_or(0);
        costs.output_tokens += used.output_tokens.unwrap_or(0);
        // Answers that are kept have their price with them.
        let sent = result.as_ref().ok().filter(|_| live.answers().is_none());
        costs.price += live.price_of(used, sent.map_or(0, |recycled| recycled.bytes_extracted));
        let recycled = match result {
            Ok(recycled) => recycled,
            Err(failure) => {
                live.tell(url, &failure);
                costs.failed += 1;
                costs.failed_s += extracting;
                extraction.status = failure.status();
                extraction.error = Some(failure.reason());
                return Ok(Done::new(extraction));
            }
        };
        if recycled.not_local {
            costs.not_local += 1;
            live.tell(url, &"depends on more than its declared context; ratoon audit tells");
        }
        extraction.units_deferred = recycled.deferred() as i64;
        extraction.refused = recycled.refused as i64;
        if extraction.units_deferred > 0 {
            extraction.status = Status::Deferred;
            let waits = live.answers().is_some_and(|answers| !answers.is_short());
            let why = if waits {
                "a batch has its answers in a later run"
            } else {
                "the budget was used up before all units were asked about"
            };
            extraction.error = Some(why.to_owned());
            costs.deferred += 1;
            costs.units_deferred += recycled.deferred();
        }
        costs.refused += recycled.refused;
        extraction.bytes_extracted = recycled.bytes_extracted as i64;
        extraction.mentions = recycled.found.len() as i64;
        let watch = Stopwatch::start(Clock::Wall);
        let text = page.text()?;
        let mut units = Units::new(&recycled.units);
        // Many mentions in a row have the same label.
        let mut label: Option<(u32, Option<Arc<str>>)> = None;
        let mut row = |found: &Found| {
            let (copied, since) = match (found.source, units.known_since(&found.mention)) {
                (Some(index), _) => (true, &source[index as usize].since),
                (None, Some(since)) => (true, since),
                (None, None) => (false, job.snapshot),
            };
            let number = found.mention.label;
            if label.as_ref().is_none_or(|(last, _)| *last != number) {
                label = Some((number, live.label_text(number).map(Into::into)));
            }
            let text_of = label.as_ref().and_then(|(_, text)| text.clone());
            rows::labelled_row(&found.mention, text_of, url, text, copied, since.clone())
        };
        let rows: Vec<MentionRow> = recycled.found.iter().map(&mut row).collect();
        extraction.copied = rows.iter().filter(|row| row.copied).count() as i64;
        count(costs, &recycled, extraction.copied.unsigned_abs(), converting, extracting, watch.seconds());
        Ok(Done { rows, units: units.tonight(), ..Done::new(extraction) })
    }

    /// Runs an extractor on a page in the way that was decided on.
    fn attempt<'w>(&mut self, page: &Loaded<'w>, i: usize, extractor: &Extractor, way: &Way) -> Result<Tried<'w>> {
        let live = &self.job.live.all[i];
        let found = self.regions.get(&page.url);
        let regions = found.map(|found| found.list.as_slice()).unwrap_or_default();
        let by_region = found.map_or(Served::None, |found| Served::Matcher(found.matcher));
        let mut served = if live.by_units() { Served::Units } else { by_region };
        let runner = &mut self.runners[i];
        runner.turn_to(page.shown, &page.url);
        let text = page.text()?;
        let mut source: &[MentionRow] = &[];
        let mut converting = 0.0;
        let watch = Stopwatch::start(live.clock());
        let result = match way {
            Way::Recycle(from) => {
                source = page.mentions.of(i, &from.url, from.lies_in.as_ref());
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
            Way::Resume { source: from, good } => {
                source = page.mentions.of(i, &from.url, from.lies_in.as_ref());
                let mentions: Option<Vec<Mention>> = source.iter().map(|row| rows::mention(live, row)).collect();
                converting = watch.seconds();
                match mentions.zip(page.good_texts.of(&page.url, good)) {
                    Some((mentions, old_text)) => {
                        let mut found = Vec::new();
                        if !live.by_units() {
                            // The regions that were matched are those of the old page.
                            let kind = self.job.plan.matcher.unwrap_or(MatcherKind::Anchor);
                            kind.regions(old_text, text, self.job.plan.min_region, &mut self.scratch, &mut found);
                            served = Served::Matcher(kind);
                        }
                        let old = Old { text: old_text, mentions: &mentions };
                        recycle(extractor, runner, Some(old), text, &found)
                    }
                    None => {
                        served = Served::None;
                        scratch(extractor, runner, text)
                    }
                }
            }
            Way::Edit { source: from, same_text } => {
                source = page.mentions.of(i, &from.url, from.lies_in.as_ref());
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
            Way::Scratch | Way::Skip | Way::Borrow(_) | Way::Keep(_) | Way::TakeOver(_) | Way::Carry(_) => {
                served = Served::None;
                scratch(extractor, runner, text)
            }
        };
        let extracting = watch.seconds() - converting;
        let used = Runner::used(&mut self.runners[i]);
        Ok(Tried { result, source, served, converting, extracting, used })
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
            match failed.extraction.status {
                Status::Deferred => costs.deferred += 1,
                _ => costs.failed += 1,
            }
            extraction.status = failed.extraction.status;
            extraction.error = Some(format!("its part '{}' has no mentions", failed.extraction.extractor));
            return Ok(Done::new(extraction));
        }
        // Made of what several definitions found, it is nobody's alone.
        if parts.iter().zip(&made_of).any(|(&part, done)| done.extraction.fingerprint != job.live.all[part].fingerprint)
        {
            let mut mixed = DigestBuilder::new();
            mixed.field(&live.fingerprint.0);
            made_of.iter().for_each(|part| _ = mixed.field(&part.extraction.fingerprint.0));
            extraction.fingerprint = mixed.finish();
        }
        let mentions = |(&part, done): (&usize, &&Done)| -> Option<Vec<Mention>> {
            done.rows.iter().map(|row| rows::mention(&job.live.all[part], row)).collect()
        };
        let mentions: Option<Vec<Vec<Mention>>> = parts.iter().zip(&made_of).map(mentions).collect();
        let mentions = mentions.context("mentions do not fit their extractor")?;
        let lists: Vec<&[Mention]> = mentions.iter().map(Vec::as_slice).collect();
        let text = page.text()?;
        let joined = record.join(text, &lists);
        if joined.capped {
            live.tell(url, &format_args!("more than {} records; the rest is left out", record.max_records()));
        }
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
        Ok(Done { rows, ..Done::new(extraction) })
    }

    fn extraction(&self, page: &Loaded<'_>, i: usize, served: Served) -> Extraction {
        let live = &self.job.live.all[i];
        Extraction {
            url: Arc::clone(&page.url),
            extractor: Arc::clone(&live.name),
            status: Status::Ok,
            error: None,
            matcher: served,
            text_digest: page.page.text_digest,
            shown_digest: page.shown.digest(live.along, &page.url),
            fingerprint: live.fingerprint,
            bytes_extracted: 0,
            mentions: 0,
            copied: 0,
            units_deferred: 0,
            refused: 0,
            mentions_snapshot: None,
            good_snapshot: None,
            whole: false,
        }
    }
}

/// The units of a page that were asked about, in page order.
struct Units<'r> {
    units: Vec<&'r (Span, Came)>,
    at: usize,
}

impl<'r> Units<'r> {
    fn new(units: &'r [(Span, Came)]) -> Self {
        let mut units: Vec<_> = units.iter().collect();
        units.sort_by_key(|(span, _)| *span);
        Self { units, at: 0 }
    }

    /// Since when the answer that a mention comes from is known, if that is longer than since tonight. Mentions are asked
    /// about in page order.
    fn known_since(&mut self, mention: &Mention) -> Option<&'r SnapshotId> {
        while self.units.get(self.at).is_some_and(|(span, _)| span.end <= mention.start) {
            self.at += 1;
        }
        match self.units.get(self.at) {
            Some((span, Came::Before(since))) if span.start <= mention.start => Some(since),
            _ => None,
        }
    }

    fn tonight(&self) -> Vec<(Span, Digest)> {
        let key = |(span, came): &&(Span, Came)| match came {
            Came::Tonight(key) => Some((*span, *key)),
            Came::Now | Came::Before(_) | Came::NotYet => None,
        };
        self.units.iter().filter_map(key).collect()
    }
}

/// Counts a page that was extracted. `rows` is the seconds that making rows of all its mentions took: for mentions that
/// were found it belongs to finding them, for copied ones to copying.
fn count(costs: &mut Costs, recycled: &Recycled, copied: u64, converting: f64, extracting: f64, rows: f64) {
    let all = recycled.found.len() as u64;
    #[expect(clippy::cast_precision_loss, reason = "a share of counts")]
    let copying = rows * (copied as f64 / all.max(1) as f64);
    costs.bytes_extracted += recycled.bytes_extracted;
    costs.lower_bound += recycled.lower_bound.unwrap_or(recycled.bytes_extracted);
    costs.copied += copied;
    costs.extracted += all - copied;
    costs.extract_s += extracting + (rows - copying);
    costs.copy_s += converting + copying;
}
