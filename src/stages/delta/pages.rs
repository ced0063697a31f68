//! One shard of two snapshots: a merge of their pages by URL; what differs is looked at, the rest is not.

use std::borrow::Cow;
use std::sync::Arc;

use anyhow::Result;

use super::alerts::{NewText, Watcher};
use super::memory::{Memories, pages_of, texts};
use crate::deltas::links::{self, LinkChange};
use crate::deltas::segments::{Comparison, Kind};
use crate::matching::{MatcherKind, Scratch};
use crate::model::{Content, Digest, Link, SnapshotId, Span};
use crate::stages::matching::DEFAULT_MIN_REGION;
use crate::store::Store;
use crate::store::batches::batches;
use crate::store::texts::ShardReader;
use crate::tables::delta::{Alert, LinkDelta, PageDelta, RegionDelta};
use crate::tables::ingest::{Capture, CaptureOutcome, LinkRow, PageVersion};
use crate::tables::record::Table as _;
use crate::text::mask::Mask;

/// A text must be this long to count as moved to another URL: shorter ones are equal by chance.
pub(super) const MOVED_BYTES: i64 = 64;

/// A URL whose content differs in two snapshots.
pub(super) struct Change {
    sides: [Option<PageVersion>; 2],
}

impl Change {
    pub(super) fn side(&self, side: usize) -> Option<&PageVersion> {
        self.sides[side].as_ref()
    }

    fn before(&self) -> Option<&PageVersion> {
        self.side(0)
    }

    fn after(&self) -> Option<&PageVersion> {
        self.side(1)
    }

    pub(super) fn url(&self) -> &str {
        self.sides.iter().flatten().next().map_or("", |page| &page.url)
    }

    pub(super) fn text_differs(&self) -> bool {
        self.before().map(|page| page.text_digest) != self.after().map(|page| page.text_digest)
    }

    pub(super) fn text_bytes(&self) -> i64 {
        self.sides.iter().flatten().map(|page| page.text_bytes).sum()
    }
}

/// The URLs of a shard whose content differs, by URL. Without an old snapshot every page is new.
pub(super) fn changed(store: &Store, shard: u32, old: Option<&SnapshotId>, new: &SnapshotId) -> Result<Vec<Change>> {
    let load = |snapshot: &SnapshotId| -> Result<Vec<PageVersion>> { Ok(pages_of(store, snapshot)?.shard(shard)?) };
    let old = old.map_or_else(|| Ok(Vec::new()), load)?;
    let mut changes = Vec::new();
    let mut olds = old.into_iter().peekable();
    for page in load(new)? {
        while let Some(gone) = olds.next_if(|old| old.url < page.url) {
            changes.push(Change { sides: [Some(gone), None] });
        }
        match olds.next_if(|old| old.url == page.url) {
            Some(old) if old.content_digest == page.content_digest => {}
            old => changes.push(Change { sides: [old, Some(page)] }),
        }
    }
    changes.extend(olds.map(|gone| Change { sides: [Some(gone), None] }));
    Ok(changes)
}

/// How pages of two snapshots are told apart.
pub(super) enum Rules {
    /// The snapshots follow each other: ingest has compared them.
    Following,
    /// Masked digests of the same rules.
    Same,
    /// Rules changed in between: contents are masked anew, by these.
    Anew(Mask),
}

/// Two snapshots to be compared.
pub(super) struct Pairing<'a> {
    pub(super) store: &'a Store,
    pub(super) old: &'a SnapshotId,
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
    /// Of each page, the digest of its text: to find pages that moved.
    pub(super) texts: Vec<Digest>,
    pub(super) links: Vec<LinkDelta>,
    pub(super) regions: Vec<RegionDelta>,
    /// Pages that a link to was dropped.
    pub(super) lost: Vec<String>,
    pub(super) alerts: Vec<Alert>,
}

impl Pairing<'_> {
    /// Compares a shard. `memories` are those of the snapshot before `new` and become those after it, if `advance`;
    /// else they are those after it already.
    pub(super) fn shard(
        &self,
        shard: u32,
        memories: &mut Memories,
        advance: bool,
        scratch: &mut Scratch,
    ) -> Result<ShardDelta> {
        let changes = changed(self.store, shard, Some(self.old), self.new)?;
        let mut work = Work {
            pairing: self,
            reader: ShardReader::new(self.store, shard),
            reasons: self.reasons(shard, &changes)?.into_iter(),
            scratch,
            regions: Vec::new(),
            output: ShardDelta::default(),
        };
        for batch in batches(&changes, Change::text_bytes) {
            work.batch(batch, memories, advance)?;
        }
        Ok(work.output)
    }

    /// Why the deleted pages are gone, in their order.
    fn reasons(&self, shard: u32, changes: &[Change]) -> Result<Vec<&'static str>> {
        let deleted: Vec<&str> = changes.iter().filter(|c| c.after().is_none()).map(Change::url).collect();
        let mut reasons: Vec<Option<&'static str>> = vec![None; deleted.len()];
        for snapshot in &self.evidence {
            if reasons.iter().all(Option::is_some) {
                break;
            }
            let outcomes = self.store.partition(Capture::NAME, snapshot)?.shard::<CaptureOutcome>(shard)?;
            let mut found: Vec<Option<&'static str>> = vec![None; deleted.len()];
            for capture in outcomes {
                if let Ok(at) = deleted.binary_search(&capture.url.as_str()) {
                    // The last capture of a URL counts.
                    found[at] = Some(if matches!(capture.status, Some(404 | 410)) { "gone" } else { "error" });
                }
            }
            reasons.iter_mut().zip(found).for_each(|(reason, found)| *reason = reason.or(found));
        }
        Ok(reasons.into_iter().map(|reason| reason.unwrap_or("absent")).collect())
    }
}

