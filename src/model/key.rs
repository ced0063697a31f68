//! What all who read keys of a pipeline file share: how they say what is wrong, and which names they take.

use std::borrow::Cow;

/// What is wrong with which key, and what to do about it. Whoever opened the file adds its name and the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: {problem} (hint: {fix})")]
pub struct KeyError {
    /// Such as `links` or `nodes.a.title`.
    pub key: Cow<'static, str>,
    pub problem: String,
    pub fix: String,
    /// Byte offset in the file, where it is known better than by the key.
    pub offset: Option<usize>,
}

impl KeyError {
    pub fn new(key: impl Into<Cow<'static, str>>, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into(), fix: fix.into(), offset: None }
    }

    /// Shown at this byte of the file.
    #[must_use]
    pub fn at(self, offset: usize) -> Self {
        Self { offset: Some(offset), ..self }
    }
}

/// Whether extractors, queries, their nodes and watches may be called so: names become folders and columns.
#[must_use]
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'_' | b'-'))
}

/// What to do about a name that is none.
pub(crate) const NAME_FIX: &str = "use lower-case letters, digits, '_' and '-'";

/// Two of `names` that SQL cannot tell apart, by their places: one whose table is called like that of an earlier one, or
/// like that of all snapshots of another (`NAME_all`). `table` is what names of tables begin with, for the message.
pub(crate) fn clash_in_sql(table: &str, names: &[&str]) -> Option<(usize, KeyError)> {
    let in_sql: Vec<String> = names.iter().map(|name| name.replace('-', "_")).collect();
    let told = |at: usize, problem| Some((at, KeyError::new("name", problem, "rename one of them")));
    for (at, name) in in_sql.iter().enumerate() {
        if let Some(other) = in_sql[..at].iter().position(|other| other == name) {
            return told(at, format!("'{}' and '{}' are both {table}_{name} in SQL", names[other], names[at]));
        }
    }
    for (at, name) in in_sql.iter().enumerate() {
        let all_of = |all_of: &str| in_sql.iter().position(|other| other == all_of);
        if let Some(other) = name.strip_suffix("_all").and_then(all_of) {
            return told(
                at,
                format!("{table}_{name} is what SQL calls all {table} of '{}', of every snapshot", names[other]),
            );
        }
    }
    None
}
