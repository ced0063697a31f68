//! What the rows of a table are, and so which of them hold at a snapshot.

use super::delta::{WEB_JOINS, WEB_LINKS, WEB_TUPLES, table_of};
use super::extract::Extraction;
use super::ingest::{LinkRow, Page};
use super::mentions::MENTIONS;
use super::record::Table as _;
use super::schedule::{RecallCurveRow, ScheduleRow};
use super::stats::UpdateStatsRow;
use crate::model::{Change, Method};

/// The texts of the pages by URL: no table of the store, but what people look for.
pub(crate) const TEXTS: &str = "texts";

/// Which rows of a table hold at a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// The newest of each URL, unless it is deleted.
    Pages,
    /// The same, with nothing but the text.
    Texts,
    /// Those that the pages point to.
    Links,
    /// The newest of each living page and extractor that takes part.
    Extractions,
    /// Those that the extractions point to.
    Mentions,
    /// The newest of each source, unless it is gone.
    Sources(Gone),
    /// Those beside the schedule that holds.
    Curves,
    /// The newest of each web tuple, unless it is deleted.
    Tuples,
    /// Those beside the tuple that holds.
    TupleLinks,
    /// Those of the newest partition: they are written in full where they are written.
    Newest,
    /// All so far.
    Events,
}

/// Which rows say that what they are of went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// Those with this value in a column of text.
    Where(&'static str, &'static str),
    /// Those with a time in a column.
    Since(&'static str),
}

/// Rows of pages and web tuples that went.
pub(crate) const DELETED: Gone = Gone::Where("change", Change::Deleted.as_str());

impl Nature {
    /// Of a table by its name; those of extractors and queries have it below the folder of their kind.
    #[must_use]
    pub(crate) fn of(table: &str) -> Self {
        match table.split('/').next().unwrap_or(table) {
            Page::NAME => Self::Pages,
            TEXTS => Self::Texts,
            LinkRow::NAME => Self::Links,
            Extraction::NAME => Self::Extractions,
            MENTIONS => Self::Mentions,
            UpdateStatsRow::NAME => Self::Sources(Gone::Since("gone_since")),
            ScheduleRow::NAME => Self::Sources(Gone::Where("method", Method::Gone.as_str())),
            RecallCurveRow::NAME => Self::Curves,
            WEB_TUPLES => Self::Tuples,
            WEB_LINKS => Self::TupleLinks,
            WEB_JOINS | "states" => Self::Newest,
            _ => Self::Events,
        }
    }
}

/// Where the tuples lie whose links a table holds.
#[must_use]
pub(crate) fn tuples_of(links: &str) -> String {
    let query = links.strip_prefix(WEB_LINKS).unwrap_or(links).trim_start_matches('/');
    table_of(WEB_TUPLES, query)
}

/// A table's name as SQL can write it without quotes.
#[must_use]
pub(crate) fn sql_name(table: &str) -> String {
    table.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
