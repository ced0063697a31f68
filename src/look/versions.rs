//! A page and its old version.

use anyhow::{Context as _, Result, bail};

use crate::config::Pipeline;
use crate::deltas::segments::Comparison;
use crate::manifests::Extracted;
use crate::matching::{MatcherKind, Scratch};
use crate::model::{SnapshotId, Span};
use crate::report::versions::{Gone, LinksBetween, Version, Versions};
use crate::run::inventory::known_snapshots;
use crate::stages::extract::{extracted_at, extracted_of, in_words, mentions_of_rows};
use crate::stages::matching::DEFAULT_MIN_REGION;
use crate::store::Store;
use crate::store::texts::ShardReader;
use crate::tables::delta::PageDelta;
use crate::tables::ingest::Page;
use crate::tables::record::Table as _;

/// Which versions of a page to compare.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// As the tables have it.
    pub url: &'a str,
    /// Without one, the newest that has the page.
    pub snapshot: Option<&'a SnapshotId>,
    /// Without one, where the page was last seen before, perhaps at another URL, if that was not pruned.
    pub against: Option<&'a SnapshotId>,
    /// Whether the mentions of both versions are wanted.
    pub mentions: bool,
}

/// Compares two versions of a page.
pub(crate) fn compare(pipeline: &Pipeline, store: &Store, asked: Asked<'_>) -> Result<Versions> {
    let known = known_snapshots(store, asked.snapshot.into_iter().chain(asked.against))?;
    let look = Look { pipeline, store, mentions: asked.mentions };
    let (snapshot, page, gone) = match asked.snapshot {
        Some(id) => (id.clone(), look.page(id, asked.url)?, None),
        None => look.newest(&known, asked.url)?,
    };
    let (old_url, against) = match asked.against {
        Some(id) => (asked.url, Some(id.clone())),
        None => {
            let url = page.moved_from.as_deref().unwrap_or(asked.url);
            (url, page.old_snapshot.clone().filter(|id| known.contains(id)))
        }
    };
    let old = match against {
        Some(id) => {
            let page = look.page(&id, old_url)?;
            Some(look.version(id, page)?)
        }
        None => None,
    };
    let new = look.version(snapshot, page)?;
    let links = old.as_ref().map(|old| look.links(old, &new)).transpose()?.unwrap_or_default();
    let old_text = old.as_ref().map_or("", |old| &old.text);
    let mut regions = Vec::new();
    MatcherKind::Anchor.regions(old_text, &new.text, DEFAULT_MIN_REGION, &mut Scratch::new(), &mut regions);
    let comparison = Comparison::new(u32::try_from(old_text.len())?, u32::try_from(new.text.len())?, &regions);
    let comparison = comparison.by_words(old_text, &new.text);
    // A page that was not touched since is told as of the snapshot that did; its mentions are those of the newest.
    let now = asked.snapshot.or(known.last()).filter(|_| gone.is_none());
    let older = now.map(|now| look.older(now, asked.url)).transpose()?.unwrap_or_default();
    Ok(Versions { old, new, comparison, links, gone, older })
}

struct Look<'a> {
    pipeline: &'a Pipeline,
    store: &'a Store,
    mentions: bool,
}

impl Look<'_> {
    fn page(&self, snapshot: &SnapshotId, url: &str) -> Result<Page> {
        let page = self.store.pages_at(snapshot)?.of_url::<Page>(self.store, url)?.pop();
        let missing = || {
            let pipeline = self.pipeline.path.display();
            format!(
                "no page {url} in snapshot {snapshot}; `ratoon urls {pipeline} WORDS --snapshot {snapshot}` lists those there are"
            )
        };
        Ok(page.with_context(missing)?.row)
    }

    /// The newest snapshot that has the page, and what became of it after that.
    fn newest(&self, known: &[SnapshotId], url: &str) -> Result<(SnapshotId, Page, Option<Gone>)> {
        let mut after: Option<&SnapshotId> = None;
        for id in known.iter().rev() {
            if let Some(page) = self.store.pages_at(id)?.of_url::<Page>(self.store, url)?.pop() {
                let gone = after.map(|after| self.gone(after, url)).transpose()?;
                // Where it has not been touched since, it is told as of the snapshot that did.
                return Ok((page.snapshot, page.row, gone));
            }
            after = Some(id);
        }
        bail!(
            "no page {url} in any snapshot; `ratoon urls {} WORDS` lists those there are",
            self.pipeline.path.display()
        )
    }

    /// How a page went, as far as it is known.
    fn gone(&self, snapshot: &SnapshotId, url: &str) -> Result<Gone> {
        let partition = self.store.partition(PageDelta::NAME, snapshot)?;
        let rows: Vec<PageDelta> = partition.shard(self.store.shard_of(url))?;
        let row = rows.into_iter().find(|row| *row.url == *url);
        let (reason, moved_to) = row.map_or((None, None), |row| (row.reason, row.moved_to));
        Ok(Gone { snapshot: snapshot.clone(), reason, moved_to })
    }

    /// A page with its text, wherever that lies, and its mentions if they are wanted.
    fn version(&self, snapshot: SnapshotId, page: Page) -> Result<Version> {
        let mut reader = ShardReader::new(self.store, self.store.shard_of(&page.url));
        let text = reader.texts(&[(&page.url, &page.text_snapshot)])?.pop().unwrap_or_default();
        let mentions = if self.mentions { self.mentions(&snapshot, &page.url)? } else { Vec::new() };
        Ok(Version { snapshot, page, text, mentions })
    }

    /// What became of the links of a page.
    fn links(&self, old: &Version, new: &Version) -> Result<LinksBetween> {
        let of = |version: &Version| -> Result<Vec<(String, String)>> {
            let page = &version.page;
            let mut reader = ShardReader::new(self.store, self.store.shard_of(&page.url));
            let rows = reader.links(&[(&page.url, &page.content_snapshot)])?.pop().unwrap_or_default();
            Ok(rows.into_iter().map(|row| (row.target, row.label)).collect())
        };
        Ok(LinksBetween::new(&of(old)?, &of(new)?))
    }

    /// The extractors that have what an earlier definition of them found on a page, and what that was called.
    fn older(&self, snapshot: &SnapshotId, url: &str) -> Result<Vec<(String, Option<String>)>> {
        let mut older = Vec::new();
        let extracted = self.store.manifest::<Extracted>(snapshot)?.map(|manifest| manifest.summary);
        for (name, present) in extracted.map(|extracted| extracted.fingerprints).unwrap_or_default() {
            for row in extracted_of(self.store, &name, snapshot, self.store.shard_of(url), &[url])? {
                if row.fingerprint != present {
                    older.push((name.clone(), in_words(self.store, row.fingerprint)?));
                }
            }
        }
        Ok(older)
    }

    /// The mentions of all extractors on a page.
    fn mentions(&self, snapshot: &SnapshotId, url: &str) -> Result<Vec<(String, Span)>> {
        let mut mentions = Vec::new();
        for extractor in &self.pipeline.extractors {
            let name = &extractor.config.name;
            let shard = self.store.shard_of(url);
            let rows = extracted_at(self.store, name, snapshot, shard)?;
            let rows: Vec<_> = rows.into_iter().filter(|row| *row.url == *url).collect();
            for row in mentions_of_rows(self.store, name, shard, &rows)?.iter().filter(|row| row.start <= row.end) {
                mentions.push((name.clone(), Span::new(u32::try_from(row.start)?, u32::try_from(row.end)?)));
            }
        }
        Ok(mentions)
    }
}
