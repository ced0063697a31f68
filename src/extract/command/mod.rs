//! Any program as an extractor: a long-lived worker that reads requests and writes answers, one JSON object a line.
//!
//! This is where a model plugs in and where recycling saves most, so it is also where nothing is taken on trust: what
//! a worker says about its reach can be tested (`recycle::audit`), offsets are checked against the page, mentions
//! longer than the declared scope are dropped on every path alike (so that scratch and recycled runs agree on them),
//! and a page whose worker crashed, hung or answered nonsense is failed and never a source to copy from.
//!
//! `scope` and `context` are counted in the worker's own offsets (bytes, characters or UTF-16 units), because that is
//! how its author thinks; all arithmetic on windows is done in that unit.

pub mod protocol;
pub mod ruler;
pub mod worker;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::extract::mention::Mention;
use crate::extract::reach::{Declared, Reach, Unit};
use crate::extract::schema::Schema;
use crate::model::KeyError;
use crate::model::{DigestBuilder, Span};

pub use protocol::Ready;
pub use ruler::Ruler;
pub use worker::Worker;

/// What a worker counts in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offsets {
    Byte,
    /// Unicode code points, as Python counts. JSON text is made of them.
    #[default]
    Char,
    /// As JavaScript, Java and C# count.
    Utf16,
}

impl Offsets {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Char => "char",
            Self::Utf16 => "utf16",
        }
    }
}

/// A command as the pipeline file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    pub argv: Vec<String>,
    pub declared: Declared,
    pub unit: Option<Unit>,
    pub offsets: Option<Offsets>,
    pub timeout: Duration,
    pub in_flight: usize,
}

/// A command after its worker introduced itself: what file and worker agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    spec: CommandSpec,
    ready: Ready,
    unit: Unit,
    offsets: Offsets,
    /// Counted in `offsets`.
    reach: Option<Reach>,
    schema: Schema,
}

/// Why a page has no mentions. The page is marked and tried again next time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    #[error("worker ended: {0}")]
    Crashed(String),
    #[error("worker reports an error: {0}")]
    Reported(String),
    #[error("answer does not fit the page: {0}")]
    BadAnswer(String),
}

impl Failure {
    /// As the `extractions` table has it.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self {
            Self::Timeout(_) => "timeout",
            Self::Crashed(_) | Self::Reported(_) | Self::BadAnswer(_) => "failed",
        }
    }
}

/// Whatever extracts from slices of a page without seeing the rest: a worker, or a function in a test.
pub trait Runner {
    /// The mentions of each slice, each slice extracted as if it were a page, with offsets in bytes of the page. One
    /// failing slice fails the page.
    fn run(&mut self, page: &str, slices: &[Span]) -> Result<Vec<Vec<Mention>>, Failure>;
}

impl Command {
    /// The larger of the worker's and the file's scope and context holds, and the wider unit.
    pub fn agree(spec: CommandSpec, ready: Ready) -> Result<Self, KeyError> {
        let offsets = match (spec.offsets, ready.offsets) {
            (Some(file), Some(worker)) if file != worker => {
                let problem = format!("the file says \"{}\", the worker \"{}\"", file.as_str(), worker.as_str());
                return Err(KeyError::new("offsets", problem, "remove the line: the worker knows"));
            }
            (file, worker) => file.or(worker).unwrap_or_default(),
        };
        let mut schema = Schema::default();
        for attribute in ready.attributes() {
            schema.push(attribute).map_err(|problem| {
                KeyError::new("command", format!("the worker's {problem}"), "rename the attribute in the worker")
            })?;
        }
        let (left, right) = ready.context.map_or((0, 0), protocol::Context::sides);
        let scope = spec.declared.scope.max(ready.scope);
        let reach = scope.map(|scope| Reach::new(scope, left, right).enlarged(spec.declared));
        let window = |stated: Option<Unit>| stated.unwrap_or(Unit::Window);
        let unit = wider(window(spec.unit), window(ready.unit));
        // Without a scope nothing says how far it looks.
        let unit = if unit == Unit::Window && reach.is_none() { Unit::Page } else { unit };
        Ok(Self { spec, ready, unit, offsets, reach: reach.filter(|_| unit == Unit::Window), schema })
    }

    /// The command as the file declares it, for reasoning about it before its worker was heard.
    #[must_use]
    pub fn declared(spec: CommandSpec) -> Self {
        let offsets = spec.offsets.unwrap_or_default();
        let reach = spec.declared.scope.map(|scope| Reach::new(scope, 0, 0).enlarged(spec.declared));
        let unit = spec.unit.unwrap_or(if reach.is_some() { Unit::Window } else { Unit::Page });
        let reach = reach.filter(|_| unit == Unit::Window);
        Self { spec, ready: Ready::default(), unit, offsets, reach, schema: Schema::default() }
    }

    #[must_use]
    pub fn spec(&self) -> &CommandSpec {
        &self.spec
    }

    #[must_use]
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    #[must_use]
    pub fn unit(&self) -> Unit {
        self.unit
    }

    #[must_use]
    pub fn offsets(&self) -> Offsets {
        self.offsets
    }

    /// Counted in [`Command::offsets`]; `None` unless it recycles by window.
    #[must_use]
    pub fn reach(&self) -> Option<Reach> {
        self.reach
    }

    /// The same command with another scope or context, for trying out what would hold.
    #[must_use]
    pub fn with_reach(&self, reach: Reach) -> Self {
        Self { unit: Unit::Window, reach: Some(reach), ..self.clone() }
    }

    /// A worker that does not claim to answer the same question the same way twice: its mentions are sticky, and no
    /// equality with a run from scratch is claimed.
    #[must_use]
    pub fn is_deterministic(&self) -> bool {
        self.ready.deterministic
    }

    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.unit == Unit::Page && self.spec.unit.is_none() && self.ready.unit.is_none() {
            notes
                .push("no scope declared: reused on equal pages only; declare scope and context, or a unit".to_owned());
        }
        if !self.ready.deterministic {
            notes.push("the worker is not deterministic: copied mentions stay as first found".to_owned());
        }
        notes
    }

    /// What the worker says about itself counts, not the command line: it read the configuration.
    pub(crate) fn describe(&self, digest: &mut DigestBuilder) {
        for field in [&self.ready.name, &self.ready.version, &self.ready.fingerprint] {
            digest.field(field.as_bytes());
        }
        digest.field(self.offsets.as_str().as_bytes()).field(self.unit.as_str().as_bytes());
        // The scope drops what is longer, so it is part of what the command means; the context is not.
        digest.number(self.reach.map_or(0, |reach| u64::from(reach.scope)));
        for attribute in self.schema.attributes() {
            digest.field(attribute.name.as_bytes()).number(u64::from(attribute.many));
        }
        if self.ready.fingerprint.is_empty() {
            digest.number(self.spec.argv.len() as u64);
            self.spec.argv.iter().for_each(|argument| _ = digest.field(argument.as_bytes()));
        }
    }
}

fn wider(a: Unit, b: Unit) -> Unit {
    let rank = |unit: Unit| match unit {
        Unit::Window => 0,
        Unit::Line => 1,
        Unit::Paragraph => 2,
        Unit::Page => 3,
    };
    if rank(a) >= rank(b) { a } else { b }
}
