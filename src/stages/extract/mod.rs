//! `extract`: pages, old mentions and regions to `mentions/<extractor>`, `extractions` and `mention_deltas`.
//!
//! For every page and extractor one of these ways is taken (`ways`), all with the same result: rows of an earlier run are
//! kept, rows of an old page with the same text are taken over, mentions are recycled (copied where an old region allows
//! it, extracted elsewhere) or brought up to date (only the terms of a dictionary changed), or the page is extracted from
//! scratch. Records are joined from the mentions of their parts.
//!
//! `live` has the extractors ready to run, `sources` the mentions of earlier snapshots, `shard` does the pages of a shard
//! for a `job` and leaves an `output`, `changes` compares them with the snapshot before, `costs` counts what it took and
//! what it saved. `verify` is no part of a run: it compares the store with fresh extractions.

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
mod live;
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
pub(crate) mod trial;
mod tried;
pub(crate) mod verify;
mod ways;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use anyhow::{Context as _, Result};

use self::adopting::Adopting;
use self::answers::Answers;
use self::costs::CostsBy;
pub(crate) use self::definitions::in_words;
use self::edits::Edits;
use self::job::Job;
pub(super) use self::known::Extractions;
use self::known::Known;
pub(super) use self::live::declared_digest;
use self::live::declared_with_files;
use self::live::{Live, LiveExtractor};
pub(crate) use self::needed::prune_answers;
use self::output::{AskedPage, Output};
use self::shard::extract_shard;
use self::sharing::Sharing;
use self::sources::SharedSources;
pub(crate) use self::state::{extracted_at, extracted_of, mention_schema, mentions_of_rows};
pub(crate) use self::tried::try_page;
use super::plan::plan_for;
use crate::config::{DeclaredExtractor, Pipeline};
use crate::extract::{Adopt, Status, Works};
use crate::manifests::{Costs, Extracted, Ingested, Matched, Planned, lineage};
use crate::model::{Digest, Problem, Snapshot, SnapshotId, StageId};
use crate::plan::Served;
use crate::plan::model::{Speed, Spent};
use crate::run::hands::{Hands, Pass};
use crate::run::problems::TOLD;
use crate::run::shards::{self, Handing, Shards};
use crate::run::stage::{Asking, Context, Position, Ran, Stage, Task};
use crate::stages::follow;
use crate::store::Store;
use crate::store::answers::KeptAnswer;
use crate::store::manifest::Manifest;
use crate::store::parquet::{BatchWriter, GROUP_ROWS, Written};
use crate::store::staging::Staging;
use crate::store::view::Read;
use crate::tables::extract::{ANSWERS, AnswerRow, AwayRow, Extraction, MentionDelta, answers_of};
use crate::tables::ingest::Page;
use crate::tables::matching::RegionRow;
use crate::tables::mentions::{MENTIONS, MentionRow, MentionSchema, mentions_of};
use crate::tables::plan::PlanCost;
use crate::tables::record::{Record as _, Table as _};

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

