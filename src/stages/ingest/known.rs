//! What ingest knows of URLs from earlier snapshots, in the index: the last good page of each (`Heads`), stored versions
//! by the digest that archives state (`Versions`), and who has which text (`Texts`), by which pages that moved are found.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::captures::{LastPage, StoredVersion, UniqueTexts};
use crate::model::maps::{HashMap, HashSet, with_room};
use crate::model::{Digest, SnapshotId, StageId, Timestamp};
use crate::run::shards;
use crate::stages::follow::{self, Kept, Night, decode, encode, shard_key, url_key};
use crate::store::Store;
use crate::store::index::{Index, Kind, Moment};
use crate::store::parquet::PartitionWriter;
use crate::store::{shard_of, shard_of_digest};
use crate::tables::ingest::{Head, Page, PageFacts, UrlOnly, VersionRow};
use crate::tables::record::Table as _;

/// Heads that are held at a time where only little of each is wanted.
const HEADS_TOGETHER: usize = 8_192;
/// Versions that wait at most until they are looked for together.
const VERSIONS_TOGETHER: usize = 65_536;

/// What is known of URLs.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// As the snapshot before left it.
    pub(super) before: &'a Moment,
    /// As this snapshot leaves it.
    pub(super) index: &'a Index,
    pub(super) shards: u32,
}

