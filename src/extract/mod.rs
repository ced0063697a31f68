//! Extractors: what finds mentions in a page.
//!
//! A closed set of kinds, hence an enum ([`Extractor`]): patterns (`regex`), term lists (`dictionary`), programs
//! (`command`) and models (`llm`). Each kind says in its own module how it finds mentions and what it depends on
//! ([`Extracts`]), which is all that `plan`, `recycle` and the stages need to reuse last night's
//! mentions and extract the rest, with the same result as from scratch.
//!
//! A `record` is declared like an extractor and has mentions like one, but it never sees a text: it is joined from the
//! mentions of other extractors, on every plan. A [`Definition`] is one or the other.
//!
//! Pure: no files, no clock. The exceptions are `command`, which talks to processes, and `llm::client`, which talks to
//! servers.
//!
//! # To add a kind of extractor
//! Three files:
//! 1. its own module here, with an implementation of [`Extracts`]. One that scans the page itself
//!    returns its [passes](scan::Pass); one that asks somebody else says what that one [sees](reach::Sees) and makes
//!    [runners](Runner);
//! 2. this file: its name in [`ExtractorKind`], a variant of [`Extractor`] and its line in `Extractor::kind_of`;
//! 3. `config.rs`: its keys in [`ExtractorConfig`], who may use them, and its line in `build`. A kind that reads a file
//!    names it in `ExtractorConfig::file`.
//!
//! Plans, recycling, forecasts, tables, costs, `verify` and fingerprints take it from there. A fourth file is needed
//! only by a kind whose mentions have labels of their own, for the name of their column
//! ([`LabelColumn`]).
//!
//! # To add a unit
//! Two files: its name in `Unit` and its cut in [`Cut`](reach::Cut) (`reach.rs`), and how it is cut (`units.rs`).

pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod definition;
pub(crate) mod dictionary;
mod fingerprint;
pub(crate) mod llm;
pub(crate) mod mention;
pub(crate) mod reach;
pub(crate) mod record;
pub(crate) mod regex;
pub(crate) mod runner;
pub(crate) mod scan;
pub(crate) mod schema;
pub(crate) mod traits;
pub(crate) mod units;

use std::path::Path;

pub(crate) use command::Command;
pub(crate) use config::check_together;
pub(crate) use config::{Adopt, ExtractorConfig};
pub(crate) use definition::Declaration;
pub use definition::Definition;
pub(crate) use dictionary::Dictionary;
pub(crate) use llm::Model;
pub use mention::Mention;
pub(crate) use mention::{Found, Origin, Piece, Value};
pub(crate) use reach::{Along, Reach};
pub(crate) use record::Record;
pub(crate) use regex::Patterns;
pub use runner::Status;
pub(crate) use runner::{Answer, Came, Failure, Question, Reported, Runner};
pub(crate) use schema::Schema;
pub use traits::LabelColumn;
pub(crate) use traits::{Prior, Read, Recycles, Traits, Works};

use crate::model::Digest;
use crate::model::closed_set::closed_set;
use traits::{Extracts, Finds};

closed_set! {
    /// The `kind` of an `[[extractor]]` in a pipeline file.
    pub enum ExtractorKind: "kind of extractor" {
        Regex = "regex",
        Dictionary = "dictionary",
        /// Joined from the mentions of other extractors, see [`Record`].
        Record = "record",
        Command = "command",
        /// A model on a server.
        Llm = "llm",
    }
}

/// Finds mentions in text.
#[derive(Debug)]
pub enum Extractor {
    Regex(Patterns),
    Dictionary(Dictionary),
    Command(Command),
    Llm(Model),
}

impl Extractor {
    /// What its kind says of itself.
    fn kind_of(&self) -> &dyn Extracts {
        match self {
            Self::Regex(patterns) => patterns,
            Self::Dictionary(dictionary) => dictionary,
            Self::Command(command) => command,
            Self::Llm(model) => model,
        }
    }

    #[must_use]
    pub fn kind(&self) -> ExtractorKind {
        self.kind_of().kind()
    }

    #[must_use]
    pub fn traits(&self) -> Traits {
        Traits::of(self.kind_of())
    }

    pub(crate) fn finds(&self) -> Finds<'_> {
        self.kind_of().finds()
    }

    /// The attributes of its mentions, in column order.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        self.kind_of().schema()
    }

    /// How far it looks; `None` if some of it does not look at windows.
    #[must_use]
    pub fn reach(&self) -> Option<Reach> {
        self.finds().reach()
    }

    /// What the label column of a mention says; `None` where there is no such column.
    #[must_use]
    pub fn label_text(&self, label: u32) -> Option<&str> {
        self.kind_of().labels()?.text(label)
    }

    /// The label that `label_text` spells like this. 0 where there are no labels.
    #[must_use]
    pub fn label(&self, text: &str) -> Option<u32> {
        self.kind_of().labels().map_or(Some(0), |labels| labels.find(text))
    }

    /// What of a page is shown along with each of its units.
    #[must_use]
    pub fn along(&self) -> Along {
        self.kind_of().along()
    }

    /// Whether answers about units are kept, and serve wherever the same is asked.
    #[must_use]
    pub fn keeps_answers(&self) -> bool {
        self.kind_of().keeps_answers()
    }

    /// The identity of a request: all that its answer depends on. `fingerprint` is the extractor's.
    #[must_use]
    pub(crate) fn request_key(&self, question: &Question<'_>, fingerprint: Digest) -> Digest {
        self.kind_of().request_key(question, fingerprint)
    }

    /// Reads a kept answer about a unit.
    pub(crate) fn read(&self, said: &str, text: &str) -> Result<Read, Failure> {
        self.kind_of().read(said, text)
    }

    /// Lines for the log: what of it cannot be recycled well, and why.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.kind_of().notes()
    }

    /// Who is asked for mentions, for one thread; `None` if this process scans for them. `folder` is that of the pipeline
    /// file.
    #[must_use]
    pub fn runner(&self, folder: &Path) -> Option<Box<dyn Runner + Send>> {
        self.kind_of().runner(folder)
    }
}
