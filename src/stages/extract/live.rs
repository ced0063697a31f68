//! Extractors ready to run: commands introduced, fingerprints taken, runners at hand.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, anyhow};

use super::answers::{Answers, Asker, later_than};
use super::asking::Pending;
use super::charge::Charge;
use super::known::extractor_key;
use super::pool::Pool;
use super::shown::Beside;
use crate::config::{DeclaredExtractor, Pipeline};
use crate::extract::command::{Ready, Worker};
use crate::extract::{
    Adopt, Along, Answer, Declaration, Definition, Extractor, ExtractorConfig, Failure, Mention, Model, Question,
    Record, Recycles, Reported, Runner, Schema, Traits, Works,
};
use crate::model::{Digest, DigestBuilder, SnapshotId, Span};
use crate::recycle::NoWorker;
use crate::run::clock::Clock;
use crate::store::{Store, files};
use crate::tables::mentions::{MentionRow, MentionSchema};

/// All extractors and records of a pipeline, in the order of the file.
pub(super) struct Live {
    pub(super) all: Vec<LiveExtractor>,
}

pub(super) struct LiveExtractor {
    pub(super) name: Arc<str>,
    /// Its name in the index.
    pub(super) key: u64,
    pub(super) making: Making,
    pub(super) traits: Traits,
    /// What of a page is shown along with each of its units.
    pub(super) along: Along,
    /// Of a record, those of its parts included.
    pub(super) fingerprint: Digest,
    /// What it does to old text when it has changed.
    pub(super) adopt: Adopt,
    pub(super) schema: MentionSchema,
    /// That of the pipeline file.
    folder: PathBuf,
    /// Who can be asked for mentions; `None` where nobody has to be.
    pool: Option<Pool>,
    /// Kept answers, where there are any to be used.
    answers: Option<Answers>,
    /// What its worker costs, if it has one.
    charge: Charge,
    /// Pages of which something was said.
    told: AtomicUsize,
}

/// So many pages are told one by one; the table `extractions` tells all of them.
const MOST_TOLD: usize = 10;

/// How the mentions come about.
pub(super) enum Making {
    Extracts(Arc<Extractor>),
    Joins {
        record: Arc<Record>,
        /// The extractors it is made of, by index, in the order in which the record wants their mentions.
        parts: Vec<usize>,
    },
}

/// What of an extractor's declaration decides its result, known without starting a worker.
pub(in crate::stages) fn declared_digest(declared: &DeclaredExtractor) -> Digest {
    declared.declaration.identity(&text_version())
}

/// The same, and the files that a command names in its arguments: a script that was edited is another one.
pub(super) fn declared_with_files(declared: &DeclaredExtractor, pipeline: &Pipeline) -> Digest {
    let own = declared_digest(declared);
    match &declared.declaration {
        Declaration::Command(spec) => {
            let mut digest = DigestBuilder::new();
            digest.field(&own.0).field(&named_files(&spec.argv, folder_of(pipeline)).0);
            digest.finish()
        }
        _ => own,
    }
}

/// What an extractor does to old text when it has changed. A record goes with what it is made of.
pub(super) fn adopt(declared: &DeclaredExtractor, pipeline: &Pipeline) -> Adopt {
    let own = |config: &ExtractorConfig| config.adopt == Some(Adopt::NewText);
    let parts = declared.declaration.record().map(Record::extractors).unwrap_or_default();
    let of_part = |other: &&DeclaredExtractor| parts.contains(&other.config.name) && own(&other.config);
    match own(&declared.config) || pipeline.extractors.iter().any(|other| of_part(&other)) {
        true => Adopt::NewText,
        false => Adopt::Now,
    }
}

/// Identifies the files that arguments name. A program that is looked for in PATH is not named as a file.
fn named_files(argv: &[String], folder: &Path) -> Digest {
    let mut digest = DigestBuilder::new();
    for (i, argument) in argv.iter().enumerate() {
        let path = folder.join(argument);
        let named = (i > 0 || argument.contains('/')) && path.is_file();
        if let Some(content) = named.then(|| files::digest(&path).ok()).flatten() {
            digest.number(i as u64).field(&content.0);
        }
    }
    digest.finish()
}

