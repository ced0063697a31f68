//! What an archive holds, counted: captures by kind, status, type, host and time, pages, and rejects by reason.
//!
//! Memory does not grow with the archive: URLs and rejects are counted by [`Distinct`], hosts and types by
//! [`Frequent`], which are exact for all but the largest archives and say so where they are not.

mod distinct;
mod frequent;
mod inspected;

use std::collections::BTreeMap;

use serde::Serialize;

use self::distinct::Distinct;
use self::frequent::Frequent;
pub(crate) use self::inspected::{Inspected, InspectedSnapshot, Looked, PathKind};
use crate::model::{Digest, DigestBuilder, Reject, TimeSource, Timestamp};

/// URLs and rejects are counted exactly up to this many.
const EXACT: usize = 1 << 20;
/// The same for the rejects of one reason.
const EXACT_OF_REASON: usize = 1 << 14;
const MAX_HOSTS: usize = 1 << 16;
const MAX_TYPES: usize = 1 << 10;
const MAX_REASONS: usize = 256;
/// How many hosts and types are listed.
const TOLD: usize = 10;

/// What is seen of one capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight<'a> {
    /// Normalised.
    pub url: &'a str,
    pub host: &'a str,
    /// `response` or `revisit`; without a status `resource`, `conversion` or `file`.
    pub record: &'static str,
    pub status: Option<u16>,
    /// Without parameters.
    pub content_type: Option<&'a str>,
    pub fetched_at: Option<(Timestamp, TimeSource)>,
    pub last_modified: bool,
    pub etag: bool,
    pub payload_bytes: u64,
    /// Holds text that can be a page.
    pub is_text: bool,
    /// Says "as before", and what was before may be a page.
    pub is_repeat: bool,
}

/// Counters, one set per thread, merged at the end.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    captures: u64,
    payload_bytes: u64,
    last_modified: u64,
    etag: u64,
    undated: u64,
    urls: Distinct,
    pages: Distinct,
    /// URLs with a page or a repeat.
    pages_and_repeats: Distinct,
    records: BTreeMap<&'static str, u64>,
    statuses: BTreeMap<Option<u16>, u64>,
    types: Frequent,
    hosts: Frequent,
    different_hosts: Distinct,
    span: Option<(Timestamp, Timestamp)>,
    time_sources: BTreeMap<&'static str, u64>,
    rejects: Distinct,
    reasons: BTreeMap<String, Group>,
    /// Every reject, if all are to be listed.
    all: Option<Vec<Reject>>,
}

#[derive(Clone, Debug)]
struct Group {
    rejects: Distinct,
    first: Reject,
}

/// What was counted.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Inspection {
    pub captures: u64,
    pub urls: Count,
    /// URLs with a good capture whose text is here.
    pub pages: Count,
    /// Further URLs that are pages if the store knows what their revisits and 304s refer to.
    pub pages_by_repeat: u64,
    pub payload_bytes: u64,
    pub records: BTreeMap<&'static str, u64>,
    /// By status, `unknown` where the archive has none.
    pub statuses: BTreeMap<String, u64>,
    pub content_types: Ranking,
    pub hosts: Ranking,
    /// First and last retrieval.
    pub fetched: Option<[String; 2]>,
    /// Captures by where their time comes from.
    pub fetched_at_source: BTreeMap<&'static str, u64>,
    pub with_last_modified: u64,
    pub with_etag: u64,
    pub rejects: Count,
    pub reject_share: f64,
    pub reject_reasons: Vec<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_rejects: Option<Vec<Reject>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Count {
    pub count: u64,
    /// Otherwise it is an estimate, mostly within 0.2 %.
    pub exact: bool,
}

/// The most frequent values.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Ranking {
    pub different: Count,
    pub most: Vec<Value>,
    /// By how much a count may be too low.
    pub error: u64,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Value {
    pub value: String,
    pub count: u64,
}

/// Rejects that differ only in numbers and names.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Reason {
    pub reason: String,
    pub count: Count,
    /// The first of them by file and offset.
    pub first: Reject,
}

