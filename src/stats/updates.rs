//! From captures to updates: when did a page change, as far as its captures can tell?
//!
//! Two consecutive captures with different text say that the page changed at least once in `(after, before]`, no more:
//! the crawl time is never taken for the update time. A `Last-Modified` inside that interval says when, if it can be
//! trusted. A 304, a `revisit` or equal text is evidence that nothing changed in between; an error is no evidence at
//! all.
//!
//! A URL's state is carried from snapshot to snapshot ([`UrlState`]), so that a new snapshot needs its own captures
//! only. Everything the estimators need is in it: between the captures of a version nothing changed, so a version is
//! two moments, however often it was captured.

use serde::{Deserialize, Serialize};

use crate::captures::Answer;
use crate::model::{Digest, TimeSource, Timestamp, UpdatedAtSource};

/// What one capture says about the page.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    pub fetched_at: Timestamp,
    pub evidence: Evidence,
    pub last_modified: Option<(Timestamp, TimeSource)>,
    /// Share of the text's bytes that were not in the version before, if the two were compared.
    pub new_text_share: Option<f64>,
    /// Whether this version shows the signal that the source is watched for, if any.
    pub signal: Option<bool>,
}

/// What a capture proves about the text of its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A good capture; the digest is of the text in which changes count (with the ignored parts masked).
    Text(Digest),
    /// A 304, or a revisit whose text is not at hand: the same as the last good capture.
    Unchanged,
    /// A 404 or 410: there was no page at that time.
    Gone,
    /// An error, a redirect, a short body or a suspect says nothing.
    Nothing,
}

impl Evidence {
    /// From what a capture holds. A revisit whose text is known is as good as the text.
    #[must_use]
    pub fn of(status: Option<u16>, revisit: bool, text: Option<Digest>) -> Self {
        match (Answer::of(status), text) {
            (Answer::AsBefore, _) => Self::Unchanged,
            (Answer::Page, Some(text)) => Self::Text(text),
            (Answer::Page, None) if revisit => Self::Unchanged,
            (Answer::Gone, _) => Self::Gone,
            _ => Self::Nothing,
        }
    }
}

/// The page changed, the last time at `updated_at` if that is known, and in any case in `(after, before]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Update {
    pub after: Timestamp,
    pub before: Timestamp,
    pub updated_at: Option<Timestamp>,
    pub updated_at_source: Option<UpdatedAtSource>,
    pub new_text_share: Option<f64>,
    /// Whether the version that begins here shows the signal.
    pub signal: Option<bool>,
}

impl Update {
    /// An update at a known moment.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        Self { updated_at: Some(time), updated_at_source: Some(UpdatedAtSource::Log), ..Self::within(time, time) }
    }

    /// An update known by its interval.
    #[must_use]
    pub fn within(after: Timestamp, before: Timestamp) -> Self {
        Self { after, before, updated_at: None, updated_at_source: None, new_text_share: None, signal: None }
    }

    /// The moment, if it is known.
    #[must_use]
    pub fn exact(&self) -> Option<Timestamp> {
        self.updated_at.or((self.after == self.before).then_some(self.before))
    }

    /// The moment, or the middle of the interval.
    #[must_use]
    pub fn central(&self) -> Timestamp {
        self.exact().unwrap_or(Timestamp(self.after.0.midpoint(self.before.0)))
    }

    /// What is not known about the moment, in seconds.
    #[must_use]
    pub fn width_s(&self) -> f64 {
        if self.exact().is_some() { 0.0 } else { seconds_between(self.after, self.before) }
    }
}

pub(crate) fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    (to.0 - from.0) as f64 / Timestamp::SECOND as f64
}

/// Updates kept in a state. A page that changes hourly keeps half a year.
pub(crate) const KEPT_UPDATES: usize = 4_096;

/// What is known of a URL after its captures so far. No attribute of serde leaves a field out, so that formats which do
/// not name their fields can hold it: without an update it takes some 60 bytes of postcard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UrlState {
    /// First and last good capture.
    pub first_seen: Option<Timestamp>,
    pub last_seen: Option<Timestamp>,
    text: Option<Digest>,
    /// Identifies the ignore rules behind the digest of the text.
    pub rules: Option<Digest>,
    last_modified: Option<Timestamp>,
    /// Captures that say something about the text.
    pub captures: u64,
    /// Captures that said nothing, or came out of order.
    pub unusable: u64,
    /// All updates ever; `updates` holds the newest of them.
    pub updates_total: u64,
    pub updates: Vec<Update>,
    /// Seconds between consecutive good captures, and their squares; whole numbers, so that a state carried forward
    /// through any format equals one that was not.
    gap_sum_s: u64,
    gap_squares: u64,
    /// `Last-Modified` lay inside the interval of a change, or contradicted the text.
    confirmed: u32,
    contradicted: u32,
    /// The page was gone when it was last asked for.
    is_gone: bool,
    /// Times in which it was gone: from the last capture before to the first one after, newest last.
    absences: Vec<(Timestamp, Timestamp)>,
}

