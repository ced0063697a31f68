//! The pipeline file: what was typed (`file`), what it means ([`Pipeline`]), and where an error lies (`check`).
//!
//! Every error names file, line and the fix; unknown keys are refused with the nearest known one. What an extractor or a
//! query means is decided in `extract` and `deltas`; here it is put together, and errors get their place.

mod check;
mod file;
pub(crate) mod guard;
pub(crate) mod notify;
pub(crate) mod schedule;
pub(crate) mod template;
mod verify;
mod watches;

use std::path::{Component, Path, PathBuf};

use jiff::tz::TimeZone;
use regex::Regex;
use toml::Spanned;

pub(crate) use self::check::ConfigError;
pub(crate) use crate::text::CONVERSION_VERSION;

use self::check::{Check, ESCAPES, regex_problem};
use self::file::{CorpusFile, PipelineFile, PlanFile};
use self::guard::Guard;
use self::notify::RunNotify;
use self::schedule::ScheduleSettings;
use self::verify::VerifySettings;
use crate::archive::Layout;
use crate::deltas::query::{Query, QueryConfig};
use crate::deltas::watches::Watch;
use crate::extract::{Declaration, ExtractorConfig, check_together};
use crate::model::key::clash_in_sql;
use crate::model::time::DURATION_FIX;
use crate::model::window::Every;
use crate::model::{Coverage, Digest, DigestBuilder};
use crate::plan::PlanChoice;
use crate::stats::Calendar;
use crate::store::files;
use crate::text::mask::Mask;

/// What a run works with.
#[derive(Debug)]
pub struct Pipeline {
    /// The pipeline file.
    pub path: PathBuf,
    pub corpus: Corpus,
    pub guard: Guard,
    pub plan: PlanSettings,
    pub schedule: ScheduleSettings,
    /// In the order of the file.
    pub extractors: Vec<DeclaredExtractor>,
    /// In the order of the file.
    pub queries: Vec<DeclaredQuery>,
    pub watches: Vec<Watch>,
    pub notify: RunNotify,
    pub verify: VerifySettings,
}

/// Where snapshots come from, where tables go, and how captures are read.
#[derive(Debug)]
pub struct Corpus {
    /// Folder of snapshot folders.
    pub snapshots: PathBuf,
    pub store: PathBuf,
    pub layout: Layout,
    pub coverage: Coverage,
    /// Folders are cut into windows of this length, each a snapshot.
    pub every: Option<Every>,
    pub equate_schemes: bool,
    pub ignore: Vec<Regex>,
    pub time_zone: TimeZone,
    pub time_zone_name: String,
}

/// How a snapshot is matched with the pages before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanSettings {
    pub choose: PlanChoice,
    /// Nights whose measurements count.
    pub k: usize,
    /// Changed pages on which every matcher is tried, at most.
    pub sample: usize,
    /// Of the night, what choosing may take.
    pub share: f64,
}

/// An extractor of the pipeline file.
#[derive(Debug)]
pub struct DeclaredExtractor {
    pub config: ExtractorConfig,
    pub declaration: Declaration,
}

/// A query of the pipeline file.
#[derive(Debug)]
pub struct DeclaredQuery {
    pub query: Query,
    /// As the file says.
    pub max_tuples: Option<u64>,
    /// How often it is asked; `None`: of every snapshot.
    pub every: Option<Every>,
}

const DEFAULT_TIME_ZONE: &str = "UTC";
/// How often queries are asked of a crawl that brings some pages at a time.
const QUERY_DAY: i64 = 24 * 60 * 60;
const DEFAULT_K: u16 = 3;
const DEFAULT_SAMPLE: u16 = 30;
const DEFAULT_SHARE: f64 = 0.01;

