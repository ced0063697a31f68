//! Models are asked ahead: all that a snapshot's pages need and no kept answer has is sent before any page is extracted,
//! `in_flight` requests at a time whatever the number of threads. The pages then find their answers.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::answers::{About, Answers, Effort};
use super::batch::BatchAsker;
use super::job::Job;
use super::live::LiveExtractor;
use super::shard::collect_shard;
use crate::extract::llm::client::Reply;
use crate::extract::llm::{Client, Model, Request, Trouble, Usage};
use crate::extract::traits::Extracts as _;
use crate::extract::{Extractor, Failure};
use crate::model::{Digest, DigestBuilder};
use crate::run::progress::{Bar, Progress};

/// Attempts while a server has no time.
const MOST_ATTEMPTS: u32 = 6;
/// How often a request is sent again whose answer is none.
const MOST_AGAIN: u32 = 2;
/// The pause after the first attempt; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// The longest that a server may ask us to wait.
const LONGEST_WAIT: Duration = Duration::from_mins(2);

/// A request to be sent.
pub(super) struct Pending {
    pub(super) key: Digest,
    pub(super) request: Request,
    /// The page that lacks the answer.
    pub(super) url: String,
    /// The unit.
    pub(super) text: String,
}

impl Pending {
    pub(super) fn about(&self) -> About<'_> {
        About { key: self.key, url: &self.url, unit: &self.text }
    }

    /// Whether an answer can be used.
    pub(super) fn read(&self, model: &Model, said: &str) -> Result<(), Failure> {
        model.read(said, &self.text).map(|_| ())
    }
}

/// Asks for all answers that the pages of a snapshot lack. Returns the seconds that it took.
pub(super) fn ask_ahead(job: &Job<'_>, progress: Progress) -> Result<f64> {
    let started = Instant::now();
    let mut askers = Vec::new();
    let mut batches = Vec::new();
    for (i, live) in job.live.all.iter().enumerate() {
        if let (Some(Extractor::Llm(model)), Some(answers)) = (live.extractor(), live.answers()) {
            let asker = ModelAsker::new(live, model, answers)?;
            batches.push(BatchAsker::new(job.store, live, model, answers, &asker.client)?);
            askers.push((i, asker));
        }
    }
    if askers.is_empty() {
        return Ok(0.0);
    }
    let bar = progress.count(&format!("ask {}", job.snapshot), job.store.shards().into());
    thread::scope(|scope| {
        for (_, asker) in &askers {
            scope.spawn(|| asker.answers.sync_written());
        }
        // Also after a panic: else the threads above would wait for ever.
        let _told = Ending(&askers);
        ask_all(job, &askers, &batches, &bar)
    })
    .map(|()| started.elapsed().as_secs_f64())
}

/// Tells that all is asked when it is dropped.
struct Ending<'e>(&'e [(usize, ModelAsker<'e>)]);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|(_, asker)| asker.answers.all_is_asked());
    }
}

