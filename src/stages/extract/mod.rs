//! `extract`: pages, old mentions and regions to `mentions/<extractor>`, `extractions` and `mention_deltas`.
//!
//! For every page and extractor one of these ways is taken (`ways`), all with the same result: rows of an earlier run are
//! kept, rows of an old page with the same text are taken over, mentions are recycled (copied where an old region allows
//! it, extracted elsewhere) or brought up to date (only the terms of a dictionary changed), or the page is extracted from
//! scratch. Records are joined from the mentions of their parts.
//!
//! `live` has the extractors ready to run, `sources` the mentions of earlier snapshots, `shard` does the pages of a shard
//! for a `job` and leaves an `output`, which `writing` writes, `changes` compares them with the snapshot before, `costs`
//! counts what it took and what it saved, `summary` is what the manifest says of it all. `verify` is no part of a run: it
//! compares the store with fresh extractions.

mod adopting;
pub(crate) mod ahead;
mod answers;
mod asking;
mod batch;
mod changes;
mod charge;
mod costs;
mod definitions;
mod edits;
mod job;
mod known;
mod lineage;
mod live;
mod migrate;
mod needed;
mod output;
mod pool;
mod resume;
mod rows;
mod shard;
mod sharing;
mod shown;
mod sources;
mod state;
mod summary;
pub(crate) mod trial;
mod tried;
pub(crate) mod verify;
mod ways;
mod writing;

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use anyhow::{Context as _, Result};

use self::adopting::Adopting;
pub(crate) use self::definitions::in_words;
use self::edits::Edits;
use self::job::Job;
pub(super) use self::known::Extractions;
use self::known::Known;
use self::lineage::{announce, fingerprints, kept, sources};
pub(super) use self::live::declared_digest;
use self::live::{Live, declared_with_files};
use self::migrate::migrate;
pub(crate) use self::needed::prune_answers;
use self::sharing::Sharing;
use self::sources::SharedSources;
pub(crate) use self::state::{extracted_at, extracted_of, mention_schema, mentions_of_rows};
use self::summary::{note_lacks, summary};
pub(crate) use self::tried::try_page;
use self::writing::{Made, write, write_away};
use super::plan::plan_for;
use crate::config::{DeclaredExtractor, Pipeline};
use crate::extract::Adopt;
use crate::manifests::{Extracted, Ingested, Matched};
use crate::model::{Digest, SnapshotId, StageId};
use crate::run::hands::Hands;
use crate::run::stage::{Asking, Context, Position, Ran, Stage, Task};
use crate::stages::follow;
use crate::store::Store;
use crate::store::manifest::Manifest;
use crate::store::view::Read;
use crate::tables::extract::{ANSWERS, AwayRow, Extraction, MentionDelta};
use crate::tables::ingest::Page;
use crate::tables::matching::RegionRow;
use crate::tables::mentions::MENTIONS;
use crate::tables::plan::PlanCost;
use crate::tables::record::Table as _;

pub(crate) struct Extract;

impl Stage for Extract {
    fn id(&self) -> StageId {
        StageId::Extract
    }

    fn about(&self) -> &'static str {
        "Extract mentions, copying what old pages already had"
    }

    fn reads(&self) -> &'static [Read] {
        &[
            Read::Table(Page::NAME),
            Read::Table(RegionRow::NAME),
            Read::Manifest(StageId::Ingest),
            Read::Manifest(StageId::Plan),
            Read::Manifest(StageId::Match),
        ]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[ANSWERS, Extraction::NAME, MENTIONS, MentionDelta::NAME, PlanCost::NAME, AwayRow::NAME]
    }

    /// A new or changed extractor is run on the newest snapshot, though that was done before, and what failed there is
    /// tried again; and what was copied from a snapshot that has been extracted anew since is out of date.
    fn is_done(&self, asking: Asking<'_>, at: Position<'_>) -> Result<bool> {
        let Some(extracted) = asking.store.manifest::<Extracted>(at.snapshot)? else { return Ok(false) };
        let before = extracted_before(asking.store, at.before)?;
        let same = |extractor: &DeclaredExtractor| {
            let name = &extractor.config.name;
            match live::adopt(extractor, asking.pipeline) {
                // A change is for the snapshots to come.
                Adopt::NewText => extracted.summary.declared.contains_key(name),
                Adopt::Now => {
                    let now = declared_with_files(extractor, asking.pipeline);
                    extracted.summary.declared.get(name) == Some(&now) && !extracted.summary.older.contains_key(name)
                }
            }
        };
        let lacks = asking.asked.retry && !extracted.shortfall.is_none();
        Ok(extracted.summary.still_follows(before.as_ref().map(|before| &before.summary))
            && (!at.current
                || (!lacks
                    && asking.pipeline.extractors.iter().all(same)
                    && says_the_same(asking, &extracted.summary))))
    }

    /// Programs take their time to start.
    fn foresee(&self, pipeline: &Pipeline) {
        live::start_early(pipeline);
    }

    fn end(&self, asking: Asking<'_>) -> Result<()> {
        batch::submit(asking.pipeline, asking.store)
    }

    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
        run(context, task, done).with_context(|| format!("snapshot {}", task.snapshot.id))
    }
}

