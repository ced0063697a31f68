//! Exit codes, in one place.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;

use super::Options;
use crate::config::{ConfigError, Pipeline};
use crate::run::inventory::UnknownSnapshot;
use crate::store::files;
use crate::store::lock::LockError;

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// Done, but for a part that failed and was reported.
    Failed,
    /// Done, but `--strict` and something was rejected.
    Rejected,
    /// Done, but a person should look at it: what is wrong was said.
    Problem,
}

/// The caller's mistake, not the program's: exit 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Usage(pub(super) String);

/// What was typed for the URL of a page is none.
pub(super) fn not_a_url(typed: &str, error: &anyhow::Error, pipeline: &Pipeline) -> Usage {
    let pipeline = pipeline.path.display();
    Usage(format!(
        "{typed}: {error}\nhint: `ratoon urls {pipeline} '{typed}'` lists the pages that have this in their URL"
    ))
}

/// Fails if a folder to be written to has something in it, unless that was forced.
pub(super) fn refuse_used(dir: &Path, options: &Options) -> anyhow::Result<()> {
    if files::is_in_use(dir)? && !options.force {
        bail!(Usage(format!("{} is not empty; --force writes into it all the same", dir.display())));
    }
    Ok(())
}

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const PROBLEM: u8 = 3;
const LOCKED: u8 = 75;

impl Outcome {
    /// The exit code.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed | Self::Rejected => FAILED,
            Self::Problem => PROBLEM,
        }
    }
}

/// The exit code of a command that failed.
pub(super) fn code_of(error: &anyhow::Error) -> u8 {
    if error.is::<ConfigError>() || error.is::<Usage>() || error.is::<UnknownSnapshot>() {
        USAGE
    } else if is_locked(error) {
        LOCKED
    } else {
        FAILED
    }
}

/// Whether another run holds the store.
pub(super) fn is_locked(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(LockError::Held { .. }))
}

/// Prints the error, if there is one, and gives the exit code.
pub(super) fn report(outcome: anyhow::Result<Outcome>) -> ExitCode {
    match outcome {
        Ok(outcome) => ExitCode::from(outcome.code()),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            log::error!("{}", in_words(&error));
            ExitCode::from(code_of(&error))
        }
    }
}

/// An error with its causes, each said once: many say their cause themselves.
pub(super) fn in_words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

/// Whoever read our output has had enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow!("disk full").context("p.toml: disk full; hint: make room").context("cannot write");
        assert_eq!(in_words(&error), "cannot write: p.toml: disk full; hint: make room");
        assert_eq!(in_words(&anyhow!("b").context("a")), "a: b");
    }
}
