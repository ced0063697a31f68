//! A changed extractor beside the present one, on a sample of pages: what each finds, what people say is there, whether
//! each agrees with itself when it is asked twice, and what adopting the change would cost.
//!
//! Answers of models and workers are used and kept as in a run, so that what a trial has paid for is there when the change is
//! adopted. What is asked twice goes past them, and is not kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use rayon::prelude::*;
use serde::Deserialize;

use super::ahead;
use super::answers::{About, Answers, Asker};
use super::asking::{ModelAsker, Told};
use super::live::{Live, LiveExtractor, Making};
use super::shard::Pending;
use super::shown::Beside;
use super::state::extracted_at;
use super::verify::newest_extracted;
use crate::config::{DeclaredExtractor, Pipeline};
use crate::extract::reach::{Cut, Sees};
use crate::extract::traits::Finds;
use crate::extract::units::units;
use crate::extract::{Declaration, Definition, Mention, Question};
use crate::model::{Digest, DigestBuilder, SnapshotId};
use crate::recycle::scratch;
use crate::recycle::shares::{PageCount, Share, allocate, share, strata};
use crate::recycle::trial::{Gold, Placed, Tally, compare, right};
use crate::report::trial::{Adoption, Again, Example, Trial, TrialSide};
use crate::run::progress::Progress;
use crate::stages::plan::price_per_mb;
use crate::store::Store;
use crate::store::lock::StoreLock;
use crate::store::texts::ShardReader;
use crate::tables::ingest::{PagePointer, PageTitle, TitledText};

/// What is to be tried.
pub(crate) struct Trying<'a> {
    pub(crate) extractor: &'a str,
    pub(crate) pages: u64,
    pub(crate) seed: u64,
    /// What people say the pages have: lines of JSON.
    pub(crate) gold: Option<&'a str>,
    pub(crate) budget: Option<f64>,
}

/// Units that an extractor is asked about twice, at most; more would say little more.
const TWICE: usize = 200;
/// Mentions shown of each kind of difference.
const SHOWN: usize = 50;

/// The extractors that are in both files and not the same there.
pub(crate) fn changed(present: &Pipeline, candidate: &Pipeline) -> Vec<String> {
    let identity = |pipeline: &Pipeline, name: &str| {
        let parts = with_parts(pipeline, name);
        let own = |declared: &&DeclaredExtractor| parts.contains(&declared.config.name);
        let digests: Vec<Digest> = pipeline
            .extractors
            .iter()
            .filter(own)
            .map(|declared| super::declared_with_files(declared, pipeline))
            .collect();
        (!digests.is_empty()).then_some(digests)
    };
    let names = candidate.extractors.iter().map(|declared| declared.config.name.clone());
    let differs = |name: &String| {
        let (now, then) = (identity(present, name), identity(candidate, name));
        now.is_some() && now != then
    };
    names.filter(differs).collect()
}

/// An extractor and, if it is a record, those that it is made of.
fn with_parts(pipeline: &Pipeline, name: &str) -> HashSet<String> {
    let mut names = HashSet::from([name.to_owned()]);
    for declared in pipeline.extractors.iter().filter(|declared| declared.config.name == name) {
        if let Declaration::Complete(Definition::Joins(record)) = &declared.declaration {
            names.extend(record.extractors().iter().cloned());
        }
    }
    names
}

