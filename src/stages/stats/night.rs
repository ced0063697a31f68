//! The captures of a night: what they show of the updates of their URLs, and which pages went or moved.

use std::collections::BTreeMap;

use anyhow::Result;

use super::known::{KnownUrl, Moving, States, known_urls, scan_states};
use super::signals::Signals;
use crate::captures::Answer;
use crate::manifests::Ingested;
use crate::model::maps::{HashMap, HashSet};
use crate::model::{Digest, Standing, Timestamp};
use crate::schedule::SourceBy;
use crate::stats::{Evidence, Observation, Presence, Update};
use crate::store::Store;
use crate::store::index::Moment;
use crate::store::manifest::Manifest;
use crate::store::parquet::Partition;
use crate::store::shard_of;
use crate::tables::delta::{PageDelta, PageNewText};
use crate::tables::ingest::{Capture, CaptureEvidence, Page, PageEvidence, PageMove};
use crate::tables::record::Table as _;
use crate::tables::stats::UpdateRow;

/// What stands at two places for so long is a copy: a page that moves leaves its old place within a month.
const MOVING_US: i64 = 30 * 86_400 * Timestamp::SECOND;

/// What the captures of a shard show.
pub(super) struct SeenCaptures {
    pub(super) updates: Vec<UpdateRow>,
    /// What is known now of the URLs that were captured.
    pub(super) states: States,
    /// Those of them whose captures say something about their text.
    pub(super) news: HashSet<String>,
    /// Those that took over the history of another URL after they had one of their own.
    pub(super) moved: Vec<String>,
}

/// The captures of one snapshot, and what `ingest` and `delta` found out about them.
pub(super) struct NightCaptures<'a> {
    captures: Partition,
    pages: Partition,
    /// What is new on changed pages; `None` of a first snapshot, where all is.
    deltas: Option<Partition>,
    /// Identifies the ignore rules behind masked digests.
    rules: Digest,
    time: Timestamp,
    shards: u32,
    /// `pages` has all living pages.
    whole: bool,
    /// Whether any page went.
    went: bool,
    /// Pages that stood at another URL before, by that URL.
    moved: BTreeMap<String, String>,
    /// Whether the places that they stood at have no page any more.
    left: HashMap<String, bool>,
    signals: Signals<'a>,
}

impl<'a> NightCaptures<'a> {
    /// `before`: the snapshot before, if there is one.
    pub(super) fn open(
        store: &Store,
        ingested: &Manifest<Ingested>,
        before: Option<&Manifest<Ingested>>,
        signals: Signals<'a>,
    ) -> Result<Self> {
        let snapshot = &ingested.snapshot;
        let open = |table: &str| store.partition(table, snapshot);
        let pages = open(Page::NAME)?;
        let mut moved = BTreeMap::new();
        if ingested.summary.changes.moved > 0 {
            let rows = pages.all_rows::<PageMove>()?.into_iter();
            moved.extend(rows.filter_map(|page| Some((page.moved_from?, page.url))));
        }
        let whole = ingested.summary.whole;
        Ok(Self {
            time: ingested.time,
            shards: store.shards(),
            whole,
            left: left_places(store.shards(), &pages, whole, moved.keys())?,
            went: ingested.summary.changes.went > 0,
            moved,
            signals,
            captures: open(Capture::NAME)?,
            pages,
            deltas: before.map(|_| open(PageDelta::NAME)).transpose()?,
            rules: ingested.summary.ignore,
        })
    }