impl Tally {
    /// `keep_rejects`: remember every single one.
    #[must_use]
    pub(crate) fn new(keep_rejects: bool) -> Self {
        Self {
            captures: 0,
            payload_bytes: 0,
            last_modified: 0,
            etag: 0,
            undated: 0,
            urls: Distinct::new(EXACT),
            pages: Distinct::new(EXACT),
            pages_and_repeats: Distinct::new(EXACT),
            records: BTreeMap::new(),
            statuses: BTreeMap::new(),
            types: Frequent::new(MAX_TYPES),
            hosts: Frequent::new(MAX_HOSTS),
            different_hosts: Distinct::new(EXACT),
            span: None,
            time_sources: BTreeMap::new(),
            rejects: Distinct::new(EXACT),
            reasons: BTreeMap::new(),
            all: keep_rejects.then(Vec::new),
        }
    }

    pub(crate) fn capture(&mut self, sight: &Sight<'_>) {
        self.captures += 1;
        self.payload_bytes += sight.payload_bytes;
        self.last_modified += u64::from(sight.last_modified);
        self.etag += u64::from(sight.etag);
        let url = Digest::of(sight.url.as_bytes()).low64();
        self.urls.add(url);
        if sight.is_text {
            self.pages.add(url);
        }
        if sight.is_text || sight.is_repeat {
            self.pages_and_repeats.add(url);
        }
        *self.records.entry(sight.record).or_default() += 1;
        *self.statuses.entry(sight.status).or_default() += 1;
        self.types.add(sight.content_type.unwrap_or("unknown"));
        self.hosts.add(sight.host);
        self.different_hosts.add(Digest::of(sight.host.as_bytes()).low64());
        match sight.fetched_at {
            None => self.undated += 1,
            Some((time, source)) => {
                *self.time_sources.entry(source.as_str()).or_default() += 1;
                self.extend_span(time, time);
            }
        }
    }

