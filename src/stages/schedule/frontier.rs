//! Links that were seen but never followed, where `[schedule] discover` asks for them.
//!
//! They are noted beside the tables, from what each snapshot brings: links of pages that changed come in, URLs that were
//! captured go out. No result depends on the note, so that one which does not fit the tables is simply made again, from
//! the links since the last base.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::config::schedule::Scope;
use crate::manifests::Ingested;
use crate::model::{Digest, SnapshotId, Timestamp};
use crate::stages::follow::url_key;
use crate::stages::link_target::page_of;
use crate::store::Store;
use crate::store::index::{Kind, Moment};
use crate::store::manifest::Manifest;
use crate::tables::ingest::{Capture, CaptureEvidence, LinkRow, TargetView};
use crate::tables::record::Table as _;
use crate::text::url::host;

const FILE: &str = "frontier.json";

/// Links that were never followed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Frontier {
    snapshot: SnapshotId,
    /// Identifies what was ingested with it.
    lineage: Digest,
    scope: Scope,
    pub(super) links: BTreeMap<String, Unfollowed>,
}

/// A URL that pages link to.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Unfollowed {
    /// Pages that were seen to link to it.
    pub(super) pages: u32,
    /// When the first of them was taken in.
    pub(super) seen: Timestamp,
    /// When it was last fetched in vain.
    pub(super) tried: Option<Timestamp>,
}

impl Frontier {
    /// After the last of `done`, from the note if that fits. `at`: the index as `stats` left it there.
    pub(super) fn at(store: &Store, done: &[Manifest<Ingested>], at: &Moment, scope: Scope) -> Result<Option<Self>> {
        let store = &store.unrestricted();
        let Some(now) = done.last() else { return Ok(None) };
        // A damaged note is as good as none.
        let noted = store.meta_file::<Self>(FILE).ok().flatten().filter(|noted| noted.scope == scope);
        let upto = |noted: &Self| {
            done.iter().rposition(|night| (&night.snapshot, night.lineage) == (&noted.snapshot, noted.lineage))
        };
        let (from, mut links) = match noted.as_ref().and_then(upto).zip(noted) {
            Some((upto, noted)) => (upto + 1, noted.links),
            None => (done.iter().rposition(|night| night.summary.base).unwrap_or(0), BTreeMap::new()),
        };
        for night in &done[from..] {
            add_links(store, night, scope, &mut links)?;
            note_tries(store, night, &mut links)?;
        }
        if from < done.len() {
            drop_followed(store, at, &mut links)?;
        }
        Ok(Some(Self { snapshot: now.snapshot.clone(), lineage: now.lineage, scope, links }))
    }

    pub(super) fn note(&self, store: &Store) -> Result<()> {
        Ok(store.unrestricted().write_meta_file(FILE, self)?)
    }
}

fn add_links(
    store: &Store,
    night: &Manifest<Ingested>,
    scope: Scope,
    links: &mut BTreeMap<String, Unfollowed>,
) -> Result<()> {
    let partition = store.partition(LinkRow::NAME, &night.snapshot)?;
    let (mut page, mut once) = (String::new(), BTreeSet::new());
    for piece in partition.all().pieces() {
        partition.visit::<TargetView<'_>>(&piece, |link| {
            if link.url != page {
                link.url.clone_into(&mut page);
                once.clear();
            }
            let target = page_of(link.target);
            let is_web = target.starts_with("http://") || target.starts_with("https://");
            let near = scope == Scope::Any || host(&target) == host(link.url);
            if is_web && near && *target != *link.url && once.insert(target.to_string()) {
                let unfollowed = Unfollowed { pages: 0, seen: night.time, tried: None };
                let known = links.entry(target.into_owned()).or_insert(unfollowed);
                known.pages = known.pages.saturating_add(1);
            }
        })?;
    }
    Ok(())
}

/// Notes what was fetched; what became a page is dropped afterwards.
fn note_tries(store: &Store, night: &Manifest<Ingested>, links: &mut BTreeMap<String, Unfollowed>) -> Result<()> {
    for capture in store.partition(Capture::NAME, &night.snapshot)?.all_rows::<CaptureEvidence>()? {
        if let Some(link) = links.get_mut(&capture.url) {
            link.tried = link.tried.max(capture.fetched_at);
        }
    }
    Ok(())
}

/// Drops what has been a page.
fn drop_followed(store: &Store, at: &Moment, links: &mut BTreeMap<String, Unfollowed>) -> Result<()> {
    let mut keys: Vec<(Vec<u8>, &String)> = links.keys().map(|url| (url_key(store.shard_of(url), url), url)).collect();
    keys.sort_unstable();
    let found = at.get_many(Kind::Evidence, &keys.iter().map(|(key, _)| key).collect::<Vec<_>>())?;
    let followed = keys.iter().zip(found).filter(|(_, found)| found.is_some());
    let followed: Vec<String> = followed.map(|((_, url), _)| (*url).clone()).collect();
    for url in followed {
        links.remove(&url);
    }
    Ok(())
}
