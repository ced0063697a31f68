//! `[schedule]` of the pipeline file: what was typed and what it means. The command line's options mean the same.

use std::fmt;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use toml::Spanned;

use super::check::{Check, ConfigError, regex_problem};
use crate::model::closed_set::closed_set;
use crate::model::time::{DURATION_FIX, parse_duration};
use crate::model::{Digest, DigestBuilder, Method, Period};
use crate::schedule::fleet::Average;
use crate::schedule::weights::SourceWeights;
use crate::schedule::{Objective, Options, PollCommand, SourceBy};
use crate::stats::{Calendar, SignalRule};
use crate::store::files;

/// How sources are formed and polled.
#[derive(Clone, Debug)]
pub struct ScheduleSettings {
    pub by: SourceBy,
    by_text: String,
    pub options: Options,
    /// Polls a period over all sources, instead of `options.polls` for each.
    pub budget: Option<usize>,
    /// Polls that each source gets of a budget before gains decide.
    pub floor: Option<usize>,
    pub average: Average,
    /// What each source counts in a budget.
    pub weighing: Weighing,
    /// Polls that one host gets in a slot at most.
    pub host_limit: Option<usize>,
    /// What cron and systemd run.
    pub command: PollCommand,
    /// How often a source that is gone is looked at again, in seconds.
    pub recheck_s: i64,
    /// What makes a version tell that the next update is near.
    pub signal: Option<SignalRule>,
    /// Links that were never followed are polled too.
    pub discover: Option<Discover>,
}

/// What sources count in a budget.
#[derive(Clone, Debug, Default)]
pub enum Weighing {
    #[default]
    Alike,
    List(SourceWeights),
    Found(SourceWeight),
}

closed_set! {
    /// A weight that is found in the store.
    pub enum SourceWeight: "weight" {
        /// Mentions that an update brings.
        Mentions = "mentions",
        /// Pages that link there.
        InLinks = "in_links",
    }
}

impl Weighing {
    /// What a list says of a source; 1 where there is none.
    #[must_use]
    pub fn of(&self, source: &str) -> f64 {
        match self {
            Self::List(weights) => weights.of(source),
            Self::Alike | Self::Found(_) => 1.0,
        }
    }

    /// Reads a list of weights.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = files::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let weights = SourceWeights::parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))?;
        Ok(Self::List(weights))
    }

    /// Whether sources count by the mentions that their updates bring.
    #[must_use]
    pub fn is_by_mentions(&self) -> bool {
        matches!(self, Self::Found(SourceWeight::Mentions))
    }

    fn identity(&self) -> String {
        match self {
            Self::Alike => String::new(),
            Self::List(weights) => weights.digest().to_string(),
            Self::Found(weight) => weight.to_string(),
        }
    }
}

/// Which links that were never followed are polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discover {
    pub scope: Scope,
    /// Most of them at a time.
    pub polls: usize,
}

closed_set! {
    /// How far from known pages new ones are looked for.
    #[derive(Default)]
    pub enum Scope: "scope" {
        /// On the host of the page that links to them.
        #[default]
        Host = "host",
        /// Anywhere.
        Any = "any",
    }
}

const DEFAULT_RECHECK_S: i64 = 30 * 86_400;
const DEFAULT_DISCOVERED: usize = 100;

impl Default for ScheduleSettings {
    fn default() -> Self {
        Self {
            by: SourceBy::Url,
            by_text: "url".to_owned(),
            options: Options::default(),
            budget: None,
            floor: None,
            average: Average::Macro,
            weighing: Weighing::Alike,
            host_limit: None,
            command: PollCommand::default(),
            recheck_s: DEFAULT_RECHECK_S,
            signal: None,
            discover: None,
        }
    }
}

impl ScheduleSettings {
    /// Identifies how URLs are grouped and in which zone phases are read.
    #[must_use]
    pub fn sources_digest(&self) -> Digest {
        self.sources_in(self.options.calendar.name())
    }

    fn sources_in(&self, time_zone: &str) -> Digest {
        DigestBuilder::new()
            .named("by", &self.by_text)
            .named("time_zone", time_zone)
            .optional("signal", self.signal.as_ref().map(SignalRule::identity))
            .finish()
    }

