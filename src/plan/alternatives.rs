//! Alternatives, priced; the cheapest is taken.
//!
//! With the paper's names, a plan costs
//! ```text
//!   4 w1,IO m_b f' + 2 w1,mat m l f' + w1,ex m l f' g    changed pages (f' = f - e): read both texts twice, match them,
//!                                                        extract the rest
//! + w2,IO n_b + w2,find (n h' + h m f')                  read old mentions, copy them (h': of pages with an old version)
//!                                                        and find the regions that they are copied from (h a page)
//! + w3,IO m_b (1 - f) + w3,ex m l (1 - f)                pages without an old version
//! ```
//! Equal pages (share e) are known by their digests: nothing is read, matched or extracted. `none` re-extracts
//! every page: f = 0. The table `plans` has all of these, and what is expected follows from them. Where extraction has a price, plans minimise the price, and among equal prices the time.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{BUCKETS, Extents, ExtractorFacts, ExtractorWeights, Shares, Weights, number, ratio};
use super::rules::{Cost, Rules};
use super::{AlternativeKind, Plan, PlanChoice};
use crate::extract::Recycles;
use crate::matching::MatcherKind;

/// What the choice is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub extents: &'a Extents,
    pub extractors: &'a [ExtractorFacts],
    pub weights: &'a Weights,
    pub shares: &'a Shares,
    /// The shortest region worth naming where no extractor says what it needs.
    pub default_region: u32,
}

/// A way to do the night, and what it would cost.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Alternative {
    pub kind: AlternativeKind,
    /// The matcher of all changed pages; of `refined`, the one that would have been best for all of them.
    pub matcher: Option<MatcherKind>,
    pub read_s: f64,
    pub match_s: f64,
    pub bytes_matched: u64,
    /// In the order of the extractors.
    pub extractors: Vec<Part>,
    pub price: f64,
}

/// An extractor's part of an alternative.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Part {
    /// On changed pages.
    pub recycle: bool,
    pub bytes: f64,
    pub extract_s: f64,
    pub copy_s: f64,
    /// The paper's g: share of a matched page's text that is extracted again.
    pub g: f64,
    /// The paper's h: copy regions per matched page.
    pub h: f64,
}

impl Alternative {
    #[must_use]
    pub(crate) fn seconds(&self) -> f64 {
        self.read_s + self.match_s + self.extract_s() + self.copy_s()
    }

    #[must_use]
    pub(crate) fn extract_s(&self) -> f64 {
        self.extractors.iter().map(|part| part.extract_s).sum()
    }

    #[must_use]
    pub(crate) fn copy_s(&self) -> f64 {
        self.extractors.iter().map(|part| part.copy_s).sum()
    }

    #[must_use]
    pub(crate) fn bytes_extracted(&self) -> f64 {
        self.extractors.iter().map(|part| part.bytes).sum()
    }

    /// Whether a way that matches is clearly better than one that does not.
    fn is_worth_it(&self, unmatched: &Self) -> bool {
        self.price < unmatched.price || self.seconds() < (1.0 - WORTH_MATCHING) * unmatched.seconds()
    }

    /// Price first, then time.
    fn value(&self) -> f64 {
        self.price * PRICE_FIRST + self.seconds()
    }
}

/// Seconds that nobody would wait to save one unit of price.
const PRICE_FIRST: f64 = 1e9;
const MEGABYTE: f64 = 1e6;
/// Seconds to fetch mentions from a part of the store that is not open.
const FAR_AWAY: f64 = 5e-4;
/// The refined plan may cost a little more than it seems it should: it bounds what a page can lose by a wrong guess.
const PREFERENCE: f64 = 0.98;

/// Regions are written, read and looked up again, which no weight tells: ways that match must promise to save more than this
/// share of the time.
const WORTH_MATCHING: f64 = 0.1;

/// The alternatives, and which one is taken.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub plan: Plan,
    pub alternatives: Vec<Alternative>,
    pub chosen: usize,
}

