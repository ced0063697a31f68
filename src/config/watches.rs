//! `[[watch]]` of the pipeline file: what was typed and what it means.

use std::time::Duration;

use regex::Regex;
use serde::Deserialize;
use toml::Spanned;

use super::check::{Check, ConfigError, regex_problem};
use crate::deltas::watches::{Notify, Pages, Scope, Watch, When};
use crate::model::key::{NAME_FIX, is_name};
use crate::model::time::{DURATION_FIX, parse_duration};
use crate::model::{Change, Digest, DigestBuilder, MentionChange};

/// The table as typed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WatchFile {
    name: Spanned<String>,
    on: Spanned<OnFile>,
    command: Option<Spanned<Vec<String>>>,
    timeout: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { mentions = 'talk', change = 'added' }")]
struct OnFile {
    /// A glob, or several.
    pages: Option<Spanned<toml::Value>>,
    /// A regex on URLs, instead of globs.
    matching: Option<Spanned<String>>,
    query: Option<Spanned<String>>,
    /// One kind of change, or several.
    change: Option<Spanned<toml::Value>>,
    new_text: Option<Spanned<String>>,
    share: Option<Spanned<f64>>,
    changes: Option<Spanned<u64>>,
    mentions: Option<Spanned<String>>,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Checks all watches; `extractors` and `queries` are the names that they may ask for.
pub(super) fn check(
    files: Vec<WatchFile>,
    check: &Check<'_>,
    extractors: &[&str],
    queries: &[&str],
) -> Result<Vec<Watch>, ConfigError> {
    let mut watches: Vec<Watch> = Vec::new();
    for file in files {
        let name = file.name.get_ref().as_str();
        if !is_name(name) {
            return Err(check.at(&file.name, format!("watch: `name`: '{name}' is no name"), NAME_FIX));
        }
        if watches.iter().any(|watch| &*watch.name == name) {
            let message = format!("watch: `name`: there are two watches '{name}'");
            return Err(check.at(&file.name, message, "give each a name of its own"));
        }
        watches.push(one(file, check, extractors, queries)?);
    }
    Ok(watches)
}

fn one(file: WatchFile, check: &Check<'_>, extractors: &[&str], queries: &[&str]) -> Result<Watch, ConfigError> {
    let on = file.on.get_ref();
    let conditions = [
        ("new_text", on.new_text.as_ref().map(|key| key.span().start)),
        ("share", on.share.as_ref().map(|key| key.span().start)),
        ("changes", on.changes.as_ref().map(|key| key.span().start)),
        ("mentions", on.mentions.as_ref().map(|key| key.span().start)),
    ];
    let mut given = conditions.iter().filter_map(|(key, at)| Some((*key, (*at)?)));
    let (first, second) = (given.next(), given.next());
    if let (Some((a, _)), Some((b, at))) = (first, second) {
        let message = format!("watch: `{a}` and `{b}` exclude each other");
        return Err(check.error(Some(at), message, Some("write two watches".into())));
    }
    if let (Some(change), Some((key @ ("new_text" | "share" | "changes"), _))) = (&on.change, first) {
        let message = format!("watch: `change` does not go with `{key}`");
        return Err(check.at(change, message, "leave it out: it goes with pages, query or mentions"));
    }
    let nothing = on.pages.is_none() && on.matching.is_none() && on.query.is_none() && on.change.is_none();
    if nothing && first.is_none() {
        let hint = "such as { pages = \"http://a.example/*\", change = \"added\" } or { new_text = 'regex' }";
        return Err(check.at(&file.on, "watch: `on` says nothing".into(), hint));
    }
    let scope = scope(on, check, queries)?;
    let when = condition(on, check, extractors)?;
    Ok(Watch {
        name: file.name.get_ref().as_str().into(),
        scope,
        when,
        digest: digest(on),
        notify: notify(file.command, file.timeout, check)?,
    })
}

/// Identifies scope and condition by what was typed: the watch counts from the start again when they change.
fn digest(on: &OnFile) -> Digest {
    let mut digest = DigestBuilder::new();
    for (key, values) in [("pages", &on.pages), ("change", &on.change)] {
        for value in values.as_ref().and_then(texts).into_iter().flatten() {
            digest.named(key, value);
        }
    }
    for (key, value) in [("matching", &on.matching), ("query", &on.query), ("new_text", &on.new_text)] {
        digest.optional(key, value.as_ref().map(Spanned::get_ref));
    }
    digest.optional("share", on.share.as_ref().map(Spanned::get_ref));
    digest.optional("changes", on.changes.as_ref().map(Spanned::get_ref));
    digest.optional("mentions", on.mentions.as_ref().map(Spanned::get_ref));
    digest.finish()
}

fn scope(on: &OnFile, check: &Check<'_>, queries: &[&str]) -> Result<Scope, ConfigError> {
    let pages = match (&on.pages, &on.matching) {
        (Some(_), Some(matching)) => {
            let message = "watch: `pages` and `matching` exclude each other".to_owned();
            return Err(check.at(matching, message, "keep the globs or the regex"));
        }
        (Some(pages), None) => {
            let globs = texts(pages).ok_or_else(|| {
                check.at(pages, "watch: `pages` is no glob".into(), "write \"http://a.example/*\" or a list of them")
            })?;
            Some(Pages::globs(globs.iter().map(String::as_str)).map_err(|(i, problem)| {
                let message = format!("watch: `pages`: glob '{}': {problem}", globs[i]);
                check.at(pages, message, "* stands for any text, ? for one character; \\ before them takes that away")
            })?)
        }
        (None, Some(matching)) => Some(Pages::Matching(regex(matching, "matching", check)?)),
        (None, None) => None,
    };
    if let Some(query) = on.query.as_ref().filter(|query| !queries.contains(&query.get_ref().as_str())) {
        return Err(check.at(query, format!("watch: there is no query '{}'", query.get_ref()), &known(queries)));
    }
    Ok(Scope { pages, query: on.query.as_ref().map(|query| query.get_ref().clone()) })
}

fn condition(on: &OnFile, check: &Check<'_>, extractors: &[&str]) -> Result<When, ConfigError> {
    if let Some(pattern) = &on.new_text {
        let regex = regex(pattern, "new_text", check)?;
        if regex.is_match("") {
            let message = format!("watch: `new_text`: '{}' matches the empty string", pattern.get_ref());
            return Err(check.at(pattern, message, "make it need at least one character, such as + for *"));
        }
        return Ok(When::NewText(regex));
    }
    if let Some(share) = &on.share {
        if !(*share.get_ref() > 0.0 && *share.get_ref() <= 1.0) {
            return Err(check.at(share, "watch: `share` is not a share".into(), "give a number above 0, at most 1"));
        }
        return Ok(When::Share(*share.get_ref()));
    }
    if let Some(changes) = &on.changes {
        if *changes.get_ref() == 0 {
            return Err(check.at(changes, "watch: `changes` is 0".into(), "give at least 1"));
        }
        return Ok(When::Changes(*changes.get_ref()));
    }
    if let Some(extractor) = &on.mentions {
        if !extractors.contains(&extractor.get_ref().as_str()) {
            let message = format!("watch: there is no extractor '{}'", extractor.get_ref());
            return Err(check.at(extractor, message, &known(extractors)));
        }
        return Ok(When::Mentions(extractor.get_ref().clone(), mention_changes(on.change.as_ref(), check)?));
    }
    Ok(When::Change(match &on.change {
        Some(change) => changes(change, check)?,
        None => Change::ALL.to_vec(),
    }))
}

fn notify(
    command: Option<Spanned<Vec<String>>>,
    timeout: Option<Spanned<String>>,
    check: &Check<'_>,
) -> Result<Option<Notify>, ConfigError> {
    let wait = match &timeout {
        None => DEFAULT_TIMEOUT,
        Some(text) => parse_duration(text.get_ref())
            .filter(|timeout| !timeout.is_zero())
            .ok_or_else(|| check.at(text, "watch: `timeout` is no duration".into(), DURATION_FIX))?,
    };
    let Some(command) = command else {
        return match timeout {
            Some(timeout) => {
                Err(check.at(&timeout, "watch: `timeout` without `command`".into(), "leave it out, or name a command"))
            }
            None => Ok(None),
        };
    };
    if command.get_ref().first().is_none_or(String::is_empty) {
        return Err(check.at(&command, "watch: `command` is empty".into(), "write [\"program\", \"argument\"]"));
    }
    Ok(Some(Notify { command: command.into_inner(), timeout: wait }))
}

fn changes(change: &Spanned<toml::Value>, check: &Check<'_>) -> Result<Vec<Change>, ConfigError> {
    let wrong = |what: String| check.at(change, what, "use added, deleted, modified, or a list of them");
    let names = texts(change).filter(|names| !names.is_empty());
    let names = names.ok_or_else(|| wrong("watch: `change` is no kind of change".into()))?;
    let parse =
        |name: &String| name.parse().map_err(|_| wrong(format!("watch: `change`: '{name}' is no kind of change")));
    names.iter().map(parse).collect()
}

/// All changes of mentions, unless the watch names some.
fn mention_changes(
    change: Option<&Spanned<toml::Value>>,
    check: &Check<'_>,
) -> Result<Vec<MentionChange>, ConfigError> {
    let Some(change) = change else { return Ok(MentionChange::ALL.to_vec()) };
    let of_mention = |wanted: Change| {
        MentionChange::ALL.into_iter().find(|known| Change::from(*known) == wanted).ok_or_else(|| {
            let message = "watch: mentions are not modified".to_owned();
            check.at(change, message, "they are added or deleted")
        })
    };
    changes(change, check)?.into_iter().map(of_mention).collect()
}

/// A text, or a list of texts.
fn texts(value: &Spanned<toml::Value>) -> Option<Vec<String>> {
    match value.get_ref() {
        toml::Value::String(text) => Some(vec![text.clone()]),
        toml::Value::Array(list) => list.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

fn regex(pattern: &Spanned<String>, key: &str, check: &Check<'_>) -> Result<Regex, ConfigError> {
    Regex::new(pattern.get_ref()).map_err(|error| {
        let message = format!("watch: `{key}`: '{}': {}", pattern.get_ref(), regex_problem(&error));
        check.at(pattern, message, "see the syntax of the regex crate")
    })
}

fn known(names: &[&str]) -> String {
    if names.is_empty() { "none is declared".to_owned() } else { format!("known here: {}", names.join(", ")) }
}