/// The folder of the pipeline file, where workers are started.
fn folder_of(pipeline: &Pipeline) -> &Path {
    pipeline.path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn text_version() -> String {
    crate::text::CONVERSION_VERSION.to_string()
}

/// Starts a worker of each command, for [`Live::new`] to find.
pub(super) fn start_early(pipeline: &Pipeline) {
    for declared in &pipeline.extractors {
        if let Declaration::Command(spec) = &declared.declaration {
            Worker::start_early(spec, folder_of(pipeline));
        }
    }
}

/// Workers that are no longer needed: each ends in its own time, and whoever drops this waits for the last.
pub(super) struct Farewell(Vec<JoinHandle<()>>);

impl Drop for Farewell {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            // One that cannot be ended is no worse than one that was not.
            _ = thread.join();
        }
    }
}

impl Live {
    /// Lets all workers go that nobody uses.
    pub(super) fn dismiss(&self) -> Farewell {
        let idle = self.all.iter().filter_map(|live| live.pool.as_ref()).flat_map(Pool::close);
        Farewell(idle.map(|runner| thread::spawn(move || drop(runner))).collect())
    }

    /// Starts a worker of each command to hear what it says of itself.
    pub(super) fn new(pipeline: &Pipeline) -> Result<Self> {
        let folder = folder_of(pipeline);
        let mut all: Vec<LiveExtractor> = Vec::new();
        for declared in &pipeline.extractors {
            all.push(LiveExtractor::new(declared, pipeline, folder)?);
        }
        // The mentions of a record change whenever those of its parts do.
        let own: Vec<(Digest, Along)> = all.iter().map(|live| (live.fingerprint, live.along)).collect();
        for live in &mut all {
            if let Making::Joins { parts, .. } = &live.making {
                let shows = |what: fn(Along) -> bool| parts.iter().any(|&part| what(own[part].1));
                live.along = Along { title: shows(|along| along.title), url: shows(|along| along.url) };
                let mut digest = DigestBuilder::new();
                digest.field(&live.fingerprint.0);
                for &part in parts {
                    digest.field(&own[part].0.0);
                }
                live.fingerprint = digest.finish();
            }
        }
        Ok(Self { all })
    }

    /// The same, with answers: new ones are kept, and those that are kept are used. `order` has the snapshots up to this
    /// one.
    pub(super) fn with_answers(
        pipeline: &Pipeline,
        store: &Store,
        snapshot: &SnapshotId,
        order: &HashMap<SnapshotId, usize>,
    ) -> Result<Self> {
        let mut all = Self::new(pipeline)?;
        for live in &mut all.all {
            if live.extractor().is_some_and(Extractor::keeps_answers) {
                let log = store.answers(&live.name)?;
                live.answers = Some(Answers::new(log, snapshot, later_than(store, order)?, live.charge));
            }
        }
        Ok(all)
    }

    /// Models are not asked: their kept answers are all that they have to say. Others are asked, whatever is kept.
    pub(super) fn read_answers(&mut self, store: &Store, snapshot: &SnapshotId) -> Result<()> {
        for live in &mut self.all {
            if live.model().is_some() {
                let log = store.answers_to_read(&live.name)?;
                live.answers = Some(Answers::new(log, snapshot, HashSet::new(), Charge::default()));
            }
        }
        Ok(())
    }

    /// What the workers said of themselves, by extractor.
    pub(super) fn workers(&self) -> BTreeMap<String, Ready> {
        let mut workers = BTreeMap::new();
        for live in &self.all {
            if let Some(Extractor::Command(command)) = live.extractor() {
                workers.insert(live.name.to_string(), command.ready().clone());
            }
        }
        workers
    }

    /// What results depend on besides their input.
    pub(super) fn settings(&self) -> Digest {
        let mut digest = DigestBuilder::new();
        self.all.iter().for_each(|live| {
            digest.field(&live.fingerprint.0);
        });
        digest.finish()
    }

    /// Whether these are what found the mentions of a snapshot, as far as a change would be applied to it.
    pub(super) fn is_what_found(&self, fingerprints: &BTreeMap<String, Digest>) -> bool {
        let same = |live: &LiveExtractor| {
            let found_by = fingerprints.get(&*live.name).copied();
            found_by == Some(live.fingerprint) || live.leaves(found_by)
        };
        self.all.iter().all(same) && fingerprints.len() == self.all.len()
    }

