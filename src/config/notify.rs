//! `[notify]`: who is told how a run went.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::check::{Check, ConfigError};
use crate::model::closed_set::closed_set;
use crate::model::time::{DURATION_FIX, parse_duration};

closed_set! {
    /// What of a run is told.
    pub enum Event: "event" {
        Start = "start",
        /// All is done, and nothing is wrong.
        Success = "success",
        /// All is done, but a person should look at it.
        Problem = "problem",
        Failure = "failure",
    }
}

/// Who is told how a run went.
#[derive(Clone, Debug, Default)]
pub struct RunNotify {
    /// A program that is given the event and a summary.
    pub command: Option<Vec<String>>,
    pub on: Vec<Event>,
    pub timeout: Duration,
    /// A file in the text format of Prometheus.
    pub metrics: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NotifyFile {
    command: Option<Spanned<Vec<String>>>,
    on: Option<Vec<Event>>,
    timeout: Option<Spanned<String>>,
    metrics: Option<PathBuf>,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

impl NotifyFile {
    pub(super) fn check(self, check: &Check<'_>, base: &Path) -> Result<RunNotify, ConfigError> {
        if let Some(command) = self.command.as_ref().filter(|c| c.get_ref().first().is_none_or(String::is_empty)) {
            return Err(check.at(
                command,
                "`command` of [notify] is empty".into(),
                "write [\"program\", \"argument\"]",
            ));
        }
        let timeout = match &self.timeout {
            None => DEFAULT_TIMEOUT,
            Some(text) => parse_duration(text.get_ref())
                .filter(|timeout| !timeout.is_zero())
                .ok_or_else(|| check.at(text, "`timeout` of [notify] is no duration".into(), DURATION_FIX))?,
        };
        Ok(RunNotify {
            command: self.command.map(Spanned::into_inner),
            on: self.on.unwrap_or_else(|| vec![Event::Problem, Event::Failure]),
            timeout,
            metrics: self.metrics.map(|path| base.join(path)),
        })
    }
}
