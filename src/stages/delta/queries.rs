//! Queries of a snapshot: its pages and links as a web, the web tables of all queries, and what changed in them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use anyhow::{Context as _, Result};
use rayon::prelude::*;
use regex::Regex;

use super::linkers::Linkers;
use super::touched::{self, Tables, web_page};
use super::web_tables::{self, Partitioned, TupleDeltas, joined};
use crate::config::{DeclaredQuery, Pipeline};
use crate::deltas::query::{ElementPredicate, Evaluation, Failure, LookFor, Query, Question, Web, WebBuilder};
use crate::deltas::web::{Pair, WebTable};
use crate::manifests::{AskedQuery, Compared, Ingested, lineage};
use crate::model::{Digest, DigestBuilder, SnapshotId, Standing, Timestamp, WebJoin};
use crate::run::shards;
use crate::stages::extract::{declared_digest, extracted_of};
use crate::stages::link_target::page_of;
use crate::store::Store;
use crate::store::index::Index;
use crate::store::manifest::Manifest;
use crate::store::parquet::{GROUP_ROWS, Written};
use crate::store::staging::Staging;
use crate::store::texts::ShardReader;
use crate::tables::delta::{WEB_JOINS, WEB_LINKS, WEB_TUPLES, WebSchemaRow, table_of};
use crate::tables::ingest::{ElementsPointer, LinkRow, LinkView, Page, PageNode, PagePointer, PageStanding};
use crate::tables::record::{Record, Table as _};

/// Joined pairs that `--keep-joins` writes at most.
const JOIN_PAIRS: usize = 1_000_000;
/// Texts that a query looks at are read in batches of so many pages.
const TEXTS: usize = 2_000;
/// A query is asked around what was touched as long as no more of the web's pages have to be looked up than one in so
/// many, or these few.
const WORTH_SHARE: usize = 8;
const WORTH_PAGES: usize = 256;

/// Whether all queries were asked as they are now.
pub(super) fn all_asked(pipeline: &Pipeline, compared: &Compared) -> bool {
    pipeline.queries.iter().all(|declared| {
        let print = fingerprint(pipeline, &declared.query, compared.ignore);
        compared.queries.get(declared.query.name()).is_some_and(|asked| {
            asked.fingerprint == print && (asked.failed.is_none() || asked.max_tuples == declared.max_tuples)
        })
    })
}

/// Identifies all that decides a query's tables besides the pages: its definition, that of extractors whose mentions it
/// asks for, and the rules behind the versions of pages.
fn fingerprint(pipeline: &Pipeline, query: &Query, ignore: Digest) -> Digest {
    let mut builder = DigestBuilder::new();
    builder.field(&query.fingerprint().0).field(&ignore.0);
    for name in query.mentions() {
        let declared = pipeline.extractors.iter().find(|extractor| extractor.config.name == name);
        builder.field(name.as_bytes());
        if let Some(declared) = declared {
            builder.field(&declared_digest(declared).0);
        }
    }
    builder.finish()
}

/// The answer to a query on a snapshot, and what it was before.
pub(super) struct Answer<'a> {
    query: &'a Query,
    /// `None` if the query failed or was not due.
    table: Option<WebTable>,
    /// `None` if the query was not asked before as it is now.
    old: Option<WebTable>,
    /// The same as it is stored, where pages were given other versions to compare by.
    old_as_stored: Option<WebTable>,
    /// All of the table is to be stored, not only what changed.
    whole: bool,
    asked: AskedQuery,
}

/// What a query is asked of.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) store: &'a Store,
    pub(super) index: &'a Index,
    pub(super) ingested: &'a Manifest<Ingested>,
    /// The snapshots before, oldest first.
    pub(super) done: &'a [Manifest<Ingested>],
    /// What the comparison of the snapshot before left.
    pub(super) before: Option<&'a Manifest<Compared>>,
}

