//! Who runs which extractor, where others work for the process that commits. Answers are paid for and kept by that process
//! alone, so it runs the extractors that keep them, and records made of their mentions; workers run all others.

use std::collections::HashMap;

use anyhow::Result;

use super::job::Job;
use super::live::Live;
use super::output::{AskedPage, Output};
use super::shard::extract_shard;
use crate::extract::Extractor;
use crate::run::hands::{Hands, Pass};

/// By extractor, whether whoever commits runs it.
pub(super) struct Sharing {
    own: Vec<bool>,
}

impl Sharing {
    pub(super) fn new(live: &Live) -> Self {
        let keeps = |i: usize| live.all[i].extractor().is_some_and(Extractor::keeps_answers);
        let own = |i: usize| keeps(i) || live.all[i].parts().iter().any(|&part| keeps(part));
        Self { own: (0..live.all.len()).map(own).collect() }
    }

    /// Whether there is anything for workers to do.
    pub(super) fn is_shared(&self) -> bool {
        self.own.contains(&false)
    }

    /// Whether workers have still to do their part.
    pub(super) fn waits(&self, hands: Hands<'_>) -> bool {
        match hands {
            Hands::Others(others) => self.is_shared() && !others.folder(Pass::Extract, true).is_complete(),
            Hands::Own | Hands::Worker(_) => false,
        }
    }

    /// By extractor, whether this process runs it: those that it answers for, and the parts of records among them.
    pub(super) fn does(&self, hands: Hands<'_>, live: &Live) -> Vec<bool> {
        let answers_for = |i: usize| match hands {
            Hands::Own => true,
            Hands::Worker(_) => !self.own[i],
            Hands::Others(_) => self.own[i] || !self.is_shared(),
        };
        let mut does: Vec<bool> = (0..live.all.len()).map(answers_for).collect();
        for (i, record) in live.all.iter().enumerate().filter(|(i, _)| answers_for(*i)) {
            does[i] = true;
            record.parts().iter().for_each(|&part| does[part] = true);
        }
        does
    }

    /// What workers found in a shard, with what this process has to add.
    pub(super) fn join(&self, job: &Job<'_>, shard: u32, theirs: Output) -> Result<Output> {
        if !self.own.contains(&true) {
            return Ok(theirs);
        }
        let mut own = extract_shard(job, shard)?;
        let index: HashMap<&str, usize> = job.live.all.iter().enumerate().map(|(i, live)| (&*live.name, i)).collect();
        let is_own = |name: &str| index.get(name).is_none_or(|&i| self.own[i]);
        // Rows of a page are in the order of the extractors.
        let mut rows: Vec<(usize, Option<usize>, _)> = Vec::new();
        for (at, row) in std::mem::take(&mut own.extractions).into_iter().enumerate() {
            rows.extend(is_own(&row.extractor).then(|| (index[&*row.extractor], Some(at), row)));
        }
        for row in theirs.extractions {
            rows.extend((!is_own(&row.extractor)).then(|| (index[&*row.extractor], None, row)));
        }
        rows.sort_by(|(i, _, a), (k, _, b)| (&a.url, i).cmp(&(&b.url, k)));
        let moved: HashMap<usize, usize> =
            rows.iter().enumerate().filter_map(|(now, (_, before, _))| Some(((*before)?, now))).collect();
        own.asked = own
            .asked
            .into_iter()
            .filter_map(|page| Some(AskedPage { extraction: *moved.get(&page.extraction)?, ..page }))
            .collect();
        own.extractions = rows.into_iter().map(|(.., row)| row).collect();
        own.deltas.retain(|row| is_own(&row.extractor));
        own.deltas.extend(theirs.deltas.into_iter().filter(|row| !is_own(&row.extractor)));
        super::changes::sort(&mut own.deltas);
        for (i, (mentions, costs)) in theirs.mentions.into_iter().zip(theirs.costs).enumerate() {
            if !self.own[i] {
                own.mentions[i] = mentions;
                own.costs[i] = costs;
                own.old_mentions[i] = theirs.old_mentions[i];
                own.failed_anew[i] = theirs.failed_anew[i];
                own.older[i] = theirs.older[i];
                own.older_before[i] = theirs.older_before[i];
            }
        }
        own.read.add(theirs.read);
        // It was found out from this process's rows alone.
        own.known = None;
        Ok(own)
    }
}
