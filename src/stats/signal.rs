//! Whether a version shows the signal that the next update is near: a page with breaking news changes sooner.

use regex::Regex;

/// What makes a version show the signal: any of these.
#[derive(Clone, Debug, Default)]
pub struct SignalRule {
    /// Found in text that is new on the page.
    pub new_text: Option<Regex>,
    /// A mention of this extractor came with it.
    pub mention: Option<String>,
    /// At least this share of its text is new.
    pub share: Option<f64>,
}

impl SignalRule {
    #[must_use]
    pub(crate) fn is_in(&self, new_text: &str) -> bool {
        self.new_text.as_ref().is_some_and(|pattern| pattern.is_match(new_text))
    }

    #[must_use]
    pub(crate) fn is_mention_of(&self, extractor: &str) -> bool {
        self.mention.as_deref() == Some(extractor)
    }

    #[must_use]
    pub(crate) fn is_enough(&self, new_text_share: f64) -> bool {
        self.share.is_some_and(|share| new_text_share >= share)
    }

    /// Tells rules apart.
    #[must_use]
    pub(crate) fn identity(&self) -> String {
        let pattern = self.new_text.as_ref().map(Regex::as_str);
        format!("{:?}", (pattern, &self.mention, self.share))
    }
}
