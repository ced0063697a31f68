//! Tables that `delta` writes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::{
    AlertKind, Change, Deletion, Digest, Fate, LinkKind, NodeVersion, RegionChange, SnapshotId, TupleChange, WebJoin,
};
use crate::tables::record::{Column, Record, Table, record};

record! {
    /// A page that came, went, changed or lost its last link.
    pub struct PageDelta {
        url: Arc<str> = "page",
        change: Fate = "against the snapshot before: added, deleted, modified (as the ignore rules see it), or unchanged where only unlinked or structure_changed is true",
        reason: Option<Deletion> = "of a deleted page: gone (404 or 410), error (captured, but no good page) or absent (not captured)",
        old_digest: Option<Digest> = "content digest before",
        new_digest: Option<Digest> = "content digest now",
        old_bytes: Option<i64> = "length of the text before",
        new_bytes: Option<i64> = "length of the text now",
        text_changed: bool = "the text differs",
        title_changed: bool = "the title differs",
        links_changed: bool = "a link came, went or has another label",
        structure_changed: bool = "its elements are other ones or stand in another order (h1 became h2), whatever its text; alone it makes a row of an unchanged page",
        new_text_bytes: Option<i64> = "bytes of the text that stood nowhere in the old text (in pieces of 32 bytes or more); NULL of a deleted page",
        moved_bytes: Option<i64> = "bytes of the text that stood elsewhere in the old text; NULL of a deleted page",
        moved_to: Option<String> = "of a deleted page: the one added page with its text (64 bytes or more)",
        moved_from: Option<String> = "of an added page: the one deleted page with its text (64 bytes or more)",
        unlinked: bool = "another page linked to it before, none does now",
    }
}

impl Table for PageDelta {
    const NAME: &'static str = "page_deltas";
    const ABOUT: &'static str =
        "pages added, deleted, modified, restructured and unlinked between this snapshot and the one before";
}

record! {
    /// A link that came, went or has another label.
    pub struct LinkDelta {
        url: Arc<str> = "page that holds the link",
        target: String = "absolute URL it leads to, with its fragment",
        change: Change = "added, deleted, or modified: another label; of several links to a target those with equal labels pair up first",
        label: Option<String> = "anchor text now; NULL if deleted",
        old_label: Option<String> = "anchor text before; NULL if added",
        kind: LinkKind = "interior (same page), local (same host) or global",
    }
}

impl Table for LinkDelta {
    const NAME: &'static str = "link_deltas";
    const ABOUT: &'static str =
        "links added, deleted and relabelled between this snapshot and the one before, on the pages of page_deltas";
}

record! {
    /// A part of a page that came, went or moved.
    pub struct RegionDelta {
        url: Arc<str> = "page",
        change: RegionChange = "added, deleted, or moved within the page",
        start: Option<i64> = "first byte in the new text; NULL if deleted",
        end: Option<i64> = "byte after the last in the new text; NULL if deleted",
        old_start: Option<i64> = "first byte in the old text; NULL if added",
        old_end: Option<i64> = "byte after the last in the old text; NULL if added",
        text: Option<String> = "the part in the new text, its first 1,000 bytes; NULL if deleted",
        old_text: Option<String> = "the part in the old text, its first 1,000 bytes; NULL if added",
        first_seen: Option<SnapshotId> = "of an added part: snapshot in which its lines or sentences first stood on this URL; this snapshot: they are news",
    }
}

impl Table for RegionDelta {
    const NAME: &'static str = "region_deltas";
    const ABOUT: &'static str = "parts of pages added, deleted and moved between this snapshot and the one before, in whole words, by place in the text";
}

record! {
    /// What was written on a page.
    pub struct RegionText {
        url: String = "",
        change: RegionChange = "",
        text: Option<String> = "",
    }
}

