//! What of a page is shown along with its units, besides the text around them.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::extract::{Along, Question};
use crate::model::maps::HashMap;
use crate::model::{Digest, SnapshotId};
use crate::store::Store;
use crate::store::texts::rows_of;
use crate::tables::ingest::{Page, PageTitle};
use crate::tables::record::Table as _;

/// What a page has beside its text.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    title: Option<String>,
}

impl From<PageTitle> for Beside {
    fn from(row: PageTitle) -> Self {
        Self { title: row.title }
    }
}

impl Beside {
    /// The part of a question that is the same for all units of the page.
    pub(super) fn of<'s>(&'s self, along: Along, url: &'s str) -> Question<'s> {
        let title = along.title.then(|| self.title.as_deref().unwrap_or_default());
        Question { title, url: along.url.then_some(url), ..Question::default() }
    }

    /// The digest of what an extractor is shown; `None` if it is shown nothing.
    pub(super) fn digest(&self, along: Along, url: &str) -> Option<Digest> {
        (along != Along::default()).then(|| self.of(along, url).identity())
    }
}

/// What pages of a shard have beside their texts, by URL. Each is named with the snapshot whose partition has its row.
pub(super) fn beside<'p>(
    store: &Store,
    shard: u32,
    pages: impl Iterator<Item = (&'p str, &'p SnapshotId)>,
) -> Result<HashMap<String, Beside>> {
    let mut by_snapshot: BTreeMap<&SnapshotId, Vec<&str>> = BTreeMap::new();
    pages.for_each(|(url, snapshot)| by_snapshot.entry(snapshot).or_default().push(url));
    let mut all = HashMap::default();
    for (snapshot, urls) in by_snapshot {
        for row in rows_of::<PageTitle>(store, shard, Page::NAME, snapshot, &urls)?.into_iter().flatten() {
            all.insert(row.url.clone(), Beside::from(row));
        }
    }
    Ok(all)
}
