//! What an extractor makes of the pages, and what it takes.

use std::time::Instant;

use anyhow::{Context as _, Result};
use rayon::prelude::*;

use super::at_once;
use super::sample::{Sample, SampledPage};
use super::twice::AskedTwice;
use crate::config::Pipeline;
use crate::extract::Mention;
use crate::extract::traits::Finds;
use crate::model::SnapshotId;
use crate::recycle::scratch;
use crate::recycle::trial::Placed;
use crate::report::trial::Adoption;
use crate::run::progress::Progress;
use crate::stages::extract::ahead;
use crate::stages::extract::answers::Answers;
use crate::stages::extract::asking::ModelAsker;
use crate::stages::extract::asking::Pending;
use crate::stages::extract::live::{Live, LiveExtractor, Making};
use crate::stages::plan::price_per_mb;
use crate::store::Store;

/// What one of the two made of the pages.
pub(super) struct Side {
    pub(super) kind: &'static str,
    /// It says the same whenever it is asked.
    pub(super) is_sure: bool,
    /// By page; `None` where it failed or there was no budget.
    pub(super) found: Vec<Option<Vec<Placed>>>,
    pub(super) failed: u64,
    pub(super) deferred: u64,
    /// Why it failed first.
    pub(super) error: Option<String>,
    pub(super) again: Option<AskedTwice>,
    pub(super) spent: Option<f64>,
    pub(super) adoption: Adoption,
}

/// What an extractor made of the pages, before it is compared.
struct Looked {
    pub(super) found: Vec<Result<Vec<Mention>, Lack>>,
    pub(super) seconds: f64,
    /// Bytes that somebody was asked about.
    pub(super) asked_bytes: u64,
    pub(super) spent: f64,
}

#[derive(Clone, Debug)]
pub(super) enum Lack {
    Failed(String),
    Deferred,
}

/// Looks at the pages of a sample with what is left of a budget.
pub(super) struct Looker<'a> {
    pub(super) store: &'a Store,
    pub(super) snapshot: &'a SnapshotId,
    pub(super) sample: &'a Sample,
    pub(super) left: f64,
    pub(super) progress: Progress,
}

impl Looker<'_> {
    pub(super) fn side(&mut self, pipeline: &Pipeline, name: &str, adopts: bool) -> Result<Side> {
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
