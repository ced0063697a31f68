//! What a model said, held against the text that it was shown.
//!
//! A quote must stand in the unit, but for white space, of which any run is as good as any other. Of several places it
//! takes the first one after the quote before it that no other has taken, else the first free one. What stands nowhere is
//! dropped and counted, as is a mention without an attribute that it must have.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

use super::ModelAttribute;
use super::request::{MOST_CHARACTERS, MOST_MENTIONS};
use crate::extract::mention::{Mention, Piece, Value, offset};
use crate::extract::runner::Failure;
use crate::extract::traits::Read;
use crate::model::Span;

/// The mentions that an answer tells of, with offsets from the start of the unit. An answer that is no answer is an error.
pub(crate) fn read(said: &str, unit: &str, attributes: &[ModelAttribute]) -> Result<Read, Failure> {
    let stated = mentions_of(said).ok_or_else(|| Failure::BadAnswer("it is no list of mentions".to_owned()))?;
    let folded = Folded::of(unit);
    let mut taken: HashSet<Span> = HashSet::new();
    let mut after = 0;
    let mut mentions = Vec::new();
    let mut refused = 0;
    for (i, stated) in stated.iter().enumerate() {
        let quote = stated.get("quote").and_then(Json::as_str).filter(|_| i < MOST_MENTIONS);
        let place = quote.and_then(|quote| place(&folded, quote, after, &taken));
        let values = place.and_then(|span| values(stated, attributes, unit, span));
        let (Some(span), Some(values)) = (place, values) else {
            refused += 1;
            continue;
        };
        taken.insert(span);
        after = span.end;
        mentions.push(Mention { start: span.start, end: span.end, label: 0, attributes: values.into() });
    }
    Ok(Read::new(mentions, refused))
}

/// The objects in an answer, which may stand in a fence or behind thoughts.
fn mentions_of(said: &str) -> Option<Vec<Map<String, Json>>> {
    let said = said.rsplit_once("</think>").map_or(said, |(_, answer)| answer);
    let from = said.find(['{', '['])?;
    let to = said.rfind(['}', ']'])?;
    let said = said.get(from..=to)?;
    let json: Json = serde_json::from_str(said).or_else(|_| serde_json::from_str(&escaped(said))).ok()?;
    let list = match json {
        Json::Object(mut object) => object.remove("mentions")?,
        list => list,
    };
    let Json::Array(list) = list else { return None };
    let object = |mention: Json| match mention {
        Json::Object(object) => object,
        // What is no object has no quote, and is refused for that.
        _ => Map::new(),
    };
    Some(list.into_iter().map(object).collect())
}

/// JSON whose strings have control characters as they are, such as line ends: models write that, and grammars of some servers
/// allow it.
fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len() + 16);
    let (mut in_string, mut after_backslash) = (false, false);
    for c in json.chars() {
        if in_string && c.is_ascii_control() && c != '\u{7f}' {
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
        in_string ^= c == '"' && !after_backslash;
        after_backslash = in_string && c == '\\' && !after_backslash;
    }
    escaped
}

/// Where a quote stands: the first free place at or after `after`, else the first free one.
fn place(unit: &Folded, quote: &str, after: u32, taken: &HashSet<Span>) -> Option<Span> {
    let quote = fold(quote);
    if quote.is_empty() {
        return None;
    }
    let mut first = None;
    let mut from = 0;
    while let Some(at) = unit.text.get(from..).and_then(|rest| rest.find(&quote)) {
        let at = from + at;
        let span = unit.span(at, at + quote.len());
        if !taken.contains(&span) {
            if span.start >= after {
                return Some(span);
            }
            first = first.or(Some(span));
        }
        from = at + unit.text[at..].chars().next().map_or(1, char::len_utf8);
    }
    first
}