    /// By name.
    pub(super) fn fingerprints(&self) -> BTreeMap<String, Digest> {
        self.all.iter().map(|live| (live.name.to_string(), live.fingerprint)).collect()
    }
}

impl LiveExtractor {
    /// Says what went wrong on a page, unless that was said of many already.
    pub(super) fn tell(&self, url: &str, what: &dyn fmt::Display) {
        match self.told.fetch_add(1, Ordering::Relaxed) {
            told if told < MOST_TOLD => log::warn!("extractor '{}' on {url}: {what}", self.name),
            told if told == MOST_TOLD => {
                log::warn!("extractor '{}': more pages went wrong; the table extractions tells of all", self.name);
            }
            _ => {}
        }
    }

    fn new(declared: &DeclaredExtractor, pipeline: &Pipeline, folder: &Path) -> Result<Self> {
        let name = &declared.config.name;
        let started = declared.declaration.start(folder).map_err(|problem| anyhow!("extractor '{name}': {problem}"))?;
        let definition = started.definition;
        let traits = definition.traits();
        let attributes = definition.schema().attributes().iter().map(|a| (a.name.clone(), a.many)).collect();
        let mut fingerprint = definition.fingerprint(&text_version());
        if let Definition::Extracts(extractor) = &definition
            && let Extractor::Command(command) = &**extractor
            && command.ready().fingerprint.is_empty()
        {
            // Nobody says when it has become another: its files do.
            let mut digest = DigestBuilder::new();
            digest.field(&fingerprint.0).field(&named_files(&command.spec().argv, folder).0);
            fingerprint = digest.finish();
        }
        let making = match definition {
            Definition::Extracts(extractor) => {
                for note in extractor.notes() {
                    log::info!("extractor '{name}': {note}");
                }
                Making::Extracts(extractor)
            }
            Definition::Joins(record) => {
                let index = |part: &String| pipeline.extractors.iter().position(|other| other.config.name == *part);
                let parts: Option<Vec<usize>> = record.extractors().iter().map(index).collect();
                let parts = parts.with_context(|| format!("extractor '{name}' has a part that is not there"))?;
                Making::Joins { record, parts }
            }
        };
        if let (Some(_), Making::Extracts(extractor)) = (declared.config.budget, &making)
            && !extractor.keeps_answers()
        {
            let problem = "its worker has no answers that can be kept, so that a `budget` cannot be held";
            return Err(anyhow!("extractor '{name}': {problem}; use unit = \"block\" and a deterministic worker"));
        }
        let along = match &making {
            Making::Extracts(extractor) => extractor.along(),
            Making::Joins { .. } => Along::default(),
        };
        Ok(Self {
            name: name.as_str().into(),
            key: extractor_key(name),
            making,
            traits,
            along,
            fingerprint,
            adopt: adopt(declared, pipeline),
            schema: MentionSchema { label: traits.label, attributes },
            folder: folder.to_owned(),
            pool: started.runner.map(Pool::new),
            answers: None,
            charge: Charge::new(declared),
            told: AtomicUsize::new(0),
        })
    }

    /// Whether old text keeps what another definition found, which was the one before.
    pub(super) fn leaves(&self, before: Option<Digest>) -> bool {
        self.adopt == Adopt::NewText && before.is_some_and(|before| before != self.fingerprint)
    }

    /// `None` of a record.
    pub(super) fn extractor(&self) -> Option<&Extractor> {
        match &self.making {
            Making::Extracts(extractor) => Some(extractor),
            Making::Joins { .. } => None,
        }
    }

    pub(super) fn model(&self) -> Option<&Model> {
        match self.extractor() {
            Some(Extractor::Llm(model)) => Some(model),
            _ => None,
        }
    }

    /// Whether what it is asked has a price.
    pub(super) fn is_priced(&self) -> bool {
        self.charge.is_declared() || self.model().is_some_and(|model| model.spec().price.is_some())
    }

