//! What sources count in a budget, as the store tells. It guides a schedule and no table follows from it alone, so that
//! what is read here is not what a schedule is made of.

use std::collections::{HashMap, HashSet};

use anyhow::Result;

use crate::config::schedule::{ScheduleSettings, SourceWeight, Weighing};
use crate::manifests::Ingested;
use crate::model::MentionChange;
use crate::run::shards;
use crate::run::stage::Context;
use crate::schedule::SourceBy;
use crate::stages::delta::links_in::links_in_run;
use crate::store::Store;
use crate::store::manifest::Manifest;
use crate::tables::extract::{MentionChangedOn, MentionDelta};
use crate::tables::ingest::PollFacts;
use crate::tables::record::Table as _;
use crate::tables::stats::{UpdateRow, UpdateUrl};

/// Snapshots, the newest ones, whose updates tell how many mentions an update brings.
const WINDOW: usize = 30;

/// What each of these sources counts, after the last snapshot that is done.
pub(super) fn weights(
    context: &Context<'_>,
    settings: &ScheduleSettings,
    done: &[Manifest<Ingested>],
    names: &[&str],
) -> Result<Vec<f64>> {
    // Without a budget nobody asks.
    let weighing = if settings.budget.is_some() { &settings.weighing } else { &Weighing::Alike };
    let store = &context.store.unrestricted();
    match weighing {
        Weighing::Alike | Weighing::List(_) => Ok(names.iter().map(|name| weighing.of(name)).collect()),
        Weighing::Found(SourceWeight::Mentions) => mentions(store, settings, done, names),
        Weighing::Found(SourceWeight::InLinks) => in_links(context, store, settings, done, names),
    }
}

/// Mentions that an update of a source brought, in the last snapshots; of few updates pulled towards the mean of all.
fn mentions(
    store: &Store,
    settings: &ScheduleSettings,
    done: &[Manifest<Ingested>],
    names: &[&str],
) -> Result<Vec<f64>> {
    // Updates of a source, and mentions that came with them.
    let mut found: HashMap<String, (f64, f64)> = HashMap::new();
    for night in done.iter().rev().take(WINDOW) {
        let deltas = store.partition(MentionDelta::NAME, &night.snapshot)?;
        let updates = store.partition(UpdateRow::NAME, &night.snapshot)?;
        for shard in 0..store.shards() {
            let mut added: HashMap<String, f64> = HashMap::new();
            let rows = deltas.shard::<MentionChangedOn>(shard)?.into_iter();
            for row in rows.filter(|row| row.change == MentionChange::Added) {
                *added.entry(row.url).or_default() += 1.0;
            }
            for UpdateUrl { url } in updates.shard(shard)? {
                let of = found.entry(settings.by.source(&url).to_owned()).or_default();
                of.0 += 1.0;
                // Of several updates of a page the mentions count once.
                of.1 += added.remove(&url).unwrap_or(0.0);
            }
        }
    }
    let (updates, brought) = found.values().fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    let mean = if updates > 0.0 { brought / updates } else { 1.0 };
    let weight = |name: &&str| {
        let (updates, brought) = found.get(*name).copied().unwrap_or_default();
        (brought + mean) / (updates + 1.0)
    };
    Ok(names.iter().map(weight).collect())
}

/// One more than the pages that link to a source's pages.
fn in_links(
    context: &Context<'_>,
    store: &Store,
    settings: &ScheduleSettings,
    done: &[Manifest<Ingested>],
    names: &[&str],
) -> Result<Vec<f64>> {
    let counted = |urls: &[&str]| links_in_run(store, context.index, done, urls);
    if matches!(settings.by, SourceBy::Url) {
        return Ok(counted(names)?.into_iter().map(|links| 1.0 + links as f64).collect());
    }
    let Some(newest) = done.last() else { return Ok(vec![1.0; names.len()]) };
    let wanted: HashSet<&str> = names.iter().copied().collect();
    let pages = store.pages_at(&newest.snapshot)?;
    let urls = shards::all(store.shards(), |shard| {
        let pages = pages.shard::<PollFacts>(store, shard)?.into_iter().map(|page| page.url);
        Ok(pages.filter(|url| wanted.contains(settings.by.source(url))).collect::<Vec<String>>())
    })?;
    let urls: Vec<String> = urls.into_iter().flatten().collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let mut sums: HashMap<&str, f64> = HashMap::new();
    for (url, links) in urls.iter().zip(counted(&urls)?) {
        *sums.entry(settings.by.source(url)).or_default() += links as f64;
    }
    Ok(names.iter().map(|name| 1.0 + sums.get(name).copied().unwrap_or(0.0)).collect())
}
