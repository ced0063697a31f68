//! `plan`: how tonight's snapshot is matched and extracted.
//!
//! Everything that takes time is bounded: the sizes come from the manifest of `ingest`, the weights from manifests of
//! earlier nights, and the sample stops at a hundredth of the expected night.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::matching::DEFAULT_MIN_REGION;
use super::pairs::{changed_rows, with_texts};
use crate::config::{DeclaredExtractor, Pipeline};
use crate::extract::Definition;
use crate::extract::reach::Blocks;
use crate::manifests::{Extracted, Ingested, Matched, Planned};
use crate::matching::{MatcherKind, Scratch};
use crate::model::{Digest, DigestBuilder, SnapshotId, StageId};
use crate::plan::alternatives::{Alternative, Choice, Question, choose};
use crate::plan::model::{
    BLOCK, BUCKETS, Extents, ExtractorFacts, Night, Sample, Shares, Speed, Weights, bucket, fit, is_short,
};
use crate::plan::{AlternativeKind, Plan, Served};
use crate::recycle::forecast::{Forecast, forecast};
use crate::run::clock::{Clock, Stopwatch};
use crate::run::stage::{Asking, Context, Position, Ran, Stage, Task};
use crate::store::manifest::Manifest;
use crate::store::texts::ShardReader;
use crate::store::view::Read;
use crate::tables::ingest::Page;
use crate::tables::mentions::{MENTIONS, mentions_of};
use crate::tables::plan::PlanRow;
use crate::tables::record::Table as _;

pub(crate) struct PlanStage;

impl Stage for PlanStage {
    fn id(&self) -> StageId {
        StageId::Plan
    }

    fn about(&self) -> &'static str {
        "Choose how each snapshot is matched and which extractors recycle"
    }

    fn reads(&self) -> &'static [Read] {
        &[
            Read::Table(Page::NAME),
            Read::Manifest(StageId::Ingest),
            Read::Measured(StageId::Match),
            Read::Measured(StageId::Extract),
            Read::MeasuredTable(MENTIONS),
        ]
    }

    fn writes(&self) -> &'static [&'static str] {
        &[PlanRow::NAME]
    }

    /// A plan holds from the moment that anything was done by it; before, another one may be asked for.
    fn is_done(&self, asking: Asking<'_>, at: Position<'_>) -> Result<bool> {
        let planned = asking.store.manifest::<Planned>(at.snapshot)?;
        let same = planned.is_some_and(|planned| planned.summary.plan.choice == asking.plan());
        let matched_again = at.again.contains(&(StageId::Match, at.snapshot.clone()));
        Ok(same || (!matched_again && asking.store.done(StageId::Match, at.snapshot)?.is_some()))
    }

    fn run(&self, context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
        run(context, task, done).with_context(|| format!("snapshot {}", task.snapshot.id))
    }
}

/// The plan of a snapshot, and the manifest that holds it.
pub(super) fn plan_for(context: &Context<'_>, snapshot: &SnapshotId) -> Result<Manifest<Planned>> {
    context.store.manifest(snapshot)?.context("it has not been planned")
}