    /// The most that a request can cost, as far as that can be told.
    pub(super) fn most(&self, question: &Question<'_>) -> f64 {
        let of_model = |model: &Model| Some(model.spec().price_in_mode()?.of(model.most(&model.request(question))));
        self.model().map_or_else(|| self.charge.most(question), |model| of_model(model).unwrap_or(0.0))
    }

    /// What a page came to, as far as its worker states it or the pipeline file says.
    pub(super) fn price_of(&self, used: Reported, bytes: u64) -> f64 {
        let is_free = used == Reported::default() && bytes == 0;
        let price = || self.charge.of(used, usize::try_from(bytes).unwrap_or(usize::MAX));
        if is_free { 0.0 } else { price().unwrap_or(0.0) }
    }

    pub(super) fn answers(&self) -> Option<&Answers> {
        self.answers.as_ref()
    }

    /// Uses and adds to its kept answers, if it has any, outside a run: with `budget` from here on, whatever a run that was
    /// killed has spent. Only for the holder of the lock.
    pub(super) fn open_answers(&mut self, store: &Store, snapshot: &SnapshotId, budget: f64) -> Result<()> {
        if self.extractor().is_some_and(Extractor::keeps_answers) {
            let log = store.answers(&self.name)?;
            let charge = self.charge.with_budget(Some(log.spent() + budget).filter(|_| self.charge.is_declared()));
            self.answers = Some(Answers::new(log, snapshot, HashSet::new(), charge));
        }
        Ok(())
    }

    /// The attributes of its mentions.
    pub(super) fn columns(&self) -> &Schema {
        match &self.making {
            Making::Extracts(extractor) => extractor.schema(),
            Making::Joins { record, .. } => record.schema(),
        }
    }

    /// The extractors that a record is made of, by index; none of an extractor.
    pub(super) fn parts(&self) -> &[usize] {
        match &self.making {
            Making::Extracts(_) => &[],
            Making::Joins { parts, .. } => parts,
        }
    }

    /// What the label column of a mention says, if there is one.
    pub(super) fn label_text(&self, label: u32) -> Option<&str> {
        self.extractor()?.label_text(label)
    }

    /// Whether mentions may differ in their labels alone.
    fn has_labels(&self) -> bool {
        self.label_text(0).is_some() && self.label_text(1).is_some()
    }

    /// The columns that tell what its mentions say; `None` where all of a row does. Two definitions are never compared, so
    /// that the only label there is says nothing.
    pub(super) fn short_columns(&self) -> Option<Vec<&'static str>> {
        self.schema.short_columns(self.has_labels())
    }

    /// What a mention says by these columns.
    pub(super) fn short_meaning<'r>(&self) -> impl Fn(&'r MentionRow) -> (&'r str, Option<&'r str>) + use<'r> {
        let labels = self.has_labels();
        move |row| (row.text.as_str(), row.label.as_deref().filter(|_| labels))
    }

    /// The label that `label_text` spells like this; 0 where there is no such column.
    pub(super) fn label(&self, text: &str) -> Option<u32> {
        self.extractor().map_or(Some(0), |extractor| extractor.label(text))
    }

    /// Whether it copies equal units of pages, which needs no old regions.
    pub(super) fn by_units(&self) -> bool {
        self.traits.recycles == Recycles::ByUnit
    }

    /// The clock that measures its work.
    pub(super) fn clock(&self) -> Clock {
        match self.traits.works {
            Works::Here => Clock::Own,
            Works::Elsewhere => Clock::Wall,
        }
    }

    /// Who is asked for mentions, for one thread to use.
    pub(super) fn runner(&self) -> LiveRunner<'_> {
        let runner = self.pool.as_ref().map(|pool| Pooled { live: self, pool, used: Reported::default() });
        LiveRunner { live: self, runner, page: String::new(), title: None, collected: None, nobody: NoWorker }
    }
}

/// Asks a runner of the pool, a new one for each conversation.
struct Pooled<'a> {
    live: &'a LiveExtractor,
    pool: &'a Pool,
    used: Reported,
}

