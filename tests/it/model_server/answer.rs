//! What is answered: the rule's mentions, spoiled as the manner says, and what it costs.

use regex::Regex;
use serde_json::{Map, Value, json};

use super::{Asked, Manner, Tokens};

pub(super) struct Reply {
    /// 0: none, because the connection is reset.
    pub(super) status: u16,
    pub(super) retry_after: Option<String>,
    pub(super) body: String,
    pub(super) ending: Ending,
    pub(super) billed: Tokens,
    pub(super) stated: Option<Tokens>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Whole,
    /// In the middle.
    Cut,
    Chunks,
    /// Whole, and then the connection is closed.
    Close,
    /// Whole, and the connection is closed when the next request begins to come.
    CloseOnNext,
    /// Nothing, and the connection is reset.
    Reset,
}

impl Reply {
    pub(super) fn stays_open(&self) -> bool {
        matches!(self.ending, Ending::Whole | Ending::Chunks)
    }

    /// Costs nothing.
    pub(super) fn free(status: u16, body: String) -> Self {
        let billed = Tokens::default();
        Self { status, retry_after: None, body, ending: Ending::Whole, billed, stated: None }
    }
}

/// An error in the words of such servers.
pub(super) fn problem(status: u16, message: &str) -> Reply {
    Reply::free(status, json!({ "error": { "message": message, "type": "invalid_request_error" } }).to_string())
}

/// The mentions of a text: what the regex matches, its named groups as attributes.
pub(super) fn mentions(rule: &Regex, text: &str) -> Vec<Value> {
    let names: Vec<&str> = rule.capture_names().flatten().collect();
    let mention = |found: regex::Captures<'_>| {
        let mut mention = Map::from_iter([("quote".to_owned(), json!(&found[0]))]);
        mention
            .extend(names.iter().map(|&name| (name.to_owned(), json!(found.name(name).map(|group| group.as_str())))));
        Value::Object(mention)
    };
    rule.captures_iter(text).map(mention).collect()
}

pub(super) fn reply(rule: &Regex, manner: &Manner, asked: &Asked) -> Reply {
    match manner {
        Manner::TooMany { retry_after } => {
            Reply { retry_after: retry_after.clone(), ..problem(429, "rate limit reached") }
        }
        Manner::Fails(status) => problem(*status, "something went wrong here"),
        Manner::Resets => Reply { ending: Ending::Reset, ..Reply::free(0, String::new()) },
        Manner::NoSchemas { .. } if !asked.body["response_format"].is_null() => {
            problem(400, "unknown parameter: response_format")
        }
        _ => billed(manner, asked, said(rule, manner, asked)),
    }
}

/// What the model says; `None` if it refuses.
fn said(rule: &Regex, manner: &Manner, asked: &Asked) -> Option<String> {
    let mut found = mentions(rule, &asked.text);
    match manner {
        Manner::Refuses => return None,
        Manner::Empty => return Some(String::new()),
        Manner::WrongJson => return Some("Sure! I found nothing that I could put into a list.".to_owned()),
        Manner::WrongShape => return Some(json!({ "mentions": { "quote": 7 } }).to_string()),
        Manner::Oversized(bytes) => found.push(json!({ "quote": "x".repeat(*bytes) })),
        Manner::Duplicates => found = found.into_iter().flat_map(|mention| [mention.clone(), mention]).collect(),
        Manner::Reordered => found.reverse(),
        Manner::Invented => {
            found.insert(0, invented(rule, "nobody wrote this before"));
            found.push(invented(rule, "nobody wrote this behind"));
        }
        _ => {}
    }
    let content = json!({ "mentions": found }).to_string();
    Some(match manner {
        Manner::NoSchemas { fenced: true } => format!("Here is what I found:\n```json\n{content}\n```\nAnything else?"),
        Manner::CutAnswer => start_of(&content, content.len() / 2).to_owned(),
        _ => content,
    })
}

/// A mention with all attributes that the text cannot have.
fn invented(rule: &Regex, quote: &str) -> Value {
    let mut mention = Map::from_iter([("quote".to_owned(), json!(quote))]);
    mention.extend(rule.capture_names().flatten().map(|name| (name.to_owned(), json!("nobody"))));
    Value::Object(mention)
}

fn billed(manner: &Manner, asked: &Asked, content: Option<String>) -> Reply {
    let refusal = content.is_none().then_some("I cannot help with that.");
    let most = [&asked.body["max_tokens"], &asked.body["max_completion_tokens"]].into_iter().find_map(Value::as_u64);
    let mut content = content;
    let mut finish = if *manner == Manner::CutAnswer { "length" } else { "stop" };
    let mut output = tokens(content.as_deref().or(refusal).unwrap_or_default());
    if let Some(most) = most.filter(|&most| most < output) {
        output = most;
        finish = "length";
        if !matches!(manner, Manner::Oversized(_)) {
            let bytes = usize::try_from(most * BYTES_A_TOKEN).unwrap();
            content = content.map(|content| start_of(&content, bytes).to_owned());
        }
    }
    let said = asked.body["messages"].as_array().into_iter().flatten();
    let input = said.filter_map(|message| message["content"].as_str()).map(tokens).sum();
    let billed = Tokens { input, output };
    let stated = match manner {
        Manner::NoUsage => None,
        Manner::WrongUsage(wrong) => Some(*wrong),
        _ => Some(billed),
    };
    let mut body = json!({
        "id": format!("chatcmpl-{}", asked.number),
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": asked.body["model"],
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": content, "refusal": refusal },
            "finish_reason": finish,
        }],
    });
    if let Some(Tokens { input, output }) = stated {
        body["usage"] = json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output });
    }
    let ending = match manner {
        Manner::CutBody => Ending::Cut,
        Manner::Chunked => Ending::Chunks,
        Manner::ClosesAfter => Ending::Close,
        Manner::ClosesOnNext => Ending::CloseOnNext,
        _ => Ending::Whole,
    };
    Reply { status: 200, retry_after: None, body: body.to_string(), ending, billed, stated }
}

const BYTES_A_TOKEN: u64 = 4;

pub(super) fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(BYTES_A_TOKEN)
}

/// At most so many bytes from the start.
fn start_of(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
