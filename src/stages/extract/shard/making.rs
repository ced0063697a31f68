//! Mentions that are made: found by an extractor, with what the old page allows to copy, or joined of what others found.

use std::sync::Arc;

use anyhow::{Context as _, Result};

use super::Work;
use super::page::{Done, Loaded};
use crate::extract::record::Used;
use crate::extract::{Came, Extractor, Failure, Found, Mention, Origin, Record, Reported, Runner, Status};
use crate::manifests::Costs;
use crate::matching::MatcherKind;
use crate::model::{Digest, DigestBuilder, SnapshotId, Span};
use crate::plan::Served;
use crate::recycle::{Old, Recycled, recycle, recycle_edited, scratch};
use crate::run::clock::{Clock, Stopwatch};
use crate::stages::extract::rows;
use crate::stages::extract::ways::Way;
use crate::tables::mentions::MentionRow;

/// An extraction that was tried, and what it took.
pub(super) struct Tried<'w> {
    result: Result<Recycled, Failure>,
    /// The rows that mentions may have been copied from.
    source: &'w [MentionRow],
    served: Served,
    /// Seconds of making mentions of those rows.
    converting: f64,
    /// Seconds of the extraction itself.
    extracting: f64,
    /// What its worker states that it came to, where answers are not kept.
    used: Reported,
}

