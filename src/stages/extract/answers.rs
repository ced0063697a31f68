//! Answers that serve more than one page: each distinct request is sent once, for all URLs and all nights.
//!
//! An answer is kept (`store::answers`) before any page gets it. Who needs one that is being asked for waits for it, so
//! that two threads, or two pages of a night, never ask the same.

use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Result, bail};

use super::charge::{Charge, tokens};
use crate::extract::llm::Usage;
use crate::extract::{Answer, Came, Extractor, Failure, Question, Runner};
use crate::model::{Digest, SnapshotId};
use crate::store::answers::{AnswerLog, KeptAnswer, Place};
use crate::store::{Store, StoreError};

/// The answers of one extractor, while a snapshot is extracted.
pub(super) struct Answers {
    inner: Mutex<Inner>,
    /// Something was answered, failed, or was settled.
    news: Condvar,
    snapshot: SnapshotId,
    /// Snapshots that come after this one: it may be done again when they are done already.
    later: HashSet<SnapshotId>,
    charge: Charge,
}

struct Inner {
    log: AnswerLog,
    /// What is being asked for, and what asking in this run came to where there is no answer.
    asked: HashMap<Digest, Asked>,
    /// Why the log cannot be written or read. From then on nobody is asked, for no answer could be kept.
    broken: Option<String>,
    /// A budget did not suffice for all.
    short: bool,
    /// Answers that are written and wait to be synced.
    unsynced: Vec<(Digest, Place)>,
    /// Nobody adds to them any more.
    all_asked: bool,
}

#[derive(Clone, Debug)]
enum Asked {
    Now,
    Failed(Failure),
    Deferred,
}

/// What came of asking, besides the answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Effort {
    pub(super) usage: Option<Usage>,
    pub(super) price: Option<f64>,
    pub(super) attempts: u32,
    pub(super) seconds: f64,
}

/// What a request is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct About<'a> {
    pub(super) key: Digest,
    pub(super) url: &'a str,
    pub(super) unit: &'a str,
}

