//! Models that are asked in batches: what a run lacks is submitted when it ends, and the next run has the answers.
//!
//! While a request waits or the server has it, its units are deferred and it is not asked for in any other way; after a kill
//! at any step the next run goes on with that step (`store::outbox`). What a run submits is counted against its budget as
//! if all of it would cost as much as it can. The answers are accounted by what they cost, in the snapshot that is
//! extracted when they come.

use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow};

use super::answers::{About, Answers, Effort};
use super::asking::Pending;
use super::asking::{failure_of, spent};
use super::live::LiveExtractor;
use crate::config::Pipeline;
use crate::extract::llm::batch::{Line, Progress, line};
use crate::extract::llm::client::Reply;
use crate::extract::llm::{Client, Mode, Model, Trouble};
use crate::extract::traits::Extracts as _;
use crate::run::problems::TOLD;
use crate::store::Store;
use crate::store::outbox::{Batch, BatchRequest, BatchState, Outbox};

/// The batches of a model while a snapshot is extracted.
pub(super) struct BatchAsker<'a> {
    model: &'a Model,
    answers: &'a Answers,
    outbox: Mutex<Outbox>,
    /// What is yet to be written down.
    taken: Mutex<Vec<BatchRequest>>,
}

impl<'a> BatchAsker<'a> {
    /// Takes in what servers have answered since. `None`: there is nothing of batches to be cared for.
    pub(super) fn new(
        store: &Store,
        live: &LiveExtractor,
        model: &'a Model,
        answers: &'a Answers,
        client: &Client,
    ) -> Result<Option<Self>> {
        let mut outbox = store.outbox(&live.name)?;
        if model.spec().mode != Mode::Batch {
            outbox.drop_unsent()?;
        }
        let submitted: Vec<(Batch, String)> = outbox
            .open()
            .iter()
            .filter_map(|batch| match &batch.state {
                BatchState::Submitted { batch: id } => Some((batch.clone(), id.clone())),
                _ => None,
            })
            .collect();
        for (batch, id) in submitted {
            match collect(model, answers, client, &batch, &id) {
                Ok(true) => {
                    answers.finish()?;
                    outbox.close(batch.number)?;
                }
                Ok(false) => log::info!("extractor '{}': batch {id} is not done yet", live.name),
                Err(trouble) => {
                    let why = trouble.why();
                    log::warn!(target: TOLD, "extractor '{}': cannot look at batch {id}: {why}; the next run does", live.name);
                }
            }
        }
        let needed = model.spec().mode == Mode::Batch || !outbox.open().is_empty();
        Ok(needed.then(|| Self { model, answers, outbox: Mutex::new(outbox), taken: Mutex::default() }))
    }

    /// Takes on what a page lacks: `false` if it has to be asked for directly.
    pub(super) fn takes(&self, pending: &Pending) -> Result<bool> {
        let outbox = self.outbox.lock().unwrap_or_else(PoisonError::into_inner);
        let about = pending.about();
        if outbox.has(pending.key) {
            self.answers.put_off(about);
            return Ok(true);
        }
        if self.model.spec().mode != Mode::Batch {
            return Ok(false);
        }
        let most = self.model.spec().price_in_mode().map_or(0.0, |price| price.of(self.model.most(&pending.request)));
        if let Some(budget) = self.model.spec().budget {
            let Some(number) = self.answers.reserve(about, most, Some(budget)) else {
                self.answers.defer(about, Effort::default());
                return Ok(true);
            };
            self.answers.settle(number, most);
        }
        let (key, body) = (pending.key, pending.request.body().to_owned());
        let request = BatchRequest { key, url: pending.url.clone(), text: pending.text.clone(), body };
        drop(outbox);
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        if self.taken.lock().unwrap_or_else(PoisonError::into_inner).len() >= TOGETHER {
            self.write_down()?;
        }
        self.answers.put_off(about);
        Ok(true)
    }