/// The folders of the tables that each query has one of.
pub(crate) const WEB_TUPLES: &str = "web_tuples";
pub(crate) const WEB_LINKS: &str = "web_links";
pub(crate) const WEB_JOINS: &str = "web_joins";

record! {
    /// A node of a web tuple.
    pub struct WebTupleRow {
        tuple: Digest = "the tuple: BLAKE3-128 of the query's name and its (node, URL) list",
        node: String = "node of the query; x>y.1, x>y.2 … are the inner pages of a path from x to y",
        url: String = "page assigned to the node",
        content_digest: Digest = "version of the page: its content digest, with what the ignore rules match masked",
        schema: String = "which path lengths the tuple took",
        change: Fate = "of the tuple since the query was last asked: added, modified (a page or link of it), unchanged; deleted only in slim partitions, which hold what changed",
        whole: bool = "the partition holds all tuples of its snapshot, not only those that changed",
    }
}

record! {
    /// What makes a node of a web tuple.
    pub struct WebTupleNode {
        tuple: Digest = "",
        node: String = "",
        url: String = "",
        content_digest: Digest = "",
        schema: String = "",
    }
}

record! {
    /// A link of a web tuple.
    pub struct WebLinkRow {
        tuple: Digest = "the tuple",
        from_node: String = "node that holds the link",
        to_node: String = "node that it leads to",
        label: String = "anchor text",
        kind: LinkKind = "interior, local or global",
    }
}

record! {
    /// A node or a link of a joined web tuple.
    pub struct WebJoinRow {
        join: WebJoin = "joined: an old and a new tuple that share an unchanged page; left_outer, right_outer: an old or new tuple that shares none",
        old_tuple: Option<Digest> = "tuple of the query's table before; NULL in right_outer",
        tuple: Option<Digest> = "tuple of its table now; NULL in left_outer",
        node: String = "node; of a link, the one that holds it",
        url: String = "page of the node",
        version: NodeVersion = "which tuple has the node or link: old, new, or both, which then share it unchanged",
        content_digest: Option<Digest> = "of a node: version of the page; NULL of a link",
        to_node: Option<String> = "of a link: node that it leads to; NULL of a node",
        to_url: Option<String> = "of a link: page that it leads to",
        label: Option<String> = "of a link: anchor text",
        kind: Option<LinkKind> = "of a link: interior, local or global",
    }
}

/// Where the table of a query lies, as a table's name.
#[must_use]
pub(crate) fn table_of(folder: &str, query: &str) -> String {
    format!("{folder}/{query}")
}

/// The tables that each query has one of, for the schema reference.
#[must_use]
pub(crate) fn of_queries() -> [(&'static str, &'static str, Vec<Column>); 3] {
    [
        (
            "web_tuples/<query>",
            "matches of a query, one row per tuple and node; in slim partitions those that came, changed or went",
            WebTupleRow::columns(),
        ),
        ("web_links/<query>", "links of the tuples in web_tuples", WebLinkRow::columns()),
        (
            "web_joins/<query>",
            "web join and outer web joins with the query's table before, one row per node and link (only with --keep-joins)",
            WebJoinRow::columns(),
        ),
    ]
}

record! {
    /// A node of a tuple that came, went or changed.
    pub struct TupleDelta {
        query: Arc<str> = "query",
        delta: TupleChange = "plus, minus, modified, relinked_new or relinked_old",
        tuple: Digest = "the tuple: the old one's id for minus and relinked_old, else the new one's",
        old_tuple: Option<Digest> = "of a modified tuple: the tuple it was",
        node: String = "node of the query",
        url: String = "page",
        version: NodeVersion = "old, new, or both: the page did not change",
        content_digest: Digest = "version of the page, as in web_tuples",
        change: Fate = "of the page, relative to the two web tables: added, deleted, modified or unchanged",
    }
}

impl Table for TupleDelta {
    const NAME: &'static str = "tuple_deltas";
    const ABOUT: &'static str =
        "web tuples that came, went or changed since the query was last asked; none on a night when the query changed";
}

