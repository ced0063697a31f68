//! What a source is, and its updates in order.

use std::collections::BTreeMap;

use regex::Regex;

use crate::model::{Digest, Timestamp};
use crate::stats::whole::count;
use crate::stats::{Update, UrlState};

/// Learning looks at no more updates than these, the newest.
const LEARNED_UPDATES: usize = 2_048;
/// Up to so many updates, every one is learned from at once.
const AT_ONCE: u64 = 256;
/// And it never waits for more news than this.
const MOST_NEWS: u64 = 256;

/// How many of so many updates, the first ones, a schedule is learned from. Learning takes the longer the more there are, so
/// that it waits the longer for news: for one update up to 255, then for a sixteenth to a thirty-second of them. So an update
/// costs about the same whenever it comes, and what is learned depends on the history alone, not on when somebody looked.
#[must_use]
pub(crate) fn learned_upto(updates: u64) -> u64 {
    if updates < AT_ONCE {
        return updates;
    }
    let news = 1 << updates.checked_ilog2().unwrap_or(0).saturating_sub(4);
    updates - updates % MOST_NEWS.min(news)
}

/// The updates of one URL, ascending and distinct.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequence {
    pub updates: Vec<Update>,
}

/// The updates of one source: of one URL, or of all URLs that are polled together. A version belongs to one URL, so
/// sequences are never merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub source: String,
    pub sequences: Vec<Sequence>,
}

impl Sequence {
    /// Sorts, drops repeated updates and cuts overlapping intervals: at the end of the one before, and before a known
    /// moment that follows. So updates cannot change places. Returns how many were dropped.
    #[must_use]
    pub fn new(mut updates: Vec<Update>) -> (Self, usize) {
        updates.sort_by_key(|u| (u.central(), u.before, u.after));
        let before = updates.len();
        updates.dedup_by(|b, a| b.central() == a.central());
        for i in 1..updates.len() {
            let floor = updates[i - 1].exact().unwrap_or(updates[i - 1].before);
            let update = &mut updates[i];
            if update.exact().is_none() && update.after < floor {
                update.after = floor.min(update.before);
            }
            if let Some(moment) = update.exact()
                && updates[i - 1].exact().is_none()
                && updates[i - 1].before >= moment
            {
                let earlier = &mut updates[i - 1];
                earlier.before = earlier.after.max(Timestamp(moment.0 - 1));
            }
        }
        let dropped = before - updates.len();
        (Self { updates }, dropped)
    }

    /// The moments, where an interval counts as its middle.
    #[must_use]
    pub fn moments(&self) -> Vec<i64> {
        let mut moments: Vec<i64> = self.updates.iter().map(|u| u.central().0).collect();
        moments.dedup();
        moments
    }

    fn span(&self) -> Option<(Timestamp, Timestamp)> {
        Some((self.updates.first()?.central(), self.updates.last()?.central()))
    }
}

impl History {
    #[must_use]
    pub fn new(source: impl Into<String>, sequences: Vec<Sequence>) -> Self {
        let sequences = sequences.into_iter().filter(|s| !s.updates.is_empty()).collect();
        Self { source: source.into(), sequences }
    }

    /// A source of one URL with known update times.
    #[must_use]
    pub fn of_moments(source: impl Into<String>, moments: &[Timestamp]) -> Self {
        Self::new(source, vec![Sequence::new(moments.iter().map(|t| Update::at(*t)).collect()).0])
    }

    #[must_use]
    pub fn updates(&self) -> usize {
        self.sequences.iter().map(|s| s.updates.len()).sum()
    }

    /// What a schedule is learned from where so many updates are known in all, of which the oldest may be forgotten.
    #[must_use]
    pub(crate) fn learned(self, known: u64) -> Self {
        let waiting = usize::try_from(known - learned_upto(known)).unwrap_or(usize::MAX);
        let count = self.updates();
        let upto = count.saturating_sub(waiting);
        let from = upto.saturating_sub(LEARNED_UPDATES);
        if (from, upto) == (0, count) {
            return self;
        }
        // In the order in which they became known.
        let all = self.sequences.iter().enumerate();
        let all = all.flat_map(|(i, s)| s.updates.iter().enumerate().map(move |(j, update)| (update.before, i, j)));
        let mut all: Vec<(Timestamp, usize, usize)> = all.collect();
        all.sort_unstable();
        let mut kept = vec![Sequence::default(); self.sequences.len()];
        let mut places: Vec<(usize, usize)> = all[from..upto].iter().map(|(_, i, j)| (*i, *j)).collect();
        places.sort_unstable();
        for (i, j) in places {
            kept[i].updates.push(self.sequences[i].updates[j]);
        }
        Self::new(self.source, kept)
    }