/// Tries an extractor of the candidate beside that of the pipeline. Both files are cut down to it.
pub(crate) fn try_candidate(
    (mut present, mut candidate): (Pipeline, Pipeline),
    store: &Store,
    trying: &Trying<'_>,
    progress: Progress,
) -> Result<Trial> {
    let name = trying.extractor;
    for pipeline in [&mut present, &mut candidate] {
        let parts = with_parts(pipeline, name);
        pipeline.extractors.retain(|declared| parts.contains(&declared.config.name));
    }
    let snapshot = newest_extracted(store)?;
    let gold = trying.gold.map(|lines| gold(lines, name, &snapshot)).transpose()?;
    let sample = Sample::draw(store, &snapshot, trying, gold.as_ref())?;
    // What is asked is kept, and only the holder of the lock may add to it.
    let asks = |declared: &DeclaredExtractor| {
        matches!(declared.declaration, Declaration::Command(_)) || declared.declaration.model().is_some()
    };
    let is_asked = present.extractors.iter().chain(&candidate.extractors).any(asks);
    let _lock = if is_asked { Some(StoreLock::take(&present.corpus.store, "trial")?) } else { None };
    // Without one of its own, a trial has the budget that the candidate has for a run.
    let own = candidate.extractors.iter().find(|declared| declared.config.name == name).and_then(|d| d.config.budget);
    let left = trying.budget.or(own).unwrap_or(f64::INFINITY);
    let mut looker = Looker { store, snapshot: &snapshot, sample: &sample, left, progress };
    let there = looker.side(&candidate, name, true)?;
    let here = looker.side(&present, name, false)?;
    Ok(sample.judge(name, &candidate, &snapshot, here, there, gold.as_ref()))
}

/// A line of a gold file.
#[derive(Deserialize)]
struct GoldLine {
    url: String,
    text: Option<String>,
    start: Option<u32>,
    end: Option<u32>,
    extractor: Option<String>,
    snapshot: Option<String>,
}

/// By URL, what people say a page has. Lines of other snapshots are left out, and those of other extractors say only
/// that the page was looked at.
fn gold(lines: &str, extractor: &str, snapshot: &SnapshotId) -> Result<HashMap<String, Vec<Gold>>> {
    let mut pages: HashMap<String, Vec<Gold>> = HashMap::new();
    for (i, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let told = |problem: String| {
            format!(
                "gold, line {}: {problem}; write {{\"url\": …, \"text\": …}} or {{\"url\": …, \"start\": …, \"end\": …}}",
                i + 1
            )
        };
        let line: GoldLine = serde_json::from_str(line).map_err(|error| anyhow::anyhow!(told(error.to_string())))?;
        if line.snapshot.is_some_and(|of| of != snapshot.as_str()) {
            continue;
        }
        let page = pages.entry(line.url).or_default();
        if line.extractor.is_some_and(|of| of != extractor) {
            continue;
        }
        let place = line.start.zip(line.end);
        match (line.text, place) {
            (None, None) => {}
            (text, place) => page.push(Gold { text: text.unwrap_or_default(), place }),
        }
    }
    if pages.is_empty() {
        bail!("the gold file says nothing of snapshot {snapshot}");
    }
    Ok(pages)
}

/// Reads a gold file as `trial` does, for the fuzzer: how many bytes it says.
#[cfg(any(test, feature = "lab"))]
pub(crate) fn gold_bytes(lines: &str) -> u64 {
    let snapshot = SnapshotId::new("n1").expect("a sound id");
    let pages = gold(lines, "x", &snapshot).unwrap_or_default();
    pages.iter().map(|(url, gold)| url.len() + gold.iter().map(|gold| gold.text.len()).sum::<usize>()).sum::<usize>()
        as u64
}

/// A page that is looked at.
struct SampledPage {
    url: String,
    text: String,
    beside: Beside,
    stratum: usize,
}

/// Some pages of a snapshot, in an order that has nothing to do with them.
struct Sample {
    pages: Vec<SampledPage>,
    /// Pages of each stratum.
    sizes: Vec<u64>,
    /// How many there are to draw from.
    of: u64,
    /// All pages of the snapshot, and their bytes.
    all: u64,
    bytes: u64,
}

