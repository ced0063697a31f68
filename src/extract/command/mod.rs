//! Any program as an extractor: a long-lived worker that reads requests and writes answers, one JSON object a line.
//!
//! This is where a model plugs in and where recycling saves most, so it is also where nothing is taken on trust: what
//! a worker says about its reach can be tested (`recycle::audit`), offsets are checked against the page, mentions
//! longer than the declared scope are dropped on every path alike (so that scratch and recycled runs agree on them),
//! and a page whose worker crashed, hung or answered nonsense is failed and never a source to copy from.
//!
//! `scope` and `context` are counted in the worker's own offsets (bytes, characters or UTF-16 units), because that is
//! how its author thinks; all arithmetic on windows is done in that unit.

mod minder;
mod process;
pub(crate) mod protocol;
pub(crate) mod ruler;
pub(crate) mod worker;

use std::path::Path;
use std::time::Duration;

use crate::extract::ExtractorKind;
use crate::extract::reach::{Along, Blocks, Cut, Declared, Reach, Sees, Unit, Windows};
use crate::extract::runner::{Failure, Runner};
use crate::extract::schema::Schema;
use crate::extract::traits::{Extracts, Finds, Prior, Read};
use crate::model::DigestBuilder;
use crate::model::KeyError;
use crate::model::closed_set::closed_set;

pub(crate) use protocol::Ready;
pub(crate) use ruler::Ruler;
pub(crate) use worker::Worker;

closed_set! {
    /// What a worker counts in.
    #[derive(Default)]
    pub enum Offsets: "unit of offsets" {
        Byte = "byte",
        /// Unicode code points, as Python counts. JSON text is made of them.
        #[default]
        Char = "char",
        /// As JavaScript, Java and C# count.
        Utf16 = "utf16",
    }
}

/// A command as the pipeline file declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandSpec {
    pub argv: Vec<String>,
    pub declared: Declared,
    pub unit: Option<Unit>,
    pub blocks: Blocks,
    /// The page's title is shown along with each unit.
    pub title: bool,
    /// Whether answers about units serve wherever the same is asked; by default where the worker is deterministic.
    pub reuse: Option<bool>,
    pub offsets: Option<Offsets>,
    pub timeout: Duration,
    /// For the introduction.
    pub start_timeout: Duration,
    pub in_flight: usize,
    /// Names of variables of the environment that it gets besides the usual ones.
    pub env: Vec<String>,
}

impl CommandSpec {
    /// Adds what of the declaration decides the mentions. How long a worker may take, how many requests it is given at a
    /// time and what it can see of the environment do not.
    pub(crate) fn describe(&self, digest: &mut DigestBuilder) {
        let Self { argv, declared: Declared { scope, context }, unit, blocks, title, offsets, .. } = self;
        let Self { timeout: _, start_timeout: _, in_flight: _, env: _, reuse: _, .. } = self;
        digest.number(argv.len() as u64);
        argv.iter().for_each(|argument| _ = digest.field(argument.as_bytes()));
        for number in [scope, context] {
            digest.number(number.map_or(0, |number| u64::from(number) + 1));
        }
        digest.field(unit.map_or("", Unit::as_str).as_bytes());
        digest.number(blocks.bytes.into()).number(blocks.context.into()).number((*title).into());
        digest.field(offsets.map_or("", Offsets::as_str).as_bytes());
    }
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
        // Where neither says anything, it is windows. Units are ordered from narrow to wide.
        let unit = spec.unit.max(ready.unit).unwrap_or(Unit::Window);
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

    /// What its worker is shown at a time.
    fn sees(&self) -> Sees {
        match (self.unit, self.reach) {
            (Unit::Window, Some(reach)) => {
                Sees::Windows(Windows { reach, offsets: self.offsets, deterministic: self.ready.deterministic })
            }
            (unit, _) => Sees::Units(unit.cut(self.spec.blocks).unwrap_or(Cut::Page)),
        }
    }
}

impl Extracts for Command {
    fn kind(&self) -> ExtractorKind {
        ExtractorKind::Command
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn finds(&self) -> Finds<'_> {
        Finds::ByAsking(self.sees())
    }

    fn prior(&self) -> Prior {
        Prior { byte: 1_000.0, page: 100_000.0 }
    }

    /// What the worker says about itself counts, not the command line: it has read its own configuration.
    fn describe(&self, digest: &mut DigestBuilder) {
        for field in [&self.ready.name, &self.ready.version, &self.ready.fingerprint] {
            digest.field(field.as_bytes());
        }
        digest.field(self.offsets.as_str().as_bytes()).field(self.unit.as_str().as_bytes());
        if self.unit == Unit::Block {
            digest.number(self.spec.blocks.bytes.into()).number(self.spec.blocks.context.into());
        }
        digest.number(self.along().title.into());
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

    fn keeps_answers(&self) -> bool {
        self.unit != Unit::Window && self.spec.reuse.unwrap_or(self.ready.deterministic)
    }

    fn read(&self, said: &str, text: &str) -> Result<Read, Failure> {
        let mentions = protocol::read_said(said, text, self.offsets, &self.schema)?;
        Ok(Read { mentions, refused: 0 })
    }

    fn along(&self) -> Along {
        Along { title: self.spec.title && self.unit != Unit::Window, url: false }
    }

    fn notes(&self) -> Vec<String> {
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

    fn runner(&self, folder: &Path) -> Option<Box<dyn Runner + Send>> {
        Some(Box::new(Worker::new(self, folder, None)))
    }
}
