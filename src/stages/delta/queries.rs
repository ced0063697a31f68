//! Queries of a snapshot: its pages and links as a web, the web tables of all queries, and what changed in them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rayon::prelude::*;

use crate::config::{DeclaredQuery, Pipeline};
use crate::deltas::query::{Evaluation, Failure, LookFor, Query, Question, Web, WebBuilder, WebPage};
use crate::deltas::web::{Pair, TupleLinkRow, TupleNodeRow, WebTable};
use crate::manifests::{AskedQuery, Compared, Ingested, lineage};
use crate::model::{Digest, DigestBuilder, SnapshotId, Standing, WebJoin};
use crate::run::shards;
use crate::stages::extract::{declared_digest, extracted_at};
use crate::stages::link_target::page_of;
use crate::store::Store;
use crate::store::manifest::Manifest;
use crate::store::parquet::{GROUP_ROWS, Written};
use crate::store::staging::Staging;
use crate::store::texts::ShardReader;
use crate::tables::delta::{
    TupleDelta, WEB_JOINS, WEB_LINKS, WEB_TUPLES, WebJoinRow, WebLinkRow, WebTupleRow, table_of,
};
use crate::tables::ingest::{LinkRow, LinkView, Page, PageNode, PagePointer, PageStanding};
use crate::tables::record::{Record, Table as _};

/// Joined pairs that `--keep-joins` writes at most.
const JOIN_PAIRS: usize = 1_000_000;
/// Texts that a query looks at are read in batches of so many pages.
const TEXTS: usize = 2_000;

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

/// The answer to a query on a snapshot, and what it was on the one before.
pub(super) struct Answer<'a> {
    query: &'a Query,
    /// `None` if the query failed.
    table: Option<WebTable>,
    /// `None` if the query was not asked before as it is now.
    old: Option<WebTable>,
    asked: AskedQuery,
}

/// Asks all queries. `before` is what the comparison of the snapshot before left.
pub(super) fn ask<'a>(
    pipeline: &'a Pipeline,
    store: &Store,
    ingested: &Manifest<Ingested>,
    before: Option<&Manifest<Compared>>,
) -> Result<Vec<Answer<'a>>> {
    if pipeline.queries.is_empty() {
        return Ok(Vec::new());
    }
    let snapshot = &ingested.snapshot;
    let web = web(store, snapshot)?;
    let mut answers = Vec::new();
    for DeclaredQuery { query, max_tuples } in &pipeline.queries {
        let fingerprint = fingerprint(pipeline, query, ingested.summary.ignore);
        let last = before.and_then(|before| before.summary.queries.get(query.name()));
        let mut old = match (before, last) {
            (Some(before), Some(last)) if last.fingerprint == fingerprint && last.failed.is_none() => {
                Some(stored(store, query.name(), &before.snapshot)?)
            }
            (Some(_), Some(last)) if last.failed.is_none() => {
                log::warn!("query '{}' changed: starts anew with snapshot {snapshot}", query.name());
                None
            }
            (Some(_), None) => {
                log::warn!("query '{}' is new: starts with snapshot {snapshot}", query.name());
                None
            }
            _ => None,
        };
        if let Some(old) = &mut old {
            keep_versions(store, snapshot, old)?;
        }
        let built_on = before.and_then(|before| before.summary.source(query.name(), fingerprint));
        let lineage = lineage(snapshot, fingerprint, built_on);
        let mut asked = AskedQuery { fingerprint, lineage, built_on, tuples: 0, failed: None, max_tuples: None };
        let table = evaluate(store, query, &web, snapshot)?;
        match &table {
            Ok(table) => asked.tuples = table.len() as u64,
            Err(problem) => {
                asked.failed = Some(problem.clone());
                asked.max_tuples = *max_tuples;
            }
        }
        answers.push(Answer { query, table: table.ok(), old, asked });
    }
    answers.sort_by_key(|answer| answer.query.name());
    Ok(answers)
}

