//! Queries as a pipeline file declares them.
//!
//! Places in the file are kept, so that what is wrong can be shown where it stands; the types therefore have to be read
//! from the document itself.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use toml::Spanned;

use crate::model::closed_set::closed_set;

/// `[[query]]` of a pipeline file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryConfig {
    pub name: Spanned<String>,
    /// Predicates by node. A node that only stands in a link has none.
    #[serde(default)]
    pub nodes: BTreeMap<Spanned<String>, NodeConfig>,
    /// Such as `a -> b`, `a -{0,4}-> b [label = 'uses*', kind = 'local']`.
    #[serde(default)]
    pub links: Vec<Spanned<String>>,
    #[serde(default)]
    pub paths: Paths,
    /// More tuples than this are an error.
    pub max_tuples: Option<Spanned<u64>>,
    /// How often it is asked, such as `30d`.
    pub every: Option<Spanned<String>>,
}

closed_set! {
    /// Which paths make a tuple.
    #[derive(Default)]
    pub enum Paths: "choice of paths" {
        /// Between two pages the one with the fewest links; of several the first by URL.
        #[default]
        Shortest = "shortest",
        All = "all",
    }
}

/// What a page must be to stand for a node. All conditions that are given must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeConfig {
    /// Globs (`*`, `?`, `[…]`, `{a,b}`), case ignored.
    pub url: Option<Spanned<String>>,
    pub title: Option<Spanned<String>>,
    pub host: Option<Spanned<String>>,
    pub content_type: Option<Spanned<String>>,
    /// A regex found anywhere in the text; with `tag` or `path`, in the text of such an element.
    pub text: Option<Spanned<String>>,
    /// The name of an element of the page.
    pub tag: Option<Spanned<String>>,
    /// Names of elements, each in the one before: `/html/body/h1`, or `//div/h1` anywhere.
    pub path: Option<Spanned<String>>,
    pub last_modified: Option<Spanned<Times>>,
    /// Length of the text.
    pub bytes: Option<Spanned<Sizes>>,
    /// An extractor that found something in the page.
    pub mention: Option<Spanned<String>>,
}

/// At `after` or later, and earlier than `before`. A page without a date is in no such interval.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Times {
    pub after: Option<Moment>,
    pub before: Option<Moment>,
}

/// A day (`2001-02-15`, its first moment) or a time (`2001-02-15T12:00:00Z`), in quotes or without.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "MomentFile")]
pub(crate) struct Moment(pub String);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a date or a time, such as 2001-02-15 or 2001-02-15T12:00:00Z")]
enum MomentFile {
    Text(String),
    Native(toml::value::Datetime),
}

impl From<MomentFile> for Moment {
    fn from(file: MomentFile) -> Self {
        Self(match file {
            MomentFile::Text(text) => text,
            MomentFile::Native(time) => time.to_string(),
        })
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// From `min` to `max`, both included.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sizes {
    pub min: Option<u64>,
    pub max: Option<u64>,
}
