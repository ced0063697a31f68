//! The pages of a store, by their URLs.

use anyhow::{Result, bail};

use crate::deltas::query::Glob;
use crate::model::SnapshotId;
use crate::run::inventory::known_snapshots;
use crate::store::Store;
use crate::tables::ingest::PageVersion;

/// Which URLs are asked for.
pub(crate) enum Wanted {
    /// All of them match a glob.
    Like(Glob),
    /// They have these words in them, whatever their case.
    With(String),
}

impl Wanted {
    /// A pattern with `*` is a glob for the whole URL; any other text is looked for in it, also `?`, which URLs have too.
    /// Says what is wrong with a glob.
    pub(crate) fn parse(pattern: &str) -> Result<Self, String> {
        match pattern.contains('*') {
            true => Glob::new(pattern).map(Self::Like),
            false => Ok(Self::With(pattern.to_lowercase())),
        }
    }

    pub(crate) fn has(&self, url: &str) -> bool {
        match self {
            Self::Like(glob) => glob.is_match(url),
            Self::With(words) => url.to_lowercase().contains(words.as_str()),
        }
    }
}

/// The living pages at a snapshot, or at the newest one, sorted by URL.
pub(crate) fn pages(store: &Store, at: Option<&SnapshotId>, wanted: Option<&Wanted>) -> Result<Vec<PageVersion>> {
    let at = match at {
        Some(id) => {
            known_snapshots(store, [id])?;
            id.clone()
        }
        None => match store.all_done()?.last() {
            Some(done) => done.snapshot.id.clone(),
            None => bail!("no snapshot is ingested yet in {}", store.root().display()),
        },
    };
    let layers = store.pages_at(&at)?;
    let mut pages = Vec::new();
    for shard in 0..store.shards() {
        let of_shard: Vec<PageVersion> = layers.shard(store, shard)?;
        pages.extend(of_shard.into_iter().filter(|page| wanted.is_none_or(|wanted| wanted.has(&page.url))));
    }
    pages.sort_by(|a, b| a.url.cmp(&b.url));
    Ok(pages)
}