impl Known<'_> {
    /// The heads of a shard's URLs, in the order asked for.
    pub(super) fn heads_of(&self, shard: u32, urls: &[&str]) -> Result<Vec<Option<Head>>> {
        let keys: Vec<Vec<u8>> = urls.iter().map(|url| url_key(shard, url)).collect();
        let found = self.before.get_many(Kind::Heads, &keys)?;
        found.into_iter().map(|value| value.as_deref().map(decode).transpose()).collect()
    }

    /// All heads of a shard, by URL.
    pub(super) fn all_heads(&self, shard: u32) -> Result<Vec<Head>> {
        let mut heads = Vec::new();
        self.scan(shard, |value| {
            heads.push(decode(value)?);
            Ok(())
        })?;
        Ok(heads)
    }

    /// Calls `visit` with the heads of a shard as they lie in the index.
    fn scan(&self, shard: u32, mut visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut damaged = None;
        self.before.scan(Kind::Heads, &shard_key(shard), &mut |_, value| {
            damaged = visit(value).err();
            Ok(damaged.is_none())
        })?;
        damaged.map_or(Ok(()), Err)
    }

    /// The heads of URLs of any shard, by URL.
    pub(super) fn heads(&self, urls: &HashSet<String>) -> Result<HashMap<String, Head>> {
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        let keys: Vec<Vec<u8>> = urls.iter().map(|url| url_key(shard_of(url, self.shards), url)).collect();
        let mut heads = HashMap::default();
        for (url, value) in urls.into_iter().zip(self.before.get_many(Kind::Heads, &keys)?) {
            if let Some(value) = value {
                heads.insert(url.to_owned(), decode(&value)?);
            }
        }
        Ok(heads)
    }

    /// What the archive stated for the last pages of URLs of any shard, by URL. A revisit of every page asks for as many:
    /// heads are read a few at a time.
    pub(super) fn archive_digests(&self, urls: &HashSet<String>) -> Result<HashMap<String, Option<String>>> {
        let mut urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        // Keys that are asked for together should be neighbours.
        urls.sort_by_cached_key(|url| (shard_of(url, self.shards), *url));
        let mut digests = with_room(urls.len());
        for urls in urls.chunks(HEADS_TOGETHER) {
            let keys: Vec<Vec<u8>> = urls.iter().map(|url| url_key(shard_of(url, self.shards), url)).collect();
            for (url, value) in urls.iter().zip(self.before.get_many(Kind::Heads, &keys)?) {
                if let Some(value) = value {
                    digests.insert((*url).to_owned(), Glance::at(&value)?.page.archive_digest.map(str::to_owned));
                }
            }
        }
        Ok(digests)
    }

    /// The stored versions that have these digests of the archive.
    pub(super) fn versions<'d>(&self, digests: &[&'d str]) -> Result<Vec<(&'d str, StoredVersion)>> {
        let keys: Vec<[u8; 16]> = digests.iter().map(|digest| version_key(digest)).collect();
        let mut versions = Vec::new();
        for (digest, value) in digests.iter().zip(self.before.get_many(Kind::Versions, &keys)?) {
            if let Some(value) = value {
                versions.push((*digest, decode(&value)?));
            }
        }
        Ok(versions)
    }

    /// The last pages that have one of these texts, as far as a text tells one page from all others.
    pub(super) fn last_pages(&self, texts: &HashSet<Digest>) -> Result<UniqueTexts<LastPage>> {
        let mut holders: Vec<String> = Vec::new();
        for text in texts {
            // Two are enough to know that the text tells nothing.
            let mut urls: Vec<String> = Vec::new();
            self.before.scan(Kind::Texts, &text.0, &mut |_, url| {
                urls.push(String::from_utf8_lossy(url).into_owned());
                Ok(urls.len() < 2)
            })?;
            holders.extend(urls);
        }
        let mut last_pages = UniqueTexts::default();
        for (url, head) in self.heads(&holders.into_iter().collect())? {
            let Head { page, page_snapshot: snapshot, .. } = head;
            let (digest, bytes) = (page.content.text_digest, page.content.text_bytes);
            last_pages.add(digest, bytes, LastPage { url, snapshot, text_snapshot: page.text_snapshot });
        }
        Ok(last_pages)
    }

    /// Takes in what became of the URLs of a shard: their heads before and now. They come in the order of `pages`.
    pub(super) fn advance(
        &self,
        shard: u32,
        changes: Vec<(Option<Looked>, Head)>,
        versions: &mut NewVersions,
    ) -> Result<()> {
        for (before, head) in changes {
            let Head { page, page_snapshot: snapshot, alive } = &head;
            let now = Looked::of(page);
            if before.map(|before| before.text) != Some(now.text) {
                let url_digest = Digest::of(page.url.as_bytes());
                if let Some(before) = before.map(|before| before.text).filter(TextOf::tells) {
                    self.index.delete(Kind::Texts, before.key(url_digest))?;
                }
                if now.text.tells() {
                    self.index.put(Kind::Texts, now.text.key(url_digest), page.url.clone().into_bytes())?;
                }
            }
            // A version that the URL had just before is known.
            if let Some(digest) =
                now.archive.filter(|_| *alive && before.is_none_or(|before| before.archive != now.archive))
            {
                let version = StoredVersion { snapshot: snapshot.clone(), url: page.url.clone() };
                versions.all.push((digest.0, version));
            }
            self.index.put(Kind::Heads, url_key(shard, &page.url), encode(&head)?)?;
        }
        if versions.all.len() >= VERSIONS_TOGETHER { versions.take(self.index) } else { Ok(()) }
    }

    /// Writes all heads and versions as they are before, as a base stores them.
    pub(super) fn write_states(
        &self,
        heads: &mut PartitionWriter<Head>,
        versions: &mut PartitionWriter<VersionRow>,
    ) -> Result<()> {
        shards::written(heads, self.shards, |shard| self.all_heads(shard))?;
        let mut rows = Vec::new();
        let mut damaged = None;
        self.before.scan(Kind::Versions, &[], &mut |key, value| {
            match (key.try_into(), decode::<StoredVersion>(value)) {
                (Ok(key), Ok(StoredVersion { snapshot, url })) => {
                    rows.push(VersionRow { archive_digest: Digest(key), url, page_snapshot: snapshot });
                }
                (_, result) => damaged = result.err().or(damaged.take()),
            }
            Ok(damaged.is_none())
        })?;
        damaged.map_or(Ok(()), Err)?;
        Ok(versions.write(0, &rows)?)
    }
}

/// Versions that pages have tonight and that no page of theirs had just before. Their digests lie anywhere in the index, so that
/// they are looked for in large numbers, and not shard by shard.
#[derive(Default)]
pub(super) struct NewVersions {
    all: Vec<([u8; 16], StoredVersion)>,
}

impl NewVersions {
    /// Notes those that are not known. The first page that had a version stays the one that stands for it.
    pub(super) fn take(&mut self, index: &Index) -> Result<()> {
        let keys: Vec<[u8; 16]> = self.all.iter().map(|(key, _)| *key).collect();
        let known = index.get_many(Kind::Versions, &keys)?;
        let mut taken = HashSet::default();
        for ((key, version), known) in self.all.drain(..).zip(known) {
            if known.is_none() && taken.insert(key) {
                index.put(Kind::Versions, key.to_vec(), encode(&version)?)?;
            }
        }
        Ok(())
    }
}

