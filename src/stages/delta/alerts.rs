//! Watches over the deltas of a snapshot: which fire, and on what.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::deltas::watches::{Watch, When, count, matches_in_news, matches_that_went, replaced};
use crate::manifests::Waiting;
use crate::model::{AlertKind, Fate, MentionChange, Span};
use crate::tables::delta::{Alert, PageDelta, TupleDelta};
use crate::tables::extract::MentionDelta;

/// The longest text that an alert shows.
const TEXT_CHARS: usize = 500;

/// The watches of a pipeline, and the pages of the queries that they ask for.
pub(super) struct Watcher<'a> {
    watches: &'a [Watch],
    /// Pages of a query's web tables, old and new.
    queries: PagesOfQueries,
}

/// Pages by query.
pub(super) type PagesOfQueries = HashMap<String, HashSet<String>>;

/// A page's text and what of it is news.
pub(super) struct NewText<'a> {
    pub(super) url: &'a str,
    pub(super) text: &'a str,
    /// The text before; empty if there was none.
    pub(super) before: &'a str,
    pub(super) spans: &'a [Span],
}

impl<'a> Watcher<'a> {
    pub(super) fn new(watches: &'a [Watch], queries: PagesOfQueries) -> Self {
        Self { watches, queries }
    }

    /// Whether a page is in the scope of a watch.
    fn covers(&self, watch: &Watch, url: &str) -> bool {
        let in_query = |query: &String| self.queries.get(query.as_str()).is_some_and(|pages| pages.contains(url));
        watch.scope.pages.as_ref().is_none_or(|pages| pages.has(url)) && watch.scope.query.as_ref().is_none_or(in_query)
    }

    /// Whether any watch asks what is new on a page.
    pub(super) fn wants_news(&self, url: &str) -> bool {
        let asks = |watch: &Watch| matches!(watch.when, When::NewText(_) | When::Share(_));
        self.watches.iter().any(|watch| asks(watch) && self.covers(watch, url))
    }

    /// Alerts on what is new on a page.
    pub(super) fn new_text(&self, page: &NewText<'_>) -> Vec<Alert> {
        let mut alerts = Vec::new();
        if page.spans.is_empty() {
            return alerts;
        }
        for watch in self.watches {
            let fired = |kind| alert(watch, kind, Some(page.url));
            match &watch.when {
                When::NewText(regex) if self.covers(watch, page.url) => {
                    let found = matches_in_news(regex, page.text, page.spans);
                    let went =
                        if found.is_empty() { Vec::new() } else { matches_that_went(regex, page.before, page.text) };
                    let old = replaced(found.iter().map(|(place, _)| *place), &went);
                    alerts.extend(found.into_iter().zip(old).map(|((_, text), old)| Alert {
                        text: short(text),
                        old_value: old.and_then(short),
                        ..fired(AlertKind::NewText)
                    }));
                }
                When::Share(least) if self.covers(watch, page.url) => {
                    let new: u32 = page.spans.iter().map(|span| span.len()).sum();
                    let share = f64::from(new) / page.text.len() as f64;
                    if share >= *least {
                        alerts.push(Alert { value: Some(share), ..fired(AlertKind::Share) });
                    }
                }
                _ => {}
            }
        }
        alerts
    }

    /// Alerts on pages that came, went or changed, and the counts of watches that wait for more changes.
    pub(super) fn pages(&self, pages: &[PageDelta], before: &Waiting) -> (Vec<Alert>, Waiting) {
        let mut alerts = Vec::new();
        let mut waiting = Waiting::new();
        for watch in self.watches {
            match &watch.when {
                // A watch on a query is told of its tuples instead.
                When::Change(wanted) if watch.scope.query.is_none() => {
                    for page in pages.iter().filter(|page| self.covers(watch, &page.url)) {
                        if let Some(change) = page.change.change().filter(|change| wanted.contains(change)) {
                            // Only deleted pages have a reason.
                            let text = page.reason.map(|reason| reason.to_string());
                            alerts.push(Alert { text, ..alert(watch, AlertKind::Page(change), Some(&page.url)) });
                        }
                    }
                }
                When::Changes(enough) => {
                    let more =
                        pages.iter().filter(|page| page.change != Fate::Unchanged && self.covers(watch, &page.url));
                    let digest = watch.digest;
                    let known = before.get(&*watch.name).filter(|(known, _)| *known == digest);
                    let (left, fired) = count(known.map_or(0, |known| known.1), more.count() as u64, *enough);
                    waiting.insert(watch.name.to_string(), (digest, left));
                    alerts.extend(fired.map(|changes| Alert {
                        value: Some(changes as f64),
                        ..alert(watch, AlertKind::Changes, None)
                    }));
                }
                _ => {}
            }
        }
        (alerts, waiting)
    }

