//! `stats`: captures to `updates` and `update_stats`.
//!
//! What is known of a URL lies in the index, so that a new snapshot reads its own captures only. `update_stats` has rows
//! of the sources of which the snapshot tells something new; a base has all.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Instant;

use anyhow::{Context as _, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::follow::{self, Kept, Night, decode, encode, shard_key, url_key, url_of};
use crate::captures::Answer;
use crate::config::schedule::ScheduleSettings;
use crate::manifests::{Ingested, Observed};
use crate::model::{Digest, MentionChange, RegionChange, SnapshotId, StageId, Standing, Timestamp};
use crate::run::shards::{self, Shards};
use crate::run::stage::{Asking, Context, Position, Ran, Stage, Task};
use crate::schedule::SourceBy;
use crate::stats::{Calendar, Evidence, Observation, PhaseModel, Presence, SignalRule, UrlState, summarise};
use crate::store::Store;
use crate::store::index::{Index, Kind, Moment};
use crate::store::manifest::Manifest;
use crate::store::parquet::Partition;
use crate::store::shard_of;
use crate::store::view::Read;
use crate::tables::delta::{PageDelta, PageNewText, RegionDelta, RegionText};
use crate::tables::extract::{MentionChangedOn, MentionDelta};
use crate::tables::ingest::{Capture, CaptureEvidence, Page, PageEvidence, PageMove};
use crate::tables::record::Table as _;
use crate::tables::stats::{EvidenceRow, UpdateRow, UpdateSignal, UpdateStatsRow};

pub(crate) struct Stats;

impl Stage for Stats {
    fn id(&self) -> StageId {
        StageId::Stats
    }

    fn about(&self) -> &'static str {
        "Find when pages changed, how often and by which rhythm"
    }

    fn reads(&self) -> &'static [Read] {
        &[
            Read::Table(Capture::NAME),
            Read::Table(Page::NAME),
            Read::Derived(PageDelta::NAME),
            Read::Derived(RegionDelta::NAME),
            Read::Derived(MentionDelta::NAME),
            Read::Manifest(StageId::Ingest),
        ]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[UpdateRow::NAME, UpdateStatsRow::NAME, EvidenceRow::NAME]
    }

    /// Edited settings are applied to the newest snapshot, though that was done before.
    fn is_done(&self, asking: Asking<'_>, at: Position<'_>) -> Result<bool> {
        let done = asking.store.done(StageId::Stats, at.snapshot)?;
        Ok(done.is_some_and(|done| !at.current || done.settings == asking.pipeline.schedule.sources_digest()))
    }

    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
        stats_snapshot(context, task, done).with_context(|| format!("snapshot {}", task.snapshot.id))
    }
}

/// What is known of a URL.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
struct KnownUrl {
    /// Digest of the last good text, with nothing masked.
    text_digest: Option<Digest>,
    state: UrlState,
    presence: Presence,
    /// What is known of it if its page has moved here, as long as that cannot be told.
    moving: Option<Box<Moving>>,
}

/// A page that came with the text of another URL, which has neither gone nor changed since. Pages move in two steps: the new
/// place is there before the old one goes, and a crawl that polls sees the two at different times.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Moving {
    from: String,
    /// How many updates were known of that URL when the page came.
    updates: u64,
    since: Timestamp,
    /// The history of that URL up to then, and of this one since: exactly what would be known had the old place gone at once.
    known: KnownUrl,
}

/// What stands at two places for so long is a copy: a page that moves leaves its old place within a month.
const MOVING_US: i64 = 30 * 86_400 * Timestamp::SECOND;

/// How a base stores what is known of a URL. Most have no third part.
#[derive(Deserialize)]
struct StoredState {
    state: UrlState,
    presence: Presence,
    #[serde(default)]
    moving: Option<Box<Moving>>,
}

type States = BTreeMap<String, KnownUrl>;

impl KnownUrl {
    /// From its row and, the other way round, as its row: the only place that knows how a base stores it.
    fn from_row(row: EvidenceRow) -> Result<(String, Self)> {
        let StoredState { state, presence, moving } = serde_json::from_str(&row.state)
            .with_context(|| format!("what is known of the updates of {} is damaged", row.url))?;
        Ok((row.url, Self { text_digest: row.text_digest, state, presence, moving }))
    }