fn run(context: &Context<'_>, task: &Task, done: &[Manifest<Ingested>]) -> Result<Ran> {
    let started = Instant::now();
    let (store, snapshot) = (context.store, &task.snapshot.id);
    let ingested = store.manifest::<Ingested>(snapshot)?.context("it has not been ingested")?;
    let last = match done.last() {
        Some(last) => store.manifest::<Extracted>(&last.snapshot)?,
        None => None,
    };
    let definitions = known_definitions(context.pipeline, last.as_ref());
    let facts = facts(context, &definitions, last.as_ref())?;
    let extents = ingested.summary.changes.texts;
    let short = is_short(&extents, &facts);
    let earlier = if short { Vec::new() } else { history(context, done)? };
    let k = context.pipeline.plan.k;
    let sample = match context.plan().forced() {
        None if !short => {
            // Without a sample of tonight, the choice is a guess; it is good enough to tell how long the night will be.
            let (guess, _) = decide(&earlier, k, &facts, &extents);
            let expected = guess.alternatives[guess.chosen].seconds();
            draw(context, snapshot, &definitions, started + budget(context, &extents, done, expected)?)?
        }
        _ => Sample::default(),
    };
    let nights: Vec<Night> =
        [Night { sample: sample.clone(), ..Night::default() }].into_iter().chain(earlier).collect();
    let (mut choice, weights) = decide(&nights, k, &facts, &extents);
    if let Some(forced) = context.plan().forced() {
        let least = facts.iter().filter_map(|facts| facts.window).min().unwrap_or(DEFAULT_MIN_REGION);
        force(&mut choice, forced, least);
    }
    let rows = rows(&choice, &facts, &extents, &weights);
    let mut staging = store.stage(StageId::Plan, &task.snapshot)?;
    let mut writer = staging.writer::<PlanRow>()?;
    writer.write(0, &rows)?;
    let mut settings = DigestBuilder::new();
    settings.field(choice.plan.choice.as_str().as_bytes());
    let taken = &choice.alternatives[choice.chosen];
    let names = facts.iter().map(|facts| facts.name.clone());
    let choose_s = started.elapsed().as_secs_f64();
    let summary = Planned {
        alternative: taken.kind,
        matcher: choice.plan.served(),
        refined: choice.plan.rules.is_some(),
        predicted_s: taken.seconds(),
        predicted_price: taken.price,
        sample,
        seconds_a_byte: names.zip(weights.extractors.iter().map(|weights| weights.ex)).collect(),
        choose_s,
        plan: choice.plan,
    };
    let mut manifest = Manifest::new(&task.snapshot, ingested.inputs, settings.finish(), summary);
    manifest.tables = BTreeMap::from([(PlanRow::NAME.to_owned(), writer.finish()?.slim())]);
    manifest.seconds = choose_s;
    staging.commit(&mut manifest)?;
    Ran::new(&manifest)
}

/// Chooses by what nights have shown, the newest first, of which the last `k` count.
fn decide(nights: &[Night], k: usize, facts: &[ExtractorFacts], extents: &Extents) -> (Choice, Weights) {
    let weights = fit(nights, k, facts);
    let mut pooled = Sample::default();
    nights.iter().filter(|night| night.sample.pages > 0).take(k).for_each(|night| pooled.add(&night.sample));
    let shares = Shares::of(&pooled, facts);
    let question =
        Question { extents, extractors: facts, weights: &weights, shares: &shares, default_region: DEFAULT_MIN_REGION };
    (choose(question), weights)
}

/// Marks the forced alternative as the chosen one.
fn force(choice: &mut Choice, forced: Option<MatcherKind>, min_region: u32) {
    choice.plan = Plan::forced(forced, min_region);
    let kind = forced.map_or(AlternativeKind::None, AlternativeKind::Matcher);
    let is_it = |alternative: &Alternative| alternative.kind == kind;
    choice.chosen = choice.alternatives.iter().position(is_it).expect("every plan that can be forced is priced");
}

/// The definitions as far as they are known without starting a program: a command is what its worker said of itself last
/// night.
fn known_definitions(pipeline: &Pipeline, last: Option<&Manifest<Extracted>>) -> Vec<Definition> {
    let known = |declared: &DeclaredExtractor| {
        let said = last.and_then(|last| last.summary.workers.get(&declared.config.name));
        declared.declaration.definition(said)
    };
    pipeline.extractors.iter().map(known).collect()
}

