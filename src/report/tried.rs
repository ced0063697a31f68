//! A page that was tried: its units, what was sent of them and what was found.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::terminal::count;
use crate::model::SnapshotId;

pub(crate) struct TriedPage {
    pub url: String,
    pub snapshot: SnapshotId,
    pub bytes: u64,
    pub extractors: Vec<TriedExtractor>,
}

pub(crate) struct TriedExtractor {
    pub name: String,
    pub kind: &'static str,
    /// Of a record: the extractors whose mentions it joins.
    pub made_of: Vec<String>,
    pub units: Vec<TriedUnit>,
}

/// Whether a unit was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Now,
    /// An answer was kept.
    Kept,
    /// Nobody is asked: it is made of what others found.
    Joined,
}

pub(crate) struct TriedUnit {
    pub start: u32,
    pub text: String,
    pub sent: Sent,
    /// Of a model.
    pub request: Option<String>,
    pub answer: Option<String>,
    pub mentions: Vec<TriedMention>,
    pub refused: u64,
    pub error: Option<String>,
}

pub(crate) struct TriedMention {
    pub start: u32,
    pub end: u32,
    pub text: String,
    pub attributes: Vec<(String, Vec<String>)>,
}

impl TriedUnit {
    pub(crate) fn of(start: u32, text: &str) -> Self {
        Self {
            start,
            text: text.to_owned(),
            sent: Sent::Now,
            request: None,
            answer: None,
            mentions: Vec::new(),
            refused: 0,
            error: None,
        }
    }
}

/// Of a unit's text, what is shown.
const SHOWN: usize = 70;

impl TriedPage {
    /// As text; `raw`: also what was sent and answered, word for word.
    #[must_use]
    pub(crate) fn text(&self, raw: bool) -> String {
        let mut text = format!("{} in {}: {} bytes of text\n", clean(&self.url), self.snapshot, self.bytes);
        if self.extractors.is_empty() {
            text.push_str("no extractor is declared: there is nothing to try\n");
        }
        for extractor in &self.extractors {
            let sent = extractor.units.iter().filter(|unit| unit.sent == Sent::Now);
            let (sent, bytes) = sent.fold((0, 0), |(n, bytes), unit| (n + 1, bytes + unit.text.len()));
            let found = extractor.units.iter().map(|unit| unit.mentions.len()).sum::<usize>();
            let found = count(found as u64, "mention");
            let _ = match extractor.made_of.as_slice() {
                [] => {
                    let units = count(extractor.units.len() as u64, "unit");
                    writeln!(
                        text,
                        "{} ({}): {units}, {sent} sent with {bytes} bytes, {found}",
                        extractor.name, extractor.kind
                    )
                }
                parts => writeln!(text, "{} ({} of {}): {found}", extractor.name, extractor.kind, parts.join(", ")),
            };
            extractor.units.iter().for_each(|unit| self::unit(&mut text, unit, raw));
        }
        text
    }

    #[must_use]
    pub(crate) fn json(&self) -> Value {
        let mention = |mention: &TriedMention| {
            let attributes: serde_json::Map<String, Value> =
                mention.attributes.iter().map(|(name, values)| (name.clone(), json!(values))).collect();
            json!({"start": mention.start, "end": mention.end, "text": mention.text, "attributes": attributes})
        };
        let unit = |unit: &TriedUnit| {
            json!({
                "start": unit.start, "end": unit.start as usize + unit.text.len(), "text": unit.text,
                "sent": unit.sent == Sent::Now, "request": unit.request, "answer": unit.answer, "refused": unit.refused,
                "error": unit.error, "mentions": unit.mentions.iter().map(mention).collect::<Vec<_>>(),
            })
        };
        let extractor = |extractor: &TriedExtractor| {
            json!({
                "extractor": extractor.name, "kind": extractor.kind,
                "units": extractor.units.iter().map(unit).collect::<Vec<_>>(),
            })
        };
        json!({
            "url": self.url, "snapshot": self.snapshot, "bytes": self.bytes,
            "extractors": self.extractors.iter().map(extractor).collect::<Vec<_>>(),
        })
    }
}

fn unit(text: &mut String, unit: &TriedUnit, raw: bool) {
    let end = unit.start as usize + unit.text.len();
    let kept = if unit.sent == Sent::Kept { ", answer kept" } else { "" };
    if unit.sent != Sent::Joined {
        let _ = writeln!(text, "  {}..{end}{kept}: {}", unit.start, short(&unit.text));
    }
    for (what, said) in [("sent", &unit.request), ("answer", &unit.answer)] {
        if let Some(said) = said.as_ref().filter(|_| raw) {
            let _ = writeln!(text, "    {what}: {}", clean(said));
        }
    }
    if let Some(error) = &unit.error {
        let _ = writeln!(text, "    failed: {}", clean(error));
    }
    if unit.refused > 0 {
        let _ = writeln!(text, "    {} refused: they do not stand in the text", unit.refused);
    }
    for mention in &unit.mentions {
        let _ = write!(text, "    {}..{} {}", mention.start, mention.end, short(&mention.text));
        for (name, values) in &mention.attributes {
            let _ = write!(text, "; {name} = {}", clean(&values.join(", ")));
        }
        text.push('\n');
    }
}

/// The beginning of a text, on one line.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", clean(&line[..at])),
        None => clean(&line),
    }
}

fn clean(text: &str) -> String {
    text.replace(char::is_control, " ")
}