    fn to_row(&self, url: &str) -> Result<EvidenceRow> {
        let state = match &self.moving {
            None => serde_json::to_string(&(&self.state, &self.presence))?,
            Some(moving) => serde_json::to_string(&(&self.state, &self.presence, moving))?,
        };
        Ok(EvidenceRow { url: url.to_owned(), text_digest: self.text_digest, state })
    }
}

/// What is known of a URL as bases and the index store it, for the fuzzer.
#[cfg(any(test, feature = "lab"))]
pub(crate) fn state_samples() -> Vec<Vec<u8>> {
    let mut known = KnownUrl::default();
    for day in 0..4 {
        known.state.observe(&Observation {
            fetched_at: Timestamp(day * 86_400 * Timestamp::SECOND),
            evidence: Evidence::Text(Digest::of(&day.to_le_bytes())),
            last_modified: None,
            new_text_share: Some(0.5),
            signal: Some(day % 2 == 0),
        });
    }
    let moving = Moving { from: "http://a/".into(), updates: 3, since: Timestamp(0), known: known.clone() };
    let moved = KnownUrl { moving: Some(Box::new(moving)), ..known.clone() };
    let samples = [&known, &moved].map(|known| [known.to_row("u").map(|row| row.state.into_bytes()), encode(known)]);
    samples.into_iter().flatten().filter_map(Result::ok).collect()
}

/// Reads what is known of a URL, as JSON and as the index has it. What can be read must be written again the same.
#[cfg(any(test, feature = "lab"))]
pub(crate) fn read_state(bytes: &[u8]) -> Result<u64, String> {
    let row = |state: String| EvidenceRow { url: "u".to_owned(), text_digest: None, state };
    let stored = KnownUrl::from_row(row(String::from_utf8_lossy(bytes).into_owned())).ok().map(|(_, known)| known);
    let mut taken = 0;
    for known in stored.into_iter().chain(decode::<KnownUrl>(bytes).ok()) {
        taken += 1;
        let written = |known: &KnownUrl| encode(known).map_err(|error| error.to_string());
        let again: KnownUrl = decode(&written(&known)?).map_err(|error| error.to_string())?;
        if written(&again)? != written(&known)? {
            return Err("what is known is not what is written of it".to_owned());
        }
    }
    Ok(taken)
}

/// What stats keeps in the index.
pub(super) struct UpdateEvidence;

impl Kept for UpdateEvidence {
    const STAGE: StageId = StageId::Stats;
    const FOLLOWS: StageId = StageId::Stats;
    const KINDS: &'static [Kind] = &[Kind::Evidence];

    fn load(store: &Store, index: &Index, base: &SnapshotId) -> Result<()> {
        let partition = store.partition(EvidenceRow::NAME, base)?;
        for shard in 0..store.shards() {
            let states = partition.shard(shard)?.into_iter().map(KnownUrl::from_row).collect::<Result<States>>()?;
            put(index, shard, &states)?;
        }
        Ok(())
    }

    fn replay(store: &Store, index: &Index, night: Night<'_>) -> Result<()> {
        let before = index.moment();
        let told = Signals::Told(store.partition(UpdateRow::NAME, &night.now.snapshot)?);
        let night = NightCaptures::open(store, night.now, night.before, told)?;
        for shard in 0..store.shards() {
            let seen = night.observe(&before, shard, &SourceBy::Url)?;
            put(index, shard, &seen.states)?;
        }
        Ok(())
    }
}

fn put(index: &Index, shard: u32, states: &States) -> Result<()> {
    for (url, known) in states {
        index.put(Kind::Evidence, url_key(shard, url), encode(known)?)?;
    }
    Ok(())
}