impl Pipeline {
    /// Reads and checks a pipeline file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = files::read_to_string(path).map_err(|error| ConfigError::unreadable(path, &error))?;
        Self::parse(path, &text)
    }

    /// Checks the text of a pipeline file; `path` is where it lies, for messages and relative paths.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let check = Check { path, text };
        let file: PipelineFile = toml::from_str(text).map_err(|error| check.toml(&error))?;
        let base = path.parent().unwrap_or(Path::new(""));
        let mut written = file.corpus;
        let guard = file.guard.check(&check, written.max_reject_share.take())?;
        let corpus = written.check(&check, base)?;
        let plan = file.plan.check(&check)?;
        let extractors = check_extractors(file.extractor, &check, base)?;
        let names: Vec<&str> = extractors.iter().map(|extractor| extractor.config.name.as_str()).collect();
        let calendar = Calendar::new(corpus.time_zone.clone());
        let schedule = file.schedule.check(&check, calendar, base, &names)?;
        let queries = check_queries(&file.query, &check, &corpus, &names)?;
        let asked: Vec<&str> = queries.iter().map(|declared| declared.query.name()).collect();
        let watches = watches::check(file.watch, &check, &names, &asked)?;
        let notify = file.notify.check(&check, base)?;
        let verify = file.verify.check(&check)?;
        Ok(Self { path: path.to_owned(), corpus, guard, plan, schedule, extractors, queries, watches, notify, verify })
    }

    /// Whether `ingest` keeps where texts stand among elements: some query asks for it.
    #[must_use]
    pub fn keeps_elements(&self) -> bool {
        self.queries.iter().any(|declared| declared.query.needs_elements())
    }
}

impl Corpus {
    #[must_use]
    pub fn mask(&self) -> Mask {
        Mask::new(&self.ignore)
    }

    /// Identifies the `ignore` rules.
    #[must_use]
    pub fn ignore_digest(&self) -> Digest {
        let mut builder = DigestBuilder::new();
        for rule in &self.ignore {
            builder.field(rule.as_str().as_bytes());
        }
        builder.finish()
    }

    /// Identifies all settings that decide what `ingest` writes.
    #[must_use]
    pub fn settings_digest(&self) -> Digest {
        DigestBuilder::new()
            .named("layout", self.layout)
            .named("coverage", self.coverage)
            .named("equate_schemes", self.equate_schemes)
            .named("time_zone", &self.time_zone_name)
            .named("ignore", self.ignore_digest())
            .named("conversion", CONVERSION_VERSION)
            .finish()
    }
}

/// The same place without `folder/..`, as people would write it. Behind a link `..` leads elsewhere, so there it stays.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        let before = tidy.components().next_back();
        let folds = part == Component::ParentDir && matches!(before, Some(Component::Normal(_))) && !tidy.is_symlink();
        if folds {
            tidy.pop();
        } else if part != Component::CurDir {
            tidy.push(part);
        }
    }
    if tidy.as_os_str().is_empty() { PathBuf::from(".") } else { tidy }
}

impl CorpusFile {
    fn check(self, check: &Check<'_>, base: &Path) -> Result<Corpus, ConfigError> {
        for (key, value) in [("snapshots", &self.snapshots), ("store", &self.store)] {
            if value.get_ref().as_os_str().is_empty() {
                return Err(check.at(value, format!("`{key}` is empty"), "name a folder"));
            }
        }
        let snapshots = tidy(&base.join(self.snapshots.get_ref()));
        let store = tidy(&base.join(self.store.get_ref()));
        if store.starts_with(&snapshots) {
            let message = "`store` lies inside `snapshots`, where every folder is a snapshot".to_owned();
            return Err(check.at(&self.store, message, "put it beside, such as ../out"));
        }
        if store.is_file() {
            let message = format!("`store` is a file: {}", store.display());
            return Err(check.at(&self.store, message, "name a folder for the tables; it is made if it is not there"));
        }
        let ignore = self.ignore.iter().map(|rule| ignore_rule(rule, check)).collect::<Result<_, _>>()?;
        let time_zone_name = self.time_zone.as_ref().map_or(DEFAULT_TIME_ZONE, |zone| zone.get_ref()).to_owned();
        let time_zone = match (&self.time_zone, TimeZone::get(&time_zone_name)) {
            (_, Ok(zone)) => zone,
            (None, Err(_)) => TimeZone::UTC,
            (Some(zone), Err(_)) => {
                let message = format!("unknown time zone '{time_zone_name}'");
                return Err(check.at(zone, message, "use a name such as UTC or Europe/Berlin"));
            }
        };
        let every = self.every.as_ref().map(|every| window_length(every, check)).transpose()?;
        Ok(Corpus {
            snapshots,
            store,
            layout: self.layout,
            coverage: self.coverage,
            every,
            equate_schemes: self.equate_schemes,
            ignore,
            time_zone,
            time_zone_name,
        })
    }
}

fn window_length(every: &Spanned<String>, check: &Check<'_>) -> Result<Every, ConfigError> {
    let length = schedule::parse_seconds(every.get_ref()).and_then(Every::new);
    length.ok_or_else(|| check.at(every, "`every` is no duration of a second or more".into(), DURATION_FIX))
}

