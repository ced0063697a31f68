//! Extractors as a pipeline file declares them.
//!
//! One flat struct for all kinds: a key that does not exist is refused by the reader, with its line; a key that does
//! not go with the kind is refused here, by name. No defaults are repeated elsewhere.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor};

use crate::extract::command::{CommandSpec, Offsets};
use crate::extract::definition::{Declaration, Definition};
use crate::extract::dictionary::{Dictionary, Options};
use crate::extract::llm::{Mode, Model, ModelAttribute, ModelSpec, Price};
use crate::extract::reach::{Blocks, Declared, Unit};
use crate::extract::record::{Pairing, Part, Record, Side, Within, check_parts};
use crate::extract::regex::Patterns;
use crate::extract::schema::{Attribute, Schema};
use crate::extract::{Extractor, ExtractorKind as Kind};
use crate::model::KeyError;
use crate::model::closed_set::closed_set;
use crate::model::key::{NAME_FIX, clash_in_sql, is_name};
use crate::model::time::{DURATION_FIX, parse_duration};

/// `[[extractor]]` of a pipeline file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtractorConfig {
    pub name: String,
    pub kind: Kind,
    /// regex: one pattern, or several.
    pub pattern: Option<String>,
    pub patterns: Option<Vec<String>>,
    /// dictionary: the file of terms, relative to the pipeline file. Read by the caller.
    pub terms: Option<String>,
    pub whole_word: Option<bool>,
    pub ignore_case: Option<bool>,
    /// Longest mention and bytes looked at on each side. For a command counted in its `offsets`.
    pub scope: Option<u32>,
    pub context: Option<u32>,
    /// record: attribute = "extractor" or { extractor = "…", many = true, optional = true }.
    /// llm: attribute = "string" or { type = "string", many = true, optional = true }.
    pub attributes: Option<Attributes>,
    pub key: Option<String>,
    pub pairing: Option<Pairing>,
    pub max_records: Option<u32>,
    pub within: Option<Within>,
    pub side: Option<Side>,
    /// command: program and arguments.
    pub command: Option<Vec<String>>,
    pub unit: Option<Unit>,
    /// Of `unit = "block"`: how large blocks are on average, and how many on each side are shown along.
    pub block_bytes: Option<u32>,
    pub context_blocks: Option<u32>,
    /// Whether the page's title is shown along with each unit.
    pub title: Option<bool>,
    /// command: whether answers about units serve wherever the same is asked.
    pub reuse: Option<bool>,
    pub offsets: Option<Offsets>,
    /// Per request, such as "30s".
    pub timeout: Option<String>,
    /// For the worker's introduction.
    pub start_timeout: Option<String>,
    /// Names of variables that the worker gets.
    pub env: Option<Vec<String>>,
    /// Requests a worker may have before it answers.
    pub in_flight: Option<u32>,
    pub price_per_mb: Option<f64>,
    /// llm: the server's address up to `/chat/completions`.
    pub endpoint: Option<String>,
    pub model: Option<String>,
    /// The file of the prompt, relative to the pipeline file. Read by the caller.
    pub prompt: Option<String>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    pub price: Option<PriceConfig>,
    /// Of a run, in the currency of `price`.
    pub budget: Option<f64>,
    /// Of an answer.
    pub max_tokens: Option<u32>,
    /// llm: how requests are sent.
    pub mode: Option<Mode>,
    /// What a changed definition does to old text.
    pub adopt: Option<Adopt>,
}

closed_set! {
    /// What a changed definition does to pages that do not change themselves.
    pub enum Adopt: "adopt" {
        /// All are extracted with it at once.
        Now = "now",
        /// They keep what the one before has found, until their text changes.
        NewText = "new-text",
    }
}

/// Of a million tokens.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceConfig {
    pub input: f64,
    pub output: f64,
}

