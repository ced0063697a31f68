//! What the cost model knows: the snapshot's size, what each matcher left to extract on a sample, and what a byte of
//! matching, extracting and copying costs on this machine.
//!
//! Sizes are exact. Shares (how much a matcher leaves) are pooled over the samples of the last k nights, pulled towards
//! sensible values while there is little to go by. Times are noisy, so every weight is the median of the last k nights
//! that measured it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::extract::{Prior, Recycles};
use crate::matching::{CLASSES, MatcherKind, PerMatcher};

/// Classes of changed pages by the share of the page between its common prefix and suffix. Matchers differ in speed
/// and use between a page with one edit and one rewritten throughout.
pub(crate) const BUCKETS: usize = CLASSES;
const BOUNDS: [f64; BUCKETS - 1] = [0.05, 0.25, 0.75];

/// The class of a page.
#[must_use]
pub(crate) fn bucket(residual: u64, len: u64) -> usize {
    let share = ratio(residual, len);
    BOUNDS.iter().filter(|&&bound| share >= bound).count()
}

#[expect(clippy::cast_precision_loss, reason = "shares and times of sizes")]
pub(super) fn number(value: u64) -> f64 {
    value as f64
}

pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    number(part) / number(whole.max(1))
}

/// What an extractor would be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Taken {
    pub bytes: u64,
    /// Regions that it would copy from.
    pub places: u64,
}

/// A matcher on the sample's pages of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tally {
    pub speed: Speed,
    /// By extractor.
    pub taken: BTreeMap<String, Taken>,
}

/// Bytes (of both pages, where there are two) and the time they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Speed {
    pub bytes: u64,
    pub seconds: f64,
}

impl Speed {
    pub(crate) fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.seconds += other.seconds;
    }

    /// Seconds a byte, if it was measured on enough of them.
    pub(crate) fn per_byte(self, least: u64) -> Option<f64> {
        (self.bytes >= least && self.seconds > 0.0).then(|| self.seconds / number(self.bytes))
    }
}

/// The sample's pages of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Class {
    pub pages: u64,
    pub bytes: u64,
    pub residual: u64,
    pub matchers: PerMatcher<Tally>,
}

/// Changed pages on which every matcher ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    pub pages: u64,
    pub classes: [Class; BUCKETS],
}

impl Sample {
    pub(crate) fn add(&mut self, other: &Self) {
        self.pages += other.pages;
        for (class, other) in self.classes.iter_mut().zip(&other.classes) {
            class.pages += other.pages;
            class.bytes += other.bytes;
            class.residual += other.residual;
            for (kind, tally) in class.matchers.iter_mut() {
                let other = &other.matchers[kind];
                tally.speed.add(other.speed);
                for (name, taken) in &other.taken {
                    let sum = tally.taken.entry(name.clone()).or_default();
                    sum.bytes += taken.bytes;
                    sum.places += taken.places;
                }
            }
        }
    }
}

/// What an extractor cost on one night.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spent {
    /// Whole pages.
    pub scratch: Speed,
    /// What was left of recycled pages.
    pub recycled: Speed,
    pub recycled_pages: u64,
    pub copied: u64,
    pub copy_s: f64,
}

/// What was measured on one night.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Night {
    pub sample: Sample,
    /// The pages that were matched in earnest, by class and matcher.
    pub matched: [PerMatcher<Speed>; BUCKETS],
    /// Texts of pages, and texts of changed pages with those of their old pages, which lie further apart.
    pub read: Speed,
    pub read_pairs: Speed,
    pub extractors: BTreeMap<String, Spent>,
}

/// What is known of an extractor before the night.
#[derive(Clone, Debug)]
pub(crate) struct ExtractorFacts {
    pub name: String,
    pub recycles: Recycles,
    /// The shortest region of use to it.
    pub window: Option<u32>,
    /// Mentions of the night before.
    pub n: u64,
    /// Their size on disk, in blocks.
    pub n_b: u64,
    pub price_per_mb: f64,
    /// What it costs while nothing has been measured.
    pub prior: Prior,
}

/// Sizes on disk are counted in blocks of so many bytes.
pub(crate) const BLOCK: u64 = 4096;

/// Pages and their text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extent {
    pub pages: u64,
    pub bytes: u64,
}

/// The snapshot's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extents {
    /// Without an old page.
    pub added: Extent,
    /// With the old page's text.
    pub equal: Extent,
    /// With another.
    pub changed: Extent,
}

