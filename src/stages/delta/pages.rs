//! One shard of two snapshots: rows for the pages that differ, their links and the parts of their texts.

use std::sync::Arc;

use anyhow::Result;

use super::alerts::{NewText, Watcher};
use super::changed::{self, ChangedPage, OldNew, PageLinks};
use super::known::LinkTargets;
use super::seen::SeenShard;
use crate::captures::Answer;
use crate::deltas::links::{self, LinkChange};
use crate::deltas::segments::{Comparison, SegmentKind};
use crate::matching::{MatcherKind, Scratch};
use crate::model::maps::HashSet;
use crate::model::{Change, Deletion, Digest, Fate, Region, RegionChange, SnapshotId, Span, Standing, content_digest};
use crate::stages::matching::DEFAULT_MIN_REGION;
use crate::store::Store;
use crate::store::batches::batches;
use crate::store::texts::ShardReader;
use crate::tables::delta::{Alert, LinkDelta, PageDelta, RegionDelta};
use crate::tables::ingest::{Capture, CaptureOutcome, LinkRow, PageVersion};
use crate::tables::record::Table as _;
use crate::text::mask::Mask;

/// Bytes of a text that a row shows at most.
const SHOWN: usize = 1_000;
/// Parts of fewer bytes are told with what is beside them.
const SHORTEST: u32 = 3;

/// What tells whether a page of two snapshots differs beyond what the `ignore` rules mask.
pub(super) enum Rules {
    /// The snapshots follow each other, so that `ingest` has compared their pages.
    Following,
    /// All digests of pages were made by the same rules and can be compared.
    Same,
    /// The rules changed in between: contents are masked anew, by these.
    Anew(Mask),
}

/// Two snapshots to be compared.
pub(super) struct Pairing<'a> {
    pub(super) store: &'a Store,
    pub(super) new: &'a SnapshotId,
    pub(super) rules: Rules,
    /// Snapshots whose captures say why a page is gone, newest first.
    pub(super) evidence: Vec<&'a SnapshotId>,
    pub(super) watcher: Option<&'a Watcher<'a>>,
}

/// What a shard came to.
#[derive(Default)]
pub(super) struct ShardDelta {
    pub(super) pages: Vec<PageDelta>,
    /// For each of `pages` the digest of its text, by which pages that moved are found.
    pub(super) texts: Vec<Digest>,
    pub(super) links: Vec<LinkDelta>,
    pub(super) regions: Vec<RegionDelta>,
    pub(super) targets: LinkTargets,
    pub(super) alerts: Vec<Alert>,
    /// URLs of pages whose elements are not those of before, changed otherwise or not.
    pub(super) restructured: Vec<String>,
}

