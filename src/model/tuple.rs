//! Web tuples: the words of the tables that queries have.

use super::change::Change;
use super::closed_set::closed_set;

closed_set! {
    /// What became of a web tuple. Rows of `tuple_deltas` come in this order.
    pub enum TupleChange: "kind of tuple delta" {
        /// A new tuple with a page that is new to the web table.
        Plus = "plus",
        /// An old tuple with a page that the web table no longer has.
        Minus = "minus",
        /// An old and a new tuple that share pages, some of which changed.
        Modified = "modified",
        /// A new tuple of known pages: a link was added or removed between them.
        RelinkedNew = "relinked_new",
        /// An old tuple that is no more, though its pages are still there.
        RelinkedOld = "relinked_old",
    }
}

impl TupleChange {
    /// The same in the words of pages: what a watch asks for.
    #[must_use]
    pub fn change(self) -> Change {
        match self {
            Self::Plus | Self::RelinkedNew => Change::Added,
            Self::Minus | Self::RelinkedOld => Change::Deleted,
            Self::Modified => Change::Modified,
        }
    }
}

closed_set! {
    /// Which version of a page a row of `tuple_deltas` shows. Rows of a tuple come in this order.
    pub enum NodeVersion: "version of a page" {
        Old = "old",
        New = "new",
        /// The version is the same in both web tables.
        Both = "both",
    }
}

closed_set! {
    /// How an old and a new tuple meet in `web_joins`.
    pub enum WebJoin: "web join" {
        /// They share an unchanged page.
        Joined = "joined",
        /// An old tuple that shares an unchanged page with no new one.
        LeftOuter = "left_outer",
        /// A new tuple that shares an unchanged page with no old one.
        RightOuter = "right_outer",
    }
}
