//! Changes that keep the form of what they change: of JSON its values and fields, of other text its words and lines.
//!
//! A flipped byte mostly ends at the first check of syntax. What keeps its form comes to what reads the meaning.

use serde_json::{Map, Number, Value, json};

use crate::model::Rng;

/// Objects and lists have no more nodes than this after a change.
const MAX_NODES: usize = 20_000;

/// Changes one value of a JSON document that begins a line of the input, if there is one. A stated length of an HTTP body
/// is mostly made to fit.
pub(in crate::lab) fn reshape(input: &mut Vec<u8>, words: &[&str], rng: &mut Rng) -> bool {
    let begins =
        |&at: &usize| matches!(input[at], b'{' | b'[') && (at == 0 || matches!(input[at - 1], b'\n' | b'`' | b'>'));
    let places: Vec<usize> = (0..input.len()).filter(begins).collect();
    let Some(&at) = places.get(rng.index(places.len())) else { return false };
    let mut documents = serde_json::Deserializer::from_slice(&input[at..]).into_iter::<Value>();
    let Some(Ok(mut value)) = documents.next() else { return false };
    let end = at + documents.byte_offset();
    for _ in 0..=rng.index(3) {
        change(&mut value, words, rng);
    }
    let Some(text) = written(&value) else { return false };
    let body = text.len() + input.len() - end;
    input.splice(at..end, text);
    if rng.index(8) > 0 {
        fit_length(input, at, body);
    }
    true
}

/// One line; what sums up a file stays its last field, as it is written.
fn written(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Object(fields) if fields.contains_key("sum") => {
            let mut fields = fields.clone();
            let sum = fields.remove("sum")?;
            let mut text = serde_json::to_vec(&fields).ok()?;
            text.pop();
            text.extend_from_slice(if fields.is_empty() { b"\"sum\":" } else { b",\"sum\":" });
            text.extend(serde_json::to_vec(&sum).ok()?);
            text.push(b'}');
            Some(text)
        }
        _ => serde_json::to_vec(value).ok(),
    }
}

fn fit_length(input: &mut Vec<u8>, before: usize, body: usize) {
    const FIELD: &[u8] = b"content-length: ";
    if let Some(field) = memchr::memmem::find(&input[..before], FIELD) {
        let from = field + FIELD.len();
        let to = from + input[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        input.splice(from..to, body.to_string().into_bytes());
    }
}

/// Changes one node of a tree.
fn change(tree: &mut Value, words: &[&str], rng: &mut Rng) {
    let nodes = count(tree);
    let other = nth(tree, &mut rng.index(nodes)).cloned().unwrap_or(Value::Null);
    let Some(node) = nth(tree, &mut rng.index(nodes)) else { return };
    let small = nodes < MAX_NODES;
    match node {
        // Models answer with JSON in a text.
        Value::String(text) if rng.index(2) == 0 && text.starts_with(['{', '[']) => {
            if let Ok(mut inner) = serde_json::from_str(text) {
                change(&mut inner, words, rng);
                *text = inner.to_string();
            }
        }
        Value::String(text) if rng.index(3) == 0 => change_text(text, words, rng),
        Value::Number(number) if rng.index(3) == 0 => *number = near(number, rng),
        Value::Object(fields) if rng.index(2) == 0 => change_fields(fields, other, rng),
        Value::Array(items) if rng.index(2) == 0 && small => change_items(items, other, rng),
        node => *node = if rng.index(2) == 0 && small { other } else { odd(words, rng) },
    }
}

fn count(tree: &Value) -> usize {
    1 + match tree {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// The node with this number, counted from the root down.
fn nth<'a>(tree: &'a mut Value, number: &mut usize) -> Option<&'a mut Value> {
    if *number == 0 {
        return Some(tree);
    }
    *number -= 1;
    match tree {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, number)),
        Value::Object(fields) => fields.values_mut().find_map(|field| nth(field, number)),
        _ => None,
    }
}

fn change_fields(fields: &mut Map<String, Value>, other: Value, rng: &mut Rng) {
    let names: Vec<String> = fields.keys().cloned().collect();
    let Some(name) = names.get(rng.index(names.len())) else { return };
    match rng.index(3) {
        0 => drop(fields.remove(name)),
        1 => drop(fields.insert(rng.choose(&names).clone(), other)),
        _ => {
            let value = fields.remove(name).unwrap_or_default();
            fields.insert(format!("{name}{}", rng.choose(&["", "s", "\u{0}", "é"])), value);
        }
    }
}

fn change_items(items: &mut Vec<Value>, other: Value, rng: &mut Rng) {
    let at = rng.index(items.len());
    match rng.index(4) {
        0 if !items.is_empty() => drop(items.remove(at)),
        1 => items.reverse(),
        2 if !items.is_empty() => {
            let again = items[at].clone();
            items.extend(std::iter::repeat_n(again, rng.index(20)));
        }
        _ => items.insert(at, other),
    }
}

fn change_text(text: &mut String, words: &[&str], rng: &mut Rng) {
    let place = |rng: &mut Rng, text: &str| {
        text.char_indices().nth(rng.index(text.chars().count() + 1)).map_or(text.len(), |(at, _)| at)
    };
    let (a, b) = (place(rng, text), place(rng, text));
    let odd = ["\u{0}", "\u{1f600}", "é", "..", "/", " ", "\u{1b}[2J", "\u{fffd}", "0"];
    match rng.index(3) {
        0 => text.replace_range(a.min(b)..a.max(b), ""),
        1 => {
            let word = *rng.choose(words);
            text.insert_str(a, word);
        }
        _ => {
            let word = *rng.choose(&odd);
            text.insert_str(a, word);
        }
    }
}