    /// Takes in the captures of a shard. `before`: the index as the snapshot before left it.
    pub(super) fn observe(&self, before: &Moment, shard: u32, by: &SourceBy) -> Result<SeenCaptures> {
        let captures = self.captures.shard::<CaptureEvidence>(shard)?;
        // By URL, as the captures are.
        let pages = self.pages.shard::<PageEvidence>(shard)?;
        let mut next_page = 0;
        let new_text = self.new_text(shard)?;
        let signals = self.signals.shard(shard)?;
        let by_url: Vec<&[CaptureEvidence]> = captures.chunk_by(|a, b| a.url == b.url).collect();
        let urls: Vec<&str> = by_url.iter().map(|captures| captures[0].url.as_str()).collect();
        let known = known_urls(before, shard, &urls)?;
        let mut seen =
            SeenCaptures { updates: Vec::new(), states: States::new(), news: HashSet::default(), moved: Vec::new() };
        for (captures, known) in by_url.into_iter().zip(known) {
            let url = &captures[0].url;
            next_page += pages[next_page..].iter().take_while(|page| page.url < *url).count();
            let page = pages.get(next_page).filter(|page| page.url == *url);
            let mut known = match known {
                Some(known) => known,
                None => self.begin(before, page)?,
            };
            if self.settle_move(before, url, &mut known)? {
                seen.moved.push(url.clone());
                seen.news.insert(url.clone());
            }
            let page = page.filter(|page| page.moved_from.is_none());
            let (captures_before, gone_before) = (known.state.captures, known.presence.gone);
            let share = new_text.as_ref().map_or(1.0, |shares| shares.get(url).copied().unwrap_or(0.0));
            for capture in captures {
                let signal = signals.of(url, capture.fetched_at, share);
                let update = self.capture(capture, &mut known, page, (share, signal));
                if let Some(moving) = &mut known.moving {
                    self.capture(capture, &mut moving.known, page, (share, signal));
                }
                seen.updates.extend(update.map(|update| UpdateRow {
                    url: url.clone(),
                    source: by.source(url).to_owned(),
                    after: update.after,
                    before: update.before,
                    updated_at: update.updated_at,
                    updated_at_source: update.updated_at_source,
                    new_text_share: update.new_text_share,
                    signal: update.signal,
                }));
            }
            if known.state.captures > captures_before || known.presence.gone != gone_before {
                seen.news.insert(url.clone());
            }
            if known.state.captures > 0 {
                seen.states.insert(url.clone(), known);
            }
        }
        self.see_moves(before, shard, &mut seen)?;
        if self.whole && self.went {
            self.see_absent(before, shard, &pages, &mut seen)?;
        }
        Ok(seen)
    }

    /// What is known of a URL when it is first seen: nothing, or the history of the URL where its page stood, if that URL
    /// has no page any more. If it has one, that is told later.
    fn begin(&self, before: &Moment, page: Option<&PageEvidence>) -> Result<KnownUrl> {
        let Some(from) = page.and_then(|page| page.moved_from.as_ref()) else { return Ok(KnownUrl::default()) };
        let Some(old) = known_urls(before, shard_of(from, self.shards), &[from])?.pop().flatten() else {
            return Ok(KnownUrl::default());
        };
        let gone = self.has_gone(from, &old)?;
        let known = KnownUrl { presence: Presence::default(), moving: None, ..old };
        if gone {
            return Ok(known);
        }
        let moving = Moving { from: from.clone(), updates: known.state.updates_total, since: self.time, known };
        Ok(KnownUrl { moving: Some(Box::new(moving)), ..KnownUrl::default() })
    }

    /// Whether a URL has no page any more, as its server said before or as this snapshot tells.
    fn has_gone(&self, url: &str, known: &KnownUrl) -> Result<bool> {
        let went = match self.left.get(url) {
            Some(went) => *went,
            None => are_left(&self.pages, self.whole, shard_of(url, self.shards), &[url])?[0],
        };
        Ok(went || known.presence.gone.is_some())
    }

    /// Looks at the place that the page of a URL may have come from, and says whether it has come from there: then it takes
    /// the history along. Where the old place has changed, or another page has come from it, it has not.
    fn settle_move(&self, before: &Moment, url: &str, known: &mut KnownUrl) -> Result<bool> {
        let Some(moving) = known.moving.take() else { return Ok(false) };
        let old = known_urls(before, shard_of(&moving.from, self.shards), &[&moving.from])?.pop().flatten();
        let elsewhere = |old: &KnownUrl| old.presence.moved_to.as_ref().is_some_and(|to| to != url);
        let Some(old) = old.filter(|old| old.state.updates_total == moving.updates && !elsewhere(old)) else {
            return Ok(false);
        };
        if self.has_gone(&moving.from, &old)? {
            let Moving { known: history, .. } = *moving;
            *known = KnownUrl { presence: std::mem::take(&mut known.presence), ..history };
            return Ok(true);
        }
        if self.time.0 - moving.since.0 <= MOVING_US {
            known.moving = Some(moving);
        }
        Ok(false)
    }

    /// Notes where pages of the shard's URLs stand now.
    fn see_moves(&self, before: &Moment, shard: u32, seen: &mut SeenCaptures) -> Result<()> {
        for (from, to) in self.moved.iter().filter(|(from, _)| shard_of(from, self.shards) == shard) {
            let known = match seen.states.remove(from) {
                Some(known) => Some(known),
                None => known_urls(before, shard, &[from])?.pop().flatten(),
            };
            let Some(mut known) = known else { continue };
            let gone_before = known.presence.gone;
            known.presence.moves(to, self.time);
            if known.presence.gone != gone_before {
                seen.news.insert(from.clone());
            }
            seen.states.insert(from.clone(), known);
        }
        Ok(())
    }

