//! What of the last nights a person should read first.
//!
//! Only pages that changed are read: their rows are found by URL, and their texts by pointer.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use anyhow::{Result, bail};
use rayon::prelude::*;

use crate::config::Pipeline;
use crate::deltas::segments::Comparison;
use crate::deltas::triage::{Candidate, Edit, TriageChange, edits, triage};
use crate::matching::{MatcherKind, Scratch};
use crate::model::{MentionChange, SnapshotId};
use crate::report::triage::Triaged;
use crate::run::inventory::known_snapshots;
use crate::stages::delta::links_in::links_in;
use crate::stages::matching::DEFAULT_MIN_REGION;
use crate::store::Store;
use crate::store::batches::batches;
use crate::store::state::Layers;
use crate::store::texts::ShardReader;
use crate::tables::delta::{PageDelta, RegionDelta};
use crate::tables::extract::MentionDelta;
use crate::tables::ingest::PageVersion;
use crate::tables::record::Table as _;
use crate::text::mask::masked;

/// Bytes of a line that says something.
const SENTENCE: usize = 40;
/// Bytes of a page that came or went that are shown.
const SHOWN_OF_PAGE: usize = 600;

/// What changed after `since` up to the newest snapshot that was compared; without `since`, in that snapshot. Of more than
/// `most` changed pages, those with most new text are looked at.
pub(crate) fn changes(pipeline: &Pipeline, store: &Store, since: Option<&SnapshotId>, most: usize) -> Result<Triaged> {
    known_snapshots(store, since)?;
    let done = store.all_done()?;
    let compared: Vec<&SnapshotId> =
        done.iter().filter(|done| done.table(PageDelta::NAME).is_some()).map(|done| &done.snapshot.id).collect();
    let Some((&to, before)) = compared.split_last() else {
        bail!("no snapshot has been compared yet; run `ratoon run {}` first", pipeline.path.display())
    };
    let since = match since {
        Some(since) => Some(since),
        None => before.last().copied(),
    };
    let Some(since) = since else { return Ok(Triaged::nothing_before(to.clone())) };
    let Some(at) = compared.iter().position(|id| *id == since) else { bail!("snapshot {since} was not compared") };
    let mut look = Look {
        pipeline,
        store,
        since,
        to,
        nights: compared[at + 1..].to_vec(),
        moves: HashMap::new(),
        left: HashSet::new(),
    };
    let mut urls = look.changed()?;
    let changed = urls.len();
    urls.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    urls.truncate(most);
    let looked = urls.len();
    let candidates = look.candidates(urls.into_iter().map(|(url, _)| url).collect())?;
    Ok(Triaged { since: Some(since.clone()), to: to.clone(), changed, looked, rows: triage(candidates) })
}

struct Look<'a> {
    pipeline: &'a Pipeline,
    store: &'a Store,
    since: &'a SnapshotId,
    to: &'a SnapshotId,
    /// After `since`, oldest first.
    nights: Vec<&'a SnapshotId>,
    /// Pages that came from another URL, and where from; and the pages that went there.
    moves: HashMap<String, String>,
    left: HashSet<String>,
}

/// Mentions of a page that came or went, by text: how many more there are.
type Mentions = BTreeMap<String, i64>;

/// A page before and now.
struct Pair {
    url: String,
    old: Option<PageVersion>,
    new: Option<PageVersion>,
}

