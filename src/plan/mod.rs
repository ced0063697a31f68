//! Plans: which matcher finds old regions, and which extractors recycle, so that the night is shortest.
//!
//! **Problem.** Finding regions costs time that only pays where extraction is dear and pages changed in more than one
//! place. **Idea.** The paper's cost model (Cyclex, section VII) with its parameters under their names ([`model`]):
//! what matching, extracting and copying cost a byte is measured on earlier nights (medians of the last k), how much
//! each matcher leaves to extract is measured tonight on a sample. Every alternative is priced and the cheapest one
//! taken ([`choose`]). Beyond the paper, the choice is refined page by page ([`page`]): `edges` costs next to nothing
//! and tells how much of a page lies between its common prefix and suffix, its *residual*; only there can another
//! matcher save anything.
//!
//! A plan is data: with it every later step is determined, so a rerun with the same plan gives the same bytes.

pub mod choose;
pub mod model;
pub mod page;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::matching::MatcherKind;
use page::Rules;

/// How a snapshot is matched and extracted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What was asked for: `auto`, `none` or a matcher's name.
    pub choice: String,
    /// Every page from scratch, also those whose text did not change.
    pub from_scratch: bool,
    /// The matcher for changed pages, if none of them is to be refined; `none`: no page is matched, equal pages are
    /// still taken over. With rules, the matcher that would have been best for all pages.
    pub matcher: Option<Kind>,
    /// The matcher of each changed page, decided once its edges are known.
    pub rules: Option<Rules>,
    /// Whether an extractor recycles on changed pages; one that is not named does.
    pub recycle: BTreeMap<String, bool>,
    /// Extractors so cheap that an old page which is not at hand (missing last night, or moved from another URL) is
    /// not worth fetching mentions of.
    #[serde(default)]
    pub near: BTreeSet<String>,
    /// The shortest region of use to those that recycle.
    pub min_region: u32,
}

impl Plan {
    /// The plan that a caller forces: one matcher for every changed page, or none for any page.
    #[must_use]
    pub fn forced(matcher: Option<MatcherKind>, min_region: u32) -> Self {
        Self {
            choice: matcher.map_or("none", MatcherKind::as_str).to_owned(),
            from_scratch: matcher.is_none(),
            matcher: matcher.map(Kind),
            rules: None,
            recycle: BTreeMap::new(),
            near: BTreeSet::new(),
            min_region,
        }
    }

    #[must_use]
    pub fn recycles(&self, extractor: &str) -> bool {
        !self.from_scratch && self.recycle.get(extractor).copied().unwrap_or(true)
    }

    /// Whether any page is to be matched.
    #[must_use]
    pub fn matches(&self) -> bool {
        !self.from_scratch && (self.matcher.is_some() || self.rules.is_some())
    }

    /// The name of the plan's matcher.
    #[must_use]
    pub fn matcher_name(&self) -> &'static str {
        self.matcher.map_or("none", |kind| kind.0.as_str())
    }
}

/// A matcher, written as its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub MatcherKind);

impl Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map(Kind).map_err(serde::de::Error::custom)
    }
}
