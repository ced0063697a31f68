//! One page: the mentions of each extractor, in the way that was decided on, and what is noted of them.

use std::sync::Arc;

use anyhow::{Context as _, Result};

use super::Work;
use crate::extract::Status;
use crate::manifests::Costs;
use crate::model::{Digest, Span};
use crate::plan::Served;
use crate::run::clock::{Clock, Stopwatch};
use crate::stages::extract::known::{UrlExtractions, UrlTonight};
use crate::stages::extract::live::Making;
use crate::stages::extract::output::AskedPage;
use crate::stages::extract::resume::GoodTexts;
use crate::stages::extract::shown::Beside;
use crate::stages::extract::sources::{CarriedPart, OldMentions};
use crate::stages::extract::ways::{Borrowed, Source, Way};
use crate::tables::extract::Extraction;
use crate::tables::ingest::PagePair;
use crate::tables::mentions::MentionRow;

/// A page with the texts that its ways need.
pub(super) struct Loaded<'a> {
    pub(super) page: &'a PagePair,
    pub(super) url: Arc<str>,
    pub(super) text: Option<&'a str>,
    pub(super) old_text: Option<&'a str>,
    /// What is known of its URL.
    pub(super) known: Option<&'a UrlExtractions>,
    pub(super) mentions: &'a OldMentions,
    pub(super) good_texts: &'a GoodTexts,
    pub(super) shown: &'a Beside,
}

impl Loaded<'_> {
    pub(super) fn text(&self) -> Result<&str> {
        self.text.context("a text was not loaded")
    }

    pub(super) fn old_text(&self) -> Result<&str> {
        self.old_text.context("an old text was not loaded")
    }
}

/// A page's mentions of one extractor.
pub(super) struct Done {
    pub(super) rows: Vec<MentionRow>,
    /// Mentions that are carried instead.
    pub(super) carried: Vec<CarriedPart>,
    pub(super) extraction: Extraction,
    /// They are only looked at: another snapshot has them.
    pub(super) borrowed: bool,
    /// Units whose answers were asked for in this snapshot, with the digest of the request.
    pub(super) units: Vec<(Span, Digest)>,
}

impl Done {
    /// Without mentions.
    pub(super) fn new(extraction: Extraction) -> Self {
        Self { rows: Vec::new(), carried: Vec::new(), extraction, borrowed: false, units: Vec::new() }
    }
}