    /// Identifies what the updates say about when to poll. The source's name does not count: sources with equal evidence
    /// have the same schedule, but for a phase that is drawn from the name.
    #[must_use]
    pub(crate) fn evidence(&self) -> Digest {
        let mut bytes = Vec::with_capacity(16 + 32 * self.updates());
        for sequence in &self.sequences {
            bytes.extend_from_slice(&(sequence.updates.len() as u64).to_le_bytes());
            for update in &sequence.updates {
                let signal = update.signal.map_or(2, u8::from);
                bytes.extend_from_slice(&[u8::from(update.updated_at.is_some()), signal]);
                for time in [update.after, update.before, update.updated_at.unwrap_or(Timestamp(0))] {
                    bytes.extend_from_slice(&time.0.to_le_bytes());
                }
            }
        }
        Digest::of(&bytes)
    }

    /// First and last update.
    #[must_use]
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        let first = self.sequences.iter().filter_map(Sequence::span).map(|(first, _)| first).min()?;
        let last = self.sequences.iter().filter_map(Sequence::span).map(|(_, last)| last).max()?;
        Some((first, last))
    }

    /// Whether some update is known by its interval only, wider than `seconds`.
    #[must_use]
    pub fn is_censored(&self, seconds: f64) -> bool {
        self.sequences.iter().flat_map(|s| &s.updates).any(|u| u.width_s() > seconds)
    }

    /// The first `floor((1 - holdout) n)` updates, and the rest.
    #[must_use]
    pub fn split(&self, holdout: f64) -> (Self, Self) {
        let mut times: Vec<Timestamp> =
            self.sequences.iter().flat_map(|s| s.updates.iter().map(Update::central)).collect();
        times.sort_unstable();
        let train = count((1.0 - holdout.clamp(0.0, 1.0)) * times.len() as f64 + 1e-9);
        match times.get(train) {
            Some(cut) => (self.part(|t| t < *cut), self.part(|t| t >= *cut)),
            None => (self.clone(), Self::new(self.source.clone(), Vec::new())),
        }
    }

    /// The updates whose time is wanted.
    #[must_use]
    pub fn part(&self, wanted: impl Fn(Timestamp) -> bool) -> Self {
        let keep =
            |s: &Sequence| Sequence { updates: s.updates.iter().filter(|u| wanted(u.central())).copied().collect() };
        Self::new(self.source.clone(), self.sequences.iter().map(keep).collect())
    }

    /// Without the updates in `[from, to)`: what comes after them is a sequence of its own, since what happened in
    /// between is not to be known.
    #[must_use]
    pub fn without(&self, from: Timestamp, to: Timestamp) -> Self {
        let (before, after) = (self.part(|t| t < from), self.part(|t| t >= to));
        Self::new(self.source.clone(), before.sequences.into_iter().chain(after.sequences).collect())
    }
}

/// How URLs are grouped into sources.
#[derive(Clone, Debug, Default)]
pub enum SourceBy {
    #[default]
    Url,
    Host,
    /// The first group of the match, or the whole match; a URL that does not match is a source of its own.
    Pattern(Regex),
}

impl SourceBy {
    /// From the pipeline file: `url`, `host` or a regex.
    pub fn parse(text: &str) -> Result<Self, regex::Error> {
        Ok(match text {
            "url" => Self::Url,
            "host" => Self::Host,
            pattern => Self::Pattern(Regex::new(pattern)?),
        })
    }

    /// The source that a URL belongs to.
    #[must_use]
    pub fn source<'a>(&self, url: &'a str) -> &'a str {
        match self {
            Self::Url => url,
            Self::Host => host(url),
            Self::Pattern(pattern) => match pattern.captures(url) {
                Some(found) => found.get(1).or_else(|| found.get(0)).map_or(url, |m| m.as_str()),
                None => url,
            },
        }
    }

    /// Histories of all sources, ordered by name.
    pub fn histories<'a>(&self, states: impl IntoIterator<Item = (&'a str, &'a UrlState)>) -> Vec<History> {
        let mut sources: BTreeMap<&str, Vec<Sequence>> = BTreeMap::new();
        for (url, state) in states {
            let (sequence, _) = Sequence::new(state.updates.clone());
            sources.entry(self.source(url)).or_default().push(sequence);
        }
        sources.into_iter().map(|(source, sequences)| History::new(source, sequences)).collect()
    }
}