/// Whether workers say of themselves what they said when they were last asked. Only a run asks: starting one may take
/// long. One that cannot be started says nothing new.
fn says_the_same(asking: Asking<'_>, extracted: &Extracted) -> bool {
    if !asking.asked.retry || extracted.workers.is_empty() {
        return true;
    }
    match Live::new(asking.pipeline) {
        Ok(live) => live.is_what_found(&extracted.fingerprints),
        Err(error) => {
            log::debug!("{error:#}");
            true
        }
    }
}

/// The manifest that the snapshot before left.
fn extracted_before(store: &Store, before: Option<&SnapshotId>) -> Result<Option<Manifest<Extracted>>> {
    Ok(match before {
        Some(before) => store.manifest::<Extracted>(before)?,
        None => None,
    })
}

fn run(context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
    let started = Instant::now();
    let (store, snapshot) = (context.store, &task.snapshot.id);
    let matched = store.manifest::<Matched>(snapshot)?.context("it has not been matched")?;
    let ingested = store.manifest::<Ingested>(snapshot)?.context("it has not been ingested")?.summary;
    follow::bring::<Extractions>(store, context.index, done)?;
    let order = done.iter().map(|manifest| &manifest.snapshot).chain([snapshot]).cloned().zip(0..).collect();
    let live = live_for(context, snapshot, &order)?;
    let sharing = Sharing::new(&live);
    // What is there is kept unless it is to be made again.
    let stands = store.manifest::<Extracted>(snapshot)?;
    let earlier = stands.as_ref().filter(|_| !context.forced);
    let previous = extracted_before(store, done.last().map(|last| &last.snapshot))?;
    let (now, before) = (fingerprints(earlier, &live), fingerprints(previous.as_ref(), &live));
    let last_known: Vec<Option<Digest>> = now.iter().zip(&before).map(|(now, before)| now.or(*before)).collect();
    adopting::columns_fit(store, &live, &last_known)?;
    let edits = Edits::new(store, &live, &last_known)?;
    announce(&live, &edits, &last_known, snapshot, earlier.is_some() || previous.is_some());
    let planned = plan_for(context, snapshot)?;
    let built_on: BTreeMap<String, Digest> = sources(&live, previous.as_ref());
    let Adopting { crosses, compares, whole } = Adopting::new(&live, &before, previous.as_ref(), ingested.whole);
    let before_tonight = context.index.moment();
    let job = Job {
        store,
        known: Known { before: &before_tonight, index: context.index },
        live: &live,
        edits: &edits,
        snapshot,
        pages_whole: ingested.whole,
        plan: &planned.summary.plan,
        whole,
        kept: kept(&live, earlier, &built_on),
        before,
        compares,
        crosses,
        does: sharing.does(context.hands, &live),
        done_before: earlier.is_some(),
        stands: stands.is_some(),
        order,
        sources: SharedSources::default(),
    };
    // Models are asked once workers have done their part.
    let asking_s = if sharing.waits(context.hands) { 0.0 } else { asking::ask_ahead(&job, context.progress)? };
    let mut made = write(context, &job, &sharing, (&planned, &matched), asking_s)?;
    let _farewell = live.dismiss();
    if ingested.base {
        made.tables.insert(AwayRow::NAME.to_owned(), write_away(context, &job, &mut made.staging)?);
    }
    let alive_before = done.last().map_or(0, |last| last.summary.alive);
    let before = (previous.as_ref(), alive_before);
    let summary = summary(context.pipeline, &job, (&planned.summary, &matched.summary), before, built_on, &made);
    let Made { tables, costs, failed_anew, errors, staging, .. } = made;
    let mut manifest = Manifest::new(&task.snapshot, matched.inputs, live.settings(), summary);
    manifest.tables = tables;
    let outages = costs.iter().zip(&failed_anew).map(|(costs, anew)| costs::is_outage(costs, *anew));
    note_lacks(&mut manifest, &live, errors.into_iter().zip(outages), context.pipeline.guard.max_failed_share);
    manifest.seconds = started.elapsed().as_secs_f64();
    remember(&live, &job)?;
    staging.commit(&mut manifest)?;
    follow::followed::<Extractions>(context.index, snapshot, manifest.lineage);
    Ok(Ran { saved: Some(manifest.summary.saved), ..Ran::new(&manifest)? })
}

/// Keeps what later nights need to know of these definitions, and makes room for their columns.
fn remember(live: &Live, job: &Job<'_>) -> Result<()> {
    edits::remember(job.store, live)?;
    definitions::remember(job.store, live)?;
    // A definition that did not change has the columns it had.
    for (live, _) in live.all.iter().zip(&job.compares).filter(|(_, compares)| !**compares) {
        migrate(job.store, &live.name, &live.schema, job.snapshot)?;
    }
    Ok(())
}

/// The extractors, with their answers: but those are kept by whoever commits.
fn live_for(context: &Context<'_>, snapshot: &SnapshotId, order: &HashMap<SnapshotId, usize>) -> Result<Live> {
    match context.hands {
        Hands::Worker(_) => Live::new(context.pipeline),
        Hands::Own | Hands::Others(_) => Live::with_answers(context.pipeline, context.store, snapshot, order),
    }
}
