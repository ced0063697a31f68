//! `delta`: pages and links of consecutive snapshots to `page_deltas`, `link_deltas`, `region_deltas`, queries to web
//! tables and `tuple_deltas`, watches to `alerts`.
//!
//! Both snapshots lie on disk by shard and URL, so that one merge of their digests finds what differs; of a slim snapshot
//! only the pages that it touched are compared with theirs. Regions are found here (`anchor`), whatever plan the snapshot
//! was extracted by.

mod alerts;
pub(crate) mod between;
mod changed;
mod known;
mod linkers;
pub(crate) mod links_in;
mod night;
pub(crate) mod notify;
mod pages;
mod queries;
mod seen;
mod touched;
mod unlinked;
pub(crate) mod web_tables;
pub(crate) mod webs;

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};

use self::alerts::{PagesOfQueries, Watcher};
use self::changed::ChangedPage;
pub(super) use self::known::Texts;
use self::known::{Known, LinkTargets};
use self::night::{NightDeltas, Writers};
use self::pages::{Pairing, Rules, ShardDelta};
use self::seen::SeenShard;
use self::web_tables::TupleDeltas;
use crate::manifests::{Compared, Ingested, Waiting};
use crate::matching::Scratch;
use crate::model::{Digest, DigestBuilder, SnapshotId, StageId};
use crate::run::hands::{Hands, Pass};
use crate::run::shards::{self, Handing, Shards};
use crate::run::stage::{Asking, Context, Position, Ran, Stage, Task};
use crate::stages::follow;
use crate::store::Store;
use crate::store::index::Index;
use crate::store::manifest::Manifest;
use crate::store::parquet::Written;
use crate::store::passes::Parcel;
use crate::store::staging::Staging;
use crate::store::view::Read;
use crate::tables::delta::{
    Alert, LinkDelta, PageDelta, RegionDelta, SeenRow, TupleDelta, TupleLinkDelta, WEB_JOINS, WEB_LINKS, WEB_TUPLES,
    WebSchemaRow,
};
use crate::tables::extract::{Extraction, MentionDelta};
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
            Read::Table(Extraction::NAME),
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
            TupleLinkDelta::NAME,
            WebSchemaRow::NAME,
            Alert::NAME,
            SeenRow::NAME,
        ]
    }

    /// A new or changed query is asked of the newest snapshot, though that was done before; and a snapshot that follows
    /// one which was asked again has not been compared with its answers.
    fn is_done(&self, asking: Asking<'_>, at: Position<'_>) -> Result<bool> {
        let Some(compared) = asking.store.manifest::<Compared>(at.snapshot)? else { return Ok(false) };
        let before = compared_before(asking.store, at.before)?;
        Ok(compared.summary.still_follows(before.as_ref().map(|before| &before.summary))
            && (!at.current || queries::all_asked(asking.pipeline, &compared.summary)))
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
    let asking = queries::Asking {
        pipeline: context.pipeline,
        store,
        index: context.index,
        ingested: &ingested,
        done,
        before: before.as_ref(),
    };
    // A worker is told which pages queries found; it does not ask them itself.
    let answers = if matches!(context.hands, Hands::Worker(_)) { Vec::new() } else { queries::ask(asking)? };
    let of_queries = pages_of_queries(context, &answers)?;
    let watcher = Watcher::new(&context.pipeline.watches, of_queries);
    // What is kept by URL is made of pages and links alone: it is right already where only queries changed.
    let advance = !follow::has_followed::<Texts>(store, context.index, snapshot)?;
    if advance {
        follow::bring::<Texts>(store, context.index, done)?;
    }
    let moment = context.index.moment();
    let known = Known { at: &moment, index: context.index };
    let mut staging = store.stage(StageId::Delta, &task.snapshot)?;
    let mut writers = Writers::new(&mut staging)?;
    let mut night = compare(context, &ingested, done, &watcher, Comparing { known, advance }, &mut writers)?;
    let waiting = before.as_ref().map(|before| &before.summary.waiting);
    let (mut alerts, waiting) = watch_night(context, snapshot, &watcher, &night, waiting)?;
    alerts.append(&mut night.alerts);
    let mut tuples = TupleDeltas::default();
    answers.iter().for_each(|answer| tuples.append(answer.deltas()));
    alerts.extend(watcher.tuples(&tuples.nodes));
    let (mut tables, changes) = writers.finish(&mut staging, night, &tuples, &mut alerts, store)?;
    for answer in &answers {
        tables.extend(answer.write(&mut staging, context.asked.keep_joins)?);
    }
    let schemas: Vec<WebSchemaRow> = answers.iter().flat_map(queries::Answer::schemas).collect();
    if !schemas.is_empty() {
        let mut writer = staging.writer::<WebSchemaRow>()?;
        writer.write(0, &schemas)?;
        tables.insert(WebSchemaRow::NAME.to_owned(), writer.finish()?.slim());
    }
    if ingested.summary.base {
        let after = context.index.moment();
        tables.insert(SeenRow::NAME.to_owned(), write_lines(&mut staging, store, Known { at: &after, ..known })?);
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
    staging.commit(&mut manifest)?;
    follow::followed::<Texts>(context.index, snapshot, ingested.lineage);
    let failed = answers.iter().filter(|answer| answer.has_failed()).map(|answer| answer.name().to_owned());
    Ok(Ran { alerts, failed_queries: failed.collect(), ..Ran::new(&manifest)? })
}

const OF_QUERIES: &str = "queries";

/// The pages that watches may ask for, by query.
fn pages_of_queries(context: &Context<'_>, answers: &[queries::Answer]) -> Result<PagesOfQueries> {
    if let Hands::Worker(worker) = context.hands {
        return Ok(worker.folder.load(OF_QUERIES)?);
    }
    let pages = answers.iter().map(|answer| (answer.name().to_owned(), answer.pages())).collect();
    if let Hands::Others(others) = context.hands {
        let folder = others.folder(Pass::Delta, true);
        if !folder.is_complete() {
            folder.save(OF_QUERIES, &pages)?;
        }
    }
    Ok(pages)
}

/// All that is known of the texts of a shard's URLs.
pub(super) fn all_seen(index: &Index, shard: u32) -> Result<Vec<SeenRow>> {
    Known { at: &index.moment(), index }.all_seen(shard)
}

/// What a base stores of the texts of all URLs.
fn write_lines(staging: &mut Staging<'_>, store: &Store, known: Known<'_>) -> Result<Written> {
    let mut lines = staging.writer::<SeenRow>()?;
    for shard in 0..store.shards() {
        lines.write(shard, &known.all_seen(shard)?)?;
    }
    Ok(lines.finish()?)
}

/// What a comparison goes by.
#[derive(Clone, Copy)]
struct Comparing<'a> {
    known: Known<'a>,
    /// What is known is as the snapshot before left it, and is taken further; else it is as this one left it.
    advance: bool,
}