    /// Notes which URLs have no page any more, though no capture says so.
    fn see_absent(&self, before: &Moment, shard: u32, pages: &[PageEvidence], seen: &mut SeenCaptures) -> Result<()> {
        let has_page = |url: &str| pages.binary_search_by(|page| page.url.as_str().cmp(url)).is_ok();
        let absent = scan_states(before, shard, |url| !has_page(url) && !seen.states.contains_key(url))?;
        let absent = absent.into_iter().filter(|(_, known)| known.presence.gone.is_none());
        seen.states.extend(absent);
        for (url, known) in seen.states.iter_mut().filter(|(url, _)| !has_page(url)) {
            if known.presence.gone.is_none() {
                known.presence.gone = Some(self.time);
                seen.news.insert(url.clone());
            }
        }
        Ok(())
    }

    /// Takes in one capture of a URL; gives the update that it shows.
    fn capture(
        &self,
        capture: &CaptureEvidence,
        known: &mut KnownUrl,
        page: Option<&PageEvidence>,
        (new_text_share, signal): (f64, Option<bool>),
    ) -> Option<Update> {
        let fetched_at = capture.fetched_at?;
        let status = capture.status.and_then(|status| u16::try_from(status).ok());
        let evidence = match capture.suspect {
            Some(_) => Evidence::Nothing,
            None => Evidence::of(status, capture.revisit, capture.masked_text_digest),
        };
        if let Evidence::Text(masked) = evidence {
            let same_text = capture.text_digest == known.text_digest;
            // Where the last digest was made by other rules, whenever that was, `ingest` has compared the page with the
            // old one anew and says whether it looks the same.
            let other_rules = known.state.rules != Some(self.rules);
            let looks_same = other_rules
                && page.is_some_and(|page| page.masked_text_digest == masked && page.change == Standing::Unchanged);
            if same_text || looks_same {
                known.state.rebase(masked);
            }
        }
        // What only looks like a page is no sign of one.
        let answer = if capture.suspect.is_some() { Answer::Nothing } else { Answer::of(capture.status) };
        known.presence.answered(answer, fetched_at);
        let update = known.state.observe(&Observation {
            fetched_at,
            evidence,
            last_modified: capture.last_modified.zip(capture.last_modified_source),
            new_text_share: Some(new_text_share),
            signal,
        });
        if matches!(evidence, Evidence::Text(_)) && known.state.last_seen == Some(fetched_at) {
            known.text_digest = capture.text_digest;
            known.state.rules = Some(self.rules);
        }
        update
    }

    /// Share of the text of each changed page that is new to it; `None` if all pages are.
    fn new_text(&self, shard: u32) -> Result<Option<HashMap<String, f64>>> {
        let Some(deltas) = &self.deltas else { return Ok(None) };
        let share = |page: PageNewText| {
            let (bytes, new) = (page.new_bytes?, page.new_text_bytes?);
            Some((page.url, if bytes > 0 { new as f64 / bytes as f64 } else { 0.0 }))
        };
        Ok(Some(deltas.shard::<PageNewText>(shard)?.into_iter().filter_map(share).collect()))
    }
}

/// Whether URLs of a shard, which are ascending, have no page.
fn are_left(pages: &Partition, whole: bool, shard: u32, urls: &[&str]) -> Result<Vec<bool>> {
    let part = if whole { pages.part(shard) } else { pages.deleted(shard) };
    // A whole partition has what lives, a slim one what went.
    Ok(pages.find(&part, urls)?.into_iter().map(|rows| rows.is_empty() == whole).collect())
}

/// The same of URLs of any shard, which are ascending. They are looked for together: each look reads some hundred rows.
fn left_places<'u>(
    shards: u32,
    pages: &Partition,
    whole: bool,
    urls: impl Iterator<Item = &'u String>,
) -> Result<HashMap<String, bool>> {
    let mut by_shard: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    urls.for_each(|url| by_shard.entry(shard_of(url, shards)).or_default().push(url));
    let mut left = HashMap::default();
    for (shard, urls) in by_shard {
        let are_left = are_left(pages, whole, shard, &urls)?;
        left.extend(urls.into_iter().map(str::to_owned).zip(are_left));
    }
    Ok(left)
}