/// Host and port of a URL.
pub(crate) fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp(hours * 3_600 * Timestamp::SECOND)
    }

    #[test]
    fn the_first_70_percent_train() {
        let times: Vec<Timestamp> = (0..10).map(at).collect();
        let (train, test) = History::of_moments("s", &times).split(0.3);
        assert_eq!((train.updates(), test.updates()), (7, 3));
        let (train, test) = History::of_moments("s", &times[..1]).split(0.3);
        assert_eq!((train.updates(), test.updates()), (0, 1));
        let (train, test) = History::of_moments("s", &times).split(0.0);
        assert_eq!((train.updates(), test.updates()), (10, 0));
    }

    /// From one time that is learned to the next the history that is learned from stays the same, however much is forgotten
    /// at its other end, and it is never far behind.
    #[test]
    fn what_is_learned_from_changes_only_when_it_is_learned_from() {
        let mut learned = std::collections::BTreeSet::new();
        let mut last: Option<(u64, History)> = None;
        for known in 0..9_000u64 {
            let upto = learned_upto(known);
            assert!(upto <= known && (known - upto) * 16 <= known && known - upto < MOST_NEWS, "{known}: {upto}");
            assert!(known >= AT_ONCE || upto == known, "few updates are learned from at once: {known}");
            let news = last.as_ref().is_none_or(|(before, _)| *before != upto);
            learned.insert(upto);
            // Around the bounds, and at some places between: two URLs in turn, of which the oldest updates are forgotten.
            if known % 97 > 1 && !(2_040..2_060).contains(&known) && !(4_090..4_110).contains(&known) {
                last = last.filter(|_| !news);
                continue;
            }
            let first = known.saturating_sub(4_096);
            let of =
                |odd: u64| (first..known).filter(|i| i % 2 == odd).map(|i| at(i64::try_from(i).unwrap())).collect();
            let urls = [of(0), of(1)].map(|times: Vec<Timestamp>| {
                Sequence::new(times.into_iter().map(|time| Update::within(Timestamp(time.0 - 1), time)).collect()).0
            });
            let history = History::new("s", urls.to_vec()).learned(known);
            assert_eq!(history.updates() as u64, upto.min(2_048), "{known}");
            if let Some((_, before)) = last.as_ref().filter(|_| !news) {
                assert_eq!(history, *before, "{known}");
            }
            last = Some((upto, history));
        }
        assert!(learned.len() < 400, "{}", learned.len());
    }

    #[test]
    fn order_repeats_and_overlaps_are_put_right() {
        let updates = vec![Update::within(at(8), at(12)), Update::within(at(0), at(9)), Update::within(at(8), at(12))];
        let (sequence, dropped) = Sequence::new(updates);
        assert_eq!(dropped, 1);
        assert_eq!(sequence.updates, [Update::within(at(0), at(9)), Update::within(at(9), at(12))]);
        let (sequence, _) = Sequence::new(vec![Update::within(at(0), at(9)), Update::at(at(5))]);
        assert_eq!(sequence.updates, [Update::within(at(0), Timestamp(at(5).0 - 1)), Update::at(at(5))]);
    }

    #[test]
    fn sources_by_url_host_and_pattern() {
        let url = "https://user@news.example.org:8080/sport/a.html?x=1";
        assert_eq!(SourceBy::Url.source(url), url);
        assert_eq!(SourceBy::parse("host").unwrap().source(url), "news.example.org:8080");
        assert_eq!(SourceBy::parse(r"//[^/]+/(\w+)/").unwrap().source(url), "sport");
        assert_eq!(SourceBy::parse("nothing").unwrap().source(url), url);
        assert!(SourceBy::parse("(").is_err());
        let mut state = UrlState::default();
        state.updates.push(Update::at(at(1)));
        let states = [("http://b.org/1", state.clone()), ("http://a.org/1", state.clone()), ("http://b.org/2", state)];
        let histories = SourceBy::Host.histories(states.iter().map(|(url, state)| (*url, state)));
        let names: Vec<(&str, usize)> = histories.iter().map(|h| (h.source.as_str(), h.sequences.len())).collect();
        assert_eq!(names, [("a.org", 1), ("b.org", 2)]);
    }
}
