//! URLs whose content differs in two snapshots, found by one merge of their digests, and what is stored of them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Result;

use crate::model::maps::HashMap;
use crate::model::{Digest, SnapshotId, content_digest};
use crate::store::Store;
use crate::store::parquet::Partition;
use crate::store::state::Layers;
use crate::store::texts::{ShardReader, rows_of};
use crate::tables::ingest::{GonePage, LinkRow, Page, PageStructure, PageVersion, PageVersionPair};
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

    /// Whether its elements are known to differ.
    pub(super) fn structure_differs(&self) -> bool {
        let structure = |page: Option<&PageVersion>| page.and_then(|page| page.structure_digest);
        structure(self.old_page()).zip(structure(self.new_page())).is_some_and(|(old, new)| old != new)
    }

    /// Length of both texts.
    pub(super) fn text_bytes(&self) -> i64 {
        self.pages().map(|page| page.text_bytes).sum()
    }
}

/// The URLs of a shard whose content differs at two snapshots, by URL, and those whose elements do.
pub(super) fn between(
    store: &Store,
    shard: u32,
    old: &SnapshotId,
    new: &SnapshotId,
) -> Result<(Vec<ChangedPage>, Vec<String>)> {
    let (old, new) = (store.pages_at(old)?, store.pages_at(new)?);
    let (old, new): (Vec<PageVersion>, Vec<PageVersion>) = (old.shard(store, shard)?, new.shard(store, shard)?);
    let structures: HashMap<&str, Option<Digest>> =
        old.iter().map(|page| (page.url.as_str(), page.structure_digest)).collect();
    let differs = |page: &&PageVersion| {
        let before = structures.get(page.url.as_str()).copied().flatten();
        before.zip(page.structure_digest).is_some_and(|(old, new)| old != new)
    };
    let restructured = new.iter().filter(differs).map(|page| page.url.clone()).collect();
    Ok((merge(old, new), restructured))
}

/// The URLs of a shard whose elements are not those of their old pages, as `ingest` has compared them.
pub(super) fn restructured_tonight(store: &Store, shard: u32, now: &SnapshotId) -> Result<Vec<String>> {
    let pages = store.partition(Page::NAME, now)?.shard::<PageStructure>(shard)?.into_iter();
    Ok(pages.filter(|page| page.structure_changed == Some(true)).map(|page| page.url).collect())
}

/// The URLs of a shard whose content differs between a snapshot and the one before it, by URL. Of a snapshot that is not
/// whole only the pages that it touched are looked at.
pub(super) fn tonight(
    store: &Store,
    shard: u32,
    before: &SnapshotId,
    now: &SnapshotId,
    whole: bool,
) -> Result<Vec<ChangedPage>> {
    let pages = store.partition(Page::NAME, now)?;
    if whole {
        return whole_night(store, shard, &store.pages_at(before)?, &pages);
    }
    // Content that did not change lies in an earlier snapshot.
    let touched = pages.shard::<PageVersionPair>(shard)?.into_iter();
    let new: Vec<PageVersionPair> = touched.filter(|page| page.version.content_snapshot == *now).collect();
    let gone: Vec<GonePage> = pages.read(&pages.deleted(shard))?;
    let came = |page: &PageVersionPair| page.returned || page.moved_from.is_some();
    let known = new.iter().filter(|page| !came(page)).map(|page| (&page.version.url, &page.old_snapshot));
    let known = known.chain(gone.iter().map(|page| (&page.url, &page.old_snapshot)));
    let mut wanted: BTreeMap<&SnapshotId, Vec<&str>> = BTreeMap::new();
    for (url, snapshot) in known {
        if let Some(snapshot) = snapshot {
            wanted.entry(snapshot).or_default().push(url);
        }
    }
    let mut old: Vec<PageVersion> = Vec::new();
    for (snapshot, urls) in wanted {
        old.extend(rows_of(store, shard, Page::NAME, snapshot, &urls)?.into_iter().flatten());
    }
    old.sort_by(|a, b| a.url.cmp(&b.url));
    Ok(merge(old, new.into_iter().map(|page| page.version).collect()))
}

