//! Extractors: what finds mentions in a page.
//!
//! A closed set of four kinds, hence an enum: patterns (`regex`), term lists (`dictionary`), joins of other
//! extractors' mentions (`record`) and programs (`command`). Each says how far it looks (its [`Reach`] or [`Unit`]),
//! which is all that `recycle` needs to know to reuse last night's mentions and extract the rest, with the same
//! result as from scratch.
//!
//! Pure: no files, no clock. The exception is `command`, which talks to processes.

pub mod command;
pub mod config;
pub mod dictionary;
mod fingerprint;
pub mod mention;
pub mod reach;
pub mod record;
pub mod regex;
pub(crate) mod scan;
pub mod schema;

pub use command::{Command, CommandSpec, Failure, Runner};
pub use config::{Definition, ExtractorConfig, check_together};
pub use dictionary::Dictionary;
pub use mention::{Found, Mention, Origin, Piece, Value};
pub use reach::{Declared, Reach, Unit};
pub use record::Record;
pub use regex::Patterns;
pub use schema::{Attribute, Schema};

#[derive(Debug)]
pub enum Extractor {
    Regex(Patterns),
    Dictionary(Dictionary),
    Record(Record),
    Command(Command),
}

impl Extractor {
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Regex(_) => "regex",
            Self::Dictionary(_) => "dictionary",
            Self::Record(_) => "record",
            Self::Command(_) => "command",
        }
    }

    /// The attributes of its mentions, in column order.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        match self {
            Self::Regex(patterns) => patterns.schema(),
            Self::Dictionary(dictionary) => dictionary.schema(),
            Self::Record(record) => record.schema(),
            Self::Command(command) => command.schema(),
        }
    }

    /// Its reach, over all patterns; `None` if some of it does not recycle by window.
    #[must_use]
    pub fn reach(&self) -> Option<Reach> {
        match self {
            Self::Regex(patterns) => {
                let reaches: Option<Vec<Reach>> = patterns.patterns().iter().map(regex::Pattern::reach).collect();
                reaches?.into_iter().reduce(Reach::widest)
            }
            Self::Dictionary(dictionary) => Some(dictionary.reach()),
            Self::Record(_) => None,
            Self::Command(command) => command.reach(),
        }
    }

    /// The shortest old region it can profit from in the middle of a page: `gamma + 1`, of several patterns the least.
    /// `None` if it does not recycle by window.
    #[must_use]
    pub fn useful_region(&self) -> Option<u32> {
        let least = match self {
            Self::Regex(patterns) => {
                patterns.patterns().iter().filter_map(regex::Pattern::reach).map(Reach::window).min()
            }
            _ => self.reach().map(Reach::window),
        };
        least.map(|window| u32::try_from(window).unwrap_or(u32::MAX))
    }

    /// What the `pattern` or `term` column of a mention says; `None` where there is no such column.
    #[must_use]
    pub fn label_text(&self, label: u32) -> Option<&str> {
        match self {
            Self::Regex(patterns) => patterns.patterns().get(label as usize).map(regex::Pattern::source),
            Self::Dictionary(dictionary) => dictionary.term(label),
            Self::Record(_) | Self::Command(_) => None,
        }
    }

    /// The label of a pattern or term, as `label_text` spells it. 0 where there are no labels.
    #[must_use]
    pub fn label(&self, text: &str) -> Option<u32> {
        match self {
            Self::Regex(patterns) => {
                (0..).zip(patterns.patterns()).find(|(_, p)| p.source() == text).map(|(label, _)| label)
            }
            Self::Dictionary(dictionary) => dictionary.label(text),
            Self::Record(_) | Self::Command(_) => Some(0),
        }
    }

    /// Lines for the log: what of it cannot be recycled well, and why.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        match self {
            Self::Regex(patterns) => patterns.notes(),
            Self::Command(command) => command.notes(),
            Self::Dictionary(_) | Self::Record(_) => Vec::new(),
        }
    }
}
