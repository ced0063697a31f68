//! A changed extractor beside the present one, on a sample of pages: what each finds, what people say is there, whether
//! each agrees with itself when it is asked twice, and what adopting the change would cost.
//!
//! Answers of models and workers are used and kept as in a run, so that what a trial has paid for is there when the change is
//! adopted. What is asked twice goes past them, and is not kept.

mod gold;
mod judged;
mod looker;
mod sample;
mod twice;

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

use self::gold::gold;
#[cfg(any(test, feature = "lab"))]
pub(crate) use self::gold::gold_bytes;
use self::looker::Looker;
use self::sample::Sample;
use super::verify::newest_extracted;
use crate::config::{DeclaredExtractor, Pipeline};
use crate::extract::Declaration;
use crate::model::Digest;
use crate::report::trial::Trial;
use crate::run::progress::Progress;
use crate::store::Store;
use crate::store::lock::StoreLock;

/// What is to be tried.
pub(crate) struct Trying<'a> {
    pub(crate) extractor: &'a str,
    pub(crate) pages: u64,
    pub(crate) seed: u64,
    /// What people say the pages have: lines of JSON.
    pub(crate) gold: Option<&'a str>,
    pub(crate) budget: Option<f64>,
}

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
        names.extend(declared.declaration.record().into_iter().flat_map(|record| record.extractors().iter().cloned()));
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