fn ignore_rule(rule: &Spanned<String>, check: &Check<'_>) -> Result<Regex, ConfigError> {
    let regex = Regex::new(rule.get_ref()).map_err(|error| {
        let message = format!("`ignore` rule '{}': {}", rule.get_ref(), regex_problem(&error));
        check.at(rule, message, "see the syntax of the regex crate")
    })?;
    if rule.get_ref().contains('\u{8}') {
        let message = "`ignore` rule with a backspace in it, which is what TOML makes of \"\\b\"".to_owned();
        return Err(check.at(rule, message, ESCAPES));
    }
    if regex.is_match("") {
        let message = format!("`ignore` rule '{}' matches the empty string", rule.get_ref());
        return Err(check.at(rule, message, "make it need at least one character, such as + for *"));
    }
    Ok(regex)
}

impl PlanFile {
    fn check(self, check: &Check<'_>) -> Result<PlanSettings, ConfigError> {
        if let Some(k) = self.k.as_ref().filter(|k| *k.get_ref() == 0) {
            return Err(check.at(k, "`k` of [plan] is 0".into(), "how many nights' measurements count: 1 or more"));
        }
        let is_share = |share: &Spanned<f64>| share.get_ref().is_finite() && *share.get_ref() >= 0.0;
        if let Some(share) = self.share.as_ref().filter(|share| !is_share(share)) {
            return Err(check.at(share, "`share` of [plan] is not a share".into(), "give a number such as 0.01"));
        }
        Ok(PlanSettings {
            choose: self.choose,
            k: self.k.map_or(DEFAULT_K, Spanned::into_inner).into(),
            sample: self.sample.unwrap_or(DEFAULT_SAMPLE).into(),
            share: self.share.map_or(DEFAULT_SHARE, Spanned::into_inner),
        })
    }
}

/// Builds the extractors; term files are read here.
fn check_extractors(
    written: Vec<Spanned<ExtractorConfig>>,
    check: &Check<'_>,
    base: &Path,
) -> Result<Vec<DeclaredExtractor>, ConfigError> {
    let starts: Vec<usize> = written.iter().map(|extractor| extractor.span().start).collect();
    let configs: Vec<ExtractorConfig> = written.into_iter().map(Spanned::into_inner).collect();
    check_together(&configs).map_err(|(i, error)| check.key(starts[i], "extractor", error))?;
    let mut extractors = Vec::new();
    for (config, start) in configs.into_iter().zip(starts) {
        let content = match config.file() {
            None => None,
            Some(file) => {
                let path = base.join(file.path);
                Some(files::read_to_string(&path).map_err(|error| {
                    let (name, path) = (&config.name, path.display());
                    let message = format!("`{}` of extractor '{name}': {path}: {error}", file.key);
                    check.error(Some(check.key_at(start, file.key)), message, Some(file.hint.to_owned()))
                })?)
            }
        };
        let declaration = config.build(content.as_deref()).map_err(|error| check.key(start, "extractor", error))?;
        extractors.push(DeclaredExtractor { config, declaration });
    }
    Ok(extractors)
}

fn check_queries(
    written: &[Spanned<QueryConfig>],
    check: &Check<'_>,
    corpus: &Corpus,
    extractors: &[&str],
) -> Result<Vec<DeclaredQuery>, ConfigError> {
    let mut queries: Vec<DeclaredQuery> = Vec::new();
    for config in written {
        let start = config.span().start;
        let query = config.get_ref().compile(&corpus.time_zone, extractors);
        // What has no place of its own concerns the query as a whole.
        let query = query.map_err(|error| check.error_at(error.offset.unwrap_or(start), "query", error))?;
        if queries.iter().any(|other| other.query.name() == query.name()) {
            let message = format!("query: `name`: there are two queries '{}'", query.name());
            return Err(check.at(&config.get_ref().name, message, "give each a name of its own"));
        }
        let max_tuples = config.get_ref().max_tuples.as_ref().map(|most| *most.get_ref());
        let every = match &config.get_ref().every {
            Some(every) => Some(window_length(every, check)?),
            None if corpus.coverage == Coverage::Partial => Every::new(QUERY_DAY),
            None => None,
        };
        queries.push(DeclaredQuery { query, max_tuples, every });
    }
    let names: Vec<&str> = queries.iter().map(|declared| declared.query.name()).collect();
    match clash_in_sql("web_tuples", &names) {
        Some((at, error)) => Err(check.error_at(written[at].get_ref().name.span().start, "query", error)),
        None => Ok(queries),
    }
}

#[cfg(test)]
mod tests;
