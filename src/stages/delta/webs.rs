//! Web tables and their deltas, for a look: at any snapshot, as they are stored or asked anew, some of their tuples and
//! some of their nodes. Nothing is written to the store.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};

use super::queries;
use super::web_tables::stored;
use crate::config::Pipeline;
use crate::deltas::query::{Field, Glob, Query};
use crate::deltas::web::{WebTable, tuple_id};
use crate::manifests::Compared;
use crate::model::{Change, Digest, Fate, NodeVersion, SnapshotId};
use crate::report::webs::{ShownLink, ShownNode, ShownTuple, WebView};
use crate::run::inventory::known_snapshots;
use crate::store::Store;
use crate::store::manifest::Manifest;
use crate::tables::delta::{TupleDelta, TupleLinkDelta};
use crate::tables::ingest::PageNode;
use crate::tables::record::Table as _;

/// What to look at.
pub(crate) struct AskedWeb<'a> {
    pub query: &'a str,
    /// Without one, the newest snapshot.
    pub at: Option<&'a SnapshotId>,
    /// What changed there instead of the table.
    pub delta: bool,
    /// The query is asked of the pages at that snapshot instead of reading its table.
    pub anew: bool,
    /// All must hold of a tuple.
    pub conditions: &'a [Condition],
    /// The nodes that are shown; all if there are none.
    pub nodes: &'a [String],
}

/// A condition on a node, such as `d.title = 'side effects*'`.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    node: String,
    field: Field,
    glob: Glob,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write NODE.FIELD = 'GLOB', such as d.title = 'side effects*'";
        let (left, right) = text.split_once('=').ok_or_else(|| format!("'{text}' is no condition: {form}"))?;
        let (node, field) = left.trim().rsplit_once('.').ok_or_else(|| format!("'{text}' names no field: {form}"))?;
        let field = field.parse::<Field>().map_err(|error| error.to_string())?;
        let right = right.trim();
        let quoted = |quote: char| right.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        let glob = quoted('\'').or_else(|| quoted('"')).unwrap_or(right);
        let glob = Glob::new(glob).map_err(|problem| format!("glob '{glob}': {problem}"))?;
        Ok(Self { node: node.to_owned(), field, glob })
    }
}

/// A query or a node that somebody named and that is not there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UnknownName(String);

/// Looks at a web table, or at what changed in it.
pub(crate) fn web(pipeline: &Pipeline, store: &Store, asked: &AskedWeb<'_>) -> Result<WebView> {
    let declared = pipeline.queries.iter().find(|declared| declared.query.name() == asked.query);
    let Some(declared) = declared else {
        let names: Vec<&str> = pipeline.queries.iter().map(|declared| declared.query.name()).collect();
        let known = if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
        bail!(UnknownName(format!("no query '{}' in {}: {known}", asked.query, pipeline.path.display())));
    };
    let query = &declared.query;
    check_nodes(query, asked)?;
    let known = known_snapshots(store, asked.at)?;
    let at = asked.at.or(known.last()).context("the store has no snapshots yet")?;
    let look = Look { pipeline, store, query, asked };
    let mut view = match (asked.delta, asked.anew) {
        (true, _) => look.delta(at)?,
        (false, true) => look.table(at, &look.evaluated(at)?)?,
        (false, false) => look.table(at, &look.kept(at)?)?,
    };
    if !asked.nodes.is_empty() {
        project(&mut view, asked.nodes);
    }
    Ok(view)
}

/// Refuses nodes that the query does not have. Inner nodes of its paths are taken as they are written.
fn check_nodes(query: &Query, asked: &AskedWeb<'_>) -> Result<()> {
    let schema = query.schema();
    let named = asked.conditions.iter().map(|condition| &condition.node).chain(asked.nodes);
    for name in named.filter(|name| !name.contains('>')) {
        if !schema.nodes.iter().any(|node| node.name == *name) {
            let nodes: Vec<&str> = schema.nodes.iter().map(|node| node.name.as_str()).collect();
            bail!(UnknownName(format!("query '{}' has no node '{name}': it has {}", query.name(), nodes.join(", "))));
        }
    }
    Ok(())
}

struct Look<'a> {
    pipeline: &'a Pipeline,
    store: &'a Store,
    query: &'a Query,
    asked: &'a AskedWeb<'a>,
}

/// Pages by URL.
type Pages = HashMap<String, PageNode>;

