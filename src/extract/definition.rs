//! What an `[[extractor]]` of a pipeline file stands for: an extractor, or a record of what extractors found.
//!
//! A definition is known in two steps, because a command's worker has a say in what it is:
//! ```text
//! Declaration (the file) ──definition: what the worker said last time──► Definition, to plan with
//!                        ──start: the worker introduces itself─────────► Definition and a runner, to extract with
//! ```

use std::path::Path;
use std::sync::Arc;

use crate::extract::command::{Command, CommandSpec, Ready, Worker};
use crate::extract::fingerprint;
use crate::extract::llm::Model;
use crate::extract::record::Record;
use crate::extract::runner::Runner;
use crate::extract::schema::Schema;
use crate::extract::traits::Traits;
use crate::extract::{Extractor, ExtractorKind};
use crate::model::Digest;

/// How the mentions of one name come about.
#[derive(Clone, Debug)]
pub enum Definition {
    /// They are extracted from text.
    Extracts(Arc<Extractor>),
    /// They are joined from the mentions of other extractors.
    Joins(Arc<Record>),
}

impl Definition {
    pub(crate) fn traits(&self) -> Traits {
        match self {
            Self::Extracts(extractor) => extractor.traits(),
            Self::Joins(record) => record.traits(),
        }
    }

    /// The attributes of its mentions, in column order.
    pub(crate) fn schema(&self) -> &Schema {
        match self {
            Self::Extracts(extractor) => extractor.schema(),
            Self::Joins(record) => record.schema(),
        }
    }

    /// Identifies everything that can change a mention. `text_version` names the version of the conversion from bytes
    /// to text. Of a record this is its own share only: its mentions depend on those of its parts too.
    pub(crate) fn fingerprint(&self, text_version: &str) -> Digest {
        match self {
            Self::Extracts(extractor) => extractor.fingerprint(text_version),
            Self::Joins(record) => {
                fingerprint::of(ExtractorKind::Record, text_version, |digest| record.describe(digest))
            }
        }
    }
}

/// What the file says. A command is not complete before its worker has introduced itself.
#[derive(Clone, Debug)]
pub enum Declaration {
    Complete(Definition),
    Command(CommandSpec),
}

/// A definition ready to run.
pub(crate) struct Started {
    pub(crate) definition: Definition,
    /// A runner that starting it took anyway.
    pub(crate) runner: Option<Box<dyn Runner + Send>>,
}

impl Declaration {
    /// The record that it declares, if it does.
    pub(crate) fn record(&self) -> Option<&Record> {
        match self {
            Self::Complete(Definition::Joins(record)) => Some(record),
            Self::Complete(Definition::Extracts(_)) | Self::Command(_) => None,
        }
    }

    /// Identifies what of the declaration decides the mentions. Known without starting a worker.
    pub(crate) fn identity(&self, text_version: &str) -> Digest {
        match self {
            Self::Complete(definition) => definition.fingerprint(text_version),
            Self::Command(spec) => {
                fingerprint::of(ExtractorKind::Command, text_version, |digest| spec.describe(digest))
            }
        }
    }

    /// The model, if it is one.
    #[must_use]
    pub fn model(&self) -> Option<&Model> {
        match self {
            Self::Complete(Definition::Extracts(extractor)) => match &**extractor {
                Extractor::Llm(model) => Some(model),
                _ => None,
            },
            _ => None,
        }
    }

    /// The definition as far as it is known without starting a worker. `said` is what the worker said of itself when it
    /// last ran.
    #[must_use]
    pub fn definition(&self, said: Option<&Ready>) -> Definition {
        match self {
            Self::Complete(definition) => definition.clone(),
            Self::Command(spec) => {
                let agreed = said.and_then(|ready| Command::agree(spec.clone(), ready.clone()).ok());
                let command = agreed.unwrap_or_else(|| Command::declared(spec.clone()));
                Definition::Extracts(Arc::new(Extractor::Command(command)))
            }
        }
    }

    /// Makes the definition ready to run: the worker of a command is started in `folder`, that of the pipeline file, to
    /// hear what it says of itself. The error says what went wrong.
    pub(crate) fn start(&self, folder: &Path) -> Result<Started, String> {
        match self {
            Self::Complete(definition) => Ok(Started { definition: definition.clone(), runner: None }),
            Self::Command(spec) => {
                let introduced =
                    Worker::introduce(spec, folder).map_err(|failure| format!("{}: {failure}", spec.argv.join(" ")))?;
                let command =
                    Command::agree(spec.clone(), introduced.ready().clone()).map_err(|error| error.to_string())?;
                let runner = Box::new(Worker::new(&command, folder, Some(introduced)));
                let definition = Definition::Extracts(Arc::new(Extractor::Command(command)));
                Ok(Started { definition, runner: Some(runner) })
            }
        }
    }
}
