//! `delta`: pages and links of consecutive snapshots to `page_deltas`, `link_deltas`, `region_deltas`, queries to web
//! tables and `tuple_deltas`, watches to `alerts`.
//!
//! Both snapshots lie on disk by shard and URL, so that one merge of their digests finds what differs; only that is
//! looked at. Regions are found here (`anchor`), whatever plan the snapshot was extracted by.

mod alerts;
pub mod between;
mod memory;
pub mod notify;
mod pages;
mod queries;
mod unlinked;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};

use self::alerts::{Watcher, is_about_text};
use self::memory::Memories;
use self::pages::{MOVED_BYTES, Pairing, Rules, ShardDelta};
use self::queries::Answer;
use crate::manifests::{Compared, Ingested, Waiting};
use crate::matching::Scratch;
use crate::model::{Digest, DigestBuilder, SnapshotId, StageId};
use crate::run::shards;
use crate::run::stage::{Context, Position, Ran, Stage, Task};
use crate::store::Store;
use crate::store::carried::Carried;
use crate::store::manifest::Manifest;
use crate::store::parquet::PartitionWriter;
use crate::store::staging::Staging;
use crate::store::view::Read;
use crate::tables::delta::{
    Alert, LinkDelta, PageDelta, RegionDelta, SeenRow, TupleDelta, WEB_JOINS, WEB_LINKS, WEB_TUPLES,
};
use crate::tables::extract::{MENTIONS, MentionDelta};
use crate::tables::ingest::{Capture, LinkRow, Page, PageVersion, UrlOnly};
use crate::tables::record::Table as _;

pub struct Delta;

impl Stage for Delta {
    fn id(&self) -> StageId {
        StageId::Delta
    }

    fn about(&self) -> &'static str {
        "Find what came, went and changed since the snapshot before"
    }

    fn reads(&self) -> &'static [Read] {
        &[
            Read::Table(Capture::NAME),
            Read::Table(Page::NAME),
            Read::Table(LinkRow::NAME),
            Read::Table(MENTIONS),
            Read::Table(MentionDelta::NAME),
            Read::Manifest(StageId::Ingest),
        ]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[
            PageDelta::NAME,
            LinkDelta::NAME,
            RegionDelta::NAME,
            WEB_TUPLES,
            WEB_LINKS,
            WEB_JOINS,
            TupleDelta::NAME,
            Alert::NAME,
        ]
    }

    /// A new or changed query is asked of the newest snapshot, though that was done before; and a snapshot that follows
    /// one which was asked again has not been compared with its answers.
    fn is_done(&self, context: &Context<'_>, at: Position<'_>) -> Result<bool> {
        let Some(compared) = context.store.manifest::<Compared>(at.snapshot)? else { return Ok(false) };
        let before = compared_before(context.store, at.before)?;
        Ok(compared.summary.still_follows(before.as_ref().map(|before| &before.summary))
            && (!at.current || queries::all_asked(context.pipeline, &compared.summary)))
    }

    fn forget(&self, store: &Store, snapshot: &SnapshotId) -> Result<()> {
        Ok(store.carried(Carried::Seen).drop(snapshot)?)
    }

    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
        run(context, task, done).with_context(|| format!("snapshot {}", task.snapshot.id))
    }
}

/// What the snapshot before left.
fn compared_before(store: &Store, before: Option<&SnapshotId>) -> Result<Option<Manifest<Compared>>> {
    Ok(match before {
        Some(before) => store.manifest::<Compared>(before)?,
        None => None,
    })
}

/// Rows of a table for each change.
type Counts = BTreeMap<String, u64>;

