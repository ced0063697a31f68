//! What can become of pages, and of the links, parts and mentions that stand on them.

use super::closed_set::closed_set;

closed_set! {
    /// How a page of a snapshot stands to the last good page of its URL.
    pub enum Standing: "standing of a page" {
        /// No earlier snapshot has a good page of this URL.
        Added = "added",
        /// Its change digest differs from the last good page's.
        Modified = "modified",
        Unchanged = "unchanged",
        /// The URL was not captured in this snapshot of a partial crawl: its last good page is taken over.
        Carried = "carried",
    }
}

closed_set! {
    /// How something differs between two snapshots.
    pub enum Change: "kind of change" {
        Added = "added",
        Deleted = "deleted",
        Modified = "modified",
    }
}

closed_set! {
    /// What became of a page, which may be nothing.
    pub enum Fate: "fate of a page" {
        Unchanged = "unchanged",
    } or Changed(Change)
}

impl Fate {
    /// How it changed, if it did.
    #[must_use]
    pub fn change(self) -> Option<Change> {
        match self {
            Self::Unchanged => None,
            Self::Changed(change) => Some(change),
        }
    }
}

closed_set! {
    /// Why a page is no longer there.
    pub enum Deletion: "reason of a deletion" {
        /// The server says so, by 404 or 410.
        Gone = "gone",
        /// It was captured, but not well.
        Error = "error",
        /// It was not captured.
        Absent = "absent",
    }
}

closed_set! {
    /// What became of a part of a page's text.
    pub enum RegionChange: "change of a part" {
        Added = "added",
        Deleted = "deleted",
        /// It stood elsewhere on the page before.
        Moved = "moved",
    }
}

closed_set! {
    /// What became of a mention. It has no identity besides its text and attributes, so that none is ever modified.
    pub enum MentionChange: "change of a mention" {
        Added = "added",
        Deleted = "deleted",
    }
}

impl From<MentionChange> for Change {
    fn from(change: MentionChange) -> Self {
        match change {
            MentionChange::Added => Self::Added,
            MentionChange::Deleted => Self::Deleted,
        }
    }
}
