//! Texts and links by pointer: a page's text lies in the snapshot where it appeared or changed, its links likewise.
//!
//! Rows are found through the URL column and read by row selection, so that a few texts of a large partition cost a
//! few pages of the file.

use std::collections::{BTreeMap, HashMap};

use super::parquet::Partition;
use super::{Result, Store, StoreError};
use crate::model::SnapshotId;
use crate::tables::ingest::{LinkRow, Page, PagePointer, PageText, UrlOnly};
use crate::tables::record::{Record, Table};

/// Reads texts and links of one shard; remembers where in each partition a URL lies.
pub(crate) struct ShardReader<'a> {
    store: &'a Store,
    shard: u32,
    pages: HashMap<SnapshotId, Opened>,
    links: HashMap<SnapshotId, Opened>,
}

struct Opened {
    partition: Partition,
    groups: Vec<usize>,
    /// Rows of each URL, counted over `groups`.
    positions: HashMap<String, std::ops::Range<usize>>,
}

impl<'a> ShardReader<'a> {
    #[must_use]
    pub(crate) fn new(store: &'a Store, shard: u32) -> Self {
        Self { store, shard, pages: HashMap::new(), links: HashMap::new() }
    }

    /// The texts of pages, each by URL and the snapshot that holds it (its `text_snapshot`), in the order asked for.
    pub(crate) fn texts(&mut self, wanted: &[(&str, &SnapshotId)]) -> Result<Vec<String>> {
        let mut found = vec![None; wanted.len()];
        for (snapshot, indices) in by_snapshot(wanted) {
            let opened = open(self.store, self.shard, Page::NAME, snapshot, &mut self.pages)?;
            let mut rows: Vec<(usize, usize)> = Vec::new();
            for i in indices {
                let range = opened.positions.get(wanted[i].0);
                let range = range.ok_or_else(|| missing(self.store, snapshot, wanted[i].0))?;
                rows.push((range.start, i));
            }
            for (row, i) in opened.rows_at::<PageText>(rows)? {
                found[i] = row.text;
            }
        }
        let whole = found.into_iter().zip(wanted);
        whole.map(|(text, (url, snapshot))| text.ok_or_else(|| missing(self.store, snapshot, url))).collect()
    }

    /// The links of pages, each by URL and the snapshot that holds them (its `content_snapshot`), in page order.
    pub(crate) fn links(&mut self, wanted: &[(&str, &SnapshotId)]) -> Result<Vec<Vec<LinkRow>>> {
        let mut found = vec![Vec::new(); wanted.len()];
        for (snapshot, indices) in by_snapshot(wanted) {
            let opened = open(self.store, self.shard, LinkRow::NAME, snapshot, &mut self.links)?;
            let mut rows: Vec<(usize, usize)> = Vec::new();
            for i in indices {
                // No row: a page without links.
                let range = opened.positions.get(wanted[i].0).cloned().unwrap_or_default();
                rows.extend(range.map(|row| (row, i)));
            }
            for (row, i) in opened.rows_at::<LinkRow>(rows)? {
                found[i].push(row);
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

fn open<'m>(
    store: &Store,
    shard: u32,
    table: &str,
    snapshot: &SnapshotId,
    opened: &'m mut HashMap<SnapshotId, Opened>,
) -> Result<&'m Opened> {
    if !opened.contains_key(snapshot) {
        let partition = store.partition(table, snapshot)?;
        let groups = partition.groups_of(shard);
        let mut positions: HashMap<String, std::ops::Range<usize>> = HashMap::new();
        // Rows of a URL follow each other.
        let (mut current, mut first, mut row) = (String::new(), 0, 0);
        partition.visit::<UrlOnly<'_>>(&groups, |UrlOnly { url }| {
            if url != current {
                if row > 0 {
                    positions.insert(std::mem::replace(&mut current, url.to_owned()), first..row);
                } else {
                    url.clone_into(&mut current);
                }
                first = row;
            }
            row += 1;
        })?;
        if row > 0 {
            positions.insert(current, first..row);
        }
        opened.insert(snapshot.clone(), Opened { partition, groups, positions });
    }
    Ok(&opened[snapshot])
}

impl Opened {
    /// Reads the rows at the given positions, each with what it was asked for as.
    fn rows_at<R: Record + Clone>(&self, mut wanted: Vec<(usize, usize)>) -> Result<Vec<(R, usize)>> {
        wanted.sort_unstable();
        let mut positions: Vec<usize> = wanted.iter().map(|&(position, _)| position).collect();
        positions.dedup();
        let rows = self.partition.rows_at::<R>(&self.groups, &positions)?;
        let at = |position| positions.binary_search(&position).expect("every position was read");
        Ok(wanted.into_iter().map(|(position, tag)| (rows[at(position)].clone(), tag)).collect())
    }
}

/// Texts are read in batches of about this size.
const BATCH_BYTES: i64 = 16 << 20;

/// Calls `visit` with the rows of one shard of a snapshot, each with its text, wherever that lies, in URL order.
pub(crate) fn pages_with_text<R, E>(
    store: &Store,
    snapshot: &SnapshotId,
    shard: u32,
    mut visit: impl FnMut(R, String) -> std::result::Result<(), E>,
) -> std::result::Result<(), E>
where
    R: Record,
    E: From<StoreError>,
{
    let partition = store.partition(Page::NAME, snapshot)?;
    let mut reader = ShardReader::new(store, shard);
    for group in partition.groups_of(shard) {
        let pointers = partition.groups::<PagePointer>(&[group])?;
        let mut rows = partition.groups::<R>(&[group])?.into_iter();
        let mut rest = pointers.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fitting = rest.iter().take_while(|pointer| {
                bytes += pointer.text_bytes;
                bytes <= BATCH_BYTES
            });
            // A text larger than a batch is a batch of its own.
            let (batch, after) = rest.split_at(fitting.count().max(1));
            let wanted: Vec<_> = batch.iter().map(|p| (p.url.as_str(), &p.text_snapshot)).collect();
            // `zip` asks its first iterator first, so the texts lead: no row is lost at the end of a batch.
            for (text, row) in reader.texts(&wanted)?.into_iter().zip(rows.by_ref()) {
                visit(row, text)?;
            }
            rest = after;
        }
    }
    Ok(())
}

impl Store {
    /// The row of a page, its text included if it lies in this snapshot.
    pub fn page(&self, snapshot: &SnapshotId, url: &str) -> Result<Option<Page>> {
        let partition = self.partition(Page::NAME, snapshot)?;
        let groups = partition.groups_of(self.shard_of(url));
        let (mut row, mut position) = (0, None);
        partition.visit::<UrlOnly<'_>>(&groups, |page| {
            if page.url == url {
                position.get_or_insert(row);
            }
            row += 1;
        })?;
        let Some(position) = position else { return Ok(None) };
        Ok(partition.rows_at::<Page>(&groups, &[position])?.pop())
    }
}