/// The fingerprints that a manifest names, in the order of the extractors.
fn fingerprints(manifest: Option<&Manifest<Extracted>>, live: &Live) -> Vec<Option<Digest>> {
    let of = |name: &str| manifest?.summary.fingerprints.get(name).copied();
    live.all.iter().map(|live| of(&live.name)).collect()
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
        known: Known { before: &before_tonight, index: context.index, shards: store.shards() },
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

/// What the manifest says of a snapshot. `previous` and `alive_before`: what was extracted in the snapshot before, and its
/// pages.
fn summary(
    pipeline: &Pipeline,
    job: &Job<'_>,
    (planned, matched): (&Planned, &Matched),
    (previous, alive_before): (Option<&Manifest<Extracted>>, u64),
    built_on: BTreeMap<String, Digest>,
    made: &Made<'_>,
) -> Extracted {
    let live = job.live;
    let by_name = || live.all.iter().map(|live| live.name.to_string()).zip(&made.costs);
    let spent: BTreeMap<String, Spent> = by_name().map(|(name, costs)| (name, costs::spent(costs))).collect();
    let totals: BTreeMap<String, Costs> = by_name().map(|(name, costs)| (name, costs::total(costs))).collect();
    let declared = |of: &DeclaredExtractor| (of.config.name.clone(), declared_with_files(of, pipeline));
    let is_priced = live.all.iter().any(live::LiveExtractor::is_priced);
    Extracted {
        declared: pipeline.extractors.iter().map(declared).collect(),
        fingerprints: live.fingerprints(),
        lineage: lineages(live, job.snapshot, &built_on),
        built_on,
        matcher: planned.plan.served(),
        workers: live.workers(),
        saved: costs::saved(pipeline, planned, matched, &totals, &spent),
        costs: totals,
        mentions: mention_totals(job, previous, &made.tables, &made.old_mentions),
        older: adopting::older_totals(job, previous, alive_before, &made.older),
        spent,
        read: made.read,
        read_s: made.read.seconds,
        price: Some(price_of(&made.costs)).filter(|paid| *paid > 0.0 || is_priced),
    }
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

/// What is known of pages that are away, for a base.
fn write_away(context: &Context<'_>, job: &Job<'_>, staging: &mut Staging<'_>) -> Result<Written> {
    let mut away = staging.writer::<AwayRow>()?;
    let after_tonight = context.index.moment();
    let known = Known { before: &after_tonight, ..job.known };
    for shard in 0..job.store.shards() {
        away.write(shard, &known.away(shard, job.snapshot)?)?;
    }
    Ok(away.finish()?)
}

/// Notes what the snapshot lacks, and what of it is a problem. `failed`, `allowed`: see [`failures`].
fn note_lacks(
    manifest: &mut Manifest<Extracted>,
    live: &Live,
    failed: impl Iterator<Item = (Option<String>, bool)>,
    allowed: f64,
) {
    let costs = &manifest.summary.costs;
    manifest.shortfall.failed = costs.values().map(|costs| costs.failed).sum();
    manifest.shortfall.deferred = costs.values().map(|costs| costs.deferred).sum();
    manifest.problems = failures(live, costs, failed, allowed);
    manifest.problems.extend(deferrals(live, costs));
}

/// Extractors that failed on a larger share of their pages than allowed, or on all that they were tried on. `failed`: by
/// extractor, why it failed first, and whether it was away.
fn failures(
    live: &Live,
    costs: &BTreeMap<String, Costs>,
    failed: impl Iterator<Item = (Option<String>, bool)>,
    allowed: f64,
) -> Vec<Problem> {
    let too_many = |(live, (error, was_away)): (&live::LiveExtractor, (Option<String>, bool))| {
        let extractor = live.name.to_string();
        let Costs { failed, pages, .. } = *costs.get(&extractor)?;
        #[expect(clippy::cast_precision_loss, reason = "a share of counts")]
        let too_many = was_away || failed as f64 > allowed * pages as f64;
        too_many.then_some(Problem::FailedExtractions { extractor, failed, pages, error })
    };
    live.all.iter().zip(failed).filter_map(too_many).collect()
}

/// What was paid.
fn price_of(costs: &[CostsBy]) -> f64 {
    // Not `sum`: of nothing that is -0.
    costs.iter().map(|costs| costs::total(costs).price).fold(0.0, |sum, more| sum + more)
}

/// Extractors whose budget was used up. That answers of a batch are on their way is no problem.
fn deferrals(live: &Live, costs: &BTreeMap<String, Costs>) -> Vec<Problem> {
    let is_short = |name: &str| {
        let answers = live.all.iter().find(|live| *live.name == *name).and_then(|live| live.answers());
        answers.is_none_or(answers::Answers::is_short)
    };
    let waiting = costs.iter().filter(|(name, costs)| costs.units_deferred > 0 && is_short(name));
    let problem = |(extractor, costs): (&String, &Costs)| Problem::DeferredExtractions {
        extractor: extractor.clone(),
        pages: costs.deferred,
        units: costs.units_deferred,
    };
    waiting.map(problem).collect()
}

/// What each extractor goes on from: the snapshot before, if the same definition extracted it, or if old text is left to
/// the one that did.
fn sources(live: &Live, before: Option<&Manifest<Extracted>>) -> BTreeMap<String, Digest> {
    let source = |live: &live::LiveExtractor| {
        let before = &before?.summary;
        match live.adopt {
            Adopt::Now => before.source(&live.name, live.fingerprint),
            Adopt::NewText => before.lineage.get(&*live.name).copied(),
        }
    };
    live.all.iter().filter_map(|live| Some((live.name.to_string(), source(live)?))).collect()
}

/// Identifies how the mentions of each extractor came about.
fn lineages(live: &Live, snapshot: &SnapshotId, built_on: &BTreeMap<String, Digest>) -> BTreeMap<String, Digest> {
    let of = |name: &str, fingerprint| lineage(snapshot, fingerprint, built_on.get(name).copied());
    live.all.iter().map(|live| (live.name.to_string(), of(&live.name, live.fingerprint))).collect()
}

/// The extractors whose mentions of this snapshot are already there: made by the same definition, from the same sources.
fn kept(live: &Live, earlier: Option<&Manifest<Extracted>>, built_on: &BTreeMap<String, Digest>) -> Vec<bool> {
    let is_kept = |i: usize| {
        let live = &live.all[i];
        // With answers at hand it costs nothing to do it again, and some of them may be new.
        if live.answers().is_some() {
            return false;
        }
        earlier.is_some_and(|earlier| {
            earlier.summary.fingerprints.get(&*live.name) == Some(&live.fingerprint)
                && earlier.summary.built_on.get(&*live.name) == built_on.get(&*live.name)
        })
    };
    (0..live.all.len()).map(|i| is_kept(i) && live.all[i].parts().iter().all(|&part| is_kept(part))).collect()
}

/// Tells which extractors start anew, one line each, if there is anything that they could have gone on from.
fn announce(live: &Live, edits: &Edits<'_>, before: &[Option<Digest>], snapshot: &SnapshotId, started: bool) {
    for (i, live) in live.all.iter().enumerate() {
        match before[i] {
            None if started => {
                log::warn!(target: TOLD, "extractor '{}' is new: starts with snapshot {snapshot}", live.name);
            }
            before if live.leaves(before) => {
                log::warn!(
                    target: TOLD,
                    "extractor '{}' changed: pages that change from snapshot {snapshot} on are extracted with it",
                    live.name
                );
            }
            Some(print) if print != live.fingerprint && edits.of(i).is_none() => {
                log::warn!(target: TOLD, "extractor '{}' changed: starts from scratch with snapshot {snapshot}", live.name);
            }
            _ => {}
        }
    }
}

/// What was written, and what it cost.
struct Made<'a> {
    tables: BTreeMap<String, Written>,
    /// By extractor.
    costs: Vec<CostsBy>,
    read: Speed,
    /// By extractor, mentions that the pages worked on had before, and those that went.
    old_mentions: Vec<i64>,
    /// By extractor, pages that have what another definition found, and of those worked on, how many had.
    older: Vec<(u64, u64)>,
    /// By extractor, pages that it failed on and had not failed on before.
    failed_anew: Vec<u64>,
    /// By extractor, why it failed first.
    errors: Vec<Option<String>>,
    staging: Staging<'a>,
}

/// How many mentions each extractor has on all pages of the snapshot.
fn mention_totals(
    job: &Job<'_>,
    previous: Option<&Manifest<Extracted>>,
    tables: &BTreeMap<String, Written>,
    old_mentions: &[i64],
) -> BTreeMap<String, u64> {
    let total = |i: usize| {
        let name = &job.live.all[i].name;
        let rows = tables.get(&mentions_of(name)).map_or(0, |written| written.rows);
        let before = previous.and_then(|previous| previous.summary.mentions.get(&**name)).copied().unwrap_or(0);
        let left = before.saturating_sub(old_mentions[i].unsigned_abs());
        (name.to_string(), if job.whole[i] { rows } else { left + rows })
    };
    (0..job.live.all.len()).map(total).collect()
}

/// Extracts shards in parallel, a few at a time, and writes them in order.
fn write<'a>(
    context: &Context<'a>,
    job: &Job<'_>,
    sharing: &Sharing,
    (planned, matched): (&Manifest<Planned>, &Manifest<Matched>),
    asking_s: f64,
) -> Result<Made<'a>> {
    let store = context.store;
    let snapshot = Snapshot { id: job.snapshot.clone(), time: planned.time };
    let mut staging = store.stage(StageId::Extract, &snapshot)?;
    let mut extractions = staging.writer::<Extraction>()?;
    let mut deltas = staging.writer::<MentionDelta>()?;
    let mut mentions = Vec::new();
    for live in &job.live.all {
        mentions.push(staging.batch_writer(&mentions_of(&live.name), live.schema.arrow())?);
    }
    let mut costs = vec![CostsBy::new(); job.live.all.len()];
    let mut read = Speed::default();
    let mut old_mentions = vec![0; job.live.all.len()];
    let mut failed_anew = vec![0; job.live.all.len()];
    let mut older = vec![(0, 0); job.live.all.len()];
    let mut errors: Vec<Option<String>> = vec![None; job.live.all.len()];
    let bar = context.progress.count(&format!("extract {}", job.snapshot), store.shards().into());
    let mut sent: Vec<HashSet<Digest>> = vec![HashSet::new(); job.live.all.len()];
    let take = |shard, mut output: Output| {
        count_shared(&mut output, &mut sent);
        extractions.write(shard, &output.extractions)?;
        deltas.write(shard, &output.deltas)?;
        for (i, (writer, live)) in mentions.iter_mut().zip(&job.live.all).enumerate() {
            for batch in live.schema.encode_all(&output.mentions[i], job.whole[i], GROUP_ROWS) {
                writer.write(shard, batch)?;
            }
        }
        match &output.known {
            Some(known) => job.known.take(shard, known, &output.gone)?,
            None => job.known.advance(shard, job.snapshot, &output.extractions, &output.gone)?,
        }
        for row in output.extractions.iter().filter(|row| row.error.is_some()) {
            let at = job.live.all.iter().position(|live| live.name == row.extractor);
            if let Some(first) = at.map(|at| &mut errors[at]).filter(|first| first.is_none()) {
                first.clone_from(&row.error);
            }
        }
        read.add(output.read);
        old_mentions.iter_mut().zip(&output.old_mentions).for_each(|(sum, more)| *sum += more);
        failed_anew.iter_mut().zip(&output.failed_anew).for_each(|(sum, more)| *sum += more);
        adopting::add(&mut older, &output);
        for (sums, more) in costs.iter_mut().zip(output.costs) {
            more.into_iter().for_each(|(served, more)| *sums.entry(served).or_default() += more);
        }
        Ok(())
    };
    let context = &Context { hands: if sharing.is_shared() { context.hands } else { Hands::Own }, ..*context };
    let handing = &Handing {
        pack: |output: Output| output.pack(job),
        unpack: |shard, parcel| sharing.join(job, shard, Output::unpack(parcel, job.live)?),
    };
    let work = |shard| {
        let output = extract_shard(job, shard)?;
        // What cannot be kept is not asked, so that what was found lacks it.
        job.live.all.iter().filter_map(LiveExtractor::answers).try_for_each(Answers::check)?;
        Ok(output)
    };
    let shards = Shards::new(store.shards(), Some(&bar));
    let is_waited_for = job.live.all.iter().any(|live| live.traits.works == Works::Elsewhere);
    let shards = if is_waited_for { shards.all_at_once() } else { shards };
    shards::handed(context, Pass::Extract, shards, work, handing, take)?;
    let answer_tables = write_answers(job.live, &mut staging, &mut costs)?;
    share_asking(job.live, &mut costs, asking_s);
    let mut plan_costs = staging.writer::<PlanCost>()?;
    plan_costs.write(0, &costs::cost_rows(job.live, &costs, &planned.summary, &matched.summary))?;
    let all_whole = job.whole.iter().all(|whole| *whole);
    let mut tables = BTreeMap::from([
        (PlanCost::NAME.to_owned(), plan_costs.finish()?.slim()),
        (Extraction::NAME.to_owned(), extractions.finish()?.whole_if(all_whole)),
        (MentionDelta::NAME.to_owned(), deltas.finish()?.slim()),
    ]);
    tables.extend(answer_tables);
    for ((writer, live), whole) in mentions.into_iter().zip(&job.live.all).zip(&job.whole) {
        tables.insert(mentions_of(&live.name), writer.finish()?.whole_if(*whole));
    }
    Ok(Made { tables, costs, read, old_mentions, older, failed_anew, errors, staging })
}

