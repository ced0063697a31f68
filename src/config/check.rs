//! What is wrong with a pipeline file, shown where it stands: file, line, column and the fix.

use std::fmt;
use std::path::{Path, PathBuf};

use toml::Spanned;

use crate::model::KeyError;
use crate::model::said::{Expected, in_words};

/// What is wrong with a pipeline file, where, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    path: PathBuf,
    /// Line and column, from 1.
    position: Option<(usize, usize)>,
    message: String,
    hint: Option<String>,
}

impl ConfigError {
    pub(super) fn unreadable(path: &Path, error: &impl fmt::Display) -> Self {
        Self {
            path: path.to_owned(),
            position: None,
            message: format!("cannot read the pipeline file: {error}"),
            hint: Some("ratoon init FILE writes one to start from".into()),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some((line, column)) = self.position {
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

/// The text that is being checked; makes errors of what is found wrong in it.
pub(super) struct Check<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl Check<'_> {
    /// An error at a value.
    pub(super) fn at<T>(&self, value: &Spanned<T>, message: String, hint: &str) -> ConfigError {
        self.error(Some(value.span().start), message, Some(hint.to_owned()))
    }

    /// An error at a byte of the file, or of the file as a whole.
    pub(super) fn error(&self, offset: Option<usize>, message: String, hint: Option<String>) -> ConfigError {
        let position = offset.map(|offset| {
            let before = &self.text[..offset];
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            (before.matches('\n').count() + 1, self.text[line_start..offset].chars().count() + 1)
        });
        ConfigError { path: self.path.to_owned(), position, message, hint }
    }

    /// An error of a key, shown at a byte. `table`: what kind of table the key stands in.
    pub(super) fn error_at(&self, offset: usize, table: &str, error: KeyError) -> ConfigError {
        self.error(Some(offset), format!("{table}: `{}`: {}", error.key, error.problem), Some(error.fix))
    }

    /// The same, shown where the key is written in the table that begins at `start`.
    pub(super) fn key(&self, start: usize, table: &str, error: KeyError) -> ConfigError {
        self.error_at(error.offset.unwrap_or_else(|| self.key_at(start, &error.key)), table, error)
    }

    /// Where a key of the table that begins at `start` is written; the table itself if it is not.
    pub(super) fn key_at(&self, start: usize, key: &str) -> usize {
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

    /// What the reader of TOML found wrong, in our words.
    pub(super) fn toml(&self, error: &toml::de::Error) -> ConfigError {
        let message = error.message();
        let offset = error.span().map(|span| span.start);
        // serde says: unknown field `a`, expected one of `b`, `c`
        let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let what = [("unknown field", "key"), ("unknown variant", "value")];
        let what = what.into_iter().find(|(start, _)| message.starts_with(start)).map(|(_, what)| what);
        if let (Some(what), Some((name, known))) = (what, names.split_first()) {
            return self.error(offset, format!("unknown {what} `{name}`"), Some(did_you_mean(name, known)));
        }
        match (message.strip_prefix("missing field "), names.first()) {
            (Some(_), Some(&"corpus")) => {
                self.error(None, "no [corpus] table".into(), Some("ratoon init FILE shows what belongs there".into()))
            }
            (Some(_), Some(name)) => {
                self.error(offset, format!("missing key `{name}`"), Some(format!("add a line: {name} = …")))
            }
            _ => self.other(offset, message.lines().next().unwrap_or_default()),
        }
    }

    /// What is wrong with the form of the file, with what was probably meant.
    fn other(&self, offset: Option<usize>, message: &str) -> ConfigError {
        if message.contains("escape") {
            return self.error(offset, message.to_owned(), Some(ESCAPES.to_owned()));
        }
        if message.starts_with("duplicate key") {
            let name = self.text[offset.unwrap_or(0)..].split(['=', ']', '\n']).next().unwrap_or_default().trim();
            let message = format!("`{}` is written twice", name.trim_start_matches('['));
            return self.error(offset, message, Some("keep one of the two".to_owned()));
        }
        let is_one = message.starts_with("invalid type: map, expected a sequence");
        match self.header(offset.unwrap_or(0)).filter(|_| is_one) {
            Some((at, name)) => {
                self.error(Some(at), format!("`[{name}]` is one of several"), Some(format!("write [[{name}]]")))
            }
            None => {
                let (words, expected) = in_words(message);
                let hint = match (expected, offset) {
                    (Some(expected), Some(offset)) => self.example(offset, expected),
                    _ => None,
                };
                self.error(offset, words, hint)
            }
        }
    }

    /// How a value that is expected would be written in place of the one at a byte.
    fn example(&self, offset: usize, expected: Expected) -> Option<String> {
        let line_start = self.text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let (key, value) = (&self.text[line_start..offset], &self.text[offset..]);
        let key = key.trim().strip_suffix('=')?.trim();
        let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        let value = value.lines().next().unwrap_or_default().trim();
        let text = value.trim_matches(['"', '\'']);
        let example = match expected {
            Expected::Whole | Expected::Number => format!("{key} = 10"),
            Expected::Truth => format!("{key} = true"),
            Expected::Text if value.starts_with(|c: char| c.is_ascii_digit()) => format!("{key} = \"{text}\""),
            Expected::Text => format!("{key} = \"…\""),
            Expected::List if value.len() > text.len() => {
                let words = text.split_whitespace().map(|word| format!("\"{word}\"")).collect::<Vec<_>>();
                format!("{key} = [{}]", words.join(", "))
            }
            Expected::List => format!("{key} = [\"…\"]"),
            Expected::Table => format!("{key} = {{ … }}"),
        };
        is_key.then(|| format!("write it like {example}"))
    }

    /// The header of a table, the last one up to a place, or else the first: where it stands, and its name.
    fn header(&self, place: usize) -> Option<(usize, &str)> {
        let mut at = 0;
        let mut found = None;
        for line in self.text.split_inclusive('\n') {
            let name = line.trim().strip_prefix('[').filter(|rest| !rest.starts_with('['));
            let name = name.and_then(|rest| rest.split(']').next()).map(str::trim);
            if let Some(name) = name.filter(|_| found.is_none() || at <= place) {
                found = Some((at, name));
            }
            at += line.len();
        }
        found
    }
}

/// Patterns are full of backslashes.
pub(super) const ESCAPES: &str =
    "between \"…\" a backslash has a meaning of its own; write patterns between '…', where it has none";

fn did_you_mean(name: &str, known: &[&str]) -> String {
    let likeness = |known: &str| strsim::jaro_winkler(name, known);
    match known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b))) {
        Some(near) if likeness(near) > 0.75 => format!("did you mean `{near}`?"),
        _ => format!("known here: {}", known.join(", ")),
    }
}

/// The last line of what the regex crate says of a pattern: the others only show where.
pub(super) fn regex_problem(error: &regex::Error) -> String {
    let error = error.to_string();
    error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