/// The attributes of a record in the file's order, which decides who chooses first.
#[derive(Clone, Debug, Deserialize)]
pub struct Attributes(BTreeMap<toml::Spanned<String>, PartConfig>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartConfig {
    /// Of a model the type.
    pub extractor: String,
    pub many: bool,
    pub optional: bool,
}

impl Attributes {
    /// In the order of the file, which the map they are read into does not keep.
    #[must_use]
    pub fn in_order(&self) -> Vec<(&str, &PartConfig)> {
        let mut parts: Vec<_> = self.0.iter().collect();
        parts.sort_by_key(|(name, _)| name.span().start);
        parts.into_iter().map(|(name, part)| (name.as_ref().as_str(), part)).collect()
    }
}

/// A file that an extractor is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedFile<'a> {
    /// The key that names it.
    pub key: &'static str,
    /// Relative to the pipeline file.
    pub path: &'a str,
    pub hint: &'static str,
}

const MAX_RECORDS: u32 = 10_000;
const TIMEOUT: &str = "30s";
/// Where no `timeout` is stated either: it may have to load a model first.
const START_TIMEOUT: &str = "2m";
const IN_FLIGHT: u32 = 16;
const MODEL_TIMEOUT: &str = "60s";
const MODEL_IN_FLIGHT: u32 = 4;
const MAX_TOKENS: u32 = 800;
const LEAST_BLOCK: u32 = 64;
const LARGEST_BLOCK: u32 = 1 << 20;
const MOST_CONTEXT: u32 = 100;

