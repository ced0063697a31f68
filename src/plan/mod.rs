//! Plans: which matcher finds old regions, and which extractors recycle, so that the night is shortest.
//!
//! **Problem.** Finding regions costs time that only pays where extraction is dear and pages changed in more than one
//! place. **Idea.** The paper's cost model (Cyclex, section VII) with its parameters under their names ([`model`]):
//! what matching, extracting and copying cost a byte is measured on earlier nights (medians of the last k), how much
//! each matcher leaves to extract is measured tonight on a sample. Every alternative is priced and the cheapest one
//! taken ([`alternatives`]). Beyond the paper, the choice is refined page by page ([`rules`]): `edges` costs next to nothing
//! and tells how much of a page lies between its common prefix and suffix, its *residual*; only there can another
//! matcher save anything.
//!
//! A plan is data: with it every later step is determined, so a rerun with the same plan gives the same bytes.

pub(crate) mod alternatives;
pub(crate) mod model;
pub(crate) mod rules;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::matching::MatcherKind;
use crate::model::closed_set::closed_set;
use rules::Rules;

closed_set! {
    /// What a pipeline file or a caller asks for.
    #[derive(Default)]
    pub enum PlanChoice: "plan" {
        /// The program chooses.
        #[default]
        Auto = "auto",
        /// Every page from scratch.
        None = "none",
    } or
    /// This matcher for every changed page.
    Matcher(MatcherKind)
}

impl PlanChoice {
    /// What is forced: a matcher, or `Some(None)`: every page from scratch. `None`: nothing is, the program chooses.
    #[must_use]
    pub fn forced(self) -> Option<Option<MatcherKind>> {
        match self {
            Self::Auto => None,
            Self::None => Some(None),
            Self::Matcher(kind) => Some(Some(kind)),
        }
    }
}

closed_set! {
    /// A way to do a night.
    pub enum AlternativeKind: "alternative" {
        /// Every page from scratch.
        None = "none",
        /// Nothing is matched; equal pages are taken over.
        Equal = "equal",
        /// The common prefix and suffix first, then whatever pays for that page.
        Refined = "refined",
    } or
    /// This matcher for every changed page.
    Matcher(MatcherKind)
}

closed_set! {
    /// How an extractor got the mentions of a page.
    pub enum Served: "way" {
        /// The text is the old one: its mentions were taken over.
        Equal = "equal",
        /// Equal lines, blocks or paragraphs were copied.
        Units = "units",
        /// From scratch.
        None = "none",
    } or
    /// From the regions that a matcher found.
    Matcher(MatcherKind)
}

closed_set! {
    /// What a row of `plan_costs` is about.
    pub enum Costed: "cost" {
        /// Choosing the plan.
        Plan = "plan",
    } or
    /// Pages that were served this way.
    Pages(Served)
}

/// How a snapshot is matched and extracted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// What was asked for.
    pub choice: PlanChoice,
    /// Every page from scratch, also those whose text did not change.
    pub from_scratch: bool,
    /// The matcher for changed pages, if none of them is to be refined; `none`: no page is matched, equal pages are
    /// still taken over. With rules, the matcher that would have been best for all pages.
    pub matcher: Option<MatcherKind>,
    /// The matcher of each changed page, decided once its edges are known.
    pub rules: Option<Rules>,
    /// Whether an extractor recycles on changed pages; one that is not named does.
    pub recycle: BTreeMap<String, bool>,
    /// Extractors so cheap that an old page which is not at hand (missing last night, or moved from another URL) is
    /// not worth fetching mentions of.
    pub near: BTreeSet<String>,
    /// The shortest region of use to those that recycle.
    pub min_region: u32,
}

impl Plan {
    /// The plan that a caller forces: one matcher for every changed page, or none for any page.
    #[must_use]
    pub(crate) fn forced(matcher: Option<MatcherKind>, min_region: u32) -> Self {
        Self {
            choice: matcher.map_or(PlanChoice::None, PlanChoice::Matcher),
            from_scratch: matcher.is_none(),
            matcher,
            rules: None,
            recycle: BTreeMap::new(),
            near: BTreeSet::new(),
            min_region,
        }
    }

    #[must_use]
    pub(crate) fn recycles(&self, extractor: &str) -> bool {
        !self.from_scratch && self.recycle.get(extractor).copied().unwrap_or(true)
    }

    /// Whether any page is to be matched.
    #[must_use]
    pub(crate) fn matches(&self) -> bool {
        !self.from_scratch && (self.matcher.is_some() || self.rules.is_some())
    }

    /// How changed pages are served, as far as the plan as a whole says.
    #[must_use]
    pub(crate) fn served(&self) -> Served {
        self.matcher.map_or(Served::None, Served::Matcher)
    }
}