/// What is known of some URLs of a shard, in the order asked for.
fn known_urls(at: &Moment, shard: u32, urls: &[&str]) -> Result<Vec<Option<KnownUrl>>> {
    let keys: Vec<Vec<u8>> = urls.iter().map(|url| url_key(shard, url)).collect();
    at.get_many(Kind::Evidence, &keys)?.into_iter().map(|value| value.as_deref().map(decode).transpose()).collect()
}

/// What is known of the updates of some URLs, by URL.
pub(super) fn evidence_of<'u>(
    store: &Store,
    at: &Moment,
    urls: impl Iterator<Item = &'u str>,
) -> Result<Vec<(String, UrlState)>> {
    let mut by_shard: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for url in urls {
        by_shard.entry(store.shard_of(url)).or_default().push(url);
    }
    let mut found = Vec::new();
    for (shard, urls) in by_shard {
        let known = known_urls(at, shard, &urls)?;
        found.extend(urls.into_iter().zip(known).filter_map(|(url, known)| Some((url.to_owned(), known?.state))));
    }
    Ok(found)
}

/// What is known of the updates of all URLs of a shard whose source is wanted, by URL.
pub(super) fn all_evidence(at: &Moment, shard: u32, wanted: impl Fn(&str) -> bool) -> Result<Vec<(String, UrlState)>> {
    let states = scan_states(at, shard, wanted)?;
    Ok(states.into_iter().map(|(url, known)| (url, known.state)).collect())
}

fn scan_states(at: &Moment, shard: u32, wanted: impl Fn(&str) -> bool) -> Result<States> {
    let mut states = Vec::new();
    let mut damaged = None;
    at.scan(Kind::Evidence, &shard_key(shard), &mut |key, value| {
        if let Some(url) = url_of(key).ok().filter(|url| wanted(url)) {
            match decode(value) {
                Ok(known) => states.push((url.to_owned(), known)),
                Err(error) => damaged = Some(error),
            }
        }
        Ok(damaged.is_none())
    })?;
    damaged.map_or_else(|| Ok(states.into_iter().collect()), Err)
}

fn stats_snapshot(context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
    let started = Instant::now();
    let (store, snapshot) = (context.store, &task.snapshot.id);
    let ingested = store.manifest::<Ingested>(snapshot)?.context("it has not been ingested")?;
    let base = ingested.summary.base;
    let settings = &context.pipeline.schedule;
    // Where sources are others than before, or their times are read in another zone, no row that stands holds any more.
    let all = base || is_regrouped(store, done, settings.sources_digest())?;
    follow::bring::<UpdateEvidence>(store, context.index, done)?;
    let before = context.index.moment();
    let signals = Signals::asked(store, snapshot, settings.signal.as_ref())?;
    let night = NightCaptures::open(store, &ingested, done.last(), signals)?;
    let mut staging = store.stage(StageId::Stats, &task.snapshot)?;
    let mut writer = staging.writer::<UpdateRow>()?;
    let bar = context.progress.count(&format!("stats {snapshot}"), store.shards().into());
    let by_url = matches!(settings.by, SourceBy::Url);
    let mut stats_writer = staging.writer::<UpdateStatsRow>()?;
    // Sources of several URLs that the snapshot tells something new of.
    let mut touched: BTreeSet<String> = BTreeSet::new();
    let mut moved: BTreeSet<String> = BTreeSet::new();
    let work = |shard| {
        let seen = night.observe(&before, shard, &settings.by)?;
        let news = seen.states.iter().filter(|(url, _)| by_url && !all && seen.news.contains(*url));
        let rows = stats_of_urls(news, settings);
        Ok((seen, rows))
    };
    shards::in_order(Shards::new(store.shards(), Some(&bar)), work, |shard, (seen, rows)| {
        writer.write(shard, &seen.updates)?;
        stats_writer.write(shard, &rows)?;
        moved.extend(seen.moved.iter().map(|url| settings.by.source(url).to_owned()));
        touched.extend(seen.news.iter().filter(|_| !by_url).map(|url| settings.by.source(url).to_owned()));
        put(context.index, shard, &seen.states)
    })?;
    let after = context.index.moment();
    if by_url && all {
        let stats = |shard| Ok(stats_of_urls(&scan_states(&after, shard, |_| true)?, settings));
        shards::in_order(
            Shards::new(store.shards(), None),
            stats,
            |shard, rows| Ok(stats_writer.write(shard, &rows)?),
        )?;
    } else if !by_url {
        let wanted = |url: &str| all || touched.contains(settings.by.source(url));
        let all = shards::all(store.shards(), |shard| scan_states(&after, shard, wanted))?;
        let all: Vec<(String, KnownUrl)> = all.into_iter().flatten().collect();
        for (shard, rows) in stats_of_groups(store, &all, settings) {
            stats_writer.write(shard, &rows)?;
        }
    }
    let mut tables = BTreeMap::from([
        (UpdateRow::NAME.to_owned(), writer.finish()?.slim()),
        (UpdateStatsRow::NAME.to_owned(), stats_writer.finish()?.whole_if(all)),
    ]);
    if base {
        let mut evidence = staging.writer::<EvidenceRow>()?;
        for shard in 0..store.shards() {
            evidence.write(shard, &evidence_at(&after, shard)?)?;
        }
        tables.insert(EvidenceRow::NAME.to_owned(), evidence.finish()?);
    }
    let mut manifest = Manifest::new(&task.snapshot, ingested.inputs, settings.sources_digest(), Observed { moved });
    manifest.follows = follow::lineage_before(store, StageId::Stats, done)?;
    manifest.tables = tables;
    manifest.seconds = started.elapsed().as_secs_f64();
    staging.commit(&mut manifest)?;
    follow::followed::<UpdateEvidence>(context.index, snapshot, manifest.lineage);
    Ran::new(&manifest)
}