fn facts(
    context: &Context<'_>,
    definitions: &[Definition],
    last: Option<&Manifest<Extracted>>,
) -> Result<Vec<ExtractorFacts>> {
    let of = |(declared, definition): (&DeclaredExtractor, &Definition)| {
        let name = declared.config.name.clone();
        let traits = definition.traits();
        let table = mentions_of(&name);
        let bytes = last.map(|last| context.store.partition_bytes(&table, &last.snapshot)).transpose()?;
        Ok(ExtractorFacts {
            n: last.map_or(0, |last| last.rows(&table)),
            n_b: bytes.unwrap_or(0).div_ceil(BLOCK),
            name,
            recycles: traits.recycles,
            window: traits.useful_region,
            price_per_mb: price_per_mb(declared, last),
            prior: traits.prior,
        })
    };
    context.pipeline.extractors.iter().zip(definitions).map(of).collect()
}

/// What a million bytes of text cost: as the last night's requests came to, if they were enough to tell.
pub(super) fn price_per_mb(declared: &DeclaredExtractor, last: Option<&Manifest<Extracted>>) -> f64 {
    let costs = last.and_then(|last| last.summary.costs.get(&declared.config.name));
    match costs.filter(|costs| costs.bytes_extracted >= LEAST_PRICED && costs.price > 0.0) {
        #[expect(clippy::cast_precision_loss, reason = "a size of text")]
        Some(costs) => costs.price / costs.bytes_extracted as f64 * 1e6,
        None => match (declared.declaration.model(), declared.config.tokens_price()) {
            (Some(model), _) => model.expected_price_per_mb(),
            (None, Some(price)) => {
                price.expected_per_mb(declared.config.block_bytes.unwrap_or(Blocks::default().bytes))
            }
            (None, None) => declared.config.price_per_mb.unwrap_or(0.0),
        },
    }
}

/// Bytes that must have been sent to tell a price from.
const LEAST_PRICED: u64 = 1 << 12;

/// How many nights are looked back at. They are more than count, because some may not have measured everything.
const NIGHTS: usize = 6;

/// What earlier nights measured, the newest first.
fn history(context: &Context<'_>, done: &[Manifest<Ingested>]) -> Result<Vec<Night>> {
    let mut nights = Vec::new();
    for ingested in done.iter().rev().take(NIGHTS.max(context.pipeline.plan.k)) {
        let id = &ingested.snapshot;
        let mut night = Night::default();
        if let Some(planned) = context.store.manifest::<Planned>(id)? {
            night.sample = planned.summary.sample;
        }
        if let Some(matched) = context.store.manifest::<Matched>(id)? {
            night.matched = matched.summary.speeds;
            night.read_pairs = matched.summary.read;
        }
        if let Some(extracted) = context.store.manifest::<Extracted>(id)? {
            night.read = extracted.summary.read;
            night.extractors = extracted.summary.spent;
        }
        nights.push(night);
    }
    Ok(nights)
}

/// Bytes of text that cannot simply be taken over.
fn new_text(extents: &Extents) -> u64 {
    extents.added.bytes + extents.changed.bytes
}

/// How long choosing may take. The length of the night is taken to be what matching and extraction took last night, scaled to
/// tonight's text, or what is `expected`, if that is less: after a night from scratch most text may be old.
fn budget(context: &Context<'_>, extents: &Extents, done: &[Manifest<Ingested>], expected: f64) -> Result<Duration> {
    let mut before = 0.0;
    if let Some(last) = done.last() {
        for stage in [StageId::Match, StageId::Extract] {
            before += context.store.done(stage, &last.snapshot)?.map_or(0.0, |manifest| manifest.seconds);
        }
        #[expect(clippy::cast_precision_loss, reason = "a share of sizes")]
        let scale = new_text(extents) as f64 / new_text(&last.summary.changes.texts).max(1) as f64;
        before *= scale.min(1.0);
    }
    let share = Duration::try_from_secs_f64(before.min(expected) * context.pipeline.plan.share);
    Ok(share.unwrap_or(Duration::ZERO))
}

/// With less time than this nothing is sampled: opening a part of the store and trying all matchers on one page takes
/// about as long.
const LEAST_SAMPLING: Duration = Duration::from_millis(8);
/// Pages whose texts are read at a time.
const AT_A_TIME: usize = 3;

