//! A model on loopback, for tests: speaks the protocol of OpenAI-compatible servers (`POST /v1/chat/completions`), answers
//! by a rule instead of a mood, misbehaves when told to, and keeps books of all that it was asked and would have billed.
//!
//! The rule is a regex: every match in the last user message is a mention, its named groups are the attributes. So a test
//! knows what a run has to find. Tokens are bytes divided by four, rounded up. Whatever ends with status 200 is billed,
//! also answers that never arrive or that nobody can use, as providers do.
//!
//! ```ignore
//! let model = ModelServer::start(r"(?P<who>[A-Z][a-z]+) speaks");
//! model.behave(|asked| match asked.attempt {
//!     1 if asked.draws(0.2) => Manner::TooMany { retry_after: Some("0".into()) },
//!     _ => Manner::Good,
//! });
//! let w = Workspace::new(&format!("[[extractor]]\nkind = 'llm'\nendpoint = '{}'\n…", model.endpoint()));
//! w.run();
//! assert_eq!(model.totals().billed.input, …);
//! ```

mod answer;
mod batch;
mod http;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::Value;

use answer::Ending;
pub(crate) use batch::BatchManner;

/// How a request is answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Manner {
    Good,
    /// Status 429, with a `Retry-After` (seconds or a date) or without.
    TooMany {
        retry_after: Option<String>,
    },
    /// Any other status, such as 500 or 401.
    Fails(u16),
    /// A good answer, so much later.
    Slow(Duration),
    /// The body ends in the middle, and the connection with it.
    CutBody,
    /// The model ran out of tokens: JSON that ends in the middle, `finish_reason` is `length`.
    CutAnswer,
    /// Words instead of JSON.
    WrongJson,
    /// JSON that the schema does not allow.
    WrongShape,
    /// The good answer between two mentions that the text does not have.
    Invented,
    /// Every mention twice.
    Duplicates,
    /// Mentions from last to first.
    Reordered,
    /// An answer of so many bytes, whatever `max_tokens` says.
    Oversized(usize),
    /// The model does not want to: `refusal` instead of `content`.
    Refuses,
    /// No content at all.
    Empty,
    /// The connection is reset instead of an answer.
    Resets,
    /// A good answer, after which the connection is closed without a word, as servers do with idle ones.
    ClosesAfter,
    /// A good answer, after which the connection is closed as soon as the next request begins to come.
    ClosesOnNext,
    /// A good answer in chunks, without a length.
    Chunked,
    /// A good answer that does not say what it cost.
    NoUsage,
    /// A good answer that states these tokens.
    WrongUsage(Tokens),
    /// Status 400 if there is a `response_format`, as of servers that know no schemas; else a good answer, `fenced` as
    /// models like to write JSON (words, and three backticks around it).
    NoSchemas {
        fenced: bool,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// A request, as the one who decides about the manner sees it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The last user message.
    pub(crate) text: String,
    /// User messages before it.
    pub(crate) context: Vec<String>,
    pub(crate) system: String,
    /// How often this text was asked so far, this time included.
    pub(crate) attempt: u64,
    /// All requests so far, this one included.
    pub(crate) number: u64,
    /// The request whole.
    pub(crate) body: Value,
    /// The header `Authorization`.
    pub(crate) authorization: Option<String>,
    /// Length of the request's body.
    pub(crate) bytes: u64,
}

impl Asked {
    /// True for about this share of all texts and attempts: always the same ones, in whatever order they are asked.
    pub(crate) fn draws(&self, share: f64) -> bool {
        let digest = blake3::hash(format!("{} {}", self.attempt, self.text).as_bytes());
        let drawn = u64::from_le_bytes(digest.as_bytes()[..8].try_into().unwrap());
        (drawn as f64) < share * u64::MAX as f64
    }
}

/// A request and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Logged {
    pub(crate) asked: Asked,
    pub(crate) manner: Manner,
    /// 0 where the connection was reset.
    pub(crate) status: u16,
    pub(crate) billed: Tokens,
    /// What the answer said about its tokens.
    pub(crate) stated: Option<Tokens>,
    pub(crate) after: Duration,
}

/// All requests together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) requests: u64,
    /// With status 200.
    pub(crate) answered: u64,
    /// Of the bodies of all requests.
    pub(crate) bytes: u64,
    pub(crate) billed: Tokens,
    /// The greatest number of requests that were being answered at the same time.
    pub(crate) most_in_flight: u64,
    pub(crate) connections: u64,
}

type Decide = dyn Fn(&Asked) -> Manner + Send + Sync;

