//! Web tables in the store. A whole partition holds all tuples; a slim one those that came, changed or went since the
//! query was last asked. So the table at any snapshot is the newest whole partition with the slim ones since.

use anyhow::{Context as _, Result};

use crate::deltas::web::{DeltaLinkRow, DeltaRow, Layered, Pair, TupleLinkRow, TupleNodeRow, WebTable};
use crate::model::{Change, Digest, Fate, SnapshotId, WebJoin};
use crate::store::Store;
use crate::tables::delta::{
    TupleDelta, TupleLinkDelta, WEB_LINKS, WEB_TUPLES, WebJoinRow, WebLinkRow, WebTupleNode, WebTupleRow, table_of,
};

const DELETED: Fate = Fate::Changed(Change::Deleted);

/// The web table of a query at a snapshot, as far as it is stored; `None` if it never was.
pub(crate) fn stored(store: &Store, query: &str, snapshot: &SnapshotId) -> Result<Option<WebTable>> {
    let (nodes_in, links_in) = (table_of(WEB_TUPLES, query), table_of(WEB_LINKS, query));
    let layers = store.layers(&nodes_in, snapshot)?;
    let mut layered: Layered<WebTupleNode, WebLinkRow> = Layered::new();
    for (i, lies_in) in layers.snapshots().iter().rev().enumerate() {
        let partition = store.partition(&nodes_in, lies_in)?;
        let links: Vec<WebLinkRow> = store.partition(&links_in, lies_in)?.all_rows()?;
        let of_link = |link: &WebLinkRow| link.tuple;
        // The oldest layer is whole, and perhaps of a store that knew no others.
        if i == 0 {
            layered.add(partition.all_rows::<WebTupleNode>()?, links, |node| (node.tuple, false), of_link);
            continue;
        }
        let (gone, kept): (Vec<WebTupleRow>, Vec<WebTupleRow>) =
            partition.all_rows::<WebTupleRow>()?.into_iter().partition(|row| row.change == DELETED);
        let bare = |row: WebTupleRow| WebTupleNode {
            tuple: row.tuple,
            node: row.node,
            url: row.url,
            content_digest: row.content_digest,
            schema: row.schema,
        };
        let bare_rows = |rows: Vec<WebTupleRow>| rows.into_iter().map(bare).collect::<Vec<_>>();
        layered.add(bare_rows(gone), Vec::new(), |node| (node.tuple, true), of_link);
        layered.add(bare_rows(kept), links, |node| (node.tuple, false), of_link);
    }
    if layers.snapshots().is_empty() {
        return Ok(None);
    }
    let table = layered.table(query, node_of, link_of);
    table.map(Some).with_context(|| format!("the web table of query '{query}' in snapshot {snapshot} is damaged"))
}

fn node_of(row: &WebTupleNode) -> TupleNodeRow<'_> {
    TupleNodeRow { tuple: row.tuple, node: &row.node, url: &row.url, version: row.content_digest, schema: &row.schema }
}

fn link_of(row: &WebLinkRow) -> TupleLinkRow<'_> {
    TupleLinkRow {
        tuple: row.tuple,
        from_node: &row.from_node,
        to_node: &row.to_node,
        label: &row.label,
        kind: row.kind,
    }
}

/// A web table as a partition holds it.
pub(crate) struct Partitioned {
    pub(crate) nodes: Vec<WebTupleRow>,
    pub(crate) links: Vec<WebLinkRow>,
}

