//! Watches over the deltas of a snapshot: which fire, and on what.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::deltas::watches::{Kind, Watch, When, count, matches_in_news};
use crate::extract::MentionChange;
use crate::manifests::Waiting;
use crate::model::Span;
use crate::tables::delta::{Alert, PageDelta, TupleDelta};
use crate::tables::extract::MentionDelta;

/// The longest text that an alert shows.
const TEXT_CHARS: usize = 500;

/// The watches of a pipeline, and the pages of the queries that they ask for.
pub(super) struct Watcher<'a> {
    watches: &'a [Watch],
    /// Pages of a query's web tables, old and new.
    queries: HashMap<&'a str, HashSet<String>>,
}

/// A page's text and what of it is news.
pub(super) struct NewText<'a> {
    pub(super) url: &'a str,
    pub(super) text: &'a str,
    pub(super) spans: &'a [Span],
}

impl<'a> Watcher<'a> {
    pub(super) fn new(watches: &'a [Watch], queries: HashMap<&'a str, HashSet<String>>) -> Self {
        Self { watches, queries }
    }

    /// Whether a page is in the scope of a watch.
    fn covers(&self, watch: &Watch, url: &str) -> bool {
        let in_query = |query: &String| self.queries.get(query.as_str()).is_some_and(|pages| pages.contains(url));
        watch.scope.pages.as_ref().is_none_or(|pages| pages.has(url)) && watch.scope.query.as_ref().is_none_or(in_query)
    }

    /// Alerts on what is new on a page.
    pub(super) fn new_text(&self, page: &NewText<'_>) -> Vec<Alert> {
        let mut alerts = Vec::new();
        if page.spans.is_empty() {
            return alerts;
        }
        for watch in self.watches {
            let blank = || alert(watch, Some(page.url));
            match &watch.when {
                When::NewText(regex) if self.covers(watch, page.url) => {
                    let found = matches_in_news(regex, page.text, page.spans).into_iter();
                    alerts.extend(found.map(|text| Alert { kind: NEW_TEXT.into(), text: short(text), ..blank() }));
                }
                When::Share(least) if self.covers(watch, page.url) => {
                    let new: u32 = page.spans.iter().map(|span| span.len()).sum();
                    let share = f64::from(new) / page.text.len() as f64;
                    if share >= *least {
                        alerts.push(Alert { kind: SHARE.into(), value: Some(share), ..blank() });
                    }
                }
                _ => {}
            }
        }
        alerts
    }

    /// Alerts on pages that came, went or changed, and counts of those that wait for more.
    pub(super) fn pages(&self, pages: &[PageDelta], before: &Waiting) -> (Vec<Alert>, Waiting) {
        let mut alerts = Vec::new();
        let mut waiting = Waiting::new();
        let kind_of = |page: &PageDelta| Kind::ALL.into_iter().find(|kind| kind.as_str() == page.change);
        for watch in self.watches {
            match &watch.when {
                // A query's tuples are told instead of its pages.
                When::Change(kinds) if watch.scope.query.is_none() => {
                    for page in pages.iter().filter(|page| self.covers(watch, &page.url)) {
                        if let Some(kind) = kind_of(page).filter(|kind| kinds.contains(kind)) {
                            let text = match kind {
                                Kind::Deleted => page.reason.clone(),
                                _ => None,
                            };
                            alerts.push(Alert {
                                kind: format!("page_{}", kind.as_str()),
                                text,
                                ..alert(watch, Some(&page.url))
                            });
                        }
                    }
                }
                When::Changes(enough) => {
                    let more = pages.iter().filter(|page| kind_of(page).is_some() && self.covers(watch, &page.url));
                    let digest = watch.digest;
                    let known = before.get(&*watch.name).filter(|(known, _)| *known == digest);
                    let (left, fired) = count(known.map_or(0, |known| known.1), more.count() as u64, *enough);
                    waiting.insert(watch.name.to_string(), (digest, left));
                    alerts.extend(fired.map(|changes| Alert {
                        kind: "changes".into(),
                        value: Some(changes as f64),
                        ..alert(watch, None)
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
            let When::Mentions(extractor, kinds) = &watch.when else { continue };
            let asked = |delta: &&MentionDelta| {
                *delta.extractor == **extractor
                    && kinds.contains(&kind_of(delta.change))
                    && self.covers(watch, &delta.url)
            };
            alerts.extend(deltas.iter().filter(asked).map(|delta| Alert {
                kind: format!("mention_{}", delta.change),
                text: short(&delta.text),
                ..alert(watch, Some(&delta.url))
            }));
        }
        alerts
    }

    /// Alerts on tuples of queries. Rows of a tuple follow each other.
    pub(super) fn tuples(&self, deltas: &[TupleDelta]) -> Vec<Alert> {
        let mut alerts = Vec::new();
        for watch in self.watches {
            let (When::Change(kinds), Some(query)) = (&watch.when, &watch.scope.query) else { continue };
            let of_query = deltas.iter().filter(|delta| *delta.query == **query).collect::<Vec<_>>();
            for rows in of_query.chunk_by(|a, b| (&a.delta, a.tuple) == (&b.delta, b.tuple)) {
                let first = rows[0];
                let kind = match first.delta.as_str() {
                    "plus" | "relinked_new" => Kind::Added,
                    "minus" | "relinked_old" => Kind::Deleted,
                    _ => Kind::Modified,
                };
                let in_pages = |url: &str| watch.scope.pages.as_ref().is_none_or(|pages| pages.has(url));
                if kinds.contains(&kind) && rows.iter().any(|row| in_pages(&row.url)) {
                    // The page that made the difference, where there is one.
                    let here = || rows.iter().filter(|row| in_pages(&row.url));
                    let told = here().find(|row| row.change == kind.as_str());
                    let told = told.or_else(|| here().find(|row| row.change != "unchanged")).unwrap_or(&first);
                    alerts.push(Alert {
                        tuple: Some(first.tuple),
                        kind: format!("tuple_{}", first.delta),
                        text: Some(told.node.clone()),
                        ..alert(watch, Some(&told.url))
                    });
                }
            }
        }
        alerts
    }
}

/// The change of a mention, as watches name it.
fn kind_of(change: MentionChange) -> Kind {
    match change {
        MentionChange::Added => Kind::Added,
        MentionChange::Deleted => Kind::Deleted,
    }
}

const NEW_TEXT: &str = "new_text";
const SHARE: &str = "share";

/// Whether an alert is about text: none of a page that moved here is news.
pub(super) fn is_about_text(alert: &Alert) -> bool {
    alert.kind == NEW_TEXT || alert.kind == SHARE
}

fn alert(watch: &Watch, url: Option<&str>) -> Alert {
    Alert {
        watch: Arc::clone(&watch.name),
        url: url.map(str::to_owned),
        tuple: None,
        kind: String::new(),
        text: None,
        value: None,
    }
}

fn short(text: &str) -> Option<String> {
    let cut = text.char_indices().nth(TEXT_CHARS).map(|(at, _)| at);
    Some(cut.map_or_else(|| text.to_owned(), |at| format!("{}…", &text[..at])))
}