/// Ends with its value.
pub(crate) struct ModelServer {
    address: SocketAddr,
    desk: Arc<Desk>,
}

/// What all connections share.
struct Desk {
    rule: Regex,
    decide: Mutex<Arc<Decide>>,
    books: Mutex<Books>,
    connections: Mutex<Vec<Weak<TcpStream>>>,
    batches: Mutex<batch::BatchBooks>,
    /// What is dealt with and never answered, as method and beginning of the path; and whether such a request came.
    stall: Mutex<Option<(String, bool)>>,
    closing: AtomicBool,
    since: Instant,
}

#[derive(Default)]
struct Books {
    log: Vec<Logged>,
    asked: HashMap<String, u64>,
    arrived: u64,
    in_flight: u64,
    most_in_flight: u64,
    connections: u64,
}

impl ModelServer {
    /// A server whose every answer is good. Panics if `rule` is no regex.
    pub(crate) fn start(rule: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let desk = Arc::new(Desk {
            rule: Regex::new(rule).unwrap(),
            decide: Mutex::new(Arc::new(|_: &Asked| Manner::Good)),
            books: Mutex::default(),
            connections: Mutex::default(),
            batches: Mutex::default(),
            stall: Mutex::default(),
            closing: AtomicBool::new(false),
            since: Instant::now(),
        });
        let shared = Arc::clone(&desk);
        thread::spawn(move || shared.accept(&listener));
        Self { address, desk }
    }

    /// From now on every request is answered as `decide` says.
    pub(crate) fn behave(&self, decide: impl Fn(&Asked) -> Manner + Send + Sync + 'static) {
        *self.desk.decide.lock().unwrap() = Arc::new(decide);
    }

    /// How batches go from now on.
    pub(crate) fn batches(&self, manner: BatchManner) {
        self.desk.batches.lock().unwrap().manner = manner;
    }

    /// How many batches were made.
    pub(crate) fn batches_made(&self) -> usize {
        self.desk.batches.lock().unwrap().made()
    }

    /// From now on requests that begin so, such as `POST /v1/batches`, are dealt with but never answered.
    pub(crate) fn stall(&self, request: Option<&str>) {
        *self.desk.stall.lock().unwrap() = request.map(|request| (request.to_owned(), false));
    }

    /// Whether a request came that is never answered.
    pub(crate) fn has_stalled(&self) -> bool {
        self.desk.stall.lock().unwrap().as_ref().is_some_and(|(_, came)| *came)
    }

    /// For `endpoint` of a pipeline file.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Every request that was dealt with, in the order in which they were.
    pub(crate) fn log(&self) -> Vec<Logged> {
        self.desk.books.lock().unwrap().log.clone()
    }

    pub(crate) fn totals(&self) -> Totals {
        let books = self.desk.books.lock().unwrap();
        let start =
            Totals { most_in_flight: books.most_in_flight, connections: books.connections, ..Totals::default() };
        books.log.iter().fold(start, |totals, entry| Totals {
            requests: totals.requests + 1,
            answered: totals.answered + u64::from(entry.status == 200),
            bytes: totals.bytes + entry.asked.bytes,
            billed: Tokens {
                input: totals.billed.input + entry.billed.input,
                output: totals.billed.output + entry.billed.output,
            },
            ..totals
        })
    }

    /// The texts that were asked, each with how often, in the order of their first coming.
    pub(crate) fn texts(&self) -> Vec<(String, u64)> {
        let mut texts: Vec<(String, u64)> = Vec::new();
        let mut places = HashMap::new();
        for entry in self.log() {
            let place = *places.entry(entry.asked.text.clone()).or_insert(texts.len());
            if place == texts.len() {
                texts.push((entry.asked.text, 0));
            }
            texts[place].1 += 1;
        }
        texts
    }

    /// Forgets what it was asked so far, so that a second night can be counted for itself. Attempts go on counting.
    pub(crate) fn forget(&self) {
        let mut books = self.desk.books.lock().unwrap();
        books.log.clear();
        books.most_in_flight = books.in_flight;
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.desk.closing.store(true, Ordering::SeqCst);
        for connection in self.desk.connections.lock().unwrap().iter().filter_map(Weak::upgrade) {
            // It may be closed already.
            _ = connection.shutdown(std::net::Shutdown::Both);
        }
        // Wakes the thread that accepts, which then sees that it is over.
        _ = TcpStream::connect(self.address);
    }
}