impl ExtractorConfig {
    /// The file that has to be read to build the extractor.
    #[must_use]
    pub fn file(&self) -> Option<NamedFile<'_>> {
        let (key, path, hint) = match (&self.terms, &self.prompt) {
            (Some(terms), _) => ("terms", terms, "name a text file with one term a line, relative to this file"),
            (None, Some(prompt)) => ("prompt", prompt, "name a text file with the prompt, relative to this file"),
            (None, None) => return None,
        };
        Some(NamedFile { key, path, hint })
    }

    /// `content` is that of the [file](Self::file) it names.
    pub fn build(&self, content: Option<&str>) -> Result<Declaration, KeyError> {
        if !is_name(&self.name) {
            return Err(KeyError::new("name", format!("'{}' cannot name an extractor", self.name), NAME_FIX));
        }
        self.refuse_foreign_keys()?;
        let declared = Declared { scope: self.scope, context: self.context };
        if self.scope == Some(0) {
            return Err(KeyError::new("scope", "no mention has 0 bytes", "give the longest mention's length"));
        }
        let extracts = |extractor| Definition::Extracts(Arc::new(extractor));
        Ok(Declaration::Complete(match self.kind {
            Kind::Regex => extracts(Extractor::Regex(self.patterns(declared)?)),
            Kind::Dictionary => extracts(Extractor::Dictionary(self.dictionary(content, declared)?)),
            Kind::Record => Definition::Joins(Arc::new(self.record()?)),
            Kind::Command => return Ok(Declaration::Command(self.command(declared)?)),
            Kind::Llm => extracts(Extractor::Llm(self.llm(content)?)),
        }))
    }

    fn dictionary(&self, terms: Option<&str>, declared: Declared) -> Result<Dictionary, KeyError> {
        let terms = terms.ok_or_else(|| missing("terms", self.kind, "terms = \"terms.txt\""))?;
        let (whole_word, ignore_case) = (self.whole_word.unwrap_or(false), self.ignore_case.unwrap_or(false));
        let dictionary = Dictionary::new(Dictionary::terms_of(terms), Options { whole_word, ignore_case, declared })?;
        if dictionary.is_empty() {
            return Err(KeyError::new("terms", "the file has no terms", "write one term a line"));
        }
        Ok(dictionary)
    }

    fn patterns(&self, declared: Declared) -> Result<Patterns, KeyError> {
        match (&self.pattern, &self.patterns) {
            (Some(one), None) => Patterns::new("pattern", &[one], declared),
            (None, Some(several)) if !several.is_empty() => Patterns::new("patterns", several, declared),
            (Some(_), Some(_)) => {
                Err(KeyError::new("patterns", "both `pattern` and `patterns` are given", "keep `patterns` only"))
            }
            _ => Err(missing("pattern", self.kind, "pattern = '…' or patterns = ['…', '…']")),
        }
    }

    fn record(&self) -> Result<Record, KeyError> {
        let scope = self.scope.ok_or_else(|| missing("scope", self.kind, "scope = 400"))?;
        let attributes = self.attributes.as_ref().map(Attributes::in_order).unwrap_or_default();
        if attributes.is_empty() {
            let fix = "attributes = { speaker = \"person\", time = \"time\" }";
            return Err(missing("attributes", self.kind, fix));
        }
        let mut schema = Schema::default();
        let mut parts = Vec::new();
        for (name, part) in attributes {
            let attribute = Attribute { name: name.to_owned(), many: part.many };
            schema.push(attribute).map_err(|problem| KeyError::new("attributes", problem, "rename it"))?;
            parts.push(Part {
                attribute: name.to_owned(),
                extractor: part.extractor.clone(),
                many: part.many,
                optional: part.optional,
            });
        }
        let can_be_key = |part: &Part| !part.many && !part.optional;
        let key = match &self.key {
            Some(name) => {
                parts.iter().position(|part| part.attribute == *name && can_be_key(part)).ok_or_else(|| {
                    let problem = format!("'{name}' is no required attribute with a single value");
                    KeyError::new("key", problem, "name one that is neither `many` nor `optional`")
                })?
            }
            None => parts.iter().position(can_be_key).ok_or_else(|| {
                let problem = "every attribute is `many` or `optional`, so nothing makes a record";
                KeyError::new("attributes", problem, "make one of them required and single")
            })?,
        };
        let max_records = self.max_records.unwrap_or(MAX_RECORDS) as usize;
        let record = Record::new(scope, parts, key, self.pairing.unwrap_or_default(), max_records, schema);
        Ok(record.keeping(self.within, self.side))
    }

    fn command(&self, declared: Declared) -> Result<CommandSpec, KeyError> {
        let argv = self.command.clone().unwrap_or_default();
        if argv.first().is_none_or(String::is_empty) {
            return Err(missing("command", self.kind, "command = [\"python3\", \"entity.py\"]"));
        }
        let stated = self.timeout.as_deref();
        let timeout = duration("timeout", stated.unwrap_or(TIMEOUT))?;
        // Who says how long an answer may take does not want to wait longer for the first one.
        let start_timeout = match self.start_timeout.as_deref() {
            Some(written) => duration("start_timeout", written)?,
            None => duration("timeout", stated.unwrap_or(START_TIMEOUT))?,
        };
        let env = self.env.clone().unwrap_or_default();
        if let Some(name) = env.iter().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            let fix = "list names only; `command = [\"env\", \"NAME=value\", …]` sets one";
            return Err(KeyError::new("env", format!("'{name}' cannot name a variable"), fix));
        }
        let in_flight = self.in_flight.unwrap_or(IN_FLIGHT).max(1) as usize;
        let (blocks, title) = (self.blocks()?, self.title.unwrap_or(false));
        if title && self.unit.unwrap_or(Unit::Window) == Unit::Window {
            let problem = "a window is shown without the page's title";
            return Err(KeyError::new("title", problem, "add unit = \"block\""));
        }
        self.check_money(self.price_per_mb.is_some())?;
        if let (Some(_), Some(_)) = (self.price, self.price_per_mb) {
            let problem = "`price` and `price_per_mb` exclude each other";
            return Err(KeyError::new("price_per_mb", problem, "keep `price` if the worker states tokens"));
        }
        if self.max_tokens.is_some() && self.price.is_none() {
            let problem = "of a command it says what is reserved, and that needs a price of tokens";
            return Err(KeyError::new("max_tokens", problem, "add price = { input = …, output = … }"));
        }
        if self.budget.is_some() && (self.reuse == Some(false) || self.unit == Some(Unit::Window)) {
            let problem = "only answers that are kept can be counted against it";
            return Err(KeyError::new("budget", problem, "use unit = \"block\" and leave out `reuse`"));
        }
        let Self { unit, offsets, reuse, .. } = *self;
        Ok(CommandSpec { argv, declared, unit, blocks, title, reuse, offsets, timeout, start_timeout, in_flight, env })
    }

    fn llm(&self, prompt: Option<&str>) -> Result<Model, KeyError> {
        let given = |key, value: &Option<String>, example| {
            value.clone().filter(|value| !value.trim().is_empty()).ok_or_else(|| missing(key, self.kind, example))
        };
        let endpoint = given("endpoint", &self.endpoint, "endpoint = \"http://127.0.0.1:11434/v1\"")?;
        if !["http://", "https://"].iter().any(|scheme| endpoint.starts_with(scheme)) {
            let fix = "begin with http:// or https://, such as http://127.0.0.1:11434/v1";
            return Err(KeyError::new("endpoint", format!("'{endpoint}' is no address of a server"), fix));
        }
        let prompt = prompt.filter(|prompt| !prompt.trim().is_empty());
        let prompt = prompt.ok_or_else(|| missing("prompt", self.kind, "prompt = \"event.md\""))?;
        let unit = self.unit.unwrap_or(Unit::Block);
        if unit == Unit::Window {
            return Err(KeyError::new("unit", "a model is asked about units", "use \"block\""));
        }
        if self.api_key_env.as_deref().is_some_and(|name| !is_variable(name)) {
            let problem = "it is no name of an environment variable";
            return Err(KeyError::new("api_key_env", problem, "name the variable that holds the key, never the key"));
        }
        let (mut schema, mut attributes) = (Schema::default(), Vec::new());
        for (name, attribute) in self.attributes.as_ref().map(Attributes::in_order).unwrap_or_default() {
            let PartConfig { extractor: kind, many, optional } = attribute;
            if kind != "string" {
                let problem = format!("'{name}' has the unknown type '{kind}'");
                return Err(KeyError::new("attributes", problem, "write \"string\""));
            }
            if name == "quote" {
                return Err(KeyError::new("attributes", "'quote' is the mention itself", "rename it"));
            }
            let column = Attribute { name: name.to_owned(), many: *many };
            schema.push(column).map_err(|problem| KeyError::new("attributes", problem, "rename it"))?;
            attributes.push(ModelAttribute { name: name.to_owned(), optional: *optional, many: *many });
        }
        self.check_money(false)?;
        let spec = ModelSpec {
            endpoint,
            model: given("model", &self.model, "model = \"qwen3:8b\"")?,
            prompt: prompt.to_owned(),
            attributes,
            unit,
            blocks: self.blocks()?,
            title: self.title.unwrap_or(false),
            api_key_env: self.api_key_env.clone(),
            price: self.tokens_price(),
            budget: self.budget,
            in_flight: self.in_flight.unwrap_or(MODEL_IN_FLIGHT).max(1) as usize,
            max_tokens: self.most_tokens(),
            timeout: duration("timeout", self.timeout.as_deref().unwrap_or(MODEL_TIMEOUT))?,
            mode: self.mode.unwrap_or(Mode::Direct),
        };
        Ok(Model::new(spec, schema))
    }

    /// Prices and budget make sense. `priced`: by something else than tokens.
    fn check_money(&self, priced: bool) -> Result<(), KeyError> {
        let sound = |number: f64| number.is_finite() && number >= 0.0;
        if self.price.is_some_and(|price| !sound(price.input) || !sound(price.output)) {
            return Err(KeyError::new("price", "a price is not negative", "as in { input = 0.15, output = 0.60 }"));
        }
        if self.budget.is_some_and(|budget| !sound(budget)) {
            return Err(KeyError::new("budget", "a budget is not negative", "as in budget = 2.00"));
        }
        if self.budget.is_some() && self.price.is_none() && !priced {
            let problem = "without a price nothing is counted against it";
            return Err(KeyError::new("budget", problem, "add price = { input = …, output = … }"));
        }
        Ok(())
    }

    /// Of a million tokens.
    #[must_use]
    pub(crate) fn tokens_price(&self) -> Option<Price> {
        self.price.map(|PriceConfig { input, output }| Price { input, output })
    }

    /// Of an answer.
    #[must_use]
    pub(crate) fn most_tokens(&self) -> u32 {
        self.max_tokens.unwrap_or(MAX_TOKENS).max(1)
    }

    fn blocks(&self) -> Result<Blocks, KeyError> {
        let of_blocks = [("block_bytes", self.block_bytes), ("context_blocks", self.context_blocks)];
        if let Some((key, _)) = of_blocks.iter().find(|(_, given)| given.is_some() && !self.has_blocks()) {
            return Err(KeyError::new(*key, "only blocks have it", "add unit = \"block\""));
        }
        let usual = Blocks::default();
        let blocks = Blocks {
            bytes: self.block_bytes.unwrap_or(usual.bytes),
            context: self.context_blocks.unwrap_or(usual.context),
        };
        if !(LEAST_BLOCK..=LARGEST_BLOCK).contains(&blocks.bytes) {
            let fix = format!("between {LEAST_BLOCK} and {LARGEST_BLOCK}, such as {}", usual.bytes);
            return Err(KeyError::new("block_bytes", format!("{} bytes make no block", blocks.bytes), fix));
        }
        if blocks.context > MOST_CONTEXT {
            let problem = format!("{} blocks on each side are too many", blocks.context);
            return Err(KeyError::new("context_blocks", problem, format!("at most {MOST_CONTEXT}")));
        }
        Ok(blocks)
    }

    /// Blocks are what a model is shown unless the file says otherwise.
    fn has_blocks(&self) -> bool {
        self.unit.map_or(self.kind == Kind::Llm, |unit| unit == Unit::Block)
    }

    fn refuse_foreign_keys(&self) -> Result<(), KeyError> {
        let keys: &[(&'static str, bool, &[Kind])] = &[
            ("pattern", self.pattern.is_some(), &[Kind::Regex]),
            ("patterns", self.patterns.is_some(), &[Kind::Regex]),
            ("terms", self.terms.is_some(), &[Kind::Dictionary]),
            ("whole_word", self.whole_word.is_some(), &[Kind::Dictionary]),
            ("ignore_case", self.ignore_case.is_some(), &[Kind::Dictionary]),
            ("context", self.context.is_some(), &[Kind::Regex, Kind::Dictionary, Kind::Command]),
            ("attributes", self.attributes.is_some(), &[Kind::Record, Kind::Llm]),
            ("key", self.key.is_some(), &[Kind::Record]),
            ("pairing", self.pairing.is_some(), &[Kind::Record]),
            ("max_records", self.max_records.is_some(), &[Kind::Record]),
            ("within", self.within.is_some(), &[Kind::Record]),
            ("side", self.side.is_some(), &[Kind::Record]),
            ("command", self.command.is_some(), &[Kind::Command]),
            ("unit", self.unit.is_some(), &[Kind::Command, Kind::Llm]),
            ("block_bytes", self.block_bytes.is_some(), &[Kind::Command, Kind::Llm]),
            ("context_blocks", self.context_blocks.is_some(), &[Kind::Command, Kind::Llm]),
            ("title", self.title.is_some(), &[Kind::Command, Kind::Llm]),
            ("reuse", self.reuse.is_some(), &[Kind::Command]),
            ("endpoint", self.endpoint.is_some(), &[Kind::Llm]),
            ("model", self.model.is_some(), &[Kind::Llm]),
            ("prompt", self.prompt.is_some(), &[Kind::Llm]),
            ("api_key_env", self.api_key_env.is_some(), &[Kind::Llm]),
            ("price", self.price.is_some(), &[Kind::Command, Kind::Llm]),
            ("budget", self.budget.is_some(), &[Kind::Command, Kind::Llm]),
            ("max_tokens", self.max_tokens.is_some(), &[Kind::Command, Kind::Llm]),
            ("mode", self.mode.is_some(), &[Kind::Llm]),
            ("offsets", self.offsets.is_some(), &[Kind::Command]),
            ("timeout", self.timeout.is_some(), &[Kind::Command, Kind::Llm]),
            ("start_timeout", self.start_timeout.is_some(), &[Kind::Command]),
            ("env", self.env.is_some(), &[Kind::Command]),
            ("in_flight", self.in_flight.is_some(), &[Kind::Command, Kind::Llm]),
            ("price_per_mb", self.price_per_mb.is_some(), &[Kind::Command]),
        ];
        for &(key, given, kinds) in keys {
            if given && !kinds.contains(&self.kind) {
                let names: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
                let problem = format!("does not go with kind = \"{}\"", self.kind);
                return Err(KeyError::new(key, problem, format!("it is for {}", names.join(", "))));
            }
        }
        Ok(())
    }
}

