//! The pages that are looked at: drawn at random from strata, by how many mentions the present extractor has on them.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Result, bail};

use super::Trying;
use crate::model::{Digest, DigestBuilder, SnapshotId};
use crate::recycle::shares::{allocate, strata};
use crate::recycle::trial::Gold;
use crate::stages::extract::shown::Beside;
use crate::stages::extract::state::extracted_at;
use crate::store::Store;
use crate::store::texts::ShardReader;
use crate::tables::ingest::{PagePointer, PageTitle, TitledText};

/// A page that is looked at.
pub(super) struct SampledPage {
    pub(super) url: String,
    pub(super) text: String,
    pub(super) beside: Beside,
    pub(super) stratum: usize,
}

/// Some pages of a snapshot, in an order that has nothing to do with them.
pub(super) struct Sample {
    pub(super) pages: Vec<SampledPage>,
    /// Pages of each stratum.
    pub(super) sizes: Vec<u64>,
    /// How many there are to draw from.
    pub(super) of: u64,
    /// All pages of the snapshot, and their bytes.
    pub(super) all: u64,
    pub(super) bytes: u64,
}

impl Sample {
    /// With gold, of the pages that it names.
    pub(super) fn draw(
        store: &Store,
        snapshot: &SnapshotId,
        trying: &Trying<'_>,
        gold: Option<&HashMap<String, Vec<Gold>>>,
    ) -> Result<Self> {
        let layers = store.pages_at(snapshot)?;
        let mut listed: Vec<(Digest, u32, PagePointer, u64)> = Vec::new();
        let (mut all, mut bytes) = (0, 0);
        for shard in 0..store.shards() {
            let rows = extracted_at(store, trying.extractor, snapshot, shard)?;
            let mentions: HashMap<&str, i64> = rows.iter().map(|row| (&*row.url, row.mentions)).collect();
            for page in layers.shard::<PagePointer>(store, shard)? {
                all += 1;
                bytes += u64::try_from(page.text_bytes).unwrap_or(0);
                if gold.is_some_and(|gold| !gold.contains_key(&page.url)) {
                    continue;
                }
                let mut rank = DigestBuilder::new();
                rank.number(trying.seed).field(page.url.as_bytes());
                let count = mentions.get(page.url.as_str()).map_or(0, |count| u64::try_from(*count).unwrap_or(0));
                listed.push((rank.finish(), shard, page, count));
            }
        }
        if listed.is_empty() {
            bail!(
                "no page of snapshot {snapshot} to look at{}",
                if gold.is_some() { ": the gold file names none of them" } else { "" }
            );
        }
        listed.sort_by_key(|(rank, ..)| *rank);
        let counts: Vec<u64> = listed.iter().map(|(.., count)| *count).collect();
        let of = strata(&counts);
        let sum = |of_page: &dyn Fn(usize) -> u64| {
            let mut sums = vec![0; STRATA];
            of.iter().enumerate().for_each(|(i, &stratum)| sums[stratum] += of_page(i));
            sums
        };
        let sizes: Vec<u64> = sum(&|_| 1);
        let mut left = allocate(&sizes, &sum(&|i| counts[i]), trying.pages);
        let mut chosen = Vec::new();
        for (i, (_, shard, page, _)) in listed.iter().enumerate() {
            if left[of[i]] > 0 {
                left[of[i]] -= 1;
                chosen.push((*shard, page, of[i]));
            }
        }
        let pages = load(store, snapshot, &chosen)?;
        Ok(Self { pages, sizes, of: listed.len() as u64, all, bytes })
    }
}

/// Of [`strata`].
const STRATA: usize = 4;

/// Reads the chosen pages, given with shard and stratum, in their order.
fn load(store: &Store, snapshot: &SnapshotId, chosen: &[(u32, &PagePointer, usize)]) -> Result<Vec<SampledPage>> {
    let layers = store.pages_at(snapshot)?;
    let mut by_shard: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    chosen.iter().enumerate().for_each(|(i, (shard, ..))| by_shard.entry(*shard).or_default().push(i));
    let mut pages: Vec<Option<SampledPage>> = chosen.iter().map(|_| None).collect();
    for (shard, places) in by_shard {
        let titles: Vec<TitledText> = layers.shard(store, shard)?;
        let titles: HashMap<String, Option<String>> = titles.into_iter().map(|row| (row.url, row.title)).collect();
        let mut reader = ShardReader::new(store, shard);
        for i in places {
            let (_, page, stratum) = chosen[i];
            let url = page.url.clone();
            let text = reader.texts(&[(&url, &page.text_snapshot)])?.pop().unwrap_or_default();
            let beside = Beside::from(PageTitle { url: url.clone(), title: titles.get(&url).cloned().flatten() });
            pages[i] = Some(SampledPage { url, text, beside, stratum });
        }
    }
    Ok(pages.into_iter().flatten().collect())
}