    pub(crate) fn reject(&mut self, reject: Reject) {
        // A cut record is reported by its reader and again as a capture with a short body: once is enough.
        let mut digest = DigestBuilder::new();
        digest.field(reject.source_file.as_bytes());
        digest.number(reject.source_offset.map_or(0, |offset| offset.saturating_add(1)));
        let hash = digest.field(reject.reason.as_bytes()).finish().low64();
        self.rejects.add(hash);
        let reason = self.group_of(&reject.reason);
        let group = self.reasons.entry(reason);
        let group = group.or_insert_with(|| Group { rejects: Distinct::new(EXACT_OF_REASON), first: reject.clone() });
        group.rejects.add(hash);
        if place(&reject) < place(&group.first) {
            group.first = reject.clone();
        }
        if let Some(all) = &mut self.all {
            all.push(reject);
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.captures += other.captures;
        self.payload_bytes += other.payload_bytes;
        self.last_modified += other.last_modified;
        self.etag += other.etag;
        self.undated += other.undated;
        self.urls.merge(other.urls);
        self.pages.merge(other.pages);
        self.pages_and_repeats.merge(other.pages_and_repeats);
        for (record, count) in other.records {
            *self.records.entry(record).or_default() += count;
        }
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.types.merge(other.types);
        self.hosts.merge(other.hosts);
        self.different_hosts.merge(other.different_hosts);
        if let Some((from, to)) = other.span {
            self.extend_span(from, to);
        }
        for (source, count) in other.time_sources {
            *self.time_sources.entry(source).or_default() += count;
        }
        self.rejects.merge(other.rejects);
        for (reason, theirs) in other.reasons {
            let reason = if self.reasons.contains_key(&reason) { reason } else { self.group_of(&reason) };
            match self.reasons.entry(reason) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(theirs);
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    let ours = entry.get_mut();
                    ours.rejects.merge(theirs.rejects);
                    if place(&theirs.first) < place(&ours.first) {
                        ours.first = theirs.first;
                    }
                }
            }
        }
        if let (Some(all), Some(theirs)) = (&mut self.all, other.all) {
            all.extend(theirs);
        }
    }

    #[must_use]
    pub(crate) fn newest(&self) -> Option<Timestamp> {
        self.span.map(|(_, newest)| newest)
    }

    /// Captures without a time of their own get that of their snapshot.
    pub(crate) fn date(&mut self, time: Option<Timestamp>) {
        if let (Some(time), true) = (time, self.undated > 0) {
            *self.time_sources.entry(TimeSource::Snapshot.as_str()).or_default() += self.undated;
            self.undated = 0;
            self.extend_span(time, time);
        }
    }

    #[must_use]
    pub(crate) fn inspection(&self) -> Inspection {
        let (pages, pages_and_repeats) = (count(&self.pages), count(&self.pages_and_repeats));
        let rejects = count(&self.rejects);
        let mut reject_reasons: Vec<Reason> = self
            .reasons
            .iter()
            .map(|(reason, group)| Reason {
                // A reject that is the only one of its reason is given in its own words.
                reason: if group.rejects.count().0 == 1 { group.first.reason.clone() } else { reason.clone() },
                count: count(&group.rejects),
                first: group.first.clone(),
            })
            .collect();
        reject_reasons.sort_by(|a, b| b.count.count.cmp(&a.count.count).then_with(|| a.reason.cmp(&b.reason)));
        let all_rejects = self.all.clone().map(|mut all| {
            all.sort_by_cached_key(|r| (r.source_file.clone(), r.source_offset, r.reason.clone(), r.url.is_none()));
            all.dedup_by(|b, a| {
                (&a.source_file, a.source_offset, &a.reason) == (&b.source_file, b.source_offset, &b.reason)
            });
            all
        });
        let different_types = Count { count: self.types.ranked().len() as u64, exact: self.types.error() == 0 };
        Inspection {
            captures: self.captures,
            urls: count(&self.urls),
            pages,
            pages_by_repeat: pages_and_repeats.count.saturating_sub(pages.count),
            payload_bytes: self.payload_bytes,
            records: self.records.clone(),
            statuses: self
                .statuses
                .iter()
                .map(|(status, n)| (status.map_or_else(|| "unknown".to_owned(), |s| s.to_string()), *n))
                .collect(),
            content_types: ranking(&self.types, different_types),
            hosts: ranking(&self.hosts, count(&self.different_hosts)),
            fetched: self.span.map(|(from, to)| [from.to_string(), to.to_string()]),
            fetched_at_source: self.time_sources.clone(),
            with_last_modified: self.last_modified,
            with_etag: self.etag,
            rejects,
            reject_share: share(rejects.count, self.captures),
            reject_reasons,
            all_rejects,
        }
    }

    fn extend_span(&mut self, from: Timestamp, to: Timestamp) {
        self.span = Some(self.span.map_or((from, to), |(a, b)| (a.min(from), b.max(to))));
    }

    fn group_of(&self, reason: &str) -> String {
        let group = without_particulars(reason);
        if self.reasons.len() < MAX_REASONS || self.reasons.contains_key(&group) {
            return group;
        }
        "other reasons".to_owned()
    }
}

/// Share of what was rejected among all that was met.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a share of counts")]
pub(crate) fn share(rejects: u64, captures: u64) -> f64 {
    if rejects == 0 { 0.0 } else { rejects as f64 / (captures + rejects) as f64 }
}

fn count(distinct: &Distinct) -> Count {
    let (count, exact) = distinct.count();
    Count { count, exact }
}

fn ranking(frequent: &Frequent, different: Count) -> Ranking {
    let most = frequent.ranked().into_iter().take(TOLD);
    let most = most.map(|(value, count)| Value { value: value.to_owned(), count }).collect();
    Ranking { different, most, error: frequent.error() }
}

fn place(reject: &Reject) -> (&str, Option<u64>, &str) {
    (&reject.source_file, reject.source_offset, &reject.reason)
}