impl Sample {
    /// With gold, of the pages that it names.
    fn draw(
        store: &Store,
        snapshot: &SnapshotId,
        trying: &Trying<'_>,
        gold: Option<&HashMap<String, Vec<Gold>>>,
    ) -> Result<Self> {
        let layers = store.pages_at(snapshot)?;
        let mut listed: Vec<(Digest, u32, PagePointer, u64)> = Vec::new();
        let (mut all, mut bytes) = (0, 0);
        for shard in 0..store.shards() {
            let rows = extracted_at(store, trying.extractor, snapshot, shard)?;
            let mentions: HashMap<&str, i64> = rows.iter().map(|row| (&*row.url, row.mentions)).collect();
            for page in layers.shard::<PagePointer>(store, shard)? {
                all += 1;
                bytes += u64::try_from(page.text_bytes).unwrap_or(0);
                if gold.is_some_and(|gold| !gold.contains_key(&page.url)) {
                    continue;
                }
                let mut rank = DigestBuilder::new();
                rank.number(trying.seed).field(page.url.as_bytes());
                let count = mentions.get(page.url.as_str()).map_or(0, |count| u64::try_from(*count).unwrap_or(0));
                listed.push((rank.finish(), shard, page, count));
            }
        }
        if listed.is_empty() {
            bail!(
                "no page of snapshot {snapshot} to look at{}",
                if gold.is_some() { ": the gold file names none of them" } else { "" }
            );
        }
        listed.sort_by_key(|(rank, ..)| *rank);
        let counts: Vec<u64> = listed.iter().map(|(.., count)| *count).collect();
        let of = strata(&counts);
        let sum = |of_page: &dyn Fn(usize) -> u64| {
            let mut sums = vec![0; STRATA];
            of.iter().enumerate().for_each(|(i, &stratum)| sums[stratum] += of_page(i));
            sums
        };
        let sizes: Vec<u64> = sum(&|_| 1);
        let mut left = allocate(&sizes, &sum(&|i| counts[i]), trying.pages);
        let mut chosen = Vec::new();
        for (i, (_, shard, page, _)) in listed.iter().enumerate() {
            if left[of[i]] > 0 {
                left[of[i]] -= 1;
                chosen.push((*shard, page, of[i]));
            }
        }
        let pages = load(store, snapshot, &chosen)?;
        Ok(Self { pages, sizes, of: listed.len() as u64, all, bytes })
    }

    /// Puts two sides together.
    fn judge(
        &self,
        name: &str,
        candidate: &Pipeline,
        snapshot: &SnapshotId,
        here: Side,
        there: Side,
        gold: Option<&HashMap<String, Vec<Gold>>>,
    ) -> Trial {
        let mut tally = Tally::default();
        let (mut counts, mut examples) = (Vec::new(), Vec::new());
        for (page, (a, b)) in self.pages.iter().zip(here.found.iter().zip(&there.found)) {
            let (Some(a), Some(b)) = (a, b) else { continue };
            let more = compare(a, b, |only, mention| {
                examples.push(Example {
                    only,
                    url: page.url.clone(),
                    text: mention.text.clone(),
                    start: mention.start,
                });
            });
            tally.add(more);
            counts.push(PageCount { stratum: page.stratum, part: more.both, whole: more.either() });
        }
        let mut shown: BTreeMap<u8, usize> = BTreeMap::new();
        examples.retain(|example: &Example| {
            let count = shown.entry(example.only as u8).or_default();
            *count += 1;
            *count <= SHOWN
        });
        let every_page = self.pages.len() as u64 == self.of && counts.len() == self.pages.len();
        let sure = |found: Option<Share>, exact: bool| {
            found.map(|found| if every_page && exact { Share::exact(found.share) } else { found })
        };
        let agreement = sure(share(&counts, &self.sizes), here.is_sure && there.is_sure);
        let compared = counts.len() as u64;
        let told = |side: Side| {
            let [precision, recall] = gold.map_or([None, None], |gold| self.against(gold, &side.found));
            TrialSide {
                kind: side.kind,
                mentions: side.found.iter().flatten().map(|mentions| mentions.len() as u64).sum(),
                precision: sure(precision, side.is_sure),
                recall: sure(recall, side.is_sure),
                again: side.again.map(|again| again.told(&self.sizes)),
                failed: side.failed,
                deferred: side.deferred,
                error: side.error,
                spent: side.spent,
            }
        };
        let adoption = there.adoption;
        Trial {
            extractor: name.to_owned(),
            candidate: candidate.path.display().to_string(),
            snapshot: snapshot.clone(),
            pages: self.pages.len() as u64,
            compared,
            of: self.of,
            strata: self.sizes.iter().filter(|&&size| size > 0).count() as u64,
            has_gold: gold.is_some(),
            tally,
            agreement,
            present: told(here),
            there: told(there),
            examples,
            adoption,
        }
    }

