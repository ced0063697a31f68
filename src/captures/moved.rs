//! What tells that a page moved: the text of one URL is found again under another.
//!
//! Equal texts are the only evidence, so it must be unmistakable: the text is not short, and just one page has it. A text
//! that several pages share says nothing about which of them became which.

use serde::{Deserialize, Serialize};

use crate::model::Digest;
use crate::model::maps::HashMap;

/// Shorter texts are equal by chance ("not found", "under construction").
const LEAST_BYTES: i64 = 64;

/// Pages by their texts, as far as a text tells one page from all others.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UniqueTexts<T> {
    /// `None`: several pages have it.
    holders: HashMap<Digest, Option<T>>,
}

impl<T> Default for UniqueTexts<T> {
    fn default() -> Self {
        Self { holders: HashMap::default() }
    }
}

impl<T> UniqueTexts<T> {
    /// Whether a text is long enough to tell pages apart.
    #[must_use]
    pub(crate) fn tells(bytes: i64) -> bool {
        bytes >= LEAST_BYTES
    }

    pub(crate) fn add(&mut self, text: Digest, bytes: i64, page: T) {
        if Self::tells(bytes) {
            self.holders.entry(text).and_modify(|page| *page = None).or_insert(Some(page));
        }
    }

    /// The one page that has a text.
    #[must_use]
    pub(crate) fn holder(&self, text: Digest) -> Option<&T> {
        self.holders.get(&text)?.as_ref()
    }

    /// All texts that one page has.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Digest, &T)> {
        self.holders.iter().filter_map(|(text, page)| Some((*text, page.as_ref()?)))
    }
}