/// Runs every matcher on the same changed pages, chosen by a seed that is the snapshot's name: shard by shard from a
/// chosen one on (a shard is a random part of all URLs), until there are enough or the time is up.
fn draw(context: &Context<'_>, snapshot: &SnapshotId, definitions: &[Definition], until: Instant) -> Result<Sample> {
    let mut sample = Sample::default();
    if until.saturating_duration_since(Instant::now()) < LEAST_SAMPLING {
        return Ok(sample);
    }
    let (store, most) = (context.store, context.pipeline.plan.sample as u64);
    let names: Vec<&str> = context.pipeline.extractors.iter().map(|e| e.config.name.as_str()).collect();
    let seed = Digest::of(snapshot.as_str().as_bytes());
    let first = u32::from(u16::from_le_bytes([seed.0[0], seed.0[1]])) % store.shards();
    let (mut scratch, mut tried) = (Scratch::new(), Speed::default());
    'shards: for shard in (0..store.shards()).map(|i| (first + i) % store.shards()) {
        if sample.pages >= most || Instant::now() >= until {
            break;
        }
        let mut rows = changed_rows(store, snapshot, shard)?;
        rows.sort_by_cached_key(|row| {
            let mut key = DigestBuilder::new();
            key.field(&seed.0).field(row.url.as_bytes());
            key.finish()
        });
        let mut reader = ShardReader::new(store, shard);
        let mut rows = rows.into_iter();
        loop {
            let left = usize::try_from(most.saturating_sub(sample.pages)).unwrap_or(0).min(AT_A_TIME);
            let batch: Vec<_> = rows.by_ref().take(left).collect();
            if batch.is_empty() || Instant::now() >= until {
                break;
            }
            for pair in with_texts(&mut reader, &batch)?.0 {
                let (began, bytes) = (Instant::now(), (pair.old_text.len() + pair.text.len()) as u64);
                if began + trying(tried, bytes) >= until {
                    break 'shards;
                }
                try_matchers(&pair.old_text, &pair.text, &names, definitions, &mut scratch, &mut sample);
                tried.add(Speed { bytes, seconds: began.elapsed().as_secs_f64() });
            }
        }
    }
    Ok(sample)
}