/// The same of a snapshot that has all pages. Their digests are compared where they lie: of most pages no more is read.
fn whole_night(store: &Store, shard: u32, before: &Layers, pages: &Partition) -> Result<Vec<ChangedPage>> {
    let [before] = before.snapshots() else {
        return Ok(merge(before.shard(store, shard)?, pages.shard(shard)?));
    };
    let old = store.partition(Page::NAME, before)?;
    let (old_part, new_part) = (old.part(shard), pages.part(shard));
    let contents = |pages: &Partition, part| pages.text_cells(part, ["url", "content_digest"]);
    let (old_cells, new_cells) = (contents(&old, &old_part)?, contents(pages, &new_part)?);
    let (old_rows, new_rows) = differing(&old_cells.rows()?, &new_cells.rows()?);
    Ok(merge(old.rows_at(&old_part, &old_rows)?, pages.rows_at(&new_part, &new_rows)?))
}

/// The rows of old and new pages, given as URL and digest and ordered by URL, that the other side does not have or has with another content.
fn differing(old: &[[&str; 2]], new: &[[&str; 2]]) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    fn add(ranges: &mut Vec<Range<usize>>, row: usize) {
        match ranges.last_mut().filter(|last| last.end == row) {
            Some(last) => last.end = row + 1,
            None => ranges.push(row..row + 1),
        }
    }
    let (mut old_rows, mut new_rows) = (Vec::new(), Vec::new());
    let (mut i, mut k) = (0, 0);
    while i < old.len() || k < new.len() {
        let order = match (old.get(i), new.get(k)) {
            (Some(old), Some(new)) => old[0].cmp(new[0]),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        if order.is_eq() && old[i][1] == new[k][1] {
            (i, k) = (i + 1, k + 1);
            continue;
        }
        if order.is_le() {
            add(&mut old_rows, i);
            i += 1;
        }
        if order.is_ge() {
            add(&mut new_rows, k);
            k += 1;
        }
    }
    (old_rows, new_rows)
}

/// The URLs whose content differs, from pages sorted by URL.
fn merge(old: Vec<PageVersion>, new: Vec<PageVersion>) -> Vec<ChangedPage> {
    let changed = |old, new| ChangedPage(OldNew { old, new });
    let mut old = old.into_iter().peekable();
    let mut changes = Vec::new();
    for page in new {
        while let Some(gone) = old.next_if(|old| old.url < page.url) {
            changes.push(changed(Some(gone), None));
        }
        match old.next_if(|old| old.url == page.url) {
            Some(old) if old.content_digest == page.content_digest => {}
            old => changes.push(changed(old, Some(page))),
        }
    }
    changes.extend(old.map(|gone| changed(Some(gone), None)));
    changes
}