/// A page that was not seen when the rules behind versions changed gets another version when it is seen again. Where
/// `ingest` says that it is as it was, the old table is given the new version: nothing was modified.
fn keep_versions(store: &Store, snapshot: &SnapshotId, old: &mut WebTable) -> Result<()> {
    let pages = store.partition(Page::NAME, snapshot)?;
    let asked: HashMap<String, Digest> = old.node_rows().map(|row| (row.url.to_owned(), row.version)).collect();
    let mut same = HashMap::new();
    for shard in 0..store.shards() {
        let rows = pages.shard::<PageStanding>(shard)?.into_iter().filter(|row| row.change == Standing::Unchanged);
        let other = rows.filter(|row| asked.get(&row.url).is_some_and(|version| *version != row.change_digest));
        same.extend(other.map(|row| (row.url, row.change_digest)));
    }
    if !same.is_empty() {
        old.set_versions(|url| same.get(url).copied());
    }
    Ok(())
}

/// The tuples of a query. The inner error says that the query has too many of them, which has been logged.
pub(super) fn evaluate(
    store: &Store,
    query: &Query,
    web: &Web,
    snapshot: &SnapshotId,
) -> Result<Result<WebTable, String>> {
    let found = query.evaluate(web, |questions: &[Question<'_>]| {
        questions.iter().map(|question| look(store, snapshot, question)).collect::<Result<Vec<_>>>()
    });
    match found {
        Ok(Evaluation { table, empty }) => {
            if let Some(why) = empty {
                log::warn!("query '{}' matches nothing in snapshot {snapshot}: {why}", query.name());
            }
            Ok(Ok(table))
        }
        Err(Failure::Look(error)) => Err(error),
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
    let page = |page: &PageNode| WebPage {
        url: page.url.as_str().into(),
        title: page.title.clone(),
        host: page.host.clone(),
        content_type: page.content_type.clone(),
        last_modified: page.last_modified,
        bytes: u64::try_from(page.text_bytes).unwrap_or(0),
        version: page.change_digest,
    };
    let mut builder = WebBuilder::new(pages.iter().flatten().map(page).collect());
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

/// Answers, for each page of a question, what only its text or mentions can tell.
fn look(store: &Store, snapshot: &SnapshotId, question: &Question<'_>) -> Result<Vec<bool>> {
    let mut by_shard: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for url in &question.urls {
        by_shard.entry(store.shard_of(url)).or_default().push(url);
    }
    let shards: Vec<(u32, Vec<&str>)> = by_shard.into_iter().collect();
    let found: Vec<Result<HashSet<String>>> = shards
        .par_iter()
        .map(|(shard, urls)| match question.what {
            LookFor::Text(regex) => {
                let asked: HashSet<&str> = urls.iter().copied().collect();
                let pointers = store.pages_at(snapshot)?.shard::<PagePointer>(store, *shard)?;
                let pointers: Vec<&PagePointer> = pointers.iter().filter(|p| asked.contains(&*p.url)).collect();
                let mut reader = ShardReader::new(store, *shard);
                let mut yes = HashSet::new();
                for pointers in pointers.chunks(TEXTS) {
                    let wanted: Vec<_> = pointers.iter().map(|p| (p.url.as_str(), &p.text_snapshot)).collect();
                    let texts = reader.texts(&wanted)?;
                    let matching = pointers.iter().zip(texts).filter(|(_, text)| regex.is_match(text));
                    yes.extend(matching.map(|(pointer, _)| pointer.url.clone()));
                }
                Ok(yes)
            }
            LookFor::Mention(extractor) => {
                let asked: HashSet<&str> = urls.iter().copied().collect();
                let rows = extracted_at(store, extractor, snapshot, *shard)?.into_iter();
                let yes = rows.filter(|row| row.mentions > 0 && asked.contains(&*row.url));
                Ok(yes.map(|row| row.url.to_string()).collect())
            }
        })
        .collect();
    let mut yes: HashSet<String> = HashSet::new();
    for found in found {
        yes.extend(found?);
    }
    Ok(question.urls.iter().map(|url| yes.contains(*url)).collect())
}

/// A web table as it was written.
fn stored(store: &Store, query: &str, snapshot: &SnapshotId) -> Result<WebTable> {
    let open = |folder: &str| store.partition(&table_of(folder, query), snapshot);
    let (nodes, links) = (open(WEB_TUPLES)?, open(WEB_LINKS)?);
    let (nodes, links) = (nodes.all_rows::<WebTupleRow>()?, links.all_rows::<WebLinkRow>()?);
    let nodes = nodes.iter().map(|row| TupleNodeRow {
        tuple: row.tuple,
        node: &row.node,
        url: &row.url,
        version: row.content_digest,
        schema: &row.schema,
    });
    let links = links.iter().map(|row| TupleLinkRow {
        tuple: row.tuple,
        from_node: &row.from_node,
        to_node: &row.to_node,
        label: &row.label,
        kind: row.kind,
    });
    WebTable::from_rows(query, nodes, links)
        .with_context(|| format!("the web table of query '{query}' in snapshot {snapshot} is damaged"))
}

/// The rows of all five kinds between two web tables.
pub(super) fn delta_rows(query: &str, old: &WebTable, new: &WebTable) -> Vec<TupleDelta> {
    let name: Arc<str> = query.into();
    let pair = Pair::new(old, new);
    let deltas = pair.deltas();
    let rows = deltas.rows().map(|row| TupleDelta {
        query: Arc::clone(&name),
        delta: row.delta,
        tuple: row.tuple,
        old_tuple: row.old_tuple,
        node: row.node.to_owned(),
        url: row.url.to_owned(),
        version: row.version,
        content_digest: row.digest,
        change: row.change,
    });
    rows.collect()
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

    /// What changed since the snapshot before; nothing on the night when the query starts.
    pub(super) fn deltas(&self) -> Vec<TupleDelta> {
        match (&self.old, &self.table) {
            (Some(old), Some(new)) => delta_rows(self.name(), old, new),
            _ => Vec::new(),
        }
    }

    /// Writes its tables; gives their names and rows.
    pub(super) fn write(&self, staging: &mut Staging<'_>, keep_joins: bool) -> Result<Vec<(String, Written)>> {
        let Some(table) = &self.table else { return Ok(Vec::new()) };
        let nodes = table.node_rows().map(|row| WebTupleRow {
            tuple: row.tuple,
            node: row.node.to_owned(),
            url: row.url.to_owned(),
            content_digest: row.version,
            schema: row.schema.to_owned(),
        });
        let links = table.link_rows().map(|row| WebLinkRow {
            tuple: row.tuple,
            from_node: row.from_node.to_owned(),
            to_node: row.to_node.to_owned(),
            label: row.label.to_owned(),
            kind: row.kind,
        });
        let mut written = vec![
            write_rows(staging, table_of(WEB_TUPLES, self.name()), nodes)?,
            write_rows(staging, table_of(WEB_LINKS, self.name()), links)?,
        ];
        if let (true, Some(old)) = (keep_joins, &self.old) {
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
        let row = |join, old_tuple, tuple| WebJoinRow { join, old_tuple, tuple };
        let joined = join.pairs.iter().map(|(old, new)| row(WebJoin::Joined, Some(*old), Some(*new)));
        let left = pair.left_dangling().map(|old| row(WebJoin::LeftOuter, Some(old), None));
        let right = pair.right_dangling().map(|new| row(WebJoin::RightOuter, None, Some(new)));
        write_rows(staging, table_of(WEB_JOINS, self.name()), joined.chain(left).chain(right)).map(Some)
    }

    /// Writes down the query and the path lengths of its tuples: the paper's web schema pool.
    pub(super) fn remember(&self, store: &Store, snapshot: &SnapshotId) -> Result<()> {
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