    /// Whether any watch asks for mentions.
    pub(super) fn wants_mentions(&self) -> bool {
        self.watches.iter().any(|watch| matches!(watch.when, When::Mentions(..)))
    }

    /// Alerts on mentions that came or went.
    pub(super) fn mentions(&self, deltas: &[MentionDelta]) -> Vec<Alert> {
        let mut alerts = Vec::new();
        for watch in self.watches {
            let When::Mentions(extractor, wanted) = &watch.when else { continue };
            let of_page = deltas.chunk_by(|a, b| (&a.url, &a.extractor) == (&b.url, &b.extractor));
            for rows in of_page.filter(|rows| *rows[0].extractor == **extractor && self.covers(watch, &rows[0].url)) {
                let place = |row: &MentionDelta| usize::try_from(row.start).unwrap_or(0);
                let of = |change| rows.iter().filter(move |row| row.change == change);
                let went: Vec<_> = of(MentionChange::Deleted).map(|row| (place(row), row.text.as_str())).collect();
                let came = replaced(of(MentionChange::Added).map(place), &went);
                let old = came.into_iter().chain(went.iter().map(|(_, text)| Some(*text)));
                let all = of(MentionChange::Added).chain(of(MentionChange::Deleted)).zip(old);
                alerts.extend(all.filter(|(row, _)| wanted.contains(&row.change)).map(|(row, old)| Alert {
                    text: short(&row.text),
                    old_value: old.and_then(short),
                    ..alert(watch, AlertKind::Mention(row.change), Some(&row.url))
                }));
            }
        }
        alerts
    }

    /// Alerts on tuples of queries. Rows of a tuple follow each other.
    pub(super) fn tuples(&self, deltas: &[TupleDelta]) -> Vec<Alert> {
        let mut alerts = Vec::new();
        for watch in self.watches {
            let (When::Change(wanted), Some(query)) = (&watch.when, &watch.scope.query) else { continue };
            let of_query = deltas.iter().filter(|delta| *delta.query == **query).collect::<Vec<_>>();
            for rows in of_query.chunk_by(|a, b| (a.delta, a.tuple) == (b.delta, b.tuple)) {
                let first = rows[0];
                let change = first.delta.change();
                let in_pages = |url: &str| watch.scope.pages.as_ref().is_none_or(|pages| pages.has(url));
                if wanted.contains(&change) && rows.iter().any(|row| in_pages(&row.url)) {
                    // Best told is the page that made the difference, then any that changed, then the first.
                    let here = || rows.iter().filter(|row| in_pages(&row.url));
                    let told = here().find(|row| row.change == Fate::Changed(change));
                    let told = told.or_else(|| here().find(|row| row.change != Fate::Unchanged)).unwrap_or(&first);
                    alerts.push(Alert {
                        tuple: Some(first.tuple),
                        text: Some(told.node.clone()),
                        ..alert(watch, AlertKind::Tuple(first.delta), Some(&told.url))
                    });
                }
            }
        }
        alerts
    }
}

fn alert(watch: &Watch, kind: AlertKind, url: Option<&str>) -> Alert {
    let (watch, url) = (Arc::clone(&watch.name), url.map(str::to_owned));
    Alert { watch, url, tuple: None, kind, text: None, old_value: None, value: None }
}

fn short(text: &str) -> Option<String> {
    let cut = text.char_indices().nth(TEXT_CHARS).map(|(at, _)| at);
    Some(cut.map_or_else(|| text.to_owned(), |at| format!("{}…", &text[..at])))
}