impl Look<'_> {
    /// The query's table at a snapshot, evaluated there.
    fn evaluated(&self, at: &SnapshotId) -> Result<WebTable> {
        let web = queries::web(self.store, at)?;
        queries::evaluate(self.pipeline, self.store, self.query, &web, at)?.map_err(anyhow::Error::msg)
    }

    /// What comparisons left, up to a snapshot, newest first.
    fn compared(&self, at: &SnapshotId) -> Result<Vec<Manifest<Compared>>> {
        let all = self.store.manifests::<Compared>()?;
        let upto = all.iter().position(|manifest| manifest.snapshot == *at).map_or(0, |at| at + 1);
        let mut upto: Vec<Manifest<Compared>> = all.into_iter().take(upto).collect();
        upto.reverse();
        Ok(upto)
    }

    /// The query's table at a snapshot, as it is stored.
    fn kept(&self, at: &SnapshotId) -> Result<WebTable> {
        let name = self.query.name();
        let compared = self.compared(at)?;
        let asked = compared.first().and_then(|manifest| manifest.summary.queries.get(name));
        match asked {
            Some(asked) if asked.failed.is_none() => {
                stored(self.store, name, at)?.with_context(|| format!("no web table of query '{name}' at {at}"))
            }
            Some(asked) => bail!("query '{name}' failed on {at}: {}", asked.failed.as_deref().unwrap_or_default()),
            None => bail!("query '{name}' was not asked of {at}; --anew asks it now"),
        }
    }

    /// The pages of these URLs at a snapshot.
    fn pages(&self, at: &SnapshotId, urls: &HashSet<&str>) -> Result<Pages> {
        let layers = self.store.pages_at(at)?;
        let mut by_shard: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        urls.iter().for_each(|url| by_shard.entry(self.store.shard_of(url)).or_default().push(url));
        let mut pages = Pages::new();
        for (shard, mut urls) in by_shard {
            urls.sort_unstable();
            let found = layers.of_urls::<PageNode>(self.store, shard, &urls)?;
            pages.extend(found.into_iter().flatten().map(|placed| (placed.row.url.clone(), placed.row)));
        }
        Ok(pages)
    }

    fn table(&self, at: &SnapshotId, table: &WebTable) -> Result<WebView> {
        let pages = self.pages(at, &table.node_rows().map(|row| row.url).collect())?;
        let mut tuples: Vec<ShownTuple> = Vec::new();
        for row in table.node_rows() {
            if tuples.last().is_none_or(|last| last.tuple != row.tuple) {
                tuples.push(shown(row.tuple, row.schema));
            }
            let node = self.node(row.node, row.url, Fate::Unchanged, &pages);
            tuples.last_mut().expect("one was just put there").nodes.push(node);
        }
        let mut at_tuple = 0;
        for row in table.link_rows() {
            while tuples[at_tuple].tuple != row.tuple {
                at_tuple += 1;
            }
            let tuple = &mut tuples[at_tuple];
            let place = |name: &str| tuple.nodes.iter().position(|node| node.node == name);
            let (Some(from), Some(to)) = (place(row.from_node), place(row.to_node)) else { continue };
            let (label, kind) = (row.label.to_owned(), row.kind);
            tuple.links.push(ShownLink { from, to, label, old_label: None, kind, change: Fate::Unchanged });
        }
        tuples.retain(|tuple| self.holds(tuple, &pages));
        let query = self.query.name().to_owned();
        Ok(WebView { query, snapshot: at.clone(), before: None, is_delta: false, tuples })
    }

    fn node(&self, node: &str, url: &str, change: Fate, pages: &Pages) -> ShownNode {
        let title = pages.get(url).and_then(|page| page.title.clone());
        ShownNode { node: node.to_owned(), url: url.to_owned(), title, change }
    }

    /// What changed where the query was last asked, at or before a snapshot.
    fn delta(&self, at: &SnapshotId) -> Result<WebView> {
        let name = self.query.name();
        let compared = self.compared(at)?;
        let was_asked = |manifest: &&Manifest<Compared>| {
            let asked = manifest.summary.queries.get(name);
            asked.is_some_and(|asked| asked.last_asked.is_none() && asked.failed.is_none())
        };
        let mut evaluations = compared.iter().filter(was_asked);
        let Some(now) = evaluations.next() else { bail!("query '{name}' was not asked of {at} or earlier") };
        let before = evaluations.next().map(|manifest| manifest.snapshot.clone());
        let snapshot = now.snapshot.clone();
        let mut nodes: Vec<TupleDelta> = self.store.partition(TupleDelta::NAME, &snapshot)?.all_rows()?;
        nodes.retain(|row| *row.query == *name);
        let mut links: Vec<TupleLinkDelta> = self.store.partition(TupleLinkDelta::NAME, &snapshot)?.all_rows()?;
        links.retain(|row| *row.query == *name);
        let urls: HashSet<&str> = nodes.iter().map(|row| row.url.as_str()).collect();
        let mut pages = self.pages(&snapshot, &urls)?;
        if let Some(before) = &before {
            for (url, page) in self.pages(before, &urls)? {
                pages.entry(url).or_insert(page);
            }
        }
        let mut of_tuple: HashMap<_, Vec<&TupleLinkDelta>> = HashMap::new();
        links.iter().for_each(|link| of_tuple.entry((link.delta, link.tuple)).or_default().push(link));
        let mut tuples = Vec::new();
        for rows in nodes.chunk_by(|a, b| (a.delta, a.tuple) == (b.delta, b.tuple)) {
            let links = of_tuple.get(&(rows[0].delta, rows[0].tuple)).map_or(&[][..], Vec::as_slice);
            tuples.push(self.delta_tuple(rows, links, &pages));
        }
        tuples.retain(|tuple| self.holds(tuple, &pages));
        Ok(WebView { query: name.to_owned(), snapshot, before, is_delta: true, tuples })
    }

    /// A delta tuple. A page that changed has a row for each version, and is one node.
    fn delta_tuple(&self, rows: &[TupleDelta], links: &[&TupleLinkDelta], pages: &Pages) -> ShownTuple {
        let modified = Fate::Changed(Change::Modified);
        let mut tuple =
            ShownTuple { delta: Some(rows[0].delta), old_tuple: rows[0].old_tuple, ..shown(rows[0].tuple, "") };
        for row in rows {
            let told = row.change == modified
                && row.version == NodeVersion::New
                && tuple.nodes.iter().any(|node| node.node == row.node && node.url == row.url);
            if !told {
                tuple.nodes.push(self.node(&row.node, &row.url, row.change, pages));
            }
        }
        for link in links {
            // The nodes of an old tuple may have other names in the new one.
            let place = |name: &str, url: &str| {
                let exact = tuple.nodes.iter().position(|node| node.node == name && node.url == url);
                exact.or_else(|| tuple.nodes.iter().position(|node| node.url == url))
            };
            let (Some(from), Some(to)) = (place(&link.from_node, &link.from), place(&link.to_node, &link.to)) else {
                continue;
            };
            tuple.links.push(ShownLink {
                from,
                to,
                label: link.label.clone(),
                old_label: link.old_label.clone(),
                kind: link.kind,
                change: link.change,
            });
        }
        tuple
    }

    /// Whether all conditions hold of a tuple.
    fn holds(&self, tuple: &ShownTuple, pages: &Pages) -> bool {
        let mut conditions = self.asked.conditions.iter();
        conditions.all(|condition| {
            let mut nodes = tuple.nodes.iter().filter(|node| node.node == condition.node);
            nodes.any(|node| {
                let page = pages.get(&node.url);
                let value = match condition.field {
                    Field::Url => Some(node.url.as_str()),
                    Field::Title => node.title.as_deref(),
                    Field::Host => page.map(|page| page.host.as_str()),
                    Field::ContentType => page.and_then(|page| page.content_type.as_deref()),
                };
                value.is_some_and(|value| condition.glob.is_match(value))
            })
        })
    }
}