/// A number that is not far off, or one of another sign or size.
fn near(number: &Number, rng: &mut Rng) -> Number {
    match (number.as_i64(), rng.index(4)) {
        (Some(number), 0) => number.wrapping_add(1).into(),
        (Some(number), 1) => number.wrapping_sub(1).into(),
        (Some(number), 2) => number.wrapping_neg().into(),
        (Some(number), _) => number.wrapping_mul(1_000).into(),
        (None, _) => Number::from_f64(number.as_f64().unwrap_or(0.5) * -1e3).unwrap_or_else(|| 0.into()),
    }
}

fn odd(words: &[&str], rng: &mut Rng) -> Value {
    match rng.index(14) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(u64::MAX),
        5 => json!(4_294_967_296_u64),
        6 => json!(1e308),
        7 => json!(0.5),
        8 => json!(""),
        9 => json!([]),
        10 => json!({}),
        11 => json!("x".repeat(rng.index(70_000))),
        12 => (0..rng.index(100)).fold(json!([]), |inner, _| json!([inner])),
        _ => json!(rng.choose(words)),
    }
}

/// Drops, repeats, swaps or replaces words or whole lines of a text.
pub(in crate::lab) fn shuffle(input: &mut Vec<u8>, donor: &[u8], rng: &mut Rng) {
    let split = if rng.index(2) == 0 { lines } else { tokens };
    let mut pieces: Vec<Vec<u8>> = split(input);
    let donors = split(donor);
    if pieces.is_empty() || pieces.len() > MAX_NODES {
        return;
    }
    let (a, b) = (rng.index(pieces.len()), rng.index(pieces.len()));
    match rng.index(6) {
        0 => drop(pieces.remove(a)),
        1 => pieces.insert(a, pieces[b].clone()),
        2 => pieces.swap(a, b),
        3 => pieces[a] = pieces[b].clone(),
        4 if !donors.is_empty() => pieces[a].clone_from(rng.choose(&donors)),
        _ if !donors.is_empty() => pieces.insert(a, rng.choose(&donors).clone()),
        _ => {}
    }
    *input = pieces.concat();
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Words and numbers, runs of blanks, and single marks.
fn tokens(bytes: &[u8]) -> Vec<Vec<u8>> {
    let class = |byte: &u8| match byte {
        b' ' | b'\t' => 1,
        byte if byte.is_ascii_alphanumeric() || *byte >= 0x80 || *byte == b'_' => 2,
        _ => 0,
    };
    bytes.chunk_by(|a, b| class(a) != 0 && class(a) == class(b)).map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reshaped_is_still_json() {
        let sample = b"name\n{\"a\": [1, 2, {\"b\": \"{\\\"c\\\": 3}\"}], \"sum\": \"x\", \"time\": 4}\n[5]\n";
        let mut differs = 0;
        for round in 0..500 {
            let mut input = sample.to_vec();
            assert!(reshape(&mut input, &["w"], &mut Rng::of_round(1, round)));
            assert!(input.starts_with(b"name\n") && input.ends_with(b"\n"));
            let documents = serde_json::Deserializer::from_slice(&input[5..]).into_iter::<Value>();
            let documents: Vec<Value> = documents.collect::<Result<_, _>>().unwrap();
            assert_eq!(documents.len(), 2);
            differs += usize::from(input != sample);
        }
        assert!(differs > 400, "{differs}");
        let sums_last = written(&json!({"sum": "x", "time": 4, "a": {"sum": 1, "z": 2}})).unwrap();
        assert_eq!(String::from_utf8_lossy(&sums_last), r#"{"a":{"sum":1,"z":2},"time":4,"sum":"x"}"#);
        assert!(!reshape(&mut b"no { json".to_vec(), &["w"], &mut Rng::new(1)));
    }

    #[test]
    fn a_stated_length_fits_mostly() {
        let sample = b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{\"a\": 1}";
        let fits = |round: &u64| {
            let mut input = sample.to_vec();
            reshape(&mut input, &["w"], &mut Rng::of_round(2, *round));
            let text = String::from_utf8_lossy(&input).into_owned();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            head.ends_with(&format!("content-length: {}", body.len()))
        };
        let fitting = (0..200).filter(fits).count();
        assert!((150..200).contains(&fitting), "{fitting}");
    }

    #[test]
    fn shuffled_text_is_made_of_the_words_that_were_there() {
        assert_eq!(tokens(b"a_1  = 'x'"), [&b"a_1"[..], b"  ", b"=", b" ", b"'", b"x", b"'"]);
        for round in 0..300 {
            let mut input = b"select a from b\nwhere c = 1\n".to_vec();
            shuffle(&mut input, b"other words\n", &mut Rng::of_round(3, round));
            let known = |token: &Vec<u8>| {
                b"select a from b\nwhere c = 1\nother words".windows(token.len()).any(|part| part == token)
            };
            // Words and blanks that come to stand side by side are one.
            let grown = |token: &Vec<u8>| token.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b' ');
            assert!(tokens(&input).iter().all(|token| known(token) || grown(token)));
        }
    }
}