/// A reason with its numbers and quoted names taken out, so that equal faults fall together.
fn without_particulars(reason: &str) -> String {
    let mut group = String::with_capacity(reason.len());
    let mut rest = reason;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        match first {
            '0'..='9' => {
                group.push('N');
                rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
            }
            '\'' | '`' | '"' => match after.find(first) {
                Some(end) => {
                    group.extend([first, '…', first]);
                    rest = &after[end + 1..];
                }
                None => {
                    group.push(first);
                    rest = after;
                }
            },
            _ => {
                group.push(first);
                rest = after;
            }
        }
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(url: &str) -> Sight<'_> {
        Sight {
            url,
            host: "a.org",
            record: "response",
            status: Some(200),
            content_type: Some("text/html"),
            fetched_at: Some((Timestamp(5), TimeSource::Header)),
            last_modified: false,
            etag: true,
            payload_bytes: 10,
            is_text: true,
            is_repeat: false,
        }
    }

    fn reject(file: &str, offset: u64, reason: &str) -> Reject {
        Reject {
            source_file: file.into(),
            source_offset: Some(offset),
            url: None,
            reason: reason.into(),
            lost: crate::model::Loss::Nothing,
        }
    }

    #[test]
    fn threads_and_their_order_are_not_seen() {
        let mut parts = vec![Tally::new(true), Tally::new(true), Tally::new(true)];
        for (i, part) in parts.iter_mut().enumerate() {
            part.capture(&sight("http://a.org/1"));
            let other = Sight { url: "http://a.org/2", is_text: i == 0, is_repeat: true, ..sight("") };
            part.capture(&other);
            part.capture(&Sight { url: "http://a.org/3", is_text: false, is_repeat: true, status: None, ..sight("") });
            part.reject(reject("b", 7, "body has 3 of the 9 bytes"));
            part.reject(reject("b", 2 + i as u64, "body has 4 of the 9 bytes"));
            part.reject(reject("a", 1, "file 'x' leaves the snapshot"));
        }
        let merged = |parts: Vec<Tally>| {
            let mut all = Tally::new(true);
            parts.into_iter().for_each(|part| all.merge(part));
            serde_json::to_string(&all.inspection()).unwrap()
        };
        let text = merged(parts.clone());
        parts.reverse();
        assert_eq!(merged(parts.clone()), text);
        let mut all = Tally::new(true);
        parts.into_iter().for_each(|part| all.merge(part));
        let found = all.inspection();
        assert_eq!((found.captures, found.urls.count, found.pages.count, found.pages_by_repeat), (9, 3, 2, 1));
        assert_eq!(found.statuses["unknown"], 3);
        assert_eq!(found.rejects.count, 5, "equal ones count once");
        assert_eq!(found.all_rejects.unwrap().len(), 5);
        let reasons: Vec<_> = found.reject_reasons.iter().map(|r| (&*r.reason, r.count.count)).collect();
        assert_eq!(reasons, [("body has N of the N bytes", 4), ("file 'x' leaves the snapshot", 1)]);
        assert_eq!(found.reject_reasons[0].first, reject("b", 2, "body has 4 of the 9 bytes"));
    }

    #[test]
    fn the_span_is_of_dated_captures_until_the_snapshot_dates_the_others() {
        let mut tally = Tally::new(false);
        tally.capture(&sight("http://a.org/1"));
        tally.capture(&Sight { fetched_at: None, ..sight("http://a.org/2") });
        assert_eq!(tally.newest(), Some(Timestamp(5)));
        tally.date(Some(Timestamp(9)));
        assert_eq!(tally.newest(), Some(Timestamp(9)));
        assert_eq!(tally.inspection().fetched_at_source, BTreeMap::from([("header", 1), ("snapshot", 1)]));
    }

    #[test]
    fn reasons_fall_together() {
        assert_eq!(without_particulars("record of 12 bytes at 7"), "record of N bytes at N");
        assert_eq!(without_particulars("file 'a b' is `x`, not \"y"), "file '…' is `…`, not \"y");
        assert_eq!(without_particulars("it's über 9"), "it's über N");
    }

    #[test]
    fn endless_reasons_are_bounded() {
        let mut tally = Tally::new(false);
        for i in 0..2000u32 {
            let letters: String = i.to_string().bytes().map(|b| char::from(b + 49)).collect();
            tally.reject(reject("f", u64::from(i), &letters));
        }
        let found = tally.inspection();
        assert_eq!(found.rejects, Count { count: 2000, exact: true });
        assert!(found.reject_reasons.len() <= MAX_REASONS + 1);
        assert_eq!(found.reject_reasons[0].reason, "other reasons");
    }
}