impl Partitioned {
    /// All of a table, or what changed `since` another one. Without one, all is added.
    pub(crate) fn new(table: &WebTable, since: Option<&WebTable>, whole: bool) -> Self {
        let none = WebTable::empty(table.query());
        let since = since.unwrap_or(&none);
        let fates: Vec<Fate> = table.fates(since).collect();
        let ids = table.ids();
        let fate_of = |tuple: Digest| ids.binary_search(&tuple).map_or(DELETED, |at| fates[at]);
        let wanted = |tuple: Digest| whole || fate_of(tuple) != Fate::Unchanged;
        let row = |row: TupleNodeRow<'_>| WebTupleRow {
            tuple: row.tuple,
            node: row.node.to_owned(),
            url: row.url.to_owned(),
            content_digest: row.version,
            schema: row.schema.to_owned(),
            change: fate_of(row.tuple),
            whole,
        };
        let mut nodes: Vec<WebTupleRow> = table.node_rows().filter(|row| wanted(row.tuple)).map(row).collect();
        if !whole {
            nodes.extend(since.node_rows().filter(|row| fate_of(row.tuple) == DELETED).map(row));
            nodes.sort_by_key(|row| row.tuple);
        }
        let links = table.link_rows().filter(|row| wanted(row.tuple)).map(|row| WebLinkRow {
            tuple: row.tuple,
            from_node: row.from_node.to_owned(),
            to_node: row.to_node.to_owned(),
            label: row.label.to_owned(),
            kind: row.kind,
        });
        Self { nodes, links: links.collect() }
    }

    /// All of the table at a snapshot that becomes a base. What changed there is told as before.
    pub(crate) fn of_base(store: &Store, query: &str, snapshot: &SnapshotId) -> Result<Option<Self>> {
        let name = table_of(WEB_TUPLES, query);
        let Some(table) = stored(store, query, snapshot)? else { return Ok(None) };
        let mut rows = Self::new(&table, Some(&table), true);
        let here = store.layers(&name, snapshot)?.snapshots().first() == Some(snapshot);
        let told = if here { store.partition(&name, snapshot)?.all_rows::<WebTupleRow>()? } else { Vec::new() };
        let told: std::collections::HashMap<Digest, Fate> = told.iter().map(|row| (row.tuple, row.change)).collect();
        for row in &mut rows.nodes {
            row.change = told.get(&row.tuple).copied().unwrap_or(Fate::Unchanged);
        }
        Ok(Some(rows))
    }
}

/// What changed between two web tables, as tables have it.
#[derive(Default)]
pub(crate) struct TupleDeltas {
    pub(crate) nodes: Vec<TupleDelta>,
    pub(crate) links: Vec<TupleLinkDelta>,
}

impl TupleDeltas {
    /// The rows of all five kinds.
    pub(crate) fn between(old: &WebTable, new: &WebTable) -> Self {
        let query: std::sync::Arc<str> = new.query().into();
        let pair = Pair::new(old, new);
        let deltas = pair.deltas();
        let node = |row: DeltaRow<'_>| TupleDelta {
            query: query.clone(),
            delta: row.delta,
            tuple: row.tuple,
            old_tuple: row.old_tuple,
            node: row.node.to_owned(),
            url: row.url.to_owned(),
            version: row.version,
            content_digest: row.digest,
            change: row.change,
        };
        let link = |row: DeltaLinkRow<'_>| TupleLinkDelta {
            query: query.clone(),
            delta: row.delta,
            tuple: row.tuple,
            from_node: row.from_node.to_owned(),
            to_node: row.to_node.to_owned(),
            from: row.from.to_owned(),
            to: row.to.to_owned(),
            label: row.label.to_owned(),
            kind: row.kind,
            change: row.change,
            old_label: row.old_label.map(str::to_owned),
        };
        Self { nodes: deltas.rows().map(node).collect(), links: deltas.link_rows().map(link).collect() }
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.nodes.append(&mut other.nodes);
        self.links.append(&mut other.links);
    }
}

/// The rows of a joined or dangling tuple.
pub(super) fn joined<'a>(
    pair: &'a Pair<'a>,
    join: WebJoin,
    old_tuple: Option<Digest>,
    tuple: Option<Digest>,
) -> impl Iterator<Item = WebJoinRow> + 'a {
    pair.joined(old_tuple, tuple).into_iter().map(move |row| WebJoinRow {
        join,
        old_tuple,
        tuple,
        node: row.node.to_owned(),
        url: row.url.to_owned(),
        version: row.version,
        content_digest: row.digest,
        to_node: row.link.map(|link| link.to_node.to_owned()),
        to_url: row.link.map(|link| link.to.to_owned()),
        label: row.link.map(|link| link.label.to_owned()),
        kind: row.link.map(|link| link.kind),
    })
}
