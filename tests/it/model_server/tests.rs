//! The server by itself: what it answers, how it misbehaves, what it notes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::answer::tokens;
use super::{Asked, Manner, ModelServer, Tokens};

const RULE: &str = r"(?P<who>[A-Z][a-z]+) in (?P<room>[A-Z][0-9]+)?";
const TEXT: &str = "Ada in B12, then (é) Emil in C3; Bob in the garden";

/// A connection of a client without any tricks.
struct Client(BufReader<TcpStream>);

#[derive(Debug)]
struct Heard {
    status: u16,
    headers: Vec<String>,
    body: String,
}

impl Client {
    fn of(server: &ModelServer) -> Self {
        let host = server.endpoint().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
        Self(BufReader::new(TcpStream::connect(host).unwrap()))
    }

    fn post(&mut self, path: &str, body: &str) -> std::io::Result<Heard> {
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nContent-Length: {length}\r\n");
        self.0.get_mut().write_all(format!("{head}\r\n{body}").as_bytes())?;
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let length = lines.iter().find_map(|line| line.strip_prefix("Content-Length: ")).map(|n| n.parse().unwrap());
        let mut body = vec![0; length.unwrap_or(0)];
        self.0.read_exact(&mut body)?;
        Ok(Heard { status, headers: lines, body: String::from_utf8(body).unwrap() })
    }

    fn ask(&mut self, text: &str) -> std::io::Result<Heard> {
        self.post("/v1/chat/completions", &question(text, true).to_string())
    }
}

fn question(text: &str, schema: bool) -> Value {
    let messages = json!([
        { "role": "system", "content": "Find people." },
        { "role": "user", "content": "what stands before" },
        { "role": "user", "content": text },
    ]);
    let mut body = json!({ "model": "m", "messages": messages, "max_tokens": 200 });
    if schema {
        body["response_format"] = json!({ "type": "json_schema", "json_schema": { "name": "mentions", "schema": {} } });
    }
    body
}

fn always(manner: Manner) -> ModelServer {
    let server = ModelServer::start(RULE);
    server.behave(move |_| manner.clone());
    server
}

impl Heard {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn content(&self) -> String {
        self.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    }

    fn quotes(&self) -> Vec<String> {
        let content: Value = serde_json::from_str(&self.content()).unwrap();
        let quote = |mention: &Value| mention["quote"].as_str().unwrap().to_owned();
        content["mentions"].as_array().unwrap().iter().map(quote).collect()
    }
}

#[test]
fn the_rule_answers_and_all_is_noted() {
    let server = ModelServer::start(RULE);
    let mut client = Client::of(&server);
    let heard = client.ask(TEXT).unwrap();
    let content: Value = serde_json::from_str(&heard.content()).unwrap();
    assert_eq!(content["mentions"][0], json!({ "quote": "Ada in B12", "who": "Ada", "room": "B12" }));
    assert_eq!(content["mentions"][2], json!({ "quote": "Bob in ", "who": "Bob", "room": null }));
    assert_eq!(heard.json()["choices"][0]["finish_reason"], "stop");
    client.ask("nobody").unwrap();
    client.ask("nobody").unwrap();
    let totals = server.totals();
    assert_eq!((totals.requests, totals.answered, totals.connections, totals.most_in_flight), (3, 3, 1, 1));
    let log = server.log();
    assert_eq!((log[0].asked.text.as_str(), log[0].asked.context.len()), (TEXT, 1));
    assert_eq!(
        (log[0].asked.system.as_str(), log[0].asked.authorization.as_deref()),
        ("Find people.", Some("Bearer k"))
    );
    assert_eq!((log[1].asked.attempt, log[2].asked.attempt, log[2].asked.number), (1, 2, 3));
    assert!(log[0].after <= log[1].after);
    let input = tokens("Find people.") + tokens("what stands before") + tokens(TEXT);
    assert_eq!(log[0].billed, Tokens { input, output: tokens(&heard.content()) });
    assert_eq!(heard.json()["usage"]["prompt_tokens"], input);
    assert_eq!((&log[0].manner, log[0].stated), (&Manner::Good, Some(log[0].billed)));
    assert_eq!(totals.billed.input, log.iter().map(|entry| entry.billed.input).sum::<u64>());
    assert_eq!(totals.bytes, log.iter().map(|entry| entry.asked.body.to_string().len() as u64).sum::<u64>());
    assert_eq!(server.texts(), [(TEXT.to_owned(), 1), ("nobody".to_owned(), 2)]);
    server.forget();
    assert_eq!(server.totals().requests, 0);
}

#[test]
fn what_is_no_question_is_refused() {
    let server = ModelServer::start(RULE);
    let mut client = Client::of(&server);
    assert_eq!(client.post("/v1/models", "{}").unwrap().status, 400);
    assert_eq!(client.post("/v1/chat/completions", "{").unwrap().status, 400);
    let ends_with_system = json!({ "model": "m", "messages": [{ "role": "system", "content": "x" }] });
    assert_eq!(client.post("/v1/chat/completions", &ends_with_system.to_string()).unwrap().status, 400);
    assert_eq!(client.ask(TEXT).unwrap().status, 200, "the connection still serves");
}