/// Whether the snapshot before had other sources than those that `settings` stands for.
pub(super) fn is_regrouped(store: &Store, done: &[Manifest<Ingested>], settings: Digest) -> Result<bool> {
    let last = done.last().map(|last| store.manifest::<Observed>(&last.snapshot)).transpose()?.flatten();
    Ok(last.is_some_and(|last| last.settings != settings))
}

/// All that is known of the updates of a shard's URLs, as a base stores it.
pub(super) fn evidence_rows(index: &Index, shard: u32) -> Result<Vec<EvidenceRow>> {
    evidence_at(&index.moment(), shard)
}

fn evidence_at(at: &Moment, shard: u32) -> Result<Vec<EvidenceRow>> {
    scan_states(at, shard, |_| true)?.iter().map(|(url, known)| known.to_row(url)).collect()
}

/// What the captures of a shard show.
struct SeenCaptures {
    updates: Vec<UpdateRow>,
    /// What is known now of the URLs that were captured.
    states: States,
    /// Those of them whose captures say something about their text.
    news: HashSet<String>,
    /// Those that took over the history of another URL after they had one of their own.
    moved: Vec<String>,
}

/// The captures of one snapshot, and what `ingest` and `delta` found out about them.
struct NightCaptures<'a> {
    captures: Partition,
    pages: Partition,
    /// What is new on changed pages; `None` of a first snapshot, where all is.
    deltas: Option<Partition>,
    /// Identifies the ignore rules behind masked digests.
    rules: Digest,
    time: Timestamp,
    shards: u32,
    /// `pages` has all living pages.
    whole: bool,
    /// Whether any page went.
    went: bool,
    /// Pages that stood at another URL before, by that URL.
    moved: BTreeMap<String, String>,
    signals: Signals<'a>,
}

/// Where it is found whether versions show the signal.
enum Signals<'a> {
    Nowhere,
    /// In what is new on pages.
    Found {
        rule: &'a SignalRule,
        regions: Option<Partition>,
        mentions: Option<Partition>,
    },
    /// In the updates as they were written: rules may be others by now.
    Told(Partition),
}

/// The same for the URLs of a shard.
enum ShardSignals<'a> {
    Nowhere,
    Found {
        rule: &'a SignalRule,
        urls: HashSet<String>,
    },
    /// By URL and the end of the update's interval.
    Told(HashMap<(String, Timestamp), bool>),
}

