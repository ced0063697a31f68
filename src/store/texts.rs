//! Texts and links by pointer: a page's text lies in the snapshot where it appeared or changed, its links likewise.
//!
//! Rows are found through the URL column and read by row selection, so that a few texts of a large partition cost a
//! few pages of the file.

use std::collections::BTreeMap;

use super::batches::batches;
use super::memory::identity;
use super::state::Layers;
use super::{Result, Store, StoreError};
use crate::model::SnapshotId;
use crate::model::maps::HashMap;
use crate::tables::ingest::{LinkRow, Page, PageElements, PagePointer, PageText};
use crate::tables::record::{OfUrl, Record, Table};

/// Reads texts and links of one shard.
pub(crate) struct ShardReader<'a> {
    store: &'a Store,
    shard: u32,
}

impl<'a> ShardReader<'a> {
    #[must_use]
    pub(crate) fn new(store: &'a Store, shard: u32) -> Self {
        Self { store, shard }
    }

    /// The texts of pages, each by URL and the snapshot that holds it (its `text_snapshot`), in the order asked for.
    pub(crate) fn texts(&mut self, wanted: &[(&str, &SnapshotId)]) -> Result<Vec<String>> {
        self.stored(wanted, |snapshot, urls| texts_of(self.store, self.shard, snapshot, urls, false))
    }

    /// The same of texts that pages had before. Other stages of the night ask for them again: they are kept at hand.
    pub(crate) fn old_texts(&mut self, wanted: &[(&str, &SnapshotId)]) -> Result<Vec<String>> {
        self.stored(wanted, |snapshot, urls| texts_of(self.store, self.shard, snapshot, urls, true))
    }

    /// The texts, with where each stands among the elements of its page, if that was kept there.
    pub(crate) fn texts_and_elements(
        &mut self,
        wanted: &[(&str, &SnapshotId)],
    ) -> Result<Vec<(String, Option<String>)>> {
        let of = |rows: Vec<PageElements>| rows.into_iter().next().and_then(|row| Some((row.text?, row.elements)));
        self.stored(wanted, |snapshot, urls| {
            Ok(rows_of(self.store, self.shard, Page::NAME, snapshot, urls)?.into_iter().map(of).collect())
        })
    }

    /// What `read` gives for the URLs of each snapshot, in the order asked for.
    fn stored<T: Clone>(
        &self,
        wanted: &[(&str, &SnapshotId)],
        read: impl Fn(&SnapshotId, &[&str]) -> Result<Vec<Option<T>>>,
    ) -> Result<Vec<T>> {
        let mut found = vec![None; wanted.len()];
        for (snapshot, indices) in by_snapshot(wanted) {
            let urls: Vec<&str> = indices.iter().map(|&i| wanted[i].0).collect();
            for (text, i) in read(snapshot, &urls)?.into_iter().zip(indices) {
                found[i] = text;
            }
        }
        let whole = found.into_iter().zip(wanted);
        whole.map(|(text, (url, snapshot))| text.ok_or_else(|| missing(self.store, snapshot, url))).collect()
    }

    /// The links of pages, each by URL and the snapshot that holds them (its `content_snapshot`), in page order.
    pub(crate) fn links(&mut self, wanted: &[(&str, &SnapshotId)]) -> Result<Vec<Vec<LinkRow>>> {
        let mut found = vec![Vec::new(); wanted.len()];
        for (snapshot, indices) in by_snapshot(wanted) {
            let urls: Vec<&str> = indices.iter().map(|&i| wanted[i].0).collect();
            // No row: a page without links.
            for (rows, i) in rows_of(self.store, self.shard, LinkRow::NAME, snapshot, &urls)?.into_iter().zip(indices) {
                found[i] = rows;
            }
        }
        Ok(found)
    }
}

