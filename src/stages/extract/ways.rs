//! How each page gets its mentions from each extractor: decided before any text is read.

use anyhow::Result;

use super::job::Job;
use super::known::{Good, UrlExtractions};
use super::shown::Beside;
use super::sources::{Shape, Sources, Wanted};
use crate::extract::{Adopt, Along, Status};
use crate::model::{Digest, SnapshotId, Standing};
use crate::tables::extract::Extraction;
use crate::tables::ingest::PagePair;

/// How a page gets its mentions from an extractor.
pub(super) enum Way {
    /// The snapshot did not touch the page, and the extractor is not run on all pages.
    Skip,
    /// The same, but a record that is made of its mentions is: they are looked at, not written.
    Borrow(Borrowed),
    /// An earlier run over this snapshot has done this page: its rows stay as they are.
    Keep(Extraction),
    /// The text is that of the old page: its rows are taken over.
    TakeOver(Source),
    /// The same, of the same URL, and nobody looks at the rows: they are carried as they lie.
    Carry(Source),
    /// Mentions are copied from the old page where regions or units allow it.
    Recycle(Source),
    /// The old page was not extracted: mentions are copied from the last page that was, whose text is another.
    Resume { source: Source, good: GoodText },
    /// The same as [`Way::Recycle`], with mentions that were found with another term list.
    Edit { source: Source, same_text: bool },
    /// The page is extracted as a whole, or its records are joined.
    Scratch,
}

/// What an extractor made of a page that it is not run on.
pub(super) enum Borrowed {
    Mentions(Source),
    /// Its last extraction failed.
    Nothing,
}

/// The text of the last page of a URL that was extracted well.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct GoodText {
    /// The snapshot that it was the text of.
    pub(super) snapshot: SnapshotId,
    pub(super) digest: Digest,
}

/// Where the mentions that a page starts from lie.
pub(super) struct Source {
    pub(super) url: String,
    pub(super) mentions: i64,
    /// `None` if there are none.
    pub(super) lies_in: Option<SnapshotId>,
    /// Of the definition that found them, and of what it was shown along with the text.
    pub(super) fingerprint: Digest,
    pub(super) shown: Option<Digest>,
}

impl Way {
    pub(super) fn needs_text(&self) -> bool {
        !matches!(self, Self::Skip | Self::Borrow(_) | Self::Keep(_) | Self::TakeOver(_) | Self::Carry(_))
    }

    pub(super) fn needs_old_text(&self) -> bool {
        matches!(self, Self::Recycle(_) | Self::Edit { same_text: false, .. })
    }

    /// Whose mentions the page has after it; `present`: the definition of now.
    pub(super) fn fingerprint(&self, present: Digest) -> Digest {
        match self {
            Self::Keep(row) => row.fingerprint,
            Self::TakeOver(source) | Self::Carry(source) | Self::Borrow(Borrowed::Mentions(source)) => {
                source.fingerprint
            }
            _ => present,
        }
    }

    /// The mentions that it starts from.
    pub(super) fn wanted(&self, extractor: usize) -> Option<Wanted<'_>> {
        let (url, snapshot, mentions) = match self {
            Self::Skip | Self::Scratch | Self::Borrow(Borrowed::Nothing) => return None,
            Self::Keep(row) => (&*row.url, row.mentions_snapshot.as_ref()?, row.mentions),
            Self::TakeOver(source)
            | Self::Carry(source)
            | Self::Recycle(source)
            | Self::Resume { source, .. }
            | Self::Edit { source, .. }
            | Self::Borrow(Borrowed::Mentions(source)) => {
                (source.url.as_str(), source.lies_in.as_ref()?, source.mentions)
            }
        };
        let shape = if matches!(self, Self::Carry(_)) { Shape::Carried } else { Shape::Rows };
        Some(Wanted { extractor, url, snapshot, mentions: Some(mentions), shape })
    }

    /// The same way for a page whose mentions by this extractor nobody looks at, as far as they can be carried.
    pub(super) fn unseen(self, page: &PagePair) -> Self {
        match self {
            Self::TakeOver(source) if source.url == page.url => Self::Carry(source),
            other => other,
        }
    }
}