impl<'a> Signals<'a> {
    fn asked(store: &Store, snapshot: &SnapshotId, rule: Option<&'a SignalRule>) -> Result<Self> {
        let Some(rule) = rule else { return Ok(Self::Nowhere) };
        let open = |wanted: bool, table: &str| wanted.then(|| store.partition(table, snapshot)).transpose();
        Ok(Self::Found {
            rule,
            regions: open(rule.new_text.is_some(), RegionDelta::NAME)?,
            mentions: open(rule.mention.is_some(), MentionDelta::NAME)?,
        })
    }

    fn shard(&self, shard: u32) -> Result<ShardSignals<'a>> {
        match self {
            Self::Nowhere => Ok(ShardSignals::Nowhere),
            Self::Found { rule, regions, mentions } => {
                let mut urls = HashSet::new();
                for region in
                    regions.iter().map(|table| table.shard::<RegionText>(shard)).collect::<Result<Vec<_>, _>>()?
                {
                    let added = region.into_iter().filter(|region| region.change == RegionChange::Added);
                    let showing = added.filter(|region| region.text.as_deref().is_some_and(|text| rule.is_in(text)));
                    urls.extend(showing.map(|region| region.url));
                }
                for rows in mentions
                    .iter()
                    .map(|table| table.shard::<MentionChangedOn>(shard))
                    .collect::<Result<Vec<_>, _>>()?
                {
                    let added = rows.into_iter().filter(|row| row.change == MentionChange::Added);
                    urls.extend(added.filter(|row| rule.is_mention_of(&row.extractor)).map(|row| row.url));
                }
                Ok(ShardSignals::Found { rule, urls })
            }
            Self::Told(updates) => {
                let rows = updates.shard::<UpdateSignal>(shard)?.into_iter();
                Ok(ShardSignals::Told(rows.filter_map(|row| Some(((row.url, row.before), row.signal?))).collect()))
            }
        }
    }
}

impl ShardSignals<'_> {
    /// Whether the version of a URL that was fetched then shows the signal; `None`: nobody asks.
    fn of(&self, url: &str, fetched_at: Option<Timestamp>, new_text_share: f64) -> Option<bool> {
        match self {
            Self::Nowhere => None,
            Self::Found { rule, urls } => Some(rule.is_enough(new_text_share) || urls.contains(url)),
            Self::Told(told) => told.get(&(url.to_owned(), fetched_at?)).copied(),
        }
    }
}

impl<'a> NightCaptures<'a> {
    /// `before`: the snapshot before, if there is one.
    fn open(
        store: &Store,
        ingested: &Manifest<Ingested>,
        before: Option<&Manifest<Ingested>>,
        signals: Signals<'a>,
    ) -> Result<Self> {
        let snapshot = &ingested.snapshot;
        let open = |table: &str| store.partition(table, snapshot);
        let pages = open(Page::NAME)?;
        let mut moved = BTreeMap::new();
        if ingested.summary.changes.moved > 0 {
            let rows = pages.all_rows::<PageMove>()?.into_iter();
            moved.extend(rows.filter_map(|page| Some((page.moved_from?, page.url))));
        }
        Ok(Self {
            time: ingested.time,
            shards: store.shards(),
            whole: ingested.summary.whole,
            went: ingested.summary.changes.went > 0,
            moved,
            signals,
            captures: open(Capture::NAME)?,
            pages,
            deltas: before.map(|_| open(PageDelta::NAME)).transpose()?,
            rules: ingested.summary.ignore,
        })
    }