impl Pairing<'_> {
    /// Compares a shard. With `advance`, `seen` is what was known before `new` and becomes what is known after it;
    /// without, it is what is known after it already.
    pub(super) fn shard(
        &self,
        shard: u32,
        changes: &[ChangedPage],
        seen: &mut SeenShard,
        advance: bool,
        scratch: &mut Scratch,
    ) -> Result<ShardDelta> {
        let mut work = ShardWork {
            pairing: self,
            reader: ShardReader::new(self.store, shard),
            deletions: self.deletions(shard, changes)?.into_iter(),
            scratch,
            regions: Vec::new(),
            output: ShardDelta::default(),
        };
        for batch in batches(changes, ChangedPage::text_bytes) {
            work.batch(batch, seen, advance)?;
        }
        Ok(work.output)
    }

    /// Why each of the deleted pages is gone, in the order of the pages.
    fn deletions(&self, shard: u32, changes: &[ChangedPage]) -> Result<Vec<Deletion>> {
        let deleted: Vec<&str> = changes.iter().filter(|c| c.new_page().is_none()).map(ChangedPage::url).collect();
        let mut reasons: Vec<Option<Deletion>> = vec![None; deleted.len()];
        for snapshot in &self.evidence {
            if reasons.iter().all(Option::is_some) {
                break;
            }
            let outcomes = self.store.partition(Capture::NAME, snapshot)?.shard::<CaptureOutcome>(shard)?;
            let mut found: Vec<Option<Deletion>> = vec![None; deleted.len()];
            for capture in outcomes {
                if let Ok(at) = deleted.binary_search(&capture.url.as_str()) {
                    // Captures of a URL come in order of time, and the last one counts.
                    let is_gone = Answer::of(capture.status) == Answer::Gone;
                    found[at] = Some(if is_gone { Deletion::Gone } else { Deletion::Error });
                }
            }
            reasons.iter_mut().zip(found).for_each(|(reason, found)| *reason = reason.or(found));
        }
        Ok(reasons.into_iter().map(|reason| reason.unwrap_or(Deletion::Absent)).collect())
    }

    /// Whether digests alone say that a changed page differs only where rules mask it.
    fn looks_unchanged(&self, change: &ChangedPage) -> bool {
        let (Some(old), Some(new)) = (change.old_page(), change.new_page()) else { return false };
        match self.rules {
            Rules::Following => matches!(new.change, Standing::Unchanged | Standing::Carried),
            Rules::Same => old.change_digest == new.change_digest,
            Rules::Anew(_) => false,
        }
    }

    /// Whether a changed page differs beyond what rules mask.
    fn is_modified(&self, change: &ChangedPage, stored: &Stored) -> bool {
        let (Rules::Anew(mask), Some(old), Some(new)) = (&self.rules, change.old_page(), change.new_page()) else {
            return !self.looks_unchanged(change);
        };
        let digest = |page: &PageVersion, text: &Option<String>, links: &[LinkRow]| {
            let links = links.iter().map(|link| (link.target.as_str(), link.label.as_str()));
            content_digest(page.title.as_deref(), text.as_deref().unwrap_or_default(), links, |text| mask.apply(text))
        };
        digest(old, &stored.texts.old, stored.links.before()) != digest(new, &stored.texts.new, stored.links.now())
    }
}

/// A shard that is being compared.
struct ShardWork<'a, 's> {
    pairing: &'a Pairing<'a>,
    reader: ShardReader<'a>,
    /// Reasons of the deleted pages that have no row yet.
    deletions: std::vec::IntoIter<Deletion>,
    scratch: &'s mut Scratch,
    /// Reused from page to page.
    regions: Vec<Region>,
    output: ShardDelta,
}

/// What is stored of a changed page: texts only where they differ or all contents are compared anew.
struct Stored {
    texts: OldNew<Option<String>>,
    links: PageLinks,
}

impl ShardWork<'_, '_> {
    fn batch(&mut self, changes: &[ChangedPage], seen: &mut SeenShard, advance: bool) -> Result<()> {
        let texts = self.texts(changes)?;
        let pairing = self.pairing;
        let links = changed::links_beside(&mut self.reader, changes, &texts)?;
        for ((change, texts), links) in changes.iter().zip(texts).zip(links) {
            if advance && change.text_differs() {
                seen.observe(change.url(), texts.old.as_deref(), texts.new.as_deref(), pairing.new);
            }
            if let PageLinks::Differ(links) = &links {
                self.output.targets.page(change.url(), links);
            }
            let stored = Stored { texts, links };
            if pairing.is_modified(change, &stored) {
                self.page(change, &stored, seen);
            }
        }
        Ok(())
    }

    /// Texts of the changes whose texts differ, and of all where contents are compared anew.
    fn texts(&mut self, changes: &[ChangedPage]) -> Result<Vec<OldNew<Option<String>>>> {
        let anew = matches!(self.pairing.rules, Rules::Anew(_));
        let needs = |change: &&ChangedPage| anew || change.text_differs();
        // They are read together: texts of pages that are near each other lie in the same pieces of a file.
        let wanted: Vec<&ChangedPage> = changes.iter().filter(needs).collect();
        let mut found = changed::texts(&mut self.reader, &wanted)?.into_iter();
        Ok(changes.iter().map(|change| if needs(&change) { found.next() } else { None }.unwrap_or_default()).collect())
    }