impl Look<'_> {
    /// The pages that changed, with how much text came.
    fn changed(&mut self) -> Result<Vec<(String, i64)>> {
        let mut urls: BTreeMap<String, i64> = BTreeMap::new();
        for night in &self.nights {
            for row in self.store.partition(PageDelta::NAME, night)?.all_rows::<PageDelta>()? {
                if let Some(from) = &row.moved_from {
                    self.moves.insert(row.url.to_string(), from.clone());
                    self.left.insert(from.clone());
                }
                if row.change.change().is_some() {
                    *urls.entry(row.url.to_string()).or_default() += row.new_text_bytes.unwrap_or(0);
                }
            }
        }
        Ok(urls.into_iter().collect())
    }

    fn candidates(&self, urls: Vec<String>) -> Result<Vec<Candidate>> {
        let mentions = self.mentions()?;
        let returned = self.returned()?;
        let mut by_shard: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for url in urls {
            by_shard.entry(self.store.shard_of(&url)).or_default().push(url);
        }
        let layers = [self.store.pages_at(self.since)?, self.store.pages_at(self.to)?];
        let none = Mentions::new();
        let of_shard = |(shard, urls): (u32, Vec<String>)| -> Result<Vec<Candidate>> {
            let mut found = Vec::new();
            let pairs = self.pairs(&layers, shard, urls)?;
            let (mut reader, mut scratch) = (ShardReader::new(self.store, shard), Scratch::new());
            let bytes =
                |pair: &Pair| [&pair.old, &pair.new].into_iter().flatten().map(|page| page.text_bytes).sum::<i64>();
            for batch in batches(&pairs, bytes) {
                let texts = texts(&mut reader, batch)?;
                for (pair, (old, new)) in batch.iter().zip(texts) {
                    let mentions = mentions.get(&pair.url).unwrap_or(&none);
                    let page = ChangedPage { pair, old, new, mentions, returned: returned.contains(&pair.url) };
                    found.extend(self.page(&page, &mut scratch));
                }
            }
            Ok(found)
        };
        let found: Result<Vec<Vec<Candidate>>> = by_shard.into_par_iter().map(of_shard).collect();
        let mut found: Vec<Candidate> = found?.into_iter().flatten().collect();
        let urls: BTreeSet<&str> = found.iter().map(|candidate| &*candidate.url).collect();
        let urls: Vec<&str> = urls.into_iter().collect();
        let counts = links_in(self.store, self.to, &urls)?;
        let counts: HashMap<String, u64> = urls.iter().map(ToString::to_string).zip(counts).collect();
        for candidate in &mut found {
            candidate.links_in = counts.get(&*candidate.url).copied().unwrap_or(0);
        }
        Ok(found)
    }

    /// Both rows of each page; those that are the same again are left out.
    fn pairs(&self, layers: &[Layers; 2], shard: u32, mut urls: Vec<String>) -> Result<Vec<Pair>> {
        urls.sort_unstable();
        let asked: Vec<&str> = urls.iter().map(String::as_str).collect();
        let [old, new] = layers.each_ref().map(|layers| layers.of_urls::<PageVersion>(self.store, shard, &asked));
        let pair = |((url, old), new): ((&String, _), _)| {
            let row = |placed: Option<crate::store::state::Placed<PageVersion>>| placed.map(|placed| placed.row);
            Pair { url: url.clone(), old: row(old), new: row(new) }
        };
        let pairs = urls.iter().zip(old?).zip(new?).map(pair);
        let differs = |pair: &Pair| match (&pair.old, &pair.new) {
            (Some(old), Some(new)) => old.content_digest != new.content_digest,
            (None, None) => false,
            _ => true,
        };
        Ok(pairs.filter(differs).collect())
    }

    /// What came and went by page and text, over all nights: what came and went again is nothing.
    fn mentions(&self) -> Result<HashMap<String, Mentions>> {
        let mut mentions: HashMap<String, Mentions> = HashMap::new();
        for night in &self.nights {
            for row in self.store.partition(MentionDelta::NAME, night)?.all_rows::<MentionDelta>()? {
                let more = if row.change == MentionChange::Added { 1 } else { -1 };
                *mentions.entry(row.url.to_string()).or_default().entry(row.text).or_default() += more;
            }
        }
        Ok(mentions)
    }

    /// Pages of which all that came in the newest night stood there before.
    fn returned(&self) -> Result<HashSet<String>> {
        let mut came: HashMap<Arc<str>, bool> = HashMap::new();
        for row in self.store.partition(RegionDelta::NAME, self.to)?.all_rows::<RegionDelta>()? {
            if let Some(first) = &row.first_seen {
                let returned = came.entry(row.url).or_insert(true);
                *returned &= first != self.to;
            }
        }
        Ok(came.into_iter().filter(|(_, returned)| *returned).map(|(url, _)| url.to_string()).collect())
    }

    fn page(&self, page: &ChangedPage<'_>, scratch: &mut Scratch) -> Vec<Candidate> {
        let ChangedPage { pair, old, new, mentions, .. } = page;
        let whole = |change, before: &str, after: &str, together| {
            let mentions = mentions.values().map(|more| more.unsigned_abs()).sum();
            let before = beginning(before);
            Candidate { together, mentions, ..page.candidate(change, before, beginning(after)) }
        };
        match (&pair.old, &pair.new) {
            (None, Some(_)) => match self.moves.get(&pair.url) {
                Some(from) => {
                    let together = format!("{} {}", folder(from), folder(&pair.url));
                    vec![Candidate { mentions: 0, ..whole(TriageChange::Moved, from, &pair.url, Some(together)) }]
                }
                None => vec![whole(TriageChange::Added, "", new, None)],
            },
            (Some(_), None) => {
                // Told with the page that it became.
                if self.left.contains(&pair.url) {
                    return Vec::new();
                }
                vec![whole(TriageChange::Deleted, old, "", Some(folder(&pair.url).to_owned()))]
            }
            _ => self.edited(page, scratch),
        }
    }

    fn edited(&self, page: &ChangedPage<'_>, scratch: &mut Scratch) -> Vec<Candidate> {
        let (old, new) = (page.old.as_str(), page.new.as_str());
        let mut found = Vec::new();
        let title =
            |version: &Option<PageVersion>| version.as_ref().and_then(|page| page.title.clone()).unwrap_or_default();
        let (before, after) = (title(&page.pair.old), title(&page.pair.new));
        let mask = self.pipeline.corpus.mask();
        if mask.apply(&before) != mask.apply(&after) {
            found.push(page.candidate(TriageChange::Modified, before, after));
        }
        let mut regions = Vec::new();
        MatcherKind::Anchor.regions(old, new, DEFAULT_MIN_REGION, scratch, &mut regions);
        let len = |text: &str| u32::try_from(text.len()).unwrap_or(u32::MAX);
        let comparison = Comparison::new(len(old), len(new), &regions).by_words(old, new);
        // What the `ignore` rules match is no change.
        let ignored = (mask.ranges(old), mask.ranges(new));
        let counts =
            |edit: &Edit| masked(old, edit.old.clone(), &ignored.0) != masked(new, edit.new.clone(), &ignored.1);
        for edit in edits(old, new, &comparison, counts) {
            let mentions = page.mentions_in(&edit);
            let (before, after) = (old[edit.old].to_owned(), new[edit.new].to_owned());
            found.push(Candidate { mentions, ..page.candidate(TriageChange::Modified, before, after) });
        }
        found
    }
}

