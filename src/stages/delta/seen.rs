//! When texts were first seen on their URLs ([`crate::deltas::first_seen`]), for the URLs of a shard that changed.

use anyhow::{Context as _, Result};

use super::changed::{ChangedPage, OldNew, texts};
use crate::deltas::first_seen::FirstSeen;
use crate::model::maps::HashMap;
use crate::model::{Digest, SnapshotId, Span};
use crate::store::batches::batches;
use crate::store::texts::ShardReader;
use crate::tables::delta::SeenRow;

/// When the texts of a URL were first seen.
struct SeenUrl {
    /// Begins with the snapshot in which the URL was first seen.
    snapshots: Vec<SnapshotId>,
    /// Its snapshots are numbers into the list.
    pieces: FirstSeen<u32>,
}

/// The same for the URLs of a shard that changed.
#[derive(Default)]
pub(super) struct SeenShard {
    urls: HashMap<String, SeenUrl>,
}

impl SeenShard {
    /// From the rows of the URLs.
    pub(super) fn new(rows: impl IntoIterator<Item = SeenRow>) -> Result<Self> {
        let mut urls = HashMap::default();
        for row in rows {
            let damaged = || format!("what is known of the texts of {} is damaged", row.url);
            if row.snapshots.is_empty() || row.pieces.len() != 2 * row.since.len() {
                anyhow::bail!(damaged());
            }
            let mut entries = Vec::with_capacity(row.since.len());
            for (halves, since) in row.pieces.chunks_exact(2).zip(&row.since) {
                let since = u32::try_from(*since).ok().filter(|i| (*i as usize) < row.snapshots.len());
                entries.push((joined(halves[0], halves[1]), since.with_context(damaged)?));
            }
            let pieces = FirstSeen { origin: 0, entries };
            urls.insert(row.url, SeenUrl { snapshots: row.snapshots, pieces });
        }
        Ok(Self { urls })
    }

    /// Takes in that a page's text went from `old` to `new` in snapshot `now`; `None`: there is no page.
    pub(super) fn observe(&mut self, url: &str, old: Option<&str>, new: Option<&str>, now: &SnapshotId) {
        if let Some(known) = self.urls.get_mut(url) {
            let at = known.snapshots.iter().position(|id| id == now).unwrap_or_else(|| {
                known.snapshots.push(now.clone());
                known.snapshots.len() - 1
            });
            let now = u32::try_from(at).expect("fewer snapshots than 2^32");
            known.pieces.observe(old.unwrap_or_default(), new.unwrap_or_default(), &now);
        } else if new.is_some() {
            // The URL is new, so its whole text is first seen now and needs no entries.
            let first = SeenUrl { snapshots: vec![now.clone()], pieces: FirstSeen::new(0) };
            self.urls.insert(url.to_owned(), first);
        }
    }

    /// When parts of a page's present text were first seen; `None` if its URL is not known.
    pub(super) fn sightings(&self, url: &str, text: &str, spans: &[Span]) -> Option<Vec<(Span, SnapshotId)>> {
        let known = self.urls.get(url)?;
        let sightings = known.pieces.sightings(text, spans).into_iter();
        Some(sightings.map(|seen| (seen.span, known.snapshots[seen.first_seen as usize].clone())).collect())
    }

    /// Rows by URL.
    pub(super) fn into_rows(self) -> Vec<SeenRow> {
        let mut rows: Vec<SeenRow> = self.urls.into_iter().map(|(url, known)| known.into_row(url)).collect();
        rows.sort_unstable_by(|a, b| a.url.cmp(&b.url));
        rows
    }

    /// Takes in the changes of a snapshot, with the texts that they need.
    pub(super) fn advance(
        &mut self,
        reader: &mut ShardReader<'_>,
        mut changes: Vec<ChangedPage>,
        now: &SnapshotId,
    ) -> Result<()> {
        changes.retain(ChangedPage::text_differs);
        // The text of a URL that is seen for the first time need not be read: all of it is of that snapshot.
        changes.retain(|change| {
            let first = change.old_page().is_none() && !self.urls.contains_key(change.url());
            if first {
                self.observe(change.url(), None, Some(""), now);
            }
            !first
        });
        for batch in batches(&changes, ChangedPage::text_bytes) {
            for (change, OldNew { old, new }) in batch.iter().zip(texts(reader, &batch.iter().collect::<Vec<_>>())?) {
                self.observe(change.url(), old.as_deref(), new.as_deref(), now);
            }
        }
        Ok(())
    }
}

impl SeenUrl {
    fn into_row(self, url: String) -> SeenRow {
        let Self { snapshots, pieces: known } = self;
        // The row names only the snapshots in which something was first seen, numbered in the order of the pieces.
        let mut numbers: Vec<Option<i64>> = vec![None; snapshots.len()];
        numbers[0] = Some(0);
        let mut named = vec![snapshots[0].clone()];
        let mut since = Vec::with_capacity(known.entries.len());
        let mut pieces = Vec::with_capacity(2 * known.entries.len());
        for (piece, first) in known.entries {
            let first = first as usize;
            let number = *numbers[first].get_or_insert_with(|| {
                named.push(snapshots[first].clone());
                i64::try_from(named.len() - 1).unwrap_or(i64::MAX)
            });
            since.push(number);
            pieces.extend(halves(piece));
        }
        SeenRow { url, snapshots: named, pieces, since }
    }
}

fn halves(digest: Digest) -> [i64; 2] {
    let half = |range: std::ops::Range<usize>| {
        i64::from_le_bytes(digest.0[range].try_into().expect("half a digest has 8 bytes"))
    };
    [half(0..8), half(8..16)]
}

fn joined(low: i64, high: i64) -> Digest {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    bytes[8..].copy_from_slice(&high.to_le_bytes());
    Digest(bytes)
}