impl Answers {
    pub(super) fn new(log: AnswerLog, snapshot: &SnapshotId, later: HashSet<SnapshotId>, charge: Charge) -> Self {
        let (asked, unsynced) = (HashMap::new(), Vec::new());
        let inner = Mutex::new(Inner { log, asked, broken: None, short: false, unsynced, all_asked: false });
        Self { inner, news: Condvar::new(), snapshot: snapshot.clone(), later, charge }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Spent since a run last ended by itself, reservations included.
    pub(super) fn spent(&self) -> f64 {
        self.inner().log.spent()
    }

    /// What was answered, if that is kept.
    pub(super) fn kept(&self, key: Digest) -> Result<Option<String>> {
        Ok(self.inner().log.get(key)?.map(|kept| kept.said))
    }

    /// Asks past what is kept, and keeps nothing but what it cost; `None` if there is no budget for it.
    pub(super) fn ask_anew(
        &self,
        runner: &mut dyn Runner,
        question: &Question<'_>,
        about: About<'_>,
    ) -> Option<Result<Answer, Failure>> {
        let most = self.charge.most(question);
        let reserved = match self.charge.budget() {
            None => None,
            Some(_) => Some(self.reserve(about, most, self.charge.budget())?),
        };
        let answered = runner.answer(&[*question]).map(|mut given| given.pop().unwrap_or_default());
        // It is told with the answer.
        runner.used();
        if let Some(number) = reserved {
            let used = answered.as_ref().map_or(Some(most), |answer| self.charge.of(answer.used, about.unit.len()));
            self.settle(number, used.unwrap_or(0.0));
        }
        Some(answered)
    }

    /// Takes it on oneself to ask for an answer. `false`: it is there, or somebody is asking, or has in vain.
    pub(super) fn claim(&self, key: Digest) -> bool {
        let mut inner = self.inner();
        if inner.broken.is_some() || inner.log.has(key) || inner.asked.contains_key(&key) {
            return false;
        }
        inner.asked.insert(key, Asked::Now);
        true
    }

    /// Keeps an answer, then lets others have it. `sync`: it must survive a crash of the machine first.
    pub(super) fn keep(&self, about: About<'_>, said: &str, effort: Effort, sync: bool) {
        let kept = self.entry(about, said, effort);
        let mut inner = self.inner();
        let place = inner.log.answered(about.key, &kept);
        let handle = if sync { inner.log.handle() } else { Ok(None) };
        if let (true, Ok(Some(handle))) = (place.is_ok(), &handle) {
            drop(inner);
            let synced = handle.sync_data();
            inner = self.inner();
            inner.note(synced.map_err(Into::into));
        }
        match place {
            Ok(place) => inner.log.publish(about.key, place),
            Err(error) => inner.note::<()>(Err(error)),
        }
        inner.asked.remove(&about.key);
        self.news.notify_all();
    }

    /// Writes an answer; others have it once [`sync_written`](Self::sync_written) has synced it. Whoever asked for it can
    /// ask for the next meanwhile.
    pub(super) fn write(&self, about: About<'_>, said: &str, effort: Effort) {
        let kept = self.entry(about, said, effort);
        let mut inner = self.inner();
        match inner.log.answered(about.key, &kept) {
            Ok(place) => inner.unsynced.push((about.key, place)),
            Err(error) => {
                inner.note::<()>(Err(error));
                inner.asked.remove(&about.key);
            }
        }
        self.news.notify_all();
    }

    /// Syncs what is [written](Self::write) and lets others have it, until [all is asked](Self::all_is_asked). Answers that
    /// come while others are synced are synced together.
    pub(super) fn sync_written(&self) {
        let mut inner = self.inner();
        loop {
            let answers = std::mem::take(&mut inner.unsynced);
            if answers.is_empty() {
                if inner.all_asked {
                    return;
                }
                inner = self.news.wait(inner).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let handle = inner.log.handle();
            drop(inner);
            let synced = handle.and_then(|handle| handle.map_or(Ok(()), |handle| Ok(handle.sync_data()?)));
            inner = self.inner();
            inner.note(synced);
            for (key, place) in answers {
                inner.log.publish(key, place);
                inner.asked.remove(&key);
            }
            self.news.notify_all();
        }
    }

    /// Ends [`sync_written`](Self::sync_written) when it is done.
    pub(super) fn all_is_asked(&self) {
        self.inner().all_asked = true;
        self.news.notify_all();
    }

    fn entry(&self, about: About<'_>, said: &str, effort: Effort) -> KeptAnswer {
        KeptAnswer {
            snapshot: self.snapshot.clone(),
            url: about.url.to_owned(),
            unit: Digest::of(about.unit.as_bytes()),
            bytes: about.unit.len() as u64,
            said: said.to_owned(),
            input_tokens: effort.usage.map(|usage| usage.input),
            output_tokens: effort.usage.map(|usage| usage.output),
            price: effort.price,
            attempts: effort.attempts,
            seconds: effort.seconds,
        }
    }

    /// Asking came to nothing, in this run.
    pub(super) fn fail(&self, about: About<'_>, failure: Failure, effort: Effort) {
        let entry = self.entry(about, &failure.to_string(), effort);
        let mut inner = self.inner();
        // What was never sent came to nothing.
        if effort.attempts > 0 {
            let noted = inner.log.failed(about.key, &entry);
            inner.note(noted);
        }
        inner.asked.insert(about.key, Asked::Failed(failure));
        self.news.notify_all();
    }

    /// There is no budget to ask with, in this run. What attempts cost so far is noted.
    pub(super) fn defer(&self, about: About<'_>, effort: Effort) {
        let entry = self.entry(about, "the budget was used up before there was an answer", effort);
        let mut inner = self.inner();
        if effort.attempts > 0 {
            let noted = inner.log.failed(about.key, &entry);
            inner.note(noted);
        }
        inner.asked.insert(about.key, Asked::Deferred);
        inner.short = true;
        self.news.notify_all();
    }

    /// An answer is on its way, and comes in a later run.
    pub(super) fn put_off(&self, about: About<'_>) {
        self.inner().asked.insert(about.key, Asked::Deferred);
        self.news.notify_all();
    }

    /// Whether a budget did not suffice for all that was to be asked.
    pub(super) fn is_short(&self) -> bool {
        self.inner().short
    }

    /// Keeps an answer of a batch, unless it is there.
    pub(super) fn keep_collected(&self, about: About<'_>, said: &str, effort: Effort) {
        let is_there = self.inner().log.has(about.key);
        if !is_there {
            self.keep(about, said, effort, false);
        }
    }

    /// A request of the batch `id` failed: that is noted once, whatever kills came in between.
    pub(super) fn fail_collected(&self, about: About<'_>, id: &str, failure: Failure, effort: Effort) {
        let said = format!("batch {id}: {failure}");
        let entry = self.entry(about, &said, effort);
        let mut inner = self.inner();
        match inner.log.has_failed_so(about.key, &said) {
            Ok(true) => {}
            Ok(false) => {
                let noted = inner.log.failed(about.key, &entry);
                inner.note(noted);
            }
            Err(error) => inner.note::<()>(Err(error)),
        }
        inner.asked.insert(about.key, Asked::Failed(failure));
        self.news.notify_all();
    }

    /// Gives up a claim: somebody else may ask.
    fn release(&self, key: Digest) {
        self.inner().asked.remove(&key);
        self.news.notify_all();
    }

    /// Reserves part of a budget, once there is room for it; `None` if there will be none.
    pub(super) fn reserve(&self, about: About<'_>, price: f64, budget: Option<f64>) -> Option<u64> {
        self.reserve_some(&[(about, price)], budget).pop()
    }

    /// Reserves for as many of these requests as there is room for, once there is room for the first; for none if there
    /// will be none. Whoever calls this has settled all that it reserved before: nobody waits for oneself.
    fn reserve_some(&self, wanted: &[(About<'_>, f64)], budget: Option<f64>) -> Vec<u64> {
        let mut inner = self.inner();
        let fits = |inner: &Inner, price: f64| budget.is_none_or(|budget| inner.log.spent() + price <= budget);
        while wanted.first().is_some_and(|(_, price)| inner.broken.is_some() || !fits(&inner, *price)) {
            if inner.broken.is_some() || inner.log.is_settled() {
                return Vec::new();
            }
            inner = self.news.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        let mut numbers = Vec::with_capacity(wanted.len());
        for (about, price) in wanted {
            if !fits(&inner, *price) {
                break;
            }
            match inner.log.reserve(about.key, *price, &self.snapshot, about.url) {
                Ok(number) => numbers.push(number),
                Err(error) => {
                    inner.note::<()>(Err(error));
                    break;
                }
            }
        }
        match inner.log.handle() {
            Ok(handle) => {
                drop(inner);
                let synced = handle.map_or(Ok(()), |handle| handle.sync_data());
                self.inner().note(synced.map_err(Into::into));
            }
            Err(error) => inner.note::<()>(Err(error)),
        }
        numbers
    }

    pub(super) fn settle(&self, number: u64, price: f64) {
        let mut inner = self.inner();
        let settled = inner.log.settle(number, price);
        inner.note(settled);
        self.news.notify_all();
    }

    /// Why answers cannot be kept, if so.
    pub(super) fn broken(&self) -> Option<String> {
        self.inner().broken.clone()
    }

    /// The error that kept the log from being read or written, if any.
    pub(super) fn check(&self) -> Result<()> {
        self.broken().map_or(Ok(()), |why| bail!(why))
    }

    /// The same, and everything is synced after this.
    pub(super) fn finish(&self) -> Result<()> {
        self.check()?;
        Ok(self.inner().log.sync()?)
    }

    /// The same for what is no run: what it cost is no part of the next one's budget.
    pub(super) fn finish_apart(&self) -> Result<()> {
        self.finish()?;
        Ok(self.inner().log.end_apart()?)
    }

    /// What was asked for in this snapshot.
    pub(super) fn tonight(&self) -> Result<Vec<(Digest, bool, KeptAnswer)>> {
        Ok(self.inner().log.of_snapshot(&self.snapshot)?)
    }

    /// The answers to questions about the units of a page: kept ones, and with somebody to ask also new ones.
    pub(super) fn serve(
        &self,
        asker: Asker<'_>,
        mut runner: Option<&mut dyn Runner>,
        questions: &[Question<'_>],
        url: &str,
    ) -> Result<Vec<Answer>, Failure> {
        let keys: Vec<Digest> = questions.iter().map(|question| asker.key(question)).collect();
        let mut answers: Vec<Option<Answer>> = vec![None; questions.len()];
        loop {
            if let Some(runner) = &mut runner {
                let open = (0..keys.len()).filter(|&i| answers[i].is_none());
                let mine: Vec<usize> = open.filter(|&i| self.claim(keys[i])).collect();
                self.ask(*runner, questions, &keys, &mine, url)?;
            }
            for i in 0..keys.len() {
                if answers[i].is_none() {
                    answers[i] = self.wait(asker, keys[i], &questions[i])?;
                }
            }
            // Where somebody else has asked in vain, it is one's own turn.
            if answers.iter().all(Option::is_some) {
                return Ok(answers.into_iter().flatten().collect());
            }
            if runner.is_none() {
                return Err(Failure::Reported("no answer is kept".to_owned()));
            }
        }
    }

    /// Asks what was claimed, and keeps the answers. Without a budget all at once; with one as much at a time as there is
    /// room for, and what there is no room for is deferred.
    fn ask(
        &self,
        runner: &mut dyn Runner,
        questions: &[Question<'_>],
        keys: &[Digest],
        mine: &[usize],
        url: &str,
    ) -> Result<(), Failure> {
        let about = |i: usize| About { key: keys[i], url, unit: questions[i].text };
        let mut rest = mine;
        while !rest.is_empty() {
            let reserved: Vec<(u64, f64)> = match self.charge.budget() {
                None => Vec::new(),
                Some(budget) => {
                    let wanted: Vec<(About<'_>, f64)> =
                        rest.iter().map(|&i| (about(i), self.charge.most(&questions[i]))).collect();
                    let numbers = self.reserve_some(&wanted, Some(budget));
                    if numbers.is_empty() {
                        rest.iter().for_each(|&i| self.defer(about(i), Effort::default()));
                        return Ok(());
                    }
                    numbers.into_iter().zip(wanted.iter().map(|(_, price)| *price)).collect()
                }
            };
            let many = if reserved.is_empty() { rest.len() } else { reserved.len() };
            let (now, later) = rest.split_at(many);
            let asked: Vec<Question<'_>> = now.iter().map(|&i| questions[i]).collect();
            let started = Instant::now();
            let given = match runner.answer(&asked) {
                Ok(given) => given,
                Err(failure) => {
                    // What it may have cost is spent, and somebody else may try.
                    if !reserved.is_empty() {
                        runner.used();
                    }
                    for (&i, (number, price)) in now.iter().zip(&reserved) {
                        self.settle(*number, *price);
                        let effort = Effort { attempts: 1, price: Some(*price), ..Effort::default() };
                        self.fail(about(i), failure.clone(), effort);
                    }
                    rest.iter().for_each(|&i| self.release(keys[i]));
                    return Err(failure);
                }
            };
            // It is told with each answer.
            runner.used();
            #[expect(clippy::cast_precision_loss, reason = "a share of a time")]
            let seconds = started.elapsed().as_secs_f64() / many as f64;
            for (at, (&i, answer)) in now.iter().zip(&given).enumerate() {
                let price = self.charge.of(answer.used, questions[i].text.len());
                if let Some((number, _)) = reserved.get(at) {
                    self.settle(*number, price.unwrap_or(0.0));
                }
                let effort = Effort { usage: tokens(answer.used), price, attempts: 1, seconds };
                self.keep(about(i), &answer.said, effort, self.charge.budget().is_some());
            }
            rest = later;
        }
        Ok(())
    }

    /// A kept answer, once it is there; `None` if nobody asks for it.
    fn wait(&self, asker: Asker<'_>, key: Digest, question: &Question<'_>) -> Result<Option<Answer>, Failure> {
        let mut inner = self.inner();
        let kept = loop {
            match inner.log.get(key) {
                Ok(Some(kept)) => break kept,
                Ok(None) => {}
                Err(error) => inner.note::<()>(Err(error)),
            }
            if let Some(why) = &inner.broken {
                return Err(Failure::Reported(why.clone()));
            }
            match inner.asked.get(&key) {
                None => return Ok(None),
                Some(Asked::Failed(failure)) => return Err(failure.clone()),
                Some(Asked::Deferred) => return Ok(Some(Answer::not_yet())),
                Some(Asked::Now) => inner = self.news.wait(inner).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(inner);
        let read = asker.extractor.read(&kept.said, question.text)?;
        let came = match kept.snapshot {
            snapshot if snapshot == self.snapshot => Came::Tonight(key),
            snapshot if self.later.contains(&snapshot) => Came::Before(self.snapshot.clone()),
            snapshot => Came::Before(snapshot),
        };
        Ok(Some(Answer { mentions: read.mentions, refused: read.refused, said: kept.said, came, ..Answer::default() }))
    }
}

impl Inner {
    /// Remembers the first error.
    fn note<T>(&mut self, result: Result<T, StoreError>) {
        if let Err(error) = result {
            self.broken.get_or_insert_with(|| error.to_string());
        }
    }
}

/// Whose answers are asked for.
#[derive(Clone, Copy)]
pub(super) struct Asker<'a> {
    pub(super) extractor: &'a Extractor,
    pub(super) fingerprint: Digest,
}

impl Asker<'_> {
    pub(super) fn key(&self, question: &Question<'_>) -> Digest {
        self.extractor.request_key(question, self.fingerprint)
    }
}

/// The snapshots of a store that come after one.
pub(super) fn later_than(store: &Store, before: &HashMap<SnapshotId, usize>) -> Result<HashSet<SnapshotId>> {
    let all = store.manifests::<crate::manifests::Ingested>()?;
    Ok(all.into_iter().map(|manifest| manifest.snapshot).filter(|id| !before.contains_key(id)).collect())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn answers_that_come_together_are_there_once_they_are_synced() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path()).unwrap();
        let night = SnapshotId::new("2024-03-01").unwrap();
        let answers = || Answers::new(store.answers("m").unwrap(), &night, HashSet::new(), Charge::default());
        let key = |i: usize| Digest::of(format!("question {i}").as_bytes());
        let written = answers();
        let ask = |i: usize| {
            assert!(written.claim(key(i)) && !written.claim(key(i)), "{i} is asked for once");
            let about = About { key: key(i), url: "http://a/", unit: "unit" };
            written.write(about, &format!("answer {i}"), Effort { attempts: 1, ..Effort::default() });
        };
        thread::scope(|scope| {
            scope.spawn(|| written.sync_written());
            thread::scope(|asking| {
                for thread in 0..4 {
                    asking.spawn(move || (thread..40).step_by(4).for_each(ask));
                }
            });
            written.all_is_asked();
        });
        written.finish().unwrap();
        for answers in [written, answers()] {
            for i in 0..40 {
                assert_eq!(answers.kept(key(i)).unwrap().as_deref(), Some(format!("answer {i}").as_str()));
            }
        }
    }
}
