//! Which page a link leads to.

use std::borrow::Cow;

use crate::text::url::normalise;

/// The URL of the page that a stored link leads to. Links are stored as `ingest` names pages, but with fragment and
/// credentials.
pub(in crate::stages) fn page_of(target: &str) -> Cow<'_, str> {
    let page = target.split_once('#').map_or(target, |(page, _)| page);
    let authority = page.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    match authority.contains('@').then(|| normalise(page, false)) {
        Some(Ok(page)) => Cow::Owned(page),
        _ => Cow::Borrowed(page),
    }
}