struct Work<'a, 's> {
    pairing: &'a Pairing<'a>,
    reader: ShardReader<'a>,
    /// Of the deleted pages to come.
    reasons: std::vec::IntoIter<&'static str>,
    scratch: &'s mut Scratch,
    regions: Vec<crate::model::Region>,
    output: ShardDelta,
}

impl Work<'_, '_> {
    fn batch(&mut self, changes: &[Change], memories: &mut Memories, advance: bool) -> Result<()> {
        let texts = self.texts(changes)?;
        // Links of pages that look changed; a page that only differs where rules mask it has none to show.
        let links = self.links(changes)?;
        for ((change, texts), links) in changes.iter().zip(texts).zip(links) {
            if advance && change.text_differs() {
                memories.observe(change.url(), texts[0].as_deref(), texts[1].as_deref(), self.pairing.new);
            }
            if self.is_modified(change, &texts, &links) {
                self.page(change, &texts, &links, memories);
            }
        }
        Ok(())
    }

    /// Texts of the changes whose texts differ, and of all where contents are compared anew.
    fn texts(&mut self, changes: &[Change]) -> Result<Vec<[Option<String>; 2]>> {
        if matches!(self.pairing.rules, Rules::Anew(_)) || changes.iter().all(Change::text_differs) {
            return texts(&mut self.reader, changes);
        }
        let mut found = Vec::with_capacity(changes.len());
        // Runs of changes that need texts, and of changes that do not.
        for run in changes.chunk_by(|a, b| a.text_differs() == b.text_differs()) {
            match run[0].text_differs() {
                true => found.extend(texts(&mut self.reader, run)?),
                false => found.extend(run.iter().map(|_| [None, None])),
            }
        }
        Ok(found)
    }

    fn links(&mut self, changes: &[Change]) -> Result<Vec<[Vec<LinkRow>; 2]>> {
        let mut found: Vec<[Vec<LinkRow>; 2]> = changes.iter().map(|_| Default::default()).collect();
        for side in [0, 1] {
            let there: Vec<usize> = (0..changes.len())
                .filter(|&i| changes[i].side(side).is_some() && !self.looks_unchanged(&changes[i]))
                .collect();
            let wanted: Vec<_> = there
                .iter()
                .filter_map(|&i| changes[i].side(side).map(|page| (page.url.as_str(), &page.content_snapshot)))
                .collect();
            for (i, links) in there.iter().zip(self.reader.links(&wanted)?) {
                found[*i][side] = links;
            }
        }
        Ok(found)
    }

    /// Whether digests alone say that only masked text differs.
    fn looks_unchanged(&self, change: &Change) -> bool {
        let (Some(old), Some(new)) = (change.before(), change.after()) else { return false };
        match self.pairing.rules {
            Rules::Following => matches!(new.change.as_str(), "unchanged" | "carried"),
            Rules::Same => old.change_digest == new.change_digest,
            Rules::Anew(_) => false,
        }
    }

    fn is_modified(&self, change: &Change, texts: &[Option<String>; 2], links: &[Vec<LinkRow>; 2]) -> bool {
        let (Rules::Anew(mask), Some(old), Some(new)) = (&self.pairing.rules, change.before(), change.after()) else {
            return !self.looks_unchanged(change);
        };
        let digest = |page: &PageVersion, side: usize| {
            let link = |row: &LinkRow| Link { target: row.target.clone(), label: row.label.clone(), kind: row.kind };
            let content = Content {
                title: page.title.clone(),
                text: texts[side].clone().unwrap_or_default(),
                links: links[side].iter().map(link).collect(),
            };
            content.digest_with(|text| mask.apply(text))
        };
        digest(old, 0) != digest(new, 1)
    }