/// Compares the snapshot with the one before, shard by shard.
fn compare(
    context: &Context<'_>,
    ingested: &Manifest<Ingested>,
    done: &[Manifest<Ingested>],
    watcher: &Watcher<'_>,
    Comparing { known, advance }: Comparing<'_>,
    writers: &mut Writers,
) -> Result<NightDeltas> {
    let (store, snapshot) = (context.store, &ingested.snapshot);
    let pairing =
        Pairing { store, new: snapshot, rules: Rules::Following, evidence: vec![snapshot], watcher: Some(watcher) };
    let scratches = Mutex::new(Vec::new());
    let work = |shard| {
        let Some(last) = done.last() else { return first_sight(store, snapshot, shard) };
        let mut scratch: Scratch = scratches.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let changes = changed::tonight(store, shard, &last.snapshot, snapshot, ingested.summary.whole)?;
        let mut seen = known.seen(shard, changes.iter().map(ChangedPage::url))?;
        let output = pairing.shard(shard, &changes, &mut seen, advance, &mut scratch)?;
        scratches.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        let restructured = changed::restructured_tonight(store, shard, snapshot)?;
        Ok((ShardDelta { restructured, ..output }, seen.into_rows()))
    };
    let mut night = NightDeltas::default();
    let bar = context.progress.count(&format!("delta {snapshot}"), store.shards().into());
    let handing = &Handing { pack, unpack: |_, parcel| unpack(parcel) };
    shards::handed(
        context,
        Pass::Delta,
        Shards::new(store.shards(), Some(&bar)),
        work,
        handing,
        |shard, (output, rows)| {
            if advance {
                known.put_seen(shard, &rows)?;
            }
            writers.write(shard, &output)?;
            night.add(output);
            Ok(())
        },
    )?;
    let unlinked = if advance { known.put_links(&night.targets)? } else { known.unlinked(&night.targets)? };
    if let Some(last) = done.last() {
        night.finish(store, &last.snapshot, snapshot, &unlinked)?;
    }
    Ok(night)
}

/// What a shard came to, for whoever takes it.
fn pack((output, seen): (ShardDelta, Vec<SeenRow>)) -> Result<Parcel> {
    let mut parcel = Parcel::default();
    parcel.put(PageDelta::NAME, &output.pages)?;
    parcel.put(LinkDelta::NAME, &output.links)?;
    parcel.put(RegionDelta::NAME, &output.regions)?;
    parcel.put(Alert::NAME, &output.alerts)?;
    parcel.put(SeenRow::NAME, &seen)?;
    parcel.put_values(&(output.texts, output.targets, output.restructured))?;
    Ok(parcel)
}

fn unpack(mut parcel: Parcel) -> Result<(ShardDelta, Vec<SeenRow>)> {
    let (texts, targets, restructured) = parcel.take_values()?;
    let output = ShardDelta {
        pages: parcel.take(PageDelta::NAME)?,
        texts,
        links: parcel.take(LinkDelta::NAME)?,
        regions: parcel.take(RegionDelta::NAME)?,
        targets,
        alerts: parcel.take(Alert::NAME)?,
        restructured,
    };
    Ok((output, parcel.take(SeenRow::NAME)?))
}

/// There is nothing to compare the first snapshot with, but every page is seen for the first time, and so is every link.
fn first_sight(store: &Store, snapshot: &SnapshotId, shard: u32) -> Result<(ShardDelta, Vec<SeenRow>)> {
    let mut seen = SeenShard::default();
    let pages = store.partition(Page::NAME, snapshot)?;
    pages.visit::<UrlOnly<'_>>(&pages.part(shard), |page| {
        seen.observe(page.url, None, Some(""), snapshot);
    })?;
    let targets = LinkTargets::of_first(store, snapshot, shard)?;
    Ok((ShardDelta { targets, ..ShardDelta::default() }, seen.into_rows()))
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
        alerts.extend(watcher.mentions(&context.store.partition(MentionDelta::NAME, snapshot)?.all_rows()?));
    }
    Ok((alerts, waiting))
}