impl Extents {
    /// Counts a page, `equal` to its old one or not; `None`: there is no old one.
    pub fn add(&mut self, equal: Option<bool>, bytes: i64) {
        let extent = match equal {
            None => &mut self.added,
            Some(true) => &mut self.equal,
            Some(false) => &mut self.changed,
        };
        extent.pages += 1;
        extent.bytes += u64::try_from(bytes).unwrap_or(0);
    }

    #[must_use]
    pub fn all(&self) -> Extent {
        let parts = [self.added, self.equal, self.changed];
        Extent { pages: parts.iter().map(|e| e.pages).sum(), bytes: parts.iter().map(|e| e.bytes).sum() }
    }

    /// The paper's f: share of pages with an old version.
    #[must_use]
    pub fn f(&self) -> f64 {
        ratio(self.equal.pages + self.changed.pages, self.all().pages)
    }

    /// Share of pages equal to their old version.
    #[must_use]
    pub fn e(&self) -> f64 {
        ratio(self.equal.pages, self.all().pages)
    }
}

impl std::ops::AddAssign for Extents {
    fn add_assign(&mut self, other: Self) {
        let parts =
            [(&mut self.added, other.added), (&mut self.equal, other.equal), (&mut self.changed, other.changed)];
        for (sum, more) in parts {
            sum.pages += more.pages;
            sum.bytes += more.bytes;
        }
    }
}

/// Seconds a byte, a page or a mention.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights {
    /// Reading a byte of text, and a byte of a changed page or its old page.
    pub read: f64,
    pub read_pairs: f64,
    /// Matching a byte of both pages, by class and matcher.
    pub matchers: [PerMatcher<f64>; BUCKETS],
    /// In the order of the extractors.
    pub extractors: Vec<ExtractorWeights>,
}

