//! URLs whose content differs in two snapshots, found by one merge of their digests, and what is stored of them.

use anyhow::Result;

use crate::model::SnapshotId;
use crate::store::Store;
use crate::store::texts::ShardReader;
use crate::tables::ingest::{LinkRow, Page, PageVersion};
use crate::tables::record::Table as _;

/// Something of the old snapshot and the same of the new one.
#[derive(Clone, Debug, Default)]
pub(super) struct OldNew<T> {
    pub(super) old: T,
    pub(super) new: T,
}

/// A URL whose content differs in two snapshots. At least one of them has a page of it.
pub(super) struct ChangedPage(OldNew<Option<PageVersion>>);

impl ChangedPage {
    pub(super) fn old_page(&self) -> Option<&PageVersion> {
        self.0.old.as_ref()
    }

    pub(super) fn new_page(&self) -> Option<&PageVersion> {
        self.0.new.as_ref()
    }

    fn pages(&self) -> impl Iterator<Item = &PageVersion> {
        self.new_page().into_iter().chain(self.old_page())
    }

    /// Its page in the new snapshot, or else in the old one.
    pub(super) fn newest(&self) -> &PageVersion {
        self.pages().next().expect("one of the snapshots has a page")
    }

    pub(super) fn url(&self) -> &str {
        &self.newest().url
    }

    pub(super) fn text_differs(&self) -> bool {
        self.old_page().map(|page| page.text_digest) != self.new_page().map(|page| page.text_digest)
    }

    /// Length of both texts.
    pub(super) fn text_bytes(&self) -> i64 {
        self.pages().map(|page| page.text_bytes).sum()
    }
}

/// The URLs of a shard whose content differs, by URL. Without an old snapshot every page is new.
pub(super) fn changed_pages(
    store: &Store,
    shard: u32,
    old: Option<&SnapshotId>,
    new: &SnapshotId,
) -> Result<Vec<ChangedPage>> {
    let load = |snapshot: &SnapshotId| -> Result<Vec<PageVersion>> {
        Ok(store.partition(Page::NAME, snapshot)?.shard(shard)?)
    };
    let changed = |old, new| ChangedPage(OldNew { old, new });
    let old_pages = old.map_or_else(|| Ok(Vec::new()), load)?;
    let mut old_pages = old_pages.into_iter().peekable();
    let mut changes = Vec::new();
    for page in load(new)? {
        while let Some(gone) = old_pages.next_if(|old| old.url < page.url) {
            changes.push(changed(Some(gone), None));
        }
        match old_pages.next_if(|old| old.url == page.url) {
            Some(old) if old.content_digest == page.content_digest => {}
            old => changes.push(changed(old, Some(page))),
        }
    }
    changes.extend(old_pages.map(|gone| changed(Some(gone), None)));
    Ok(changes)
}

/// Old and new texts of changed pages; a page that is not there has none.
pub(super) fn texts(reader: &mut ShardReader<'_>, changes: &[ChangedPage]) -> Result<Vec<OldNew<Option<String>>>> {
    let mut read = |pages: Vec<Option<&PageVersion>>| -> Result<Vec<Option<String>>> {
        let wanted: Vec<_> = pages.iter().flatten().map(|page| (page.url.as_str(), &page.text_snapshot)).collect();
        let mut texts = reader.texts(&wanted)?.into_iter();
        Ok(pages.into_iter().map(|page| page.and_then(|_| texts.next())).collect())
    };
    let old = read(changes.iter().map(ChangedPage::old_page).collect())?;
    let new = read(changes.iter().map(ChangedPage::new_page).collect())?;
    Ok(old.into_iter().zip(new).map(|(old, new)| OldNew { old, new }).collect())
}

/// Old and new links of the changed pages that are `wanted`; the others get none.
pub(super) fn links(
    reader: &mut ShardReader<'_>,
    changes: &[ChangedPage],
    wanted: impl Fn(&ChangedPage) -> bool,
) -> Result<Vec<OldNew<Vec<LinkRow>>>> {
    let wanted: Vec<Option<&ChangedPage>> = changes.iter().map(|change| Some(change).filter(|c| wanted(c))).collect();
    let mut read = |pages: Vec<Option<&PageVersion>>| -> Result<Vec<Vec<LinkRow>>> {
        let places: Vec<_> = pages.iter().flatten().map(|page| (page.url.as_str(), &page.content_snapshot)).collect();
        let mut links = reader.links(&places)?.into_iter();
        Ok(pages.into_iter().map(|page| page.and_then(|_| links.next()).unwrap_or_default()).collect())
    };
    let old = read(wanted.iter().map(|change| change.and_then(ChangedPage::old_page)).collect())?;
    let new = read(wanted.iter().map(|change| change.and_then(ChangedPage::new_page)).collect())?;
    Ok(old.into_iter().zip(new).map(|(old, new)| OldNew { old, new }).collect())
}