/// A `Last-Modified` this near to the capture is the server's clock, not a date of the page.
const NOW_US: i64 = 2 * Timestamp::SECOND;

impl UrlState {
    /// Takes in the next capture; gives the update that it shows, if any. Captures must come in order of time: one that
    /// is earlier than the last is counted as unusable.
    pub fn observe(&mut self, observation: &Observation) -> Option<Update> {
        let now = observation.fetched_at;
        if matches!(observation.evidence, Evidence::Nothing | Evidence::Gone)
            || self.last_seen.is_some_and(|last| now < last)
        {
            let in_order = self.last_seen.is_some_and(|last| now >= last);
            self.is_gone |= observation.evidence == Evidence::Gone && in_order;
            self.unusable += 1;
            return None;
        }
        let (text, changed) = match (observation.evidence, self.text) {
            (Evidence::Text(new), Some(old)) => (Some(new), new != old),
            (Evidence::Text(new), None) => (Some(new), false),
            (_, old) => (old, false),
        };
        // A page seen only through revisits has no text to compare with: it begins when there is one.
        let Some(text) = text else {
            self.unusable += 1;
            return None;
        };
        let stated = observation
            .last_modified
            .filter(|(_, source)| matches!(source, TimeSource::Header | TimeSource::Manifest))
            .map(|(time, _)| time);
        let mut update = None;
        if let Some(last) = self.last_seen {
            let gap = u64::try_from((now.0 - last.0) / Timestamp::SECOND).unwrap_or_default();
            self.gap_sum_s += gap;
            self.gap_squares = self.gap_squares.saturating_add(gap.saturating_mul(gap));
            if changed {
                let updated_at = self.trusted(stated, last, now);
                update = Some(Update {
                    updated_at,
                    updated_at_source: updated_at.map(|_| UpdatedAtSource::LastModified),
                    // Rounded to six digits, so that a state which was carried forward as text does not differ in the
                    // last bit.
                    new_text_share: observation.new_text_share.map(|share| (share * 1e6).round() / 1e6),
                    signal: observation.signal,
                    // Times are known to the second: of two captures at one time, the change lies just before.
                    ..Update::within(last.min(Timestamp(now.0 - Timestamp::SECOND)), now)
                });
            } else if stated.is_some() && self.last_modified.is_some() && stated != self.last_modified {
                // The date moved and the text did not.
                self.contradicted += 1;
            }
        }
        if let Some(last) = self.last_seen.filter(|_| std::mem::take(&mut self.is_gone)) {
            if self.absences.len() == KEPT_UPDATES {
                self.absences.remove(0);
            }
            self.absences.push((last, now));
        }
        self.first_seen.get_or_insert(now);
        self.last_seen = Some(now);
        self.text = Some(text);
        self.last_modified = stated.or(self.last_modified);
        self.captures += 1;
        if let Some(update) = update {
            self.updates_total += 1;
            if self.updates.len() == KEPT_UPDATES {
                self.updates.remove(0);
            }
            self.updates.push(update);
        }
        update
    }

    /// Takes another digest for the last text: it is the same text, seen through other ignore rules.
    pub fn rebase(&mut self, text: Digest) {
        if self.text.is_some() {
            self.text = Some(text);
        }
    }

    /// The stated date if it lies inside `(after, before]`, is not just the time of the capture, and this page's dates
    /// have mostly been right so far.
    fn trusted(&mut self, stated: Option<Timestamp>, after: Timestamp, before: Timestamp) -> Option<Timestamp> {
        let stated = stated?;
        if stated <= after || stated > before || before.0 - stated.0 <= NOW_US {
            self.contradicted += 1;
            return None;
        }
        self.confirmed += 1;
        (self.contradicted * 4 < self.confirmed).then_some(stated)
    }

    /// Mean seconds between captures and their coefficient of variation.
    #[must_use]
    pub fn crawl_gap(&self) -> Option<(f64, f64)> {
        let n = self.captures.checked_sub(1).filter(|n| *n > 0)? as f64;
        let mean = self.gap_sum_s as f64 / n;
        if mean <= 0.0 {
            return None;
        }
        let variance = (self.gap_squares as f64 / n - mean * mean).max(0.0);
        Some((mean, variance.sqrt() / mean))
    }

