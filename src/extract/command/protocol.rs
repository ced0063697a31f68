//! The lines exchanged with a worker.
//!
//! ```text
//! us      {"hello": 1}
//! worker  {"name": "entity", "version": "3", "fingerprint": "…", "attributes": ["label"], "offsets": "char",
//!          "unit": "window", "scope": 200, "context": [50, 50], "deterministic": true}
//! us      {"id": 7, "text": "…", "span": [120, 480], "edges": [false, true]}
//! worker  {"id": 7, "mentions": [{"start": 3, "end": 12, "text": "Ann Smith", "attrs": {"label": "PERSON"}}]}
//!    or   {"id": 7, "error": "…"}
//! ```
//!
//! An answer, also one with an error, may say what it cost: `"usage": {"input_tokens": 310, "output_tokens": 42, "price":
//! 0.0003}`.
//!
//! A unit (a line, a block, a paragraph, a page) is shown as if it were a page: `span` begins at 0, both `edges` are
//! true. `before`, `after` and `title` come along where they are declared and are not empty.
//!
//! Offsets in an answer count from the start of the request's text, in the worker's unit. `span` is where the text
//! lies in the page, `edges` whether it begins and ends with the page; a worker that is not told to see windows can
//! ignore both. An attribute is free text, a `[start, end]` pair inside the mention, or a list of these. `text` is
//! optional; if given it must be what the page has there. Answers may come in any order.

use serde::{Deserialize, Serialize};

use super::{Offsets, Ruler};
use crate::extract::mention::{Mention, Piece, Value, offset};
use crate::extract::reach::Unit;
use crate::extract::runner::{Failure, Reported};
use crate::extract::schema::{Attribute, Schema};
use crate::model::Span;

/// Version of the protocol, in `hello`.
pub(crate) const PROTOCOL: u32 = 1;

/// How a worker introduces itself. It leaves out what it cannot tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    pub name: String,
    #[serde(default)]
    pub version: String,
    /// Identifies everything that the answers depend on: code, model, configuration.
    #[serde(default)]
    pub fingerprint: String,
    #[serde(default)]
    pub attributes: Vec<StatedAttribute>,
    pub offsets: Option<Offsets>,
    pub unit: Option<Unit>,
    pub scope: Option<u32>,
    pub context: Option<Context>,
    /// Whether it always gives the same answer to the same question. If not, copied mentions stay as they were first
    /// found, and no equality with extraction from scratch is claimed.
    #[serde(default = "yes")]
    pub deterministic: bool,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StatedAttribute {
    Single(String),
    Full {
        name: String,
        #[serde(default)]
        many: bool,
    },
}

/// One number for both sides, or one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Context {
    Both(u32),
    Sides([u32; 2]),
}

impl Context {
    #[must_use]
    pub fn sides(self) -> (u32, u32) {
        match self {
            Self::Both(context) => (context, context),
            Self::Sides([left, right]) => (left, right),
        }
    }
}

impl Ready {
    pub fn attributes(&self) -> impl Iterator<Item = Attribute> + '_ {
        self.attributes.iter().map(|stated| match stated {
            StatedAttribute::Single(name) => Attribute { name: name.clone(), many: false },
            StatedAttribute::Full { name, many } => Attribute { name: name.clone(), many: *many },
        })
    }
}

#[derive(Serialize)]
pub(super) struct Request<'a> {
    pub(super) id: u64,
    pub(super) text: &'a str,
    pub(super) span: [u32; 2],
    pub(super) edges: [bool; 2],
    /// What stands around a unit and above its page, where that is shown.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) before: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) after: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) id: u64,
    #[serde(default)]
    mentions: Vec<Stated>,
    error: Option<String>,
    /// What it cost, if the worker tells.
    #[serde(default)]
    pub(super) usage: Option<Reported>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Stated {
    start: u32,
    end: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    attrs: serde_json::Map<String, serde_json::Value>,
}

