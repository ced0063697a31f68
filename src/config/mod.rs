//! The pipeline file: what was typed (`PipelineFile`) and what it means ([`Pipeline`]).
//!
//! Every error names file, line and the fix; unknown keys are refused with the nearest known one.

pub mod schedule;
pub mod template;
mod watches;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use regex::Regex;
use serde::Deserialize;
use toml::Spanned;

use self::schedule::{ScheduleFile, ScheduleSettings};
use self::watches::WatchFile;
use crate::archive::Layout;
use crate::deltas::query::{Query, QueryConfig};
use crate::deltas::watches::Watch;
use crate::extract::{self, CommandSpec, Definition, Extractor, ExtractorConfig, check_together};
use crate::model::{Digest, DigestBuilder};
use crate::plan::PlanChoice;
use crate::stats::Calendar;
use crate::text::mask::Mask;

/// What a run works with.
#[derive(Debug)]
pub struct Pipeline {
    /// The pipeline file.
    pub path: PathBuf,
    pub corpus: Corpus,
    pub plan: PlanSettings,
    pub schedule: ScheduleSettings,
    /// In the order of the file.
    pub extractors: Vec<DeclaredExtractor>,
    /// In the order of the file.
    pub queries: Vec<DeclaredQuery>,
    pub watches: Vec<Watch>,
}

/// A query of the pipeline file.
#[derive(Debug)]
pub struct DeclaredQuery {
    pub query: Query,
    /// As the file says.
    pub max_tuples: Option<u64>,
}

/// An extractor of the pipeline file.
#[derive(Debug)]
pub struct DeclaredExtractor {
    pub config: ExtractorConfig,
    pub definition: Declared,
}

/// Ready to run, or a command that still has to introduce itself.
#[derive(Debug)]
pub enum Declared {
    Ready(Arc<Extractor>),
    Command(CommandSpec),
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

const DEFAULT_K: u16 = 3;
const DEFAULT_SAMPLE: u16 = 30;
const DEFAULT_SHARE: f64 = 0.01;

#[derive(Debug)]
pub struct Corpus {
    /// Folder of snapshot folders.
    pub snapshots: PathBuf,
    pub store: PathBuf,
    pub layout: Layout,
    pub coverage: Coverage,
    pub equate_schemes: bool,
    pub ignore: Vec<Regex>,
    pub max_reject_share: f64,
    pub time_zone: TimeZone,
    pub time_zone_name: String,
}

/// What a URL that was not captured means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    /// The crawler visits everything every time: the page is gone.
    #[default]
    Full,
    /// The crawler follows a schedule: the page is as it was.
    Partial,
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
        let mut builder = DigestBuilder::new();
        builder.field(self.layout.as_str().as_bytes());
        builder.number(u64::from(self.coverage == Coverage::Partial));
        builder.number(u64::from(self.equate_schemes));
        builder.field(self.time_zone_name.as_bytes());
        builder.field(&self.ignore_digest().0);
        builder.number(u64::from(crate::text::CONVERSION_VERSION));
        builder.finish()
    }
}

