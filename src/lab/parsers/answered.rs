//! What those say who are asked: workers and servers of models.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use super::{JSON, Parser, lines};
use crate::extract::command::{Offsets, Ready, protocol};
use crate::extract::llm::{Client, Mode, Model, ModelAttribute, ModelSpec, Trouble, answer};
use crate::extract::reach::{Blocks, Unit};
use crate::extract::runner::Question;
use crate::extract::schema::{Attribute, Schema};

pub(super) const PARSERS: [Parser; 3] = [
    Parser {
        name: "worker",
        samples: |_| {
            lines(&[
                r#"{"name": "x", "version": "1", "attributes": ["a", {"name": "b", "many": true}], "offsets": "char", "unit": "window", "scope": 9, "context": [1, 2]}"#,
                r#"{"id": 0, "mentions": [{"start": 0, "end": 3, "text": "One", "attrs": {"a": [0, 1], "b": ["x", [1, 2]]}}]}"#,
                r#"{"id": 0, "error": "no"}"#,
            ])
        },
        words: JSON,
        read: worker,
    },
    Parser {
        name: "model",
        samples: |_| {
            lines(&[
                r#"{"mentions": [{"quote": "One two", "a": "One", "b": ["two"]}, {"quote": "é"}]}"#,
                "<think>{}</think>```json\n[{\"quote\": \"One\"}]\n```",
            ])
        },
        words: JSON,
        read: model,
    },
    Parser { name: "model-server", samples: replies, words: HTTP, read: model_server },
];

fn worker(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let line = String::from_utf8_lossy(bytes);
    let mut out = serde_json::from_str::<Ready>(&line).map_or(0, |ready| 1 + ready.attributes().count() as u64);
    let mut schema = Schema::default();
    for (name, many) in [("a", false), ("b", true)] {
        schema.push(Attribute { name: name.into(), many }).map_err(|error| error.to_string())?;
    }
    let text = "One \u{1f600} two é three";
    for offsets in [Offsets::Byte, Offsets::Char, Offsets::Utf16] {
        for mention in protocol::read_line(&line, text, offsets, &schema).unwrap_or_default() {
            if text.get(mention.span().range()).is_none_or(str::is_empty) {
                return Err(format!("a mention that is no part of the text: {mention:?}"));
            }
            out += 1;
        }
    }
    Ok(out)
}

fn model(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let attributes = ["a", "b"].map(|name| ModelAttribute { name: name.into(), optional: true, many: name == "b" });
    let unit = "One  two é three, One two";
    let Ok(read) = answer::read(&String::from_utf8_lossy(bytes), unit, &attributes) else { return Ok(0) };
    match read.mentions.iter().find(|mention| unit.get(mention.span().range()).is_none_or(str::is_empty)) {
        Some(mention) => Err(format!("a mention that is no part of the unit: {mention:?}")),
        None => Ok(read.mentions.len() as u64),
    }
}

const HTTP: &[&str] = &[
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 301 Moved\r\nlocation: /\r\n",
    "content-length: 5\r\n",
    "content-length: 99999999999\r\n",
    "transfer-encoding: chunked\r\n",
    "content-encoding: gzip\r\n",
    "retry-after: 1e300\r\n",
    "retry-after: -1\r\n",
    "set-cookie: a=b\r\n",
    "\r\n",
    "\r\n\r\n",
    "ffffffff\r\n",
    "data: {\"choices\": []}\n\n",
    "\"choices\"",
    "\"has_more\": true",
    "\"prompt_tokens\": -1",
    "{",
    "]",
    "\u{0}",
    "\u{1b}[31m",
    KEY,
    "sk-the\u{1}-secret",
];

/// A key that no message may show.
const KEY: &str = "sk-the-secret";

