//! Data on stdout.
//!
//! What is shown may be foreign: titles, URLs, file names, words of workers. [`text`] and [`json`] let nothing through that
//! commands a terminal, so that no report has to think of it. Only data that must be exact goes through [`bytes()`].

use std::io::{IsTerminal as _, Write as _};

use serde::Serialize;

use super::outcome::Outcome;
use crate::report::terminal::{fit, fit_json};
use crate::report::versions::Marks;

pub(super) fn bytes(bytes: &[u8]) -> anyhow::Result<Outcome> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()?;
    Ok(Outcome::Done)
}

pub(super) fn text(text: &str) -> anyhow::Result<Outcome> {
    bytes(fit(text).as_bytes())
}

/// Text with colours, whose foreign parts have been made fit already.
pub(super) fn coloured(text: &str) -> anyhow::Result<Outcome> {
    bytes(text.as_bytes())
}

pub(super) fn json<T: Serialize>(value: &T) -> anyhow::Result<Outcome> {
    json_text(serde_json::to_string(value)? + "\n")
}

/// JSON that has been written already.
pub(super) fn json_text(json: String) -> anyhow::Result<Outcome> {
    bytes(fit_json(json).as_bytes())
}

/// Colours on a terminal, unless they are not wanted.
pub(super) fn marks() -> Marks {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if std::io::stdout().is_terminal() && !no_colour { Marks::Colours } else { Marks::Brackets }
}
