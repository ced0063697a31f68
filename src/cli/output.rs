//! Data on stdout.

use std::io::{IsTerminal as _, Write as _};

use serde::Serialize;

use super::outcome::Outcome;
use crate::report::versions::Marks;

pub(super) fn bytes(bytes: &[u8]) -> anyhow::Result<Outcome> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()?;
    Ok(Outcome::Done)
}

pub(super) fn text(text: &str) -> anyhow::Result<Outcome> {
    bytes(text.as_bytes())
}

pub(super) fn json<T: Serialize>(value: &T) -> anyhow::Result<Outcome> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    bytes(&line)
}

/// Colours on a terminal, unless they are not wanted.
pub(super) fn marks() -> Marks {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if std::io::stdout().is_terminal() && !no_colour { Marks::Colours } else { Marks::Brackets }
}