    /// Takes in the captures of a shard. `before`: the index as the snapshot before left it.
    fn observe(&self, before: &Moment, shard: u32, by: &SourceBy) -> Result<SeenCaptures> {
        let captures = self.captures.shard::<CaptureEvidence>(shard)?;
        let pages = self.pages.shard::<PageEvidence>(shard)?.into_iter();
        let pages: HashMap<String, PageEvidence> = pages.map(|page| (page.url.clone(), page)).collect();
        let new_text = self.new_text(shard)?;
        let signals = self.signals.shard(shard)?;
        let by_url: Vec<&[CaptureEvidence]> = captures.chunk_by(|a, b| a.url == b.url).collect();
        let urls: Vec<&str> = by_url.iter().map(|captures| captures[0].url.as_str()).collect();
        let known = known_urls(before, shard, &urls)?;
        let mut seen =
            SeenCaptures { updates: Vec::new(), states: States::new(), news: HashSet::new(), moved: Vec::new() };
        for (captures, known) in by_url.into_iter().zip(known) {
            let url = &captures[0].url;
            let page = pages.get(url);
            let mut known = match known {
                Some(known) => known,
                None => self.begin(before, page)?,
            };
            if self.settle_move(before, url, &mut known)? {
                seen.moved.push(url.clone());
                seen.news.insert(url.clone());
            }
            let page = page.filter(|page| page.moved_from.is_none());
            let (captures_before, gone_before) = (known.state.captures, known.presence.gone);
            let share = new_text.as_ref().map_or(1.0, |shares| shares.get(url).copied().unwrap_or(0.0));
            for capture in captures {
                let signal = signals.of(url, capture.fetched_at, share);
                let update = self.capture(capture, &mut known, page, (share, signal));
                if let Some(moving) = &mut known.moving {
                    self.capture(capture, &mut moving.known, page, (share, signal));
                }
                seen.updates.extend(update.map(|update| UpdateRow {
                    url: url.clone(),
                    source: by.source(url).to_owned(),
                    after: update.after,
                    before: update.before,
                    updated_at: update.updated_at,
                    updated_at_source: update.updated_at_source,
                    new_text_share: update.new_text_share,
                    signal: update.signal,
                }));
            }
            if known.state.captures > captures_before || known.presence.gone != gone_before {
                seen.news.insert(url.clone());
            }
            if known.state.captures > 0 {
                seen.states.insert(url.clone(), known);
            }
        }
        self.see_moves(before, shard, &mut seen)?;
        if self.whole && self.went {
            self.see_absent(before, shard, &pages, &mut seen)?;
        }
        Ok(seen)
    }

    /// What is known of a URL when it is first seen: nothing, or the history of the URL where its page stood, if that URL
    /// has no page any more. If it has one, that is told later.
    fn begin(&self, before: &Moment, page: Option<&PageEvidence>) -> Result<KnownUrl> {
        let Some(from) = page.and_then(|page| page.moved_from.as_ref()) else { return Ok(KnownUrl::default()) };
        let Some(old) = known_urls(before, shard_of(from, self.shards), &[from])?.pop().flatten() else {
            return Ok(KnownUrl::default());
        };
        let gone = self.has_gone(from, &old)?;
        let known = KnownUrl { presence: Presence::default(), moving: None, ..old };
        if gone {
            return Ok(known);
        }
        let moving = Moving { from: from.clone(), updates: known.state.updates_total, since: self.time, known };
        Ok(KnownUrl { moving: Some(Box::new(moving)), ..KnownUrl::default() })
    }

    /// Whether a URL has no page any more, as its server said before or as this snapshot tells.
    fn has_gone(&self, url: &str, known: &KnownUrl) -> Result<bool> {
        let shard = shard_of(url, self.shards);
        let part = if self.whole { self.pages.part(shard) } else { self.pages.deleted(shard) };
        // A whole partition has what lives, a slim one what went.
        let went = self.pages.find(&part, &[url])?[0].is_empty() == self.whole;
        Ok(went || known.presence.gone.is_some())
    }

    /// Looks at the place that the page of a URL may have come from, and says whether it has come from there: then it takes
    /// the history along. Where the old place has changed, or another page has come from it, it has not.
    fn settle_move(&self, before: &Moment, url: &str, known: &mut KnownUrl) -> Result<bool> {
        let Some(moving) = known.moving.take() else { return Ok(false) };
        let old = known_urls(before, shard_of(&moving.from, self.shards), &[&moving.from])?.pop().flatten();
        let elsewhere = |old: &KnownUrl| old.presence.moved_to.as_ref().is_some_and(|to| to != url);
        let Some(old) = old.filter(|old| old.state.updates_total == moving.updates && !elsewhere(old)) else {
            return Ok(false);
        };
        if self.has_gone(&moving.from, &old)? {
            let Moving { known: history, .. } = *moving;
            *known = KnownUrl { presence: std::mem::take(&mut known.presence), ..history };
            return Ok(true);
        }
        if self.time.0 - moving.since.0 <= MOVING_US {
            known.moving = Some(moving);
        }
        Ok(false)
    }