impl Weights {
    /// Reading a block of old mentions: as long as one of text.
    #[must_use]
    pub(crate) fn read_mentions(&self) -> f64 {
        self.read * number(BLOCK)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExtractorWeights {
    /// Extracting a byte.
    pub ex: f64,
    /// Beginning with a recycled page.
    pub page: f64,
    /// Copying a mention.
    pub find: f64,
    /// Whether `ex` was measured.
    pub measured: bool,
}

/// Least bytes that make a time worth believing.
const LEAST_MATCHED: u64 = 16 << 10;
const LEAST_EXTRACTED: u64 = 32 << 10;
const LEAST_READ: u64 = 256 << 10;
const LEAST_COPIED: u64 = 100;

const NANO: f64 = 1e-9;
/// Before anything was measured, nanoseconds.
const READING: f64 = 4.0;
/// Old texts lie scattered over the snapshots in which they changed: how much longer a byte of them takes.
const PAIRS: f64 = 2.0;
const COPYING: f64 = 200.0;

/// A night with less work than this, by default weights, is not worth measuring anything for.
const SHORT_NIGHT: f64 = 0.05;

/// Whether a snapshot is done by default weights, without a sample: then its plan depends on nothing but its sizes.
#[must_use]
pub(crate) fn is_short(extents: &Extents, extractors: &[ExtractorFacts]) -> bool {
    let a_byte: f64 = extractors.iter().map(|facts| facts.prior.byte * NANO).sum();
    a_byte * number(extents.added.bytes + extents.changed.bytes) < SHORT_NIGHT
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Fits the weights to earlier nights, the newest first; of each weight the last `k` nights that measured it count.
#[must_use]
pub(crate) fn fit(nights: &[Night], k: usize, extractors: &[ExtractorFacts]) -> Weights {
    let recent =
        |measure: &dyn Fn(&Night) -> Option<f64>| median(nights.iter().filter_map(measure).take(k.max(1)).collect());
    let mut matchers = [PerMatcher::<f64>::default(); BUCKETS];
    for kind in MatcherKind::ALL {
        let prior = kind.facts().nanoseconds;
        let whole = |night: &Night, class: usize| {
            let mut speed = night.sample.classes[class].matchers[kind].speed;
            // What ran in earnest is measured on more and warmer pages than the sample.
            if night.matched[class][kind].bytes >= LEAST_MATCHED {
                speed = night.matched[class][kind];
            }
            speed
        };
        let anywhere = recent(&|night| {
            let mut sum = Speed::default();
            (0..BUCKETS).for_each(|class| sum.add(whole(night, class)));
            sum.per_byte(LEAST_MATCHED)
        });
        let prior_mean = prior.iter().sum::<f64>() / number(BUCKETS as u64);
        for (class, row) in matchers.iter_mut().enumerate() {
            let here = recent(&|night| whole(night, class).per_byte(LEAST_MATCHED));
            // A class never seen is as much faster or slower than the others as it is by default.
            let scaled = anywhere.map(|rate| rate * prior[class] / prior_mean);
            row[kind] = here.or(scaled).unwrap_or(prior[class] * NANO);
        }
    }
    let of = |facts: &ExtractorFacts| {
        let spent = |night: &Night| night.extractors.get(&facts.name).copied();
        let scratch = recent(&|night| spent(night)?.scratch.per_byte(LEAST_EXTRACTED));
        let recycled = || recent(&|night| spent(night)?.recycled.per_byte(LEAST_EXTRACTED));
        let Prior { byte, page } = facts.prior;
        let measured = scratch.or_else(recycled);
        let ex = measured.unwrap_or(byte * NANO);
        // What recycled pages took beyond the bytes that were extracted from them.
        let beyond = |night: &Night| {
            let spent = spent(night)?;
            let extra = (spent.recycled.seconds - ex * number(spent.recycled.bytes)).max(0.0);
            (spent.recycled_pages > 0).then(|| extra / number(spent.recycled_pages))
        };
        let find = |night: &Night| {
            let spent = spent(night)?;
            (spent.copied >= LEAST_COPIED).then(|| spent.copy_s / number(spent.copied))
        };
        ExtractorWeights {
            ex,
            page: recent(&beyond).unwrap_or(page * NANO),
            find: recent(&find).unwrap_or(COPYING * NANO),
            measured: measured.is_some(),
        }
    };
    let read = recent(&|night| night.read.per_byte(LEAST_READ));
    let read_pairs = recent(&|night| night.read_pairs.per_byte(LEAST_READ));
    Weights {
        // A store that never matched still knows how fast it reads.
        read_pairs: read_pairs.or(read.map(|read| PAIRS * read)).unwrap_or(PAIRS * READING * NANO),
        read: read.unwrap_or(READING * NANO),
        matchers,
        extractors: extractors.iter().map(of).collect(),
    }
}

/// How changed pages are spread over the classes, and what is left to extract of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shares {
    /// Of the changed bytes.
    pub class: [f64; BUCKETS],
    /// Of a page's bytes, by class.
    pub residual: [f64; BUCKETS],
    /// Bytes to extract for each byte of the residual: by class, matcher and extractor.
    pub left: Vec<[PerMatcher<f64>; BUCKETS]>,
    /// Copy regions per page, by matcher and extractor.
    pub places: Vec<PerMatcher<f64>>,
}

/// Bytes of text that the default shares count for.
const BELIEF: f64 = 20_000.0;
const SPREAD: [f64; BUCKETS] = [0.4, 0.2, 0.2, 0.2];
const RESIDUALS: [f64; BUCKETS] = [0.02, 0.12, 0.5, 0.95];

impl Shares {
    /// Of the pooled samples.
    #[must_use]
    pub(crate) fn of(sample: &Sample, extractors: &[ExtractorFacts]) -> Self {
        let all: f64 = sample.classes.iter().map(|class| number(class.bytes)).sum();
        let mut shares = Self { class: [0.0; BUCKETS], residual: [0.0; BUCKETS], left: Vec::new(), places: Vec::new() };
        for (i, class) in sample.classes.iter().enumerate() {
            let bytes = number(class.bytes);
            shares.class[i] = (bytes + BELIEF * SPREAD[i]) / (all + BELIEF);
            shares.residual[i] = (number(class.residual) + BELIEF * RESIDUALS[i]) / (bytes + BELIEF);
        }
        for facts in extractors {
            let mut left = [PerMatcher::<f64>::default(); BUCKETS];
            let mut places = PerMatcher::<f64>::default();
            for kind in MatcherKind::ALL {
                let usual = kind.facts();
                for (row, class) in left.iter_mut().zip(&sample.classes) {
                    let taken = class.matchers[kind].taken.get(&facts.name);
                    let (bytes, of) = taken.map_or((0.0, 0.0), |taken| (number(taken.bytes), number(class.residual)));
                    row[kind] = (bytes + BELIEF * usual.leaves) / (of + BELIEF);
                }
                let taken = sample.classes.iter().filter_map(|class| class.matchers[kind].taken.get(&facts.name));
                let sum: u64 = taken.map(|taken| taken.places).sum();
                places[kind] = if sample.pages == 0 { usual.regions } else { ratio(sum, sample.pages) };
            }
            shares.left.push(left);
            shares.places.push(places);
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(name: &str) -> ExtractorFacts {
        let prior = Prior { byte: 4.0, page: 2_000.0 };
        ExtractorFacts {
            name: name.into(),
            recycles: Recycles::ByRegion,
            window: Some(40),
            n: 0,
            n_b: 0,
            price_per_mb: 0.0,
            prior,
        }
    }

    fn night(seconds: f64) -> Night {
        let scratch = Speed { bytes: 1_000_000, seconds };
        let spent = Spent { scratch, copied: 1000, copy_s: seconds, ..Spent::default() };
        Night { extractors: BTreeMap::from([("a".to_owned(), spent)]), ..Night::default() }
    }

    #[test]
    fn one_slow_night_does_not_count() {
        let nights = [night(0.002), night(9.0), night(0.003), night(50.0), night(60.0)];
        let weights = fit(&nights, 3, &[facts("a")]);
        assert!((weights.extractors[0].ex - 3e-9).abs() < 1e-15, "the median of the last three");
        assert!((weights.extractors[0].find - 3e-6).abs() < 1e-12);
        assert!(weights.extractors[0].measured);
    }

    #[test]
    fn what_was_never_measured_has_a_default() {
        let weights = fit(&[], 3, &[facts("a")]);
        assert!(!weights.extractors[0].measured);
        assert!((weights.extractors[0].ex - 4e-9).abs() < 1e-15);
        for class in weights.matchers {
            let [edges, diff, tree, anchor] = MatcherKind::ALL.map(|kind| class[kind]);
            assert!(edges < anchor && anchor < diff && diff < tree);
        }
    }

    #[test]
    fn reading_pairs_follows_reading_until_it_is_measured() {
        let read = Speed { bytes: 1_000_000, seconds: 0.003 };
        let mut night = Night { read, ..Night::default() };
        let weights = fit(std::slice::from_ref(&night), 3, &[]);
        assert!((weights.read_pairs - 6e-9).abs() < 1e-15);
        night.read_pairs = Speed { bytes: 1_000_000, seconds: 0.004 };
        assert!((fit(&[night], 3, &[]).read_pairs - 4e-9).abs() < 1e-15);
        assert!((fit(&[], 3, &[]).read_pairs - 8e-9).abs() < 1e-15);
    }

    #[test]
    fn a_class_without_pages_follows_the_others() {
        let mut fast = Night::default();
        let (anchor, usual) = (MatcherKind::Anchor, MatcherKind::Anchor.facts().nanoseconds);
        fast.matched[0][anchor] = Speed { bytes: 1 << 20, seconds: usual[0] * NANO * f64::from(1 << 20) / 2.0 };
        let weights = fit(&[fast], 3, &[]);
        assert!(weights.matchers[3][anchor] > weights.matchers[0][anchor]);
        assert!(weights.matchers[3][anchor] < usual[3] * NANO);
    }

    #[test]
    fn shares_follow_the_sample_once_there_is_one() {
        let mut sample = Sample { pages: 10, ..Sample::default() };
        sample.classes[2] = Class { pages: 10, bytes: 4_000_000, residual: 2_000_000, ..Class::default() };
        let taken = Taken { bytes: 200_000, places: 50 };
        sample.classes[2].matchers[MatcherKind::Anchor].taken.insert("a".into(), taken);
        let shares = Shares::of(&sample, &[facts("a")]);
        assert!(shares.class[2] > 0.98 && (shares.residual[2] - 0.5).abs() < 0.01);
        assert!((shares.left[0][2][MatcherKind::Anchor] - 0.1).abs() < 0.01);
        assert!((shares.places[0][MatcherKind::Anchor] - 5.0).abs() < 1e-9);
        let unknown = Shares::of(&Sample::default(), &[facts("a")]);
        assert!((unknown.left[0][1][MatcherKind::Anchor] - 0.4).abs() < 1e-9);
        assert!((unknown.class.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn classes_by_share() {
        assert_eq!([0, 4, 5, 24, 25, 74, 75, 100].map(|r| bucket(r, 100)), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(bucket(0, 0), 0);
    }
}