/// How long all matchers will take on pages of so many bytes, by how long they have taken so far, else as usual.
fn trying(tried: Speed, bytes: u64) -> Duration {
    let usual = || {
        let nanoseconds = MatcherKind::ALL.iter().flat_map(|kind| kind.facts().nanoseconds).sum::<f64>();
        nanoseconds / BUCKETS as f64 * 1e-9
    };
    #[expect(clippy::cast_precision_loss, reason = "a size of text")]
    let seconds = tried.per_byte(1).unwrap_or_else(usual) * bytes as f64;
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Tries all matchers on one page of the sample.
fn try_matchers(
    old: &str,
    new: &str,
    names: &[&str],
    definitions: &[Definition],
    scratch: &mut Scratch,
    sample: &mut Sample,
) {
    let least = definitions
        .iter()
        .filter_map(|definition| definition.traits().useful_region)
        .min()
        .unwrap_or(DEFAULT_MIN_REGION);
    let bytes = (old.len() + new.len()) as u64;
    let mut regions = Vec::new();
    MatcherKind::Edges.regions(old, new, least, scratch, &mut regions);
    let residual = new.len() as u64 - super::matching::covered(&regions);
    let class = &mut sample.classes[bucket(residual, new.len() as u64)];
    sample.pages += 1;
    class.pages += 1;
    class.bytes += new.len() as u64;
    class.residual += residual;
    for (kind, tally) in class.matchers.iter_mut() {
        let watch = Stopwatch::start(Clock::Own);
        kind.regions(old, new, least, scratch, &mut regions);
        tally.speed.add(Speed { bytes, seconds: watch.seconds() });
        for (name, definition) in names.iter().zip(definitions) {
            let seen = match definition {
                Definition::Extracts(extractor) => forecast(extractor, old, new, &regions),
                // Records are joined, so that nothing is left to extract.
                Definition::Joins(_) => Forecast::default(),
            };
            let sum = tally.taken.entry((*name).to_owned()).or_default();
            sum.bytes += seen.bytes;
            sum.places += seen.places;
        }
    }
}

/// The rows of `plans`: for each alternative one as a whole, then one for each extractor.
fn rows(choice: &Choice, facts: &[ExtractorFacts], extents: &Extents, weights: &Weights) -> Vec<PlanRow> {
    let mut rows = Vec::new();
    let all = extents.all();
    #[expect(clippy::cast_precision_loss, reason = "shares and lengths of sizes")]
    let (pages, bytes, block) = (all.pages.max(1) as f64, all.bytes as f64, BLOCK as f64);
    #[expect(clippy::cast_precision_loss, reason = "a size of text")]
    let changed_bytes = extents.changed.bytes as f64;
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "a number of bytes")]
    let rounded = |value: f64| value.round() as i64;
    for (i, alternative) in choice.alternatives.iter().enumerate() {
        // Over the classes as they are spread tonight; `refined` looks at the edges first.
        let mat = alternative.matcher.map(|_| alternative.match_s / (2.0 * changed_bytes).max(1.0));
        let whole = PlanRow {
            extractor: None,
            alternative: alternative.kind,
            matcher: alternative.matcher.map_or(Served::None, Served::Matcher),
            recycle: alternative.extractors.iter().any(|part| part.recycle),
            chosen: i == choice.chosen,
            predicted_s: alternative.seconds(),
            predicted_price: alternative.price,
            bytes_matched: count(alternative.bytes_matched),
            bytes_extracted: rounded(alternative.bytes_extracted()),
            m: count(all.pages),
            m_b: count(all.bytes.div_ceil(BLOCK)),
            l: bytes / pages,
            n: count(facts.iter().map(|facts| facts.n).sum()),
            n_b: count(facts.iter().map(|facts| facts.n_b).sum()),
            f: extents.f(),
            e: extents.e(),
            g: None,
            h: None,
            w1_io: weights.read_pairs * block,
            w1_mat: mat,
            w1_ex: None,
            w2_io: Some(weights.read_mentions()),
            w2_find: None,
            w3_io: weights.read * block,
            w3_ex: None,
        };
        rows.push(whole.clone());
        for (e, (facts, part)) in facts.iter().zip(&alternative.extractors).enumerate() {
            let weight = weights.extractors[e];
            #[expect(clippy::cast_precision_loss, reason = "a mean length")]
            let changed = changed_bytes / extents.changed.pages.max(1) as f64;
            rows.push(PlanRow {
                extractor: Some(facts.name.clone()),
                recycle: part.recycle,
                predicted_s: part.extract_s + part.copy_s,
                predicted_price: facts.price_per_mb * part.bytes / 1e6,
                bytes_extracted: rounded(part.bytes),
                n: count(facts.n),
                n_b: count(facts.n_b),
                g: Some(part.g),
                h: Some(part.h),
                w1_ex: Some(weight.ex + weight.page / (changed * part.g).max(1.0)),
                w2_find: Some(weight.find),
                w3_ex: Some(weight.ex),
                ..whole.clone()
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::{Prior, Recycles};
    use crate::plan::model::{Extent, Spent};

    /// What the formula of [`crate::plan::alternatives`] makes of the other columns.
    #[expect(clippy::cast_precision_loss, reason = "sizes")]
    fn expected(row: &PlanRow) -> f64 {
        let (text, m_b) = (row.m as f64 * row.l, row.m_b as f64);
        let (added, changed) = (1.0 - row.f, row.f - row.e);
        let Some((w3_ex, w2_find)) = row.w3_ex.zip(row.w2_find) else {
            return match (row.alternative, row.w1_mat) {
                (AlternativeKind::None, _) => row.w3_io * m_b,
                (_, None) => row.w3_io * m_b * (added + changed),
                (_, Some(mat)) => {
                    row.w3_io * m_b * added + 4.0 * row.w1_io * m_b * changed + 2.0 * mat * text * changed
                }
            };
        };
        if row.alternative == AlternativeKind::None {
            return w3_ex * text;
        }
        let (g, h) = (row.g.unwrap(), row.h.unwrap());
        let again = if row.recycle { row.w1_ex.unwrap() } else { w3_ex };
        let old = row.e + if row.recycle { changed } else { 0.0 };
        w3_ex * text * added
            + again * text * changed * g
            + row.w2_io.unwrap() * row.n_b as f64
            + w2_find * (row.n as f64 * old + h * row.m as f64 * changed)
    }

    #[test]
    fn a_page_that_would_take_too_long_is_known_before() {
        let tried = Speed { bytes: 1_000, seconds: 0.002 };
        assert_eq!(trying(tried, 5_000), Duration::from_millis(10));
        // The suffix tree alone takes some 16 ns a byte.
        let usual = trying(Speed::default(), 1_000_000);
        assert!(usual > Duration::from_millis(10) && usual < Duration::from_millis(300), "{usual:?}");
    }

    /// After a night from scratch the next one is expected to be as much shorter as its text is old.
    #[test]
    fn a_night_after_one_from_scratch_is_expected_to_be_short() {
        let dear = ExtractorFacts {
            name: "dear".into(),
            recycles: Recycles::ByRegion,
            window: Some(50),
            n: 500,
            n_b: 7,
            price_per_mb: 0.0,
            prior: Prior { byte: 1_000.0, page: 3_000.0 },
        };
        let bytes = 1 << 20;
        let spent = Spent { scratch: Speed { bytes, seconds: 1.0 }, ..Spent::default() };
        let first = Night { extractors: BTreeMap::from([("dear".to_owned(), spent)]), ..Night::default() };
        let extents = Extents { changed: Extent { pages: 100, bytes }, ..Extents::default() };
        let (guess, _) = decide(&[first], 3, &[dear], &extents);
        assert!(guess.alternatives[guess.chosen].seconds() < 0.5, "{guess:?}");
    }

    #[test]
    fn what_is_expected_follows_from_the_other_columns() {
        let facts = |name: &str, recycles, byte: f64| ExtractorFacts {
            name: name.into(),
            recycles,
            window: Some(50),
            n: 5_000,
            n_b: 70,
            price_per_mb: 0.0,
            prior: Prior { byte, page: 3_000.0 },
        };
        let extractors = [facts("dear", Recycles::ByRegion, 900.0), facts("never", Recycles::Never, 50.0)];
        let extent = |pages| Extent { pages, bytes: pages * 2 * BLOCK };
        let extents = Extents { added: extent(30), equal: extent(200), changed: extent(120) };
        let (weights, shares) = (fit(&[], 3, &extractors), Shares::of(&Sample::default(), &extractors));
        let question = Question {
            extents: &extents,
            extractors: &extractors,
            weights: &weights,
            shares: &shares,
            default_region: DEFAULT_MIN_REGION,
        };
        let rows = rows(&choose(question), &extractors, &extents, &weights);
        assert_eq!(rows.len(), 7 * 3);
        for alternative in rows.chunks(3) {
            let parts: Vec<f64> = alternative.iter().map(expected).collect();
            let [whole, of_extractors @ ..] = parts.as_slice() else { panic!() };
            let whole = whole + of_extractors.iter().sum::<f64>();
            for (row, expected) in alternative.iter().zip([&[whole], of_extractors].concat()) {
                let off = (row.predicted_s / expected - 1.0).abs();
                assert!(off < 1e-9, "{} {:?}: {} {expected}", row.alternative, row.extractor, row.predicted_s);
            }
        }
    }
}
