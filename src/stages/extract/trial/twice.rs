//! Asked twice: whether an extractor says the same of a unit when it is asked again, past what is kept.

use std::collections::{BTreeMap, HashSet};

use anyhow::Result;
use rayon::prelude::*;

use super::at_once;
use super::looker::{Lack, Looker};
use crate::extract::reach::{Cut, Sees};
use crate::extract::traits::Finds;
use crate::extract::units::units;
use crate::extract::{Mention, Question};
use crate::model::Digest;
use crate::recycle::scratch;
use crate::recycle::shares::{PageCount, share};
use crate::recycle::trial::{Placed, Tally, compare};
use crate::report::trial::Again;
use crate::stages::extract::answers::{About, Asker};
use crate::stages::extract::asking::Pending;
use crate::stages::extract::asking::{ModelAsker, Told};
use crate::stages::extract::live::{LiveExtractor, LiveRunner};

/// Units that an extractor is asked about twice, at most; more would say little more.
const TWICE: usize = 200;

/// What asking twice came to.
pub(super) struct AskedTwice {
    pub(super) counts: Vec<PageCount>,
    pub(super) units: u64,
    pub(super) tally: Tally,
}

impl AskedTwice {
    pub(super) fn told(self, sizes: &[u64]) -> Again {
        Again { units: self.units, tally: self.tally, share: share(&self.counts, sizes) }
    }
}

impl Looker<'_> {
    /// Asks about distinct units once more, past what is kept, and compares.
    pub(super) fn ask_twice(
        &self,
        live: &LiveExtractor,
        before: f64,
        found: &[Result<Vec<Mention>, Lack>],
    ) -> Result<AskedTwice> {
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
        let again = |runner: &mut LiveRunner<'_>, unit: &Unit<'_>| {
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