    /// Stretches in which the page is known not to have changed: each kept version from its first to its last capture,
    /// without the times in which it was gone.
    #[must_use]
    pub fn unchanged(&self) -> Vec<(Timestamp, Timestamp)> {
        let (Some(first), Some(last)) = (self.first_seen, self.last_seen) else {
            return Vec::new();
        };
        // Of forgotten updates only the count is left: the kept history begins with the first kept one.
        let begin = if self.updates_total > self.updates.len() as u64 { None } else { Some(first) };
        let begins = begin.into_iter().chain(self.updates.iter().map(|u| u.before));
        let skip = usize::from(begin.is_none());
        let ends = self.updates.iter().skip(skip).map(|u| u.after).chain([last]);
        let versions = begins.zip(ends);
        versions.flat_map(|version| self.while_there(version)).filter(|(from, to)| from < to).collect()
    }

    /// The parts of a stretch in which the page was not gone.
    fn while_there(&self, (from, to): (Timestamp, Timestamp)) -> Vec<(Timestamp, Timestamp)> {
        let inside = self.absences.iter().filter(|(left, back)| from <= *left && *back <= to);
        let begins = [from].into_iter().chain(inside.clone().map(|(_, back)| *back));
        let ends = inside.clone().map(|(left, _)| *left).chain([to]);
        begins.zip(ends).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hours(h: i64) -> Timestamp {
        Timestamp(h * 3_600 * Timestamp::SECOND)
    }

    fn seen(h: i64, text: &str) -> Observation {
        Observation {
            fetched_at: hours(h),
            evidence: Evidence::Text(Digest::of(text.as_bytes())),
            last_modified: None,
            new_text_share: None,
            signal: None,
        }
    }

    fn dated(h: i64, text: &str, modified: Timestamp) -> Observation {
        Observation { last_modified: Some((modified, TimeSource::Header)), ..seen(h, text) }
    }

    #[test]
    fn changes_are_intervals_between_captures() {
        let mut state = UrlState::default();
        assert_eq!(state.observe(&seen(0, "a")), None);
        assert_eq!(state.observe(&seen(24, "a")), None);
        let nothing = Observation { evidence: Evidence::of(Some(503), false, None), ..seen(36, "") };
        assert_eq!(state.observe(&nothing), None);
        let same = Observation { evidence: Evidence::of(Some(304), false, None), ..seen(40, "") };
        assert_eq!(state.observe(&same), None);
        assert_eq!(state.observe(&seen(48, "b")), Some(Update::within(hours(40), hours(48))));
        let revisit = Observation { evidence: Evidence::of(Some(200), true, None), ..seen(72, "") };
        assert_eq!(state.observe(&revisit), None);
        assert_eq!(state.observe(&seen(60, "c")), None, "out of order");
        assert_eq!((state.captures, state.unusable, state.updates_total), (5, 2, 1));
        assert_eq!(state.unchanged(), [(hours(0), hours(40)), (hours(48), hours(72))]);
        let (mean, _) = state.crawl_gap().unwrap();
        assert!((mean - 18.0 * 3600.0).abs() < 1e-6);
    }

    #[test]
    fn two_captures_at_one_time_are_no_exact_time() {
        let mut state = UrlState::default();
        state.observe(&seen(5, "a"));
        let update = state.observe(&seen(5, "b")).unwrap();
        assert!(update.after < update.before && update.exact().is_none(), "{update:?}");
        assert!(update.width_s() <= 1.0);
    }

    #[test]
    fn a_page_that_is_gone_is_not_unchanged() {
        let mut state = UrlState::default();
        let gone = |h: i64| Observation { evidence: Evidence::of(Some(404), false, None), ..seen(h, "") };
        state.observe(&gone(-5));
        for h in [0, 10, 20] {
            state.observe(&seen(h, "a"));
        }
        assert_eq!(state.observe(&gone(30)), None);
        assert_eq!(state.observe(&gone(40)), None);
        assert_eq!(state.unchanged(), [(hours(0), hours(20))]);
        assert_eq!(state.observe(&seen(50, "a")), None, "the same text is no update");
        state.observe(&seen(60, "a"));
        assert_eq!(state.unchanged(), [(hours(0), hours(20)), (hours(50), hours(60))]);
        state.observe(&gone(70));
        assert_eq!(state.observe(&seen(80, "b")), Some(Update::within(hours(60), hours(80))));
        state.observe(&seen(90, "b"));
        assert_eq!(state.unchanged(), [(hours(0), hours(20)), (hours(50), hours(60)), (hours(80), hours(90))]);
    }

    #[test]
    fn a_revisit_of_nothing_begins_nothing() {
        let mut state = UrlState::default();
        let revisit = Observation { evidence: Evidence::Unchanged, ..seen(0, "") };
        assert_eq!(state.observe(&revisit), None);
        assert_eq!(state.first_seen, None);
        state.observe(&seen(5, "a"));
        assert_eq!(state.first_seen, Some(hours(5)));
    }

    #[test]
    fn last_modified_is_trusted_only_where_it_can_be_right() {
        let mut state = UrlState::default();
        state.observe(&dated(0, "a", hours(-5)));
        let update = state.observe(&dated(24, "b", hours(7))).unwrap();
        assert_eq!(update.updated_at, Some(hours(7)));
        assert_eq!(update.updated_at_source, Some(UpdatedAtSource::LastModified));
        // Before the interval: not the time of this change, and a mark against the page.
        let update = state.observe(&dated(48, "c", hours(7))).unwrap();
        assert_eq!(update.updated_at, None);
        let update = state.observe(&dated(72, "d", hours(50))).unwrap();
        assert_eq!(update.updated_at, None, "no longer trusted");

        // A server that always says "now".
        let mut state = UrlState::default();
        for day in 0..5 {
            let update = state.observe(&dated(day * 24, &day.to_string(), hours(day * 24)));
            assert_eq!(update.and_then(|u| u.updated_at), None);
        }
        // A date that moves while the text stays.
        let mut state = UrlState::default();
        for day in 0..5 {
            state.observe(&dated(day * 24, "a", hours(day * 24 - 3)));
        }
        assert_eq!(state.observe(&dated(120, "b", hours(110))).unwrap().updated_at, None);
        // A file's mtime is no date of the page.
        let mut state = UrlState::default();
        state.observe(&seen(0, "a"));
        let mtime = Observation { last_modified: Some((hours(3), TimeSource::Mtime)), ..seen(24, "b") };
        assert_eq!(state.observe(&mtime).unwrap().updated_at, None);
    }

    #[test]
    fn carrying_a_state_forward_changes_nothing() {
        let captures: Vec<Observation> = (0..60).map(|i| seen(i * 7, &(i / 5).to_string())).collect();
        let mut whole = UrlState::default();
        captures.iter().for_each(|c| {
            whole.observe(c);
        });
        let mut carried = UrlState::default();
        for part in captures.chunks(11) {
            let json = serde_json::to_string(&carried).unwrap();
            carried = serde_json::from_str(&json).unwrap();
            part.iter().for_each(|c| {
                carried.observe(c);
            });
        }
        assert_eq!(whole, carried);
        assert_eq!(whole.updates.len(), 11);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Through the binary form after every capture, and past the most updates that are kept.
        #[test]
        fn a_state_comes_back_from_its_bytes(
            many in prop::bool::weighted(0.02),
            captures in prop::collection::vec(
                (-3i64..50, 0u8..7, prop::option::of(-60i64..60), prop::option::of(0.0..1.0f64), any::<Option<bool>>()),
                0..40,
            ),
        ) {
            let mut state = UrlState::default();
            if many {
                for i in 0..i64::try_from(KEPT_UPDATES).unwrap() + 3 {
                    state.observe(&seen(i, &i.to_string()));
                }
            }
            let mut now = 10_000;
            for (gap, evidence, modified, new_text_share, signal) in captures {
                now += gap;
                state.observe(&Observation {
                    fetched_at: hours(now),
                    evidence: match evidence {
                        0 => Evidence::Nothing,
                        1 => Evidence::Unchanged,
                        2 => Evidence::Gone,
                        text => Evidence::Text(Digest::of(&[text])),
                    },
                    last_modified: modified.map(|ago| (hours(now - ago), TimeSource::Header)),
                    new_text_share,
                    signal,
                });
                let bytes = postcard::to_stdvec(&state).unwrap();
                let back: UrlState = postcard::from_bytes(&bytes).unwrap();
                prop_assert_eq!(&back, &state);
                prop_assert!(bytes.len() < 80 + 45 * state.updates.len() + 20 * state.absences.len());
                state = back;
            }
            prop_assert!(state.updates.len() <= KEPT_UPDATES && state.updates_total >= state.updates.len() as u64);
        }
    }

    #[test]
    fn old_updates_are_forgotten_not_their_number() {
        let mut state = UrlState::default();
        for i in 0..5_000 {
            state.observe(&seen(i, &i.to_string()));
        }
        assert_eq!((state.updates_total, state.updates.len()), (4_999, KEPT_UPDATES));
        assert!(state.unchanged().is_empty());
    }
}