/// What servers say, head and all.
fn replies(_: &Path) -> Vec<Vec<u8>> {
    let reply = |status: &str, body: &str| {
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
        format!("{head}\r\n\r\n{body}").into_bytes()
    };
    let completion = r#"{"choices": [{"message": {"role": "assistant", "content": "{\"mentions\": [{\"quote\": \"One\"}]}"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5, "completion_tokens": 7}}"#;
    let key = "0".repeat(32);
    let line =
        format!(r#"{{"custom_id": "{key}", "response": {{"status_code": 200, "body": {completion}}}, "error": null}}"#);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{completion}\r\n0\r\n\r\n",
        completion.len()
    );
    vec![
        reply("200 OK", completion),
        reply("400 Bad Request", r#"{"error": {"message": "no response_format for sk-the-secret"}}"#),
        reply("429 Too Many Requests\r\nretry-after: Fri, 01 Mar 2024 12:00:00 GMT", "slow down"),
        reply("200 OK", r#"{"id": "b1", "status": "completed", "output_file_id": "f1", "error_file_id": null}"#),
        reply("200 OK", r#"{"data": [{"id": "b1", "input_file_id": "f1"}, {"id": "b2"}], "has_more": false}"#),
        reply("200 OK", &format!("{line}\n{line}\n")),
        chunked.into_bytes(),
    ]
}

/// A server on loopback that says the same to everybody. There is one for all rounds, and it is always the one that ends a
/// connection: a port that has just been used stays taken for a minute, on the side that ended the connection.
struct Parrot {
    port: u16,
    /// Held as long as somebody talks to it.
    talk: Mutex<()>,
}

static SAYS: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static PARROT: LazyLock<Result<Parrot, String>> = LazyLock::new(Parrot::new);

impl Parrot {
    fn new() -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let serve = move || {
            for stream in listener.incoming() {
                let says = SAYS.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // Whoever hangs up early has heard enough.
                let _ = stream.and_then(|stream| answer(stream, &says));
            }
        };
        std::thread::Builder::new().spawn(serve).map_err(|error| error.to_string())?;
        Ok(Self { port, talk: Mutex::new(()) })
    }
}

/// Listens until the request's head and as many bytes of it as it states are there, so that what is said is heard.
fn answer(mut stream: TcpStream, says: &[u8]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let (mut heard, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&heard).to_ascii_lowercase();
        if let Some(head) = text.find("\r\n\r\n") {
            let stated = text[..head].split("content-length:").nth(1).and_then(|rest| rest.lines().next());
            let stated = stated.and_then(|digits| digits.trim().parse().ok()).unwrap_or(0);
            if heard.len() >= head + 4 + stated {
                break;
            }
        }
        match stream.read(&mut piece)? {
            0 => break,
            n => heard.extend_from_slice(&piece[..n]),
        }
    }
    stream.write_all(says)?;
    stream.shutdown(Shutdown::Write)
}

/// The real client against a server on loopback that says the input, to a question and to all that batches need.
fn model_server(bytes: &[u8], _: &Path) -> Result<u64, String> {
    let parrot = PARROT.as_ref().map_err(Clone::clone)?;
    let _talk = parrot.talk.lock().unwrap_or_else(PoisonError::into_inner);
    bytes.clone_into(&mut SAYS.lock().unwrap_or_else(PoisonError::into_inner));
    conversation(parrot.port)
}

fn conversation(port: u16) -> Result<u64, String> {
    let spec = ModelSpec {
        endpoint: format!("http://127.0.0.1:{port}/v1"),
        model: "m".into(),
        prompt: "p".into(),
        attributes: Vec::new(),
        unit: Unit::Block,
        blocks: Blocks::default(),
        title: false,
        api_key_env: None,
        price: None,
        budget: None,
        in_flight: 1,
        max_tokens: 100,
        timeout: Duration::from_secs(5),
        mode: Mode::Batch,
    };
    let client = Client::with_key(&spec, Some(KEY.to_owned()));
    let question = Question { text: "One two", before: "", after: "", title: None, url: None };
    let request = Model::new(spec, Schema::default()).request(&question);
    let mut out = 0;
    let mut troubles: Vec<Trouble> = Vec::new();
    match client.ask(&request) {
        Ok(reply) => out += 1 + reply.content.len() as u64,
        Err(trouble) => troubles.push(trouble),
    }
    let mut understood = |trouble: Option<Trouble>| match trouble {
        Some(trouble) => troubles.push(trouble),
        None => out += 1,
    };
    understood(client.batch("b1").err());
    understood(client.find_batch("f1").err());
    understood(client.upload("x.jsonl", b"{}\n").err());
    match client.batch_lines("f1") {
        Ok(lines) => lines.into_iter().for_each(|line| understood(line.reply.err())),
        Err(trouble) => understood(Some(trouble)),
    }
    for why in troubles.into_iter().map(Trouble::why) {
        if why.contains(KEY) || why.contains(char::is_control) || why.chars().count() > 300 {
            return Err(format!("it is told as {why:?}"));
        }
    }
    Ok(out)
}
