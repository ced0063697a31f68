//! What asking a worker costs: as it states itself, else as the pipeline file says.

use crate::config::DeclaredExtractor;
use crate::extract::llm::{Price, Usage};
use crate::extract::{Question, Reported};

/// The price of a worker's answers, and what a run may spend on them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Charge {
    /// Of tokens, and the longest answer.
    tokens: Option<(Price, u64)>,
    per_mb: Option<f64>,
    budget: Option<f64>,
}

const MEGABYTE: f64 = 1e6;

impl Charge {
    /// Of a command. A model has its own way.
    pub(super) fn new(declared: &DeclaredExtractor) -> Self {
        if declared.declaration.model().is_some() {
            return Self::default();
        }
        let config = &declared.config;
        Self {
            tokens: config.tokens_price().map(|price| (price, config.most_tokens().into())),
            per_mb: config.price_per_mb,
            budget: config.budget,
        }
    }

    /// Whether the pipeline file says what it costs.
    pub(super) fn is_declared(&self) -> bool {
        self.tokens.is_some() || self.per_mb.is_some()
    }

    pub(super) fn budget(&self) -> Option<f64> {
        self.budget
    }

    /// The same price, with another budget.
    pub(super) fn with_budget(self, budget: Option<f64>) -> Self {
        Self { budget, ..self }
    }

    /// What is reserved for a request: a token for each byte that is shown, and the longest answer.
    pub(super) fn most(&self, question: &Question<'_>) -> f64 {
        let Question { text, before, after, title, url } = question;
        let shown = [text, before, after, &title.unwrap_or_default(), &url.unwrap_or_default()];
        let bytes: usize = shown.iter().map(|text| text.len()).sum();
        self.of(Reported::default(), bytes).unwrap_or(0.0)
    }

    /// What an answer came to: as it states; by the tokens that it states; without either, what is reserved for it.
    #[expect(clippy::cast_precision_loss, reason = "a size of text")]
    pub(super) fn of(&self, stated: Reported, bytes: usize) -> Option<f64> {
        if stated.price.is_some() {
            return stated.price;
        }
        match (self.tokens, tokens(stated)) {
            (Some((price, _)), Some(used)) => Some(price.of(used)),
            (Some((price, most)), None) => Some(price.of(Usage { input: bytes as u64, output: most })),
            (None, _) => self.per_mb.map(|price| price * bytes as f64 / MEGABYTE),
        }
    }
}

/// The tokens that an answer states; `None` if it states none.
pub(super) fn tokens(stated: Reported) -> Option<Usage> {
    let Reported { input_tokens, output_tokens, .. } = stated;
    let states_any = input_tokens.or(output_tokens).is_some();
    states_any.then(|| Usage { input: input_tokens.unwrap_or(0), output: output_tokens.unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stated_counts_else_what_was_reserved() {
        let price = Price { input: 1.0, output: 10.0 };
        let charge = Charge { tokens: Some((price, 100)), per_mb: None, budget: None };
        let stated = |input_tokens, output_tokens, price| Reported { input_tokens, output_tokens, price };
        let close = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-12);
        assert!(close(charge.of(stated(Some(7), Some(9), Some(0.5)), 50), 0.5));
        assert!(close(charge.of(stated(Some(7), None, None), 50), 7e-6));
        assert!(close(charge.of(Reported::default(), 50), 50e-6 + 1000e-6));
        let question = Question { text: "abc", before: "de", title: Some("f"), ..Question::default() };
        assert!(close(Some(charge.most(&question)), 6e-6 + 1000e-6));
        let by_size = Charge { tokens: None, per_mb: Some(2.0), budget: None };
        assert!(close(by_size.of(stated(Some(7), Some(9), None), 500_000), 1.0));
        assert_eq!(Charge::default().of(stated(Some(7), None, None), 9), None);
    }
}