    /// Identifies all that decides what `schedule` writes into its tables.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest_with(self.sources_digest())
    }

    /// The same whatever the time zone, which `[corpus]` states.
    #[must_use]
    pub(crate) fn digest_in_any_zone(&self) -> Digest {
        self.digest_with(self.sources_in(""))
    }

    fn digest_with(&self, sources: Digest) -> Digest {
        let Options { objective, smoothing, .. } = &self.options;
        DigestBuilder::new()
            .named("sources", sources)
            .optional("period", self.options.period)
            .named("polls", self.options.polls)
            .named("grain_s", self.options.grain_s)
            .named("method", self.options.method)
            .named("objective.recall", objective.recall)
            .named("objective.freshness", objective.freshness)
            .named("objective.delay", objective.delay)
            .named("objective.staleness", objective.staleness)
            .named("holdout", self.options.holdout)
            .named("fit", self.options.fit)
            .named("min_gap_s", self.options.min_gap_s)
            .named("smoothing.shrinkage", smoothing.shrinkage)
            .named("smoothing.prior_periods", smoothing.prior_periods)
            .named("smoothing.half_life_days", smoothing.half_life_days)
            .named("smoothing.day_share", smoothing.day_share)
            .named("curve_polls", self.options.curve_polls)
            .optional("budget", self.budget)
            .optional("floor", self.floor)
            .named("average", self.average)
            .named("weighing", self.weighing.identity())
            .optional("host_limit", self.host_limit)
            .finish()
    }

    /// Whether the schedule of a source depends on that source alone.
    #[must_use]
    pub fn is_separable(&self) -> bool {
        self.budget.is_none() && self.host_limit.is_none()
    }
}

/// The table as typed.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScheduleFile {
    by: Option<Spanned<String>>,
    polls: Option<Spanned<usize>>,
    budget: Option<Spanned<usize>>,
    floor: Option<usize>,
    average: Option<Average>,
    weights: Option<Spanned<String>>,
    weight: Option<Spanned<SourceWeight>>,
    host_limit: Option<Spanned<usize>>,
    period: Option<Spanned<String>>,
    grain: Option<Spanned<String>>,
    method: Option<Method>,
    objective: Option<Spanned<WrittenObjective>>,
    holdout: Option<Spanned<f64>>,
    min_gap: Option<Spanned<String>>,
    command: Option<Spanned<String>>,
    recheck: Option<Spanned<String>>,
    discover: Option<DiscoverFile>,
    signal: Option<Spanned<SignalFile>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignalFile {
    new_text: Option<String>,
    mention: Option<String>,
    share: Option<f64>,
}

/// An objective as a table of weights, or as on the command line.
struct WrittenObjective(Objective);

impl<'de> Deserialize<'de> for WrittenObjective {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;