/// Writes what was asked for in this snapshot; what it came to is added to the costs.
fn write_answers(live: &Live, staging: &mut Staging<'_>, costs: &mut [CostsBy]) -> Result<BTreeMap<String, Written>> {
    let mut tables = BTreeMap::new();
    for (live, costs) in live.all.iter().zip(costs) {
        let Some(answers) = live.answers() else { continue };
        answers.finish()?;
        let rows = answer_rows(answers.tonight()?, costs.entry(Served::None).or_default());
        let mut writer = staging.batch_writer(&answers_of(&live.name), AnswerRow::schema())?;
        for part in rows.chunks(GROUP_ROWS) {
            writer.write(0, AnswerRow::encode(part))?;
        }
        tables.insert(answers_of(&live.name), writer.finish()?.slim());
    }
    Ok(tables)
}

/// What several pages of a snapshot share was sent once: it counts for the first of them, and the others have it copied.
/// Shards come in order.
fn count_shared(output: &mut Output, sent: &mut [HashSet<Digest>]) {
    for AskedPage { extractor: i, extraction, rows, units } in &output.asked {
        let extraction = &mut output.extractions[*extraction];
        let costs = output.costs[*i].entry(extraction.matcher).or_default();
        let mut here: HashMap<Digest, bool> = HashMap::new();
        for (_, key) in units {
            here.entry(*key).or_insert_with(|| sent[*i].insert(*key));
        }
        let mut counted = HashSet::new();
        for (span, key) in units {
            let bytes = u64::from(span.len());
            if here[key] && counted.insert(*key) {
                extraction.bytes_extracted += i64::from(span.len());
                costs.bytes_extracted += bytes;
                costs.lower_bound += bytes;
            }
            if here[key] {
                continue;
            }
            let inside = |row: &&mut MentionRow| i64::from(span.start) <= row.start && row.start < i64::from(span.end);
            for row in output.mentions[*i].rows[rows.clone()].iter_mut().filter(inside).filter(|row| !row.copied) {
                row.copied = true;
                extraction.copied += 1;
                costs.copied += 1;
                costs.extracted = costs.extracted.saturating_sub(1);
            }
        }
    }
}