    /// Writes down what was taken on, before any page says that it is deferred.
    pub(super) fn write_down(&self) -> Result<()> {
        let taken = std::mem::take(&mut *self.taken.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(self.outbox.lock().unwrap_or_else(PoisonError::into_inner).wait(taken)?)
    }
}

/// Requests that are written down together.
const TOGETHER: usize = 1_000;

/// Keeps the answers of a batch; `false` if the server still works on it. Done twice it comes to the same.
fn collect(model: &Model, answers: &Answers, client: &Client, batch: &Batch, id: &str) -> Result<bool, Trouble> {
    let Progress::Ended { files, problem } = client.batch(id)? else { return Ok(false) };
    let mut lines: Vec<Line> = Vec::new();
    for file in &files {
        lines.extend(client.batch_lines(file)?);
    }
    let requests = batch.by_key();
    let mut left = requests.len();
    for Line { key, reply } in lines {
        let Some(request) = requests.get(&key) else { continue };
        left = left.saturating_sub(1);
        let about = About { key, url: &request.url, unit: &request.text };
        let usage = spent(&reply, model.most_of(&request.body));
        let price = model.spec().price_in_mode().zip(usage).map(|(price, usage)| price.of(usage));
        let effort = Effort { usage, price, attempts: 1, seconds: 0.0 };
        let read = reply.and_then(|Reply { content, .. }| match model.read(&content, &request.text) {
            Ok(_) => Ok(content),
            Err(failure) => Err(Trouble::Bad { why: failure.to_string(), usage: None, timed_out: false }),
        });
        match read {
            Ok(content) => answers.keep_collected(about, content.trim(), effort),
            Err(trouble) => answers.fail_collected(about, id, failure_of(trouble, model), effort),
        }
    }
    if left > 0 {
        let why = problem.unwrap_or_else(|| "the server left them out".to_owned());
        log::warn!(target: TOLD, "batch {id}: {left} requests have no answer, {why}; they are asked again");
    }
    Ok(true)
}

/// At the end of a run: submits what waits. That a server has no time is no reason for a run to fail.
pub(super) fn submit(pipeline: &Pipeline, store: &Store) -> Result<()> {
    for declared in &pipeline.extractors {
        let Some(model) = declared.declaration.model() else { continue };
        let name = &declared.config.name;
        let mut outbox = store.outbox(name)?;
        outbox.seal(store, |request| line(request.key, &request.body))?;
        let unsent: Vec<Batch> = outbox
            .open()
            .iter()
            .filter(|batch| !matches!(batch.state, BatchState::Submitted { .. }))
            .cloned()
            .collect();
        if unsent.is_empty() {
            continue;
        }
        let client = Client::new(model.spec()).map_err(|problem| anyhow!("extractor '{name}': {problem}"))?;
        for batch in unsent {
            let many = batch.requests.len();
            match submit_one(store, &mut outbox, &client, &batch)? {
                Ok(id) => log::warn!(
                    "extractor '{name}': {many} requests submitted as batch {id}; the next run has the answers"
                ),
                Err(trouble) => {
                    let why = trouble.why();
                    let hint = "a server without batches needs mode = \"direct\"";
                    log::warn!(target: TOLD, "extractor '{name}': cannot submit a batch of {many} requests: {why}; the next run tries again ({hint})");
                }
            }
        }
    }
    Ok(())
}

/// Takes a batch to the server, from wherever it is. Each step is written down before the next.
fn submit_one(store: &Store, outbox: &mut Outbox, client: &Client, batch: &Batch) -> Result<Result<String, Trouble>> {
    let number = batch.number;
    let found = match &batch.state {
        BatchState::Submitted { batch } => return Ok(Ok(batch.clone())),
        BatchState::Sealed => {
            let file = match client.upload(&format!("ratoon-{number}.jsonl"), &outbox.lines(number)?) {
                Ok(file) => file,
                Err(trouble) => return Ok(Err(trouble)),
            };
            outbox.advance(store, number, BatchState::Creating { file: file.clone() })?;
            client.create_batch(&file)
        }
        // It may have been made before the kill.
        BatchState::Creating { file } => match client.find_batch(file) {
            Ok(Some(id)) => Ok(id),
            Ok(None) => client.create_batch(file),
            Err(trouble) => Err(trouble),
        },
    };
    if let Ok(id) = &found {
        outbox.advance(store, number, BatchState::Submitted { batch: id.clone() })?;
    }
    Ok(found)
}