impl Source {
    fn of(good: &Good, url: &str) -> Self {
        Self {
            url: url.to_owned(),
            mentions: good.mentions,
            lies_in: good.mentions_snapshot.clone(),
            fingerprint: good.fingerprint,
            shown: good.shown_digest,
        }
    }
}

/// The URL of a page's old page.
pub(super) fn old_url(page: &PagePair) -> &str {
    page.moved_from.as_deref().unwrap_or(&page.url)
}

/// What is known of a page that a way is sought for.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'c> {
    pub(super) page: &'c PagePair,
    /// The snapshot touched it.
    pub(super) touched: bool,
    pub(super) has_regions: bool,
    /// What is known of its old page's URL.
    pub(super) old: Option<&'c UrlExtractions>,
    pub(super) shown: &'c Beside,
}

/// Decides for the pages of one shard.
pub(super) struct Ways<'a> {
    job: &'a Job<'a>,
}

impl<'a> Ways<'a> {
    pub(super) fn new(job: &'a Job<'a>) -> Self {
        Self { job }
    }

    /// The way of a page with extractor `i`. `done`: what an earlier run over this snapshot made of it.
    pub(super) fn of(
        &self,
        sources: &Sources<'_>,
        candidate: Candidate<'_>,
        i: usize,
        done: Option<&Extraction>,
    ) -> Result<Way> {
        // What failed is tried again, whether the page was touched or not.
        let is_asked = candidate.touched || self.job.whole[i] || self.has_failed(candidate, i);
        if !is_asked {
            return Ok(self.borrowed(candidate, i));
        }
        let kept = |done: &&Extraction| {
            let present = || {
                self.job.kept[i]
                    && done.fingerprint == self.job.live.all[i].fingerprint
                    && done.shown_digest == self.shown(candidate, i)
            };
            (done.status, done.text_digest) == (Status::Ok, candidate.page.text_digest)
                && (present() || self.is_left(candidate, i, done.fingerprint, done.shown_digest))
        };
        if let Some(done) = done.filter(kept) {
            return Ok(Way::Keep(done.clone()));
        }
        match self.start_from_old(sources, candidate, i)? {
            // What the old page has by the same definition tells since when it stands; an earlier run does not.
            way @ Way::TakeOver(_) => Ok(way),
            way => Ok(done.and_then(|done| self.edited(candidate.page, i, done)).unwrap_or(way)),
        }
    }

    /// The digest of what an extractor is shown along with the text of a page.
    fn shown(&self, candidate: Candidate<'_>, i: usize) -> Option<Digest> {
        candidate.shown.digest(self.job.live.all[i].along, &candidate.page.url)
    }

    /// Whether a page whose text is the same keeps what another definition found: the present one is for new text only.
    /// That definition may have been shown something else along with the text, which must be the same as well.
    fn is_left(&self, candidate: Candidate<'_>, i: usize, found_by: Digest, shown: Option<Digest>) -> bool {
        let live = &self.job.live.all[i];
        let possible = || {
            let alongs = [(true, false), (false, true), (true, true)].map(|(title, url)| Along { title, url });
            alongs.map(|along| candidate.shown.digest(along, &candidate.page.url))
        };
        let is_shown_the_same = || shown.is_none() || live.along == Along::default() || possible().contains(&shown);
        live.adopt == Adopt::NewText && found_by != live.fingerprint && is_shown_the_same()
    }

    /// The way of a page that an extractor is not run on.
    fn borrowed(&self, candidate: Candidate<'_>, i: usize) -> Way {
        let all = &self.job.live.all;
        let runs = |record| self.job.whole[record] || self.has_failed(candidate, record);
        let wanted = (0..all.len()).any(|record| all[record].parts().contains(&i) && runs(record));
        if !wanted {
            return Way::Skip;
        }
        let good = candidate.old.and_then(|old| old.good(all[i].key)).filter(|good| good.current);
        Way::Borrow(good.map_or(Borrowed::Nothing, |good| Borrowed::Mentions(Source::of(good, &candidate.page.url))))
    }