impl Answer {
    /// What was answered, to be kept.
    pub(super) fn said(&self) -> String {
        serde_json::to_string(&self.mentions).expect("mentions are plain data")
    }
}

/// Reads an answer about a unit that was kept.
pub(super) fn read_said(said: &str, text: &str, offsets: Offsets, schema: &Schema) -> Result<Vec<Mention>, Failure> {
    let mentions = serde_json::from_str(said)
        .map_err(|error| Failure::BadAnswer(format!("a kept answer cannot be read: {error}")))?;
    let whole = Span::new(0, offset(text.len()));
    read(Answer { id: 0, mentions, error: None, usage: None }, text, whole, offsets, schema)
}

/// Reads a line of a worker about a whole text.
#[cfg(any(test, feature = "lab"))]
pub(crate) fn read_line(line: &str, text: &str, offsets: Offsets, schema: &Schema) -> Result<Vec<Mention>, Failure> {
    let answer = serde_json::from_str(line).map_err(|error| Failure::BadAnswer(error.to_string()))?;
    read(answer, text, Span::new(0, offset(text.len())), offsets, schema)
}

/// Reads the answer for a slice: mentions in bytes of the page. Empty mentions are dropped by contract.
pub(super) fn read(
    answer: Answer,
    page: &str,
    slice: Span,
    offsets: Offsets,
    schema: &Schema,
) -> Result<Vec<Mention>, Failure> {
    if let Some(error) = answer.error {
        return Err(Failure::Reported(error));
    }
    let text = &page[slice.range()];
    let ruler = Ruler::new(text, offsets);
    let mut mentions = Vec::with_capacity(answer.mentions.len());
    for stated in answer.mentions {
        let span = locate(&ruler, text, stated.start, stated.end)?;
        if let Some(claimed) = stated.text.filter(|claimed| *claimed != text[span.range()]) {
            return Err(Failure::BadAnswer(format!(
                "{}..{} is '{}', not '{claimed}'; it says that its offsets are {}s: does it count so?",
                stated.start,
                stated.end,
                &text[span.range()],
                offsets.as_str()
            )));
        }
        let mut attributes = vec![Value::Absent; schema.len()];
        for (name, value) in stated.attrs {
            let index = schema
                .index(&name)
                .ok_or_else(|| Failure::BadAnswer(format!("attribute '{name}' was not announced")))?;
            attributes[index] = read_value(&value, schema.attributes()[index].many, &ruler, text, span)
                .map_err(|why| Failure::BadAnswer(format!("attribute '{name}' {why}")))?;
        }
        if !span.is_empty() {
            mentions.push(Mention {
                start: slice.start + span.start,
                end: slice.start + span.end,
                label: 0,
                attributes: attributes.into(),
            });
        }
    }
    mentions.sort_unstable();
    Ok(mentions)
}

fn locate(ruler: &Ruler, text: &str, start: u32, end: u32) -> Result<Span, Failure> {
    let byte = |unit: u32| ruler.byte(unit).filter(|&at| text.is_char_boundary(at as usize));
    match (byte(start), byte(end)) {
        (Some(from), Some(to)) if from <= to => Ok(Span::new(from, to)),
        _ => Err(Failure::BadAnswer(format!("{start}..{end} is no span of a text of {}", ruler.len()))),
    }
}