fn shown(tuple: Digest, schema: &str) -> ShownTuple {
    let schema = schema.to_owned();
    ShownTuple { tuple, delta: None, old_tuple: None, schema, nodes: Vec::new(), links: Vec::new() }
}

/// Leaves only these nodes and the links between them. Tuples of a table that are then equal are one, with an id of its
/// own.
fn project(view: &mut WebView, nodes: &[String]) {
    for tuple in &mut view.tuples {
        let kept: Vec<usize> = (0..tuple.nodes.len()).filter(|&at| nodes.contains(&tuple.nodes[at].node)).collect();
        let place = |at: usize| kept.binary_search(&at).ok();
        let links = std::mem::take(&mut tuple.links).into_iter();
        tuple.links =
            links.filter_map(|link| Some(ShownLink { from: place(link.from)?, to: place(link.to)?, ..link })).collect();
        tuple.nodes = kept.iter().map(|&at| tuple.nodes[at].clone()).collect();
        if tuple.delta.is_none() {
            let pairs = tuple.nodes.iter().map(|node| (node.node.as_str(), node.url.as_str()));
            tuple.tuple = tuple_id(&view.query, pairs);
            tuple.schema.clear();
        }
    }
    view.tuples.retain(|tuple| !tuple.nodes.is_empty());
    let mut seen = BTreeSet::new();
    view.tuples.retain(|tuple| tuple.delta.is_some() || seen.insert(tuple.tuple));
    if !view.is_delta {
        view.tuples.sort_by_key(|tuple| tuple.tuple);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let read = |text: &str| text.parse::<Condition>();
        for text in ["d.title = 'side effects*'", "d.title=side effects*", "d.title = \"side effects*\""] {
            let condition = read(text).unwrap();
            assert_eq!((condition.node.as_str(), condition.field), ("d", Field::Title));
            assert!(condition.glob.is_match("Side effects of X"));
        }
        assert_eq!(read("a>u.1.url = '*'").unwrap().node, "a>u.1");
        for (text, problem) in [
            ("d.title", "no condition"),
            ("title = x", "names no field"),
            ("d.titel = x", "titel"),
            ("d.url = 'x['", "glob"),
        ] {
            assert!(read(text).unwrap_err().contains(problem), "{text}");
        }
    }
}
