//! Web tuples and delta tuples, for people and other programs.

mod svg;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::terminal::one_line;
use crate::model::{Change, Digest, Fate, LinkKind, SnapshotId, TupleChange};

pub(crate) use svg::{index, picture};

/// A web table, or what changed in it.
#[derive(Debug)]
pub(crate) struct WebView {
    pub query: String,
    pub snapshot: SnapshotId,
    /// Of a delta: the snapshot that the query was asked of before.
    pub before: Option<SnapshotId>,
    pub is_delta: bool,
    pub tuples: Vec<ShownTuple>,
}

/// A tuple, or a delta tuple.
#[derive(Clone, Debug)]
pub(crate) struct ShownTuple {
    pub tuple: Digest,
    /// What kind of delta it is.
    pub delta: Option<TupleChange>,
    pub old_tuple: Option<Digest>,
    /// Which path lengths it took; empty of a delta tuple.
    pub schema: String,
    pub nodes: Vec<ShownNode>,
    pub links: Vec<ShownLink>,
}

#[derive(Clone, Debug)]
pub(crate) struct ShownNode {
    pub node: String,
    pub url: String,
    pub title: Option<String>,
    pub change: Fate,
}

/// A link between two nodes of a tuple, by their positions.
#[derive(Clone, Debug)]
pub(crate) struct ShownLink {
    pub from: usize,
    pub to: usize,
    pub label: String,
    pub old_label: Option<String>,
    pub kind: LinkKind,
    pub change: Fate,
}

/// How a change is marked in front of a line.
fn mark(change: Fate) -> char {
    match change {
        Fate::Unchanged => ' ',
        Fate::Changed(Change::Added) => '+',
        Fate::Changed(Change::Deleted) => '-',
        Fate::Changed(Change::Modified) => '~',
    }
}

impl ShownTuple {
    /// The name of its picture.
    #[must_use]
    pub(crate) fn file_name(&self) -> String {
        match self.delta {
            Some(delta) => format!("{delta}-{}.svg", self.tuple),
            None => format!("{}.svg", self.tuple),
        }
    }

    fn lines(&self, text: &mut String) {
        let kind = self.delta.map(|delta| format!("{delta} ")).unwrap_or_default();
        let schema = if self.schema.is_empty() { String::new() } else { format!("  {}", self.schema) };
        let _ = writeln!(text, "{kind}{}{schema}", self.tuple);
        let width = self.nodes.iter().map(|node| node.node.chars().count()).max().unwrap_or(0);
        for node in &self.nodes {
            let title = node.title.as_deref().map(|title| format!("  {}", one_line(title))).unwrap_or_default();
            let _ = writeln!(text, "  {} {:<width$}  {}{title}", mark(node.change), node.node, one_line(&node.url));
        }
        for link in &self.links {
            let (from, to) = (&self.nodes[link.from].node, &self.nodes[link.to].node);
            let was = link.old_label.as_deref().map(|old| format!(", before '{}'", one_line(old))).unwrap_or_default();
            let label = one_line(&link.label);
            let _ = writeln!(text, "  {} {from} -> {to}  '{label}'{was} ({})", mark(link.change), link.kind);
        }
    }

    fn json(&self) -> Value {
        let nodes = self
            .nodes
            .iter()
            .map(|node| json!({"node": node.node, "url": node.url, "title": node.title, "change": node.change}));
        let links = self.links.iter().map(|link| {
            let (from, to) = (&self.nodes[link.from], &self.nodes[link.to]);
            json!({
                "from_node": from.node, "to_node": to.node, "from": from.url, "to": to.url, "label": link.label,
                "old_label": link.old_label, "kind": link.kind, "change": link.change,
            })
        });
        json!({
            "tuple": self.tuple.to_string(), "delta": self.delta,
            "old_tuple": self.old_tuple.map(|tuple| tuple.to_string()), "schema": self.schema,
            "nodes": nodes.collect::<Vec<_>>(), "links": links.collect::<Vec<_>>(),
        })
    }
}

impl WebView {
    /// What is shown, in one line.
    #[must_use]
    pub(crate) fn headline(&self) -> String {
        let Self { query, snapshot, .. } = self;
        let tuples = match self.tuples.len() {
            1 => "1 tuple".to_owned(),
            n => format!("{n} tuples"),
        };
        if !self.is_delta {
            return format!("query {query} at {snapshot}: {tuples}");
        }
        let since = self.before.as_ref().map(|before| format!("{before} to ")).unwrap_or_default();
        let mut counts: BTreeMap<TupleChange, usize> = BTreeMap::new();
        for delta in self.tuples.iter().filter_map(|tuple| tuple.delta) {
            *counts.entry(delta).or_default() += 1;
        }
        let counts: Vec<String> = counts.iter().map(|(delta, n)| format!("{n} {delta}")).collect();
        let counts = if counts.is_empty() { "no tuple came, went or changed".to_owned() } else { counts.join(", ") };
        format!("query {query}, {since}{snapshot}: {counts}")
    }

    /// At most so many tuples are shown.
    #[must_use]
    pub(crate) fn text(&self, most: usize) -> String {
        let mut text = format!("{}\n", self.headline());
        self.tuples.iter().take(most).for_each(|tuple| tuple.lines(&mut text));
        if self.tuples.len() > most {
            let _ = writeln!(text, "and {} more; -v shows all", self.tuples.len() - most);
        }
        text
    }

    #[must_use]
    pub(crate) fn json(&self) -> Value {
        json!({
            "query": self.query, "snapshot": self.snapshot, "before": self.before, "delta": self.is_delta,
            "tuples": self.tuples.iter().map(ShownTuple::json).collect::<Vec<_>>(),
        })
    }
}