    fn has_failed(&self, candidate: Candidate<'_>, i: usize) -> bool {
        candidate.old.is_some_and(|old| old.has_failed(self.job.live.all[i].key))
    }

    /// The way that starts from the old page.
    fn start_from_old(&self, sources: &Sources<'_>, candidate: Candidate<'_>, i: usize) -> Result<Way> {
        let Candidate { page, has_regions, old, .. } = candidate;
        let live = &self.job.live.all[i];
        let is_near = page.moved_from.is_none() && !page.returned;
        let known = old.and_then(|old| old.good(live.key));
        // No plan changes what is found, nor by whom.
        if let Some(good) = known.filter(|good| good.text_digest == page.text_digest && self.job.before[i].is_some())
            && self.is_left(candidate, i, good.fingerprint, good.shown_digest)
            && sources.vouches(i, good)?
        {
            return Ok(Way::TakeOver(Source::of(good, old_url(page))));
        }
        // Without the definition of the snapshot before nothing can be gone on from. A page that the crawl did not bring
        // is not extracted again by any plan, so that it does not matter whether it has a row.
        let from_scratch = self.job.plan.from_scratch && page.change != Standing::Carried;
        let from_nothing = from_scratch || self.job.before[i].is_none();
        if from_nothing || (self.job.plan.near.contains(&*live.name) && !is_near) {
            return Ok(Way::Scratch);
        }
        let good = match known {
            Some(good) if sources.vouches(i, good)? => good,
            _ => return Ok(Way::Scratch),
        };
        let source = Source::of(good, old_url(page));
        let same_text = good.text_digest == page.text_digest;
        let same_extractor = good.fingerprint == live.fingerprint;
        if good.shown_digest != self.shown(candidate, i) {
            // Every unit was shown with something else.
            return Ok(Way::Scratch);
        }
        // An outage is no news: what came before it is gone on from.
        let of_old_page = Some(good.text_digest) == page.old_text_digest;
        Ok(match () {
            () if same_extractor && same_text => Way::TakeOver(source),
            () if !of_old_page => {
                let copies = live.extractor().is_some() && self.job.plan.recycles(&live.name);
                let good = GoodText { snapshot: good.snapshot.clone(), digest: good.text_digest };
                match same_extractor && copies && page.moved_from.is_none() {
                    true => Way::Resume { source, good },
                    false => Way::Scratch,
                }
            }
            // A pruned old page has mentions but no text.
            () if !same_text && (page.old_text_snapshot.is_none() || !self.pays(i, has_regions)) => Way::Scratch,
            () if same_extractor && live.extractor().is_some() => Way::Recycle(source),
            () if self.edits_from(i, good.fingerprint) => Way::Edit { source, same_text },
            () => Way::Scratch,
        })
    }

    /// Whether mentions by another term list are brought up to date. Where it is for new text only, that is extracted
    /// wholly.
    fn edits_from(&self, i: usize, fingerprint: Digest) -> bool {
        self.job.live.all[i].adopt == Adopt::Now && self.job.edits.is_from(i, fingerprint)
    }

    /// The way of a page that an earlier run over this snapshot has mentions of, found with another term list.
    fn edited(&self, page: &PagePair, i: usize, done: &Extraction) -> Option<Way> {
        let usable = (done.status, done.text_digest) == (Status::Ok, page.text_digest);
        let edited = !self.job.plan.from_scratch && self.edits_from(i, done.fingerprint);
        (usable && edited).then(|| Way::Edit {
            source: Source {
                url: page.url.clone(),
                mentions: done.mentions,
                lies_in: done.mentions_snapshot.clone(),
                fingerprint: done.fingerprint,
                shown: done.shown_digest,
            },
            same_text: true,
        })
    }

    /// Whether the plan has an extractor recycle a changed page. One that copies from regions must have some.
    fn pays(&self, i: usize, has_regions: bool) -> bool {
        let live = &self.job.live.all[i];
        self.job.plan.recycles(&live.name) && (live.by_units() || has_regions)
    }
}
