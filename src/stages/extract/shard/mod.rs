//! One shard of a snapshot: pages, their old pages' mentions and regions to mentions, extractions and deltas.
//!
//! What many pages need is read for many at once: here it is decided what that is. `page` then does one after the other.

mod input;
mod making;
mod page;

use std::sync::Arc;

use anyhow::Result;

use self::input::{Regions, TouchedPage, gone, pages, regions};
use self::page::Loaded;
use super::asking::Pending;
use super::changes::{Changes, Version};
use super::job::Job;
use super::known::{UrlExtractions, rows_in};
use super::live::{Live, LiveExtractor, LiveRunner};
use super::output::Output;
use super::resume::GoodTexts;
use super::shown::{self, Beside};
use super::sources::Sources;
use super::ways::{Candidate, Way, Ways, old_url};
use crate::matching::Scratch;
use crate::model::SnapshotId;
use crate::model::maps::HashMap;
use crate::plan::model::Speed;
use crate::run::clock::{Clock, Stopwatch};
use crate::store::batches::batches;
use crate::store::texts::ShardReader;
use crate::tables::extract::MentionDelta;
use crate::tables::ingest::PagePair;
use crate::tables::record::Table as _;

/// URLs whose old mentions are read together.
const TOGETHER: usize = 2_048;

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

/// By extractor, whether its mentions may be carried.
fn carries(live: &Live) -> Vec<bool> {
    let is_part = |i: usize| live.all.iter().any(|record| record.parts().contains(&i));
    (0..live.all.len()).map(|i| live.all[i].schema.carried_columns().is_some() && !is_part(i)).collect()
}

/// A shard that is being worked on.
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
            output: Output::new(job.live, gone),
            collects: false,
        })
    }

    fn batch(&mut self, pages: &[TouchedPage]) -> Result<()> {
        let job = self.job;
        let own = pages.iter().map(|page| (self.shard, page.pair.url.as_str()));
        let moved = pages.iter().filter_map(|page| page.pair.moved_from.as_deref());
        let known = job.known.of(own.chain(moved.map(|url| (job.store.shard_of(url), url))))?;
        let names: Vec<&str> = pages.iter().map(|page| page.pair.url.as_str()).collect();
        let done =
            if job.done_before { rows_in(job.store, self.shard, job.snapshot, &names)? } else { HashMap::default() };
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
                let done = if done.is_empty() { None } else { done.get(&(pair.url.clone(), live.key)) };
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
            return Ok(HashMap::default());
        }
        let row = |page: &'_ TouchedPage| match &page.pair.old_snapshot {
            Some(snapshot) if !page.touched => snapshot.clone(),
            _ => self.job.snapshot.clone(),
        };
        let rows: Vec<SnapshotId> = pages.iter().map(row).collect();
        let urls = pages.iter().map(|page| page.pair.url.as_str());
        shown::beside(self.job.store, self.shard, urls.zip(&rows))
    }

    /// Tells the mentions of pages that are no longer there.
    fn deletions(&mut self) -> Result<()> {
        let gone = std::mem::take(&mut self.output.gone);
        for urls in gone.chunks(TOGETHER) {
            let known = self.job.known.of(urls.iter().map(|url| (self.shard, url.as_str())))?;
            let mut wanted = Vec::new();
            for url in urls {
                let known = known.get(url.as_str());
                wanted.extend((0..self.job.live.all.len()).flat_map(|i| self.changes.wanted(i, url, known, None)));
            }
            let mentions = self.sources.load(&wanted)?;
            for (url, known) in urls.iter().filter_map(|url| known.get_key_value(url.as_str())) {
                self.changes.deletion(url, known, &mentions);
                for (i, live) in self.job.live.all.iter().enumerate() {
                    self.output.old_mentions[i] += known.mentions(live.key);
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
            false => known.is_older(live.key, live.fingerprint),
        }
    }
}