/// Old and new texts of changed pages; a page that is not there has none.
pub(super) fn texts(reader: &mut ShardReader<'_>, changes: &[&ChangedPage]) -> Result<Vec<OldNew<Option<String>>>> {
    fn wanted<'a>(
        changes: &[&'a ChangedPage],
        of: impl Fn(&'a ChangedPage) -> Option<&'a PageVersion>,
    ) -> Vec<(&'a str, &'a SnapshotId)> {
        changes.iter().filter_map(|change| of(change)).map(|page| (page.url.as_str(), &page.text_snapshot)).collect()
    }
    let mut old = reader.old_texts(&wanted(changes, ChangedPage::old_page))?.into_iter();
    let mut new = reader.texts(&wanted(changes, ChangedPage::new_page))?.into_iter();
    let both = |change: &&ChangedPage| OldNew {
        old: change.old_page().and_then(|_| old.next()),
        new: change.new_page().and_then(|_| new.next()),
    };
    Ok(changes.iter().map(both).collect())
}

/// The links of a changed page.
pub(super) enum PageLinks {
    /// Old and new ones have the same targets and labels, in the same order.
    Same(Vec<LinkRow>),
    Differ(OldNew<Vec<LinkRow>>),
}

impl PageLinks {
    pub(super) fn before(&self) -> &[LinkRow] {
        match self {
            Self::Same(links) => links,
            Self::Differ(links) => &links.old,
        }
    }

    pub(super) fn now(&self) -> &[LinkRow] {
        match self {
            Self::Same(links) => links,
            Self::Differ(links) => &links.new,
        }
    }
}

/// Old and new links of changed pages, beside their texts. Most pages change in their text alone, and that is told without
/// the old links, which lie far away: the digest of the old content is that of the old title, the old text and the new links.
pub(super) fn links_beside(
    reader: &mut ShardReader<'_>,
    changes: &[ChangedPage],
    texts: &[OldNew<Option<String>>],
) -> Result<Vec<PageLinks>> {
    let new = read_links(reader, changes.iter().map(ChangedPage::new_page).collect())?;
    let had_these = |((change, texts), links): ((&ChangedPage, &OldNew<Option<String>>), &Vec<LinkRow>)| {
        let (Some(page), Some(text)) = (change.old_page(), texts.old.as_deref()) else { return false };
        let links = links.iter().map(|link| (link.target.as_str(), link.label.as_str()));
        content_digest(page.title.as_deref(), text, links, Into::into) == page.content_digest
    };
    let same: Vec<bool> = changes.iter().zip(texts).zip(&new).map(had_these).collect();
    let unknown = |(change, same): (_, &bool)| if *same { None } else { ChangedPage::old_page(change) };
    let old = read_links(reader, changes.iter().zip(&same).map(unknown).collect())?;
    let all = old.into_iter().zip(new).zip(same);
    Ok(all
        .map(|((old, new), same)| if same { PageLinks::Same(new) } else { PageLinks::Differ(OldNew { old, new }) })
        .collect())
}

/// The links of pages; one that is not there has none.
fn read_links(reader: &mut ShardReader<'_>, pages: Vec<Option<&PageVersion>>) -> Result<Vec<Vec<LinkRow>>> {
    let places: Vec<_> = pages.iter().flatten().map(|page| (page.url.as_str(), &page.content_snapshot)).collect();
    let mut links = reader.links(&places)?.into_iter();
    Ok(pages.into_iter().map(|page| page.and_then(|_| links.next()).unwrap_or_default()).collect())
}

/// Old and new links of changed pages; a page that is not there has none.
pub(super) fn links(reader: &mut ShardReader<'_>, changes: &[ChangedPage]) -> Result<Vec<OldNew<Vec<LinkRow>>>> {
    let old = read_links(reader, changes.iter().map(ChangedPage::old_page).collect())?;
    let new = read_links(reader, changes.iter().map(ChangedPage::new_page).collect())?;
    Ok(old.into_iter().zip(new).map(|(old, new)| OldNew { old, new }).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As two maps tell it.
        #[test]
        fn rows_that_differ(old: BTreeMap<u8, u8>, new: BTreeMap<u8, u8>) {
            let cells = |pages: &BTreeMap<u8, u8>| -> Vec<(String, String)> {
                pages.iter().map(|(url, digest)| (format!("{url:03}"), (digest % 2).to_string())).collect()
            };
            let (old, new) = (cells(&old), cells(&new));
            fn borrowed(cells: &[(String, String)]) -> Vec<[&str; 2]> {
                cells.iter().map(|(url, digest)| [url.as_str(), digest.as_str()]).collect()
            }
            let (old_rows, new_rows) = differing(&borrowed(&old), &borrowed(&new));
            let other = |mine: &[(String, String)], theirs: &[(String, String)]| -> Vec<usize> {
                (0..mine.len()).filter(|&row| !theirs.contains(&mine[row])).collect()
            };
            prop_assert_eq!(old_rows.into_iter().flatten().collect::<Vec<_>>(), other(&old, &new));
            prop_assert_eq!(new_rows.into_iter().flatten().collect::<Vec<_>>(), other(&new, &old));
        }
    }
}