/// Collects what the pages lack and asks for it; all answers are written when it returns.
fn ask_all(
    job: &Job<'_>,
    askers: &[(usize, ModelAsker<'_>)],
    batches: &[Option<BatchAsker<'_>>],
    bar: &Bar,
) -> Result<()> {
    thread::scope(|scope| {
        let mut queues: Vec<(usize, SyncSender<Pending>)> = Vec::new();
        for (i, asker) in askers {
            let in_flight = asker.model.spec().in_flight;
            // A few wait, so that nobody who could ask is idle; more would be texts held for nothing.
            let (queue, waiting) = sync_channel(2 * in_flight);
            queues.push((*i, queue));
            let waiting = Arc::new(Mutex::new(waiting));
            for _ in 0..in_flight {
                let waiting = Arc::clone(&waiting);
                scope.spawn(move || asker.work(&waiting));
            }
        }
        for shard in 0..job.store.shards() {
            collect_shard(job, shard, &mut |i, pending| {
                let Some(at) = queues.iter().position(|(of, _)| *of == i) else { return Ok(false) };
                if let Some(batches) = &batches[at]
                    && batches.takes(&pending)?
                {
                    return Ok(true);
                }
                // An error means that all who ask have ended, which they do not before the queue does.
                Ok(queues[at].1.send(pending).is_ok())
            })?;
            bar.add(1);
        }
        batches.iter().flatten().try_for_each(BatchAsker::write_down)
    })
}

/// What came of asking.
pub(super) enum Told {
    /// An answer that can be read.
    Said(String),
    Failed(Failure),
    NoBudget,
}

/// Asks a model, from several threads.
pub(super) struct ModelAsker<'a> {
    model: &'a Model,
    answers: &'a Answers,
    client: Client,
    budget: Option<f64>,
    /// Why the server will not answer anything.
    refused: OnceLock<String>,
    /// Nobody asks before, because the server said so.
    not_before: Mutex<Instant>,
}

impl<'a> ModelAsker<'a> {
    pub(super) fn new(live: &LiveExtractor, model: &'a Model, answers: &'a Answers) -> Result<Self> {
        let client = Client::new(model.spec()).map_err(|problem| anyhow!("extractor '{}': {problem}", live.name))?;
        let not_before = Mutex::new(Instant::now());
        let budget = model.spec().budget;
        Ok(Self { model, answers, client, budget, refused: OnceLock::new(), not_before })
    }

    /// The same, with another budget than the pipeline file's.
    pub(super) fn with_budget(self, budget: Option<f64>) -> Self {
        Self { budget, ..self }
    }

    fn work(&self, waiting: &Mutex<Receiver<Pending>>) {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
            match next {
                Ok(pending) => self.ask_with(&pending, |about, said, effort| self.answers.write(about, said, effort)),
                Err(_) => return,
            }
        }
    }

    /// Asks until there is an answer, or none is to be had, and keeps what came of it.
    pub(super) fn ask(&self, pending: &Pending) {
        self.ask_with(pending, |about, said, effort| self.answers.keep(about, said, effort, true));
    }

    fn ask_with(&self, pending: &Pending, keep: impl FnOnce(About<'_>, &str, Effort)) {
        let about = pending.about();
        let (told, effort) = self.obtain(pending);
        match told {
            Told::Said(content) => keep(about, &content, effort),
            Told::Failed(failure) => self.answers.fail(about, failure, effort),
            Told::NoBudget => self.answers.defer(about, effort),
        }
    }

    /// Asks until there is an answer, or none is to be had. What it costs is counted; the answer is not kept.
    pub(super) fn obtain(&self, pending: &Pending) -> (Told, Effort) {
        let about = pending.about();
        let started = Instant::now();
        let mut effort = Effort::default();
        let (mut busy, mut bad) = (0, 0);
        let failure = loop {
            if let Some(why) = self.refused.get().cloned().or_else(|| self.answers.broken()) {
                break Failure::Reported(why);
            }
            self.wait_if_told();
            let price = self.model.spec().price;
            let most = self.model.most(&pending.request);
            let reserved = price.map(|price| price.of(most));
            let number = match reserved {
                None => None,
                Some(reserved) => match self.answers.reserve(about, reserved, self.budget) {
                    Some(number) => Some(number),
                    None => {
                        effort.seconds = started.elapsed().as_secs_f64();
                        return (Told::NoBudget, effort);
                    }
                },
            };
            effort.attempts += 1;
            let reply = self.client.ask(&pending.request);
            let usage = spent(&reply, most);
            if let Some(usage) = usage {
                let sum = effort.usage.unwrap_or_default();
                effort.usage = Some(Usage { input: sum.input + usage.input, output: sum.output + usage.output });
            }
            if let Some(number) = number {
                let cost = price.zip(usage).map_or(0.0, |(price, usage)| price.of(usage));
                effort.price = Some(effort.price.unwrap_or(0.0) + cost);
                self.answers.settle(number, cost);
            }
            effort.seconds = started.elapsed().as_secs_f64();
            let trouble = match reply {
                Ok(Reply { content, .. }) => match pending.read(self.model, &content) {
                    Ok(()) => return (Told::Said(content.trim().to_owned()), effort),
                    Err(failure) => Trouble::Bad { why: failure.to_string(), usage: None, timed_out: false },
                },
                Err(trouble) => trouble,
            };
            match trouble {
                Trouble::Busy { why, after } => {
                    busy += 1;
                    if busy >= MOST_ATTEMPTS {
                        break failure_of(Trouble::Busy { why, after }, self.model);
                    }
                    self.pause(pending, effort.attempts, after);
                }
                trouble @ Trouble::Bad { .. } => {
                    bad += 1;
                    if bad > MOST_AGAIN {
                        break failure_of(trouble, self.model);
                    }
                }
                Trouble::Refused(why) => _ = self.refused.set(why),
            }
        };
        (Told::Failed(failure), effort)
    }

    /// Waits before the next attempt: as long as the server says, else longer each time, and never two for as long.
    fn pause(&self, pending: &Pending, attempt: u32, after: Option<Duration>) {
        if let Some(after) = after {
            let until = Instant::now() + after.min(LONGEST_WAIT);
            let mut not_before = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
            *not_before = (*not_before).max(until);
            return;
        }
        let usual = FIRST_PAUSE.saturating_mul(1 << (attempt - 1).min(10)).min(LONGEST_PAUSE);
        let mut digest = DigestBuilder::new();
        digest.field(&pending.key.0).number(attempt.into());
        let jitter = u32::try_from(digest.finish().low64() % 1000).unwrap_or(0);
        thread::sleep(usual / 2 + usual * jitter / 1000);
    }

    fn wait_if_told(&self) {
        let until = *self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

/// What an attempt used: what the server says, as far as it can be true; all that was reserved if it took the request and
/// does not say; nothing if it did not take it.
pub(super) fn spent(reply: &Result<Reply, Trouble>, most: Usage) -> Option<Usage> {
    let counted = match reply {
        Ok(reply) => reply.usage,
        Err(Trouble::Bad { usage, .. }) => *usage,
        Err(Trouble::Busy { .. } | Trouble::Refused(_)) => return None,
    };
    let counted = counted.unwrap_or(most);
    Some(Usage { input: counted.input.min(most.input), output: counted.output.min(most.output) })
}

/// What is said of trouble that asking again did not end.
pub(super) fn failure_of(trouble: Trouble, model: &Model) -> Failure {
    match trouble {
        Trouble::Bad { timed_out: true, .. } => Failure::Timeout(model.spec().timeout),
        Trouble::Bad { why, .. } => Failure::BadAnswer(why),
        Trouble::Busy { why, .. } | Trouble::Refused(why) => Failure::Reported(why),
    }
}