impl Work<'_> {
    /// A page's mentions, found or copied from its old page.
    pub(super) fn extract(&mut self, page: &Loaded<'_>, i: usize, extractor: &Extractor, way: &Way) -> Result<Done> {
        let Tried { result, source, served, converting, extracting, used } = self.attempt(page, i, extractor, way)?;
        let mut extraction = self.extraction(page, i, served);
        let (job, url) = (self.job, &page.url);
        let live = &job.live.all[i];
        let costs = self.costs(page, i, served);
        costs.input_tokens += used.input_tokens.unwrap_or(0);
        costs.output_tokens += used.output_tokens.unwrap_or(0);
        // Answers that are kept have their price with them.
        let sent = result.as_ref().ok().filter(|_| live.answers().is_none());
        costs.price += live.price_of(used, sent.map_or(0, |recycled| recycled.bytes_extracted));
        let recycled = match result {
            Ok(recycled) => recycled,
            Err(failure) => {
                live.tell(url, &failure);
                costs.failed += 1;
                costs.failed_s += extracting;
                extraction.status = failure.status();
                extraction.error = Some(failure.reason());
                return Ok(Done::new(extraction));
            }
        };
        if recycled.not_local {
            costs.not_local += 1;
            live.tell(url, &"depends on more than its declared context; ratoon audit tells");
        }
        extraction.units_deferred = recycled.deferred() as i64;
        extraction.refused = recycled.refused as i64;
        if extraction.units_deferred > 0 {
            extraction.status = Status::Deferred;
            let waits = live.answers().is_some_and(|answers| !answers.is_short());
            let why = if waits {
                "a batch has its answers in a later run"
            } else {
                "the budget was used up before all units were asked about"
            };
            extraction.error = Some(why.to_owned());
            costs.deferred += 1;
            costs.units_deferred += recycled.deferred();
        }
        costs.refused += recycled.refused;
        extraction.bytes_extracted = recycled.bytes_extracted as i64;
        extraction.mentions = recycled.found.len() as i64;
        let watch = Stopwatch::start(Clock::Wall);
        let text = page.text()?;
        let mut units = Units::new(&recycled.units);
        // Many mentions in a row have the same label.
        let mut label: Option<(u32, Option<Arc<str>>)> = None;
        let mut row = |found: &Found| {
            let (copied, since) = match (found.source, units.known_since(&found.mention)) {
                (Some(index), _) => (true, &source[index as usize].since),
                (None, Some(since)) => (true, since),
                (None, None) => (false, job.snapshot),
            };
            let number = found.mention.label;
            if label.as_ref().is_none_or(|(last, _)| *last != number) {
                label = Some((number, live.label_text(number).map(Into::into)));
            }
            let text_of = label.as_ref().and_then(|(_, text)| text.clone());
            rows::labelled_row(&found.mention, text_of, url, text, copied, since.clone())
        };
        let rows: Vec<MentionRow> = recycled.found.iter().map(&mut row).collect();
        extraction.copied = rows.iter().filter(|row| row.copied).count() as i64;
        count(costs, &recycled, extraction.copied.unsigned_abs(), converting, extracting, watch.seconds());
        Ok(Done { rows, units: units.tonight(), ..Done::new(extraction) })
    }

    /// Runs an extractor on a page in the way that was decided on.
    pub(super) fn attempt<'w>(
        &mut self,
        page: &Loaded<'w>,
        i: usize,
        extractor: &Extractor,
        way: &Way,
    ) -> Result<Tried<'w>> {
        let live = &self.job.live.all[i];
        let found = self.regions.get(&page.url);
        let regions = found.map(|found| found.list.as_slice()).unwrap_or_default();
        let by_region = found.map_or(Served::None, |found| Served::Matcher(found.matcher));
        let mut served = if live.by_units() { Served::Units } else { by_region };
        let runner = &mut self.runners[i];
        runner.turn_to(page.shown, &page.url);
        let text = page.text()?;
        let mut source: &[MentionRow] = &[];
        let mut converting = 0.0;
        let watch = Stopwatch::start(live.clock());
        let result = match way {
            Way::Recycle(from) => {
                source = page.mentions.of(i, &from.url, from.lies_in.as_ref());
                let mentions: Option<Vec<Mention>> = source.iter().map(|row| rows::mention(live, row)).collect();
                let old_text = page.old_text()?;
                converting = watch.seconds();
                match mentions {
                    Some(mentions) => {
                        let old = Old { text: old_text, mentions: &mentions };
                        recycle(extractor, runner, Some(old), text, regions)
                    }
                    None => scratch(extractor, runner, text),
                }
            }
            Way::Resume { source: from, good } => {
                source = page.mentions.of(i, &from.url, from.lies_in.as_ref());
                let mentions: Option<Vec<Mention>> = source.iter().map(|row| rows::mention(live, row)).collect();
                converting = watch.seconds();
                match mentions.zip(page.good_texts.of(&page.url, good)) {
                    Some((mentions, old_text)) => {
                        let mut found = Vec::new();
                        if !live.by_units() {
                            // The regions that were matched are those of the old page.
                            let kind = self.job.plan.matcher.unwrap_or(MatcherKind::Anchor);
                            kind.regions(old_text, text, self.job.plan.min_region, &mut self.scratch, &mut found);
                            served = Served::Matcher(kind);
                        }
                        let old = Old { text: old_text, mentions: &mentions };
                        recycle(extractor, runner, Some(old), text, &found)
                    }
                    None => {
                        served = Served::None;
                        scratch(extractor, runner, text)
                    }
                }
            }
            Way::Edit { source: from, same_text } => {
                source = page.mentions.of(i, &from.url, from.lies_in.as_ref());
                let (old_terms, edit) = self.job.edits.of(i).context("no edit")?;
                let label = |row: &MentionRow| old_terms.label(row.label.as_deref()?);
                let mentions: Option<Vec<Mention>> =
                    source.iter().map(|row| rows::mention_with(live, row, label(row)?)).collect();
                let old_text = if *same_text { text } else { page.old_text()? };
                converting = watch.seconds();
                match mentions {
                    Some(mentions) => {
                        let regions = if *same_text { &[] } else { regions };
                        Ok(recycle_edited(edit, Old { text: old_text, mentions: &mentions }, text, regions))
                    }
                    None => scratch(extractor, runner, text),
                }
            }
            Way::Scratch | Way::Skip | Way::Borrow(_) | Way::Keep(_) | Way::TakeOver(_) | Way::Carry(_) => {
                served = Served::None;
                scratch(extractor, runner, text)
            }
        };
        let extracting = watch.seconds() - converting;
        let used = Runner::used(&mut self.runners[i]);
        Ok(Tried { result, source, served, converting, extracting, used })
    }

    /// A page's records, joined from the mentions of their parts.
    pub(super) fn join(
        &mut self,
        page: &Loaded<'_>,
        i: usize,
        record: &Record,
        parts: &[usize],
        done: &[Option<Done>],
    ) -> Result<Done> {
        let (job, url) = (self.job, &page.url);
        let live = &job.live.all[i];
        let served = self.regions.get(url).map_or(Served::None, |found| Served::Matcher(found.matcher));
        let watch = Stopwatch::start(Clock::Wall);
        let mut extraction = self.extraction(page, i, served);
        let costs = self.costs(page, i, served);
        let made_of: Vec<&Done> = parts.iter().filter_map(|&part| done[part].as_ref()).collect();
        if let Some(failed) = made_of.iter().find(|part| part.extraction.status != Status::Ok) {
            match failed.extraction.status {
                Status::Deferred => costs.deferred += 1,
                _ => costs.failed += 1,
            }
            extraction.status = failed.extraction.status;
            extraction.error = Some(format!("its part '{}' has no mentions", failed.extraction.extractor));
            return Ok(Done::new(extraction));
        }
        // Made of what several definitions found, it is nobody's alone.
        if parts.iter().zip(&made_of).any(|(&part, done)| done.extraction.fingerprint != job.live.all[part].fingerprint)
        {
            let mut mixed = DigestBuilder::new();
            mixed.field(&live.fingerprint.0);
            made_of.iter().for_each(|part| _ = mixed.field(&part.extraction.fingerprint.0));
            extraction.fingerprint = mixed.finish();
        }
        let mentions = |(&part, done): (&usize, &&Done)| -> Option<Vec<Mention>> {
            done.rows.iter().map(|row| rows::mention(&job.live.all[part], row)).collect()
        };
        let mentions: Option<Vec<Vec<Mention>>> = parts.iter().zip(&made_of).map(mentions).collect();
        let mentions = mentions.context("mentions do not fit their extractor")?;
        let lists: Vec<&[Mention]> = mentions.iter().map(Vec::as_slice).collect();
        let text = page.text()?;
        let joined = record.join(text, &lists);
        if joined.capped {
            live.tell(url, &format_args!("more than {} records; the rest is left out", record.max_records()));
        }
        let mut rows = Vec::with_capacity(joined.records.len());
        for record in &joined.records {
            let row_of = |used: &Used| &made_of[used.extractor as usize].rows[used.mention as usize];
            let copied = record.origin(|used| row_of(used).copied) == Origin::Copied;
            // A record is as new as the newest of its parts.
            let all_since = record.parts.iter().map(|used| &row_of(used).since);
            let since = all_since.max_by_key(|id| job.order.get(*id).copied()).unwrap_or(job.snapshot);
            rows.push(rows::row(live, &record.mention, url, text, copied, since.clone()));
        }
        extraction.mentions = rows.len() as i64;
        extraction.copied = rows.iter().filter(|row| row.copied).count() as i64;
        costs.copied += extraction.copied.unsigned_abs();
        costs.extracted += (extraction.mentions - extraction.copied).unsigned_abs();
        costs.extract_s += watch.seconds();
        Ok(Done { rows, ..Done::new(extraction) })
    }
}