fn duration(key: &'static str, written: &str) -> Result<Duration, KeyError> {
    let read = parse_duration(written).filter(|duration| !duration.is_zero());
    read.ok_or_else(|| KeyError::new(key, format!("'{written}' is no duration"), DURATION_FIX))
}

/// Whether an environment variable can have this name. A key is told from one by the characters that it has.
fn is_variable(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
}

fn missing(key: &'static str, kind: Kind, example: &str) -> KeyError {
    KeyError::new(key, format!("missing, and kind = \"{kind}\" needs it"), format!("as in {example}"))
}

/// Finds what only shows when all extractors of a file are seen together: a name that is given twice, two names that are
/// one in SQL, and a record that joins what is not there. Returns the index of the extractor at fault.
pub(crate) fn check_together(extractors: &[ExtractorConfig]) -> Result<(), (usize, KeyError)> {
    let mut kinds = BTreeMap::new();
    for (index, extractor) in extractors.iter().enumerate() {
        if kinds.insert(extractor.name.as_str(), extractor.kind == Kind::Record).is_some() {
            let problem = format!("'{}' names two extractors", extractor.name);
            return Err((index, KeyError::new("name", problem, "rename one of them")));
        }
    }
    let names: Vec<&str> = extractors.iter().map(|extractor| extractor.name.as_str()).collect();
    if let Some(clash) = clash_in_sql("mentions", &names) {
        return Err(clash);
    }
    for (index, extractor) in extractors.iter().enumerate() {
        let record = extractor.attributes.iter().filter(|_| extractor.kind == Kind::Record);
        for (attribute, part) in record.flat_map(Attributes::in_order) {
            let part = Part {
                attribute: attribute.to_owned(),
                extractor: part.extractor.clone(),
                many: part.many,
                optional: part.optional,
            };
            check_parts(&extractor.name, &[part], &kinds).map_err(|problem| {
                (index, KeyError::new("attributes", problem, "name a regex, dictionary or command extractor"))
            })?;
        }
    }
    Ok(())
}

impl<'de> Deserialize<'de> for PartConfig {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PartVisitor;
        impl<'de> Visitor<'de> for PartVisitor {
            type Value = PartConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "the name of an extractor or a type, or { extractor = \"…\", many = true, optional = true }",
                )
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<PartConfig, E> {
                Ok(PartConfig { extractor: name.to_owned(), many: false, optional: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PartConfig, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Table {
                    #[serde(alias = "type")]
                    extractor: String,
                    #[serde(default)]
                    many: bool,
                    #[serde(default)]
                    optional: bool,
                }
                let Table { extractor, many, optional } =
                    Table::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(PartConfig { extractor, many, optional })
            }
        }
        deserializer.deserialize_any(PartVisitor)
    }
}

#[cfg(test)]
mod tests;
