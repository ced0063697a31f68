//! Models as extractors: a server that speaks the OpenAI-compatible protocol is shown a unit of a page and answers with
//! quotes from it.
//!
//! ```text
//! system   the prompt, and what is expected
//! user     context: title, text before and after (only where it is declared)
//! user     the unit's text, alone
//! ```
//! Nothing is taken on trust. A mention is a quote that stands in the unit, certified by [`answer`]; what a page says can
//! change the answers about that page's units and nothing else, because it is a message of its own and the answer is
//! bound to a schema. The identity of a request is what is sent, never where it is sent or what it may cost; so answers
//! can be kept and used again wherever the same is asked.

pub(crate) mod answer;
pub(crate) mod batch;
pub(crate) mod client;
mod exchange;
mod request;

use std::path::Path;
use std::time::Duration;

use crate::extract::ExtractorKind;
use crate::extract::mention::Mention;
use crate::extract::reach::{Along, Blocks, Cut, Sees, Unit};
use crate::extract::runner::{Failure, Question, Runner};
use crate::extract::schema::Schema;
use crate::extract::traits::{Extracts, Finds, Prior, Read};
use crate::model::closed_set::closed_set;
use crate::model::{Digest, DigestBuilder};

pub(crate) use client::{Client, Trouble};
pub(crate) use request::Request;

/// A model as the pipeline file declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    pub endpoint: String,
    pub model: String,
    /// The text of the prompt file.
    pub prompt: String,
    pub attributes: Vec<ModelAttribute>,
    pub unit: Unit,
    pub blocks: Blocks,
    pub title: bool,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    pub price: Option<Price>,
    /// Of a run.
    pub budget: Option<f64>,
    pub in_flight: usize,
    pub max_tokens: u32,
    pub timeout: Duration,
    pub mode: Mode,
}

closed_set! {
    /// How requests are sent.
    pub enum Mode: "mode" {
        /// Each by itself, and the run waits for the answers.
        Direct = "direct",
        /// All of a run together when it ends, for half the price; the next run has the answers.
        Batch = "batch",
    }
}

/// Of the price of a request that is sent by itself.
const BATCH_SHARE: f64 = 0.5;

impl ModelSpec {
    /// What tokens cost in the mode that is declared.
    #[must_use]
    pub(crate) fn price_in_mode(&self) -> Option<Price> {
        let share = if self.mode == Mode::Batch { BATCH_SHARE } else { 1.0 };
        self.price.map(|Price { input, output }| Price { input: input * share, output: output * share })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAttribute {
    pub name: String,
    pub optional: bool,
    pub many: bool,
}

/// Of a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
}

/// Tokens of a request and its answer, as the server counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

const MILLION: f64 = 1e6;

impl Price {
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens")]
    pub(crate) fn of(self, usage: Usage) -> f64 {
        (self.input * usage.input as f64 + self.output * usage.output as f64) / MILLION
    }

    /// The usual price of a million bytes of text that is sent in units of so many bytes.
    #[must_use]
    pub(crate) fn expected_per_mb(self, unit_bytes: u32) -> f64 {
        self.input * TOKENS_A_BYTE + self.output * ANSWER_TOKENS / f64::from(unit_bytes.max(1))
    }
}

/// A model that finds mentions.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    spec: ModelSpec,
    schema: Schema,
}

impl Model {
    /// `schema` has the attributes of the spec, in its order.
    #[must_use]
    pub fn new(spec: ModelSpec, schema: Schema) -> Self {
        Self { spec, schema }
    }

    #[must_use]
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// What is sent to ask this question.
    #[must_use]
    pub(crate) fn request(&self, question: &Question<'_>) -> Request {
        Request::new(&self.spec, question)
    }

    /// The most that a request can use: a token for each of its bytes, and the longest answer.
    #[must_use]
    pub(crate) fn most(&self, request: &Request) -> Usage {
        self.most_of(request.body())
    }

    /// The same, of a request as it is sent.
    #[must_use]
    pub(crate) fn most_of(&self, body: &str) -> Usage {
        Usage { input: body.len() as u64, output: self.spec.max_tokens.into() }
    }

    /// The usual price of a million bytes of units, before any was asked about.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn expected_price_per_mb(&self) -> f64 {
        let Some(price) = self.spec.price_in_mode() else { return 0.0 };
        let unit = match self.spec.unit {
            Unit::Line => LINE,
            Unit::Block => self.spec.blocks.bytes as usize * (1 + 2 * self.spec.blocks.context as usize),
            Unit::Window | Unit::Paragraph | Unit::Page => PAGE,
        };
        let own = if self.spec.unit == Unit::Block { self.spec.blocks.bytes as usize } else { unit };
        let question = Question::default();
        let bytes = (self.request(&question).body().len() + unit) as f64;
        let usage = (bytes * TOKENS_A_BYTE, ANSWER_TOKENS.min(f64::from(self.spec.max_tokens)));
        (price.input * usage.0 + price.output * usage.1) / MILLION * (MILLION / own as f64)
    }

    /// What the model itself is called in a pipeline's terms: whose answers these are.
    fn describe_definition(&self, digest: &mut DigestBuilder) {
        let Self { spec, .. } = self;
        for field in [&spec.model, &spec.prompt] {
            digest.field(field.as_bytes());
        }
        for attribute in &spec.attributes {
            digest.field(attribute.name.as_bytes());
            digest.number(attribute.optional.into()).number(attribute.many.into());
        }
        digest.field(spec.unit.as_str().as_bytes()).number(spec.max_tokens.into());
        if spec.unit == Unit::Block {
            digest.number(spec.blocks.bytes.into()).number(spec.blocks.context.into());
        }
        digest.number(spec.title.into()).field(request::VERSION.as_bytes());
    }
}

/// Bytes of a line and of a page, and tokens of a byte and of an answer, as long as nothing was measured.
const LINE: usize = 60;
const PAGE: usize = 8_000;
const TOKENS_A_BYTE: f64 = 0.3;
const ANSWER_TOKENS: f64 = 60.0;

impl Extracts for Model {
    fn kind(&self) -> ExtractorKind {
        ExtractorKind::Llm
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn finds(&self) -> Finds<'_> {
        Finds::ByAsking(Sees::Units(self.spec.unit.cut(self.spec.blocks).unwrap_or(Cut::Page)))
    }

    fn prior(&self) -> Prior {
        Prior { byte: 1_000_000.0, page: 100_000.0 }
    }

    fn describe(&self, digest: &mut DigestBuilder) {
        self.describe_definition(digest);
    }

    fn along(&self) -> Along {
        let uses = |name: &str| self.spec.prompt.contains(name);
        Along { title: self.spec.title || uses(request::TITLE), url: uses(request::URL) }
    }

    fn keeps_answers(&self) -> bool {
        true
    }

    fn request_key(&self, question: &Question<'_>, _: Digest) -> Digest {
        self.request(question).key()
    }

    fn read(&self, said: &str, text: &str) -> Result<Read, Failure> {
        answer::read(said, text, &self.spec.attributes)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.spec.price.is_none() {
            notes.push("no price declared: what it costs is not counted".to_owned());
        }
        notes
    }

    /// Nobody: answers are asked for ahead, and looked up when a page's turn comes.
    fn runner(&self, _folder: &Path) -> Option<Box<dyn Runner + Send>> {
        None
    }
}

impl Read {
    pub(crate) fn new(mut mentions: Vec<Mention>, refused: u64) -> Self {
        mentions.sort_unstable();
        Self { mentions, refused }
    }
}