    fn page(&mut self, change: &Change, texts: &[Option<String>; 2], links: &[Vec<LinkRow>; 2], memories: &Memories) {
        let url: Arc<str> = change.url().into();
        let (old, new) = (change.before(), change.after());
        let links_changed = self.link_rows(&url, links);
        let text_changed = change.text_differs();
        let mut row = PageDelta {
            url: Arc::clone(&url),
            change: match (old, new) {
                (None, _) => "added",
                (_, None) => "deleted",
                _ => "modified",
            }
            .to_owned(),
            reason: None,
            old_digest: old.map(|page| page.content_digest),
            new_digest: new.map(|page| page.content_digest),
            old_bytes: old.map(|page| page.text_bytes),
            new_bytes: new.map(|page| page.text_bytes),
            text_changed,
            title_changed: old.and_then(|page| page.title.as_ref()) != new.and_then(|page| page.title.as_ref()),
            links_changed,
            new_text_bytes: new.map(|_| 0),
            moved_bytes: new.map(|_| 0),
            moved_to: None,
            moved_from: None,
            unlinked: false,
        };
        if new.is_none() {
            row.reason = self.reasons.next().map(str::to_owned);
        }
        let mut news = Vec::new();
        let text = texts[1].as_deref().unwrap_or_default();
        if text_changed {
            let comparison = self.compare(texts[0].as_deref().unwrap_or_default(), text);
            if new.is_some() {
                row.new_text_bytes = Some(as_i64(comparison.bytes(Kind::New)));
                row.moved_bytes = Some(as_i64(comparison.bytes(Kind::Moved)));
            }
            news = self.region_rows(&url, &comparison, text, memories);
        }
        if let Some(watcher) = self.pairing.watcher {
            let found = NewText { url: &url, text, spans: &news };
            self.output.alerts.extend(watcher.new_text(&found));
        }
        let text_digest = new.or(old).map(|page| page.text_digest);
        self.output.texts.push(text_digest.expect("a change has a side"));
        self.output.pages.push(row);
    }

    fn compare(&mut self, old: &str, new: &str) -> Comparison {
        self.regions.clear();
        if !old.is_empty() && !new.is_empty() {
            MatcherKind::Anchor.regions(old, new, DEFAULT_MIN_REGION, self.scratch, &mut self.regions);
        }
        let len = |text: &str| u32::try_from(text.len()).expect("texts have fewer than 2^32 bytes");
        Comparison::new(len(old), len(new), &self.regions)
    }

    /// Adds the rows of a page's parts; gives those that are news.
    fn region_rows(&mut self, url: &Arc<str>, comparison: &Comparison, text: &str, memories: &Memories) -> Vec<Span> {
        let row = |change: &str, span: Option<Span>, old: Option<Span>, first_seen| RegionDelta {
            url: Arc::clone(url),
            change: change.to_owned(),
            start: span.map(|span| span.start.into()),
            end: span.map(|span| span.end.into()),
            old_start: old.map(|old| old.start.into()),
            old_end: old.map(|old| old.end.into()),
            first_seen,
        };
        let added: Vec<Span> =
            comparison.segments.iter().filter(|s| s.kind == Kind::New).map(|segment| segment.span).collect();
        let now = self.pairing.new;
        let sightings = memories.sightings(url, text, &added);
        let sightings = sightings.unwrap_or_else(|| added.iter().map(|span| (*span, now.clone())).collect());
        let mut rows: Vec<RegionDelta> = Vec::new();
        for segment in comparison.segments.iter().filter(|segment| segment.kind == Kind::Moved) {
            let old = Span::new(segment.old_start, segment.old_start + segment.span.len());
            rows.push(row("moved", Some(segment.span), Some(old), None));
        }
        let news = sightings.iter().filter(|(_, first)| first == now).map(|(span, _)| *span).collect();
        rows.extend(sightings.into_iter().map(|(span, first)| row("added", Some(span), None, Some(first))));
        rows.sort_by_key(|row| row.start);
        rows.extend(comparison.deleted.iter().map(|span| row("deleted", None, Some(*span), None)));
        self.output.regions.extend(rows);
        news
    }

    /// Adds the rows of a page's links; says whether there are any.
    fn link_rows(&mut self, url: &Arc<str>, [old, new]: &[Vec<LinkRow>; 2]) -> bool {
        fn pairs(rows: &[LinkRow]) -> Vec<(&str, &str)> {
            rows.iter().map(|link| (link.target.as_str(), link.label.as_str())).collect()
        }
        let changes = links::changes(&pairs(old), &pairs(new));
        for change in &changes {
            let (before, after, name) = match *change {
                LinkChange::Added(i) => (None, Some(&new[i]), "added"),
                LinkChange::Deleted(i) => (Some(&old[i]), None, "deleted"),
                LinkChange::Modified(i, k) => (Some(&old[i]), Some(&new[k]), "modified"),
            };
            let Some(link) = after.or(before) else { continue };
            if after.is_none() {
                let page = page_of(&link.target);
                if *page != **url {
                    self.output.lost.push(page.into_owned());
                }
            }
            self.output.links.push(LinkDelta {
                url: Arc::clone(url),
                target: link.target.clone(),
                change: name.to_owned(),
                label: after.map(|link| link.label.clone()),
                old_label: before.map(|link| link.label.clone()),
                kind: link.kind,
            });
        }
        !changes.is_empty()
    }
}

/// The page that a link leads to: links are stored as `ingest` names pages, but with fragment and credentials.
pub(super) fn page_of(target: &str) -> Cow<'_, str> {
    let page = target.split_once('#').map_or(target, |(page, _)| page);
    let authority = page.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    match authority.contains('@').then(|| crate::text::url::normalise(page, false)) {
        Some(Ok(page)) => Cow::Owned(page),
        _ => Cow::Borrowed(page),
    }
}

fn as_i64(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