fn version_key(archive_digest: &str) -> [u8; 16] {
    Digest::of(archive_digest.as_bytes()).0
}

/// What a last page is found by.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Looked {
    text: TextOf,
    /// Digest of the digest that the archive stated for it.
    archive: Option<Digest>,
}

impl Looked {
    pub(super) fn of(page: &PageFacts) -> Self {
        let text = TextOf { digest: page.content.text_digest, bytes: page.content.text_bytes };
        Self { text, archive: page.archive_digest.as_ref().map(|digest| Digest(version_key(digest))) }
    }
}

/// The text of a last page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TextOf {
    digest: Digest,
    bytes: i64,
}

impl TextOf {
    /// Whether it can tell that a page moved.
    fn tells(&self) -> bool {
        UniqueTexts::<()>::tells(self.bytes)
    }

    fn key(self, url: Digest) -> Vec<u8> {
        [self.digest.0, url.0].concat()
    }
}

/// A [`Head`] as it lies in the index, field by field, but nothing of it is copied: of all URLs of a night little is wanted.
#[derive(Debug, Deserialize)]
struct Glance<'a> {
    #[serde(borrow)]
    page: GlancedPage<'a>,
    #[expect(dead_code, reason = "it lies before the next")]
    page_snapshot: &'a str,
    alive: bool,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "fields are passed over one by one")]
struct GlancedPage<'a> {
    #[serde(borrow)]
    content: GlancedContent<'a>,
    url: &'a str,
    content_type: Option<&'a str>,
    fetched_at: Option<Timestamp>,
    last_modified: Option<Timestamp>,
    etag: Option<&'a str>,
    text_snapshot: &'a str,
    content_snapshot: &'a str,
    payload_digest: Option<Digest>,
    archive_digest: Option<&'a str>,
    reading_digest: Option<Digest>,
    ignore_digest: Digest,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "fields are passed over one by one")]
struct GlancedContent<'a> {
    title: Option<&'a str>,
    charset: Option<&'a str>,
    text_digest: Digest,
    text_bytes: i64,
    content_digest: Digest,
    change_digest: Digest,
    masked_text_digest: Digest,
    canonical: Option<&'a str>,
    structure_digest: Option<Digest>,
    elements_digest: Option<Digest>,
}

impl<'a> Glance<'a> {
    fn at(value: &'a [u8]) -> Result<Self> {
        decode(value)
    }
}

/// What deciding whether to parse a capture needs of its URL's last page.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastReading {
    /// How the page was read. An equal payload is not parsed again.
    pub(super) reading: Option<Digest>,
    /// Digest of the digest that the archive stated for it.
    pub(super) archive: Option<Digest>,
    /// The page was there in the snapshot before.
    pub(super) alive: bool,
}

impl LastReading {
    fn of(head: &Glance<'_>) -> Self {
        let Glance { page, alive, .. } = head;
        let archive = page.archive_digest.map(|digest| Digest(version_key(digest)));
        Self { reading: page.reading_digest, archive, alive: *alive }
    }

    /// Whether the archive stated this digest for the page.
    pub(super) fn is_stated(&self, archive_digest: &str) -> bool {
        self.archive == Some(Digest(version_key(archive_digest)))
    }
}

/// The last readings of all URLs: asked for one by one as long as few are wanted, then read all at once.
pub(super) struct LastReadings<'a> {
    known: Known<'a>,
    urls: u64,
    asked: AtomicU64,
    /// So many questions cost about as much as reading all.
    few: u64,
    /// By shard, then by digest of the URL.
    all: OnceLock<Vec<HashMap<Digest, LastReading>>>,
    loading: Mutex<()>,
}

impl<'a> LastReadings<'a> {
    /// `urls`: how many are known; `all`: most of them are expected to be asked for. Then they are read now, on all threads.
    pub(super) fn new(known: Known<'a>, urls: u64, all: bool) -> Result<Self> {
        let few = if urls == 0 { u64::MAX } else { 4 + urls / 50 };
        let readings =
            Self { known, urls, asked: AtomicU64::new(0), few, all: OnceLock::new(), loading: Mutex::new(()) };
        if all && urls > 0 {
            let _ = readings.all.set(shards::all(known.shards, |shard| readings.of_shard(shard))?);
        }
        Ok(readings)
    }