    /// Adds the rows of a changed page.
    fn page(&mut self, change: &ChangedPage, stored: &Stored, seen: &SeenShard) {
        let url: Arc<str> = change.url().into();
        let new_text = stored.texts.new.as_deref().unwrap_or_default();
        let links_changed = self.link_rows(&url, &stored.links);
        let mut row = page_row(&url, change, links_changed);
        if change.new_page().is_none() {
            row.reason = self.deletions.next();
        }
        let mut news = Vec::new();
        if row.text_changed {
            let old_text = stored.texts.old.as_deref().unwrap_or_default();
            let comparison = self.compare(old_text, new_text);
            if change.new_page().is_some() {
                row.new_text_bytes = Some(as_i64(comparison.bytes(SegmentKind::New)));
                row.moved_bytes = Some(as_i64(comparison.bytes(SegmentKind::Moved)));
            }
            self.region_rows(&url, &comparison, (old_text, new_text), seen);
            if self.pairing.watcher.is_some_and(|watcher| watcher.wants_news(&url)) {
                news = self.news(&url, &comparison, new_text, seen);
            }
        }
        if let Some(watcher) = self.pairing.watcher {
            let before = stored.texts.old.as_deref().unwrap_or_default();
            let found = NewText { url: &url, text: new_text, before, spans: &news };
            self.output.alerts.extend(watcher.new_text(&found));
        }
        self.output.texts.push(change.newest().text_digest);
        self.output.pages.push(row);
    }

    fn compare(&mut self, old: &str, new: &str) -> Comparison {
        self.regions.clear();
        if !old.is_empty() && !new.is_empty() {
            MatcherKind::Anchor.regions(old, new, DEFAULT_MIN_REGION, self.scratch, &mut self.regions);
        }
        let len = |text: &str| u32::try_from(text.len()).expect("texts have fewer than 2^32 bytes");
        Comparison::new(len(old), len(new), &self.regions).without_short_moves(DEFAULT_MIN_REGION)
    }

    /// Adds the rows of a page's parts, told in words.
    fn region_rows(&mut self, url: &Arc<str>, comparison: &Comparison, (old, new): (&str, &str), seen: &SeenShard) {
        let told = comparison.by_words(old, new).without_short_changes(old, new);
        let row = |change: RegionChange, span: Option<Span>, old_span: Option<Span>, first_seen| RegionDelta {
            url: Arc::clone(url),
            change,
            start: span.map(|span| span.start.into()),
            end: span.map(|span| span.end.into()),
            old_start: old_span.map(|span| span.start.into()),
            old_end: old_span.map(|span| span.end.into()),
            text: span.map(|span| shown(&new[span.range()])),
            old_text: old_span.map(|span| shown(&old[span.range()])),
            first_seen,
        };
        let mut rows: Vec<RegionDelta> = Vec::new();
        for segment in told.segments.iter().filter(|segment| segment.kind == SegmentKind::Moved) {
            let old = Span::new(segment.old_start, segment.old_start + segment.span.len());
            rows.push(row(RegionChange::Moved, Some(segment.span), Some(old), None));
        }
        let sightings = self.sightings(url, &told, new, seen);
        rows.extend(sightings.into_iter().map(|(span, first)| row(RegionChange::Added, Some(span), None, Some(first))));
        rows.sort_by_key(|row| row.start);
        rows.extend(told.deleted.iter().map(|span| row(RegionChange::Deleted, None, Some(*span), None)));
        self.output.regions.extend(rows);
    }