        impl<'de> Visitor<'de> for Written {
            type Value = Objective;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("weights such as { recall = 1.0, freshness = 0.3 }, or a name such as \"staleness\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Objective, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Objective, A::Error> {
                Objective::deserialize(de::value::MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(Written).map(Self)
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiscoverFile {
    #[serde(default)]
    scope: Scope,
    polls: Option<usize>,
}

impl ScheduleFile {
    pub(super) fn check(
        self,
        check: &Check<'_>,
        calendar: Calendar,
        base: &Path,
        extractors: &[&str],
    ) -> Result<ScheduleSettings, ConfigError> {
        let mut settings = ScheduleSettings { weighing: self.weighing(check, base)?, ..ScheduleSettings::default() };
        settings.signal = self.signal(check, extractors)?;
        settings.options.signal = settings.signal.is_some();
        settings.options.calendar = calendar;
        let options = &mut settings.options;
        if let Some(by) = self.by {
            settings.by = SourceBy::parse(by.get_ref()).map_err(|error| {
                let problem = regex_problem(&error);
                check.at(
                    &by,
                    format!("`by`: {problem}"),
                    "use url, host, or a regex whose first group names the source",
                )
            })?;
            settings.by_text = by.into_inner();
        }
        if let (Some(_), Some(budget)) = (&self.polls, &self.budget) {
            let message = "`polls` and `budget` exclude each other".to_owned();
            return Err(check.at(budget, message, "keep `polls` (for each source) or `budget` (over all sources)"));
        }
        for (key, value) in [("polls", &self.polls), ("budget", &self.budget), ("host_limit", &self.host_limit)] {
            if let Some(value) = value.as_ref().filter(|value| *value.get_ref() == 0) {
                return Err(check.at(value, format!("`{key}` is 0"), "give at least 1"));
            }
        }
        options.polls = self.polls.map_or(options.polls, Spanned::into_inner);
        settings.budget = self.budget.map(Spanned::into_inner);
        settings.floor = self.floor;
        settings.average = self.average.unwrap_or_default();
        settings.host_limit = self.host_limit.map(Spanned::into_inner);
        if let Some(period) = self.period {
            options.period = parse_period(period.get_ref())
                .map_err(|problem| check.at(&period, format!("`period`: {problem}"), "or auto"))?;
        }
        if let Some(grain) = &self.grain {
            options.grain_s = seconds(grain, "grain", check)?;
        }
        if let Some(gap) = &self.min_gap {
            options.min_gap_s = seconds(gap, "min_gap", check)?;
        }
        options.method = self.method.unwrap_or(options.method);
        if let Some(objective) = &self.objective {
            options.objective = objective.get_ref().0;
            if !options.objective.is_valid() {
                let message = "`objective` needs weights of 0 or more, and one above 0".to_owned();
                return Err(check.at(objective, message, "such as { recall = 1.0, freshness = 0.3 }"));
            }
        }
        if let Some(holdout) = &self.holdout {
            options.holdout = *holdout.get_ref();
            if !(0.0..1.0).contains(&options.holdout) {
                let message = "`holdout` is not a share below 1".to_owned();
                return Err(check.at(holdout, message, "give the share of the updates to judge by, such as 0.3"));
            }
        }
        if let Some(command) = self.command {
            settings.command = PollCommand::parse(command.get_ref())
                .map_err(|error| check.at(&command, format!("`command`: {error}"), "such as fetch {url}"))?;
        }
        if let Some(recheck) = &self.recheck {
            settings.recheck_s = seconds(recheck, "recheck", check)?;
            if settings.recheck_s == 0 {
                return Err(check.at(recheck, "`recheck` is 0".to_owned(), "give a time such as 30d"));
            }
        }
        settings.discover = self
            .discover
            .map(|discover| Discover { scope: discover.scope, polls: discover.polls.unwrap_or(DEFAULT_DISCOVERED) });
        let checked = settings.options.check();
        match (checked, &self.grain) {
            (Ok(()), _) => Ok(settings),
            (Err(error), Some(grain)) => Err(check.at(grain, format!("`schedule`: {error}"), "change `grain`")),
            (Err(error), None) => Err(check.error(None, format!("`schedule`: {error}"), None)),
        }
    }
}

impl ScheduleFile {
    fn signal(&self, check: &Check<'_>, extractors: &[&str]) -> Result<Option<SignalRule>, ConfigError> {
        let Some(written) = &self.signal else { return Ok(None) };
        let SignalFile { new_text, mention, share } = written.get_ref();
        let wrong = |problem: String, hint: &str| Err(check.at(written, format!("`signal`: {problem}"), hint));
        if new_text.is_none() && mention.is_none() && share.is_none() {
            return wrong("nothing to look for".into(), "such as { new_text = 'breaking', share = 0.3 }");
        }
        if let Some(mention) = mention.as_ref().filter(|mention| !extractors.contains(&mention.as_str())) {
            return wrong(format!("there is no extractor '{mention}'"), "name one of this file");
        }
        if share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return wrong("`share` is not a share of the text".into(), "give a number above 0, at most 1");
        }
        let pattern = match new_text.as_deref().map(Regex::new).transpose() {
            Ok(pattern) => pattern,
            Err(error) => return wrong(format!("`new_text`: {}", regex_problem(&error)), "give a regex"),
        };
        Ok(Some(SignalRule { new_text: pattern, mention: mention.clone(), share: *share }))
    }

    fn weighing(&self, check: &Check<'_>, base: &Path) -> Result<Weighing, ConfigError> {
        const NEEDS: &str = "add a line: budget = …";
        let alone = |key: &str| format!("`{key}` says what sources count in a budget, and there is none");
        match (&self.weights, &self.weight) {
            (Some(weights), Some(_)) => {
                let message = "`weights` and `weight` exclude each other".to_owned();
                Err(check.at(weights, message, "keep the list, or what the store tells"))
            }
            (Some(weights), None) if self.budget.is_none() => Err(check.at(weights, alone("weights"), NEEDS)),
            (None, Some(weight)) if self.budget.is_none() => Err(check.at(weight, alone("weight"), NEEDS)),
            (Some(weights), None) => Weighing::read(&base.join(weights.get_ref())).map_err(|problem| {
                let hint = "name a CSV file with lines such as http://a.example/*,2, relative to this file";
                check.at(weights, format!("`weights`: {problem}"), hint)
            }),
            (None, Some(weight)) => Ok(Weighing::Found(*weight.get_ref())),
            (None, None) => Ok(Weighing::Alike),
        }
    }
}

fn seconds(value: &Spanned<String>, key: &str, check: &Check<'_>) -> Result<i64, ConfigError> {
    parse_seconds(value.get_ref()).ok_or_else(|| check.at(value, format!("`{key}` is no duration"), DURATION_FIX))
}

/// A period, or `None` for `auto`.
pub(crate) fn parse_period(text: &str) -> Result<Option<Period>, String> {
    match text {
        "auto" => Ok(None),
        name => name.parse().map(Some).map_err(|error| format!("{error}")),
    }
}

/// A duration of whole seconds.
#[must_use]
pub(crate) fn parse_seconds(text: &str) -> Option<i64> {
    let duration = parse_duration(text).filter(|duration| duration.subsec_nanos() == 0)?;
    i64::try_from(duration.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(["90s", "5m", "1h", "2d", "0"].map(parse_seconds), [90, 300, 3_600, 172_800, 0].map(Some));
        assert_eq!(["", "5", "m", "-5m", "5 weeks", "5µ", "99999999999s"].map(parse_seconds), [None; 7]);
    }
}