#[test]
fn answers_without_status_200_cost_nothing() {
    let later = Manner::TooMany { retry_after: Some("7".into()) };
    let no_schemas = Manner::NoSchemas { fenced: true };
    let cases = [
        (later, 429, true),
        (Manner::TooMany { retry_after: None }, 429, false),
        (Manner::Fails(500), 500, false),
        (no_schemas, 400, false),
    ];
    for (manner, status, header) in cases {
        let server = always(manner);
        let heard = Client::of(&server).ask(TEXT).unwrap();
        assert_eq!(heard.status, status);
        assert_eq!(heard.headers.contains(&"Retry-After: 7".to_owned()), header);
        assert!(heard.json()["error"]["message"].is_string());
        assert_eq!(server.totals().billed, Tokens::default());
    }
}

#[test]
fn answers_are_spoiled_as_told() {
    let heard = |manner: Manner| Client::of(&always(manner)).ask(TEXT).unwrap();
    let good = ["Ada in B12", "Emil in C3", "Bob in "];
    assert_eq!(heard(Manner::Good).quotes(), good);
    assert_eq!(heard(Manner::Reordered).quotes(), ["Bob in ", "Emil in C3", "Ada in B12"]);
    assert_eq!(heard(Manner::Duplicates).quotes().len(), 6);
    let invented = heard(Manner::Invented).quotes();
    assert_eq!((invented.len(), &invented[1..4]), (5, &good.map(str::to_owned)[..]));
    assert!(!TEXT.contains(&invented[0]) && !TEXT.contains(&invented[4]));
    assert!(heard(Manner::Oversized(100_000)).body.len() > 100_000);
    assert_eq!(heard(Manner::Empty).content(), "");
    for manner in [Manner::WrongJson, Manner::CutAnswer] {
        assert!(serde_json::from_str::<Value>(&heard(manner).content()).is_err());
    }
    assert_eq!(heard(Manner::CutAnswer).json()["choices"][0]["finish_reason"], "length");
    let shape: Value = serde_json::from_str(&heard(Manner::WrongShape).content()).unwrap();
    assert!(!shape["mentions"].is_array());
    let refusal = heard(Manner::Refuses).json();
    assert!(refusal["choices"][0]["message"]["content"].is_null());
    assert!(refusal["choices"][0]["message"]["refusal"].is_string());
    assert!(heard(Manner::NoUsage).json()["usage"].is_null());
    assert_eq!(heard(Manner::WrongUsage(Tokens { input: 3, output: 4 })).json()["usage"]["total_tokens"], 7);
}

#[test]
fn servers_without_schemas_answer_without_one() {
    let server = always(Manner::NoSchemas { fenced: true });
    let mut client = Client::of(&server);
    assert_eq!(client.ask(TEXT).unwrap().status, 400);
    let heard = client.post("/v1/chat/completions", &question(TEXT, false).to_string()).unwrap();
    assert!(heard.content().contains("```json\n{\"mentions\""));
}

#[test]
fn a_longer_answer_than_allowed_is_cut() {
    let server = ModelServer::start(RULE);
    let heard = Client::of(&server).ask(&TEXT.repeat(100)).unwrap();
    assert_eq!((heard.content().len(), server.totals().billed.output), (800, 200));
    assert_eq!(heard.json()["choices"][0]["finish_reason"], "length");
}

#[test]
fn connections_end_as_told() {
    let server = always(Manner::CutBody);
    assert!(Client::of(&server).ask(TEXT).is_err());
    assert!(server.totals().billed.output > 0, "an answer that does not arrive is billed");
    let server = always(Manner::Resets);
    let error = Client::of(&server).ask(TEXT).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!((server.log()[0].status, server.totals().billed), (0, Tokens::default()));
    let server = always(Manner::ClosesAfter);
    let mut client = Client::of(&server);
    assert_eq!(client.ask(TEXT).unwrap().status, 200);
    assert!(client.ask(TEXT).is_err());
    let server = always(Manner::Chunked);
    let mut client = Client::of(&server);
    let heard = client.ask(TEXT).unwrap();
    assert!(heard.headers.contains(&"Transfer-Encoding: chunked".to_owned()));
    let mut size = String::new();
    client.0.read_line(&mut size).unwrap();
    assert_eq!(size, "28\r\n");
}

#[test]
fn those_at_the_same_time_are_counted() {
    let server = always(Manner::Slow(Duration::from_millis(200)));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| Client::of(&server).ask(TEXT).unwrap());
        }
    });
    let totals = server.totals();
    assert_eq!((totals.requests, totals.connections), (4, 4));
    assert!((2..=4).contains(&totals.most_in_flight), "{totals:?}");
}

#[test]
fn a_share_is_always_the_same_one() {
    let asked = |text: usize, attempt: u64| Asked {
        text: text.to_string(),
        context: Vec::new(),
        system: String::new(),
        attempt,
        number: 0,
        body: Value::Null,
        authorization: None,
        bytes: 0,
    };
    let drawn = |attempt: u64| -> Vec<bool> { (0..1000).map(|text| asked(text, attempt).draws(0.2)).collect() };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2), "the next attempt has another chance");
    let share = drawn(1).into_iter().filter(|&drawn| drawn).count();
    assert!((150..250).contains(&share), "{share} of 1000");
}
