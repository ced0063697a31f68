//! Extractors ready to run: commands introduced, fingerprints taken, workers at hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, anyhow};

use crate::config::{Declared, DeclaredExtractor, Pipeline};
use crate::extract::command::Worker;
use crate::extract::command::protocol::Ready;
use crate::extract::{Command, Extractor, Failure, Mention, Runner, Unit};
use crate::model::{Digest, DigestBuilder, Span};
use crate::run::clock::Clock;
use crate::tables::extract::MentionSchema;

/// All extractors of a pipeline.
pub(super) struct Live {
    pub(super) all: Vec<LiveExtractor>,
}

pub(super) struct LiveExtractor {
    pub(super) name: Arc<str>,
    pub(super) extractor: Arc<Extractor>,
    pub(super) fingerprint: Digest,
    /// Of a dictionary, without its terms: mentions under another list can be brought up to date.
    pub(super) fingerprint_without_terms: Digest,
    pub(super) schema: MentionSchema,
    /// Of a record: the extractors it is made of, by index.
    pub(super) parts: Vec<usize>,
    folder: PathBuf,
    /// Workers that nobody uses at the moment.
    idle: Mutex<Vec<Worker>>,
}

/// What of an extractor's declaration decides its result, known without starting a worker.
pub(in crate::stages) fn declared_digest(declared: &DeclaredExtractor) -> Digest {
    match &declared.definition {
        Declared::Ready(extractor) => extractor.fingerprint(&text_version()),
        Declared::Command(spec) => Digest::of(format!("{spec:?}").as_bytes()),
    }
}

fn text_version() -> String {
    crate::text::CONVERSION_VERSION.to_string()
}

impl Live {
    /// Starts a worker of each command to hear what it says of itself.
    pub(super) fn new(pipeline: &Pipeline) -> Result<Self> {
        let folder = pipeline.path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut all: Vec<LiveExtractor> = Vec::new();
        for declared in &pipeline.extractors {
            let name = &declared.config.name;
            let mut idle = Vec::new();
            let extractor = match &declared.definition {
                Declared::Ready(extractor) => Arc::clone(extractor),
                Declared::Command(spec) => {
                    let introduced = Worker::introduce(spec, folder)
                        .map_err(|failure| anyhow!("extractor '{name}': {}: {failure}", spec.argv.join(" ")))?;
                    let command = Command::agree(spec.clone(), introduced.ready().clone())
                        .map_err(|error| anyhow!("extractor '{name}': {error}"))?;
                    idle.push(Worker::new(&command, folder, Some(introduced)));
                    Arc::new(Extractor::Command(command))
                }
            };
            for note in extractor.notes() {
                log::info!("extractor '{name}': {note}");
            }
            let parts = match &*extractor {
                Extractor::Record(record) => {
                    let index = |part: &String| pipeline.extractors.iter().position(|other| other.config.name == *part);
                    let parts: Option<Vec<usize>> = record.extractors().iter().map(index).collect();
                    parts.with_context(|| format!("extractor '{name}' has a part that is not there"))?
                }
                _ => Vec::new(),
            };
            let label = match &*extractor {
                Extractor::Regex(_) => Some("pattern"),
                Extractor::Dictionary(_) => Some("term"),
                Extractor::Record(_) | Extractor::Command(_) => None,
            };
            let attributes = extractor.schema().attributes().iter().map(|a| (a.name.clone(), a.many)).collect();
            all.push(LiveExtractor {
                name: name.as_str().into(),
                fingerprint: extractor.fingerprint(&text_version()),
                fingerprint_without_terms: extractor.fingerprint_without_terms(&text_version()),
                schema: MentionSchema { label, attributes },
                parts,
                extractor,
                folder: folder.to_owned(),
                idle: Mutex::new(idle),
            });
        }
        // A record is what its parts are.
        let own: Vec<Digest> = all.iter().map(|live| live.fingerprint).collect();
        for live in &mut all {
            if !live.parts.is_empty() {
                let mut digest = DigestBuilder::new();
                digest.field(&live.fingerprint.0);
                for &part in &live.parts {
                    digest.field(&own[part].0);
                }
                live.fingerprint = digest.finish();
                live.fingerprint_without_terms = live.fingerprint;
            }
        }
        Ok(Self { all })
    }

    /// What the workers said of themselves, by extractor.
    pub(super) fn workers(&self) -> BTreeMap<String, Ready> {
        let mut workers = BTreeMap::new();
        for live in &self.all {
            if let Extractor::Command(command) = &*live.extractor {
                workers.insert(live.name.to_string(), command.ready().clone());
            }
        }
        workers
    }

    /// By name.
    pub(super) fn fingerprints(&self) -> BTreeMap<String, Digest> {
        self.all.iter().map(|live| (live.name.to_string(), live.fingerprint)).collect()
    }
}

impl LiveExtractor {
    /// Whether it copies equal lines or paragraphs, which needs no old regions.
    pub(super) fn by_units(&self) -> bool {
        matches!(&*self.extractor, Extractor::Command(command) if matches!(command.unit(), Unit::Line | Unit::Paragraph))
    }

    /// A command's work is done by another process.
    pub(super) fn clock(&self) -> Clock {
        if matches!(&*self.extractor, Extractor::Command(_)) { Clock::Wall } else { Clock::Own }
    }

    /// What runs the extractor, for one thread to use: a worker of a command, nothing for others.
    pub(super) fn runner(&self) -> LiveRunner<'_> {
        let worker = match &*self.extractor {
            Extractor::Command(command) => {
                let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
                Some(idle.unwrap_or_else(|| Worker::new(command, &self.folder, None)))
            }
            _ => None,
        };
        LiveRunner { live: self, worker }
    }
}

/// Gives its worker back when dropped.
pub(super) struct LiveRunner<'a> {
    live: &'a LiveExtractor,
    worker: Option<Worker>,
}

impl Runner for LiveRunner<'_> {
    fn run(&mut self, page: &str, slices: &[Span]) -> Result<Vec<Vec<Mention>>, Failure> {
        match &mut self.worker {
            Some(worker) => worker.run(page, slices),
            None => crate::recycle::NoWorker.run(page, slices),
        }
    }
}

impl Drop for LiveRunner<'_> {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.live.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        }
    }
}
