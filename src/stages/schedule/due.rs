//! What to fetch now: sources that have a poll time, those that are gone and may have returned, and links that were never
//! followed. It only reads, and waits for nobody: where the index is not where the tables are, the tables are read.
//!
//! All sources are looked at, by the few columns that matter and on all threads; which poll time comes first after a moment
//! is worked out once for each time of a period, not for each source.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Context as _, Result};
use jiff::tz::TimeZone;
use rayon::prelude::*;

use super::frontier::{Frontier, Unfollowed};
use crate::config::Pipeline;
use crate::config::schedule::ScheduleSettings;
use crate::manifests::Ingested;
use crate::model::{Method, Period, SnapshotId, Timestamp};
use crate::report::due::DueUrl;
use crate::run::inventory::ingested;
use crate::schedule::SourceBy;
use crate::stages::follow::{decode, has_followed, url_key};
use crate::stages::ingest::Heads;
use crate::stages::stats::UpdateEvidence;
use crate::stats::Calendar;
use crate::store::Store;
use crate::store::index::{Index, Kind};
use crate::store::manifest::Manifest;
use crate::store::state::Layers;
use crate::tables::ingest::{Head, PollFacts};
use crate::tables::record::{Record, Table as _};
use crate::tables::schedule::{DueRow, ScheduleRow};
use crate::tables::stats::{RateRow, UpdateStatsRow};

/// Which polls are asked for: those after `since`, up to `at`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub at: Timestamp,
    /// Without, the time of the newest snapshot.
    pub since: Option<Timestamp>,
    pub limit: Option<usize>,
}

/// What is due, most gain first.
pub(crate) fn due(pipeline: &Pipeline, store: &Store, asked: Asked) -> Result<Vec<DueUrl>> {
    let done = ingested(store)?;
    let newest = done.last().context("no snapshot is done yet")?;
    let settings = &pipeline.schedule;
    let look = Look { store, settings, at: asked.at, since: asked.since.unwrap_or(newest.time), newest };
    let mut polls = look.sources()?;
    look.add_gains(&mut polls)?;
    let mut urls = look.urls(polls)?;
    // One that is damaged is as good as none; the next run makes it again.
    let index = Index::open(&store.index_folder()).ok();
    if let Some(discover) = settings.discover {
        urls.extend(look.discovered(&done, index.as_ref(), discover.scope, discover.polls)?);
    }
    let order = |a: &DueUrl, b: &DueUrl| {
        b.gain.total_cmp(&a.gain).then(a.due_at.cmp(&b.due_at)).then_with(|| a.url.cmp(&b.url))
    };
    urls.par_sort_unstable_by(order);
    urls.truncate(asked.limit.unwrap_or(usize::MAX));
    look.add_facts(&mut urls, index.as_ref())?;
    Ok(urls)
}

/// A source that is due.
struct DuePoll {
    at: Timestamp,
    gone: bool,
    gain: f64,
}

/// Of a page of which no more is known than that it is there, and of one that nobody has seen: it may well be news.
const UNKNOWN_GAIN: f64 = 0.5;
/// Where no update was ever seen, the rate is taken to be this share of the largest one that is likely: about half an
/// update in the time watched.
const UNSEEN_SHARE: f64 = 0.26;

/// The first poll at each time of a period, in one zone.
#[derive(Default)]
struct Firsts {
    zone: Option<String>,
    polls: HashMap<(Period, i64), Option<Timestamp>>,
}

struct Look<'a> {
    store: &'a Store,
    settings: &'a ScheduleSettings,
    at: Timestamp,
    since: Timestamp,
    newest: &'a Manifest<Ingested>,
}

