//! What to fetch now: sources that have a poll time, those that are gone and may have returned, and links that were never
//! followed. It only reads, and waits for nobody: where the index is not where the tables are, the tables are read.
//!
//! All sources are looked at, by the few columns that matter, part by part on all threads: a source lies in the same part
//! of every table. Which poll time comes first after a moment is worked out once for each time of a period, not for each
//! source; what servers said of versions is looked up only for what is shown.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Context as _, Result};
use jiff::tz::TimeZone;
use rayon::prelude::*;

use super::frontier::{Frontier, Unfollowed};
use crate::config::Pipeline;
use crate::config::schedule::ScheduleSettings;
use crate::manifests::Ingested;
use crate::model::{Method, Period, Timestamp};
use crate::report::due::DueUrl;
use crate::run::inventory::ingested;
use crate::schedule::SourceBy;
use crate::stages::follow::{decode, has_followed, shard_key, url_key, url_of};
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
    /// Also what servers said of the versions that are known.
    pub facts: bool,
}

/// What is due, most gain first.
pub(crate) fn due(pipeline: &Pipeline, store: &Store, asked: Asked) -> Result<Vec<DueUrl>> {
    let done = ingested(store)?;
    let none = || format!("no snapshot is done yet; run `ratoon run {}` first", pipeline.path.display());
    let newest = done.last().with_context(none)?;
    let settings = &pipeline.schedule;
    let look = Look { store, settings, at: asked.at, since: asked.since.unwrap_or(newest.time), newest };
    // One that is damaged is as good as none; the next run makes it again.
    let index = Index::open(&store.index_folder()).ok();
    let mut urls = look.urls(look.polls()?, index.as_ref())?;
    if let Some(discover) = settings.discover {
        urls.extend(look.discovered(&done, index.as_ref(), discover.scope, discover.polls)?);
    }
    let order = |a: &DueUrl, b: &DueUrl| {
        b.gain.total_cmp(&a.gain).then(a.due_at.cmp(&b.due_at)).then_with(|| a.url.cmp(&b.url))
    };
    urls.par_sort_unstable_by(order);
    urls.truncate(asked.limit.unwrap_or(usize::MAX));
    if asked.facts {
        look.add_facts(&mut urls, index.as_ref())?;
    }
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
    /// The sources that are due, with what their polls are likely to bring, part by part.
    fn polls(&self) -> Result<Vec<HashMap<String, DuePoll>>> {
        let (Some(schedules), Some(stats)) = (self.state(ScheduleRow::NAME)?, self.state(UpdateStatsRow::NAME)?) else {
            return Ok(Vec::new());
        };
        let of_shard = |shard: u32| -> Result<HashMap<String, DuePoll>> {
            let mut polls = self.sources(shard, &schedules)?;
            self.add_gains(shard, &stats, &mut polls)?;
            Ok(polls)
        };
        (0..self.store.shards()).into_par_iter().map(of_shard).collect()
    }

    /// The partitions of a table that its newest rows lie in; `None` if there is no such table.
    fn state(&self, table: &str) -> Result<Option<Layers>> {
        let all = self.store.all_done()?;
        let Some(newest) = all.iter().rev().find(|done| done.table(table).is_some()) else { return Ok(None) };
        Ok(Some(self.store.layers(table, &newest.snapshot.id)?))
    }

    /// Calls `take` with the newest row of each source of a shard.
    fn each<R: Record>(
        &self,
        shard: u32,
        layers: &Layers,
        table: &str,
        source: impl Fn(&R) -> &String,
        mut take: impl FnMut(R),
    ) -> Result<()> {
        let mut seen = HashSet::new();
        for (i, snapshot) in layers.snapshots().iter().enumerate() {
            let oldest = i + 1 == layers.snapshots().len();
            for row in self.store.partition(table, snapshot)?.shard::<R>(shard)? {
                if seen.contains(source(&row)) {
                    continue;
                }
                if !oldest {
                    seen.insert(source(&row).clone());
                }
                take(row);
            }
        }
        Ok(())
    }

    /// The sources of a shard that are due.
    fn sources(&self, shard: u32, schedules: &Layers) -> Result<HashMap<String, DuePoll>> {
        let (mut polls, mut firsts) = (HashMap::new(), Firsts::default());
        let take = |row: DueRow| {
            let gone = row.method == Method::Gone;
            let at = match row.gone_since {
                Some(since) if gone => self.next_recheck(since),
                _ => row.poll_times.iter().filter_map(|time| self.first(&row, *time, &mut firsts)).min(),
            };
            if let Some(at) = at {
                polls.insert(row.source, DuePoll { at, gone, gain: if gone { 0.0 } else { UNKNOWN_GAIN } });
            }
        };
        self.each(shard, schedules, ScheduleRow::NAME, |row| &row.source, take)?;
        Ok(polls)
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
    fn add_gains(&self, shard: u32, stats: &Layers, polls: &mut HashMap<String, DuePoll>) -> Result<()> {
        if polls.is_empty() {
            return Ok(());
        }
        let take = |row: RateRow| {
            let Some(poll) = polls.get_mut(&row.source).filter(|poll| !poll.gone) else { return };
            let Some(last_seen) = row.last_seen else { return };
            let rate = if row.rate_per_day > 0.0 { row.rate_per_day } else { UNSEEN_SHARE * row.rate_high };
            let days = (self.at.0 - last_seen.0) as f64 / (86_400.0 * Timestamp::SECOND as f64);
            if rate.is_finite() && rate > 0.0 {
                poll.gain = -(-rate * days.max(0.0)).exp_m1();
            }
        };
        self.each(shard, stats, UpdateStatsRow::NAME, |row| &row.source, take)
    }

    /// The URLs of sources that are due: the source itself, or all of its pages.
    fn urls(&self, polls: Vec<HashMap<String, DuePoll>>, index: Option<&Index>) -> Result<Vec<DueUrl>> {
        if matches!(self.settings.by, SourceBy::Url) {
            let urls = polls
                .into_par_iter()
                .flat_map_iter(|polls| polls.into_iter().map(|(url, poll)| DueUrl::new(url, poll.at, poll.gain)));
            return Ok(urls.collect());
        }
        let polls: HashMap<String, DuePoll> = polls.into_iter().flatten().collect();
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
        let mut found: Vec<DueUrl> = found?.into_iter().flatten().collect();
        if polls.values().any(|poll| poll.gone) {
            found.extend(self.dead_pages(&polls, index)?);
        }
        Ok(found)
    }

    /// The pages that groups had which are gone, to see whether any has returned. Only the index has all of them.
    fn dead_pages(&self, polls: &HashMap<String, DuePoll>, index: Option<&Index>) -> Result<Vec<DueUrl>> {
        let current = match index {
            Some(index) => has_followed::<Heads>(self.store, index, &self.newest.snapshot)?,
            None => false,
        };
        let Some(moment) = index.filter(|_| current).map(Index::moment) else { return Ok(Vec::new()) };
        let shard = |shard: u32| -> Result<Vec<DueUrl>> {
            let mut heads = Vec::new();
            moment.scan(Kind::Heads, &shard_key(shard), &mut |key, head| {
                let poll = url_of(key).ok().and_then(|url| Some((url, polls.get(self.settings.by.source(url))?)));
                if let Some((url, poll)) = poll.filter(|(_, poll)| poll.gone) {
                    heads.push((DueUrl::new(url.to_owned(), poll.at, poll.gain), head.to_vec()));
                }
                Ok(true)
            })?;
            let mut dead = Vec::new();
            for (url, head) in heads {
                dead.extend((!decode::<Head>(&head)?.alive).then_some(url));
            }
            Ok(dead)
        };
        let dead: Result<Vec<Vec<DueUrl>>> = (0..self.store.shards()).into_par_iter().map(shard).collect();
        Ok(dead?.into_iter().flatten().collect())
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