    /// `None` if nothing is known of the URL. `digest`: of the URL.
    pub(super) fn of(&self, url: &str, digest: Digest) -> Result<Option<LastReading>> {
        if let Some(all) = self.all.get() {
            return Ok(all[shard_of_digest(digest, self.known.shards) as usize].get(&digest).copied());
        }
        if self.few == u64::MAX {
            return Ok(None);
        }
        if self.asked.fetch_add(1, Ordering::Relaxed) >= self.few {
            self.load()?;
            return self.of(url, digest);
        }
        let key = url_key(shard_of_digest(digest, self.known.shards), url);
        let head = self.known.before.get_many(Kind::Heads, &[key])?.pop().flatten();
        head.map(|value| Ok(LastReading::of(&Glance::at(&value)?))).transpose()
    }

    /// Reads all, on this thread alone: others wait for it.
    fn load(&self) -> Result<()> {
        let _one_at_a_time = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if self.all.get().is_none() {
            let all = (0..self.known.shards).map(|shard| self.of_shard(shard)).collect::<Result<_>>()?;
            let _ = self.all.set(all);
        }
        Ok(())
    }

    fn of_shard(&self, shard: u32) -> Result<HashMap<Digest, LastReading>> {
        let expected = self.urls / u64::from(self.known.shards);
        let mut readings = with_room(usize::try_from(expected).unwrap_or(0));
        self.known.scan(shard, |value| {
            let head = Glance::at(value)?;
            readings.insert(Digest::of(head.page.url.as_bytes()), LastReading::of(&head));
            Ok(())
        })?;
        Ok(readings)
    }
}

/// What ingest keeps in the index.
pub(crate) struct Heads;

impl Kept for Heads {
    const STAGE: StageId = StageId::Ingest;
    const FOLLOWS: StageId = StageId::Ingest;
    const KINDS: &'static [Kind] = &[Kind::Heads, Kind::Versions, Kind::Texts];

    fn load(store: &Store, index: &Index, base: &SnapshotId) -> Result<()> {
        let heads = store.partition(Head::NAME, base)?;
        let kept = follow::kept_snapshots(store)?;
        let mut versions: HashMap<Digest, StoredVersion> = HashMap::default();
        for row in store.partition(VersionRow::NAME, base)?.all_rows::<VersionRow>()? {
            // What lies in snapshots that were pruned is gone; of pages that live on, the base has it.
            if kept.contains(&row.page_snapshot) {
                versions.insert(row.archive_digest, StoredVersion { snapshot: row.page_snapshot, url: row.url });
            }
        }
        for shard in 0..store.shards() {
            for part in heads.part(shard).pieces() {
                for head in heads.read::<Head>(&part)?.into_iter().filter(|head| kept.contains(&head.page_snapshot)) {
                    let Looked { text, archive } = Looked::of(&head.page);
                    let Head { page, page_snapshot: snapshot, .. } = &head;
                    if text.tells() {
                        let key = text.key(Digest::of(page.url.as_bytes()));
                        index.put(Kind::Texts, key, page.url.clone().into_bytes())?;
                    }
                    if let Some(archive) = archive {
                        let version = || StoredVersion { snapshot: snapshot.clone(), url: page.url.clone() };
                        versions.entry(archive).or_insert_with(version);
                    }
                    index.put(Kind::Heads, url_key(shard, &page.url), encode(&head)?)?;
                }
            }
        }
        for (archive, version) in versions {
            index.put(Kind::Versions, archive.0.to_vec(), encode(&version)?)?;
        }
        Ok(())
    }