fn read_value(value: &serde_json::Value, many: bool, ruler: &Ruler, text: &str, whole: Span) -> Result<Value, String> {
    let piece = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => Ok(Piece::Text(text.clone())),
        serde_json::Value::Array(pair) => {
            let number =
                |at: usize| pair.get(at).and_then(serde_json::Value::as_u64).and_then(|n| u32::try_from(n).ok());
            let (Some(start), Some(end), 2) = (number(0), number(1), pair.len()) else {
                return Err("is no [start, end] pair".to_owned());
            };
            let span = locate(ruler, text, start, end).map_err(|failure| failure.to_string())?;
            // Text outside a mention may change while the mention is copied, and the piece would be wrong.
            if !whole.contains(span) {
                return Err(format!("[{start}, {end}] lies outside its mention"));
            }
            Ok(Piece::Span(Span::new(span.start - whole.start, span.end - whole.start)))
        }
        _ => Err("is neither text nor a [start, end] pair".to_owned()),
    };
    match value {
        serde_json::Value::Null => Ok(Value::Absent),
        serde_json::Value::Array(values) if many => {
            Ok(Value::Many(values.iter().map(piece).collect::<Result<_, _>>()?))
        }
        single if many => Ok(Value::Many(vec![piece(single)?])),
        single => Ok(Value::One(piece(single)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let mut schema = Schema::default();
        schema.push(Attribute { name: "label".into(), many: false }).unwrap();
        schema.push(Attribute { name: "words".into(), many: true }).unwrap();
        schema
    }

    fn answer(json: &str) -> Result<Vec<Mention>, Failure> {
        let page = "xx é😀ab yy";
        let slice = Span::new(3, 11);
        read(serde_json::from_str(json).unwrap(), page, slice, Offsets::Utf16, &schema())
    }

    #[test]
    fn offsets_are_mapped_to_the_page() {
        let found = answer(
            r#"{"id":1,"mentions":[{"start":1,"end":5,"text":"😀ab","attrs":{"label":"X","words":[[1,3],[3,5],"z"]}}]}"#,
        )
        .unwrap();
        assert_eq!((found[0].start, found[0].end), (5, 11));
        let words = [Piece::Span(Span::new(0, 4)), Piece::Span(Span::new(4, 6)), Piece::Text("z".into())];
        assert_eq!(found[0].attributes.as_ref(), [Value::One(Piece::Text("X".into())), Value::Many(words.into())]);
    }

    #[test]
    fn what_does_not_fit_the_page_is_refused() {
        let bad = |json: &str| match answer(json) {
            Err(Failure::BadAnswer(why)) => why,
            other => panic!("{json}: {other:?}"),
        };
        assert!(bad(r#"{"id":1,"mentions":[{"start":0,"end":99}]}"#).contains("no span"));
        assert!(bad(r#"{"id":1,"mentions":[{"start":2,"end":3}]}"#).contains("no span"), "inside a surrogate pair");
        assert!(bad(r#"{"id":1,"mentions":[{"start":0,"end":1,"text":"e"}]}"#).contains("utf16"));
        assert!(bad(r#"{"id":1,"mentions":[{"start":0,"end":1,"attrs":{"other":"e"}}]}"#).contains("announced"));
        assert!(bad(r#"{"id":1,"mentions":[{"start":0,"end":1,"attrs":{"label":[3,4]}}]}"#).contains("outside"));
        assert!(bad(r#"{"id":1,"mentions":[{"start":0,"end":1,"attrs":{"label":5}}]}"#).contains("neither"));
        assert_eq!(answer(r#"{"id":1,"error":"no"}"#), Err(Failure::Reported("no".into())));
        assert_eq!(answer(r#"{"id":1,"mentions":[{"start":1,"end":1}]}"#), Ok(vec![]));
    }

    #[test]
    fn handshakes_are_read_leniently_in_what_is_missing_only() {
        let ready: Ready =
            serde_json::from_str(r#"{"name":"x","attributes":["a",{"name":"b","many":true}],"context":[1,2]}"#)
                .unwrap();
        assert!(ready.deterministic);
        assert_eq!(ready.context.unwrap().sides(), (1, 2));
        assert_eq!(
            ready.attributes().map(|a| (a.name, a.many)).collect::<Vec<_>>(),
            [("a".into(), false), ("b".into(), true)]
        );
        assert!(serde_json::from_str::<Ready>(r#"{"name":"x","scop":3}"#).is_err());
    }
}