/// The units of a page that were asked about, in page order.
struct Units<'r> {
    units: Vec<&'r (Span, Came)>,
    at: usize,
}

impl<'r> Units<'r> {
    fn new(units: &'r [(Span, Came)]) -> Self {
        let mut units: Vec<_> = units.iter().collect();
        units.sort_by_key(|(span, _)| *span);
        Self { units, at: 0 }
    }

    /// Since when the answer that a mention comes from is known, if that is longer than since tonight. Mentions are asked
    /// about in page order.
    fn known_since(&mut self, mention: &Mention) -> Option<&'r SnapshotId> {
        while self.units.get(self.at).is_some_and(|(span, _)| span.end <= mention.start) {
            self.at += 1;
        }
        match self.units.get(self.at) {
            Some((span, Came::Before(since))) if span.start <= mention.start => Some(since),
            _ => None,
        }
    }

    fn tonight(&self) -> Vec<(Span, Digest)> {
        let key = |(span, came): &&(Span, Came)| match came {
            Came::Tonight(key) => Some((*span, *key)),
            Came::Now | Came::Before(_) | Came::NotYet => None,
        };
        self.units.iter().filter_map(key).collect()
    }
}

/// Counts a page that was extracted. `rows` is the seconds that making rows of all its mentions took: for mentions that
/// were found it belongs to finding them, for copied ones to copying.
fn count(costs: &mut Costs, recycled: &Recycled, copied: u64, converting: f64, extracting: f64, rows: f64) {
    let all = recycled.found.len() as u64;
    #[expect(clippy::cast_precision_loss, reason = "a share of counts")]
    let copying = rows * (copied as f64 / all.max(1) as f64);
    costs.bytes_extracted += recycled.bytes_extracted;
    costs.lower_bound += recycled.lower_bound.unwrap_or(recycled.bytes_extracted);
    costs.copied += copied;
    costs.extracted += all - copied;
    costs.extract_s += extracting + (rows - copying);
    costs.copy_s += converting + copying;
}
