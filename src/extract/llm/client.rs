//! The conversation with a server: one request, one answer. Who asks again, and when, is decided by the caller.
//!
//! The key is taken from the environment, sent in a header and nowhere else; should a server repeat it in a message, it
//! is blotted out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use ureq::http::Response;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector as _, DefaultConnector};
use ureq::{Agent, Body};

use super::request::Request;
use super::{ModelSpec, Usage, exchange};

/// A connection to a server, for any number of threads.
pub(crate) struct Client {
    agent: Agent,
    /// What all addresses of the server begin with.
    base: String,
    url: String,
    key: Option<String>,
    timeout: Duration,
    /// Which form of a request the server understands, of those there are.
    form: AtomicUsize,
}

/// An answer that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) content: String,
    pub(crate) usage: Option<Usage>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The server was not reached or had no time; nothing was spent.
    Busy { why: String, after: Option<Duration> },
    /// It took the request, and what came back is no answer.
    Bad { why: String, usage: Option<Usage>, timed_out: bool },
    /// It will say the same to every request.
    Refused(String),
}

/// What is told of the forms of a request.
const FORMS: [&str; 3] = ["with a strict schema", "with a schema as JSON", "without a schema"];
/// How long a connection may be idle and still be used; servers often close them after a minute or two.
const KEPT: Duration = Duration::from_secs(15);
/// The longest answer that is read.
const MOST_BYTES: u64 = 4 << 20;
/// The longest file that is read, and how long files may take.
const MOST_FILE: u64 = 1 << 30;
const LONG: Duration = Duration::from_mins(10);
/// The longest part of a server's message that is told.
const TOLD: usize = 200;

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Counted>,
}

