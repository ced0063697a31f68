//! Mentions of earlier snapshots: what a page's mentions can be copied from, and what they are compared with.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;

use super::known::Good;
use super::live::Live;
use crate::manifests::Extracted;
use crate::model::SnapshotId;
use crate::model::maps::{HashMap, HashSet};
use crate::store::parquet::Partition;
use crate::store::{Store, StoreError};
use crate::tables::mentions::{MentionRow, ReadMentions, ShortMention, ShortMentions, mentions_of};
use crate::tables::record::text_column;

/// Mentions that are wanted: of a URL by an extractor, where they lie and how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'w> {
    pub(super) extractor: usize,
    pub(super) url: &'w str,
    pub(super) snapshot: &'w SnapshotId,
    /// `None` if nobody has counted.
    pub(super) mentions: Option<i64>,
    pub(super) shape: Shape,
}

/// As what mentions are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Rows,
    /// They are only compared: nobody needs their rows.
    Short,
    /// They are only copied: nobody looks at them.
    Carried,
}

/// Mentions by extractor and URL, in canonical order.
#[derive(Default)]
pub(super) struct OldMentions {
    rows: HashMap<(usize, SnapshotId), HashMap<String, Vec<MentionRow>>>,
    short: HashMap<(usize, SnapshotId), HashMap<String, Part>>,
    carried: HashMap<(usize, SnapshotId), HashMap<String, Vec<CarriedPart>>>,
}

/// The same of mentions that are carried.
pub(super) type CarriedPart = (Arc<ReadMentions>, Range<usize>);

/// Some of the mentions that were read together.
struct Part {
    read: Arc<ShortMentions>,
    rows: Range<usize>,
}

impl OldMentions {
    /// The mentions of a good extraction, if they were loaded; one without mentions has none.
    pub(super) fn of(&self, extractor: usize, url: &str, lies_in: Option<&SnapshotId>) -> &[MentionRow] {
        let partition = lies_in.and_then(|snapshot| self.rows.get(&(extractor, snapshot.clone())));
        partition.and_then(|rows| rows.get(url)).map_or(&[], Vec::as_slice)
    }

    /// The same in short; `None` if they were not loaded so.
    pub(super) fn short(
        &self,
        extractor: usize,
        url: &str,
        lies_in: Option<&SnapshotId>,
    ) -> Option<impl Iterator<Item = ShortMention<'_>>> {
        let Part { read, rows } = self.part(extractor, url, lies_in?)?;
        Some(read.range(rows.clone()))
    }

    fn part(&self, extractor: usize, url: &str, lies_in: &SnapshotId) -> Option<&Part> {
        self.short.get(&(extractor, lies_in.clone()))?.get(url)
    }

    /// The same to be carried.
    pub(super) fn carried(&self, extractor: usize, url: &str, lies_in: Option<&SnapshotId>) -> &[CarriedPart] {
        let partition = lies_in.and_then(|snapshot| self.carried.get(&(extractor, snapshot.clone())));
        partition.and_then(|parts| parts.get(url)).map_or(&[], Vec::as_slice)
    }

    fn count(&self, Wanted { extractor, url, snapshot, shape, .. }: Wanted<'_>) -> usize {
        if shape == Shape::Carried {
            return self.carried(extractor, url, Some(snapshot)).iter().map(|(_, rows)| rows.len()).sum();
        }
        let part = self.part(extractor, url, snapshot);
        part.map_or_else(|| self.of(extractor, url, Some(snapshot)).len(), |part| part.rows.len())
    }
}

/// URLs with how many mentions each has, by extractor, snapshot and shard.
type Places<'p> = HashMap<PlaceOf<'p>, UrlCounts<'p>>;
type PlaceOf<'p> = (usize, &'p SnapshotId, u32);
type UrlCounts<'p> = Vec<(&'p str, Option<i64>)>;

/// Places in order, their URLs too, each once.
fn in_order(places: Places<'_>) -> Vec<(PlaceOf<'_>, UrlCounts<'_>)> {
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_unstable_by_key(|(place, _)| *place);
    for (_, urls) in &mut places {
        urls.sort_unstable();
        urls.dedup_by_key(|(url, _)| *url);
    }
    places
}

/// What shards need not find out one by one.
#[derive(Default)]
pub(super) struct SharedSources {
    /// By snapshot, which extractors its manifest names.
    vouched: Mutex<HashMap<SnapshotId, Arc<[bool]>>>,
    /// Mentions in short of partitions that are small, by extractor and snapshot.
    small: Mutex<HashMap<(usize, SnapshotId), Arc<SmallPartition>>>,
}

/// A partition of which all shards are read at once: where each URL has its rows.
struct SmallPartition {
    read: Arc<ShortMentions>,
    rows: HashMap<String, Range<usize>>,
}

/// A partition of so many rows is read once for all shards.
const SMALL: u64 = 8_192;

/// Reads mentions of earlier snapshots.
pub(super) struct Sources<'a> {
    store: &'a Store,
    live: &'a Live,
    shared: &'a SharedSources,
}