fn by_snapshot<'a>(wanted: &[(&str, &'a SnapshotId)]) -> BTreeMap<&'a SnapshotId, Vec<usize>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (i, &(_, snapshot)) in wanted.iter().enumerate() {
        groups.entry(snapshot).or_default().push(i);
    }
    groups
}

fn missing(store: &Store, snapshot: &SnapshotId, url: &str) -> StoreError {
    let path = store.partition_file(Page::NAME, snapshot);
    StoreError::Damaged { path, problem: format!("the text of {url} is not where it should be") }
}

/// The texts of URLs in one shard of a snapshot, in the order asked for; `None` where there is none.
fn texts_of(
    store: &Store,
    shard: u32,
    snapshot: &SnapshotId,
    urls: &[&str],
    keep: bool,
) -> Result<Vec<Option<String>>> {
    let file = identity(&store.partition_file(Page::NAME, snapshot))?;
    let mut texts = match file {
        Some(file) => store.texts_at_hand().find(file, urls),
        None => vec![None; urls.len()],
    };
    let missing: Vec<usize> = (0..urls.len()).filter(|&i| texts[i].is_none()).collect();
    let asked: Vec<&str> = missing.iter().map(|&i| urls[i]).collect();
    let rows = rows_of::<PageText>(store, shard, Page::NAME, snapshot, &asked)?;
    for (rows, &i) in rows.into_iter().zip(&missing) {
        texts[i] = rows.into_iter().next().and_then(|row| row.text);
    }
    if let Some(file) = file.filter(|_| keep) {
        let read = missing.iter().filter_map(|&i| Some((urls[i], texts[i].as_deref()?)));
        store.texts_at_hand().keep(file, read);
    }
    Ok(texts)
}

/// The rows of URLs in one shard of a partition, in the order asked for.
pub(crate) fn rows_of<R: Record + Clone>(
    store: &Store,
    shard: u32,
    table: &str,
    snapshot: &SnapshotId,
    urls: &[&str],
) -> Result<Vec<Vec<R>>> {
    let partition = store.partition(table, snapshot)?;
    let part = partition.part(shard);
    let mut sorted: Vec<&str> = urls.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let ranges = partition.find(&part, &sorted)?;
    let distinct = sorted.len() == urls.len();
    let mut rows = partition.rows_at::<R>(&part, &ranges)?.into_iter();
    let found = ranges.iter().map(|range| rows.by_ref().take(range.len()).collect::<Vec<R>>());
    if distinct && urls.is_sorted() {
        return Ok(found.collect());
    }
    let mut by_url: HashMap<&str, Vec<R>> = sorted.into_iter().zip(found).collect();
    let rows_of = |url: &str| match by_url.get_mut(url) {
        Some(rows) if distinct => std::mem::take(rows),
        Some(rows) => rows.clone(),
        None => Vec::new(),
    };
    Ok(urls.iter().copied().map(rows_of).collect())
}

/// Calls `visit` with the rows of one shard of the pages at a snapshot, each with its text, wherever that lies, in URL order.
pub(crate) fn pages_with_text<R, E>(
    store: &Store,
    pages: &Layers,
    shard: u32,
    mut visit: impl FnMut(R, String) -> std::result::Result<(), E>,
) -> std::result::Result<(), E>
where
    R: Record + OfUrl,
    E: From<StoreError>,
{
    let pointers: Vec<PagePointer> = pages.shard(store, shard)?;
    let mut rows = pages.shard::<R>(store, shard)?.into_iter();
    let mut reader = ShardReader::new(store, shard);
    for batch in batches(&pointers, |pointer| pointer.text_bytes) {
        let wanted: Vec<_> = batch.iter().map(|p| (p.url.as_str(), &p.text_snapshot)).collect();
        // `zip` asks its first iterator first, so the texts lead: no row is lost at the end of a batch.
        for (text, row) in reader.texts(&wanted)?.into_iter().zip(rows.by_ref()) {
            visit(row, text)?;
        }
    }
    Ok(())
}