#[derive(Deserialize)]
struct Choice {
    message: Option<Message>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Counted {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

impl Client {
    /// The error says what to do.
    pub(crate) fn new(spec: &ModelSpec) -> Result<Self, String> {
        let key = match &spec.api_key_env {
            None => None,
            Some(name) => match std::env::var(name) {
                Ok(key) if !key.trim().is_empty() => Some(key.trim().to_owned()),
                _ => {
                    return Err(format!(
                        "the environment has no {name}, which `api_key_env` names; set it and run again"
                    ));
                }
            },
        };
        Ok(Self::with_key(spec, key))
    }

    /// The same, with a key that is known.
    pub(crate) fn with_key(spec: &ModelSpec, key: Option<String>) -> Self {
        let base = spec.endpoint.trim_end_matches('/').to_owned();
        let url = format!("{base}/chat/completions");
        let mut config = Agent::config_builder()
            .timeout_global(Some(spec.timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections_per_host(spec.in_flight)
            .max_idle_connections(spec.in_flight)
            .user_agent(concat!("ratoon/", env!("CARGO_PKG_VERSION")));
        if is_local(&url) {
            config = config.proxy(None);
        }
        let connector = DefaultConnector::new().chain(exchange::Noting);
        let agent = Agent::with_parts(config.build(), connector, DefaultResolver::default());
        Self { agent, base, url, key, timeout: spec.timeout, form: AtomicUsize::new(0) }
    }

    /// Sends a request once, in the best form that the server understands. One that does not know schemas, or not there,
    /// says so by refusing the request.
    pub(crate) fn ask(&self, request: &Request) -> Result<Reply, Trouble> {
        let known = self.form.load(Ordering::Relaxed);
        let mut refused: Option<String> = None;
        for (form, body) in request.forms().into_iter().enumerate().skip(known) {
            match self.send(body) {
                Err(trouble) if refuses_form(&trouble) => _ = refused.get_or_insert(trouble.why()),
                reply => {
                    // An answer that is no good shows as well that the request was understood.
                    let understood = matches!(reply, Ok(_) | Err(Trouble::Bad { timed_out: false, .. }));
                    if let Some(why) = refused.filter(|_| understood)
                        && self.form.fetch_max(form, Ordering::Relaxed) < form
                    {
                        let how = FORMS.get(form).copied().unwrap_or_default();
                        log::info!("{}: answers are asked for {how}, because it says {why}", self.url);
                    }
                    return reply;
                }
            }
        }
        Err(Trouble::Refused(refused.unwrap_or_default()))
    }

    fn send(&self, body: &str) -> Result<Reply, Trouble> {
        let mut sent = self.post(body, KEPT);
        if let Err(error) = &sent
            && exchange::was_closed_before(error)
        {
            sent = self.post(body, Duration::ZERO);
        }
        let response = sent.map_err(|error| self.unreachable(&error))?;
        self.read(&self.heard(response, MOST_BYTES)?)
    }

    /// What a server says with status 200; anything else is trouble.
    fn heard(&self, mut response: Response<Body>, most: u64) -> Result<String, Trouble> {
        let status = response.status().as_u16();
        let after = response.headers().get("retry-after").and_then(|value| pause(value.to_str().ok()?));
        let read = response.body_mut().with_config().limit(most).read_to_vec();
        let text = match read {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) if status != 200 => String::new(),
            Err(error) => {
                let timed_out = matches!(error, ureq::Error::Timeout(_));
                return Err(Trouble::Bad { why: self.told(&error.to_string()), usage: None, timed_out });
            }
        };
        match status {
            200 => Ok(text),
            408 | 409 | 425 | 429 | 500..=599 => {
                Err(Trouble::Busy { why: self.told(&format!("HTTP {status} {text}")), after })
            }
            _ => Err(Trouble::Refused(self.told(&format!("HTTP {status} {text}")))),
        }
    }

    /// Gets something that is no answer to a question.
    pub(super) fn get(&self, path: &str) -> Result<String, Trouble> {
        let mut get = self.agent.get(format!("{}{path}", self.base)).config().timeout_global(Some(LONG)).build();
        if let Some(key) = &self.key {
            get = get.header("authorization", &format!("Bearer {key}"));
        }
        let response = get.call().map_err(|error| self.unreachable(&error))?;
        self.heard(response, MOST_FILE)
    }

    /// Sends something that is no question.
    pub(super) fn put(&self, path: &str, kind: &str, body: &[u8]) -> Result<String, Trouble> {
        let post = self.agent.post(format!("{}{path}", self.base)).config().timeout_global(Some(LONG));
        let mut post = post.max_idle_age(Duration::ZERO).build().header("content-type", kind);
        if let Some(key) = &self.key {
            post = post.header("authorization", &format!("Bearer {key}"));
        }
        let response = post.send(body).map_err(|error| self.unreachable(&error))?;
        self.heard(response, MOST_FILE)
    }

    /// Sends a request over a connection that has been idle for less than `kept`, else over a new one.
    fn post(&self, body: &str, kept: Duration) -> Result<Response<Body>, ureq::Error> {
        let mut post = self.agent.post(&self.url).config().max_idle_age(kept).build();
        post = post.header("content-type", "application/json");
        if let Some(key) = &self.key {
            post = post.header("authorization", &format!("Bearer {key}"));
        }
        exchange::begin();
        post.send(body)
    }

    fn unreachable(&self, error: &ureq::Error) -> Trouble {
        let why = self.told(&error.to_string());
        match error {
            ureq::Error::Timeout(_) => Trouble::Bad {
                why: format!("no answer within {} s", self.timeout.as_secs_f64()),
                usage: None,
                timed_out: true,
            },
            ureq::Error::BadUri(_) | ureq::Error::HostNotFound | ureq::Error::Tls(_) | ureq::Error::Rustls(_) => {
                Trouble::Refused(why)
            }
            ureq::Error::ConnectionFailed => Trouble::Busy { why, after: None },
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                Trouble::Busy { why, after: None }
            }
            // It may have been taken, and paid for, before the connection broke.
            _ => Trouble::Bad { why, usage: None, timed_out: false },
        }
    }

    /// What a chat completion says.
    pub(super) fn read(&self, text: &str) -> Result<Reply, Trouble> {
        let bad = |why: &str, usage| Err(Trouble::Bad { why: self.told(why), usage, timed_out: false });
        let Ok(body) = serde_json::from_str::<Completion>(text) else {
            return bad(&format!("what came back is no JSON of a chat completion: {text}"), None);
        };
        let usage = body.usage.and_then(|counted| {
            Some(Usage { input: counted.prompt_tokens?, output: counted.completion_tokens.unwrap_or(0) })
        });
        let Some(choice) = body.choices.into_iter().next() else { return bad("there is no choice in it", usage) };
        let message = choice.message;
        if let Some(refusal) = message.as_ref().and_then(|message| message.refusal.as_deref()).filter(|r| !r.is_empty())
        {
            return bad(&format!("the model refuses: {refusal}"), usage);
        }
        match choice.finish_reason.as_deref() {
            Some("length") => return bad("the answer is cut: it has more than `max_tokens`", usage),
            Some("content_filter") => return bad("the server's filter refuses", usage),
            _ => {}
        }
        match message.and_then(|message| message.content).filter(|content| !content.trim().is_empty()) {
            Some(content) => Ok(Reply { content, usage }),
            None => bad("the answer is empty", usage),
        }
    }

    /// A server's words on one line, shortened, without the key.
    pub(super) fn told(&self, text: &str) -> String {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // The key is looked for in what is told: it could be there only once something else is taken out.
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        let line = match &self.key {
            Some(key) => line.replace(key.as_str(), "***"),
            None => line,
        };
        match line.char_indices().nth(TOLD) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        }
    }
}

/// Whether a server may be content with another form of a request. Some call what they do not know an error of their own.
fn refuses_form(trouble: &Trouble) -> bool {
    match trouble {
        Trouble::Refused(why) => ["HTTP 400", "HTTP 422"].iter().any(|status| why.starts_with(status)),
        Trouble::Busy { why, .. } => why.starts_with("HTTP 5") && why.contains("response_format"),
        Trouble::Bad { .. } => false,
    }
}

/// Whether a URL names this machine, to which no proxy leads.
fn is_local(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    ["localhost", "127.", "[::1]"].iter().any(|local| host.starts_with(local))
}

/// `Retry-After`: seconds, or a date.
#[expect(clippy::disallowed_methods, reason = "how long a server wants to be left alone; no result depends on it")]
fn pause(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    httpdate::parse_http_date(value.trim()).ok()?.duration_since(SystemTime::now()).ok()
}