/// What is wrong with a pipeline file, where, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    path: PathBuf,
    /// Line and column, from 1.
    place: Option<(usize, usize)>,
    message: String,
    hint: Option<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ConfigError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PipelineFile {
    corpus: CorpusFile,
    #[serde(default)]
    plan: PlanFile,
    #[serde(default)]
    extractor: Vec<Spanned<ExtractorConfig>>,
    #[serde(default)]
    query: Vec<Spanned<QueryConfig>>,
    #[serde(default)]
    watch: Vec<WatchFile>,
    #[serde(default)]
    schedule: ScheduleFile,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    #[serde(default)]
    choose: PlanChoice,
    k: Option<Spanned<u16>>,
    sample: Option<u16>,
    share: Option<Spanned<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CorpusFile {
    snapshots: Spanned<PathBuf>,
    store: Spanned<PathBuf>,
    #[serde(default)]
    layout: Layout,
    #[serde(default)]
    coverage: Coverage,
    #[serde(default)]
    equate_schemes: bool,
    #[serde(default)]
    ignore: Vec<Spanned<String>>,
    max_reject_share: Option<Spanned<f64>>,
    time_zone: Option<Spanned<String>>,
}

/// What may be rejected where a pipeline file does not say.
pub const DEFAULT_MAX_REJECT_SHARE: f64 = 0.01;
const DEFAULT_TIME_ZONE: &str = "UTC";

impl Pipeline {
    /// Reads and checks a pipeline file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = crate::store::files::read_to_string(path).map_err(|error| ConfigError {
            path: path.to_owned(),
            place: None,
            message: format!("cannot read the pipeline file: {error}"),
            hint: Some("ratoon init FILE writes one to start from".into()),
        })?;
        Self::parse(path, &text)
    }

    /// Checks the text of a pipeline file; `path` is where it lies, for messages and relative paths.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let check = Check { path, text };
        let file: PipelineFile = toml::from_str(text).map_err(|error| check.toml(&error))?;
        let base = path.parent().unwrap_or(Path::new(""));
        let corpus = file.corpus;
        for (key, value) in [("snapshots", &corpus.snapshots), ("store", &corpus.store)] {
            if value.get_ref().as_os_str().is_empty() {
                return Err(check.at(value, format!("`{key}` is empty"), "name a folder"));
            }
        }
        let snapshots = base.join(corpus.snapshots.get_ref());
        let store = base.join(corpus.store.get_ref());
        if store.starts_with(&snapshots) {
            let message = "`store` lies inside `snapshots`, where every folder is a snapshot".to_owned();
            return Err(check.at(&corpus.store, message, "put it beside, such as ../out"));
        }
        let mut ignore = Vec::new();
        for rule in &corpus.ignore {
            let regex = Regex::new(rule.get_ref()).map_err(|error| {
                let error = error.to_string();
                let last = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                check.at(
                    rule,
                    format!("`ignore` rule '{}': {last}", rule.get_ref()),
                    "see the syntax of the regex crate",
                )
            })?;
            if regex.is_match("") {
                let message = format!("`ignore` rule '{}' matches the empty string", rule.get_ref());
                return Err(check.at(rule, message, "make it need at least one character, such as + for *"));
            }
            ignore.push(regex);
        }
        if let Some(share) = &corpus.max_reject_share
            && !(0.0..=1.0).contains(share.get_ref())
        {
            return Err(check.at(share, "`max_reject_share` is not a share".into(), "give a number from 0 to 1"));
        }
        let name = corpus.time_zone.as_ref().map_or(DEFAULT_TIME_ZONE, |zone| zone.get_ref()).to_owned();
        let time_zone = match (&corpus.time_zone, TimeZone::get(&name)) {
            (_, Ok(zone)) => zone,
            (None, Err(_)) => TimeZone::UTC,
            (Some(zone), Err(_)) => {
                let message = format!("unknown time zone '{name}'");
                return Err(check.at(zone, message, "use a name such as UTC or Europe/Berlin"));
            }
        };
        if let Some(k) = file.plan.k.as_ref().filter(|k| *k.get_ref() == 0) {
            return Err(check.at(k, "`k` of [plan] is 0".into(), "how many nights' measurements count: 1 or more"));
        }
        if let Some(share) =
            file.plan.share.as_ref().filter(|share| !(share.get_ref().is_finite() && *share.get_ref() >= 0.0))
        {
            return Err(check.at(share, "`share` of [plan] is not a share".into(), "give a number such as 0.01"));
        }
        let plan = PlanSettings {
            choose: file.plan.choose,
            k: file.plan.k.map_or(DEFAULT_K, Spanned::into_inner).into(),
            sample: file.plan.sample.unwrap_or(DEFAULT_SAMPLE).into(),
            share: file.plan.share.map_or(DEFAULT_SHARE, Spanned::into_inner),
        };
        let schedule = file.schedule.check(&check, Calendar::new(time_zone.clone()))?;
        let extractors = check.extractors(file.extractor, base)?;
        let names: Vec<&str> = extractors.iter().map(|extractor| extractor.config.name.as_str()).collect();
        let queries = check.queries(&file.query, &time_zone, &names)?;
        let asked: Vec<&str> = queries.iter().map(|declared| declared.query.name()).collect();
        let watches = watches::check(file.watch, &check, &names, &asked)?;
        Ok(Self {
            path: path.to_owned(),
            schedule,
            plan,
            extractors,
            queries,
            watches,
            corpus: Corpus {
                snapshots,
                store,
                layout: corpus.layout,
                coverage: corpus.coverage,
                equate_schemes: corpus.equate_schemes,
                ignore,
                max_reject_share: corpus.max_reject_share.map_or(DEFAULT_MAX_REJECT_SHARE, Spanned::into_inner),
                time_zone,
                time_zone_name: name,
            },
        })
    }
}