impl Look<'_> {
    /// The newest row of each source, shard by shard. `take` is called with it.
    fn each<R: Record + Send, T: Send>(
        &self,
        table: &str,
        source: impl Fn(&R) -> &String + Sync,
        take: impl Fn(R, &mut Firsts) -> Option<T> + Sync,
    ) -> Result<Vec<Vec<T>>> {
        let Some(at) = self.newest_with(table)? else { return Ok(Vec::new()) };
        let layers: Layers = self.store.layers(table, &at)?;
        let shard = |shard: u32| -> Result<Vec<T>> {
            let (mut taken, mut seen, mut firsts) = (Vec::new(), HashSet::new(), Firsts::default());
            for (i, snapshot) in layers.snapshots().iter().enumerate() {
                let oldest = i + 1 == layers.snapshots().len();
                for row in self.store.partition(table, snapshot)?.shard::<R>(shard)? {
                    if seen.contains(source(&row)) {
                        continue;
                    }
                    if !oldest {
                        seen.insert(source(&row).clone());
                    }
                    taken.extend(take(row, &mut firsts));
                }
            }
            Ok(taken)
        };
        (0..self.store.shards()).into_par_iter().map(shard).collect()
    }

    /// The newest snapshot that has a partition of a table.
    fn newest_with(&self, table: &str) -> Result<Option<SnapshotId>> {
        let all = self.store.all_done()?;
        let with = all.iter().rev().find(|done| done.table(table).is_some());
        Ok(with.map(|done| done.snapshot.id.clone()))
    }

    /// The sources that are due.
    fn sources(&self) -> Result<HashMap<String, DuePoll>> {
        let found = self.each::<DueRow, _>(
            ScheduleRow::NAME,
            |row| &row.source,
            |row, firsts| {
                let gone = row.method == Method::Gone;
                let at = match row.gone_since {
                    Some(since) if gone => self.next_recheck(since),
                    _ => row.poll_times.iter().filter_map(|time| self.first(&row, *time, firsts)).min(),
                };
                Some((row.source, DuePoll { at: at?, gone, gain: if gone { 0.0 } else { UNKNOWN_GAIN } }))
            },
        )?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The first poll at this time of a period that is asked for.
    fn first(&self, row: &DueRow, time: i64, firsts: &mut Firsts) -> Option<Timestamp> {
        if firsts.zone.as_ref().is_none_or(|zone| *zone != row.time_zone) {
            // Rows of one zone follow each other: all but those that an edit has left behind.
            *firsts = Firsts { zone: Some(row.time_zone.clone()), polls: HashMap::new() };
        }
        *firsts.polls.entry((row.period, time)).or_insert_with(|| {
            let own = &self.settings.options.calendar;
            let other = || TimeZone::get(&row.time_zone).map(Calendar::new).unwrap_or_else(|_| Calendar::utc());
            let calendar = if own.name() == row.time_zone { own.clone() } else { other() };
            // No time of a period fails to come twice in a row.
            let enough = self.since.0.saturating_add(3 * row.period.seconds() * Timestamp::SECOND);
            let polls = calendar.polls(row.period, &[time], self.since, Timestamp(self.at.0.min(enough)));
            polls.into_iter().map(Timestamp).find(|poll| *poll > self.since && *poll <= self.at)
        })
    }

    /// When a source that is gone is looked at again, if that is asked for.
    fn next_recheck(&self, gone: Timestamp) -> Option<Timestamp> {
        let every = self.settings.recheck_s.checked_mul(Timestamp::SECOND)?;
        let passed = (self.since.0 - gone.0).max(0) / every;
        Some(Timestamp(gone.0 + (passed + 1) * every)).filter(|next| *next > self.since && *next <= self.at)
    }

    /// What each poll is likely to bring: how probable it is that the page has changed since it was last seen.
    fn add_gains(&self, polls: &mut HashMap<String, DuePoll>) -> Result<()> {
        if polls.is_empty() {
            return Ok(());
        }
        let asked = &*polls;
        let gain = |row: RateRow, _: &mut Firsts| {
            asked.get(&row.source).filter(|poll| !poll.gone)?;
            let rate = if row.rate_per_day > 0.0 { row.rate_per_day } else { UNSEEN_SHARE * row.rate_high };
            let days = (self.at.0 - row.last_seen?.0) as f64 / (86_400.0 * Timestamp::SECOND as f64);
            let known = rate.is_finite() && rate > 0.0;
            Some((row.source, if known { -(-rate * days.max(0.0)).exp_m1() } else { UNKNOWN_GAIN }))
        };
        let gains = self.each::<RateRow, _>(UpdateStatsRow::NAME, |row| &row.source, gain)?;
        for (source, gain) in gains.into_iter().flatten() {
            if let Some(poll) = polls.get_mut(&source) {
                poll.gain = gain;
            }
        }
        Ok(())
    }

    /// The URLs of sources that are due: the source itself, or all of its pages.
    fn urls(&self, polls: HashMap<String, DuePoll>) -> Result<Vec<DueUrl>> {
        if matches!(self.settings.by, SourceBy::Url) {
            return Ok(polls.into_par_iter().map(|(url, poll)| DueUrl::new(url, poll.at, poll.gain)).collect());
        }
        if polls.is_empty() {
            return Ok(Vec::new());
        }
        let pages = self.store.pages_at(&self.newest.snapshot)?;
        let shard = |shard: u32| -> Result<Vec<DueUrl>> {
            let pages = pages.shard::<PollFacts>(self.store, shard)?.into_iter();
            let due = |page: PollFacts| {
                let poll = polls.get(self.settings.by.source(&page.url))?;
                Some(DueUrl::new(page.url, poll.at, poll.gain))
            };
            Ok(pages.filter_map(due).collect())
        };
        let found: Result<Vec<Vec<DueUrl>>> = (0..self.store.shards()).into_par_iter().map(shard).collect();
        Ok(found?.into_iter().flatten().collect())
    }

    /// Links that were never followed, those that most pages have first.
    fn discovered(
        &self,
        done: &[Manifest<Ingested>],
        index: Option<&Index>,
        scope: crate::config::schedule::Scope,
        polls: usize,
    ) -> Result<Vec<DueUrl>> {
        let current = match index {
            Some(index) => has_followed::<UpdateEvidence>(self.store, index, &self.newest.snapshot)?,
            None => false,
        };
        let Some(index) = index.filter(|_| current) else { return Ok(Vec::new()) };
        let Some(frontier) = Frontier::at(self.store, done, &index.moment(), scope)? else { return Ok(Vec::new()) };
        let recheck = self.settings.recheck_s.saturating_mul(Timestamp::SECOND);
        let due_at = |link: &Unfollowed| match link.tried {
            Some(tried) => Timestamp(tried.0.saturating_add(recheck)),
            None => link.seen,
        };
        let mut links: Vec<(&String, &Unfollowed)> =
            frontier.links.iter().filter(|(_, link)| due_at(link) <= self.at).collect();
        links.sort_by(|a, b| b.1.pages.cmp(&a.1.pages).then_with(|| a.0.cmp(b.0)));
        let new = links.into_iter().take(polls);
        Ok(new
            .map(|(url, link)| DueUrl { new: true, ..DueUrl::new(url.clone(), due_at(link), UNKNOWN_GAIN) })
            .collect())
    }

    /// What servers said of the versions that are known, for requests that ask for changes only.
    fn add_facts(&self, urls: &mut [DueUrl], index: Option<&Index>) -> Result<()> {
        let mut by_shard: BTreeMap<u32, Vec<&mut DueUrl>> = BTreeMap::new();
        for url in urls.iter_mut().filter(|url| !url.new) {
            by_shard.entry(self.store.shard_of(&url.url)).or_default().push(url);
        }
        let current = match index {
            Some(index) => has_followed::<Heads>(self.store, index, &self.newest.snapshot)?,
            None => false,
        };
        let moment = index.filter(|_| current).map(Index::moment);
        by_shard.into_par_iter().try_for_each(|(shard, mut urls)| {
            urls.sort_unstable_by(|a, b| a.url.cmp(&b.url));
            if let Some(moment) = &moment {
                let keys: Vec<Vec<u8>> = urls.iter().map(|url| url_key(shard, &url.url)).collect();
                for (url, head) in urls.iter_mut().zip(moment.get_many(Kind::Heads, &keys)?) {
                    let head = head.as_deref().map(decode::<Head>).transpose()?.filter(|head| head.alive);
                    if let Some(head) = head {
                        (url.etag, url.last_modified) = (head.page.etag, head.page.last_modified);
                    }
                }
                return Ok(());
            }
            let pages = self.store.pages_at(&self.newest.snapshot)?.shard::<PollFacts>(self.store, shard)?;
            for url in urls {
                if let Ok(i) = pages.binary_search_by(|page| page.url.cmp(&url.url)) {
                    (url.etag, url.last_modified) = (pages[i].etag.clone(), pages[i].last_modified);
                }
            }
            Ok(())
        })
    }
}