impl<'a> Sources<'a> {
    pub(super) fn new(store: &'a Store, live: &'a Live, shared: &'a SharedSources) -> Self {
        Self { store, live, shared }
    }

    /// Whether the mentions of an extraction are still as they were found. Where the manifest does not name the extractor,
    /// they were rewritten for another definition, or are gone.
    pub(super) fn vouches(&self, extractor: usize, good: &Good) -> Result<bool> {
        let mut vouched = self.shared.vouched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = vouched.get(&good.snapshot) {
            return Ok(named[extractor]);
        }
        let manifest = self.store.manifest::<Extracted>(&good.snapshot)?;
        let named = |name: &str| manifest.as_ref().is_some_and(|m| m.summary.fingerprints.contains_key(name));
        let named: Arc<[bool]> = self.live.all.iter().map(|live| named(&live.name)).collect();
        let vouches = named[extractor];
        vouched.insert(good.snapshot.clone(), named);
        Ok(vouches)
    }

    /// Reads mentions, partition by partition. Not to find as many as there should be is an error.
    pub(super) fn load(&self, wanted: &[Wanted<'_>]) -> Result<OldMentions> {
        let found = self.look(wanted)?;
        for one @ Wanted { extractor, url, snapshot, mentions, .. } in wanted {
            let there = found.count(*one);
            let Some(mentions) = mentions else { continue };
            if i64::try_from(there) != Ok(*mentions) {
                let path = self.store.partition_file(&mentions_of(&self.live.all[*extractor].name), snapshot);
                let problem = format!("{url} has {there} mentions there, not {mentions}");
                return Err(StoreError::Damaged { path, problem }.into());
            }
        }
        Ok(found)
    }

    /// Reads mentions, as many as there are.
    pub(super) fn look(&self, wanted: &[Wanted<'_>]) -> Result<OldMentions> {
        let (mut as_rows, mut in_short, mut carried) = (Places::default(), Places::default(), Places::default());
        let as_row = |one: &&Wanted<'_>| one.shape == Shape::Rows;
        let with_rows: HashSet<(usize, &SnapshotId, &str)> =
            wanted.iter().filter(as_row).map(|one| (one.extractor, one.snapshot, one.url)).collect();
        // What is wanted of a URL comes together: its shard need not be found out each time.
        let mut last = ("", self.store.shard_of(""));
        for Wanted { extractor, url, snapshot, mentions, shape } in wanted.iter().copied() {
            if url != last.0 {
                last = (url, self.store.shard_of(url));
            }
            let places = match shape {
                Shape::Carried => &mut carried,
                Shape::Short if !with_rows.contains(&(extractor, snapshot, url)) => &mut in_short,
                Shape::Short | Shape::Rows => &mut as_rows,
            };
            places.entry((extractor, snapshot, last.1)).or_default().push((url, mentions));
        }
        let mut found = OldMentions::default();
        for ((extractor, snapshot, shard), urls) in in_order(as_rows) {
            let names: Vec<&str> = urls.into_iter().map(|(url, _)| url).collect();
            let rows = self.read(extractor, snapshot, shard, &names)?;
            let by_url = found.rows.entry((extractor, snapshot.clone())).or_default();
            by_url.extend(names.into_iter().map(str::to_owned).zip(rows));
        }
        for ((extractor, snapshot, shard), urls) in in_order(carried) {
            let names: Vec<&str> = urls.into_iter().map(|(url, _)| url).collect();
            let parts = self.read_carried(extractor, snapshot, shard, &names)?;
            let by_url = found.carried.entry((extractor, snapshot.clone())).or_default();
            by_url.extend(names.into_iter().map(str::to_owned).zip(parts));
        }
        for ((extractor, snapshot, shard), urls) in in_order(in_short) {
            let parts = self.read_short(extractor, snapshot, shard, &urls)?;
            found.short.entry((extractor, snapshot.clone())).or_default().extend(parts);
        }
        Ok(found)
    }

    /// The mentions of URLs (ascending) in one shard of a partition.
    fn read(&self, extractor: usize, snapshot: &SnapshotId, shard: u32, urls: &[&str]) -> Result<Vec<Vec<MentionRow>>> {
        let live = &self.live.all[extractor];
        let partition = self.store.partition(&mentions_of(&live.name), snapshot)?;
        let part = partition.part(shard);
        let ranges = partition.find(&part, urls)?;
        let mut rows = Vec::new();
        for batch in partition.batches(&part, Some(&ranges))? {
            rows.extend(live.schema.decode(&batch)?);
        }
        let mut rows = rows.into_iter();
        Ok(ranges.iter().map(|range| rows.by_ref().take(range.len()).collect()).collect())
    }

    /// The mentions of URLs (ascending) in one shard of a partition, as they lie there.
    fn read_carried(
        &self,
        extractor: usize,
        snapshot: &SnapshotId,
        shard: u32,
        urls: &[&str],
    ) -> Result<Vec<Vec<CarriedPart>>> {
        let live = &self.live.all[extractor];
        let partition = self.store.partition(&mentions_of(&live.name), snapshot)?;
        let part = partition.part(shard);
        let ranges = partition.find(&part, urls)?;
        let columns = live.schema.carried_columns().unwrap_or_default();
        let mut read = Vec::new();
        for batch in partition.columns(&part, &columns, Some(&ranges))? {
            read.push((Arc::new(live.schema.read(&batch)?), batch.num_rows()));
        }
        // The rows of a URL may lie in more than one of what was read.
        let (mut at, mut first) = (0, 0);
        let parts_of = |range: &Range<usize>| {
            let (mut parts, mut left) = (Vec::new(), range.len());
            while let Some((from, rows)) = read.get(at).filter(|_| left > 0) {
                let taken = left.min(rows - first);
                parts.extend((taken > 0).then(|| (Arc::clone(from), first..first + taken)));
                (first, left) = (first + taken, left - taken);
                if first == *rows {
                    (at, first) = (at + 1, 0);
                }
            }
            parts
        };
        Ok(ranges.iter().map(parts_of).collect())
    }

    /// The mentions of URLs in one shard of a partition, in short; with how many there are of each, where that is known.
    fn read_short(
        &self,
        extractor: usize,
        snapshot: &SnapshotId,
        shard: u32,
        urls: &[(&str, Option<i64>)],
    ) -> Result<Vec<(String, Part)>> {
        let live = &self.live.all[extractor];
        let partition = self.store.partition(&mentions_of(&live.name), snapshot)?;
        if partition.rows() <= SMALL {
            let all = self.small(extractor, snapshot, &partition)?;
            let part =
                |url: &str| Part { read: Arc::clone(&all.read), rows: all.rows.get(url).cloned().unwrap_or_default() };
            return Ok(urls.iter().map(|(url, _)| ((*url).to_owned(), part(url))).collect());
        }
        let part = partition.part(shard);
        let counts: Option<Vec<usize>> = urls.iter().map(|(_, count)| usize::try_from((*count)?).ok()).collect();
        // Rows are ordered by URL: where all are wanted, counts tell whose they are.
        let counts = counts.filter(|counts| counts.iter().sum::<usize>() == part.rows());
        let names: Vec<&str> = urls.iter().map(|(url, _)| *url).collect();
        let ranges = if counts.is_some() { None } else { Some(partition.find(&part, &names)?) };
        let mut read = ShortMentions::default();
        for batch in partition.columns(&part, &live.short_columns().unwrap_or_default(), ranges.as_deref())? {
            live.schema.add_short(&batch, &mut read)?;
        }
        let counts = counts.unwrap_or_else(|| ranges.iter().flatten().map(Range::len).collect());
        let (read, mut next) = (Arc::new(read), 0);
        let part = |(url, count): (&str, usize)| {
            let rows = next..(next + count).min(read.len());
            next = rows.end;
            (url.to_owned(), Part { read: Arc::clone(&read), rows })
        };
        Ok(names.into_iter().zip(counts).map(part).collect())
    }

    /// All of a partition that is small.
    fn small(&self, extractor: usize, snapshot: &SnapshotId, partition: &Partition) -> Result<Arc<SmallPartition>> {
        let mut small = self.shared.small.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = small.get(&(extractor, snapshot.clone())) {
            return Ok(Arc::clone(all));
        }
        let live = &self.live.all[extractor];
        let columns: Vec<&str> = ["url"].into_iter().chain(live.short_columns().unwrap_or_default()).collect();
        let (mut read, mut rows) = (ShortMentions::default(), HashMap::<String, Range<usize>>::default());
        for batch in partition.columns(&partition.all(), &columns, None)? {
            let first = read.len();
            live.schema.add_short(&batch, &mut read)?;
            for (row, url) in (first..).zip(text_column(&batch, "url")?.iter()) {
                let url = url.unwrap_or_default();
                match rows.get_mut(url) {
                    Some(range) => range.end = row + 1,
                    None => _ = rows.insert(url.to_owned(), row..row + 1),
                }
            }
        }
        let all = Arc::new(SmallPartition { read: Arc::new(read), rows });
        small.insert((extractor, snapshot.clone()), Arc::clone(&all));
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As sorted maps tell it.
        #[test]
        fn places_come_in_order(wanted in prop::collection::vec((0..3usize, 0..3u32, 0..5u8), 0..40)) {
            let snapshot = SnapshotId::new("n").unwrap();
            let names: Vec<String> = (0..5).map(|url| format!("http://a.example/{url}")).collect();
            let mut expected: BTreeMap<(usize, u32), BTreeSet<&str>> = BTreeMap::new();
            let mut places = Places::default();
            for (extractor, shard, url) in wanted {
                let url = names[usize::from(url)].as_str();
                expected.entry((extractor, shard)).or_default().insert(url);
                places.entry((extractor, &snapshot, shard)).or_default().push((url, Some(1)));
            }
            let found: Vec<((usize, u32), Vec<&str>)> = in_order(places)
                .into_iter()
                .map(|((extractor, _, shard), urls)| ((extractor, shard), urls.into_iter().map(|(url, _)| url).collect()))
                .collect();
            let expected: Vec<_> = expected.into_iter().map(|(place, urls)| (place, urls.into_iter().collect())).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