    /// Notes where pages of the shard's URLs stand now.
    fn see_moves(&self, before: &Moment, shard: u32, seen: &mut SeenCaptures) -> Result<()> {
        for (from, to) in self.moved.iter().filter(|(from, _)| shard_of(from, self.shards) == shard) {
            let known = match seen.states.remove(from) {
                Some(known) => Some(known),
                None => known_urls(before, shard, &[from])?.pop().flatten(),
            };
            let Some(mut known) = known else { continue };
            let gone_before = known.presence.gone;
            known.presence.moves(to, self.time);
            if known.presence.gone != gone_before {
                seen.news.insert(from.clone());
            }
            seen.states.insert(from.clone(), known);
        }
        Ok(())
    }

    /// Notes which URLs have no page any more, though no capture says so.
    fn see_absent(
        &self,
        before: &Moment,
        shard: u32,
        pages: &HashMap<String, PageEvidence>,
        seen: &mut SeenCaptures,
    ) -> Result<()> {
        let absent = scan_states(before, shard, |url| !pages.contains_key(url) && !seen.states.contains_key(url))?;
        let absent = absent.into_iter().filter(|(_, known)| known.presence.gone.is_none());
        seen.states.extend(absent);
        for (url, known) in seen.states.iter_mut().filter(|(url, _)| !pages.contains_key(*url)) {
            if known.presence.gone.is_none() {
                known.presence.gone = Some(self.time);
                seen.news.insert(url.clone());
            }
        }
        Ok(())
    }

    /// Takes in one capture of a URL; gives the update that it shows.
    fn capture(
        &self,
        capture: &CaptureEvidence,
        known: &mut KnownUrl,
        page: Option<&PageEvidence>,
        (new_text_share, signal): (f64, Option<bool>),
    ) -> Option<crate::stats::Update> {
        let fetched_at = capture.fetched_at?;
        let status = capture.status.and_then(|status| u16::try_from(status).ok());
        let evidence = match capture.suspect {
            Some(_) => Evidence::Nothing,
            None => Evidence::of(status, capture.revisit, capture.masked_text_digest),
        };
        if let Evidence::Text(masked) = evidence {
            let same_text = capture.text_digest == known.text_digest;
            // Where the last digest was made by other rules, whenever that was, `ingest` has compared the page with the
            // old one anew and says whether it looks the same.
            let other_rules = known.state.rules != Some(self.rules);
            let looks_same = other_rules
                && page.is_some_and(|page| page.masked_text_digest == masked && page.change == Standing::Unchanged);
            if same_text || looks_same {
                known.state.rebase(masked);
            }
        }
        // What only looks like a page is no sign of one.
        let answer = if capture.suspect.is_some() { Answer::Nothing } else { Answer::of(capture.status) };
        known.presence.answered(answer, fetched_at);
        let update = known.state.observe(&Observation {
            fetched_at,
            evidence,
            last_modified: capture.last_modified.zip(capture.last_modified_source),
            new_text_share: Some(new_text_share),
            signal,
        });
        if matches!(evidence, Evidence::Text(_)) && known.state.last_seen == Some(fetched_at) {
            known.text_digest = capture.text_digest;
            known.state.rules = Some(self.rules);
        }
        update
    }

    /// Share of the text of each changed page that is new to it; `None` if all pages are.
    fn new_text(&self, shard: u32) -> Result<Option<HashMap<String, f64>>> {
        let Some(deltas) = &self.deltas else { return Ok(None) };
        let share = |page: PageNewText| {
            let (bytes, new) = (page.new_bytes?, page.new_text_bytes?);
            Some((page.url, if bytes > 0 { new as f64 / bytes as f64 } else { 0.0 }))
        };
        Ok(Some(deltas.shard::<PageNewText>(shard)?.into_iter().filter_map(share).collect()))
    }
}