    fn replay(store: &Store, index: &Index, night: Night<'_>) -> Result<()> {
        let known = Known { before: &index.moment(), index, shards: store.shards() };
        let snapshot = &night.now.snapshot;
        let pages = store.partition(Page::NAME, snapshot)?;
        let mut versions = NewVersions::default();
        for shard in 0..store.shards() {
            let rows: Vec<PageFacts> = pages.shard(shard)?;
            let urls: Vec<&str> = rows.iter().map(|page| page.url.as_str()).collect();
            let before = known.heads_of(shard, &urls)?;
            let mut gone: Vec<Head> = if night.now.summary.whole {
                let there: HashSet<&str> = urls.iter().copied().collect();
                let mut heads = known.all_heads(shard)?;
                heads.retain(|head| head.alive && !there.contains(head.page.url.as_str()));
                heads
            } else {
                let mut urls = Vec::new();
                pages.visit::<UrlOnly<'_>>(&pages.deleted(shard), |row| urls.push(row.url.to_owned()))?;
                let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
                known.heads_of(shard, &urls)?.into_iter().flatten().collect()
            };
            let mut changes = Vec::new();
            for (page, before) in rows.into_iter().zip(before) {
                let before = before.map(|head| Looked::of(&head.page));
                changes.push((before, Head { page, page_snapshot: snapshot.clone(), alive: true }));
            }
            for head in gone.drain(..) {
                changes.push((Some(Looked::of(&head.page)), Head { alive: false, ..head }));
            }
            known.advance(shard, changes, &mut versions)?;
        }
        versions.take(index)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tables::ingest::ContentFacts;

    /// Numbers tell which fields are there, and what they hold.
    fn head(number: u64) -> Head {
        let bit = |at: u32| number >> at & 1 == 1;
        let text = |at: u32| bit(at).then(|| format!("{number}-{at}"));
        let digest = |at: u32| Digest::of(&[number.to_le_bytes(), u64::from(at).to_le_bytes()].concat());
        let snapshot = |at: u32| SnapshotId::new(format!("n{}", number % 7 + u64::from(at))).unwrap();
        let time = |at: u32| bit(at).then_some(Timestamp(i64::from_le_bytes(number.to_le_bytes()) >> at));
        let content = ContentFacts {
            title: text(0),
            charset: text(1),
            text_digest: digest(0),
            text_bytes: i64::from_le_bytes(number.to_le_bytes()),
            content_digest: digest(1),
            change_digest: digest(2),
            masked_text_digest: digest(3),
            canonical: text(2),
            structure_digest: bit(3).then(|| digest(4)),
            elements_digest: bit(4).then(|| digest(5)),
        };
        let page = PageFacts {
            content,
            url: format!("http://a.example/{number}"),
            content_type: text(5),
            fetched_at: time(6),
            last_modified: time(7),
            etag: text(8),
            text_snapshot: snapshot(0),
            content_snapshot: snapshot(1),
            payload_digest: bit(9).then(|| digest(6)),
            archive_digest: text(10),
            reading_digest: bit(11).then(|| digest(7)),
            ignore_digest: digest(8),
        };
        Head { page, page_snapshot: snapshot(2), alive: bit(12) }
    }

    proptest! {
        #[test]
        fn a_glance_at_a_head_sees_what_it_holds(number: u64) {
            let head = head(number);
            let value = encode(&head).unwrap();
            let glance = Glance::at(&value).unwrap();
            prop_assert_eq!(glance.page.url, &head.page.url);
            prop_assert_eq!(glance.page.archive_digest, head.page.archive_digest.as_deref());
            let reading = LastReading::of(&glance);
            prop_assert_eq!(reading.reading, head.page.reading_digest);
            prop_assert_eq!(reading.archive, Looked::of(&head.page).archive);
            prop_assert_eq!(reading.alive, head.alive);
            prop_assert!(Glance::at(&value[..value.len() - 1]).is_err(), "a cut value is damaged");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Whatever versions are looked for together, the first page that had one stands for it.
        #[test]
        fn the_first_page_stands_for_a_version(nights in prop::collection::vec(prop::collection::vec(0..6u8, 0..12), 1..6)) {
            let dir = tempfile::tempdir().unwrap();
            let index = Index::open(dir.path()).unwrap();
            let mut first: HashMap<u8, String> = HashMap::default();
            let snapshot = SnapshotId::new("n").unwrap();
            for (night, digests) in nights.iter().enumerate() {
                let mut versions = NewVersions::default();
                for (place, digest) in digests.iter().enumerate() {
                    let url = format!("http://a.example/{night}/{place}");
                    first.entry(*digest).or_insert_with(|| url.clone());
                    versions.all.push(([*digest; 16], StoredVersion { snapshot: snapshot.clone(), url }));
                }
                versions.take(&index).unwrap();
                prop_assert!(versions.all.is_empty());
            }
            for digest in 0..6 {
                let known = index.get(Kind::Versions, &[digest; 16]).unwrap();
                let known = known.map(|value| decode::<StoredVersion>(&value).unwrap().url);
                prop_assert_eq!(known.as_ref(), first.get(&digest));
            }
        }
    }
}