struct ChangedPage<'a> {
    pair: &'a Pair,
    old: String,
    new: String,
    mentions: &'a Mentions,
    returned: bool,
}

impl ChangedPage<'_> {
    fn candidate(&self, change: TriageChange, before: String, after: String) -> Candidate {
        Candidate {
            url: self.pair.url.as_str().into(),
            change,
            before,
            after,
            together: None,
            mentions: 0,
            links_in: 0,
            returned: self.returned,
        }
    }

    /// Mentions that came or went where the edit is.
    fn mentions_in(&self, edit: &Edit) -> u64 {
        let meets = |text: &str, within: &std::ops::Range<usize>, mention: &str| {
            let from = floor(text, within.start.saturating_sub(mention.len()));
            let to = floor(text, (within.end + mention.len()).min(text.len()));
            let mut found = text[from..to].match_indices(mention).map(|(at, found)| from + at..from + at + found.len());
            found.any(|place| place.start < within.end && within.start < place.end)
        };
        let counts = |(text, more): (&String, &i64)| match more {
            1.. => meets(&self.new, &edit.new, text),
            0 => false,
            _ => meets(&self.old, &edit.old, text),
        };
        self.mentions.iter().filter(|mention| !mention.0.is_empty() && counts(*mention)).count() as u64
    }
}

/// The texts of pages, before and now; empty where there is no page.
fn texts(reader: &mut ShardReader<'_>, pairs: &[Pair]) -> Result<Vec<(String, String)>> {
    let mut side = |of: fn(&Pair) -> &Option<PageVersion>| -> Result<Vec<String>> {
        let wanted: Vec<_> = pairs
            .iter()
            .filter_map(|pair| of(pair).as_ref())
            .map(|page| (page.url.as_str(), &page.text_snapshot))
            .collect();
        let mut found = reader.texts(&wanted)?.into_iter();
        Ok(pairs.iter().map(|pair| of(pair).as_ref().and_then(|_| found.next()).unwrap_or_default()).collect())
    };
    let (old, new) = (side(|pair| &pair.old)?, side(|pair| &pair.new)?);
    Ok(old.into_iter().zip(new).collect())
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// What a page begins with, without the short lines before, which are mostly its navigation.
fn beginning(text: &str) -> String {
    let line = text.split_inclusive('\n').position(|line| line.len() >= SENTENCE).unwrap_or(0);
    let skipped: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let text = &text[skipped..];
    text[..floor(text, text.len().min(SHOWN_OF_PAGE))].to_owned()
}

/// A URL up to its last slash.
fn folder(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.rfind('/').map_or(path, |at| &path[..=at])
}
