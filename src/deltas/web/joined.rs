//! A joined web tuple: an old and a new tuple put together over the pages that did not change.

use super::pair::{NodeClass, Pair, Side};
use super::table::WebTable;
use crate::model::closed_set::ClosedSet as _;
use crate::model::{Digest, LinkKind, NodeVersion};

/// A node or a link of a joined tuple, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinedRow<'a> {
    /// Of a link, the node that holds it.
    pub node: &'a str,
    pub url: &'a str,
    /// Which of the two tuples has it.
    pub version: NodeVersion,
    /// Of a node, the page's digest in that version.
    pub digest: Option<Digest>,
    /// Of a link.
    pub link: Option<JoinedLink<'a>>,
}

/// Where a link of a joined tuple leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinedLink<'a> {
    pub to_node: &'a str,
    pub to: &'a str,
    pub label: &'a str,
    pub kind: LinkKind,
}

impl<'a> Pair<'a> {
    /// The nodes, then the links of a joined tuple, or of a dangling one where one of the two is missing. A page that
    /// did not change stands there once if both tuples have it, and so does a link that both have.
    #[must_use]
    pub fn joined(&self, old: Option<Digest>, new: Option<Digest>) -> Vec<JoinedRow<'a>> {
        let old = old.and_then(|id| self.old.find(id)).map(|tuple| (Side::Old, tuple));
        let new = new.and_then(|id| self.new.find(id)).map(|tuple| (Side::New, tuple));
        let mut rows: Vec<JoinedRow<'a>> = Vec::new();
        for (side, tuple) in new.into_iter().chain(old) {
            let table = self.table(side);
            let version = if side == Side::New { NodeVersion::New } else { NodeVersion::Old };
            for &(name, url) in self.nodes(side, tuple) {
                let joinable = self.class(side, url) == NodeClass::Joinable;
                let there = rows.iter_mut().find(|row| joinable && row.link.is_none() && row.url == table.url(url));
                match there {
                    Some(row) if side == Side::Old => row.version = NodeVersion::Both,
                    _ => rows.push(JoinedRow {
                        node: table.name(name),
                        url: table.url(url),
                        version,
                        digest: Some(table.version(url)),
                        link: None,
                    }),
                }
            }
            for link in table.links(tuple) {
                let page = |name: u32| table.url(table.page_of(tuple, name));
                let (url, to) = (page(link.from), page(link.to));
                let label = table.label(link.label);
                let same = |row: &&mut JoinedRow<'a>| {
                    row.url == url
                        && row.link.is_some_and(|there| (there.to, there.label, there.kind) == (to, label, link.kind))
                };
                match rows.iter_mut().find(same) {
                    Some(row) if side == Side::Old => row.version = NodeVersion::Both,
                    _ => rows.push(JoinedRow {
                        node: table.name(link.from),
                        url,
                        version,
                        digest: None,
                        link: Some(JoinedLink { to_node: table.name(link.to), to, label, kind: link.kind }),
                    }),
                }
            }
        }
        rows.sort_by(|a, b| key(a).cmp(&key(b)));
        rows
    }

    fn table(&self, side: Side) -> &'a WebTable {
        if side == Side::Old { self.old } else { self.new }
    }
}

/// Nodes first.
fn key<'a>(row: &JoinedRow<'a>) -> impl Ord + use<'a> {
    let link = row.link.map(|link| (link.to, link.label, link.kind.name()));
    (row.link.is_some(), row.node, row.url, link, row.version)
}
