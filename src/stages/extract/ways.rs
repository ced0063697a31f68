//! How each page gets its mentions from each extractor: decided before any text is read.

use std::sync::Arc;

use anyhow::Result;

use super::shard::Job;
use super::sources::{ExtractedPage, OldMentions, Sources};
use crate::extract::Status;
use crate::model::Digest;
use crate::tables::ingest::PagePair;

/// How a page gets its mentions from an extractor.
pub(super) enum Way {
    /// An earlier run has done this page: its rows stay as they are.
    Keep(Source),
    /// The text is that of the old page: its rows are taken over.
    TakeOver(Source),
    /// Mentions are copied from the old page where regions or units allow it.
    Recycle(Source),
    /// The same, with mentions that were found with another term list.
    Edit { source: Source, same_text: bool },
    /// The page is extracted as a whole, or its records are joined.
    Scratch,
}

impl Way {
    pub(super) fn needs_text(&self) -> bool {
        !matches!(self, Self::Keep(_) | Self::TakeOver(_))
    }

    pub(super) fn needs_old_text(&self) -> bool {
        matches!(self, Self::Recycle(_) | Self::Edit { same_text: false, .. })
    }
}

/// Where the mentions that a page starts from lie.
pub(super) struct Source {
    from: Arc<OldMentions>,
    /// Whether they are mentions of this very page by an earlier run; else they are the old page's.
    is_itself: bool,
}

impl Source {
    /// The page that has the mentions of extractor `i` for `page`.
    pub(super) fn of(&self, page: &PagePair, i: usize) -> &ExtractedPage {
        &self.from.pages[i][if self.is_itself { &page.url } else { old_url(page) }]
    }
}

/// The URL of a page's old page.
fn old_url(page: &PagePair) -> &str {
    page.moved_from.as_deref().unwrap_or(&page.url)
}

/// Decides for the pages of one shard.
pub(super) struct Ways<'a> {
    job: &'a Job<'a>,
    shard: u32,
    sources: Sources<'a>,
}

impl<'a> Ways<'a> {
    pub(super) fn new(job: &'a Job<'a>, shard: u32, sources: Sources<'a>) -> Self {
        Self { job, shard, sources }
    }

    /// The way of a page with extractor `i`. `has_regions`: whether old regions of the page are known.
    pub(super) fn of(&mut self, page: &PagePair, i: usize, has_regions: bool) -> Result<Way> {
        if let Some(way) = self.done_before(page, i)? {
            return Ok(way);
        }
        let live = &self.job.live.all[i];
        let Some(old_snapshot) = page.old_snapshot.as_ref().filter(|_| !self.job.plan.from_scratch) else {
            return Ok(Way::Scratch);
        };
        let shard = self.job.store.shard_of(old_url(page));
        let at_hand = || shard == self.shard && self.job.previous.as_ref().is_some_and(|(id, _)| id == old_snapshot);
        if self.job.plan.near.contains(&*live.name) && !at_hand() {
            return Ok(Way::Scratch);
        }
        let from = self.sources.of(old_snapshot, shard)?;
        let fingerprint = usable(&from, i, old_url(page), page.old_text_digest);
        let source = Source { from, is_itself: false };
        let same_text = page.old_text_digest == Some(page.text_digest);
        Ok(match fingerprint {
            Some(fingerprint) if fingerprint == live.fingerprint && same_text => Way::TakeOver(source),
            // A pruned old page has mentions but no text.
            _ if !same_text && (page.old_text_snapshot.is_none() || !self.pays(i, has_regions)) => Way::Scratch,
            Some(fingerprint) if fingerprint == live.fingerprint && live.extractor().is_some() => Way::Recycle(source),
            Some(fingerprint) if self.job.edits.is_from(i, fingerprint) => Way::Edit { source, same_text },
            _ => Way::Scratch,
        })
    }

    /// The way of a page that an earlier run over this snapshot has mentions of.
    fn done_before(&mut self, page: &PagePair, i: usize) -> Result<Option<Way>> {
        if !self.job.kept[i] && self.job.edits.of(i).is_none() {
            return Ok(None);
        }
        let from = self.sources.of(self.job.snapshot, self.shard)?;
        let fingerprint = usable(&from, i, &page.url, Some(page.text_digest));
        let source = Source { from, is_itself: true };
        Ok(match fingerprint {
            Some(fingerprint) if self.job.kept[i] && fingerprint == self.job.live.all[i].fingerprint => {
                Some(Way::Keep(source))
            }
            Some(fingerprint) if !self.job.plan.from_scratch && self.job.edits.is_from(i, fingerprint) => {
                Some(Way::Edit { source, same_text: true })
            }
            _ => None,
        })
    }

    /// Whether the plan has an extractor recycle a changed page. One that copies from regions must have some.
    fn pays(&self, i: usize, has_regions: bool) -> bool {
        let live = &self.job.live.all[i];
        self.job.plan.recycles(&live.name) && (live.by_units() || has_regions)
    }
}

/// The fingerprint of the extractor that found the mentions of a page, if they are those of this text.
fn usable(from: &OldMentions, i: usize, url: &str, text: Option<Digest>) -> Option<Digest> {
    let found = from.pages[i].get(url).map(|page| &page.extraction);
    found.filter(|e| e.status == Status::Ok && Some(e.text_digest) == text).map(|e| e.fingerprint)
}