fn run(context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
    let started = Instant::now();
    let (store, snapshot) = (context.store, &task.snapshot.id);
    let ingested = store.manifest::<Ingested>(snapshot)?.context("it has not been ingested")?;
    let before = compared_before(store, done.last().map(|last| &last.snapshot))?;
    let answers = queries::ask(context.pipeline, store, &ingested, before.as_ref())?;
    let of_queries = answers.iter().map(|answer| (answer.name(), answer.pages())).collect();
    let watcher = Watcher::new(&context.pipeline.watches, of_queries);
    let mut staging = store.stage(StageId::Delta, snapshot)?;
    let staged_seen = staging.dir().join("seen.parquet");
    let mut writers = Writers::new(&mut staging)?;
    let mut night = compare(context, &ingested, done, &watcher, PartitionWriter::create(&staged_seen)?, &mut writers)?;
    let waiting = before.as_ref().map(|before| &before.summary.waiting);
    let (mut alerts, waiting) = watch_night(context, snapshot, &watcher, &night, waiting)?;
    alerts.append(&mut night.alerts);
    let tuples: Vec<TupleDelta> = answers.iter().flat_map(Answer::deltas).collect();
    alerts.extend(watcher.tuples(&tuples));
    let (mut tables, changes) = writers.finish(&mut staging, night, &tuples, &mut alerts, store)?;
    for answer in &answers {
        tables.extend(answer.write(&mut staging, context.asked.keep_joins)?);
    }
    let queries = answers.iter().map(|answer| (answer.name().to_owned(), answer.asked().clone())).collect();
    let summary = Compared { changes, queries, waiting, ignore: ingested.summary.ignore };
    let mut manifest = Manifest::new(&task.snapshot, ingested.inputs, settings(context), summary);
    manifest.tables = tables;
    manifest.seconds = started.elapsed().as_secs_f64();
    for answer in &answers {
        answer.remember(store, snapshot)?;
    }
    notify::tell(context, snapshot, &alerts)?;
    // Before the commit: a run that is killed after it has nothing left to do.
    let keep: Vec<_> = done.last().map(|manifest| &manifest.snapshot).into_iter().chain([snapshot]).collect();
    let seen = store.carried(Carried::Seen);
    seen.keep(&keep)?;
    staging.commit(&manifest, &[(staged_seen, seen.file(snapshot))])?;
    queries::drop_others(store, &manifest)?;
    let failed = answers.iter().filter(|answer| answer.has_failed()).map(|answer| answer.name().to_owned());
    Ok(Ran { alerts, failed_queries: failed.collect(), ..Ran::new(&manifest)? })
}

/// Compares the snapshot with the one before, shard by shard; first sights go to `seen`.
fn compare(
    context: &Context<'_>,
    ingested: &Manifest<Ingested>,
    done: &[Manifest<Ingested>],
    watcher: &Watcher<'_>,
    mut seen: PartitionWriter<SeenRow>,
    writers: &mut Writers,
) -> Result<Night> {
    let (store, snapshot) = (context.store, &ingested.snapshot);
    let known = memory::open(store, done)?;
    let pairing = done.last().map(|last| Pairing {
        store,
        old: &last.snapshot,
        new: snapshot,
        rules: Rules::Following,
        evidence: vec![snapshot],
        watcher: Some(watcher),
    });
    let scratches = Mutex::new(Vec::new());
    let work = |shard| {
        let mut memories = known.as_ref().map_or_else(|| Ok(Memories::default()), |p| Memories::load(p, shard))?;
        let mut scratch: Scratch = scratches.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let output = match &pairing {
            Some(pairing) => pairing.shard(shard, &mut memories, true, &mut scratch)?,
            None => {
                // Nothing to compare with, but a first sight of every page.
                let urls = memory::pages_of(store, snapshot)?.shard::<UrlOnly>(shard)?;
                urls.iter().for_each(|page| memories.observe(&page.url, None, Some(""), snapshot));
                ShardDelta::default()
            }
        };
        scratches.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        Ok((output, memories.into_rows()))
    };
    let mut night = Night::default();
    let bar = context.progress.count(&format!("delta {snapshot}"), store.shards().into());
    shards::in_order(store.shards(), Some(&bar), work, |shard, (output, rows)| {
        seen.write(shard, &rows)?;
        night.take(shard, output, writers)
    })?;
    seen.finish()?;
    if let Some(last) = done.last() {
        night.finish(store, &last.snapshot, snapshot)?;
    }
    Ok(night)
}