/// Asks all queries that are due.
pub(super) fn ask(asking: Asking<'_>) -> Result<Vec<Answer<'_>>> {
    let mut answers = Vec::new();
    let mut web = None;
    for declared in &asking.pipeline.queries {
        let answer = match asking.not_due(declared)? {
            Some(answer) => answer,
            None => asking.ask(declared, &mut web)?,
        };
        answers.push(answer);
    }
    answers.sort_by_key(|answer| answer.query.name());
    Ok(answers)
}

impl<'a> Asking<'a> {
    /// What the snapshot before has of a query, if it was asked there as it is now.
    fn last(self, query: &Query) -> Option<(&'a Manifest<Compared>, &'a AskedQuery)> {
        let before = self.before?;
        Some((before, before.summary.queries.get(query.name())?))
    }

    /// The answer of a query that is not due yet: that of the snapshot before.
    fn not_due(self, declared: &'a DeclaredQuery) -> Result<Option<Answer<'a>>> {
        let query = &declared.query;
        let (Some(every), Some((before, last))) = (declared.every, self.last(query)) else { return Ok(None) };
        let since = last.last_asked.unwrap_or(before.time);
        let same = last.fingerprint == fingerprint(self.pipeline, query, self.ingested.summary.ignore);
        if !same || last.failed.is_some() || every.has_passed(since, self.ingested.time) {
            return Ok(None);
        }
        let whole = self.ingested.summary.base;
        let is_watched = self.pipeline.watches.iter().any(|watch| watch.scope.query.as_deref() == Some(query.name()));
        let old = match whole || is_watched {
            true => web_tables::stored(self.store, query.name(), &before.snapshot)?,
            false => None,
        };
        let asked = AskedQuery { last_asked: Some(since), built_on: Some(last.lineage), ..last.clone() };
        Ok(Some(Answer { query, table: None, old, old_as_stored: None, whole, asked }))
    }

    /// `web`: the whole web, if it was read before.
    fn ask(self, declared: &'a DeclaredQuery, web: &mut Option<Web>) -> Result<Answer<'a>> {
        let DeclaredQuery { query, max_tuples, .. } = declared;
        let snapshot = &self.ingested.snapshot;
        let fingerprint = fingerprint(self.pipeline, query, self.ingested.summary.ignore);
        let old_as_stored = self.old(query, fingerprint)?;
        let (mut old, mut found) = (None, None);
        if let (Some(stored), Some((before, last))) = (&old_as_stored, self.last(query)) {
            let since = last.last_asked.unwrap_or(before.time);
            found = self.ask_around(query, stored, since)?;
            old = Some(stored.clone());
            self.keep_versions(old.as_mut().expect("it was just put there"), since)?;
        }
        let built_on = self.before.and_then(|before| before.summary.source(query.name(), fingerprint));
        let lineage = lineage(snapshot, fingerprint, built_on);
        let mut asked =
            AskedQuery { fingerprint, lineage, built_on, tuples: 0, last_asked: None, failed: None, max_tuples: None };
        let table = match found {
            Some(table) => Ok(table),
            None => {
                if web.is_none() {
                    *web = Some(self::web(self.store, snapshot)?);
                }
                evaluate(self.pipeline, self.store, query, web.as_ref().expect("it was just read"), snapshot)?
            }
        };
        match &table {
            Ok(table) => asked.tuples = table.len() as u64,
            Err(problem) => {
                asked.failed = Some(problem.clone());
                asked.max_tuples = *max_tuples;
            }
        }
        let whole = self.ingested.summary.whole || self.ingested.summary.base || old_as_stored.is_none();
        Ok(Answer { query, table: table.ok(), old, old_as_stored, whole, asked })
    }

    /// The query's table from the one before and what was touched since; `None` where asking the whole web is no dearer,
    /// or is needed to say what is wrong. `since`: the time of the snapshot that the old table is of.
    fn ask_around(self, query: &Query, old: &WebTable, since: Timestamp) -> Result<Option<WebTable>> {
        let nights = || self.done.iter().filter(|done| done.time > since).chain([self.ingested]);
        if nights().any(|night| night.summary.whole) {
            return Ok(None);
        }
        let alive = usize::try_from(self.ingested.summary.alive).unwrap_or(usize::MAX);
        let most = (alive / WORTH_SHARE).max(WORTH_PAGES);
        let snapshots = nights().map(|night| &night.snapshot);
        let Some(touched) = touched::touched(self.store, snapshots, !query.mentions().is_empty(), most)? else {
            return Ok(None);
        };
        Linkers::bring(self.store, self.index, self.done, self.ingested)?;
        let snapshot = &self.ingested.snapshot;
        let moment = self.index.moment();
        let mut tables = Tables::new(self.store, snapshot, &moment)?;
        let Some(around) = query.around(&touched, old, most, &mut tables)? else { return Ok(None) };
        let found = query.evaluate(around.web(), |questions: &[Question<'_>]| answers(self.store, snapshot, questions));
        let found = match found {
            Ok(found) => found.table,
            Err(Failure::Look(error)) if !error.is::<NotKept>() => return Err(error),
            Err(_) => return Ok(None),
        };
        let Ok(table) = around.table(old, &found) else { return Ok(None) };
        let pages = around.web().pages().len();
        log::debug!("query '{}': asked around {} touched URLs, of {pages} pages", query.name(), touched.len());
        // The whole web tells why nothing matches any more, and how many tuples are too many.
        let has_ended = table.is_empty() && !old.is_empty();
        Ok(Some(table).filter(|table| !has_ended && table.len() as u64 <= query.max_tuples()))
    }

    /// The table that the query had before; `None`, and said, where it starts.
    fn old(self, query: &Query, fingerprint: Digest) -> Result<Option<WebTable>> {
        let snapshot = &self.ingested.snapshot;
        match (self.before, self.last(query)) {
            (_, Some((before, last))) if last.failed.is_none() => {
                if last.fingerprint == fingerprint {
                    return web_tables::stored(self.store, query.name(), &before.snapshot);
                }
                log::warn!("query '{}' changed: starts anew with snapshot {snapshot}", query.name());
            }
            (Some(_), None) => log::warn!("query '{}' is new: starts with snapshot {snapshot}", query.name()),
            _ => {}
        }
        Ok(None)
    }

    /// A page that was not seen when the rules behind versions changed gets another version when it is seen again. Where
    /// `ingest` says that it is as it was, the old table is given the new version: nothing was modified. `since`: the time
    /// of the snapshot that the old table is of.
    fn keep_versions(self, old: &mut WebTable, since: Timestamp) -> Result<()> {
        let mut versions: HashMap<String, Digest> =
            old.node_rows().map(|row| (row.url.to_owned(), row.version)).collect();
        let mut same = HashMap::new();
        for seen in self.done.iter().filter(|done| done.time > since).chain([self.ingested]) {
            let pages = self.store.partition(Page::NAME, &seen.snapshot)?;
            for shard in 0..self.store.shards() {
                for row in pages.shard::<PageStanding>(shard)? {
                    let Some(version) = versions.get_mut(&row.url) else { continue };
                    match row.change {
                        Standing::Unchanged if *version != row.change_digest => {
                            *version = row.change_digest;
                            same.insert(row.url, row.change_digest);
                        }
                        Standing::Unchanged | Standing::Carried => {}
                        // From here on another version is another page.
                        Standing::Added | Standing::Modified => drop(versions.remove(&row.url)),
                    }
                }
            }
        }
        if !same.is_empty() {
            old.set_versions(|url| same.get(url).copied());
        }
        Ok(())
    }
}

/// The tuples of a query. The inner error says that the query has too many of them, or why it cannot be answered, which
/// has been logged.
pub(super) fn evaluate(
    pipeline: &Pipeline,
    store: &Store,
    query: &Query,
    web: &Web,
    snapshot: &SnapshotId,
) -> Result<Result<WebTable, String>> {
    let found = query.evaluate(web, |questions: &[Question<'_>]| answers(store, snapshot, questions));
    match found {
        Ok(Evaluation { table, empty }) => {
            if let Some(why) = empty {
                log::warn!("query '{}' matches nothing in snapshot {snapshot}: {why}", query.name());
            }
            Ok(Ok(table))
        }
        Err(Failure::Look(error)) => {
            let problem = error.downcast::<NotKept>()?.told(pipeline, store, query, snapshot)?;
            log::error!("{problem}");
            Ok(Err(problem))
        }
        Err(Failure::TooMany(problem)) => {
            log::error!("snapshot {snapshot}: {problem}");
            Ok(Err(problem.to_string()))
        }
    }
}

/// The pages and links of a snapshot. The links of a page lie in the snapshot that its `content_snapshot` names.
pub(super) fn web(store: &Store, snapshot: &SnapshotId) -> Result<Web> {
    let pages = store.pages_at(snapshot)?;
    let pages: Vec<Vec<PageNode>> = shards::all(store.shards(), |shard| Ok(pages.shard(store, shard)?))?;
    let mut builder = WebBuilder::new(pages.iter().flatten().map(web_page).collect());
    for (shard, pages) in (0..).zip(&pages) {
        let partitions: BTreeSet<&SnapshotId> = pages.iter().map(|page| &page.content_snapshot).collect();
        for lies_in in partitions {
            let partition = store.partition(LinkRow::NAME, lies_in)?;
            // Links and pages are both ordered by URL.
            let mut rest = pages.iter().peekable();
            partition.visit::<LinkView<'_>>(&partition.part(shard), |link| {
                while rest.next_if(|page| *page.url < *link.url).is_some() {}
                // A page may have other links by now, in a later snapshot.
                if rest.peek().is_some_and(|page| *page.url == *link.url && page.content_snapshot == *lies_in) {
                    builder.link(link.url, &page_of(link.target), link.label, link.kind);
                }
            })?;
        }
    }
    Ok(builder.finish())
}

fn answers(store: &Store, snapshot: &SnapshotId, questions: &[Question<'_>]) -> Result<Vec<Vec<bool>>> {
    questions.iter().map(|question| look(store, snapshot, question)).collect()
}

/// What was found of pages of one shard.
#[derive(Default)]
struct Found {
    yes: HashSet<String>,
    /// Pages of which nobody can tell.
    unknown: Vec<String>,
}

/// It was not kept where the texts of pages stand, since no query asked for it when they were read.
#[derive(Debug, thiserror::Error)]
#[error("of {pages} pages it is not known where their text stands among elements, such as {first}")]
struct NotKept {
    pages: usize,
    first: String,
}

impl NotKept {
    /// What to do about it.
    fn told(&self, pipeline: &Pipeline, store: &Store, query: &Query, snapshot: &SnapshotId) -> Result<String> {
        let Self { pages, first } = self;
        let pages = if *pages == 1 { "1 page".to_owned() } else { format!("{pages} pages") };
        let oldest = store.manifests::<Ingested>()?.into_iter().next().map(|oldest| oldest.snapshot);
        Ok(format!(
            "query '{}' asks where text stands (tag, path), which was not kept when {pages} that it asks about at {snapshot} \
             were read, such as {first}: it can be answered from the snapshot on that brings them anew; \
             `ratoon run {} --force --snapshot {}` reads all again",
            query.name(),
            pipeline.path.display(),
            oldest.as_ref().unwrap_or(snapshot),
        ))
    }
}

/// Answers, for each page of a question, what only its text, elements or mentions can tell.
fn look(store: &Store, snapshot: &SnapshotId, question: &Question<'_>) -> Result<Vec<bool>> {
    let mut by_shard: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for url in &question.urls {
        by_shard.entry(store.shard_of(url)).or_default().push(url);
    }
    let shards: Vec<(u32, Vec<&str>)> = by_shard.into_iter().collect();
    let found: Vec<Result<Found>> = shards
        .par_iter()
        .map(|(shard, urls)| match question.what {
            LookFor::Text(regex) => with_text(store, snapshot, *shard, urls, regex),
            LookFor::Element(element) => with_element(store, snapshot, *shard, urls, element),
            LookFor::Mention(extractor) => {
                let rows = extracted_of(store, extractor, snapshot, *shard, urls)?.into_iter();
                let yes = rows.filter(|row| row.mentions > 0).map(|row| row.url.to_string()).collect();
                Ok(Found { yes, ..Found::default() })
            }
        })
        .collect();
    let mut all = Found::default();
    for found in found {
        let Found { yes, unknown } = found?;
        all.yes.extend(yes);
        all.unknown.extend(unknown);
    }
    if let Some(first) = all.unknown.iter().min() {
        return Err(NotKept { pages: all.unknown.len(), first: first.clone() }.into());
    }
    Ok(question.urls.iter().map(|url| all.yes.contains(*url)).collect())
}

/// The pages of a shard whose text a regex is found in.
fn with_text(store: &Store, snapshot: &SnapshotId, shard: u32, urls: &[&str], regex: &Regex) -> Result<Found> {
    let pointers = store.pages_at(snapshot)?.of_urls::<PagePointer>(store, shard, urls)?;
    let pointers: Vec<PagePointer> = pointers.into_iter().flatten().map(|placed| placed.row).collect();
    let mut reader = ShardReader::new(store, shard);
    let mut found = Found::default();
    for pointers in pointers.chunks(TEXTS) {
        let wanted: Vec<_> = pointers.iter().map(|p| (p.url.as_str(), &p.text_snapshot)).collect();
        let texts = reader.texts(&wanted)?;
        let matching = pointers.iter().zip(texts).filter(|(_, text)| regex.is_match(text));
        found.yes.extend(matching.map(|(pointer, _)| pointer.url.clone()));
    }
    Ok(found)
}

/// The pages of a shard that have an element, and those of which that is not known.
fn with_element(
    store: &Store,
    snapshot: &SnapshotId,
    shard: u32,
    urls: &[&str],
    element: &ElementPredicate,
) -> Result<Found> {
    let pointers = store.pages_at(snapshot)?.of_urls::<ElementsPointer>(store, shard, urls)?;
    let pointers = pointers.into_iter().flatten().map(|placed| placed.row);
    let (known, unknown): (Vec<_>, Vec<_>) = pointers.partition(|page| page.elements_digest.is_some());
    let unknown = unknown.into_iter().map(|page| page.url).collect();
    let mut found = Found { unknown, ..Found::default() };
    let mut reader = ShardReader::new(store, shard);
    for pointers in known.chunks(TEXTS) {
        let wanted: Vec<_> = pointers.iter().map(|p| (p.url.as_str(), &p.text_snapshot)).collect();
        for (pointer, (text, elements)) in pointers.iter().zip(reader.texts_and_elements(&wanted)?) {
            let elements =
                elements.with_context(|| format!("the elements of {} are not beside its text", pointer.url))?;
            if element.holds(&elements, &text) {
                found.yes.insert(pointer.url.clone());
            }
        }
    }
    Ok(found)
}

impl<'a> Answer<'a> {
    pub(super) fn name(&self) -> &'a str {
        self.query.name()
    }

    pub(super) fn asked(&self) -> &AskedQuery {
        &self.asked
    }

    pub(super) fn has_failed(&self) -> bool {
        self.asked.failed.is_some()
    }

    /// The pages of its tables, old and new.
    pub(super) fn pages(&self) -> HashSet<String> {
        let tables = [&self.table, &self.old].into_iter().flatten();
        tables.flat_map(WebTable::node_rows).map(|row| row.url.to_owned()).collect()
    }

    /// What changed since it was last asked; nothing on the night when the query starts.
    pub(super) fn deltas(&self) -> TupleDeltas {
        match (&self.old, &self.table) {
            (Some(old), Some(new)) => TupleDeltas::between(old, new),
            _ => TupleDeltas::default(),
        }
    }

    /// Writes its tables; gives their names and rows.
    pub(super) fn write(&self, staging: &mut Staging<'_>, keep_joins: bool) -> Result<Vec<(String, Written)>> {
        let rows = match (&self.table, &self.old) {
            (Some(table), _) => Partitioned::new(table, self.old_as_stored.as_ref(), self.whole),
            // It was not due, but a base holds all that is known.
            (None, Some(old)) if self.whole && !self.has_failed() => Partitioned::new(old, Some(old), true),
            _ => return Ok(Vec::new()),
        };
        let Partitioned { nodes, links } = rows;
        let mut written = vec![
            write_rows(staging, table_of(WEB_TUPLES, self.name()), nodes.into_iter())?,
            write_rows(staging, table_of(WEB_LINKS, self.name()), links.into_iter())?,
        ];
        for (_, written) in &mut written {
            *written = written.whole_if(self.whole);
        }
        if let (true, Some(old), Some(table)) = (keep_joins, &self.old, &self.table) {
            written.extend(self.write_joins(staging, old, table)?);
        }
        Ok(written)
    }

    fn write_joins(
        &self,
        staging: &mut Staging<'_>,
        old: &WebTable,
        new: &WebTable,
    ) -> Result<Option<(String, Written)>> {
        let pair = Pair::new(old, new);
        let join = pair.join(JOIN_PAIRS);
        if !join.complete {
            log::warn!(
                "query '{}': up to {} joined pairs, more than the {JOIN_PAIRS} that --keep-joins writes; web_joins is left out",
                self.name(),
                join.at_most
            );
            return Ok(None);
        }
        let pairs = join.pairs.iter().map(|(old, new)| (WebJoin::Joined, Some(*old), Some(*new)));
        let left = pair.left_dangling().map(|old| (WebJoin::LeftOuter, Some(old), None));
        let right = pair.right_dangling().map(|new| (WebJoin::RightOuter, None, Some(new)));
        let rows = pairs.chain(left).chain(right).flat_map(|(join, old, new)| joined(&pair, join, old, new));
        write_rows(staging, table_of(WEB_JOINS, self.name()), rows).map(Some)
    }

    /// Its definition and the path lengths of its tuples, as of a night on which it was asked: the paper's web schema
    /// pool.
    pub(super) fn schemas(&self) -> Vec<WebSchemaRow> {
        let Some(table) = &self.table else { return Vec::new() };
        let definition = serde_json::to_string(&self.query.schema()).expect("a schema can be written");
        let row = |schema: &str, tuples: u64| WebSchemaRow {
            query: self.name().to_owned(),
            definition: definition.clone(),
            schema: schema.to_owned(),
            tuples: i64::try_from(tuples).unwrap_or(i64::MAX),
        };
        let rows: Vec<WebSchemaRow> = table.schemas().into_iter().map(|(schema, tuples)| row(schema, tuples)).collect();
        if rows.is_empty() { vec![row("", 0)] } else { rows }
    }

    /// Writes down the query and the path lengths of its tuples where it was last asked.
    pub(super) fn remember(&self, store: &Store, snapshot: &SnapshotId) -> Result<()> {
        if self.table.is_none() && !self.has_failed() {
            return Ok(());
        }
        let schemas: HashMap<String, u64> = self
            .table
            .as_ref()
            .map(|table| table.schemas().into_iter().map(|(schema, n)| (schema.to_owned(), n)).collect())
            .unwrap_or_default();
        let schemas: BTreeMap<String, u64> = schemas.into_iter().collect();
        let said = serde_json::json!({ "query": self.query.schema(), "snapshot": snapshot, "schemas": schemas });
        Ok(store.write_meta_file(&format!("queries/{}.json", self.name()), &said)?)
    }
}

/// Writes the rows of a table that has no shards, since a tuple is of several pages.
fn write_rows<R: Record>(
    staging: &mut Staging<'_>,
    table: String,
    rows: impl Iterator<Item = R>,
) -> Result<(String, Written)> {
    let mut writer = staging.batch_writer(&table, R::schema())?;
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let part: Vec<R> = rows.by_ref().take(GROUP_ROWS).collect();
        writer.write(0, R::encode(&part))?;
    }
    Ok((table, writer.finish()?))
}