/// Rows of sources that are one URL each.
fn stats_of_urls<'s>(
    states: impl IntoIterator<Item = (&'s String, &'s KnownUrl)>,
    settings: &ScheduleSettings,
) -> Vec<UpdateStatsRow> {
    let states: Vec<_> = states.into_iter().collect();
    // Rows are large: there is room for all before they come.
    states.into_iter().map(|(url, known)| stats_row(url, &[known], &settings.options.calendar)).collect()
}

/// Rows of sources that are several URLs, by the shard of the source's name, then by name.
fn stats_of_groups(
    store: &Store,
    states: &[(String, KnownUrl)],
    settings: &ScheduleSettings,
) -> BTreeMap<u32, Vec<UpdateStatsRow>> {
    let mut sources: BTreeMap<(u32, &str), Vec<(&str, &KnownUrl)>> = BTreeMap::new();
    for (url, known) in states {
        let source = settings.by.source(url);
        sources.entry((store.shard_of(source), source)).or_default().push((url, known));
    }
    let rows: Vec<(u32, UpdateStatsRow)> = sources
        .into_par_iter()
        .map(|((shard, source), mut urls)| {
            urls.sort_unstable_by_key(|(url, _)| *url);
            let states: Vec<&KnownUrl> = urls.into_iter().map(|(_, known)| known).collect();
            (shard, stats_row(source, &states, &settings.options.calendar))
        })
        .collect();
    let mut shards: BTreeMap<u32, Vec<UpdateStatsRow>> = BTreeMap::new();
    for (shard, row) in rows {
        shards.entry(shard).or_default().push(row);
    }
    shards
}

fn stats_row(source: &str, urls: &[&KnownUrl], calendar: &Calendar) -> UpdateStatsRow {
    let states: Vec<&UrlState> = urls.iter().map(|known| &known.state).collect();
    let stats = summarise(source, &states, calendar);
    // A source is gone when the last of its URLs is.
    let gone: Option<Vec<Timestamp>> = urls.iter().map(|known| known.presence.gone).collect();
    let (rate, regularity, bursts) = (stats.rate, stats.regularity, stats.bursts);
    let [hour, day, week, month] = stats.phases.each_ref().map(PhaseModel::histogram);
    let [unchanged_hour, unchanged_day, unchanged_week, unchanged_month] = stats.phases.map(|model| model.unchanged_s);
    let [hour_utc, day_utc, week_utc, month_utc] = stats.histograms_utc;
    UpdateStatsRow {
        source: source.to_owned(),
        urls: as_i64(stats.urls),
        captures: as_i64(stats.captures),
        updates: as_i64(stats.updates),
        first_seen: stats.first_seen,
        last_seen: stats.last_seen,
        last_update: stats.last_update,
        gone_since: gone.and_then(|gone| gone.into_iter().max()),
        rate_per_day: rate.per_day,
        rate_low: rate.low,
        rate_high: rate.high,
        rate_estimator: rate.estimator,
        period: stats.period,
        time_zone: calendar.name().to_owned(),
        phase_hour: hour,
        phase_day: day,
        phase_week: week,
        phase_month: month,
        phase_hour_utc: hour_utc,
        phase_day_utc: day_utc,
        phase_week_utc: week_utc,
        phase_month_utc: month_utc,
        unchanged_s: stats.unchanged_s,
        unchanged_hour_s: unchanged_hour,
        unchanged_day_s: unchanged_day,
        unchanged_week_s: unchanged_week,
        unchanged_month_s: unchanged_month,
        regularity: regularity.map(|r| r.rhythm),
        variation: regularity.map(|r| r.variation),
        poisson_p: regularity.map(|r| r.p_value),
        bursts: as_i64(bursts.bursts),
        burst_share: bursts.share,
        mean_life_s: stats.mean_life_s,
        crawl_gap_s: stats.crawl_gap_s,
        new_text_share: stats.new_text_share,
        warnings: (!stats.warnings.is_empty()).then(|| stats.warnings.join("; ")),
    }
}

fn as_i64(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