fn settings(context: &Context<'_>) -> Digest {
    let mut settings = DigestBuilder::new();
    context.pipeline.queries.iter().for_each(|declared| {
        settings.field(&declared.query.fingerprint().0);
    });
    context.pipeline.watches.iter().for_each(|watch| {
        settings.field(watch.name.as_bytes()).field(&watch.digest.0);
    });
    settings.finish()
}

/// Alerts on what the night brought, and what waits for more; `night` holds those found on the way.
fn watch_night(
    context: &Context<'_>,
    snapshot: &SnapshotId,
    watcher: &Watcher<'_>,
    night: &Night,
    waiting: Option<&Waiting>,
) -> Result<(Vec<Alert>, Waiting)> {
    let none = Waiting::new();
    let (mut alerts, waiting) = watcher.pages(&night.pages, waiting.unwrap_or(&none));
    if watcher.wants_mentions() {
        let partition = context.store.partition(MentionDelta::NAME, snapshot)?;
        alerts.extend(watcher.mentions(&partition.groups(&partition.all_groups())?));
    }
    Ok((alerts, waiting))
}

/// Writers of tables that are filled shard by shard.
struct Writers {
    links: PartitionWriter<LinkDelta>,
    regions: PartitionWriter<RegionDelta>,
}

/// What all shards came to, where more than one shard is needed to know it.
#[derive(Default)]
struct Night {
    /// By shard, then URL.
    pages: Vec<PageDelta>,
    texts: Vec<Digest>,
    lost: HashSet<String>,
    alerts: Vec<Alert>,
    counts: Counts,
}

impl Writers {
    fn new(staging: &mut Staging<'_>) -> Result<Self> {
        Ok(Self { links: staging.writer()?, regions: staging.writer()? })
    }

    /// Writes the tables that need the whole night.
    fn finish(
        self,
        staging: &mut Staging<'_>,
        night: Night,
        tuples: &[TupleDelta],
        alerts: &mut [Alert],
        store: &Store,
    ) -> Result<(BTreeMap<String, u64>, Counts)> {
        let mut counts = night.counts;
        for tuples in tuples.chunk_by(|a, b| (&a.query, &a.delta, a.tuple) == (&b.query, &b.delta, b.tuple)) {
            *counts.entry(format!("tuples {}", tuples[0].delta)).or_default() += 1;
        }
        for page in &night.pages {
            *counts.entry(format!("pages {}", page.change)).or_default() += 1;
        }
        let mut pages = staging.writer::<PageDelta>()?;
        for rows in night.pages.chunk_by(|a, b| store.shard_of(&a.url) == store.shard_of(&b.url)) {
            pages.write(store.shard_of(&rows[0].url), rows)?;
        }
        let mut tuple_deltas = staging.writer::<TupleDelta>()?;
        tuple_deltas.write(0, tuples)?;
        let shard = |alert: &Alert| alert.url.as_deref().map_or(0, |url| store.shard_of(url));
        alerts.sort_by_cached_key(|alert| {
            let place = (shard(alert), alert.url.clone(), alert.watch.clone(), alert.kind.clone());
            (place, alert.tuple, alert.text.clone())
        });
        let mut alert_writer = staging.writer::<Alert>()?;
        for rows in alerts.chunk_by(|a, b| shard(a) == shard(b)) {
            alert_writer.write(shard(&rows[0]), rows)?;
        }
        let tables = [
            (PageDelta::NAME, pages.finish()?),
            (LinkDelta::NAME, self.links.finish()?),
            (RegionDelta::NAME, self.regions.finish()?),
            (TupleDelta::NAME, tuple_deltas.finish()?),
            (Alert::NAME, alert_writer.finish()?),
        ];
        Ok((tables.map(|(name, rows)| (name.to_owned(), rows)).into(), counts))
    }
}

impl Night {
    /// Takes in a shard; what is complete goes to disk.
    fn take(&mut self, shard: u32, output: ShardDelta, writers: &mut Writers) -> Result<()> {
        writers.links.write(shard, &output.links)?;
        writers.regions.write(shard, &output.regions)?;
        self.add(output);
        Ok(())
    }