record! {
    /// A link of a tuple that came, went or changed.
    pub struct TupleLinkDelta {
        query: Arc<str> = "query",
        delta: TupleChange = "plus, minus, modified, relinked_new or relinked_old",
        tuple: Digest = "the tuple, as in tuple_deltas",
        from_node: String = "node that holds the link",
        to_node: String = "node that it leads to",
        from: String = "page that holds the link",
        to: String = "page that it leads to",
        label: String = "anchor text; of a deleted link the one it had",
        kind: LinkKind = "interior, local or global",
        change: Fate = "of the link, relative to the two web tables: added, deleted, modified (another label) or unchanged",
        old_label: Option<String> = "of a modified link: its label before, where the tuple is one of the new table",
    }
}

impl Table for TupleLinkDelta {
    const NAME: &'static str = "tuple_links";
    const ABOUT: &'static str = "links of the tuples in tuple_deltas";
}

record! {
    /// A query as it was asked of a snapshot, and the tuples that took the same path lengths.
    pub struct WebSchemaRow {
        query: String = "query",
        definition: String = "the query as it was asked, as JSON: nodes with their predicates, links, fingerprint",
        schema: String = "which path lengths tuples took, as in web_tuples",
        tuples: i64 = "how many tuples did",
    }
}

impl Table for WebSchemaRow {
    const NAME: &'static str = "web_schemas";
    const ABOUT: &'static str = "the web schema pool: queries as they were asked, and the path lengths of their tuples";
}

record! {
    /// A watch that fired.
    pub struct Alert {
        watch: Arc<str> = "watch of the pipeline file",
        url: Option<String> = "page it is about; NULL if it is about a set of pages",
        tuple: Option<Digest> = "web tuple it is about, as in tuple_deltas",
        kind: AlertKind = "page_added, page_deleted, page_modified, new_text, share, changes, mention_added, mention_deleted, or tuple_ with the kind of delta",
        text: Option<String> = "what was found: the match of a pattern, the text of a mention",
        old_value: Option<String> = "what stood there before: of what the pattern or the extractor found on the old page and no longer finds, the nearest; of a mention that went, its text; NULL: nothing, or nothing of the kind",
        value: Option<f64> = "what reached the threshold: share of new text, or number of changes",
    }
}

impl Table for Alert {
    const NAME: &'static str = "alerts";
    const ABOUT: &'static str = "watches that fired";
}

impl Alert {
    /// An alert as programs and `--json` see it.
    #[must_use]
    pub fn to_json(&self, snapshot: &SnapshotId) -> serde_json::Value {
        serde_json::json!({
            "watch": *self.watch, "snapshot": snapshot, "kind": self.kind, "url": self.url,
            "tuple": self.tuple.map(|tuple| tuple.to_string()), "text": self.text,
            "old_value": self.old_value, "value": self.value,
        })
    }
}

record! {
    /// A page and how much of it is new.
    pub struct PageNewText {
        url: String = "",
        new_bytes: Option<i64> = "",
        new_text_bytes: Option<i64> = "",
    }
}

record! {
    /// How much of a page is new.
    pub struct NewTextBytes {
        new_text_bytes: Option<i64> = "",
    }
}

record! {
    /// What is known of the texts of a URL.
    #[derive(Eq, Serialize, Deserialize)]
    pub struct SeenRow {
        url: String = "URL",
        snapshots: Vec<SnapshotId> = "snapshot in which the URL was first seen, then others in which a piece of text was",
        pieces: Vec<i64> = "pieces of text that left or came later: two halves of each digest",
        since: Vec<i64> = "of each piece, which of the snapshots",
    }
}

impl Table for SeenRow {
    const NAME: &'static str = "states/lines";
    const ABOUT: &'static str = "written with every base: when the pieces of each URL's texts were first seen";
}