impl Desk {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for connection in listener.incoming() {
            if self.closing.load(Ordering::SeqCst) {
                return;
            }
            let Ok(connection) = connection else { continue };
            // Otherwise a short answer waits for more to come.
            _ = connection.set_nodelay(true);
            let connection = Arc::new(connection);
            self.books.lock().unwrap().connections += 1;
            self.connections.lock().unwrap().push(Arc::downgrade(&connection));
            let desk = Arc::clone(self);
            // An error means that the client is gone, which is its right.
            thread::spawn(move || _ = desk.serve(&connection));
        }
    }

    /// Answers one request after the other until one side has enough.
    fn serve(&self, connection: &TcpStream) -> std::io::Result<()> {
        while let Some(request) = http::receive(connection)? {
            if let Some(reply) = self.batch(&request) {
                connection.read_last(&request)?;
                self.stall_if_told(&request);
                http::send(connection, &reply)?;
                continue;
            }
            let Some(asked) = self.enter(&request) else {
                connection.read_last(&request)?;
                let problem = format!("{} {} is no question with a user message", request.method, request.path);
                http::send(connection, &answer::problem(400, &problem))?;
                continue;
            };
            let decide = Arc::clone(&self.decide.lock().unwrap());
            let manner = decide(&asked);
            if let Manner::Slow(delay) = manner {
                self.sleep(delay);
            }
            let reply = answer::reply(&self.rule, &manner, &asked);
            if manner != Manner::Resets {
                connection.read_last(&request)?;
            }
            let stays = reply.stays_open();
            // Noted first: whoever has the answer may look at once.
            self.leave(Logged {
                asked,
                manner,
                status: reply.status,
                billed: reply.billed,
                stated: reply.stated,
                after: self.since.elapsed(),
            });
            http::send(connection, &reply)?;
            if !stays {
                if reply.ending == Ending::CloseOnNext {
                    http::await_next(connection)?;
                }
                break;
            }
        }
        Ok(())
    }

    /// Says nothing until the server ends, if that is how such a request is met.
    fn stall_if_told(&self, request: &http::Request) {
        let line = format!("{} {}", request.method, request.path);
        let stalls = match &mut *self.stall.lock().unwrap() {
            Some((start, came)) if line.starts_with(start.as_str()) => {
                *came = true;
                true
            }
            _ => false,
        };
        if stalls {
            self.sleep(Duration::from_secs(600));
        }
    }

    /// Notes that a request has come. `None` if it is no question that can be answered.
    fn enter(&self, request: &http::Request) -> Option<Asked> {
        if (request.method.as_str(), request.path.as_str()) != ("POST", "/v1/chat/completions") {
            return None;
        }
        let body: Value = serde_json::from_slice(&request.body).ok()?;
        self.note(body, request.header("authorization").map(ToOwned::to_owned), request.body.len() as u64)
    }

    /// Notes a question.
    fn note(&self, body: Value, authorization: Option<String>, bytes: u64) -> Option<Asked> {
        let said_by = |role: &str| -> Option<Vec<String>> {
            let messages = body["messages"].as_array()?.iter().filter(|message| message["role"] == role);
            messages.map(|message| Some(message["content"].as_str()?.to_owned())).collect()
        };
        if body["messages"].as_array()?.last()?["role"] != "user" || !body["model"].is_string() {
            return None;
        }
        let mut context = said_by("user")?;
        let text = context.pop()?;
        let system = said_by("system")?.join("\n");
        let mut books = self.books.lock().unwrap();
        books.arrived += 1;
        books.in_flight += 1;
        books.most_in_flight = books.most_in_flight.max(books.in_flight);
        let number = books.arrived;
        let attempt = books.asked.entry(text.clone()).or_default();
        *attempt += 1;
        let attempt = *attempt;
        Some(Asked { text, context, system, attempt, number, body, authorization, bytes })
    }

    fn leave(&self, entry: Logged) {
        let mut books = self.books.lock().unwrap();
        books.in_flight -= 1;
        books.log.push(entry);
    }

    fn sleep(&self, delay: Duration) {
        let until = Instant::now() + delay;
        while !self.closing.load(Ordering::SeqCst) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(Duration::from_millis(20)));
        }
    }
}

/// The last byte of a request is read when it is known what becomes of it: closing a socket with unread bytes is what makes
/// a reset.
trait ReadLast {
    fn read_last(&self, request: &http::Request) -> std::io::Result<()>;
}

impl ReadLast for TcpStream {
    fn read_last(&self, request: &http::Request) -> std::io::Result<()> {
        let mut connection = self;
        if request.body.is_empty() { Ok(()) } else { std::io::Read::read_exact(&mut connection, &mut [0]) }
    }
}