    /// When the new parts of a page were first seen, cut where the answer changes but never to one or two bytes: what is
    /// so short goes with what is beside it, and is news if a part of it is.
    fn sightings(
        &self,
        url: &Arc<str>,
        comparison: &Comparison,
        text: &str,
        seen: &SeenShard,
    ) -> Vec<(Span, SnapshotId)> {
        let new = comparison.segments.iter().filter(|segment| segment.kind == SegmentKind::New);
        let added: Vec<Span> = new.map(|segment| segment.span).collect();
        let now = self.pairing.new;
        let found = seen.sightings(url, text, &added);
        let found = found.unwrap_or_else(|| added.iter().map(|span| (*span, now.clone())).collect());
        let mut whole: Vec<(Span, SnapshotId)> = Vec::with_capacity(found.len());
        let starts: HashSet<u32> = added.iter().map(|span| span.start).collect();
        for (span, first) in found {
            match whole.last_mut() {
                Some((last, since))
                    if !starts.contains(&span.start) && (last.len() < SHORTEST || span.len() < SHORTEST) =>
                {
                    last.end = span.end;
                    if first == *now {
                        *since = first;
                    }
                }
                _ => whole.push((span, first)),
            }
        }
        whole
    }

    /// The spans that are news, to the byte.
    fn news(&self, url: &Arc<str>, comparison: &Comparison, text: &str, seen: &SeenShard) -> Vec<Span> {
        let new = comparison.segments.iter().filter(|segment| segment.kind == SegmentKind::New);
        let added: Vec<Span> = new.map(|segment| segment.span).collect();
        match seen.sightings(url, text, &added) {
            Some(found) => {
                found.into_iter().filter(|(_, first)| first == self.pairing.new).map(|(span, _)| span).collect()
            }
            None => added,
        }
    }

    /// Adds the rows of a page's links; says whether there are any.
    fn link_rows(&mut self, url: &Arc<str>, links: &PageLinks) -> bool {
        let PageLinks::Differ(OldNew { old, new }) = links else { return false };
        fn pairs(rows: &[LinkRow]) -> Vec<(&str, &str)> {
            rows.iter().map(|link| (link.target.as_str(), link.label.as_str())).collect()
        }
        let changes = links::changes(&pairs(old), &pairs(new));
        for change in &changes {
            let (before, after, how) = match *change {
                LinkChange::Added(i) => (None, Some(&new[i]), Change::Added),
                LinkChange::Deleted(i) => (Some(&old[i]), None, Change::Deleted),
                LinkChange::Modified(i, k) => (Some(&old[i]), Some(&new[k]), Change::Modified),
            };
            let Some(link) = after.or(before) else { continue };
            self.output.links.push(LinkDelta {
                url: Arc::clone(url),
                target: link.target.clone(),
                change: how,
                label: after.map(|link| link.label.clone()),
                old_label: before.map(|link| link.label.clone()),
                kind: link.kind,
            });
        }
        !changes.is_empty()
    }
}

/// The row of a changed page, as far as it follows from what is known of the two pages without their texts.
fn page_row(url: &Arc<str>, change: &ChangedPage, links_changed: bool) -> PageDelta {
    let (old, new) = (change.old_page(), change.new_page());
    let how = match (old, new) {
        (None, _) => Change::Added,
        (_, None) => Change::Deleted,
        _ => Change::Modified,
    };
    PageDelta {
        url: Arc::clone(url),
        change: Fate::Changed(how),
        reason: None,
        old_digest: old.map(|page| page.content_digest),
        new_digest: new.map(|page| page.content_digest),
        old_bytes: old.map(|page| page.text_bytes),
        new_bytes: new.map(|page| page.text_bytes),
        text_changed: change.text_differs(),
        title_changed: old.and_then(|page| page.title.as_ref()) != new.and_then(|page| page.title.as_ref()),
        links_changed,
        structure_changed: change.structure_differs(),
        new_text_bytes: new.map(|_| 0),
        moved_bytes: new.map(|_| 0),
        moved_to: None,
        moved_from: None,
        unlinked: false,
    }
}

/// The start of a text, cut between characters.
fn shown(text: &str) -> String {
    text[..text.floor_char_boundary(SHOWN)].to_owned()
}

fn as_i64(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