    /// Precision and recall.
    fn against(&self, gold: &HashMap<String, Vec<Gold>>, found: &[Option<Vec<Placed>>]) -> [Option<Share>; 2] {
        let mut counts: [Vec<PageCount>; 2] = [Vec::new(), Vec::new()];
        for (page, found) in self.pages.iter().zip(found) {
            let (Some(gold), Some(found)) = (gold.get(&page.url), found) else { continue };
            let part = right(found, gold);
            for (counts, whole) in counts.iter_mut().zip([found.len(), gold.len()]) {
                counts.push(PageCount { stratum: page.stratum, part, whole: whole as u64 });
            }
        }
        counts.map(|counts| share(&counts, &self.sizes))
    }
}

/// Of [`strata`].
const STRATA: usize = 4;

/// Reads the chosen pages, given with shard and stratum, in their order.
fn load(store: &Store, snapshot: &SnapshotId, chosen: &[(u32, &PagePointer, usize)]) -> Result<Vec<SampledPage>> {
    let layers = store.pages_at(snapshot)?;
    let mut by_shard: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    chosen.iter().enumerate().for_each(|(i, (shard, ..))| by_shard.entry(*shard).or_default().push(i));
    let mut pages: Vec<Option<SampledPage>> = chosen.iter().map(|_| None).collect();
    for (shard, places) in by_shard {
        let titles: Vec<TitledText> = layers.shard(store, shard)?;
        let titles: HashMap<String, Option<String>> = titles.into_iter().map(|row| (row.url, row.title)).collect();
        let mut reader = ShardReader::new(store, shard);
        for i in places {
            let (_, page, stratum) = chosen[i];
            let url = page.url.clone();
            let text = reader.texts(&[(&url, &page.text_snapshot)])?.pop().unwrap_or_default();
            let beside = Beside::from(PageTitle { url: url.clone(), title: titles.get(&url).cloned().flatten() });
            pages[i] = Some(SampledPage { url, text, beside, stratum });
        }
    }
    Ok(pages.into_iter().flatten().collect())
}

/// What one of the two made of the pages.
struct Side {
    kind: &'static str,
    /// It says the same whenever it is asked.
    is_sure: bool,
    /// By page; `None` where it failed or there was no budget.
    found: Vec<Option<Vec<Placed>>>,
    failed: u64,
    deferred: u64,
    /// Why it failed first.
    error: Option<String>,
    again: Option<AskedTwice>,
    spent: Option<f64>,
    adoption: Adoption,
}

/// What asking twice came to.
struct AskedTwice {
    counts: Vec<PageCount>,
    units: u64,
    tally: Tally,
}

impl AskedTwice {
    fn told(self, sizes: &[u64]) -> Again {
        Again { units: self.units, tally: self.tally, share: share(&self.counts, sizes) }
    }
}

/// What an extractor made of the pages, before it is compared.
struct Looked {
    found: Vec<Result<Vec<Mention>, Lack>>,
    seconds: f64,
    /// Bytes that somebody was asked about.
    asked_bytes: u64,
    spent: f64,
}

#[derive(Clone, Debug)]
enum Lack {
    Failed(String),
    Deferred,
}

/// Looks at the pages of a sample with what is left of a budget.
struct Looker<'a> {
    store: &'a Store,
    snapshot: &'a SnapshotId,
    sample: &'a Sample,
    left: f64,
    progress: Progress,
}

