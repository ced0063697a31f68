//! `delta`: pages and links of consecutive snapshots to `page_deltas`, `link_deltas`, `region_deltas`, queries to web
//! tables and `tuple_deltas`, watches to `alerts`.
//!
//! Both snapshots lie on disk by shard and URL, so that one merge of their digests finds what differs; only that is
//! looked at. Regions are found here (`anchor`), whatever plan the snapshot was extracted by.

mod alerts;
pub(crate) mod between;
mod changed;
mod link_target;
mod night;
pub(crate) mod notify;
mod pages;
mod queries;
mod seen;
mod unlinked;

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};

use self::alerts::Watcher;
use self::night::{NightDeltas, Writers};
use self::pages::{Pairing, Rules, ShardDelta};
use self::queries::Answer;
use self::seen::SeenShard;
use crate::manifests::{Compared, Ingested, Waiting};
use crate::matching::Scratch;
use crate::model::{Digest, DigestBuilder, SnapshotId, StageId};
use crate::run::shards;
use crate::run::stage::{Context, Position, Ran, Stage, Task};
use crate::store::Store;
use crate::store::carried::Carried;
use crate::store::manifest::Manifest;
use crate::store::parquet::PartitionWriter;
use crate::store::view::Read;
use crate::tables::delta::{
    Alert, LinkDelta, PageDelta, RegionDelta, SeenRow, TupleDelta, WEB_JOINS, WEB_LINKS, WEB_TUPLES,
};
use crate::tables::extract::{MENTIONS, MentionDelta};
use crate::tables::ingest::{Capture, LinkRow, Page, UrlOnly};
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

/// Asks the queries, compares the pages, watches what came of both, and commits it all together.
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
    // Old files go before the commit: after it the snapshot counts as done, and no later run would remove them.
    let keep: Vec<_> = done.last().map(|manifest| &manifest.snapshot).into_iter().chain([snapshot]).collect();
    let seen = store.carried(Carried::Seen);
    seen.keep(&keep)?;
    staging.commit(&manifest, &[(staged_seen, seen.file(snapshot))])?;
    queries::drop_others(store, &manifest)?;
    let failed = answers.iter().filter(|answer| answer.has_failed()).map(|answer| answer.name().to_owned());
    Ok(Ran { alerts, failed_queries: failed.collect(), ..Ran::new(&manifest)? })
}

/// Compares the snapshot with the one before, shard by shard; what was first seen when goes to `seen_writer`.
fn compare(
    context: &Context<'_>,
    ingested: &Manifest<Ingested>,
    done: &[Manifest<Ingested>],
    watcher: &Watcher<'_>,
    mut seen_writer: PartitionWriter<SeenRow>,
    writers: &mut Writers,
) -> Result<NightDeltas> {
    let (store, snapshot) = (context.store, &ingested.snapshot);
    let known = seen::open(store, done)?;
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
        let mut seen = known.as_ref().map_or_else(|| Ok(SeenShard::default()), |p| SeenShard::load(p, shard))?;
        let mut scratch: Scratch = scratches.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let output = match &pairing {
            Some(pairing) => pairing.shard(shard, &mut seen, true, &mut scratch)?,
            None => {
                // There is nothing to compare with, but every page is seen for the first time.
                let pages = store.partition(Page::NAME, snapshot)?;
                pages.visit::<UrlOnly<'_>>(&pages.groups_of(shard), |page| {
                    seen.observe(page.url, None, Some(""), snapshot);
                })?;
                ShardDelta::default()
            }
        };
        scratches.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        Ok((output, seen.into_rows()))
    };
    let mut night = NightDeltas::default();
    let bar = context.progress.count(&format!("delta {snapshot}"), store.shards().into());
    shards::in_order(store.shards(), Some(&bar), work, |shard, (output, rows)| {
        seen_writer.write(shard, &rows)?;
        writers.write(shard, &output)?;
        night.add(output);
        Ok(())
    })?;
    seen_writer.finish()?;
    if let Some(last) = done.last() {
        night.finish(store, &last.snapshot, snapshot)?;
    }
    Ok(night)
}

/// Identifies the queries and watches.
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

/// Alerts on the pages and mentions of the night, and the counts of watches that wait for more changes. Alerts on text
/// are in `night` already: they were found while the texts were at hand.
fn watch_night(
    context: &Context<'_>,
    snapshot: &SnapshotId,
    watcher: &Watcher<'_>,
    night: &NightDeltas,
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