/// Turns what is wrong into an error with its place.
pub(super) struct Check<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Check<'_> {
    pub(super) fn at<T>(&self, value: &Spanned<T>, message: String, hint: &str) -> ConfigError {
        self.error(Some(value.span().start), message, Some(hint.to_owned()))
    }

    /// Builds the extractors; term files are read here.
    fn extractors(
        &self,
        written: Vec<Spanned<ExtractorConfig>>,
        base: &Path,
    ) -> Result<Vec<DeclaredExtractor>, ConfigError> {
        let starts: Vec<usize> = written.iter().map(|extractor| extractor.span().start).collect();
        let configs: Vec<ExtractorConfig> = written.into_iter().map(Spanned::into_inner).collect();
        check_together(&configs).map_err(|(i, error)| self.extractor(starts[i], &error))?;
        let mut extractors = Vec::new();
        for (config, start) in configs.into_iter().zip(starts) {
            let terms = match &config.terms {
                None => None,
                Some(file) => {
                    let path = base.join(file);
                    let content = crate::store::files::read_to_string(&path);
                    Some(content.map_err(|error| {
                        let message = format!("`terms` of extractor '{}': {}: {error}", config.name, path.display());
                        let hint = "name a text file with one term a line, relative to this file";
                        self.error(Some(self.key_at(start, "terms")), message, Some(hint.to_owned()))
                    })?)
                }
            };
            let definition = config.build(terms.as_deref()).map_err(|error| self.extractor(start, &error))?;
            let definition = match definition {
                Definition::Ready(extractor) => Declared::Ready(Arc::new(extractor)),
                Definition::Command(spec) => Declared::Command(spec),
            };
            extractors.push(DeclaredExtractor { config, definition });
        }
        Ok(extractors)
    }

    fn queries(
        &self,
        written: &[Spanned<QueryConfig>],
        zone: &TimeZone,
        extractors: &[&str],
    ) -> Result<Vec<DeclaredQuery>, ConfigError> {
        let mut queries: Vec<DeclaredQuery> = Vec::new();
        for config in written {
            let query = config.get_ref().compile(zone, extractors).map_err(|error| {
                let message = format!("query: `{}`: {}", error.key, error.problem);
                self.error(Some(error.offset.unwrap_or(config.span().start)), message, Some(error.fix))
            })?;
            if queries.iter().any(|other| other.query.name() == query.name()) {
                let message = format!("query: `name`: there are two queries '{}'", query.name());
                return Err(self.at(&config.get_ref().name, message, "give each a name of its own"));
            }
            let max_tuples = config.get_ref().max_tuples.as_ref().map(|most| *most.get_ref());
            queries.push(DeclaredQuery { query, max_tuples });
        }
        Ok(queries)
    }

    fn extractor(&self, start: usize, error: &extract::ConfigError) -> ConfigError {
        let message = format!("extractor: `{}`: {}", error.key, error.problem);
        self.error(Some(self.key_at(start, error.key)), message, Some(error.fix.clone()))
    }

    /// Where a key of the table that begins at `start` is written; the table itself if it is not.
    fn key_at(&self, start: usize, key: &str) -> usize {
        let mut at = start;
        for (i, line) in self.text[start..].split_inclusive('\n').enumerate() {
            if i > 0 && line.trim_start().starts_with('[') {
                break;
            }
            if line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('=')) {
                return at;
            }
            at += line.len();
        }
        start
    }

    pub(super) fn error(&self, offset: Option<usize>, message: String, hint: Option<String>) -> ConfigError {
        let place = offset.map(|offset| {
            let before = &self.text[..offset];
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            (before.matches('\n').count() + 1, self.text[line_start..offset].chars().count() + 1)
        });
        ConfigError { path: self.path.to_owned(), place, message, hint }
    }

    fn toml(&self, error: &toml::de::Error) -> ConfigError {
        let message = error.message();
        let offset = error.span().map(|span| span.start);
        // serde says: unknown field `a`, expected one of `b`, `c`
        let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let unknown = |what: &str| {
            let (name, known) = names.split_first()?;
            let near = known.iter().max_by(|a, b| {
                let score = |k: &str| strsim::jaro_winkler(name, k);
                score(a).total_cmp(&score(b))
            });
            let hint = match near {
                Some(near) if strsim::jaro_winkler(name, near) > 0.75 => format!("did you mean `{near}`?"),
                _ => format!("known here: {}", known.join(", ")),
            };
            Some(self.error(offset, format!("unknown {what} `{name}`"), Some(hint)))
        };
        let known = if message.starts_with("unknown field") {
            unknown("key")
        } else if message.starts_with("unknown variant") {
            unknown("value")
        } else {
            None
        };
        known.unwrap_or_else(|| match (message.strip_prefix("missing field "), names.first()) {
            (Some(_), Some(&"corpus")) => {
                self.error(None, "no [corpus] table".into(), Some("ratoon init FILE shows what belongs there".into()))
            }
            (Some(_), Some(name)) => {
                self.error(offset, format!("missing key `{name}`"), Some(format!("add a line: {name} = …")))
            }
            _ => self.error(offset, message.lines().next().unwrap_or_default().to_owned(), None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Pipeline, String> {
        Pipeline::parse(Path::new("dir/p.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let pipeline = parse("[corpus]\nsnapshots = '../s'\nstore = 'o'\n").unwrap();
        assert_eq!(pipeline.corpus.snapshots, Path::new("dir/../s"));
        assert_eq!(pipeline.corpus.store, Path::new("dir/o"));
        assert!((pipeline.corpus.max_reject_share - 0.01).abs() < 1e-12);
        assert_eq!(pipeline.corpus.coverage, Coverage::Full);
    }

    #[test]
    fn every_error_names_line_and_fix() {
        let head = "[corpus]\nsnapshots = 's'\nstore = 'o'\n";
        let cases = [
            (format!("{head}ignor = []\n"), "dir/p.toml:4:1: unknown key `ignor`\nhint: did you mean `ignore`?"),
            (format!("{head}zzz = 1\n"), "dir/p.toml:4:1: unknown key `zzz`\nhint: known here: snapshots, store, "),
            ("[corpus]\nstore = 'o'\n".into(), "missing key `snapshots`\nhint: add a line: snapshots = "),
            (String::new(), "dir/p.toml: no [corpus] table\nhint: "),
            (format!("{head}layout = 'wark'\n"), "4:10: unknown value `wark`\nhint: did you mean `warc`?"),
            (format!("{head}coverage = 'all'\n"), "4:12: unknown value `all`\nhint: known here: full, partial"),
            (format!("{head}ignore = ['a', '(']\n"), "4:16: `ignore` rule '(': unclosed group"),
            (format!("{head}ignore = ['a*']\n"), "matches the empty string"),
            (format!("{head}time_zone = 'Mars'\n"), "4:13: unknown time zone 'Mars'\nhint: "),
            (format!("{head}max_reject_share = 7.0\n"), "4:20: `max_reject_share` is not a share"),
            ("[corpus]\nsnapshots = 's'\nstore = 's/o'\n".into(), "3:9: `store` lies inside `snapshots`"),
            (format!("{head}equate_schemes = 'yes'\n"), "dir/p.toml:4:18: invalid type"),
            (format!("{head}[schedule]\npols = 1\n"), "5:1: unknown key `pols`\nhint: did you mean `polls`?"),
            (format!("{head}[schedule]\npolls = 1\nbudget = 2\n"), "6:10: `polls` and `budget` exclude each other"),
            (format!("{head}[schedule]\ngrain = '7m'\n"), "5:9: `schedule`: a grain of 420 s does not divide"),
            (format!("{head}[schedule]\nmin_gap = '10'\n"), "5:11: `min_gap` is no duration\nhint: write 90s, 5m"),
            (format!("{head}[schedule]\nperiod = 'year'\n"), "5:10: `period`: 'year' is no period"),
            (format!("{head}[schedule]\nby = '('\n"), "5:6: `by`: unclosed group"),
            (format!("{head}[schedule]\nobjective = {{ recal = 1 }}\n"), "unknown key `recal`"),
            ("[corpus\n".into(), "dir/p.toml:1:8: "),
            (
                format!("{head}[[extractor]]\nname = 'a'\nkind = 'regex'\npattern = 'x*'\n"),
                "dir/p.toml:7:1: extractor: `pattern`: ",
            ),
            (
                format!("{head}[[extractor]]\nname = 'a'\nkind = 'regexp'\n"),
                "6:8: unknown value `regexp`\nhint: did you mean `regex`?",
            ),
            (
                format!("{head}[[extractor]]\nname = 'a'\nkind = 'regex'\npatern = 'x'\n"),
                "7:1: unknown key `patern`\nhint: did you mean `pattern`?",
            ),
            (
                format!("{head}[[extractor]]\nname = 'a'\nkind = 'dictionary'\nterms = 'none.txt'\n"),
                "dir/p.toml:7:1: `terms` of extractor 'a': dir/none.txt: ",
            ),
        ];
        for (text, expected) in cases {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(expected), "{text}\n{error}\nnot {expected}");
        }
    }
}
