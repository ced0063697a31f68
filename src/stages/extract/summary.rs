//! What the manifest of a night says: what was found, what it came to, and what is lacking.

use std::collections::BTreeMap;

use super::adopting;
use super::answers::Answers;
use super::costs::{self, CostsBy};
use super::job::Job;
use super::lineage::lineages;
use super::live::{Live, LiveExtractor, declared_with_files};
use super::writing::Made;
use crate::config::{DeclaredExtractor, Pipeline};
use crate::manifests::{Costs, Extracted, Matched, Planned};
use crate::model::{Digest, Problem};
use crate::plan::model::Spent;
use crate::store::manifest::Manifest;
use crate::store::parquet::Written;
use crate::tables::mentions::mentions_of;

/// What the manifest says of a snapshot. `previous` and `alive_before`: what was extracted in the snapshot before, and its
/// pages.
pub(super) fn summary(
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
    let is_priced = live.all.iter().any(LiveExtractor::is_priced);
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

/// Notes what the snapshot lacks, and what of it is a problem. `failed`, `allowed`: see [`failures`].
pub(super) fn note_lacks(
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
    let too_many = |(live, (error, was_away)): (&LiveExtractor, (Option<String>, bool))| {
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
        answers.is_none_or(Answers::is_short)
    };
    let waiting = costs.iter().filter(|(name, costs)| costs.units_deferred > 0 && is_short(name));
    let problem = |(extractor, costs): (&String, &Costs)| Problem::DeferredExtractions {
        extractor: extractor.clone(),
        pages: costs.deferred,
        units: costs.units_deferred,
    };
    waiting.map(problem).collect()
}
