//! What is known of the updates of each URL, as the index keeps it from night to night and a base stores it.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::model::{Digest, Timestamp};
use crate::stages::follow::{decode, encode, shard_key, url_key, url_of};
#[cfg(any(test, feature = "lab"))]
use crate::stats::{Evidence, Observation};
use crate::stats::{Presence, UrlState};
use crate::store::Store;
use crate::store::index::{Index, Kind, Moment};
use crate::tables::stats::EvidenceRow;

/// What is known of a URL.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct KnownUrl {
    /// Digest of the last good text, with nothing masked.
    pub(super) text_digest: Option<Digest>,
    pub(super) state: UrlState,
    pub(super) presence: Presence,
    /// What is known of it if its page has moved here, as long as that cannot be told.
    pub(super) moving: Option<Box<Moving>>,
}

/// A page that came with the text of another URL, which has neither gone nor changed since. Pages move in two steps: the new
/// place is there before the old one goes, and a crawl that polls sees the two at different times.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Moving {
    pub(super) from: String,
    /// How many updates were known of that URL when the page came.
    pub(super) updates: u64,
    pub(super) since: Timestamp,
    /// The history of that URL up to then, and of this one since: exactly what would be known had the old place gone at once.
    pub(super) known: KnownUrl,
}

/// How a base stores what is known of a URL. Most have no third part.
#[derive(Deserialize)]
struct StoredState {
    state: UrlState,
    presence: Presence,
    #[serde(default)]
    moving: Option<Box<Moving>>,
}

pub(super) type States = BTreeMap<String, KnownUrl>;

impl KnownUrl {
    /// From its row and, the other way round, as its row: the only place that knows how a base stores it.
    pub(super) fn from_row(row: EvidenceRow) -> Result<(String, Self)> {
        let StoredState { state, presence, moving } = serde_json::from_str(&row.state)
            .with_context(|| format!("what is known of the updates of {} is damaged", row.url))?;
        Ok((row.url, Self { text_digest: row.text_digest, state, presence, moving }))
    }

    fn to_row(&self, url: &str) -> Result<EvidenceRow> {
        let state = match &self.moving {
            None => serde_json::to_string(&(&self.state, &self.presence))?,
            Some(moving) => serde_json::to_string(&(&self.state, &self.presence, moving))?,
        };
        Ok(EvidenceRow { url: url.to_owned(), text_digest: self.text_digest, state })
    }
}

/// What is known of a URL as bases and the index store it, for the fuzzer.
#[cfg(any(test, feature = "lab"))]
pub(crate) fn state_samples() -> Vec<Vec<u8>> {
    let mut known = KnownUrl::default();
    for day in 0..4 {
        known.state.observe(&Observation {
            fetched_at: Timestamp(day * 86_400 * Timestamp::SECOND),
            evidence: Evidence::Text(Digest::of(&day.to_le_bytes())),
            last_modified: None,
            new_text_share: Some(0.5),
            signal: Some(day % 2 == 0),
        });
    }
    let moving = Moving { from: "http://a/".into(), updates: 3, since: Timestamp(0), known: known.clone() };
    let moved = KnownUrl { moving: Some(Box::new(moving)), ..known.clone() };
    let samples = [&known, &moved].map(|known| [known.to_row("u").map(|row| row.state.into_bytes()), encode(known)]);
    samples.into_iter().flatten().filter_map(Result::ok).collect()
}

/// Reads what is known of a URL, as JSON and as the index has it. What can be read must be written again the same.
#[cfg(any(test, feature = "lab"))]
pub(crate) fn read_state(bytes: &[u8]) -> Result<u64, String> {
    let row = |state: String| EvidenceRow { url: "u".to_owned(), text_digest: None, state };
    let stored = KnownUrl::from_row(row(String::from_utf8_lossy(bytes).into_owned())).ok().map(|(_, known)| known);
    let mut taken = 0;
    for known in stored.into_iter().chain(decode::<KnownUrl>(bytes).ok()) {
        taken += 1;
        let written = |known: &KnownUrl| encode(known).map_err(|error| error.to_string());
        let again: KnownUrl = decode(&written(&known)?).map_err(|error| error.to_string())?;
        if written(&again)? != written(&known)? {
            return Err("what is known is not what is written of it".to_owned());
        }
    }
    Ok(taken)
}

pub(super) fn put(index: &Index, shard: u32, states: &States) -> Result<()> {
    for (url, known) in states {
        index.put(Kind::Evidence, url_key(shard, url), encode(known)?)?;
    }
    Ok(())
}

/// What is known of some URLs of a shard, in the order asked for.
pub(super) fn known_urls(at: &Moment, shard: u32, urls: &[&str]) -> Result<Vec<Option<KnownUrl>>> {
    let keys: Vec<Vec<u8>> = urls.iter().map(|url| url_key(shard, url)).collect();
    at.get_many(Kind::Evidence, &keys)?.into_iter().map(|value| value.as_deref().map(decode).transpose()).collect()
}

/// What is known of the updates of some URLs, by URL.
pub(in crate::stages) fn evidence_of<'u>(
    store: &Store,
    at: &Moment,
    urls: impl Iterator<Item = &'u str>,
) -> Result<Vec<(String, UrlState)>> {
    let mut by_shard: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for url in urls {
        by_shard.entry(store.shard_of(url)).or_default().push(url);
    }
    let mut found = Vec::new();
    for (shard, urls) in by_shard {
        let known = known_urls(at, shard, &urls)?;
        found.extend(urls.into_iter().zip(known).filter_map(|(url, known)| Some((url.to_owned(), known?.state))));
    }
    Ok(found)
}

/// What is known of the updates of all URLs of a shard whose source is wanted, by URL.
pub(in crate::stages) fn all_evidence(
    at: &Moment,
    shard: u32,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<(String, UrlState)>> {
    let states = scan_states(at, shard, wanted)?;
    Ok(states.into_iter().map(|(url, known)| (url, known.state)).collect())
}

pub(super) fn scan_states(at: &Moment, shard: u32, wanted: impl Fn(&str) -> bool) -> Result<States> {
    let mut states = Vec::new();
    let mut damaged = None;
    at.scan(Kind::Evidence, &shard_key(shard), &mut |key, value| {
        if let Some(url) = url_of(key).ok().filter(|url| wanted(url)) {
            match decode(value) {
                Ok(known) => states.push((url.to_owned(), known)),
                Err(error) => damaged = Some(error),
            }
        }
        Ok(damaged.is_none())
    })?;
    damaged.map_or_else(|| Ok(states.into_iter().collect()), Err)
}

/// All that is known of the updates of a shard's URLs, as a base stores it.
pub(in crate::stages) fn evidence_rows(index: &Index, shard: u32) -> Result<Vec<EvidenceRow>> {
    evidence_at(&index.moment(), shard)
}

pub(super) fn evidence_at(at: &Moment, shard: u32) -> Result<Vec<EvidenceRow>> {
    scan_states(at, shard, |_| true)?.iter().map(|(url, known)| known.to_row(url)).collect()
}
