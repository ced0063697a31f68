//! Extraction by asking: somebody is given parts of a page and answers with their mentions.

use std::ops::AddAssign;
use std::time::Duration;

use serde::Deserialize;

use crate::extract::mention::{Mention, offset};
use crate::model::closed_set::closed_set;
use crate::model::{Digest, DigestBuilder, SnapshotId, Span};

/// Finds mentions in parts of a page without seeing the rest of it: a worker process, or a function in a test.
pub trait Runner {
    /// The mentions of each slice, each extracted as if it were a page, with offsets in bytes of the page. If one slice
    /// fails, the page fails.
    fn run(&mut self, page: &str, slices: &[Span]) -> Result<Vec<Vec<Mention>>, Failure>;

    /// The answers to questions about units. If one fails, the page fails. Without anything said about it, each unit is
    /// extracted as if it were a page, and nothing else is looked at.
    fn answer(&mut self, questions: &[Question<'_>]) -> Result<Vec<Answer>, Failure> {
        let mut answers = Vec::with_capacity(questions.len());
        for question in questions {
            let whole = Span::new(0, offset(question.text.len()));
            let mentions = self.run(question.text, &[whole])?.pop().unwrap_or_default();
            answers.push(Answer::now(mentions));
        }
        Ok(answers)
    }

    /// What answering came to since the last call, as far as the one who answers states it.
    fn used(&mut self) -> Reported {
        Reported::default()
    }

    fn stands_by(&self) -> StandsBy {
        StandsBy { is_ready: true, in_flight: 1, start_took: Duration::ZERO }
    }

    /// Makes it ready, so that who asks it later need not wait as long. If that fails, who asks hears of it.
    fn start(&mut self) {}
}

/// How one who can be asked stands by.
#[derive(Clone, Copy, Debug)]
pub struct StandsBy {
    /// It need not be started first.
    pub is_ready: bool,
    /// Questions that it takes at a time.
    pub in_flight: usize,
    /// How long it took to start.
    pub start_took: Duration,
}

/// What an answer came to, as the one who gives it states. It leaves out what it cannot tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Reported {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// In the currency of the pipeline file.
    pub price: Option<f64>,
}

impl AddAssign for Reported {
    fn add_assign(&mut self, more: Self) {
        fn sum<T: std::ops::Add<Output = T> + Default + Copy>(a: Option<T>, b: Option<T>) -> Option<T> {
            a.or(b).map(|_| a.unwrap_or_default() + b.unwrap_or_default())
        }
        self.input_tokens = sum(self.input_tokens, more.input_tokens);
        self.output_tokens = sum(self.output_tokens, more.output_tokens);
        self.price = sum(self.price, more.price);
    }
}

/// What is asked about a unit. The answer depends on nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Question<'a> {
    /// The unit.
    pub text: &'a str,
    /// What stands around it, to be understood but not to be searched.
    pub before: &'a str,
    pub after: &'a str,
    /// Of the page, where they are shown.
    pub title: Option<&'a str>,
    pub url: Option<&'a str>,
}

impl Question<'_> {
    /// The identity of a unit: all that is shown.
    #[must_use]
    pub fn identity(&self) -> Digest {
        let Self { text, before, after, title, url } = self;
        let mut digest = DigestBuilder::new();
        digest.field(text.as_bytes()).field(before.as_bytes()).field(after.as_bytes());
        for shown in [title, url] {
            digest.number(u64::from(shown.is_some())).field(shown.unwrap_or_default().as_bytes());
        }
        digest.finish()
    }
}

/// What was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// In canonical order, with offsets from the start of the unit.
    pub mentions: Vec<Mention>,
    /// What it told of that does not stand in the unit.
    pub refused: u64,
    /// As it was given, to be read again; empty where answers are not kept.
    pub said: String,
    /// What it came to, where that is stated.
    pub used: Reported,
    pub came: Came,
}

/// How an answer was come by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Came {
    /// It was asked for, for this page.
    #[default]
    Now,
    /// It was asked for in this snapshot, for this page or another one that has the same unit. The digest is that of
    /// the request.
    Tonight(Digest),
    /// It is known from an earlier snapshot.
    Before(SnapshotId),
    /// It has not been asked for yet.
    NotYet,
}

impl Answer {
    #[must_use]
    pub fn now(mentions: Vec<Mention>) -> Self {
        Self { mentions, ..Self::default() }
    }

    #[must_use]
    pub fn not_yet() -> Self {
        Self { came: Came::NotYet, ..Self::default() }
    }
}

/// The longest reason that a table shows.
const REASON_CHARS: usize = 300;

/// Why a page has no mentions. The page is marked and tried again next time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    #[error("no introduction within {} s; `start_timeout` gives it longer", .0.as_secs_f64())]
    Silent(Duration),
    #[error("worker ended: {0}")]
    Crashed(String),
    #[error("worker reports an error: {0}")]
    Reported(String),
    #[error("answer does not fit the page: {0}")]
    BadAnswer(String),
}

/// What a worker says about its failure is cut after so many characters.
const LONGEST_REASON: usize = 500;

impl Failure {
    /// The failure in words that can be printed: a reason comes from a stranger, who may write without end or write to the
    /// terminal that shows it.
    #[must_use]
    pub(crate) fn tamed(self) -> Self {
        let tame = |reason: String| {
            let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
            let mut tame: String = reason.chars().take(LONGEST_REASON).map(plain).collect();
            if reason.chars().nth(LONGEST_REASON).is_some() {
                tame.push('…');
            }
            tame
        };
        match self {
            Self::Timeout(_) | Self::Silent(_) => self,
            Self::Crashed(reason) => Self::Crashed(tame(reason)),
            Self::Reported(reason) => Self::Reported(tame(reason)),
            Self::BadAnswer(reason) => Self::BadAnswer(tame(reason)),
        }
    }

    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::Timeout(_) | Self::Silent(_) => Status::Timeout,
            Self::Crashed(_) | Self::Reported(_) | Self::BadAnswer(_) => Status::Failed,
        }
    }

    /// What tables and problems say of it: one line of bounded length, whatever a worker wrote.
    #[must_use]
    pub fn reason(&self) -> String {
        let text: String = self.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        match text.char_indices().nth(REASON_CHARS) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text,
        }
    }
}

closed_set! {
    /// How extracting a page ended. Only the mentions of pages that are `ok` are ever copied.
    pub enum Status: "status" {
        Ok = "ok",
        /// The mentions of some units are not there yet: a budget was used up before they were asked for.
        Deferred = "deferred",
        Failed = "failed",
        Timeout = "timeout",
    }
}
