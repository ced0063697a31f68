//! Pages by their URLs, for a terminal and for other programs.

use serde_json::{Value, json};

use super::terminal::{one_line, size, table};
use crate::tables::ingest::PageVersion;

/// One URL a line; with `all` how each page stands to the one before, how long it is, and its title.
#[must_use]
pub(crate) fn listing(pages: &[PageVersion], all: bool) -> String {
    if !all {
        return pages.iter().map(|page| one_line(&page.url) + "\n").collect();
    }
    let row = |page: &PageVersion| {
        let title = page.title.as_deref().unwrap_or("-");
        vec![one_line(&page.url), page.change.to_string(), size(page.text_bytes.unsigned_abs()), one_line(title)]
    };
    table(&["page", "change", "text", "title"], &pages.iter().map(row).collect::<Vec<_>>())
}

/// The same for a program.
#[must_use]
pub(crate) fn listing_json(pages: &[PageVersion]) -> Value {
    let page = |page: &PageVersion| {
        let PageVersion { url, title, change, text_bytes, .. } = page;
        json!({"url": url, "title": title, "change": change, "text_bytes": text_bytes})
    };
    pages.iter().map(page).collect()
}