/// The attributes of a mention; `None` if it lacks one that it must have.
fn values(stated: &Map<String, Json>, attributes: &[ModelAttribute], unit: &str, mention: Span) -> Option<Vec<Value>> {
    let quote = Folded::of(&unit[mention.range()]);
    let piece = |value: &Json| {
        let text = match value {
            Json::String(text) => text.trim().to_owned(),
            Json::Number(number) => number.to_string(),
            Json::Bool(yes) => yes.to_string(),
            _ => return None,
        };
        if text.is_empty() || text.chars().count() > MOST_CHARACTERS {
            return None;
        }
        let folded = fold(&text);
        // A value that stands in the quote is that part of it.
        Some(match quote.text.find(&folded).filter(|_| !folded.is_empty()) {
            Some(at) => Piece::Span(quote.span(at, at + folded.len())),
            None => Piece::Text(text),
        })
    };
    let value = |attribute: &ModelAttribute| {
        let stated = stated.get(&attribute.name).filter(|value| !value.is_null());
        let value = match stated {
            Some(Json::Array(list)) if attribute.many => {
                let pieces: Vec<Piece> = list.iter().filter_map(piece).collect();
                (!pieces.is_empty()).then_some(Value::Many(pieces))
            }
            Some(one) if attribute.many => piece(one).map(|piece| Value::Many(vec![piece])),
            Some(one) => piece(one).map(Value::One),
            None => None,
        };
        value.or_else(|| attribute.optional.then_some(Value::Absent))
    };
    attributes.iter().map(value).collect()
}

/// A text with every run of white space as one space and none at its ends, and where its characters stood.
struct Folded {
    text: String,
    /// For each byte of `text` the first and the last byte (exclusive) of the character that it belongs to.
    places: Vec<(u32, u32)>,
}

impl Folded {
    fn of(text: &str) -> Self {
        let mut folded = Self { text: String::with_capacity(text.len()), places: Vec::with_capacity(text.len()) };
        let mut space: Option<usize> = None;
        for (at, c) in text.char_indices() {
            if c.is_whitespace() {
                space = space.or(Some(at));
                continue;
            }
            if let Some(from) = space.take().filter(|_| !folded.text.is_empty()) {
                folded.push(' ', from, at);
            }
            folded.push(c, at, at + c.len_utf8());
        }
        folded
    }

    fn push(&mut self, c: char, from: usize, to: usize) {
        self.text.push(c);
        self.places.extend(std::iter::repeat_n((offset(from), offset(to)), c.len_utf8()));
    }

    /// Where a part of the folded text stood; it is not empty and neither begins nor ends with a space.
    fn span(&self, from: usize, to: usize) -> Span {
        Span::new(self.places[from].0, self.places[to - 1].1)
    }
}

fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn attribute(name: &str, optional: bool, many: bool) -> ModelAttribute {
        ModelAttribute { name: name.into(), optional, many }
    }

    fn found(said: &str, unit: &str) -> (Vec<(u32, u32)>, u64) {
        let Read { mentions, refused } = read(said, unit, &[]).unwrap();
        (mentions.iter().map(|mention| (mention.start, mention.end)).collect(), refused)
    }

    fn quotes(quotes: &[&str]) -> String {
        let mentions: Vec<_> = quotes.iter().map(|quote| serde_json::json!({ "quote": quote })).collect();
        serde_json::json!({ "mentions": mentions }).to_string()
    }

    #[test]
    fn quotes_take_places_in_the_order_of_the_text() {
        let unit = "Ann met Bob. Ann left;  Bob\nstayed.";
        assert_eq!(
            found(&quotes(&["Ann", "Bob", "Ann", "Bob stayed"]), unit),
            (vec![(0, 3), (8, 11), (13, 16), (24, 34)], 0)
        );
        // Out of order: what has no place behind the last one takes the first free one.
        assert_eq!(found(&quotes(&["Bob stayed", "Ann", "Ann", "Ann"]), unit), (vec![(0, 3), (13, 16), (24, 34)], 1));
        assert_eq!(found(&quotes(&["Eve", "", " \n", "Ann"]), unit), (vec![(0, 3)], 3));
    }

    #[test]
    fn white_space_is_folded_and_places_are_those_of_the_page() {
        let unit = " \u{a0}é  x\t\ny ";
        assert_eq!(found(&quotes(&["\né x y  "]), unit), (vec![(3, 11)], 0));
        assert_eq!(&unit[3..11], "é  x\t\ny");
    }

    #[test]
    fn attributes_stand_in_the_quote_or_nowhere() {
        let attributes = [attribute("who", false, false), attribute("when", true, false), attribute("all", true, true)];
        let said = r#"{"mentions":[{"quote":"Ann  Lee at 4 pm","who":"Ann Lee","when":"16:00","all":["4 pm","x",""]},
            {"quote":"at","who":null},{"quote":"at","who":"A"}]}"#;
        let Read { mentions, refused } = read(said, "- Ann Lee at 4 pm", &attributes).unwrap();
        assert_eq!(refused, 1, "a mention without what it must have");
        assert_eq!((mentions[0].start, mentions[0].end), (2, 17));
        let many = vec![Piece::Span(Span::new(11, 15)), Piece::Text("x".into())];
        let expected =
            [Value::One(Piece::Span(Span::new(0, 7))), Value::One(Piece::Text("16:00".into())), Value::Many(many)];
        assert_eq!(*mentions[0].attributes, expected);
        assert_eq!(*mentions[1].attributes, [Value::One(Piece::Text("A".into())), Value::Absent, Value::Absent]);
    }

    #[test]
    fn answers_in_fences_and_behind_thoughts_are_read_and_others_are_not() {
        for said in [
            "```json\n{\"mentions\": [{\"quote\": \"a\"}]}\n```",
            "<think>{ maybe [</think>\n{\"mentions\":[{\"quote\":\"a\"}]}",
            "[{\"quote\":\"a\"}]",
            "{\"mentions\":[{\"quote\":\"a\n\", \"x\": \"\\\"\t{\u{17}\\\\\"}]}",
        ] {
            assert_eq!(found(said, "a"), (vec![(0, 1)], 0), "{said}");
        }
        for said in ["", "I cannot.", "{\"mentions\": [{\"quote\": \"a\"", "{\"mention\": []}", "{\"mentions\": 3}"] {
            assert!(read(said, "a", &[]).is_err(), "{said}");
        }
        assert_eq!(found("{\"mentions\":[1,\"x\",{\"quote\":5}]}", "1 x 5"), (vec![], 3));
    }

    #[test]
    fn there_is_an_end_to_mentions_and_to_values() {
        let many = vec!["a"; MOST_MENTIONS + 5];
        let (places, refused) = found(&quotes(&many), &"a ".repeat(1000));
        assert_eq!((places.len(), refused), (MOST_MENTIONS, 5));
        let long =
            serde_json::json!({ "mentions": [{ "quote": "a", "v": "x".repeat(MOST_CHARACTERS + 1) }] }).to_string();
        assert_eq!(read(&long, "a", &[attribute("v", false, false)]).unwrap().refused, 1);
    }

    proptest! {
        /// Whatever is said, every mention is a quote that stands in the unit, no place is taken twice, and every
        /// statement is either a mention or refused.
        #[test]
        fn whatever_is_said_mentions_stand_in_the_unit(unit in "[ab é\n]{0,30}", said in prop::collection::vec("[ab é]{0,4}", 0..12)) {
            let list: Vec<&str> = said.iter().map(String::as_str).collect();
            let Read { mentions, refused } = read(&quotes(&list), &unit, &[]).unwrap();
            prop_assert_eq!(mentions.len() as u64 + refused, list.len() as u64);
            let spans: HashSet<(u32, u32)> = mentions.iter().map(|m| (m.start, m.end)).collect();
            prop_assert_eq!(spans.len(), mentions.len());
            let folded: HashSet<String> = list.iter().map(|quote| fold(quote)).collect();
            for mention in &mentions {
                prop_assert!(folded.contains(&fold(&unit[mention.span().range()])));
            }
            // Refused is only what has as many places taken as the unit has.
            let whole = fold(&unit);
            for quote in folded.iter().filter(|quote| !quote.is_empty()) {
                let wanted = list.iter().filter(|other| fold(other) == *quote).count();
                let there = (0..whole.len()).filter(|at| whole.is_char_boundary(*at) && whole[*at..].starts_with(quote.as_str())).count();
                let got = mentions.iter().filter(|m| fold(&unit[m.span().range()]) == *quote).count();
                prop_assert_eq!(got, wanted.min(there));
            }
        }
    }
}