/// Models were asked ahead of all pages: the time belongs to the pages that most was sent of.
fn share_asking(live: &Live, costs: &mut [CostsBy], asking_s: f64) {
    let models = live.all.iter().filter(|live| live.model().is_some()).count();
    for (_, costs) in live.all.iter().zip(costs).filter(|(live, _)| live.model().is_some()) {
        if let Some(most) = costs.values_mut().max_by_key(|costs| costs.bytes_extracted) {
            #[expect(clippy::cast_precision_loss, reason = "a handful")]
            let share = asking_s / models as f64;
            most.extract_s += share;
        }
    }
}

/// What was asked for in a snapshot, as rows; what it came to is added to the costs.
fn answer_rows(asked: Vec<(Digest, bool, KeptAnswer)>, costs: &mut Costs) -> Vec<AnswerRow> {
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let mut rows = Vec::with_capacity(asked.len());
    for (request, good, kept) in asked {
        costs.requests += u64::from(kept.attempts);
        costs.input_tokens += kept.input_tokens.unwrap_or(0);
        costs.output_tokens += kept.output_tokens.unwrap_or(0);
        costs.price += kept.price.unwrap_or(0.0);
        rows.push(AnswerRow {
            request,
            url: kept.url.into(),
            unit_digest: kept.unit,
            unit_bytes: count(kept.bytes),
            answer: kept.said,
            input_tokens: kept.input_tokens.map(count),
            output_tokens: kept.output_tokens.map(count),
            price: kept.price,
            attempts: kept.attempts.into(),
            seconds: kept.seconds,
            status: if good { Status::Ok } else { Status::Failed },
        });
    }
    rows
}