impl Work<'_> {
    pub(super) fn page(&mut self, page: &Loaded<'_>, ways: &[Way]) -> Result<()> {
        if self.collects {
            for (i, way) in ways.iter().enumerate() {
                if let (Some(extractor), true) = (self.job.live.all[i].extractor(), way.needs_text()) {
                    self.attempt(page, i, extractor, way)?;
                }
            }
            return Ok(());
        }
        let mut done: Vec<Option<Done>> = ways.iter().map(|_| None).collect();
        // Records come after what they are made of.
        let all = &self.job.live.all;
        let (others, records): (Vec<usize>, Vec<usize>) = (0..ways.len()).partition(|&i| all[i].extractor().is_some());
        for i in others.into_iter().chain(records) {
            done[i] = match (&ways[i], &all[i].making) {
                (Way::Skip, _) => None,
                (Way::Borrow(borrowed), _) => Some(self.borrow(page, i, borrowed)),
                (Way::Keep(extraction), _) => Some(self.keep(page, i, extraction)),
                (Way::TakeOver(source), _) => Some(self.take_over(page, i, source)),
                (Way::Carry(source), _) => Some(self.carry(page, i, source)),
                (way, Making::Extracts(extractor)) => Some(self.extract(page, i, extractor, way)?),
                (_, Making::Joins { record, parts }) => Some(self.join(page, i, record, parts, &done)?),
            };
        }
        let before = self.output.extractions.len();
        let mut keys = Vec::with_capacity(ways.len());
        for (i, done) in done.into_iter().enumerate() {
            let Some(Done { mut rows, carried, mut extraction, borrowed: false, units }) = done else { continue };
            let whole = self.job.whole[i];
            rows.iter_mut().for_each(|row| row.whole = whole);
            let good = page.known.and_then(|known| known.good(self.job.live.all[i].key));
            let snapshot = self.job.snapshot;
            extraction.whole = whole;
            extraction.mentions_snapshot = (!rows.is_empty() || !carried.is_empty()).then(|| snapshot.clone());
            extraction.good_snapshot = match extraction.status {
                Status::Ok => Some(snapshot.clone()),
                _ => good.map(|good| good.snapshot.clone()),
            };
            self.changes.page(i, &extraction, &rows, page.known, page.mentions);
            let key = self.job.live.all[i].key;
            self.output.old_mentions[i] += page.known.map_or(0, |known| known.mentions(key));
            let is_anew = extraction.error.is_some() && !page.known.is_some_and(|known| known.has_failed(key));
            self.output.failed_anew[i] += u64::from(is_anew);
            self.output.older[i] += u64::from(extraction.fingerprint != self.job.live.all[i].fingerprint);
            self.output.older_before[i] += u64::from(page.known.is_some_and(|known| self.was_older(known, i)));
            if !units.is_empty() {
                let first = self.output.mentions[i].rows.len();
                let (extraction, rows) = (self.output.extractions.len(), first..first + rows.len());
                self.output.asked.push(AskedPage { extractor: i, extraction, rows, units });
            }
            keys.push(key);
            self.output.extractions.push(extraction);
            self.output.mentions[i].rows.extend(rows);
            for (from, rows) in carried {
                self.output.mentions[i].carry(&from, rows);
            }
        }
        let rows = &self.output.extractions[before..];
        if let Some(known) = self.output.known.as_mut().filter(|_| !rows.is_empty()) {
            let before = page.known.cloned().unwrap_or_default();
            known.push(UrlTonight::after(before, Arc::clone(&page.url), keys.into_iter().zip(rows), self.job.snapshot));
        }
        Ok(())
    }

    /// What the extractor costs on pages served in this way, with one more page.
    pub(super) fn costs(&mut self, page: &Loaded<'_>, i: usize, served: Served) -> &mut Costs {
        let costs = self.output.costs[i].entry(served).or_default();
        costs.pages += 1;
        costs.text_bytes += u64::try_from(page.page.text_bytes).unwrap_or(0);
        costs
    }

    /// What another snapshot has of a page that the extractor is not run on.
    fn borrow(&self, page: &Loaded<'_>, i: usize, borrowed: &Borrowed) -> Done {
        let mut extraction = self.extraction(page, i, Served::Equal);
        let rows = match borrowed {
            Borrowed::Mentions(source) => {
                extraction.fingerprint = source.fingerprint;
                page.mentions.of(i, &source.url, source.lies_in.as_ref()).to_vec()
            }
            Borrowed::Nothing => {
                extraction.status = Status::Failed;
                Vec::new()
            }
        };
        Done { rows, borrowed: true, ..Done::new(extraction) }
    }

    /// The rows of an earlier run, as they are.
    fn keep(&mut self, page: &Loaded<'_>, i: usize, extraction: &Extraction) -> Done {
        let watch = Stopwatch::start(Clock::Wall);
        let rows = page.mentions.of(i, &page.url, extraction.mentions_snapshot.as_ref()).to_vec();
        self.count_copied(page, i, rows.len(), watch);
        Done { rows, ..Done::new(extraction.clone()) }
    }

    /// The rows of the old page, under this page's URL.
    fn take_over(&mut self, page: &Loaded<'_>, i: usize, source: &Source) -> Done {
        let watch = Stopwatch::start(Clock::Wall);
        let mut rows = page.mentions.of(i, &source.url, source.lies_in.as_ref()).to_vec();
        for row in &mut rows {
            row.url = Arc::clone(&page.url);
            row.copied = true;
        }
        let extraction = self.taken_over(page, i, source, rows.len());
        self.count_copied(page, i, rows.len(), watch);
        Done { rows, ..Done::new(extraction) }
    }

    /// The same without a look at them.
    fn carry(&mut self, page: &Loaded<'_>, i: usize, source: &Source) -> Done {
        let watch = Stopwatch::start(Clock::Wall);
        let carried = page.mentions.carried(i, &source.url, source.lies_in.as_ref()).to_vec();
        let count = carried.iter().map(|(_, rows)| rows.len()).sum();
        let extraction = self.taken_over(page, i, source, count);
        self.count_copied(page, i, count, watch);
        Done { carried, ..Done::new(extraction) }
    }

    fn taken_over(&self, page: &Loaded<'_>, i: usize, source: &Source, mentions: usize) -> Extraction {
        let mut extraction = self.extraction(page, i, Served::Equal);
        (extraction.fingerprint, extraction.shown_digest) = (source.fingerprint, source.shown);
        extraction.mentions = mentions as i64;
        extraction.copied = extraction.mentions;
        extraction
    }

    fn count_copied(&mut self, page: &Loaded<'_>, i: usize, mentions: usize, watch: Stopwatch) {
        let costs = self.costs(page, i, Served::Equal);
        costs.copied += mentions as u64;
        costs.copy_s += watch.seconds();
    }

    pub(super) fn extraction(&self, page: &Loaded<'_>, i: usize, served: Served) -> Extraction {
        let live = &self.job.live.all[i];
        Extraction {
            url: Arc::clone(&page.url),
            extractor: Arc::clone(&live.name),
            status: Status::Ok,
            error: None,
            matcher: served,
            text_digest: page.page.text_digest,
            shown_digest: page.shown.digest(live.along, &page.url),
            fingerprint: live.fingerprint,
            bytes_extracted: 0,
            mentions: 0,
            copied: 0,
            units_deferred: 0,
            refused: 0,
            mentions_snapshot: None,
            good_snapshot: None,
            whole: false,
        }
    }
}