/// Chooses.
#[must_use]
pub(crate) fn choose(question: Question<'_>) -> Choice {
    let (scratch, equal) = (question.scratch(), question.equal());
    let fixed = MatcherKind::ALL.map(|kind| question.fixed(kind));
    let best = fixed.iter().min_by(|a, b| a.value().total_cmp(&b.value()));
    let (rules, refined) = question.refined(best.and_then(|best| best.matcher));
    let chosen = if question.extractors.is_empty() {
        // Without extractors regions are all that is asked for.
        AlternativeKind::Matcher(MatcherKind::Anchor)
    } else {
        let matched = best.filter(|best| best.value() < PREFERENCE * refined.value()).unwrap_or(&refined);
        // A text that did not change is not extracted again, even if that were faster than copying: since when a mention
        // stands must not depend on what a night costs.
        let all = [
            Some(&equal),
            Some(&scratch).filter(|_| question.extents.equal.pages == 0),
            Some(matched).filter(|matched| matched.is_worth_it(&equal)),
        ];
        // Of equal ones the first.
        all.into_iter().flatten().min_by(|a, b| a.value().total_cmp(&b.value())).unwrap_or(&equal).kind
    };
    let alternatives: Vec<Alternative> = [scratch, equal].into_iter().chain(fixed).chain([refined]).collect();
    let chosen = alternatives.iter().position(|alternative| alternative.kind == chosen).expect("it is one of them");
    let taken = &alternatives[chosen];
    let recycle: BTreeMap<String, bool> =
        question.extractors.iter().zip(&taken.extractors).map(|(e, part)| (e.name.clone(), part.recycle)).collect();
    let windows = question.extractors.iter().zip(&taken.extractors).filter(|(_, part)| part.recycle);
    let min_region = windows.filter_map(|(facts, _)| facts.window).min().unwrap_or(question.default_region);
    let plan = Plan {
        choice: PlanChoice::Auto,
        from_scratch: taken.kind == AlternativeKind::None,
        matcher: taken.matcher,
        rules: (taken.kind == AlternativeKind::Refined).then_some(rules),
        recycle,
        near: question.near(),
        min_region,
    };
    Choice { plan, alternatives, chosen }
}