    fn add(&mut self, output: ShardDelta) {
        for link in &output.links {
            *self.counts.entry(format!("links {}", link.change)).or_default() += 1;
        }
        for region in &output.regions {
            *self.counts.entry(format!("regions {}", region.change)).or_default() += 1;
        }
        self.pages.extend(output.pages);
        self.texts.extend(output.texts);
        self.lost.extend(output.lost);
        self.alerts.extend(output.alerts);
    }

    /// Finds pages that moved and pages that lost their last link.
    fn finish(&mut self, store: &Store, old: &SnapshotId, new: &SnapshotId) -> Result<()> {
        self.moved();
        let unlinked = unlinked::unlinked(store, new, std::mem::take(&mut self.lost))?;
        self.unlinked(store, old, new, &unlinked)
    }

    /// A deleted page moved if its text is that of one added page, and no other deleted page had it.
    fn moved(&mut self) {
        let mut by_text: HashMap<Digest, [Vec<usize>; 2]> = HashMap::new();
        for (i, (page, text)) in self.pages.iter().zip(&self.texts).enumerate() {
            let side = match page.change.as_str() {
                "deleted" => 0,
                "added" => 1,
                _ => continue,
            };
            if page.old_bytes.or(page.new_bytes).is_some_and(|bytes| bytes >= MOVED_BYTES) {
                by_text.entry(*text).or_default()[side].push(i);
            }
        }
        let mut arrived = HashSet::new();
        for sides in by_text.into_values() {
            let ([from], [to]) = (sides[0].as_slice(), sides[1].as_slice()) else { continue };
            let (old, new) = (self.pages[*from].url.to_string(), self.pages[*to].url.to_string());
            arrived.insert(new.clone());
            self.pages[*to].moved_from = Some(old);
            self.pages[*from].moved_to = Some(new);
        }
        self.alerts.retain(|a| !(is_about_text(a) && a.url.as_ref().is_some_and(|url| arrived.contains(url))));
    }

    /// Marks pages that lost their last link; those that did not change otherwise get a row.
    fn unlinked(
        &mut self,
        store: &Store,
        old: &SnapshotId,
        new: &SnapshotId,
        unlinked: &HashSet<String>,
    ) -> Result<()> {
        let mut left: HashSet<&str> = unlinked.iter().map(String::as_str).collect();
        for page in &mut self.pages {
            page.unlinked = left.remove(&*page.url) && page.change != "added";
        }
        let mut by_shard: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for url in left {
            by_shard.entry(store.shard_of(url)).or_default().push(url);
        }
        for (shard, urls) in by_shard {
            self.pages.extend(unchanged_rows(store, old, new, shard, &urls)?);
        }
        self.pages.sort_by_cached_key(|page| (store.shard_of(&page.url), page.url.clone()));
        self.texts.clear();
        Ok(())
    }
}

/// Rows of pages that did not change but lost their last link; URLs that are no pages of both snapshots give none.
fn unchanged_rows(
    store: &Store,
    old: &SnapshotId,
    new: &SnapshotId,
    shard: u32,
    urls: &[&str],
) -> Result<Vec<PageDelta>> {
    let asked: HashSet<&str> = urls.iter().copied().collect();
    let load = |snapshot: &SnapshotId| -> Result<Vec<PageVersion>> {
        let pages = memory::pages_of(store, snapshot)?.shard::<PageVersion>(shard)?;
        Ok(pages.into_iter().filter(|page| asked.contains(page.url.as_str())).collect())
    };
    let before: HashMap<String, PageVersion> = load(old)?.into_iter().map(|page| (page.url.clone(), page)).collect();
    let row = |page: PageVersion| {
        let before = before.get(&page.url)?;
        Some(PageDelta {
            url: page.url.into(),
            change: "unchanged".into(),
            reason: None,
            old_digest: Some(before.content_digest),
            new_digest: Some(page.content_digest),
            old_bytes: Some(before.text_bytes),
            new_bytes: Some(page.text_bytes),
            text_changed: false,
            title_changed: false,
            links_changed: false,
            new_text_bytes: Some(0),
            moved_bytes: Some(0),
            moved_to: None,
            moved_from: None,
            unlinked: true,
        })
    };
    Ok(load(new)?.into_iter().filter_map(row).collect())
}