impl Looker<'_> {
    fn side(&mut self, pipeline: &Pipeline, name: &str, adopts: bool) -> Result<Side> {
        let mut live = Live::new(pipeline)?;
        let at = live.all.iter().position(|live| *live.name == *name);
        let at = at.with_context(|| format!("{} has no extractor '{name}'", pipeline.path.display()))?;
        let mut looked: Vec<Option<Looked>> = Vec::new();
        let mut again = None;
        for (i, live) in live.all.iter_mut().enumerate() {
            let is_record = live.extractor().is_none();
            looked.push(if is_record { None } else { Some(self.look(live, i == at, &mut again)?) });
        }
        let of_page = |i: usize| match &live.all[at].making {
            Making::Extracts(_) => looked[at].as_ref().map_or(Err(Lack::Deferred), |looked| looked.found[i].clone()),
            Making::Joins { record, parts } => {
                let parts: Result<Vec<&[Mention]>, Lack> = parts
                    .iter()
                    .map(|&part| match looked[part].as_ref().map(|looked| &looked.found[i]) {
                        Some(Ok(mentions)) => Ok(mentions.as_slice()),
                        Some(Err(lack)) => Err(lack.clone()),
                        None => Err(Lack::Deferred),
                    })
                    .collect();
                let joined = record.join(&self.sample.pages[i].text, &parts?).records;
                Ok(joined.into_iter().map(|joined| joined.mention).collect())
            }
        };
        let all: Vec<Result<Vec<Mention>, Lack>> = (0..self.sample.pages.len()).map(of_page).collect();
        let one = &live.all[at];
        let error = all.iter().find_map(|page| match page {
            Err(Lack::Failed(why)) => Some(why.clone()),
            _ => None,
        });
        let placed = |(page, found): (&SampledPage, &Result<Vec<Mention>, Lack>)| {
            let mentions = found.as_ref().ok()?;
            Some(mentions.iter().map(|mention| Placed::new(mention, one.columns(), &page.text)).collect())
        };
        let asking = |live: &LiveExtractor| live.extractor().is_some_and(|e| matches!(e.finds(), Finds::ByAsking(_)));
        let spent: f64 = looked.iter().flatten().map(|looked| looked.spent).fold(0.0, |sum, more| sum + more);
        Ok(Side {
            kind: one.extractor().map_or("record", |extractor| extractor.kind().as_str()),
            is_sure: !live.all.iter().any(asking),
            found: self.sample.pages.iter().zip(&all).map(placed).collect(),
            failed: all.iter().filter(|page| matches!(page, Err(Lack::Failed(_)))).count() as u64,
            deferred: all.iter().filter(|page| matches!(page, Err(Lack::Deferred))).count() as u64,
            error,
            again,
            spent: live.all.iter().any(LiveExtractor::is_priced).then_some(spent),
            adoption: if adopts { self.adoption(pipeline, &live, &looked)? } else { Adoption::default() },
        })
    }

    /// What an extractor makes of the pages; `again`: asks it twice.
    fn look(&mut self, live: &mut LiveExtractor, is_tried: bool, again: &mut Option<AskedTwice>) -> Result<Looked> {
        live.open_answers(self.store, self.snapshot, self.left)?;
        let live = &*live;
        let before = live.answers().map_or(0.0, Answers::spent);
        let bar = self.progress.count(&format!("try {}", live.name), self.sample.pages.len() as u64);
        let started = Instant::now();
        let asked_bytes = self.ask_model(live, before)?;
        let found: Vec<Result<Vec<Mention>, Lack>> = self
            .sample
            .pages
            .par_iter()
            .map_init(
                || live.runner(),
                |runner, page| {
                    bar.add(1);
                    let Some(extractor) = live.extractor() else { return Err(Lack::Deferred) };
                    runner.turn_to(&page.beside, &page.url);
                    match scratch(extractor, runner, &page.text) {
                        Ok(done) if done.deferred() > 0 => Err(Lack::Deferred),
                        Ok(done) => Ok(done.found.into_iter().map(|found| found.mention).collect()),
                        Err(failure) => Err(Lack::Failed(failure.reason())),
                    }
                },
            )
            .collect();
        let seconds = started.elapsed().as_secs_f64();
        let asks = live.extractor().is_some_and(|extractor| matches!(extractor.finds(), Finds::ByAsking(_)));
        if is_tried && asks {
            *again = Some(self.ask_twice(live, before, &found)?);
        }
        let mut spent = 0.0;
        if let Some(answers) = live.answers() {
            spent = answers.spent() - before;
            self.left = (self.left - spent).max(0.0);
            answers.finish_apart()?;
        }
        Ok(Looked { found, seconds, asked_bytes, spent })
    }

    /// Asks a model for the answers that the pages lack. Returns the bytes of the units that it was asked about.
    fn ask_model(&self, live: &LiveExtractor, before: f64) -> Result<u64> {
        let (Some(model), Some(answers), Some(extractor)) = (live.model(), live.answers(), live.extractor()) else {
            return Ok(0);
        };
        let mut runner = live.runner();
        runner.collect();
        let mut pending: Vec<Pending> = Vec::new();
        for page in &self.sample.pages {
            runner.turn_to(&page.beside, &page.url);
            // Nobody is asked yet, so that nothing can fail.
            let _ = scratch(extractor, &mut runner, &page.text);
            pending.extend(runner.collected());
        }
        if pending.is_empty() {
            return Ok(0);
        }
        let asker = ModelAsker::new(live, model, answers)?.with_budget(Some(before + self.left));
        at_once(model.spec().in_flight, &pending, |pending| asker.ask(pending));
        Ok(pending.iter().map(|pending| pending.text.len() as u64).sum())
    }

    /// Asks about distinct units once more, past what is kept, and compares.
    fn ask_twice(&self, live: &LiveExtractor, before: f64, found: &[Result<Vec<Mention>, Lack>]) -> Result<AskedTwice> {
        let mut twice = AskedTwice { counts: Vec::new(), units: 0, tally: Tally::default() };
        let Some(extractor) = live.extractor() else { return Ok(twice) };
        let cut = match extractor.finds() {
            Finds::ByAsking(Sees::Units(cut)) => cut,
            _ => Cut::Page,
        };
        let by_units = matches!(extractor.finds(), Finds::ByAsking(Sees::Units(_)));
        let asker = Asker { extractor, fingerprint: live.fingerprint };
        let mut seen: HashSet<Digest> = HashSet::new();
        let mut asked: Vec<Unit<'_>> = Vec::new();
        for (i, (page, found)) in self.sample.pages.iter().zip(found).enumerate() {
            if found.is_err() {
                continue;
            }
            if asked.len() >= TWICE {
                break;
            }
            for unit in units(&page.text, cut) {
                let [before, text, after] = unit.texts(&page.text);
                let question = Question { text, before, after, ..page.beside.of(live.along, &page.url) };
                let key = asker.key(&question);
                if seen.insert(key) {
                    asked.push(Unit { page: i, key, question, start: unit.span.start });
                }
            }
        }
        let told = if let (Some(model), Some(answers)) = (live.model(), live.answers()) {
            let asker = ModelAsker::new(live, model, answers)?.with_budget(Some(before + self.left));
            at_once(model.spec().in_flight, &asked, |unit| {
                let first = extractor.read(&answers.kept(unit.key).ok()??, unit.question.text).ok()?.mentions;
                let url = self.sample.pages[unit.page].url.clone();
                let request = model.request(&unit.question);
                let text = unit.question.text.to_owned();
                match asker.obtain(&Pending { key: unit.key, request, url, text }).0 {
                    Told::Said(said) => Some((first, extractor.read(&said, unit.question.text).ok()?.mentions)),
                    Told::Failed(_) | Told::NoBudget => None,
                }
            })
        } else {
            self.ask_worker_twice(live, &asked, by_units, found)
        };
        let mut by_page: BTreeMap<usize, Tally> = BTreeMap::new();
        for (unit, pair) in asked.iter().zip(told) {
            let Some((first, second)) = pair else { continue };
            let placed = |mentions: Vec<Mention>| -> Vec<Placed> {
                mentions.iter().map(|mention| Placed::new(mention, live.columns(), unit.question.text)).collect()
            };
            let more = compare(&placed(first), &placed(second), |_, _| {});
            twice.units += 1;
            twice.tally.add(more);
            by_page.entry(unit.page).or_default().add(more);
        }
        for (page, tally) in by_page {
            let stratum = self.sample.pages[page].stratum;
            twice.counts.push(PageCount { stratum, part: tally.both, whole: tally.either() });
        }
        Ok(twice)
    }

    /// The answers of a worker, the first ones and those when it is asked again.
    fn ask_worker_twice(
        &self,
        live: &LiveExtractor,
        asked: &[Unit<'_>],
        by_units: bool,
        found: &[Result<Vec<Mention>, Lack>],
    ) -> Vec<Option<(Vec<Mention>, Vec<Mention>)>> {
        let again = |runner: &mut super::live::LiveRunner<'_>, unit: &Unit<'_>| {
            let page = &self.sample.pages[unit.page];
            let (extractor, question) = (live.extractor()?, &unit.question);
            if !by_units {
                // It sees windows, or any part of the page.
                let second = scratch(extractor, runner.past_answers(), &page.text).ok()?;
                let first = found[unit.page].as_ref().ok()?.clone();
                return Some((first, second.found.into_iter().map(|found| found.mention).collect()));
            }
            let about = About { key: unit.key, url: &page.url, unit: question.text };
            let first = match live.answers() {
                Some(answers) => extractor.read(&answers.kept(unit.key).ok()??, question.text).ok()?.mentions,
                // As the page was told it.
                None => mentions_within(found[unit.page].as_ref().ok()?, unit),
            };
            let second = match live.answers() {
                Some(answers) => answers.ask_anew(runner.past_answers(), question, about)?.ok()?,
                None => runner.past_answers().answer(&[*question]).ok()?.pop()?,
            };
            Some((first, second.mentions))
        };
        asked.par_iter().map_init(|| live.runner(), again).collect()
    }

    /// What redoing all pages with the candidate would take, now that the answers of the trial are there.
    #[expect(clippy::cast_precision_loss, reason = "estimates from sizes of text")]
    fn adoption(&self, pipeline: &Pipeline, live: &Live, looked: &[Option<Looked>]) -> Result<Adoption> {
        let sampled: u64 = self.sample.pages.iter().map(|page| page.text.len() as u64).sum();
        let mut adoption = Adoption { pages: self.sample.all, ..Adoption::default() };
        for ((live, declared), looked) in live.all.iter().zip(&pipeline.extractors).zip(looked) {
            let Some(looked) = looked else { continue };
            let Some(asked) = ahead::unanswered(self.store, live, self.snapshot)? else {
                adoption.bytes += self.sample.bytes;
                adoption.seconds += looked.seconds * self.sample.bytes as f64 / sampled.max(1) as f64;
                continue;
            };
            let measured = looked.spent / looked.asked_bytes.max(1) as f64;
            let per_byte = if looked.asked_bytes > 0 && looked.spent > 0.0 {
                measured
            } else {
                price_per_mb(declared, None) / 1e6
            };
            adoption.bytes += asked.bytes;
            adoption.units = Some(adoption.units.unwrap_or(0) + asked.units);
            adoption.kept += asked.kept;
            adoption.seconds += looked.seconds * asked.bytes as f64 / looked.asked_bytes.max(sampled).max(1) as f64;
            if live.is_priced() {
                adoption.price = Some(adoption.price.unwrap_or(0.0) + per_byte * asked.bytes as f64);
                adoption.most = Some(adoption.most.unwrap_or(0.0) + asked.most);
            }
        }
        Ok(adoption)
    }
}

/// A unit that is asked about twice.
struct Unit<'a> {
    page: usize,
    key: Digest,
    question: Question<'a>,
    start: u32,
}

/// The mentions of a page that lie in a unit, with offsets from its start.
fn mentions_within(found: &[Mention], unit: &Unit<'_>) -> Vec<Mention> {
    let end = unit.start as usize + unit.question.text.len();
    let inside = |mention: &&Mention| mention.start >= unit.start && mention.end as usize <= end;
    found.iter().filter(inside).map(|mention| mention.shifted(-i64::from(unit.start))).collect()
}

/// Does something with each of a list, so many at a time; results are in the order of the list.
fn at_once<T: Sync, R: Send>(many: usize, list: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..many.min(list.len()) {
            scope.spawn(|| {
                while let Some((i, item)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, list.get(i)?)))
                {
                    let result = work(item);
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((i, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}