impl Question<'_> {
    /// Extractors that do a page faster than another part of the store is opened.
    fn near(&self) -> BTreeSet<String> {
        let all = self.extents.all();
        let page = number(all.bytes) / number(all.pages).max(1.0);
        let cheap = |facts: &ExtractorFacts, weights: &ExtractorWeights| {
            facts.price_per_mb <= 0.0 && weights.ex * page < FAR_AWAY
        };
        self.parts()
            .filter(|(_, facts, weights)| cheap(facts, weights))
            .map(|(_, facts, _)| facts.name.clone())
            .collect()
    }

    fn parts(&self) -> impl Iterator<Item = (usize, &ExtractorFacts, &ExtractorWeights)> {
        self.extractors
            .iter()
            .zip(&self.weights.extractors)
            .enumerate()
            .map(|(i, (facts, weights))| (i, facts, weights))
    }

    fn alternative(
        &self,
        kind: AlternativeKind,
        matcher: Option<MatcherKind>,
        read_s: f64,
        parts: Vec<Part>,
    ) -> Alternative {
        let price = |(facts, part): (&ExtractorFacts, &Part)| facts.price_per_mb * part.bytes / MEGABYTE;
        Alternative {
            kind,
            matcher,
            read_s,
            match_s: 0.0,
            bytes_matched: 0,
            price: self.extractors.iter().zip(&parts).map(price).sum(),
            extractors: parts,
        }
    }

    fn scratch(&self) -> Alternative {
        let all = self.extents.all().bytes;
        let part = |weights: &ExtractorWeights| {
            let bytes = number(all);
            Part { bytes, extract_s: weights.ex * bytes, g: 1.0, ..Part::default() }
        };
        let parts = self.weights.extractors.iter().map(part).collect();
        self.alternative(AlternativeKind::None, None, self.weights.read * number(all), parts)
    }

    /// What an extractor costs where nothing is matched: equal pages are taken over, others extracted. Equal lines and
    /// paragraphs need no matcher.
    fn unmatched(&self, i: usize) -> Part {
        let (facts, weights) = (&self.extractors[i], self.weights.extractors[i]);
        let Extents { added, changed, .. } = *self.extents;
        let by_unit = facts.recycles == Recycles::ByUnit;
        let left = if by_unit { self.left_of_changed(i, MatcherKind::Edges) } else { number(changed.bytes) };
        let bytes = number(added.bytes) + left;
        let pages = if by_unit { number(changed.pages) } else { 0.0 };
        Part {
            recycle: by_unit,
            bytes,
            extract_s: weights.ex * bytes + weights.page * pages,
            copy_s: self.copying(i, self.extents.e(), 0.0),
            g: left / number(changed.bytes).max(1.0),
            h: 0.0,
        }
    }

    fn equal(&self) -> Alternative {
        let Extents { added, changed, .. } = *self.extents;
        let parts: Vec<Part> = (0..self.extractors.len()).map(|i| self.unmatched(i)).collect();
        let read_s = if parts.iter().any(|part| part.recycle) {
            self.weights.read * number(added.bytes) + 2.0 * self.weights.read_pairs * number(changed.bytes)
        } else {
            self.weights.read * number(added.bytes + changed.bytes)
        };
        self.alternative(AlternativeKind::Equal, None, read_s, parts)
    }

    /// Bytes of changed pages that extractor `i` is given if all of them are matched by `kind`.
    fn left_of_changed(&self, i: usize, kind: MatcherKind) -> f64 {
        let shares = self.shares;
        let left = |b: usize| shares.class[b] * (shares.residual[b] * shares.left[i][b][kind]).min(1.0);
        number(self.extents.changed.bytes) * (0..BUCKETS).map(left).sum::<f64>()
    }

    /// What an extractor costs if it recycles, class `b` being matched by `kind(b)`; `None` there: whole pages.
    fn matched(&self, i: usize, kind: impl Fn(usize) -> Option<MatcherKind>) -> Part {
        let (facts, weights) = (&self.extractors[i], self.weights.extractors[i]);
        if facts.recycles == Recycles::Never {
            return self.unmatched(i);
        }
        let Extents { added, changed, .. } = *self.extents;
        let shares = self.shares;
        let mut left = 0.0;
        let mut recycled = 0.0;
        let mut h = 0.0;
        for b in 0..BUCKETS {
            let bytes = number(changed.bytes) * shares.class[b];
            match kind(b) {
                None if facts.recycles == Recycles::ByRegion => left += bytes,
                kind => {
                    // Lines and paragraphs are equal or not, whatever the matcher.
                    let kind = kind.filter(|_| facts.recycles == Recycles::ByRegion).unwrap_or(MatcherKind::Edges);
                    left += bytes * (shares.residual[b] * shares.left[i][b][kind]).min(1.0);
                    recycled += shares.class[b];
                    h += shares.class[b] * shares.places[i][kind];
                }
            }
        }
        let bytes = number(added.bytes) + left;
        let old_pages = self.extents.e() + recycled * ratio(changed.pages, self.extents.all().pages);
        Part {
            recycle: true,
            bytes,
            extract_s: weights.ex * bytes + weights.page * recycled * number(changed.pages),
            copy_s: self.copying(i, old_pages, h * number(changed.pages)),
            g: left / number(changed.bytes).max(1.0),
            h,
        }
    }

    /// What it costs an extractor to take mentions from a share of the pages: reading the old ones, finding the regions on
    /// changed pages, copying.
    fn copying(&self, i: usize, old_pages: f64, regions: f64) -> f64 {
        if old_pages <= 0.0 {
            return 0.0;
        }
        let (facts, find) = (&self.extractors[i], self.weights.extractors[i].find);
        self.weights.read_mentions() * number(facts.n_b) + find * (number(facts.n) * old_pages + regions)
    }

    /// Matching reads both texts of every changed page, and so does extraction after it.
    fn read_if_matched(&self) -> f64 {
        self.weights.read * number(self.extents.added.bytes)
            + 4.0 * self.weights.read_pairs * number(self.extents.changed.bytes)
    }

    fn match_s(&self, kind: impl Fn(usize) -> Option<MatcherKind>) -> f64 {
        let both = 2.0 * number(self.extents.changed.bytes);
        let class = |b: usize| kind(b).map_or(0.0, |kind| self.shares.class[b] * self.weights.matchers[b][kind]);
        both * (0..BUCKETS).map(class).sum::<f64>()
    }

    fn fixed(&self, kind: MatcherKind) -> Alternative {
        let parts = (0..self.extractors.len()).map(|i| self.matched(i, |_| Some(kind))).collect();
        Alternative {
            match_s: self.match_s(|_| Some(kind)),
            bytes_matched: self.extents.changed.bytes,
            ..self.alternative(AlternativeKind::Matcher(kind), Some(kind), self.read_if_matched(), parts)
        }
    }

    /// `edges` everywhere, then the best matcher of each class; extractors that do not gain by it do not recycle.
    fn refined(&self, matcher: Option<MatcherKind>) -> (Rules, Alternative) {
        let mut recycles: Vec<bool> = self.extractors.iter().map(|e| e.recycles == Recycles::ByRegion).collect();
        loop {
            let rules = self.rules(&recycles);
            let kinds: [Option<MatcherKind>; BUCKETS] = std::array::from_fn(|b| self.typical(&rules, b));
            let parts: Vec<Part> = (0..recycles.len())
                .map(|i| match self.extractors[i].recycles {
                    Recycles::ByRegion if !recycles[i] => self.unmatched(i),
                    _ => self.matched(i, |b| kinds[b]),
                })
                .collect();
            let mut dropped = false;
            for (i, facts, _) in self.parts() {
                let worth = |part: &Part| {
                    facts.price_per_mb * part.bytes / MEGABYTE * PRICE_FIRST + part.extract_s + part.copy_s
                };
                if recycles[i] && worth(&self.unmatched(i)) < worth(&parts[i]) {
                    recycles[i] = false;
                    dropped = true;
                }
            }
            if dropped {
                continue;
            }
            // Edges are looked at first, whatever comes after.
            let after_edges = |b: usize| kinds[b].filter(|&kind| kind != MatcherKind::Edges);
            let alternative = Alternative {
                match_s: self.match_s(|_| Some(MatcherKind::Edges)) + self.match_s(after_edges),
                bytes_matched: self.extents.changed.bytes,
                ..self.alternative(AlternativeKind::Refined, matcher, self.read_if_matched(), parts)
            };
            return (rules, alternative);
        }
    }

    fn rules(&self, recycles: &[bool]) -> Rules {
        let mut rules = Rules::default();
        let bytes = number(self.extents.all().bytes).max(1.0);
        let pages_per_byte = ratio(self.extents.changed.pages, self.extents.changed.bytes);
        for (i, facts, weights) in self.parts().filter(|(i, ..)| recycles[*i]) {
            let byte = weights.ex + facts.price_per_mb / MEGABYTE * PRICE_FIRST;
            rules.scratch += byte;
            rules.copy += weights.find * number(facts.n) / bytes + weights.page * pages_per_byte;
            for b in 0..BUCKETS {
                for (kind, cost) in rules.costs[b].iter_mut() {
                    cost.residual += byte * self.shares.left[i][b][kind];
                }
            }
        }
        for b in 0..BUCKETS {
            for (kind, cost) in rules.costs[b].iter_mut() {
                // The edges are known by then.
                *cost = Cost {
                    both: if kind == MatcherKind::Edges { 0.0 } else { self.weights.matchers[b][kind] },
                    ..*cost
                };
            }
        }
        rules
    }

    /// What the rules say of a page in the middle of a class.
    fn typical(&self, rules: &Rules, b: usize) -> Option<MatcherKind> {
        let costs = &rules.costs[b];
        let price = |cost: &Cost| 2.0 * cost.both + cost.residual * self.shares.residual[b] + rules.copy;
        let all = costs.iter().map(|(kind, cost)| (kind, price(cost)));
        let best = all.min_by(|a, b| a.1.total_cmp(&b.1))?;
        (best.1 < rules.scratch).then_some(best.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{Class, Extent, Sample, Taken, fit};
    use super::*;
    use crate::extract::Prior;
    use proptest::prelude::*;

    const PATTERNS: Prior = Prior { byte: 4.0, page: 2_000.0 };
    const TERMS: Prior = Prior { byte: 6.0, page: 2_000.0 };
    const PROGRAM: Prior = Prior { byte: 1_000.0, page: 100_000.0 };

    fn facts(name: &str, recycles: Recycles, prior: Prior) -> ExtractorFacts {
        ExtractorFacts { name: name.into(), recycles, window: Some(50), n: 1000, n_b: 20, price_per_mb: 0.0, prior }
    }

    fn extents(added: u64, equal: u64, changed: u64) -> Extents {
        let extent = |pages| Extent { pages, bytes: pages * 10_000 };
        Extents { added: extent(added), equal: extent(equal), changed: extent(changed) }
    }

    fn chosen(extents: &Extents, extractors: &[ExtractorFacts], sample: &Sample) -> Choice {
        let (weights, shares) = (fit(&[], 3, extractors), Shares::of(sample, extractors));
        choose(Question { extents, extractors, weights: &weights, shares: &shares, default_region: 32 })
    }

    #[test]
    fn a_dear_program_is_worth_complete_regions() {
        let extractors = [facts("w", Recycles::ByRegion, PROGRAM)];
        let choice = chosen(&extents(10, 900, 90), &extractors, &Sample::default());
        let rules = choice.plan.rules.expect("refined");
        assert_eq!(choice.plan.matcher, Some(MatcherKind::Anchor));
        assert_eq!(rules.matcher(10_000, 10_000, 6_000), Some(MatcherKind::Anchor));
        assert_eq!(choice.plan.min_region, 50);
        assert!(choice.plan.recycles("w") && choice.plan.near.is_empty());
    }

    #[test]
    fn cheap_patterns_are_not_worth_reading_old_pages() {
        let extractors = [facts("r", Recycles::ByRegion, PATTERNS)];
        let choice = chosen(&extents(0, 100, 900), &extractors, &Sample::default());
        assert!(!choice.plan.matches() && !choice.plan.from_scratch, "{:?}", choice.plan);
        assert!(choice.plan.near.contains("r"));
    }

    #[test]
    fn without_old_pages_nothing_is_matched() {
        let extractors = [facts("w", Recycles::ByRegion, PROGRAM)];
        assert!(!chosen(&extents(100, 0, 0), &extractors, &Sample::default()).plan.matches());
    }

    #[test]
    fn lines_need_no_matcher() {
        let extractors = [facts("l", Recycles::ByUnit, PROGRAM)];
        let choice = chosen(&extents(0, 100, 900), &extractors, &Sample::default());
        assert!(choice.plan.recycles("l") && !choice.plan.matches(), "{:?}", choice.plan);
    }

    #[test]
    fn a_price_outweighs_time() {
        let mut extractors = [facts("r", Recycles::ByRegion, PATTERNS)];
        extractors[0].price_per_mb = 0.01;
        let choice = chosen(&extents(0, 100, 900), &extractors, &Sample::default());
        let rules = choice.plan.rules.expect("refined");
        assert_eq!(
            rules.matcher(10_000, 10_000, 5_000),
            Some(MatcherKind::Anchor),
            "as complete as the tree, and faster"
        );
        let cheapest = choice.alternatives.iter().map(|a| a.price).fold(f64::INFINITY, f64::min);
        assert!((choice.alternatives[choice.chosen].price - cheapest).abs() < 1e-12);
    }

    #[test]
    fn without_extractors_regions_are_the_result() {
        let choice = chosen(&extents(0, 1, 1), &[], &Sample::default());
        assert_eq!(choice.plan.matcher, Some(MatcherKind::Anchor));
        assert!(choice.plan.rules.is_none() && choice.plan.matches());
        assert_eq!(choice.plan.min_region, 32);
    }

    fn sample() -> impl Strategy<Value = Sample> {
        let class = (0u64..50, 0u64..400_000, 0.0f64..1.0, prop::collection::vec(0.0f64..1.0, 8));
        prop::collection::vec(class, BUCKETS).prop_map(|classes| {
            let mut sample = Sample::default();
            for (into, (pages, bytes, share, left)) in sample.classes.iter_mut().zip(classes) {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
                let part = |of: u64, share: f64| (number(of) * share) as u64;
                let residual = part(bytes, share);
                *into = Class { pages, bytes, residual, ..Class::default() };
                sample.pages += pages;
                for (k, (_, tally)) in into.matchers.iter_mut().enumerate() {
                    for (e, name) in ["a", "b"].into_iter().enumerate() {
                        let taken = Taken { bytes: part(residual, left[k * 2 + e]), places: pages };
                        tally.taken.insert(name.into(), taken);
                    }
                }
            }
            sample
        })
    }

    proptest! {
        /// The refined plan is never priced above a fixed one (but for the look at the edges), and what is chosen is
        /// the cheapest that may be.
        #[test]
        fn the_cheapest_is_chosen(
            sample in sample(), added in 0u64..1000, equal in 0u64..1000, changed in 0u64..1000,
            dear in prop::bool::ANY, price in prop::option::of(0.001f64..1.0),
        ) {
            let prior = if dear { PROGRAM } else { TERMS };
            let mut extractors = [facts("a", Recycles::ByRegion, prior), facts("b", Recycles::ByRegion, PATTERNS)];
            extractors[0].price_per_mb = price.unwrap_or(0.0);
            let extents = extents(added, equal, changed);
            let choice = chosen(&extents, &extractors, &sample);
            let taken = &choice.alternatives[choice.chosen];
            let refined = choice.alternatives.last().unwrap();
            for other in &choice.alternatives {
                let edges = 2.0 * number(extents.changed.bytes) * 1e-9;
                let slack = edges + (1.0 / PREFERENCE - 1.0) * other.value();
                // Matching has to be worth it.
                let unmatched = taken.matcher.is_none() && other.matcher.is_some();
                let worth = if unmatched { WORTH_MATCHING * taken.seconds() } else { 0.0 };
                prop_assert!(taken.value() <= other.value() + slack + worth, "{} {} > {} {}", taken.kind, taken.value(), other.kind, other.value());
                if other.matcher.is_some() {
                    prop_assert!(refined.value() <= other.value() + slack);
                }
            }
            // The plan says what was priced.
            prop_assert_eq!(choice.plan.from_scratch, taken.kind == AlternativeKind::None);
            prop_assert_eq!(choice.plan.rules.is_some(), taken.kind == AlternativeKind::Refined);
        }
    }
}