/// Gives earlier partitions of a mentions table the schema of today, because a table has one schema. Columns that they do
/// not have become NULL.
///
/// That may lose what another definition had found, so such a partition stops being a source of mentions: its manifest
/// forgets the extractor first.
fn migrate(store: &Store, extractor: &str, schema: &MentionSchema, current: &SnapshotId) -> Result<()> {
    let table = mentions_of(extractor);
    let arrow = schema.arrow();
    for id in store.partitions(&table)?.into_iter().filter(|id| id != current) {
        // What went bad is left to its own repair.
        let Ok(partition) = store.partition(&table, &id) else { continue };
        if partition.schema().is_none_or(|there| MentionSchema::of(there) == *schema) {
            continue;
        }
        // A partition that no manifest names is about to be swept.
        let Some(mut manifest) = store.manifest::<Extracted>(&id)? else { continue };
        let Extracted { declared, fingerprints, lineage, built_on, .. } = &mut manifest.summary;
        for map in [declared, fingerprints, lineage, built_on] {
            map.remove(extractor);
        }
        let dir = store.scratch_dir("migrate")?;
        let file = dir.join("mentions.parquet");
        let mut writer = BatchWriter::create(&file, arrow.clone())?.first_of_table(true);
        for shard in 0..store.shards() {
            for batch in partition.batches(&partition.part(shard), None)? {
                writer.write(shard, schema.encode(&schema.decode(&batch)?))?;
            }
        }
        let whole = manifest.tables.get(&table).is_some_and(|written| written.whole);
        manifest.tables.insert(table.clone(), writer.finish()?.whole_if(whole));
        store.replace(&manifest, &[(file, table.clone())], &dir)?;
    }
    Ok(())
}