impl Runner for Pooled<'_> {
    fn run(&mut self, page: &str, slices: &[Span]) -> Result<Vec<Vec<Mention>>, Failure> {
        let ask = |runner: &mut dyn Runner| (runner.run(page, slices), runner.used());
        self.ask(ask).unwrap_or_else(|| NoWorker.run(page, slices))
    }

    /// Where an answer depends on its question alone, questions are shared.
    fn answer(&mut self, questions: &[Question<'_>]) -> Result<Vec<Answer>, Failure> {
        let Self { live, pool, used } = self;
        let answered = if live.extractor().is_some_and(Extractor::keeps_answers) {
            pool.answer(&|| live.extractor()?.runner(&live.folder), questions, used)
        } else {
            self.ask(|runner| (runner.answer(questions), runner.used()))
        };
        answered.unwrap_or_else(|| NoWorker.answer(questions))
    }

    fn used(&mut self) -> Reported {
        std::mem::take(&mut self.used)
    }
}

impl Pooled<'_> {
    fn ask<T>(&mut self, ask: impl FnOnce(&mut dyn Runner) -> (T, Reported)) -> Option<T> {
        let (told, used) = self.pool.with(&|| self.live.extractor()?.runner(&self.live.folder), ask)?;
        self.used += used;
        Some(told)
    }
}

pub(super) struct LiveRunner<'a> {
    live: &'a LiveExtractor,
    /// `None` where nobody has to be asked.
    runner: Option<Pooled<'a>>,
    /// The URL of the page at hand.
    page: String,
    /// Its title, where that is shown along with each of its units.
    title: Option<String>,
    /// What pages lack, if that is all that is asked.
    collected: Option<Vec<Pending>>,
    nobody: NoWorker,
}

impl LiveRunner<'_> {
    /// Goes on with another page.
    pub(super) fn turn_to(&mut self, beside: &Beside, url: &str) {
        url.clone_into(&mut self.page);
        self.title = beside.of(self.live.along, url).title.map(str::to_owned);
    }

    /// From here on nobody is asked: questions without an answer are [collected](Self::collected).
    pub(super) fn collect(&mut self) {
        self.collected = Some(Vec::new());
    }

    /// Whoever answers, past what is kept.
    pub(super) fn past_answers(&mut self) -> &mut dyn Runner {
        match &mut self.runner {
            Some(runner) => runner,
            None => &mut self.nobody,
        }
    }

    /// What is to be asked for the pages since the last call, and nobody else asks for.
    pub(super) fn collected(&mut self) -> Vec<Pending> {
        self.collected.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes which questions have no answer.
    fn note(&mut self, questions: &[Question<'_>]) -> Vec<Answer> {
        if let (Some(model), Some(answers), Some(list)) = (self.live.model(), &self.live.answers, &mut self.collected) {
            for question in questions {
                let request = model.request(question);
                if answers.claim(request.key()) {
                    let key = request.key();
                    list.push(Pending { key, request, url: self.page.clone(), text: question.text.to_owned() });
                }
            }
        }
        questions.iter().map(|_| Answer::not_yet()).collect()
    }
}

impl Runner for LiveRunner<'_> {
    fn run(&mut self, page: &str, slices: &[Span]) -> Result<Vec<Vec<Mention>>, Failure> {
        match &mut self.runner {
            Some(runner) => runner.run(page, slices),
            None => NoWorker.run(page, slices),
        }
    }

    fn answer(&mut self, questions: &[Question<'_>]) -> Result<Vec<Answer>, Failure> {
        let (page, title) = (self.page.clone(), self.title.clone());
        let (title, url) = (title.as_deref(), self.live.along.url.then_some(page.as_str()));
        let questions: Vec<Question<'_>> = questions.iter().map(|asked| Question { title, url, ..*asked }).collect();
        if self.collected.is_some() {
            return Ok(self.note(&questions));
        }
        match (&self.live.answers, self.live.extractor(), &mut self.runner) {
            (Some(answers), Some(extractor), runner) => {
                let asker = Asker { extractor, fingerprint: self.live.fingerprint };
                let runner = runner.as_mut().map(|runner| runner as &mut dyn Runner);
                answers.serve(asker, runner, &questions, &page)
            }
            (_, _, Some(runner)) => runner.answer(&questions),
            (_, _, None) => NoWorker.answer(&questions),
        }
    }

    fn used(&mut self) -> Reported {
        self.runner.as_mut().map(Runner::used).unwrap_or_default()
    }
}
